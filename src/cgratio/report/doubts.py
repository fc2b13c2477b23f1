"""What speaks against an answer, in a block below it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cgratio.report import style
from cgratio.report.content import Content
from cgratio.report.sheet import Ruler, Sheet

_HEADING = "In doubt: the trials do not all agree with this answer"
_PAD = 5.0  # around the words, points
_SPACE = 8.0  # below the block
_LINE = style.SMALL * style.LINE
_MOST = 4  # lines of one note


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubts:
    """The block, ready to be written; empty without lines.

    Attributes:
        lines: the notes, wrapped.
        right: edge of the block, in points.
    """

    lines: tuple[str, ...]
    right: float

    @property
    def height(self) -> float:
        """With the space below, in points."""
        return (1 + len(self.lines)) * _LINE + 2 * _PAD + _SPACE if self.lines else 0.0

    def write(self, sheet: Sheet) -> None:
        """Writes the block where the page's text has got to."""
        if not self.lines:
            return
        sheet.shade(top=sheet.top, height=self.height - _SPACE, right=self.right, colour=style.WARNING)
        left, top = style.MARGIN + _PAD, sheet.top + _PAD
        sheet.line(_HEADING, left=left, top=top, size=style.SMALL, bold=True)
        for place, line in enumerate(self.lines, start=1):
            sheet.line(line, left=left, top=top + place * _LINE, size=style.SMALL)
        sheet.top += self.height


def make_doubts(workload: Content, *, further: Sequence[Content] = (), right: float, ruler: Ruler) -> Doubts:
    """Collects the notes that speak against the ratio of a workload.

    Args:
        workload: whose notes are quoted.
        further: other workloads in the answer, which are only named: their own pages quote theirs.
        right: edge of the block, in points.
        ruler: to fit the text.
    """
    notes = list(_doubts(workload))
    others = [other.workload for other in further if _doubts(other)]
    if others:
        pages = "its own page" if len(others) == 1 else "their own pages"
        notes.append(f"the ratio of {', '.join(others)} is in doubt for reasons on {pages}")
    width = right - style.MARGIN - 2 * _PAD
    wrapped = [ruler.wrap(f"• {note}", width=width, size=style.SMALL, most=_MOST) for note in notes]
    return Doubts(lines=tuple(line for lines in wrapped for line in lines), right=right)


def _doubts(workload: Content) -> tuple[str, ...]:
    optimum = workload.optimum("samples_per_s")
    return optimum.doubts if optimum else ()
