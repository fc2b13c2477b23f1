from types import ModuleType

import pytest

from cgratio.telemetry.nvml import NvmlSensor, throttle_names

A, B = "GPU-aaaa", "GPU-bbbb"


def values(sensor: NvmlSensor) -> dict[tuple[str, str], tuple[float, str]]:
    return {(r.sensor, r.device): (r.value, r.unit) for r in sensor.read()}


def test_every_value_has_si_units(nvml: ModuleType) -> None:
    nvml.devices.append(nvml.Device(uuid=A, reasons=0x44))
    sensor = NvmlSensor()
    sensor.open()
    assert values(sensor) == {
        ("gpu_energy", A): (1000.0, "J"),
        ("gpu_power", A): (100.0, "W"),
        ("gpu_sm_clock", A): (1.98e9, "Hz"),
        ("gpu_utilisation", A): (0.5, "1"),
        ("gpu_temperature", A): (40.0, "C"),
        ("gpu_throttle", A): (68.0, "bits"),
        ("gpu_memory_used", A): (float(20 << 30), "bytes"),
    }
    assert sensor.missing == {}
    sensor.close()
    sensor.close()
    assert nvml.starts == 0


def test_only_the_gpus_that_were_asked_for_are_read(
    nvml: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Case C2: NVML's indices know nothing of CUDA_VISIBLE_DEVICES, so only the UUID counts.
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    nvml.devices += [nvml.Device(uuid=A, milliwatts=20_000), nvml.Device(uuid=B, milliwatts=200_000)]
    sensor = NvmlSensor(uuids=[B])
    sensor.open()
    found = values(sensor)
    sensor.close()
    assert found["gpu_power", B] == (200.0, "W")
    assert {device for _, device in found} == {B}


def test_what_a_gpu_does_not_support_is_missing_for_that_gpu(nvml: ModuleType) -> None:
    # Case C3.
    faults = {"nvmlDeviceGetTotalEnergyConsumption": nvml.NVMLError_NotSupported}
    nvml.devices += [nvml.Device(uuid=A, faults=faults), nvml.Device(uuid=B)]
    sensor = NvmlSensor()
    sensor.open()
    found = values(sensor)
    sensor.close()
    assert sensor.missing == {f"gpu_energy/{A}": "not supported by this GPU"}
    assert ("gpu_power", A) in found
    assert ("gpu_energy", B) in found


def test_a_gpu_that_is_lost_while_measuring_is_named(nvml: ModuleType) -> None:
    nvml.devices.append(nvml.Device(uuid=A))
    sensor = NvmlSensor()
    sensor.open()
    nvml.devices[0].faults["nvmlDeviceGetPowerUsage"] = nvml.NVMLError_GpuIsLost
    assert ("gpu_power", A) not in values(sensor)
    assert sensor.missing[f"gpu_power/{A}"] == "failed while measuring: the GPU is lost: it fell off the bus"
    sensor.close()


@pytest.mark.parametrize(
    ("uuids", "reason"),
    [(["GPU-none"], "this host has no such GPU"), (["MIG-1"], "NVML measures whole cards, not MIG slices")],
)
def test_a_gpu_that_cannot_be_read_is_named(nvml: ModuleType, uuids: list[str], reason: str) -> None:
    nvml.devices.append(nvml.Device(uuid=A))
    sensor = NvmlSensor(uuids=uuids)
    sensor.open()
    assert sensor.read() == []
    assert sensor.missing == {f"{name}/{uuids[0]}": reason for name in sensor.names}
    sensor.close()


def test_no_gpus_asked_for_does_not_start_nvml(nvml: ModuleType) -> None:
    nvml.init_error = nvml.NVMLError_LibraryNotFound
    sensor = NvmlSensor(uuids=[])
    sensor.open()
    assert set(sensor.missing.values()) == {"no GPU was asked for"}


def test_no_driver_is_the_reason_of_every_sensor(nvml: ModuleType) -> None:
    nvml.init_error = nvml.NVMLError_LibraryNotFound
    sensor = NvmlSensor()
    sensor.open()
    assert sensor.read() == []
    assert set(sensor.missing) == set(sensor.names)
    assert "libnvidia-ml.so.1 not found" in sensor.missing["gpu_power"]
    sensor.close()


def test_throttle_bits_have_names() -> None:
    import pynvml

    assert throttle_names(0) == ()
    assert throttle_names(0x44) == ("sw_power_cap", "hw_thermal_slowdown")
    assert throttle_names(1 << 12) == ("bit_12",)
    # The table against NVML's own constants.
    mask = pynvml.nvmlClocksEventReasonSwPowerCap | pynvml.nvmlClocksEventReasonHwSlowdown
    assert throttle_names(mask) == ("sw_power_cap", "hw_slowdown")
    assert not any(name.startswith("bit_") for name in throttle_names(pynvml.nvmlClocksEventReasonAll))
