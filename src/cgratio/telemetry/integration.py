"""Joules of one device from its counter, its power readings or a model of its power. Pure.

Every result carries a bound on its error, `plus_minus_j`: parts are added, not combined in quadrature, since
none of them is a standard deviation. What it covers is said at each function.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from statistics import median

# An interval must hold this many update periods of a counter, else the steps are most of the reading.
_FEWEST_UPDATES = 2
# A counter that stands still this many update periods is stuck (as under some hypervisors), not early.
_STUCK_UPDATES = 20
# Readings may be missing over this part of an interval; beyond it, the mean power is a guess.
_MOST_MISSING = 0.1
# A gap this many times longer than usual is a sampler that was held up: what happened in it is not known.
_LONG_GAP = 5


class EnergyReason(StrEnum):
    """Why joules are missing, or are not the whole of their boundary."""

    TOO_SHORT = "too_short"
    """The interval is too short for the counter's steps, or holds too few readings."""
    COVERAGE = "coverage"
    """Readings are missing over too much of the interval."""
    COUNTER_RESET = "counter_reset"
    """The counter went down and its range is not known."""
    COUNTER_STUCK = "counter_stuck"
    """The counter never moved."""
    PARTIAL = "partial"
    """Some devices of the boundary could not be read: the joules are a part of it."""
    NO_SENSOR = "no_sensor"
    """Nothing on this host measures the boundary, and no sensor says why."""
    NO_POWER_MODEL = "no_power_model"
    """Idle and full power of this host were not given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Joules:
    """Energy of one device over one interval; `joules` None comes with a reason."""

    joules: float | None
    plus_minus_j: float | None = None
    reason: EnergyReason | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """A sensor's error as its maker states it: the larger of a part of the reading and a fixed power."""

    part: float = 0.0
    watts: float = 0.0

    def joules(self, joules: float, *, seconds: float) -> float:
        """The bound that follows for an amount of energy over a time."""
        return max(self.part * joules, self.watts * seconds)


