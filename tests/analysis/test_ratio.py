"""The crossing: found where it is, refused where nothing shows it, marked where it is outside."""

import math

import numpy as np
import pytest
from generate import Place, Truth, grid, make_rows, one_row, quickstart, results_of

from cgratio.analysis.analyse import analyse
from cgratio.analysis.facts import Analysis, Bottleneck, Origin, Quantity
from cgratio.results.words import Part

SUPERLINEAR = {1: 100.0, 2: 230.0, 4: 480.0, 8: 1000.0}
BENDING = {1: 600.0, 2: 1200.0, 4: 2200.0, 8: 4000.0, 12: 4400.0, 16: 4900.0}


def analysis_of(rows: list[dict]) -> Analysis:
    return analyse(results_of(rows))


def ratio(analysis: Analysis) -> Quantity:
    assert analysis.optima[0].goal == "samples_per_s"
    return analysis.optima[0].threads_per_accelerator


def measured(
    rates: dict[int, float], *, axis: str, replicates: int, noise: float = 0.03, **axes: int
) -> list[dict]:
    random = np.random.default_rng(5)
    return [
        one_row(
            **{axis: value, **axes},
            replicate=replicate,
            samples_per_s=rate * (math.exp(noise * random.standard_normal()) if replicates > 1 else 1.0),
        )
        for value, rate in rates.items()
        for replicate in range(replicates)
    ]


@pytest.mark.parametrize("replicates", [1, 2, 3])
@pytest.mark.parametrize("threads", [1, 2, None])
def test_a_capped_learner_is_the_limit_and_no_ratio(replicates: int, threads: int | None) -> None:
    rates = dict.fromkeys((1, 2, 4, 8), 200.0)
    found = analysis_of(measured(rates, axis="actors", replicates=replicates, actor_cpus=threads))
    assert ratio(found).value is None
    assert ratio(found).reason.startswith("not identifiable")
    assert "the accelerator or the learner is the limit" in found.answer
    assert found.optima[0].near_optimal == ()
    assert (found.below, found.above) == (Bottleneck.UNKNOWN, Bottleneck.ACCELERATOR)


def test_a_flat_rate_with_busy_actor_cpus_is_the_environments_limit() -> None:
    rows = [
        one_row(actors=n, samples_per_s=200.0, share_env=0.97, device_busy_share=0.2) for n in (1, 2, 4, 8)
    ]
    found = analysis_of(rows)
    assert ratio(found).value is None
    assert (found.below, found.above) == (Bottleneck.ENVIRONMENTS, Bottleneck.UNKNOWN)


@pytest.mark.parametrize("replicates", [1, 3])
@pytest.mark.parametrize("actors", [{"actors": 64}, {"actors": None}])
def test_superlinear_rates_have_no_peak_in_range(replicates: int, actors: dict) -> None:
    found = analysis_of(measured(SUPERLINEAR, axis="actor_cpus", replicates=replicates, **actors))
    assert ratio(found).value is None
    assert "no peak in range" in ratio(found).reason
    assert (found.below, found.above) == (Bottleneck.ENVIRONMENTS, Bottleneck.UNKNOWN)


@pytest.mark.parametrize("rates", [SUPERLINEAR, BENDING])
def test_actors_alone_never_make_a_ratio(rates: dict[int, float]) -> None:
    assert ratio(analysis_of(measured(rates, axis="actors", replicates=3, actor_cpus=2))).value is None


def test_a_bend_that_contention_explains_as_well_has_no_upper_end() -> None:
    found = ratio(analysis_of(measured(BENDING, axis="actor_cpus", replicates=3, actors=64)))
    assert found.value is None or (found.low < 10.0 and (found.high is None or found.high > 14.0))


def test_a_crossing_outside_the_tested_range_is_extrapolated() -> None:
    places = [place for place in quickstart() if place.part is not Part.WHOLE and place.units != 2]
    found = analysis_of(make_rows(truth=Truth(demand=20000.0, sigma=0.0), places=places))
    assert ratio(found).origin is Origin.EXTRAPOLATED
    assert "extrapolated" in found.answer
    assert "extrapolated" in found.labels
    assert math.ceil(ratio(found).value) in found.optima[0].near_optimal


def test_a_crossing_inside_the_tested_range_is_fitted() -> None:
    found = analysis_of(make_rows(truth=Truth()))
    assert ratio(found).origin is Origin.FITTED
    assert found.labels == ("device CPUs stand in for the accelerator",)
    assert found.optima[0].near_optimal == (1, 2)
    assert (found.below, found.above) == (Bottleneck.ENVIRONMENTS, Bottleneck.ACCELERATOR)
    assert "wants 0.7" in found.answer
    assert "hardware threads per device CPU" in found.answer
    assert "samples per joule: unknown (no energy sensor is readable)" in found.answer


def test_a_supply_that_levels_off_below_demand_has_no_crossing() -> None:
    places = [place for place in grid() if place.part is not Part.WHOLE]
    found = analysis_of(make_rows(truth=Truth(demand=20000.0, sigma=0.5), places=places))
    assert ratio(found).value is None
    assert "supply levels off" in ratio(found).reason


@pytest.mark.parametrize(("part", "missing"), [(Part.SUPPLY, "accelerator"), (Part.DEMAND, "environments")])
def test_one_side_alone_is_no_ratio(part: Part, missing: str) -> None:
    rows = make_rows(truth=Truth(), places=[place for place in quickstart() if place.part is part])
    found = ratio(analysis_of(rows))
    assert found.value is None
    assert missing in found.reason


