"""Trials on this host, one at a time, each in a session and process group of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from cgratio.machine.processes import adopt_orphans, end_descendants
from cgratio.trial.request import TrialRequest

_GRACE_S = 7.0  # a supervisor that was told to stop ends its workload first


class LocalLauncher:
    """Starts trials here and sees to it that nothing of them is left."""

    def __init__(
        self,
        *,
        held_fd: int | None = None,
        command: Sequence[str] = (sys.executable, "-m", "cgratio.trial"),
    ) -> None:
        """Prepares this process to adopt what a killed supervisor leaves behind.

        Args:
            command: of a supervisor; it is given our pid and, on standard input, the request.
            held_fd: a descriptor that every trial keeps open (the sweep folder's lock), so that the folder
                stays locked until the last trial is gone, even when the sweep itself is killed.
        """
        self._command = command
        self._held = [] if held_fd is None else [held_fd]
        adopt_orphans()

    @contextmanager
    def start(self, request: TrialRequest, *, log: Path) -> Iterator[subprocess.Popen[str]]:
        """Starts one trial; on leaving, whatever is left of it is ended and reaped.

        Args:
            request: the trial.
            log: where its output goes.

        Yields:
            The supervisor's process. It has written the trial's rows when it exits with 0.
        """
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as output:
            process = subprocess.Popen(
                [*self._command, str(os.getpid())],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                text=True,
                start_new_session=True,
                pass_fds=self._held,
            )
        try:
            assert process.stdin
            try:
                process.stdin.write(request.to_json() + "\n")
                process.stdin.close()
            except BrokenPipeError:
                pass  # it died at once; its exit code tells
            yield process
        finally:
            self._end(process)

    def _end(self, process: subprocess.Popen[str]) -> None:
        with _signals_held():
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                try:
                    process.wait(timeout=_GRACE_S)
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
            end_descendants()


@contextmanager
def _signals_held() -> Iterator[None]:
    """Keeps Ctrl-C and SIGTERM until the end: a second one must not leave half a trial behind.

    Handlers are exchanged and not masked, since a masked signal reaches another thread of the process.
    """
    held: list[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, lambda number, _: held.append(number)) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
        if held:
            signal.raise_signal(held[0])
