from collections.abc import Callable, Mapping
from pathlib import Path

from cgratio.telemetry.hwmon import HwmonSensor

Tree = Callable[[Mapping[str, str]], Path]
BASE = "sys/class/hwmon"


def read(root: Path) -> tuple[list[tuple], dict[str, str]]:
    sensor = HwmonSensor(root=root)
    sensor.open()
    readings = [tuple(reading) for reading in sensor.read()]
    sensor.close()
    return readings, sensor.missing


AMD = {
    f"{BASE}/hwmon2/name": "amd_energy",
    f"{BASE}/hwmon2/energy1_label": "Ecore000",
    f"{BASE}/hwmon2/energy1_input": "1",
    f"{BASE}/hwmon2/energy65_label": "Esocket0",
    f"{BASE}/hwmon2/energy65_input": "4000000",
}


def test_amd_sockets_are_read_in_joules(tree: Tree) -> None:
    readings, missing = read(tree(AMD))
    assert readings == [("cpu_energy", "package-0", 4.0, "J")]
    assert set(missing) == {"cpu_power", "module_power", "node_power"}


def test_amd_sockets_do_not_count_twice_beside_rapl(tree: Tree) -> None:
    assert read(tree(AMD | {"sys/class/powercap/intel-rapl:0/name": "package-0"}))[0] == []


def test_grace_meters_are_told_apart_and_their_parts_left_out(tree: Tree) -> None:
    meters = ("Module Power Socket 0", "Grace Power Socket 0", "CPU Power Socket 0", "SysIO Power Socket 0")
    files = {}
    for i, oem in enumerate(meters):
        files[f"{BASE}/hwmon{i}/name"] = "power_meter"
        files[f"{BASE}/hwmon{i}/device/power1_oem_info"] = oem
        files[f"{BASE}/hwmon{i}/device/power1_average"] = str((i + 1) * 100_000_000)
    readings, missing = read(tree(files))
    assert readings == [("module_power", "package-0", 100.0, "W"), ("cpu_power", "package-0", 200.0, "W")]
    assert set(missing) == {"node_power"}


def test_another_acpi_meter_is_the_nodes(tree: Tree) -> None:
    files = {f"{BASE}/hwmon0/name": "power_meter", f"{BASE}/hwmon0/power1_average": "350000000"}
    assert read(tree(files))[0] == [("node_power", "hwmon0", 350.0, "W")]


def test_a_meter_without_a_file_is_named(tree: Tree) -> None:
    _, missing = read(tree({f"{BASE}/hwmon0/name": "power_meter"}))
    assert "no such file" in missing["node_power/hwmon0"]
