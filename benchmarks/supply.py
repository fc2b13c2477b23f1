"""Environment supply: our actor loops with an accelerator that takes no time, beside envpool alone."""

from __future__ import annotations

import alone
import raw_envpool
from cgratio.trainer.config import default_batch
from host import cpus, show, table
from launched import FailedError, measure
from rounds import interleaved, median, ratios, said, spread

_OURS, _RAW = "cgratio", "envpool alone"


def compare(actors: list[int], *, rounds: int, seconds: float, warm_up_s: float) -> None:
    """Measures both at the same threads and batch, for each number of actors."""
    threads = len(cpus())
    made = table(
        f"Supply of {threads} environment threads, Pong-v5, emulated device at no time, T=20, B=32: {rounds} "
        f"interleaved rounds of {seconds:g} s, samples/s.",
        "actors",
        "batch",
        _RAW,
        _OURS,
        f"{_OURS} / {_RAW}",
        "its CPU %",
        "our CPU %",
    )
    for count in actors:
        batch = min(32, default_batch(count))
        programs = {
            _RAW: raw_envpool.program(actors=count, batch=batch, threads=threads),
            _OURS: alone.program(actors=count, device="emulated", threads=threads),
        }
        rates: dict[str, dict[int, float]] = {name: {} for name in programs}
        busy: dict[str, list[float]] = {name: [] for name in programs}
        for turn, name in interleaved(list(programs), rounds=rounds):
            try:
                measured = measure(programs[name], seconds=seconds, warm_up_s=warm_up_s)
            except FailedError as error:
                print(f"{count} actors, round {turn + 1}: {name}: {error}", flush=True)
                continue
            rates[name][turn] = measured.rate
            busy[name].append(100 * measured.busy)
            print(f"{count} actors, round {turn + 1}: {name}: {said(measured)}", flush=True)
        made.add_row(
            str(count),
            str(batch),
            *(median(list(rates[name].values())) for name in (_RAW, _OURS)),
            spread(ratios(rates[_OURS], rates[_RAW])),
            *(median(busy[name]) for name in (_RAW, _OURS)),
        )
    show(made)
