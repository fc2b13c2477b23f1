"""What the plan must know of the host: CPUs, GPUs, and what the workload can do here.

The workload is asked in a process of its own, so that neither torch nor envpool is loaded by the sweep.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field

from cgratio.machine.fingerprint import HostFacts
from cgratio.machine.gpus import Gpu, GpuSelectionError, resolve_visible
from cgratio.machine.host import Host, read_host
from cgratio.machine.software import software_versions
from cgratio.machine.topology import Topology
from cgratio.sweep.document import SpecError
from cgratio.workload.probe import Probe

_PROBE_MAX_S = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepHost:
    """The host that a sweep runs on.

    Attributes:
        host: its CPUs and GPUs.
        cuda: whether the workload can compute on the visible GPUs; `cuda_reason` if not.
        software: package versions.
        refusals: why an environment cannot run here, or a network on it: (environment, network) to a
            sentence; the network is empty where it does not matter.
    """

    host: Host
    cuda: bool = False
    cuda_reason: str | None = None
    software: dict[str, str] = field(default_factory=dict)
    refusals: dict[tuple[str, str], str] = field(default_factory=dict)

    @property
    def facts(self) -> HostFacts:
        """The host's fingerprint."""
        return self.host.facts

    @property
    def topology(self) -> Topology:
        """The host's CPUs."""
        return self.host.topology

    @property
    def allowed(self) -> frozenset[int]:
        """The CPUs that this process may use."""
        return self.host.limits.allowed

    @property
    def gpus(self) -> tuple[Gpu, ...]:
        """The visible GPUs, in the order of CUDA_VISIBLE_DEVICES."""
        return self.host.visible


def read_sweep_host(*, pairs: Iterable[tuple[str, str]]) -> SweepHost:
    """Reads the host and asks the workload whether it can run these pairs of environment and network here.

    Raises:
        SpecError: the visible GPUs are named wrongly, or the trainer does not start.
    """
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    order = os.environ.get("CUDA_DEVICE_ORDER", "FASTEST_FIRST")
    host = read_host(cuda_visible_devices=visible, device_order=order)
    if host.inventory.gpus:
        try:
            resolve_visible(host.inventory.gpus, visible, device_order=order)
        except GpuSelectionError as error:
            # `doctor` shows such a host; a sweep must not go on without the GPU that was meant.
            raise SpecError(f"CUDA_VISIBLE_DEVICES={visible}: {error}") from error
    probe = _ask_workload(pairs)
    return SweepHost(
        host=host,
        cuda=probe.cuda and bool(host.visible),
        cuda_reason=host.visible_reason or probe.cuda_reason,
        software=software_versions(),
        refusals={(error["environment"], error["network"]): error["message"] for error in probe.errors},
    )


def _ask_workload(pairs: Iterable[tuple[str, str]]) -> Probe:
    question = {"pairs": [list(pair) for pair in pairs]}
    try:
        answer = subprocess.run(
            [sys.executable, "-m", "cgratio.workload.probe"],
            input=json.dumps(question),
            capture_output=True,
            text=True,
            check=True,
            timeout=_PROBE_MAX_S,
        )
    except subprocess.CalledProcessError as error:
        last = (error.stderr.strip().splitlines() or ["it printed nothing"])[-1]
        raise SpecError(f"the trainer does not start on this host: {last}") from error
    except subprocess.TimeoutExpired as error:
        raise SpecError(f"the trainer did not answer within {_PROBE_MAX_S:g} s") from error
    try:
        return Probe(**json.loads(answer.stdout.splitlines()[-1]))
    except (LookupError, ValueError, TypeError) as error:
        raise SpecError("the trainer does not start on this host: it gave no answer") from error
