"""What a report prints: the analysis, the trials and the manifest, with every text made printable."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from importlib import metadata
from typing import Any, TypeVar

import pandas as pd

from cgratio.analysis.facts import Analysis, Curve, Optimum, Point
from cgratio.report import fonts, series, wording
from cgratio.results import schema, store
from cgratio.results.words import Part

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One launch, as the trial table prints it."""

    trial_id: str
    point_id: str
    order: int | None
    replicate: int | None
    sentinel: bool
    status: str
    verdict: tuple[str, ...]
    rate: float | None
    half_width: float | None
    sm_count: int | None
    reasons: tuple[str, ...]

    @property
    def valid(self) -> bool:
        """Whether its numbers were used."""
        return self.verdict == ("valid",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """Everything that the pages read.

    Attributes:
        varying: axes that differ between points, in schema order. fixed: the values of the others.
        version: of cgratio, when the report was made.
        date: when the sweep was made.
        typeface: fonts that have every character of the above.
        group: what tells this workload from the others of the sweep, when the content is of one of several.
    """

    analysis: Analysis
    trials: tuple[Trial, ...]
    manifest: dict[str, Any]
    varying: tuple[str, ...]
    fixed: dict[str, Any]
    version: str
    date: str | None
    typeface: fonts.Typeface
    group: dict[str, Any] = field(default_factory=dict)

    def part(self, part: Part) -> tuple[Point, ...]:
        """The points of one part that have a rate."""
        points = self.analysis.points
        return tuple(p for p in points if p.axes.get("part") == part.value and p.rate.value is not None)

    def curve(self, name: str) -> Curve | None:
        """A fitted curve by its name."""
        return next((curve for curve in self.analysis.curves if curve.name == name), None)

    def optimum(self, goal: str) -> Optimum | None:
        """The optimum for one goal."""
        return next((optimum for optimum in self.analysis.optima if optimum.goal == goal), None)

    def workloads(self) -> tuple[Content, ...]:
        """The same for each workload alone; the ratio belongs to one environment, network and device."""
        groups: list[dict[str, Any]] = []
        found = [optimum.group for optimum in self.analysis.optima]
        found += [curve.group for curve in self.analysis.curves]
        for group in found:
            if group not in groups:
                groups.append(group)
        return tuple(self._narrowed(group) for group in groups) if len(groups) > 1 else (self,)

    def _narrowed(self, group: dict[str, Any]) -> Content:
        def fits(point: Point) -> bool:
            # An axis without meaning for a part is None there and contradicts no workload.
            asked = [(point.axes.get(name), value) for name, value in group.items()]
            return all(mine is None or mine == value for mine, value in asked)

        analysis = dataclasses.replace(
            self.analysis,
            points=tuple(point for point in self.analysis.points if fits(point)),
            curves=tuple(curve for curve in self.analysis.curves if curve.group == group),
            optima=tuple(optimum for optimum in self.analysis.optima if optimum.group == group),
        )
        return dataclasses.replace(self, analysis=analysis, group=group)

    @property
    def workload(self) -> str:
        """The name of the workload, when there are several."""
        return " · ".join(wording.axis_value(name, value) for name, value in self.group.items())

    def titled(self, title: str) -> str:
        """A page title with the workload it belongs to, when there are several."""
        return f"{title}: {self.workload}" if self.workload else title

    def sm_count(self, point: Point) -> int | None:
        """SMs that were read back in a point's trials, when they agree."""
        found = {t.sm_count for t in self.trials if t.point_id == point.point_id and t.sm_count}
        return found.pop() if len(found) == 1 else None


def gather(*, results: store.Results, analysis: Analysis) -> Content:
    """Collects what a report prints and finds the fonts for it."""
    version = metadata.version("cgratio")
    trials = tuple(_trials(results.trials))
    # Every printable character of ASCII is there anyway; the rest decides which fonts are needed.
    texts = [*_texts(analysis), *_texts(trials), *_texts(results.manifest)]
    typeface = fonts.choose(set().union(*texts) if texts else set())
    analysis = _printable(analysis, typeface)
    varying, fixed = _split_axes(analysis.points)
    return Content(
        analysis=analysis,
        trials=_printable(trials, typeface),
        manifest=_printable(results.manifest, typeface),
        varying=varying,
        fixed=fixed,
        version=version,
        date=_date(results),
        typeface=typeface,
    )


def _trials(rows: pd.DataFrame) -> Iterator[Trial]:
    for row in rows.to_dict("records"):
        known = {str(name): _known(value) for name, value in row.items()}
        reasons = [known.get("status_reason")]
        signal = known.get("exit_signal")
        if signal and not any(str(signal) in code for code in known.get("verdict") or ()):
            reasons.append(f"ended by {signal}")
        elif known.get("exit_code") and not signal:
            reasons.append(f"exit code {known['exit_code']}")
        yield Trial(
            trial_id=str(known.get("trial_id") or "–"),
            point_id=str(known.get("point_id") or "–"),
            order=known.get("order"),
            replicate=known.get("replicate"),
            sentinel=bool(known.get("sentinel")),
            status=str(known.get("status") or "unknown"),
            verdict=tuple(str(code) for code in known.get("verdict") or ()),
            rate=known.get("samples_per_s"),
            half_width=known.get("samples_per_s_half_width"),
            sm_count=known.get("observed_sm_count"),
            reasons=tuple(str(reason) for reason in reasons if reason),
        )


def _known(value: Any) -> Any:
    """A table's value in plain types; null is None."""
    if isinstance(value, str) or value is None:
        return value
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return list(value)
    return None if pd.isna(value) else value


def _split_axes(points: tuple[Point, ...]) -> tuple[tuple[str, ...], dict[str, Any]]:
    varying: list[str] = []
    fixed: dict[str, Any] = {}
    for axis in schema.AXES:
        values = {point.axes.get(axis) for point in points}
        if len(values - {None}) > 1 and axis == "inference_batch" and series.follows(axis, points):
            fixed[axis] = "follows the actors"
        elif len(values - {None}) > 1:
            varying.append(axis)
        elif known := values - {None}:
            fixed[axis] = known.pop()
    return tuple(varying), fixed


def _date(results: store.Results) -> str | None:
    created = results.manifest.get("created_at")
    if isinstance(created, str):
        return created[:10]
    started = results.trials.get("started_at", pd.Series(dtype="object")).dropna()
    return None if started.empty else str(started.min())[:10]


def _texts(value: Any) -> Iterator[str]:
    """Every text inside nested dataclasses, mappings and sequences."""
    if isinstance(value, str):
        yield value
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from _texts(getattr(value, field.name))
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _texts(key)
            yield from _texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)


def _printable(value: _T, typeface: fonts.Typeface) -> _T:
    """The same value with every text inside made printable."""
    return _convert(value, typeface)  # type: ignore[no-any-return]


def _convert(value: Any, typeface: fonts.Typeface) -> Any:
    if isinstance(value, Enum):
        return value
    if isinstance(value, str):
        return typeface.printable(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        changed = {f.name: _convert(getattr(value, f.name), typeface) for f in dataclasses.fields(value)}
        return dataclasses.replace(value, **changed)
    if isinstance(value, dict):
        return {_convert(key, typeface): _convert(item, typeface) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_convert(item, typeface) for item in value)
    return value
