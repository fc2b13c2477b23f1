"""Where the warm-up of a trial ends, and how precisely its steady windows give the mean.

What comes from here is precision *within* one trial. A launch differs from the next by more than its own
windows show, so statements about a point rest on replicates (see `statistics`).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import special

BATCH = 5
"""Windows in a batch: the 5 of MSER-5."""

MIN_BATCHES = 4
"""With fewer whole batches than this, MSER runs on the windows themselves."""

MIN_WINDOWS = 5
"""Fewer windows than this say nothing about the spread of their mean."""

Floats = npt.NDArray[np.float64]


def mser5_cut(values: npt.ArrayLike, *, floor: int, cap: int) -> int:
    """Finds the first steady window by the marginal standard error rule on batches of five.

    The cut is the one that minimises the marginal standard error of what remains,
    `z(d) = sum((y - mean(y))^2) / m^2` over the m batch means after cut d (White 1997, SIMULATION
    69:323; batches of five: White, Cobb and Spratt 2000, Winter Simulation Conference). As there, only cuts
    that leave at least half of the series are looked at: near the end the few values left agree by chance.
    With fewer than four whole batches the rule runs on single windows, since four means are the least
    that can tell a trend from noise.

    Args:
        values: window means in order of time, shape (windows,), any unit; all finite.
        floor: the cut is never before this window, however steady the start looks.
        cap: the cut is never after this window, even if the series still drifts.

    Returns:
        Index of the first steady window, `floor <= cut <= cap`. It may equal or exceed the number of
        windows when there are no more windows than `floor`.

    Raises:
        ValueError: `floor` is negative or above `cap`, or a value is not finite.
    """
    if not 0 <= floor <= cap:
        raise ValueError(f"need 0 <= floor <= cap, not floor={floor} and cap={cap}")
    series = _finite(values)[floor:]
    size = BATCH if series.size >= BATCH * MIN_BATCHES else 1
    count = series.size // size
    means = series[: count * size].reshape(count, size).mean(axis=1)
    last = min(count // 2, (cap - floor) // size)
    if last < 1:
        return floor
    remainders = (means[first:] for first in range(last + 1))
    errors = [float(np.sum((rest - rest.mean()) ** 2)) / rest.size**2 for rest in remainders]
    # A flat series differs only by rounding from cut to cut; the earliest of equal cuts wins.
    best = min(errors)
    tolerance = 1e-12 * float(np.max(np.abs(means))) ** 2
    cut = next(index for index, error in enumerate(errors) if error <= best + tolerance)
    return floor + cut * size


def relative_half_width(values: npt.ArrayLike, *, confidence: float = 0.95) -> float | None:
    """Half the confidence interval of the mean of autocorrelated windows, as a share of the mean.

    Windows are taken as a first-order autoregression: the lag-1 correlation r, corrected for its bias in
    short series by `(1 + 3r) / n` (Kendall 1954, Biometrika 41:403), gives the effective sample size
    `n (1 - r) / (1 + r)` (Zwiers and von Storch 1995, J. Climate 8:336); a negative r counts as 0,
    so the interval is never narrower than for independent windows.

    Args:
        values: steady window means, shape (windows,), any unit.
        confidence: two-sided, in (0, 1).

    Returns:
        The half-width over the absolute mean (0.02 is 2 %), or None when there are fewer than five windows,
        fewer than two independent ones, or a mean of zero.

    Raises:
        ValueError: a value is not finite or the confidence is not in (0, 1).
    """
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence must lie between 0 and 1, not {confidence}")
    series = _finite(values)
    count = series.size
    if count < MIN_WINDOWS or series.mean() == 0.0:
        return None
    deviations = series - series.mean()
    total = float(np.sum(deviations**2))
    if total <= (1e-12 * float(np.max(np.abs(series)))) ** 2 * count:
        return 0.0
    raw = float(np.sum(deviations[1:] * deviations[:-1])) / total
    lag_one = max(0.0, raw + (1.0 + 3.0 * raw) / count)
    if lag_one >= 1.0:
        return None
    inflation = (1.0 + lag_one) / (1.0 - lag_one)
    independent = count / inflation
    if independent < 2.0:
        return None
    # The spread about their own mean understates the spread of correlated values by (n - inflation)/(n - 1).
    variance = total / (count - inflation)
    quantile = float(special.stdtrit(independent - 1.0, 0.5 + confidence / 2.0))
    return quantile * float(np.sqrt(variance / independent)) / abs(float(series.mean()))


def _finite(values: npt.ArrayLike) -> Floats:
    series = np.asarray(values, dtype=np.float64)
    if series.ndim != 1 or not np.all(np.isfinite(series)):
        raise ValueError("window means must be one finite number each, in one dimension")
    return series
