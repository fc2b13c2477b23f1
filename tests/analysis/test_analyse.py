"""The analysis as a whole: always an answer, always strict JSON."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from generate import Truth, grid, make_rows, one_row, quickstart, results_of, write_rows, write_sweep
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cgratio.analysis.analyse import analyse
from cgratio.analysis.facts import Bottleneck
from cgratio.results import store
from cgratio.results.words import Part


def test_all_failed_is_an_analysis_without_optimum(tmp_path: Path) -> None:
    rows = [
        one_row(actors=n, status="failed", verdict=["killed:SIGKILL"], samples_per_s=None) for n in (1, 2)
    ]
    found = analyse(store.load(write_rows(tmp_path, rows)))
    assert (found.trials, found.valid, found.optima, found.curves) == (2, 0, (), ())
    assert found.answer.startswith("No valid trial among 2")
    assert [point.verdicts for point in found.points] == [{"killed:SIGKILL": 1}] * 2
    assert (found.below, found.above) == (Bottleneck.UNKNOWN, Bottleneck.UNKNOWN)


def test_an_empty_folder_is_an_analysis_too(tmp_path: Path) -> None:
    found = analyse(store.load(write_rows(tmp_path, [])))
    assert (found.trials, found.valid, found.points) == (0, 0, ())
    assert found.sweep == tmp_path.name


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param(make_rows(truth=Truth()), id="quickstart"),
        pytest.param(make_rows(truth=Truth(), replicates=1), id="one replicate"),
        pytest.param(make_rows(truth=Truth(), noise=0.0), id="no noise at all"),
        pytest.param(make_rows(truth=Truth(base_w=9.0), places=grid(), shares=False), id="grid with joules"),
        pytest.param(make_rows(truth=Truth(), device="cuda"), id="cuda"),
        pytest.param([one_row()], id="one trial"),
        pytest.param([one_row(actors=None, actor_cpus=None, device_cpus=None)], id="axes unknown"),
    ],
)
def test_every_analysis_is_strict_json(rows: list[dict]) -> None:
    found = json.loads(json.dumps(analyse(results_of(rows)).as_dict(), allow_nan=False))
    for curve in found["curves"]:
        assert len(curve["x"]) == len(curve["y"]) == len(curve["low"]) == len(curve["high"])
        assert curve["x"][0] <= curve["measured_low"] <= curve["measured_high"] <= curve["x"][-1] * (1 + 1e-9)
        for low, y, high in zip(curve["low"], curve["y"], curve["high"], strict=True):
            assert low <= y <= high


def test_the_curves_are_those_the_sweep_can_show(tmp_path: Path) -> None:
    found = analyse(store.load(write_sweep(tmp_path, truth=Truth())))
    names = [curve.name for curve in found.curves]
    assert names == ["supply", "demand", "rate_by_actors", "rate_by_share", "rate_by_ratio"]
    by_actors = found.curves[2]
    assert by_actors.fixed == {"actor_cpus": 1, "device_cpus": 1, "sm_share": 1.0}
    assert (by_actors.measured_low, by_actors.measured_high) == (1.0, 16.0)
    by_share = found.curves[3]
    assert by_share.fixed == {"actor_cpus": 1, "device_cpus": 1, "actors": 16}
    assert by_share.x[-1] == pytest.approx(1.0)
    assert (by_share.measured_low, by_share.measured_high) == (0.25, 1.0)


def test_a_whole_job_that_bends_otherwise_does_not_blur_the_crossing() -> None:
    def law(place: object) -> float:  # half of every whole trial's rate is lost to something else
        truth = Truth()
        if place.part is Part.SUPPLY:
            return truth.supplied(place.threads)
        if place.part is Part.DEMAND:
            return truth.demanded(place.units)
        return 0.5 * truth.rate(threads=place.threads, amount=place.share, actors=place.actors)

    found = analyse(results_of(make_rows(truth=Truth(), law=law, shares=False)))
    assert any("rests on the supply and demand trials alone" in note for note in found.notes)
    ratio = found.optima[0].threads_per_accelerator
    assert ratio.low <= Truth().crossing() <= ratio.high
    assert ratio.high / ratio.low < 1.4


def test_drift_is_told() -> None:
    rows = make_rows(truth=Truth(), places=quickstart(), noise=0.01)
    for place, row in enumerate(rows):
        row["order"] = (place % 3) * 11 + place // 3  # blocks
        row["samples_per_s"] *= 1.0 - 0.005 * row["order"]
    (note,) = [note for note in analyse(results_of(rows)).notes if "drifts" in note]
    assert "-1" in note  # about -15 %
    assert not [note for note in analyse(results_of(make_rows(truth=Truth()))).notes if "drifts" in note]


def test_neighbours_on_the_trials_cpus_are_told() -> None:
    rows = make_rows(truth=Truth(), places=quickstart())
    for place, row in enumerate(rows):
        row["others_cpu_share"] = 0.3 if place == 4 else 0.02
    (note,) = [note for note in analyse(results_of(rows)).notes if "other processes" in note]
    assert f"in 1 of {len(rows)} trials, up to 30%" in note
    rows[4]["others_cpu_share"] = None
    assert not [note for note in analyse(results_of(rows)).notes if "other processes" in note]


def test_replicates_in_two_precisions_are_told() -> None:
    rows = make_rows(truth=Truth(), places=quickstart())
    for row in rows:
        row["observed_precision"] = "bf16"
    assert not [note for note in analyse(results_of(rows)).notes if "precision" in note]
    rows[0]["observed_precision"] = "fp32"
    (note,) = [note for note in analyse(results_of(rows)).notes if "precision" in note]
    assert "(points: 1)" in note


def test_points_that_scatter_differently_are_told() -> None:
    random = np.random.default_rng(0)
    rows = [
        one_row(actors=n, replicate=r, samples_per_s=1000.0 * (1.0 + noise * random.standard_normal()))
        for n, noise in ((1, 0.001), (2, 0.001), (4, 0.001), (8, 0.2))
        for r in range(8)
    ]
    assert any("Levene" in note for note in analyse(results_of(rows)).notes)


@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow])
@given(
    rates=st.lists(st.floats(1e-3, 1e9), min_size=1, max_size=6),
    axis=st.sampled_from(["actors", "actor_cpus", "device_cpus"]),
    part=st.sampled_from([str(part) for part in Part]),
)
def test_no_rates_make_it_fail_or_absurd(rates: list[float], axis: str, part: str) -> None:
    rows = [one_row(**{axis: 2**place}, samples_per_s=rate) for place, rate in enumerate(rates)]
    rows += [
        one_row(part=part, **{axis: 2**place}, samples_per_s=r, replicate=1) for place, r in enumerate(rates)
    ]
    found = analyse(results_of(rows))
    json.dumps(found.as_dict(), allow_nan=False)
    for optimum in found.optima:
        value = optimum.threads_per_accelerator.value
        assert value is None or value < 64 * 64
        assert len(optimum.near_optimal) < 64 * 64


def test_a_share_of_an_emulated_device_is_a_share_of_one_however_many_threads_drive_it() -> None:
    rows = make_rows(truth=Truth(), places=quickstart(), noise=0.01)
    for row in rows:
        if row["part"] != "supply":
            row["device"] = "emulated"
            row["device_cpus"] = 2
    rows = [row for row in rows if not (row["part"] == "demand" and row["samples_per_s"] > 2500)]
    found = analyse(results_of(rows))
    assert "emulated" in found.labels
    (curve,) = (curve for curve in found.curves if curve.name == "rate_by_share")
    for row in rows:
        if row["part"] == "whole" and row["actors"] == 16:
            fitted = np.interp(row["sm_share"], curve.x, curve.y)
            assert fitted == pytest.approx(row["samples_per_s"], rel=0.15)


def test_a_swept_inference_batch_makes_workloads_of_its_own() -> None:
    slow, fast = (
        make_rows(truth=Truth(demand=demand), seed=seed) for seed, demand in ((0, 900.0), (1, 1900.0))
    )
    for rows, batch in ((slow, 1), (fast, 8)):
        for row in rows:
            row["inference_batch"] = batch
            row["point_id"], row["trial_id"] = f"{batch}{row['point_id']}", f"{batch}{row['trial_id']}"
    found = analyse(results_of(slow + fast))
    groups = {optimum.group.get("inference_batch") for optimum in found.optima}
    assert groups == {1, 8}


def test_a_batch_that_follows_the_actors_makes_none() -> None:
    rows = make_rows(truth=Truth())
    for row in rows:
        row["inference_batch"] = max(1, row["actors"] // 2)
    assert all(not optimum.group for optimum in analyse(results_of(rows)).optima)


def test_trials_that_are_planned_and_not_here_are_told() -> None:
    results = results_of(make_rows(truth=Truth()))
    count = len(results.trials)
    short = replace(results, manifest={**results.manifest, "plan": {"trials": count + 5}})
    assert any(f"5 of {count + 5} planned trials are not here" in note for note in analyse(short).notes)
    whole = replace(results, manifest={**results.manifest, "plan": {"trials": count}})
    assert not any("planned trials" in note for note in analyse(whole).notes)


def test_supply_that_left_its_cpus_idle_is_told() -> None:
    rows = make_rows(truth=Truth())
    assert not any("hands out actions" in note for note in analyse(results_of(rows)).notes)
    for row in rows:
        if row["part"] == "supply":
            row["share_env"] = 0.5
    assert any("busy only 50%" in note for note in analyse(results_of(rows)).notes)
