"""envpool with the interface of gym below 0.26.

envpool 1.x no longer makes `env_type="gym"`. This adds it again around the same environments: `reset` returns
observations alone, `step` and `recv` four values, and the spaces are gym's.
"""

from __future__ import annotations

from typing import Any

import envpool
import gym
import numpy as np

_make = envpool.make


class OldGym:
    """A pool of environments as envpool once handed it to gym."""

    def __init__(self, pool: Any) -> None:
        self._pool = pool
        observations = pool.observation_space
        self.observation_space = gym.spaces.Box(
            observations.low.min(), observations.high.max(), observations.shape, observations.dtype
        )
        self.action_space = gym.spaces.Discrete(int(pool.action_space.n))

    def __getattr__(self, name: str) -> Any:
        """See gym."""
        return getattr(self._pool, name)

    def reset(self, *arguments: Any, **_: Any) -> Any:
        """See gym."""
        return self._pool.reset(*arguments)[0]

    def step(self, actions: Any, *arguments: Any) -> tuple[Any, ...]:
        """See gym."""
        return _four(self._pool.step(np.asarray(actions, dtype=np.int32), *arguments))

    def recv(self) -> tuple[Any, ...]:
        """See gym."""
        return _four(self._pool.recv())

    def send(self, actions: Any, *arguments: Any) -> None:
        """See gym."""
        self._pool.send(np.asarray(actions, dtype=np.int32), *arguments)


def _four(outcome: tuple[Any, ...]) -> tuple[Any, ...]:
    observations, rewards, terminated, truncated, info = outcome
    return observations, rewards, terminated | truncated, info | {"TimeLimit.truncated": truncated}


def _make_with_gym(task: str, env_type: str, **options: Any) -> Any:
    if env_type == "gym":
        return OldGym(_make(task, env_type="gymnasium", **options))
    return _make(task, env_type=env_type, **options)


envpool.make = _make_with_gym
