"""The column of numbers beside the ratio curve."""

from __future__ import annotations

from dataclasses import dataclass

from cgratio.analysis.facts import Origin, Quantity
from cgratio.report import style, wording
from cgratio.report.content import Content
from cgratio.report.sheet import Ruler, Sheet

_VALUE = 15.0  # height of a value's line, points


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One entry beside the picture; `is_kept` when its detail may not be cut to make room."""

    name: str
    value: str
    detail: str
    is_kept: bool = False


def write_key_facts(sheet: Sheet, content: Content, *, left: float, bottom: float, with_trials: bool) -> None:
    """Writes the column, from where the page's text has got to.

    Args:
        sheet: the page.
        content: of one workload.
        left: edge of the column in points; its right edge is the page's.
        bottom: where the column ends, in points.
        with_trials: whether to count the trials of the sweep.
    """
    rows = _facts(content, with_trials=with_trials)
    width = style.WIDTH - style.MARGIN - left
    # Space and then reasons give way when the column is full; the numbers never do.
    for most, gap in ((6, 7.0), (6, 4.0), (5, 4.0), (4, 4.0), (3, 3.0), (2, 2.0), (1, 2.0)):
        height = sum(_fact_height(sheet.ruler, row, width=width, most=most) + gap for row in rows)
        if height - gap <= bottom - sheet.top:
            break
    for row in rows:
        _write_fact(sheet, row, left=left, width=width, most=most)
        sheet.top += gap


def _facts(content: Content, *, with_trials: bool) -> list[Fact]:
    rate, joules = content.optimum("samples_per_s"), content.optimum("samples_per_joule")
    missing = Quantity.unknown(unit="", reason="the analysis gave no optimum")
    facts: list[Fact] = []
    said: set[str] = set()
    for name, quantity in (
        ("Optimum for samples/s, threads per accelerator", rate.threads_per_accelerator if rate else missing),
        ("The same per SM", rate.threads_per_sm if rate else missing),
        ("The same in physical cores per accelerator", rate.cores_per_accelerator if rate else missing),
        (
            "Optimum for samples/J, threads per accelerator",
            joules.threads_per_accelerator if joules else missing,
        ),
    ):
        detail = wording.detail(quantity)
        if quantity.reason and detail in said:
            detail = "for the same reason"
        said.add(detail)
        facts.append(Fact(name=name, value=wording.amount(quantity, unit=False), detail=detail))
    if rate and rate.near_optimal:
        name = f"Within {wording.percent(rate.tolerance)} of the best"
        value = wording.ranges(rate.near_optimal)
        origin = rate.threads_per_accelerator.origin
        tag = f" · {origin.value}" if origin is Origin.EXTRAPOLATED else ""
        facts.insert(1, Fact(name=name, value=value, detail=f"whole threads per accelerator{tag}"))
    rule = rate.counting_rule if rate else joules.counting_rule if joules else "nothing was counted"
    facts.append(Fact(name="Counting rule", value="", detail=rule, is_kept=True))
    if with_trials:
        analysis = content.analysis
        value = f"{analysis.valid} of {analysis.trials} valid"
        facts.append(Fact(name="Trials", value=value, detail=", ".join(analysis.labels)))
    return facts


def _detail_lines(ruler: Ruler, fact: Fact, *, width: float, most: int) -> tuple[str, ...]:
    if not fact.detail:
        return ()
    return ruler.wrap(fact.detail, width=width, size=style.SMALL, most=6 if fact.is_kept else most)


def _fact_height(ruler: Ruler, fact: Fact, *, width: float, most: int) -> float:
    lines = _detail_lines(ruler, fact, width=width, most=most)
    return (len(lines) + 1) * style.SMALL * style.LINE + (_VALUE if fact.value else 0.0)


def _write_fact(sheet: Sheet, fact: Fact, *, left: float, width: float, most: int) -> None:
    sheet.paragraph(fact.name, size=style.SMALL, colour=style.MUTED, most=1, left=left, width=width)
    if fact.value:
        line = sheet.ruler.shorten(fact.value, width=width, size=11.5, bold=True)
        sheet.line(line, left=left, top=sheet.top, size=11.5, bold=True)
        sheet.top += _VALUE
    for line in _detail_lines(sheet.ruler, fact, width=width, most=most):
        sheet.line(line, left=left, top=sheet.top, size=style.SMALL)
        sheet.top += style.SMALL * style.LINE