EXACT = Gain()
"""For sensors whose maker states no error: the bound then covers timing alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerModel:
    """CPU power as a straight line of utilisation; watts are per package.

    Source: Fan, Weber and Barroso, "Power provisioning for a warehouse-sized computer", ISCA 2007, section 3.

    Raises:
        ValueError: If the powers are not in order, or there is no package.
    """

    idle_w: float
    max_w: float
    packages: int = 1

    def __post_init__(self) -> None:
        """Refuses a model that cannot be meant."""
        if not 0 <= self.idle_w <= self.max_w < float("inf"):
            raise ValueError(
                f"power model: 0 <= idle <= max should hold, not {self.idle_w} W and {self.max_w} W"
            )
        if self.packages < 1:
            raise ValueError(f"power model: packages should be 1 or more, not {self.packages}")


def counter_energy(
    times: Sequence[float],
    values: Sequence[float],
    *,
    t0: float,
    t1: float,
    update_s: float = 0.0,
    gain: Gain = EXACT,
) -> Joules:
    """Energy over an interval from a cumulative counter, locked to the counter's own steps.

    A reading of a counter that moves in steps does not say how old its value is. So only readings at which it
    has just moved (and those longer apart than it ever stands still) count; between them it is a straight
    line.

    The bound: at each end, the power there over the time by which the step may be off, plus what an uneven
    power between the two steps around the end may shift; plus the sensor's gain.

    Args:
        times: When each value was read, in s, strictly ascending.
        values: Readings in J; a sensor whose counter wraps continues it, so a step down is a reset.
        t0: Start of the interval in s, on the clock of `times`.
        t1: End of the interval in s.
        update_s: The counter's update period in s; 0 for one that is up to date at every reading.
        gain: The sensor's error.

    Returns:
        The joules, or a reason: `too_short`, `coverage`, `counter_reset`, `counter_stuck`.
    """
    if t1 - t0 <= 0 or t1 - t0 < _FEWEST_UPDATES * update_s or len(times) < 2:
        return Joules(joules=None, reason=EnergyReason.TOO_SHORT)
    level = values
    if any(after < before for before, after in pairwise(level)):
        return Joules(joules=None, reason=EnergyReason.COUNTER_RESET)
    if level[-1] == level[0]:
        stuck = times[-1] - times[0] >= _STUCK_UPDATES * update_s
        return Joules(joules=None, reason=EnergyReason.COUNTER_STUCK if stuck else EnergyReason.TOO_SHORT)
    knots = [0] + [
        i
        for i in range(1, len(times))
        if level[i] > level[i - 1] or times[i] - times[i - 1] >= _FEWEST_UPDATES * update_s
    ]
    ages = [update_s] + [min(update_s, times[i] - times[i - 1]) for i in knots[1:]]
    line = _Line(times=[times[i] for i in knots], level=[level[i] for i in knots], ages=ages)
    outside = max(line.times[0] - t0, 0) + max(t1 - line.times[-1], 0)
    if outside > max(_MOST_MISSING * (t1 - t0), _FEWEST_UPDATES * update_s):
        return Joules(joules=None, reason=EnergyReason.COVERAGE)
    (start, start_error), (end, end_error) = line.at(t0), line.at(t1)
    joules = end - start
    bound = start_error + end_error + gain.joules(joules, seconds=t1 - t0)
    return Joules(joules=joules, plus_minus_j=bound)


def integrated_energy(
    times: Sequence[float], watts: Sequence[float], *, t0: float, t1: float, gain: Gain = EXACT
) -> Joules:
    """Energy over an interval from power readings, by the trapezoid rule.

    The bound: between two readings, power lies anywhere between them, so half their difference over the gap;
    where a gap is much longer than usual or an end lies outside the readings, all of the power there; plus
    gain.

    Args:
        times: When each reading was taken, in s, strictly ascending.
        watts: Readings in W.
        t0: Start of the interval in s, on the clock of `times`.
        t1: End of the interval in s.
        gain: The sensor's error.

    Returns:
        The joules, or a reason: `too_short`, `coverage`.
    """
    inside = bisect_right(times, t1) - bisect_left(times, t0)
    if t1 - t0 <= 0 or len(times) < 2 or (inside == 0 and not times[0] <= t0 < t1 <= times[-1]):
        return Joules(joules=None, reason=EnergyReason.TOO_SHORT)
    usual_gap = median(b - a for a, b in pairwise(times))
    # Beyond the first and the last reading, power is taken as it was there.
    points = [(min(t0, times[0]), watts[0]), *zip(times, watts, strict=True), (max(t1, times[-1]), watts[-1])]
    joules = bound = missing = 0.0
    for i, ((ta, wa), (tb, wb)) in enumerate(pairwise(points)):
        a, b = max(ta, t0), min(tb, t1)
        if b <= a:
            continue
        slope = (wb - wa) / (tb - ta)
        mean_w = wa + slope * ((a + b) / 2 - ta)
        joules += mean_w * (b - a)
        beyond_an_end = i in {0, len(points) - 2}
        if beyond_an_end or tb - ta > _LONG_GAP * usual_gap:
            missing += b - a
            bound += mean_w * (b - a)
        else:
            bound += abs(wb - wa) / 2 * (b - a)
    if missing > max(_MOST_MISSING * (t1 - t0), _FEWEST_UPDATES * usual_gap):
        return Joules(joules=None, reason=EnergyReason.COVERAGE)
    return Joules(joules=joules, plus_minus_j=bound + gain.joules(joules, seconds=t1 - t0))


def modelled_energy(
    model: PowerModel, times: Sequence[float], utilisation: Sequence[float], *, t0: float, t1: float
) -> Joules:
    """Energy over an interval from utilisation through a power model.

    The bound is all that the host can draw: from idle to full power over the whole interval.

    Args:
        model: Idle and full power of the host's packages.
        times: When each utilisation was read, in s, strictly ascending.
        utilisation: Busy part of the host's CPU time, 0 to 1.
        t0: Start of the interval in s, on the clock of `times`.
        t1: End of the interval in s.

    Returns:
        The joules, or a reason: `too_short`, `coverage`.
    """
    watts = [model.packages * (model.idle_w + (model.max_w - model.idle_w) * u) for u in utilisation]
    result = integrated_energy(times, watts, t0=t0, t1=t1)
    if result.joules is None:
        return result
    least, most = (w * model.packages * (t1 - t0) for w in (model.idle_w, model.max_w))
    return Joules(joules=result.joules, plus_minus_j=max(result.joules - least, most - result.joules))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """A counter as a straight line between the readings at which it moved."""

    times: Sequence[float]
    level: Sequence[float]
    ages: Sequence[float]

    def at(self, t: float) -> tuple[float, float]:
        """The counter at a time, and a bound on its error, in J; the outer pieces reach beyond the ends."""
        i = min(max(bisect_right(self.times, t), 1), len(self.times) - 1)
        ta, tb = self.times[i - 1], self.times[i]
        power = (self.level[i] - self.level[i - 1]) / (tb - ta)
        to_knot = min(abs(t - ta), abs(t - tb))
        return self.level[i - 1] + power * (t - ta), power * (to_knot + max(self.ages[i - 1 : i + 1]))
