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
from cgratio.analysis.fitting import MISFIT_P, fit
from cgratio.analysis.model import Fit, Layout
from cgratio.analysis.words import number
from cgratio.analysis.workloads import Floats, Observations
from cgratio.results.words import Part

NEEDED_P = 0.05
"""A bound without direct evidence is kept when the F test against the model without it is below this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What could be fitted.

    Attributes:
        fit: of all parts together; None when there is nothing to fit.
        sides: the fit that supply and demand are read from: `fit`, or one of the supply and demand trials
            alone where the whole trials do not follow the joint model.
        supply_reason, demand_reason: why that side is not known; None when it is.
        notes: assumptions that the fit rests on.
    """

    fit: Fit | None
    sides: Fit | None
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
    direct = _direct(observations, fitted)
    supply_reason, demand_reason = _reasons(observations, layout, has_threads=has_threads)
    return Finding(
        fit=fitted,
        sides=direct or fitted,
        supply_reason=supply_reason,
        demand_reason=demand_reason,
        notes=(*_assumptions(observations, layout), *dropped),
    )


def _direct(observations: Observations, joint: Fit | None) -> Fit | None:
    """A fit of the supply and demand trials alone, where the whole trials would only blur it.

    How the limits meet in a whole trial is a rule of thumb; what each side can do alone is measured. So when
    the joint model misses the points by more than launches differ, the sides are read from their own trials,
    unless only whole trials show how a side bends on the way to the crossing. The launches' spread still
    comes from all points.
    """
    if joint is None or joint.misfit_p is None or joint.misfit_p >= MISFIT_P:
        return None
    whole = observations.is_part(Part.WHOLE)
    if not whole.any() or not (
        observations.is_part(Part.SUPPLY).any() and observations.is_part(Part.DEMAND).any()
    ):
        return None
    alone = observations.where(~whole)
    layout = Layout(
        supply=True,
        demand=True,
        latency=False,
        sigma=_distinct(_used(alone)) > 1,
        delta=_distinct(_amounts(alone)) > 1,
        sharpness=False,
    )
    shows_demand = layout.delta == joint.layout.delta or 1.0 in alone.amount
    return fit(alone, layout) if layout.sigma == joint.layout.sigma and shows_demand else None


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


def _reasons(
    observations: Observations, layout: Layout, *, has_threads: bool
) -> tuple[str | None, str | None]:
    """Why supply, and why demand, is not known; None for a side that is."""
    whole = observations.is_part(Part.WHOLE)
    if layout.supply and layout.demand:
        return None, None
    if not whole.any():
        supply = None if layout.supply else "no trial shows what the environments can supply"
        demand = None if layout.demand else "no trial shows what the accelerator can take"
        return supply, demand
    top = number(float(np.exp(observations.log_rate[whole].max())))
    place = (
        f"{count(observations.actors[whole], 'actor')} at"
        f" {count(observations.threads[whole], 'actor thread')}"
    )
    if layout.demand:
        unknown = "" if has_threads else "; nor are the actor CPUs of the whole trials known"
        return (
            f"the rate tops out at {top} samples/s for {place}, and no trial ran into the environments'"
            " limit: the accelerator or the learner is the limit, and what the environments could supply"
            f" was never seen (supply trials would show it){unknown}"
        ), None
    if layout.supply:
        return None, (
            f"no peak in range: up to {top} samples/s for {place}, no trial shows the accelerator's limit"
            " apart from the environments' own (demand trials, stage shares, or more threads would)"
        )
    neither = (
        f"no peak in range: up to {top} samples/s for {place}, neither the environments' nor the"
        " accelerator's limit was seen (supply and demand trials would show them)"
    )
    return neither, neither


def count(values: Iterable[float], noun: str) -> str:
    """`1 to 8 actors`, `1 actor`, or `an unknown number of actors`."""
    known = sorted({float(value) for value in values if not np.isnan(value)})
    if not known:
        return f"an unknown number of {noun}s"
    if len(known) == 1:
        return f"{known[0]:g} {noun}" + ("" if known[0] == 1.0 else "s")
    return f"{known[0]:g} to {known[-1]:g} {noun}s"
