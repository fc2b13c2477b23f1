"""Environments behind one small door: receive a batch of outcomes, send a batch of actions.

envpool steps its environments in threads of its own and hands over whichever finish first; the workers of
`gymnasium_environments` do so for all others. After an episode ends, its next call only resets: that call is
no sample, and `Outcomes.fresh` marks it.
"""

from __future__ import annotations

import warnings
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cgratio.machine.affinity import thread_ids
from cgratio.trainer.config import TrainerConfig, TrainerError, near_names


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentFacts:
    """What the rest of the trainer must know of an environment.

    Attributes:
        shape, dtype: of one observation.
        actions: number of discrete actions.
        frame_skip: emulator frames in one step.
        is_atari: whether Atari's conventions (reward clipping) hold.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    actions: int
    frame_skip: int
    is_atari: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcomes:
    """One batch of what environments returned; all arrays are [batch] but observations.

    Attributes:
        ids: which environment each row is from.
        observations: [batch, *shape].
        rewards: of the transition that ended here; undefined where fresh.
        terminated: the episode ended in a terminal state.
        truncated: the episode was cut by its time limit, so its value must still be bootstrapped.
        fresh: the row is the first observation of an episode; no transition ended here.
    """

    ids: NDArray[np.int32]
    observations: NDArray[Any]
    rewards: NDArray[np.float32]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    fresh: NDArray[np.bool_]


class Environments(Protocol):
    """Many environments, stepped asynchronously."""

    facts: EnvironmentFacts
    count: int  # instances that exist
    threads: frozenset[int]  # kernel ids of the threads of this process that step them
    processes: frozenset[int]  # ids of the processes that step them

    def receive(self) -> Outcomes:
        """Waits for the next batch of environments to finish their step."""
        ...

    def send(self, actions: NDArray[np.int32], ids: NDArray[np.int32]) -> None:
        """Starts the next step of the given environments."""
        ...

    def close(self) -> None:
        """Gives the environments up; envpool's idle threads end with the process."""
        ...


class EnvPoolEnvironments:
    """envpool in its asynchronous mode."""

    def __init__(self, config: TrainerConfig, **options: Any) -> None:
        """Makes and resets the environments.

        Args:
            config: of the run.
            options: passed on to envpool (`max_episode_steps`, ...).

        Raises:
            TrainerError: the environment does not exist or has no discrete actions.
        """
        before = thread_ids()
        self._pool = _make(
            config.environment,
            num_envs=config.actors,
            batch_size=config.batch,
            num_threads=max(1, config.actor_threads),
            seed=config.seed,
            **options,
        )
        self.threads = thread_ids() - before
        self.processes: frozenset[int] = frozenset()
        self.facts = _facts(self._pool, config.environment)
        self.count = len(self._pool)
        self._ended = np.ones(
            config.actors, dtype=np.bool_
        )  # before its first reset each is between episodes
        self._pool.async_reset()

    def receive(self) -> Outcomes:
        """See `Environments.receive`."""
        observations, rewards, terminated, truncated, info = self._pool.recv()
        ids = info["env_id"]
        fresh = self._ended[ids]
        ended = terminated | truncated
        self._ended[ids] = ended
        return Outcomes(
            ids=ids,
            observations=observations,
            rewards=rewards,
            terminated=terminated,
            truncated=truncated & ~terminated,
            fresh=fresh,
        )

    def send(self, actions: NDArray[np.int32], ids: NDArray[np.int32]) -> None:
        """See `Environments.send`."""
        self._pool.send(actions, ids)

    def close(self) -> None:
        """See `Environments.close`."""
        self._pool.close()


class EndlessEnvironments:
    """Environments that never make the accelerator wait: recorded observations, handed out in turn.

    This is the demand side of a run: inference and learner do all they do in training, on real
    observations of the environment, and no environment is stepped.
    """

    threads: frozenset[int] = frozenset()
    processes: frozenset[int] = frozenset()

    def __init__(self, config: TrainerConfig, *, recorded: int = 8) -> None:
        """Records batches from the real environment, then closes it."""
        # As many as one inference takes: more would only take longer to make.
        few = replace(config, actors=config.batch, inference_batch=config.batch)
        random = np.random.default_rng(config.seed)
        self._batches = []
        with closing(make_environments(few)) as source:
            self.facts = source.facts
            for _ in range(recorded):
                outcomes = source.receive()
                self._batches.append(np.array(outcomes.observations))
                actions = random.integers(0, self.facts.actions, len(outcomes.ids), dtype=np.int32)
                source.send(actions, outcomes.ids)
        self._size = config.batch
        self.count = config.actors  # lanes: each stands for one instance
        self._lanes = np.arange(config.actors, dtype=np.int32)
        self._fresh = np.ones(config.actors, dtype=np.bool_)
        self._turn = 0

    def receive(self) -> Outcomes:
        """See `Environments.receive`; returns at once."""
        start = self._turn * self._size
        ids = self._lanes[np.arange(start, start + self._size) % len(self._lanes)]
        observations = self._batches[self._turn % len(self._batches)]
        self._turn += 1
        fresh = self._fresh[ids]
        self._fresh[ids] = False
        no = np.zeros(self._size, dtype=np.bool_)
        rewards = np.zeros(self._size, dtype=np.float32)
        return Outcomes(
            ids=ids, observations=observations, rewards=rewards, terminated=no, truncated=no, fresh=fresh
        )

    def send(self, actions: NDArray[np.int32], ids: NDArray[np.int32]) -> None:
        """See `Environments.send`; there is nothing to step."""

    def close(self) -> None:
        """See `Environments.close`."""


def make_environments(config: TrainerConfig) -> Environments:
    """Makes and resets the environments of one group: envpool's, or any others in processes of their own.

    Raises:
        TrainerError: they do not exist or have no discrete actions.
    """
    if ":" in config.environment:
        from cgratio.trainer.gymnasium_environments import GymnasiumEnvironments  # it knows this module

        return GymnasiumEnvironments(config)
    return EnvPoolEnvironments(config)


def describe(environment: str) -> EnvironmentFacts:
    """Makes one instance to learn what the environment is.

    Raises:
        TrainerError: it does not exist (near names are suggested) or has no discrete actions.
    """
    if ":" in environment:
        from cgratio.trainer import gymnasium_environments  # it knows this module

        return gymnasium_environments.describe(environment)
    pool = _make(environment, num_envs=1, batch_size=1, num_threads=1, seed=0)
    facts = _facts(pool, environment)
    pool.close()
    return facts


def _make(environment: str, **options: Any) -> Any:
    import envpool  # here, since it takes a second: only a process that steps environments pays it

    known = envpool.list_all_envs()
    if environment not in known:
        near = near_names(environment, known)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise TrainerError(f"environment {environment!r} is not one of envpool's {len(known)}{hint}")
    return envpool.make(environment, env_type="gymnasium", **options)


def _facts(pool: Any, environment: str) -> EnvironmentFacts:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # gymnasium warns of float64 bounds that it casts itself
        observations, actions = pool.observation_space, pool.action_space
    if not hasattr(actions, "n"):
        raise TrainerError(f"{environment} has actions {actions}; this trainer takes discrete actions only")
    if not getattr(observations, "shape", None):
        raise TrainerError(f"{environment} observes {observations}; this trainer takes arrays only")
    spec = pool.spec.config
    return EnvironmentFacts(
        shape=tuple(observations.shape),
        dtype=np.dtype(observations.dtype),
        actions=int(actions.n),
        frame_skip=int(getattr(spec, "frame_skip", 1)),
        is_atari=hasattr(spec, "repeat_action_probability"),
    )
