"""Prioritised replay of unrolls (Schaul et al. 2016, over sequences as Kapturowski et al. 2019 do)."""

from __future__ import annotations

import threading
from collections import deque

import numpy as np
import torch
from numpy.typing import NDArray

from cgratio.trainer.clock import StageClock
from cgratio.trainer.unrolls import TICK_S, ClosedError, UnrollBatch, UnrollMemory

PRIORITY_EXPONENT = 0.9
"""Kapturowski et al. 2019, table 2, as is the exponent of the importance weights below."""

IMPORTANCE_EXPONENT = 0.6


class Replay:
    """Remembers the newest unrolls and gives them to the learner by priority.

    The replay ratio is held from both sides: the learner waits while it has learned from each unroll so
    often, and the writers wait while it has not. A new unroll has the highest priority there has been, so
    that it is soon seen once.
    """

    def __init__(
        self, memory: UnrollMemory, *, batch: int, taken: int, ratio: float, least: int, seed: int
    ) -> None:
        """Starts empty.

        Args:
            memory: of the unrolls.
            batch: unrolls in one update.
            taken: slots before this one are the writers'; the others are remembered unrolls.
            ratio: how often each unroll is learned from.
            least: unrolls to remember before the learner begins.
            seed: of the sampling.
        """
        self._memory = memory
        self._batch = batch
        self._ratio = ratio
        self._least = least
        self._random = np.random.default_rng(seed)
        self._changed = threading.Condition()
        self._free = deque(range(taken, memory.slots))
        self._oldest: deque[int] = deque()
        self._priorities = np.zeros(memory.slots)  # 0: not remembered
        self._highest = 1.0
        self._written = 0
        self._learned = 0
        self._closed = False

    @staticmethod
    def slots(*, actors: int, sequences: int) -> int:
        """Every actor holds one; the others are remembered."""
        return actors + sequences

    def put(self, slot: int, *, clock: StageClock) -> int:
        """See `Consumer.put`; the oldest unroll makes room."""
        with self._changed:
            if self._owed() > 2 * self._batch:
                clock.enter("backpressure")
                while self._owed() > 2 * self._batch:
                    self._wait()
                clock.enter("transfer")
            self._priorities[slot] = self._highest
            self._oldest.append(slot)
            self._written += 1
            free = self._free.popleft() if self._free else self._oldest.popleft()
            self._priorities[free] = 0.0
            self._changed.notify_all()
            return free

    def take(self) -> UnrollBatch:
        """See `Consumer.take`; drawn with replacement, in proportion to priority."""
        with self._changed:
            while self._closed or self._owed() < 0:
                self._wait()
            scaled = self._priorities**PRIORITY_EXPONENT
            totals = np.cumsum(scaled)
            drawn = np.searchsorted(totals, self._random.random(self._batch) * totals[-1], side="right")
            weights = (scaled[drawn] / totals[-1] * len(self._oldest)) ** -IMPORTANCE_EXPONENT
            weights /= weights.max()
            batch = self._memory.gather(drawn.tolist(), weights=torch.from_numpy(weights.astype(np.float32)))
            self._learned += self._batch
            self._changed.notify_all()
            return batch

    def learned(self, batch: UnrollBatch, priorities: NDArray[np.float32] | None) -> None:
        """See `Consumer.learned`; an unroll that was forgotten meanwhile keeps no priority."""
        if priorities is None:
            return
        with self._changed:
            same = self._memory.serials[batch.slots] == batch.serials
            kept = same & (self._priorities[batch.slots] > 0)
            self._priorities[batch.slots[kept]] = np.maximum(priorities[kept], 1e-6)
            self._highest = max(self._highest, float(priorities.max(initial=0.0)))

    def close(self) -> None:
        """See `Consumer.close`."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _owed(self) -> float:
        """Unrolls that the learner has still to learn from, by the replay ratio; below 0 it is ahead."""
        return self._ratio * (self._written - self._least) - self._learned

    def _wait(self) -> None:
        if self._closed:
            raise ClosedError
        self._changed.wait(TICK_S)
