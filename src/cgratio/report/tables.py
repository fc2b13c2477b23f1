"""Tables over as many pages as they need: rows as high as their longest cell, headers on every page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cgratio.report import style
from cgratio.report.sheet import Ruler, Sheet, open_sheet

_GAP = 10.0  # between columns
_PAD = 1.7  # above and below the text of a row
_LINE = style.SMALL * 1.25
_MOST_LINES = 6  # of one cell


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column.

    Attributes:
        name: its header, of one or two lines.
        weight: how much of the spare width it takes; 0 for a column that is as wide as its text.
        is_number: whether it is set flush right.
    """

    name: str
    weight: float = 0.0
    is_number: bool = False


def lay_out(
    *,
    title: str,
    lead: str,
    columns: Sequence[Column],
    rows: Sequence[Sequence[str]],
    notes: Sequence[str] = (),
    ruler: Ruler,
) -> list[Sheet]:
    """Sets rows under their headers, page after page.

    Args:
        title: of the first page; later pages repeat it.
        lead: what the first page says under its title.
        columns: from left to right.
        rows: cells as text.
        notes: what is said once below the table instead of in many of its cells.
        ruler: to measure the cells.
    """
    widths = _widths(columns, rows, ruler)
    wrapped = [
        [
            ruler.wrap(text, width=width, size=style.SMALL, most=_MOST_LINES)
            for text, width in zip(row, widths, strict=True)
        ]
        for row in rows
    ]
    sheets = [open_sheet(title=title, lead=lead, ruler=ruler)]

    def sheet_for(height: float) -> Sheet:
        if sheets[-1].top + height > sheets[-1].bottom:
            sheets.append(open_sheet(title=f"{title}, continued", lead="", ruler=ruler))
        return sheets[-1]

    sheet: Sheet | None = None
    for place, cells in enumerate(wrapped):
        height = max(len(lines) for lines in cells) * _LINE + 2 * _PAD
        before, sheet = sheet, sheet_for(height)
        if sheet is not before:
            _write_header(sheet, columns, widths)
        if place % 2:
            sheet.shade(top=sheet.top, height=height)
        left = style.MARGIN
        for column, lines, width in zip(columns, cells, widths, strict=True):
            for number, line in enumerate(lines):
                edge = left + width if column.is_number else left
                top = sheet.top + _PAD + number * _LINE
                sheet.line(
                    line, left=edge, top=top, size=style.SMALL, align="right" if column.is_number else "left"
                )
            left += width + _GAP
        sheet.top += height
    sheets[-1].top += _GAP
    for note in notes:
        lines = ruler.wrap(note, width=style.WIDTH - 2 * style.MARGIN, size=style.SMALL)
        sheet = sheet_for(len(lines) * style.SMALL * style.LINE)
        sheet.paragraph(note, size=style.SMALL, colour=style.MUTED)
    return sheets


def _widths(columns: Sequence[Column], rows: Sequence[Sequence[str]], ruler: Ruler) -> list[float]:
    """As wide as the text where that fits; else the weighted columns give way, then all alike."""
    natural = []
    for place, column in enumerate(columns):
        head = max(ruler.width(line, size=style.SMALL, bold=True) for line in column.name.split("\n"))
        natural.append(max([head, *(ruler.width(row[place], size=style.SMALL) for row in rows)]) + 1.0)
    room = style.WIDTH - 2 * style.MARGIN - _GAP * (len(columns) - 1)
    spare = room - sum(width for width, column in zip(natural, columns, strict=True) if not column.weight)
    flexible = [place for place, column in enumerate(columns) if column.weight]
    if sum(natural[place] for place in flexible) > spare:
        # The narrow ones first: what they do not need goes to the wide ones.
        flexible.sort(key=lambda place: natural[place] / columns[place].weight)
        weights = sum(columns[place].weight for place in flexible)
        for place in flexible:
            fair = max(spare * columns[place].weight / weights, 30.0)
            natural[place] = min(natural[place], fair)
            spare -= natural[place]
            weights -= columns[place].weight
    shrink = min(1.0, room / sum(natural))
    return [width * shrink for width in natural]


def _write_header(sheet: Sheet, columns: Sequence[Column], widths: Sequence[float]) -> None:
    lines = max(column.name.count("\n") + 1 for column in columns)
    left = style.MARGIN
    for column, width in zip(columns, widths, strict=True):
        for number, line in enumerate(column.name.split("\n")):
            text = sheet.ruler.shorten(line, width=width + _GAP / 2, size=style.SMALL, bold=True)
            edge = left + width if column.is_number else left
            sheet.line(
                text,
                left=edge,
                top=sheet.top + number * _LINE,
                size=style.SMALL,
                bold=True,
                align="right" if column.is_number else "left",
            )
        left += width + _GAP
    sheet.top += lines * _LINE + 3.0
    sheet.rule(top=sheet.top, colour=style.MUTED)
    sheet.top += 2.0
