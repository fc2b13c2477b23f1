"""Tables over as many pages as they need: rows as high as their longest cell, headers on every page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from cgratio.analysis.facts import Origin, Point, Quantity
from cgratio.report import style, wording
from cgratio.report.content import Content, Trial
from cgratio.report.sheet import Ruler, Sheet, open_sheet
from cgratio.results import schema

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
    ruler: Ruler,
) -> list[Sheet]:
    """Sets rows under their headers, page after page.

    Args:
        title: of the first page; later pages repeat it.
        lead: what the first page says under its title.
        columns: from left to right.
        rows: cells as text.
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
    sheets: list[Sheet] = []
    sheet: Sheet | None = None
    for place, cells in enumerate(wrapped):
        height = max(len(lines) for lines in cells) * _LINE + 2 * _PAD
        if sheet is None or sheet.top + height > sheet.bottom:
            sheet = open_sheet(
                title=title if not sheets else f"{title}, continued", lead="" if sheets else lead, ruler=ruler
            )
            sheets.append(sheet)
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


def point_pages(*, content: Content, ruler: Ruler) -> list[Sheet]:
    """The table of points."""
    points = content.analysis.points
    if not points:
        return []
    joules = any(
        point.power.value is not None or point.samples_per_joule.value is not None for point in points
    )
    left_out = any(point.verdicts for point in points)
    columns = [
        *(_axis_column(axis) for axis in content.varying),
        Column(name="valid /\ntrials", is_number=True),
        Column(name="samples/s\n95 % interval", is_number=True),
        *(_energy_columns(points) if joules else ()),
        Column(name="updates/s", is_number=True),
        Column(name="policy lag\nupdates", is_number=True),
        Column(name="limited by", weight=1.0),
        *((Column(name="left out", weight=0.7),) if left_out else ()),
    ]
    rows = [_point_row(point, content, joules=joules, left_out=left_out) for point in points]
    fixed = " · ".join(
        f"{wording.axis_name(name)} {wording.plain(value)}" for name, value in content.fixed.items()
    )
    lead = (
        f"{wording.count(len(points), 'point')}. The same for all: {fixed or 'nothing'}. "
        "A dash is a value that is not known."
    )
    if not joules:
        reasons = dict.fromkeys(p.samples_per_joule.reason for p in points if p.samples_per_joule.reason)
        lead += f" Joules are unknown: {'; '.join(reasons) or 'no reason was recorded'}."
    return lay_out(title="Points", lead=lead, columns=columns, rows=rows, ruler=ruler)


def _energy_columns(points: Sequence[Point]) -> tuple[Column, ...]:
    """Watts and samples per joule; where all of them are a model's, the very header says so."""
    known = [point.power for point in points if point.power.value is not None]
    is_modelled = bool(known) and all(power.origin is Origin.MODELLED for power in known)
    second = "modelled" if is_modelled else "95 % interval"
    return (
        Column(name=f"power, W\n{second}", is_number=True),
        Column(name=f"samples/J\n{second}", is_number=True),
        Column(name="joules\ncover"),
    )


def _bare(quantity: Quantity) -> str:
    """A number whose interval the table has no room for."""
    return "–" if quantity.value is None else wording.amount(quantity, unit=False)


def _axis_column(axis: str) -> Column:
    is_text = schema.AXES[axis] == pa.string()
    return Column(
        name=wording.axis_name(axis).replace(" ", "\n", 1),
        weight=1.0 if is_text else 0.0,
        is_number=not is_text,
    )


def _point_row(point: Point, content: Content, *, joules: bool, left_out: bool) -> list[str]:
    energy = (wording.cell(point.power), wording.cell(point.samples_per_joule), point.boundary or "–")
    return [
        *(wording.plain(point.axes.get(axis)) for axis in content.varying),
        f"{point.valid} / {point.trials}",
        wording.cell(point.rate),
        *(energy if joules else ()),
        _bare(point.updates_per_s),
        _bare(point.policy_lag),
        point.bottleneck.value if point.valid else "–",
        *((wording.counted(point.verdicts),) if left_out else ()),
    ]


def trial_pages(*, content: Content, ruler: Ruler) -> list[Sheet]:
    """The table of trials, in the order in which they ran."""
    if not content.trials:
        return []
    names = {point.point_id: wording.point_name(point, content.varying) for point in content.analysis.points}
    left_out = sum(not trial.valid for trial in content.trials)
    has_reasons = any(trial.reasons for trial in content.trials)
    columns = [
        Column(name="order", is_number=True),
        Column(name="trial"),
        Column(name="point", weight=1.0),
        Column(name="replicate", is_number=True),
        Column(name="samples/s", is_number=True),
        Column(name="± within\nthe trial", is_number=True),
        Column(name="verdict", weight=0.6),
        *((Column(name="reason", weight=1.0),) if has_reasons else ()),
    ]
    rows = [_trial_row(trial, names, has_reasons=has_reasons) for trial in content.trials]
    which = f"{left_out} left out of every number" if left_out else "none left out"
    lead = (
        f"{wording.count(len(content.trials), 'trial')} in the order in which they ran, {which}. The ± is "
        "the 95 % half width over the windows of one trial; it says nothing about replicates."
    )
    return lay_out(title="Trials", lead=lead, columns=columns, rows=rows, ruler=ruler)


def _trial_row(trial: Trial, names: dict[str, str], *, has_reasons: bool) -> list[str]:
    point = names.get(trial.point_id, trial.point_id)
    return [
        wording.plain(trial.order),
        trial.trial_id,
        f"{point} · sentinel" if trial.sentinel else point,
        wording.plain(trial.replicate),
        "–" if trial.rate is None else wording.rounded(trial.rate),
        "–" if trial.half_width is None else wording.rounded(trial.half_width),
        ", ".join(trial.verdict) or trial.status,
        *(("; ".join(trial.reasons),) if has_reasons else ()),
    ]
