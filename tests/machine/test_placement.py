from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cgratio.machine.placement import Assignment, Pinning, PlacementError, PlacementRequest, place
from cgratio.machine.topology import Cpu, Topology, read_topology

Tree = Callable[..., Path]


def ask(actors: int, device: int, pinning: Pinning = Pinning.COMPACT) -> PlacementRequest:
    return PlacementRequest(actor_cpus=actors, device_cpus=device, pinning=pinning)


def grid(*, packages: int, cores: int, smt: int) -> Topology:
    """Numbered as Linux does on x86: the first threads of all cores, then the second ones."""
    total = packages * cores
    cpus = [
        Cpu(id=thread * total + core, core=core, package=core // cores, node=core // cores, l3=core // cores)
        for thread in range(smt)
        for core in range(total)
    ]
    return Topology(cpus=tuple(sorted(cpus, key=lambda cpu: cpu.id)))


@pytest.mark.parametrize(
    ("siblings", "chosen"),
    [(["0-1", "2-3"], {0, 2}), (["0,2", "1,3"], {0, 1}), (["0", "1", "2", "3"], {0, 1, 2, 3})],
)
def test_one_thread_per_core_follows_the_siblings(tree: Tree, siblings: list[str], chosen: set[int]) -> None:
    # Case B3.
    topology = read_topology(root=tree(online="0-3", cores=siblings, nodes={0: "0-3"}))
    assignment = place(topology, allowed=topology.cpu_ids, request=ask(len(chosen), 0, Pinning.CORE))
    assert assignment.actor_cpus == chosen
    # With no core left, the sampler shares; the second threads stay idle all the same.
    assert assignment.service_cpus == chosen


def test_too_few_cores_are_counted(tree: Tree) -> None:
    topology = read_topology(root=tree(online="0-3", cores=["0-1", "2-3"]))
    with pytest.raises(PlacementError, match=r"need 3 cores; the 4 allowed CPUs have 2 cores"):
        place(topology, allowed=topology.cpu_ids, request=ask(2, 1, Pinning.CORE))


def test_a_node_without_cpus_is_never_used(tree: Tree) -> None:
    # Case B4.
    root = tree(online="0,2-3", cores=["0", "2", "3"], nodes={0: "0,2-3", 1: ""})
    topology = read_topology(root=root)
    for pinning in (Pinning.COMPACT, Pinning.SCATTER, Pinning.CORE):
        assignment = place(topology, allowed=topology.cpu_ids, request=ask(2, 1, pinning))
        assert assignment.actor_cpus | assignment.device_cpus == {0, 2, 3}


def test_compact_fills_the_threads_of_a_core_first() -> None:
    topology = grid(packages=2, cores=4, smt=2)
    assert place(topology, allowed=topology.cpu_ids, request=ask(3, 0)).actor_cpus == {0, 8, 1}
    assert place(topology, allowed=topology.cpu_ids, request=ask(10, 0)).actor_cpus == {
        0,
        1,
        2,
        3,
        8,
        9,
        10,
        11,
        4,
        12,
    }


def test_scatter_spreads_over_packages_then_cores_then_threads() -> None:
    topology = grid(packages=2, cores=4, smt=2)
    order = [0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15]
    for count in range(len(order) + 1):
        assignment = place(topology, allowed=topology.cpu_ids, request=ask(count, 0, Pinning.SCATTER))
        assert assignment.actor_cpus == set(order[:count])


def test_the_device_keeps_its_cpus_while_actors_grow() -> None:
    topology = grid(packages=1, cores=4, smt=2)
    assignments = [place(topology, allowed=topology.cpu_ids, request=ask(n, 2)) for n in range(7)]
    assert {a.device_cpus for a in assignments} == {frozenset({3, 7})}


def test_cores_of_unlike_size_are_split_so_that_none_is_shared() -> None:
    # Core 0 has two threads, core 1 has one: only one way is free of a shared core.
    cpus = (Cpu(id=0, core=0, package=0, node=0), Cpu(id=1, core=0, package=0, node=0))
    topology = Topology(cpus=(*cpus, Cpu(id=2, core=1, package=0, node=0)))
    assignment = place(topology, allowed=topology.cpu_ids, request=ask(1, 2))
    assert (assignment.actor_cpus, assignment.device_cpus) == ({2}, {0, 1})


def test_unpinned_sets_are_all_that_is_allowed() -> None:
    topology = grid(packages=1, cores=4, smt=1)
    assert place(topology, allowed=frozenset({0, 1, 2}), request=ask(2, 1, Pinning.NONE)) == Assignment(
        actor_cpus=frozenset({0, 1, 2}),
        device_cpus=frozenset({0, 1, 2}),
        service_cpus=frozenset({0, 1, 2}),
        pinned=False,
    )
    assert place(topology, allowed=frozenset({0}), request=ask(1, 0, Pinning.NONE)).device_cpus == frozenset()


@pytest.mark.parametrize("pinning", [Pinning.NONE, Pinning.COMPACT, Pinning.SCATTER])
def test_too_few_cpus_are_counted(pinning: Pinning) -> None:
    topology = grid(packages=1, cores=2, smt=1)
    with pytest.raises(
        PlacementError, match="2 actor CPUs and 1 device CPUs need 3 CPUs, but only 2 are allowed"
    ):
        place(topology, allowed=topology.cpu_ids, request=ask(2, 1, pinning))


def test_negative_counts_and_absent_cpus_are_refused() -> None:
    topology = grid(packages=1, cores=2, smt=1)
    with pytest.raises(PlacementError, match="0 or more"):
        place(topology, allowed=topology.cpu_ids, request=ask(-1, 0))
    with pytest.raises(PlacementError, match="CPU 7 is not online"):
        place(topology, allowed=frozenset({0, 7}), request=ask(1, 0))


@st.composite
def cases(draw: st.DrawFn) -> tuple[Topology, frozenset[int], PlacementRequest]:
    """A host with some CPUs offline, some not allowed, and a request that fits by its counts."""
    full = grid(packages=draw(st.integers(1, 2)), cores=draw(st.integers(1, 4)), smt=draw(st.integers(1, 3)))
    kept = draw(st.sets(st.sampled_from(full.cpus), min_size=1))
    topology = Topology(cpus=tuple(sorted(kept, key=lambda cpu: cpu.id)))
    allowed = frozenset(draw(st.sets(st.sampled_from(sorted(topology.cpu_ids)), min_size=1)))
    pinning = draw(st.sampled_from([Pinning.COMPACT, Pinning.SCATTER, Pinning.CORE]))
    cores = [core & allowed for core in topology.cores if core & allowed]
    room = len(cores) if pinning is Pinning.CORE else len(allowed)
    actors = draw(st.integers(0, room))
    return topology, allowed, ask(actors, draw(st.integers(0, room - actors)), pinning)


@given(cases())
def test_every_placement_keeps_the_rules(case: tuple[Topology, frozenset[int], PlacementRequest]) -> None:
    topology, allowed, request = case
    result = place(topology, allowed=allowed, request=request)
    used = result.actor_cpus | result.device_cpus
    assert (len(result.actor_cpus), len(result.device_cpus)) == (request.actor_cpus, request.device_cpus)
    assert not result.actor_cpus & result.device_cpus
    assert used <= allowed
    assert result.service_cpus
    assert result.service_cpus <= allowed
    cores = [core & allowed for core in topology.cores if core & allowed]
    if request.pinning is Pinning.CORE:
        assert all(len(core & (used | result.service_cpus)) <= 1 for core in cores)
    else:
        assert result.service_cpus == (allowed - used or allowed)
    shared = [core for core in cores if core & result.actor_cpus and core & result.device_cpus]
    if shared:
        assert not can_be_apart([len(core) for core in cores], request)
    if request.pinning is Pinning.COMPACT and not shared and not request.device_cpus:
        # All cores that actors use are full but the last one.
        assert sum(1 for core in cores if 0 < len(core & result.actor_cpus) < len(core)) <= 1


def can_be_apart(sizes: list[int], request: PlacementRequest) -> bool:
    """By trying all: whether some cores hold the device and the others the actors."""
    return any(
        sum(chosen) >= request.device_cpus and sum(sizes) - sum(chosen) >= request.actor_cpus
        for count in range(len(sizes) + 1)
        for chosen in combinations(sizes, count)
    )


@given(cases())
def test_a_placement_depends_on_nothing_but_its_inputs(
    case: tuple[Topology, frozenset[int], PlacementRequest],
) -> None:
    topology, allowed, request = case
    assert place(topology, allowed=allowed, request=request) == place(
        topology, allowed=allowed, request=request
    )
