"""From a specification to an ordered list of trials. Pure: specification and host in, plan out."""

from __future__ import annotations

import hashlib
import itertools
import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from cgratio.results.words import Part
from cgratio.sweep.document import SpecError
from cgratio.sweep.grid import AxisValues, make_points
from cgratio.sweep.host import SweepHost
from cgratio.sweep.spec import AUTO, Spec
from cgratio.trainer.config import TrainerConfig, TrainerError
from cgratio.trial.request import Limits, TrialRequest

MOST_TRIALS = 100_000
FEWEST_FOR_SENTINEL = 6  # points; in a smaller sweep one more trial in each block would cost too much
_SETUP_S = 6.0  # launch to first window; the runner corrects this by what it sees
_HASH_DIGITS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedTrial:
    """One trial of the plan; `order` is when it runs, `block` the complete block it belongs to."""

    trial_id: str
    point_id: str
    axes: AxisValues
    replicate: int
    block: int
    order: int
    seed: int
    sentinel: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """All trials of a sweep in the order in which they run.

    Attributes:
        points: axis values of each point, as they are written.
        sentinel: the point that is measured once more in each block; None if there is none.
        notes: what a person should know of the host.
    """

    spec: Spec
    host: SweepHost
    points: tuple[AxisValues, ...]
    trials: tuple[PlannedTrial, ...]
    sentinel: AxisValues | None = None
    notes: tuple[str, ...] = ()

    @property
    def varying(self) -> tuple[str, ...]:
        """Axes that differ between the points that have them."""
        return tuple(name for name in self.points[0] if len(self._values(name)) > 1)

    @property
    def fixed(self) -> AxisValues:
        """The axes that are the same in all points that have them, and their values."""
        return {name: values[0] for name in self.points[0] if len(values := self._values(name)) == 1}

    def _values(self, name: str) -> list[Any]:
        return list(dict.fromkeys(point[name] for point in self.points if point[name] is not None))

    @property
    def sentinels(self) -> int:
        """How many of the trials are sentinels."""
        return sum(trial.sentinel for trial in self.trials)

    @property
    def most_s(self) -> float:
        """What the trials take if none stops early, launches included; a slow host takes longer."""
        return len(self.trials) * (self.spec.trial.max_s + _SETUP_S)

    def requests(self, folder: Path) -> Iterator[tuple[PlannedTrial, TrialRequest]]:
        """Each trial with what its process is told."""
        for trial in self.trials:
            yield trial, _request(self, trial, folder)


def make_plan(spec: Spec, host: SweepHost) -> Plan:
    """Expands the grids, answers `auto`, leaves out what is excluded, and orders the trials.

    Order: randomised complete blocks (Fisher 1935): each block holds every point once, in an order drawn
    from the sweep's seed, so that drift of the host falls on all points alike. To see that drift, one
    point, the sentinel, is measured at even distances from the first trial of the sweep to the last.

    Raises:
        SpecError: the grid is empty or too large, or a point cannot run on this host.
    """
    points = make_points(spec, host)
    sentinel = _sentinel(spec, points)
    count = spec.replicates * (len(points) + (sentinel is not None))
    if count > MOST_TRIALS:
        raise SpecError(
            f"the sweep has {count:,} trials of {len(points):,} points; at most {MOST_TRIALS:,} are run, "
            "name fewer values or fewer replicates"
        )
    trials = tuple(_ordered(spec, points, sentinel))
    _check_trainer(spec, points)
    return Plan(spec=spec, host=host, points=points, trials=trials, sentinel=sentinel, notes=_notes(host))


def _check_trainer(spec: Spec, points: tuple[AxisValues, ...]) -> None:
    """Has the trainer look at each point's configuration."""
    for axes in points:
        try:
            TrainerConfig.read(_trainer(spec, axes, seed=spec.seed))
        except TrainerError as error:
            raise SpecError(str(error)) from error


