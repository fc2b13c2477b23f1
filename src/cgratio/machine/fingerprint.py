"""What a host is, as far as it changes a measurement, and a short name for it."""

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cgratio.machine.cpulist import format_cpu_list
from cgratio.machine.files import colon_fields, read_text
from cgratio.machine.gpus import GpuInventory, list_gpus
from cgratio.machine.limits import read_limits
from cgratio.machine.topology import read_topology

NO_GPUS_IN_A_TREE = "NVML describes the running host, not a saved tree"


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuFacts:
    """A GPU in a fingerprint; for a card that is split into MIG slices, the card and then its slices."""

    uuid: str
    name: str
    sm_count: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFacts:
    """A host. Unknown facts are None.

    Attributes:
        hostname: For people; not part of `id`, since containers change it at every start.
        kernel: Release, as `uname -r`.
        cpu_model: Name of the CPU.
        cpus_online: CPU list of the online CPUs.
        cpus_allowed: CPU list of those that this process may use.
        quota_cpus: CFS quota in CPU seconds per second, None without one.
        cores: Physical cores that are online.
        packages: CPU packages (sockets).
        nodes: NUMA nodes, those with memory only included.
        memory_bytes: Memory that the kernel manages.
        gpus: GPUs, sorted by UUID.
        gpu_reason: Why there is none.
        virtualised: Whether a hypervisor announces itself to the CPU (x86 only).
    """

    hostname: str | None
    kernel: str | None
    cpu_model: str | None
    cpus_online: str
    cpus_allowed: str
    quota_cpus: float | None
    cores: int
    packages: int
    nodes: int
    memory_bytes: int | None
    gpus: tuple[GpuFacts, ...]
    gpu_reason: str | None
    virtualised: bool | None

    @property
    def id(self) -> str:
        """12 hex digits that stay the same while measurements are comparable.

        The name of the host is left out, and memory is rounded to whole GiB: the kernel's own share of it
        changes from boot to boot.
        """
        facts = self.as_dict()
        del facts["hostname"], facts["gpu_reason"]
        facts["memory_bytes"] = None if self.memory_bytes is None else round(self.memory_bytes / 2**30)
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:12]

    def as_dict(self) -> dict[str, Any]:
        """The facts as JSON types."""
        return {**asdict(self), "gpus": [asdict(gpu) for gpu in self.gpus]}


def host_fingerprint(*, root: Path = Path("/"), inventory: GpuInventory | None = None) -> HostFacts:
    """Reads the facts of a host.

    Args:
        root: Folder that holds `proc` and `sys`, `/` for the running host.
        inventory: The GPUs, if the caller has listed them already.

    Raises:
        TopologyError: If the folder names no CPU at all.
    """
    if inventory is None:
        inventory = list_gpus() if root == Path("/") else GpuInventory(gpus=(), reason=NO_GPUS_IN_A_TREE)
    topology, limits = read_topology(root=root), read_limits(root=root)
    memory_kib = (
        colon_fields(read_text(root / "proc/meminfo") or "").get("MemTotal", "").removesuffix("kB").strip()
    )
    devices = [part for gpu in inventory.gpus for part in (gpu, *gpu.slices)]
    return HostFacts(
        hostname=read_text(root / "proc/sys/kernel/hostname"),
        kernel=read_text(root / "proc/sys/kernel/osrelease"),
        cpu_model=topology.model_name,
        cpus_online=format_cpu_list(limits.online),
        cpus_allowed=format_cpu_list(limits.allowed),
        quota_cpus=limits.quota_cpus,
        cores=len(topology.cores),
        packages=len(topology.packages),
        nodes=max(len(topology.nodes), 1),
        memory_bytes=int(memory_kib) * 1024 if memory_kib.isdecimal() else None,
        gpus=tuple(
            GpuFacts(uuid=gpu.uuid, name=gpu.name, sm_count=gpu.sm_count)
            for gpu in sorted(devices, key=lambda gpu: gpu.uuid)
        ),
        gpu_reason=inventory.reason,
        virtualised=_virtualised(root),
    )


def _virtualised(root: Path) -> bool | None:
    # Bit 31 of CPUID leaf 1 ECX, which hypervisors set and hardware never does. Other CPUs have no such flag.
    flags = colon_fields(read_text(root / "proc/cpuinfo") or "").get("flags")
    return None if flags is None else "hypervisor" in flags.split()
