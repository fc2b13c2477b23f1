"""From grids of axis values to the points that are measured. Pure: specification and host in, points out."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

from cgratio.machine.placement import Pinning, PlacementError, PlacementRequest, place
from cgratio.results.words import Part
from cgratio.sweep.document import SpecError
from cgratio.sweep.exclude import Exclusion
from cgratio.sweep.host import SweepHost
from cgratio.sweep.spec import AUTO, Axes, Spec
from cgratio.trainer.config import TrainerConfig, default_batch

AxisValues = dict[str, Any]

_OF_THE_DEVICE = ("device_cpus", "gpus", "sm_share")
_OF_THE_LEARNER = ("unroll_length", "learner_batch", "replay_ratio")
_OF_THE_NETWORK = ("algorithm", "network", "lstm", "precision")


def meaningless(point: AxisValues) -> tuple[str, ...]:
    """Axes that a point does not have, by its part and by other axes; they are null in it."""
    without: tuple[str, ...] = () if point["algorithm"] == "r2d2" else ("replay_ratio",)
    if point["device"] == "emulated":
        without += ("precision",)
    if point["inference"] == "local":
        without += ("actor_groups",)  # one for each actor CPU
    if point["part"] == Part.SUPPLY:
        # Nothing is learned; with central inference no network acts either, since actions are random.
        without += _OF_THE_DEVICE + _OF_THE_LEARNER
        without += _OF_THE_NETWORK if point["inference"] == "central" else ()
    if point["part"] == Part.DEMAND:
        without += ("actor_cpus",)  # no environment is stepped
        without += ("inference_batch",) if point["inference"] == "local" else ()  # nor is anything inferred
    return without


def make_points(spec: Spec, host: SweepHost) -> tuple[AxisValues, ...]:
    """The points of all grids, each once, in the order in which they are written.

    `auto` is answered first, then what a part does not have is set to null, then `exclude` is looked at.

    Raises:
        SpecError: no point is left, or one cannot run on this host.
    """
    exclusions = [Exclusion(expression) for expression in spec.exclude]
    found: dict[tuple[Any, ...], AxisValues] = {}
    for grid in spec.axes:
        for point in _expand(grid, host):
            if not any(exclusion.holds(point) for exclusion in exclusions):
                found.setdefault(tuple(point.values()), point)
    if not found:
        message = "no point is left: the grid is empty after `exclude`; loosen an expression"
        raise SpecError(message, axis="exclude", value=spec.exclude[0])
    _check(list(found.values()), host)
    return tuple(found.values())


def _expand(grid: Axes, host: SweepHost) -> Iterator[AxisValues]:
    values = grid.model_dump(mode="json")
    for combination in itertools.product(*values.values()):
        point = dict(zip(values, combination, strict=True))
        if point["device"] == AUTO:
            point["device"] = "cuda" if host.cuda else "cpu"
        if point["lstm"] == AUTO:
            point["lstm"] = TrainerConfig(algorithm=point["algorithm"]).lstm_units
        if point["gpus"] == AUTO:
            point["gpus"] = 1 if point["device"] == "cuda" else 0
        for actors in _actors(point, host):
            sized = point | {"actors": actors}
            for device_cpus in _device_cpus(sized, host):
                for actor_cpus in _actor_cpus(sized, host, device_cpus=device_cpus):
                    answered = sized | {"device_cpus": device_cpus, "actor_cpus": actor_cpus}
                    answered["inference_batch"] = _inference_batch(answered)
                    yield answered | dict.fromkeys(meaningless(answered))


def _inference_batch(point: AxisValues) -> int:
    """What is asked for, or the trainer's own for a group of the point's actors."""
    if point["inference_batch"] != AUTO:
        return int(point["inference_batch"])
    groups = point["actor_cpus"] if point["inference"] == "local" else point["actor_groups"]
    return default_batch(max(1, point["actors"] // groups), inference=point["inference"])


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
    if point["device"] in {"cuda", "emulated"}:
        # Two threads drive an accelerator: the actor loop and the learner.
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


def _check(points: list[AxisValues], host: SweepHost) -> None:
    placed = set()
    for point in points:
        _check_workload(point, host)
        _check_device(point, host)
        _check_groups(point)
        # Many points of a large grid want the same CPUs, and to look for these takes time.
        wanted = (point["actor_cpus"], point["device_cpus"], point["pinning"])
        if wanted not in placed:
            placed.add(wanted)
            _check_placement(point, host)


def _check_workload(point: AxisValues, host: SweepHost) -> None:
    environment, network = point["environment"], point["network"]
    for axis, key in (("environment", (environment, "")), ("network", (environment, network))):
        if key in host.refusals:
            raise SpecError(host.refusals[key], axis=axis, value=point[axis])


def _check_groups(point: AxisValues) -> None:
    batch, actors = point["inference_batch"], point["actors"]
    groups = point["actor_groups"] or point["actor_cpus"] or 1
    if actors < groups:
        axis = "actor_groups" if point["actor_groups"] else "actor_cpus"
        raise SpecError(
            f"actors is {actors} with {groups} inference loops; each needs an actor", axis=axis, value=groups
        )
    if batch is not None and batch > actors // groups:
        shown = f"{actors} actors" + (f" in {groups} groups" if groups > 1 else "")
        raise SpecError(
            f"inference_batch is {batch} with {shown}; it must not exceed the actors of a group",
            axis="inference_batch",
            value=batch,
        )


def _check_device(point: AxisValues, host: SweepHost) -> None:
    device, gpus, share = point["device"], point["gpus"], point["sm_share"]
    if device == "cuda" and not host.cuda:
        raise SpecError(
            f"device is cuda, but {host.cuda_reason}; use cpu or auto", axis="device", value="cuda"
        )
    if device == "cuda" and gpus == 0:
        raise SpecError("device is cuda and gpus is 0; use gpus 1 or device cpu", axis="gpus", value=0)
    if device != "cuda" and gpus:
        raise SpecError(f"device is {device} and gpus is 1; use gpus 0 or device cuda", axis="gpus", value=1)
    if device == "emulated" and point["inference"] == "local":
        raise SpecError(
            "inference is local on an emulated device, which only infers centrally; use central",
            axis="inference",
            value="local",
        )
    if device == "cuda" and share is not None and share < 1:
        raise SpecError(
            f"sm_share is {share:g} on a GPU, a part of which cannot be granted yet; use 1, or leave it out "
            "with exclude: 'device == \"cuda\" and sm_share < 1'",
            axis="sm_share",
            value=share,
        )


def _check_placement(point: AxisValues, host: SweepHost) -> None:
    actor_cpus, device_cpus = point["actor_cpus"] or 0, point["device_cpus"] or 0
    pinning = Pinning(point["pinning"])
    try:
        request = PlacementRequest(actor_cpus=actor_cpus, device_cpus=device_cpus, pinning=pinning)
        place(host.topology, allowed=host.allowed, request=request)
    except PlacementError as error:
        larger = "actor_cpus" if actor_cpus >= device_cpus else "device_cpus"
        shown = f"part={point['part']}, actors={point['actors']}"
        raise SpecError(f"{shown}: {error}", axis=larger, value=point[larger]) from error
