"""Several rounds over the same programs, and ratios within a round.

Hosts differ and drift, so programs are run one after the other in every round, in another order each time,
and only what was measured in the same round is divided.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Iterator, Sequence

from launched import Measured

_QUIET = 0.05


def interleaved(names: Sequence[str], *, rounds: int) -> Iterator[tuple[int, str]]:
    """Each name once in every round, shuffled anew; the round's number is the seed."""
    for turn in range(rounds):
        for name in random.Random(turn).sample(sorted(names), len(names)):
            yield turn, name


def ratios(over: dict[int, float], under: dict[int, float]) -> list[float]:
    """By round, for rounds that have both."""
    return [over[turn] / under[turn] for turn in sorted(over) if turn in under]


def spread(values: Sequence[float], *, digits: int = 2) -> str:
    """Median, lowest and highest."""
    if not values:
        return "-"
    median, low, high = statistics.median(values), min(values), max(values)
    if len(values) == 1:
        return f"{median:,.{digits}f}"
    return f"{median:,.{digits}f} ({low:,.{digits}f} to {high:,.{digits}f})"


def said(measured: Measured) -> str:
    """One line on a measurement, with a warning where the host was not quiet."""
    rate = f"{measured.rate:,.0f} samples/s"
    if measured.others < _QUIET:
        return rate
    return f"{rate}, but others took {measured.others:.0%} of the CPUs"


def median(values: Sequence[float], *, digits: int = 0) -> str:
    """The median alone."""
    return f"{statistics.median(values):,.{digits}f}" if values else "-"
