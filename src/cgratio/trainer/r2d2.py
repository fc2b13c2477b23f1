"""R2D2 (Kapturowski et al. 2019, ICLR): recurrent Q-learning from a prioritised replay of sequences.

A sequence is `burn_in` steps that only warm up the core's stored state, T steps that teach, and the n - 1
after them that their returns need. Sequences follow each other without a gap, so each transition teaches in
exactly one; episodes may end within one, where the core starts anew and returns stop.
"""

from __future__ import annotations

import copy

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cgratio.trainer.algorithm import Choice, Loss, context_of
from cgratio.trainer.config import TrainerConfig
from cgratio.trainer.networks import Dueling, Heads, Outputs, PolicyNetwork
from cgratio.trainer.replay import Replay
from cgratio.trainer.unrolls import UnrollBatch, UnrollLayout, UnrollMemory

BASE_EPSILON, EPSILON_SPREAD = 0.4, 7.0
"""Actor i of N explores with 0.4 ** (1 + 7 i / (N - 1)) (Horgan et al. 2018, section 4.1)."""

PRIORITY_MIX = 0.9
"""Weight of a sequence's highest error against its mean (Kapturowski et al. 2019, section 2.3)."""

_RESCALING = 1e-3


class R2D2:
    """See `algorithm.Algorithm`."""

    heads: type[Heads] = Dueling
    clips_atari = False

    def __init__(self, config: TrainerConfig) -> None:
        self._config = config
        self._burn_in = config.burn_in if config.lstm_units else 0
        overlap = self._burn_in + config.n_step - 1
        self.layout = UnrollLayout(
            length=config.unroll_length + overlap, overlap=overlap, state_size=2 * config.lstm_units
        )
        self.slots = Replay.slots(actors=config.actors, sequences=config.replay_sequences)
        self._epsilons = torch.from_numpy(epsilons(config.actors))
        self._target: PolicyNetwork | None = None

    def consumer(self, memory: UnrollMemory) -> Replay:
        """Unrolls are remembered, and drawn by how much they surprised."""
        config = self._config
        return Replay(
            memory,
            batch=config.learner_batch,
            taken=config.actors,
            ratio=config.replay_ratio,
            least=min(4 * config.learner_batch, config.replay_sequences // 2),
            seed=config.seed,
        )

    def choose(self, outputs: Outputs, *, actors: NDArray[np.int32], random: torch.Generator) -> Choice:
        """The best action, or any with the actor's own probability."""
        values = outputs.choices[:, 0]
        device = values.device
        best = values.argmax(dim=-1)
        anything = torch.randint(0, values.shape[1], best.shape, generator=random, device=device)
        explore = torch.rand(best.shape, generator=random, device=device) < self._epsilons[actors].to(device)
        actions = torch.where(explore, anything, best).to(torch.int32)
        return Choice(actions=actions, values=unscale(outputs.values[:, 0]))

    def loss(self, network: PolicyNetwork, batch: UnrollBatch) -> Loss:
        """Half the squared error of rescaled n-step double-Q targets, weighted by importance."""
        assert self._target is not None
        assert batch.weights is not None
        taught, steps = self._burn_in, self._config.unroll_length
        values = self._values(network, batch)
        with torch.no_grad():
            judged = self._values(self._target, batch)
            best = values.argmax(-1, keepdim=True)
            bootstraps = unscale(judged.gather(-1, best).squeeze(-1))
            targets = rescale(
                n_step_returns(
                    batch.rewards[:, taught:],
                    batch.discounts[:, taught:],
                    bootstraps,
                    steps=steps,
                    n=self._config.n_step,
                )
            )
        actions = batch.actions[:, taught : taught + steps].unsqueeze(-1)
        errors = targets - values[:, :steps].gather(-1, actions).squeeze(-1)
        total = 0.5 * (errors.square().mean(1) * batch.weights).mean()
        sizes = errors.detach().abs()
        priorities = PRIORITY_MIX * sizes.amax(1) + (1 - PRIORITY_MIX) * sizes.mean(1)
        return Loss(total=total, priorities=priorities.cpu().numpy())

    def updated(self, network: PolicyNetwork, *, updates: int) -> None:
        """Copies the network to the target every so many updates."""
        if updates % self._config.target_period == 0:
            self._target = copy.deepcopy(network).requires_grad_(requires_grad=False)

    def _values(self, network: PolicyNetwork, batch: UnrollBatch) -> Tensor:
        """Action values from the first step that teaches on, [B, T + n, actions]."""
        start, state = self._burn_in, batch.states
        if start:
            with torch.no_grad():
                warm = context_of(batch, state, stop=start)
                state = network(batch.observations[:, :start], warm).state
        context = context_of(batch, state, start=start)
        outputs: Outputs = network(batch.observations[:, start:], context)
        return outputs.choices


def epsilons(actors: int) -> NDArray[np.float32]:
    """How often each actor explores, [actors]."""
    place = np.arange(actors) / max(1, actors - 1)
    return (BASE_EPSILON ** (1 + EPSILON_SPREAD * place)).astype(np.float32)


def rescale(x: Tensor) -> Tensor:
    """h(x) = sign(x) (sqrt(|x| + 1) - 1) + 0.001 x (Pohlen et al. 2018, proposition A.2)."""
    return x.sign() * ((x.abs() + 1).sqrt() - 1) + _RESCALING * x


def unscale(x: Tensor) -> Tensor:
    """The inverse of `rescale`."""
    root = (1 + 4 * _RESCALING * (x.abs() + 1 + _RESCALING)).sqrt()
    return x.sign() * (((root - 1) / (2 * _RESCALING)).square() - 1)


def n_step_returns(rewards: Tensor, discounts: Tensor, values: Tensor, *, steps: int, n: int) -> Tensor:
    """Returns of n rewards and the value after them; they stop where an episode does.

    Args:
        rewards: [B, steps + n - 1].
        discounts: the same, 0 where the episode ended.
        values: of the state before each reward and after the last, [B, steps + n].
        steps: how many returns.
        n: rewards in each.

    Returns:
        [B, steps].
    """
    returns = values[:, n : n + steps]
    for k in reversed(range(n)):
        returns = rewards[:, k : k + steps] + discounts[:, k : k + steps] * returns
    return returns
