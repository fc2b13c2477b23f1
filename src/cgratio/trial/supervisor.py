"""Runs one trial: starts workload and sampler, watches both, ends both, and writes what was seen.

The supervisor is a process of its own and never loads torch. It adopts every orphan below it, so that when it
ends nothing of the trial is left; when the sweep that started it dies, the kernel tells it with SIGTERM.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from types import FrameType
from typing import IO, Any, Self

from cgratio.machine.affinity import AffinityError, pin_process
from cgratio.machine.cpulist import format_cpu_list
from cgratio.machine.limits import read_limits
from cgratio.machine.placement import Pinning, PlacementError, PlacementRequest, place
from cgratio.machine.processes import adopt_orphans, die_with_parent, end_descendants
from cgratio.machine.topology import read_topology
from cgratio.results import schema, store
from cgratio.results.words import Part, Status
from cgratio.trial.observed import Observed
from cgratio.trial.request import TrialRequest
from cgratio.trial.row import telemetry_rows, trial_row, window_rows
from cgratio.trial.windows import WindowCutter, stop_reason
from cgratio.workload import training
from cgratio.workload.protocol import Count, Failure, Final, Message, Ready, decode

_TICK_S = 0.25
_FINAL_MAX_S = 20.0  # a learner update in flight must end before the workload can
_SAMPLER_PERIOD_S = 0.1
_FIRST_SIGNAL_CODE = 128  # how a shell writes death by a signal as an exit code


class _EndedEarlyError(Exception):
    """The trial cannot complete; `reason` is a stable code, perhaps with `: details`."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def main(parent: int) -> int:
    """Reads a request from standard input, runs it and stores its rows.

    Args:
        parent: pid of the process that started this one, with which it ends.

    Returns:
        0 when the rows were written, whatever the trial's verdict; 143 when it was told to stop.
    """
    signal.signal(signal.SIGTERM, _terminate)
    adopt_orphans()
    die_with_parent(signal.SIGTERM, parent=parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the sweep's; it tells us with SIGTERM
    request = TrialRequest.from_json(sys.stdin.readline())
    seen = Observed(started_at=datetime.now(UTC), launch_s=time.monotonic())
    try:
        _run(request, seen)
    except _EndedEarlyError as early:
        seen.status, seen.reason = Status.FAILED, early.reason
    finally:
        # From here on nothing may be interrupted: what is half ended would be left behind.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        end_descendants()
    write(request, seen)
    return 0


def write(request: TrialRequest, seen: Observed) -> None:
    """Stores the rows; the trial's own row is last, since it is what makes the trial finished."""
    name = f"{request.trial_id}.parquet"
    store.write_rows(request.folder / "telemetry" / name, schema.TELEMETRY, telemetry_rows(request, seen))
    store.write_rows(request.folder / "windows" / name, schema.WINDOWS, window_rows(request, seen))
    store.write_rows(request.folder / "trials" / name, schema.TRIALS, [trial_row(request, seen)])


def _terminate(number: int, _frame: FrameType | None) -> None:
    sys.exit(_FIRST_SIGNAL_CODE + number)


def _run(request: TrialRequest, seen: Observed) -> None:
    try:
        seen.assignment = place(
            read_topology(),
            allowed=read_limits().allowed,
            request=PlacementRequest(
                actor_cpus=request.actor_cpus,
                device_cpus=request.device_cpus,
                pinning=Pinning(request.pinning),
            ),
        )
        if seen.assignment.pinned:
            pin_process(seen.assignment.service_cpus)
    except (PlacementError, AffinityError) as error:
        raise _EndedEarlyError(f"placement: {error}") from error
    with _Children(request, seen) as children:
        children.watch()
        children.finish()


def workload_command(*, progress_fd: int) -> list[str]:
    """The command line of the workload; its request goes to its standard input."""
    return [sys.executable, "-m", training.__name__, str(progress_fd), str(os.getpid())]


class _Children:
    """The workload and the sampler of one trial, and the lines that they send."""

    def __init__(self, request: TrialRequest, seen: Observed) -> None:
        self._request = request
        self._seen = seen
        self._cutter = WindowCutter(window_s=request.limits.window_s)
        seen.windows, seen.marks = self._cutter.windows, self._cutter.marks
        self._selector = selectors.DefaultSelector()
        self._last_news_s = time.monotonic()
        self._samples = 0
        self._failure: Failure | None = None

    def __enter__(self) -> Self:
        """Starts both, the workload first, since the sampler accounts for its processes."""
        assignment = self._seen.assignment
        assert assignment
        main_cpus = assignment.device_cpus or assignment.service_cpus
        training_request = training.Request(
            trainer=self._request.trainer,
            pinned=assignment.pinned,
            actor_cpu_list=format_cpu_list(assignment.actor_cpus) if assignment.actor_cpus else None,
            main_cpu_list=format_cpu_list(main_cpus),
        )
        receive, send = os.pipe()
        threads = str(max(1, self._request.device_cpus))
        self._workload = subprocess.Popen(
            workload_command(progress_fd=send),
            stdin=subprocess.PIPE,
            stdout=sys.stderr,
            pass_fds=[send],
            env={
                **os.environ,
                # The pools of numpy and torch are sized before they are made.
                "OMP_NUM_THREADS": threads,
                "MKL_NUM_THREADS": threads,
                "OPENBLAS_NUM_THREADS": threads,
                # Empty means none: a trial never takes a GPU that it was not given.
                "CUDA_VISIBLE_DEVICES": ",".join(self._request.gpu_uuids),
            },
        )
        os.close(send)
        assert self._workload.stdin
        with contextlib.suppress(BrokenPipeError):
            self._workload.stdin.write(training_request.line())
            self._workload.stdin.flush()
        options = ["--period", str(_SAMPLER_PERIOD_S), "--pid", str(self._workload.pid)]
        options += ["--parent", str(os.getpid()), "--gpu", *self._request.gpu_uuids]
        self._sampler = subprocess.Popen(
            [sys.executable, "-m", "cgratio.telemetry.sampler", *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._sampler.stdout
        self._progress = _Lines(os.fdopen(receive, "rb", buffering=0))
        self._readings = _Lines(self._sampler.stdout)
        self._selector.register(self._progress.stream, selectors.EVENT_READ, self._progress)
        self._selector.register(self._readings.stream, selectors.EVENT_READ, self._readings)
        return self

    def __exit__(self, *_: object) -> None:
        """Closes our ends; the processes themselves are ended by the caller."""
        self._selector.close()
        self._progress.stream.close()
        self._readings.stream.close()

    def watch(self) -> None:
        """Follows the workload until there is enough to stop.

        Raises:
            _EndedEarlyError: it failed, died or fell silent.
        """
        limits, launch_s = self._request.limits, self._seen.launch_s
        while self._seen.stop is None:
            self._listen(_TICK_S)
            if self._progress.ended:
                raise _EndedEarlyError(self._why_ended())
            now = time.monotonic()
            if not self._seen.marks and now - launch_s > limits.setup_max_s:
                raise _EndedEarlyError(
                    f"setup_timeout: no sample within {limits.setup_max_s:g} s of the launch"
                )
            if now - max(self._last_news_s, launch_s) > limits.silence_max_s and self._seen.marks:
                raise _EndedEarlyError(f"hung: no new sample for {limits.silence_max_s:g} s")

    def finish(self) -> None:
        """Tells the workload to stop and hears it out, then the sampler.

        Raises:
            _EndedEarlyError: the workload did not stop by itself, or failed while it did.
        """
        assert self._workload.stdin
        self._workload.stdin.close()
        deadline = time.monotonic() + _FINAL_MAX_S
        while not self._progress.ended and time.monotonic() < deadline:
            self._listen(_TICK_S)
        if not self._progress.ended:
            raise _EndedEarlyError(
                f"did_not_stop: still running {_FINAL_MAX_S:g} s after it was told to stop"
            )
        # One more tick, so that the readings reach past the last window.
        self._listen(2 * _SAMPLER_PERIOD_S)
        self._sampler.terminate()
        while not self._readings.ended and time.monotonic() < deadline + 1:
            self._listen(_TICK_S)
        if self._seen.final is None:
            raise _EndedEarlyError(self._why_ended())
        try:
            code = self._workload.wait(timeout=_FINAL_MAX_S)
        except subprocess.TimeoutExpired:
            return  # it has measured and said so; what still hangs in it is ended with everything else
        _, self._seen.exit_code, self._seen.exit_signal = exit_reason(code)

    def _listen(self, timeout_s: float) -> None:
        for key, _ in self._selector.select(timeout_s):
            lines: _Lines = key.data
            for line in lines.read():
                try:
                    if lines is self._progress:
                        self._hear_workload(decode(line))
                    else:
                        self._hear_sampler(json.loads(line))
                except ValueError as error:
                    raise _EndedEarlyError(f"protocol: {error}") from error
            if lines.ended:
                self._selector.unregister(lines.stream)

    def _hear_workload(self, message: Message) -> None:
        if isinstance(message, Ready):
            self._seen.ready = message
        elif isinstance(message, Final):
            self._seen.final = message
        elif isinstance(message, Failure):
            self._failure = message
        elif isinstance(message, Count):
            if message.samples > self._samples:
                self._samples, self._last_news_s = message.samples, time.monotonic()
            if self._seen.stop is None and self._cutter.add(message):
                self._seen.stop = stop_reason(
                    self._cutter.windows,
                    limits=self._request.limits,
                    trains=self._request.axes["part"] != Part.SUPPLY,
                )

    def _hear_sampler(self, line: dict[str, Any]) -> None:
        if "t" in line:
            self._seen.readings += [(line["t"], *reading) for reading in line["r"]]
        self._seen.missing |= line.get("missing", {})
        self._seen.sampler_cpu_s = line.get("sampler_cpu_s", self._seen.sampler_cpu_s)

    def _why_ended(self) -> str:
        """The reason code of a workload whose progress pipe has closed."""
        if self._failure:
            return f"{self._failure.code}: {self._failure.message}"
        try:
            code = self._workload.wait(timeout=_FINAL_MAX_S)
        except subprocess.TimeoutExpired:
            return "silent: it closed its progress pipe and went on"
        reason, self._seen.exit_code, self._seen.exit_signal = exit_reason(code)
        return reason


def exit_reason(code: int) -> tuple[str, int | None, str | None]:
    """Reads how a process ended.

    Args:
        code: of `Popen.returncode`: negative for a signal. A shell or a runtime that passes a signal on as
            128 plus its number is read the same way.

    Returns:
        Reason code, exit code, signal name.
    """
    number = -code if code < 0 else code - _FIRST_SIGNAL_CODE
    with contextlib.suppress(ValueError):
        name = signal.Signals(number).name
        return f"killed:{name}", None if code < 0 else code, name
    return f"exit:{code}", code, None


class _Lines:
    """Whole lines out of a pipe that is read when it has something."""

    def __init__(self, stream: IO[bytes]) -> None:
        self.stream = stream
        self.ended = False
        self._rest = b""

    def read(self) -> Iterator[bytes]:
        chunk = os.read(self.stream.fileno(), 1 << 16)
        self.ended = not chunk
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        yield from (line for line in lines if line)
