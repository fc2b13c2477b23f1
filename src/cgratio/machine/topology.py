"""CPU topology: which hardware threads share a core, a cache, a package and a NUMA node.

Source: kernel docs "admin-guide/cputopology" and "ABI/stable/sysfs-devices-node"; `lscpu -e` shows the same
    table.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from cgratio.machine.cpulist import format_cpu_list, parse_cpu_list
from cgratio.machine.files import colon_fields, read_int, read_text


class TopologyError(ValueError):
    """A folder does not describe any CPU."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cpu:
    """One online hardware thread.

    Attributes:
        id: The kernel's logical CPU number.
        core: Index of its physical core, unique in the host.
        package: Physical package (socket).
        node: NUMA node.
        l3: Index of the last-level (L3) cache it shares, unique in the host, or None where unknown.
        max_frequency_hz: Highest frequency, or None where the host does not say.
        core_class: `performance` or `efficiency` on hybrid x86, `capacity-<n>` on uneven Arm, None on even
            hosts.
    """

    id: int
    core: int
    package: int
    node: int
    l3: int | None = None
    max_frequency_hz: float | None = None
    core_class: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A NUMA node. `cpus` (online ones only) is empty for a node that has memory only."""

    id: int
    cpus: frozenset[int]
    memory_bytes: int | None = None


# No slots: the derived tables are cached in the instance.
@dataclass(frozen=True, kw_only=True)
class Topology:
    """The online CPUs of a host, in order of their ids, and its NUMA nodes.

    `notes` says in words what had to be assumed because the host does not tell it.
    """

    cpus: tuple[Cpu, ...]
    nodes: tuple[Node, ...] = ()
    model_name: str | None = None
    notes: tuple[str, ...] = ()

    @cached_property
    def cores(self) -> tuple[frozenset[int], ...]:
        """The CPU ids of each physical core, in order of each core's lowest id."""
        groups: dict[int, set[int]] = {}
        for cpu in self.cpus:
            groups.setdefault(cpu.core, set()).add(cpu.id)
        return tuple(sorted(map(frozenset, groups.values()), key=min))

    @cached_property
    def cpu_ids(self) -> frozenset[int]:
        """Every online CPU id."""
        return frozenset(cpu.id for cpu in self.cpus)

    @cached_property
    def packages(self) -> tuple[int, ...]:
        """The package numbers in use, sorted."""
        return tuple(sorted({cpu.package for cpu in self.cpus}))

    def siblings_of(self, cpu: int) -> frozenset[int]:
        """The CPUs that share a physical core with `cpu`, itself included.

        Raises:
            TopologyError: If the CPU is not online.
        """
        for core in self.cores:
            if cpu in core:
                return core
        raise TopologyError(f"CPU {cpu} is not online; the online CPUs are {format_cpu_list(self.cpu_ids)}")


def read_topology(*, root: Path = Path("/")) -> Topology:
    """Reads the topology of the online CPUs.

    Args:
        root: Folder that holds `sys` and `proc`, `/` for the running host.

    Raises:
        TopologyError: If the folder names no CPU at all.
    """
    base = root / "sys/devices/system/cpu"
    notes: list[str] = []
    online = _online(base)
    nodes = _read_nodes(root / "sys/devices/system/node", online=online)
    node_of = {cpu: node.id for node in nodes for cpu in node.cpus}
    if not online <= node_of.keys():
        notes.append("NUMA nodes are not listed for every CPU; those CPUs are taken as node 0")
    classes = _core_classes(root, online=online)
    cores = {cpu: _siblings(base / f"cpu{cpu}", cpu=cpu, online=online) for cpu in online}
    if any(siblings is None for siblings in cores.values()):
        notes.append(
            "thread siblings are not listed for every CPU; each of those is taken as a core of its own"
        )
    core_index = _index({cpu: frozenset({cpu}) if s is None else s for cpu, s in cores.items()})
    l3_index = _index({cpu: s for cpu in online if (s := _l3(base / f"cpu{cpu}/cache")) is not None})
    cpus = []
    for cpu in sorted(online):
        folder = base / f"cpu{cpu}"
        package = read_int(folder / "topology/physical_package_id")
        max_khz = read_int(folder / "cpufreq/cpuinfo_max_freq")
        cpus.append(
            Cpu(
                id=cpu,
                core=core_index[cpu],
                # -1 is the kernel's "not known", as some Arm and virtual machines report.
                package=0 if package is None else max(package, 0),
                node=node_of.get(cpu, 0),
                l3=l3_index.get(cpu),
                max_frequency_hz=None if max_khz is None else max_khz * 1e3,
                core_class=classes.get(cpu),
            )
        )
    return Topology(cpus=tuple(cpus), nodes=nodes, model_name=read_model_name(root=root), notes=tuple(notes))


