"""Means and intervals of points, from replicates.

The truth about a point's spread is how one launch differs from the next; windows within a launch only show
that launch's precision. Two or three replicates of one point cannot show it either, but all points together
can: the standard deviation of the log of a rate is pooled over the points, as a one-way analysis of variance
does (Montgomery, Design and Analysis of Experiments, ch. 3), and the t quantile of the pooled degrees of
freedom makes the interval. Logs, because launches differ by per cents: the same few per cent at 500 and at
5000 samples/s.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from cgratio.analysis.facts import Origin, Quantity

CONFIDENCE = 0.95

ONE_REPLICATE = "one replicate of every point: how launches differ was not seen, so there is no interval"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Between-launch standard deviation of a log, pooled over points.

    Attributes:
        sd: relative (log) standard deviation, 0.05 is 5 %; None without replicates.
        degrees: degrees of freedom it rests on.
    """

    sd: float | None
    degrees: int


def pooled_spread(groups: Iterable[Sequence[float]]) -> Spread:
    """Pools the standard deviation of log values over groups of replicates.

    Args:
        groups: positive values of the replicates of each point, any lengths and one unit.
    """
    squares = 0.0
    degrees = 0
    for group in groups:
        if len(group) > 1:
            logs = np.log(np.asarray(group, dtype=np.float64))
            squares += float(np.sum((logs - logs.mean()) ** 2))
            degrees += len(group) - 1
    return Spread(sd=math.sqrt(squares / degrees) if degrees else None, degrees=degrees)


def effective_count(weights: Sequence[float]) -> float:
    """Number of equally weighted replicates worth the same (Kish 1965): `(sum w)^2 / sum w^2`."""
    return sum(weights) ** 2 / sum(weight**2 for weight in weights)


def t_quantile(degrees: float) -> float:
    """Two-sided 95 % quantile of Student's t."""
    return float(stats.t.ppf(0.5 + CONFIDENCE / 2.0, degrees))


def with_interval(
    *, value: float, unit: str, origin: Origin, spread: Spread, replicates: float, systematic: float = 0.0
) -> Quantity:
    """A positive quantity with the interval that its replicates give it.

    Args:
        value: the total over the replicates (total samples / total seconds), never a mean of ratios.
        unit: as printed.
        origin: where the value comes from.
        spread: between-launch spread of this kind of value.
        replicates: (effective) number of replicates in `value`.
        systematic: relative half-width that repeating does not shrink, such as a sensor's gain; added in
            quadrature.
    """
    if spread.sd is None:
        return Quantity(value=value, unit=unit, origin=origin, reason=ONE_REPLICATE)
    half = math.hypot(t_quantile(spread.degrees) * spread.sd / math.sqrt(replicates), systematic)
    low, high = value * math.exp(-half), value * math.exp(half)
    return Quantity(value=value, low=low, high=high, unit=unit, origin=origin)


def unequal_spread_p(groups: Iterable[Sequence[float]]) -> float | None:
    """P value of Levene's test (Brown and Forsythe 1974) that the points spread alike.

    None with fewer than two points of three replicates: with pairs the test has nothing to stand on.
    """
    logs = [np.log(np.asarray(group, dtype=np.float64)) for group in groups if len(group) > 2]
    if len(logs) < 2 or all(float(np.ptp(log)) == 0.0 for log in logs):
        return None
    p = float(stats.levene(*logs, center="median").pvalue)
    return p if math.isfinite(p) else None


def drift(orders: Sequence[float], deviations: Sequence[float]) -> tuple[float, float] | None:
    """Slope of log-rate deviations over the trials' order, and its p value; None with fewer than six."""
    if len(orders) < 6 or len(set(orders)) < 3 or not any(deviations):
        return None
    line = stats.linregress(np.asarray(orders, dtype=np.float64), np.asarray(deviations, dtype=np.float64))
    return float(line.slope), float(line.pvalue)
