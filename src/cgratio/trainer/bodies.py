"""Network bodies: from observations to features. Each reads what its `arrange` makes of an observation.

Observations pass `arrange` once, on arrival; inference and learner share what it returns.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from typing import Any, Protocol, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from cgratio.trainer.config import TrainerError
from cgratio.trainer.pixels import blocks, channels_first, first_convolution, two_by_two

Shape = tuple[int, ...]


class Body(Protocol):
    """What a network is made on.

    Attributes:
        features: number of features that it returns for each observation.
    """

    features: int

    def __init__(self, shape: Shape) -> None:
        """Makes it for arranged observations of one shape."""

    def __call__(self, observations: Tensor) -> Tensor:
        """Maps arranged observations [batch, *shape] to features [batch, features]."""
        ...

    @staticmethod
    def arrange(observations: NDArray[Any]) -> NDArray[Any]:
        """Rearranges observations [batch, *shape] as they arrive."""
        ...


class _BlockCNN(nn.Module):
    """Two convolutions, 8x8 with stride 4 and 4x4 with stride 2, computed on blocks.

    An 8x8 convolution with stride 4 is a 2x2 convolution with stride 1 once each 4x4 block of pixels is a
    vector (`arrange`): the same sums in another order, but over 64 channels where there were 4, which is what
    matrix units are made for. On a CPU it takes half the time, and the conversion of the pixels a fifth. The
    second is computed so on 2x2 blocks, since gradients through a strided convolution take three times as
    long.
    """

    def __init__(self, shape: Shape, *, network: str, channels: tuple[int, int]) -> None:
        super().__init__()
        height, width, depth = _image(shape, network)
        self.first = nn.Conv2d(depth, channels[0], 2, 1)
        self.second = nn.Conv2d(4 * channels[0], channels[1], 2, 1)
        self._convolved = tuple((size - 1) // 2 - 1 for size in (height, width))

    @staticmethod
    def arrange(pixels: NDArray[Any]) -> NDArray[Any]:
        """See `blocks`."""
        return blocks(channels_first(pixels))

    def convolve(self, pixels: Tensor) -> Tensor:
        """Maps arranged uint8 pixels [batch, rows, columns, 16 c] to [batch, channels, h, w]."""
        x = functional.relu(first_convolution(self.first, pixels), inplace=True)
        return functional.relu(self.second(two_by_two(x)), inplace=True)


class NatureCNN(_BlockCNN):
    """The convolutions of Mnih et al. 2015 (Nature 518, extended data table 1), 512 features."""

    features = 512

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape, network="nature_cnn", channels=(32, 64))
        self.third = nn.Conv2d(64, 64, 3, 1)
        height, width = (size - 2 for size in self._convolved)
        if height < 1 or width < 1:
            raise TrainerError("nature_cnn needs images of at least 36x36 pixels")
        self.dense = nn.Linear(64 * height * width, self.features)
        _initialise(self)

    def forward(self, pixels: Tensor) -> Tensor:
        """Maps arranged uint8 pixels [batch, rows, columns, 16 c] to features [batch, 512]."""
        x = functional.relu(self.third(self.convolve(pixels)), inplace=True)
        return functional.relu(self.dense(x.flatten(1)))


class ShallowCNN(_BlockCNN):
    """The small network of Espeholt et al. 2018 (arXiv 1802.01561, figure 3 left), 256 features."""

    features = 256

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape, network="shallow_cnn", channels=(16, 32))
        height, width = self._convolved
        if height < 1 or width < 1:
            raise TrainerError("shallow_cnn needs images of at least 20x20 pixels")
        self.dense = nn.Linear(32 * height * width, self.features)
        _initialise(self)

    def forward(self, pixels: Tensor) -> Tensor:
        """Maps arranged uint8 pixels [batch, rows, columns, 16 c] to features [batch, 256]."""
        return functional.relu(self.dense(self.convolve(pixels).flatten(1)))


class DeepResNet(nn.Module):
    """The large network of Espeholt et al. 2018 (arXiv 1802.01561, figure 3 right), 256 features.

    Three sections of 16, 32 and 32 channels: a 3x3 convolution, a 3x3 maximum with stride 2, and two residual
    blocks of two 3x3 convolutions.
    """

    features = 256

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        height, width, channels = _image(shape, "deep_resnet")
        sections = []
        for wider in (16, 32, 32):
            sections.append(_Section(channels, wider))
            channels, height, width = wider, (height + 1) // 2, (width + 1) // 2
        self.first, *others = sections
        self.others = nn.ModuleList(others)
        self.dense = nn.Linear(channels * height * width, self.features)
        _initialise(self)

    @staticmethod
    def arrange(pixels: NDArray[Any]) -> NDArray[Any]:
        """Puts channels last: [batch, c, h, w] to [batch, h, w, c]."""
        return np.ascontiguousarray(channels_first(pixels).transpose(0, 2, 3, 1))

    def forward(self, pixels: Tensor) -> Tensor:
        """Maps arranged uint8 pixels [batch, h, w, c] to features [batch, 256]."""
        x = self.first.after(first_convolution(self.first.convolution, pixels))
        for section in self.others:
            x = section(x)
        return functional.relu(self.dense(functional.relu(x, inplace=True).flatten(1)))


class _Section(nn.Module):
    """One section of `DeepResNet`."""

    def __init__(self, channels: int, wider: int) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(channels, wider, 3, padding=1)
        self.residuals = nn.ModuleList(nn.Conv2d(wider, wider, 3, padding=1) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        return self.after(self.convolution(x))

    def after(self, x: Tensor) -> Tensor:
        """What follows the first convolution."""
        x = functional.max_pool2d(x, 3, stride=2, padding=1)
        for first, second in (self.residuals[:2], self.residuals[2:]):
            x = x + second(functional.relu(first(functional.relu(x)), inplace=True))
        return x


class MLP(nn.Module):
    """Two hidden layers of 64 tanh units, for observations that are short vectors."""

    features = 64

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.first = nn.Linear(math.prod(shape), self.features)
        self.second = nn.Linear(self.features, self.features)
        _initialise(self)

    @staticmethod
    def arrange(observations: NDArray[Any]) -> NDArray[Any]:
        """Leaves observations as they are."""
        return observations

    def forward(self, observations: Tensor) -> Tensor:
        """Maps observations [batch, ...] of any dtype to features [batch, 64]."""
        x = observations.flatten(1).to(self.first.weight.dtype)
        return torch.tanh(self.second(torch.tanh(self.first(x))))


BODIES: dict[str, type[Body]] = {
    "nature_cnn": NatureCNN,
    "shallow_cnn": ShallowCNN,
    "deep_resnet": DeepResNet,
    "mlp": MLP,
}


def body_factory(network: str) -> Callable[[Shape], nn.Module]:
    """The factory of a body by its name or import path.

    Raises:
        TrainerError: there is none.
    """
    if network in BODIES:
        return cast("Callable[[Shape], nn.Module]", BODIES[network])
    module_name, colon, name = network.partition(":")
    if not colon:
        raise TrainerError(
            f"network {network!r} does not exist; there are {', '.join(BODIES)}, and package.module:factory "
            "for your own"
        )
    try:
        factory = getattr(importlib.import_module(module_name), name)
    except Exception as error:
        raise TrainerError(f"network {network!r} cannot be imported: {error}") from error
    if not callable(factory):
        raise TrainerError(f"network {network!r} is no factory: it cannot be called with a shape")
    return cast("Callable[[Shape], nn.Module]", factory)


def arrangement(network: str) -> Callable[[NDArray[Any]], NDArray[Any]]:
    """The `arrange` of a body; one that has none takes observations as they are."""
    return getattr(body_factory(network), "arrange", MLP.arrange)


def build_body(network: str, shape: Shape, *, example: Tensor) -> tuple[nn.Module, int]:
    """Builds a body and tells its number of features.

    Args:
        network: name or import path.
        shape: of one arranged observation.
        example: a batch of them, to see what a body returns that does not say it.

    Raises:
        TrainerError: it cannot read these observations.
    """
    factory = body_factory(network)
    try:
        body = factory(shape)
        with torch.no_grad():
            features = body(example) if isinstance(body, nn.Module) else None
    except TrainerError:
        raise
    except Exception as error:
        raise TrainerError(f"network {network!r} cannot read arrays of shape {shape}: {error}") from error
    if not isinstance(body, nn.Module):
        raise TrainerError(f"network {network!r} made a {type(body).__name__}, not a torch.nn.Module")
    if not isinstance(features, Tensor) or features.dim() != 2 or len(features) != len(example):
        raise TrainerError(f"network {network!r} must return features of shape [batch, features]")
    return body, features.shape[1]


def _image(shape: Shape, network: str) -> tuple[int, int, int]:
    if len(shape) != 3:
        raise TrainerError(f"{network} reads images, and these observations have shape {shape}; use mlp")
    height, width, channels = shape
    return height, width, channels


def _initialise(body: nn.Module) -> None:
    """Orthogonal weights of gain sqrt(2), for layers that an activation follows."""
    for layer in body.modules():
        if isinstance(layer, nn.Conv2d | nn.Linear):
            nn.init.orthogonal_(layer.weight, math.sqrt(2))
            assert layer.bias is not None
            nn.init.zeros_(layer.bias)
