"""Supply of samples by actor CPUs, demand of the accelerator, and where the two cross."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes

from cgratio.analysis.facts import Curve, Point, Quantity
from cgratio.report import charts, series, style, wording
from cgratio.report.content import Content
from cgratio.report.sheet import Ruler, Sheet, open_sheet, say_instead
from cgratio.results.words import Part

_WIDE = style.WIDTH - 2 * style.MARGIN
_MOST_LEVELS = 5  # horizontal lines of demand that stay readable


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossing:
    """How many threads keep one amount of accelerator busy.

    Attributes:
        amount: of the accelerator, on the demand curve's x axis. demand: samples/s there.
        threads: where supply meets it; None when the supply curve does not reach it.
        low, high: from the edges of both bands; None where an edge is not reached.
        is_extrapolated: whether the crossing lies outside what trials measured.
    """

    amount: float
    demand: float
    threads: float | None
    low: float | None
    high: float | None
    is_extrapolated: bool


def crossings(supply: Curve, demand: Curve) -> tuple[Crossing, ...]:
    """Meets the supply curve with each point of the demand curve."""
    found = []
    # One whole accelerator is what the answer is about, so it is always among the amounts.
    amounts = sorted({*demand.x, *((1.0,) if demand.x[0] <= 1.0 <= demand.x[-1] else ())})
    for amount in amounts:
        wanted, low, high = (
            float(np.interp(amount, demand.x, part)) for part in (demand.y, demand.low, demand.high)
        )
        threads = _reach(supply.x, supply.y, wanted)
        outside = not demand.measured_low <= amount <= demand.measured_high
        if threads is not None:
            outside = outside or threads > supply.measured_high  # no threads supply nothing: known untested
        found.append(
            Crossing(
                amount=amount,
                demand=wanted,
                threads=threads,
                low=_reach(supply.x, supply.high, low),
                high=_reach(supply.x, supply.low, high),
                is_extrapolated=outside,
            )
        )
    return tuple(found)


def _reach(x: tuple[float, ...], y: tuple[float, ...], level: float) -> float | None:
    """The first x at which y reaches a level, None when it never does or begins above it."""
    for left, right in zip(range(len(x) - 1), range(1, len(x)), strict=True):
        if y[left] <= level <= y[right]:
            rise = y[right] - y[left]
            return x[left] + (x[right] - x[left]) * ((level - y[left]) / rise if rise else 0.0)
    return None


def pages(*, content: Content, ruler: Ruler) -> list[Sheet]:
    """Makes the page."""
    supply, demand = content.curve("supply"), content.curve("demand")
    met = crossings(supply, demand) if supply and demand else ()
    sheet = open_sheet(
        title=content.titled("Supply and demand of samples"), lead=_lead(supply, demand, met), ruler=ruler
    )
    sheet.reserve(top=sheet.top, bottom=sheet.bottom)
    grid = sheet.figure.add_gridspec(2, 2, width_ratios=(1.25, 1.0))
    first = sheet.figure.add_subplot(grid[:, 0])
    second, third = sheet.figure.add_subplot(grid[0, 1]), sheet.figure.add_subplot(grid[1, 1])
    _draw_supply(first, content, supply, demand, ruler=ruler)
    _draw_demand(second, content, demand, ruler=ruler)
    _draw_need(third, supply, demand, met, ruler=ruler)
    return [sheet]


def _draw_supply(
    axes: Axes, content: Content, supply: Curve | None, demand: Curve | None, *, ruler: Ruler
) -> None:
    points = content.part(Part.SUPPLY)
    if not points and supply is None:
        reason = (
            "No valid trial of the part `supply`: what the actor CPUs can produce on their own is not known."
        )
        say_instead(axes, title="Supply S(c)", text=reason, width=0.5 * _WIDE, ruler=ruler)
        return
    axes.set_title("Supply S(c), and the demand it has to meet")
    if supply is not None:
        charts.draw_curve(axes, supply, colour=style.SUPPLY, label="supply, fitted")
    charts.draw_points(
        axes,
        points,
        x=lambda point: float(point.axes["actor_cpus"]) if point.axes.get("actor_cpus") else None,
        quantity=lambda point: point.rate,
        mark=style.Mark(colour=style.SUPPLY, marker="o", line="none"),
        label="supply, measured",
        joined=False,
    )
    levels = _levels(content, demand)
    cpus = [float(p.axes["actor_cpus"]) for p in points if p.axes.get("actor_cpus")]
    drawn = list(supply.x) if supply else []
    charts.linear_x(axes, [*cpus, *drawn], label="actor CPUs (hardware threads)")
    for amount, wanted in levels:
        at = _reach(supply.x, supply.y, wanted) if supply else None
        _draw_level(axes, name=f"demand of {_of(amount, demand)}" if demand else "", wanted=wanted, at=at)
    heights = [*charts.seen(points, _rate), *(wanted for _, wanted in levels), *(supply.y if supply else ())]
    charts.plain_y(axes, heights, label="samples/s", headroom=0.08)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.1), ncols=3, columnspacing=1.4)


def _draw_level(axes: Axes, *, name: str, wanted: float, at: float | None) -> None:
    """Draws one level of demand and where supply meets it.

    Left of the crossing the supply curve is below the level, right of it above: the words go where it is not.
    """
    axes.axhline(wanted, color=style.DEMAND, linewidth=1.0, linestyle=(0, (5, 2)), zorder=2)
    place = 1.0 if at is None else at / axes.get_xlim()[1]
    left = 0.4 < place <= 1.0
    axes.annotate(
        name,
        (0.0 if left else 1.0, wanted),
        xycoords=axes.get_yaxis_transform(),
        xytext=(4, 2) if left else (-4, -2),
        textcoords="offset points",
        ha="left" if left else "right",
        va="bottom" if left else "top",
        size=style.SMALL,
        color=style.DEMAND,
    )
    if at is None:
        return
    axes.plot([at], [wanted], "X", color=style.OPTIMUM, markersize=9, markeredgecolor="white", zorder=6)
    axes.annotate(
        f"{wording.number(at)} threads",
        (at, wanted),
        xytext=(-8, 4) if place > 0.7 else (8, -12),
        textcoords="offset points",
        ha="right" if place > 0.7 else "left",
        size=8.5,
        weight="bold",
        color=style.OPTIMUM,
    )


def _levels(content: Content, demand: Curve | None) -> list[tuple[float, float]]:
    """The measured amounts of accelerator with the fitted demand there, at most a few of them."""
    if demand is None or not demand.x:
        return []
    amounts = sorted(
        {amount for p in content.part(Part.DEMAND) if (amount := series.accelerators(p)) is not None}
    )
    if len(amounts) > _MOST_LEVELS:
        places = np.linspace(0, len(amounts) - 1, _MOST_LEVELS).round().astype(int)
        amounts = [amounts[place] for place in places]
    return [(amount, float(np.interp(amount, demand.x, demand.y))) for amount in amounts]


def _rate(point: Point) -> Quantity:
    return point.rate


def _of(amount: float, demand: Curve) -> str:
    """An amount of accelerator in words: `0.5 GPUs`, `1 GPU`."""
    unit = demand.x_unit or demand.x_name
    return f"{wording.number(amount)} {unit.removesuffix('s') if amount == 1 else unit}"


def _draw_demand(axes: Axes, content: Content, demand: Curve | None, *, ruler: Ruler) -> None:
    points = content.part(Part.DEMAND)
    if not points and demand is None:
        reason = "No valid trial of the part `demand`: what the accelerator can use is not known."
        say_instead(axes, title="Demand D(s)", text=reason, width=0.4 * _WIDE, ruler=ruler)
        return
    axes.set_title("Demand D(s)")
    if demand is not None:
        charts.draw_curve(axes, demand, colour=style.DEMAND, label="demand, fitted")

    charts.draw_points(
        axes,
        points,
        x=series.accelerators,
        quantity=lambda point: point.rate,
        mark=style.Mark(colour=style.DEMAND, marker="s", line="none"),
        label="demand, measured",
        joined=False,
    )
    charts.plain_y(axes, [*charts.seen(points, _rate), *(demand.y if demand else ())], label="samples/s")
    amounts = [series.accelerators(point) or 0.0 for point in points]
    charts.linear_x(axes, [*amounts, *(demand.x if demand else ())], label=_amount_label(demand))
    axes.legend(loc="upper left")


def _amount_label(demand: Curve | None) -> str:
    if demand is None:
        return "accelerators in use"
    return f"{demand.x_name} ({demand.x_unit})" if demand.x_unit else demand.x_name


def _draw_need(
    axes: Axes, supply: Curve | None, demand: Curve | None, met: tuple[Crossing, ...], *, ruler: Ruler
) -> None:
    title = "Threads needed to keep the accelerator busy"
    known = [(one, one.threads) for one in met if one.threads is not None]
    if not known:
        reason = _why_no_crossing(supply, demand)
        say_instead(axes, title=title, text=reason, width=0.4 * _WIDE, ruler=ruler)
        return
    axes.set_title(title)
    x = np.array([one.amount for one, _ in known])
    y = np.array([threads for _, threads in known])
    outside = np.array([one.is_extrapolated for one, _ in known])
    low = np.array([math.nan if one.low is None else one.low for one, _ in known])
    high = np.array([math.nan if one.high is None else one.high for one, _ in known])
    axes.fill_between(x, low, high, color=style.OPTIMUM, alpha=0.16, linewidth=0)
    axes.plot(x, np.where(outside, np.nan, y), color=style.OPTIMUM, label="supply meets demand")
    if outside.any():
        axes.plot(
            x, y, color=style.OPTIMUM, linestyle=(0, (3, 2)), linewidth=1.2, label="extrapolated", zorder=1
        )
    charts.plain_y(
        axes, [*y.tolist(), *(min(h, 2 * t) for h, t in zip(high, y, strict=True))], label="threads"
    )
    charts.linear_x(axes, x.tolist(), label=_amount_label(demand))
    axes.legend(loc="upper left")


def _why_no_crossing(supply: Curve | None, demand: Curve | None) -> str:
    missing = [name for name, curve in (("supply", supply), ("demand", demand)) if curve is None]
    if missing:
        return f"No crossing: no {' and no '.join(missing)} curve was fitted."
    return "No crossing: within the fitted curves, supply does not meet demand."


def _lead(supply: Curve | None, demand: Curve | None, met: tuple[Crossing, ...]) -> str:
    known = [one for one in met if one.threads is not None]
    if not known or demand is None:
        return _why_no_crossing(supply, demand)
    last = min(known, key=lambda one: abs(one.amount - 1.0))
    assert last.threads is not None, "kept because it is known"
    text = f"For {_of(last.amount, demand)}, supply meets demand at {wording.number(last.threads)} threads"
    if last.low is not None and last.high is not None:
        text += f" ({wording.number(last.low)} to {wording.number(last.high)}, from the edges of both bands)"
    tag = ", extrapolated" if last.is_extrapolated else ""
    return f"{text}{tag}. With fewer the accelerator waits; with more the environments wait."
