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


def thread_cpu_s(threads: Iterable[int]) -> float:
    """Processor time that threads of this process have used, in seconds; an ended thread counts 0.

    The clock id of a thread is built as the kernel does it (include/linux/posix-timers_types.h:
    the inverted id, shifted by three, with the per-thread and the scheduler-time bits set).
    """
    total = 0.0
    for thread in threads:
        try:
            total += time.clock_gettime((~thread << 3) | 6)
        except OSError:
            continue
    return total


class ProcessorTime:
    """Splits the processor time of this process between environments and everything else.

    Everything else is inference, learner and the loop that feeds them: the device side of a run whose
    accelerator is a set of CPUs.
    """

    def __init__(self, environment_threads: frozenset[int]) -> None:
        self._threads = environment_threads

    def environments_s(self) -> float:
        """Of the threads that step environments."""
        return thread_cpu_s(self._threads)

    def device_s(self) -> float:
        """Of all other threads."""
        return time.process_time() - self.environments_s()


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

    def settle(self) -> None:
        """Sleeps off what was used beyond the grant."""
        with self._lock:
            now = monotonic()
            balance = (now - self._start) * self._processors - (
                self._processor_time.device_s() - self._used_at_start
            )
            if balance > self._burst * self._processors:
                self._start += balance / self._processors - self._burst
        if balance < 0:
            time.sleep(-balance / self._processors)
