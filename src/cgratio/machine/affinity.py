"""Pins threads to CPUs and reads back what the kernel granted.

`sched_setaffinity(2)` fails only if *none* of the CPUs exists; otherwise it silently drops those that do not.
So nothing here trusts a call that returned: the mask is read back and compared.
"""

import os
from collections.abc import Iterable
from pathlib import Path

from cgratio.machine.cpulist import format_cpu_list

# Each pass pins what the pass before could not see. Threads inherit the mask of the thread that starts them,
# so a second pass suffices unless threads are started by threads that are themselves new.
_PASSES = 8


class AffinityError(ValueError):
    """The kernel did not grant a CPU. `cpus` are those that were refused."""

    def __init__(self, message: str, *, cpus: frozenset[int] = frozenset()) -> None:
        super().__init__(message)
        self.cpus = cpus


def thread_ids(pid: int | str = "self") -> frozenset[int]:
    """The thread ids of a process, as `ls /proc/<pid>/task` lists them; empty if the process is gone."""
    try:
        return frozenset(int(entry.name) for entry in Path(f"/proc/{pid}/task").iterdir())
    except (FileNotFoundError, ProcessLookupError):
        return frozenset()


def read_masks(pid: int | str = "self") -> dict[int, frozenset[int]]:
    """The affinity mask of every thread of a process; a thread that ends meanwhile is left out."""
    masks = {}
    for tid in thread_ids(pid):
        try:
            masks[tid] = frozenset(os.sched_getaffinity(tid))
        except ProcessLookupError:
            continue
    return masks


def pin_threads(tids: Iterable[int], cpus: frozenset[int]) -> None:
    """Pins threads to a set of CPUs and checks that each got exactly that set.

    Args:
        tids: Thread ids. One that has ended meanwhile is left out: it can run nowhere.
        cpus: The CPUs that the threads may run on.

    Raises:
        AffinityError: If the kernel refused or dropped a CPU, or does not let this user change the thread.
    """
    if not cpus:
        raise AffinityError("a thread should be pinned to at least one CPU")
    for tid in tids:
        try:
            granted = _set_mask(tid, cpus)
        except ProcessLookupError:
            continue
        except PermissionError:
            raise AffinityError(
                f"thread {tid} belongs to another user and should be pinned by that user"
            ) from None
        if refused := cpus - granted:
            raise AffinityError(
                f"CPU {format_cpu_list(refused)} was not granted to thread {tid}; "
                f"it may run on {format_cpu_list(os.sched_getaffinity(tid))}",
                cpus=refused,
            )
        if extra := granted - cpus:
            raise AffinityError(
                f"thread {tid} should run on {format_cpu_list(cpus)} but also has {format_cpu_list(extra)}"
            )


def pin_process(cpus: frozenset[int]) -> None:
    """Pins every thread of this process, also those that start while it does so.

    Raises:
        AffinityError: If the kernel refused or dropped a CPU, or new threads keep escaping.
    """
    for _ in range(_PASSES):
        loose = [tid for tid, mask in read_masks().items() if mask != cpus]
        if not loose:
            return
        pin_threads(loose, cpus)
    raise AffinityError("threads start faster than they can be pinned; pin the process before it starts them")


def _set_mask(tid: int, cpus: frozenset[int]) -> frozenset[int]:
    """Sets a mask and reads it back; an empty set if the kernel refused all of it."""
    try:
        os.sched_setaffinity(tid, cpus)
    except (PermissionError, ProcessLookupError):
        raise
    except (OSError, OverflowError, ValueError):
        # EINVAL: none of the CPUs is present and allowed. The other two: an id that no mask can hold.
        return frozenset()
    return frozenset(os.sched_getaffinity(tid))
