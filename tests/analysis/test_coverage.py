"""Do 95 % intervals hold the truth 95 % of the time? Sweeps with a known truth, fixed seeds.

Bounds are those that a binomial count at 95 % keeps to in 999 of 1000 runs; the seeds are fixed besides.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from generate import Place, Truth, grid, make_rows, quickstart
from scipy import stats

from cgratio.analysis import ratio
from cgratio.analysis.identify import identify
from cgratio.analysis.points import make_points
from cgratio.analysis.trials import read_trial
from cgratio.analysis.workloads import observe, split_workloads
from cgratio.results.words import Part

SWEEPS = 50


def assert_covers(hits: int, total: int, *, nominal: float = 0.95) -> None:
    low, high = stats.binom.interval(0.999, total, nominal)
    assert low <= hits <= high, f"{hits} of {total}"


def mean_value(*, supply: float, demand: float, latency_s: float, actors: int) -> float:
    """Rate of a closed network of two queues and a delay, by exact mean value analysis."""
    queues, rate = [0.0, 0.0], 0.0
    for customers in range(1, actors + 1):
        times = [(1.0 + queues[0]) / supply, (1.0 + queues[1]) / demand]
        rate = customers / (latency_s + sum(times))
        queues = [rate * time for time in times]
    return rate


def queueing_law(truth: Truth) -> Callable[[Place], float]:
    def law(place: Place) -> float:
        amount = (place.units or 1) * (place.share or 1.0)
        if place.part is Part.SUPPLY:
            return truth.supplied(place.threads)
        if place.part is Part.DEMAND:
            return truth.demanded(amount)
        supply, demand = truth.supplied(place.threads), truth.demanded(amount)
        return mean_value(supply=supply, demand=demand, latency_s=0.0008, actors=place.actors)

    return law


GRID = Truth(demand=9000.0, delta=0.0, latency_s=1 / 400)


@pytest.mark.parametrize(
    ("truth", "places", "replicates", "law", "narrow"),
    [
        pytest.param(Truth(), quickstart(), 3, None, 0.7, id="quickstart"),
        pytest.param(Truth(), quickstart(), 2, None, 0.7, id="quickstart, two replicates"),
        pytest.param(Truth(), quickstart(), 3, queueing_law(Truth()), 0.7, id="another law than the model's"),
        pytest.param(GRID, grid(units=(1, 2)), 3, None, 0.7, id="grid"),
        pytest.param(Truth(supply=1000.0), quickstart()[:9], 3, None, 0.0, id="no demand trials"),
        pytest.param(GRID, [p for p in grid() if p.part is Part.WHOLE], 3, None, 0.0, id="whole trials only"),
    ],
)
def test_the_crossings_interval_covers(
    truth: Truth, places: list[Place], replicates: int, law: Callable[[Place], float] | None, narrow: float
) -> None:
    hits, total, narrow_enough = 0, 0, 0
    for seed in range(SWEEPS):
        rows = make_rows(truth=truth, places=places, replicates=replicates, noise=0.05, seed=seed, law=law)
        (workload,) = split_workloads(tuple(map(read_trial, rows)))
        found = ratio.crossing(
            identify(observe(workload)),
            tested=ratio.tested_range(workload),
            threads=ratio.most_threads(workload),
            amount=ratio.reference_amount(workload),
            unit="threads/device CPU",
        )
        if found.value is None:
            continue  # "not identifiable" is an answer, and no interval
        total += 1
        high = float("inf") if found.high is None else found.high
        hits += (found.low or 0.0) <= truth.crossing() <= high
        narrow_enough += (high - (found.low or 0.0)) / 2.0 < 0.1 * found.value
    assert total > 0.9 * SWEEPS
    assert_covers(hits, total)
    assert narrow_enough >= narrow * total


@pytest.mark.parametrize("replicates", [2, 3])
def test_a_points_interval_covers(replicates: int) -> None:
    truth, places = Truth(), [Place(actors=actors) for actors in (1, 2, 4, 8, 16)]
    hits = 0
    sweeps = 150
    for seed in range(sweeps):
        rows = make_rows(truth=truth, places=places, replicates=replicates, noise=0.05, seed=10_000 + seed)
        # One point of each sweep: those of one sweep share their spread, and so their luck.
        point = make_points(tuple(map(read_trial, rows)))[0][seed % 5]
        expected = truth.rate(threads=1, amount=1.0, actors=point.axes["actors"])
        hits += point.rate.low <= expected <= point.rate.high
    assert_covers(hits, sweeps)


def test_no_false_ratio_from_a_plateau() -> None:
    """Noise must not turn a capped learner into a crossing."""
    truth = Truth(supply=1e9, demand=200.0, latency_s=1e-9)
    places = [Place(actors=actors) for actors in (1, 2, 4, 8)]
    for seed in range(20):
        rows = make_rows(truth=truth, places=places, replicates=2, seed=seed, shares=False)
        (workload,) = split_workloads(tuple(map(read_trial, rows)))
        finding = identify(observe(workload))
        assert finding.supply_reason is not None
