"""What one run of the trainer is asked to do, as plain facts."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any

from cgratio.results.words import Part

LEARNING: dict[str, dict[str, dict[str, float]]] = {
    "impala": {
        "mlp": {"learning_rate": 2e-3, "discount": 0.98, "entropy_cost": 0.003},
        "": {"learning_rate": 6e-4, "discount": 0.99, "entropy_cost": 0.01},
    },
    "r2d2": {
        "mlp": {"learning_rate": 1e-3, "discount": 0.98},
        "": {"learning_rate": 1e-4, "discount": 0.997},
    },
}
"""Settings of the loss that learn well, by algorithm and network, where the user gives none.

"" is for every other network. Rewards of classic control, which mlp is for, are dense and not clipped: a
shorter horizon keeps values small.
"""

OF_ALGORITHM = {
    "impala": ("value_cost", "entropy_cost", "rho_clip", "c_clip"),
    "r2d2": ("burn_in", "n_step", "replay_ratio", "replay_sequences", "target_period"),
}
"""Settings that one algorithm alone has."""

DEVICES = ("cpu", "cuda", "emulated")
ALGORITHMS = ("impala", "r2d2")
INFERENCES = ("central", "local")
PRECISIONS = ("auto", "fp32", "bf16")
NETWORKS = ("nature_cnn", "shallow_cnn", "deep_resnet", "mlp")  # those that have a name: `bodies.BODIES`


def either(words: tuple[str, ...]) -> str:
    """`a, b or c`."""
    return f"{', '.join(words[:-1])} or {words[-1]}"


def near_names(name: str, known: Iterable[str]) -> list[str]:
    """At most three names that someone who wrote `name` may have meant."""
    known = list(known)
    longer = [other for other in known if name and other.lower().startswith(name.lower())]
    return (longer or difflib.get_close_matches(name, known, n=3, cutoff=0.75))[:3]


def learning_settings(algorithm: str, network: str) -> dict[str, float]:
    """The settings of `LEARNING` for an algorithm and a network."""
    by_network = LEARNING[algorithm]
    return by_network.get(network, by_network[""])


def default_batch(actors: int, *, inference: str = "central") -> int:
    """Observations in one inference of a group of actors where nothing is said.

    Half of them, and at most 64, so that the others step meanwhile; all of them where they share one CPU.
    """
    return actors if inference == "local" else max(1, min(64, actors // 2))


class TrainerError(ValueError):
    """A configuration that this trainer cannot run; the message says what would be right."""


class EnvironmentFailedError(RuntimeError):
    """An environment raised, or the process that steps it ended; the message names both."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceProfile:
    """How long an emulated device takes for its work, and what it draws.

    An inference of n observations takes `inference_s + observation_s * n`, an update `update_s`, each divided
    by the device's share. Power is `idle_w` and, while all of it works, `busy_w`; None if that is not known.
    """

    inference_s: float = 0.0
    observation_s: float = 0.0
    update_s: float = 0.0
    idle_w: float | None = None
    busy_w: float | None = None

    def __post_init__(self) -> None:
        """Refuses what no device could be."""
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None and not (math.isfinite(value) and value >= 0):
                raise TrainerError(f"profile: {field.name} is {value}; it must be a number, 0 or more")
        if (self.idle_w is None) != (self.busy_w is None):
            raise TrainerError("profile: idle_w and busy_w belong together: give both or neither")
        if self.idle_w is not None and self.busy_w is not None and self.busy_w < self.idle_w:
            raise TrainerError(
                f"profile: busy_w is {self.busy_w:g}; it must be at least idle_w, {self.idle_w:g}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainerConfig:
    """One run of the trainer.

    Attributes:
        part: the whole job, or its supply or demand side alone.
        algorithm: `impala` or `r2d2`.
        environment: an envpool id, `gymnasium:ID`, or `package.module:factory`.
        network: a name of `bodies.BODIES`, or `package.module:factory` of a `torch.nn.Module`.
        lstm: units of the recurrent core; 0 for none, None for the algorithm's own (none, or 512 for r2d2).
        inference: `central`, batched on the device, or `local`, a copy of the policy on the actor CPUs.
        device: `cpu`, `cuda`, or `emulated`, which takes the time that `profile` says.
        profile: of an emulated device.
        actors: environment instances in flight.
        actor_threads: threads that step environments.
        actor_groups: groups of actors, each with its own inference loop; with local inference there is one
            for each actor thread, whatever stands here.
        device_threads: threads of one operator on the CPU device; on a GPU, of the work beside it.
        sm_share: share of the accelerator's time granted; below 1 not on a GPU.
        inference_batch: observations in one inference; None takes half of the group's actors, so that one
            half steps while the other is inferred, and at most 64; or all of them with local inference.
        unroll_length: transitions T that one unroll teaches.
        learner_batch: unrolls B in one update.
        precision: `fp32`, `bf16`, or `auto`, which takes bf16 where it is measured to be clearly faster.
        seed: of environments, network and sampling.
        learning_rate, discount, max_gradient_norm: of the optimiser and the return.
        value_cost, entropy_cost: of the loss of impala.
        rho_clip, c_clip: V-trace's truncation levels (Espeholt et al. 2018, section 4.1).
        clip_rewards: to [-1, 1] before learning; None clips with impala on Atari alone, as its papers do.
        burn_in: steps of r2d2 that only warm up the recurrent state. n_step: of its returns.
        replay_ratio: how often r2d2 learns from each transition. replay_sequences: how many it remembers.
        target_period: updates between r2d2's copies to its target network.
    """

    part: Part = Part.WHOLE
    algorithm: str = "impala"
    environment: str = "Pong-v5"
    network: str = "nature_cnn"
    lstm: int | None = None
    inference: str = "central"
    device: str = "cpu"
    profile: DeviceProfile | None = None
    actors: int = 16
    actor_threads: int = 1
    actor_groups: int = 1
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
    burn_in: int = 40
    n_step: int = 5
    replay_ratio: float = 1.0
    replay_sequences: int = 512
    target_period: int = 400

    def __post_init__(self) -> None:
        """Refuses what no run could mean."""
        for name in ("actors", "unroll_length", "learner_batch", "actor_groups", "n_step", "target_period"):
            if getattr(self, name) < 1:
                raise TrainerError(f"{name} is {getattr(self, name)}; it must be at least 1")
        for name, allowed in (
            ("algorithm", ALGORITHMS),
            ("inference", INFERENCES),
            ("device", DEVICES),
            ("precision", PRECISIONS),
        ):
            if getattr(self, name) not in allowed:
                raise TrainerError(f"{name} is {getattr(self, name)!r}; it must be {either(allowed)}")
        for name in ("learning_rate", "replay_ratio"):
            if not (math.isfinite(getattr(self, name)) and getattr(self, name) > 0):
                raise TrainerError(f"{name} is {getattr(self, name)}; it must be a number above 0")
        for name in ("discount", "value_cost", "entropy_cost", "rho_clip", "c_clip", "max_gradient_norm"):
            if not (math.isfinite(getattr(self, name)) and getattr(self, name) >= 0):
                raise TrainerError(f"{name} is {getattr(self, name)}; it must be a number, 0 or more")
        if not 0 <= self.seed < 2**31:
            raise TrainerError(f"seed is {self.seed}; it must be at least 0 and below 2**31")
        self._check_actors()
        self._check_device()
        self._check_memory()

    def _check_actors(self) -> None:
        if self.groups > self.actors:
            raise TrainerError(
                f"actors is {self.actors}; there must be at least one for each of {self.groups} groups"
            )
        smallest = self.actors // self.groups
        if self.inference_batch is not None and not 1 <= self.inference_batch <= smallest:
            raise TrainerError(
                f"inference_batch is {self.inference_batch}; it must be between 1 and {smallest}, the actors"
                + (" of the smallest group" if self.groups > 1 else "")
            )

    def _check_device(self) -> None:
        if not 0 < self.sm_share <= 1:
            raise TrainerError(f"sm_share is {self.sm_share}; it must be above 0 and at most 1")
        if self.sm_share < 1 and self.device == "cuda":
            raise TrainerError(
                f"sm_share is {self.sm_share} on cuda; a part of a GPU cannot be granted yet, use 1"
            )
        if (self.profile is not None) != (self.device == "emulated"):
            raise TrainerError("profile belongs to device=emulated: give both or neither")
        if self.device == "emulated" and self.inference == "local":
            raise TrainerError("inference is local; with an emulated device it must be central")

    def _check_memory(self) -> None:
        if self.lstm is not None and self.lstm < 0:
            raise TrainerError(f"lstm is {self.lstm}; it must be 0 for none, or a number of units")
        if self.burn_in < 0:
            raise TrainerError(f"burn_in is {self.burn_in}; it must be 0 or more")
        if self.algorithm == "r2d2" and self.replay_sequences < 2 * self.learner_batch:
            raise TrainerError(
                f"replay_sequences is {self.replay_sequences}; it must be at least two batches, "
                f"{2 * self.learner_batch}"
            )

    @classmethod
    def read(cls, fields: dict[str, Any]) -> TrainerConfig:
        """Reads what `dataclasses.asdict` made of one, as it comes with a request."""
        profile = fields.get("profile")
        return cls(**fields | {"profile": DeviceProfile(**profile) if profile else None})

    @property
    def groups(self) -> int:
        """Inference loops, each with its own environments."""
        return self.actor_threads if self.inference == "local" else self.actor_groups

    @property
    def batch(self) -> int:
        """Observations in one inference of the smallest group."""
        smallest = self.actors // self.groups
        return self.inference_batch or default_batch(smallest, inference=self.inference)

    @property
    def lstm_units(self) -> int:
        """Units of the recurrent core, 0 without one."""
        if self.lstm is not None:
            return self.lstm
        return 512 if self.algorithm == "r2d2" else 0

    def by_group(self) -> list[TrainerConfig]:
        """The configuration of each group: its share of actors and threads, and seeds of its own."""
        groups, threads = self.groups, max(self.groups, self.actor_threads)
        parts = []
        for group in range(groups):
            first, stop = self.actors * group // groups, self.actors * (group + 1) // groups
            part = replace(
                self,
                actors=stop - first,
                actor_threads=threads * (group + 1) // groups - threads * group // groups,
                actor_groups=1,
                # envpool's i-th environment has seed + i, so groups do not share one.
                seed=(self.seed + first) % 2**31,
            )
            parts.append(part)
        return parts
