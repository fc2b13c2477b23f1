"""Our trainer as a program that reports its samples until it is stopped.

python benchmarks/alone.py --actors 64
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

from cgratio.trainer.config import DeviceProfile, TrainerConfig, default_batch
from cgratio.trainer.progress import Progress
from cgratio.trainer.run import Run
from host import cpus
from launched import Program

LOOK_S = 0.05


def program(
    *,
    actors: int = 64,
    unroll: int = 20,
    batch: int = 32,
    network: str = "nature_cnn",
    device: str = "cpu",
    threads: int | None = None,
) -> Program:
    """What runs this file with these settings."""
    command = [sys.executable, __file__, f"--network={network}", f"--device={device}"]
    command += [f"--actors={actors}", f"--unroll={unroll}", f"--batch={batch}"]
    command += [f"--threads={threads or len(cpus())}"]
    # All actors fill their unrolls at about the same time, so updates come in waves: measure whole ones.
    return Program(command=command, report=r"^(\d+) samples", least=2 * actors * unroll)


def configuration(options: argparse.Namespace) -> TrainerConfig:
    """All CPUs step environments, and half of them compute one operator: what a user would take at first."""
    return TrainerConfig(
        network=options.network,
        device=options.device,
        profile=DeviceProfile() if options.device == "emulated" else None,
        actors=options.actors,
        actor_threads=options.threads,
        device_threads=max(1, len(cpus()) // 2),
        inference_batch=min(32, default_batch(options.actors)),
        unroll_length=options.unroll,
        learner_batch=options.batch,
    )


def main() -> None:
    options = parser().parse_args()
    run = Run(configuration(options))
    run.run(until=reporter(learned=options.device != "emulated"), every_s=LOOK_S)


def reporter(*, learned: bool) -> Callable[[Progress], bool]:
    """Prints the samples so far after each update, so that no report lies in the midst of one; never stops.

    Args:
        learned: to count samples when they are learned from. In the long run there are as many as are made,
            but actors that wait for a slow learner make theirs in bursts.
    """
    reported = 0

    def report(now: Progress) -> bool:
        nonlocal reported
        if now.updates > reported:
            reported = now.updates
            print(now.learned if learned else now.samples, "samples", flush=True)
        return False

    return report


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=__doc__)
    made.add_argument("--network", default="nature_cnn")
    made.add_argument("--device", default="cpu", choices=["cpu", "cuda", "emulated"])
    made.add_argument("--actors", type=int, default=64)
    made.add_argument("--unroll", type=int, default=20)
    made.add_argument("--batch", type=int, default=32, help="unrolls in one update")
    made.add_argument("--threads", type=int, default=len(cpus()), help="that step environments")
    return made


if __name__ == "__main__":
    main()
