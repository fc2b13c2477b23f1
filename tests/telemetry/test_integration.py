import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cgratio.telemetry.integration import (
    EnergyReason,
    Gain,
    PowerModel,
    counter_energy,
    integrated_energy,
    modelled_energy,
)

READINGS_J = [262138.328850, 10.0]


def stepping(
    *, watts: float, update_s: float, period_s: float, until: float
) -> tuple[list[float], list[float]]:
    """A counter that takes over the true energy every `update_s`, as NVML's does."""
    times = [i * period_s for i in range(round(until / period_s) + 1)]
    return times, [watts * math.floor(t / update_s + 1e-9) * update_s for t in times]


def test_a_step_down_without_a_range_is_unknown() -> None:
    # Case C5.
    result = counter_energy([0, 1], READINGS_J, t0=0, t1=1)
    assert (result.joules, result.reason) == (None, EnergyReason.COUNTER_RESET)


@pytest.mark.parametrize("values", [[5, 5, 5], [5, 5, 15]])
def test_less_than_the_counters_period_is_too_short(values: list[float]) -> None:
    # Case C4, whether or not a step falls into the 50 ms.
    result = counter_energy([0, 0.025, 0.05], values, t0=0, t1=0.05, update_s=0.1)
    assert (result.joules, result.reason) == (None, EnergyReason.TOO_SHORT)


@pytest.mark.parametrize(
    ("until", "reason"), [(0.5, EnergyReason.TOO_SHORT), (5.0, EnergyReason.COUNTER_STUCK)]
)
def test_a_counter_that_never_moves_is_not_0_joules(until: float, reason: EnergyReason) -> None:
    times = [0, until]
    result = counter_energy(times, [7, 7], t0=0, t1=until, update_s=0.1)
    assert (result.joules, result.reason) == (None, reason)


@pytest.mark.parametrize(("t0", "t1"), [(0, 30), (5, 16), (10, 11), (-1, 10)])
def test_readings_that_end_early_are_coverage(t0: float, t1: float) -> None:
    result = counter_energy([0, 1, 2, 3], [0, 100, 200, 300], t0=t0, t1=t1)
    assert (result.joules, result.reason) == (None, EnergyReason.COVERAGE)


@given(
    watts=st.floats(1, 1000),
    update_s=st.sampled_from([0.02, 0.05, 0.1]),
    period_s=st.sampled_from([0.01, 0.03, 0.1, 0.13]),
    t0=st.floats(0.5, 2),
    length=st.floats(0.5, 6),
)
def test_a_steady_load_is_found_within_the_bound(
    watts: float, update_s: float, period_s: float, t0: float, length: float
) -> None:
    times, values = stepping(watts=watts, update_s=update_s, period_s=period_s, until=10)
    result = counter_energy(times, values, t0=t0, t1=t0 + length, update_s=update_s)
    assert result.joules is not None
    assert result.plus_minus_j is not None
    assert abs(result.joules - watts * length) <= result.plus_minus_j + 1e-6


@given(
    powers=st.lists(st.floats(0.1, 500), min_size=5, max_size=30),
    cut=st.integers(1, 28),
)
def test_parts_add_up(powers: list[float], cut: int) -> None:
    assume(cut < len(powers))
    level = [0.0]
    for watts in powers:
        level.append(level[-1] + watts)
    times = [float(i) for i in range(len(level))]
    end = times[-1]
    whole = counter_energy(times, level, t0=0, t1=end)
    first, second = (counter_energy(times, level, t0=a, t1=b) for a, b in ((0, cut), (cut, end)))
    assert whole.joules == pytest.approx(level[-1])
    assert whole.joules == pytest.approx((first.joules or 0) + (second.joules or 0))


def test_the_bound_of_a_counter_shrinks_with_the_interval() -> None:
    times, values = stepping(watts=100, update_s=0.1, period_s=0.1, until=60)
    bounds = [
        counter_energy(times, values, t0=1, t1=1 + n, update_s=0.1).plus_minus_j / (100 * n)
        for n in (1, 10, 50)
    ]
    assert bounds[0] <= 0.21
    assert bounds[2] <= 0.0042
    assert bounds == sorted(bounds, reverse=True)


def test_a_sensors_gain_is_added_to_the_bound() -> None:
    times, values = [0, 10], [0, 2000]
    plain = counter_energy(times, values, t0=0, t1=10)
    gained = counter_energy(times, values, t0=0, t1=10, gain=Gain(part=0.05, watts=5))
    assert gained.plus_minus_j == pytest.approx(plain.plus_minus_j + 100)
    assert Gain(part=0.05, watts=5).joules(100, seconds=10) == 50


def test_power_integrates_to_energy() -> None:
    # Case C3.
    times = [i / 10 for i in range(101)]
    result = integrated_energy(times, [150.0] * 101, t0=0, t1=10, gain=Gain(part=0.05, watts=5))
    assert result.joules == pytest.approx(1500)
    assert result.plus_minus_j == pytest.approx(75)


def test_two_readings_are_enough_for_power_that_is_read_slowly() -> None:
    assert integrated_energy([0, 10], [150, 150], t0=0, t1=10).joules == pytest.approx(1500)


@given(
    watts=st.lists(st.floats(0, 1000), min_size=3, max_size=30),
    t0=st.floats(0, 1),
    length=st.floats(0.5, 28),
)
def test_integrated_energy_lies_between_the_least_and_the_greatest_power(
    watts: list[float], t0: float, length: float
) -> None:
    assume(t0 + length <= len(watts) - 1)
    times = [float(i) for i in range(len(watts))]
    result = integrated_energy(times, watts, t0=t0, t1=t0 + length)
    assert result.joules is not None
    assert min(watts) * length - 1e-6 <= result.joules <= max(watts) * length + 1e-6


def test_a_gap_in_power_readings_is_coverage_or_a_wide_bound() -> None:
    times = [i / 10 for i in range(101)]
    held_up = [t for t in times if not 4 < t < 7]
    assert integrated_energy(held_up, [100] * len(held_up), t0=0, t1=10).reason is EnergyReason.COVERAGE
    short = [t for t in times if not 4 < t < 4.8]
    result = integrated_energy(short, [100] * len(short), t0=0, t1=10)
    assert result.joules == pytest.approx(1000)
    assert result.plus_minus_j == pytest.approx(80)


def test_no_readings_around_the_interval_is_too_short() -> None:
    for times in ([], [1.0], [0.0, 1.0]):
        result = integrated_energy(times, [1.0] * len(times), t0=5, t1=6)
        assert (result.joules, result.reason) == (None, EnergyReason.TOO_SHORT)


def test_a_model_is_bounded_by_idle_and_full_power() -> None:
    model = PowerModel(idle_w=50, max_w=150, packages=2)
    result = modelled_energy(model, [0, 5, 10], [0.25, 0.25, 0.25], t0=0, t1=10)
    assert (result.joules, result.plus_minus_j) == (pytest.approx(1500), pytest.approx(1500))


@pytest.mark.parametrize(
    ("idle", "most", "packages"), [(10, 5, 1), (-1, 5, 1), (1, math.inf, 1), (math.nan, 5, 1), (1, 5, 0)]
)
def test_a_model_that_cannot_be_meant_is_refused(idle: float, most: float, packages: int) -> None:
    with pytest.raises(ValueError, match="power model"):
        PowerModel(idle_w=idle, max_w=most, packages=packages)
