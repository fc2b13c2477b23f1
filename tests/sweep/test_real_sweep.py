"""A sweep of the real trainer with real environments, killed at a moment that nobody chose."""

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


def workloads(folder):
    """Processes of a sweep into the folder, and those that they started."""
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        mine = str(folder) in " ".join(process.info["cmdline"] or ())
        if mine and process.info["status"] != psutil.STATUS_ZOMBIE:
            found += [process, *process.children(recursive=True)]
    return found


def test_killed_with_real_environments_and_resumed_every_trial_is_there_once(tmp_path):
    spec, folder = tmp_path / "s.yaml", tmp_path / "out"
    spec.write_text(SPEC)
    command = [sys.executable, "-m", "cgratio", "sweep", str(spec), "--out", str(folder)]
    sweep = subprocess.Popen(command, start_new_session=True)
    deadline = time.monotonic() + 120
    while not list(folder.glob("trials/*.parquet")) and time.monotonic() < deadline:
        assert sweep.poll() is None
        time.sleep(0.05)
    time.sleep(int.from_bytes(os.urandom(2)) / 2**16 * 6)  # anywhere in the second trial, or past it
    started = workloads(folder)
    os.kill(sweep.pid, signal.SIGKILL)
    sweep.wait()
    _, alive = psutil.wait_procs(started, timeout=30)
    assert not alive, [process.cmdline() for process in alive]
    done = subprocess.run([*command, "--resume"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    results = store.load(folder, strict=True)
    assert len(results.trials) == 4
    assert results.trials["trial_id"].is_unique
    assert [list(verdict) for verdict in results.trials["verdict"]] == [["valid"]] * 4
    assert not workloads(folder)
