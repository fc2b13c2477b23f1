"""What a sample costs and how much memory is held, by actors and unroll, at the same CPUs."""

from __future__ import annotations

import itertools
import statistics

import alone
from host import cpus, show, table
from launched import FailedError, Measured, measure
from rounds import interleaved, median, said


def measure_all(
    actors: list[int],
    unrolls: list[int],
    devices: list[str],
    *,
    rounds: int,
    seconds: float,
    warm_up_s: float,
) -> None:
    """Measures every combination."""
    points = {
        f"{device}, {count} actors, T={unroll}": (device, unroll, count)
        for device, unroll, count in itertools.product(devices, unrolls, actors)
    }
    seen: dict[str, list[Measured]] = {name: [] for name in points}
    for turn, name in interleaved(list(points), rounds=rounds):
        device, unroll, count = points[name]
        program = alone.program(actors=count, unroll=unroll, device=device)
        try:
            measured = measure(program, seconds=seconds, warm_up_s=warm_up_s)
        except FailedError as error:
            print(f"round {turn + 1}: {name}: {error}", flush=True)
            continue
        seen[name].append(measured)
        print(f"round {turn + 1}: {name}: {said(measured)}", flush=True)
    _show(points, seen, rounds=rounds, seconds=seconds)


def _show(
    points: dict[str, tuple[str, int, int]], seen: dict[str, list[Measured]], *, rounds: int, seconds: float
) -> None:
    made = table(
        f"By actors and unroll on {len(cpus())} CPUs, Pong-v5, Nature CNN, B=32: {rounds} interleaved rounds "
        f"of {seconds:g} s, medians. The emulated device takes no time.",
        "device",
        "T",
        "actors",
        "samples/s",
        "CPU µs per sample",
        "to fewest actors",
        "PSS MB",
        "MB per actor more",
        "others %",
    )
    first: tuple[str, int, float, int, float] | None = None
    for name, (device, unroll, count) in points.items():
        measured = seen[name]
        if not measured:
            made.add_row(device, str(unroll), str(count), "failed")
            continue
        cost = statistics.median(1e6 * one.cpu_s for one in measured)
        memory = statistics.median(one.pss_bytes / 1e6 for one in measured)
        if first is None or first[:2] != (device, unroll):
            first = (device, unroll, cost, count, memory)
        more = f"{(memory - first[4]) / (count - first[3]):.2f}" if count > first[3] else "-"
        numbers = (
            median([one.rate for one in measured]),
            f"{cost:,.0f}",
            f"{cost / first[2]:.2f}",
            f"{memory:,.0f}",
            more,
            median([100 * one.others for one in measured]),
        )
        made.add_row(device, str(unroll), str(count), *numbers)
    show(made)
