from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from cgratio.trainer.bodies import BODIES, MLP, DeepResNet, NatureCNN, ShallowCNN, arrangement, build_body
from cgratio.trainer.config import NETWORKS, TrainerError


def as_published(body, pixels):
    """The same network with its layers as the paper writes them: 8x8 filters with stride 4, 4x4 with 2."""
    channels = pixels.shape[1]
    # Each of the 2x2 taps holds a 4x4 block: (out, channel, row, column, tap row, tap column).
    taps = body.first.weight.reshape(32, channels, 4, 4, 2, 2).permute(0, 1, 4, 2, 5, 3)
    filters = taps.reshape(32, channels, 8, 8) / 256
    x = functional.relu(
        functional.conv2d(torch.from_numpy(pixels).float(), filters, body.first.bias, stride=4)
    )
    # Each of its 2x2 taps holds a 2x2 block: (out, row, column, channel, tap row, tap column).
    taps = body.second.weight.reshape(64, 2, 2, 32, 2, 2).permute(0, 3, 4, 1, 5, 2)
    x = functional.relu(functional.conv2d(x, taps.reshape(64, 32, 4, 4), body.second.bias, stride=2))
    x = functional.relu(body.third(x))
    return functional.relu(body.dense(x.flatten(1)))


@settings(max_examples=15)
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


def test_the_shallow_network_has_the_papers_parameters():
    shape = ShallowCNN.arrange(np.zeros((1, 4, 84, 84), np.uint8)).shape[1:]
    body = ShallowCNN(shape)
    counts = sum(weights.numel() for weights in body.parameters())
    assert counts == (4 * 64 * 16 + 16) + (16 * 16 * 32 + 32) + (32 * 81 * 256 + 256)


def test_the_deep_network_has_the_papers_parameters():
    body = DeepResNet((84, 84, 4))
    sections = sum(
        (9 * channels * wider + wider) + 4 * (9 * wider * wider + wider)
        for channels, wider in ((4, 16), (16, 32), (32, 32))
    )
    assert sum(weights.numel() for weights in body.parameters()) == sections + 11 * 11 * 32 * 256 + 256


def test_the_deep_network_reads_pixels_as_parts_of_one():
    torch.manual_seed(0)
    body = DeepResNet((20, 20, 1))
    pixels = np.random.default_rng(0).integers(0, 256, (3, 1, 20, 20), dtype=np.uint8)
    x = torch.from_numpy(pixels).float() / 256
    for section in (body.first, *body.others):
        x = section(x)
    expected = functional.relu(body.dense(functional.relu(x).flatten(1)))
    torch.testing.assert_close(
        body(torch.from_numpy(DeepResNet.arrange(pixels))), expected, rtol=1e-4, atol=1e-5
    )


@pytest.fixture(autouse=True)
def own_parts(monkeypatch):
    """Makes `own_parts` importable, as a user's package would be."""
    monkeypatch.syspath_prepend(Path(__file__).parent)


def test_every_body_with_a_name_is_listed_where_torch_is_not_loaded():
    assert tuple(BODIES) == NETWORKS


def test_a_body_of_ones_own_comes_by_its_import_path():
    body, features = build_body("own_parts:Own", (4,), example=torch.zeros(2, 4))
    assert type(body).__name__ == "Own"
    assert features == 7
    assert arrangement("own_parts:Own")(np.ones(3)).tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("network", "message"),
    [
        ("resnet", "there are nature_cnn, shallow_cnn, deep_resnet, mlp, and package.module:factory"),
        ("no_such_module:Body", "cannot be imported: No module named 'no_such_module'"),
        ("own_parts:Missing", "cannot be imported"),
        ("own_parts:torch", "is no factory"),
        ("own_parts:no_body", "made a tuple, not a torch.nn.Module"),
        ("own_parts:Wrong", "must return features of shape"),
        ("nature_cnn", "cannot read arrays of shape|reads images"),
    ],
)
def test_a_body_that_cannot_be_is_refused_in_words(network, message):
    with pytest.raises(TrainerError, match=message):
        build_body(network, (4,), example=torch.zeros(2, 4))


@pytest.mark.parametrize("network", ["nature_cnn", "shallow_cnn", "deep_resnet"])
def test_channels_may_come_first_or_last(network):
    pixels = np.random.default_rng(0).integers(0, 256, (2, 3, 48, 40), dtype=np.uint8)
    arrange = arrangement(network)
    np.testing.assert_array_equal(arrange(pixels), arrange(pixels.transpose(0, 2, 3, 1)))


@pytest.mark.parametrize("observations", [np.zeros((1, 4, 84, 84), np.float32), np.zeros((1, 7), np.uint8)])
def test_what_are_no_images_of_bytes_is_refused(observations):
    with pytest.raises(TrainerError, match="reads images of bytes"):
        arrangement("deep_resnet")(observations)
