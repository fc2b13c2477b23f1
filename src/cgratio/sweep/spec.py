"""The sweep specification: what people write in YAML, checked whole before anything runs."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import (
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from cgratio.machine.placement import Pinning
from cgratio.results.words import Part
from cgratio.sweep.document import AXIS_NAMES, Document, SpecError, read_document
from cgratio.trial.request import Limits

Auto = Literal["auto"]
AUTO: Auto = "auto"
Count = Annotated[int, Field(ge=1, le=1_000_000)]
Share = Annotated[float, Field(gt=0, le=1)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class Axes(_Strict):
    """The values of one grid; every axis takes one value or a list of them.

    `auto` is answered by the host: see docs/sweep.md.
    """

    part: list[Part] = [Part.WHOLE]
    environment: list[str] = ["Pong-v5"]
    network: list[str] = ["nature_cnn"]
    device: list[Literal["auto", "cpu", "cuda"]] = [AUTO]
    actors: list[Count | Auto] = [16]
    actor_cpus: list[Count | Auto] = [AUTO]
    device_cpus: list[Count | Auto] = [AUTO]
    pinning: list[Pinning] = [Pinning.COMPACT]
    gpus: list[Annotated[int, Field(ge=0, le=1)] | Auto] = [AUTO]
    sm_share: list[Share] = [1.0]
    inference_batch: list[Count | Auto] = [AUTO]
    unroll_length: list[Count] = Field([20], validation_alias=AliasChoices(*AXIS_NAMES["unroll_length"]))
    learner_batch: list[Count] = Field([16], validation_alias=AliasChoices(*AXIS_NAMES["learner_batch"]))
    precision: list[Literal["auto", "fp32", "bf16"]] = [AUTO]

    @model_validator(mode="before")
    @classmethod
    def _one_or_many(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        return {name: value if isinstance(value, list) else [value] for name, value in data.items()}

    @field_validator("part", "pinning", mode="before")
    @classmethod
    def _enumerated(cls, value: list[Any], info: Any) -> list[Any]:
        kind: type[Part | Pinning] = Part if info.field_name == "part" else Pinning
        return [kind(item) if item in list(kind) else item for item in value]

    @field_validator("sm_share", mode="before")
    @classmethod
    def _whole_shares(cls, value: list[Any]) -> list[Any]:
        return [float(item) if type(item) is int else item for item in value]

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


class Trainer(_Strict):
    """Settings of the trainer that are the same in every trial."""

    learning_rate: Annotated[float, Field(gt=0)] = 6e-4
    discount: Annotated[float, Field(ge=0, le=1)] = 0.99
    value_cost: Annotated[float, Field(ge=0)] = 0.5
    entropy_cost: Annotated[float, Field(ge=0)] = 0.01
    max_gradient_norm: Annotated[float, Field(gt=0)] = 40.0
    rho_clip: Annotated[float, Field(gt=0)] = 1.0
    c_clip: Annotated[float, Field(gt=0)] = 1.0
    clip_rewards: bool | None = None


_DEFAULTS = Limits()


class Trial(_Strict):
    """How long one trial may take; see `trial.request.Limits` for the meaning of each."""

    window_s: Annotated[float, Field(ge=0.1, le=60)] = _DEFAULTS.window_s
    warmup_min_s: Annotated[float, Field(ge=0)] = _DEFAULTS.warmup_min_s
    warmup_max_s: Annotated[float, Field(ge=0)] = _DEFAULTS.warmup_max_s
    max_s: Annotated[float, Field(gt=0)] = _DEFAULTS.max_s
    setup_max_s: Annotated[float, Field(gt=0)] = _DEFAULTS.setup_max_s
    silence_max_s: Annotated[float, Field(gt=0)] = _DEFAULTS.silence_max_s
    min_windows: Annotated[int, Field(ge=5)] = _DEFAULTS.min_windows
    min_updates: Annotated[int, Field(ge=0)] = _DEFAULTS.min_updates
    half_width: Annotated[float, Field(gt=0, lt=1)] = _DEFAULTS.half_width

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

    idle_w: Annotated[float, Field(ge=0)]
    max_w: Annotated[float, Field(gt=0)]

    @model_validator(mode="after")
    def _ordered(self) -> PowerModelSpec:
        if self.max_w <= self.idle_w:
            raise ValueError(f"max_w is {self.max_w:g}; it must be above idle_w, {self.idle_w:g}")
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
        sentinel_every: after so many trials the first point is measured once more, to see the host drift;
            0 for never.
    """

    name: Annotated[str, Field(min_length=1, max_length=200)]
    description: str = ""
    axes: list[Axes] = Field(min_length=1)
    exclude: list[str] = []
    trainer: Trainer = Trainer()
    trial: Trial = Trial()
    replicates: Annotated[int, Field(ge=1, le=1000)] = 3
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 0
    sentinel_every: Annotated[int, Field(ge=0)] = 0
    power_model: PowerModelSpec | None = None

    @field_validator("axes", mode="before")
    @classmethod
    def _one_grid_or_many(cls, value: Any) -> Any:
        return [value] if isinstance(value, dict) else value


