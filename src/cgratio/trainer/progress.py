"""What a run has done so far."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Cumulative counts at one moment.

    Attributes:
        time_s: monotonic clock.
        samples: transitions that ended. learned: transitions that the learner has used.
        batches: inferences. updates: of the learner.
        lag_sum, lag_max: policy lag in updates, summed over and highest of the samples learned.
        episodes: finished. recent_return: mean of the last 100 episodes, None before the first.
        environment_cpu_s, device_cpu_s: processor time of the two sides.
        device_busy_s: for which an emulated device worked; None for a real one.
        stages: wall seconds by stage of actor loops (their mean) and learner.
    """

    time_s: float
    samples: int
    learned: int
    batches: int
    updates: int
    lag_sum: float
    lag_max: int
    episodes: int
    recent_return: float | None
    environment_cpu_s: float
    device_cpu_s: float
    device_busy_s: float | None
    stages: dict[str, float]
