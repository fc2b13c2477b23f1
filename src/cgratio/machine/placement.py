"""Which hardware threads run what: a pure function of the topology and the request.

Actors fill the CPUs from the front of an order, the stand-in for the accelerator takes whole cores from its
end. So the device CPUs stay the same while a sweep varies the number of actors, and the two share a core only
when the counts leave no other way.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import zip_longest
from typing import TypeAlias

from cgratio.machine.cpulist import format_cpu_list
from cgratio.machine.topology import Cpu, Topology

_Core: TypeAlias = tuple[Cpu, ...]


class PlacementError(ValueError):
    """A request does not fit the CPUs."""


class Pinning(StrEnum):
    """How threads are laid out on the cores."""

    NONE = "none"
    """Nothing is pinned; the scheduler decides."""
    COMPACT = "compact"
    """Fill all threads of a core, then the next core of the package, then the next package."""
    SCATTER = "scatter"
    """Spread over packages, then nodes, then L3 caches, then cores; second threads of a core come last."""
    CORE = "core"
    """One thread per core; the other threads of a core stay idle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementRequest:
    """How many hardware threads a trial asks for. Zero is legal: a measurement of supply or demand alone."""

    actor_cpus: int
    device_cpus: int
    pinning: Pinning


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """Which CPUs a trial uses.

    Attributes:
        actor_cpus: CPUs that may run environments. Disjoint from `device_cpus` when pinned.
        device_cpus: CPUs that stand in for the accelerator.
        service_cpus: CPUs for the sampler and the supervisor: those that are left, or else those that are in
            use.
        pinned: False if the sets only bound where the scheduler may put threads.
    """

    actor_cpus: frozenset[int]
    device_cpus: frozenset[int]
    service_cpus: frozenset[int]
    pinned: bool


def place(topology: Topology, *, allowed: frozenset[int], request: PlacementRequest) -> Assignment:
    """Chooses the CPUs of a trial.

    Args:
        topology: The host.
        allowed: CPUs that this process may use (`CpuLimits.allowed`).
        request: What the trial asks for.

    Raises:
        PlacementError: If a count is negative, an allowed CPU is not online, or there are too few CPUs or
            cores.
    """
    if min(request.actor_cpus, request.device_cpus) < 0:
        counts = f"{request.actor_cpus} for actors and {request.device_cpus} for the device"
        raise PlacementError(f"CPU counts should be 0 or more, not {counts}")
    if offline := allowed - topology.cpu_ids:
        raise PlacementError(
            f"CPU {format_cpu_list(offline)} is not online; online: {format_cpu_list(topology.cpu_ids)}"
        )
    cores = _cores(topology, allowed=allowed)
    if request.pinning is Pinning.CORE:
        cores = [core[:1] for core in cores]
    usable = frozenset(cpu.id for core in cores for cpu in core)
    _check_fit(request, available=len(usable), allowed=len(allowed))
    if request.pinning is Pinning.NONE:
        return Assignment(
            actor_cpus=allowed if request.actor_cpus else frozenset(),
            device_cpus=allowed if request.device_cpus else frozenset(),
            service_cpus=allowed,
            pinned=False,
        )
    if request.pinning is Pinning.SCATTER:
        cores = _spread(cores, levels=[lambda cpu: cpu.package, lambda cpu: cpu.node, lambda cpu: cpu.l3])
    actors, device = _split(cores, request=request)
    return Assignment(
        actor_cpus=actors,
        device_cpus=device,
        # Under CORE this leaves the second threads idle, which is what was asked for.
        service_cpus=usable - actors - device or usable,
        pinned=True,
    )


def _check_fit(request: PlacementRequest, *, available: int, allowed: int) -> None:
    needed = request.actor_cpus + request.device_cpus
    if needed <= available:
        return
    asked = f"{request.actor_cpus} actor CPUs and {request.device_cpus} device CPUs"
    if request.pinning is Pinning.CORE:
        raise PlacementError(
            f"{asked}, one per core, need {needed} cores; the {allowed} allowed CPUs have {available} cores"
        )
    raise PlacementError(f"{asked} need {needed} CPUs, but only {available} are allowed")


def _cores(topology: Topology, *, allowed: frozenset[int]) -> list[_Core]:
    """The allowed threads of each core, cores in compact order."""
    groups: dict[int, list[Cpu]] = {}
    for cpu in topology.cpus:
        if cpu.id in allowed:
            groups.setdefault(cpu.core, []).append(cpu)
    cores = [tuple(sorted(group, key=lambda cpu: cpu.id)) for group in groups.values()]
    # -1 puts CPUs of an unknown L3 together.
    return sorted(cores, key=lambda c: (c[0].package, c[0].node, -1 if c[0].l3 is None else c[0].l3, c[0].id))


def _spread(cores: list[_Core], *, levels: Sequence[Callable[[Cpu], int | None]]) -> list[_Core]:
    """Deals the cores out in turn over the groups of the first level, each group by the next levels."""
    if not levels:
        return cores
    groups: dict[int | None, list[_Core]] = {}
    for core in cores:
        groups.setdefault(levels[0](core[0]), []).append(core)
    dealt = zip_longest(*(_spread(group, levels=levels[1:]) for group in groups.values()))
    return [core for turn in dealt for core in turn if core is not None]


def _split(cores: list[_Core], *, request: PlacementRequest) -> tuple[frozenset[int], frozenset[int]]:
    """Actors from the front, the device from the end; no core in common when the counts allow it."""
    apart = _device_cores([len(core) for core in cores], request=request)
    if apart is None:
        order = _cpu_order(cores, pinning=request.pinning)
        return frozenset(order[: request.actor_cpus]), frozenset(order[len(order) - request.device_cpus :])
    for_device = _cpu_order([core for i, core in enumerate(cores) if i in apart], pinning=request.pinning)
    for_actors = _cpu_order([core for i, core in enumerate(cores) if i not in apart], pinning=request.pinning)
    return frozenset(for_actors[: request.actor_cpus]), frozenset(for_device[: request.device_cpus])


def _cpu_order(cores: Iterable[_Core], *, pinning: Pinning) -> list[int]:
    """Core by core, or for SCATTER first the first threads of all cores, then their second threads."""
    rows = zip_longest(*cores) if pinning is Pinning.SCATTER else cores
    return [cpu.id for row in rows for cpu in row if cpu is not None]


def _device_cores(sizes: Sequence[int], *, request: PlacementRequest) -> frozenset[int] | None:
    """The fewest threads, in whole cores, that hold the device and leave room for the actors.

    Cores may differ in size (CPUs offline or not allowed, efficiency cores), so this is a subset sum: bit `s`
    of `reachable[i]` says whether some of the first `i` cores have `s` threads together.

    Returns:
        Positions of the cores, later ones preferred; None if the device and the actors must share a core.
    """
    reachable = [1]
    for size in sizes:
        reachable.append(reachable[-1] | reachable[-1] << size)
    most = sum(sizes) - request.actor_cpus
    wanted = next((s for s in range(request.device_cpus, most + 1) if reachable[-1] >> s & 1), None)
    if wanted is None:
        return None
    chosen = set()
    for i in reversed(range(len(sizes))):
        if wanted >= sizes[i] and reachable[i] >> (wanted - sizes[i]) & 1:
            chosen.add(i)
            wanted -= sizes[i]
    return frozenset(chosen)
