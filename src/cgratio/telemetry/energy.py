"""Energy of every boundary over an interval, from the readings of all sensors. Pure.

A counter is preferred to integrated power, device by device. A boundary of which a device could not be read
keeps its joules but is marked `partial`: they are then no basis for samples per joule. Utilisation never
stands in for a measurement; it has a boundary of its own, `modelled`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, TypeAlias

from cgratio.telemetry.integration import (
    EXACT,
    EnergyReason,
    Gain,
    Joules,
    PowerModel,
    counter_energy,
    integrated_energy,
    modelled_energy,
)

__all__ = [
    "Energy",
    "EnergyBoundary",
    "EnergyReason",
    "Gain",
    "Joules",
    "Method",
    "PowerModel",
    "counter_energy",
    "integrated_energy",
    "measure_energy",
    "modelled_energy",
]

Method: TypeAlias = Literal["counter", "integrated", "modelled"]
_Series: TypeAlias = tuple[list[float], list[float]]
_BUSY = ("cpu_busy", "all")


class EnergyBoundary(StrEnum):
    """What a joule covers. Joules of different boundaries are not comparable."""

    GPU_BOARD = "gpu_board"
    GPU_MODULE = "gpu_module"
    CPU_PACKAGE = "cpu_package"
    DRAM = "dram"
    NODE = "node"
    MODELLED = "modelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Energy:
    """Joules of one boundary over one interval.

    Attributes:
        boundary: What they cover.
        joules: None where unknown.
        plus_minus_j: Bound on their error in J: timing, gaps between readings, and the sensor's gain where
            its maker states one (see `integration`). None where the joules are.
        method: How they were obtained.
        source: The sensors, in words.
        reason: An `EnergyReason`, or a sensor's own words, where the joules are unknown or partial.
    """

    boundary: EnergyBoundary
    joules: float | None
    plus_minus_j: float | None = None
    method: Method | None = None
    source: str | None = None
    reason: str | None = None

    @property
    def usable(self) -> bool:
        """Whether samples per joule may be formed: the joules are known and cover the whole boundary."""
        return self.joules is not None and self.reason is None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """A sensor that measures a boundary, and how its readings become joules."""

    sensor: str
    label: str
    method: Method
    update_s: float = 0.0
    gain: Gain = EXACT

    def joules(self, series: _Series, *, t0: float, t1: float) -> Joules:
        times, values = series
        if self.method == "counter":
            return counter_energy(times, values, t0=t0, t1=t1, update_s=self.update_s, gain=self.gain)
        return integrated_energy(times, values, t0=t0, t1=t1, gain=self.gain)


# NVML states +-5 % (nvmlDeviceGetPowerUsage) and stated +-5 W before; Yang, Adamek and Armour, "Part-time
# power measurements" (arXiv 2312.02741), found +-5 % on current cards, and counters that move every 20 to 100
# ms.
_NVML_GAIN = Gain(part=0.05, watts=5.0)
_NVML_UPDATE_S = 0.1
# Intel SDM volume 3B, "RAPL interfaces": energy status is updated about every 1 ms. No gain is stated.
_RAPL_UPDATE_S = 0.001

_SOURCES: Mapping[EnergyBoundary, tuple[_Source, ...]] = {
    EnergyBoundary.GPU_BOARD: (
        _Source(
            sensor="gpu_energy",
            label="NVML energy counter",
            method="counter",
            update_s=_NVML_UPDATE_S,
            gain=_NVML_GAIN,
        ),
        _Source(sensor="gpu_power", label="NVML power", method="integrated", gain=_NVML_GAIN),
    ),
    EnergyBoundary.GPU_MODULE: (
        _Source(sensor="module_power", label="hwmon module power", method="integrated"),
    ),
    EnergyBoundary.CPU_PACKAGE: (
        _Source(sensor="cpu_energy", label="CPU energy counter", method="counter", update_s=_RAPL_UPDATE_S),
        _Source(sensor="cpu_power", label="hwmon socket power", method="integrated"),
    ),
    EnergyBoundary.DRAM: (
        _Source(sensor="dram_energy", label="DRAM energy counter", method="counter", update_s=_RAPL_UPDATE_S),
    ),
    EnergyBoundary.NODE: (_Source(sensor="node_power", label="ACPI power meter", method="integrated"),),
}

_USED = {source.sensor for sources in _SOURCES.values() for source in sources}


def measure_energy(
    readings: Sequence[tuple[float, str, str, float]],
    missing: Mapping[str, str],
    *,
    t0: float,
    t1: float,
    power_model: PowerModel | None = None,
) -> list[Energy]:
    """Energy of each boundary over an interval.

    Args:
        readings: (time in s, sensor, device, value) in order of time. Readings from around the interval make
            its ends more certain, so give all there are.
        missing: Why a sensor (`gpu_energy`) or one of its devices (`cpu_energy/package-0`) could not be read.
        t0: Start of the interval in s, on the clock of the readings.
        t1: End of the interval in s.
        power_model: Idle and full power of the host's packages, for the boundary `modelled`.

    Returns:
        One `Energy` per boundary, in the order of `EnergyBoundary`.
    """
    series = _series(readings)
    measured = [
        _measure(boundary, sources, series=series, missing=missing, t0=t0, t1=t1)
        for boundary, sources in _SOURCES.items()
    ]
    return [*measured, _model(series, missing=missing, model=power_model, t0=t0, t1=t1)]


def _series(readings: Iterable[tuple[float, str, str, float]]) -> dict[tuple[str, str], _Series]:
    series: dict[tuple[str, str], _Series] = {}
    for time, sensor, device, value in readings:
        # Most readings of a big host are of single CPUs.
        if sensor not in _USED and (sensor, device) != _BUSY:
            continue
        times, values = series.setdefault((sensor, device), ([], []))
        times.append(time)
        values.append(value)
    return series


def _measure(
    boundary: EnergyBoundary,
    sources: Sequence[_Source],
    *,
    series: Mapping[tuple[str, str], _Series],
    missing: Mapping[str, str],
    t0: float,
    t1: float,
) -> Energy:
    sensors = {source.sensor for source in sources}
    read = {device for sensor, device in series if sensor in sensors}
    unread = {key.partition("/")[2] for key in missing if key.partition("/")[0] in sensors} - {""}
    known: list[tuple[Joules, _Source]] = []
    reasons: list[str] = []
    for device in sorted(read | unread):
        found = _device(sources, device=device, series=series, t0=t0, t1=t1)
        if isinstance(found, tuple):
            known.append(found)
        else:
            reasons.append(found or _why(sources, device=device, missing=missing))
    if not known:
        reason = "; ".join(dict.fromkeys(reasons)) or _why(sources, device="", missing=missing)
        return Energy(boundary=boundary, joules=None, reason=reason)
    return Energy(
        boundary=boundary,
        joules=sum(result.joules or 0.0 for result, _ in known),
        plus_minus_j=sum(result.plus_minus_j or 0.0 for result, _ in known),
        method="integrated" if any(source.method == "integrated" for _, source in known) else "counter",
        source=" and ".join(dict.fromkeys(source.label for _, source in known)),
        reason=EnergyReason.PARTIAL if reasons else None,
    )


def _device(
    sources: Sequence[_Source],
    *,
    device: str,
    series: Mapping[tuple[str, str], _Series],
    t0: float,
    t1: float,
) -> tuple[Joules, _Source] | str | None:
    """The joules of a device from the first source that gives them, else the best source's reason, if any."""
    reason = None
    for source in sources:
        if (source.sensor, device) in series:
            result = source.joules(series[source.sensor, device], t0=t0, t1=t1)
            if result.joules is not None:
                return result, source
            reason = reason or result.reason
    return reason


