"""Policy networks: a body in the device's fast precision, two small heads in float32."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from cgratio.trainer.config import TrainerConfig, TrainerError
from cgratio.trainer.environments import EnvironmentFacts


class ActorCritic(nn.Module):
    """A policy and a value over one shared body.

    Observations pass the body's `arrange` once, on arrival; inference and learner share what it returns.

    The heads stay in float32: behaviour and target probabilities are compared by V-trace, and bfloat16
    logits would put its rounding into every importance weight.
    """

    def __init__(self, *, body: NatureCNN | MLP, actions: int) -> None:
        super().__init__()
        self.body = body
        self.policy = nn.Linear(body.features, actions)
        self.value = nn.Linear(body.features, 1)
        nn.init.orthogonal_(self.policy.weight, 0.01)
        nn.init.orthogonal_(self.value.weight, 1.0)
        nn.init.zeros_(self.policy.bias)
        nn.init.zeros_(self.value.bias)

    def forward(self, observation: Tensor) -> tuple[Tensor, Tensor]:
        """Maps arranged observations [batch, ...] to logits [batch, actions] and values [batch], float32."""
        features = self.body(observation).float()
        with torch.autocast(observation.device.type, enabled=False):
            return self.policy(features), self.value(features).squeeze(-1)


class NatureCNN(nn.Module):
    """The convolutions of Mnih et al. 2015 (Nature 518, extended data table 1), 512 features.

    Its first convolution, 8x8 with stride 4, is computed as the 2x2 convolution with stride 1 that it equals
    once each 4x4 block of pixels is a vector (`arrange`): the same sums in another order, but over 64
    channels where there were 4, which is what matrix units are made for. On a CPU with AMX it takes half the
    time, and the conversion of the pixels a fifth.
    """

    features = 512
    _BLOCK = 4

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__()
        height, width, channels = shape
        self.first = nn.Conv2d(channels, 32, 2, 1)
        self.second = nn.Conv2d(32, 64, 4, 2)
        self.third = nn.Conv2d(64, 64, 3, 1)
        for kernel, stride in ((2, 1), (4, 2), (3, 1)):
            height, width = (height - kernel) // stride + 1, (width - kernel) // stride + 1
        if height < 1 or width < 1:
            raise TrainerError("nature_cnn needs images of at least 36x36 pixels")
        self.dense = nn.Linear(64 * height * width, self.features)
        _initialise(self.first, self.second, self.third, self.dense)

    @classmethod
    def arrange(cls, pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Makes a vector of each 4x4 block: [batch, c, h, w] to [batch, h // 4, w // 4, 16 c], uint8.

        Rows and columns beyond a multiple of four are dropped; no 8x8 window with stride 4 reaches them.
        """
        batch, channels, height, width = pixels.shape
        rows, columns, block = height // cls._BLOCK, width // cls._BLOCK, cls._BLOCK
        cropped = np.ascontiguousarray(pixels[:, :, : rows * block, : columns * block])
        words = cropped.view(np.uint32)  # four neighbours of a row move as one
        # Two plain transpositions; a single one with four strides takes twice as long.
        by_row = words.reshape(batch, channels, rows, block, columns).swapaxes(1, 2)
        blocks = by_row.reshape(batch, rows, channels * block, columns).swapaxes(2, 3).copy()
        return blocks.view(np.uint8)

    def forward(self, blocks: Tensor) -> Tensor:
        """Maps arranged uint8 pixels [batch, rows, columns, 16 c] to features [batch, 512]."""
        x = blocks.to(self.first.weight.dtype).permute(0, 3, 1, 2)  # a view, channels last
        # 0..255 is exact in bfloat16, so the scale goes to the weights and not to the pixels; it is a power
        # of two, so that it rounds nothing and inference and learner compute the same logits.
        x = functional.conv2d(x, self.first.weight * (1 / 256), self.first.bias)
        x = functional.relu(x, inplace=True)
        x = functional.relu(self.second(x), inplace=True)
        x = functional.relu(self.third(x), inplace=True)
        return functional.relu(self.dense(x.flatten(1)))


class MLP(nn.Module):
    """Two hidden layers of 64 tanh units, for observations that are short vectors."""

    features = 64

    @staticmethod
    def arrange(observations: NDArray[Any]) -> NDArray[Any]:
        """Leaves observations as they are."""
        return observations

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


NETWORKS: dict[str, type[NatureCNN | MLP]] = {"nature_cnn": NatureCNN, "mlp": MLP}


def arranged(config: TrainerConfig, facts: EnvironmentFacts) -> EnvironmentFacts:
    """The facts of observations as the network's `arrange` returns them.

    Raises:
        TrainerError: the network does not exist or cannot read these observations.
    """
    if config.network not in NETWORKS:
        raise TrainerError(f"network {config.network!r} does not exist; there are {', '.join(NETWORKS)}")
    if config.network == "nature_cnn" and len(facts.shape) != 3:
        raise TrainerError(
            f"nature_cnn reads images; {config.environment} observes arrays of shape {facts.shape}, use mlp"
        )
    example = np.zeros((1, *facts.shape), facts.dtype)
    return replace(facts, shape=NETWORKS[config.network].arrange(example).shape[1:])


def build(config: TrainerConfig, facts: EnvironmentFacts) -> ActorCritic:
    """Builds the network of a run, with weights drawn from the run's seed.

    Raises:
        TrainerError: the network does not exist or cannot read these observations.
    """
    torch.manual_seed(config.seed)
    body = NETWORKS[config.network](arranged(config, facts).shape)
    network = ActorCritic(body=body, actions=facts.actions)
    network.to(torch.device(config.device))
    for convolution in (module for module in network.modules() if isinstance(module, nn.Conv2d)):
        convolution.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # missing in its stub
    return network
