"""How the numbers came about, from the manifest and the analysis."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cgratio.report import style, wording
from cgratio.report.content import Content
from cgratio.report.gaps import Gap, merged
from cgratio.report.sensors import sensor_rows
from cgratio.report.sheet import Ruler, Sheet, open_sheet
from cgratio.report.wording import NOT_RECORDED

_GUTTER = 28.0
_COLUMN = (style.WIDTH - 2 * style.MARGIN - _GUTTER) / 2
_LABEL = 112.0
_INDENT = _LABEL + 8.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A heading with rows of (name, text); a row without a name is a paragraph."""

    heading: str
    rows: tuple[tuple[str, str], ...]


_HEADING = style.HEADING * style.LINE + 6.0  # height of a heading, points
_TOGETHER = 3  # rows that stay with their heading


def pages(*, content: Content, gaps: Sequence[Gap], ruler: Ruler) -> list[Sheet]:
    """Flows the blocks through two columns, over as many pages as they need.

    Args:
        content: of the whole sweep.
        gaps: pages of pictures that were not made.
        ruler: to fit the text.
    """
    sheets: list[Sheet] = []
    column, start = 2, 0.0
    sheet: Sheet | None = None
    for block in blocks(content, gaps):
        for place, row in enumerate(block.rows):
            together = block.rows[:_TOGETHER] if place == 0 else (row,)
            need = sum(_height(ruler, one) for one in together) + (_HEADING if place == 0 else 0.0)
            if sheet is None or sheet.top + need > sheet.bottom:
                column += 1
                if sheet is None or column > 1:
                    title = "Methods, continued" if sheets else "Methods"
                    sheet = open_sheet(title=title, lead="", ruler=ruler)
                    sheets.append(sheet)
                    column, start = 0, sheet.top
                sheet.top = start
            left = style.MARGIN + column * (_COLUMN + _GUTTER)
            if place == 0:
                sheet.top += 4.0
                sheet.line(block.heading, left=left, top=sheet.top, size=style.HEADING, bold=True)
                sheet.top += _HEADING - 4.0
            _write_row(sheet, row, left=left)
        if sheet is not None:
            sheet.top += 6.0
    return sheets


def _height(ruler: Ruler, row: tuple[str, str]) -> float:
    name, text = row
    width = _COLUMN - _INDENT if name else _COLUMN
    lines = ruler.wrap(text, width=width, size=8.5)
    names = ruler.wrap(name, width=_LABEL, size=8.5)
    return max(len(lines), len(names)) * 8.5 * style.LINE + 1.5


def _write_row(sheet: Sheet, row: tuple[str, str], *, left: float) -> None:
    name, text = row
    top = sheet.top
    if name:
        sheet.paragraph(name, left=left, width=_LABEL, size=8.5, colour=style.MUTED)
        named, sheet.top = sheet.top, top
        sheet.paragraph(text, left=left + _INDENT, width=_COLUMN - _INDENT, size=8.5)
        sheet.top = max(sheet.top, named)
    else:
        sheet.paragraph(text, left=left, width=_COLUMN, size=8.5)
    sheet.top += 1.5


def blocks(content: Content, gaps: Sequence[Gap] = ()) -> tuple[Block, ...]:
    """What the methods page says, in its order."""
    analysis, manifest = content.analysis, content.manifest
    plan = _mapping(manifest.get("plan"))
    spec = _mapping(manifest.get("spec"))
    rules = dict.fromkeys(optimum.counting_rule for optimum in analysis.optima)
    boundaries = sorted({point.boundary for point in analysis.points if point.boundary})
    sweep = (
        ("sweep", analysis.sweep),
        ("made", wording.plain(manifest.get("created_at")) if manifest.get("created_at") else NOT_RECORDED),
        ("plan", _plan_text(plan)),
        ("order", _order(plan)),
        ("seed", _text(plan.get("seed", spec.get("seed")))),
        ("replicates", _text(spec.get("replicates"))),
        ("valid trials", f"{analysis.valid} of {analysis.trials}"),
        *((("labels", ", ".join(analysis.labels)),) if analysis.labels else ()),
    )
    counting = tuple(("", rule) for rule in rules) or (("", "nothing was counted: no optimum was found"),)
    energy = (
        ("joules cover", ", ".join(boundaries) or "nothing: no joules were measured"),
        *_power_model(spec),
        *_emulated(spec),
        *sensor_rows(manifest),
        ("", "Joules of different boundaries are never added to or compared with each other."),
    )
    windows = (*_limits(_mapping(plan.get("limits"))), ("", _WINDOWS))
    notes = tuple(("", f"• {note}") for note in analysis.notes) or _NONE
    left_out = tuple(("", f"• {gap.name}: {gap.reason}") for gap in merged(gaps))
    return (
        Block(heading="Notes of the analysis", rows=notes),
        *((Block(heading="Pictures left out", rows=left_out),) if left_out else ()),
        Block(heading="Sweep", rows=sweep),
        Block(heading="Counting rule", rows=counting),
        Block(heading="Host", rows=_host_rows(manifest)),
        Block(heading="Energy and sensors", rows=energy),
        Block(heading="Windows and replicates", rows=windows),
        Block(heading="Held fixed", rows=_held_fixed(content)),
        Block(heading="Software", rows=_software_rows(content)),
        Block(
            heading="Files that were skipped",
            rows=tuple(("", f"• {flaw}") for flaw in analysis.flaws) or _NONE,
        ),
    )


