"""Unrolls: sequences of transitions of one environment, written in place and learned from as batches.

Memory is one block, reserved at the start: slots of L transitions and L + 1 observations. A writer fills a
slot for each of its actors and hands it to a consumer, which gives it a free one: a queue (`unroll_queue`) or
a replay (`replay.Replay`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cgratio.trainer.clock import StageClock
from cgratio.trainer.environments import EnvironmentFacts

TICK_S = 0.05  # how soon whoever waits notices that the run is over


@dataclass(frozen=True, slots=True, kw_only=True)
class UnrollLayout:
    """What one unroll holds.

    Attributes:
        length: transitions L in it.
        overlap: of them, those that it shares with the unroll before it.
        logits: whether the behaviour's logits are kept.
        state_size: of the recurrent core, 0 without one. With one, the last action and reward are kept too.
    """

    length: int
    overlap: int = 0
    logits: bool = False
    state_size: int = 0

    @property
    def stride(self) -> int:
        """New transitions in each unroll."""
        return self.length - self.overlap


@dataclass(frozen=True, slots=True, kw_only=True)
class Decisions:
    """What the policy decided for one batch of observations.

    Attributes:
        actions: [batch].
        values: of the policy that acted, in the environment's (clipped) reward, [batch], float32.
        version: of that policy, in learner updates.
        logits: of the behaviour policy, [batch, actions], float32, if the unrolls keep them.
        states: of the core before the decision, [batch, state], float32, if there is one.
        last_actions: that came before, [batch], if there is a core.
    """

    actions: NDArray[np.int32]
    values: NDArray[np.float32]
    version: int
    logits: NDArray[np.float32] | None = None
    states: NDArray[np.float32] | None = None
    last_actions: NDArray[np.int32] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnrollBatch:
    """B unrolls for one update.

    Attributes:
        observations: [B, L + 1, *shape]; the last is what the bootstrap value is of.
        actions: [B, L], int64. rewards: [B, L]. discounts: [B, L], 0 where the episode ended.
        logits: [B, L, actions], if they are kept.
        last_actions, last_rewards, first: [B, L + 1], and states: [B, state], for a recurrent core.
        versions: [B, L], of the policies that acted. actors: [B], where each unroll is from.
        slots, serials: [B], where they lie, and the how many-th of the slot each is.
        weights: [B], of their loss.
    """

    observations: Tensor
    actions: Tensor
    rewards: Tensor
    discounts: Tensor
    versions: NDArray[np.int64]
    actors: NDArray[np.int32]
    slots: NDArray[np.int64]
    serials: NDArray[np.int64]
    logits: Tensor | None = None
    last_actions: Tensor | None = None
    last_rewards: Tensor | None = None
    first: Tensor | None = None
    states: Tensor | None = None
    weights: Tensor | None = None

    def to(self, device: torch.device) -> UnrollBatch:
        """The same batch with its tensors on a device."""
        tensors: dict[str, Any] = {
            field.name: value.to(device, non_blocking=True)
            for field in fields(self)
            if isinstance(value := getattr(self, field.name), Tensor)
        }
        return replace(self, **tensors)


class Consumer(Protocol):
    """Takes full unrolls from writers and gives batches to the learner."""

    def put(self, slot: int, *, clock: StageClock) -> int:
        """Takes a full slot and returns a free one, after a wait if there is none."""
        ...

    def take(self) -> UnrollBatch:
        """Waits for the next batch, copied out of its slots."""
        ...

    def learned(self, batch: UnrollBatch, priorities: NDArray[np.float32] | None) -> None:
        """Hears that a batch was learned from."""
        ...

    def close(self) -> None:
        """Wakes whoever waits; each then raises ClosedError."""
        ...


class ClosedError(Exception):
    """The run is over; whoever waits stops waiting."""


@dataclass(slots=True)
class UnrollMemory:
    """The block of slots: arrays [slots, L, ...], and [slots, L + 1, ...] of what is known after it."""

    layout: UnrollLayout
    slots: int
    facts: EnvironmentFacts
    observations: Tensor = field(init=False)
    rows: NDArray[Any] = field(init=False)  # the same memory
    actions: NDArray[np.int64] = field(init=False)
    rewards: NDArray[np.float32] = field(init=False)
    discounts: NDArray[np.float32] = field(init=False)
    versions: NDArray[np.int64] = field(init=False)
    owner: NDArray[np.int32] = field(init=False)
    serials: NDArray[np.int64] = field(init=False)  # counts the unrolls that a slot has held
    logits: NDArray[np.float32] | None = field(init=False, default=None)
    last_actions: NDArray[np.int64] | None = field(init=False, default=None)
    last_rewards: NDArray[np.float32] | None = field(init=False, default=None)
    first: NDArray[np.bool_] | None = field(init=False, default=None)
    states: NDArray[np.float32] | None = field(init=False, default=None)  # at every stride from the start

    def __post_init__(self) -> None:
        """Reserves it; the system gives it page by page, as it is written."""
        shape, layout, facts = (self.slots, self.layout.length), self.layout, self.facts
        longer = (self.slots, layout.length + 1)
        dtype = torch.from_numpy(np.empty(0, facts.dtype)).dtype
        self.observations = torch.zeros((*longer, *facts.shape), dtype=dtype)
        self.rows = self.observations.numpy()
        self.actions = np.zeros(shape, dtype=np.int64)
        self.rewards = np.zeros(shape, dtype=np.float32)
        self.discounts = np.zeros(shape, dtype=np.float32)
        self.versions = np.zeros(shape, dtype=np.int64)
        self.owner = np.zeros(self.slots, dtype=np.int32)
        self.serials = np.zeros(self.slots, dtype=np.int64)
        if layout.logits:
            self.logits = np.zeros((*shape, facts.actions), dtype=np.float32)
        if layout.state_size:
            self.last_actions = np.zeros(longer, dtype=np.int64)
            self.last_rewards = np.zeros(longer, dtype=np.float32)
            self.first = np.zeros(longer, dtype=np.bool_)
            kept = 1 + layout.length // layout.stride
            self.states = np.zeros((self.slots, kept, layout.state_size), dtype=np.float32)

    def gather(self, slots: list[int], *, weights: Tensor | None = None) -> UnrollBatch:
        """Copies unrolls out."""

        def copied(array: NDArray[Any] | None) -> Tensor | None:
            return None if array is None else torch.from_numpy(array[slots])

        return UnrollBatch(
            observations=self.observations.index_select(0, torch.tensor(slots)),
            actions=torch.from_numpy(self.actions[slots]),
            rewards=torch.from_numpy(self.rewards[slots]),
            discounts=torch.from_numpy(self.discounts[slots]),
            versions=self.versions[slots],
            actors=self.owner[slots],
            slots=np.array(slots),
            serials=self.serials[slots],
            logits=copied(self.logits),
            last_actions=copied(self.last_actions),
            last_rewards=copied(self.last_rewards),
            first=copied(self.first),
            states=None if self.states is None else torch.from_numpy(self.states[slots, 0]),
            weights=weights,
        )

    def continue_in(self, free: int, *, after: int) -> None:
        """Copies what an unroll shares with the one before it."""
        overlap, stride = self.layout.overlap, self.layout.stride
        if self.states is not None:
            self.states[free, :-1] = self.states[after, 1:]
        if not overlap:
            return
        arrays = (self.rows, self.actions, self.rewards, self.discounts, self.versions)
        for array in (*arrays, self.logits, self.last_actions, self.last_rewards, self.first):
            if array is not None:
                array[free, :overlap] = array[after, stride : stride + overlap]
