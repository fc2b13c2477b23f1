"""The words that columns hold; without pyarrow, since the trainer speaks them too and must start quickly."""

from __future__ import annotations

from enum import StrEnum


class Part(StrEnum):
    """Which part of the training pipeline a trial runs.

    `whole` is the training job itself. `supply` runs the environments against an accelerator that never
    makes them wait, and so measures S(c). `demand` runs inference and learner on samples that are never
    short, and so measures D(s).
    """

    WHOLE = "whole"
    SUPPLY = "supply"
    DEMAND = "demand"


class Status(StrEnum):
    """How a trial ended, as the journal and its row tell it."""

    COMPLETE = "complete"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


FIX = "; try: "
"""What stands between the reason why a sensor is missing and the command that would help."""
