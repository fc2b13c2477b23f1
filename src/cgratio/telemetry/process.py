"""CPU time and memory of a process and all its descendants."""

import os
from pathlib import Path

from cgratio.telemetry.sensors import Reading

# Fields of `/proc/<pid>/stat` after the command name, counted from 0. Source: `proc_pid_stat(5)`.
_PPID, _UTIME, _CSTIME, _RSS = 1, 11, 14, 21


class ProcessTreeSensor:
    """`process_cpu` in s (user and system) and `process_rss` in bytes of a process tree, by its root's id.

    Children that have ended count from when their parent has waited for them. A descendant whose parent died
    is no longer part of the tree. Memory that processes share counts once for each.
    """

    names: tuple[str, ...] = ("process_cpu", "process_rss")
    # It looks at every process of the host.
    period_s = 1.0

    def __init__(self, *, pid: int, root: Path = Path("/")) -> None:
        self.missing: dict[str, str] = {}
        self._pid = pid
        self._proc = root / "proc"
        self._tick_s = 1 / os.sysconf("SC_CLK_TCK")
        self._page_bytes = os.sysconf("SC_PAGE_SIZE")

    def open(self) -> None:
        """Checks that the process is there."""
        if not self._proc.is_dir() or not self.read():
            self.missing.update(dict.fromkeys(self.names, f"process {self._pid} is not running"))

    def read(self) -> list[Reading]:
        """CPU time and memory now; nothing once the process is gone."""
        stats = {}
        with os.scandir(self._proc) as entries:
            for entry in entries:
                if entry.name.isdecimal() and (fields := _stat(entry.path)) is not None:
                    stats[int(entry.name)] = fields
        tree = _descendants(self._pid, parents={pid: fields[_PPID] for pid, fields in stats.items()})
        if not tree & stats.keys():
            return []
        ticks = sum(sum(stats[pid][_UTIME : _CSTIME + 1]) for pid in tree)
        pages = sum(stats[pid][_RSS] for pid in tree)
        device = str(self._pid)
        return [
            Reading("process_cpu", device, ticks * self._tick_s, "s"),
            Reading("process_rss", device, float(pages * self._page_bytes), "bytes"),
        ]

    def close(self) -> None:
        """Nothing is kept open."""


def _stat(folder: str) -> list[int] | None:
    try:
        fd = os.open(f"{folder}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        content = os.read(fd, 4096)
    except OSError:
        return None
    finally:
        os.close(fd)
    # The command name may hold spaces and brackets; the last bracket ends it. The state letter is no number.
    fields = content.rpartition(b")")[2].split()
    return [0, *map(int, fields[1 : _RSS + 1])] if len(fields) > _RSS else None


def _descendants(root: int, *, parents: dict[int, int]) -> set[int]:
    children: dict[int, list[int]] = {}
    for pid, parent in parents.items():
        children.setdefault(parent, []).append(pid)
    tree: set[int] = set()
    waiting = [root] if root in parents else []
    while waiting:
        pid = waiting.pop()
        tree.add(pid)
        waiting += children.get(pid, [])
    return tree
