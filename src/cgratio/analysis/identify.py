"""Decides what the trials can show, before anything is read off a fit.

A ceiling that no trial ran into cannot be told from data, whatever an optimiser returns. So a bound enters
the model only on evidence: trials that measured it directly, shares that say a whole trial ran into it, or
an F test that the rates cannot be had without it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from scipy import stats

from cgratio.analysis.facts import Bottleneck
from cgratio.analysis.fitting import fit
from cgratio.analysis.model import Fit, Layout
from cgratio.analysis.workloads import Floats, Observations
from cgratio.results.schema import Part

NEEDED_P = 0.05
"""A bound without direct evidence is kept when the F test against the model without it is below this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What could be fitted.

    Attributes:
        fit: None when there is nothing to fit.
        supply_reason, demand_reason: why that side is not known; None when it is.
        notes: assumptions that the fit rests on.
    """

    fit: Fit | None
    supply_reason: str | None
    demand_reason: str | None
    notes: tuple[str, ...]


def identify(observations: Observations) -> Finding:
    """Chooses the terms that the data can show and fits them."""
    whole = observations.is_part(Part.WHOLE)
    has_threads = not np.isnan(observations.threads[whole]).any()
    supply = bool(observations.is_part(Part.SUPPLY).any()) or (
        has_threads and _limited(observations, Bottleneck.ENVIRONMENTS)
    )
    demand = bool(observations.is_part(Part.DEMAND).any()) or _limited(observations, Bottleneck.ACCELERATOR)
    layout = Layout(
        supply=supply,
        demand=demand,
        latency=_latency_shows(observations),
        sigma=supply and _distinct(_used(observations)) > 1,
        delta=demand and _distinct(_amounts(observations)) > 1,
        sharpness=bool(whole.any()),
    )
    if not supply and has_threads and _distinct(observations.threads[whole]) > 1:
        layout = _with_if_needed(observations, layout, side="supply")
    if not layout.demand and whole.any():
        layout = _with_if_needed(observations, layout, side="demand")
    layout, dropped = _affordable(observations, layout)
    fitted = fit(observations, layout) if layout.free() else None
    return Finding(
        fit=fitted,
        supply_reason=None if layout.supply else _why_no_supply(observations, has_threads=has_threads),
        demand_reason=None if layout.demand else _why_no_demand(observations),
        notes=(*_assumptions(observations, layout), *dropped),
    )


def _limited(observations: Observations, by: Bottleneck) -> bool:
    whole = observations.is_part(Part.WHOLE)
    return any(limit is by for limit, is_whole in zip(observations.limit, whole, strict=True) if is_whole)


def _used(observations: Observations) -> Floats:
    """Threads that environments used, over the points that run them.

    Any two counts set the bend of supply free, even where whole trials show it badly: the interval must know
    that contention among environments and the accelerator's limit bend a rate alike.
    """
    return np.fmin(observations.threads, observations.actors)[~observations.is_part(Part.DEMAND)]


def _amounts(observations: Observations) -> Floats:
    """Accelerator amounts over the points that have one."""
    return observations.amount[~observations.is_part(Part.SUPPLY)]


def _distinct(values: Floats) -> int:
    return int(np.unique(values[~np.isnan(values)]).size)


def _latency_shows(observations: Observations) -> bool:
    """Whether actors and threads vary apart: else the loop of an actor and its thread are one thing."""
    whole = observations.is_part(Part.WHOLE)
    actors, threads = observations.actors[whole], observations.threads[whole]
    if _distinct(actors) < 2 or np.isnan(actors).any():
        return False
    return bool(np.isnan(threads).any()) or _distinct(np.round(actors / threads, 9)) > 1


def _with_if_needed(observations: Observations, layout: Layout, *, side: str) -> Layout:
    """The layout with one more bound, where the rates cannot be had without it (nested F test)."""
    bend = {"supply": ("sigma", _used), "demand": ("delta", _amounts)}[side]
    fuller = replace(layout, **{side: True, bend[0]: _distinct(bend[1](observations)) > 1})
    points = observations.log_rate.size
    # With too few points for the corner's sharpness or the bend as well, the test takes middling ones.
    tested, plain = fuller, layout
    for name in ("sharpness", bend[0]):
        if points - len(tested.free()) < 2:
            tested, plain = replace(tested, **{name: False}), replace(plain, **{name: False})
    parameters = len(tested.free())
    if points < max(parameters, 2):
        return layout
    within = fit(observations, tested)
    if not plain.free():
        # Nothing else is in the model: a rate that stays put shows a ceiling, one that goes its own way none.
        weights = observations.count
        mean = float(np.average(observations.log_rate, weights=weights))
        flat = float(np.sum(weights * (observations.log_rate - mean) ** 2)) + observations.pure_squares
        return fuller if within.squares <= flat * (1.0 + 1e-6) else layout
    if within.residual_degrees < 1:
        return layout
    added = parameters - len(plain.free())
    noise = max(within.squares / within.residual_degrees, 1e-12)
    statistic = (fit(observations, plain).squares - within.squares) / added / noise
    return fuller if float(stats.f.sf(statistic, added, within.residual_degrees)) < NEEDED_P else layout


def _affordable(observations: Observations, layout: Layout) -> tuple[Layout, tuple[str, ...]]:
    """Fixes parameters until there are no more of them than points, the least telling first."""
    dropped = []
    words = {
        "sharpness": "too few points to fit how sharply the limits meet; a middling sharpness is assumed",
        "latency": "too few points to fit the actors' loop time; it is assumed not to limit",
        "delta": "too few points to fit how demand bends; it is assumed proportional",
        "sigma": "too few points to fit how supply bends; it is assumed proportional",
    }
    for name, note in words.items():
        if len(layout.free()) <= observations.log_rate.size:
            break
        if getattr(layout, name):
            layout = replace(layout, **{name: False})
            dropped.append(note)
    return layout, tuple(dropped)


def _assumptions(observations: Observations, layout: Layout) -> tuple[str, ...]:
    notes = []
    if layout.supply and not layout.sigma:
        notes.append("no bend of supply over threads can be told: it is taken as proportional to the threads")
    if layout.demand and not layout.delta:
        notes.append(
            "no bend of demand over the accelerator can be told: it is taken as proportional to the amount"
        )
    if observations.is_part(Part.WHOLE).any() and not layout.latency:
        notes.append(
            "actors did not vary apart from threads: the time around an actor's loop is taken as no limit"
        )
    return tuple(notes)


def _why_no_supply(observations: Observations, *, has_threads: bool) -> str:
    whole = observations.is_part(Part.WHOLE)
    if not has_threads:
        return "the actor CPUs of the whole trials are not known"
    rates = np.exp(observations.log_rate[whole])
    if not rates.size:
        return "no trial shows what the environments can supply"
    actors = span(observations.actors[whole])
    threads = span(observations.threads[whole])
    return (
        f"the rate tops out at {rates.max():.4g} samples/s for {actors} actors at {threads} actor threads,"
        " and no trial ran into the environments' limit: the accelerator or the learner is the limit, and"
        " what the environments could supply was never seen (supply trials would show it)"
    )


def _why_no_demand(observations: Observations) -> str:
    whole = observations.is_part(Part.WHOLE)
    if not whole.any():
        return "no trial shows what the accelerator can take"
    top = float(np.exp(observations.log_rate[whole].max()))
    return (
        f"no peak in range: up to {top:.4g} samples/s, at {span(observations.threads[whole])} actor threads"
        f" and {span(observations.actors[whole])} actors, no trial shows the accelerator's limit apart from the"
        " environments' own (demand trials, stage shares, or more threads would)"
    )


def span(values: Iterable[float]) -> str:
    """`1 to 8`, `4`, or `unknown` numbers of something."""
    known = sorted({float(value) for value in values if not np.isnan(value)})
    if not known:
        return "an unknown number of"
    return f"{known[0]:g}" if len(known) == 1 else f"{known[0]:g} to {known[-1]:g}"
