"""Our trainer beside public ones and beside the bound, in one interleaved run on one host."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path

from rich.markup import escape

import alone
import bounds
from host import cpus, show, table
from launched import FailedError, Measured, Program, measure
from peers.cache import UnavailableError, ready
from peers.catalogue import PEERS
from rounds import interleaved, median, ratios, said, spread

PLAIN = {
    "plain-fp32": (["--precision=fp32"], "fp32, acting and learning in turn"),
    "plain-bf16": (["--precision=bf16"], "bf16 autocast, acting and learning in turn"),
    "plain-thread": (["--precision=bf16", "--learner-thread"], "bf16 autocast, learner in its own thread"),
}
NAMES = (*PEERS, *PLAIN)


@dataclass
class Row:
    """One program of the table.

    Attributes:
        name, setting: as shown.
        program: to start; None where it cannot be had.
        measured: by round.
        reason: why it is missing, if it is.
    """

    name: str
    setting: str
    program: Program | None
    measured: dict[int, Measured] = field(default_factory=dict)
    reason: str | None = None

    def rates(self) -> dict[int, float]:
        """Samples/s by round."""
        return {turn: measured.rate for turn, measured in self.measured.items()}


def compare(names: list[str], *, cache: Path, rounds: int, seconds: float, warm_up_s: float) -> None:
    """Runs everything in every round and prints the ratios."""
    rows = {bounds.OURS: Row(bounds.OURS, "64 actors, T=20, B=32", alone.program())}
    for name in names:
        rows[name] = _peer(name, cache) if name in PEERS else _plain(name)
        if rows[name].reason:
            print(f"{rows[name].name}: skipped: {rows[name].reason}", flush=True)
    parts, bound = bounds.programs("nature_cnn"), bounds.Bound.empty()
    for turn, name in interleaved([*rows, *parts], rounds=rounds):
        row = rows.get(name)
        program = row.program if row else parts[name]
        if program is None:
            continue
        try:
            measured = measure(program, seconds=seconds, warm_up_s=warm_up_s)
        except FailedError as error:
            print(f"round {turn + 1}: {name}: {error}", flush=True)
            if row:
                row.reason = str(error)
            continue
        print(f"round {turn + 1}: {name}: {said(measured)}", flush=True)
        if row:
            row.measured[turn] = measured
        else:
            bound.add(name, turn, rate=measured.rate)
    _show(list(rows.values()), bound, rounds=rounds, seconds=seconds)


def _peer(name: str, cache: Path) -> Row:
    peer = PEERS[name]
    try:
        return Row(peer.name, peer.setting, ready(peer, cache=cache))
    except UnavailableError as error:
        return Row(peer.name, peer.setting, None, reason=str(error))


def _plain(name: str) -> Row:
    options, setting = PLAIN[name]
    script = Path(__file__).parent / "peers" / "plain_vtrace.py"
    program = Program(command=[sys.executable, str(script), *options], report=r"^(\d+) samples")
    return Row("plain V-trace loop on envpool", f"64 envs, T=20, B=32, {setting}", program)


def _show(rows: list[Row], bound: bounds.Bound, *, rounds: int, seconds: float) -> None:
    ours = rows[0].rates()
    made = table(
        f"Pong-v5, 84x84x4, frame skip 4, Nature CNN, no GPU: {rounds} interleaved rounds of at least "
        f"{seconds:g} s. A sample is an agent step. Ratios within a round: median (lowest to highest). "
        f"CPU: share of {len(cpus())} CPUs; others: what other programs took of them; start: until the first "
        "report.",
        "trainer",
        "samples/s",
        f"{bounds.OURS} / it",
        "CPU %",
        "PSS MB",
        "start s",
        "others %",
    )
    best_first = sorted(rows, key=lambda row: -max(row.rates().values(), default=0.0))
    for row in best_first:
        label = f"{row.name}\n[dim]{row.setting}[/dim]"
        if row.reason:
            what = f"failed in {rounds - len(row.measured)} rounds" if row.program else "skipped"
            label += f"\n[yellow]{what}: {escape(row.reason)}[/yellow]"
        made.add_row(label, *(_numbers(row, ours) if row.measured else ()))
    rates = bound.rates()
    made.add_section()
    steps = ", ".join(
        f"{part} {value}" for part, value in zip(bounds.PARTS, bound.microseconds(), strict=True)
    )
    made.add_row(
        f"bound\n[dim]µs alone on one CPU: {steps}[/dim]",
        median(list(rates.values())),
        spread(ratios(ours, rates)),
    )
    show(made)


def _numbers(row: Row, ours: dict[int, float]) -> tuple[str, ...]:
    seen = list(row.measured.values())
    return (
        median([measured.rate for measured in seen]),
        spread(ratios(ours, row.rates())),
        median([100 * measured.busy for measured in seen]),
        median([measured.pss_bytes / 1e6 for measured in seen]),
        median([measured.start_s for measured in seen], digits=1),
        median([100 * measured.others for measured in seen]),
    )
