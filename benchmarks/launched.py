"""Starts a program that trains, reads the samples that it reports, and ends it.

Every program, ours and others', runs in a process group of its own and is measured from outside in the same
way: from its first report after the warm-up to the first one that is late enough, so that whole intervals
between reports are counted, however long they are.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Self

import psutil

_POLL_S = 0.05
_TAIL = 12  # lines of output that tell why a program failed


class FailedError(Exception):
    """A program could not be measured; the message says why."""


class Mark(NamedTuple):
    """One report: samples so far."""

    time_s: float
    samples: float


@dataclass(frozen=True, kw_only=True)
class Program:
    """What to start, and how it reports.

    Attributes:
        command: with its arguments.
        report: a line of output that matches is a report; its one group is a count. Without a group, the
            lines themselves are counted.
        samples_each: samples (agent steps) for one of what is counted.
        least: samples to measure, whatever the seconds.
        environment: variables besides those of this process.
        folder: where it runs; this process's where None.
    """

    command: list[str]
    report: str
    samples_each: float = 1.0
    least: float = 0.0
    environment: dict[str, str] = field(default_factory=dict)
    folder: Path | None = None


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What was seen of a program.

    Attributes:
        rate: samples per second.
        cpu_s: processor time of all its processes for each sample, in seconds.
        busy: the same over all the time of all CPUs that it may use, 0 to 1.
        others: what other programs and other guests of the machine took of the CPUs meanwhile, 0 to 1.
        pss_bytes: memory of all its processes at the end, shared pages divided among those who share.
        start_s: from its start to its first report of a sample.
    """

    rate: float
    cpu_s: float
    busy: float
    others: float
    pss_bytes: int
    start_s: float


def measure(
    program: Program, *, seconds: float, warm_up_s: float = 5.0, patience_s: float = 300.0
) -> Measured:
    """Runs a program for a while.

    Args:
        program: to run.
        seconds: to measure, at least.
        warm_up_s: from its first report on, not measured.
        patience_s: how long it may take to report, at first and each time again.

    Raises:
        FailedError: it ended by itself, or did not report in time.
    """
    with _Running(program) as running:
        first = running.wait_for(lambda _: True, patience_s)
        begin = running.wait_for(lambda mark: mark.time_s >= first.time_s + warm_up_s, patience_s)
        host, cpu_at_begin, clock_at_begin = _HostTime(), running.cpu_s(), time.perf_counter()
        enough = Mark(begin.time_s + seconds, begin.samples + program.least)
        end = running.wait_for(
            lambda mark: mark.time_s >= enough.time_s and mark.samples >= enough.samples, patience_s
        )
        cpu_s, clock_s = running.cpu_s() - cpu_at_begin, time.perf_counter() - clock_at_begin
        rate = (end.samples - begin.samples) / (end.time_s - begin.time_s)
        if rate <= 0:
            raise FailedError(f"reported no sample between second {begin.time_s:.0f} and {end.time_s:.0f}")
        return Measured(
            rate=rate,
            cpu_s=cpu_s / clock_s / rate,
            busy=cpu_s / clock_s / len(os.sched_getaffinity(0)),
            others=host.others(cpu_s),
            pss_bytes=running.pss_bytes(),
            start_s=first.time_s,
        )


class _HostTime:
    """What the whole host's CPUs have done since it was made."""

    def __init__(self) -> None:
        self._idle_s, self._all_s = self._read()

    def others(self, cpu_s: float) -> float:
        """The share of the CPUs that went to others, where `cpu_s` of it was one's own."""
        idle_s, all_s = self._read()
        passed_s = max(1e-3, all_s - self._all_s)
        return max(0.0, 1 - (idle_s - self._idle_s + cpu_s) / passed_s)

    @staticmethod
    def _read() -> tuple[float, float]:
        times = psutil.cpu_times()
        # Time of guests is part of user and nice already.
        return times.idle + times.iowait, sum(times[:8])


class _Running:
    """A program while it runs; leaving the context ends it and all that it started."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._marks: list[Mark] = []
        self._lines: list[str] = []

    def __enter__(self) -> Self:
        self._start = time.perf_counter()
        self._process = subprocess.Popen(
            self._program.command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,  # with which a carriage return, as progress bars print it, ends a line too
            errors="replace",
            env=os.environ | {"PYTHONUNBUFFERED": "1"} | self._program.environment,
            cwd=self._program.folder,
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        return self

    def __exit__(self, *_: object) -> None:
        # First politely: helpers that outlive a SIGTERM remove what was shared.
        for kind, wait_s in ((signal.SIGTERM, 5.0), (signal.SIGKILL, 1.0)):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, kind)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(wait_s)
            self._reader.join(wait_s)  # it ends with the last process that holds the output
        self._process.wait()

    def wait_for(self, wanted: Callable[[Mark], bool], patience_s: float) -> Mark:
        """The first report that is wanted."""
        seen, until = 0, time.perf_counter() + patience_s
        while time.perf_counter() < until:
            marks = self._marks[seen:]
            for mark in marks:
                if wanted(mark):
                    return mark
            if marks:
                seen, until = seen + len(marks), time.perf_counter() + patience_s
            if self._process.poll() is not None:
                self._reader.join(1.0)
                raise FailedError(f"ended by itself: {self._last_words()}")
            time.sleep(_POLL_S)
        raise FailedError(f"no report within {patience_s:.0f} s: {self._last_words()}")

    def cpu_s(self) -> float:
        """Processor time of all its processes that still run."""
        return sum(sum(times[:2]) for process in self._processes() if (times := _cpu_times(process)))

    def pss_bytes(self) -> int:
        """Memory of all its processes."""
        total = 0
        for process in self._processes():
            with contextlib.suppress(psutil.Error):
                total += process.memory_full_info().pss
        return total

    def _processes(self) -> list[psutil.Process]:
        with contextlib.suppress(psutil.Error):
            first = psutil.Process(self._process.pid)
            return [first, *first.children(recursive=True)]
        return []

    def _read(self) -> None:
        pattern = re.compile(self._program.report)
        matches = 0
        assert self._process.stdout
        for line in self._process.stdout:
            if match := pattern.search(line):
                matches += 1
                samples = (float(match[1]) if pattern.groups else matches) * self._program.samples_each
                if samples > 0:
                    self._marks.append(Mark(time.perf_counter() - self._start, samples))
            else:
                self._lines = [*self._lines[1 - _TAIL :], line.strip()]

    def _last_words(self) -> str:
        """The last line that names an error, else the last one."""
        lines = [line for line in self._lines if line]
        errors = [line for line in lines if re.search(r"error|exception", line, re.IGNORECASE)]
        return (errors or lines or ["it said nothing"])[-1][:200]


def _cpu_times(process: psutil.Process) -> tuple[float, ...] | None:
    with contextlib.suppress(psutil.Error):
        return process.cpu_times()
    return None
