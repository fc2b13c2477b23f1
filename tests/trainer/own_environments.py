"""Environments that a user might bring along, good and bad ones."""

import os
import signal
import sys
import time

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete


def length(seed, episode):
    """Steps of an episode of `Scripted`."""
    return 1 + (seed + episode) % 4


def ending(seed, episode):
    """How it ends: 0 terminated, 1 truncated, 2 both."""
    return (seed + 2 * episode) % 3


class Scripted(gymnasium.Env):
    """Observes who it is (its first seed), which episode and step it is in, and the action it was given."""

    observation_space = Box(-np.inf, np.inf, (4,), np.float64)
    action_space = Discrete(5, start=10)
    frame_skip = 3

    def reset(self, *, seed=None, options=None):
        if seed is not None:
            self.seed, self.episode = seed, -1
        self.episode += 1
        self.time = 0
        return self._observed(-1), {}

    def step(self, action):
        assert self.action_space.contains(action)
        self.time += 1
        assert self.time <= length(self.seed, self.episode), "stepped beyond its end"
        time.sleep((self.seed * 7 + self.time) % 3 * 1e-4)  # so that others overtake it
        over = self.time == length(self.seed, self.episode)
        how = ending(self.seed, self.episode)
        terminated, truncated = over and how != 1, over and how != 0
        return self._observed(action), self.seed * 100 + self.time, terminated, truncated, {}

    def _observed(self, action):
        return np.array([self.seed, self.episode, self.time, action], np.float64)


class Plain(gymnasium.Env):
    """Goes on for ever."""

    observation_space = Box(0, 1, (3,), np.float32)
    action_space = Discrete(2)

    def reset(self, *, seed=None, options=None):
        self.seed = seed
        return np.zeros(3, np.float32), {}

    def step(self, action):
        return np.zeros(3, np.float32), 0.0, False, False, {}


class Continuous(Plain):
    action_space = Box(-1, 1, (2,), np.float32)


class Named(Plain):
    observation_space = Dict({"position": Box(0, 1, (3,), np.float32)})


class Numbered(Plain):
    observation_space = Discrete(16)


class Unwilling(Plain):
    def reset(self, *, seed=None, options=None):
        raise RuntimeError("no simulator\nanswers")


class Misshapen(Plain):
    def reset(self, *, seed=None, options=None):
        return np.zeros(1, np.float32), {}


class Overflowing(Plain):
    def reset(self, *, seed=None, options=None):
        return np.full(3, "far"), {}


class Reporter(Plain):
    """Observes its own process: modules that it should not load, threads of numpy, how it is ended."""

    def reset(self, *, seed=None, options=None):
        heavy = {"torch", "envpool"} & set(sys.modules)
        return np.array([len(heavy), os.environ["OMP_NUM_THREADS"], os.getpid()], np.float32), {}


class Busy(Plain):
    """Computes for 2 ms in every step."""

    def step(self, action):
        end = time.process_time() + 0.002
        while time.process_time() < end:
            pass
        return super().step(action)


class _Second(Plain):
    """Fails in the step of the environment whose seed is odd."""

    def step(self, action):
        if self.seed == 1:
            self.fail()
        return super().step(action)


class Raising(_Second):
    def fail(self):
        raise ValueError("the robot\nfell over")


class Leaving(_Second):
    def fail(self):
        sys.exit("I am leaving")


class Exiting(_Second):
    def fail(self):
        os._exit(7)


class Killed(_Second):
    def fail(self):
        os.kill(os.getpid(), signal.SIGKILL)


class Leftover(_Second):
    """Dies, but a process that it has forked keeps its files open."""

    def fail(self):
        if os.fork() == 0:
            time.sleep(8)
            os._exit(0)
        os.kill(os.getpid(), signal.SIGKILL)


class Stuck(Plain):
    """Never comes back from its step."""

    def step(self, action):
        while True:
            time.sleep(1)


def broken():
    raise OSError("no licence\nfor the simulator")


def no_environment():
    return 3


number = 3
