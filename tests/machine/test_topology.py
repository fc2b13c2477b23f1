from collections.abc import Callable
from pathlib import Path

import pytest

from cgratio.machine.topology import TopologyError, read_topology

Tree = Callable[..., Path]


def test_offline_cpus_and_nodes_without_cpus_are_told_apart(tree: Tree) -> None:
    # Case B4.
    root = tree(online="0,2-3", cores=["0", "2", "3"], nodes={0: "0,2-3", 1: ""})
    topology = read_topology(root=root)
    assert [cpu.id for cpu in topology.cpus] == [0, 2, 3]
    assert [(node.id, node.cpus) for node in topology.nodes] == [(0, {0, 2, 3}), (1, frozenset())]
    assert {cpu.node for cpu in topology.cpus} == {0}
    assert topology.notes == ()


def test_cores_hold_online_threads_only(tree: Tree) -> None:
    topology = read_topology(root=tree(online="0-2", cores=["0,2", "1,3"], nodes={0: "0-3"}))
    assert topology.cores == ({0, 2}, {1})
    assert topology.siblings_of(2) == {0, 2}
    assert topology.siblings_of(1) == {1}
    with pytest.raises(TopologyError, match="CPU 3 is not online"):
        topology.siblings_of(3)


def test_core_ids_that_repeat_in_each_package_stay_apart(tree: Tree) -> None:
    root = tree(online="0-3", cores=["0-1", "2-3"], packages=["0-1", "2-3"], nodes={0: "0-1", 1: "2-3"})
    topology = read_topology(root=root)
    assert [cpu.core for cpu in topology.cpus] == [0, 0, 1, 1]
    assert topology.packages == (0, 1)
    assert [cpu.node for cpu in topology.cpus] == [0, 0, 1, 1]


def test_without_topology_files_each_cpu_is_a_core_and_a_note_says_so(tree: Tree) -> None:
    topology = read_topology(root=tree(online="0-1"))
    assert topology.cores == ({0}, {1})
    assert any("siblings" in note for note in topology.notes)
    assert any("NUMA" in note for note in topology.notes)


def test_caches_frequencies_and_classes_are_read(tree: Tree) -> None:
    cpu = "sys/devices/system/cpu/cpu"
    files = {
        f"{cpu}0/cache/index0/level": "1",
        f"{cpu}0/cache/index3/level": "3",
        f"{cpu}0/cache/index3/shared_cpu_list": "0-1",
        f"{cpu}1/cache/index3/level": "3",
        f"{cpu}1/cache/index3/shared_cpu_list": "0-1",
        f"{cpu}0/cpufreq/cpuinfo_max_freq": "3500000",
        f"{cpu}0/topology/physical_package_id": "-1",
        "sys/devices/cpu_core/cpus": "0",
        "sys/devices/cpu_atom/cpus": "1",
        "sys/devices/system/node/node0/meminfo": "Node 0 MemTotal:       1024 kB\nNode 0 MemFree: 1 kB",
        "proc/cpuinfo": "processor\t: 0\nmodel name\t: Some CPU @ 3 GHz",
    }
    topology = read_topology(root=tree(online="0-1", cores=["0", "1"], nodes={0: "0-1"}, files=files))
    first, second = topology.cpus
    assert (first.l3, second.l3) == (0, 0)
    assert (first.max_frequency_hz, second.max_frequency_hz) == (3.5e9, None)
    assert (first.core_class, second.core_class) == ("performance", "efficiency")
    assert first.package == 0
    assert topology.nodes[0].memory_bytes == 1 << 20
    assert topology.model_name == "Some CPU @ 3 GHz"


def test_arm_cpus_of_unlike_capacity_are_told_apart(tree: Tree) -> None:
    cpu = "sys/devices/system/cpu/cpu"
    files = {
        f"{cpu}0/cpu_capacity": "1024",
        f"{cpu}1/cpu_capacity": "512",
        "proc/cpuinfo": "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd4f",
    }
    topology = read_topology(root=tree(online="0-1", files=files))
    assert [cpu.core_class for cpu in topology.cpus] == ["capacity-1024", "capacity-512"]
    assert topology.model_name == "Arm implementer 0x41 part 0xd4f"


def test_a_folder_without_cpus_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TopologyError, match="online"):
        read_topology(root=tmp_path)


def test_this_host_is_read() -> None:
    topology = read_topology()
    assert topology.cpus
    assert sum(len(core) for core in topology.cores) == len(topology.cpus)
