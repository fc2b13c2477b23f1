"""Shows a sweep as it runs: a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.text import Text

if TYPE_CHECKING:
    from cgratio.sweep.runner import State

_PLAIN_EVERY_S = 10.0
_SHOWN = {"part", "environment", "actors", "actor_cpus", "device_cpus", "sm_share", "gpus", "inference_batch"}
"""Axes that a trial's line shows in its own way, or that follow from those."""


class SweepProgress:
    """One line for each finished trial, and one that tells what runs and how long is left."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._console = Console(highlight=False)
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
            self._console.print(escape(_finished(state.row, state)), soft_wrap=True)
            self._spoken_s = time.monotonic()
        elif self._terminal:
            self._live.update(Text(_running(state)))
        elif time.monotonic() - self._spoken_s > _PLAIN_EVERY_S:
            self._console.print(escape(_running(state)), soft_wrap=True)
            self._spoken_s = time.monotonic()

    def finish(self) -> bool:
        """Says how the sweep ended; returns whether there is a valid trial to look at."""
        from cgratio.results import store

        trials = store.load(self._folder).trials
        verdicts = Counter(code for verdict in trials["verdict"] for code in verdict)
        valid = verdicts.pop("valid", 0)
        others = "".join(f", {count} {code}" for code, count in verdicts.most_common())
        self._console.print(
            escape(f"{valid} of {len(trials)} trials valid{others}; results in {self._folder}"),
            soft_wrap=True,
        )
        if verdicts:
            self._console.print(
                escape(f"the logs of all trials are in {self._folder / 'logs'}"), soft_wrap=True
            )
        return valid > 0


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
    shown += [f"{name.replace('_', ' ')} {axes[name]}" for name in state.varying if name not in _SHOWN]
    return " ".join(shown)


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