def load_spec(path: Path, *, overrides: tuple[str, ...] = ()) -> Spec:
    """Reads and checks a specification.

    Args:
        path: of a YAML file.
        overrides: `key.path=value` settings that replace what the file says; values are YAML.

    Raises:
        SpecError: file, line, what is wrong and what would be right.
    """
    document = read_document(path)
    for override in overrides:
        _apply(document, override)
    try:
        return Spec.model_validate(document.value)
    except ValidationError as error:
        raise _explain(document, error) from error


def _apply(document: Document, override: str) -> None:
    key, equals, text = override.partition("=")
    if not equals or not key:
        raise SpecError(f"--set {override}: write it as --set key=value, such as --set trainer.discount=0.98")
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise SpecError(f"--set {override}: the value is not YAML: {error}") from error
    *parents, last = key.split(".")
    axes = document.value.get("axes")
    if parents == ["axes"] and isinstance(axes, list):
        targets = axes
    elif parents == ["trainer"] and last not in Trainer.model_fields and _axis_names() >= {last}:
        # The trainer's shape is made of axes; setting one here fixes it for every grid.
        targets = axes if isinstance(axes, list) else [axes]
    else:
        target = document.value
        for parent in parents:
            target = target.setdefault(parent, {})
            if not isinstance(target, dict):
                raise SpecError(f"--set {override}: {parent} is not a group of settings")
        targets = [target]
    for target in targets:
        if not isinstance(target, dict):
            raise SpecError(f"--set {override}: there is no group of settings to put it in")
        for name in _same_axis(last):
            target.pop(name, None)
        target[last] = value


def _axis_names() -> set[str]:
    return {*Axes.model_fields, *(name for names in AXIS_NAMES.values() for name in names)}


def _same_axis(name: str) -> tuple[str, ...]:
    return next((names for names in AXIS_NAMES.values() if name in names), (name,))


def _explain(document: Document, error: ValidationError) -> SpecError:
    """The first error of a validation, as one sentence with its place."""
    first = error.errors()[0]
    location = [part for part in first["loc"][:-1] if not _is_union_branch(part)] + [
        # The last part of an unknown key is the key itself, whatever it looks like.
        part
        for part in first["loc"][-1:]
        if first["type"] == "extra_forbidden" or not _is_union_branch(part)
    ]
    place = ".".join(str(part) for part in location)
    if first["type"] == "extra_forbidden":
        known = _known_keys(location[:-1])
        near = difflib.get_close_matches(str(location[-1]), known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"known here: {', '.join(sorted(known))}"
        message = f"unknown key {place}; {hint}"
    else:
        given = first.get("input")
        shown = "" if isinstance(given, dict | list | BaseModel) else f", not {given!r}"
        text = first["msg"].removeprefix("Value error, ")
        message = (
            f"{place or 'the specification'}: {text}{shown}"
            if first["type"] != "value_error"
            else (f"{place or 'the specification'}: {text}")
        )
    return SpecError(f"{document.where(location)}: {message}")


def _is_union_branch(part: int | str) -> bool:
    # pydantic names the branch of a union in the location: "literal['auto']", "constrained-int", "int".
    return isinstance(part, str) and (
        "[" in part or part.startswith("constrained-") or part in {"int", "float"}
    )


def _known_keys(location: list[int | str]) -> set[str]:
    models: dict[str, type[BaseModel]] = {
        "axes": Axes,
        "trainer": Trainer,
        "trial": Trial,
        "power_model": PowerModelSpec,
    }
    name = next((part for part in location if isinstance(part, str)), None)
    if name == "axes":
        return _axis_names()
    return set((models[name] if name else Spec).model_fields)
