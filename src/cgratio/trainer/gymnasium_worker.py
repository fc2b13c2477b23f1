"""A process that steps some of a run's environments: `python -m cgratio.trainer.gymnasium_worker REQUEST`.

It makes them, says what they are or why it cannot, and then obeys: ids come through one pipe, actions and
outcomes lie in shared memory, and the id of each environment that has finished goes into the other pipe.
"""

from __future__ import annotations

import dataclasses
import fcntl
import importlib
import json
import mmap
import os
import signal
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from cgratio.machine.processes import die_with_parent
from cgratio.trainer.clock import monotonic
from cgratio.trainer.config import TrainerError, near_names
from cgratio.trainer.environments import EnvironmentFacts

Environment = gymnasium.Env[Any, Any]

PREFIX = "gymnasium:"
_COMMAND_BYTES = 65536  # as much as a pipe holds
# Each report wakes the parent. That costs either side some microseconds, as much as a step of a fast
# environment: such steps are reported together, slower ones one by one.
_REPORT_PERIOD_S = 50e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a worker is asked to do.

    Attributes:
        environment: `gymnasium:ID` or `package.module:factory`.
        worker, workers: its number, and how many there are.
        actors: environments of all of them.
        seed: of the first of these; the i-th has seed + i.
        parent: pid of the process that it dies with.
        reports: pipe to which it writes the ids of environments that finished, int32.
        memory: file for `map_rows`.
        commands: pipe from which it reads the ids of environments to step, int32.
        voice: pipe of messages to the parent.
    """

    environment: str
    worker: int
    workers: int
    actors: int
    seed: int
    parent: int
    reports: int
    memory: int
    commands: int = -1
    voice: int = -1

    @property
    def ids(self) -> range:
        """The environments of this worker."""
        first, stop = (self.actors * number // self.workers for number in (self.worker, self.worker + 1))
        return range(first, stop)

    @property
    def descriptors(self) -> tuple[int, ...]:
        """The files that it is given."""
        return self.reports, self.memory, self.commands, self.voice

    def line(self) -> str:
        """The request as an argument."""
        return json.dumps(dataclasses.asdict(self))


def map_rows(memory: int, facts: EnvironmentFacts, *, actors: int, workers: int) -> NDArray[Any]:
    """Maps what workers and trainer share: one row for each environment in each field.

    Args:
        memory: file descriptor; it gets the size that is needed.
        facts: of the environment.
        actors: rows.
        workers: each says in `stepping` which environment it is busy with, -1 for none.

    Returns:
        A structured array without axes; each of its fields is a view of the shared memory.
    """
    layout = np.dtype(
        [
            ("observations", facts.dtype, (actors, *facts.shape)),
            ("rewards", np.float32, (actors,)),
            ("actions", np.int32, (actors,)),
            ("stepping", np.int32, (workers,)),
            ("terminated", np.bool_, (actors,)),
            ("truncated", np.bool_, (actors,)),
            ("fresh", np.bool_, (actors,)),
        ],
        align=True,
    )
    os.ftruncate(memory, layout.itemsize)
    return np.ndarray((), layout, buffer=mmap.mmap(memory, layout.itemsize))


def make(environment: str) -> Environment:
    """Makes one instance.

    Raises:
        TrainerError: there is no such environment, or it cannot be made.
    """
    try:
        if environment.startswith(PREFIX):
            return gymnasium.make(environment.removeprefix(PREFIX))
        made = _factory(environment)()
    except TrainerError:
        raise
    except gymnasium.error.UnregisteredEnv as error:
        near = near_names(environment.removeprefix(PREFIX), gymnasium.registry)
        hint = f"; did you mean {' or '.join(PREFIX + name for name in near)}?" if near else ""
        raise TrainerError(f"environment {environment!r} is not one that gymnasium knows{hint}") from error
    except Exception as error:
        raise TrainerError(f"environment {environment!r} cannot be made: {_said(error)}") from error
    if not isinstance(made, gymnasium.Env):
        raise TrainerError(
            f"environment {environment!r} made an object of type {type(made).__name__}; "
            "it must return a gymnasium.Env"
        )
    return made


def _factory(environment: str) -> Callable[[], Any]:
    module_name, _, name = environment.partition(":")
    try:
        factory: Callable[[], Any] = getattr(importlib.import_module(module_name), name)
    except Exception as error:  # a module may raise anything while it is imported
        raise TrainerError(f"environment {environment!r} cannot be imported: {_said(error)}") from error
    if not callable(factory):
        raise TrainerError(f"environment {environment!r} is no factory: it cannot be called")
    return factory


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def facts_of(made: Environment, environment: str) -> EnvironmentFacts:
    """What the trainer must know of an instance.

    Raises:
        TrainerError: its actions are not discrete, or its observations are not arrays.
    """
    observations, actions = made.observation_space, made.action_space
    if not isinstance(actions, gymnasium.spaces.Discrete):
        raise TrainerError(f"{environment} has actions {actions}; this trainer takes discrete actions only")
    if not observations.shape or observations.dtype is None:
        raise TrainerError(f"{environment} observes {observations}; this trainer takes arrays only")
    return EnvironmentFacts(
        shape=tuple(observations.shape),
        dtype=np.dtype(observations.dtype),
        actions=int(actions.n),
        frame_skip=_frame_skip(made),
        is_atari=False,
    )


def _frame_skip(made: Environment) -> int:
    """Frames in one step: as the environment or a wrapper says it, as it was asked for, or 1."""
    if made.has_wrapper_attr("frame_skip"):
        frames = made.get_wrapper_attr("frame_skip")
    else:
        options = made.spec.kwargs if made.spec else {}
        frames = options.get("frame_skip", options.get("frameskip"))
    whole = isinstance(frames, int | np.integer)  # ale_py's may be a range to draw from
    return int(frames) if whole and frames >= 1 else 1


def common_facts(facts: list[EnvironmentFacts], environment: str) -> EnvironmentFacts:
    """The facts of all instances.

    Raises:
        TrainerError: they differ.
    """
    for other in facts:
        if other != facts[0]:
            raise TrainerError(f"{environment} is not always the same: once {facts[0]}, once {other}")
    return facts[0]


class Actor:
    """One environment in the worker's hands."""

    def __init__(self, environment: Environment, *, seed: int) -> None:
        """Takes an instance and the seed of its first reset."""
        space: Any = environment.action_space
        self.close = environment.close
        self._step, self._reset = environment.step, environment.reset
        self._seed: int | None = seed
        self._over = True  # before its first reset it is between episodes
        self._first_action, self._action_type = int(space.start), space.dtype.type

    def turn(self, action: int) -> tuple[Any, Any, Any, Any, bool]:
        """Does one step, or only resets after an episode's end.

        Args:
            action: counted from 0, wherever the environment's own space begins.

        Returns:
            Observation, reward, terminated, truncated and not terminated, fresh.
        """
        if self._over:
            observation, _ = self._reset(seed=self._seed)
            self._seed, self._over = None, False
            return observation, 0.0, False, False, True
        own_action = self._action_type(self._first_action + action)
        observation, reward, terminated, truncated, _ = self._step(own_action)
        self._over = terminated or truncated
        return observation, reward, terminated, truncated and not terminated, False


