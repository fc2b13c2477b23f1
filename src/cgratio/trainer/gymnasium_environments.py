"""Environments of Gymnasium, and of one's own, stepped in processes of their own.

Python environments hold the interpreter's lock, so they cannot step in threads as envpool's do. Each worker
(`gymnasium_worker`) owns a block of the environments. Observations, rewards, flags and actions lie in memory
that all share; pipes carry only ids: one write to each worker starts its part of a batch, and all workers
report into one pipe, from which a whole batch of ids is read at a time.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from dataclasses import replace
from io import FileIO
from multiprocessing.connection import Pipe, wait
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from cgratio.trainer.config import EnvironmentFailedError, TrainerConfig, TrainerError
from cgratio.trainer.environments import EnvironmentFacts, Outcomes
from cgratio.trainer.gymnasium_worker import Request, common_facts, map_rows

_TICK_S = 0.5  # how soon it is seen that a worker ended whose pipe a process of its own keeps open
_PATIENCE_S = 2.0  # for environments to close

# A worker is work for one CPU; pools of numpy or of a simulator would need more.
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


class GymnasiumEnvironments:
    """Environments in worker processes: one for each actor thread that was asked for."""

    threads: frozenset[int] = frozenset()

    def __init__(self, config: TrainerConfig) -> None:
        """Makes and resets the environments; their processes die with the thread that calls this.

        Args:
            config: of the run.

        Raises:
            TrainerError: they cannot be made, or have other than discrete actions and array observations.
        """
        self.count, self._batch = config.actors, config.batch
        receive, send = os.pipe()
        self._reports, reports = os.fdopen(receive, "rb"), FileIO(send, "wb")
        self._workers: list[_Worker] = []
        # The processes end when nobody holds the environments any more, closed or not.
        self._end = weakref.finalize(self, _end, self._workers, self._reports)
        workers = max(1, min(config.actor_threads, config.actors))
        try:
            with FileIO(os.memfd_create("environments"), "r+b") as memory:  # it goes with its last user
                for number in range(workers):
                    request = Request(
                        environment=config.environment,
                        worker=number,
                        workers=workers,
                        actors=config.actors,
                        seed=config.seed,
                        parent=os.getpid(),
                        reports=reports.fileno(),
                        memory=memory.fileno(),
                    )
                    self._workers.append(_Worker(request))
                introduced = [worker.introduce() for worker in self._workers]
                self.facts = common_facts(introduced, config.environment)
                self._rows = map_rows(memory.fileno(), self.facts, actors=config.actors, workers=workers)
        except BaseException:
            self.close()
            reports.close()
            raise
        self.processes = frozenset(worker.process.pid for worker in self._workers)
        self._firsts = [worker.ids.start for worker in self._workers]
        self._rows["stepping"][:] = -1
        self._watch = _Watch(self._workers, self._rows, reports, batch=self._batch)
        self._watch.start()
        everything = np.arange(config.actors, dtype=np.int32)
        self.send(np.zeros_like(everything), everything)

    def receive(self) -> Outcomes:
        """See `Environments.receive`.

        Raises:
            EnvironmentFailedError: one of them did, whether or not its turn is in this batch.
        """
        self._watch.check()
        ids = np.empty(self._batch, dtype=np.int32)
        self._reports.readinto(ids.data)
        self._watch.check()
        rows = self._rows
        return Outcomes(
            ids=ids,
            observations=rows["observations"][ids],
            rewards=rows["rewards"][ids],
            terminated=rows["terminated"][ids],
            truncated=rows["truncated"][ids],
            fresh=rows["fresh"][ids],
        )

    def send(self, actions: NDArray[np.int32], ids: NDArray[np.int32]) -> None:
        """See `Environments.send`."""
        self._rows["actions"][ids] = actions
        ordered = np.sort(ids)
        bounds = [*np.searchsorted(ordered, self._firsts).tolist(), len(ordered)]
        for worker, start, stop in zip(self._workers, bounds, bounds[1:], strict=False):
            if start < stop:
                worker.command(ordered[start:stop])

    def close(self) -> None:
        """See `Environments.close`; the processes have ended when it returns."""
        self._end()


def describe(environment: str) -> EnvironmentFacts:
    """Makes and resets one instance, in a process of its own, to learn what the environment is.

    Raises:
        TrainerError: it does not exist or cannot be made or reset, or has other than discrete actions and
            array observations.
    """
    config = TrainerConfig(environment=environment, actors=1)
    with contextlib.closing(GymnasiumEnvironments(config)) as environments:
        try:
            environments.receive()
        except EnvironmentFailedError as error:
            raise TrainerError(str(error)) from error
        return environments.facts


class _Worker:
    """The parent's side of one worker process.

    Attributes:
        number: among the workers.
        ids: of its environments.
        process: started already.
        voice: on which it introduces itself, and says what its environment raised.
    """

    def __init__(self, request: Request) -> None:
        """Starts the process; it makes its environments while others start."""
        self.number, self.ids, self._environment = request.worker, request.ids, request.environment
        self.voice, voice = Pipe(duplex=False)
        receive, send = os.pipe()
        self._commands = FileIO(send, "wb")
        request = replace(request, commands=receive, voice=voice.fileno())
        with voice, FileIO(receive):  # these ends are the worker's
            self.process = subprocess.Popen(
                # -P: its path is ours, without the current folder in front.
                [sys.executable, "-P", "-m", "cgratio.trainer.gymnasium_worker", request.line()],
                stdin=subprocess.DEVNULL,
                stdout=2,  # what an environment prints is no output of ours
                pass_fds=request.descriptors,
                env={**os.environ, **_ONE_THREAD, "PYTHONPATH": _path()},
            )

    def introduce(self) -> EnvironmentFacts:
        """Waits for what the worker says of its environments.

        Raises:
            TrainerError: it cannot make them.
        """
        _first_with_news([self])
        said = self.last_words()
        if isinstance(said, EnvironmentFacts):
            return said
        raise TrainerError(
            said or f"environment {self._environment!r} cannot be made: its process {self._exit()}"
        )

    def last_words(self) -> Any:
        """What the worker has said and nobody heard; None for nothing."""
        try:
            return self.voice.recv() if self.voice.poll() else None
        except (EOFError, OSError):
            return None

    def failure(self, stepping: int) -> EnvironmentFailedError:
        """Why the process ended, once it did.

        Args:
            stepping: the environment that it was busy with, -1 for none.
        """
        environment = f"environment {stepping}" if stepping >= 0 else "no environment"
        if cause := self.last_words():
            return EnvironmentFailedError(f"{environment} of {self._environment} raised {cause}")
        return EnvironmentFailedError(
            f"the process of environments {self.ids.start}-{self.ids.stop - 1} of {self._environment} "
            f"{self._exit()} while it stepped {environment}"
        )

    def command(self, ids: NDArray[np.int32]) -> None:
        """Has environments take their next step; a worker that is gone is for `receive` to tell."""
        with contextlib.suppress(BrokenPipeError):
            self._commands.write(ids.data)

    def dismiss(self) -> None:
        """Tells the worker that no command will come."""
        self._commands.close()

    def end(self, *, patience_s: float) -> None:
        """Waits for the process to end, and ends it when patience does."""
        try:
            self.process.wait(timeout=patience_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def _exit(self) -> str:
        code = self.process.wait()
        names = {number.value: number.name for number in signal.Signals}
        return f"exited with code {code}" if code >= 0 else f"was killed by {names.get(-code, -code)}"


class _Watch(threading.Thread):
    """Waits for a worker to end, and wakes whoever receives when one does. It sleeps otherwise."""

    def __init__(self, workers: list[_Worker], rows: NDArray[Any], reports: FileIO, *, batch: int) -> None:
        """Takes over the writing end of the reports."""
        super().__init__(name="environments", daemon=True)
        self._workers = workers
        self._stepping = rows["stepping"]
        self._reports = reports
        self._batch = batch
        self._failure: EnvironmentFailedError | None = None

    def check(self) -> None:
        """Raises the failure, if there is one."""
        if self._failure:
            raise self._failure

    def run(self) -> None:
        """See the class."""
        worker = _first_with_news(self._workers)
        self._failure = worker.failure(int(self._stepping[worker.number]))
        nobody = np.full(self._batch, -1, dtype=np.int32)
        with self._reports, contextlib.suppress(BrokenPipeError):  # it was closed, and nobody waits
            self._reports.write(nobody.data)


def _first_with_news(workers: list[_Worker]) -> _Worker:
    """Waits for a worker that said something or ended."""
    while True:
        heard = wait([worker.voice for worker in workers], timeout=_TICK_S)
        for worker in workers:
            if worker.voice in heard or worker.process.poll() is not None:
                return worker


def _path() -> str:
    """The path that modules are found on here; an empty entry means the current folder."""
    return os.pathsep.join(entry or os.getcwd() for entry in sys.path)  # noqa: PTH109 - a string


def _end(workers: list[_Worker], reports: IO[bytes]) -> None:
    """Ends the workers: first as they wish, then by force."""
    for worker in workers:
        worker.dismiss()
    deadline = time.monotonic() + _PATIENCE_S
    for worker in workers:
        worker.end(patience_s=max(0.0, deadline - time.monotonic()))
    reports.close()
