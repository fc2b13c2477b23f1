"""What stands in place of a picture that has nothing to show: one sentence that says why."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from cgratio.report import style
from cgratio.report.sheet import Sheet

_PAD = 7.0  # around the sentences, points
_SPACE = 10.0  # between the pictures and the block
_LINE = style.BODY * style.LINE


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """A picture that is not drawn, and why."""

    name: str
    reason: str


def merged(gaps: Iterable[Gap]) -> tuple[Gap, ...]:
    """Pictures that are missing for the same reason, in one sentence."""
    names: dict[str, list[str]] = {}
    for gap in gaps:
        names.setdefault(gap.reason, []).append(gap.name)
    return tuple(Gap(name=" · ".join(dict.fromkeys(found)), reason=why) for why, found in names.items())


def write_gaps(
    sheet: Sheet,
    gaps: Iterable[Gap],
    *,
    at_foot: bool,
    right: float = style.WIDTH - style.MARGIN,
) -> None:
    """Writes the reasons in a block that is no larger than they are.

    Args:
        sheet: the page; its `bottom`, or its `top`, moves past the block.
        gaps: what is missing; without any, nothing is written.
        at_foot: below the page's pictures, else where its text has got to.
        right: edge of the block, in points.
    """
    width = right - style.MARGIN - 2 * _PAD
    blocks = [
        (gap.name, sheet.ruler.wrap(gap.reason, width=width, size=style.BODY, most=6)) for gap in merged(gaps)
    ]
    if not blocks:
        return
    height = sum((1 + len(lines)) * _LINE for _, lines in blocks) + _PAD * (len(blocks) + 1)
    top = sheet.bottom - height if at_foot else sheet.top
    sheet.shade(top=top, height=height, right=right)
    below = top + _PAD
    for name, lines in blocks:
        title = sheet.ruler.shorten(name, width=width, size=style.BODY, bold=True)
        sheet.line(title, left=style.MARGIN + _PAD, top=below, bold=True)
        for place, line in enumerate(lines, start=1):
            sheet.line(line, left=style.MARGIN + _PAD, top=below + place * _LINE, colour=style.MUTED)
        below += (1 + len(lines)) * _LINE + _PAD
    if at_foot:
        sheet.bottom = top - _SPACE
    else:
        sheet.top = top + height + _SPACE
