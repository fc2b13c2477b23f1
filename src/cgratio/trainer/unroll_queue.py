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

    def __init__(self, memory: UnrollMemory, *, batch: int, taken: int) -> None:
        """Starts with the slots from `taken` on free; those before are the writers'."""
        self._memory = memory
        self._batch = batch
        self._free: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._full: queue.SimpleQueue[int] = queue.SimpleQueue()
        for slot in range(taken, memory.slots):
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


class PreparedUnrolls:
    """Gives the learner the same unrolls again and again, once all are full.

    It stands in for actors that infer on their own CPUs, so that the device's side is measured alone: after
    the unrolls are prepared, their writers wait, and use no processor time.
    """

    def __init__(self, memory: UnrollMemory, *, batch: int, taken: int) -> None:
        """Starts empty; see `UnrollQueue`."""
        self._memory = memory
        self._batch = batch
        self._wanted = min(2 * batch, memory.slots - taken)
        self._free: queue.SimpleQueue[int] = queue.SimpleQueue()
        for slot in range(taken, taken + self._wanted):
            self._free.put(slot)
        self._full: list[int] = []
        self._weights = torch.ones(batch)
        self._ready, self._closed = threading.Event(), threading.Event()
        self._turn = 0

    def put(self, slot: int, *, clock: StageClock) -> int:
        """See `Consumer.put`; waits for the end once enough are full."""
        self._full.append(slot)
        if len(self._full) >= self._wanted:
            self._ready.set()
        try:
            return self._free.get_nowait()
        except queue.Empty:
            clock.enter("backpressure")
            self._closed.wait()
            raise ClosedError from None

    def take(self) -> UnrollBatch:
        """See `Consumer.take`."""
        while not self._ready.wait(TICK_S) and not self._closed.is_set():
            pass
        if self._closed.is_set():
            raise ClosedError
        start = self._turn * self._batch
        self._turn += 1
        full = self._full[: self._wanted]
        slots = [full[(start + row) % len(full)] for row in range(self._batch)]
        return self._memory.gather(slots, weights=self._weights)

    def learned(self, batch: UnrollBatch, priorities: NDArray[np.float32] | None) -> None:
        """See `Consumer.learned`; nothing is kept."""

    def close(self) -> None:
        """See `Consumer.close`."""
        self._closed.set()


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
