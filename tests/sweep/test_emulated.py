"""The whole chain, from a sweep to its ratio, against a device whose truth is known."""

import json

import pytest
from typer.testing import CliRunner

from cgratio.cli import app
from cgratio.results import store

INFERENCE_S, OBSERVATION_S, UPDATE_S = 0.002, 0.0005, 0.064
UNROLL, BATCH, ACTORS = 20, 8, 16
IDLE_W, BUSY_W = 50.0, 150.0

SPEC = f"""
name: emulated
axes:
  part: [whole, supply, demand]
  device: emulated
  sm_share: [1.0, 0.5]
  actors: {ACTORS}
  actor_cpus: 1
  device_cpus: 1
  unroll: {UNROLL}
  batch: {BATCH}
emulated: {{inference_s: {INFERENCE_S}, observation_s: {OBSERVATION_S}, update_s: {UPDATE_S},
  idle_w: {IDLE_W}, busy_w: {BUSY_W}}}
trial: {{window_s: 0.4, warmup_min_s: 0.4, warmup_max_s: 0.8, max_s: 4, half_width: 0.02}}
replicates: 2
"""

# Seconds of the device for each sample: its part of an inference of half the actors, and of an update.
DEVICE_S = INFERENCE_S / (ACTORS // 2) + OBSERVATION_S + UPDATE_S / (UNROLL * BATCH)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    base = tmp_path_factory.mktemp("emulated")
    (base / "s.yaml").write_text(SPEC)
    done = CliRunner().invoke(app, ["sweep", str(base / "s.yaml"), "--out", str(base / "out")])
    assert done.exit_code == 0, done.output
    return base / "out"


@pytest.fixture(scope="module")
def rows(folder):
    """The valid trials by part and share."""
    frame = store.load(folder).trials
    assert [list(verdict) for verdict in frame["verdict"]] == [["valid"]] * len(frame)
    return {
        (part, share): list(group.to_dict("records"))
        for (part, share), group in frame.fillna({"sm_share": 1.0}).groupby(["part", "sm_share"])
    }


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_demand_is_what_the_profile_says(rows, share):
    for row in rows["demand", share]:
        # Never more than the device can do, and less by the moments in which its two drivers hand over.
        assert 0.8 < row["samples_per_s"] * DEVICE_S / share < 1.05
        assert 0.8 < row["device_busy_share"] < 1.05
        assert row["device_s_per_sample"] == pytest.approx(DEVICE_S, rel=0.08)  # one update more or less


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_the_whole_job_is_within_both_sides(rows, share):
    supply = max(row["samples_per_s"] for row in rows["supply", 1.0])
    for row in rows["whole", share]:
        assert row["samples_per_s"] < 1.05 * min(supply, share / DEVICE_S)


def test_watts_are_those_of_the_profile(rows):
    for row in rows["whole", 1.0]:
        expected = IDLE_W + (BUSY_W - IDLE_W) * row["device_busy_share"]
        assert row["power_w"] == pytest.approx(expected, rel=1e-6)
        assert row["samples_per_joule_boundary"] == "modelled"
        assert "emulated device" in row["energy_modelled_source"]


def test_the_ratio_is_that_of_supply_and_the_known_demand(folder, rows):
    done = CliRunner().invoke(app, ["analyze", str(folder), "--json"])
    found = json.loads(done.stdout)
    assert "emulated" in found["labels"]
    (rate,) = (optimum for optimum in found["optima"] if optimum["goal"] == "samples_per_s")
    supplied = [row["samples_per_s"] for row in rows["supply", 1.0]]
    truth = 1 / DEVICE_S / (sum(supplied) / len(supplied))
    ratio = rate["threads_per_accelerator"]
    assert ratio["unit"] == "threads/emulated device"
    assert ratio["value"] == pytest.approx(truth, rel=0.2)
    assert rate["threads_per_sm"]["reason"] == "no SMs: the device is emulated"
