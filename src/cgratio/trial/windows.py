"""Cuts a trial's counts into windows and finds the steady part. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from cgratio.analysis.steady_state import mser5_cut, relative_half_width
from cgratio.trial.request import Limits
from cgratio.workload.protocol import Count


class StopReason(StrEnum):
    """Why a trial stopped measuring."""

    NARROW_ENOUGH = "narrow_enough"
    CAP = "cap"


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """What happened between two counts; differences of their fields."""

    start_s: float
    end_s: float
    samples: int
    updates: int
    batches: int
    learned: int
    lag_sum: float
    episodes: int
    environment_cpu_s: float | None
    device_cpu_s: float | None
    device_busy_s: float | None
    stages: dict[str, float]

    @property
    def duration_s(self) -> float:
        """Length in seconds."""
        return self.end_s - self.start_s

    @property
    def rate(self) -> float:
        """Samples per second."""
        return self.samples / self.duration_s


def between(first: Count, last: Count) -> Window:
    """The window from one count to a later one."""

    def difference(before: float | None, after: float | None) -> float | None:
        return None if before is None or after is None else after - before

    return Window(
        start_s=first.time_s,
        end_s=last.time_s,
        samples=last.samples - first.samples,
        updates=last.updates - first.updates,
        batches=last.batches - first.batches,
        learned=last.learned - first.learned,
        lag_sum=last.lag_sum - first.lag_sum,
        episodes=last.episodes - first.episodes,
        environment_cpu_s=difference(first.environment_cpu_s, last.environment_cpu_s),
        device_cpu_s=difference(first.device_cpu_s, last.device_cpu_s),
        device_busy_s=difference(first.device_busy_s, last.device_busy_s),
        stages={stage: seconds - first.stages.get(stage, 0.0) for stage, seconds in last.stages.items()},
    )


class WindowCutter:
    """Collects counts as they come and closes a window whenever one is long enough.

    Counting begins with the first sample, so a start that has none is no window. A remainder shorter than
    a window is dropped.
    """

    def __init__(self, *, window_s: float) -> None:
        self._window_s = window_s
        self._first: Count | None = None
        self.windows: list[Window] = []
        self.marks: list[Count] = []  # the counts between which the windows lie, one more than windows

    def add(self, count: Count) -> bool:
        """Adds one count; returns whether it closed a window."""
        if self._first is None:
            if count.samples > 0:
                self._first = count
                self.marks.append(count)
            return False
        if count.time_s - self._first.time_s < self._window_s:
            return False
        self.windows.append(between(self._first, count))
        self.marks.append(count)
        self._first = count
        return True


def first_steady(windows: Sequence[Window], *, limits: Limits) -> int:
    """Index of the first steady window: MSER-5 between the shortest and the longest warm-up.

    The cut leaves the windows that a valid trial needs, where there are so many.
    """
    floor = round(limits.warmup_min_s / limits.window_s)
    cap = min(round(limits.warmup_max_s / limits.window_s), len(windows) - limits.min_windows)
    cap = max(floor, cap)
    return mser5_cut(np.array([window.rate for window in windows]), floor=floor, cap=cap)


def steady_half_width(windows: Sequence[Window]) -> float | None:
    """Relative 95 % half-width of the rate over steady windows; None if it cannot be told."""
    return relative_half_width(np.array([window.rate for window in windows]))


def stop_reason(windows: Sequence[Window], *, limits: Limits, trains: bool) -> StopReason | None:
    """Whether the trial has seen enough: its interval is narrow, or its time is up.

    Args:
        windows: so far.
        limits: of the trial.
        trains: whether a learner runs, whose updates must then be enough too.
    """
    steady = windows[first_steady(windows, limits=limits) :]
    learned = not trains or sum(window.updates for window in steady) >= limits.min_updates
    if learned and len(steady) >= limits.min_windows:
        half_width = steady_half_width(steady)
        if half_width is not None and half_width <= limits.half_width:
            return StopReason.NARROW_ENOUGH
    most_s = limits.max_s if learned else 2 * limits.max_s
    if windows and windows[-1].end_s - windows[0].start_s + limits.window_s > most_s:
        return StopReason.CAP
    return None
