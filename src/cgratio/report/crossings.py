"""Where supply of samples meets demand, for any amount of accelerator."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from cgratio.analysis.facts import Curve

APART = 0.08
"""Share of a picture's height that keeps the names of two levels apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossing:
    """How many threads keep one amount of accelerator busy.

    Attributes:
        amount: of the accelerator, on the demand curve's x axis. demand: samples/s there.
        threads: where supply meets it; None when the supply curve does not reach it.
        low, high: from the edges of both bands; None where an edge is not reached.
        is_extrapolated: whether the crossing lies outside what trials measured.
    """

    amount: float
    demand: float
    threads: float | None
    low: float | None
    high: float | None
    is_extrapolated: bool


def crossings(supply: Curve, demand: Curve) -> tuple[Crossing, ...]:
    """Meets the supply curve with each point of the demand curve, and with one whole accelerator."""
    whole = (1.0,) if demand.x[0] <= 1.0 <= demand.x[-1] else ()
    return tuple(meet(supply, demand, amount) for amount in sorted({*demand.x, *whole}))


def meet(supply: Curve, demand: Curve, amount: float) -> Crossing:
    """Meets the supply curve with the demand of one amount of accelerator."""
    wanted, low, high = (
        float(np.interp(amount, demand.x, part)) for part in (demand.y, demand.low, demand.high)
    )
    threads = _reach(supply.x, supply.y, wanted)
    outside = not demand.measured_low * (1 - 1e-9) <= amount <= demand.measured_high * (1 + 1e-9)
    if threads is not None:
        outside = outside or threads > supply.measured_high * (1 + 1e-9)
    return Crossing(
        amount=amount,
        demand=wanted,
        threads=threads,
        low=_reach(supply.x, supply.high, low),
        high=_reach(supply.x, supply.low, high),
        is_extrapolated=outside,
    )


def told_apart(levels: Iterable[Crossing], supply: Curve) -> tuple[Crossing, ...]:
    """Those levels of demand whose names do not run into each other in a picture of supply, ascending.

    The level of about one accelerator stays: it is what the answer is about.
    """
    by_nearness = sorted(levels, key=lambda one: abs(math.log(one.amount)))
    supplied = float(np.interp(supply.measured_high, supply.x, supply.y))
    highest = max([supplied, *(one.demand for one in by_nearness)])
    kept: list[Crossing] = []
    for one in by_nearness:
        if all(abs(one.demand - other.demand) > APART * highest for other in kept):
            kept.append(one)
    return tuple(sorted(kept, key=lambda one: one.amount))


def _reach(x: Iterable[float], y: Iterable[float], level: float) -> float | None:
    """The first x at which y reaches a level, None when it never does.

    No threads supply nothing: the curve begins there, wherever its first point lies.
    """
    before, below = 0.0, 0.0
    for at, height in zip(x, y, strict=True):
        if below <= level <= height:
            rise = height - below
            return before + (at - before) * ((level - below) / rise if rise else 0.0)
        before, below = at, height
    return None
