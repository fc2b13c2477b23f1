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
from cgratio.trainer.config import default_batch

AxisValues = dict[str, Any]

MEANINGLESS: dict[Part, tuple[str, ...]] = {
    # No accelerator and no network: actions are random and nothing is learned.
    Part.SUPPLY: (
        "device_cpus",
        "gpus",
        "sm_share",
        "network",
        "unroll_length",
        "learner_batch",
        "precision",
    ),
    # No environment is stepped.
    Part.DEMAND: ("actor_cpus",),
}
"""Axes that a part of the pipeline does not have; they are null in its points."""


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
        if point["gpus"] == AUTO:
            point["gpus"] = 1 if point["device"] == "cuda" else 0
        for actors in _actors(point, host):
            batch = default_batch(actors) if point["inference_batch"] == AUTO else point["inference_batch"]
            sized = point | {"actors": actors, "inference_batch": batch}
            for device_cpus in _device_cpus(sized, host):
                for actor_cpus in _actor_cpus(sized, host, device_cpus=device_cpus):
                    answered = sized | {"device_cpus": device_cpus, "actor_cpus": actor_cpus}
                    yield answered | dict.fromkeys(MEANINGLESS.get(point["part"], ()))


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


def _check(points: list[AxisValues], host: SweepHost) -> None:
    placed = set()
    for point in points:
        _check_device(point, host)
        batch, actors = point["inference_batch"], point["actors"]
        if batch > actors:
            raise SpecError(
                f"inference_batch is {batch} with {actors} actors; it must not exceed the actors",
                axis="inference_batch",
                value=batch,
            )
        # Many points of a large grid want the same CPUs, and to look for these takes time.
        wanted = (point["actor_cpus"], point["device_cpus"], point["pinning"])
        if wanted not in placed:
            placed.add(wanted)
            _check_placement(point, host)


def _check_device(point: AxisValues, host: SweepHost) -> None:
    device, gpus, share = point["device"], point["gpus"], point["sm_share"]
    if device == "cuda" and not host.cuda:
        raise SpecError(
            f"device is cuda, but {host.cuda_reason}; use cpu or auto", axis="device", value="cuda"
        )
    if device == "cuda" and gpus == 0:
        raise SpecError("device is cuda and gpus is 0; use gpus 1 or device cpu", axis="gpus", value=0)
    if device == "cpu" and gpus:
        raise SpecError("device is cpu and gpus is 1; use gpus 0 or device cuda", axis="gpus", value=1)
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
