"""The scaling model: a training job runs at the soft minimum of what each of its parts could do.

    X(c, a, n) = (S(c)^-p + D(a)^-p + N(n)^-p)^(-1/p)
    S(c) = S1 c / (1 + sigma (c - 1))        supply of c hardware threads, samples/s
    D(a) = D1 a / (1 + delta (a - 1))        demand of a accelerators, samples/s
    N(n) = n / L                             n actors that each need L seconds around the loop

S and D are Amdahl's law in the form of the universal scalability law without its coherence term (Gunther
2007, Guerrilla Capacity Planning, ch. 4). The three bounds are the asymptotes of a closed queueing network
(Denning and Buzen 1978, Computing Surveys 10:225); the exponent p rounds the corners between them, as
Churchill and Usagi (1972, AIChE J. 18:1121) blend asymptotes: p = 1 is no overlap at all, a large p perfect
overlap. Part of a thread (c < 1) supplies in proportion. n actors use no more than n threads.

A supply trial sees S(min(c, n)), a demand trial D(a), a whole trial X. All are fitted together by least
squares on the log rate, each trial with the same weight.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cgratio.analysis.statistics import t_quantile

Floats = npt.NDArray[np.float64]

NAMES = ("log_supply", "sigma", "log_demand", "delta", "log_latency", "log_sharpness")

LIFT = 0.25
"""Noise may make S or D look better than proportional by this much at most, over the tested range."""

DULLEST, SHARPEST = 0.6, 16.0
"""Bounds of p; above 16 the corner is sharper than any noise shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Which terms the model has, and which of their parameters the data can show.

    Attributes:
        supply, demand, latency: whether the bound is there at all; an absent one never limits.
        sigma, delta, sharpness: whether the parameter is free; otherwise 0, 0 and 4.
    """

    supply: bool
    demand: bool
    latency: bool
    sigma: bool = False
    delta: bool = False
    sharpness: bool = True

    def free(self) -> tuple[int, ...]:
        """Indexes into `NAMES` of the free parameters."""
        terms = int(self.supply) + int(self.demand) + int(self.latency)
        flags = (
            self.supply,
            self.supply and self.sigma,
            self.demand,
            self.demand and self.delta,
            self.latency,
            self.sharpness and terms > 1,
        )
        return tuple(index for index, flag in enumerate(flags) if flag)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """A fitted model.

    Attributes:
        theta: parameters, shape (6,), in the order of `NAMES`; logs of samples/s, 1, s.
        free: indexes of those that were fitted and did not end at a bound.
        covariance: of the free ones, shape (free, free), with the scale in it; None without freedom.
        degrees: freedom of the scale.
        scale: standard deviation of one trial's log rate that the covariance rests on.
        misfit_p: p value of the lack-of-fit test; None where it cannot be made.
        squares: residual sum of squares over trials; residual_degrees: its freedom.
    """

    layout: Layout
    theta: Floats
    free: tuple[int, ...]
    covariance: Floats | None
    degrees: int
    scale: float
    misfit_p: float | None
    squares: float
    residual_degrees: int

    def supply(self, threads: npt.ArrayLike) -> Floats:
        """S(c), samples/s; same shape as `threads`."""
        return np.exp(log_supply(self.theta, np.asarray(threads, dtype=np.float64)))

    def demand(self, amount: npt.ArrayLike) -> Floats:
        """D(a), samples/s; same shape as `amount`."""
        return np.exp(log_demand(self.theta, np.asarray(amount, dtype=np.float64)))

    def rate(self, *, threads: npt.ArrayLike, amount: npt.ArrayLike, actors: npt.ArrayLike) -> Floats:
        """X(c, a, n), samples/s; the shape that the arguments broadcast to."""
        return np.exp(log_rate(self.theta, threads=threads, amount=amount, actors=actors))

    def half_width(self, function: Callable[[Floats], Floats]) -> Floats | None:
        """95 % half-width of a smooth function of the parameters, by the delta method; None without scale.

        Args:
            function: theta of shape (6,) to values of shape (m,); logs, where the value is a rate.
        """
        if self.covariance is None:
            return None
        gradient = np.stack([_slope(function, self.theta, index) for index in self.free], axis=1)
        variance = np.einsum("mi,ij,mj->m", gradient, self.covariance, gradient)
        return np.asarray(t_quantile(self.degrees) * np.sqrt(np.maximum(variance, 0.0)))


def log_supply(theta: Floats, threads: Floats) -> Floats:
    """Natural log of S(c)."""
    return np.asarray(theta[0] + np.log(threads) - _log_bend(theta[1], np.maximum(threads - 1.0, 0.0)))


def log_demand(theta: Floats, amount: Floats) -> Floats:
    """Natural log of D(a)."""
    return np.asarray(theta[2] + np.log(amount) - _log_bend(theta[3], amount - 1.0))


def log_rate(
    theta: Floats, *, threads: npt.ArrayLike, amount: npt.ArrayLike, actors: npt.ArrayLike
) -> Floats:
    """Natural log of X(c, a, n)."""
    bounds = _bounds(theta, threads=threads, amount=amount, actors=actors)
    sharpness = math.exp(theta[5])
    return np.asarray(-np.logaddexp.reduce(-sharpness * bounds, axis=0) / sharpness)


def supply_slopes(theta: Floats, threads: Floats) -> Floats:
    """Slopes of log S(c) over theta[0:2], shape (points, 2)."""
    more = np.maximum(threads - 1.0, 0.0)
    return np.stack([np.ones_like(more), -more / (1.0 + theta[1] * more)], axis=1)


def demand_slopes(theta: Floats, amount: Floats) -> Floats:
    """Slopes of log D(a) over theta[2:4], shape (points, 2)."""
    more = amount - 1.0
    return np.stack([np.ones_like(more), -more / (1.0 + theta[3] * more)], axis=1)


def rate_slopes(theta: Floats, *, threads: Floats, amount: Floats, actors: Floats) -> Floats:
    """Slopes of log X(c, a, n) over theta, shape (points, 6), within the tested range."""
    bounds = _bounds(theta, threads=threads, amount=amount, actors=actors)
    total = log_rate(theta, threads=threads, amount=amount, actors=actors)
    # How much each bound has to say about the soft minimum, (3, points); an absent one has nothing.
    weights = np.exp(-math.exp(theta[5]) * (bounds - total))
    mean = np.sum(np.where(weights > 0.0, weights * np.where(np.isinf(bounds), 0.0, bounds), 0.0), axis=0)
    return np.column_stack(
        [
            weights[0, :, np.newaxis] * supply_slopes(theta, np.minimum(threads, actors)),
            weights[1, :, np.newaxis] * demand_slopes(theta, amount),
            -weights[2],
            mean - total,
        ]
    )


def _bounds(theta: Floats, *, threads: npt.ArrayLike, amount: npt.ArrayLike, actors: npt.ArrayLike) -> Floats:
    """Logs of S, D and N, stacked: shape (3, ...)."""
    c, a, n = np.broadcast_arrays(*(np.asarray(x, dtype=np.float64) for x in (threads, amount, actors)))
    return np.stack([log_supply(theta, np.minimum(c, n)), log_demand(theta, a), np.log(n) - theta[4]])


def _log_bend(contention: float, more: Floats) -> Floats:
    """Log of 1 + contention * more, which for a negative contention stops short of its pole.

    The stop lies beyond what the fit's bounds allow over the tested range.
    """
    bend = 1.0 + contention * more
    return np.asarray(np.log(np.where(more > 0.0, np.maximum(bend, 1.0 - 2.0 * LIFT), bend)))


def _slope(function: Callable[[Floats], Floats], theta: Floats, index: int) -> Floats:
    step = 1e-5
    up, down = theta.copy(), theta.copy()
    up[index] += step
    down[index] -= step
    return np.asarray((function(up) - function(down)) / (2.0 * step))
