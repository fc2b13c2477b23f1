"""Resizing of tensors, by the function of torch that torchvision itself calls."""

from __future__ import annotations

from enum import Enum

from torch import Tensor
from torch.nn import functional


class InterpolationMode(Enum):
    """The one mode that is asked for."""

    BILINEAR = "bilinear"


def resize(
    images: Tensor, size: list[int], *, interpolation: InterpolationMode, antialias: bool = True
) -> Tensor:
    """Resizes float images [..., channels, height, width]."""
    planes = images.reshape(-1, *images.shape[-3:])
    resized = functional.interpolate(planes, size=size, mode=interpolation.value, antialias=antialias)
    return resized.reshape(*images.shape[:-2], *size)
