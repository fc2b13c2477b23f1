"""A device that is not here: it takes the time its profile says, one piece of work after the other.

No arithmetic is done, so real environments on real threads meet an accelerator whose speed is known.
"""

from __future__ import annotations

import threading

import numpy as np
from numpy.typing import NDArray

from cgratio.trainer.acting import RandomPolicy
from cgratio.trainer.clock import monotonic
from cgratio.trainer.config import DeviceProfile
from cgratio.trainer.environments import Outcomes
from cgratio.trainer.unrolls import Decisions, UnrollBatch


class EmulatedDevice:
    """A server with one line: inference and updates wait for each other, as they would for a full GPU."""

    def __init__(self, profile: DeviceProfile, *, share: float, stopping: threading.Event) -> None:
        self._profile = profile
        self._stopping = stopping
        self._share = share
        self._lock = threading.Lock()
        self._free_s = 0.0
        self._busy_s = 0.0

    def infer(self, observations: int) -> None:
        """Takes the time of one inference."""
        self._work(self._profile.inference_s + self._profile.observation_s * observations)

    def update(self) -> None:
        """Takes the time of one update."""
        self._work(self._profile.update_s)

    def busy_s(self) -> float:
        """Seconds for which it has worked up to now."""
        with self._lock:
            return self._busy_s - max(0.0, self._free_s - monotonic())

    def _work(self, seconds: float) -> None:
        if seconds == 0.0:
            return
        with self._lock:
            begins = max(monotonic(), self._free_s)
            self._free_s = begins + seconds / self._share
            self._busy_s += seconds / self._share
            ends = self._free_s
        while (left := ends - monotonic()) > 0.0 and not self._stopping.wait(left):
            pass


class EmulatedPolicy:
    """Random actions, after the time that an inference takes."""

    def __init__(self, device: EmulatedDevice, actions: RandomPolicy) -> None:
        self._device = device
        self._actions = actions

    def decide(self, outcomes: Outcomes) -> Decisions:
        """See `acting.Policy`."""
        self._device.infer(len(outcomes.ids))
        return self._actions.decide(outcomes)


class EmulatedUpdate:
    """Nothing learned, after the time that an update takes; see `learner.Update`."""

    def __init__(self, device: EmulatedDevice) -> None:
        self._device = device
        self.version = 0

    def __call__(self, _batch: UnrollBatch, /) -> NDArray[np.float32] | None:
        """See `learner.Update`."""
        self._device.update()
        self.version += 1
        return None
