"""The ratio for the most samples per joule.

Power is taken as a base, a part for each actor thread and a part for each sample/s,
`P = p0 + p1 c + e X(c)` (the linear power model of Fan, Weber and Barroso 2007, ISCA, with the rate in place
of utilisation). Where X/P has its peak within the tested thread counts, that is the optimum; on the edge of
what was tested there is no peak to report.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import optimize

from cgratio.analysis.facts import Origin, Quantity
from cgratio.analysis.model import Fit, log_rate
from cgratio.analysis.points import energy_reason
from cgratio.analysis.ratio import TOLERANCE, reference_amount
from cgratio.analysis.statistics import ONE_REPLICATE
from cgratio.analysis.trials import Trial
from cgratio.analysis.workloads import Workload
from cgratio.results.words import Part

Floats = npt.NDArray[np.float64]

DRAWS = 400
"""Parametric draws for the interval: where a maximum lies has no smooth slope for the delta method."""

GRID = 200

SEED = 20_240_613
"""Fixed, so that one set of data always gives the same digits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergyOptimum:
    """Threads per accelerator with the most samples/J, and the whole counts about as good."""

    threads: Quantity
    near_optimal: tuple[int, ...]


def energy_optimum(fit: Fit | None, *, workload: Workload, unit: str) -> EnergyOptimum:
    """Finds the peak of samples per joule over threads per accelerator."""
    whole = workload.of(Part.WHOLE)
    metered = [trial for trial in whole if trial.joules is not None and trial.threads and trial.amount]
    reason = _cannot(fit, whole=whole, metered=metered)
    if reason is not None or fit is None:
        return EnergyOptimum(
            threads=Quantity.unknown(unit=unit, reason=reason or "nothing could be fitted"), near_optimal=()
        )
    power = _PowerModel.fitted(metered)
    ratios = [(trial.threads or 0.0) / (trial.amount or 1.0) for trial in metered]
    amount = reference_amount(workload)
    last = max(min(max(ratios), max(trial.threads or 0.0 for trial in metered) / amount), min(ratios))
    grid = np.geomspace(min(ratios), last, GRID)
    most = max(trial.actors or trial.threads or 1.0 for trial in metered)
    best = _efficiency(fit.theta, power.coefficients, grid=grid, amount=amount, actors=most)
    modelled = metered[0].boundary == "modelled"
    peak = int(np.argmax(best))
    lowest, highest = max(1, int(np.ceil(grid[0] - 1e-9))), int(np.floor(grid[-1] + 1e-9))
    counts = np.arange(lowest, highest + 1, dtype=np.float64)
    near = _near(
        fit.theta, power.coefficients, counts=counts, amount=amount, actors=most, top=float(best.max())
    )
    if peak in {0, GRID - 1}:
        edge = "most" if peak else "fewest"
        return EnergyOptimum(
            threads=Quantity.unknown(
                unit=unit,
                reason=f"no peak in range: most samples/J at {grid[peak]:.3g} {unit}, the {edge} tested",
            ),
            near_optimal=near,
        )
    low, high, missing = _interval(fit, power, grid=grid, amount=amount, actors=most)
    return EnergyOptimum(
        threads=Quantity(
            value=float(grid[peak]),
            low=low,
            high=high,
            unit=unit,
            origin=Origin.MODELLED if modelled else Origin.FITTED,
            reason=missing,
        ),
        near_optimal=near,
    )


