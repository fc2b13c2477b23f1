"""What went on around a trial: clocks, temperature, throttling, and who else used its CPUs. Pure."""

from __future__ import annotations

from typing import Any

from cgratio.machine.cpulist import parse_cpu_list
from cgratio.telemetry.nvml import throttle_names
from cgratio.trial.observed import Observed, Readings
from cgratio.trial.windows import Window


def covariate_columns(seen: Observed, *, whole: Window) -> dict[str, Any]:
    """Columns of the measured interval that explain a rate, and are none themselves."""
    around = seen.within(whole.start_s, whole.end_s)
    frequency, reason = around.mean("cpu_frequency"), None
    if frequency is None:
        frequency = around.mean("cpu_frequency_cpuinfo")
        why = seen.why_missing("cpu_frequency") or "no reading"
        reason = why if frequency is None else f"as /proc/cpuinfo states it, since cpufreq is missing: {why}"
    rss = [value for _, sensor, _, value, _ in seen.readings if sensor == "process_rss"]
    temperatures = around.values("gpu_temperature")
    throttles = {name for mask in around.values("gpu_throttle") for name in throttle_names(int(mask))}
    return {
        "cpu_frequency_mean_hz": frequency,
        "cpu_frequency_reason": reason,
        "cpu_utilisation_mean": around.mean("cpu_busy", device="all"),
        "cpu_steal_mean": around.mean("cpu_steal", device="all"),
        **_contention_columns(seen, around, seconds=whole.duration_s),
        "gpu_sm_clock_mean_hz": around.mean("gpu_sm_clock"),
        "gpu_temperature_max_c": max(temperatures, default=None),
        "gpu_utilisation_mean": around.mean("gpu_utilisation"),
        "gpu_throttle_reasons": sorted(throttles) if temperatures else None,
        "gpu_reason": None if temperatures else seen.why_missing("gpu_temperature") or "no GPU in this trial",
        "peak_rss_bytes": int(max(rss)) if rss else None,
    }


def _contention_columns(seen: Observed, around: Readings, *, seconds: float) -> dict[str, Any]:
    """CPU time of the workload, and what others took of the CPUs that it was given.

    Others are every process that is not the workload, so also the sampler and the supervisor where these
    have no CPU of their own. Steal is time that a hypervisor gave to another machine.
    """
    own = around.rate("process_cpu")
    columns: dict[str, Any] = {"workload_cpu_s": own and own * seconds}
    lists = (seen.ready.actor_cpu_list, seen.ready.device_cpu_list) if seen.ready else ()
    cpus = frozenset[int]().union(*(parse_cpu_list(text) for text in lists if text))
    busy = [around.mean("cpu_busy", device=f"cpu{cpu}") for cpu in cpus]
    known = [share for share in busy if share is not None]
    if own is None:
        reason = seen.why_missing("process_cpu") or "too few readings of the workload's CPU time"
    elif not cpus or len(known) < len(cpus):
        reason = seen.why_missing("cpu_busy") or "too few readings of the CPUs' busy time"
    else:
        # Both are read in ticks of 10 ms and not at the same moments, so a little less than none is none.
        return columns | {"others_cpu_share": max(sum(known) - own, 0.0) / len(cpus)}
    return columns | {"others_cpu_share": None, "others_cpu_share_reason": reason}
