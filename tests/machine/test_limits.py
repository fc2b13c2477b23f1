from collections.abc import Callable
from pathlib import Path

import pytest

from cgratio.machine.limits import read_limits

Tree = Callable[..., Path]
CGROUP = "sys/fs/cgroup"


def test_a_v2_quota_is_cpu_time_and_not_a_set_of_cpus(tree: Tree) -> None:
    # Case B1.
    files = {"proc/self/cgroup": "0::/job", f"{CGROUP}/job/cpu.max": "400000 100000"}
    limits = read_limits(root=tree(online="0-63", affinity="0-15", files=files))
    assert (len(limits.online), len(limits.affinity), limits.quota_cpus) == (64, 16, 4.0)
    assert limits.allowed == frozenset(range(16))
    assert limits.quota_source == "cgroup v2: /sys/fs/cgroup/job/cpu.max"


def test_a_v1_quota_of_minus_one_is_none(tree: Tree) -> None:
    # Case B1.
    files = {
        "proc/self/cgroup": "4:cpu,cpuacct:/job\n3:cpuset:/",
        f"{CGROUP}/cpu,cpuacct/job/cpu.cfs_quota_us": "-1",
        f"{CGROUP}/cpu,cpuacct/job/cpu.cfs_period_us": "100000",
    }
    limits = read_limits(root=tree(online="0-63", affinity="0-15", files=files))
    assert (len(limits.online), len(limits.affinity), limits.quota_cpus) == (64, 16, None)
    assert limits.quota_source is None


@pytest.mark.parametrize("version", [1, 2])
def test_the_tightest_ancestor_sets_the_quota(tree: Tree, version: int) -> None:
    if version == 2:
        files = {
            "proc/self/cgroup": "0::/slice/job",
            f"{CGROUP}/slice/cpu.max": "150000 100000",
            f"{CGROUP}/slice/job/cpu.max": "max 100000",
        }
    else:
        files = {
            "proc/self/cgroup": "1:cpu:/slice/job",
            f"{CGROUP}/cpu/slice/cpu.cfs_quota_us": "75000",
            f"{CGROUP}/cpu/slice/cpu.cfs_period_us": "50000",
            f"{CGROUP}/cpu/slice/job/cpu.cfs_quota_us": "800000",
            f"{CGROUP}/cpu/slice/job/cpu.cfs_period_us": "100000",
        }
    limits = read_limits(root=tree(online="0-3", affinity="0-3", files=files))
    assert limits.quota_cpus == 1.5
    assert limits.quota_source is not None
    assert "/slice/cpu." in limits.quota_source


def test_a_container_sees_its_own_group_as_the_root_of_the_mount(tree: Tree) -> None:
    files = {
        "proc/self/cgroup": "1:cpu:/docker/abc\n0::/../..",
        f"{CGROUP}/cpu/cpu.cfs_quota_us": "200000",
        f"{CGROUP}/cpu/cpu.cfs_period_us": "100000",
    }
    assert read_limits(root=tree(online="0-3", affinity="0-3", files=files)).quota_cpus == 2.0


def test_a_cpuset_limits_what_is_allowed_but_not_the_mask(tree: Tree) -> None:
    files = {"proc/self/cgroup": "0::/job", f"{CGROUP}/job/cpuset.cpus.effective": "4-7"}
    limits = read_limits(root=tree(online="0-7", affinity="0-5", files=files))
    assert limits.affinity == frozenset(range(6))
    assert limits.cpuset == {4, 5, 6, 7}
    assert limits.allowed == {4, 5}


def test_mounts_in_other_places_are_found(tree: Tree) -> None:
    mounts = "cgroup /odd/cpu cgroup rw,cpu,cpuacct 0 0\ncgroup /odd/cpuset cgroup rw,cpuset 0 0"
    files = {
        "proc/self/mounts": mounts,
        "proc/self/cgroup": "2:cpu,cpuacct:/job\n3:cpuset:/job",
        "odd/cpu/job/cpu.cfs_quota_us": "50000",
        "odd/cpu/job/cpu.cfs_period_us": "100000",
        "odd/cpuset/job/cpuset.effective_cpus": "0-1",
    }
    limits = read_limits(root=tree(online="0-3", affinity="0-3", files=files))
    assert limits.quota_cpus == 0.5
    assert limits.allowed == {0, 1}


def test_cpus_that_are_not_online_are_not_allowed(tree: Tree) -> None:
    assert read_limits(root=tree(online="0,2", affinity="0-127")).allowed == {0, 2}


def test_an_unknown_mask_is_noted(tree: Tree) -> None:
    limits = read_limits(root=tree(online="0-1"))
    assert limits.allowed == {0, 1}
    assert "affinity" in limits.notes[0]


def test_this_hosts_limits_agree_with_the_scheduler() -> None:
    import os

    assert read_limits().allowed <= os.sched_getaffinity(0)
