"""The Arrow schema of every stored table.

Units are in the names (`_s`, `_w`, `_j`, `_hz`, `_bytes`); times of day are UTC; CPU sets are canonical
strings (`0-3,8`). A value that is not known is null, and a column named `…_reason` says why. Writer and
reader are held to this one file, so a table reads the same whichever trial was written first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

SCHEMA_VERSION = 1


BOUNDARIES = ("gpu_board", "gpu_module", "cpu_package", "dram", "node", "modelled")
"""What a joule may cover. Joules of different boundaries are never added to each other."""

_STRINGS = pa.list_(pa.string())
_UTC = pa.timestamp("us", tz="UTC")

AXES: dict[str, pa.DataType] = {
    "part": pa.string(),
    "environment": pa.string(),
    "algorithm": pa.string(),
    "network": pa.string(),
    "lstm": pa.int64(),  # units of the recurrent core, 0 without one
    "inference": pa.string(),  # central or local
    "device": pa.string(),  # cpu, cuda or emulated
    "actors": pa.int64(),
    "actor_groups": pa.int64(),
    "actor_cpus": pa.int64(),
    "device_cpus": pa.int64(),
    "pinning": pa.string(),
    "gpus": pa.int64(),
    "sm_share": pa.float64(),
    "inference_batch": pa.int64(),
    "unroll_length": pa.int64(),
    "learner_batch": pa.int64(),
    "replay_ratio": pa.float64(),
    "precision": pa.string(),
}
"""What was asked for. An axis that has no meaning for a part (device_cpus of a supply trial) is null."""

TRIALS = pa.schema(
    {
        "schema_version": pa.int64(),
        "sweep": pa.string(),
        "point_id": pa.string(),
        "trial_id": pa.string(),
        "replicate": pa.int64(),
        "block": pa.int64(),
        "order": pa.int64(),
        "sentinel": pa.bool_(),
        "host_id": pa.string(),
        "hostname": pa.string(),
        "software_id": pa.string(),
        "seed": pa.int64(),
        "started_at": _UTC,
        **AXES,
        # what was observed in place of what was asked
        "observed_actors": pa.int64(),
        "observed_actor_threads": pa.int64(),
        "observed_actor_cpu_list": pa.string(),
        "observed_device_cpu_list": pa.string(),
        "observed_service_cpu_list": pa.string(),
        "observed_inference_batch_mean": pa.float64(),
        "observed_gpu_uuids": _STRINGS,
        "observed_sm_count": pa.int64(),
        "observed_sm_count_reason": pa.string(),
        "observed_sm_share": pa.float64(),
        "observed_precision": pa.string(),
        # the end
        "status": pa.string(),
        "verdict": _STRINGS,  # ["valid"], or stable reason codes
        "status_reason": pa.string(),
        "stop_reason": pa.string(),  # narrow_enough, or cap
        "exit_code": pa.int64(),
        "exit_signal": pa.string(),
        # the measurement, over the steady windows only
        "samples": pa.int64(),
        "frames": pa.int64(),
        "frame_skip": pa.int64(),
        "measured_s": pa.float64(),
        "samples_per_s": pa.float64(),
        "samples_per_s_half_width": pa.float64(),  # 95 %, within this trial only
        "windows": pa.int64(),
        "warmup_s": pa.float64(),
        "setup_s": pa.float64(),  # launch to first sample
        "updates": pa.int64(),
        "updates_per_s": pa.float64(),
        "policy_lag_mean": pa.float64(),  # learner updates between acting and learning
        "policy_lag_max": pa.float64(),  # since the launch
        "episodes": pa.int64(),
        "episode_return_mean": pa.float64(),  # of the last 100 episodes at the end
        # stage shares: of the wall time of the thread that runs the stage
        "share_env": pa.float64(),  # busy time of the actor CPUs' threads / (threads x wall)
        "share_wait_batch": pa.float64(),  # actor loop: waits for environments
        "share_inference": pa.float64(),  # actor loop
        "share_transfer": pa.float64(),  # actor loop: routing, copies, send
        "share_backpressure": pa.float64(),  # actor loop: waits for the learner to free an unroll
        "share_learner": pa.float64(),  # learner loop
        "share_wait_data": pa.float64(),  # learner loop: waits for unrolls
        "device_busy_share": pa.float64(),  # accelerator time used / accelerator time granted
        "device_busy_share_reason": pa.string(),
        # service times: busy time of one hardware thread (env) or one accelerator unit (device)
        "env_cpu_s": pa.float64(),
        "device_cpu_s": pa.float64(),
        "env_s_per_sample": pa.float64(),
        "device_s_per_sample": pa.float64(),
        # energy, one group for each boundary
        **{
            f"energy_{boundary}_{suffix}": kind
            for boundary in BOUNDARIES
            for suffix, kind in (
                ("j", pa.float64()),
                ("pm_j", pa.float64()),
                ("method", pa.string()),
                ("source", pa.string()),
                ("reason", pa.string()),
            )
        },
        "power_w": pa.float64(),  # of the boundary below
        "power_pm_w": pa.float64(),
        "samples_per_joule": pa.float64(),
        "samples_per_joule_pm": pa.float64(),
        "samples_per_joule_boundary": pa.string(),
        "samples_per_joule_reason": pa.string(),
        # covariates
        "cpu_frequency_mean_hz": pa.float64(),
        "cpu_frequency_reason": pa.string(),
        "cpu_utilisation_mean": pa.float64(),
        "cpu_steal_mean": pa.float64(),
        "workload_cpu_s": pa.float64(),  # of all its processes, over measured_s
        "others_cpu_share": pa.float64(),  # of the time of the trial's CPUs, by processes that are not its
        "others_cpu_share_reason": pa.string(),
        "gpu_sm_clock_mean_hz": pa.float64(),
        "gpu_temperature_max_c": pa.float64(),
        "gpu_utilisation_mean": pa.float64(),
        "gpu_throttle_reasons": _STRINGS,
        "gpu_reason": pa.string(),
        "peak_rss_bytes": pa.int64(),
        "sampler_cpu_s": pa.float64(),
    }
)
"""One row for each trial."""

WINDOWS = pa.schema(
    {
        "trial_id": pa.string(),
        "window": pa.int64(),
        "start_s": pa.float64(),  # since the trial's launch, monotonic clock
        "end_s": pa.float64(),
        "steady": pa.bool_(),
        "samples": pa.int64(),
        "frames": pa.int64(),
        "updates": pa.int64(),
        "batches": pa.int64(),
        "policy_lag_mean": pa.float64(),
        "env_cpu_s": pa.float64(),
        "device_cpu_s": pa.float64(),
        "wait_batch_s": pa.float64(),
        "inference_s": pa.float64(),
        "transfer_s": pa.float64(),
        "backpressure_s": pa.float64(),
        "learner_s": pa.float64(),
        "wait_data_s": pa.float64(),
    }
)
"""One row for each slice of about a second of a trial, warm-up included (`steady` is false there)."""

TELEMETRY = pa.schema(
    {
        "trial_id": pa.string(),
        "time_s": pa.float64(),  # since the trial's launch, monotonic clock
        "sensor": pa.string(),
        "device": pa.string(),
        "value": pa.float64(),
        "unit": pa.string(),
    }
)
"""One row for each reading of a sensor."""

TABLES: dict[str, pa.Schema] = {"trials": TRIALS, "windows": WINDOWS, "telemetry": TELEMETRY}


def table(schema: pa.Schema, rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Makes a table of the schema from rows; a column that a row leaves out is null.

    Raises:
        KeyError: a row has a column that the schema lacks, so a misspelt name cannot vanish.
    """
    rows = list(rows)
    for row in rows:
        if unknown := row.keys() - set(schema.names):
            raise KeyError(f"not in the schema: {sorted(unknown)}")
    return pa.Table.from_pylist([dict(row) for row in rows], schema=schema)
