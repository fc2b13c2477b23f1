"""The picture of the first page: rate per accelerator against CPU threads, and where the optimum lies."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from matplotlib.axes import Axes
from matplotlib.transforms import offset_copy

from cgratio.analysis.facts import Bottleneck, Curve, Optimum, Point, Quantity
from cgratio.report import charts, series, style, wording
from cgratio.report.content import Content
from cgratio.report.sheet import Ruler
from cgratio.results.words import Part

# Shares of the picture's height, from its foot: nothing measured is drawn above the line of the optimum.
_HEADROOM = 0.28
_LEGEND = 30.0  # from the foot of the picture to its legend, points
_MARK = 7.0  # width of the mark of a near-optimal count, points
LINE_TOP, _OPTIMUM_TEXT, _REGIME_TEXT, _NEAR_OPTIMAL = 0.855, 0.865, 0.935, 0.035


def can_draw(content: Content) -> bool:
    """Whether there is anything to show."""
    return content.curve("rate_by_ratio") is not None or bool(_points(content))


def draw_ratio(axes: Axes, content: Content, *, title: str, width: float, ruler: Ruler) -> None:
    """Draws points, the fitted curve and the optimum of one workload.

    Args:
        axes: where they are drawn.
        content: of the workload.
        title: of the picture.
        width: about how wide the axes are, in points.
        ruler: to place the words.
    """
    curve, points = content.curve("rate_by_ratio"), _points(content)
    optimum = content.optimum("samples_per_s")
    axes.set_title(ruler.shorten(title, width=width, size=style.HEADING, bold=True))
    if curve is not None:
        charts.draw_curve(axes, curve, colour=style.SUPPLY, label="fitted")
    for shown, mark, label in _point_groups(points):
        charts.draw_points(
            axes,
            shown,
            x=series.threads_per_accelerator,
            quantity=_rate,
            mark=mark,
            label=label,
            joined=False,
            scale=_per_accelerator,
        )
    unit = curve.x_name.removeprefix("threads per ") if curve is not None else "accelerator"
    extents = [charts.extent_of_points(points, _rate, _per_accelerator), charts.extent_of_curve(curve)]
    charts.plain_y(axes, extents, label=f"samples/s per {unit}", headroom=_HEADROOM)
    charts.plain_x(axes, _across(points, curve, optimum), label=f"CPU threads per {unit}")
    if optimum is not None:
        _mark_near_optimal(axes, optimum, width=width)
        _mark_optimum(axes, optimum, content, width=width, ruler=ruler)
    # In points: in shares of a low picture's height the legend would run into the label above it.
    below = offset_copy(axes.transAxes, fig=axes.get_figure(root=True), y=-_LEGEND, units="points")
    axes.legend(
        loc="upper center", bbox_to_anchor=(0.5, 0.0), bbox_transform=below, ncols=3, columnspacing=1.4
    )


def _points(content: Content) -> list[Point]:
    return [p for p in content.part(Part.WHOLE) if series.threads_per_accelerator(p) is not None]


def _across(points: list[Point], curve: Curve | None, optimum: Optimum | None) -> list[float]:
    """What has to be seen along x: what was measured and drawn, and the optimum wherever it lies.

    Its interval is seen up to twice and down to half of it: one without an end must not press the data into
    a corner.
    """
    found = [series.threads_per_accelerator(point) or 0.0 for point in points]
    found += curve.x if curve else ()
    at = optimum.threads_per_accelerator if optimum else None
    if at is not None and at.value is not None:
        found += [at.value, max(at.low or 0.0, at.value / 2), min(at.high or at.value, 2 * at.value)]
    return found


def _rate(point: Point) -> Quantity:
    return point.rate


def _per_accelerator(point: Point) -> float:
    return 1.0 / (series.accelerators(point) or 1.0)


def _point_groups(points: list[Point]) -> list[tuple[list[Point], style.Mark, str]]:
    """The fastest point at each ratio, apart from those that other settings made slower."""
    best: dict[tuple[float, bool], Point] = {}

    def place(point: Point) -> tuple[float, bool]:
        return series.threads_per_accelerator(point) or 0.0, (series.accelerators(point) or 1.0) >= 1.0

    def rate(point: Point) -> float:
        return (point.rate.value or 0.0) * _per_accelerator(point)

    for point in points:
        rival = best.get(place(point))
        if rival is None or rate(point) > rate(rival):
            best[place(point)] = point
    kept = {id(point) for point in best.values()}
    return [
        (
            [point for point in points if id(point) not in kept],
            style.Mark(colour=style.CONTEXT, marker=".", line="none"),
            "measured, slower settings",
        ),
        (
            [point for (_, is_whole), point in best.items() if not is_whole],
            style.Mark(colour=style.DEMAND, marker="D", line="none"),
            "measured on a share of one, scaled up",
        ),
        (
            [point for (_, is_whole), point in best.items() if is_whole],
            style.Mark(colour=style.INK, marker="o", line="none"),
            "measured",
        ),
    ]


def _mark_optimum(axes: Axes, optimum: Optimum, content: Content, *, width: float, ruler: Ruler) -> None:
    at = optimum.threads_per_accelerator
    if at.value is None:
        return
    left, right = axes.get_xlim()
    below, above = style.REGIMES[content.analysis.below], style.REGIMES[content.analysis.above]
    axes.axvspan(left, at.value, color=below[1], linewidth=0, zorder=0)
    axes.axvspan(at.value, right, color=above[1], linewidth=0, zorder=0)
    if at.low is not None or at.high is not None:
        axes.axvspan(
            max(at.low or left, left),
            min(at.high or right, right),
            ymax=LINE_TOP,
            facecolor=style.OPTIMUM,
            alpha=0.16,
            hatch="///",
            linewidth=0,
            zorder=1,
        )
    axes.axvline(at.value, ymax=LINE_TOP, color=style.OPTIMUM, linewidth=1.4, linestyle=(0, (6, 2)), zorder=2)
    axes.set_xlim(left, right)
    _name_optimum(axes, at, wording.tags(optimum), width=width, ruler=ruler)
    words: dict[str, Any] = {
        "size": 8.5,
        "va": "bottom",
        "transform": axes.transAxes,
        "bbox": style.GROUND,
        "zorder": 6,
    }
    if content.analysis.below is not Bottleneck.UNKNOWN:
        axes.text(0.012, _REGIME_TEXT, f"◂ {below[0]}", ha="left", color=style.SUPPLY, **words)
    if content.analysis.above is not Bottleneck.UNKNOWN:
        axes.text(0.988, _REGIME_TEXT, f"{above[0]} ▸", ha="right", color=style.DEMAND, **words)


def _name_optimum(axes: Axes, at: Quantity, tags: Sequence[str], *, width: float, ruler: Ruler) -> None:
    """Writes the number above its line, as near to it as the edges of the picture allow."""
    assert at.value is not None, "the caller has one"
    text = ", ".join([f"optimum {wording.rounded(at.value)} {wording.interval(at)}".rstrip(), *tags])
    half = 0.5 * ruler.width(text, size=style.BODY, bold=True) / width + 0.01
    (place,) = _places(axes, [at.value])
    axes.text(
        min(max(place, half), 1.0 - half),
        _OPTIMUM_TEXT,
        text,
        transform=axes.transAxes,
        size=style.BODY,
        weight="bold",
        ha="center",
        va="bottom",
        color=style.OPTIMUM,
        bbox=style.GROUND,
        zorder=6,
    )


def _places(axes: Axes, values: Sequence[float]) -> list[float]:
    """Where values lie along x, in shares of the picture's width."""
    placed = axes.transAxes.inverted().transform(axes.transData.transform([(x, 0.0) for x in values]))
    return [float(x) for x, _ in placed]


def _mark_near_optimal(axes: Axes, optimum: Optimum, *, width: float) -> None:
    left, right = axes.get_xlim()
    near = [threads for threads in optimum.near_optimal if left <= threads <= right]
    if not near:
        return
    places = _places(axes, near)
    apart = min((width * (other - one) for one, other in pairwise(places)), default=width)
    axes.plot(
        near,
        [_NEAR_OPTIMAL] * len(near),
        transform=axes.get_xaxis_transform(),
        linestyle="none",
        # Triangles would run into one another: ticks stay apart.
        marker="^" if apart > _MARK + 3.0 else "|",
        markersize=_MARK,
        color=style.OPTIMUM,
        label=", ".join([f"within {wording.percent(optimum.tolerance)} of the best", *wording.tags(optimum)]),
        zorder=5,
    )
