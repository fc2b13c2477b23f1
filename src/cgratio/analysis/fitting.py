"""Fits the scaling model to the points, with the scale that its intervals rest on."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from scipy import optimize, stats

from cgratio.analysis.model import (
    DULLEST,
    LIFT,
    NAMES,
    SHARPEST,
    Fit,
    Layout,
    demand_slopes,
    log_demand,
    log_rate,
    log_supply,
    rate_slopes,
    supply_slopes,
)
from cgratio.analysis.workloads import Observations
from cgratio.results.words import Part

Floats = npt.NDArray[np.float64]

MISFIT_P = 0.05
"""Below this p value of the lack-of-fit test, the misfit of the points sets the width of the intervals."""


def fit(observations: Observations, layout: Layout) -> Fit:
    """Fits the model from several starts and keeps the best.

    The interval's scale is that of all residuals, unless the points miss the model by more than their
    replicates explain (F test of lack of fit, Draper and Smith 1998, Applied Regression Analysis, ch. 2);
    then it is that of the points' misfit, which is wider.

    Raises:
        ValueError: there are fewer points than free parameters.
    """
    free = layout.free()
    points = observations.log_rate.size
    if points < len(free):
        raise ValueError(f"{points} points cannot show {len(free)} parameters")
    lower, upper = _bounds(observations)
    weights = np.sqrt(observations.count)

    def residuals(values: Floats) -> Floats:
        return weights * (_predict(_fill(layout, values), observations)[0] - observations.log_rate)

    def jacobian(values: Floats) -> Floats:
        slopes = _predict(_fill(layout, values), observations)[1][:, list(free)]
        return np.asarray(weights[:, np.newaxis] * slopes)

    # As near to the points as launches are to each other: another start could only fit their noise.
    good_enough = 0.0
    if observations.pure_degrees:
        good_enough = (points - len(free)) * observations.pure_squares / observations.pure_degrees
    best: optimize.OptimizeResult | None = None
    for start in _starts(observations):
        begin = np.clip(start, lower, upper)[list(free)]
        found = optimize.least_squares(
            residuals,
            begin,
            jac=jacobian,
            bounds=(lower[list(free)], upper[list(free)]),
            x_scale="jac",
            xtol=1e-10,
        )
        if best is None or found.cost < best.cost:
            best = found
        if 2.0 * best.cost <= good_enough:
            break
    assert best is not None
    return _with_scale(
        observations=observations,
        layout=layout,
        theta=_fill(layout, best.x),
        jacobian=np.asarray(best.jac),
        misfit_squares=2.0 * float(best.cost),
    )


def _with_scale(
    *,
    observations: Observations,
    layout: Layout,
    theta: Floats,
    jacobian: Floats,
    misfit_squares: float,
) -> Fit:
    # A parameter at its bound keeps its say: that noise pushed it there does not make it known.
    free = layout.free()
    misfit_degrees = observations.log_rate.size - len(free)
    squares = misfit_squares + observations.pure_squares
    degrees = misfit_degrees + observations.pure_degrees
    result = Fit(
        layout=layout,
        theta=theta,
        free=free,
        covariance=None,
        degrees=degrees,
        scale=math.sqrt(squares / degrees) if degrees else 0.0,
        misfit_p=None,
        squares=squares,
        residual_degrees=degrees,
    )
    if not observations.pure_degrees:
        return result  # without replicates nothing shows how launches differ
    pure = observations.pure_squares / observations.pure_degrees
    if pure > result.scale**2:
        # Points that lie closer to the model than launches to each other do so by chance.
        result = replace(result, scale=math.sqrt(pure), degrees=observations.pure_degrees)
    if misfit_degrees and pure > 0.0:
        misfit = misfit_squares / misfit_degrees
        p = float(stats.f.sf(misfit / pure, misfit_degrees, observations.pure_degrees))
        result = replace(result, misfit_p=p)
        if p < MISFIT_P:
            result = replace(result, scale=math.sqrt(misfit), degrees=misfit_degrees)
    return replace(result, covariance=result.scale**2 * _inverse(jacobian.T @ jacobian))


def _inverse(information: Floats) -> Floats:
    """Inverse of the information matrix; a direction that no point shows gets a huge variance, never none."""
    values, vectors = np.linalg.eigh(information)
    floor = 1e-10 * max(float(values[-1]), 1e-300) if values.size else 0.0
    return np.asarray(vectors / np.maximum(values, floor) @ vectors.T)


def _fill(layout: Layout, values: Floats) -> Floats:
    """All six parameters; an absent bound lies at infinity."""
    theta = np.array(
        [
            0.0 if layout.supply else np.inf,
            0.0,
            0.0 if layout.demand else np.inf,
            0.0,
            0.0 if layout.latency else -np.inf,
            math.log(4.0),
        ]
    )
    theta[list(layout.free())] = values
    return theta


def _predict(theta: Floats, observations: Observations) -> tuple[Floats, Floats]:
    """Model log rate of every point by its part, shape (points,), and its slopes, shape (points, 6)."""
    threads = np.where(np.isnan(observations.threads), 1.0, observations.threads)
    amount = np.where(np.isnan(observations.amount), 1.0, observations.amount)
    # Where actors are not told there is one for each thread.
    actors = np.where(np.isnan(observations.actors), threads, observations.actors)
    used = np.minimum(threads, actors)
    values, slopes = np.empty_like(threads), np.zeros((threads.size, len(NAMES)))
    for part in Part:
        mask = observations.is_part(part)
        if not mask.any():
            continue
        if part is Part.SUPPLY:
            values[mask] = log_supply(theta, used[mask])
            slopes[mask, :2] = supply_slopes(theta, used[mask])
        elif part is Part.DEMAND:
            values[mask] = log_demand(theta, amount[mask])
            slopes[mask, 2:4] = demand_slopes(theta, amount[mask])
        else:
            place = {"threads": threads[mask], "amount": amount[mask], "actors": actors[mask]}
            values[mask] = log_rate(theta, **place)
            slopes[mask] = rate_slopes(theta, **place)
    return values, slopes


def _bounds(observations: Observations) -> tuple[Floats, Floats]:
    """Bounds of the parameters. A little below 0 for sigma and delta, so that noise about 0 is not cut."""
    most = max(float(np.nanmax(np.append(observations.threads, 1.0))), 2.0)
    amounts = np.append(observations.amount[~np.isnan(observations.amount)], 1.0)
    largest = max(float(amounts.max()), 2.0)
    top = float(observations.log_rate.max())
    dull, sharp = math.log(DULLEST), math.log(SHARPEST)
    sigma, delta = -LIFT / (most - 1.0), -LIFT / (largest - 1.0)
    lower = np.array([top - 20.0, sigma, top - 20.0, delta, -top - 20.0, dull])
    upper = np.array([top + 20.0, 1.0, top + 20.0, 1.0, -top + 20.0, sharp])
    return lower, upper


def _starts(observations: Observations) -> list[Floats]:
    """Starting points: each bound just above what was seen of it, with dull and sharp corners."""
    rate = observations.log_rate
    threads = np.where(np.isnan(observations.threads), 1.0, observations.threads)
    amount = np.where(np.isnan(observations.amount), 1.0, observations.amount)
    actors = np.where(np.isnan(observations.actors), 1.0, observations.actors)
    seen = ~observations.is_part(Part.DEMAND)
    supply = float(np.max((rate - np.log(np.minimum(threads, actors)))[seen])) if seen.any() else 0.0
    wanted = ~observations.is_part(Part.SUPPLY)
    demand = float(np.max((rate - np.log(amount))[wanted])) if wanted.any() else 0.0
    whole = observations.is_part(Part.WHOLE)
    latency = float(np.min((np.log(actors) - rate)[whole])) if whole.any() else 0.0
    return [
        np.array([supply + 0.1, 0.1, demand + 0.1, 0.1, latency - 0.1, math.log(p)]) for p in (3.0, 1.5, 8.0)
    ]
