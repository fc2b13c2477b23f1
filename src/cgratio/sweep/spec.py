"""The sweep specification: what people write in YAML, checked whole before anything runs."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, field_validator, model_validator

from cgratio.machine.placement import Pinning
from cgratio.results.words import Part
from cgratio.trainer.config import NETWORKS, DeviceProfile, TrainerError
from cgratio.trial.request import Limits

Auto = Literal["auto"]
AUTO: Auto = "auto"
AXIS_NAMES = {"unroll_length": ("unroll_length", "unroll"), "learner_batch": ("learner_batch", "batch")}
"""Axes that may be written by a short name."""

MOST_COMBINATIONS = 100_000
SMALLEST_SHARE = 0.01

Device = Literal["auto", "cpu", "cuda", "emulated"]
Algorithm = Literal["impala", "r2d2"]
Inference = Literal["central", "local"]
Precision = Literal["auto", "fp32", "bf16"]

# A field's description completes "it must be ...", with which a wrong value is answered.
_COUNT = "a whole number from 1 to 1,000,000"
_SHARE = f"a number from {SMALLEST_SHARE} to 1 (with less, the launch alone takes minutes)"
_NETWORK = f"{', '.join(NETWORKS)} or package.module:factory"
_Network = Annotated[str, Field(pattern=rf"^({'|'.join(NETWORKS)}|[\w.]+:\w+)$")]
_PartName = Annotated[Part, Field(strict=False)]
_PinningName = Annotated[Pinning, Field(strict=False)]
_Count = Annotated[int, Field(ge=1, le=1_000_000)]
_Counts = Annotated[list[_Count], Field(description=_COUNT)]
_CountsOrAuto = Annotated[list[_Count | Auto], Field(description=f"{_COUNT}, or auto")]
_Units = Annotated[int, Field(ge=0, le=65_536)]
_Gpus = Annotated[int, Field(ge=0, le=1)]
_Share = Annotated[float, Field(ge=SMALLEST_SHARE, le=1)]
_AXES = "a grid, such as {actors: [4, 16]}, or a list of grids"
_EXCLUDE = 'a list of expressions, such as "actors < actor_cpus"'
_NAME = "text of 1 to 200 characters (in quotes where it looks like a number or a date)"
_Positive = Annotated[float, Field(gt=0, description="a number above 0")]
_Seconds = Annotated[float, Field(gt=0, le=1e6, description="seconds above 0, at most 1,000,000")]
_NotNegative = Annotated[float, Field(ge=0, description="a number, 0 or more")]
_Settings = Field(description="a group of settings")


def _written_as(axis: str) -> Any:
    return Field(validation_alias=AliasChoices(*AXIS_NAMES[axis]))


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class Axes(_Strict):
    """The values of one grid; every axis takes one value or a list of them.

    `auto` is answered by the host: see docs/sweep.md.
    """

    part: Annotated[list[_PartName], Field(description="whole, supply or demand")] = [Part.WHOLE]
    environment: Annotated[list[str], Field(description="the id of an environment")] = ["Pong-v5"]
    network: Annotated[list[_Network], Field(description=_NETWORK)] = ["nature_cnn"]
    algorithm: Annotated[list[Algorithm], Field(description="impala or r2d2")] = ["impala"]
    lstm: Annotated[
        list[_Units | Auto], Field(description="a whole number of units, 0 for none, or auto")
    ] = [AUTO]
    inference: Annotated[list[Inference], Field(description="central or local")] = ["central"]
    device: Annotated[list[Device], Field(description="cpu, cuda, emulated or auto")] = [AUTO]
    actors: _CountsOrAuto = [16]
    actor_groups: _Counts = [1]
    actor_cpus: _CountsOrAuto = [AUTO]
    device_cpus: _CountsOrAuto = [AUTO]
    pinning: Annotated[list[_PinningName], Field(description="none, compact, scatter or core")] = [
        Pinning.COMPACT
    ]
    gpus: Annotated[list[_Gpus | Auto], Field(description="0, 1 or auto")] = [AUTO]
    sm_share: Annotated[list[_Share], Field(description=_SHARE)] = [1.0]
    inference_batch: _CountsOrAuto = [AUTO]
    unroll_length: Annotated[_Counts, _written_as("unroll_length")] = [20]
    learner_batch: Annotated[_Counts, _written_as("learner_batch")] = [16]
    replay_ratio: Annotated[list[_Positive], Field(description="a number above 0")] = [1.0]
    precision: Annotated[list[Precision], Field(description="fp32, bf16 or auto")] = [AUTO]

    @model_validator(mode="before")
    @classmethod
    def _one_or_many(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        return {name: value if isinstance(value, list) else [value] for name, value in data.items()}

    @field_validator("*")
    @classmethod
    def _not_empty_nor_twice(cls, value: list[Any]) -> list[Any]:
        if not value:
            raise ValueError("the list is empty, so the grid is; give at least one value")
        if len(set(value)) < len(value):
            raise ValueError(
                "a value stands here twice; each would be measured twice, use replicates for that"
            )
        return value

    @property
    def combinations(self) -> int:
        """How many combinations of values the grid has, as they are written."""
        return math.prod(len(getattr(self, name)) for name in Axes.model_fields)


class Trainer(_Strict):
    """Settings of the trainer that are the same in every trial."""

    learning_rate: _Positive = 6e-4
    discount: Annotated[float, Field(ge=0, le=1, description="a number from 0 to 1")] = 0.99
    value_cost: _NotNegative = 0.5
    entropy_cost: _NotNegative = 0.01
    max_gradient_norm: _Positive = 40.0
    rho_clip: _Positive = 1.0
    c_clip: _Positive = 1.0
    clip_rewards: Annotated[bool | None, Field(description="true, false or null")] = None
    burn_in: Annotated[int, Field(ge=0, description="a whole number, 0 or more")] = 40
    n_step: Annotated[int, Field(ge=1, description="a whole number, 1 or more")] = 5
    replay_sequences: Annotated[int, Field(ge=2, description="a whole number, 2 or more")] = 512
    target_period: Annotated[int, Field(ge=1, description="a whole number, 1 or more")] = 400


_DEFAULTS = Limits()


class Trial(_Strict):
    """How long one trial may take; see `trial.request.Limits` for the meaning of each."""

    window_s: Annotated[float, Field(ge=0.1, le=60, description="seconds from 0.1 to 60")] = (
        _DEFAULTS.window_s
    )
    warmup_min_s: _NotNegative = _DEFAULTS.warmup_min_s
    warmup_max_s: _NotNegative = _DEFAULTS.warmup_max_s
    max_s: _Seconds = _DEFAULTS.max_s
    setup_max_s: _Seconds = _DEFAULTS.setup_max_s
    silence_max_s: _Seconds = _DEFAULTS.silence_max_s
    min_windows: Annotated[int, Field(ge=5, description="a whole number, 5 or more")] = _DEFAULTS.min_windows
    min_updates: Annotated[int, Field(ge=0, description="a whole number, 0 or more")] = _DEFAULTS.min_updates
    half_width: Annotated[float, Field(gt=0, lt=1, description="a number between 0 and 1")] = (
        _DEFAULTS.half_width
    )

    @model_validator(mode="after")
    def _fits(self) -> Trial:
        if self.warmup_max_s < self.warmup_min_s:
            raise ValueError(
                f"warmup_max_s is {self.warmup_max_s:g}; it must be at least {self.warmup_min_s:g}"
            )
        needed = self.warmup_max_s + self.window_s * self.min_windows
        if self.max_s < needed:
            raise ValueError(
                f"max_s is {self.max_s:g}, too short for the longest warm-up and min_windows windows; "
                f"it must be at least {needed:g}"
            )
        return self


class PowerModelSpec(_Strict):
    """Stands in for a sensor: watts of one CPU package when idle and when busy."""

    idle_w: _NotNegative
    max_w: _Positive

    @model_validator(mode="after")
    def _ordered(self) -> PowerModelSpec:
        if self.max_w <= self.idle_w:
            raise ValueError(f"max_w is {self.max_w:g}; it must be above idle_w, {self.idle_w:g}")
        return self


class Profile(_Strict):
    """What an emulated device takes and draws; see `trainer.config.DeviceProfile`."""

    inference_s: _NotNegative
    observation_s: _NotNegative
    update_s: _NotNegative
    idle_w: Annotated[float | None, Field(ge=0, description="a number, 0 or more, or null")] = None
    busy_w: Annotated[float | None, Field(ge=0, description="a number, 0 or more, or null")] = None

    @model_validator(mode="after")
    def _can_be(self) -> Profile:
        try:
            DeviceProfile(**self.model_dump())
        except TrainerError as error:
            raise ValueError(str(error).removeprefix("profile: ")) from error
        return self


class Spec(_Strict):
    """One sweep.

    Attributes:
        name: of the sweep; any text.
        description: what it is for.
        axes: one grid, or several whose points are joined (as scikit-learn's ParameterGrid does).
        exclude: expressions over axes, such as `actors < actor_cpus`; a point where one holds is left out.
        replicates: fresh launches of each point.
        seed: of the order, the environments and the networks.
        emulated: the profile of the device `emulated`.
        sentinel: whether one point is measured once more in each block, to see the host drift.
    """

    name: Annotated[str, Field(min_length=1, max_length=200, description=_NAME)]
    description: Annotated[str, Field(description="text")] = ""
    axes: Annotated[
        list[Axes], Field(min_length=1, description="a grid, such as {actors: [4, 16]}, or a list")
    ]
    exclude: Annotated[list[str], Field(description=_EXCLUDE)] = []
    trainer: Annotated[Trainer, _Settings] = Trainer()
    trial: Annotated[Trial, _Settings] = Trial()
    replicates: Annotated[int, Field(ge=1, le=1000, description="a whole number from 1 to 1,000")] = 3
    seed: Annotated[int, Field(ge=0, lt=2**31, description="a whole number, 0 or more and below 2^31")] = 0
    sentinel: Annotated[Literal["auto", "none"], Field(description="auto or none")] = AUTO
    power_model: Annotated[PowerModelSpec | None, Field(description="idle_w and max_w, or null")] = None
    emulated: Annotated[Profile | None, Field(description="a profile of the device, or null")] = None

    @field_validator("axes", mode="before")
    @classmethod
    def _one_grid_or_many(cls, value: Any) -> Any:
        return [value] if isinstance(value, dict) else value

    @model_validator(mode="after")
    def _knows_its_device(self) -> Spec:
        asked = any("emulated" in grid.device for grid in self.axes)
        if asked and self.emulated is None:
            raise ValueError(
                "an axis asks for the device emulated, whose profile is missing; give emulated: "
                "{inference_s: ..., observation_s: ..., update_s: ...}"
            )
        if self.power_model is not None and all(grid.device == ["emulated"] for grid in self.axes):
            raise ValueError("power_model is of CPU packages, but every device is emulated; leave it out")
        if self.emulated is not None and not asked:
            raise ValueError("emulated is a profile of a device that no axis asks for: give device: emulated")
        return self

    @field_validator("axes")
    @classmethod
    def _can_be_looked_through(cls, value: list[Axes]) -> list[Axes]:
        # Counted and not listed, since a grid that is too large is too large to list.
        count = sum(grid.combinations for grid in value)
        if count > MOST_COMBINATIONS:
            raise ValueError(
                f"the grids have {count:,} combinations of values before `exclude`; "
                f"at most {MOST_COMBINATIONS:,} are looked at, name fewer values"
            )
        return value


GROUPS: dict[str, type[BaseModel]] = {
    "axes": Axes,
    "trainer": Trainer,
    "trial": Trial,
    "power_model": PowerModelSpec,
    "emulated": Profile,
}
"""Keys of a specification that hold keys themselves."""


def axis_names() -> set[str]:
    """Every name that an axis may be written by."""
    return {*Axes.model_fields, *(name for names in AXIS_NAMES.values() for name in names)}


def spellings(axis: str) -> tuple[str, ...]:
    """All names of the axis that has this one."""
    return next((names for names in AXIS_NAMES.values() if axis in names), (axis,))
