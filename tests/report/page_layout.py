"""Where everything on the pages of a report lies, in points, once matplotlib has laid it out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import matplotlib as mpl
import numpy as np
from made_sweeps import Sweep
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from cgratio.report import document, fonts, style
from cgratio.report.content import gather
from cgratio.report.sheet import close_sheet

DPI = 288  # at 72 a letter's width would be rounded to whole points
TOUCH = 0.7  # points by which boxes may touch: a box is a little larger than its ink


@dataclass(frozen=True, kw_only=True)
class Page:
    """One page.

    Attributes:
        words: every text that is shown, with its box.
        pictures: the axes by their titles.
    """

    words: tuple[tuple[str, Bbox], ...]
    pictures: dict[str, Axes]

    @property
    def title(self) -> str:
        """The text that stands first on the page."""
        return self.words[0][0]

    def overlaps(self) -> list[tuple[str, str]]:
        """Pairs of texts that run into each other."""
        return [
            (one, other)
            for (one, first), (other, second) in combinations(self.words, 2)
            if _overlap(first, second)
        ]

    def outside(self) -> list[str]:
        """Texts that leave the page's margins, the bottom one being the footer's."""
        low, high = 0.5 * style.MARGIN, style.WIDTH - 0.5 * style.MARGIN
        return [
            text
            for text, box in self.words
            if box.x0 < low or box.x1 > high or box.y0 < 0.5 * style.MARGIN or box.y1 > style.HEIGHT
        ]


def pages(sweep: Sweep) -> list[Page]:
    """Lays out every page of a report."""
    content = gather(results=sweep.results, analysis=sweep.analysis)
    found = []
    with mpl.rc_context(style.settings(content.typeface.families)), fonts.quiet_search():
        sheets = document.draw(content)
        for number, sheet in enumerate(sheets, start=1):
            close_sheet(sheet, left="footer", number=number, total=len(sheets))
            sheet.figure.dpi = DPI
            sheet.figure.draw_without_rendering()
            words = [(text.get_text(), box_of(text)) for text in _words(sheet.figure)]
            found.append(
                Page(
                    words=tuple(words),
                    pictures={axes.get_title("left"): axes for axes in _axes(sheet.figure)},
                )
            )
    return found


def box_of(artist: Artist) -> Bbox:
    """Where something lies, in points from the lower left corner of the page."""
    return Bbox(artist.get_window_extent().get_points() * 72 / DPI)


def named(found: list[Page], title: str) -> Page:
    """The first page whose title begins so."""
    return next(page for page in found if page.title.startswith(title))


def ends_outside(axes: Axes) -> list[tuple[float, float]]:
    """Points and ends of bars outside a picture, as (x, y) in shares of its width and height."""
    found = []
    for line in axes.lines:
        if line.get_marker() not in {"", "None", None} and line.get_visible():
            found += _outside(axes, line.get_xydata(), line.get_transform())
    for bars in axes.collections:
        if isinstance(bars, LineCollection):
            for segment in bars.get_segments():
                found += _outside(axes, segment, bars.get_transform())
    return found


def _outside(axes: Axes, points, transform) -> list[tuple[float, float]]:
    placed = axes.transAxes.inverted().transform(transform.transform(np.asarray(points, dtype=float)))
    return [
        (x, y) for x, y in placed if np.isfinite(x + y) and not (-1e-6 <= min(x, y) <= max(x, y) <= 1 + 1e-6)
    ]


def _overlap(one: Bbox, other: Bbox) -> bool:
    width = min(one.x1, other.x1) - max(one.x0, other.x0)
    height = min(one.y1, other.y1) - max(one.y0, other.y0)
    return min(width, height) > TOUCH


def _axes(figure: Figure) -> list[Axes]:
    return [axes for axes in figure.findobj(Axes) if isinstance(axes, Axes)]


def _words(figure: Figure) -> Iterator[Text]:
    """The texts that are drawn: `findobj` alone also gives labels of ticks that are out of view."""
    shown = [*figure.texts]
    for legend in figure.findobj(Legend):
        shown += legend.get_texts()
    for axes in _axes(figure):
        shown += [axes.title, axes._left_title, axes._right_title, *axes.texts]
        for axis in (axes.xaxis, axes.yaxis):
            shown += [axis.label, axis.offsetText]
            low, high = sorted(axis.get_view_interval())
            span = 1e-6 * (high - low)
            for tick in axis.get_major_ticks():
                if low - span <= tick.get_loc() <= high + span:
                    shown += [tick.label1, tick.label2]
    return (text for text in shown if text.get_visible() and text.get_text().strip())
