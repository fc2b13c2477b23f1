"""The trainer beside the simplest peer, interleaved on one host; prints a table of ratios.

    python benchmarks/trainer.py --rounds 3 --seconds 20

Hosts differ and drift, so only the ratio inside one run is worth keeping. Nothing is pinned: each program
gets all CPUs and does with them what it does.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import statistics
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table

from cgratio.trainer.config import TrainerConfig
from cgratio.trainer.impala import Impala, Progress

HERE = Path(__file__).parent
PLAIN = [sys.executable, str(HERE / "peers" / "plain_vtrace.py")]
OURS = [sys.executable, str(HERE / "trainer.py"), "--alone"]
PROGRAMS = {
    "plain V-trace loop, fp32": [*PLAIN, "--precision", "fp32"],
    "plain V-trace loop, bf16": [*PLAIN, "--precision", "bf16"],
    "cgratio": OURS,
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--alone", action="store_true", help="run the trainer once and print its rate")
    options = parser.parse_args()
    if options.alone:
        print(alone(options.seconds))
        return
    rates: dict[str, list[float]] = {name: [] for name in PROGRAMS}
    for turn in range(options.rounds):
        order = random.Random(turn).sample(sorted(PROGRAMS), len(PROGRAMS))
        for name in order:
            command = [*PROGRAMS[name], "--seconds", str(options.seconds)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            rates[name].append(float(done.stdout.split()[-1]))
            print(f"round {turn + 1}: {name}: {rates[name][-1]:,.0f} samples/s", flush=True)
    show(rates, options)


def show(rates: dict[str, list[float]], options: argparse.Namespace) -> None:
    table = Table(
        title=f"Pong-v5, 64 actors, T=20: {options.rounds} interleaved rounds of {options.seconds:g} s, "
        f"{len(os.sched_getaffinity(0))} CPUs, {platform.machine()}, {datetime.now(UTC):%Y-%m-%d}"
    )
    for column in ("program", "samples/s (median)", "cgratio / program, by round"):
        table.add_column(column)
    for name, values in rates.items():
        ratios = [ours / theirs for ours, theirs in zip(rates["cgratio"], values, strict=True)]
        shown = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
        table.add_row(name, f"{statistics.median(values):,.0f}", shown)
    Console(width=110).print(table)


def alone(seconds: float, *, warm_up_s: float = 5.0) -> float:
    """Samples per second of the trainer, after a warm-up."""
    run = Impala(
        TrainerConfig(actors=64, inference_batch=32, actor_threads=2, device_threads=1, learner_batch=32)
    )
    marks: list[tuple[float, int]] = []
    begun = time.perf_counter()

    def until(now: Progress) -> bool:
        if now.time_s - begun > warm_up_s:
            marks.append((now.time_s, now.samples))
        return now.time_s - begun > warm_up_s + seconds

    run.run(until=until)
    run.close()
    (first_s, first), (last_s, last) = marks[0], marks[-1]
    return (last - first) / (last_s - first_s)


if __name__ == "__main__":
    main()
