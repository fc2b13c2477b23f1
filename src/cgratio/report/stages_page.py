"""Where the time of each point goes, and what limits it."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter

from cgratio.analysis.facts import Bottleneck, Point
from cgratio.report import style, wording
from cgratio.report.content import Content
from cgratio.report.sheet import Ruler, Sheet, open_sheet
from cgratio.results.words import Part

ROWS = 26  # bars on one page: more would squeeze their labels below 8 points

_ACTOR_LOOP = ("inference", "transfer", "backpressure", "wait_batch")
_LEARNER_LOOP = ("learner", "wait_data")
_LIMITS = {
    Bottleneck.ENVIRONMENTS: "environments",
    Bottleneck.ACCELERATOR: "accelerator",
    Bottleneck.ACTORS: "too few actors",
    Bottleneck.UNKNOWN: "not known",
}


def pages(*, content: Content, ruler: Ruler) -> list[Sheet]:
    """Makes as many pages as the points need; points without any share are left out."""
    points = [point for point in content.analysis.points if point.shares]
    groups = [points[start : start + ROWS] for start in range(0, len(points), ROWS)]
    return [
        _page(content=content, ruler=ruler, points=group, place=place, total=len(groups))
        for place, group in enumerate(groups)
    ]


def _page(*, content: Content, ruler: Ruler, points: list[Point], place: int, total: int) -> Sheet:
    counts: dict[str, int] = {}
    for point in content.analysis.points:
        if point.shares:
            counts[_LIMITS[point.bottleneck]] = counts.get(_LIMITS[point.bottleneck], 0) + 1
    summary = ", ".join(f"{count} by {name}" for name, count in counts.items())
    lead = (
        f"What limits each point, over {sum(counts.values())} points: {summary}. "
        "Each loop's bars are shares of that loop's own wall time; the two loops run side by side."
    )
    title = "Where the time goes" + (f" ({place + 1} of {total})" if total > 1 else "")
    sheet = open_sheet(title=title, lead=lead, ruler=ruler)
    # Few rows get a short picture, so that bars keep the same thickness on every page.
    bottom = min(sheet.bottom, sheet.top + 110.0 + 24.0 * len(points))
    sheet.reserve(top=sheet.top, bottom=bottom - 20.0)
    actor, learner, env, device, limit = sheet.figure.subplots(
        1, 5, sharey=True, gridspec_kw={"width_ratios": (3.0, 2.2, 1.0, 1.0, 1.2)}
    )
    _stack(actor, points, _ACTOR_LOOP, title="Actor loop")
    _stack(learner, points, _LEARNER_LOOP, title="Learner loop")
    _single(env, points, "env", title="CPUs\nbusy")
    _single(device, points, "device_busy", title="Accelerator\nbusy")
    _name_limits(limit, points)
    names = [ruler.shorten(_name(point, content), width=300.0, size=style.SMALL) for point in points]
    handles = [
        Patch(facecolor=colour, hatch=hatch, edgecolor="white", label=name)
        for name, colour, hatch in dict.fromkeys(
            style.STAGES[stage] for stage in (*_ACTOR_LOOP, *_LEARNER_LOOP)
        )
    ]
    sheet.figure.legend(
        handles=handles,
        loc="lower center",
        bbox_to_anchor=(0.5, 1 - bottom / style.HEIGHT),
        ncols=6,
        handlelength=1.8,
        columnspacing=1.4,
    )
    actor.set_yticks(range(len(points)), names)
    actor.tick_params(axis="y", labelsize=style.SMALL, length=0)
    actor.set_ylim(len(points) - 0.4, -0.6)
    return sheet


def _name(point: Point, content: Content) -> str:
    return wording.point_name(point, content.varying)


def _stack(axes: Axes, points: list[Point], stages: tuple[str, ...], *, title: str) -> None:
    rows = range(len(points))
    left = [0.0] * len(points)
    for stage in stages:
        name, colour, hatch = style.STAGES[stage]
        widths = [100 * point.shares.get(stage, 0.0) for point in points]
        axes.barh(
            rows,
            widths,
            left=left,
            height=0.72,
            color=colour,
            hatch=hatch,
            edgecolor="white",
            linewidth=0.5,
            label=name,
        )
        left = [start + width for start, width in zip(left, widths, strict=True)]
    for row, point in enumerate(points):
        if not any(stage in point.shares for stage in stages):
            axes.text(
                1.0,
                row,
                _why_no_bar(point, stages[0]),
                va="center_baseline",
                size=style.SMALL,
                color=style.MUTED,
            )
    _per_cent(axes, title=title, ticks=(0, 25, 50, 75, 100))


def _why_no_bar(point: Point, stage: str) -> str:
    """A part that does not run has no share; any other share that is missing is not known."""
    part = point.axes.get("part")
    learner = stage in {*_LEARNER_LOOP, "device_busy"}
    idle = (part == Part.SUPPLY and learner) or (part == Part.DEMAND and not learner)
    return "does not run" if idle else "not known"


def _single(axes: Axes, points: list[Point], stage: str, *, title: str) -> None:
    _, colour, hatch = style.STAGES[stage]
    for row, point in enumerate(points):
        share = point.shares.get(stage)
        if share is None:
            axes.text(
                2.0, row, _why_no_bar(point, stage), va="center_baseline", size=style.SMALL, color=style.MUTED
            )
            continue
        axes.barh(row, 100 * share, height=0.72, color=colour, hatch=hatch, edgecolor="white", linewidth=0.5)
        inside = share > 0.45
        axes.text(
            100 * share + (-3.0 if inside else 3.0),
            row,
            f"{100 * share:.0f}",
            va="center_baseline",
            ha="right" if inside else "left",
            size=style.SMALL,
            color="white" if inside else style.INK,
        )
    _per_cent(axes, title=title, ticks=(0, 50, 100))


def _per_cent(axes: Axes, *, title: str, ticks: tuple[int, ...]) -> None:
    axes.set_title(title)
    axes.set_xlim(0, 100)
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_major_formatter(FuncFormatter(wording.tick))
    axes.set_xlabel("%", labelpad=1)
    axes.grid(visible=False)
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)


def _name_limits(axes: Axes, points: list[Point]) -> None:
    axes.set_title("Limited by")
    axes.set_xlim(0, 1)
    axes.grid(visible=False)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.tick_params(axis="both", length=0, labelbottom=False)
    for row, point in enumerate(points):
        known = point.bottleneck is not Bottleneck.UNKNOWN
        axes.text(
            0.0,
            row,
            _LIMITS[point.bottleneck],
            va="center_baseline",
            size=style.SMALL,
            weight="bold" if known else "normal",
            color=style.INK if known else style.MUTED,
        )
