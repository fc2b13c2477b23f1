"""A sweep of the real trainer with real environments, killed at a moment that nobody chose."""

import contextlib
import os
import signal
import subprocess
import sys
import time

import psutil

from cgratio.results import store

SPEC = """
name: small and real
axes: {part: whole, environment: CartPole-v1, network: mlp, actors: [4, 8], device: cpu, precision: fp32}
replicates: 2
trial: {window_s: 0.2, warmup_min_s: 0.2, warmup_max_s: 0.4, max_s: 1.5, min_updates: 1, half_width: 0.5}
"""


def left_behind(mark):
    """Living processes that were started with a mark in their environment, or by such."""
    found = []
    for process in psutil.process_iter(["status"]):
        if process.info["status"] != psutil.STATUS_ZOMBIE:
            with contextlib.suppress(psutil.Error):
                found += [process.cmdline()] * (process.environ().get("CGRATIO_TEST_MARK") == mark)
    return found


def test_killed_with_real_environments_and_resumed_every_trial_is_there_once(tmp_path):
    spec, folder = tmp_path / "s.yaml", tmp_path / "out"
    spec.write_text(SPEC)
    command = [sys.executable, "-m", "cgratio", "sweep", str(spec), "--out", str(folder)]
    marked = os.environ | {"CGRATIO_TEST_MARK": str(folder)}
    sweep = subprocess.Popen(command, start_new_session=True, env=marked)
    after_s = int.from_bytes(os.urandom(2)) / 2**16 * 20  # from planning to the third trial or so
    print(f"killed after {after_s:.2f} s")  # noqa: T201 - shown when the test fails
    time.sleep(after_s)
    os.kill(sweep.pid, signal.SIGKILL)
    sweep.wait()
    deadline = time.monotonic() + 30
    while (left := left_behind(str(folder))) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not left
    written = {path: path.stat().st_mtime_ns for path in folder.glob("trials/*.parquet")}
    done = subprocess.run([*command, "--resume"], capture_output=True, text=True, check=False, env=marked)
    assert done.returncode == 0, done.stderr
    assert not left_behind(str(folder))
    results = store.load(folder, strict=True)
    assert [list(verdict) for verdict in results.trials["verdict"]] == [["valid"]] * 4
    complete = [entry["trial_id"] for entry in store.read_journal(folder) if entry["state"] == "complete"]
    assert sorted(complete) == sorted(results.trials["trial_id"])  # each once
    assert all(path.stat().st_mtime_ns == moment for path, moment in written.items())
