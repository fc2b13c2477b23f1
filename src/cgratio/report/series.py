"""Points grouped into lines: the same in everything but the axis that runs along x."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from cgratio.analysis import workloads
from cgratio.analysis.facts import Point, Quantity
from cgratio.report import wording


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One line.

    Attributes:
        fixed: the axis values that its points share.
        points: ascending along the axis.
        label: what tells it from the other lines; empty when there is only one.
    """

    fixed: dict[str, Any]
    points: tuple[Point, ...]
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Slowdown:
    """How much slower a point is than the one with the largest share.

    Attributes:
        share: of the accelerator.
        lost: 1 - X/X0, the lost throughput, with its interval.
        added: X0/X - 1, the added time for the same work, with its interval.
    """

    share: float
    lost: float
    lost_interval: tuple[float, float] | None
    added: float
    added_interval: tuple[float, float] | None


def along(
    axis: str,
    points: Iterable[Point],
    *,
    first: Mapping[str, Any] | None = None,
    least: int = 2,
    by_boundary: bool = False,
) -> tuple[Series, ...]:
    """Groups points into lines along one axis.

    Args:
        axis: the axis that runs along x.
        points: any; those without a value on the axis are left out.
        first: the fixed values of the line that matters most (those of a fitted curve).
        least: a line has at least this many points.
        by_boundary: points whose joules cover different things go to different lines.

    Returns:
        The line that agrees with `first`, then the longest ones.
    """
    groups: dict[tuple[tuple[str, Any], ...], list[Point]] = {}
    points = tuple(points)
    left_out = {axis, *(name for name in _FOLLOWERS if axis == "actors" and follows(name, points))}
    for point in points:
        if point.axes.get(axis) is not None:
            others = {name: value for name, value in point.axes.items() if name not in left_out}
            if by_boundary:
                others["boundary"] = point.boundary
            groups.setdefault(tuple(sorted(others.items())), []).append(point)
    kept = [(dict(key), group) for key, group in groups.items() if len(group) >= least]

    def rank(item: tuple[dict[str, Any], list[Point]]) -> tuple[bool, int, float]:
        fixed, group = item
        known = {**fixed, "accelerators": accelerators(group[0])}
        agrees = all(known.get(name, value) == value for name, value in (first or {}).items() if name != axis)
        fastest = max((point.rate.value or 0.0 for point in group), default=0.0)
        return not agrees, -len(group), -fastest

    kept.sort(key=rank)
    names = {name for fixed, _ in kept for name in fixed}
    telling = [
        name
        for name in (*wording.AXIS_NAMES, "boundary")
        if name in names and len({fixed.get(name) for fixed, _ in kept}) > 1
    ]
    return tuple(
        Series(
            fixed=fixed,
            points=tuple(sorted(group, key=lambda point: float(point.axes[axis]))),
            label=wording.axes_text(fixed, telling),
        )
        for fixed, group in kept
    )


_FOLLOWERS = ("inference_batch", "actor_cpus")
"""Axes that `auto` answers by the number of actors."""


def follows(name: str, points: Iterable[Point]) -> bool:
    """Whether an axis is given by the actors in points that are otherwise alike, so is none of its own."""
    return workloads.follows(name, (point.axes for point in points), besides=_FOLLOWERS)


def accelerators(point: Point) -> float | None:
    """How many accelerators a point uses: GPUs, device CPUs that stand in, one emulated; times the share."""
    axes = point.axes
    counted = {"cuda": axes.get("gpus"), "emulated": 1}
    units = counted.get(str(axes.get("device")), axes.get("device_cpus"))
    share = axes.get("sm_share")
    if not units:
        return None
    return float(units) * (1.0 if share is None else float(share)) or None


def threads_per_accelerator(point: Point) -> float | None:
    """Actor threads for each accelerator."""
    threads, units = point.axes.get("actor_cpus"), accelerators(point)
    return None if not threads or units is None else float(threads) / units


def error_bars(
    points: Iterable[Point],
    quantity: Callable[[Point], Quantity],
    scale: Callable[[Point], float] | None = None,
) -> tuple[list[float], list[float], list[float]]:
    """Values with the lengths of their lower and upper bars; no interval is a bar of length nan."""
    values, lower, upper = [], [], []
    for point in points:
        found = quantity(point)
        assert found.value is not None, "the caller keeps points with a value"
        factor = scale(point) if scale else 1.0
        values.append(found.value * factor)
        lower.append(math.nan if found.low is None else max(0.0, found.value - found.low) * factor)
        upper.append(math.nan if found.high is None else max(0.0, found.high - found.value) * factor)
    return values, lower, upper


def slowdowns(series: Series) -> tuple[Slowdown, ...]:
    """Slowdown of each point against the one with the largest share.

    The interval joins both rates' intervals as independent, on a logarithmic scale; replicates that share a
    block make it a little too wide, never too narrow.
    """
    base = series.points[-1].rate
    found = []
    for point in series.points:
        rate = point.rate
        if not rate.value or not base.value:
            continue
        ratio = rate.value / base.value
        spread = 0.0 if point is series.points[-1] else _relative_spread(rate, base)
        low, high = ratio * math.exp(-spread), ratio * math.exp(spread)
        known = math.isfinite(spread)
        found.append(
            Slowdown(
                share=float(point.axes["sm_share"]),
                lost=1 - ratio,
                lost_interval=(1 - high, 1 - low) if known else None,
                added=1 / ratio - 1,
                added_interval=(1 / high - 1, 1 / low - 1) if known else None,
            )
        )
    return tuple(found)


def _relative_spread(*rates: Quantity) -> float:
    """Half the width of the logarithm's interval; nan when an interval is missing or reaches zero."""
    squares = 0.0
    for rate in rates:
        if not rate.low or not rate.high or rate.low <= 0:
            return math.nan
        squares += (math.log(rate.high / rate.low) / 2) ** 2
    return math.sqrt(squares)
