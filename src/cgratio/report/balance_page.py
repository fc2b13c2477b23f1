"""Supply of samples by actor CPUs, demand of the accelerator, and where the two cross."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from cgratio.analysis.facts import Curve, Optimum, Point, Quantity
from cgratio.report import charts, series, style, wording
from cgratio.report.content import Content
from cgratio.report.crossings import Crossing, crossings, meet, told_apart
from cgratio.report.gaps import Gap, write_gaps
from cgratio.report.sheet import Ruler, Sheet, open_sheet
from cgratio.results.words import Part

_SUPPLY, _DEMAND, _NEED = (
    "Supply S(c), and the demand it has to meet",
    "Demand D(s)",
    "Threads needed to keep it busy",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Balance:
    """What the page is drawn from.

    Attributes:
        supply, demand: the curves as far as a picture needs them; None where nothing was fitted.
        supplied, demanded: points of the parts alone.
        levels: amounts of accelerator whose demand is drawn, ascending, and where each is met.
        met: crossings over every amount that was measured.
    """

    supply: Curve | None
    demand: Curve | None
    supplied: tuple[Point, ...]
    demanded: tuple[Point, ...]
    levels: tuple[Crossing, ...]
    met: tuple[Crossing, ...]


def page(*, content: Content, ruler: Ruler) -> Sheet | Gap:
    """Makes the page, or says why there is none."""
    title = content.titled("Supply and demand of samples")
    balance = _balance(content)
    pictures: dict[str, Callable[[Axes, _Balance], None]] = {
        _SUPPLY: _draw_supply,
        _DEMAND: _draw_demand,
        _NEED: _draw_need,
    }
    reasons = {_SUPPLY: _why_no_supply, _DEMAND: _why_no_demand, _NEED: _why_no_need}
    gaps = [Gap(name=name, reason=reason) for name in pictures if (reason := reasons[name](balance))]
    missing = {gap.name for gap in gaps}
    shown = [name for name in pictures if name not in missing]
    if not shown:
        return Gap(name=title, reason=" ".join(dict.fromkeys(gap.reason for gap in gaps)))
    sheet = open_sheet(title=title, lead=_lead(content.optimum("samples_per_s"), balance), ruler=ruler)
    write_gaps(sheet, gaps, at_foot=True)
    sheet.reserve(top=sheet.top, bottom=sheet.bottom - 22.0)
    for name, axes in zip(shown, _places(sheet, len(shown)), strict=True):
        axes.set_title(name)
        pictures[name](axes, balance)
    _write_legend(sheet, top=sheet.bottom - 18.0)
    return sheet


def _places(sheet: Sheet, count: int) -> list[Axes]:
    """One wide picture, with up to two more at its right."""
    if count == 1:
        return [sheet.figure.subplots()]
    grid = sheet.figure.add_gridspec(count - 1, 2, width_ratios=(1.25, 1.0))
    right = [sheet.figure.add_subplot(grid[row, 1]) for row in range(count - 1)]
    return [sheet.figure.add_subplot(grid[:, 0]), *right]


def _balance(content: Content) -> _Balance:
    supply, demand = content.curve("supply"), content.curve("demand")
    demanded = content.part(Part.DEMAND)
    levels: tuple[Crossing, ...] = ()
    met: tuple[Crossing, ...] = ()
    if demand is not None:
        # One whole accelerator is what the answer is about, so it is shown even where none was whole.
        demand = charts.between(demand, min(demand.measured_low, 1.0), max(demand.measured_high, 1.0))
    if supply is not None and demand is not None:
        amounts = {amount for point in demanded if (amount := series.accelerators(point)) is not None}
        levels = told_apart([meet(supply, demand, amount) for amount in amounts or {1.0}], supply)
        met = tuple(one for one in crossings(supply, demand) if one.threads is not None)
    if supply is not None:
        furthest = max([supply.measured_high, *(one.threads or 0.0 for one in levels)])
        supply = charts.between(supply, 0.0, furthest)
    return _Balance(
        supply=supply,
        demand=demand,
        supplied=content.part(Part.SUPPLY),
        demanded=demanded,
        levels=levels,
        met=met,
    )


def _draw_supply(axes: Axes, balance: _Balance) -> None:
    points, supply = balance.supplied, balance.supply
    if supply is not None:
        charts.draw_curve(axes, supply, colour=style.SUPPLY, label="fitted")
    charts.draw_points(
        axes,
        points,
        x=_threads,
        quantity=_rate,
        mark=style.Mark(colour=style.SUPPLY, marker="o", line="none"),
        label="measured",
        joined=False,
    )
    cpus = [threads for point in points if (threads := _threads(point)) is not None]
    charts.linear_x(axes, [*cpus, *(supply.x if supply else ())], label="actor CPUs (hardware threads)")
    extents = [charts.extent_of_points(points, _rate), charts.extent_of_curve(supply)]
    # The words above the highest level have to fit below the upper edge.
    extents.append(([one.demand for one in balance.levels], []))
    charts.plain_y(axes, extents, label="samples/s")
    for one in balance.levels:
        _draw_level(axes, one, name=_of(one.amount, balance.demand))


def _draw_level(axes: Axes, one: Crossing, *, name: str) -> None:
    """Draws one level of demand, where supply meets it, and both in words above the line.

    Right of the crossing the supply curve runs above the level and left of it below: the words go to the
    side that has more room.
    """
    axes.axhline(one.demand, color=style.DEMAND, linewidth=1.0, linestyle=(0, (5, 2)), zorder=2)
    met = "not met" if one.threads is None else _threads_text(one.threads)
    tag = ", extrapolated" if one.is_extrapolated and one.threads is not None else ""
    place = 1.0 if one.threads is None else one.threads / axes.get_xlim()[1]
    is_left = place > 0.5
    axes.annotate(
        f"{name}: {met}{tag}",
        (0.0 if is_left else 1.0, one.demand),
        xycoords=axes.get_yaxis_transform(),
        xytext=(4 if is_left else -4, 2),
        textcoords="offset points",
        ha="left" if is_left else "right",
        va="bottom",
        size=style.SMALL,
        color=style.DEMAND,
        bbox=style.GROUND,
        zorder=6,
    )
    if one.threads is not None:
        axes.plot(
            [one.threads],
            [one.demand],
            "X",
            color=style.OPTIMUM,
            markersize=9,
            markeredgecolor="white",
            zorder=6,
        )


def _draw_demand(axes: Axes, balance: _Balance) -> None:
    if balance.demand is not None:
        charts.draw_curve(axes, balance.demand, colour=style.DEMAND, label="fitted")
    charts.draw_points(
        axes,
        balance.demanded,
        x=series.accelerators,
        quantity=_rate,
        mark=style.Mark(colour=style.DEMAND, marker="s", line="none"),
        label="measured",
        joined=False,
    )
    extents = [charts.extent_of_points(balance.demanded, _rate), charts.extent_of_curve(balance.demand)]
    charts.plain_y(axes, extents, label="samples/s")
    amounts = [series.accelerators(point) or 0.0 for point in balance.demanded]
    x = [*amounts, *(balance.demand.x if balance.demand else ())]
    charts.linear_x(axes, x, label=_amount_label(balance.demand))


def _draw_need(axes: Axes, balance: _Balance) -> None:
    x = np.array([one.amount for one in balance.met])
    y = np.array([one.threads for one in balance.met], dtype=float)
    outside = np.array([one.is_extrapolated for one in balance.met])
    low = np.array([0.0 if one.low is None else one.low for one in balance.met])
    high = np.array([math.inf if one.high is None else one.high for one in balance.met])
    charts.plain_y(axes, [(y.tolist(), [*low, *high])], label="threads")
    # Where the lower edge of supply never meets demand, no number of threads is too high to be possible.
    axes.fill_between(
        x, low, np.minimum(high, axes.get_ylim()[1]), color=style.OPTIMUM, alpha=0.16, linewidth=0
    )
    if np.isinf(high).any():
        axes.text(
            0.02,
            0.96,
            "the band goes on where it reaches the top",
            transform=axes.transAxes,
            va="top",
            size=style.SMALL,
            color=style.MUTED,
            bbox=style.GROUND,
        )
    axes.plot(x, np.where(outside, np.nan, y), color=style.OPTIMUM)
    if outside.any():
        axes.plot(x, y, color=style.OPTIMUM, linestyle=(0, (3, 2)), linewidth=1.1, zorder=1.9)
    charts.linear_x(axes, x.tolist(), label=_amount_label(balance.demand))


def _write_legend(sheet: Sheet, *, top: float) -> None:
    """One legend for the page: what a stroke means is the same in all its pictures."""
    ink = style.MUTED
    handles = [
        Line2D([], [], color=ink, label="fitted"),
        Line2D([], [], color=ink, linestyle=(0, (3, 2)), linewidth=1.1, label="extrapolated"),
        Patch(facecolor=ink, alpha=0.16, label="95 % band"),
        Line2D([], [], color=ink, marker="o", linestyle="none", label="measured"),
        Line2D([], [], color=style.DEMAND, linewidth=1.0, linestyle=(0, (5, 2)), label="a demand to meet"),
        Line2D([], [], color=style.OPTIMUM, marker="X", linestyle="none", label="supply meets demand"),
    ]
    anchor = (0.5, 1 - top / style.HEIGHT)
    sheet.figure.legend(handles=handles, loc="upper center", bbox_to_anchor=anchor, ncols=6, borderaxespad=0)


def _why_no_supply(balance: _Balance) -> str:
    if balance.supplied or balance.supply:
        return ""
    return "No valid trial of the part `supply`: what the actor CPUs can produce on their own is not known."


def _why_no_demand(balance: _Balance) -> str:
    if not balance.demanded and balance.demand is None:
        return "No valid trial of the part `demand`: what the accelerator can use is not known."
    amounts = {series.accelerators(point) for point in balance.demanded}
    if balance.demand and balance.demand.measured_low == balance.demand.measured_high and len(amounts) == 1:
        (point, *_) = balance.demanded
        amount = _of(balance.demand.measured_low, balance.demand)
        return f"Measured for {amount} only: {wording.cell(point.rate)} {point.rate.unit}."
    return ""


def _why_no_need(balance: _Balance) -> str:
    missing = [
        name for name, curve in (("supply", balance.supply), ("demand", balance.demand)) if curve is None
    ]
    if missing:
        return f"No {' and no '.join(missing)} curve was fitted."
    if not balance.met:
        return "As far as the supply curve is drawn, it does not meet demand."
    if len(balance.met) == 1:
        return "One amount of the accelerator only: see the crossing in the picture of supply."
    return ""


def _lead(optimum: Optimum | None, balance: _Balance) -> str:
    text = "With fewer threads the accelerator waits; with more the environments wait."
    if not balance.met:
        at = optimum.threads_per_accelerator if optimum else None
        if at is not None and at.value is not None:
            found = f"{wording.rounded(at.value)} {at.unit} ({at.origin.value})"
            return f"Supply meets demand at {found}, further than the curves are drawn. {text}"
        return _why_no_need(balance)
    one = min(balance.met, key=lambda one: abs(one.amount - 1.0))
    assert one.threads is not None, "kept because it is known"
    bounds = ""
    if one.low is not None and one.high is not None and one.low < one.high:
        low, high = wording.rounded(one.low), wording.rounded(one.high)
        bounds = f" (the edges of the bands meet at {low} and {high})"
    tag = ", extrapolated" if one.is_extrapolated else ""
    name = _of(one.amount, balance.demand)
    return f"For {name}, supply meets demand at {_threads_text(one.threads)}{bounds}{tag}. {text}"


def _rate(point: Point) -> Quantity:
    return point.rate


def _threads(point: Point) -> float | None:
    threads = point.axes.get("actor_cpus")
    return float(threads) if threads else None


def _threads_text(threads: float) -> str:
    return f"{wording.rounded(threads)} threads"


def _of(amount: float, demand: Curve | None) -> str:
    """An amount of accelerator in words: `0.5 GPUs`, `1 GPU`."""
    unit = demand.x_unit or demand.x_name if demand else "accelerators"
    return f"{wording.number(amount)} {unit.removesuffix('s') if amount == 1 else unit}"


def _amount_label(demand: Curve | None) -> str:
    if demand is None:
        return "accelerators in use"
    return f"{demand.x_name} ({demand.x_unit})" if demand.x_unit else demand.x_name
