"""What an analysis finds, as plain facts that print, save and plot the same everywhere."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Origin(StrEnum):
    """Where a number comes from; shown beside it wherever it appears."""

    MEASURED = "measured"
    FITTED = "fitted"
    EXTRAPOLATED = "extrapolated"
    MODELLED = "modelled"
    UNKNOWN = "unknown"


class Bottleneck(StrEnum):
    """What limits a point's rate."""

    ENVIRONMENTS = "environments"  # the actor CPUs are busy: more threads would help
    ACCELERATOR = "accelerator"  # inference and learner are busy: a bigger share would help
    ACTORS = "actors"  # neither is: each waits for the other, more actors in flight would help
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """A number with its unit, its 95 % interval and its origin, or the reason why it is unknown.

    Attributes:
        value: None when unknown.
        low, high: the 95 % interval; None when there is none, and then `reason` says why.
        unit: as printed ("samples/s", "W", "samples/J", "threads/SM").
        origin: where the number comes from.
        reason: why the value or its interval is missing.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    unit: str
    origin: Origin = Origin.MEASURED
    reason: str | None = None

    def __post_init__(self) -> None:
        """Holds every quantity to the rule: unknown is None with a reason."""
        numbers = (self.value, self.low, self.high)
        assert all(number is None or math.isfinite(number) for number in numbers), numbers
        assert self.reason or None not in numbers, "a missing number needs its reason"

    @property
    def half_width(self) -> float | None:
        """The larger half of the interval, where both agree within a tenth; None where `±` would mislead."""
        if self.value is None or self.low is None or self.high is None:
            return None
        lower, upper = self.value - self.low, self.high - self.value
        half = max(lower, upper)
        return None if min(lower, upper) < 0.9 * half else half

    @classmethod
    def unknown(cls, *, unit: str, reason: str) -> Quantity:
        """A quantity that could not be had."""
        return cls(value=None, unit=unit, origin=Origin.UNKNOWN, reason=reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One combination of axis values, over its valid replicates.

    Attributes:
        point_id: as stored.
        axes: requested axis values (see `results.schema.AXES`).
        trials: launches of this point; `valid`: those that entered the numbers.
        rate: samples/s. power: W. samples_per_joule: samples/J, of `boundary`.
        shares: mean stage shares, by their column name without `share_`; also `device_busy`.
        bottleneck: with `evidence`, a clause in words that quotes the shares it rests on.
        verdicts: reason codes of the trials that were left out, with their counts.
    """

    point_id: str
    axes: dict[str, Any]
    trials: int
    valid: int
    rate: Quantity
    power: Quantity
    samples_per_joule: Quantity
    boundary: str | None
    updates_per_s: Quantity
    policy_lag: Quantity
    shares: dict[str, float]
    bottleneck: Bottleneck
    evidence: str
    verdicts: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """A fitted curve with its band, ready to plot.

    Attributes:
        name: `supply`, `demand`, `rate_by_actors`, `rate_by_share`, `rate_by_ratio`, ...
        x_name, x_unit, y_unit: axis labels. x, y, low, high: the curve and its 95 % band, same length.
        measured_low, measured_high: the range of x that trials covered; outside it is extrapolated.
        fixed: axis values held fixed along the curve.
        parameters: fitted parameters by name.
        group: axis values of the workload, only those that differ between the workloads of the sweep.
        band: whether there is a band; without one `low` and `high` repeat `y`.
    """

    name: str
    x_name: str
    x_unit: str
    y_unit: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    measured_low: float
    measured_high: float
    fixed: dict[str, Any]
    parameters: dict[str, Quantity]
    group: dict[str, Any] = field(default_factory=dict)
    band: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimum:
    """The optimal CPU/GPU ratio for one goal.

    Attributes:
        goal: `samples_per_s` or `samples_per_joule`.
        threads_per_accelerator: hardware threads for each accelerator (one GPU, or one device CPU where
            device CPUs stand in for it).
        threads_per_sm: the paper's CPU/GPU ratio; unknown with a reason without SMs.
        cores_per_accelerator: the same in physical cores.
        near_optimal: whole thread counts per accelerator within `tolerance` of the best, ascending.
        tolerance: fraction of the best that still counts as near-optimal.
        counting_rule: what was counted as a thread and as an accelerator.
        group: axis values of the workload, only those that differ between the workloads of the sweep.
        doubts: notes of the analysis that speak against it; it must not be shown without them.
    """

    goal: str
    threads_per_accelerator: Quantity
    threads_per_sm: Quantity
    cores_per_accelerator: Quantity
    near_optimal: tuple[int, ...]
    tolerance: float
    counting_rule: str
    group: dict[str, Any] = field(default_factory=dict)
    doubts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """Everything `cgratio analyze` finds in one results folder.

    Attributes:
        answer: the finding in one sentence.
        below, above: what limits the rate with fewer, and with more, threads than the optimum.
        labels: origin labels that hold for the whole result (device CPUs in place of an accelerator,
            modelled energy).
        notes: what a careful reader should know (refused fits, drift, few replicates).
        flaws: files that were skipped.
    """

    sweep: str
    host: str
    answer: str
    points: tuple[Point, ...]
    curves: tuple[Curve, ...]
    optima: tuple[Optimum, ...]
    below: Bottleneck
    above: Bottleneck
    trials: int
    valid: int
    labels: tuple[str, ...]
    notes: tuple[str, ...]
    flaws: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Plain types for strict JSON."""
        return dataclasses.asdict(self)
