from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cgratio.trial.request import Limits
from cgratio.trial.windows import StopReason, WindowCutter, between, first_steady, stop_reason
from cgratio.workload.protocol import Count

LIMITS = Limits(window_s=1.0, warmup_min_s=1.0, warmup_max_s=10.0, max_s=30.0, min_windows=5, half_width=0.02)


def count(time_s, samples):
    return Count(
        time_s=time_s,
        samples=samples,
        batches=samples // 4,
        updates=samples // 320,
        learned=samples,
        lag_sum=0.0,
        lag_max=0,
        episodes=0,
        recent_return=None,
        environment_cpu_s=time_s / 2,
        device_cpu_s=None,
        stages={"inference": time_s / 4},
    )


def windows(rates):
    cutter = WindowCutter(window_s=1.0)
    time_s, samples = 5.0, 1_000_000
    cutter.add(count(time_s, samples))
    for rate in rates:
        time_s, samples = time_s + 1, samples + rate
        cutter.add(count(time_s, samples))
    return cutter.windows


@given(
    steps=st.lists(st.tuples(st.floats(0.01, 3), st.integers(0, 500)), min_size=1, max_size=60),
    start=st.integers(1, 10**9),
)
def test_windows_are_long_enough_and_lose_no_sample(steps, start):
    # Case A4: only differences count, so where a counter starts does not matter.
    cutter = WindowCutter(window_s=1.0)
    time_s, samples = 100.0, start
    cutter.add(count(time_s, samples))
    for duration, more in steps:
        time_s, samples = time_s + duration, samples + more
        cutter.add(count(time_s, samples))
    assert all(window.duration_s >= 1.0 for window in cutter.windows)
    assert sum(window.samples for window in cutter.windows) == cutter.marks[-1].samples - start
    assert len(cutter.marks) == len(cutter.windows) + 1
    for left, right in zip(cutter.windows, cutter.windows[1:], strict=False):
        assert left.end_s == right.start_s


def test_the_set_up_before_the_first_sample_is_no_window():
    cutter = WindowCutter(window_s=1.0)
    for second in range(10):
        cutter.add(count(float(second), 0))
    assert cutter.marks == []
    cutter.add(count(10.0, 1))
    assert cutter.add(count(11.0, 101))
    assert [window.rate for window in cutter.windows] == [100.0]


def test_what_is_unknown_stays_unknown():
    window = between(count(1.0, 10), count(3.0, 20))
    assert window.device_cpu_s is None
    assert window.environment_cpu_s == 1.0
    assert window.stages == {"inference": 0.5}


def test_the_warm_up_is_cut_off():
    rates = [10, 200, 500, 800, *([1000, 1010, 990, 1005, 995] * 4)]
    assert 3 <= first_steady(windows(rates), limits=LIMITS) <= 6


def test_a_trial_stops_when_its_interval_is_narrow():
    steady = windows([1000, 1001, 999, 1000, 1002, 998, 1000])
    assert stop_reason(steady[:3], limits=LIMITS, trains=True) is None
    assert stop_reason(steady, limits=LIMITS, trains=True) is StopReason.NARROW_ENOUGH


def test_a_noisy_trial_runs_to_the_cap_and_no_further():
    random = np.random.default_rng(0)
    noisy = windows(random.integers(100, 2000, 40).tolist())
    reasons = [stop_reason(noisy[:length], limits=LIMITS, trains=True) for length in range(1, 41)]
    assert reasons.index(StopReason.CAP) == 29
    assert set(reasons[:29]) == {None}


@pytest.mark.parametrize("length", [0, 1])
def test_too_little_never_stops_a_trial(length):
    assert stop_reason(windows([1000] * length), limits=LIMITS, trains=True) is None


def test_a_trial_that_trains_goes_on_until_its_learner_has_made_enough_updates():
    slow = windows([30] * 70)  # an update in every tenth window
    reasons = [stop_reason(slow[:length], limits=LIMITS, trains=True) for length in range(1, 71)]
    assert reasons.index(StopReason.NARROW_ENOUGH) >= 20
    assert stop_reason(slow[:10], limits=LIMITS, trains=False) is StopReason.NARROW_ENOUGH
    never = replace(LIMITS, min_updates=1000)
    reasons = [stop_reason(slow[:length], limits=never, trains=True) for length in range(1, 71)]
    assert reasons.index(StopReason.CAP) == 59
