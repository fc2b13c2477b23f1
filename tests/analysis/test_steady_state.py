import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cgratio.analysis.steady_state import mser5_cut, relative_half_width

SERIES = st.lists(st.floats(0.0, 1e6), min_size=0, max_size=80).map(np.array)


@given(values=SERIES, floor=st.integers(0, 20), room=st.integers(0, 60))
def test_the_cut_lies_between_floor_and_cap(values: np.ndarray, floor: int, room: int) -> None:
    assert floor <= mser5_cut(values, floor=floor, cap=floor + room) <= floor + room


@given(values=SERIES, scale=st.sampled_from([0.25, 2.0, 1024.0]))
def test_the_cut_does_not_depend_on_the_unit(values: np.ndarray, scale: float) -> None:
    assert mser5_cut(values, floor=2, cap=40) == mser5_cut(values * scale, floor=2, cap=40)


@given(level=st.floats(0.1, 1e6), windows=st.integers(0, 60))
def test_a_flat_series_is_steady_from_the_floor_on(level: float, windows: int) -> None:
    assert mser5_cut(np.full(windows, level), floor=3, cap=50) == 3


@pytest.mark.parametrize(("windows", "warmup"), [(12, 3), (20, 6), (60, 15), (120, 40)])
def test_a_slow_start_is_cut(windows: int, warmup: int) -> None:
    random = np.random.default_rng(1)
    values = 1000.0 * (1.0 + 0.02 * random.standard_normal(windows))
    values[:warmup] *= np.linspace(0.2, 0.8, warmup)
    cut = mser5_cut(values, floor=0, cap=windows)
    assert warmup <= cut <= windows // 2 + 1


def test_a_series_that_drifts_to_its_end_is_cut_at_the_cap() -> None:
    assert mser5_cut(np.arange(1.0, 41.0), floor=0, cap=10) == 10


@pytest.mark.parametrize(("floor", "cap"), [(-1, 5), (6, 5)])
def test_impossible_bounds_are_refused(floor: int, cap: int) -> None:
    with pytest.raises(ValueError, match=f"floor={floor} and cap={cap}"):
        mser5_cut(np.ones(10), floor=floor, cap=cap)


@pytest.mark.parametrize("values", [[1.0, np.nan], [np.inf, 1.0], [[1.0], [2.0]]])
def test_values_that_are_no_window_means_are_refused(values: list) -> None:
    with pytest.raises(ValueError, match="one finite number each"):
        mser5_cut(values, floor=0, cap=1)
    with pytest.raises(ValueError, match="one finite number each"):
        relative_half_width(values)


@pytest.mark.parametrize("values", [[], [1.0], [1.0, 2.0, 3.0, 4.0], [0.0] * 9, [-1.0, 1.0] * 5])
def test_too_little_to_say_gives_none(values: list[float]) -> None:
    assert relative_half_width(np.array(values)) is None


def test_equal_windows_have_no_width() -> None:
    assert relative_half_width(np.full(8, 123.4)) == 0.0


def test_a_higher_confidence_is_wider() -> None:
    values = np.random.default_rng(2).normal(100.0, 3.0, 30)
    assert relative_half_width(values, confidence=0.99) > relative_half_width(values)
    with pytest.raises(ValueError, match="between 0 and 1"):
        relative_half_width(values, confidence=95)


@pytest.mark.parametrize(
    ("correlation", "windows", "least"), [(0.0, 10, 0.94), (0.3, 40, 0.92), (0.6, 40, 0.91)]
)
def test_the_interval_covers_the_mean_of_correlated_windows(
    correlation: float, windows: int, least: float
) -> None:
    random = np.random.default_rng(3)
    covered, told = 0, 0
    for _ in range(1000):
        steps = random.standard_normal(windows + 50)
        values = np.zeros(windows + 50)
        for i in range(1, values.size):
            values[i] = correlation * values[i - 1] + steps[i]
        values = 100.0 + values[50:]
        half = relative_half_width(values)
        if half is not None:
            told += 1
            covered += abs(values.mean() - 100.0) <= half * values.mean()
    assert told > 900
    assert least <= covered / told <= 0.985
