"""What was seen of one trial."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from cgratio.machine.placement import Assignment
from cgratio.results.words import Status
from cgratio.trial.windows import Window
from cgratio.workload.protocol import Count, Final, Ready


@dataclass(slots=True, kw_only=True)
class Observed:
    """Everything that was seen of one trial, filled in as it happens.

    Attributes:
        started_at: UTC. launch_s: the same moment on the monotonic clock.
        assignment: the CPUs that were asked for by name.
        ready, final: of the workload.
        windows, marks: see `WindowCutter`.
        readings: (time_s, sensor, device, value, unit) of the sampler. missing: why a sensor gave none.
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
    readings: list[tuple[float, str, str, float, str]] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)
    sampler_cpu_s: float | None = None
    status: Status = Status.COMPLETE
    reason: str | None = None
    stop: str | None = None
    exit_code: int | None = None
    exit_signal: str | None = None

    def values(self, sensor: str, *, start_s: float, end_s: float, device: str | None = None) -> list[float]:
        """Readings of a sensor within an interval of the monotonic clock, of one device or of all."""
        return [
            value
            for time_s, name, which, value, _ in self.readings
            if name == sensor and device in {None, which} and start_s <= time_s <= end_s
        ]

    def why_missing(self, sensor: str) -> str | None:
        """Why a sensor, or the first of its devices that failed, gave no reading."""
        keys = (key for key in self.missing if key == sensor or key.startswith(f"{sensor}/"))
        return next((self.missing[key] for key in keys), None)