def _cannot(fit: Fit | None, *, whole: Sequence[Trial], metered: Sequence[Trial]) -> str | None:
    if not metered:
        return energy_reason(whole) if whole else "no whole trial, so no joules of the training job"
    boundaries = sorted({str(trial.boundary) for trial in metered})
    if len(boundaries) > 1:
        return f"joules of different boundaries ({', '.join(boundaries)}) cannot be compared"
    if fit is None:
        return "nothing could be fitted"
    counts = {trial.threads for trial in metered}
    if len(counts) < 2:
        return f"whole trials with joules at one thread count only ({counts.pop():g}): no curve over threads"
    if len(metered) < 4:
        return f"only {len(metered)} whole trials with joules"
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class _PowerModel:
    """Coefficients (p0 in W, p1 in W per thread, e in J per sample), shape (3,), and their covariance."""

    coefficients: Floats
    covariance: Floats

    @classmethod
    def fitted(cls, metered: Sequence[Trial]) -> _PowerModel:
        """Least squares with no negative part: a thread or a sample gives no power back."""
        power = np.array([trial.power_w or (trial.joules or 0.0) / trial.seconds for trial in metered])
        design = np.array([[1.0, trial.threads or 0.0, trial.rate] for trial in metered])
        scale = design.max(axis=0)
        found, _ = optimize.nnls(design / scale, power)
        residual = power - design / scale @ found
        used = found > 0.0
        variance = float(residual @ residual) / max(len(metered) - int(used.sum()), 1)
        covariance = np.zeros((3, 3))
        columns = (design / scale)[:, used]
        covariance[np.ix_(used, used)] = variance * np.linalg.pinv(columns.T @ columns, hermitian=True)
        return cls(coefficients=found / scale, covariance=covariance / np.outer(scale, scale))


def _efficiency(theta: Floats, coefficients: Floats, *, grid: Floats, amount: float, actors: float) -> Floats:
    """Samples/J over threads per accelerator, at a fixed amount of it; shape of `grid`."""
    rate = np.exp(log_rate(theta, threads=grid * amount, amount=amount, actors=actors))
    power = coefficients[0] + coefficients[1] * grid * amount + coefficients[2] * rate
    return np.asarray(rate / np.maximum(power, 1e-9))


def _near(
    theta: Floats, coefficients: Floats, *, counts: Floats, amount: float, actors: float, top: float
) -> tuple[int, ...]:
    if not counts.size:
        return ()
    values = _efficiency(theta, coefficients, grid=counts, amount=amount, actors=actors)
    return tuple(int(c) for c, v in zip(counts, values, strict=True) if v >= (1.0 - TOLERANCE) * top)


def _interval(
    fit: Fit, power: _PowerModel, *, grid: Floats, amount: float, actors: float
) -> tuple[float | None, float | None, str | None]:
    """2.5 and 97.5 % of where the peak lies, over draws of both fits' parameters."""
    if fit.covariance is None:
        return None, None, ONE_REPLICATE
    random = np.random.default_rng(SEED)
    free = list(fit.free)
    peaks = np.empty(DRAWS)
    # Multivariate t: normal draws, stretched by what the scale itself is unsure of.
    stretch = np.sqrt(fit.degrees / random.chisquare(fit.degrees, size=DRAWS))
    rates = random.multivariate_normal(np.zeros(len(free)), fit.covariance, size=DRAWS, method="eigh")
    powers = random.multivariate_normal(np.zeros(3), power.covariance, size=DRAWS, method="eigh")
    for draw in range(DRAWS):
        theta = fit.theta.copy()
        theta[free] += np.clip(stretch[draw] * rates[draw], -5.0, 5.0)
        theta[[1, 3]] = np.maximum(theta[[1, 3]], 0.0)
        coefficients = np.maximum(power.coefficients + stretch[draw] * powers[draw], 0.0)
        peaks[draw] = grid[
            int(np.argmax(_efficiency(theta, coefficients, grid=grid, amount=amount, actors=actors)))
        ]
    low, high = np.quantile(peaks, [0.025, 0.975])
    at_low, at_high = low <= grid[0] * 1.001, high >= grid[-1] * 0.999
    if not (at_low or at_high):
        return float(low), float(high), None
    return (
        None if at_low else float(low),
        None if at_high else float(high),
        f"the interval reaches the {'fewest' if at_low else 'most'} threads tested",
    )
