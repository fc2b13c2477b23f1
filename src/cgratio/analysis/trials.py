"""Stored rows as plain facts: what each trial asked for, whether it counts, and what it measured."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from cgratio.results.schema import AXES, BOUNDARIES
from cgratio.results.words import Part, Status

VALID = ("valid",)

SHARES = (
    "env",
    "wait_batch",
    "inference",
    "transfer",
    "backpressure",
    "learner",
    "wait_data",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One launch.

    Attributes:
        axes: requested axis values; None where an axis has no meaning.
        threads: actor CPUs c. actors: environments in flight n. amount: accelerators a, that is device CPUs,
            GPUs, or one emulated, times the share that was read back (or else asked for). None where unknown.
        valid: whether it may enter any number. codes: why not.
        rate: samples/s. seconds: measured time. joules: of `boundary`, over the same time.
        joules_pm: relative half-width of `joules` from its sensor.
        sms: streaming multiprocessors of one whole GPU.
        precision: that the network ran in. others_share: of the trial's CPU time, used by other processes.
    """

    trial_id: str
    point_id: str
    host: str
    part: Part
    axes: dict[str, Any]
    order: int
    threads: float | None
    actors: float | None
    amount: float | None
    valid: bool
    codes: tuple[str, ...]
    samples: float
    seconds: float
    rate: float
    updates_per_s: float | None
    policy_lag: float | None
    shares: dict[str, float]
    device_busy_reason: str | None
    env_s_per_sample: float | None
    device_s_per_sample: float | None
    joules: float | None
    joules_pm: float
    boundary: str | None
    power_w: float | None
    energy_reason: str | None
    sms: float | None
    threads_seen: str | None
    precision: str | None
    others_share: float | None


def read_trials(frame: pd.DataFrame) -> tuple[Trial, ...]:
    """Makes facts of the rows of a trials table, in the table's order."""
    return tuple(read_trial(row) for row in frame.to_dict(orient="records"))


def read_trial(row: Mapping[Any, Any]) -> Trial:
    """Makes a fact of one row; a column that it leaves out is unknown."""
    axes = {name: _plain(row.get(name)) for name in AXES}
    codes = _codes(row.get("verdict"), status=_text(row.get("status")))
    samples, seconds = _number(row.get("samples")), _number(row.get("measured_s"))
    rate = _number(row.get("samples_per_s"))
    if rate is None and samples is not None and seconds:
        rate = samples / seconds
    if codes == VALID and not (rate and rate > 0.0):
        codes = ("no_rate",)
    if rate and (samples is None or seconds is None or samples <= 0.0 or seconds <= 0.0):
        samples, seconds = rate, 1.0  # a row that only tells its rate weighs one second
    shares = {name: _number(row.get(f"share_{name}")) for name in SHARES}
    shares["device_busy"] = _number(row.get("device_busy_share"))
    joules, joules_pm, boundary = _energy(row, samples=samples)
    return Trial(
        trial_id=str(row.get("trial_id")),
        point_id=_text(row.get("point_id")) or repr(sorted(axes.items())),
        host=_text(row.get("hostname")) or _text(row.get("host_id")) or "unknown host",
        part=Part(axes["part"] or Part.WHOLE),
        axes=axes,
        order=int(_number(row.get("order")) or 0),
        threads=_number(axes["actor_cpus"]),
        actors=_number(row.get("observed_actors")) or _number(axes["actors"]),
        amount=_amount(axes, observed_share=_number(row.get("observed_sm_share"))),
        valid=codes == VALID,
        codes=codes,
        samples=samples or 0.0,
        seconds=seconds or 0.0,
        rate=rate or 0.0,
        updates_per_s=_number(row.get("updates_per_s")),
        policy_lag=_number(row.get("policy_lag_mean")),
        shares={name: share for name, share in shares.items() if share is not None},
        device_busy_reason=_text(row.get("device_busy_share_reason")),
        env_s_per_sample=_number(row.get("env_s_per_sample")),
        device_s_per_sample=_number(row.get("device_s_per_sample")),
        joules=joules,
        joules_pm=joules_pm,
        boundary=boundary,
        power_w=_number(row.get("power_w")),
        energy_reason=_text(row.get("samples_per_joule_reason")),
        sms=_sms(row, axes),
        threads_seen=_text(row.get("observed_actor_cpu_list")),
        precision=_text(row.get("observed_precision")),
        others_share=_number(row.get("others_cpu_share")),
    )


def _codes(verdict: Any, *, status: str | None) -> tuple[str, ...]:
    codes = tuple(str(code) for code in verdict) if isinstance(verdict, Iterable) else ()
    if codes == VALID and status not in {None, Status.COMPLETE}:
        return (str(status),)
    return codes or ("no_verdict",)


def _amount(axes: Mapping[str, Any], *, observed_share: float | None) -> float | None:
    """Accelerators that the trial may use, by the share that was read back where there is one."""
    if axes["part"] == Part.SUPPLY:
        return None
    share = observed_share or _number(axes["sm_share"]) or 1.0
    if axes["device"] == "emulated":
        return share
    units = _number(axes["gpus"]) if axes["device"] == "cuda" else _number(axes["device_cpus"])
    return units * share if units else None


def _sms(row: Mapping[Any, Any], axes: Mapping[str, Any]) -> float | None:
    seen = _number(row.get("observed_sm_count"))
    share = _number(row.get("observed_sm_share")) or _number(axes["sm_share"]) or 1.0
    return seen / share / (_number(axes["gpus"]) or 1.0) if seen else None


def _energy(row: Mapping[Any, Any], *, samples: float | None) -> tuple[float | None, float, str | None]:
    """Joules, their relative half-width and their boundary; only of the boundary that the row names."""
    boundary = _text(row.get("samples_per_joule_boundary"))
    if boundary is None:
        return None, 0.0, None
    joules, pm = None, None
    if boundary in BOUNDARIES:
        joules = _number(row.get(f"energy_{boundary}_j"))
        pm = _number(row.get(f"energy_{boundary}_pm_j"))
    if joules and joules > 0.0:
        return joules, (pm or 0.0) / joules, boundary
    ratio, ratio_pm = _number(row.get("samples_per_joule")), _number(row.get("samples_per_joule_pm"))
    if ratio and ratio > 0.0 and samples:
        return samples / ratio, (ratio_pm or 0.0) / ratio, boundary
    return None, 0.0, None


def _missing(value: Any) -> bool:
    return value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value))


def _plain(value: Any) -> Any:
    if _missing(value):
        return None
    return value.item() if hasattr(value, "item") else value


def _number(value: Any) -> float | None:
    return None if _missing(value) or not math.isfinite(float(value)) else float(value)


def _text(value: Any) -> str | None:
    return None if _missing(value) else str(value)
