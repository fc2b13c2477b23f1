"""The record of one training run: what it was, and its return as it went."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from cgratio.results import store

CURVE_FILE, RUN_FILE = "curve.parquet", "run.json"

CURVE = pa.schema(
    {
        "time_s": pa.float64(),  # since training began
        "samples": pa.int64(),  # stepped
        "learned": pa.int64(),  # samples that the learner has used; r2d2 uses one more than once
        "updates": pa.int64(),
        "episodes": pa.int64(),
        "return_mean": pa.float64(),  # of the last 100 episodes; null before the first
        "policy_lag_mean": pa.float64(),  # updates, over all samples learned so far
        "environment_cpu_s": pa.float64(),
        "device_cpu_s": pa.float64(),
    }
)
"""One row for each look at the run."""


class TrainingRecord:
    """Writes a run's folder: `run.json` at once, `curve.parquet` whole each time it is saved."""

    def __init__(self, folder: Path, run: Mapping[str, Any]) -> None:
        """Begins the record.

        Args:
            folder: for it; made if it is not there.
            run: configuration, host and software, as plain types.

        Raises:
            FileExistsError: the folder has a record already.
            OSError: it cannot be written.
        """
        if (folder / RUN_FILE).exists():
            raise FileExistsError(f"{folder} holds a training run already")
        self._folder = folder
        self._rows: list[dict[str, Any]] = []
        store.write_json(folder / RUN_FILE, run)

    def add(self, row: Mapping[str, Any]) -> None:
        """Adds a row of `CURVE`."""
        self._rows.append(dict(row))

    def save(self) -> None:
        """Writes the curve up to now."""
        store.write_rows(self._folder / CURVE_FILE, CURVE, self._rows)
