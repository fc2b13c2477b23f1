"""Points: totals, intervals, and what becomes of trials that do not count."""

import math

import pytest
from generate import Place, Truth, make_rows, one_row, results_of

from cgratio.analysis.facts import Origin, Point
from cgratio.analysis.points import make_points
from cgratio.analysis.statistics import ONE_REPLICATE, Spread, pooled_spread, with_interval
from cgratio.analysis.trials import read_trials


def points_of(*rows: dict) -> tuple[Point, ...]:
    return make_points(read_trials(results_of(rows).trials))[0]


def energy(*, samples: int, joules: float | None, boundary: str = "gpu_board", **values: object) -> dict:
    return one_row(
        samples=samples,
        samples_per_s=samples / 20.0,
        **{f"energy_{boundary}_j": joules},
        samples_per_joule_boundary=None if joules is None else boundary,
        samples_per_joule_reason="no GPU" if joules is None else None,
        **values,
    )


def test_samples_per_joule_is_total_over_total() -> None:
    (point,) = points_of(energy(samples=100, joules=1.0), energy(samples=10000, joules=200.0, replicate=1))
    assert point.samples_per_joule.value == pytest.approx(10100 / 201)
    assert point.power.value == pytest.approx(201 / 40)


def test_the_rate_is_total_over_total() -> None:
    (point,) = points_of(
        one_row(samples=1000, measured_s=10.0, samples_per_s=100.0),
        one_row(samples=6000, measured_s=30.0, samples_per_s=200.0, replicate=1),
    )
    assert point.rate.value == pytest.approx(175.0)


def test_null_energy_stays_null_and_its_point_stays() -> None:
    # Case D3.
    points = points_of(
        energy(samples=100, joules=None, actors=1),
        energy(samples=100, joules=None, actors=1, replicate=1),
        energy(samples=100, joules=2.0, actors=2),
    )
    assert [point.axes["actors"] for point in points] == [1, 2]
    assert points[0].samples_per_joule.value is None
    assert points[0].samples_per_joule.reason == "no GPU"
    assert points[0].power.origin is Origin.UNKNOWN
    assert points[1].samples_per_joule.value == pytest.approx(50.0)


def test_a_point_counts_only_the_replicates_that_have_energy() -> None:
    (point,) = points_of(energy(samples=100, joules=2.0), energy(samples=900, joules=None, replicate=1))
    assert point.samples_per_joule.value == pytest.approx(50.0)


def test_joules_of_two_boundaries_are_never_added() -> None:
    (point,) = points_of(
        energy(samples=100, joules=1.0, replicate=0),
        energy(samples=100, joules=1.0, replicate=1),
        energy(samples=100, joules=50.0, boundary="node", replicate=2),
    )
    assert point.boundary == "gpu_board"
    assert point.samples_per_joule.value == pytest.approx(100.0)


def test_modelled_energy_says_so() -> None:
    (point,) = points_of(energy(samples=100, joules=1.0, boundary="modelled"))
    assert point.samples_per_joule.origin is Origin.MODELLED
    assert point.power.origin is Origin.MODELLED
    assert point.rate.origin is Origin.MEASURED


def test_modelled_energy_has_no_interval_that_replicates_could_give_it() -> None:
    """They repeat the model's error with it, and could reach beyond what the host can draw."""
    (point,) = points_of(
        *(energy(samples=100, joules=1.0, boundary="modelled", replicate=replicate) for replicate in range(3))
    )
    for quantity in (point.power, point.samples_per_joule):
        assert quantity.value is not None
        assert (quantity.low, quantity.high) == (None, None)
        assert "modelled" in (quantity.reason or "")


def test_a_killed_trial_is_counted_and_enters_no_number() -> None:
    killed = one_row(replicate=1, verdict=["killed:SIGKILL"], status="failed", samples_per_s=1.0)
    (point,) = points_of(one_row(samples_per_s=500.0, samples=10000), killed)
    assert (point.trials, point.valid) == (2, 1)
    assert point.rate.value == pytest.approx(500.0)
    assert point.verdicts == {"killed:SIGKILL": 1}


@pytest.mark.parametrize(
    ("row", "code"),
    [
        (one_row(verdict=["too_short"]), "too_short"),
        (one_row(verdict=None, status="interrupted"), "no_verdict"),
        (one_row(status="failed"), "failed"),
        (one_row(samples_per_s=None, samples=None), "no_rate"),
        (one_row(samples_per_s=0.0, samples=0), "no_rate"),
    ],
)
def test_a_trial_that_does_not_count_says_why(row: dict, code: str) -> None:
    (point,) = points_of(row)
    assert point.valid == 0
    assert point.verdicts == {code: 1}
    assert point.rate.value is None
    assert point.rate.reason


def test_the_order_of_rows_does_not_matter() -> None:
    rows = make_rows(truth=Truth(base_w=20.0), replicates=2)
    forward = {point.point_id: point for point in points_of(*rows)}
    backward = {point.point_id: point for point in points_of(*rows[::-1])}
    assert forward.keys() == backward.keys()
    for name, point in forward.items():
        assert point.rate.low == pytest.approx(backward[name].rate.low)


def test_hosts_are_not_averaged() -> None:
    assert len(points_of(one_row(hostname="a"), one_row(hostname="b", replicate=1))) == 2


def test_one_replicate_has_no_interval_and_says_so() -> None:
    (point,) = points_of(one_row())
    assert (point.rate.low, point.rate.high) == (None, None)
    assert point.rate.reason == ONE_REPLICATE


def test_a_point_with_one_replicate_borrows_the_spread_of_the_others() -> None:
    rows = make_rows(truth=Truth(), places=[Place(actors=1), Place(actors=2)], replicates=3)
    alone = make_rows(truth=Truth(), places=[Place(actors=4)], replicates=1)
    points = points_of(*rows, *alone)
    widths = [math.log(point.rate.high / point.rate.low) for point in points]
    assert widths[0] == pytest.approx(widths[1])
    assert widths[2] == pytest.approx(widths[0] * math.sqrt(3.0))


def test_a_sensors_own_error_does_not_shrink_with_replicates() -> None:
    exact = Spread(sd=0.0, degrees=1000)
    found = with_interval(
        value=10.0, unit="samples/J", origin=Origin.MEASURED, spread=exact, replicates=1000, systematic=0.05
    )
    assert found.high == pytest.approx(10.0 * math.exp(0.05))


def test_the_spread_is_pooled_over_groups_of_any_length() -> None:
    e = math.e
    spread = pooled_spread([[1.0, e], [5.0], [], [1.0, e, e * e]])
    assert spread.degrees == 3
    assert spread.sd == pytest.approx(math.sqrt((0.5 + 2.0) / 3))
    assert pooled_spread([[5.0], [6.0]]) == Spread(sd=None, degrees=0)
