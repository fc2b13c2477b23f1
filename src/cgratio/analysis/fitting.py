"""Fits the scaling model to the points, with the scale that its intervals rest on."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from scipy import optimize, stats

from cgratio.analysis.model import DULLEST, LIFT, SHARPEST, Fit, Layout, log_demand, log_rate, log_supply
from cgratio.analysis.workloads import Observations
from cgratio.results.schema import Part

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
        return weights * (_predict(_fill(layout, values), observations) - observations.log_rate)

    best: optimize.OptimizeResult | None = None
    for start in _starts(observations):
        begin = np.clip(start, lower, upper)[list(free)]
        found = optimize.least_squares(
            residuals, begin, bounds=(lower[list(free)], upper[list(free)]), x_scale="jac", xtol=1e-10
        )
        if best is None or found.cost < best.cost:
            best = found
    assert best is not None
    theta = _fill(layout, best.x)
    inner = tuple(
        index for index in free if theta[index] - lower[index] > 1e-6 and upper[index] - theta[index] > 1e-6
    )
    return _with_scale(
        observations=observations,
        layout=layout,
        theta=theta,
        inner=inner,
        jacobian=best.jac[:, [free.index(index) for index in inner]],
        misfit_squares=2.0 * float(best.cost),
        fitted=len(free),
    )


def _with_scale(
    *,
    observations: Observations,
    layout: Layout,
    theta: Floats,
    inner: tuple[int, ...],
    jacobian: Floats,
    misfit_squares: float,
    fitted: int,
) -> Fit:
    misfit_degrees = observations.log_rate.size - fitted
    squares = misfit_squares + observations.pure_squares
    degrees = misfit_degrees + observations.pure_degrees
    result = Fit(
        layout=layout,
        theta=theta,
        free=inner,
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


def _predict(theta: Floats, observations: Observations) -> Floats:
    """Model log rate of every point, each by its part."""
    threads = np.where(np.isnan(observations.threads), 1.0, observations.threads)
    amount = np.where(np.isnan(observations.amount), 1.0, observations.amount)
    actors = np.where(np.isnan(observations.actors), np.inf, observations.actors)
    used = np.where(np.isinf(actors), threads, np.minimum(threads, actors))
    result = np.empty_like(observations.log_rate)
    for part in Part:
        mask = observations.is_part(part)
        if not mask.any():
            continue
        if part is Part.SUPPLY:
            result[mask] = log_supply(theta, used[mask])
        elif part is Part.DEMAND:
            result[mask] = log_demand(theta, amount[mask])
        else:
            result[mask] = log_rate(
                theta,
                threads=threads[mask],
                amount=amount[mask],
                actors=np.where(np.isinf(actors[mask]), threads[mask], actors[mask]),
            )
    return result


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
        np.array([supply + 0.1, 0.1, demand + 0.1, 0.1, latency - 0.1, math.log(p)]) for p in (1.5, 3.0, 8.0)
    ]
