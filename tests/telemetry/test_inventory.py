from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType

from cgratio.results.words import FIX
from cgratio.telemetry.inventory import list_sensors

Tree = Callable[[Mapping[str, str]], Path]


def test_on_this_host_every_sensor_works_or_says_why() -> None:
    statuses = list_sensors()
    assert {s.sensor for s in statuses} >= {
        "gpu_power",
        "cpu_energy",
        "dram_energy",
        "node_power",
        "cpu_busy",
    }
    assert all(status.ok or status.reason for status in statuses)
    assert not any(FIX in (status.reason or "") for status in statuses)


def test_a_reason_and_the_command_that_helps_are_told_apart(tmp_path: Path) -> None:
    (status,) = (s for s in list_sensors(root=tmp_path) if s.sensor == "cpu_energy")
    assert (status.reason, status.fix) == ("no RAPL in /sys/class/powercap", "sudo modprobe intel_rapl_msr")


def test_a_saved_tree_has_no_gpus_of_this_host(nvml: ModuleType, tmp_path: Path) -> None:
    nvml.devices.append(nvml.Device())
    (status,) = (s for s in list_sensors(root=tmp_path) if s.sensor == "gpu_power")
    assert status.reason == "NVML describes the running host, not a saved tree"


def test_devices_that_work_are_listed_beside_those_that_do_not(nvml: ModuleType) -> None:
    faults = {"nvmlDeviceGetTotalEnergyConsumption": nvml.NVMLError_NotSupported}
    nvml.devices += [nvml.Device(uuid="GPU-a", faults=faults), nvml.Device(uuid="GPU-b")]
    good, bad = (s for s in list_sensors() if s.sensor == "gpu_energy")
    assert (good.ok, good.devices) == (True, ("GPU-b",))
    assert (bad.ok, bad.device, bad.reason) == (False, "GPU-a", "not supported by this GPU")
