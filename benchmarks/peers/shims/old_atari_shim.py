"""Pong in gym below 0.26, from today's ale-py.

The Atari package of that time (atari-py) no longer installs; ale-py brings the same emulator and the games,
but registers them with gymnasium alone.
"""

from __future__ import annotations

from typing import Any

import ale_py
import gym
import gymnasium

_TASK = "PongNoFrameskip-v4"


class OldAtari(gym.Env):
    """An Atari game that resets to observations alone, steps to four values, and is seeded by a method."""

    def __init__(self) -> None:
        gymnasium.register_envs(ale_py)
        self._game: Any = gymnasium.make(_TASK).unwrapped
        self._seed: int | None = None
        pixels = self._game.observation_space
        self.observation_space = gym.spaces.Box(pixels.low, pixels.high, pixels.shape, pixels.dtype)
        self.action_space = gym.spaces.Discrete(int(self._game.action_space.n))
        self.ale = self._game.ale

    def seed(self, seed: int | None = None) -> list[int]:
        """See gym."""
        # Four random bytes, as the peer draws them, may exceed what the emulator takes.
        self._seed = None if seed is None else seed % 2**31
        return super().seed(self._seed)

    def reset(self, **_: Any) -> Any:
        """See gym."""
        pixels, _info = self._game.reset(seed=self._seed)
        self._seed = None
        return pixels

    def step(self, action: int) -> tuple[Any, ...]:
        """See gym."""
        pixels, reward, terminated, truncated, info = self._game.step(action)
        return pixels, reward, terminated or truncated, info

    def get_action_meanings(self) -> list[str]:
        """See gym."""
        return self._game.get_action_meanings()


gym.register(_TASK, entry_point=OldAtari)
