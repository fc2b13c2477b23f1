"""The row of a trial: from what was seen to the columns of `results.schema.TRIALS`. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cgratio.machine.cpulist import format_cpu_list
from cgratio.results.schema import SCHEMA_VERSION
from cgratio.results.words import Part
from cgratio.telemetry.energy import Energy, EnergyBoundary, PowerModel, measure_energy
from cgratio.trial.covariates import covariate_columns
from cgratio.trial.observed import Observed
from cgratio.trial.request import TrialRequest
from cgratio.trial.verdict import verdict
from cgratio.trial.windows import Window, between, first_steady, steady_half_width


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
    row["verdict"] = verdict(request, seen, steady_windows=len(seen.windows) - steady)
    if len(seen.windows) > steady:
        whole = between(seen.marks[steady], seen.marks[-1])
        row |= _rate_columns(request, seen, whole=whole, steady=seen.windows[steady:])
        row |= _share_columns(request, seen, whole=whole)
        row |= _energy_columns(request, seen, whole=whole)
        row |= covariate_columns(seen, whole=whole)
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
        # The share is a limit that the trainer keeps to; a trial that used more is not valid (see `verdict`).
        columns["observed_sm_share"] = share
    elif device == "emulated" and whole.device_busy_s is not None:
        share = request.axes["sm_share"]
        columns["device_busy_share"] = whole.device_busy_s / wall
        columns["device_s_per_sample"] = _ratio(whole.device_busy_s * share, whole.samples)
        columns["observed_sm_share"] = share
    else:
        utilisation = seen.within(whole.start_s, whole.end_s).mean("gpu_utilisation")
        columns["device_busy_share"] = utilisation
        columns["observed_sm_share"] = 1.0 if seen.ready.sm_count else None  # CUDA grants whole cards
        if utilisation is None:
            columns["device_busy_share_reason"] = seen.why_missing("gpu_utilisation") or "no reading"
    return columns


_PREFERRED = {
    "cpu": (EnergyBoundary.NODE, EnergyBoundary.CPU_PACKAGE, EnergyBoundary.MODELLED),
    # A model of the CPU packages leaves the GPU out.
    "cuda": (EnergyBoundary.NODE, EnergyBoundary.GPU_BOARD),
    # No sensor of this host sees a device that is not here.
    "emulated": (EnergyBoundary.MODELLED, EnergyBoundary.MODELLED),
}
"""Samples per joule are of the widest boundary that was measured, or modelled as the last resort."""


def _emulated_energy(request: TrialRequest, whole: Window) -> Energy:
    """What the emulated device would have drawn: idle, and more while its share works."""
    boundary = EnergyBoundary.MODELLED
    profile = request.trainer.get("profile") or {}
    idle_w, busy_w = profile.get("idle_w"), profile.get("busy_w")
    if idle_w is None or busy_w is None:
        return Energy(boundary=boundary, joules=None, reason="the emulated device's profile has no watts")
    if whole.device_busy_s is None:
        return Energy(boundary=boundary, joules=None, reason="no accelerator runs in a supply trial")
    worked_s = whole.device_busy_s * (request.axes["sm_share"] or 1.0)
    return Energy(
        boundary=boundary,
        joules=idle_w * whole.duration_s + (busy_w - idle_w) * worked_s,
        plus_minus_j=0.0,  # it is what the profile says, to the digit
        method="modelled",
        source=f"emulated device: {idle_w:g} W idle, {busy_w:g} W busy",
    )


def _energy_columns(request: TrialRequest, seen: Observed, *, whole: Window) -> dict[str, Any]:
    model = PowerModel(**request.power_model) if request.power_model else None  # type: ignore[arg-type]
    energies = measure_energy(
        [reading[:4] for reading in seen.readings],
        seen.missing,
        t0=whole.start_s,
        t1=whole.end_s,
        power_model=model,
    )
    by_boundary: dict[EnergyBoundary, Energy] = {energy.boundary: energy for energy in energies}
    if request.axes["device"] == "emulated":  # a model of the host's packages would leave the device out
        by_boundary[EnergyBoundary.MODELLED] = _emulated_energy(request, whole)
    columns: dict[str, Any] = {}
    for energy in by_boundary.values():
        columns |= {
            f"energy_{energy.boundary}_j": energy.joules,
            f"energy_{energy.boundary}_pm_j": energy.plus_minus_j,
            f"energy_{energy.boundary}_method": energy.method,
            f"energy_{energy.boundary}_source": energy.source,
            f"energy_{energy.boundary}_reason": energy.reason,
        }
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


def _ratio(part: float, of: float) -> float | None:
    return part / of if of else None
