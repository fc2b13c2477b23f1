"""envpool alone, driven by random actions, as a program that reports its samples.

    python benchmarks/raw_envpool.py --actors 64 --batch 32 --threads 2

It shares no code with cgratio: this is the most that environments could supply.
"""

from __future__ import annotations

import argparse
import os
import sys
import time

import envpool
import numpy as np

from launched import Program

EVERY_S = 0.25


def program(*, actors: int, batch: int, threads: int, cpu: int | None = None) -> Program:
    """What runs this file with these settings; with `cpu`, all of it on that one."""
    command = [sys.executable, __file__, f"--actors={actors}", f"--batch={batch}", f"--threads={threads}"]
    if cpu is not None:
        command.append(f"--cpu={cpu}")
    return Program(command=command, report=r"^(\d+) samples")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--actors", type=int, default=64)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--cpu", type=int)
    options = parser.parse_args()
    if options.cpu is not None:
        os.sched_setaffinity(0, {options.cpu})
    pool = envpool.make(
        "Pong-v5",
        env_type="gymnasium",
        num_envs=options.actors,
        batch_size=options.batch,
        num_threads=options.threads,
        seed=1,
    )
    actions = np.random.default_rng(0).integers(0, pool.action_space.n, (1024, options.batch), np.int32)
    ended = np.ones(options.actors, bool)  # the call that only resets is no sample
    samples, turn, reported_s = 0, 0, time.perf_counter()
    pool.async_reset()
    while True:
        _, _, terminated, truncated, info = pool.recv()
        ids = info["env_id"]
        samples += int((~ended[ids]).sum())
        ended[ids] = terminated | truncated
        turn = (turn + 1) % len(actions)
        pool.send(actions[turn], ids)
        if time.perf_counter() > reported_s + EVERY_S:
            reported_s = time.perf_counter()
            print(samples, "samples", flush=True)


if __name__ == "__main__":
    main()
