"""How busy, fast and contended the CPUs of the host are."""

from pathlib import Path

from cgratio.results.words import FIX
from cgratio.telemetry.kernelfile import KernelFile, open_reason
from cgratio.telemetry.sensors import Reading

# Fewer ticks (of 10 ms) than this say more about the tick than about the CPU.
_FEWEST_TICKS = 5


class StatSensor:
    """`cpu_busy` and `cpu_steal`: parts of the time since the reading before; device `cpuN`, or `all`.

    Steal is time in which a hypervisor ran something else; it is not part of busy. Source: `proc_stat(5)`;
    `mpstat -P ALL` shows the same.
    """

    names: tuple[str, ...] = ("cpu_busy", "cpu_steal")
    # The kernel counts in steps of 10 ms, so a shorter period would show the steps.
    period_s = 0.5

    def __init__(self, *, root: Path = Path("/")) -> None:
        self.missing: dict[str, str] = {}
        self._path = root / "proc/stat"
        self._file: KernelFile | None = None
        self._last: dict[str, tuple[int, int, int]] = {}

    def open(self) -> None:
        """Takes the reading that the first one is compared with."""
        try:
            self._file = KernelFile(self._path)
            self._last = _parse_stat(self._file.read_whole())
        except (OSError, ValueError, IndexError) as error:
            self.missing.update(dict.fromkeys(self.names, open_reason(error, path=self._path)))
            self.close()

    def read(self) -> list[Reading]:
        """Busy and stolen parts since the last reading; a CPU that has hardly counted since is left out."""
        if self._file is None:
            return []
        readings = []
        for device, now in _parse_stat(self._file.read_whole()).items():
            busy, steal, total = (a - b for a, b in zip(now, self._last.setdefault(device, now), strict=True))
            # The counters of a CPU may step back when it goes offline and returns.
            if busy < 0 or steal < 0:
                self._last[device] = now
            elif total >= _FEWEST_TICKS:
                self._last[device] = now
                readings.append(Reading("cpu_busy", device, busy / total, "1"))
                readings.append(Reading("cpu_steal", device, steal / total, "1"))
        return readings

    def close(self) -> None:
        """Closes the file."""
        if self._file is not None:
            self._file.close()
            self._file = None


class FrequencySensor:
    """`cpu_frequency` in Hz from cpufreq, or `cpu_frequency_cpuinfo` where only `/proc/cpuinfo` tells one.

    They differ in name since the second is often no measurement: virtual machines show the nominal frequency.
    Source: kernel doc "admin-guide/pm/cpufreq" (`scaling_cur_freq`, kHz).
    """

    names: tuple[str, ...] = ("cpu_frequency", "cpu_frequency_cpuinfo")
    # Reading a CPU's frequency may wake that CPU, which the measured job would notice.
    period_s = 1.0

    def __init__(self, *, root: Path = Path("/")) -> None:
        self.missing: dict[str, str] = {}
        self._root = root
        self._files: dict[str, KernelFile] = {}
        self._cpuinfo: KernelFile | None = None

    def open(self) -> None:
        """Opens the file of each CPU, else `/proc/cpuinfo`."""
        for path in (self._root / "sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_cur_freq"):
            try:
                self._files[path.parents[1].name] = KernelFile(path)
            except OSError as error:
                self.missing[f"cpu_frequency/{path.parents[1].name}"] = open_reason(error, path=path)
        if self._files:
            return
        if not self.missing:
            self.missing["cpu_frequency"] = "no cpufreq driver (virtual machines often have none)"
        cpuinfo = self._root / "proc/cpuinfo"
        try:
            self._cpuinfo = KernelFile(cpuinfo)
        except OSError as error:
            self.missing["cpu_frequency_cpuinfo"] = open_reason(error, path=cpuinfo)
            return
        if not self.read():
            self.missing["cpu_frequency_cpuinfo"] = f"{cpuinfo} has no 'cpu MHz' lines"

    def read(self) -> list[Reading]:
        """The frequency of each CPU in Hz."""
        readings = []
        for device, file in self._files.items():
            try:
                readings.append(Reading("cpu_frequency", device, file.read_int() * 1e3, "Hz"))
            except (OSError, ValueError):
                continue
        if self._cpuinfo is not None:
            readings += _parse_cpuinfo(self._cpuinfo.read_whole())
        return readings

    def close(self) -> None:
        """Closes the files."""
        for file in self._files.values():
            file.close()
        self._files.clear()
        if self._cpuinfo is not None:
            self._cpuinfo.close()
            self._cpuinfo = None


class PressureSensor:
    """`cpu_pressure`: time in which some task waited for a CPU, in s since boot.

    Source: kernel doc "accounting/psi" (`some ... total`, in microseconds).
    """

    names: tuple[str, ...] = ("cpu_pressure",)
    period_s = 0.5

    def __init__(self, *, root: Path = Path("/")) -> None:
        self.missing: dict[str, str] = {}
        self._path = root / "proc/pressure/cpu"
        self._file: KernelFile | None = None

    def open(self) -> None:
        """Opens the file. Kernels that were built or booted without PSI have none, or answer `EOPNOTSUPP`."""
        try:
            self._file = KernelFile(self._path)
            self.read()
        except (OSError, ValueError) as error:
            self.missing["cpu_pressure"] = f"{open_reason(error, path=self._path)}{FIX}boot with psi=1"
            self.close()

    def read(self) -> list[Reading]:
        """The waiting time so far in s."""
        if self._file is None:
            return []
        some = self._file.read().split(b"\n", maxsplit=1)[0]
        return [Reading("cpu_pressure", "all", int(some.rpartition(b"total=")[2]) / 1e6, "s")]

    def close(self) -> None:
        """Closes the file."""
        if self._file is not None:
            self._file.close()
            self._file = None


def _parse_stat(content: bytes) -> dict[str, tuple[int, int, int]]:
    """(busy, steal, total) ticks by device."""
    ticks = {}
    for line in content.split(b"\n"):
        if not line.startswith(b"cpu"):
            # The CPU lines come first; what follows grows with the number of interrupts.
            break
        name, *fields = line.split()
        # The eight that add up to the time; guest time, which follows, is part of user time already.
        user, nice, system, idle, iowait, irq, softirq, steal = map(int, fields[:8])
        busy = user + nice + system + irq + softirq
        device = "all" if name == b"cpu" else name.decode()
        ticks[device] = (busy, steal, busy + steal + idle + iowait)
    return ticks


def _parse_cpuinfo(content: bytes) -> list[Reading]:
    readings, device = [], ""
    for line in content.split(b"\n"):
        if line.startswith(b"processor"):
            device = f"cpu{int(line.rpartition(b':')[2])}"
        elif line.startswith(b"cpu MHz"):
            value = float(line.rpartition(b":")[2]) * 1e6
            readings.append(Reading("cpu_frequency_cpuinfo", device, value, "Hz"))
    return readings