def _sentinel(spec: Spec, points: tuple[AxisValues, ...]) -> AxisValues | None:
    """The middle one of the whole job's points, where the sweep is large enough to have one."""
    # With one block there are no two sentinels, and so no drift to see.
    if spec.sentinel != AUTO or spec.replicates < 2 or len(points) < FEWEST_FOR_SENTINEL:
        return None
    whole = [point for point in points if point["part"] == Part.WHOLE] or points
    return whole[len(whole) // 2]


def _ordered(
    spec: Spec, points: tuple[AxisValues, ...], sentinel: AxisValues | None
) -> Iterator[PlannedTrial]:
    # Seeds lie apart by more than any trial's environments, so no two replicates share an environment.
    stride = max(point["actors"] for point in points)
    shuffled = random.Random(spec.seed)  # noqa: S311 - an order, not a secret
    order = itertools.count()
    fixed = _fixed(spec)

    def trial(axes: AxisValues, *, replicate: int, block: int, is_sentinel: bool) -> PlannedTrial:
        return PlannedTrial(
            trial_id=_hash({"point": axes, "replicate": replicate, **fixed}),
            point_id=_hash({"point": axes, **fixed}),
            axes=axes,
            replicate=replicate,
            block=block,
            order=next(order),
            seed=(spec.seed + replicate * stride) % 2**31,
            sentinel=is_sentinel,
        )

    for block in range(spec.replicates):
        turns = [(points[index], block) for index in shuffled.sample(range(len(points)), len(points))]
        at = None
        if sentinel:
            at = round(len(points) * block / (spec.replicates - 1))
            turns.insert(at, (sentinel, spec.replicates + block))
        for turn, (axes, replicate) in enumerate(turns):
            yield trial(axes, replicate=replicate, block=block, is_sentinel=turn == at)


def _notes(host: SweepHost) -> tuple[str, ...]:
    if host.host.inventory.gpus and not host.cuda:
        return (f"this host has a GPU that is not used: {host.cuda_reason}", *_quota_note(host))
    return _quota_note(host)


def _quota_note(host: SweepHost) -> tuple[str, ...]:
    if host.facts.quota_cpus is not None and host.facts.quota_cpus < len(host.allowed):
        allowed = len(host.allowed)
        return (f"a CFS quota grants {host.facts.quota_cpus:g} CPUs of time over {allowed} allowed CPUs",)
    return ()


def _fixed(spec: Spec) -> dict[str, Any]:
    """What is the same in every trial of a sweep but is part of what a trial is."""
    return {
        "trainer": spec.trainer.model_dump(mode="json"),
        "trial": spec.trial.model_dump(mode="json"),
        "seed": spec.seed,
        "power_model": spec.power_model.model_dump(mode="json") if spec.power_model else None,
        "emulated": spec.emulated.model_dump(mode="json") if spec.emulated else None,
    }


def _hash(value: Mapping[str, Any]) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:_HASH_DIGITS]


def software_id(host: SweepHost) -> str:
    """Short hash of the software versions."""
    return _hash(host.software)


def _request(plan: Plan, trial: PlannedTrial, folder: Path) -> TrialRequest:
    axes, spec = trial.axes, plan.spec
    model = None
    if spec.power_model:
        model = {**spec.power_model.model_dump(), "packages": len(plan.host.topology.packages)}
    return TrialRequest(
        folder=folder,
        identity={
            "sweep": spec.name,
            "point_id": trial.point_id,
            "trial_id": trial.trial_id,
            "replicate": trial.replicate,
            "block": trial.block,
            "order": trial.order,
            "sentinel": trial.sentinel,
            "host_id": plan.host.facts.id,
            "hostname": plan.host.facts.hostname,
            "software_id": software_id(plan.host),
            "seed": trial.seed,
        },
        axes=axes,
        trainer=_trainer(spec, axes, seed=trial.seed),
        actor_cpus=axes["actor_cpus"] or 0,
        device_cpus=axes["device_cpus"] or 0,
        pinning=axes["pinning"],
        gpu_uuids=[gpu.uuid for gpu in plan.host.gpus[: axes["gpus"] or 0]],
        limits=_limits(spec, share=axes["sm_share"] or 1.0),
        power_model=model,
    )


def _trainer(spec: Spec, axes: AxisValues, *, seed: int) -> dict[str, Any]:
    """The fields of the point's `TrainerConfig`."""
    shape = (
        "part",
        "environment",
        "algorithm",
        "network",
        "lstm",
        "inference",
        "device",
        "actors",
        "actor_groups",
        "inference_batch",
        "unroll_length",
        "learner_batch",
        "replay_ratio",
        "precision",
    )
    return {
        **spec.trainer.model_dump(),
        # What the part does not have stays at the trainer's default, which it does not look at.
        **{name: axes[name] for name in shape if axes[name] is not None},
        "profile": spec.emulated.model_dump() if axes["device"] == "emulated" and spec.emulated else None,
        "sm_share": axes["sm_share"] or 1.0,
        "actor_threads": axes["actor_cpus"] or 1,
        "device_threads": axes["device_cpus"] or 1,
        "seed": seed,
    }


def _limits(spec: Spec, *, share: float = 1.0) -> Limits:
    """The limits of a trial; a share of the accelerator takes as much longer to launch and for each step."""
    limits = Limits(**spec.trial.model_dump())
    return replace(limits, setup_max_s=limits.setup_max_s / share, silence_max_s=limits.silence_max_s / share)


def plan_summary(plan: Plan) -> dict[str, Any]:
    """What the manifest stores of a plan."""
    return {
        "points": len(plan.points),
        "trials": len(plan.trials),
        "blocks": plan.spec.replicates,
        "sentinels": plan.sentinels,
        "seed": plan.spec.seed,
        "most_s": plan.most_s,
        "limits": asdict(_limits(plan.spec)),
    }
