"""Power and energy of hosts without RAPL: the `amd_energy` driver and ACPI power meters, as NVIDIA Grace has.

Source: kernel docs "hwmon/sysfs-interface" (units: uW and uJ), "hwmon/amd_energy", "hwmon/acpi_power_meter";
NVIDIA Grace Performance Tuning Guide, "Power and Thermals" (what `power1_oem_info` names). `sensors` shows
the same values.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from cgratio.results.words import FIX
from cgratio.telemetry.kernelfile import KernelFile, open_reason
from cgratio.telemetry.rapl import rapl_zones
from cgratio.telemetry.sensors import Reading

# Grace names its meters in the firmware. `Grace Power` is the socket with its memory; `CPU Power` and `SysIO
# Power` are parts of it, and so are not read.
_GRACE = re.compile(r"(Module|Grace) Power Socket (\d+)")
_GRACE_SENSORS = {"Module": "module_power", "Grace": "cpu_power"}
_AMD_SOCKET = re.compile(r"Esocket(\d+)")


@dataclass(frozen=True, slots=True)
class _Meter:
    sensor: str
    device: str
    file: KernelFile
    unit: str


class HwmonSensor:
    """In W: `cpu_power`, `module_power` (Grace), `node_power` (other meters). In J: `cpu_energy` (AMD)."""

    # `cpu_energy` is left to RAPL, which says why it is missing where both are.
    names: tuple[str, ...] = ("cpu_power", "module_power", "node_power")
    period_s = 0.0

    def __init__(self, *, root: Path = Path("/")) -> None:
        self.missing: dict[str, str] = {}
        self._root = root
        self._meters: list[_Meter] = []

    def open(self) -> None:
        """Opens every meter that is known to cover a whole boundary."""
        folders = sorted((self._root / "sys/class/hwmon").glob("hwmon[0-9]*"))
        for folder in folders:
            name = _text(folder / "name")
            # The same registers as RAPL, under the same device names: never both, or the joules count twice.
            if name == "amd_energy" and not rapl_zones(self._root):
                for label in sorted(folder.glob("energy*_label")):
                    if match := _AMD_SOCKET.fullmatch(_text(label)):
                        path = label.with_name(label.name.replace("_label", "_input"))
                        self._open_meter(path, sensor="cpu_energy", device=f"package-{match[1]}", unit="J")
            elif name == "power_meter":
                self._open_acpi(folder)
        tried = {meter.sensor for meter in self._meters} | {key.partition("/")[0] for key in self.missing}
        for sensor in set(self.names) - tried:
            self.missing[sensor] = "no power meter in /sys/class/hwmon covers this"

    def read(self) -> list[Reading]:
        """Reads every meter, in W or J."""
        readings = []
        for meter in self._meters:
            try:
                readings.append(Reading(meter.sensor, meter.device, meter.file.read_int() / 1e6, meter.unit))
            except (OSError, ValueError):
                continue
        return readings

    def close(self) -> None:
        """Closes the files."""
        for meter in self._meters:
            meter.file.close()
        self._meters.clear()

    def _open_acpi(self, folder: Path) -> None:
        # The driver keeps its files at the device, not in the hwmon folder, on the kernels that Grace runs.
        base = folder if (folder / "power1_average").exists() else folder / "device"
        oem = _text(base / "power1_oem_info")
        if match := _GRACE.fullmatch(oem):
            sensor, device = _GRACE_SENSORS[match[1]], f"package-{match[2]}"
        elif "Power Socket" in oem:
            return
        else:
            sensor, device = "node_power", folder.name
        self._open_meter(base / "power1_average", sensor=sensor, device=device, unit="W")

    def _open_meter(self, path: Path, *, sensor: str, device: str, unit: str) -> None:
        try:
            file = KernelFile(path)
        except OSError as error:
            fix = f"{FIX}sudo chmod a+r {path}" if isinstance(error, PermissionError) else ""
            self.missing[f"{sensor}/{device}"] = open_reason(error, path=path) + fix
            return
        self._meters.append(_Meter(sensor, device, file, unit))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
