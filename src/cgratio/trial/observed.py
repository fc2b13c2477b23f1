"""What was seen of one trial."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from statistics import fmean

from cgratio.machine.placement import Assignment
from cgratio.results.words import Status
from cgratio.trial.windows import Window
from cgratio.workload.protocol import Count, Final, Ready

TimedReading = tuple[float, str, str, float, str]
"""(time_s, sensor, device, value, unit)"""


@dataclass(slots=True, kw_only=True)
class Observed:
    """Everything that was seen of one trial, filled in as it happens.

    Attributes:
        started_at: UTC. launch_s: the same moment on the monotonic clock.
        assignment: the CPUs that were asked for by name.
        ready, final: of the workload.
        windows, marks: see `WindowCutter`.
        readings: of the sampler. missing: why a sensor gave none.
        sampler_cpu_s: the sampler's own cost.
        status, reason: how it ended, and why if it did not complete. stop: why measuring stopped.
    """

    started_at: datetime
    launch_s: float
    assignment: Assignment | None = None
    ready: Ready | None = None
    final: Final | None = None
    windows: list[Window] = field(default_factory=list)
    marks: list[Count] = field(default_factory=list)
    readings: list[TimedReading] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)
    sampler_cpu_s: float | None = None
    status: Status = Status.COMPLETE
    reason: str | None = None
    stop: str | None = None
    exit_code: int | None = None
    exit_signal: str | None = None

    def within(self, start_s: float, end_s: float) -> Readings:
        """The readings of an interval of the monotonic clock."""
        return Readings(self.readings, start_s=start_s, end_s=end_s)

    def why_missing(self, sensor: str) -> str | None:
        """Why a sensor, or the first of its devices that failed, gave no reading."""
        keys = (key for key in self.missing if key == sensor or key.startswith(f"{sensor}/"))
        return next((self.missing[key] for key in keys), None)


class Readings:
    """Readings of an interval, sorted once by sensor and device: a large host has many of them."""

    def __init__(self, readings: Iterable[TimedReading], *, start_s: float, end_s: float) -> None:
        self._series: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
        for time_s, sensor, device, value, _ in readings:
            if start_s <= time_s <= end_s:
                self._series[sensor, device].append((time_s, value))

    def values(self, sensor: str, *, device: str | None = None) -> list[float]:
        """Readings of one device, or of all."""
        return [
            value
            for (name, which), series in self._series.items()
            if name == sensor and device in {None, which}
            for _, value in series
        ]

    def mean(self, sensor: str, *, device: str | None = None) -> float | None:
        """Mean of the readings; None without any."""
        values = self.values(sensor, device=device)
        return fmean(values) if values else None

    def rate(self, sensor: str) -> float | None:
        """Growth per second of a counter of one device, between its first and last reading."""
        series = next((series for (name, _), series in self._series.items() if name == sensor), [])
        if len(series) < 2:
            return None
        (start_s, first), (end_s, last) = series[0], series[-1]
        return (last - first) / (end_s - start_s)