def read_model_name(*, root: Path = Path("/")) -> str | None:
    """The CPU's name from `/proc/cpuinfo`; on Arm, which gives no name, its implementer and part numbers."""
    fields = colon_fields(read_text(root / "proc/cpuinfo") or "")
    if name := fields.get("model name") or fields.get("Model") or fields.get("cpu"):
        return name
    implementer, part = fields.get("CPU implementer"), fields.get("CPU part")
    return f"Arm implementer {implementer} part {part}" if implementer and part else None


def _online(base: Path) -> frozenset[int]:
    text = read_text(base / "online")
    if text:
        return parse_cpu_list(text)
    found = frozenset(int(f.name[3:]) for f in base.glob("cpu[0-9]*") if f.name[3:].isdecimal())
    if not found:
        raise TopologyError(f"{base} should list the CPUs in a file called 'online'")
    return found


def _siblings(folder: Path, *, cpu: int, online: frozenset[int]) -> frozenset[int] | None:
    # `core_cpus_list` is the name since Linux 5.3; the old one is kept by the kernel but marked deprecated.
    for name in ("core_cpus_list", "thread_siblings_list"):
        if text := read_text(folder / "topology" / name):
            return parse_cpu_list(text) & online | {cpu}
    return None


def _l3(cache: Path) -> frozenset[int] | None:
    for index in sorted(cache.glob("index[0-9]*")):
        if read_int(index / "level") == 3 and (text := read_text(index / "shared_cpu_list")):
            return parse_cpu_list(text)
    return None


def _index(groups: dict[int, frozenset[int]]) -> dict[int, int]:
    """Numbers the groups that CPUs belong to from 0 on, in order of their lowest CPU."""
    order = {lowest: i for i, lowest in enumerate(sorted({min(group) for group in groups.values()}))}
    return {cpu: order[min(group)] for cpu, group in groups.items()}


def _read_nodes(base: Path, *, online: frozenset[int]) -> tuple[Node, ...]:
    nodes = []
    for folder in base.glob("node[0-9]*"):
        if not folder.name[4:].isdecimal():
            continue
        fields = colon_fields(read_text(folder / "meminfo") or "")
        total = fields.get(f"Node {folder.name[4:]} MemTotal", "").removesuffix("kB").strip()
        nodes.append(
            Node(
                id=int(folder.name[4:]),
                cpus=parse_cpu_list(read_text(folder / "cpulist") or "") & online,
                memory_bytes=int(total) * 1024 if total.isdecimal() else None,
            )
        )
    return tuple(sorted(nodes, key=lambda node: node.id))


def _core_classes(root: Path, *, online: frozenset[int]) -> dict[int, str]:
    """Tells fast cores from slow ones: the two PMU devices of hybrid x86, `cpu_capacity` elsewhere."""
    classes = {
        cpu: name
        for device, name in (("cpu_core", "performance"), ("cpu_atom", "efficiency"))
        for cpu in parse_cpu_list(read_text(root / "sys/devices" / device / "cpus") or "")
    }
    if classes:
        return classes
    base = root / "sys/devices/system/cpu"
    capacity = {cpu: read_int(base / f"cpu{cpu}/cpu_capacity") for cpu in online}
    if len(set(capacity.values())) < 2:
        return {}
    return {cpu: f"capacity-{value}" for cpu, value in capacity.items() if value is not None}
