"""From a specification to an ordered list of trials. Pure: specification and host in, plan out."""

from __future__ import annotations

import ast
import hashlib
import itertools
import json
import math
import random
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import simpleeval

from cgratio.machine.placement import Pinning, PlacementError, PlacementRequest, place
from cgratio.results.words import Part
from cgratio.sweep.document import SpecError
from cgratio.sweep.host import SweepHost
from cgratio.sweep.spec import AUTO, Axes, Spec
from cgratio.trainer.config import default_batch
from cgratio.trial.request import Limits, TrialRequest

MOST_TRIALS = 100_000
_SETUP_S = 6.0  # launch to first window; the runner corrects this by what it sees
_HASH_DIGITS = 16

AxisValues = dict[str, Any]


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
    """All trials of a sweep in the order in which they run."""

    spec: Spec
    host: SweepHost
    points: tuple[AxisValues, ...]
    trials: tuple[PlannedTrial, ...]
    notes: tuple[str, ...] = ()

    @property
    def varying(self) -> tuple[str, ...]:
        """Axes that differ between points."""
        axes = self.points[0]
        return tuple(name for name in axes if len({repr(point[name]) for point in self.points}) > 1)

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
    from the sweep's seed, so that drift of the host falls on all points alike.

    Raises:
        SpecError: the grid is empty or too large, or a point cannot run on this host.
    """
    _check_size(spec)
    points = _points(spec, host)
    if not points:
        first = spec.exclude[0]
        message = "no point is left: the grid is empty after `exclude`; loosen an expression"
        raise SpecError(message, axis="exclude", value=first)
    for point in points:
        _check_point(point, host)
    return Plan(
        spec=spec, host=host, points=tuple(points), trials=tuple(_ordered(spec, points)), notes=_notes(host)
    )


def _ordered(spec: Spec, points: list[AxisValues]) -> Iterator[PlannedTrial]:
    # Seeds lie apart by more than any trial's environments, so no two replicates share an environment.
    stride = max(point["actors"] for point in points)
    shuffled = random.Random(spec.seed)  # noqa: S311 - an order, not a secret
    order, sentinels = itertools.count(), itertools.count(spec.replicates)

    def trial(axes: AxisValues, *, replicate: int, block: int, sentinel: bool = False) -> PlannedTrial:
        return PlannedTrial(
            trial_id=_hash({"point": axes, "replicate": replicate, **_fixed(spec)}),
            point_id=_hash({"point": axes, **_fixed(spec)}),
            axes=axes,
            replicate=replicate,
            block=block,
            order=next(order),
            seed=(spec.seed + replicate * stride) % 2**31,
            sentinel=sentinel,
        )

    ordinary = itertools.count(1)
    for block in range(spec.replicates):
        for index in shuffled.sample(range(len(points)), len(points)):
            yield trial(points[index], replicate=block, block=block)
            if spec.sentinel_every and next(ordinary) % spec.sentinel_every == 0:
                yield trial(points[0], replicate=next(sentinels), block=block, sentinel=True)


def _notes(host: SweepHost) -> tuple[str, ...]:
    if host.host.inventory.gpus and not host.cuda:
        return (f"this host has a GPU that is not used: {host.cuda_reason}", *_quota_note(host))
    return _quota_note(host)


def _quota_note(host: SweepHost) -> tuple[str, ...]:
    if host.facts.quota_cpus is not None and host.facts.quota_cpus < len(host.allowed):
        allowed = len(host.allowed)
        return (f"a CFS quota grants {host.facts.quota_cpus:g} CPUs of time over {allowed} allowed CPUs",)
    return ()


def _check_size(spec: Spec) -> None:
    count = spec.replicates * sum(
        math.prod(len(values) for values in grid.model_dump().values()) for grid in spec.axes
    )
    if count > MOST_TRIALS:
        raise SpecError(f"the grid has {count:,} trials; at most {MOST_TRIALS:,} are run, name fewer values")


def _points(spec: Spec, host: SweepHost) -> list[AxisValues]:
    """The points of all grids, each once, in the order in which they are written."""
    found: dict[str, AxisValues] = {}
    for grid in spec.axes:
        for point in _expand(grid, host):
            if not any(_holds(expression, point) for expression in spec.exclude):
                found.setdefault(json.dumps(point, sort_keys=True), point)
    return list(found.values())


def _expand(grid: Axes, host: SweepHost) -> Iterator[AxisValues]:
    values = grid.model_dump(mode="json")
    for combination in itertools.product(*values.values()):
        point = dict(zip(values, combination, strict=True))
        if point["device"] == AUTO:
            point["device"] = "cuda" if host.cuda else "cpu"
        if point["gpus"] == AUTO:
            point["gpus"] = 1 if point["device"] == "cuda" else 0
        for actors in _actors(point, host):
            batch = default_batch(actors) if point["inference_batch"] == AUTO else point["inference_batch"]
            sized = point | {"actors": actors, "inference_batch": batch}
            for device_cpus in _device_cpus(sized, host):
                for actor_cpus in _actor_cpus(sized, host, device_cpus=device_cpus):
                    yield _without_meaningless(sized | {"device_cpus": device_cpus, "actor_cpus": actor_cpus})


def _actors(point: AxisValues, host: SweepHost) -> list[int]:
    """Five counts from one to twice the CPUs, 16 at least; parts and shares of the job take only the last."""
    if point["actors"] != AUTO:
        return [point["actors"]]
    doublings = max(4, min(10, math.ceil(math.log2(2 * len(host.allowed)))))
    if point["part"] != Part.WHOLE or point["sm_share"] < 1:
        return [2**doublings]
    return sorted({2 ** round(step * doublings / 4) for step in range(5)})


def _device_cpus(point: AxisValues, host: SweepHost) -> list[int]:
    if point["device_cpus"] != AUTO:
        return [point["device_cpus"]]
    if point["device"] == "cuda":
        # Two threads drive a GPU: the actor loop and the learner.
        return [min(2, max(1, len(host.allowed) - 1))]
    if point["part"] == Part.DEMAND:
        return [count for count in (1, 2) if count <= len(host.allowed)]
    return [1]


def _actor_cpus(point: AxisValues, host: SweepHost, *, device_cpus: int) -> list[int]:
    if point["actor_cpus"] != AUTO:
        return [point["actor_cpus"]]
    left = len(host.allowed) - (0 if point["part"] == Part.SUPPLY else device_cpus)
    most = max(1, min(left, point["actors"]))  # a thread without an actor would have nothing to step
    return sorted({most, max(1, most // 2)}) if point["part"] == Part.SUPPLY else [most]


def _without_meaningless(point: AxisValues) -> AxisValues:
    """Sets to null the axes that a part of the pipeline does not have."""
    absent: tuple[str, ...] = ()
    if point["part"] == Part.SUPPLY:
        absent = ("device_cpus", "gpus", "sm_share")
    elif point["part"] == Part.DEMAND:
        absent = ("actor_cpus",)
    return {name: None if name in absent else value for name, value in point.items()}


class _NotApplicableError(Exception):
    """An expression names an axis that a point does not have."""


_NO_EXPRESSION = (
    simpleeval.InvalidExpression,
    Warning,
    SyntaxError,
    TypeError,
    ValueError,
    ArithmeticError,
    LookupError,
    RecursionError,
)


def _holds(expression: str, point: AxisValues) -> bool:
    def value(node: Any) -> Any:
        if node.id not in point:
            raise SpecError(
                f"exclude: {expression!r} names {node.id}; axes are {', '.join(point)}",
                axis="exclude",
                value=expression,
            )
        if point[node.id] is None:
            raise _NotApplicableError
        return point[node.id]

    evaluator = simpleeval.SimpleEval(names=value, functions={})
    for kind in (ast.Call, ast.Attribute):  # an expression compares axes; it runs nothing
        evaluator.nodes.pop(kind, None)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # simpleeval only warns of an assignment or a second expression
            return bool(evaluator.eval(expression))
    except _NotApplicableError:
        return False
    except SpecError:
        raise
    except _NO_EXPRESSION as error:
        message = f"exclude: {expression!r} is not an expression over axes: {error}"
        raise SpecError(message, axis="exclude", value=expression) from error


def _check_point(point: AxisValues, host: SweepHost) -> None:
    share = point["sm_share"] or 1.0
    if point["device"] == "cuda" and not host.cuda:
        raise SpecError(
            f"device is cuda, but {host.cuda_reason}; use cpu or auto", axis="device", value="cuda"
        )
    if point["device"] == "cuda" and point["gpus"] == 0:
        raise SpecError("device is cuda and gpus is 0; use gpus 1 or device cpu", axis="gpus", value=0)
    if point["device"] == "cpu" and point["gpus"]:
        raise SpecError("device is cpu and gpus is 1; use gpus 0 or device cuda", axis="gpus", value=1)
    if point["device"] == "cuda" and share < 1:
        raise SpecError(
            f"sm_share is {share:g} on a GPU, a part of which cannot be granted yet; use 1, or leave it out "
            "with exclude: 'device == \"cuda\" and sm_share < 1'",
            axis="sm_share",
            value=share,
        )
    batch, actors = point["inference_batch"], point["actors"]
    if batch > actors:
        raise SpecError(
            f"inference_batch is {batch} with {actors} actors; it must not exceed the actors",
            axis="inference_batch",
            value=batch,
        )
    actor_cpus, device_cpus = point["actor_cpus"] or 0, point["device_cpus"] or 0
    pinning = Pinning(point["pinning"])
    try:
        request = PlacementRequest(actor_cpus=actor_cpus, device_cpus=device_cpus, pinning=pinning)
        place(host.topology, allowed=host.allowed, request=request)
    except PlacementError as error:
        larger = "actor_cpus" if actor_cpus >= device_cpus else "device_cpus"
        shown = f"part={point['part']}, actors={actors}"
        raise SpecError(f"{shown}: {error}", axis=larger, value=point[larger]) from error


def _fixed(spec: Spec) -> dict[str, Any]:
    """What is the same in every trial of a sweep but is part of what a trial is."""
    return {
        "trainer": spec.trainer.model_dump(mode="json"),
        "trial": spec.trial.model_dump(mode="json"),
        "seed": spec.seed,
        "power_model": spec.power_model.model_dump(mode="json") if spec.power_model else None,
    }


def _hash(value: Mapping[str, Any]) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:_HASH_DIGITS]


def software_id(host: SweepHost) -> str:
    """Short hash of the software versions."""
    return _hash(host.software)


def _request(plan: Plan, trial: PlannedTrial, folder: Path) -> TrialRequest:
    axes, spec = trial.axes, plan.spec
    actor_cpus, device_cpus = axes["actor_cpus"] or 0, axes["device_cpus"] or 0
    shape = (
        "part",
        "environment",
        "network",
        "device",
        "actors",
        "inference_batch",
        "unroll_length",
        "learner_batch",
        "precision",
    )
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
        trainer={
            **spec.trainer.model_dump(),
            **{name: axes[name] for name in shape},
            "sm_share": axes["sm_share"] or 1.0,
            "actor_threads": max(1, actor_cpus),
            "device_threads": max(1, device_cpus),
            "seed": trial.seed,
        },
        actor_cpus=actor_cpus,
        device_cpus=device_cpus,
        pinning=axes["pinning"],
        gpu_uuids=[gpu.uuid for gpu in plan.host.gpus[: axes["gpus"] or 0]],
        limits=Limits(**spec.trial.model_dump()),
        power_model=model,
    )


def plan_summary(plan: Plan) -> dict[str, Any]:
    """What the manifest stores of a plan."""
    return {
        "points": len(plan.points),
        "trials": len(plan.trials),
        "blocks": plan.spec.replicates,
        "seed": plan.spec.seed,
        "most_s": plan.most_s,
        "limits": asdict(Limits(**plan.spec.trial.model_dump())),
    }
