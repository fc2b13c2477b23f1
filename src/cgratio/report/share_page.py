"""Slowdown against the accelerator's share (Fig. 4 of Inci et al. 2020, for this host)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from matplotlib.axes import Axes

from cgratio.analysis.facts import Curve
from cgratio.report import charts, series, style, wording
from cgratio.report.content import Content
from cgratio.report.series import Series, Slowdown
from cgratio.report.sheet import Ruler, Sheet, open_sheet, say_instead
from cgratio.results.words import Part

_HALF = (style.WIDTH - 2 * style.MARGIN) / 2


def pages(*, content: Content, ruler: Ruler) -> list[Sheet]:
    """Makes the page."""
    curve = content.curve("rate_by_share")
    points = content.part(Part.WHOLE)
    found = series.along("sm_share", points, first=curve.fixed if curve else None)
    title = content.titled("Slowdown with a smaller share of the accelerator")
    if not found:
        shares = sorted({p.axes["sm_share"] for p in points if p.axes.get("sm_share") is not None})
        sheet = open_sheet(title=title, lead="", ruler=ruler)
        sheet.reserve(top=sheet.top, bottom=sheet.top + 200)
        axes = sheet.figure.subplots()
        say_instead(axes, title="Slowdown", text=_why_none(shares), width=2 * _HALF, ruler=ruler)
        return [sheet]
    sheet = open_sheet(title=title, lead=_lead(found[0]), ruler=ruler)
    foot = sheet.bottom - 42.0
    sheet.reserve(top=sheet.top, bottom=foot)
    left, right = sheet.figure.subplots(1, 2)
    base = _base_rate(curve, found[0])
    shares = [float(point.axes["sm_share"]) for line in found for point in line.points]
    ends = min(shares), max(shares)
    for axes, name, reading, convert in (
        (left, "Lost throughput, 1 − X/X0", _lost, lambda rates: [100 * (1 - r / base) for r in rates]),
        (
            right,
            "Added time, X0/X − 1",
            _added,
            lambda rates: [100 * (base / r - 1) if r > 0 else np.nan for r in rates],
        ),
    ):
        axes.set_title(name)
        if curve is not None and base > 0:
            charts.draw_curve(
                axes,
                curve,
                colour=style.MARKS[0].colour,
                label="fitted",
                scale=convert,
                start=ends[0],
                stop=ends[1],
            )
        for place, line in enumerate(found[: len(style.MARKS)]):
            _draw(
                axes,
                series.slowdowns(line),
                reading,
                style.MARKS[place],
                line.label,
                joined=curve is None or place > 0,
            )
        heights = [100 * reading(one)[0] for line in found for one in series.slowdowns(line)]
        heights.append(-0.02 * max(heights))  # the point at zero is seen whole
        charts.plain_y(axes, heights, label=f"{name.split(',')[0].lower()} (%)", headroom=0.15)
        charts.plain_x(axes, shares, label="share of the accelerator", most=8)
        _ratio_axis(axes, content, found[0])
        axes.legend(loc="upper right")
    _explain(sheet, found, top=foot + 4.0)
    return [sheet]


def _draw(
    axes: Axes,
    slow: tuple[Slowdown, ...],
    reading: Callable[[Slowdown], tuple[float, tuple[float, float] | None]],
    mark: style.Mark,
    label: str,
    *,
    joined: bool,
) -> None:
    values = [100 * reading(one)[0] for one in slow]
    bounds = [reading(one)[1] or (reading(one)[0], reading(one)[0]) for one in slow]
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


def _lost(one: Slowdown) -> tuple[float, tuple[float, float] | None]:
    return one.lost, one.lost_interval


def _added(one: Slowdown) -> tuple[float, tuple[float, float] | None]:
    return one.added, one.added_interval


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
    suffix = f" ({line.label})" if line.label else ""
    top.set_xlabel(f"CPU/GPU ratio, {name}{suffix}")


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
        text += f" (1 − X/X0, 95 % interval {wording.percent(low)} to {wording.percent(high)})"
    else:
        text += " (1 − X/X0)"
    return f"{text}; the same work takes {wording.percent(small.added)} more time (X0/X − 1)."


def _explain(sheet: Sheet, found: tuple[Series, ...], *, top: float) -> None:
    base = wording.number(float(found[0].points[-1].axes["sm_share"]))
    more = (
        f" {len(found) - len(style.MARKS)} more lines are in the table."
        if len(found) > len(style.MARKS)
        else ""
    )
    sheet.top = top
    sheet.paragraph(
        "Two readings of slowdown. Left, lost throughput: 1 − X/X0. Right, added time: X0/X − 1. X is the "
        f"rate at a share and X0 the rate at the largest share measured, {base}. Bars join the intervals of "
        f"both rates; the band is the fit's own. Both begin at zero by definition.{more}",
        size=style.SMALL,
        colour=style.MUTED,
        most=3,
    )


def _why_none(shares: list[float]) -> str:
    if not shares:
        return "Nothing to draw: no valid trial of the whole training job tells its share of the accelerator."
    if len(shares) == 1:
        return (
            f"Only one share was measured ({wording.number(float(shares[0]))}), so there is no slowdown to "
            "show. Sweep `sm_share` to get this picture."
        )
    return (
        "No two points differ in the share alone, so there is no slowdown to show. "
        "Sweep `sm_share` with everything else held fixed to get this picture."
    )
