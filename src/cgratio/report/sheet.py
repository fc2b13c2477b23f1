"""One page: where text goes, how it wraps, which rectangle is left for pictures.

Positions are in points from the upper left corner, because a page is read from there.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from cgratio.report import style

_SCALE = 10  # measure at ten times the size: at 72 dpi hinting would shift widths by whole pixels


class Ruler:
    """Measures text in the fonts of the report."""

    def __init__(self) -> None:
        self._renderer = RendererAgg(1, 1, 72 * _SCALE)  # type: ignore[no-untyped-call]
        self._widths: dict[tuple[str, float, bool], float] = {}

    def width(self, text: str, *, size: float, bold: bool = False) -> float:
        """The width of one line in points."""
        key = (text, size, bold)
        if key not in self._widths:
            properties = FontProperties(size=size, weight="bold" if bold else "normal")
            width, _, _ = self._renderer.get_text_width_height_descent(text, properties, ismath=False)  # type: ignore[no-untyped-call]
            self._widths[key] = width / _SCALE
        return self._widths[key]

    def wrap(
        self, text: str, *, width: float, size: float, bold: bool = False, most: int | None = None
    ) -> tuple[str, ...]:
        """Breaks a text into lines that fit.

        Args:
            text: one paragraph; a word that is too long for a line is broken where it has to be.
            width: of a line, in points.
            size: of the font.
            bold: weight of the font.
            most: the largest number of lines; what is left over is cut and marked with `…`.
        """
        lines: list[str] = []
        line = ""
        for word in text.split(" "):
            longer = f"{line} {word}" if line else word
            if self.width(longer, size=size, bold=bold) <= width:
                line = longer
                continue
            if line:
                lines.append(line)
            *full, line = self._break(word, width=width, size=size, bold=bold)
            lines.extend(full)
        lines.append(line)
        if most is not None and len(lines) > most:
            last = self.shorten(" ".join(lines[most - 1 :]), width=width, size=size, bold=bold)
            lines = [*lines[: most - 1], last]
        return tuple(lines)

    def shorten(self, text: str, *, width: float, size: float, bold: bool = False) -> str:
        """The text, cut and marked with `…` where it does not fit on one line."""
        if self.width(text, size=size, bold=bold) <= width:
            return text
        low, high = 0, len(text)
        while low < high:
            middle = (low + high + 1) // 2
            fits = self.width(text[:middle].rstrip() + "…", size=size, bold=bold) <= width
            low, high = (middle, high) if fits else (low, middle - 1)
        return text[:low].rstrip() + "…"

    def _break(self, word: str, *, width: float, size: float, bold: bool) -> list[str]:
        parts = []
        while self.width(word, size=size, bold=bold) > width and len(word) > 1:
            fitting = len(self.shorten(word, width=width, size=size, bold=bold)) - 1
            parts.append(word[: max(1, fitting)])
            word = word[max(1, fitting) :]
        return [*parts, word]


@dataclass(slots=True, kw_only=True)
class Sheet:
    """A page being filled from top to bottom.

    Attributes:
        ruler: measures the text.
        figure: what is drawn on.
        top: where the next line of text begins. bottom: where text ends.
    """

    ruler: Ruler
    figure: Figure = field(default_factory=lambda: Figure(figsize=(style.WIDTH / 72, style.HEIGHT / 72)))
    top: float = style.MARGIN
    bottom: float = style.HEIGHT - style.MARGIN - 8.0  # the footer stands below

    def line(
        self,
        text: str,
        *,
        left: float,
        top: float,
        size: float = style.BODY,
        bold: bool = False,
        colour: str = style.INK,
        align: str = "left",
    ) -> None:
        """Puts one line whose upper edge is `top`; it does not wrap."""
        self.figure.text(
            left / style.WIDTH,
            1 - (top + size) / style.HEIGHT,
            text,
            size=size,
            weight="bold" if bold else "normal",
            color=colour,
            ha=align,
            va="baseline",
        )

    def paragraph(
        self,
        text: str,
        *,
        left: float = style.MARGIN,
        width: float = style.WIDTH - 2 * style.MARGIN,
        size: float = style.BODY,
        bold: bool = False,
        colour: str = style.INK,
        most: int | None = None,
        gap: float = 0.0,
    ) -> None:
        """Writes a wrapped text at `top` and moves `top` below it and a gap."""
        for line in self.ruler.wrap(text, width=width, size=size, bold=bold, most=most):
            self.line(line, left=left, top=self.top, size=size, bold=bold, colour=colour)
            self.top += size * style.LINE
        self.top += gap

    def rule(
        self,
        *,
        top: float,
        left: float = style.MARGIN,
        right: float = style.WIDTH - style.MARGIN,
        colour: str = style.HAIRLINE,
    ) -> None:
        """Draws a hairline."""
        height = 1 - top / style.HEIGHT
        ends = (left / style.WIDTH, right / style.WIDTH)
        self.figure.add_artist(Line2D(ends, (height, height), color=colour, linewidth=0.6))

    def shade(
        self,
        *,
        top: float,
        height: float,
        left: float = style.MARGIN,
        right: float = style.WIDTH - style.MARGIN,
        colour: str = style.PALE,
    ) -> None:
        """Fills a rectangle behind the text."""
        corner = (left / style.WIDTH, 1 - (top + height) / style.HEIGHT)
        size = ((right - left) / style.WIDTH, height / style.HEIGHT)
        self.figure.add_artist(Rectangle(corner, *size, facecolor=colour, edgecolor="none", zorder=-1))

    def reserve(
        self,
        *,
        top: float,
        bottom: float,
        left: float = style.MARGIN,
        right: float = style.WIDTH - style.MARGIN,
    ) -> None:
        """Keeps the pictures of the page inside a rectangle; they are laid out so that nothing overlaps."""
        rectangle = (
            left / style.WIDTH,
            1 - bottom / style.HEIGHT,
            (right - left) / style.WIDTH,
            (bottom - top) / style.HEIGHT,
        )
        self.figure.set_layout_engine(
            "constrained", rect=rectangle, w_pad=0.08, h_pad=0.08, wspace=0.03, hspace=0.03
        )


def open_sheet(*, title: str, lead: str, ruler: Ruler) -> Sheet:
    """Begins a page with its title and a sentence that says what the page shows."""
    sheet = Sheet(ruler=ruler)
    sheet.paragraph(title, size=style.TITLE, bold=True, most=2, gap=2)
    if lead:
        sheet.paragraph(lead, size=style.LEAD, colour=style.MUTED, most=4, gap=4)
    sheet.rule(top=sheet.top)
    sheet.top += 10
    return sheet


def close_sheet(sheet: Sheet, *, left: str, number: int, total: int) -> None:
    """Writes the footer: what the report is about, and the page."""
    top = style.HEIGHT - style.MARGIN + 6
    right = f"{number} / {total}"
    width = style.WIDTH - 2 * style.MARGIN - 60
    text = sheet.ruler.shorten(left, width=width, size=style.SMALL)
    sheet.line(text, left=style.MARGIN, top=top, size=style.SMALL, colour=style.MUTED)
    sheet.line(
        right, left=style.WIDTH - style.MARGIN, top=top, size=style.SMALL, colour=style.MUTED, align="right"
    )
