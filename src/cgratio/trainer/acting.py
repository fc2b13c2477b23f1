"""The actor loop: receive outcomes, infer, send actions, record. Central batched inference as in SEED RL."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cgratio.trainer.algorithm import Algorithm
from cgratio.trainer.clock import Allowance, StageClock
from cgratio.trainer.environments import EnvironmentFacts, Environments, Outcomes
from cgratio.trainer.networks import Context
from cgratio.trainer.unroll_writer import UnrollWriter
from cgratio.trainer.unrolls import Decisions
from cgratio.trainer.weights import InferenceNetwork, SharedWeights


class Policy(Protocol):
    """Decides on a batch of observations."""

    def decide(self, outcomes: Outcomes) -> Decisions:
        """Chooses an action for each row."""
        ...


class NetworkPolicy:
    """Inference by a network, with the newest weights that the learner has published."""

    def __init__(
        self,
        *,
        weights: SharedWeights,
        algorithm: Algorithm,
        actors: range,
        seed: int,
        precision: str,
        device: torch.device,
    ) -> None:
        """Makes a network of its own.

        Args:
            weights: of the learner.
            algorithm: that chooses.
            actors: the group's numbers in the run.
            seed: of the choices.
            precision: to infer in, `fp32` or `bf16`.
            device: to infer on.
        """
        self._weights = weights
        self._algorithm = algorithm
        self._network = InferenceNetwork(weights.network, precision=precision, device=device)
        self._device = device
        self._version = -1
        self._random = torch.Generator(device=self._device).manual_seed(seed)
        self._actors = np.array(actors, dtype=np.int32)
        self._last_actions = np.zeros(len(actors), dtype=np.int32)
        self._states = torch.zeros((len(actors), self._network.state_size), device=self._device)

    @torch.inference_mode()
    def decide(self, outcomes: Outcomes) -> Decisions:
        """See `Policy.decide`."""
        self._version = self._weights.refresh(self._network.network, self._version)
        observations = self._moved(outcomes.observations)
        context = self._context(outcomes) if self._network.state_size else None
        outputs = self._network(observations.unsqueeze(1), context)
        choice = self._algorithm.choose(outputs, actors=self._actors[outcomes.ids], random=self._random)
        actions = choice.actions.cpu().numpy()
        decisions = Decisions(
            actions=actions,
            values=choice.values.cpu().numpy(),
            logits=None if choice.logits is None else choice.logits.cpu().numpy(),
            states=None if context is None else context.state.cpu().numpy(),
            last_actions=None if context is None else self._last_actions[outcomes.ids],
            version=self._version,
        )
        if outputs.state is not None:
            self._states[self._moved(outcomes.ids).long()] = outputs.state
            self._last_actions[outcomes.ids] = actions
        return decisions

    def _context(self, outcomes: Outcomes) -> Context:
        return Context(
            actions=self._moved(self._last_actions[outcomes.ids].astype(np.int64)).unsqueeze(1),
            rewards=self._moved(outcomes.rewards).unsqueeze(1),
            first=self._moved(outcomes.fresh).unsqueeze(1),
            state=self._states[self._moved(outcomes.ids).long()],
        )

    def _moved(self, array: NDArray[Any]) -> Tensor:
        return torch.from_numpy(array).to(self._device, non_blocking=True)


class RandomPolicy:
    """Uniform actions at no cost: an accelerator that never makes the environments wait."""

    def __init__(
        self,
        facts: EnvironmentFacts,
        *,
        batch: int,
        seed: int,
        state_size: int = 0,
        version: Callable[[], int] = lambda: 0,
    ) -> None:
        """Draws actions for some time ahead.

        Args:
            facts: of the environment.
            batch: the most rows of one decision.
            seed: of the actions.
            state_size: of a recurrent core whose states are written down, all 0.
            version: of the learner, which the actions are said to come from.
        """
        random = np.random.default_rng(seed)
        self._actions = random.integers(0, facts.actions, (1024, batch), dtype=np.int32)
        self._logits = np.zeros((batch, facts.actions), dtype=np.float32)
        self._values = np.zeros(batch, dtype=np.float32)
        self._states = np.zeros((batch, state_size), dtype=np.float32)
        self._version = version
        self._turn = 0

    def decide(self, outcomes: Outcomes) -> Decisions:
        """See `Policy.decide`."""
        self._turn = (self._turn + 1) % len(self._actions)
        rows = len(outcomes.ids)
        return Decisions(
            actions=self._actions[self._turn, :rows],
            logits=self._logits[:rows],
            values=self._values[:rows],
            states=self._states[:rows],
            last_actions=self._actions[self._turn - 1, :rows],
            version=self._version(),
        )


class EpisodeReturns:
    """Returns of finished episodes, in the environment's own reward.

    Attributes:
        finished: how many.
    """

    def __init__(self, actors: int, *, recent: deque[float]) -> None:
        self._running = np.zeros(actors)
        self._recent = recent
        self.finished = 0

    def add(self, outcomes: Outcomes) -> None:
        """Adds one batch of rewards."""
        self._running[outcomes.ids] += np.where(outcomes.fresh, 0, outcomes.rewards)
        over: NDArray[np.int32] = outcomes.ids[outcomes.terminated | outcomes.truncated]
        if len(over):
            self._recent.extend(self._running[over].tolist())
            self.finished += len(over)
            self._running[over] = 0


class ActorLoop:
    """Drives the environments; one turn is one batch, and nothing is done per environment.

    Attributes:
        allowance: of the device's time, if it is not all granted.
    """

    def __init__(
        self,
        *,
        actors: int,
        environments: Environments,
        policy: Policy,
        writer: UnrollWriter | None,
        recent: deque[float],
        arrange: Callable[[NDArray[Any]], NDArray[Any]],
        clips: bool,
        stopping: threading.Event,
    ) -> None:
        """Joins the parts.

        Args:
            actors: in this group.
            environments: to drive.
            policy: to decide.
            writer: of unrolls; without one nothing is learned (the supply side alone).
            recent: returns of the run's newest episodes, to which the loop adds.
            arrange: the network's rearrangement of observations.
            clips: whether rewards are clipped to [-1, 1] before they are learned from.
            stopping: set when the run ends.
        """
        self._environments = environments
        self._policy = policy
        self._writer = writer
        self._arrange = arrange
        self._clips = clips
        self._stopping = stopping
        self.allowance: Allowance | None = None
        self.clock = StageClock("wait_batch", "inference", "transfer", "backpressure")
        self.returns = EpisodeReturns(actors, recent=recent)
        self.samples = 0
        self.batches = 0

    def turn(self) -> None:
        """Handles one batch of outcomes."""
        clock = self.clock
        clock.enter("wait_batch")
        outcomes = self._environments.receive()
        clock.enter("transfer")
        seen = replace(
            outcomes,
            observations=self._arrange(outcomes.observations),
            rewards=outcomes.rewards.clip(-1, 1) if self._clips else outcomes.rewards,
        )
        clock.enter("inference")
        decisions = self._policy.decide(seen)
        if self.allowance:
            self.allowance.settle(self._stopping)
        clock.enter("transfer")
        # Actions go out first: the environments step while the records are written.
        self._environments.send(decisions.actions, outcomes.ids)
        self.returns.add(outcomes)
        if self._writer:
            samples = self._writer.record(seen, decisions, clock=clock)
        else:
            samples = int((~outcomes.fresh).sum())
        self.samples += samples
        self.batches += 1
