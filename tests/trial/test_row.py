from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cgratio.machine.placement import Assignment
from cgratio.results import schema
from cgratio.results.words import Status
from cgratio.trial.observed import Observed
from cgratio.trial.request import Limits, TrialRequest
from cgratio.trial.row import telemetry_rows, trial_row, window_rows
from cgratio.trial.windows import WindowCutter
from cgratio.workload.protocol import Count, Final, Ready

AXES = {
    "part": "whole",
    "environment": "Pong-v5",
    "network": "nature_cnn",
    "device": "cpu",
    "actors": 8,
    "actor_cpus": 1,
    "device_cpus": 2,
    "pinning": "compact",
    "gpus": 0,
    "sm_share": 0.5,
    "inference_batch": 4,
    "unroll_length": 20,
    "learner_batch": 16,
    "precision": "auto",
}
LAUNCH_S = 1000.0


def request(**axes):
    axes = AXES | axes
    return TrialRequest(
        folder=Path("/nowhere"),
        identity={"trial_id": "t", "sweep": "s", "replicate": 0, "order": 0},
        axes=axes,
        trainer={},
        actor_cpus=axes["actor_cpus"] or 0,
        device_cpus=axes["device_cpus"] or 0,
        pinning="compact",
        limits=Limits(window_s=1.0, warmup_min_s=1.0, warmup_max_s=2.0, max_s=20.0),
    )


def seen(*, seconds=10, readings=(), missing=None, **fields):
    """1000 samples/s, actor CPUs busy for 0.8 and two device CPUs for 0.9 of one CPU together."""
    cutter = WindowCutter(window_s=1.0)
    for second in range(seconds + 1):
        cutter.add(
            Count(
                time_s=LAUNCH_S + 5 + second,
                samples=1000 * second + 1,
                batches=250 * second,
                updates=3 * second,
                learned=960 * second,
                lag_sum=1920.0 * second,
                lag_max=7,
                episodes=second,
                recent_return=-20.0,
                environment_cpu_s=0.8 * second,
                device_cpu_s=0.9 * second,
                stages={
                    "wait_batch": 0.5 * second,
                    "inference": 0.4 * second,
                    "transfer": 0.1 * second,
                    "backpressure": 0.0,
                    "learner": 0.6 * second,
                    "wait_data": 0.4 * second,
                },
            )
        )
    ready = Ready(
        time_s=LAUNCH_S + 4,
        frame_skip=4,
        actors=8,
        actor_threads=2,
        actor_cpu_list="0",
        device_cpu_list="1-2",
        inference_batch=4,
        precision="bf16",
    )
    placed = Assignment(
        actor_cpus=frozenset({0}), device_cpus=frozenset({1, 2}), service_cpus=frozenset({3}), pinned=True
    )
    base = {
        "assignment": placed,
        "ready": ready,
        "final": Final(time_s=LAUNCH_S + 20, drifted=[]),
        "stop": "cap",
        "missing": missing or {},
        "sampler_cpu_s": 0.1 if missing else None,
    }
    observed = Observed(started_at=datetime.now(UTC), launch_s=LAUNCH_S, **base | fields)
    observed.windows, observed.marks = cutter.windows, cutter.marks
    observed.readings = list(readings)
    return observed


def test_rates_shares_and_service_times():
    row = trial_row(request(), seen())
    assert row["verdict"] == ["valid"]
    assert row["samples_per_s"] == pytest.approx(1000)
    assert row["frames"] == 4 * row["samples"]
    assert row["updates_per_s"] == pytest.approx(3)
    assert row["policy_lag_mean"] == pytest.approx(2)
    assert row["share_env"] == pytest.approx(0.8)
    assert row["share_wait_batch"] == pytest.approx(0.5)
    assert row["share_learner"] == pytest.approx(0.6)
    # 0.9 CPUs busy of two, of whose time half was granted.
    assert row["device_busy_share"] == pytest.approx(0.9)
    assert row["env_s_per_sample"] == pytest.approx(0.0008)
    assert row["setup_s"] == pytest.approx(5.0)  # launch to the first sample


def test_every_row_fits_the_schema():
    observed = seen(readings=[(LAUNCH_S + 7, "cpu_busy", "all", 0.5, "1")])
    schema.table(schema.TRIALS, [trial_row(request(), observed)])
    schema.table(schema.WINDOWS, window_rows(request(), observed))
    table = schema.table(schema.TELEMETRY, telemetry_rows(request(), observed))
    assert table.column("time_s").to_pylist() == [7.0]


