"""The committed result: a real sweep, which the README shows."""

import json
import re
from pathlib import Path

import pytest

from cgratio.analysis.analyse import analyse
from cgratio.results import store

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "results" / "pong-2cpu"


@pytest.fixture(scope="module")
def results():
    return store.load(FOLDER, strict=True)


def test_every_planned_trial_is_there_once_and_valid(results):
    planned = [entry["trial_id"] for entry in store.read_journal(FOLDER) if entry["state"] == "planned"]
    assert sorted(results.trials["trial_id"]) == sorted(planned)
    assert {tuple(verdict) for verdict in results.trials["verdict"]} == {("valid",)}
    whole = results.trials[(results.trials["part"] == "whole") & (results.trials["sm_share"] == 1)]
    assert sorted(whole["actors"].unique()) == [1, 2, 4, 8, 16, 32]
    assert whole.groupby("actors").size().min() == 2


def test_environments_and_inference_ran_on_the_cpus_that_were_asked_for(results):
    pinned = results.trials[results.trials["part"] == "whole"]
    assert set(pinned["observed_actor_cpu_list"]) == {"0"}
    assert set(pinned["observed_device_cpu_list"]) == {"1"}


def test_no_column_holds_a_zero_in_place_of_the_unknown(results):
    joules = [name for name in results.trials.columns if re.fullmatch(r"energy_\w+_j", name)]
    assert joules
    for name in joules:
        reason = name.removesuffix("pm_j").removesuffix("j") + "reason"
        assert results.trials[name].isna().all()
        assert results.trials[reason].notna().all()


def test_windows_and_trials_tell_the_same(results):
    steady = results.windows[results.windows["steady"]].groupby("trial_id")["samples"].sum()
    assert steady.to_dict() == results.trials.set_index("trial_id")["samples"].to_dict()


def test_the_readme_gives_its_answer():
    answer = analyse(store.load(FOLDER)).answer
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").replace("> ", "").split())
    assert answer in readme


def test_the_named_ratio_is_one_that_the_stage_shares_support():
    analysis = analyse(store.load(FOLDER))
    optimum = analysis.optima[0].threads_per_accelerator
    assert optimum.low < optimum.value < optimum.high
    saturated = [
        point
        for point in analysis.points
        if point.axes["part"] == "whole" and point.axes["actors"] == 32 and point.axes["sm_share"] == 1
    ]
    # One actor CPU for one device CPU: more than the optimum if it is below one, so the device is the busier.
    (point,) = saturated
    assert (point.shares["device_busy"] > point.shares["env"]) == (optimum.value < 1)
    assert analysis.optima[0].doubts == ()  # service times agree
    assert str(point.bottleneck) == ("accelerator" if optimum.value < 1 else "environments")


def _alike(saved, found):
    """Whether two analyses say the same, numbers within what another host's arithmetic may change."""
    if type(saved) is not type(found):
        return False
    if isinstance(saved, dict):
        return saved.keys() == found.keys() and all(_alike(saved[name], found[name]) for name in saved)
    if isinstance(saved, list):
        return len(saved) == len(found) and all(map(_alike, saved, found))
    if isinstance(saved, float):
        return found == pytest.approx(saved, rel=1e-3, abs=1e-9)
    if isinstance(saved, str):
        return re.sub(r"[\d.]+", "0", saved) == re.sub(r"[\d.]+", "0", found)
    return saved == found


def test_the_saved_analysis_is_what_this_code_finds(results):
    saved = json.loads((FOLDER / store.ANALYSIS).read_text(encoding="utf-8"))
    found = json.loads(json.dumps(analyse(results).as_dict()))
    different = [name for name in saved.keys() | found.keys() if not _alike(saved.get(name), found.get(name))]
    assert different == []
