"""Process trees: nothing that a trial starts may outlive it.

A supervisor becomes a subreaper, so that a process whose parent dies becomes the supervisor's child and not
init's; it can then find and end every descendant, also one that left its process group or ignores signals.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import psutil  # imported where it is used: the sampler needs the rest, and must start quickly

_PR_SET_PDEATHSIG = 1  # include/uapi/linux/prctl.h
_PR_SET_CHILD_SUBREAPER = 36


def _prctl(option: int, argument: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, argument, 0, 0, 0) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


def die_with_parent(by: signal.Signals, *, parent: int) -> None:
    """Asks the kernel to send this process a signal when its parent dies (prctl(2), PR_SET_PDEATHSIG).

    Args:
        by: the signal.
        parent: pid of who started us. If it died while we were starting, the signal is sent at once.
    """
    _prctl(_PR_SET_PDEATHSIG, by)
    if os.getppid() != parent:
        os.kill(os.getpid(), by)


def adopt_orphans() -> None:
    """Makes this process the parent of every descendant whose own parent dies."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def end_descendants(
    *, patience_s: float = 3.0, limit_s: float = 10.0, spare: frozenset[int] = frozenset()
) -> list[int]:
    """Ends every process below this one: SIGTERM, a wait, SIGKILL, until none is left.

    A process in uninterruptible sleep (a driver or a network disk that does not answer) dies only when that
    ends; it is not waited for beyond the limit.

    Args:
        patience_s: how long SIGTERM may take.
        limit_s: how long SIGKILL may take.
        spare: pids that are left alone, with all below them.

    Returns:
        The pids that needed SIGKILL.
    """
    import psutil

    processes = _descendants(spare)
    for process in processes:
        _signal(process, signal.SIGTERM)
    psutil.wait_procs(processes, timeout=patience_s)
    killed: set[int] = set()
    deadline = time.monotonic() + limit_s
    while (left := _descendants(spare)) and time.monotonic() < deadline:
        for process in left:
            _signal(process, signal.SIGKILL)
            killed.add(process.pid)
        psutil.wait_procs(left, timeout=1.0)
        time.sleep(0.01)  # orphans are handed over a moment after their parent is reaped
    return sorted(killed)


def _descendants(spare: frozenset[int]) -> list[psutil.Process]:
    import psutil

    found = []
    for child in psutil.Process().children():
        if child.pid not in spare:
            try:
                found += [child, *child.children(recursive=True)]
            except psutil.NoSuchProcess:
                continue
    return found


def _signal(process: psutil.Process, number: signal.Signals) -> None:
    import psutil

    with contextlib.suppress(psutil.NoSuchProcess):
        process.send_signal(number)
