"""What one trial is asked to do, as it travels from the sweep to the trial's own process."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long a trial may take, and when it has seen enough. All in seconds but for the last three.

    Attributes:
        window_s: length of one window.
        warmup_min_s, warmup_max_s: bounds of the warm-up that is found and cut off.
        max_s: the cap on measuring, warm-up included; a trial that trains goes on up to twice as long
            while its learner has made too few updates.
        setup_max_s: from launch to the first sample.
        silence_max_s: without any new sample, before the workload counts as hung.
        min_windows: steady windows below which a trial is too short to be valid.
        min_updates: steady learner updates below which a trial that trains is not valid: the rate of fewer
            would be that of a pipeline that still fills.
        half_width: relative 95 % half-width of the rate at which a trial stops early.
    """

    window_s: float = 1.0
    warmup_min_s: float = 2.0
    warmup_max_s: float = 20.0
    max_s: float = 60.0
    setup_max_s: float = 120.0
    silence_max_s: float = 60.0
    min_windows: int = 5
    min_updates: int = 3
    half_width: float = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRequest:
    """One trial.

    Attributes:
        folder: of the sweep's results.
        identity: sweep, point_id, trial_id, replicate, block, order, sentinel, host_id, hostname,
            software_id, seed: the row's columns of these names.
        axes: requested axis values, columns of `results.schema.AXES`.
        trainer: fields of `TrainerConfig`.
        actor_cpus, device_cpus: hardware threads asked for. pinning: a `machine.placement.Pinning`.
        gpu_uuids: the GPUs that the trial may use, and whose sensors are read.
        limits: see `Limits`.
        power_model: idle_w and max_w per package, or None.
    """

    folder: Path
    identity: dict[str, Any]
    axes: dict[str, Any]
    trainer: dict[str, Any]
    actor_cpus: int
    device_cpus: int
    pinning: str
    gpu_uuids: list[str] = field(default_factory=list)
    limits: Limits = field(default_factory=Limits)
    power_model: dict[str, float] | None = None

    @property
    def trial_id(self) -> str:
        """Hash of configuration and replicate."""
        return str(self.identity["trial_id"])

    def to_json(self) -> str:
        """One line."""
        return json.dumps({**dataclasses.asdict(self), "folder": str(self.folder)})

    @classmethod
    def from_json(cls, text: str) -> TrialRequest:
        """Reads what `to_json` wrote."""
        fields = json.loads(text)
        fields["folder"] = Path(fields["folder"])
        fields["limits"] = Limits(**fields["limits"])
        return cls(**fields)
