import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

Tree = Callable[[Mapping[str, str]], Path]
SAMPLER = [sys.executable, "-m", "cgratio.telemetry.sampler"]


def start(*options: str) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen([*SAMPLER, *options], stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def finish(process: subprocess.Popen[str]) -> list[dict]:
    """Ends its input, and returns the lines that it still wrote."""
    out, err = process.communicate(timeout=10)
    assert (process.returncode, err) == (0, "")
    return [json.loads(line, parse_constant=pytest.fail) for line in out.splitlines()]


def gone(pid: int, *, within_s: float = 5.0) -> bool:
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    return False


def test_it_prints_a_header_ticks_and_its_own_cost() -> None:
    process = start("--period", "0.05", "--pid", str(os.getpid()), "--gpu")
    assert process.stdout is not None
    header, first = (json.loads(process.stdout.readline()) for _ in range(2))
    time.sleep(0.7)
    *ticks, last = finish(process)
    assert header["missing"]["gpu_power"] == "no GPU was asked for"
    assert header["sensors"]["process_cpu"] == [str(os.getpid())]
    assert 0 < last["sampler_cpu_s"] < 1
    assert not set(header["sensors"]) & set(header["missing"])
    times = [tick["t"] for tick in (first, *ticks)]
    assert times == sorted(times)
    assert len(times) >= 8
    # The last tick comes when it is told to stop; the others are on a grid.
    steps = [(t - times[0]) / 0.05 for t in times[:-1]]
    assert sum(abs(step - round(step)) < 0.3 for step in steps) >= len(steps) // 2
    # Slow sensors are in the first and in the last tick.
    for tick in (first, ticks[-1]):
        assert "process_cpu" in {reading[0] for reading in tick["r"]}
    assert all(len(reading) == 4 for tick in ticks for reading in tick["r"])


def test_sigterm_ends_it_with_a_last_reading() -> None:
    process = start("--period", "5", "--gpu")
    assert process.stdout is not None
    first = [json.loads(process.stdout.readline()) for _ in range(2)][1]
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)
    tick, last = finish(process)
    assert 0 <= tick["t"] - first["t"] < 4
    assert "sampler_cpu_s" in last


def test_counters_of_a_saved_tree_are_sampled(tree: Tree) -> None:
    zone = "sys/class/powercap/intel-rapl:0"
    root = tree(
        {
            f"{zone}/name": "package-0",
            f"{zone}/energy_uj": "262138328850",
            f"{zone}/max_energy_range_uj": "262143328850",
        }
    )
    process = start("--period", "0.05", "--root", str(root))
    assert process.stdout is not None
    first = [json.loads(process.stdout.readline()) for _ in range(2)][1]
    (root / zone / "energy_uj").write_text("10000000\n", encoding="ascii")
    tick = finish(process)[-2]
    values = [{r[0]: r[2] for r in t["r"]}["cpu_energy"] for t in (first, tick)]
    # Case C5.
    assert values[1] - values[0] == pytest.approx(15)


def test_it_does_not_outlive_a_parent_that_is_killed() -> None:
    # Its input is kept open from here, so that only the parent's death can end it.
    read_end, write_end = os.pipe()
    code = f"""
import subprocess, sys, time
command = {[*SAMPLER, "--period", "0.05", "--gpu"]!r}
child = subprocess.Popen(command, stdin={read_end}, stdout=subprocess.PIPE)
child.stdout.readline()
print(child.pid, flush=True)
while child.stdout.readline(): pass
"""
    parent = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, pass_fds=[read_end]
    )
    assert parent.stdout is not None
    sampler = int(parent.stdout.readline())
    assert not gone(sampler, within_s=0.2)
    parent.kill()
    parent.communicate()
    assert gone(sampler)
    os.close(read_end)
    os.close(write_end)


def test_it_ends_at_once_if_its_parent_is_gone_already() -> None:
    process = start("--gpu", "--parent", str(2**22 + 1))
    assert process.wait(timeout=10) == -signal.SIGKILL  # as its parent's death would have ended it
    assert process.stdout is not None
    assert process.stdout.read() == ""
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            stream.close()


def test_it_ends_quietly_when_nobody_reads() -> None:
    process = start("--period", "0.01", "--gpu")
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == ""
    assert process.wait(timeout=10) == 0
    process.stderr.close()
    assert process.stdin is not None
    process.stdin.close()


@pytest.mark.parametrize("period", ["0", "-1", "nan", "inf", "x"])
def test_a_period_that_cannot_be_meant_is_refused(period: str) -> None:
    process = subprocess.run([*SAMPLER, "--period", period], capture_output=True, text=True, check=False)
    assert process.returncode == 2
    assert "--period" in process.stderr


def test_it_starts_without_heavy_modules() -> None:
    heavy = ("torch", "pandas", "numpy", "pynvml")
    code = f"import sys, cgratio.telemetry.sampler; print([m for m in {heavy} if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"
