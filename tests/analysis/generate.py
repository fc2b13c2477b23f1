"""Makes synthetic results folders whose truth is known.

    write_sweep(folder, truth=Truth(), replicates=3, noise=0.05, seed=0)

writes what `cgratio sweep` would have stored had the machine followed the scaling model exactly and launches
differed by log-normal noise. `write_rows` does the same for rows made by hand.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cgratio.results import schema, store
from cgratio.results.words import Part

MEASURED_S = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """The scaling model that a synthetic machine follows; units as in `cgratio.analysis.model`.

    Attributes:
        base_w, thread_w, sample_j: power is `base_w + thread_w c + sample_j X`; no energy without base_w.
        boundary: what the joules cover.
    """

    supply: float = 2500.0
    sigma: float = 0.05
    demand: float = 1900.0
    delta: float = 0.1
    latency_s: float = 1 / 700
    sharpness: float = 3.0
    base_w: float | None = None
    thread_w: float = 2.0
    sample_j: float = 0.002
    boundary: str = "cpu_package"

    def supplied(self, threads: float) -> float:
        """S(c), samples/s."""
        return self.supply * threads / (1.0 + self.sigma * max(threads - 1.0, 0.0))

    def demanded(self, amount: float) -> float:
        """D(a), samples/s."""
        return self.demand * amount / (1.0 + self.delta * (amount - 1.0))

    def rate(self, *, threads: float, amount: float, actors: float) -> float:
        """X(c, a, n), samples/s."""
        bounds = (self.supplied(min(threads, actors)), self.demanded(amount), actors / self.latency_s)
        return float(sum(bound**-self.sharpness for bound in bounds) ** (-1.0 / self.sharpness))

    def crossing(self) -> float:
        """c* with S(c*) = D(1), threads per accelerator."""
        if self.demand <= self.supply:
            return self.demand / self.supply
        return self.demand * (1.0 - self.sigma) / (self.supply - self.sigma * self.demand)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Axis values of one point."""

    part: Part = Part.WHOLE
    threads: int | None = 1
    units: int | None = 1
    share: float | None = 1.0
    actors: int | None = 16


def quickstart() -> list[Place]:
    """The points of a sweep that fits on a host with two CPUs."""
    return [
        *(Place(actors=actors) for actors in (1, 2, 4, 8, 16)),
        Place(share=0.5),
        Place(share=0.25),
        *(Place(part=Part.SUPPLY, threads=threads, units=None, share=None) for threads in (1, 2)),
        *(Place(part=Part.DEMAND, threads=None, units=units) for units in (1, 2)),
    ]


def grid(
    *, threads: Sequence[int] = (1, 2, 4, 8), units: Sequence[int] = (1,), actors: Sequence[int] = (4, 64)
) -> list[Place]:
    """Whole, supply and demand points over a grid."""
    return [
        *(Place(threads=c, units=a, actors=n) for c in threads for a in units for n in actors),
        *(Place(part=Part.SUPPLY, threads=c, units=None, share=None, actors=max(actors)) for c in threads),
        *(Place(part=Part.DEMAND, threads=None, units=a, actors=max(actors)) for a in units),
    ]


def make_rows(
    *,
    truth: Truth,
    places: Iterable[Place] | None = None,
    replicates: int = 3,
    noise: float = 0.05,
    seed: int = 0,
    device: str = "cpu",
    sm_count: int = 80,
    shares: bool = True,
    law: Callable[[Place], float] | None = None,
    **axes: Any,
) -> list[dict[str, Any]]:
    """Trial rows of a machine that follows `truth`.

    Args:
        truth: the machine.
        places: points (default: the quickstart's).
        replicates: launches of each.
        noise: standard deviation of the log rate between launches.
        seed: of the noise.
        device: `cpu`, where units are device CPUs, or `cuda`, where they are GPUs.
        sm_count: SMs of a whole GPU.
        shares: whether stage shares were recorded.
        law: another true rate in samples/s than the scaling model's.
        axes: other axis values, such as `environment`.
    """
    random = np.random.default_rng(seed)
    made: list[dict[str, Any]] = []
    for place in quickstart() if places is None else places:
        true_rate = law(place) if law else _true_rate(truth, place)
        for replicate in range(replicates):
            rate = true_rate * math.exp(noise * random.standard_normal())
            row = _row(place, rate=rate, replicate=replicate, device=device, **axes)
            row["order"] = len(made)
            if device == "cuda" and place.part is not Part.SUPPLY:
                row["observed_sm_count"] = round(sm_count * (place.share or 1.0))
            if shares:
                row.update(_shares(truth, place, rate=rate, device=device))
            row.update(_energy(truth, place, rate=rate))
            made.append(row)
    return made


def write_sweep(folder: Path, *, truth: Truth, **options: Any) -> Path:
    """Writes a results folder; options as for `make_rows`."""
    return write_rows(folder, make_rows(truth=truth, **options))


