"""How fast the trainer is: beside public trainers, beside its bound, and where its time and memory go.

    python benchmarks/trainer.py peers  --rounds 5 --seconds 30
    python benchmarks/trainer.py bounds --rounds 3 --seconds 15 --network nature_cnn deep_resnet
    python benchmarks/trainer.py supply --rounds 3 --seconds 10
    python benchmarks/trainer.py scale  --rounds 3 --seconds 10
    python benchmarks/trainer.py start  --rounds 5

Each prints a table with the host and the day. Hosts differ and drift: only ratios within one run are worth
keeping. Nothing is pinned, but for the parts of the bound. `--rounds 1 --seconds 3` is a check that all runs.
"""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path

import bounds
import comparison
import scale
import start
import supply
from peers import cache


def main() -> None:
    # So that what was started is ended too, when this is told to end.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    options = _parser().parse_args()
    settings = {"rounds": options.rounds, "seconds": options.seconds, "warm_up_s": options.warm_up}
    match options.command:
        case "peers":
            wanted = options.only or list(comparison.NAMES)
            names = [name for name in wanted if name not in options.skip]
            comparison.compare(names, cache=options.cache, **settings)
        case "bounds":
            bounds.compare(options.network, **settings)
        case "supply":
            supply.compare(options.actors, **settings)
        case "scale":
            scale.measure_all(options.actors, options.unroll, options.device, **settings)
        case "start":
            start.measure_all(rounds=options.rounds)


def _parser() -> argparse.ArgumentParser:
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--rounds", type=int, default=3)
    common.add_argument("--seconds", type=float, default=15, help="measured in each round, at least")
    common.add_argument(
        "--warm-up", type=float, default=5, help="seconds from the first report on, not measured"
    )
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = made.add_subparsers(dest="command", required=True)

    peers = commands.add_parser("peers", parents=[common], help="beside public trainers")
    peers.add_argument("--cache", type=Path, default=cache.DEFAULT, help="folder for what peers need")
    peers.add_argument(
        "--only", nargs="+", choices=comparison.NAMES, metavar="NAME", help=", ".join(comparison.NAMES)
    )
    peers.add_argument("--skip", nargs="+", choices=comparison.NAMES, metavar="NAME", default=[])

    of_bounds = commands.add_parser("bounds", parents=[common], help="beside the bound")
    of_bounds.add_argument("--network", nargs="+", default=["nature_cnn", "deep_resnet"])

    of_supply = commands.add_parser("supply", parents=[common], help="beside envpool alone")
    of_supply.add_argument("--actors", nargs="+", type=int, default=[8, 16, 32, 64, 128, 256, 512, 1024])

    of_scale = commands.add_parser("scale", parents=[common], help="cost and memory by actors and unroll")
    of_scale.add_argument("--actors", nargs="+", type=int, default=[16, 64, 256, 1024])
    of_scale.add_argument("--unroll", nargs="+", type=int, default=[20, 80])
    of_scale.add_argument(
        "--device", nargs="+", default=["emulated", "cpu"], choices=["emulated", "cpu", "cuda"]
    )

    commands.add_parser("start", parents=[common], help="from the start to the first update")
    return made


if __name__ == "__main__":
    main()
