"""From the start of the process to the first update of the learner, by what happens in between.

python benchmarks/start.py     one start, as JSON
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time

STAGES = ("interpreter and imports", "environments", "network and memory", "first sample", "first update")
_POLL_S = 0.002


def measure_all(*, rounds: int) -> None:
    """Starts the trainer several times and prints where the seconds go."""
    from host import show, table
    from rounds import spread

    seen: dict[str, list[float]] = {stage: [] for stage in (*STAGES, "in all")}
    for turn in range(rounds):
        begun_s = time.monotonic()
        command = [sys.executable, __file__, f"--begun-s={begun_s}"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        for stage, seconds in json.loads(done.stdout.splitlines()[-1]).items():
            seen[stage].append(seconds)
        print(f"start {turn + 1}: {seen['in all'][-1]:.2f} s", flush=True)
    total = statistics.median(seen["in all"])
    made = table(
        f"From the start to the first update, Pong-v5, Nature CNN, 64 actors, T=20, B=32: {rounds} starts, "
        "median (lowest to highest).",
        "stage",
        "seconds",
        "share of all",
    )
    for stage, values in seen.items():
        made.add_row(stage, spread(values), f"{statistics.median(values) / total:.0%}")
    show(made)


def once(begun_s: float) -> dict[str, float]:
    """Starts the trainer in this process; the clock is the same in all processes of a host."""
    import envpool  # noqa: F401 - else it would count as a part of making environments
    import torch  # noqa: F401

    import alone
    from cgratio.trainer import run as run_module
    from cgratio.trainer.progress import Progress

    ends = {STAGES[0]: time.monotonic()}
    make = run_module.make_environments

    def make_and_note(*arguments: object) -> object:
        made = make(*arguments)
        ends[STAGES[1]] = time.monotonic()
        return made

    run_module.make_environments = make_and_note
    run = run_module.Run(alone.configuration(alone.parser().parse_args([])))
    ends[STAGES[2]] = time.monotonic()

    def until(now: Progress) -> bool:
        if now.samples and STAGES[3] not in ends:
            ends[STAGES[3]] = time.monotonic()
        if now.updates:
            ends[STAGES[4]] = time.monotonic()
        return now.updates > 0

    run.run(until=until, every_s=_POLL_S)
    run.close()
    before_s, seconds = begun_s, {}
    for stage in STAGES:
        seconds[stage] = ends[stage] - before_s
        before_s = ends[stage]
    return seconds | {"in all": before_s - begun_s}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--begun-s", type=float, default=time.monotonic())
    print(json.dumps(once(parser.parse_args().begun_s)))
