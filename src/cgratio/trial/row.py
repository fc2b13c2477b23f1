"""The row of a trial: from what was seen to the columns of `results.schema.TRIALS`. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from statistics import fmean
from typing import Any

from cgratio.machine.cpulist import format_cpu_list
from cgratio.machine.placement import Assignment
from cgratio.results.schema import SCHEMA_VERSION
from cgratio.results.words import Part, Status
from cgratio.telemetry.energy import Energy, EnergyBoundary, PowerModel, measure_energy
from cgratio.telemetry.nvml import throttle_names
from cgratio.trial.request import TrialRequest
from cgratio.trial.windows import Window, between, first_steady, steady_half_width
from cgratio.workload.protocol import Count, Final, Ready

VALID = "valid"


@dataclass(slots=True, kw_only=True)
class Observed:
    """Everything that was seen of one trial, filled in as it happens.

    Attributes:
        started_at: UTC. launch_s: the same moment on the monotonic clock.
        assignment: the CPUs that were asked for by name.
        ready, final: of the workload.
        windows, marks: see `WindowCutter`.
        readings: (time_s, sensor, device, value, unit) of the sampler. missing: why a sensor gave none.
        sampler_cpu_s: the sampler's own cost.
        status, reason: how it ended, and why if it did not complete. stop: why measuring stopped.
    """

    started_at: datetime
    launch_s: float
    assignment: Assignment | None = None
    ready: Ready | None = None
    final: Final | None = None
    windows: list[Window] = field(default_factory=list)
    marks: list[Count] = field(default_factory=list)
    readings: list[tuple[float, str, str, float, str]] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)
    sampler_cpu_s: float | None = None
    status: Status = Status.COMPLETE
    reason: str | None = None
    stop: str | None = None
    exit_code: int | None = None
    exit_signal: str | None = None


def trial_row(request: TrialRequest, seen: Observed) -> dict[str, Any]:
    """One row of the trials table."""
    row: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        **request.identity,
        "started_at": seen.started_at,
        **request.axes,
        "status": seen.status,
        "status_reason": seen.reason,
        "stop_reason": seen.stop,
        "exit_code": seen.exit_code,
        "exit_signal": seen.exit_signal,
        "sampler_cpu_s": seen.sampler_cpu_s,
        **_placement_columns(request, seen),
    }
    steady = first_steady(seen.windows, limits=request.limits) if seen.windows else 0
    row["verdict"] = _verdict(request, seen, steady_windows=len(seen.windows) - steady)
    if len(seen.windows) > steady:
        whole = between(seen.marks[steady], seen.marks[-1])
        row |= _rate_columns(request, seen, whole=whole, steady=seen.windows[steady:])
        row |= _share_columns(request, seen, whole=whole)
        row |= _energy_columns(request, seen, whole=whole)
        row |= _covariate_columns(seen, whole=whole)
    if row.get("device_busy_share") is None:
        row.setdefault("device_busy_share_reason", "nothing was measured")
    if row.get("samples_per_joule") is None:
        row.setdefault("samples_per_joule_reason", "nothing was measured")
    return row


def window_rows(request: TrialRequest, seen: Observed) -> list[dict[str, Any]]:
    """The rows of the windows table."""
    steady = first_steady(seen.windows, limits=request.limits) if seen.windows else 0
    frame_skip = seen.ready.frame_skip if seen.ready else None
    return [
        {
            "trial_id": request.trial_id,
            "window": index,
            "start_s": window.start_s - seen.launch_s,
            "end_s": window.end_s - seen.launch_s,
            "steady": index >= steady,
            "samples": window.samples,
            "frames": window.samples * frame_skip if frame_skip else None,
            "updates": window.updates,
            "batches": window.batches,
            "policy_lag_mean": _ratio(window.lag_sum, window.learned),
            "env_cpu_s": window.environment_cpu_s,
            "device_cpu_s": window.device_cpu_s,
            **{f"{stage}_s": seconds for stage, seconds in window.stages.items()},
        }
        for index, window in enumerate(seen.windows)
    ]


def telemetry_rows(request: TrialRequest, seen: Observed) -> list[dict[str, Any]]:
    """The rows of the telemetry table."""
    names = ("time_s", "sensor", "device", "value", "unit")
    return [
        {"trial_id": request.trial_id, **dict(zip(names, reading, strict=True))}
        | {"time_s": reading[0] - seen.launch_s}
        for reading in seen.readings
    ]


def _verdict(request: TrialRequest, seen: Observed, *, steady_windows: int) -> list[str]:
    if seen.status is not Status.COMPLETE:
        return [(seen.reason or "unknown").partition(": ")[0]]
    reasons = []
    if steady_windows < request.limits.min_windows:
        reasons.append("too_short")
    elif request.axes["part"] != Part.SUPPLY:
        updates = seen.marks[-1].updates - seen.marks[-1 - steady_windows].updates
        if updates < request.limits.min_updates:
            reasons.append("too_few_updates")
    if seen.final and seen.final.drifted:
        reasons.append("affinity_drift")
    if not _granted(request, seen):
        reasons.append("placement_not_granted")
    if _used_more_than_its_share(request, seen):
        reasons.append("share_not_granted")
    return reasons or [VALID]


_SHARE_SLACK = 1.1  # an allowance lets a burst through and is settled after each piece of work


def _used_more_than_its_share(request: TrialRequest, seen: Observed) -> bool:
    share = request.axes["sm_share"]
    if share is None or share == 1 or len(seen.marks) < 2:
        return False
    whole = between(seen.marks[0], seen.marks[-1])
    granted = request.device_cpus * share * whole.duration_s
    return whole.device_cpu_s is not None and whole.device_cpu_s > _SHARE_SLACK * granted


def _granted(request: TrialRequest, seen: Observed) -> bool:
    """Whether the GPUs and the masks that were read back are the ones that were asked for."""
    if seen.ready and request.axes["part"] != Part.SUPPLY:
        asked, read = ({_bare(uuid) for uuid in uuids} for uuids in (request.gpu_uuids, seen.ready.gpu_uuids))
        if asked != read:
            return False
    if not seen.ready or not seen.assignment or not seen.assignment.pinned:
        return True
    actors = seen.assignment.actor_cpus
    if request.actor_cpus and seen.ready.actor_cpu_list != format_cpu_list(actors):
        return False
    if request.device_cpus:
        return seen.ready.device_cpu_list == format_cpu_list(seen.assignment.device_cpus)
    return True


def _bare(uuid: str) -> str:
    """A UUID without `GPU-` or `MIG-`: CUDA does not say which of the two a device is."""
    return uuid.removeprefix("GPU-").removeprefix("MIG-").lower()


def _placement_columns(request: TrialRequest, seen: Observed) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    if seen.assignment:
        columns["observed_service_cpu_list"] = format_cpu_list(seen.assignment.service_cpus)
    if seen.ready:
        part = request.axes["part"]
        columns |= {
            "observed_actors": seen.ready.actors,
            "observed_actor_threads": seen.ready.actor_threads,
            "observed_actor_cpu_list": seen.ready.actor_cpu_list,
            "observed_device_cpu_list": None if part == Part.SUPPLY else seen.ready.device_cpu_list,
            "observed_gpu_uuids": seen.ready.gpu_uuids,
            "observed_sm_count": seen.ready.sm_count,
            "observed_sm_count_reason": None if seen.ready.sm_count else "no GPU in this trial",
            "observed_precision": seen.ready.precision,
        }
    return columns


def _rate_columns(
    request: TrialRequest, seen: Observed, *, whole: Window, steady: Sequence[Window]
) -> dict[str, Any]:
    assert seen.ready
    half_width = steady_half_width(steady)
    rate = whole.rate
    trains = request.axes["part"] != Part.SUPPLY
    last = seen.marks[-1]
    return {
        "samples": whole.samples,
        "frames": whole.samples * seen.ready.frame_skip,
        "frame_skip": seen.ready.frame_skip,
        "measured_s": whole.duration_s,
        "samples_per_s": rate,
        "samples_per_s_half_width": None if half_width is None else half_width * rate,
        "windows": len(steady),
        "warmup_s": whole.start_s - seen.marks[0].time_s,
        "setup_s": seen.marks[0].time_s - seen.launch_s,
        "updates": whole.updates if trains else None,
        "updates_per_s": whole.updates / whole.duration_s if trains else None,
        "policy_lag_mean": _ratio(whole.lag_sum, whole.learned) if trains else None,
        "policy_lag_max": last.lag_max if trains else None,
        "episodes": whole.episodes,
        "episode_return_mean": last.recent_return,
        "observed_inference_batch_mean": _ratio(whole.samples, whole.batches),
    }


def _share_columns(request: TrialRequest, seen: Observed, *, whole: Window) -> dict[str, Any]:
    assert seen.ready
    part, device = request.axes["part"], request.axes["device"]
    wall = whole.duration_s
    stages = {"inference", "transfer", "backpressure", "wait_batch", "learner", "wait_data"}
    columns: dict[str, Any] = {
        f"share_{stage}": whole.stages[stage] / wall for stage in stages & whole.stages.keys()
    }
    if part != Part.DEMAND and whole.environment_cpu_s is not None:
        columns["env_cpu_s"] = whole.environment_cpu_s
        columns["env_s_per_sample"] = _ratio(whole.environment_cpu_s, whole.samples)
        columns["share_env"] = whole.environment_cpu_s / (request.actor_cpus * wall)
    if part == Part.SUPPLY:
        # What is left of the loop is inference's place-holder: its time is not an inference's.
        columns.pop("share_inference", None)
        columns["device_busy_share_reason"] = "no accelerator runs in a supply trial"
    elif device == "cpu" and whole.device_cpu_s is not None:
        share = request.axes["sm_share"]
        columns["device_cpu_s"] = whole.device_cpu_s
        columns["device_s_per_sample"] = _ratio(whole.device_cpu_s, whole.samples)
        columns["device_busy_share"] = whole.device_cpu_s / (request.device_cpus * share * wall)
        # The share is a limit that the trainer keeps to; a trial that used more is not valid (see _verdict).
        columns["observed_sm_share"] = share
    else:
        utilisation = _mean(seen, "gpu_utilisation", whole)
        columns["device_busy_share"] = utilisation
        columns["observed_sm_share"] = 1.0 if seen.ready.sm_count else None  # CUDA grants whole cards
        if utilisation is None:
            columns["device_busy_share_reason"] = _missing(seen, "gpu_utilisation") or "no reading"
    return columns


_PREFERRED = {
    "cpu": (EnergyBoundary.NODE, EnergyBoundary.CPU_PACKAGE, EnergyBoundary.MODELLED),
    "cuda": (EnergyBoundary.NODE, EnergyBoundary.GPU_BOARD, EnergyBoundary.MODELLED),
}
"""Samples per joule are of the widest boundary that was measured, or modelled as the last resort."""


def _energy_columns(request: TrialRequest, seen: Observed, *, whole: Window) -> dict[str, Any]:
    model = PowerModel(**request.power_model) if request.power_model else None  # type: ignore[arg-type]
    energies = measure_energy(
        [reading[:4] for reading in seen.readings],
        seen.missing,
        t0=whole.start_s,
        t1=whole.end_s,
        power_model=model,
    )
    columns: dict[str, Any] = {}
    for energy in energies:
        columns |= {
            f"energy_{energy.boundary}_j": energy.joules,
            f"energy_{energy.boundary}_pm_j": energy.plus_minus_j,
            f"energy_{energy.boundary}_method": energy.method,
            f"energy_{energy.boundary}_source": energy.source,
            f"energy_{energy.boundary}_reason": energy.reason,
        }
    by_boundary: Mapping[EnergyBoundary, Energy] = {energy.boundary: energy for energy in energies}
    preferred = [by_boundary[boundary] for boundary in _PREFERRED[request.axes["device"]]]
    usable = next((energy for energy in preferred if energy.usable and energy.joules), None)
    if usable is None:
        closest = preferred[1]  # the one that this kind of host usually has
        reason = f"no joules of {closest.boundary}: {closest.reason}"
        if seen.sampler_cpu_s is None:  # its last words
            reason = "the sampler ended before the trial did"
        columns["samples_per_joule_reason"] = reason
        return columns
    assert usable.joules
    per_joule = whole.samples / usable.joules
    relative = (usable.plus_minus_j or 0.0) / usable.joules
    return columns | {
        "power_w": usable.joules / whole.duration_s,
        "power_pm_w": (usable.plus_minus_j or 0.0) / whole.duration_s,
        "samples_per_joule": per_joule,
        "samples_per_joule_pm": per_joule * relative,
        "samples_per_joule_boundary": usable.boundary,
    }


def _covariate_columns(seen: Observed, *, whole: Window) -> dict[str, Any]:
    frequency = _mean(seen, "cpu_frequency", whole)
    reason = None
    if frequency is None:
        frequency = _mean(seen, "cpu_frequency_cpuinfo", whole)
        why = _missing(seen, "cpu_frequency") or "no reading"
        reason = why if frequency is None else f"as /proc/cpuinfo states it, since cpufreq is missing: {why}"
    rss = [value for _, sensor, _, value, _ in seen.readings if sensor == "process_rss"]
    temperatures = _values(seen, "gpu_temperature", whole)
    throttles = {name for mask in _values(seen, "gpu_throttle", whole) for name in throttle_names(int(mask))}
    return {
        "cpu_frequency_mean_hz": frequency,
        "cpu_frequency_reason": reason,
        "cpu_utilisation_mean": _mean(seen, "cpu_busy", whole),
        "cpu_steal_mean": _mean(seen, "cpu_steal", whole),
        "gpu_sm_clock_mean_hz": _mean(seen, "gpu_sm_clock", whole),
        "gpu_temperature_max_c": max(temperatures, default=None),
        "gpu_utilisation_mean": _mean(seen, "gpu_utilisation", whole),
        "gpu_throttle_reasons": sorted(throttles) if temperatures else None,
        "gpu_reason": None if temperatures else _missing(seen, "gpu_temperature") or "no GPU in this trial",
        "peak_rss_bytes": int(max(rss)) if rss else None,
    }


def _values(seen: Observed, sensor: str, whole: Window) -> list[float]:
    return [
        value
        for time_s, name, _, value, _ in seen.readings
        if name == sensor and whole.start_s <= time_s <= whole.end_s
    ]


def _mean(seen: Observed, sensor: str, whole: Window) -> float | None:
    values = _values(seen, sensor, whole)
    return fmean(values) if values else None


def _missing(seen: Observed, sensor: str) -> str | None:
    """Why a sensor, or the first of its devices that failed, gave no reading."""
    keys = (key for key in seen.missing if key == sensor or key.startswith(f"{sensor}/"))
    return next((seen.missing[key] for key in keys), None)


def _ratio(part: float, of: float) -> float | None:
    return part / of if of else None