def _why(sources: Sequence[_Source], *, device: str, missing: Mapping[str, str]) -> str:
    """What the sensors say about why a device, or the whole boundary, was not read."""
    keys = [f"{source.sensor}/{device}" for source in sources] + [source.sensor for source in sources]
    return next((missing[key] for key in keys if key in missing), EnergyReason.NO_SENSOR)


def _model(
    series: Mapping[tuple[str, str], _Series],
    *,
    missing: Mapping[str, str],
    model: PowerModel | None,
    t0: float,
    t1: float,
) -> Energy:
    boundary = EnergyBoundary.MODELLED
    if model is None:
        return Energy(boundary=boundary, joules=None, reason=EnergyReason.NO_POWER_MODEL)
    if _BUSY not in series:
        return Energy(boundary=boundary, joules=None, reason=missing.get("cpu_busy", EnergyReason.NO_SENSOR))
    times, busy = series[_BUSY]
    result = modelled_energy(model, times, busy, t0=t0, t1=t1)
    if result.joules is None:
        return Energy(boundary=boundary, joules=None, reason=result.reason)
    return Energy(
        boundary=boundary,
        joules=result.joules,
        plus_minus_j=result.plus_minus_j,
        method="modelled",
        source=f"CPU utilisation: {model.idle_w:g} to {model.max_w:g} W on each of {model.packages} packages",
    )
