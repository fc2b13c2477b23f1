"""Throughput, power and samples per joule against actors (Fig. 3 of Inci et al. 2020, for this host)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes

from cgratio.analysis.facts import Curve, Origin, Point, Quantity
from cgratio.report import charts, series, style, wording
from cgratio.report.content import Content
from cgratio.report.gaps import Gap, write_gaps
from cgratio.report.sheet import Ruler, Sheet, open_sheet
from cgratio.results.words import Part


@dataclass(frozen=True, slots=True, kw_only=True)
class _Energy:
    """A picture of power or of samples per joule.

    Attributes:
        name, unit: of what is shown.
        quantity: how a point gives it.
    """

    name: str
    unit: str
    quantity: Callable[[Point], Quantity]


_ENERGY = (
    _Energy(name="Power", unit="W", quantity=lambda point: point.power),
    _Energy(name="Samples per joule", unit="samples/J", quantity=lambda point: point.samples_per_joule),
)


def page(*, content: Content, ruler: Ruler) -> Sheet | Gap:
    """Makes the page, or says why there is none."""
    curve = content.curve("rate_by_actors")
    points = content.part(Part.WHOLE)
    found = series.along("actors", points, first=curve.fixed if curve else None)
    title = content.titled("Throughput and power against actors")
    if not found:
        return Gap(name=title, reason=_why_none(points))
    sheet = open_sheet(title=title, lead=_lead(found), ruler=ruler)
    shown = [one for one in _ENERGY if _lines(one, points, above=found)]
    gaps = [Gap(name=one.name, reason=_why_no_energy(one, points)) for one in _ENERGY if one not in shown]
    write_gaps(sheet, gaps, at_foot=True)
    sheet.reserve(top=sheet.top, bottom=sheet.bottom)
    above, *below = _rows(sheet, 2 if shown else 1)
    _draw_rates(above, found, curve)
    if shown:
        panels = below[0].subplots(1, len(shown), squeeze=False)[0]
        for axes, one in zip(panels, shown, strict=True):
            _draw_energy(axes, one, _lines(one, points, above=found), above=found)
    return sheet


def _rows(sheet: Sheet, count: int) -> list[Any]:
    """Rows of pictures from top to bottom, the first the highest."""
    rows: Any = sheet.figure.subfigures(count, 1, height_ratios=(1.3, 1.0)[:count], squeeze=False)
    return [row[0] for row in rows]


def _draw_rates(figure: Any, found: tuple[series.Series, ...], curve: Curve | None) -> None:
    axes = figure.subplots()
    axes.set_title("Throughput")
    actors = [_actors(point) for line in found for point in line.points]
    if curve is not None:
        curve = charts.between(curve, min(actors), max(actors))
        charts.draw_curve(axes, curve, colour=style.MARKS[0].colour, label="fitted")
    _draw(axes, found, lambda point: point.rate, joined=curve is None)
    extents = [charts.extent_of_points(line.points, lambda point: point.rate) for line in found]
    charts.plain_y(axes, [*extents, charts.extent_of_curve(curve)], label="samples/s")
    charts.plain_x(axes, actors, label="actors in flight")
    figure.legend(loc="outside right upper", title="Lines" if len(found) > 1 else None, alignment="left")


def _lines(
    one: _Energy, points: tuple[Point, ...], *, above: tuple[series.Series, ...]
) -> list[series.Series]:
    """The lines of a quantity that have any value, in the order of those above."""
    lines = series.along("actors", points, first=above[0].fixed, by_boundary=True)
    return [line for line in lines if any(one.quantity(point).value is not None for point in line.points)]


def _why_no_energy(one: _Energy, points: tuple[Point, ...]) -> str:
    if any(one.quantity(point).value is not None for point in points):
        return "Known at one number of actors only: see the table of points."
    reasons = wording.reasons(reason for point in points if (reason := one.quantity(point).reason))
    return f"Unknown: {reasons or 'no valid point has a value'}."


def _draw_energy(
    axes: Axes, one: _Energy, shown: list[series.Series], *, above: tuple[series.Series, ...]
) -> None:
    drawn = [point for line in shown for point in line.points if one.quantity(point).value is not None]
    boundaries = sorted({point.boundary or "boundary not recorded" for point in drawn})
    is_modelled = "modelled" in boundaries or any(
        one.quantity(point).origin is Origin.MODELLED for point in drawn
    )
    covers = ", ".join(boundary for boundary in boundaries if boundary != "modelled")
    tag = ", ".join(part for part in (covers, "modelled" if is_modelled else "") if part)
    axes.set_title(f"{one.name} ({tag})")
    marks = _same_marks(tuple(shown), above)
    if marks is None:
        _draw(axes, tuple(shown), one.quantity, joined=True)
        axes.legend(loc="best")
    else:
        known = {_but_boundary(line) for line in above[: len(style.MARKS)]}
        # Those without a mark are context, last.
        shown = sorted(shown, key=lambda line: _but_boundary(line) not in known)
        _draw(axes, tuple(shown), one.quantity, marks=marks, joined=True)
    label = f"{one.unit}, modelled" if is_modelled else one.unit
    charts.plain_y(axes, [charts.extent_of_points(drawn, one.quantity)], label=label)
    charts.plain_x(
        axes, [_actors(point) for line in shown for point in line.points], label="actors in flight"
    )


def _draw(
    axes: Axes,
    found: tuple[series.Series, ...],
    quantity: Callable[[Point], Quantity],
    *,
    marks: tuple[style.Mark, ...] = style.MARKS,
    joined: bool,
) -> None:
    for place, (line, mark) in enumerate(zip(found, marks, strict=False)):
        charts.draw_points(
            axes,
            line.points,
            x=_actors,
            quantity=quantity,
            mark=mark,
            label=line.label or "measured",
            joined=joined or place > 0,
        )
    rest = found[len(marks) :]
    for place, line in enumerate(rest):
        charts.draw_points(
            axes,
            line.points,
            x=_actors,
            quantity=quantity,
            mark=style.Mark(colour="#CFCFCF", marker="", line="-"),
            label="" if place else f"{len(rest)} more, in the table",
            joined=True,
        )


def _same_marks(
    lines: tuple[series.Series, ...], above: tuple[series.Series, ...]
) -> tuple[style.Mark, ...] | None:
    """The marks of the same lines in the picture above; None when lines differ by what a joule covers."""
    marks = {_but_boundary(line): mark for line, mark in zip(above, style.MARKS, strict=False)}
    keys = [_but_boundary(line) for line in lines]
    if len(set(keys)) < len(keys):
        return None
    return tuple(marks[key] for key in keys if key in marks)


def _but_boundary(line: series.Series) -> tuple[tuple[str, Any], ...]:
    return tuple((name, value) for name, value in line.fixed.items() if name != "boundary")


def _actors(point: Point) -> float:
    return float(point.axes["actors"])


def _lead(found: tuple[series.Series, ...]) -> str:
    if not found:
        return ""
    first, last = found[0].points[0], found[0].points[-1]
    assert first.rate.value is not None, "only points with a rate are here"
    assert last.rate.value is not None, "only points with a rate are here"
    which = f" ({found[0].label})" if found[0].label else ""
    text = (
        f"From {wording.axis_value('actors', first.axes['actors'])} to {last.axes['actors']}{which}, "
        f"throughput goes from {wording.rounded(first.rate.value)} to {wording.amount(last.rate)}"
    )
    if first.rate.value > 0:
        text += f", {wording.rounded(last.rate.value / first.rate.value)} times as much"
    has_bars = any(point.rate.low is not None for line in found for point in line.points)
    return text + (". Bars are 95 % intervals over replicates." if has_bars else ".")


def _why_none(points: tuple[Point, ...]) -> str:
    if not points:
        return "No valid trial ran the whole training job."
    return "Every line of points has one number of actors only; sweep `actors` to get this picture."
