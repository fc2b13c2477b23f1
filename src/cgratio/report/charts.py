"""The marks that charts share: fitted curves with their bands, points with their intervals, plain ticks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from cgratio.analysis.facts import Curve, Point, Quantity
from cgratio.report import series, style, wording

Extent: TypeAlias = tuple[Sequence[float], Sequence[float]]
"""What a picture shows along y: values with the ends of their bars, and the edges of bands; NaN and infinity
count as none."""

FURTHEST = 2.0
"""The edge of a band is shown up to this many times the furthest value: a hopeless fit must not press the
data into a line. Bars are data and are seen whole."""


def between(curve: Curve, start: float, stop: float) -> Curve:
    """The part of a curve from one x to another, where it reaches that far."""
    low, high = max(start, curve.x[0]), min(stop, curve.x[-1])
    known = {curve.measured_low, curve.measured_high}  # there the stroke changes
    x = sorted({low, high, *(value for value in (*curve.x, *known) if low <= value <= high)})
    y, lower, upper = (
        tuple(map(float, np.interp(x, curve.x, part))) for part in (curve.y, curve.low, curve.high)
    )
    return replace(curve, x=tuple(x), y=y, low=lower, high=upper)


def scaled(curve: Curve, convert: Callable[[float], float]) -> Curve:
    """A curve whose rates are converted to what a picture shows."""
    y, low, high = (tuple(map(convert, part)) for part in (curve.y, curve.low, curve.high))
    return replace(curve, y=y, low=low, high=high)


def draw_curve(axes: Axes, curve: Curve, *, colour: str, label: str) -> None:
    """Draws a fitted curve with its band: solid where trials measured, dashed where it is extrapolated."""
    x, y = np.array(curve.x), np.array(curve.y)
    if curve.band:
        axes.fill_between(x, curve.low, curve.high, color=colour, alpha=0.16, linewidth=0)
    inside = (x >= curve.measured_low * (1 - 1e-9)) & (x <= curve.measured_high * (1 + 1e-9))
    name = f"{label}, with 95 % band" if curve.band else label
    axes.plot(x, np.where(inside, y, np.nan), color=colour, label=name, zorder=3)
    if not inside.all():
        axes.plot(x, y, color=colour, linestyle=(0, (3, 2)), linewidth=1.1, label="extrapolated", zorder=2.9)


def draw_points(
    axes: Axes,
    points: Iterable[Point],
    *,
    x: Callable[[Point], float | None],
    quantity: Callable[[Point], Quantity],
    mark: style.Mark,
    label: str,
    joined: bool,
    scale: Callable[[Point], float] | None = None,
) -> None:
    """Draws measured points with their 95 % intervals; a point without the value is left out."""
    shown = [point for point in points if quantity(point).value is not None and x(point) is not None]
    if not shown:
        return
    values, lower, upper = series.error_bars(shown, quantity, scale)
    axes.errorbar(
        [x(point) or 0.0 for point in shown],
        values,
        yerr=(np.nan_to_num(lower), np.nan_to_num(upper)),
        color=mark.colour,
        marker=mark.marker,
        linestyle=mark.line if joined else "none",
        linewidth=1.2,
        capsize=3,
        elinewidth=1.1,
        markeredgecolor="white",
        markeredgewidth=0.5,
        label=label or "_nolegend_",
        zorder=4,
    )


def plain_y(axes: Axes, extents: Iterable[Extent], *, label: str, headroom: float = 0.08) -> None:
    """Plain numbers along y, from zero, because rates and watts are compared by their length.

    Args:
        axes: whose y axis.
        extents: what has to be seen.
        label: with its unit.
        headroom: share of the data's height that stays free above.
    """
    values, edges = zip(*extents, strict=True)
    seen = [value for group in values for value in group if np.isfinite(value)]
    furthest = FURTHEST * max([abs(value) for value in seen], default=0.0)
    seen += [min(max(edge, -furthest), furthest) for group in edges for edge in group if np.isfinite(edge)]
    top, bottom = max([*seen, 0.0]), min([*seen, 0.0])
    span = (top - bottom) or 1.0
    axes.set_ylabel(label)
    axes.set_ylim(bottom - (0.05 * span if bottom < 0 else 0.0), bottom + span * (1.0 + headroom))
    axes.yaxis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 2.5, 5, 10]))
    axes.yaxis.set_major_formatter(FuncFormatter(wording.tick))


def extent_of_points(
    points: Iterable[Point],
    quantity: Callable[[Point], Quantity],
    scale: Callable[[Point], float] | None = None,
) -> Extent:
    """How far measured points reach with their bars."""
    found = [(quantity(point), scale(point) if scale else 1.0) for point in points]
    known = [(one, factor) for one, factor in found if one.value is not None]
    ends = [end * factor for one, factor in known for end in (one.value, one.low, one.high) if end]
    return ends, ()


def extent_of_curve(curve: Curve | None) -> Extent:
    """How far a fitted curve reaches with its band."""
    if curve is None:
        return (), ()
    return curve.y, (*curve.low, *curve.high) if curve.band else ()


def linear_x(axes: Axes, values: Iterable[float], *, label: str) -> None:
    """A linear x axis from zero, on which what is proportional is straight."""
    axes.set_xlabel(label)
    axes.set_xlim(0.0, 1.05 * max([*values, 1e-9]))
    axes.xaxis.set_major_locator(MaxNLocator(nbins=8, steps=[1, 2, 2.5, 5, 10]))
    axes.xaxis.set_major_formatter(FuncFormatter(wording.tick))


def plain_x(axes: Axes, values: Iterable[float], *, label: str, most: int = 10, apart: float = 0.06) -> None:
    """A readable x axis: doubling steps when the values span a factor of four or more, else linear.

    Args:
        axes: whose x axis.
        values: what was measured or drawn along x.
        label: with its unit.
        most: ticks at the values themselves when there are no more than this many.
        apart: and when they are this far from one another, in shares of their span, so that labels have room.
    """
    known = sorted({value for value in values if value > 0})
    axes.set_xlabel(label)
    if known and known[-1] / known[0] >= 4:
        axes.set_xscale("log", base=2)
        first, last = int(np.floor(np.log2(known[0]))), int(np.ceil(np.log2(known[-1])))
        step = max(1, -(-(last - first) // most))
        powers = [2.0**power for power in range(first, last + 1, step)]
        has_room = is_spread(np.log(known).tolist(), most=most, apart=apart)
        axes.xaxis.set_major_locator(FixedLocator(known if has_room else powers))
        axes.set_xlim(known[0] / 1.18, known[-1] * 1.18)
    elif known:
        spare = 0.08 * (known[-1] - known[0]) or 0.5 * known[0]
        axes.set_xlim(known[0] - spare, known[-1] + spare)
        if is_spread(known, most=most, apart=apart):
            axes.xaxis.set_major_locator(FixedLocator(known))
        else:
            axes.xaxis.set_major_locator(MaxNLocator(nbins=most, steps=[1, 2, 2.5, 5, 10]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(wording.tick))


def is_spread(places: Sequence[float], *, most: int, apart: float) -> bool:
    """Whether a tick at each of the ascending places leaves its label room."""
    span = (places[-1] - places[0]) or 1.0
    return len(places) <= most and bool(np.all(np.diff(places) > apart * span))
