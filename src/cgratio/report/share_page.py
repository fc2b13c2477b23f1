"""Slowdown against the accelerator's share (Fig. 4 of Inci et al. 2020, for this host)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from cgratio.analysis.facts import Curve
from cgratio.report import charts, series, style, wording
from cgratio.report.content import Content
from cgratio.report.gaps import Gap
from cgratio.report.series import Series, Slowdown
from cgratio.report.sheet import Ruler, Sheet, open_sheet
from cgratio.results.words import Part


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """One of the two ways to state a slowdown.

    Attributes:
        name, label: of the picture and of its axis, in per cent.
        of: the number of a slowdown with its interval, as a share.
        convert: a rate and the rate at the largest share to the number in per cent; NaN where there is none.
    """

    name: str
    label: str
    of: Callable[[Slowdown], tuple[float, tuple[float, float] | None]]
    convert: Callable[[float, float], float]


_READINGS = (
    _Reading(
        name="Lost throughput, 1 − X/X0",
        label="lost throughput (%)",
        of=lambda one: (one.lost, one.lost_interval),
        convert=lambda rate, base: 100 * (1 - rate / base),
    ),
    _Reading(
        name="Added time, X0/X − 1",
        label="added time (%)",
        of=lambda one: (one.added, one.added_interval),
        convert=lambda rate, base: 100 * (base / rate - 1) if rate > 0 else math.nan,
    ),
)


def page(*, content: Content, ruler: Ruler) -> Sheet | Gap:
    """Makes the page, or says why there is none."""
    curve = content.curve("rate_by_share")
    points = content.part(Part.WHOLE)
    found = series.along("sm_share", points, first=curve.fixed if curve else None)
    title = content.titled("Slowdown with a smaller share of the accelerator")
    if not found:
        shares = sorted({p.axes["sm_share"] for p in points if p.axes.get("sm_share") is not None})
        return Gap(name=title, reason=_why_none(shares))
    sheet = open_sheet(title=title, lead=_lead(found[0]), ruler=ruler)
    foot = sheet.bottom - 36.0
    sheet.reserve(top=sheet.top, bottom=foot)
    pictures: Any = sheet.figure.subfigures(1, 1)
    for axes, reading in zip(pictures.subplots(1, 2), _READINGS, strict=True):
        axes.set_title(reading.name)
        _draw_reading(axes, reading, found, curve)
        _ratio_axis(axes, content, found[0])
    handles, labels = axes.get_legend_handles_labels()
    columns = min(len(labels), 3)
    pictures.legend(handles, labels, loc="outside lower center", ncols=columns, columnspacing=1.4)
    _explain(sheet, found, curve, top=foot + 4.0)
    return sheet


def _draw_reading(axes: Axes, reading: _Reading, found: tuple[Series, ...], curve: Curve | None) -> None:
    shares = [float(point.axes["sm_share"]) for line in found for point in line.points]
    base = _base_rate(curve, found[0])
    extents = []
    if curve is not None and base > 0:
        part = charts.scaled(
            charts.between(curve, min(shares), max(shares)), lambda rate: reading.convert(rate, base)
        )
        charts.draw_curve(axes, part, colour=style.MARKS[0].colour, label="fitted")
        extents.append(charts.extent_of_curve(part))
    for place, line in enumerate(found):
        slow = series.slowdowns(line)
        read = [reading.of(one) for one in slow]
        extents.append(([100 * end for value, bounds in read for end in (value, *(bounds or ()))], ()))
        if place < len(style.MARKS):
            joined = curve is None or place > 0
            _draw(axes, slow, reading, style.MARKS[place], line.label, joined=joined)
    highest = max((value for values, _ in extents for value in values if math.isfinite(value)), default=0.0)
    extents.append(([-0.02 * highest], ()))  # the point at zero is seen whole
    charts.plain_y(axes, extents, label=reading.label)
    charts.plain_x(axes, shares, label="share of the accelerator", most=8, apart=0.12)


def _draw(
    axes: Axes,
    slow: tuple[Slowdown, ...],
    reading: _Reading,
    mark: style.Mark,
    label: str,
    *,
    joined: bool,
) -> None:
    read = [reading.of(one) for one in slow]
    values = [100 * value for value, _ in read]
    bounds = [interval or (value, value) for value, interval in read]
    axes.errorbar(
        [one.share for one in slow],
        values,
        yerr=(
            [max(0.0, value - 100 * low) for value, (low, _) in zip(values, bounds, strict=True)],
            [max(0.0, 100 * high - value) for value, (_, high) in zip(values, bounds, strict=True)],
        ),
        color=mark.colour,
        marker=mark.marker,
        linestyle=mark.line if joined else "none",
        linewidth=1.2,
        capsize=3,
        elinewidth=1.0,
        markeredgecolor="white",
        markeredgewidth=0.5,
        label=label or "measured",
        zorder=4,
    )


def _base_rate(curve: Curve | None, line: Series) -> float:
    """The fitted rate at the largest measured share, so that the curve passes through zero there."""
    if curve is None or not curve.x:
        return 0.0
    order = np.argsort(curve.x)
    share = float(line.points[-1].axes["sm_share"])
    return float(np.interp(share, np.array(curve.x)[order], np.array(curve.y)[order]))


def _ratio_axis(axes: Axes, content: Content, line: Series) -> None:
    """Writes the CPU/GPU ratio of the first line along the top."""
    threads = line.points[-1].axes.get("actor_cpus")
    if not threads:
        return
    counts = {}
    for point in line.points:
        share, sms = float(point.axes["sm_share"]), content.sm_count(point)
        units = float(sms) if sms else series.accelerators(point)
        if units:
            counts[share] = threads / units
    name = "threads per SM" if all(content.sm_count(p) for p in line.points) else "threads per accelerator"
    ticks = [share for share in axes.get_xticks() if share in counts] or sorted(counts)
    top = axes.twiny()
    top.set_xscale(axes.get_xscale(), **({"base": 2} if axes.get_xscale() == "log" else {}))
    top.set_xlim(axes.get_xlim())
    top.set_xticks(ticks, [wording.tick(counts[share]) for share in ticks], minor=False)
    top.set_xticks([], minor=True)
    top.grid(visible=False)
    top.spines["top"].set_visible(True)
    top.set_xlabel(f"CPU/GPU ratio, {name}")


def _lead(line: Series) -> str:
    slow = series.slowdowns(line)
    if not slow:
        return ""
    small, base = slow[0], slow[-1]
    which = f" ({line.label})" if line.label else ""
    text = (
        f"With a share of {wording.number(small.share)} instead of {wording.number(base.share)}{which}, "
        f"{wording.percent(small.lost)} of the throughput is lost"
    )
    if small.lost_interval:
        low, high = small.lost_interval
        text += f" (1 − X/X0, 95 % interval [{wording.percent(low)}, {wording.percent(high)}])"
    else:
        text += " (1 − X/X0)"
    return f"{text}; the same work takes {wording.percent(small.added)} more time (X0/X − 1)."


def _explain(sheet: Sheet, found: tuple[Series, ...], curve: Curve | None, *, top: float) -> None:
    first = found[0]
    base = wording.number(float(first.points[-1].axes["sm_share"]))
    text = (
        f"X is the rate at a share and X0 the rate at the largest share measured, {base}, where both "
        "readings are 0 by definition and have no bar. Bars join the intervals of both rates."
    )
    if curve is not None and curve.band:
        text += (
            f" The band is that of the fitted rate X alone, against the fitted rate at {base} as X0, so it "
            "has a width there too."
        )
    if first.label:
        text += f" The ratio along the top is that of {first.label}."
    if len(found) > len(style.MARKS):
        text += f" {len(found) - len(style.MARKS)} more lines are in the table."
    sheet.top = top
    sheet.paragraph(text, size=style.SMALL, colour=style.MUTED, most=3)


def _why_none(shares: list[float]) -> str:
    if not shares:
        return "No valid trial of the whole training job tells its share of the accelerator."
    if len(shares) == 1:
        share = wording.number(float(shares[0]))
        return f"Only one share was measured ({share}); sweep `sm_share` to get this picture."
    return (
        "No two points differ in the share alone; sweep `sm_share` with everything else held fixed to get "
        "this picture."
    )