def serve(request: Request, actors: list[Actor], facts: EnvironmentFacts) -> None:
    """Steps what it is told to step, until the pipe of commands is closed.

    When an environment raises, `stepping` still names it.
    """
    command = os.read(request.commands, _COMMAND_BYTES)  # the first says that the memory is there
    if not command:
        return
    rows = map_rows(request.memory, facts, actors=request.actors, workers=request.workers)
    observations, rewards, actions, stepping = (
        rows[name] for name in ("observations", "rewards", "actions", "stepping")
    )
    terminated, truncated, fresh = (rows[name] for name in ("terminated", "truncated", "fresh"))
    first, finished, due_s = request.ids.start, bytearray(), 0.0
    while command:
        for index in np.frombuffer(command, np.int32).tolist():
            stepping[request.worker] = index
            outcome = actors[index - first].turn(int(actions[index]))
            observation, rewards[index], terminated[index], truncated[index], fresh[index] = outcome
            _write(observations[index], observation)
            stepping[request.worker] = -1
            finished += index.to_bytes(4, sys.byteorder)
            if monotonic() > due_s:
                due_s = _report(request, finished)
        if finished:
            due_s = _report(request, finished)
        command = os.read(request.commands, _COMMAND_BYTES)


def _report(request: Request, finished: bytearray) -> float:
    """Reports environments in one write, which no other worker's comes between.

    Returns:
        From when on the next are reported.
    """
    os.write(request.reports, finished)
    finished.clear()
    return monotonic() + _REPORT_PERIOD_S


def _write(row: NDArray[Any], observation: Any) -> None:
    """Copies an observation; numpy alone would repeat a shape that is too small."""
    observation = np.asarray(observation)
    if observation.shape != row.shape:
        raise ValueError(f"an observation has shape {observation.shape}, its space says {row.shape}")
    np.copyto(row, observation, casting="same_kind")


def main(request: Request) -> int:
    """Runs one worker.

    Returns:
        The exit code: 0 when told to end, 1 for an environment that cannot be made or that raised; the
        voice has said why.
    """
    die_with_parent(signal.SIGKILL, parent=request.parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is for the parent, which then ends us
    for descriptor in request.descriptors:
        fcntl.fcntl(descriptor, fcntl.F_SETFD, fcntl.FD_CLOEXEC)  # not for what an environment starts
    voice = Connection(request.voice, readable=False)
    try:
        environments = [make(request.environment) for _ in request.ids]
        facts = common_facts(
            [facts_of(made, request.environment) for made in environments], request.environment
        )
    except TrainerError as error:
        voice.send(str(error))
        return 1
    voice.send(facts)
    actors = [
        Actor(made, seed=request.seed + index) for index, made in zip(request.ids, environments, strict=True)
    ]
    try:
        serve(request, actors, facts)
    except BaseException as error:  # noqa: BLE001 - an environment may raise anything, SystemExit as well
        traceback.print_exc()
        voice.send(_said(error))
        return 1
    for actor in actors:
        actor.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(Request(**json.loads(sys.argv[1]))))
