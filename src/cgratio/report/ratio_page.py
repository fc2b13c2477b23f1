"""The first page: the answer, the ratio curve it rests on, and the numbers beside it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from cgratio.report import ratio_chart, style, wording
from cgratio.report.content import Content
from cgratio.report.doubts import make_doubts
from cgratio.report.gaps import Gap, write_gaps
from cgratio.report.key_facts import write_key_facts
from cgratio.report.sheet import Ruler, Sheet, open_sheet

_PICTURE_RIGHT = 560.0
_FACTS_LEFT = 592.0
_AXES_WIDTH = _PICTURE_RIGHT - style.MARGIN - 70.0  # about what numbers and label of the y axis leave
_TITLE = "Rate per accelerator against CPU threads per accelerator"
# Points of height, however long the answer is, for the numbers and for the picture.
_LEAST_FACTS, _LEAST_PICTURE = 315.0, 270.0
_MOST_NOTES = 4  # lines at the foot of the first page


def title_page(*, content: Content, workloads: Sequence[Content], ruler: Ruler) -> Sheet:
    """Makes the first page.

    Args:
        content: of the whole sweep.
        workloads: of the sweep; the ratio of the first is the answer.
        ruler: to fit the text.
    """
    sheet = Sheet(ruler=ruler)
    first, *further = workloads
    doubts = make_doubts(first, further=further, right=_PICTURE_RIGHT, ruler=ruler)
    notes = _note_lines(content, ruler)
    foot = sheet.bottom - 22.0 - len(notes) * style.SMALL * style.LINE
    least = max(_LEAST_FACTS, _LEAST_PICTURE + doubts.height)
    said = _write_head(sheet, content, bottom=foot - least)
    top = sheet.top
    doubts.write(sheet)
    _draw_ratio(sheet, first, title=first.titled(_TITLE), bottom=foot - 8.0)
    sheet.top = top
    write_key_facts(sheet, first, left=_FACTS_LEFT, bottom=foot - 8.0, with_trials=True, said=said)
    _write_foot(sheet, content, notes, top=foot)
    return sheet


def workload_page(*, workload: Content, ruler: Ruler) -> Sheet:
    """Makes the page with the ratio of a further workload of the same sweep."""
    sheet = open_sheet(title=workload.titled("CPU threads per accelerator"), lead="", ruler=ruler)
    top = sheet.top
    make_doubts(workload, right=_PICTURE_RIGHT, ruler=ruler).write(sheet)
    _draw_ratio(sheet, workload, title=_TITLE, bottom=sheet.bottom)
    sheet.top = top
    write_key_facts(sheet, workload, left=_FACTS_LEFT, bottom=sheet.bottom, with_trials=False)
    return sheet


def _write_head(sheet: Sheet, content: Content, *, bottom: float) -> str:
    """Writes the name and the answer, and returns the answer as far as it fits."""
    sheet.paragraph(
        "CPU threads per accelerator · cgratio report", size=style.BODY, colour=style.MUTED, gap=3
    )
    sheet.paragraph(content.analysis.sweep, size=style.NAME, bold=True, most=2, gap=4)
    answer, width = content.analysis.answer, style.WIDTH - 2 * style.MARGIN
    for size in (15.0, 13.0, 11.5, 10.0):
        most = max(1, int((bottom - sheet.top) / (size * style.LINE)))
        if len(sheet.ruler.wrap(answer, width=width, size=size)) <= most:
            break
    sheet.paragraph(answer, size=size, most=most, gap=6)
    sheet.rule(top=sheet.top)
    sheet.top += 10.0
    return " ".join(sheet.ruler.wrap(answer, width=width, size=size, most=most))


def _draw_ratio(sheet: Sheet, content: Content, *, title: str, bottom: float) -> None:
    if not ratio_chart.can_draw(content):
        gap = Gap(name=title, reason=_why_no_picture(content))
        write_gaps(sheet, [gap], at_foot=False, right=_PICTURE_RIGHT)
        return
    sheet.reserve(top=sheet.top, bottom=bottom, right=_PICTURE_RIGHT)
    axes = sheet.figure.subplots()
    ratio_chart.draw_ratio(axes, content, title=title, width=_AXES_WIDTH, ruler=sheet.ruler)


def _why_no_picture(content: Content) -> str:
    found = content.analysis
    if found.valid == 0:
        codes = Counter(code for trial in content.trials for code in trial.verdict or (trial.status,))
        reasons = Counter(reason for trial in content.trials for reason in trial.reasons)
        text = f"None of {wording.count(found.trials, 'trial')} gave a valid measurement"
        text += f" ({wording.counted(dict(codes.most_common()))})" if codes else ""
        return text + (f"; most often: {reasons.most_common(1)[0][0]}" if reasons else "") + "."
    optimum = content.optimum("samples_per_s")
    reason = optimum.threads_per_accelerator.reason if optimum else None
    return reason or "No trial ran the whole training job, and no ratio curve was fitted."


def _note_lines(content: Content, ruler: Ruler) -> tuple[str, ...]:
    """The notes of the analysis, but for doubts, which stand beside the answer: lines as wide as the page."""
    optima = (optimum for optimum in content.analysis.optima if optimum.goal == "samples_per_s")
    doubts = [doubt for optimum in optima for doubt in optimum.doubts]
    notes = [note for note in content.analysis.notes if not note.endswith(tuple(doubts))]
    text = "; ".join(notes)
    width = style.WIDTH - 2 * style.MARGIN
    return ruler.wrap(f"Notes: {text}.", width=width, size=style.SMALL, most=_MOST_NOTES) if text else ()


def _write_foot(sheet: Sheet, content: Content, notes: Iterable[str], *, top: float) -> None:
    """Writes where and when it was measured, and what is to be said of the trials."""
    host = content.manifest.get("host")
    facts = host if isinstance(host, dict) else {}
    parts = [
        content.analysis.host or wording.plain(facts.get("hostname")),
        facts.get("cpu_model"),
        facts.get("kernel"),
    ]
    line = " · ".join(str(part) for part in parts if part)
    right = f"measured {content.date or 'on a date that was not recorded'} · cgratio {content.version}"
    width = style.WIDTH - 2 * style.MARGIN
    used = sheet.ruler.width(right, size=style.BODY) + 20
    sheet.rule(top=top)
    text = sheet.ruler.shorten(line or "host not recorded", width=width - used, size=style.BODY)
    sheet.line(text, left=style.MARGIN, top=top + 6, size=style.BODY)
    sheet.line(right, left=style.WIDTH - style.MARGIN, top=top + 6, size=style.BODY, align="right")
    for place, words in enumerate(notes):
        below = top + 6 + style.BODY * style.LINE + 1 + place * style.SMALL * style.LINE
        sheet.line(words, left=style.MARGIN, top=below, size=style.SMALL, colour=style.MUTED)
