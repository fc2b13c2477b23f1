"""Gives each unroll to the learner once."""

from __future__ import annotations

import queue
import threading

import numpy as np
import torch
from numpy.typing import NDArray

from cgratio.trainer.clock import StageClock
from cgratio.trainer.unrolls import TICK_S, ClosedError, UnrollBatch, UnrollMemory


class UnrollQueue:
    """Gives every unroll to the learner once, in the order in which they were filled.

    When the learner falls behind, no slot is free and the writers wait: that bounds the memory and the policy
    lag.
    """

    def __init__(self, memory: UnrollMemory, *, batch: int, taken: int, most: int | None = None) -> None:
        """Starts with the slots from `taken` on free, or `most` of them; those before are the writers'."""
        self._memory = memory
        self._batch = batch
        self._free: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._full: queue.SimpleQueue[int] = queue.SimpleQueue()
        for slot in range(taken, memory.slots)[:most]:
            self._free.put(slot)
        self._closed = threading.Event()

    @staticmethod
    def slots(*, actors: int, batch: int) -> int:
        """Every actor holds one; one batch waits and one fills while a third, copied out, is learned from."""
        return actors + 2 * batch

    def put(self, slot: int, *, clock: StageClock) -> int:
        """See `Consumer.put`."""
        self._full.put(slot)
        try:
            return self._free.get_nowait()
        except queue.Empty:
            clock.enter("backpressure")
            free = self._wait(self._free)
            clock.enter("transfer")
            return free

    def take(self) -> UnrollBatch:
        """See `Consumer.take`; the slots are free again when it returns."""
        slots = [self._wait(self._full) for _ in range(self._batch)]
        batch = self._memory.gather(slots)
        for slot in slots:
            self._free.put(slot)
        return batch

    def learned(self, batch: UnrollBatch, priorities: NDArray[np.float32] | None) -> None:
        """See `Consumer.learned`; nothing is kept."""

    def close(self) -> None:
        """See `Consumer.close`."""
        self._closed.set()

    def _wait(self, line: queue.SimpleQueue[int]) -> int:
        while not self._closed.is_set():
            try:
                return line.get(timeout=TICK_S)
            except queue.Empty:
                continue
        raise ClosedError


class PreparedUnrolls(UnrollQueue):
    """Gives the learner the same unrolls again and again.

    It stands in for actors that infer on their own CPUs, so that the device's side is measured alone: no slot
    is freed, so once all are full, their writers wait and use no processor time.
    """

    def __init__(self, memory: UnrollMemory, *, batch: int, taken: int) -> None:
        """See `UnrollQueue`; no more slots are filled than two batches need."""
        super().__init__(memory, batch=batch, taken=taken, most=2 * batch)
        self._weights = torch.ones(batch)  # for a loss that expects a replay's

    def take(self) -> UnrollBatch:
        """See `Consumer.take`; the unrolls go to the end of the line."""
        slots = [self._wait(self._full) for _ in range(self._batch)]
        for slot in slots:
            self._full.put(slot)
        return self._memory.gather(slots, weights=self._weights)


class DiscardedUnrolls:
    """Takes unrolls that nobody learns from: what it costs the actors to write them is all that is wanted."""

    def put(self, slot: int, *, clock: StageClock) -> int:  # noqa: ARG002
        """See `Consumer.put`; the slot itself is free at once."""
        return slot

    def take(self) -> UnrollBatch:
        """See `Consumer.take`; there is no learner that asks."""
        raise ClosedError

    def learned(self, batch: UnrollBatch, priorities: NDArray[np.float32] | None) -> None:
        """See `Consumer.learned`."""

    def close(self) -> None:
        """See `Consumer.close`."""
