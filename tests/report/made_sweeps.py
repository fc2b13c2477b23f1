"""Puts together what a report is made from: points, curves, an answer, rows and a manifest, all made up."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from cgratio.analysis.facts import Analysis, Bottleneck, Curve, Optimum, Origin, Point, Quantity
from cgratio.results import schema, store

NO_JOULES = "no power sensor: RAPL is not readable and there is no GPU"


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """What a report is made from."""

    results: store.Results
    analysis: Analysis

    def named(self, name: str) -> Sweep:
        """The same under another name."""
        return replace(self, analysis=replace(self.analysis, sweep=name))


def quantity(value: float, *, unit: str, spread: float = 0.03, origin: Origin = Origin.MEASURED) -> Quantity:
    return Quantity(
        value=value, low=value * (1 - spread), high=value * (1 + spread), unit=unit, origin=origin
    )


def point(
    *, rate: float | None, number: int, boundary: str | None = None, watts: float = 0.0, **axes: Any
) -> Point:
    base = {
        "environment": "Pong-v5",
        "network": "conv",
        "device": "cuda" if axes.get("gpus") or boundary else "cpu",
        "pinning": "compact",
        "unroll_length": 20,
        "learner_batch": 8,
        "precision": "float32",
    }
    part = axes["part"]
    no_rate = Quantity.unknown(unit="samples/s", reason="no valid trial")
    no_joules = Quantity.unknown(unit="samples/J", reason=NO_JOULES)
    env = {"whole": 0.83, "supply": 0.98, "demand": 0.0}[part]
    shares = {"env": env, "device_busy": 0.41 if part == "supply" else 0.94}
    if part != "demand":
        shares |= {"wait_batch": 0.52, "inference": 0.31, "transfer": 0.08, "backpressure": 0.05}
    if part != "supply":
        shares |= {"learner": 0.71, "wait_data": 0.22}
    origin = Origin.MODELLED if boundary == "modelled" else Origin.MEASURED
    limits = {
        "whole": Bottleneck.ACCELERATOR,
        "supply": Bottleneck.ENVIRONMENTS,
        "demand": Bottleneck.ACCELERATOR,
    }
    return Point(
        point_id=f"p{number:04d}",
        axes=dict.fromkeys(schema.AXES) | base | axes,
        trials=2,
        valid=0 if rate is None else 2,
        rate=no_rate if rate is None else quantity(rate, unit="samples/s"),
        power=quantity(watts, unit="W", origin=origin) if boundary else replace(no_joules, unit="W"),
        samples_per_joule=quantity((rate or 1) / watts, unit="samples/J", origin=origin)
        if boundary
        else no_joules,
        boundary=boundary,
        updates_per_s=quantity((rate or 1) / 160, unit="updates/s") if rate else no_rate,
        policy_lag=Quantity(value=1.7, unit="updates", reason="no interval is computed"),
        shares=shares if rate else {},
        bottleneck=limits[part] if rate else Bottleneck.UNKNOWN,
        evidence="accelerator busy 94 %, actor CPUs busy 83 %",
        verdicts={} if rate else {"too_short": 1, "killed:SIGKILL": 1},
    )


def curve(
    name: str,
    *,
    x_name: str,
    x_unit: str,
    low: float,
    high: float,
    function: Callable[[Any], Any],
    **fixed: Any,
) -> Curve:
    x = np.geomspace(low / 2, high * 1.5, 41)
    y = np.asarray(function(x), dtype=float)
    return Curve(
        name=name,
        x_name=x_name,
        x_unit=x_unit,
        y_unit="samples/s",
        x=tuple(map(float, x)),
        y=tuple(map(float, y)),
        low=tuple(map(float, y * 0.95)),
        high=tuple(map(float, y * 1.05)),
        measured_low=low,
        measured_high=high,
        fixed=fixed,
        parameters={},
    )


def rows(points: Iterable[Point], *, name: str, failed: bool = False) -> list[dict[str, Any]]:
    made = []
    start = dt.datetime(2025, 3, 4, 10, tzinfo=dt.UTC)
    for order, (one, replicate) in enumerate((p, r) for r in (0, 1) for p in points):
        bad = failed or one.rate.value is None
        made.append(
            {
                "schema_version": 1,
                "sweep": name,
                "point_id": one.point_id,
                "trial_id": f"{one.point_id}t{replicate}",
                "replicate": replicate,
                "block": replicate,
                "order": order,
                "sentinel": order == 0,
                "hostname": "workbench",
                "started_at": start + dt.timedelta(seconds=20 * order),
                **one.axes,
                "status": "failed" if bad else "complete",
                "verdict": ["killed:SIGKILL"] if bad else ["valid"],
                "status_reason": "the trainer ended before its first window; see logs" if bad else None,
                "exit_signal": "SIGKILL" if bad else None,
                "samples_per_s": None if bad else one.rate.value,
                "samples_per_s_half_width": None if bad else (one.rate.value or 0.0) * 0.01,
                "observed_sm_count": int(132 * one.axes["sm_share"]) if one.axes["gpus"] else None,
            }
        )
    return made


def manifest(*, gpu: bool) -> dict[str, Any]:
    return {
        "schema_version": 1,
        "created_at": "2025-03-04T10:00:00+00:00",
        "host": {
            "hostname": "workbench",
            "kernel": "Linux 6.8.0",
            "cpu_model": "AMD EPYC 7B13",
            "logical_cpus": 2,
            "physical_cores": 1,
            "affinity": "0-1",
            "memory_bytes": 8_330_000_000,
            "gpus": [{"name": "[gpu0]", "sms": 132}] if gpu else [],
        },
        "host_id": "4be1c0ffee",
        "software": {"python": "3.11.7", "torch": "2.9.0", "envpool": "1.2.5"},
        "sensors": {"proc_stat": "ok", **({"nvml": {"devices": 1}} if gpu else {})},
        "missing_sensors": {} if gpu else {"rapl": "no powercap folder", "nvml": "no NVIDIA driver"},
        "spec": {"replicates": 2, "seed": 7},
        "plan": {"points": 11, "trials": 22, "blocks": 2, "seed": 7},
    }


def build(
    points: list[Point], *, gpu: bool, boundary: str | None, failed: bool = False, **more: Any
) -> Sweep:
    name = "pong-gpu" if gpu else "quickstart"
    unit = "GPU" if gpu else "device CPU"
    at = 11.4 if gpu else 1.37
    unknown = Quantity.unknown(unit="threads", reason="not identifiable: no valid trial has both sides")
    without_sms = Quantity.unknown(
        unit="threads/SM", reason="device CPUs stand in for the accelerator: no SMs"
    )
    without_joules = Quantity.unknown(unit="threads", reason=NO_JOULES)
    best = quantity(at, unit=f"threads per {unit}", spread=0.12, origin=Origin.FITTED)
    rule = f"threads: hardware threads of environments; accelerator: one {unit}. SMT siblings count as two."

    def optimum(goal: str, value: Quantity) -> Optimum:
        return Optimum(
            goal=goal,
            threads_per_accelerator=value,
            threads_per_sm=quantity(at / 132, unit="threads/SM", spread=0.12)
            if gpu and not failed
            else without_sms,
            cores_per_accelerator=unknown if failed else quantity(at / 2, unit="cores", spread=0.12),
            near_optimal=() if failed else tuple(range(round(at + 0.5), round(at + 0.5) + 3)),
            tolerance=0.05,
            counting_rule=rule,
        )

    answer = (
        "No trial gave a valid measurement, so there is no answer."
        if failed
        else f"{name} needs {at} CPU threads per {unit} (95 % interval {at * 0.88:.3g} to {at * 1.12:.3g}) "
        "for the most samples/s: below that the environments limit the rate, above it the accelerator does."
    )
    analysis = Analysis(
        sweep=name,
        host="workbench",
        answer=answer,
        points=tuple(points),
        optima=(
            optimum("samples_per_s", unknown if failed else best),
            optimum("samples_per_joule", without_joules if boundary is None else best),
        ),
        below=Bottleneck.UNKNOWN if failed else Bottleneck.ENVIRONMENTS,
        above=Bottleneck.UNKNOWN if failed else Bottleneck.ACCELERATOR,
        trials=2 * len(points),
        valid=sum(p.valid for p in points),
        labels=() if gpu else ("device CPUs stand in for the accelerator",),
        notes=("two replicates: intervals are wide",),
        flaws=("trials/x.parquet: not a Parquet file",),
        **{"curves": (), **more},
    )
    table = schema.table(schema.TRIALS, rows(points, name=name, failed=failed))
    frame = store._to_pandas(table)
    empty = store._to_pandas(schema.WINDOWS.empty_table())
    results = store.Results(
        folder=Path("results") / name, trials=frame, windows=empty, manifest=manifest(gpu=gpu)
    )
    return Sweep(results=results, analysis=analysis)
