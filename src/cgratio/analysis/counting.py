"""What one thread, one accelerator, one SM and one core are: the ratio means nothing without it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cgratio.analysis.facts import Quantity
from cgratio.analysis.ratio import scaled
from cgratio.analysis.workloads import Workload

STAND_IN = "device CPUs stand in for the accelerator"


def accelerator(workload: Workload) -> str:
    """What one accelerator is, in the singular."""
    names = {"cuda": "GPU", "emulated": "emulated device"}
    return names.get(workload.key["device"], "device CPU")


def counting_rule(workload: Workload) -> str:
    """What was counted, in one clause."""
    threads = "threads = hardware threads (logical CPUs) that ran environments"
    if workload.key["device"] == "cuda":
        sms = sms_per_gpu(workload)
        card = f", with {sms:g} enabled SMs each" if sms else ""
        return (
            f"{threads}, without those that drive a GPU; accelerators = GPUs times the share of them that the"
            f" job had{card}"
        )
    if workload.key["device"] == "emulated":
        return (
            f"{threads}, without those that drive the device; accelerators = one emulated device, which takes"
            " the time that the sweep's profile says, times the share of it that the job had"
        )
    return (
        f"{threads}; accelerators = hardware threads that stood in for one (device CPUs) times the share of"
        " their time that the job had"
    )


def sms_per_gpu(workload: Workload) -> float | None:
    """Enabled SMs of one GPU as they were read back; None when unknown or mixed."""
    seen = {round(trial.sms) for trial in workload.trials if trial.sms}
    return float(seen.pop()) if len(seen) == 1 else None


def per_sm(threads: Quantity, *, workload: Workload) -> Quantity:
    """The published CPU/GPU ratio: hardware threads over SMs (Inci et al. 2020)."""
    unit = "threads/SM"
    if workload.key["device"] != "cuda":
        what = "the device is emulated" if workload.key["device"] == "emulated" else STAND_IN
        return Quantity.unknown(unit=unit, reason=f"no SMs: {what}")
    sms = sms_per_gpu(workload)
    if sms is None:
        return Quantity.unknown(unit=unit, reason="the number of SMs was not read back, or it is mixed")
    return scaled(threads, factor=1.0 / sms, unit=unit)


def in_cores(threads: Quantity, *, workload: Workload, manifest: Mapping[str, Any], unit: str) -> Quantity:
    """The ratio in physical cores, where the pinning says how threads lie on them."""
    host = manifest.get("host")
    host = host if isinstance(host, Mapping) else {}
    cores, online = host.get("cores"), host.get("cpus_online")
    total = _count(online) if isinstance(online, str) else None
    if not isinstance(cores, int) or cores < 1 or not total:
        return Quantity.unknown(unit=unit, reason="the host's physical cores are not in the manifest")
    each = total / cores
    pinning = workload.key["pinning"]
    if pinning == "core" or each == 1.0:
        return scaled(threads, factor=1.0, unit=unit)
    if pinning == "compact":
        return scaled(threads, factor=1.0 / each, unit=unit)
    return Quantity.unknown(
        unit=unit, reason=f"with pinning {pinning!r} threads do not lie on cores in a fixed proportion"
    )


def _count(cpu_list: str) -> int | None:
    """CPUs in a canonical list such as `0-3,8`; None if it is not one."""
    total = 0
    for piece in cpu_list.split(","):
        first, _, last = piece.strip().partition("-")
        if not first.isdecimal() or (last and not last.isdecimal()):
            return None
        total += int(last or first) - int(first) + 1
    return total
