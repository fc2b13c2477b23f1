"""What an algorithm is to the rest of the trainer: how it acts, what it remembers, and its loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cgratio.trainer.networks import Context, Heads, Outputs, PolicyNetwork
from cgratio.trainer.unrolls import Consumer, UnrollBatch, UnrollLayout, UnrollMemory


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What to do in a batch of states.

    Attributes:
        actions: [batch], int32.
        values: of the states, in rewards as they are learned from, [batch], float32.
        logits: of the policy that chose, [batch, actions], float32, if the unrolls keep them.
    """

    actions: Tensor
    values: Tensor
    logits: Tensor | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """What to descend on, and how much each unroll surprised.

    Attributes:
        total: a number with gradient.
        priorities: [B], for a replay.
    """

    total: Tensor
    priorities: NDArray[np.float32] | None = None


class Algorithm(Protocol):
    """IMPALA, R2D2, ...

    Attributes:
        heads: of the network that it trains.
        layout: of its unrolls.
        slots: unrolls that memory must have room for.
        clips_atari: whether it clips Atari's rewards where the user does not say.
    """

    heads: type[Heads]
    layout: UnrollLayout
    slots: int
    clips_atari: bool

    def consumer(self, memory: UnrollMemory) -> Consumer:
        """Makes what takes full unrolls and gives batches to the learner."""
        ...

    def choose(self, outputs: Outputs, *, actors: NDArray[np.int32], random: torch.Generator) -> Choice:
        """Acts on what the network said of one step, [batch, 1, ...]; `actors` tells whose rows they are."""
        ...

    def loss(self, network: PolicyNetwork, batch: UnrollBatch) -> Loss:
        """The loss of a batch whose tensors are on the network's device."""
        ...

    def updated(self, network: PolicyNetwork, *, updates: int) -> None:
        """Hears that the network has been updated so many times; 0 when it is new."""
        ...


def context_of(
    batch: UnrollBatch, state: Tensor | None, *, start: int = 0, stop: int | None = None
) -> Context | None:
    """What a recurrent core sees of steps `start` to `stop` of a batch; None without a core."""
    if batch.first is None:
        return None
    assert batch.last_actions is not None
    assert batch.last_rewards is not None
    assert state is not None
    steps = slice(start, stop)
    return Context(batch.last_actions[:, steps], batch.last_rewards[:, steps], batch.first[:, steps], state)
