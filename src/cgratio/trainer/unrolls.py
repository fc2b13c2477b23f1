"""Unrolls: T transitions of one environment, written in place as they happen and learned from as a batch.

Memory is one block, reserved at the start: `slots` unrolls of T + 1 observations. An observation is copied
once into its slot and once into the learner's batch; the one between two unrolls is in both.
"""

from __future__ import annotations

import queue
import threading
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cgratio.trainer.clock import StageClock
from cgratio.trainer.config import TrainerConfig
from cgratio.trainer.environments import EnvironmentFacts, Outcomes


@dataclass(frozen=True, slots=True, kw_only=True)
class Decisions:
    """What the policy decided for one batch of observations.

    Attributes:
        actions: [batch].
        logits: of the behaviour policy, [batch, actions], float32.
        values: of the policy that acted, [batch], float32.
        version: of that policy, in learner updates.
    """

    actions: NDArray[np.int32]
    logits: NDArray[np.float32]
    values: NDArray[np.float32]
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UnrollBatch:
    """B unrolls for one update.

    Attributes:
        observations: [B, T + 1, *shape]; the last is what the bootstrap value is of.
        actions: [B, T], int64. logits: [B, T, actions]. rewards: [B, T]. discounts: [B, T].
        versions: [B, T], of the policies that acted.
        environments: [B], where each unroll is from.
    """

    observations: Tensor
    actions: Tensor
    logits: Tensor
    rewards: Tensor
    discounts: Tensor
    versions: NDArray[np.int64]
    environments: NDArray[np.int32]


class UnrollStore:
    """Where actors write unrolls and the learner takes them.

    One thread writes (`record`), one takes (`take`). When the learner falls behind, no slot is free and the
    writer waits: that bounds the memory and the policy lag.
    """

    def __init__(self, config: TrainerConfig, facts: EnvironmentFacts) -> None:
        """Reserves the memory for observations as `facts` describes them."""
        self._length = config.unroll_length
        self._batch = config.learner_batch
        self._discount = config.discount
        self._clip = facts.is_atari if config.clip_rewards is None else config.clip_rewards
        # Every actor holds one; one batch waits and one fills while the learner works on a third, copied out.
        slots = config.actors + 2 * config.learner_batch
        time = self._length
        dtype = torch.from_numpy(np.empty(0, facts.dtype)).dtype
        self._observations = torch.zeros((slots, time + 1, *facts.shape), dtype=dtype)
        self._rows = self._observations.numpy()
        self._actions = np.zeros((slots, time), dtype=np.int64)
        self._logits = np.zeros((slots, time, facts.actions), dtype=np.float32)
        self._rewards = np.zeros((slots, time), dtype=np.float32)
        self._discounts = np.zeros((slots, time), dtype=np.float32)
        self._versions = np.zeros((slots, time), dtype=np.int64)
        self._owner = np.zeros(slots, dtype=np.int32)
        self._free: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._full: queue.SimpleQueue[int] = queue.SimpleQueue()
        for slot in range(config.actors, slots):
            self._free.put(slot)
        self._slot = np.arange(config.actors)  # the slot that each actor writes
        self._position = np.zeros(config.actors, dtype=np.int64)  # and where in it
        self._closed = threading.Event()

    def record(self, outcomes: Outcomes, decisions: Decisions, *, clock: StageClock) -> int:
        """Writes one batch: the transitions that ended, then the decisions that begin the next.

        Args:
            outcomes: what the environments returned.
            decisions: what was decided on those observations.
            clock: of the caller's loop, to tell the wait for a free slot from the writing.

        Returns:
            The number of transitions that ended, which is the number of samples.
        """
        ended = ~outcomes.fresh
        ids = outcomes.ids[ended]
        slots, positions = self._slot[ids], self._position[ids]
        rewards = outcomes.rewards[ended]
        if self._clip:
            rewards = rewards.clip(-1, 1)
        truncated = outcomes.truncated[ended]
        # A time limit is not an end of the task: the cut-off return is replaced by its estimate, as the
        # policy that acted values the last observation.
        rewards = rewards + self._discount * truncated * decisions.values[ended]
        self._rewards[slots, positions] = rewards
        self._discounts[slots, positions] = np.where(
            outcomes.terminated[ended] | truncated, 0, self._discount
        )
        self._position[ids] += 1
        for row in np.flatnonzero(ended)[self._position[ids] == self._length]:
            self._finish(int(outcomes.ids[row]), outcomes.observations[row], clock)

        # The action that follows an episode's end only resets, so it is no decision to learn from.
        decided = ~(outcomes.terminated | outcomes.truncated)
        ids = outcomes.ids[decided]
        slots, positions = self._slot[ids], self._position[ids]
        self._rows[slots, positions] = outcomes.observations[decided]
        self._actions[slots, positions] = decisions.actions[decided]
        self._logits[slots, positions] = decisions.logits[decided]
        self._versions[slots, positions] = decisions.version
        return len(rewards)

    def _finish(self, actor: int, bootstrap: NDArray[np.generic], clock: StageClock) -> None:
        slot = int(self._slot[actor])
        self._rows[slot, self._length] = bootstrap
        self._owner[slot] = actor
        self._full.put(slot)
        try:
            free = self._free.get_nowait()
        except queue.Empty:
            clock.enter("backpressure")
            free = self._wait(self._free)
            clock.enter("transfer")
        self._slot[actor] = free
        self._position[actor] = 0

    def take(self) -> UnrollBatch:
        """Waits for the next B full unrolls, copies them out and frees their slots.

        Raises:
            ClosedError: the store was closed.
        """
        slots = [self._wait(self._full) for _ in range(self._batch)]
        index = torch.tensor(slots)
        batch = UnrollBatch(
            observations=self._observations.index_select(0, index),
            actions=torch.from_numpy(self._actions[slots]),
            logits=torch.from_numpy(self._logits[slots]),
            rewards=torch.from_numpy(self._rewards[slots]),
            discounts=torch.from_numpy(self._discounts[slots]),
            versions=self._versions[slots],
            environments=self._owner[slots],
        )
        for slot in slots:
            self._free.put(slot)
        return batch

    def close(self) -> None:
        """Wakes both sides; each then raises ClosedError instead of waiting."""
        self._closed.set()

    def _wait(self, line: queue.SimpleQueue[int]) -> int:
        while not self._closed.is_set():
            try:
                return line.get(timeout=0.05)
            except queue.Empty:
                continue
        raise ClosedError


class ClosedError(Exception):
    """The run is over; whoever waits stops waiting."""
