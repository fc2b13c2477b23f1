"""The actor loop: receive outcomes, infer, send actions, record. Central batched inference as in SEED RL."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from cgratio.trainer.clock import Allowance, StageClock
from cgratio.trainer.config import TrainerConfig
from cgratio.trainer.environments import EnvironmentFacts, Environments, Outcomes
from cgratio.trainer.unrolls import Decisions, UnrollStore
from cgratio.trainer.weights import SharedWeights


class Policy(Protocol):
    """Decides on a batch of observations."""

    def decide(self, outcomes: Outcomes) -> Decisions:
        """Chooses an action for each row."""
        ...


class NetworkPolicy:
    """Inference on the accelerator, with the newest weights that the learner has published."""

    def __init__(self, weights: SharedWeights, *, seed: int) -> None:
        self._weights = weights
        self._network = weights.inference_copy()
        self._device = next(self._network.parameters()).device
        self._version = -1
        self._random = torch.Generator(device=self._device).manual_seed(seed)

    @torch.inference_mode()
    def decide(self, outcomes: Outcomes) -> Decisions:
        """See `Policy.decide`."""
        self._version = self._weights.refresh(self._network, self._version)
        observations = torch.from_numpy(outcomes.observations).to(self._device, non_blocking=True)
        logits, values = self._network(observations)
        # Gumbel's trick: the argmax of logits plus Gumbel noise is a sample of the softmax.
        noise = torch.empty_like(logits).exponential_(generator=self._random).log_().neg_()
        actions = (logits + noise).argmax(dim=-1).to(torch.int32)
        return Decisions(
            actions=actions.cpu().numpy(),
            logits=logits.cpu().numpy(),
            values=values.cpu().numpy(),
            version=self._version,
        )


class RandomPolicy:
    """Uniform actions at no cost: an accelerator that never makes the environments wait."""

    def __init__(self, facts: EnvironmentFacts, *, batch: int, seed: int) -> None:
        random = np.random.default_rng(seed)
        self._actions = random.integers(0, facts.actions, (1024, batch), dtype=np.int32)
        self._logits = np.zeros((batch, facts.actions), dtype=np.float32)
        self._values = np.zeros(batch, dtype=np.float32)
        self._turn = 0

    def decide(self, outcomes: Outcomes) -> Decisions:
        """See `Policy.decide`."""
        self._turn = (self._turn + 1) % len(self._actions)
        rows = len(outcomes.ids)
        return Decisions(
            actions=self._actions[self._turn, :rows],
            logits=self._logits[:rows],
            values=self._values[:rows],
            version=0,
        )


class EpisodeReturns:
    """Returns of finished episodes, in the environment's own reward.

    Attributes:
        finished: how many.
    """

    _RECENT = 100

    def __init__(self, actors: int) -> None:
        self._running = np.zeros(actors)
        self._recent: deque[float] = deque(maxlen=self._RECENT)
        self.finished = 0

    def recent_mean(self) -> float | None:
        """Mean of the last 100; None before the first. Any thread may ask."""
        recent = list(self._recent)
        return sum(recent) / len(recent) if recent else None

    def add(self, outcomes: Outcomes) -> None:
        """Adds one batch of rewards."""
        self._running[outcomes.ids] += np.where(outcomes.fresh, 0, outcomes.rewards)
        over: NDArray[np.int32] = outcomes.ids[outcomes.terminated | outcomes.truncated]
        if len(over):
            self._recent.extend(self._running[over].tolist())
            self.finished += len(over)
            self._running[over] = 0


class ActorLoop:
    """Drives the environments; one turn is one batch, and nothing is done per environment."""

    def __init__(
        self,
        *,
        config: TrainerConfig,
        environments: Environments,
        policy: Policy,
        store: UnrollStore | None,
        allowance: Allowance | None,
        arrange: Callable[[NDArray[Any]], NDArray[Any]] | None = None,
    ) -> None:
        """Joins the parts.

        Args:
            config: of the run.
            environments: to drive.
            policy: to decide.
            store: for unrolls; without one nothing is learned (the supply side alone).
            allowance: of the device's time, if it is not all granted.
            arrange: the network's rearrangement of observations, if it has one.
        """
        self._environments = environments
        self._policy = policy
        self._store = store
        self._allowance = allowance
        self._arrange = arrange
        self.clock = StageClock("wait_batch", "inference", "transfer", "backpressure")
        self.returns = EpisodeReturns(config.actors)
        self.samples = 0
        self.batches = 0

    def turn(self) -> None:
        """Handles one batch of outcomes."""
        clock = self.clock
        clock.enter("wait_batch")
        outcomes = self._environments.receive()
        clock.enter("transfer")
        if self._arrange:
            outcomes = replace(outcomes, observations=self._arrange(outcomes.observations))
        clock.enter("inference")
        decisions = self._policy.decide(outcomes)
        if self._allowance:
            self._allowance.settle()
        clock.enter("transfer")
        # Actions go out first: the environments step while the records are written.
        self._environments.send(decisions.actions, outcomes.ids)
        self.returns.add(outcomes)
        if self._store:
            samples = self._store.record(outcomes, decisions, clock=clock)
        else:
            samples = int((~outcomes.fresh).sum())
        self.samples += samples
        self.batches += 1
