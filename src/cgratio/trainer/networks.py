"""Policy networks: body and recurrent core in the device's fast precision, small heads in float32.

The heads stay in float32: behaviour and target probabilities are compared by V-trace, and bfloat16 logits
would put its rounding into every importance weight.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from cgratio.trainer.bodies import arrangement, build_body
from cgratio.trainer.config import TrainerConfig, TrainerError
from cgratio.trainer.environments import EnvironmentFacts

CPU = torch.device("cpu")

_EXAMPLES = 2


class Context(NamedTuple):
    """What a recurrent core sees besides features; B sequences of T steps.

    Attributes:
        actions: the one before each step, [B, T], int64. rewards: the one it brought, [B, T].
        first: whether a step is the first of its episode, [B, T]: nothing came before it.
        state: of the core before the first step, [B, state].
    """

    actions: Tensor
    rewards: Tensor
    first: Tensor
    state: Tensor


class Outputs(NamedTuple):
    """What a network says; float32.

    Attributes:
        choices: one number for each action, [B, T, actions]: logits, or action values.
        values: of the observations, [B, T].
        state: of the core after the last step, [B, state]; None without one.
    """

    choices: Tensor
    values: Tensor
    state: Tensor | None


class PolicyNetwork(nn.Module):
    """Body, core and heads.

    Attributes:
        state_size: numbers in the core's state; 0 without one.
    """

    def __init__(
        self, *, body: nn.Module, features: int, units: int, heads: type[Heads], actions: int
    ) -> None:
        super().__init__()
        self.body = body
        self.core = LSTM(features, actions=actions, units=units) if units else None
        self.heads = heads(units or features, actions)
        self.state_size = 2 * units

    def forward(self, observations: Tensor, context: Context | None = None) -> Outputs:
        """Maps arranged observations [B, T, ...] to outputs; the context is for the core."""
        leading = observations.shape[:2]
        features = self.body(observations.flatten(0, 1)).unflatten(0, leading)
        state = None
        if self.core is not None:
            assert context is not None
            features, state = self.core(features, context)
        with torch.autocast(observations.device.type, enabled=False):
            choices, values = self.heads(features.float())
        return Outputs(choices, values, state)

    def fast_parts(self) -> list[nn.Module]:
        """What runs in the device's fast precision."""
        return [self.body] if self.core is None else [self.body, self.core]


class LSTM(nn.Module):
    """Hochreiter and Schmidhuber 1997 with a forget gate, as `torch.nn.LSTMCell`, over whole sequences.

    Its inputs are the features, the last action (one-hot) and the last reward, as in Espeholt et al. 2018 and
    Kapturowski et al. 2019. State is float32 whatever the weights are, and starts from nothing at every first
    step of an episode. What the gates take from the inputs is computed for all steps at once.
    """

    def __init__(self, features: int, *, actions: int, units: int) -> None:
        super().__init__()
        self.units = units
        self.actions = actions
        self.inputs = nn.Linear(features + actions + 1, 4 * units)
        self.recurrent = nn.Linear(units, 4 * units, bias=False)
        for weight in (self.inputs.weight, self.recurrent.weight):
            for gate in weight.data.chunk(4):
                nn.init.orthogonal_(gate)
        nn.init.zeros_(self.inputs.bias)
        self.inputs.bias.data[units : 2 * units] = 1.0  # remember at first (Jozefowicz et al. 2015)

    def forward(self, features: Tensor, context: Context) -> tuple[Tensor, Tensor]:
        """Maps features [B, T, features] to hidden states [B, T, units] and the last state [B, 2 units]."""
        begins = context.first.unsqueeze(-1)
        last = functional.one_hot(context.actions, self.actions) * ~begins
        reward = context.rewards.unsqueeze(-1) * ~begins
        dtype = self.inputs.weight.dtype
        seen = torch.cat([features.to(dtype), last.to(dtype), reward.to(dtype)], dim=-1)
        gates_of_inputs = self.inputs(seen).float()
        hidden, cell = context.state.chunk(2, dim=-1)
        outputs = []
        for step, first in zip(gates_of_inputs.unbind(1), begins.unbind(1), strict=True):
            hidden, cell = hidden * ~first, cell * ~first
            gates = step + self.recurrent(hidden.to(dtype)).float()
            enter, forget, candidate, leave = gates.chunk(4, dim=-1)
            cell = forget.sigmoid() * cell + enter.sigmoid() * candidate.tanh()
            hidden = leave.sigmoid() * cell.tanh()
            outputs.append(hidden)
        return torch.stack(outputs, dim=1), torch.cat([hidden, cell], dim=-1)


class Heads(nn.Module):
    """From features [..., features] to choices [..., actions] and values [...]; a subclass says how."""

    def __init__(self, features: int, actions: int) -> None:
        super().__init__()
        self.first = nn.Linear(features, actions)
        self.value = nn.Linear(features, 1)
        nn.init.orthogonal_(self.first.weight, 0.01)
        nn.init.orthogonal_(self.value.weight, 1.0)
        nn.init.zeros_(self.first.bias)
        nn.init.zeros_(self.value.bias)


class ActorCritic(Heads):
    """Logits of a policy, and its value."""

    def forward(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """See `Heads`."""
        return self.first(features), self.value(features).squeeze(-1)


class Dueling(Heads):
    """Action values as a value and advantages about their mean (Wang et al. 2016, equation 9)."""

    def forward(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """See `Heads`; the value is that of the best action."""
        advantages = self.first(features)
        choices = self.value(features) + advantages - advantages.mean(-1, keepdim=True)
        return choices, choices.amax(-1)


def arranged(config: TrainerConfig, facts: EnvironmentFacts) -> EnvironmentFacts:
    """The facts of observations as the network's `arrange` returns them.

    Raises:
        TrainerError: the network does not exist or cannot read these observations.
    """
    example = np.zeros((1, *facts.shape), facts.dtype)
    try:
        result = arrangement(config.network)(example)
    except TrainerError as error:
        raise TrainerError(f"{config.network} cannot read {config.environment}: {error}") from error
    except Exception as error:
        raise TrainerError(
            f"{config.network} reads other observations than those of {config.environment}, arrays of shape "
            f"{facts.shape}; for vectors there is mlp"
        ) from error
    return replace(facts, shape=result.shape[1:], dtype=result.dtype)


def build(
    config: TrainerConfig, facts: EnvironmentFacts, *, heads: type[Heads], device: torch.device = CPU
) -> PolicyNetwork:
    """Builds the network of a run, with weights drawn from the run's seed.

    Args:
        config: of the run.
        facts: of the environment, as it is.
        heads: what the algorithm needs.
        device: to put it on.

    Raises:
        TrainerError: the network does not exist or cannot read these observations.
    """
    torch.manual_seed(config.seed)
    seen = arranged(config, facts)
    example = torch.from_numpy(np.zeros((_EXAMPLES, *seen.shape), seen.dtype))
    body, features = build_body(config.network, seen.shape, example=example)
    network = PolicyNetwork(
        body=body, features=features, units=config.lstm_units, heads=heads, actions=facts.actions
    )
    network.to(device)
    for convolution in (module for module in network.modules() if isinstance(module, nn.Conv2d)):
        convolution.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # missing in its stub
    return network
