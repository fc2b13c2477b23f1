"""Power, energy, clocks and memory of NVIDIA GPUs through NVML. `nvidia-smi -q` shows the same values."""

import importlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from cgratio.results.words import FIX
from cgratio.telemetry.sensors import Reading

# The bits of nvmlDeviceGetCurrentClocksEventReasons. Source: NVML API reference, "NvmlClocksEventReasons".
_THROTTLE_BITS = {
    0x001: "gpu_idle",
    0x002: "applications_clocks_setting",
    0x004: "sw_power_cap",
    0x008: "hw_slowdown",
    0x010: "sync_boost",
    0x020: "sw_thermal_slowdown",
    0x040: "hw_thermal_slowdown",
    0x080: "hw_power_brake_slowdown",
    0x100: "display_clock_setting",
}

SLOWDOWNS = frozenset(
    {"hw_slowdown", "sw_thermal_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown"}
)
"""Those that mean that the card could not do what it was asked for."""


def throttle_names(mask: int) -> tuple[str, ...]:
    """The names of the bits of a `gpu_throttle` reading; a bit without a known name as `bit_<n>`."""
    bits = [bit for bit in range(mask.bit_length()) if mask >> bit & 1]
    return tuple(_THROTTLE_BITS.get(1 << bit, f"bit_{bit}") for bit in bits)


@dataclass(frozen=True, slots=True)
class _Quantity:
    """One NVML value: the sensor's name, its unit, and how to read it from a device handle."""

    sensor: str
    unit: str
    ask: Callable[[ModuleType, Any], float]


_QUANTITIES = (
    _Quantity("gpu_energy", "J", lambda nvml, gpu: nvml.nvmlDeviceGetTotalEnergyConsumption(gpu) / 1e3),
    # From Ampere on (not GA100) the card averages this over 1 s, so it lags; the counter does not.
    _Quantity("gpu_power", "W", lambda nvml, gpu: nvml.nvmlDeviceGetPowerUsage(gpu) / 1e3),
    _Quantity(
        "gpu_sm_clock", "Hz", lambda nvml, gpu: nvml.nvmlDeviceGetClockInfo(gpu, nvml.NVML_CLOCK_SM) * 1e6
    ),
    _Quantity("gpu_utilisation", "1", lambda nvml, gpu: nvml.nvmlDeviceGetUtilizationRates(gpu).gpu / 100),
    _Quantity(
        "gpu_temperature",
        "C",
        lambda nvml, gpu: nvml.nvmlDeviceGetTemperature(gpu, nvml.NVML_TEMPERATURE_GPU),
    ),
    _Quantity("gpu_throttle", "bits", lambda nvml, gpu: nvml.nvmlDeviceGetCurrentClocksEventReasons(gpu)),
    _Quantity("gpu_memory_used", "bytes", lambda nvml, gpu: nvml.nvmlDeviceGetMemoryInfo(gpu).used),
)


class NvmlSensor:
    """The `gpu_*` sensors; device: the GPU's UUID.

    Args:
        uuids: GPUs to read, and no others; None for all, empty for none.
        running_host: False for a saved tree, which NVML knows nothing of.
    """

    names: tuple[str, ...] = tuple(quantity.sensor for quantity in _QUANTITIES)
    period_s = 0.0

    def __init__(self, *, uuids: Sequence[str] | None = None, running_host: bool = True) -> None:
        self.missing: dict[str, str] = {}
        self._uuids = uuids
        self._running_host = running_host
        self._nvml: ModuleType | None = None
        self._calls: list[tuple[_Quantity, str, Any]] = []

    def open(self) -> None:
        """Starts NVML and tries every value of every GPU once."""
        reason = self._start()
        if reason is not None or self._nvml is None:
            self.missing.update(dict.fromkeys(self.names, reason or "NVML does not start"))
            return
        gpus = self._handles(self._nvml)
        # Value by value, not GPU by GPU: all energy counters are then read close to the time of the tick.
        for quantity in _QUANTITIES:
            for uuid, gpu in gpus:
                try:
                    quantity.ask(self._nvml, gpu)
                except self._nvml.NVMLError as error:
                    self.missing[f"{quantity.sensor}/{uuid}"] = _reason(error)
                else:
                    self._calls.append((quantity, uuid, gpu))
        if not self._calls and not self.missing:
            self.missing.update(dict.fromkeys(self.names, "no GPU was asked for or found"))

    def read(self) -> list[Reading]:
        """Reads every value that answered at the start; one that fails later is named in `missing`."""
        if self._nvml is None:
            return []
        readings = []
        for quantity, uuid, gpu in self._calls:
            try:
                value = float(quantity.ask(self._nvml, gpu))
            except self._nvml.NVMLError as error:
                self.missing[f"{quantity.sensor}/{uuid}"] = f"failed while measuring: {_reason(error)}"
            else:
                readings.append(Reading(quantity.sensor, uuid, value, quantity.unit))
        return readings

    def close(self) -> None:
        """Gives NVML back."""
        self._calls.clear()
        if self._nvml is not None:
            with suppress(self._nvml.NVMLError):
                self._nvml.nvmlShutdown()
            self._nvml = None

    def _start(self) -> str | None:
        if not self._running_host:
            return "NVML describes the running host, not a saved tree"
        if self._uuids is not None and not self._uuids:
            return "no GPU was asked for"
        try:
            nvml = importlib.import_module("pynvml")
        except ImportError:
            return f"the Python module pynvml is not installed{FIX}pip install nvidia-ml-py"
        try:
            nvml.nvmlInit()
        except nvml.NVMLError as error:
            return _reason(error)
        self._nvml = nvml
        return None

    def _handles(self, nvml: ModuleType) -> list[tuple[str, Any]]:
        """The GPUs by UUID: an index would mean another card under another `CUDA_VISIBLE_DEVICES`."""
        handles = []
        if self._uuids is None:
            try:
                count = nvml.nvmlDeviceGetCount()
            except nvml.NVMLError as error:
                self.missing.update(dict.fromkeys(self.names, _reason(error)))
                return []
            for index in range(count):
                try:
                    gpu = nvml.nvmlDeviceGetHandleByIndex(index)
                    handles.append((str(nvml.nvmlDeviceGetUUID(gpu)), gpu))
                except nvml.NVMLError as error:
                    self._miss(f"index-{index}", _reason(error))
        for uuid in self._uuids or ():
            if uuid.startswith("MIG-"):
                self._miss(uuid, "NVML measures whole cards, not MIG slices")
                continue
            try:
                handles.append((uuid, nvml.nvmlDeviceGetHandleByUUID(uuid)))
            except nvml.NVMLError as error:
                self._miss(uuid, _reason(error))
        return handles

    def _miss(self, device: str, reason: str) -> None:
        self.missing.update({f"{name}/{device}": reason for name in self.names})


def _reason(error: Exception) -> str:
    return {
        "NVMLError_LibraryNotFound": "libnvidia-ml.so.1 not found: no NVIDIA driver on this host",
        "NVMLError_DriverNotLoaded": f"the NVIDIA driver is not loaded{FIX}sudo modprobe nvidia",
        "NVMLError_NotSupported": "not supported by this GPU",
        "NVMLError_NotFound": "this host has no such GPU",
        "NVMLError_NoPermission": "no permission to use the GPU",
        "NVMLError_GpuIsLost": "the GPU is lost: it fell off the bus",
    }.get(type(error).__name__, f"NVML: {error}")
