"""All that is known about a host's processors, gathered once, with its CPU/GPU ratio."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cgratio.machine.cpulist import format_cpu_list
from cgratio.machine.fingerprint import NO_GPUS_IN_A_TREE, HostFacts, host_fingerprint
from cgratio.machine.gpus import Gpu, GpuInventory, GpuSelectionError, list_gpus, resolve_visible
from cgratio.machine.limits import CpuLimits, read_limits
from cgratio.machine.topology import Topology, read_topology


@dataclass(frozen=True, slots=True, kw_only=True)
class HostRatio:
    """The CPU/GPU ratio that a host offers (Inci et al. 2020), and how it was counted.

    Attributes:
        ratio: Hardware threads per SM, or None with a reason.
        threads_per_gpu: Hardware threads per visible GPU, or None.
        cores_per_gpu: Physical cores per visible GPU, or None.
        rule: What was counted, in words.
        reason: Why there is no ratio.
    """

    ratio: float | None
    threads_per_gpu: float | None
    cores_per_gpu: float | None
    rule: str
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """A host. `visible` are the GPUs that a job started here would see; `visible_reason` says why none."""

    facts: HostFacts
    topology: Topology
    limits: CpuLimits
    inventory: GpuInventory
    visible: tuple[Gpu, ...]
    visible_reason: str | None

    @property
    def ratio(self) -> HostRatio:
        """Hardware threads that are allowed, per SM of the visible GPUs."""
        threads = len(self.limits.allowed)
        cores = sum(1 for core in self.topology.cores if core & self.limits.allowed)
        sms = [gpu.sm_count for gpu in self.visible if gpu.sm_count is not None]
        rule = "hardware threads allowed / SMs of the visible GPUs"
        quota = self.limits.quota_cpus
        if quota is not None and quota < threads:
            rule = f"{rule} (the threads share {quota:g} CPUs of time)"
        if not self.visible:
            return HostRatio(
                ratio=None, threads_per_gpu=None, cores_per_gpu=None, rule=rule, reason=self.visible_reason
            )
        all_known = len(sms) == len(self.visible) and sum(sms) > 0
        return HostRatio(
            ratio=threads / sum(sms) if all_known else None,
            threads_per_gpu=threads / len(self.visible),
            cores_per_gpu=cores / len(self.visible),
            rule=f"{rule} = {threads} / {sum(sms)}" if all_known else rule,
            reason=None
            if all_known
            else next((gpu.sm_reason for gpu in self.visible if gpu.sm_reason), None),
        )

    def as_dict(self) -> dict[str, Any]:
        """The host as JSON types; CPU sets as CPU lists."""
        limits = self.limits
        return {
            **self.facts.as_dict(),
            "id": self.facts.id,
            "threads_online": len(limits.online),
            "threads_allowed": len(limits.allowed),
            "affinity": format_cpu_list(limits.affinity),
            "cpuset": format_cpu_list(limits.cpuset),
            "quota_source": limits.quota_source,
            "visible_gpus": [gpu.uuid for gpu in self.visible],
            "visible_reason": self.visible_reason,
            "ratio": {name: getattr(self.ratio, name) for name in HostRatio.__slots__},
            "notes": [*self.topology.notes, *limits.notes],
        }


def read_host(
    *,
    root: Path = Path("/"),
    cuda_visible_devices: str | None = None,
    device_order: str = "PCI_BUS_ID",
) -> Host:
    """Reads all there is to know about a host.

    Args:
        root: Folder that holds `proc` and `sys`, `/` for the running host. A saved tree has no GPUs.
        cuda_visible_devices: Value of `CUDA_VISIBLE_DEVICES`, None if not set.
        device_order: Value of `CUDA_DEVICE_ORDER`.

    Raises:
        TopologyError: If the folder names no CPU at all.
    """
    running = root == Path("/")
    inventory = list_gpus(root=root) if running else GpuInventory(gpus=(), reason=NO_GPUS_IN_A_TREE)
    visible: tuple[Gpu, ...] = ()
    reason = inventory.reason
    if inventory.gpus:
        try:
            visible = resolve_visible(inventory.gpus, cuda_visible_devices, device_order=device_order)
            reason = None if visible else "CUDA_VISIBLE_DEVICES hides every GPU"
        except GpuSelectionError as error:
            reason = str(error)
    return Host(
        facts=host_fingerprint(root=root, inventory=inventory),
        topology=read_topology(root=root),
        limits=read_limits(root=root),
        inventory=inventory,
        visible=visible,
        visible_reason=reason,
    )
