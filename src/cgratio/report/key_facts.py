"""The column of numbers beside the ratio curve."""

from __future__ import annotations

from dataclasses import dataclass

from cgratio.analysis.facts import Quantity
from cgratio.report import style, wording
from cgratio.report.content import Content
from cgratio.report.sheet import Ruler, Sheet


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
    # Reasons give way first when the column is full; the numbers never do.
    for most in (6, 5, 4, 3, 2, 1):
        if sum(_fact_height(sheet.ruler, row, width=width, most=most) for row in rows) <= bottom - sheet.top:
            break
    for row in rows:
        _write_fact(sheet, row, left=left, width=width, most=most)


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
        facts.insert(1, Fact(name=name, value=value, detail="whole threads per accelerator"))
    rule = rate.counting_rule if rate else joules.counting_rule if joules else "nothing was counted"
    facts.append(Fact(name="Counting rule", value="", detail=rule, is_kept=True))
    if with_trials:
        analysis = content.analysis
        value = f"{analysis.valid} of {analysis.trials} valid"
        facts.append(Fact(name="Trials", value=value, detail=", ".join(analysis.labels)))
    return facts


def _fact_height(ruler: Ruler, fact: Fact, *, width: float, most: int) -> float:
    lines = (
        ruler.wrap(fact.detail, width=width, size=style.SMALL, most=6 if fact.is_kept else most)
        if fact.detail
        else ()
    )
    return (len(lines) + 1) * style.SMALL * style.LINE + (15.0 if fact.value else 0.0) + 7.0


def _write_fact(sheet: Sheet, fact: Fact, *, left: float, width: float, most: int) -> None:
    sheet.paragraph(fact.name, size=style.SMALL, colour=style.MUTED, most=1, left=left, width=width)
    if fact.value:
        line = sheet.ruler.shorten(fact.value, width=width, size=11.5, bold=True)
        sheet.line(line, left=left, top=sheet.top, size=11.5, bold=True)
        sheet.top += 15.0
    if fact.detail:
        sheet.paragraph(
            fact.detail, size=style.SMALL, most=6 if fact.is_kept else most, left=left, width=width
        )
    sheet.top += 7.0
