"""What each sensor covers, and for one that is missing why, and what would help; from the manifest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cgratio.report.wording import NOT_RECORDED
from cgratio.results.words import FIX

COVERS = {
    "cpu_energy": "joules of the CPU packages (boundary cpu_package)",
    "dram_energy": "joules of the memory (boundary dram)",
    "cpu_power": "watts of the CPU sockets (boundary cpu_package)",
    "module_power": "watts of modules of CPU and GPU (boundary gpu_module)",
    "node_power": "watts of the whole node (boundary node)",
    "gpu_energy": "joules of the GPU boards (boundary gpu_board)",
    "gpu_power": "watts of the GPU boards (boundary gpu_board)",
    "gpu_sm_clock": "clock of the SMs",
    "gpu_utilisation": "share of time in which a GPU ran anything",
    "gpu_temperature": "temperature of the GPUs",
    "gpu_throttle": "why a GPU ran slower than it could",
    "gpu_memory_used": "memory in use on the GPUs",
    "cpu_busy": "share of time in which CPUs were busy",
    "cpu_steal": "share of time in which the hypervisor ran something else",
    "cpu_frequency": "clock of the CPUs",
    "cpu_frequency_cpuinfo": "clock of the CPUs by /proc/cpuinfo, often the nominal one only",
    "cpu_pressure": "time in which tasks waited for a CPU",
}


def sensor_rows(manifest: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Rows of (sensors, state): those that were read first; those that lack for one reason share a row."""
    read, missing = manifest.get("sensors"), manifest.get("missing_sensors")
    read = read if isinstance(read, dict) else {}
    missing = missing if isinstance(missing, dict) else {}
    if not read and not missing:
        yield "sensors", NOT_RECORDED
    for name, devices in read.items():
        yield str(name), f"present: {_covered(str(name))}{_of(devices)}"
    for reason, keys in _by_reason(missing, host=manifest.get("host")).items():
        names = ", ".join(_named(key) for key in keys)
        what = "; ".join(dict.fromkeys(_covered(key.partition("/")[0]) for key in keys))
        cause, _, fix = reason.partition(FIX)
        yield names, f"missing: {cause}. {f'To get it: {fix}. ' if fix else ''}It would give: {what}."


def _by_reason(missing: Mapping[str, Any], *, host: Any) -> dict[str, list[str]]:
    """Sensors, or devices of them, by why they are missing."""
    no_gpu = host.get("gpu_reason") if isinstance(host, dict) else None
    found: dict[str, list[str]] = {}
    for key, why in missing.items():
        reason = str(why or "no reason was recorded")
        # That no GPU was asked for says little where the host has none that could be.
        if no_gpu and str(key).startswith("gpu_"):
            reason = str(no_gpu)
        found.setdefault(reason, []).append(str(key))
    return found


def _covered(sensor: str) -> str:
    return COVERS.get(sensor, sensor.replace("_", " "))


def _named(key: str) -> str:
    sensor, _, device = key.partition("/")
    return f"{sensor} of {device}" if device else sensor


def _of(devices: Any) -> str:
    """The devices of a sensor; of many the first and the last."""
    if not isinstance(devices, Sequence) or isinstance(devices, str) or not devices or devices == ["all"]:
        return ""
    names = [str(device) for device in devices]
    if len(names) > 4:
        return f"; {len(names)} devices, {names[0]} to {names[-1]}"
    return f"; {', '.join(names)}"
