"""The stage clock: where the wall time of each loop goes, and the processor time of the two sides."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable

monotonic = time.perf_counter  # CLOCK_MONOTONIC on Linux, the same clock in every process of the host


class StageClock:
    """Adds up the seconds that one loop spends in each of its stages.

    One thread writes, any thread reads. A stage counts while it lasts, so that a long wait lies in the
    windows in which the loop waited and not in the one in which it went on.
    """

    def __init__(self, *stages: str) -> None:
        self._seconds = dict.fromkeys(stages, 0.0)
        self._open: tuple[str, float] | None = None  # the stage that lasts, and since when

    def enter(self, stage: str) -> None:
        """Ends the stage that lasts and begins another."""
        now = monotonic()
        if self._open:
            last, since = self._open
            self._seconds[last] += now - since
        self._open = (stage, now)

    def read(self) -> dict[str, float]:
        """Seconds by stage up to this moment."""
        while True:
            lasting = self._open
            seconds = dict(self._seconds)
            now = monotonic()
            if self._open is lasting:  # else the writer went on in between: look again
                break
        if lasting:
            stage, since = lasting
            seconds[stage] += now - since
        return seconds


_SCHEDULER_TIME, _PER_THREAD = 2, 4


def thread_cpu_s(threads: Iterable[int]) -> float:
    """Processor time that threads of this process have used, in seconds; an ended thread counts 0."""
    return sum(_task_cpu_s(thread, kind=_SCHEDULER_TIME | _PER_THREAD) for thread in threads)


def process_cpu_s(processes: Iterable[int]) -> float:
    """Processor time that all threads of processes have used, in seconds; an ended process counts 0."""
    return sum(_task_cpu_s(process, kind=_SCHEDULER_TIME) for process in processes)


def _task_cpu_s(task: int, *, kind: int) -> float:
    """Reads a task's own clock.

    Its id is built as the kernel does it (include/linux/posix-timers_types.h): the inverted id of the task,
    shifted by three, and the kind.
    """
    try:
        return time.clock_gettime((~task << 3) | kind)
    except OSError:
        return 0.0


class ProcessorTime:
    """Splits the processor time of a run between the actors' side and everything else.

    The actors' side steps environments, and with local inference infers. Everything else is inference,
    learner and the loop that feeds them: the device side of a run whose accelerator is a set of CPUs.
    """

    def __init__(self, threads: frozenset[int], processes: frozenset[int] = frozenset()) -> None:
        """Takes the threads of this process, and the processes, of the actors' side."""
        self._threads = threads
        self._processes = processes

    def actors_s(self) -> float:
        """Of the actors' side."""
        return thread_cpu_s(self._threads) + process_cpu_s(self._processes)

    def device_s(self) -> float:
        """Of all other threads of this process."""
        return time.process_time() - thread_cpu_s(self._threads)


class Allowance:
    """Grants the device side a share of its processors' time, as a CFS quota would.

    After each piece of work a loop settles: if the device side has used more than was granted so far, the
    loop sleeps until it no longer has. Unused time is forfeited but for a short burst, so that an idle
    accelerator does not save up.
    """

    def __init__(self, processor_time: ProcessorTime, *, processors: float, burst_s: float = 0.02) -> None:
        """Grants `processors` seconds of processor time for each second."""
        self._processor_time = processor_time
        self._processors = processors
        self._burst = burst_s
        self._lock = threading.Lock()
        self._start = monotonic()
        self._used_at_start = processor_time.device_s()

    def settle(self, stopping: threading.Event) -> None:
        """Sleeps off what was used beyond the grant, or until it is time to stop."""
        with self._lock:
            now = monotonic()
            balance = (now - self._start) * self._processors - (
                self._processor_time.device_s() - self._used_at_start
            )
            if balance > self._burst * self._processors:
                self._start += balance / self._processors - self._burst
        if balance < 0:
            stopping.wait(-balance / self._processors)
