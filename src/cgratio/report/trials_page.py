"""The table of trials, in the order in which they ran."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from cgratio.report import wording
from cgratio.report.content import Content, Trial
from cgratio.report.sheet import Ruler, Sheet
from cgratio.report.tables import Column, lay_out


def pages(*, content: Content, ruler: Ruler) -> list[Sheet]:
    """Makes as many pages as the trials need."""
    trials = content.trials
    if not trials:
        return []
    names = {point.point_id: wording.point_name(point, content.varying) for point in content.analysis.points}
    counts = Counter(reason for trial in trials if (reason := _reason(trial)))
    numbers = {reason: number for number, reason in enumerate(counts, start=1)}
    columns = [
        Column(name="order", is_number=True),
        Column(name="trial"),
        Column(name="point", weight=1.0),
        Column(name="replicate", is_number=True),
        Column(name="samples/s", is_number=True),
        Column(name="± within\nthe trial", is_number=True),
        Column(name="verdict", weight=0.6),
        *((Column(name="reason,\nat the end", is_number=True),) if numbers else ()),
    ]
    rows = [_row(trial, names, numbers) for trial in trials]
    notes = [
        f"Reason {numbers[reason]}, of {wording.count(count, 'trial')}: {reason}"
        for reason, count in counts.items()
    ]
    return lay_out(title="Trials", lead=_lead(trials), columns=columns, rows=rows, notes=notes, ruler=ruler)


def _lead(trials: Sequence[Trial]) -> str:
    left_out = sum(not trial.valid for trial in trials)
    which = f"{left_out} left out of every number" if left_out else "none left out"
    return (
        f"{wording.count(len(trials), 'trial')} in the order in which they ran, {which}. The ± is "
        "the 95 % half width over the windows of one trial; it says nothing about replicates."
    )


def _reason(trial: Trial) -> str:
    return "; ".join(trial.reasons)


def _row(trial: Trial, names: dict[str, str], numbers: dict[str, int]) -> list[str]:
    point = names.get(trial.point_id, trial.point_id)
    return [
        wording.plain(trial.order),
        trial.trial_id,
        f"{point} · sentinel" if trial.sentinel else point,
        wording.plain(trial.replicate),
        "–" if trial.rate is None else wording.rounded(trial.rate),
        "–" if trial.half_width is None else wording.rounded(trial.half_width),
        ", ".join(trial.verdict) or trial.status,
        *((wording.plain(numbers.get(_reason(trial))),) if numbers else ()),
    ]