def test_without_a_sensor_there_are_no_joules_but_a_reason():
    row = trial_row(request(), seen(missing={"cpu_energy": "no RAPL here"}))
    assert row.get("samples_per_joule") is None
    assert row["samples_per_joule_reason"] == "no joules of cpu_package: no RAPL here"
    assert "power_w" not in row


def test_measured_joules_of_the_package():
    # 50 W, as a counter that is read ten times a second.
    readings = [
        (LAUNCH_S + tick / 10, "cpu_energy", "package-0", 50.0 * tick / 10, "J") for tick in range(200)
    ]
    row = trial_row(request(), seen(readings=readings))
    assert row["power_w"] == pytest.approx(50, rel=0.02)
    assert row["samples_per_joule"] == pytest.approx(20, rel=0.02)
    assert row["samples_per_joule_boundary"] == "cpu_package"
    assert row["samples_per_joule_pm"] > 0
    assert row["energy_cpu_package_method"] == "counter"


def test_partial_joules_give_no_samples_per_joule():
    readings = [(LAUNCH_S + tick / 10, "cpu_energy", "package-1", 5.0 * tick, "J") for tick in range(200)]
    row = trial_row(request(), seen(readings=readings, missing={"cpu_energy/package-0": "not readable"}))
    assert row["energy_cpu_package_j"] > 0
    assert row["energy_cpu_package_reason"] == "partial"
    assert row.get("samples_per_joule") is None


def test_a_model_stands_in_and_is_called_modelled():
    asked = replace(request(), power_model={"idle_w": 20.0, "max_w": 60.0, "packages": 1})
    readings = [(LAUNCH_S + tick / 2, "cpu_busy", "all", 0.5, "1") for tick in range(40)]
    row = trial_row(asked, seen(readings=readings))
    assert row["power_w"] == pytest.approx(40, rel=0.01)
    assert row["samples_per_joule_boundary"] == "modelled"
    assert row["energy_modelled_method"] == "modelled"


def test_parts_have_the_columns_that_they_can_have():
    supply = trial_row(request(part="supply", device_cpus=None, sm_share=None), seen())
    assert "updates_per_s" not in supply or supply["updates_per_s"] is None
    assert "device_busy_share" not in supply
    assert supply["device_busy_share_reason"]
    demand = trial_row(request(part="demand", actor_cpus=None), seen())
    assert "share_env" not in demand
    assert demand["device_busy_share"] == pytest.approx(0.9)


def test_a_short_trial_is_too_short():
    assert trial_row(request(), seen(seconds=5))["verdict"] == ["too_short"]


def test_threads_that_wandered_off_invalidate_a_trial():
    final = Final(time_s=LAUNCH_S + 20, drifted=["thread 7: 0-3 for 0"])
    assert trial_row(request(), seen(final=final))["verdict"] == ["affinity_drift"]


def test_a_mask_that_was_not_granted_invalidates_a_trial():
    ready = Ready(
        time_s=LAUNCH_S,
        frame_skip=4,
        actors=8,
        actor_threads=2,
        actor_cpu_list="0-3",
        device_cpu_list="1-2",
        inference_batch=4,
        precision="bf16",
    )
    assert trial_row(request(), seen(ready=ready))["verdict"] == ["placement_not_granted"]


def test_a_failed_trial_keeps_what_was_seen_but_is_not_valid():
    row = trial_row(request(), seen(status=Status.FAILED, reason="killed:SIGKILL"))
    assert row["verdict"] == ["killed:SIGKILL"]
    assert row["status"] == "failed"
    assert row["samples"] > 0


def test_a_trial_of_which_nothing_was_seen_says_why_everything_is_null():
    nothing = Observed(started_at=datetime.now(UTC), launch_s=LAUNCH_S, status=Status.FAILED, reason="exit:1")
    row = trial_row(request(), nothing)
    schema.table(schema.TRIALS, [row])
    assert row["samples_per_joule_reason"] == row["device_busy_share_reason"] == "nothing was measured"


