"""IMPALA (Espeholt et al. 2018, arXiv 1802.01561): an actor-critic corrected for its lag by V-trace."""

from __future__ import annotations

import torch
from torch.nn import functional

from cgratio.trainer.algorithm import Choice, Loss, context_of
from cgratio.trainer.config import TrainerConfig
from cgratio.trainer.networks import ActorCritic, Heads, Outputs, PolicyNetwork
from cgratio.trainer.unroll_queue import UnrollQueue
from cgratio.trainer.unrolls import UnrollBatch, UnrollLayout, UnrollMemory
from cgratio.trainer.vtrace import vtrace


class Impala:
    """See `algorithm.Algorithm`."""

    heads: type[Heads] = ActorCritic
    clips_atari = True

    def __init__(self, config: TrainerConfig) -> None:
        self._config = config
        self.layout = UnrollLayout(length=config.unroll_length, logits=True, state_size=2 * config.lstm_units)
        self.slots = UnrollQueue.slots(actors=config.actors, batch=config.learner_batch)

    def consumer(self, memory: UnrollMemory) -> UnrollQueue:
        """Each unroll is learned from once."""
        return UnrollQueue(memory, batch=self._config.learner_batch, taken=self._config.actors)

    def choose(self, outputs: Outputs, *, random: torch.Generator, **_: object) -> Choice:
        """Draws actions from the softmax of the logits."""
        logits = outputs.choices[:, 0]
        # Gumbel's trick: the argmax of logits plus Gumbel noise is a sample of the softmax.
        noise = torch.empty_like(logits).exponential_(generator=random).log_().neg_()
        actions = (logits + noise).argmax(dim=-1).to(torch.int32)
        return Choice(actions=actions, values=outputs.values[:, 0], logits=logits)

    def loss(self, network: PolicyNetwork, batch: UnrollBatch) -> Loss:
        """Policy, value and entropy loss (section 4.2), each a mean over the transitions."""
        config = self._config
        assert batch.logits is not None
        outputs = network(batch.observations, context_of(batch, batch.states))
        log_policy = functional.log_softmax(outputs.choices[:, :-1], dim=-1)
        values = outputs.values
        taken = batch.actions.unsqueeze(-1)
        log_target = log_policy.gather(-1, taken).squeeze(-1)
        log_behaviour = functional.log_softmax(batch.logits, dim=-1).gather(-1, taken).squeeze(-1)
        targets = vtrace(
            log_rhos=(log_target - log_behaviour).detach(),
            discounts=batch.discounts,
            rewards=batch.rewards,
            values=values[:, :-1].detach(),
            bootstrap_value=values[:, -1].detach(),
            rho_clip=config.rho_clip,
            c_clip=config.c_clip,
        )
        policy_loss = -(targets.advantages * log_target).mean()
        value_loss = 0.5 * (targets.values - values[:, :-1]).square().mean()
        entropy = -(log_policy.exp() * log_policy).sum(-1).mean()
        return Loss(total=policy_loss + config.value_cost * value_loss - config.entropy_cost * entropy)

    def updated(self, network: PolicyNetwork, *, updates: int) -> None:
        """Nothing follows from it."""
