"""Throughput, power and samples per joule against actors (Fig. 3 of Inci et al. 2020, for this host)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from matplotlib.axes import Axes

from cgratio.analysis.facts import Origin, Point, Quantity
from cgratio.report import charts, series, style, wording
from cgratio.report.content import Content
from cgratio.report.sheet import Ruler, Sheet, open_sheet, say_instead
from cgratio.results.words import Part

_HALF = (style.WIDTH - 2 * style.MARGIN) / 2


def pages(*, content: Content, ruler: Ruler) -> list[Sheet]:
    """Makes the page."""
    curve = content.curve("rate_by_actors")
    points = content.part(Part.WHOLE)
    found = series.along("actors", points, first=curve.fixed if curve else None)
    sheet = open_sheet(
        title=content.titled("Throughput and power against actors"), lead=_lead(found), ruler=ruler
    )
    sheet.reserve(top=sheet.top, bottom=sheet.bottom)
    halves: Any = sheet.figure.subfigures(2, 1, height_ratios=(1.3, 1.0))
    above, below = halves
    rate = above.subplots()
    if not found:
        say_instead(rate, title="Throughput", text=_why_none(points), width=2 * _HALF, ruler=ruler)
    else:
        rate.set_title("Throughput")
        if curve is not None:
            charts.draw_curve(rate, curve, colour=style.MARKS[0].colour, label="fitted", start=1.0)
        _draw(rate, found, lambda point: point.rate, joined=curve is None)
        heights = [height for line in found for height in charts.seen(line.points, lambda point: point.rate)]
        charts.plain_y(rate, [*heights, *charts.measured_heights(curve)], label="samples/s")
        _actors_axis(rate, found)
        if len(found) > 1:
            above.legend(loc="outside right upper", title="Lines", alignment="left")
        else:
            rate.legend(loc="lower right")
    left, right = below.subplots(1, 2)
    for axes, name, unit, quantity in (
        (left, "Power", "W", lambda point: point.power),
        (right, "Samples per joule", "samples/J", lambda point: point.samples_per_joule),
    ):
        _energy_panel(axes, points, above=found, name=name, unit=unit, quantity=quantity, ruler=ruler)
    return [sheet]


def _energy_panel(
    axes: Axes,
    points: tuple[Point, ...],
    *,
    above: tuple[series.Series, ...],
    name: str,
    unit: str,
    quantity: Callable[[Point], Quantity],
    ruler: Ruler,
) -> None:
    first = above[0].fixed if above else {}
    lines = series.along("actors", points, first=first, by_boundary=True)
    shown = [line for line in lines if any(quantity(point).value is not None for point in line.points)]
    if not shown:
        reasons = dict.fromkeys(quantity(point).reason or "" for point in points)
        text = "Unknown: " + (
            "; ".join(reason for reason in reasons if reason) or "no valid point has a value"
        )
        if any(quantity(point).value is not None for point in points):
            text = "Measured at one number of actors only: see the table of points"
        say_instead(axes, title=name, text=text, width=_HALF, ruler=ruler)
        return
    drawn = [point for line in shown for point in line.points if quantity(point).value is not None]
    boundaries = sorted({point.boundary or "boundary not recorded" for point in drawn})
    is_modelled = "modelled" in boundaries or any(quantity(p).origin is Origin.MODELLED for p in drawn)
    covers = ", ".join(boundary for boundary in boundaries if boundary != "modelled")
    tag = ", ".join(part for part in (covers, "modelled" if is_modelled else "") if part)
    axes.set_title(f"{name} ({tag})")
    marks = _same_marks(tuple(shown), above)
    if marks is None:
        _draw(axes, tuple(shown), quantity, joined=True)
        axes.legend(loc="best")
    else:
        known = {_but_boundary(line) for line in above[: len(style.MARKS)]}
        shown.sort(
            key=lambda line: _but_boundary(line) not in known
        )  # those without a mark are context, last
        _draw(axes, tuple(shown), quantity, marks=marks, joined=True)
    charts.plain_y(axes, charts.seen(drawn, quantity), label=f"{unit}, modelled" if is_modelled else unit)
    _actors_axis(axes, tuple(shown))


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


def _actors_axis(axes: Axes, found: tuple[series.Series, ...]) -> None:
    values = [_actors(point) for line in found for point in line.points]
    charts.plain_x(axes, values, label="actors in flight")


def _lead(found: tuple[series.Series, ...]) -> str:
    if not found:
        return ""
    first, last = found[0].points[0], found[0].points[-1]
    assert first.rate.value is not None, "only points with a rate are here"
    assert last.rate.value is not None, "only points with a rate are here"
    which = f" ({found[0].label})" if found[0].label else ""
    text = (
        f"From {wording.axis_value('actors', first.axes['actors'])} to {last.axes['actors']}{which}, "
        f"throughput goes from {wording.number(first.rate.value)} to {wording.amount(last.rate)}"
    )
    if first.rate.value > 0:
        text += f", {wording.number(last.rate.value / first.rate.value)} times as much"
    return text + ". Bars are 95 % intervals over replicates; the points are measured."


def _why_none(points: tuple[Point, ...]) -> str:
    if not points:
        return "Nothing to draw: no valid trial ran the whole training job."
    return (
        "Nothing to draw: every line of points has one number of actors only. "
        "Sweep `actors` to get this picture."
    )