def test_another_gpu_than_the_one_asked_for_invalidates_a_trial():
    asked = replace(request(device="cuda", device_cpus=2, sm_share=1.0), gpu_uuids=["GPU-aa11"])
    right = replace(seen().ready, gpu_uuids=["GPU-AA11"], sm_count=80)
    wrong = replace(right, gpu_uuids=["GPU-bb22"])
    assert trial_row(asked, seen(ready=right))["verdict"] == ["valid"]
    assert trial_row(asked, seen(ready=right))["observed_sm_share"] == 1.0
    assert trial_row(asked, seen(ready=wrong))["verdict"] == ["placement_not_granted"]


def test_more_of_the_device_than_its_share_invalidates_a_trial():
    # 0.9 of two CPUs were used: within a share of a half, beyond one of a quarter.
    assert trial_row(request(sm_share=0.5), seen())["verdict"] == ["valid"]
    assert trial_row(request(sm_share=0.25), seen())["verdict"] == ["share_not_granted"]


def test_a_missing_gpu_reading_is_explained_by_the_device_that_failed():
    asked = replace(request(device="cuda", sm_share=1.0), gpu_uuids=["GPU-aa"])
    ready = replace(seen().ready, gpu_uuids=["GPU-aa"], sm_count=80)
    row = trial_row(asked, seen(ready=ready, missing={"gpu_utilisation/GPU-aa": "not supported"}))
    assert row["device_busy_share_reason"] == "not supported"


def test_too_few_updates_invalidate_a_trial_that_trains():
    many = replace(request(), limits=replace(request().limits, min_updates=1000))
    assert trial_row(many, seen())["verdict"] == ["too_few_updates"]
    supply = replace(request(part="supply", device_cpus=None, sm_share=None), limits=many.limits)
    assert trial_row(supply, seen())["verdict"] == ["valid"]


def test_a_sampler_that_died_is_the_reason_for_missing_joules():
    assert (
        trial_row(request(), seen())["samples_per_joule_reason"] == "the sampler ended before the trial did"
    )


def contended(*, own, busy):
    """Readings of the workload's CPU time, growing by `own` CPUs, and of CPUs 0, 1, ..."""
    readings = []
    for half_second in range(60):
        time_s = LAUNCH_S + half_second / 2
        readings += [
            (time_s, "process_cpu", "4711", own * half_second / 2, "s"),
            (time_s, "cpu_busy", "all", sum(busy) / len(busy), "1"),
            *((time_s, "cpu_busy", f"cpu{cpu}", share, "1") for cpu, share in enumerate(busy)),
        ]
    return readings


def test_what_others_took_of_the_trials_cpus_is_told() -> None:
    row = trial_row(request(), seen(readings=contended(own=1.2, busy=(0.9, 0.7, 0.2, 0.9))))
    assert row["workload_cpu_s"] == pytest.approx(1.2 * row["measured_s"])
    assert row["others_cpu_share"] == pytest.approx(0.6 / 3)  # CPU 3 is not the trial's
    assert row["cpu_utilisation_mean"] == pytest.approx(2.7 / 4)


def test_alone_on_its_cpus_others_took_nothing() -> None:
    row = trial_row(request(), seen(readings=contended(own=1.81, busy=(0.9, 0.7, 0.2))))
    assert row["others_cpu_share"] == 0.0


def test_what_others_took_is_unknown_without_the_readings() -> None:
    row = trial_row(request(), seen(missing={"process_cpu": "process 4711 is not running"}))
    assert row["others_cpu_share"] is None
    assert row["others_cpu_share_reason"] == "process 4711 is not running"


@pytest.mark.parametrize(
    ("mask", "every", "expected"),
    [
        (0x40, 1, ["throttled"]),  # heat
        (0x80, 5, ["throttled"]),  # the supply's brake, a fifth of the time
        (0x40, 60, ["valid"]),  # one moment
        (0x04, 1, ["valid"]),  # the power cap is how a card works at full load
        (0x01, 1, ["valid"]),
    ],
)
def test_a_gpu_that_was_slowed_down_is_no_measurement(mask, every, expected) -> None:
    readings = [
        (LAUNCH_S + tenth / 10, "gpu_throttle", "GPU-1", float(mask if tenth % every == 0 else 0), "bits")
        for tenth in range(300)
    ]
    assert trial_row(request(), seen(readings=readings))["verdict"] == expected


def test_the_threads_that_drive_an_emulated_device_are_no_share_of_it() -> None:
    driven = trial_row(request(device="emulated", sm_share=0.01), seen())
    assert driven["verdict"] == ["valid"]
    granted = trial_row(request(device="cpu", sm_share=0.01), seen())
    assert granted["verdict"] == ["share_not_granted"]
