"""What one run of the trainer is asked to do, as plain facts."""

from __future__ import annotations

import math
from dataclasses import dataclass

from cgratio.results.words import Part

LEARNING: dict[str, dict[str, float]] = {
    "nature_cnn": {"learning_rate": 6e-4, "discount": 0.99, "entropy_cost": 0.01},
    # Rewards of classic control are dense and not clipped: a shorter horizon keeps values small.
    "mlp": {"learning_rate": 2e-3, "discount": 0.98, "entropy_cost": 0.003},
}
"""Settings of the loss that learn well with each network, where the user gives none."""


def default_batch(actors: int) -> int:
    """Observations in one inference where nothing is said: half of the actors, so that the others step."""
    return max(1, min(64, actors // 2))


class TrainerError(ValueError):
    """A configuration that this trainer cannot run; the message says what would be right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainerConfig:
    """One run of the trainer.

    Attributes:
        part: the whole job, or its supply or demand side alone.
        environment: an envpool id.
        network: a name of `networks.NETWORKS`.
        device: `cpu` or `cuda`.
        actors: environment instances in flight.
        actor_threads: threads that step environments.
        device_threads: threads of one operator on the CPU device; on a GPU, of the work beside it.
        sm_share: share of the accelerator's time granted; below 1 only on the CPU device.
        inference_batch: observations in one inference; None takes half of the actors, so that one half
            steps while the other is inferred, and at most 64.
        unroll_length: transitions T in one unroll.
        learner_batch: unrolls B in one update.
        precision: `fp32`, `bf16`, or `auto`, which takes bf16 where it is measured to be clearly faster.
        seed: of environments, network and sampling.
        learning_rate, discount, value_cost, entropy_cost, max_gradient_norm: of the loss and optimiser.
        rho_clip, c_clip: V-trace's truncation levels (Espeholt et al. 2018, section 4.1).
        clip_rewards: to [-1, 1] before learning; None clips on Atari alone, as its papers do.
    """

    part: Part = Part.WHOLE
    environment: str = "Pong-v5"
    network: str = "nature_cnn"
    device: str = "cpu"
    actors: int = 16
    actor_threads: int = 1
    device_threads: int = 1
    sm_share: float = 1.0
    inference_batch: int | None = None
    unroll_length: int = 20
    learner_batch: int = 16
    precision: str = "auto"
    seed: int = 0
    learning_rate: float = 6e-4
    discount: float = 0.99
    value_cost: float = 0.5
    entropy_cost: float = 0.01
    max_gradient_norm: float = 40.0
    rho_clip: float = 1.0
    c_clip: float = 1.0
    clip_rewards: bool | None = None

    def __post_init__(self) -> None:
        """Refuses what no run could mean."""
        for name in ("actors", "unroll_length", "learner_batch"):
            if getattr(self, name) < 1:
                raise TrainerError(f"{name} is {getattr(self, name)}; it must be at least 1")
        if self.inference_batch is not None and not 1 <= self.inference_batch <= self.actors:
            raise TrainerError(
                f"inference_batch is {self.inference_batch}; it must be between 1 and actors={self.actors}"
            )
        if self.device not in {"cpu", "cuda"}:
            raise TrainerError(f"device is {self.device!r}; it must be cpu or cuda")
        if self.precision not in {"auto", "fp32", "bf16"}:
            raise TrainerError(f"precision is {self.precision!r}; it must be auto, fp32 or bf16")
        if not (math.isfinite(self.learning_rate) and self.learning_rate > 0):
            raise TrainerError(f"learning_rate is {self.learning_rate}; it must be a number above 0")
        for name in ("discount", "value_cost", "entropy_cost", "rho_clip", "c_clip", "max_gradient_norm"):
            if not (math.isfinite(getattr(self, name)) and getattr(self, name) >= 0):
                raise TrainerError(f"{name} is {getattr(self, name)}; it must be a number, 0 or more")
        if not 0 <= self.seed < 2**31:
            raise TrainerError(f"seed is {self.seed}; it must be at least 0 and below 2**31")
        if not 0 < self.sm_share <= 1:
            raise TrainerError(f"sm_share is {self.sm_share}; it must be above 0 and at most 1")
        if self.sm_share < 1 and self.device != "cpu":
            raise TrainerError(
                f"sm_share is {self.sm_share} on {self.device}; a part of a GPU cannot be granted yet, use 1"
            )

    @property
    def batch(self) -> int:
        """Observations in one inference."""
        return self.inference_batch or default_batch(self.actors)