def write_rows(folder: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    """Writes given trial rows, one file each, with a manifest."""
    for row in rows:
        store.write_rows(folder / "trials" / f"{row['trial_id']}.parquet", schema.TRIALS, [row])
    (folder / "trials").mkdir(parents=True, exist_ok=True)
    (folder / "windows").mkdir(parents=True, exist_ok=True)
    store.write_json(folder / store.MANIFEST, _manifest(folder))
    return folder


def results_of(rows: Sequence[Mapping[str, Any]], *, folder: Path = Path("synthetic")) -> store.Results:
    """The same as loading what `write_rows` wrote, without a disk."""
    return store.Results(
        folder=folder,
        trials=store._to_pandas(schema.table(schema.TRIALS, rows)),
        windows=store._to_pandas(schema.WINDOWS.empty_table()),
        manifest=_manifest(folder),
    )


def one_row(**values: Any) -> dict[str, Any]:
    """One valid whole trial with the given columns over plain defaults."""
    rate = float(values.get("samples_per_s") or 1000.0)
    made = {**_row(Place(), rate=rate, replicate=0, device="cpu"), **values}
    return made | _identity(made)


def _manifest(folder: Path) -> dict[str, Any]:
    return {
        "schema_version": schema.SCHEMA_VERSION,
        "sweep": folder.name,
        "host": {"hostname": "synthetic", "cores": 8, "cpus_online": "0-15"},
    }


def _true_rate(truth: Truth, place: Place) -> float:
    amount = (place.units or 1) * (place.share or 1.0)
    if place.part is Part.SUPPLY:
        return truth.supplied(min(place.threads or 1, place.actors or math.inf))
    if place.part is Part.DEMAND:
        return truth.demanded(amount)
    return truth.rate(threads=place.threads or 1, amount=amount, actors=place.actors or place.threads or 1)


def _row(place: Place, *, rate: float, replicate: int, device: str, **axes: Any) -> dict[str, Any]:
    cuda = device == "cuda"
    made: dict[str, Any] = {
        "schema_version": schema.SCHEMA_VERSION,
        "sweep": "synthetic",
        "replicate": replicate,
        "block": replicate,
        "order": 0,
        "sentinel": False,
        "host_id": "0123456789ab",
        "hostname": "synthetic",
        "part": str(place.part),
        "environment": "Pong-v5",
        "network": "nature_cnn",
        "device": None if place.part is Part.SUPPLY else device,
        "actors": place.actors,
        "actor_cpus": place.threads,
        "device_cpus": None if cuda else place.units,
        "gpus": place.units if cuda else None,
        "sm_share": place.share,
        "pinning": "compact",
        "unroll_length": 20,
        "learner_batch": 8,
        "precision": "float32",
        **axes,
        "status": "complete",
        "verdict": ["valid"],
        "stop_reason": "cap",
        "samples": round(rate * MEASURED_S),
        "frames": 4 * round(rate * MEASURED_S),
        "frame_skip": 4,
        "measured_s": MEASURED_S,
        "samples_per_s": rate,
        "samples_per_s_half_width": 0.01 * rate,
        "windows": 20,
        "updates": round(rate * MEASURED_S / 160),
        "updates_per_s": rate / 160,
        "policy_lag_mean": 1.5,
        "policy_lag_max": 3.0,
        "samples_per_joule_reason": "no energy sensor is readable",
    }
    return made | _identity(made)


def _identity(made: Mapping[str, Any]) -> dict[str, str]:
    point = json.dumps({name: made.get(name) for name in schema.AXES}, sort_keys=True)
    trial = f"{point}/{made.get('replicate')}"
    return {
        "point_id": hashlib.sha256(point.encode()).hexdigest()[:12],
        "trial_id": hashlib.sha256(trial.encode()).hexdigest()[:12],
    }


def _shares(truth: Truth, place: Place, *, rate: float, device: str) -> dict[str, float]:
    found = {}
    amount = (place.units or 1) * (place.share or 1.0)
    if place.part is not Part.DEMAND:
        threads = min(place.threads or 1, place.actors or math.inf)
        found["share_env"] = min(rate / truth.supplied(threads), 1.0)
        found["env_s_per_sample"] = found["share_env"] * (place.threads or 1) / rate
    if place.part is not Part.SUPPLY:
        busy = min(rate / truth.demanded(amount), 1.0)
        found["share_learner"] = 0.6 * busy
        found["share_wait_data"] = 1.0 - 0.6 * busy
        found["device_s_per_sample"] = busy * amount / rate
        if device == "cpu":
            found["device_busy_share"] = busy
    return found


def _energy(truth: Truth, place: Place, *, rate: float) -> dict[str, Any]:
    if truth.base_w is None:
        return {}
    power = truth.base_w + truth.thread_w * (place.threads or 0) + truth.sample_j * rate
    joules = power * MEASURED_S
    return {
        f"energy_{truth.boundary}_j": joules,
        f"energy_{truth.boundary}_pm_j": 0.01 * joules,
        f"energy_{truth.boundary}_method": "counter",
        "power_w": power,
        "power_pm_w": 0.01 * power,
        "samples_per_joule": rate / power,
        "samples_per_joule_pm": 0.01 * rate / power,
        "samples_per_joule_boundary": truth.boundary,
        "samples_per_joule_reason": None,
    }
