"""The ratio for the most samples/s: where supply crosses demand.

With fewer threads for each accelerator the environments are the limit, with more the accelerator is. The
crossing c* solves S(c*) = D(1), with one accelerator (or the nearest amount that was tested). Its interval
is the set of c at which the two cannot be told apart, `|log S(c) - log D(1)| <= t se(c)` (Fieller 1954, JRSS
B 16:175, for a nonlinear curve): no random draws, so the same data always give the same digits, and where
supply levels off the set says by itself that it has no upper end, which draws about the estimate would hide.
With two or three replicates a bootstrap has too few distinct resamples to say anything of the tails.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import optimize

from cgratio.analysis.facts import Origin, Quantity
from cgratio.analysis.identify import Finding
from cgratio.analysis.model import Fit, log_demand, log_supply
from cgratio.analysis.statistics import ONE_REPLICATE
from cgratio.analysis.words import number
from cgratio.analysis.workloads import Workload
from cgratio.results.words import Part

Floats = npt.NDArray[np.float64]

TOLERANCE = 0.05
"""Within this fraction of the best rate a thread count is as good as the best."""

REACH = 64.0
"""Crossings are looked for up to this many times above and below the tested range."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """Threads for each accelerator that trials covered."""

    low: float
    high: float


def tested_range(workload: Workload) -> Range | None:
    """From the least to the most c/a of whole trials and of supply trials paired with demand trials."""
    whole = [t.threads / t.amount for t in workload.of(Part.WHOLE) if t.threads and t.amount]
    supply = [trial.threads for trial in workload.of(Part.SUPPLY) if trial.threads]
    demand = [trial.amount for trial in workload.of(Part.DEMAND) if trial.amount]
    ratios = whole + [threads / amount for threads in supply for amount in demand]
    return Range(low=min(ratios), high=max(ratios)) if ratios else None


def reference_amount(workload: Workload) -> float:
    """The accelerators at which supply is held against demand: one, or the nearest to it that was tested.

    Neither supply nor demand need be proportional, so the ratio may depend on the size of the job.
    """
    amounts = [trial.amount for trial in workload.trials if trial.amount]
    return min(max(1.0, min(amounts)), max(amounts)) if amounts else 1.0


def most_threads(workload: Workload) -> float:
    """The most hardware threads that environments had in any trial."""
    return max((trial.threads for trial in workload.trials if trial.threads), default=1.0)


def crossing(finding: Finding, *, tested: Range | None, threads: float, amount: float, unit: str) -> Quantity:
    """Threads for each accelerator at which supply meets demand.

    Args:
        finding: the fit and what it may be asked.
        tested: range of c/a that trials covered.
        threads: the most that trials had. No threads supply nothing, which is known without a trial, so all
            up to this many is within the tested range.
        amount: accelerators a at which they are compared.
        unit: as printed.
    """
    reasons = dict.fromkeys(reason for reason in (finding.supply_reason, finding.demand_reason) if reason)
    if finding.sides is None or tested is None or reasons:
        return Quantity.unknown(
            unit=unit, reason="not identifiable: " + ("; ".join(reasons) or "no trial has both sides")
        )
    fit = finding.sides
    least, most = tested.low / REACH, tested.high * REACH

    def gap(log_threads: float) -> float:
        return float(_gap(fit.theta, np.array([amount * math.exp(log_threads)]), amount)[0])

    if gap(math.log(most)) <= 0.0:
        supplied, taken = number(float(fit.supply(most * amount))), number(float(fit.demand(amount)))
        return Quantity.unknown(
            unit=unit,
            reason=f"not identifiable: supply levels off at {supplied} samples/s, below the {taken} samples/s"
            " that the accelerator can take",
        )
    if gap(math.log(least)) >= 0.0:
        return Quantity.unknown(
            unit=unit,
            reason=f"not identifiable: {least:.3g} {unit} already supply more than it takes",
        )
    value = math.exp(optimize.brentq(gap, math.log(least), math.log(most), xtol=1e-10))
    low, high, reason = _interval(fit, value=value, amount=amount, least=least, most=most)
    origin = Origin.FITTED if value * amount <= threads * (1.0 + 1e-9) else Origin.EXTRAPOLATED
    return Quantity(value=value, low=low, high=high, unit=unit, origin=origin, reason=reason)


def near_optimal(
    finding: Finding, *, optimum: Quantity, threads: float, amount: float, tolerance: float = TOLERANCE
) -> tuple[int, ...]:
    """Whole threads per accelerator with which enough actors come within `tolerance` of the best rate.

    The best is D(a), what the accelerators take. Counts go up to the most threads that any trial had, and to
    the first at or above the crossing, whether tested or not.

    Args:
        finding: the fit.
        optimum: the crossing.
        threads: most threads that were tested.
        amount: accelerators at which the crossing was taken.
        tolerance: fraction of the best rate.
    """
    if finding.sides is None or optimum.value is None:
        return ()
    last = max(math.floor(threads / amount + 1e-9), math.ceil(optimum.value), 1)
    counts = range(1, last + 1)
    supply = finding.sides.supply(amount * np.array(counts, dtype=np.float64))
    wanted = (1.0 - tolerance) * float(finding.sides.demand(amount))
    return tuple(count for count, rate in zip(counts, supply, strict=True) if rate >= wanted)


def service_time_ratio(workload: Workload) -> tuple[float, str] | None:
    """The ratio by service times: seconds of one thread over seconds of one accelerator, per sample.

    By the utilisation law (Denning and Buzen 1978) both sides are equally busy when the thread count per
    accelerator is the ratio of their service times. It comes from busy times, not from rates, so it checks
    the crossing independently. Taken over the whole trials with most actors, whose batches are largest, at
    the accelerator amount of the crossing.

    Returns:
        The ratio and the words that say what it rests on; None when service times are missing.
    """
    amount = reference_amount(workload)
    timed = [
        trial
        for trial in workload.of(Part.WHOLE)
        if trial.env_s_per_sample and trial.device_s_per_sample and trial.amount == amount
    ]
    if not timed:
        return None
    most = max(trial.actors or 0.0 for trial in timed)
    chosen = [trial for trial in timed if (trial.actors or 0.0) == most]
    samples = sum(trial.samples for trial in chosen)
    env = sum((trial.env_s_per_sample or 0.0) * trial.samples for trial in chosen) / samples
    device = sum((trial.device_s_per_sample or 0.0) * trial.samples for trial in chosen) / samples
    words = (
        f"{env * 1e6:.4g} us of a thread and {device * 1e6:.4g} us of an accelerator for each sample"
        f" at {most:g} actors"
    )
    return env / device, words


def scaled(quantity: Quantity, *, factor: float, unit: str) -> Quantity:
    """The same quantity counted in another unit."""

    def times(number: float | None) -> float | None:
        return None if number is None else number * factor

    return Quantity(
        value=times(quantity.value),
        low=times(quantity.low),
        high=times(quantity.high),
        unit=unit,
        origin=quantity.origin,
        reason=quantity.reason,
    )


def _gap(theta: Floats, threads: Floats, amount: float) -> Floats:
    return np.asarray(log_supply(theta, threads) - log_demand(theta, np.full_like(threads, amount)))


def _interval(
    fit: Fit, *, value: float, amount: float, least: float, most: float
) -> tuple[float | None, float | None, str | None]:
    """The set of thread counts at which supply and demand cannot be told apart."""
    if fit.covariance is None:
        return None, None, ONE_REPLICATE

    def excess(log_threads: float, sign: float) -> float:
        threads = np.array([amount * math.exp(log_threads)])
        half = fit.half_width(lambda theta: _gap(theta, threads, amount))
        assert half is not None
        return float(_gap(fit.theta, threads, amount)[0] + sign * half[0])

    centre = math.log(value)
    low = _edge(lambda x: excess(x, 1.0), centre, np.linspace(centre, math.log(least), 65)[1:])
    high = _edge(lambda x: excess(x, -1.0), centre, np.linspace(centre, math.log(most), 65)[1:])
    missing = [name for name, edge in (("lower", low), ("upper", high)) if edge is None]
    reason = f"the data set no {' and no '.join(missing)} end to the interval" if missing else None
    return low, high, reason


def _edge(excess: Callable[[float], float], centre: float, steps: Floats) -> float | None:
    """First change of sign away from the centre, refined; None when there is none."""
    at_centre = excess(centre)
    inner = centre
    for outer in steps:
        if excess(float(outer)) * at_centre <= 0.0:
            return math.exp(optimize.brentq(excess, inner, float(outer), xtol=1e-8))
        inner = float(outer)
    return None
