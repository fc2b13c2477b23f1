"""A stand-in for pynvml: the same names and units, on devices that a test describes.

Each test gets a module of its own (see `conftest.py`), so the state is module-wide, as it is in the real one.
A device's `faults` maps a function's name to the error that it raises for this device.
"""
# The names are pynvml's.
# ruff: noqa: N801, N802, N818, PLW0603

from dataclasses import dataclass, field
from types import SimpleNamespace

NVML_CLOCK_SM = 1
NVML_TEMPERATURE_GPU = 0
NVML_DEVICE_MIG_DISABLE = 0
NVML_DEVICE_MIG_ENABLE = 1


class NVMLError(Exception):
    """Base of all; the real one takes a return code, which nothing here needs."""

    text = "Unknown Error"

    def __str__(self) -> str:
        return self.text


class NVMLError_Uninitialized(NVMLError):
    text = "Uninitialized"


class NVMLError_LibraryNotFound(NVMLError):
    text = "NVML Shared Library Not Found"


class NVMLError_NotSupported(NVMLError):
    text = "Not Supported"


class NVMLError_NotFound(NVMLError):
    text = "Not Found"


class NVMLError_GpuIsLost(NVMLError):
    text = "GPU is lost"


class NVMLError_InvalidArgument(NVMLError):
    text = "Invalid Argument"


@dataclass(eq=False)
class Device:
    """A card, or a MIG slice of one. Units are NVML's."""

    uuid: str = "GPU-00000000-1111-2222-3333-444444444444"
    name: str = "NVIDIA H100 80GB HBM3"
    cores: int = 16896
    capability: tuple[int, int] = (9, 0)
    memory: int = 80 << 30
    bus_id: str = "00000000:3B:00.0"
    milliwatts: int = 100_000
    millijoules: int = 1_000_000
    sm_mhz: int = 1980
    percent: int = 50
    celsius: int = 40
    reasons: int = 0
    slices: list["Device"] = field(default_factory=list)
    slice_sms: int | None = None
    faults: dict[str, type[NVMLError]] = field(default_factory=dict)


devices: list[Device] = []
init_error: type[NVMLError] | None = None
starts = 0


def nvmlInit():
    global starts
    if init_error is not None:
        raise init_error
    starts += 1


def nvmlShutdown():
    global starts
    _check()
    starts -= 1


def nvmlSystemGetDriverVersion():
    _check()
    return "570.124.06"


def nvmlDeviceGetCount():
    _check()
    return len(devices)


def nvmlDeviceGetHandleByIndex(index):
    _check()
    if not 0 <= index < len(devices):
        raise NVMLError_InvalidArgument
    return _ask(devices[index], "nvmlDeviceGetHandleByIndex", devices[index])


def nvmlDeviceGetHandleByUUID(uuid):
    _check()
    for device in devices:
        if device.uuid == uuid:
            return device
    raise NVMLError_NotFound


def nvmlDeviceGetUUID(device):
    return _ask(device, "nvmlDeviceGetUUID", device.uuid)


def nvmlDeviceGetName(device):
    return _ask(device, "nvmlDeviceGetName", device.name)


def nvmlDeviceGetPciInfo(device):
    return _ask(device, "nvmlDeviceGetPciInfo", SimpleNamespace(busId=device.bus_id))


def nvmlDeviceGetNumGpuCores(device):
    return _ask(device, "nvmlDeviceGetNumGpuCores", device.cores)


def nvmlDeviceGetCudaComputeCapability(device):
    return _ask(device, "nvmlDeviceGetCudaComputeCapability", device.capability)


def nvmlDeviceGetMemoryInfo(device):
    info = SimpleNamespace(total=device.memory, used=device.memory // 4, free=device.memory // 4 * 3)
    return _ask(device, "nvmlDeviceGetMemoryInfo", info)


def nvmlDeviceGetMigMode(device):
    mode = NVML_DEVICE_MIG_ENABLE if device.slices else NVML_DEVICE_MIG_DISABLE
    return _ask(device, "nvmlDeviceGetMigMode", [mode, mode])


def nvmlDeviceGetMaxMigDeviceCount(device):
    return _ask(device, "nvmlDeviceGetMaxMigDeviceCount", 7)


def nvmlDeviceGetMigDeviceHandleByIndex(device, index):
    _check()
    if index >= len(device.slices):
        raise NVMLError_NotFound
    return device.slices[index]


def nvmlDeviceGetAttributes(device):
    if device.slice_sms is None:
        raise NVMLError_NotSupported
    return _ask(device, "nvmlDeviceGetAttributes", SimpleNamespace(multiprocessorCount=device.slice_sms))


def nvmlDeviceGetPowerUsage(device):
    return _ask(device, "nvmlDeviceGetPowerUsage", device.milliwatts)


def nvmlDeviceGetTotalEnergyConsumption(device):
    return _ask(device, "nvmlDeviceGetTotalEnergyConsumption", device.millijoules)


def nvmlDeviceGetClockInfo(device, clock):
    assert clock == NVML_CLOCK_SM
    return _ask(device, "nvmlDeviceGetClockInfo", device.sm_mhz)


def nvmlDeviceGetUtilizationRates(device):
    return _ask(device, "nvmlDeviceGetUtilizationRates", SimpleNamespace(gpu=device.percent, memory=0))


def nvmlDeviceGetTemperature(device, sensor):
    assert sensor == NVML_TEMPERATURE_GPU
    return _ask(device, "nvmlDeviceGetTemperature", device.celsius)


def nvmlDeviceGetCurrentClocksEventReasons(device):
    return _ask(device, "nvmlDeviceGetCurrentClocksEventReasons", device.reasons)


def _check():
    if starts == 0:
        raise NVMLError_Uninitialized


def _ask(device, function, answer):
    _check()
    if function in device.faults:
        raise device.faults[function]
    return answer
