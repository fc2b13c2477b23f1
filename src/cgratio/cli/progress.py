"""Shows a sweep as it runs: a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from rich.live import Live
from rich.text import Text

from cgratio.cli.output import complain, console, plain

if TYPE_CHECKING:
    from cgratio.sweep.runner import State

_PLAIN_EVERY_S = 10.0
_SHOWN = {"part", "environment", "actors", "actor_cpus", "device_cpus", "sm_share", "gpus", "inference_batch"}
"""Axes that a trial's line shows in its own way, or that follow from those."""


class SweepProgress:
    """One line for each finished trial, and one that tells what runs and how long is left."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._console = console()
        self._live = Live(console=self._console, refresh_per_second=4, transient=True)
        self._terminal = self._console.is_terminal
        self._spoken_s = 0.0
        self._verdicts: Counter[str] = Counter()
        self._total = 0

    def __enter__(self) -> Self:
        """Takes the terminal's last line."""
        if self._terminal:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Gives it back."""
        if self._terminal:
            self._live.stop()

    def show(self, state: State) -> None:
        """Shows one state of the sweep."""
        self._total = state.total
        if state.row is not None:
            assert state.trial
            self._verdicts[",".join(state.row["verdict"])] += 1
            self._say(_finished(state.row, state))
            self._spoken_s = time.monotonic()
        elif self._terminal:
            self._live.update(Text(plain(_running(state))))
        elif time.monotonic() - self._spoken_s > _PLAIN_EVERY_S:
            self._say(_running(state))
            self._spoken_s = time.monotonic()

    def finish(self) -> bool:
        """Says how the sweep ended; returns whether there is a valid trial to look at."""
        from cgratio.results import store

        results = store.load(self._folder)
        for flaw in results.flaws:
            complain(str(flaw), what="warning")
        trials = results.trials
        verdicts = Counter(code for verdict in trials["verdict"] for code in verdict)
        valid = verdicts.pop("valid", 0)
        others = "".join(f", {count} {code}" for code, count in verdicts.most_common())
        self._say(f"{valid} of {len(trials)} trials valid{others}; results in {self._folder}")
        if verdicts:
            self._say(f"the logs of all trials are in {self._folder / 'logs'}")
        return valid > 0

    def _say(self, text: str) -> None:
        self._console.print(Text(plain(text)), soft_wrap=True)


def _running(state: State) -> str:
    return (
        f"trial {state.done + 1}/{state.total} running for {state.running_s:.0f} s: {_point(state)}; "
        f"about {_duration(state.left_s)} left"
    )


def _finished(row: dict[str, Any], state: State) -> str:
    head = f"{state.done}/{state.total} {_point(state)}:"
    if row["samples_per_s"] is None:
        return f"{head} {row['status_reason'] or ', '.join(row['verdict'])}"
    half_width = row["samples_per_s_half_width"]
    within = f" +-{half_width / row['samples_per_s']:.1%}" if half_width is not None else ""
    boundary = row["samples_per_joule_boundary"]
    watts = f", {row['power_w']:.1f} W ({boundary})" if row["power_w"] is not None else ""
    verdict = "" if row["verdict"] == ["valid"] else f" ({', '.join(row['verdict'])})"
    rate = f"{row['samples_per_s']:,.0f} samples/s{within}{watts}{verdict}"
    return f"{head} {rate}; {_duration(state.left_s)} left"


def _point(state: State) -> str:
    assert state.trial
    axes = state.trial.axes
    shown = [str(axes["part"]), str(axes["environment"]), f"actors {axes['actors']}"]
    if axes["actor_cpus"] is not None:
        shown.append(f"actor CPUs {axes['actor_cpus']}")
    if axes["device"] == "cpu" and axes["device_cpus"] is not None:
        shown.append(f"device CPUs {axes['device_cpus']}")
    if axes["sm_share"] not in {None, 1.0}:
        shown.append(f"share {axes['sm_share']:g}")
    others = [name for name in state.varying if name not in _SHOWN and axes[name] is not None]
    shown += [f"{name.replace('_', ' ')} {axes[name]}" for name in others]
    return " ".join([*shown, "(sentinel)"] if state.trial.sentinel else shown)


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
