"""The bound: what all CPUs could do if each part of a sample cost what it costs alone.

A sample needs one step of its environment, one share of an inference and one share of an update. Each part is
timed alone on one CPU while the others are idle, without copies, queues or anything that waits, so no run can
reach the bound; how near it comes says how much of the time is spent on nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass

import alone
import parts
import raw_envpool
from host import cpus, show, table
from launched import FailedError, Program, measure
from rounds import interleaved, median, ratios, said, spread

PARTS = ("environment", "inference", "learner")
OURS = "cgratio"
_WARM_UP_S = 2.0  # of a part


def programs(network: str) -> dict[str, Program]:
    """The three parts, each on the last CPU; the others are left idle."""
    cpu = cpus()[-1]
    return {
        "environment": raw_envpool.program(actors=64, batch=32, threads=1, cpu=cpu),
        "inference": parts.program("inference", network=network, cpu=cpu),
        "learner": parts.program("learner", network=network, cpu=cpu),
    }


@dataclass
class Bound:
    """Parts in seconds per sample, by round."""

    seconds: dict[str, dict[int, float]]

    @classmethod
    def empty(cls) -> Bound:
        """Before anything is measured."""
        return cls({part: {} for part in PARTS})

    def add(self, part: str, turn: int, *, rate: float) -> None:
        """Adds a part, measured in samples/s."""
        self.seconds[part][turn] = 1 / rate

    def rates(self) -> dict[int, float]:
        """The bound in samples/s, of each round in which all parts were measured."""
        complete = set.intersection(*(set(by_round) for by_round in self.seconds.values()))
        return {
            turn: len(cpus()) / sum(self.seconds[part][turn] for part in PARTS) for turn in sorted(complete)
        }

    def microseconds(self) -> list[str]:
        """Medians of the parts, in their order."""
        return [median([1e6 * s for s in self.seconds[part].values()], digits=1) for part in PARTS]


def compare(networks: list[str], *, rounds: int, seconds: float, warm_up_s: float) -> None:
    """Measures the bound and our trainer, for each network, and prints their ratio."""
    made = table(
        f"The bound of {len(cpus())} CPUs, Pong-v5, inference of 32, updates of 32 x 20: {rounds} "
        f"interleaved rounds of {seconds:g} s. Parts in µs per sample, alone on one CPU; rates in samples/s.",
        "network",
        *PARTS,
        "bound",
        OURS,
        f"{OURS} / bound",
    )
    for network in networks:
        bound, ours = Bound.empty(), dict[int, float]()
        started = programs(network) | {OURS: alone.program(network=network)}
        for turn, name in interleaved(list(started), rounds=rounds):
            warm_s = _WARM_UP_S if name in PARTS else warm_up_s
            try:
                measured = measure(started[name], seconds=seconds, warm_up_s=warm_s)
            except FailedError as error:
                print(f"{network}, round {turn + 1}: {name}: {error}", flush=True)
                continue
            print(f"{network}, round {turn + 1}: {name}: {said(measured)}", flush=True)
            if name in PARTS:
                bound.add(name, turn, rate=measured.rate)
            else:
                ours[turn] = measured.rate
        rates = bound.rates()
        shown = median(list(rates.values())), median(list(ours.values())), spread(ratios(ours, rates))
        made.add_row(network, *bound.microseconds(), *shown)
    show(made)
