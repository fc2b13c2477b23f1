"""The weights that the learner writes and inference reads."""

from __future__ import annotations

import copy
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain

import torch

from cgratio.trainer.networks import Context, Outputs, PolicyNetwork

_CLEARLY_FASTER = 1.2  # so that noise does not choose another precision in the next trial of the same point


class SharedWeights:
    """The learner's float32 weights, their version, and the lock between writer and reader.

    Attributes:
        network: what the learner trains.
        precision: in which the learner computes body and core, `fp32` or `bf16`.
        version: learner updates so far.
    """

    def __init__(self, network: PolicyNetwork, *, precision: str) -> None:
        self.network = network
        self.precision = precision
        self.version = 0
        self._lock = threading.Lock()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Held by the learner while it changes the weights; counts one update."""
        with self._lock:
            yield
            _finish_copies(self.network)
            self.version += 1

    def refresh(self, twin: PolicyNetwork, version: int) -> int:
        """Copies newer weights into an inference network, if there are any; returns their version."""
        if version == self.version:
            return version
        with self._lock:
            for mine, newest in zip(_tensors(twin), _tensors(self.network), strict=True):
                mine.copy_(newest)
            _finish_copies(twin)
            return self.version


def _tensors(network: PolicyNetwork) -> Iterator[torch.Tensor]:
    return chain(network.parameters(), network.buffers())


def _finish_copies(network: PolicyNetwork) -> None:
    # Reader and writer use streams of their own on a GPU; the lock orders them only once a stream is done.
    if next(network.parameters()).is_cuda:
        torch.cuda.current_stream().synchronize()


class InferenceNetwork:
    """A network's copy for inference, its fast parts in a precision of its own.

    Attributes:
        network: the copy.
        state_size: see `PolicyNetwork`.
    """

    def __init__(self, network: PolicyNetwork, *, precision: str, device: torch.device) -> None:
        self.network = copy.deepcopy(network).requires_grad_(requires_grad=False).eval().to(device)
        self.state_size = network.state_size
        self._device = device
        self._lowered = precision == "bf16"
        if self._lowered:
            for part in self.network.fast_parts():
                part.to(torch.bfloat16)

    def __call__(self, observations: torch.Tensor, context: Context | None) -> Outputs:
        """See `PolicyNetwork.forward`."""
        # Autocast too: a body of one's own may compute in float32 before its first layer.
        with torch.autocast(self._device.type, torch.bfloat16, enabled=self._lowered):
            outputs: Outputs = self.network(observations, context)
        return outputs


def choose_precision(
    wanted: str, network: PolicyNetwork, observations: torch.Tensor, *, device: torch.device
) -> str:
    """Decides the precision on a device by timing inference there, never by its name.

    Args:
        wanted: `fp32` or `bf16` are taken as they are; `auto` measures.
        network: of the run.
        observations: a batch, [batch, 1, ...].
        device: to compute on.
    """
    if wanted != "auto":
        return wanted
    seconds = {}
    for precision in ("fp32", "bf16"):
        twin = InferenceNetwork(network, precision=precision, device=device)
        seconds[precision] = _inference_seconds(twin, observations.to(device))
    return "bf16" if seconds["fp32"] > _CLEARLY_FASTER * seconds["bf16"] else "fp32"


@torch.inference_mode()
def _inference_seconds(network: InferenceNetwork, observations: torch.Tensor) -> float:
    """The best of a few inferences, the first left out since it also sets up kernels."""
    best = float("inf")
    context = blank_context(network.network, rows=len(observations), device=observations.device)
    for turn in range(6):
        start = time.perf_counter()
        network(observations, context)
        _finish_copies(network.network)
        if turn:
            best = min(best, time.perf_counter() - start)
    return best


def blank_context(network: PolicyNetwork, *, rows: int, device: torch.device) -> Context | None:
    """The context of actors that have done nothing yet, one step; None without a core."""
    if not network.state_size:
        return None
    return Context(
        torch.zeros((rows, 1), dtype=torch.int64, device=device),
        torch.zeros((rows, 1), device=device),
        torch.ones((rows, 1), dtype=torch.bool, device=device),
        torch.zeros((rows, network.state_size), device=device),
    )
