"""The column of numbers beside the ratio curve."""

from __future__ import annotations

from dataclasses import dataclass, replace

from cgratio.analysis.facts import Optimum, Origin, Quantity
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


def write_key_facts(
    sheet: Sheet, content: Content, *, left: float, bottom: float, with_trials: bool, said: str = ""
) -> None:
    """Writes the column, from where the page's text has got to.

    Args:
        sheet: the page.
        content: of one workload.
        left: edge of the column in points; its right edge is the page's.
        bottom: where the column ends, in points.
        with_trials: whether to count the trials of the sweep.
        said: the answer, when it stands on the page: a reason that is in it is not given again.
    """
    rows = _facts(content, with_trials=with_trials, said=said)
    width = style.WIDTH - style.MARGIN - left
    # Space and then reasons give way when the column is full; the numbers never do.
    for most, gap in ((6, 7.0), (6, 4.0), (5, 4.0), (4, 4.0), (3, 3.0), (2, 2.0), (1, 2.0)):
        height = sum(_fact_height(sheet.ruler, row, width=width, most=most) + gap for row in rows)
        if height - gap <= bottom - sheet.top:
            break
    for row in rows:
        _write_fact(sheet, row, left=left, width=width, most=most)
        sheet.top += gap


def _facts(content: Content, *, with_trials: bool, said: str) -> list[Fact]:
    rate, joules = content.optimum("samples_per_s"), content.optimum("samples_per_joule")
    missing = Quantity.unknown(unit="", reason="the analysis gave no optimum")
    facts: list[Fact] = []
    given: set[str | None] = set()
    for name, optimum, which in (
        ("Optimum for samples/s, threads per accelerator", rate, "threads_per_accelerator"),
        ("The same per SM", rate, "threads_per_sm"),
        ("The same in physical cores per accelerator", rate, "cores_per_accelerator"),
        ("Optimum for samples/J, threads per accelerator", joules, "threads_per_accelerator"),
    ):
        quantity: Quantity = getattr(optimum, which) if optimum else missing
        shown = quantity
        if quantity.reason and quantity.reason in said:
            shown = replace(quantity, reason="the answer says why")
        elif quantity.reason in given:
            shown = replace(quantity, reason="for the same reason")
        given.add(quantity.reason)
        value = wording.amount(quantity, unit=False)
        if quantity.value is not None:
            value = _qualified(value, optimum)
        facts.append(Fact(name=name, value=value, detail=wording.detail(shown)))
    if rate and rate.near_optimal:
        name = f"Within {wording.percent(rate.tolerance)} of the best"
        value = _qualified(wording.ranges(rate.near_optimal), rate)
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


def _qualified(value: str, optimum: Optimum | None) -> str:
    """A number of threads; where notes speak against it, not without saying so first."""
    return f"in doubt: {value}" if optimum and optimum.doubts else value


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
