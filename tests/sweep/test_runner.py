"""Sweeps with a stand-in trainer: real processes, real signals, real files."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import psutil
import pytest
from typer.testing import CliRunner

from cgratio.cli import app
from cgratio.results import store
from cgratio.sweep.folder import FolderError, prepare
from cgratio.sweep.runner import run_sweep

SCRIPT = """
import sys
from functools import partial
from pathlib import Path
sys.path.insert(0, {here!r})
from cgratio.cli import end
import signal
signal.signal(signal.SIGINT, end); signal.signal(signal.SIGTERM, end)
from cgratio.launch.local import LocalLauncher
from cgratio.machine.host import read_host
from cgratio.sweep.host import SweepHost
from cgratio.sweep.plan import make_plan
from cgratio.sweep.runner import run_sweep
from cgratio.sweep.reading import load_spec
spec = load_spec(Path({spec!r}), overrides=("trainer.learning_rate={behaviour}", *{settings!r}))
plan = make_plan(spec, SweepHost(host=read_host(), software={{"cgratio": "test"}}))
run_sweep(plan, Path({folder!r}), resume=True,
          launcher=partial(LocalLauncher, command=[sys.executable, {trial!r}]))
"""
HERE = Path(__file__).parent


def start(folder, spec, behaviour=0.5, settings=()):
    """A sweep in a process of its own, as `cgratio sweep` is."""
    code = SCRIPT.format(
        here=str(HERE),
        spec=str(spec),
        behaviour=behaviour,
        settings=list(settings),
        folder=str(folder),
        trial=str(HERE / "trial.py"),
    )
    return subprocess.Popen([sys.executable, "-c", code], start_new_session=True)


def left_behind(spec_folder):
    """Processes of a sweep into a folder below the given one, or of its stand-ins."""
    marks = (
        str(spec_folder),
        str(HERE / "trial.py"),
        str(HERE / "workload.py"),
        "unending",
    )
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        line = " ".join(process.info["cmdline"] or ())
        if process.pid == os.getpid() or process.info["status"] == psutil.STATUS_ZOMBIE:
            continue
        # A sampler is ours if this test started it; another sweep of the host may have its own.
        sampler = "telemetry.sampler" in line and _started_by_a_test(process)
        found += [line] * (sampler or any(mark in line for mark in marks))
    return found


def _started_by_a_test(process):
    try:
        return "PYTEST_CURRENT_TEST" in process.environ()
    except psutil.Error:
        return False


def wait_until(condition, seconds=10.0):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.05)
    return False


def states(folder):
    return Counter(entry["state"] for entry in store.read_journal(folder))


def test_every_trial_is_measured_once_and_journalled(tmp_path, quick_plan, stand_in):
    plan, folder, seen = quick_plan(), tmp_path / "out", []
    run_sweep(plan, folder, show=seen.append, launcher=stand_in)
    results = store.load(folder, strict=True)
    assert sorted(results.trials["trial_id"]) == sorted(trial.trial_id for trial in plan.trials)
    assert [list(verdict) for verdict in results.trials["verdict"]] == [["valid"]] * 6
    assert states(folder) == {"planned": 6, "running": 6, "complete": 6}
    assert results.trials["samples_per_s"].between(900, 1100).all()
    assert results.trials["frames"].eq(results.trials["samples"] * 4).all()
    assert [state.done for state in seen if state.row] == [1, 2, 3, 4, 5, 6]
    assert seen[-1].left_s == 0
    assert results.manifest["plan"]["trials"] == 6
    assert not left_behind(folder)


def test_rows_are_in_the_order_of_the_plan_and_windows_add_up(tmp_path, quick_plan, stand_in):
    plan, folder = quick_plan(), tmp_path / "out"
    run_sweep(plan, folder, launcher=stand_in)
    results = store.load(folder)
    assert results.trials["trial_id"].tolist() == [trial.trial_id for trial in plan.trials]
    steady = results.windows[results.windows["steady"]].groupby("trial_id")["samples"].sum()
    assert steady.to_dict() == results.trials.set_index("trial_id")["samples"].to_dict()


@pytest.mark.parametrize(
    ("behaviour", "reason", "signal_name"),
    [
        (1.0, "killed:SIGKILL", "SIGKILL"),
        (2.0, "killed:SIGABRT", "SIGABRT"),
        (3.0, "killed:SIGABRT", "SIGABRT"),  # case A6: exit 134 without a traceback
        (5.0, "hung", None),
        (6.0, "bad_request", None),
    ],
)
def test_a_trial_that_fails_is_a_result_and_the_sweep_goes_on(
    tmp_path, quick_plan, stand_in, behaviour, reason, signal_name
):
    plan, folder = quick_plan(behaviour, "replicates=1", "trial.max_s=3"), tmp_path / "out"
    run_sweep(plan, folder, launcher=stand_in)
    trials = store.load(folder).trials.set_index("actors")
    assert list(trials.loc[4, "verdict"]) == [reason]
    assert trials.loc[4, "status"] == "failed"
    assert (trials.loc[4, "exit_signal"] == signal_name) if signal_name else True
    assert [list(trials.loc[actors, "verdict"]) for actors in (1, 2)] == [["valid"]] * 2
    assert not left_behind(folder)


def test_a_supervisor_that_dies_is_a_failed_trial(tmp_path, quick_plan):
    from functools import partial

    from cgratio.launch.local import LocalLauncher

    plan, folder = quick_plan(0.5, "replicates=1", "axes.actors=[1]"), tmp_path / "out"
    dead = partial(LocalLauncher, command=[sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"])
    run_sweep(plan, folder, launcher=dead)
    row = store.load(folder).trials.iloc[0]
    assert row["status_reason"].startswith("killed:SIGKILL: the trial's supervisor")


def test_when_every_trial_failed_the_report_says_so_and_analyze_exits_4(tmp_path, quick_plan, stand_in):
    # Case G2.
    plan, folder = quick_plan(1.0, "axes.actors=[4]"), tmp_path / "out"
    run_sweep(plan, folder, launcher=stand_in)
    analyzed = CliRunner().invoke(app, ["analyze", str(folder)])
    assert analyzed.exit_code == 4
    reported = CliRunner().invoke(app, ["report", str(folder)])
    assert reported.exit_code == 0
    assert (folder / "report.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize("seed", range(4))
def test_killed_at_any_moment_nothing_is_left_and_resume_completes_it(tmp_path, quick_plan, seed):
    plan, folder, spec = quick_plan(), tmp_path / "out", tmp_path / "quick.yaml"
    moment = random.Random(seed)
    for _ in range(2):
        sweep = start(folder, spec)
        time.sleep(moment.uniform(0.5, 6.0))
        sweep.kill()
        sweep.wait()
    assert wait_until(lambda: not left_behind(tmp_path)), left_behind(tmp_path)
    before = {path.name: path.stat().st_mtime_ns for path in (folder / "trials").glob("*.parquet")}
    assert start(folder, spec).wait(timeout=60) == 0
    results = store.load(folder, strict=True)
    assert sorted(results.trials["trial_id"]) == sorted(trial.trial_id for trial in plan.trials)
    after = {path.name: path.stat().st_mtime_ns for path in (folder / "trials").glob("*.parquet")}
    assert {name: after[name] for name in before} == before  # what was finished was not run again
    last = {entry["trial_id"]: entry["state"] for entry in store.read_journal(folder)}
    assert set(last.values()) == {"complete"}
    assert not left_behind(tmp_path)


def test_killed_before_it_had_described_itself_it_starts_afresh(tmp_path, quick_plan, stand_in):
    plan, folder = quick_plan(0.5, "replicates=1"), tmp_path / "out"
    for planned in range(len(plan.trials) + 1):
        folder.mkdir(exist_ok=True)
        lines = [{"state": "planned", "trial_id": trial.trial_id} for trial in plan.trials[:planned]]
        (folder / store.JOURNAL).write_text("".join(json.dumps(line) + "\n" for line in lines))
        assert prepare(folder, plan, resume=planned % 2 == 0, allow_drift=False) == set()
        assert (folder / store.MANIFEST).exists()
        shutil.rmtree(folder)
    run_sweep(plan, folder, launcher=stand_in)
    assert len(store.load(folder, strict=True).trials) == 3


def test_a_row_whose_journal_line_was_lost_gets_it_on_resume(tmp_path, quick_plan, stand_in):
    plan, folder = quick_plan(0.5, "replicates=1", "axes.actors=[1]"), tmp_path / "out"
    run_sweep(plan, folder, launcher=stand_in)
    journal = folder / store.JOURNAL
    journal.write_text("".join(journal.read_text().splitlines(keepends=True)[:-1]))
    assert states(folder)["complete"] == 0
    run_sweep(plan, folder, resume=True, launcher=stand_in)
    assert states(folder) == {"planned": 1, "running": 1, "complete": 1}


@pytest.mark.parametrize(("first", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interrupted_with_stubborn_grandchildren_everything_ends_within_ten_seconds(
    tmp_path, quick_plan, first, code
):
    # Case H2.
    quick_plan()
    folder = tmp_path / "out"
    sweep = start(folder, tmp_path / "quick.yaml", behaviour=4.0)
    assert wait_until(lambda: states(folder)["complete"] >= 1, 40)
    assert wait_until(lambda: sum("unending" in line for line in left_behind(tmp_path)) == 2)
    sweep.send_signal(first)
    begun = time.monotonic()
    assert sweep.wait(timeout=10) == code
    assert not left_behind(tmp_path)
    assert time.monotonic() - begun < 10
    assert len(store.load(folder, strict=True).trials) == states(folder)["complete"]
    assert states(folder)["interrupted"] == 1


def test_ctrl_c_and_then_sigterm_still_leaves_nothing(tmp_path, quick_plan):
    quick_plan()
    folder = tmp_path / "out"
    sweep = start(folder, tmp_path / "quick.yaml", behaviour=4.0)
    assert wait_until(lambda: sum("unending" in line for line in left_behind(tmp_path)) == 2, 20)
    sweep.send_signal(signal.SIGINT)
    time.sleep(0.5)
    sweep.send_signal(signal.SIGTERM)
    assert sweep.wait(timeout=10) in {130, 143}
    assert not left_behind(tmp_path)


def test_a_folder_that_holds_a_sweep_is_not_run_into_again(tmp_path, quick_plan, stand_in):
    folder = tmp_path / "out"
    run_sweep(quick_plan(0.5, "replicates=1", "axes.actors=[1]"), folder, launcher=stand_in)
    with pytest.raises(FolderError, match="holds a sweep already; continue it with --resume"):
        run_sweep(quick_plan(0.5, "replicates=1", "axes.actors=[1]"), folder, launcher=stand_in)
    with pytest.raises(FolderError, match="holds another sweep"):
        run_sweep(quick_plan(0.5, "replicates=1", "axes.actors=[2]"), folder, resume=True, launcher=stand_in)


def test_resume_on_another_host_is_refused_unless_asked_for(tmp_path, quick_plan, stand_in):
    folder = tmp_path / "out"
    plan = quick_plan(0.5, "replicates=1", "axes.actors=[1]")
    run_sweep(plan, folder, launcher=stand_in)
    manifest = json.loads((folder / store.MANIFEST).read_text())
    (folder / store.MANIFEST).write_text(json.dumps(manifest | {"host_id": "another"}))
    with pytest.raises(FolderError, match="measured on another host"):
        run_sweep(plan, folder, resume=True, launcher=stand_in)
    run_sweep(plan, folder, resume=True, allow_drift=True, launcher=stand_in)


@pytest.mark.parametrize("text", [None, "", '{"host_id": "a', "[]", '{"schema_version": 1}'])
def test_a_lost_manifest_is_no_way_around_the_check_for_drift(tmp_path, quick_plan, stand_in, text):
    folder = tmp_path / "out"
    plan = quick_plan(0.5, "replicates=1", "axes.actors=[1]")
    run_sweep(plan, folder, launcher=stand_in)
    whole = json.loads((folder / store.MANIFEST).read_text())
    (folder / store.MANIFEST).unlink()
    if text is not None:
        (folder / store.MANIFEST).write_text(text)
    with pytest.raises(FolderError) as error:
        run_sweep(plan, folder, resume=True, launcher=stand_in)
    assert str(error.value).startswith(f"{folder / store.MANIFEST}: is missing or damaged")
    assert "--allow-drift" in str(error.value)
    assert "\n" not in str(error.value)
    run_sweep(plan, folder, resume=True, allow_drift=True, launcher=stand_in)
    made = store.read_manifest(folder)
    assert {name: made[name] for name in ("host_id", "software_id")} == {
        name: whole[name] for name in ("host_id", "software_id")
    }


def test_a_lost_manifest_is_made_again_where_no_trial_is_finished(tmp_path, quick_plan):
    folder, plan = tmp_path / "out", quick_plan(0.5, "replicates=1", "axes.actors=[1]")
    other = quick_plan(0.5, "replicates=1", "axes.actors=[2]")
    prepare(folder, other, resume=False, allow_drift=False)
    (folder / store.MANIFEST).write_text("{")
    assert prepare(folder, plan, resume=True, allow_drift=False) == set()
    # What was planned before is gone, so the folder is this sweep's and no other's.
    assert prepare(folder, plan, resume=True, allow_drift=False) == set()
    with pytest.raises(FolderError, match="holds another sweep"):
        prepare(folder, other, resume=True, allow_drift=False)


def test_a_lost_journal_is_no_way_around_the_check_for_another_sweep(tmp_path, quick_plan, stand_in):
    folder, plan = tmp_path / "out", quick_plan(0.5, "replicates=1", "axes.actors=[1]")
    run_sweep(plan, folder, launcher=stand_in)
    (folder / store.JOURNAL).unlink()
    with pytest.raises(FolderError, match="1 of its trials are not in this specification"):
        run_sweep(quick_plan(0.5, "replicates=1", "axes.actors=[2]"), folder, resume=True, launcher=stand_in)
    run_sweep(plan, folder, resume=True, launcher=stand_in)
    assert states(folder) == {"planned": 1, "complete": 1}


def test_a_finished_trial_is_read_once_on_resume(tmp_path, quick_plan, stand_in, monkeypatch):
    folder, plan = tmp_path / "out", quick_plan(0.5, "replicates=1")
    run_sweep(plan, folder, launcher=stand_in)
    read, original = Counter(), store._read

    def counted(path, schema):
        read[path.name] += 1
        return original(path, schema)

    monkeypatch.setattr(store, "_read", counted)
    run_sweep(plan, folder, resume=True, launcher=stand_in)
    assert set(read.values()) == {1}
    assert len(read) == 3


def test_a_second_sweep_waits_for_the_lock_and_then_says_so(tmp_path, quick_plan, stand_in, monkeypatch):
    from cgratio.sweep import folder as folder_module

    monkeypatch.setattr(folder_module, "_LOCK_WAIT_S", 0.3)
    folder = tmp_path / "out"
    with folder_module.locked(folder), pytest.raises(FolderError, match="another sweep is running"):
        run_sweep(quick_plan(), folder, launcher=stand_in)


def test_a_folder_that_cannot_be_written_is_said_so(tmp_path, quick_plan, stand_in):
    (tmp_path / "file").write_text("")
    with pytest.raises(FolderError, match="cannot be written"):
        run_sweep(quick_plan(), tmp_path / "file" / "out", launcher=stand_in)
