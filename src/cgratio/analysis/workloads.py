"""Splits trials into workloads: the ratio belongs to one environment, network and kind of device."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from cgratio.analysis.facts import Bottleneck
from cgratio.analysis.points import by_point, limit_of
from cgratio.analysis.trials import Trial
from cgratio.results.words import Part

Floats = npt.NDArray[np.float64]

KEYS = (
    "environment",
    "algorithm",
    "network",
    "lstm",
    "inference",
    "device",
    "pinning",
    "precision",
    "actor_groups",
    "unroll_length",
    "learner_batch",
    "replay_ratio",
)
"""Axes that make another workload. So does the inference batch, where it does not follow from the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """The valid trials that one ratio is fitted to.

    Attributes:
        key: its values of `KEYS`, and the host.
        varying: those of them that differ between the workloads of the sweep.
        trials: supply and demand trials belong to every workload whose keys they do not contradict: an axis
            without meaning for a part is null there.
    """

    key: dict[str, Any]
    varying: dict[str, Any]
    trials: tuple[Trial, ...]

    def of(self, part: Part) -> tuple[Trial, ...]:
        """The trials that ran one part."""
        return tuple(trial for trial in self.trials if trial.part is part)


@dataclass(frozen=True, slots=True, kw_only=True)
class Observations:
    """What the fit sees: each point's mean log rate and what belongs to it. Arrays of shape (points,).

    Attributes:
        part: index of `Part` in the order of its members (0 whole, 1 supply, 2 demand).
        threads, amount, actors: c, a and n of each point; NaN where the part has none.
        log_rate: mean over replicates of log(samples/s). count: replicates.
        limit: bottleneck of each point by its shares.
        pure_squares, pure_degrees: sum of squares of replicates about their own means, and its freedom.
    """

    part: npt.NDArray[np.int64]
    threads: Floats
    amount: Floats
    actors: Floats
    log_rate: Floats
    count: Floats
    limit: tuple[Bottleneck, ...]
    pure_squares: float
    pure_degrees: int

    def where(self, mask: npt.NDArray[np.bool_]) -> Observations:
        """Only the points of a mask of shape (points,), with the spread of the launches of all of them."""
        return replace(
            self,
            part=self.part[mask],
            threads=self.threads[mask],
            amount=self.amount[mask],
            actors=self.actors[mask],
            log_rate=self.log_rate[mask],
            count=self.count[mask],
            limit=tuple(limit for limit, kept in zip(self.limit, mask, strict=True) if kept),
        )

    def is_part(self, part: Part) -> npt.NDArray[np.bool_]:
        """Mask of the points of a part, shape (points,)."""
        return np.asarray(self.part == list(Part).index(part))


def split_workloads(trials: Sequence[Trial]) -> tuple[Workload, ...]:
    """Makes one workload of each combination of keys, the one with most valid trials first."""
    valid = [trial for trial in trials if trial.valid]
    names = _keys(valid)
    keys: list[dict[str, Any]] = []
    # Whole trials say everything; a supply trial that fits one of theirs must not open its own workload.
    for mine in sorted(
        (_key(trial, names) for trial in valid), key=lambda key: sum(value is None for value in key.values())
    ):
        if not any(_fits(mine, key) for key in keys):
            keys.append(mine)
    varying = [name for name in (*names, "host") if len({repr(key[name]) for key in keys}) > 1]
    workloads = [
        Workload(
            key=key,
            varying={name: key[name] for name in varying},
            trials=tuple(trial for trial in valid if _fits(_key(trial, names), key)),
        )
        for key in keys
    ]
    return tuple(sorted(workloads, key=lambda workload: -len(workload.trials)))


def observe(workload: Workload) -> Observations:
    """Averages the replicates of each point that the fit may use.

    Of supply points at one thread count, and of demand points at one amount, only those with most actors
    enter: with fewer the part is itself short of work, and does not show its capacity.
    """
    groups = list(by_point(workload.trials).values())
    most = {
        _place(group[0]): max((g[0].actors or 0.0) for g in groups if _place(g[0]) == _place(group[0]))
        for group in groups
    }
    kept = [
        group
        for group in groups
        if group[0].part is Part.WHOLE or (group[0].actors or 0.0) >= most[_place(group[0])]
    ]
    logs = [np.log([trial.rate for trial in group]) for group in kept]
    return Observations(
        part=np.array([list(Part).index(group[0].part) for group in kept], dtype=np.int64),
        threads=_column([group[0].threads for group in kept]),
        amount=_column([group[0].amount for group in kept]),
        actors=_column([group[0].actors for group in kept]),
        log_rate=np.array([float(log.mean()) for log in logs]),
        count=np.array([float(log.size) for log in logs]),
        limit=tuple(limit_of(group)[0] for group in kept),
        pure_squares=sum(float(np.sum((log - log.mean()) ** 2)) for log in logs),
        pure_degrees=sum(log.size - 1 for log in logs),
    )


def _keys(trials: Sequence[Trial]) -> tuple[str, ...]:
    """`KEYS`, and the inference batch if trials that are otherwise alike differ in it."""
    axes = [trial.axes | {"host": trial.host} for trial in trials]
    return KEYS if follows("inference_batch", axes) else (*KEYS, "inference_batch")


def follows(name: str, points: Iterable[Mapping[str, Any]], *, besides: Sequence[str] = ()) -> bool:
    """Whether an axis is given by the others, and so is none of its own.

    Args:
        name: of the axis.
        points: axis values of each.
        besides: other axes that are taken to follow too.
    """
    values: dict[Any, set[Any]] = {}
    for axes in points:
        others = tuple(value for axis, value in axes.items() if axis not in {name, *besides})
        values.setdefault(others, set()).add(axes.get(name))
    return all(len(found - {None}) <= 1 for found in values.values())


def _key(trial: Trial, names: Sequence[str]) -> dict[str, Any]:
    return {**{name: trial.axes[name] for name in names}, "host": trial.host}


def _fits(mine: dict[str, Any], key: dict[str, Any]) -> bool:
    return all(value is None or value == key[name] for name, value in mine.items())


def _place(trial: Trial) -> tuple[Part, float | None]:
    return trial.part, trial.threads if trial.part is Part.SUPPLY else trial.amount


def _column(values: Sequence[float | None]) -> Floats:
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
