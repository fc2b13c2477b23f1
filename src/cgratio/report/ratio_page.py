"""The first page: the answer, the ratio curve it rests on, and the numbers beside it."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes

from cgratio.analysis.facts import Bottleneck, Optimum, Point, Quantity
from cgratio.report import charts, series, style, wording
from cgratio.report.content import Content
from cgratio.report.key_facts import write_key_facts
from cgratio.report.sheet import Ruler, Sheet, open_sheet, say_instead
from cgratio.results.words import Part

_PICTURE_RIGHT = 560.0
_FACTS_LEFT = 592.0
_TITLE = "Rate per accelerator against CPU threads per accelerator"
_LEAST_PICTURE = 270.0  # points of height that the picture keeps, however long the answer is


def title_page(*, content: Content, workload: Content, ruler: Ruler) -> Sheet:
    """Makes the first page.

    Args:
        content: of the whole sweep.
        workload: the one whose ratio is the answer.
        ruler: to fit the text.
    """
    sheet = Sheet(ruler=ruler)
    _write_head(sheet, content)
    bottom = sheet.bottom - 30.0
    sheet.reserve(top=sheet.top, bottom=bottom, right=_PICTURE_RIGHT)
    _draw_ratio(sheet, workload, title=workload.titled(_TITLE))
    write_key_facts(sheet, workload, left=_FACTS_LEFT, bottom=bottom, with_trials=True)
    _write_host(sheet, content, top=bottom + 8.0)
    return sheet


def workload_page(*, workload: Content, ruler: Ruler) -> Sheet:
    """Makes the page with the ratio of a further workload of the same sweep."""
    sheet = open_sheet(title=workload.titled("CPU threads per accelerator"), lead="", ruler=ruler)
    sheet.reserve(top=sheet.top, bottom=sheet.bottom, right=_PICTURE_RIGHT)
    _draw_ratio(sheet, workload, title=_TITLE)
    write_key_facts(sheet, workload, left=_FACTS_LEFT, bottom=sheet.bottom, with_trials=False)
    return sheet


def _write_head(sheet: Sheet, content: Content) -> None:
    sheet.paragraph(
        "CPU threads per accelerator · cgratio report", size=style.BODY, colour=style.MUTED, gap=3
    )
    sheet.paragraph(content.analysis.sweep, size=style.NAME, bold=True, most=2, gap=4)
    room = sheet.bottom - 30.0 - _LEAST_PICTURE - sheet.top
    width = style.WIDTH - 2 * style.MARGIN
    for size in (15.0, 13.0, 11.5, 10.0):
        lines = sheet.ruler.wrap(content.analysis.answer, width=width, size=size)
        if len(lines) * size * style.LINE <= room:
            break
    sheet.paragraph(content.analysis.answer, size=size, most=max(1, int(room / (size * style.LINE))), gap=6)
    sheet.rule(top=sheet.top)
    sheet.top += 10.0


def _draw_ratio(sheet: Sheet, content: Content, *, title: str) -> None:
    axes = sheet.figure.subplots()
    curve = content.curve("rate_by_ratio")
    points = [p for p in content.part(Part.WHOLE) if series.threads_per_accelerator(p) is not None]
    width = _PICTURE_RIGHT - style.MARGIN - 60.0
    title = sheet.ruler.shorten(title, width=width, size=style.HEADING, bold=True)
    if curve is None and not points:
        reason = _why_no_picture(content)
        say_instead(axes, title=title, text=reason, width=_PICTURE_RIGHT - style.MARGIN, ruler=sheet.ruler)
        return
    axes.set_title(title)
    if curve is not None:
        charts.draw_curve(axes, curve, colour=style.SUPPLY, label="fitted")
    for shown, mark, label in _point_groups(points):
        charts.draw_points(
            axes,
            shown,
            x=series.threads_per_accelerator,
            quantity=lambda point: point.rate,
            mark=mark,
            label=label,
            joined=False,
            scale=_per_accelerator,
        )
    unit = curve.x_name.removeprefix("threads per ") if curve is not None else "accelerator"
    heights = [one * _per_accelerator(point) for point in points for one in charts.seen([point], _rate)]
    charts.plain_y(
        axes, [*heights, *(curve.y if curve else ())], label=f"samples/s per {unit}", headroom=0.22
    )
    x_values = [series.threads_per_accelerator(point) or 0.0 for point in points]
    charts.plain_x(axes, [*x_values, *(curve.x if curve else ())], label=f"CPU threads per {unit}")
    optimum = content.optimum("samples_per_s")
    if optimum is not None:
        _mark_optimum(axes, optimum, content)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=3, columnspacing=1.4)


def _rate(point: Point) -> Quantity:
    return point.rate


def _per_accelerator(point: Point) -> float:
    return 1.0 / (series.accelerators(point) or 1.0)


def _point_groups(points: list[Point]) -> list[tuple[list[Point], style.Mark, str]]:
    """The fastest point at each ratio, apart from those that were slower for want of actors."""
    best: dict[tuple[float, bool], Point] = {}

    def place(point: Point) -> tuple[float, bool]:
        return series.threads_per_accelerator(point) or 0.0, (series.accelerators(point) or 1.0) >= 1.0

    for point in points:
        rival = best.get(place(point))
        if rival is None or (point.rate.value or 0.0) > (rival.rate.value or 0.0):
            best[place(point)] = point
    kept = {id(point) for point in best.values()}
    return [
        (
            [point for point in points if id(point) not in kept],
            style.Mark(colour=style.CONTEXT, marker=".", line="none"),
            "measured, fewer actors",
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


def _mark_optimum(axes: Axes, optimum: Optimum, content: Content) -> None:
    left, right = axes.get_xlim()
    at = optimum.threads_per_accelerator
    _mark_near_optimal(axes, optimum)
    if at.value is None:
        return
    below, above = style.REGIMES[content.analysis.below], style.REGIMES[content.analysis.above]
    middle = min(max(at.value, left), right)
    axes.axvspan(left, middle, color=below[1], linewidth=0, zorder=0)
    axes.axvspan(middle, right, color=above[1], linewidth=0, zorder=0)
    if at.low is not None and at.high is not None:
        axes.axvspan(
            max(at.low, left),
            min(at.high, right),
            facecolor=style.OPTIMUM,
            alpha=0.16,
            hatch="///",
            linewidth=0,
            zorder=1,
        )
    axes.axvline(middle, color=style.OPTIMUM, linewidth=1.4, linestyle=(0, (6, 2)), zorder=2)
    axes.set_xlim(left, right)
    height = axes.get_xaxis_transform()
    words: dict[str, Any] = {"size": 8.5, "va": "top", "zorder": 6}
    if content.analysis.below is not Bottleneck.UNKNOWN:
        axes.text(
            0.012, 0.985, f"◂ {below[0]}", transform=axes.transAxes, ha="left", color=style.SUPPLY, **words
        )
    if content.analysis.above is not Bottleneck.UNKNOWN:
        axes.text(
            0.988, 0.985, f"{above[0]} ▸", transform=axes.transAxes, ha="right", color=style.DEMAND, **words
        )
    place = "right" if _place(axes, middle) > 0.6 else "left"
    text = f"optimum {wording.number(at.value)}"
    if at.low is not None:
        text += f" ({wording.interval(at)})"
    pad = f" {text} "
    axes.text(middle, 0.925, pad, transform=height, ha=place, color=style.OPTIMUM, weight="bold", **words)


def _mark_near_optimal(axes: Axes, optimum: Optimum) -> None:
    left, right = axes.get_xlim()
    near = [threads for threads in optimum.near_optimal if left <= threads <= right]
    if not near:
        return
    axes.plot(
        near,
        [0.018] * len(near),
        transform=axes.get_xaxis_transform(),
        linestyle="none",
        # Many triangles would run into one another: ticks stay apart.
        marker="^" if len(near) <= 6 else "|",
        markersize=7,
        color=style.OPTIMUM,
        label=f"within {wording.percent(optimum.tolerance)} of the best",
        zorder=5,
    )


def _place(axes: Axes, x: float) -> float:
    """Where x lies along the axis, from 0 at its left end to 1 at its right end."""
    return float(axes.transAxes.inverted().transform(axes.transData.transform((x, 0.0)))[0])


def _why_no_picture(content: Content) -> str:
    found = content.analysis
    if found.valid == 0:
        counts: dict[str, int] = {}
        for trial in content.trials:
            for code in trial.verdict or (trial.status,):
                counts[code] = counts.get(code, 0) + 1
        why = f" Reasons: {wording.counted(counts)}." if counts else ""
        return f"Nothing to draw: none of {found.trials} trials gave a valid measurement.{why}"
    optimum = content.optimum("samples_per_s")
    reason = optimum.threads_per_accelerator.reason if optimum else None
    return reason or "Nothing to draw: no trial ran the whole training job, and no ratio curve was fitted."


def _write_host(sheet: Sheet, content: Content, *, top: float) -> None:
    host = content.manifest.get("host")
    facts = host if isinstance(host, dict) else {}
    parts = [
        content.analysis.host or wording.plain(facts.get("hostname")),
        facts.get("cpu_model"),
        facts.get("kernel"),
    ]
    line = " · ".join(str(part) for part in parts if part)
    right = f"measured {content.date or 'on a date that was not recorded'} · cgratio {content.version}"
    width = style.WIDTH - 2 * style.MARGIN
    used = sheet.ruler.width(right, size=style.BODY) + 20
    sheet.rule(top=top)
    text = sheet.ruler.shorten(line or "host not recorded", width=width - used, size=style.BODY)
    sheet.line(text, left=style.MARGIN, top=top + 6, size=style.BODY)
    sheet.line(right, left=style.WIDTH - style.MARGIN, top=top + 6, size=style.BODY, align="right")
