"""Which CPUs this process may use, and how much CPU time.

Three limits that are easily mixed up: the affinity mask (`taskset`), the cpuset of the control group (Slurm,
Docker `--cpuset-cpus`) and the CFS quota (Docker `--cpus`, Kubernetes `limits.cpu`). The first two are sets
of CPU ids; the quota is CPU time per wall time and names no CPU.

Source: kernel docs "admin-guide/cgroup-v2" (`cpu.max`, `cpuset.cpus.effective`), "scheduler/sched-bwc"
(`cpu.cfs_quota_us`), "admin-guide/cgroup-v1/cpusets", and `proc(5)` (`Cpus_allowed_list`).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from cgratio.machine.cpulist import parse_cpu_list
from cgratio.machine.files import colon_fields, read_int, read_text
from cgratio.machine.topology import read_topology

# Where distributions mount the controllers, for a tree that was saved without `/proc/<pid>/mounts`.
_V1_FOLDERS = {"cpu": ("cpu", "cpu,cpuacct"), "cpuset": ("cpuset",)}


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuLimits:
    """The CPUs and the CPU time that a process may use.

    Attributes:
        online: CPUs that the kernel runs on.
        affinity: The affinity mask of the process.
        cpuset: CPUs of its control group; all online ones where there is no such limit.
        allowed: What is left: online, in the mask and in the control group.
        quota_cpus: CPU seconds per second, or None where there is no quota.
        quota_source: The file that sets the quota, None without one.
        notes: What had to be assumed.
    """

    online: frozenset[int]
    affinity: frozenset[int]
    cpuset: frozenset[int]
    allowed: frozenset[int]
    quota_cpus: float | None
    quota_source: str | None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Hierarchy:
    """One mounted control group hierarchy and the group of the process in it."""

    version: int
    mount: Path
    group: PurePosixPath

    def levels(self) -> Iterator[Path]:
        """The folders of the group and its ancestors that exist, innermost first.

        In a container the group's path is often that of the host, while the mount shows the container's own
        part of the tree as its root; the part of the path that does not exist is then simply above what is
        visible.
        """
        for group in (self.group, *self.group.parents):
            folder = self.mount / group.relative_to("/")
            if folder.is_dir():
                yield folder


def read_limits(*, root: Path = Path("/"), pid: int | str = "self") -> CpuLimits:
    """Reads the limits of a process.

    Args:
        root: Folder that holds `proc` and `sys`, `/` for the running host.
        pid: Process id, or `self`.

    Raises:
        TopologyError: If the folder names no CPU at all.
    """
    notes = []
    online = read_topology(root=root).cpu_ids
    status = colon_fields(read_text(root / f"proc/{pid}/status") or "")
    affinity = parse_cpu_list(status.get("Cpus_allowed_list", ""))
    if not affinity:
        affinity = online
        notes.append("the affinity mask is not known; every online CPU is taken as allowed")
    cpuset = _cpuset(root, pid=pid, online=online)
    quota_cpus, quota_source = _quota(root, pid=pid)
    return CpuLimits(
        online=online,
        affinity=affinity,
        cpuset=cpuset,
        allowed=online & affinity & cpuset,
        quota_cpus=quota_cpus,
        quota_source=quota_source,
        notes=tuple(notes),
    )


def _cpuset(root: Path, *, pid: int | str, online: frozenset[int]) -> frozenset[int]:
    names = {1: ("cpuset.effective_cpus", "cpuset.cpus"), 2: ("cpuset.cpus.effective",)}
    for hierarchy in _hierarchies(root, pid=pid, controller="cpuset"):
        for folder in hierarchy.levels():
            for name in names[hierarchy.version]:
                if text := read_text(folder / name):
                    return parse_cpu_list(text) & online
    return online


def _quota(root: Path, *, pid: int | str) -> tuple[float | None, str | None]:
    """The tightest quota of the group and its ancestors: each level limits all that is below it."""
    found: list[tuple[float, str]] = []
    for hierarchy in _hierarchies(root, pid=pid, controller="cpu"):
        for folder in hierarchy.levels():
            name, cpus = _quota_of(folder, version=hierarchy.version)
            if cpus is not None:
                found.append((cpus, f"cgroup v{hierarchy.version}: /{(folder / name).relative_to(root)}"))
    return min(found, default=(None, None))


def _quota_of(folder: Path, *, version: int) -> tuple[str, float | None]:
    if version == 2:
        quota_text, _, period_text = (read_text(folder / "cpu.max") or "max").partition(" ")
        if not quota_text.isdecimal():
            return "cpu.max", None
        # The kernel always writes a period; its default stands in where someone saved the quota alone.
        return "cpu.max", int(quota_text) / (int(period_text) if period_text.isdecimal() else 100_000)
    quota, period = read_int(folder / "cpu.cfs_quota_us"), read_int(folder / "cpu.cfs_period_us")
    # -1 is the kernel's "no limit".
    if quota is None or quota <= 0 or not period:
        return "cpu.cfs_quota_us", None
    return "cpu.cfs_quota_us", quota / period


def _hierarchies(root: Path, *, pid: int | str, controller: str) -> Iterator[_Hierarchy]:
    """The hierarchies that may limit a controller: its own one of cgroup v1, and that of v2, or both."""
    groups = _groups(root, pid=pid)
    mounts = list(_mounts(root, pid=pid))
    places = root / "sys/fs/cgroup"
    v1 = [mount for fstype, mount, options in mounts if fstype == "cgroup" and controller in options]
    v1 += [places / name for name in _V1_FOLDERS[controller]]
    v2 = [mount for fstype, mount, _ in mounts if fstype == "cgroup2"]
    v2 += [places / "unified", places]
    for version, candidates, key in ((1, v1, controller), (2, v2, "")):
        mount = next((folder for folder in candidates if folder.is_dir()), None)
        if mount is not None:
            yield _Hierarchy(version=version, mount=mount, group=groups.get(key, PurePosixPath("/")))


def _groups(root: Path, *, pid: int | str) -> dict[str, PurePosixPath]:
    """The group of the process by controller; the key of cgroup v2 is the empty text."""
    groups: dict[str, PurePosixPath] = {}
    for line in (read_text(root / f"proc/{pid}/cgroup") or "").splitlines():
        parts = line.split(":", maxsplit=2)
        if len(parts) == 3:
            # A group outside the cgroup namespace shows as `/../..`: nothing of it is visible from here.
            path = PurePosixPath("/", *(p for p in PurePosixPath(parts[2]).parts if p not in {"/", ".."}))
            groups.update(dict.fromkeys(parts[1].split(","), path))
    return groups


def _mounts(root: Path, *, pid: int | str) -> Iterator[tuple[str, Path, list[str]]]:
    for line in (read_text(root / f"proc/{pid}/mounts") or "").splitlines():
        fields = line.split()
        if len(fields) >= 4 and fields[2] in {"cgroup", "cgroup2"}:
            yield fields[2], root / fields[1].lstrip("/"), fields[3].split(",")