_NONE = (("", "none"),)

_WINDOWS = (
    "A trial is one fresh launch. Its steady part is cut into windows of about a second; warm-up is found by "
    "MSER-5 on the window means. Windows give a trial's precision; intervals over replicates are the ones "
    "that count."
)


def _emulated(spec: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The profile of an emulated device, where there was one."""
    profile = _mapping(spec.get("emulated"))
    if not profile:
        return
    text = (
        f"an inference takes {profile.get('inference_s')} s and {profile.get('observation_s')} s for each "
        f"observation, an update {profile.get('update_s')} s, each divided by the share"
    )
    if profile.get("busy_w") is not None:
        text += f"; {profile.get('idle_w')} W idle, {profile.get('busy_w')} W busy"
    yield "emulated device", text


def _order(plan: Mapping[str, Any]) -> str:
    text = "randomised complete blocks"
    if plan.get("sentinels"):
        text += "; one point, the sentinel, once more in each, to see drift"
    return text


def _limits(limits: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The trial limits as the sweep stored them; seconds but for the two that are not."""
    shown = {
        "window": "window_s",
        "shortest warm-up": "warmup_min_s",
        "longest warm-up": "warmup_max_s",
        "longest measuring": "max_s",
    }
    for name, key in shown.items():
        if key in limits:
            yield name, f"{wording.number(float(limits[key]))} s"
    if "half_width" in limits:
        yield "stops early at", f"{float(limits['half_width']):.1%} half-width of the rate"
    if "min_windows" in limits:
        yield "steady windows", f"at least {limits['min_windows']}"


def _plan_text(plan: Mapping[str, Any]) -> str:
    parts = [f"{_text(plan[name])} {name}" for name in ("points", "trials", "blocks") if name in plan]
    return ", ".join(parts) or NOT_RECORDED


def _host_rows(manifest: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    host = dict(_mapping(manifest.get("host")))
    if "quota_cpus" in host and host["quota_cpus"] is None:
        host["quota_cpus"] = "none"  # here null is a fact: no quota limits the processor time
    known = tuple(_named(host, *host) or ())
    return (*(known or (("host", NOT_RECORDED),)), ("host id", _text(manifest.get("host_id"))))


def _power_model(spec: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Where modelled watts come from, when the sweep had a model."""
    model = _mapping(spec.get("power_model"))
    if model:
        idle, full = _text(model.get("idle_w")), _text(model.get("max_w"))
        text = f"modelled, not measured: {idle} W idle to {full} W busy for each package, by CPU utilisation"
        yield "power model", text


def _held_fixed(content: Content) -> tuple[tuple[str, str], ...]:
    rows = tuple((wording.axis_name(axis), wording.plain(value)) for axis, value in content.fixed.items())
    varied = ", ".join(wording.axis_name(axis) for axis in content.varying)
    return (*rows, ("varied", varied or "nothing"))


def _software_rows(content: Content) -> tuple[tuple[str, str], ...]:
    software = _mapping(content.manifest.get("software"))
    listed = ", ".join(f"{name} {_text(version)}" for name, version in software.items())
    return (("when measured", listed or NOT_RECORDED), ("this report", f"cgratio {content.version}"))


def _named(facts: Mapping[str, Any], *names: str) -> list[tuple[str, str]]:
    """Rows for those of the names that are recorded."""
    return [_named_text(str(name), facts[name]) for name in names if name in facts]


def _named_text(name: str, value: Any) -> tuple[str, str]:
    if name.endswith("_bytes") and isinstance(value, int | float):
        return name.removesuffix("_bytes").replace("_", " "), f"{wording.number(value / 2**30)} GiB"
    return name.replace("_", " "), _text(value)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    """Any JSON value in one line."""
    if value is None or value == "":
        return NOT_RECORDED
    if isinstance(value, Mapping):
        return (
            ", ".join(f"{str(name).replace('_', ' ')} {_text(item)}" for name, item in value.items())
            or NOT_RECORDED
        )
    if isinstance(value, Sequence) and not isinstance(value, str):
        return _listed(value)
    return wording.plain(value)


def _listed(values: Iterable[Any]) -> str:
    return "; ".join(_text(value) for value in values) or "none"
