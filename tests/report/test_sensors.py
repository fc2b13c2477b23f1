from cgratio.report.sensors import COVERS, sensor_rows
from cgratio.telemetry.inventory import build_sensors


def rows(**manifest):
    return dict(sensor_rows(manifest))


def test_a_sensor_that_is_present_says_what_it_covers_and_of_which_devices():
    found = rows(
        sensors={
            "cpu_energy": ["package-0", "package-1"],
            "cpu_busy": [],
            "cpu_pressure": ["all"],
            "cpu_frequency": [f"cpu{number}" for number in range(64)],
        }
    )
    assert found == {
        "cpu_energy": "present: joules of the CPU packages (boundary cpu_package); package-0, package-1",
        "cpu_busy": "present: share of time in which CPUs were busy",
        "cpu_pressure": "present: time in which tasks waited for a CPU",
        "cpu_frequency": "present: clock of the CPUs; 64 devices, cpu0 to cpu63",
    }


def test_sensors_that_are_missing_for_one_reason_share_a_row_with_what_would_help():
    why = "no RAPL in /sys/class/powercap; try: sudo modprobe intel_rapl_msr"
    found = rows(missing_sensors={"cpu_energy": why, "dram_energy": why})
    assert found == {
        "cpu_energy, dram_energy": "missing: no RAPL in /sys/class/powercap. "
        "To get it: sudo modprobe intel_rapl_msr. It would give: "
        "joules of the CPU packages (boundary cpu_package); joules of the memory (boundary dram)."
    }


def test_one_device_of_a_sensor_may_be_missing():
    (name,) = rows(missing_sensors={"gpu_energy/GPU-1234": "not supported by this GPU"})
    assert name == "gpu_energy of GPU-1234"


def test_without_a_gpu_the_reason_is_why_the_host_has_none():
    found = rows(
        missing_sensors={"gpu_power": "no GPU was asked for"}, host={"gpu_reason": "no NVIDIA driver"}
    )
    assert found["gpu_power"].startswith("missing: no NVIDIA driver. It would give: watts of the GPU boards")


def test_a_manifest_without_sensors_says_that_none_were_recorded():
    assert rows() == {"sensors": "not recorded"}
    assert rows(sensors=None, missing_sensors="?") == {"sensors": "not recorded"}


def test_every_sensor_of_the_host_is_described(tmp_path):
    names = {name for sensor in build_sensors(root=tmp_path, gpus=[]) for name in sensor.names}
    assert names <= COVERS.keys()
