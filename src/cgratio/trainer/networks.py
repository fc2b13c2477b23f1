"""Policy networks: a body in the device's fast precision, two small heads in float32."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from cgratio.trainer.config import TrainerConfig, TrainerError
from cgratio.trainer.environments import EnvironmentFacts


class ActorCritic(nn.Module):
    """A policy and a value over one shared body.

    The heads stay in float32: behaviour and target probabilities are compared by V-trace, and bfloat16
    logits would put its rounding into every importance weight.
    """

    def __init__(self, *, body: nn.Module, features: int, actions: int) -> None:
        super().__init__()
        self.body = body
        self.policy = nn.Linear(features, actions)
        self.value = nn.Linear(features, 1)
        nn.init.orthogonal_(self.policy.weight, 0.01)
        nn.init.orthogonal_(self.value.weight, 1.0)
        nn.init.zeros_(self.policy.bias)
        nn.init.zeros_(self.value.bias)

    def forward(self, observation: Tensor) -> tuple[Tensor, Tensor]:
        """Maps observations [batch, ...] to logits [batch, actions] and values [batch], float32."""
        features = self.body(observation).float()
        with torch.autocast(observation.device.type, enabled=False):
            return self.policy(features), self.value(features).squeeze(-1)


class NatureCNN(nn.Module):
    """The convolutions of Mnih et al. 2015 (Nature 518, extended data table 1), 512 features."""

    features = 512

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__()
        channels, height, width = shape
        self.first = nn.Conv2d(channels, 32, 8, 4)
        self.second = nn.Conv2d(32, 64, 4, 2)
        self.third = nn.Conv2d(64, 64, 3, 1)
        for kernel, stride in ((8, 4), (4, 2), (3, 1)):
            height, width = (height - kernel) // stride + 1, (width - kernel) // stride + 1
        if height < 1 or width < 1:
            raise TrainerError(f"nature_cnn needs images of at least 36x36; this environment gives {shape}")
        self.dense = nn.Linear(64 * height * width, self.features)
        _initialise(self.first, self.second, self.third, self.dense)

    def forward(self, pixels: Tensor) -> Tensor:
        """Maps uint8 pixels [batch, channels, height, width] to features [batch, 512]."""
        # 0..255 is exact in bfloat16, so the scale goes to the few weights and not to the many pixels; it is a
        # power of two, so that it rounds nothing and inference and learner compute the same logits.
        x = pixels.to(self.first.weight.dtype, memory_format=torch.channels_last)
        x = functional.conv2d(x, self.first.weight * (1 / 256), self.first.bias, self.first.stride)
        x = functional.relu(x, inplace=True)
        x = functional.relu(self.second(x), inplace=True)
        x = functional.relu(self.third(x), inplace=True)
        return functional.relu(self.dense(x.flatten(1)))


class MLP(nn.Module):
    """Two hidden layers of 64 tanh units, for observations that are short vectors."""

    features = 64

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.first = nn.Linear(math.prod(shape), self.features)
        self.second = nn.Linear(self.features, self.features)
        _initialise(self.first, self.second)

    def forward(self, observation: Tensor) -> Tensor:
        """Maps observations [batch, ...] of any dtype to features [batch, 64]."""
        x = observation.flatten(1).to(self.first.weight.dtype)
        return torch.tanh(self.second(torch.tanh(self.first(x))))


def _initialise(*layers: nn.Conv2d | nn.Linear) -> None:
    """Orthogonal weights of gain sqrt(2), for layers that an activation follows."""
    for layer in layers:
        nn.init.orthogonal_(layer.weight, math.sqrt(2))
        assert layer.bias is not None
        nn.init.zeros_(layer.bias)


NETWORKS: dict[str, Callable[[tuple[int, ...]], NatureCNN | MLP]] = {"nature_cnn": NatureCNN, "mlp": MLP}


def build(config: TrainerConfig, facts: EnvironmentFacts) -> ActorCritic:
    """Builds the network of a run, with weights drawn from the run's seed.

    Raises:
        TrainerError: the network does not exist or cannot read these observations.
    """
    if config.network not in NETWORKS:
        raise TrainerError(f"network {config.network!r} does not exist; there are {', '.join(NETWORKS)}")
    if config.network == "nature_cnn" and len(facts.shape) != 3:
        raise TrainerError(
            f"nature_cnn reads images; {config.environment} observes arrays of shape {facts.shape}, use mlp"
        )
    torch.manual_seed(config.seed)
    body = NETWORKS[config.network](facts.shape)
    network = ActorCritic(body=body, features=body.features, actions=facts.actions)
    network.to(torch.device(config.device))
    for convolution in (module for module in network.modules() if isinstance(module, nn.Conv2d)):
        convolution.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # missing in its stub
    return network
