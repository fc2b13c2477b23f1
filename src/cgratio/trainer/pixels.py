"""Images in the layouts that convolutions are fast in."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from cgratio.trainer.config import TrainerError

_MOST_CHANNELS = 4  # of an image whose channels come last


def channels_first(pixels: NDArray[Any]) -> NDArray[np.uint8]:
    """Images as [batch, c, h, w]; those with at most four channels at the end are turned.

    Raises:
        TrainerError: these are no images of bytes.
    """
    if pixels.ndim != 4 or pixels.dtype != np.uint8:
        raise TrainerError(
            f"it reads images of bytes; these observations are {pixels.dtype} of shape {pixels.shape[1:]}; "
            "for vectors there is mlp"
        )
    if pixels.shape[3] <= _MOST_CHANNELS < pixels.shape[1]:
        return pixels.transpose(0, 3, 1, 2)
    return pixels


def blocks(pixels: NDArray[np.uint8], *, block: int = 4) -> NDArray[np.uint8]:
    """Makes a vector of each 4x4 block: [batch, c, h, w] to [batch, h // 4, w // 4, 16 c], uint8.

    Rows and columns beyond a multiple of four are dropped; no 8x8 window with stride 4 reaches them.
    """
    batch, channels, height, width = pixels.shape
    rows, columns = height // block, width // block
    cropped = np.ascontiguousarray(pixels[:, :, : rows * block, : columns * block])
    words = cropped.view(np.uint32)  # four neighbours of a row move as one
    # Two plain transpositions; a single one with four strides takes twice as long.
    by_row = words.reshape(batch, channels, rows, block, columns).swapaxes(1, 2)
    arranged = by_row.reshape(batch, rows, channels * block, columns).swapaxes(2, 3).copy()
    return arranged.view(np.uint8)


def first_convolution(layer: nn.Conv2d, pixels: Tensor) -> Tensor:
    """A convolution over uint8 pixels or blocks, channels last, scaled to [0, 1).

    0..255 is exact in bfloat16, so the scale goes to the weights and not to the pixels; it is a power of two,
    so that it rounds nothing and inference and learner compute the same logits.
    """
    kind = pixels.device.type
    # Straight to the precision in which autocast will convolve; by way of float32 takes three times as long.
    lowered = torch.is_autocast_enabled(kind)
    dtype = torch.get_autocast_dtype(kind) if lowered else layer.weight.dtype
    x = pixels.to(dtype).permute(0, 3, 1, 2)  # a view, channels last
    return functional.conv2d(x, layer.weight * (1 / 256), layer.bias, layer.stride, layer.padding)


def two_by_two(x: Tensor) -> Tensor:
    """Makes a vector of each 2x2 block: [batch, c, h, w] to [batch, 4 c, h // 2, w // 2], channels last."""
    batch, channels, height, width = x.shape
    rows, columns = height // 2, width // 2
    pixels = x.permute(0, 2, 3, 1)[:, : 2 * rows, : 2 * columns]
    by_block = pixels.reshape(batch, rows, 2, columns, 2, channels).transpose(2, 3)
    return by_block.reshape(batch, rows, columns, 4 * channels).permute(0, 3, 1, 2)
