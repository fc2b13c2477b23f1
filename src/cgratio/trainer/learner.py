"""The learner: one IMPALA update from a batch of unrolls (Espeholt et al. 2018, section 4.2)."""

from __future__ import annotations

import torch
from torch.nn import functional

from cgratio.trainer.clock import Allowance, StageClock
from cgratio.trainer.config import TrainerConfig
from cgratio.trainer.optimiser import Adam
from cgratio.trainer.unrolls import UnrollBatch, UnrollStore
from cgratio.trainer.vtrace import vtrace
from cgratio.trainer.weights import SharedWeights


class Learner:
    """Takes unrolls, computes V-trace and the loss, updates and publishes the weights."""

    def __init__(
        self,
        *,
        config: TrainerConfig,
        weights: SharedWeights,
        store: UnrollStore,
        allowance: Allowance | None,
    ) -> None:
        self._config = config
        self._weights = weights
        self._store = store
        self._allowance = allowance
        self._device = next(weights.network.parameters()).device
        self._optimiser = Adam(weights.network.parameters(), learning_rate=config.learning_rate)
        self.clock = StageClock("learner", "wait_data")
        self.samples = 0
        self.lag_sum = 0.0  # over samples
        self.lag_max = 0

    @property
    def updates(self) -> int:
        """Updates done so far."""
        return self._weights.version

    def turn(self) -> None:
        """Waits for a batch and learns from it."""
        self.clock.enter("wait_data")
        batch = self._store.take()
        self.clock.enter("learner")
        lags = self._weights.version - batch.versions
        self.update(batch)
        if self._allowance:
            self._allowance.settle()
        self.samples += lags.size
        self.lag_sum += float(lags.sum())
        self.lag_max = max(self.lag_max, int(lags.max()))

    def update(self, batch: UnrollBatch) -> None:
        """One step of gradient descent on policy, value and entropy loss."""
        config = self._config
        unrolls, steps = batch.actions.shape
        observations = batch.observations.to(self._device, non_blocking=True)
        actions, behaviour_logits, rewards, discounts = (
            tensor.to(self._device, non_blocking=True)
            for tensor in (batch.actions, batch.logits, batch.rewards, batch.discounts)
        )
        with torch.autocast(self._device.type, torch.bfloat16, enabled=self._weights.precision == "bf16"):
            logits, values = self._weights.network(observations.flatten(0, 1))
        logits = logits.unflatten(0, (unrolls, steps + 1))[:, :-1]
        values = values.unflatten(0, (unrolls, steps + 1))

        log_policy = functional.log_softmax(logits, dim=-1)
        taken = actions.unsqueeze(-1)
        log_target = log_policy.gather(-1, taken).squeeze(-1)
        log_behaviour = functional.log_softmax(behaviour_logits, dim=-1).gather(-1, taken).squeeze(-1)
        targets = vtrace(
            log_rhos=(log_target - log_behaviour).detach(),
            discounts=discounts,
            rewards=rewards,
            values=values[:, :-1].detach(),
            bootstrap_value=values[:, -1].detach(),
            rho_clip=config.rho_clip,
            c_clip=config.c_clip,
        )
        policy_loss = -(targets.advantages * log_target).mean()
        value_loss = 0.5 * (targets.values - values[:, :-1]).square().mean()
        entropy = -(log_policy.exp() * log_policy).sum(-1).mean()
        loss = policy_loss + config.value_cost * value_loss - config.entropy_cost * entropy

        loss.backward()
        torch.nn.utils.clip_grad_norm_(self._weights.network.parameters(), config.max_gradient_norm)
        with self._weights.writing():
            self._optimiser.step()
