"""Where the time of each point goes, and what limits it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter

from cgratio.analysis.facts import Bottleneck, Point
from cgratio.report import style, wording
from cgratio.report.content import Content
from cgratio.report.sheet import Ruler, Sheet, open_sheet
from cgratio.results.words import Part

ROWS = 26  # bars on one page: more would squeeze their labels below 8 points

_LIMIT_WIDTH = 1.2  # of the last column, in the units of the others
_NAME_WIDTH = 345.0  # most that the name of a point takes, in points


@dataclass(frozen=True, slots=True, kw_only=True)
class _Column:
    """Bars of one kind.

    Attributes:
        title: above the bars.
        stages: stacked in this order; a single one has its number beside it.
        width: relative to the other columns.
        side: the part of the job that has these stages.
    """

    title: str
    stages: tuple[str, ...]
    width: float
    side: Part

    def is_known(self, points: Iterable[Point]) -> bool:
        """Whether any of the points has a bar here."""
        return any(stage in point.shares for point in points for stage in self.stages)

    def why_no_bar(self, point: Point) -> str:
        """A part that does not run has no share; any other share that is missing is not known."""
        other = {Part.SUPPLY: Part.DEMAND, Part.DEMAND: Part.SUPPLY}[self.side]
        return "does not run" if point.axes.get("part") == other else "not known"


_COLUMNS = (
    _Column(
        title="Actor loop",
        stages=("inference", "transfer", "backpressure", "wait_batch"),
        width=3.0,
        side=Part.SUPPLY,
    ),
    _Column(title="Learner loop", stages=("learner", "wait_data"), width=2.2, side=Part.DEMAND),
    _Column(title="CPUs\nbusy", stages=("env",), width=1.0, side=Part.SUPPLY),
    _Column(title="Accelerator\nbusy", stages=("device_busy",), width=1.0, side=Part.DEMAND),
)
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
    every = [point for point in content.analysis.points if point.shares]
    shown = [column for column in _COLUMNS if column.is_known(every)]
    title = "Where the time goes" + (f" ({place + 1} of {total})" if total > 1 else "")
    sheet = open_sheet(title=title, lead=_lead(every, shown), ruler=ruler)
    # Few rows get a short picture, so that bars keep the same thickness on every page.
    bottom = min(sheet.bottom, sheet.top + 110.0 + 24.0 * len(points))
    sheet.reserve(top=sheet.top, bottom=bottom - 20.0)
    widths = [*(column.width for column in shown), _LIMIT_WIDTH]
    *panels, limit = sheet.figure.subplots(
        1, len(widths), sharey=True, squeeze=False, gridspec_kw={"width_ratios": widths}
    )[0]
    for axes, column in zip(panels, shown, strict=True):
        draw = _stack if len(column.stages) > 1 else _single
        draw(axes, points, column)
    _name_limits(limit, points)
    first = (*panels, limit)[0]
    names = [ruler.shorten(_name(point, content), width=_NAME_WIDTH, size=style.SMALL) for point in points]
    first.set_yticks(range(len(points)), names)
    first.tick_params(axis="y", labelsize=style.SMALL, length=0)
    first.set_ylim(len(points) - 0.4, -0.6)
    _write_legend(sheet, every, shown, bottom=bottom)
    return sheet


def _lead(every: list[Point], shown: list[_Column]) -> str:
    counts = Counter(_LIMITS[point.bottleneck] for point in every)
    summary = ", ".join(f"{number} by {name}" for name, number in counts.items())
    text = (
        f"What limits each point, over {wording.count(len(every), 'point')}: {summary}. "
        "Each loop's bars are shares of that loop's own wall time; the two loops run side by side."
    )
    empty = [column.title.replace("\n", " ").lower() for column in _COLUMNS if column not in shown]
    return text + (f" No point has bars for {' and '.join(empty)}." if empty else "")


def _write_legend(sheet: Sheet, every: list[Point], shown: list[_Column], *, bottom: float) -> None:
    stages = [stage for column in shown if len(column.stages) > 1 for stage in column.stages]
    known = dict.fromkeys(
        style.STAGES[stage] for stage in stages if any(stage in point.shares for point in every)
    )
    handles = [
        Patch(facecolor=colour, hatch=hatch, edgecolor="white", label=name) for name, colour, hatch in known
    ]
    if handles:
        sheet.figure.legend(
            handles=handles,
            loc="lower center",
            bbox_to_anchor=(0.5, 1 - bottom / style.HEIGHT),
            ncols=6,
            handlelength=1.8,
            columnspacing=1.4,
        )


def _name(point: Point, content: Content) -> str:
    return wording.point_name(point, content.varying)


def _stack(axes: Axes, points: list[Point], column: _Column) -> None:
    rows = range(len(points))
    left = [0.0] * len(points)
    for stage in column.stages:
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
        if not column.is_known([point]):
            _say_no_bar(axes, row, column.why_no_bar(point))
    _per_cent(axes, title=column.title, ticks=(0, 25, 50, 75, 100))


def _say_no_bar(axes: Axes, row: int, text: str) -> None:
    axes.text(2.0, row, text, va="center_baseline", size=style.SMALL, color=style.MUTED)


def _single(axes: Axes, points: list[Point], column: _Column) -> None:
    (stage,) = column.stages
    _, colour, hatch = style.STAGES[stage]
    for row, point in enumerate(points):
        share = point.shares.get(stage)
        if share is None:
            _say_no_bar(axes, row, column.why_no_bar(point))
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
    _per_cent(axes, title=column.title, ticks=(0, 50, 100))


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
