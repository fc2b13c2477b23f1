"""The table of points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from cgratio.analysis.facts import Origin, Point, Quantity
from cgratio.report import wording
from cgratio.report.content import Content
from cgratio.report.sheet import Ruler, Sheet
from cgratio.report.tables import Column, lay_out
from cgratio.results import schema

_MOST_REASONS = 8
_MEANS = (
    "Updates/s and policy lag are means over trials; analysis.json has the interval of updates/s, none is "
    "computed for policy lag."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Number:
    """A number of a point: its column in two lines, and whether that has room for the interval."""

    name: str
    second: str
    of: Callable[[Point], Quantity]
    has_interval: bool = False

    def cell(self, point: Point) -> str:
        """The number as the table prints it."""
        quantity = self.of(point)
        if self.has_interval or quantity.value is None:
            return wording.cell(quantity)
        return wording.amount(quantity, unit=False)


def pages(*, content: Content, ruler: Ruler) -> list[Sheet]:
    """Makes as many pages as the points need."""
    points = content.analysis.points
    if not points:
        return []
    has_joules = any(
        point.power.value is not None or point.samples_per_joule.value is not None for point in points
    )
    has_verdicts = any(point.verdicts for point in points)
    before = [_Number(name="samples/s", second="95 % interval", of=lambda p: p.rate, has_interval=True)]
    energy = _energy(points) if has_joules else []
    after = [
        _Number(name="updates/s", second="", of=lambda p: p.updates_per_s),
        _Number(name="policy lag", second="updates", of=lambda p: p.policy_lag),
    ]
    columns = [
        *(_axis_column(axis) for axis in content.varying),
        Column(name="valid /\ntrials", is_number=True),
        *(_column(number) for number in (*before, *energy)),
        *((Column(name="joules\ncover"),) if has_joules else ()),
        *(_column(number) for number in after),
        Column(name="limited by", weight=1.0),
        *((Column(name="left out", weight=0.7),) if has_verdicts else ()),
    ]
    rows = [
        [
            *(wording.plain(point.axes.get(axis)) for axis in content.varying),
            f"{point.valid} / {point.trials}",
            *(number.cell(point) for number in (*before, *energy)),
            *((point.boundary or "–",) if has_joules else ()),
            *(number.cell(point) for number in after),
            point.bottleneck.value if point.valid else "–",
            *((wording.counted(point.verdicts),) if has_verdicts else ()),
        ]
        for point in points
    ]
    return lay_out(
        title="Points",
        lead=_lead(content, has_joules=has_joules),
        columns=columns,
        rows=rows,
        notes=[*_reasons(points, [*before, *energy, *after]), _MEANS],
        ruler=ruler,
    )


def _lead(content: Content, *, has_joules: bool) -> str:
    points = content.analysis.points
    fixed = " · ".join(
        f"{wording.axis_name(name)} {wording.plain(value)}" for name, value in content.fixed.items()
    )
    lead = (
        f"{wording.count(len(points), 'point')}. The same for all: {fixed or 'nothing'}. "
        "A dash is a value that is not known, or an axis that a part does not have."
    )
    if not has_joules:
        why = wording.reasons(p.samples_per_joule.reason for p in points if p.samples_per_joule.reason)
        lead += f" Joules are unknown: {why or 'no reason was recorded'}."
    return lead


def _energy(points: Sequence[Point]) -> list[_Number]:
    """Watts and samples per joule; where all of them are a model's, the very header says so."""
    known = [point.power for point in points if point.power.value is not None]
    is_modelled = bool(known) and all(power.origin is Origin.MODELLED for power in known)
    second = "modelled" if is_modelled else "95 % interval"
    return [
        _Number(name="power, W", second=second, of=lambda p: p.power, has_interval=True),
        _Number(name="samples/J", second=second, of=lambda p: p.samples_per_joule, has_interval=True),
    ]


def _column(number: _Number) -> Column:
    return Column(name=f"{number.name}\n{number.second}".rstrip(), is_number=True)


def _axis_column(axis: str) -> Column:
    is_text = schema.AXES[axis] == pa.string()
    return Column(
        name=wording.axis_name(axis).replace(" ", "\n", 1),
        weight=1.0 if is_text else 0.0,
        is_number=not is_text,
    )


def _reasons(points: Sequence[Point], numbers: Sequence[_Number]) -> list[str]:
    """Why numbers or their intervals are missing: each reason once, with the columns that it is about."""
    columns: dict[tuple[str, str], list[str]] = {}
    for number in numbers:
        for point in points:
            quantity = number.of(point)
            if quantity.reason and (quantity.value is None or number.has_interval):
                what = "A dash" if quantity.value is None else "No interval"
                name, *_ = number.name.split(",")  # without its unit
                columns.setdefault((what, quantity.reason), []).append(name)
    notes = [
        f"{what} in {', '.join(dict.fromkeys(names))}: {reason}." for (what, reason), names in columns.items()
    ]
    more = len(notes) - _MOST_REASONS
    return [*notes[:_MOST_REASONS], *([f"And {wording.count(more, 'more reason')}."] if more > 0 else [])]
