"""CPU and DRAM energy counters (RAPL) through the powercap files, for Intel and AMD.

Source: kernel doc "power/powercap/powercap", ABI "sysfs-class-powercap". `perf stat -e power/energy-pkg/`
reads the same counters. Since Linux 5.10 the files are readable by root only (CVE-2020-8694).
"""

import re
from dataclasses import dataclass
from pathlib import Path

from cgratio.results.words import FIX
from cgratio.telemetry.kernelfile import KernelFile, open_reason
from cgratio.telemetry.sensors import Reading

_CHMOD = "sudo chmod a+r /sys/class/powercap/intel-rapl:*/energy_uj"
# `intel-rapl:0` is a package, `intel-rapl:0:1` a domain of it; `intel-rapl-mmio:0` is the package once more.
_ZONE = re.compile(r"intel-rapl:(\d+)(?::(\d+))?")


def rapl_zones(root: Path) -> list[Path]:
    """The folders of the RAPL zones, packages before their domains."""
    folder = root / "sys/class/powercap"
    zones = [(match, f) for f in folder.glob("intel-rapl:*") if (match := _ZONE.fullmatch(f.name))]
    return [f for match, f in sorted(zones, key=lambda z: (int(z[0][1]), int(z[0][2] or -1)))]


@dataclass(slots=True)
class _Counter:
    """A zone's counter, continued over its wraps."""

    sensor: str
    device: str
    file: KernelFile
    range_uj: int | None
    last_uj: int = 0
    turns: int = 0

    def read(self) -> Reading:
        """The energy since the counter began, in J.

        The counter wraps after minutes to hours, far less often than it is read, so a step down is one wrap.
        Without its range the readings go down as they are, and the joules over that step are unknown.
        """
        now_uj = self.file.read_int()
        if self.range_uj is not None and now_uj < self.last_uj:
            self.turns += 1
        self.last_uj = now_uj
        return Reading(self.sensor, self.device, (now_uj + self.turns * (self.range_uj or 0)) / 1e6, "J")


class RaplSensor:
    """`cpu_energy` of each package and `dram_energy` of its memory, in J; device `package-N`."""

    names: tuple[str, ...] = ("cpu_energy", "dram_energy")
    period_s = 0.0

    def __init__(self, *, root: Path = Path("/")) -> None:
        self.missing: dict[str, str] = {}
        self._root = root
        self._counters: list[_Counter] = []

    def open(self) -> None:
        """Opens the counter of each package and DRAM domain, or says in `missing` why it cannot be read."""
        zones = rapl_zones(self._root)
        packages: dict[str, str] = {}
        for zone in zones:
            name = _text(zone / "name")
            if name.startswith("package"):
                packages[zone.name] = name
                self._open_counter(zone, sensor="cpu_energy", device=name)
            elif name == "dram":
                package = packages.get(zone.name.rpartition(":")[0], zone.name)
                self._open_counter(zone, sensor="dram_energy", device=package)
        tried = {c.sensor for c in self._counters} | {key.partition("/")[0] for key in self.missing}
        for sensor in set(self.names) - tried:
            self.missing[sensor] = _absent(sensor, zones=bool(zones), root=self._root)

    def read(self) -> list[Reading]:
        """Reads every counter in J."""
        readings = []
        for counter in self._counters:
            try:
                readings.append(counter.read())
            except (OSError, ValueError):
                # Left out of this tick: the gap shows in the coverage of the energy.
                continue
        return readings

    def close(self) -> None:
        """Closes the files."""
        for counter in self._counters:
            counter.file.close()
        self._counters.clear()

    def _open_counter(self, zone: Path, *, sensor: str, device: str) -> None:
        path = zone / "energy_uj"
        try:
            file = KernelFile(path)
        except OSError as error:
            self.missing[f"{sensor}/{device}"] = _reason(error, path=path)
            return
        try:
            last_uj = file.read_int()
        except (OSError, ValueError) as error:
            file.close()
            self.missing[f"{sensor}/{device}"] = _reason(error, path=path)
            return
        range_uj = _range_uj(zone)
        self._counters.append(
            _Counter(sensor=sensor, device=device, file=file, range_uj=range_uj, last_uj=last_uj)
        )


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _range_uj(zone: Path) -> int | None:
    try:
        return int((zone / "max_energy_range_uj").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def _reason(error: Exception, *, path: Path) -> str:
    return open_reason(error, path=path) + (FIX + _CHMOD if isinstance(error, PermissionError) else "")


def _absent(sensor: str, *, zones: bool, root: Path) -> str:
    if zones:
        return f"RAPL of this CPU has no {'DRAM' if sensor == 'dram_energy' else 'package'} domain"
    if " hypervisor " in _text(root / "proc/cpuinfo"):
        return "no RAPL in /sys/class/powercap: this is a virtual machine"
    return f"no RAPL in /sys/class/powercap{FIX}sudo modprobe intel_rapl_msr"
