import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from cgratio.trainer.networks import MLP, NatureCNN


def as_published(body, pixels):
    """The same network with its first layer as the paper writes it: 8x8 filters with stride 4."""
    channels = pixels.shape[1]
    # Each of the 2x2 taps holds a 4x4 block: (out, channel, row, column, tap row, tap column).
    taps = body.first.weight.reshape(32, channels, 4, 4, 2, 2).permute(0, 1, 4, 2, 5, 3)
    filters = taps.reshape(32, channels, 8, 8) / 256
    x = functional.relu(
        functional.conv2d(torch.from_numpy(pixels).float(), filters, body.first.bias, stride=4)
    )
    x = functional.relu(body.third(functional.relu(body.second(x))))
    return functional.relu(body.dense(x.flatten(1)))


@settings(deadline=None, max_examples=15)
@given(
    height=st.integers(36, 90), width=st.integers(36, 90), channels=st.integers(1, 4), seed=st.integers(0, 99)
)
def test_the_arranged_network_is_the_published_one(height, width, channels, seed):
    torch.manual_seed(seed)
    pixels = np.random.default_rng(seed).integers(0, 256, (2, channels, height, width), dtype=np.uint8)
    arranged = NatureCNN.arrange(pixels)
    body = NatureCNN(arranged.shape[1:])
    torch.testing.assert_close(
        body(torch.from_numpy(arranged)), as_published(body, pixels), rtol=1e-4, atol=1e-4
    )


def test_parameters_are_as_many_as_the_papers_network_has():
    body = NatureCNN(NatureCNN.arrange(np.zeros((1, 4, 84, 84), np.uint8)).shape[1:])
    assert sum(weights.numel() for weights in body.parameters()) == 8_224 + 32_832 + 36_928 + 1_606_144


def test_arranging_leaves_the_original_and_its_values_alone():
    pixels = np.arange(2 * 4 * 8 * 8, dtype=np.uint16).astype(np.uint8).reshape(2, 4, 8, 8)
    before = pixels.copy()
    arranged = NatureCNN.arrange(pixels)
    assert arranged.shape == (2, 2, 2, 64)
    assert (pixels == before).all()
    for channel in range(4):
        for row in range(8):
            for column in range(8):
                place = channel * 16 + row % 4 * 4 + column % 4
                assert (arranged[:, row // 4, column // 4, place] == pixels[:, channel, row, column]).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
def test_an_mlp_reads_vectors_of_any_type(dtype):
    body = MLP((3, 2))
    assert body(torch.from_numpy(np.ones((5, 3, 2), dtype))).shape == (5, 64)
