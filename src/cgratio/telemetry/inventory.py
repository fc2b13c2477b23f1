"""Which sensors there are, and what each gives on this host."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cgratio.results.words import FIX
from cgratio.telemetry.hwmon import HwmonSensor
from cgratio.telemetry.nvml import NvmlSensor
from cgratio.telemetry.proc import FrequencySensor, PressureSensor, StatSensor
from cgratio.telemetry.process import ProcessTreeSensor
from cgratio.telemetry.rapl import RaplSensor
from cgratio.telemetry.sensors import Sensor


@dataclass(frozen=True, slots=True, kw_only=True)
class SensorStatus:
    """Whether a sensor, or one device of it, gives readings here.

    Attributes:
        sensor: Name of the sensor.
        device: The device that is missing; None if this speaks of the sensor as a whole.
        devices: The devices that were read.
        reason: Why not; None if it does.
        fix: Command that would change that, None where there is none.
    """

    sensor: str
    device: str | None = None
    devices: tuple[str, ...] = ()
    reason: str | None = None
    fix: str | None = None

    @property
    def ok(self) -> bool:
        """Whether it gives readings."""
        return self.reason is None


def build_sensors(
    *, root: Path = Path("/"), gpus: Sequence[str] | None = None, pid: int | None = None
) -> list[Sensor]:
    """Every sensor that exists, still closed.

    Args:
        root: Folder that holds `proc` and `sys`, `/` for the running host.
        gpus: UUIDs of the GPUs to read; None for all of the host, empty for none.
        pid: Root of the process tree to account for; None for none.
    """
    sensors: list[Sensor] = [
        # Energy first: it is read closest to the time that the tick is given.
        RaplSensor(root=root),
        HwmonSensor(root=root),
        NvmlSensor(uuids=gpus, running_host=root == Path("/")),
        StatSensor(root=root),
        FrequencySensor(root=root),
        PressureSensor(root=root),
    ]
    return sensors if pid is None else [*sensors, ProcessTreeSensor(pid=pid, root=root)]


def list_sensors(*, root: Path = Path("/"), gpus: Sequence[str] | None = None) -> tuple[SensorStatus, ...]:
    """Opens every sensor, reads it once and says what it gives.

    Args:
        root: Folder that holds `proc` and `sys`, `/` for the running host.
        gpus: UUIDs of the GPUs to read; None for all of the host.
    """
    statuses: list[SensorStatus] = []
    for sensor in build_sensors(root=root, gpus=gpus):
        sensor.open()
        try:
            readings = sensor.read()
        finally:
            sensor.close()
        for name in sensor.names:
            devices = tuple(dict.fromkeys(r.device for r in readings if r.sensor == name))
            missing = {key: why for key, why in sensor.missing.items() if key.partition("/")[0] == name}
            if devices or not missing:
                statuses.append(SensorStatus(sensor=name, devices=devices))
            for key, why in missing.items():
                reason, _, fix = why.partition(FIX)
                device = key.partition("/")[2] or None
                statuses.append(SensorStatus(sensor=name, device=device, reason=reason, fix=fix or None))
    return tuple(statuses)