def test_without_replicates_the_crossing_has_no_interval() -> None:
    found = analysis_of(make_rows(truth=Truth(), replicates=1, noise=0.0))
    assert ratio(found).value == pytest.approx(Truth().crossing(), rel=1e-3)
    assert ratio(found).low is None
    assert "one replicate" in ratio(found).reason
    assert any("at least two replicates" in note for note in found.notes)
    assert not any(curve.band for curve in found.curves)


def test_exact_data_give_the_truth_back() -> None:
    truth = Truth(demand=9000.0, delta=0.2, latency_s=1 / 400)
    found = analysis_of(make_rows(truth=truth, places=grid(units=(1, 2)), noise=1e-6))
    parameters = {name: q.value for curve in found.curves for name, q in curve.parameters.items()}
    assert parameters["S1"] == pytest.approx(truth.supply, rel=1e-3)
    assert parameters["sigma"] == pytest.approx(truth.sigma, abs=1e-3)
    assert parameters["D1"] == pytest.approx(truth.demand, rel=1e-3)
    assert parameters["delta"] == pytest.approx(truth.delta, abs=1e-3)
    assert parameters["L"] == pytest.approx(truth.latency_s, rel=1e-3)
    assert parameters["p"] == pytest.approx(truth.sharpness, rel=1e-2)
    assert ratio(found).value == pytest.approx(truth.crossing(), rel=1e-3)


def test_the_ratio_is_also_given_per_sm_and_per_core() -> None:
    truth = Truth(demand=60000.0, delta=0.9, sigma=0.01, latency_s=1 / 400)
    shares = [Place(threads=32, share=share, actors=64) for share in (0.05, 0.1, 0.25, 0.5)]
    rows = make_rows(truth=truth, places=[*grid(threads=(4, 8, 16, 32)), *shares], device="cuda")
    optimum = analysis_of(rows).optima[0]
    threads = optimum.threads_per_accelerator
    assert threads.low <= truth.crossing() <= threads.high
    assert optimum.threads_per_sm.value == pytest.approx(threads.value / 80)
    assert optimum.cores_per_accelerator.value == pytest.approx(threads.value / 2)  # 16 threads on 8 cores
    assert threads.unit == "threads/GPU"
    assert "80 enabled SMs" in optimum.counting_rule


def test_a_share_that_was_read_back_counts_instead_of_the_one_asked_for() -> None:
    rows = make_rows(truth=Truth(), device="cuda", noise=0.0)
    for row in rows:
        if row["part"] == "demand":
            row["observed_sm_share"] = 0.5  # twice the demand per accelerator, then
    assert ratio(analysis_of(rows)).value > 1.3 * Truth().crossing()


def test_each_workload_gets_its_own_ratio() -> None:
    rows = make_rows(truth=Truth()) + make_rows(
        truth=Truth(supply=1000.0), environment="[Breakout]", places=[*quickstart()[:5], *quickstart()[7:]]
    )
    found = analysis_of(rows)
    assert [optimum.group for optimum in found.optima[::2]] == [
        {"environment": "Pong-v5"},
        {"environment": "[Breakout]"},
    ]
    first, second = (optimum.threads_per_accelerator for optimum in found.optima[::2])
    assert first.low <= Truth().crossing() <= first.high
    assert second.low <= Truth(supply=1000.0).crossing() <= second.high
    assert "environment=[Breakout]" in found.answer
    assert {str(curve.group) for curve in found.curves} == {str(o.group) for o in found.optima}


def test_service_times_agree_or_the_note_says_not() -> None:
    rows = make_rows(truth=Truth())
    (note,) = [note for note in analysis_of(rows).notes if "service times" in note]
    assert "in agreement" in note
    assert "0.76" in note
    for row in rows:
        if row.get("env_s_per_sample"):
            row["env_s_per_sample"] *= 2.0
    found = analysis_of(rows)
    (note,) = [note for note in found.notes if "service times" in note]
    assert "in DISAGREEMENT" in note
    assert found.optima[0].doubts == (note,)
    assert "the trials do not all agree with this" in found.answer


def bent(rows):
    """Whole trials that rise and fall over the actors as no bound does."""
    for row in rows:
        if row["part"] == "whole":
            row["samples_per_s"] *= 1.4 if row["actors"] in {2, 16} else 0.8
            row["samples"] = row["samples_per_s"] * row["measured_s"]
    return rows


def test_a_misfit_is_no_doubt_where_supply_and_demand_were_measured_alone() -> None:
    found = analysis_of(bent(make_rows(truth=Truth(demand=9000.0, base_w=20.0, thread_w=4.0), places=grid())))
    assert any("the crossing rests on the supply and demand trials alone" in note for note in found.notes)
    by_rate, by_energy = found.optima
    assert by_rate.doubts == ()
    assert any("miss the joint model" in doubt for doubt in by_energy.doubts)
    assert ratio(found).low < Truth(demand=9000.0).crossing() < ratio(found).high


def test_a_misfit_is_a_doubt_where_the_ratio_rests_on_the_whole_trials() -> None:
    places = [
        Place(threads=threads, actors=actors) for threads in (1, 2, 4) for actors in (1, 2, 4, 8, 16, 32)
    ]
    found = analysis_of(bent(make_rows(truth=Truth(demand=5000.0), places=places)))
    (doubt,) = found.optima[0].doubts
    assert "miss the joint model" in doubt
    assert "the trials do not all agree with this" in found.answer


def test_the_result_does_not_depend_on_the_order_of_trials() -> None:
    rows = make_rows(truth=Truth())
    assert ratio(analysis_of(rows)).low == pytest.approx(ratio(analysis_of(rows[::-1])).low, rel=1e-6)
