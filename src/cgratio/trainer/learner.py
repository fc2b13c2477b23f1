"""The learner: takes batches of unrolls, descends on the algorithm's loss, publishes the weights."""

from __future__ import annotations

import threading
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from cgratio.trainer.algorithm import Algorithm
from cgratio.trainer.clock import Allowance, StageClock
from cgratio.trainer.config import TrainerConfig
from cgratio.trainer.optimiser import Adam
from cgratio.trainer.unrolls import Consumer, UnrollBatch
from cgratio.trainer.weights import SharedWeights


class Update(Protocol):
    """What one update does."""

    @property
    def version(self) -> int:
        """Updates so far."""
        ...

    def __call__(self, batch: UnrollBatch, /) -> NDArray[np.float32] | None:
        """Learns from a batch; returns the priorities of its unrolls, if it knows any."""
        ...


class GradientStep:
    """One step of gradient descent."""

    def __init__(self, *, config: TrainerConfig, algorithm: Algorithm, weights: SharedWeights) -> None:
        self._config = config
        self._algorithm = algorithm
        self._weights = weights
        self._device = next(weights.network.parameters()).device
        self._optimiser = Adam(weights.network.parameters(), learning_rate=config.learning_rate)
        algorithm.updated(weights.network, updates=0)

    @property
    def version(self) -> int:
        """See `Update`."""
        return self._weights.version

    def __call__(self, batch: UnrollBatch, /) -> NDArray[np.float32] | None:
        """See `Update`."""
        network = self._weights.network
        with torch.autocast(self._device.type, torch.bfloat16, enabled=self._weights.precision == "bf16"):
            loss = self._algorithm.loss(network, batch.to(self._device))
        loss.total.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(network.parameters(), self._config.max_gradient_norm)
        with self._weights.writing():
            self._optimiser.step()
        self._algorithm.updated(network, updates=self._weights.version)
        return loss.priorities


class Learner:
    """The loop around the updates, and what it counts.

    Attributes:
        samples: transitions learned from, each as often as it was.
        lag_sum, lag_max: updates between acting and learning, over these samples.
    """

    def __init__(
        self,
        *,
        update: Update,
        consumer: Consumer,
        allowance: Allowance | None,
        overlap: int,
        stopping: threading.Event,
    ) -> None:
        """Joins the parts.

        Args:
            update: what to do with a batch.
            consumer: where batches come from.
            allowance: of the device's time, if it is not all granted.
            overlap: transitions of each unroll that the one before has taught already.
            stopping: set when the run ends.
        """
        self._update = update
        self._consumer = consumer
        self._allowance = allowance
        self._overlap = overlap
        self._stopping = stopping
        self.clock = StageClock("learner", "wait_data")
        self.samples = 0
        self.lag_sum = 0.0
        self.lag_max = 0

    @property
    def updates(self) -> int:
        """Updates done so far."""
        return self._update.version

    def turn(self) -> None:
        """Waits for a batch and learns from it."""
        self.clock.enter("wait_data")
        batch = self._consumer.take()
        self.clock.enter("learner")
        lags = self._update.version - batch.versions[:, self._overlap :]
        priorities = self._update(batch)
        self._consumer.learned(batch, priorities)
        if self._allowance:
            self._allowance.settle(self._stopping)
        self.samples += lags.size
        self.lag_sum += float(lags.sum())
        self.lag_max = max(self.lag_max, int(lags.max()))
