from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from cgratio.telemetry.proc import FrequencySensor, PressureSensor, StatSensor

Tree = Callable[[Mapping[str, str]], Path]


def values(sensor) -> dict[tuple[str, str], float]:
    return {(reading.sensor, reading.device): reading.value for reading in sensor.read()}


def test_busy_and_steal_are_parts_of_the_time_between_two_readings(tree: Tree) -> None:
    #                user nice system idle iowait irq softirq steal guest guest_nice
    tree({"proc/stat": "cpu  100 0 0 900 0 0 0 0 50 0\ncpu3 100 0 0 900 0 0 0 0 50 0\nintr 5"})
    root = tree({})
    sensor = StatSensor(root=root)
    sensor.open()
    assert sensor.read() == []
    tree({"proc/stat": "cpu  130 10 5 930 5 3 2 15 60 0\ncpu3 130 10 5 930 5 3 2 15 60 0\nintr 5"})
    found = values(sensor)
    sensor.close()
    assert found == {
        ("cpu_busy", "all"): pytest.approx(0.5),
        ("cpu_steal", "all"): pytest.approx(0.15),
        ("cpu_busy", "cpu3"): pytest.approx(0.5),
        ("cpu_steal", "cpu3"): pytest.approx(0.15),
    }


def test_a_few_ticks_are_kept_for_the_next_reading(tree: Tree) -> None:
    root = tree({"proc/stat": "cpu  0 0 0 0 0 0 0 0 0 0"})
    sensor = StatSensor(root=root)
    sensor.open()
    tree({"proc/stat": "cpu  2 0 0 1 0 0 0 0 0 0"})
    assert sensor.read() == []
    tree({"proc/stat": "cpu  2 0 0 8 0 0 0 0 0 0"})
    assert values(sensor)["cpu_busy", "all"] == pytest.approx(0.2)
    sensor.close()


def test_a_cpu_that_comes_or_steps_back_gives_no_nonsense(tree: Tree) -> None:
    root = tree({"proc/stat": "cpu  90 0 0 10 0 0 0 0 0 0"})
    sensor = StatSensor(root=root)
    sensor.open()
    tree({"proc/stat": "cpu  10 0 0 200 0 0 0 0 0 0\ncpu1 10 0 0 200 0 0 0 0 0 0"})
    assert sensor.read() == []
    sensor.close()


def test_frequencies_come_from_cpufreq(tree: Tree) -> None:
    root = tree({"sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq": "2400000"})
    sensor = FrequencySensor(root=root)
    sensor.open()
    assert values(sensor) == {("cpu_frequency", "cpu1"): 2.4e9}
    assert sensor.missing == {}
    sensor.close()


def test_frequencies_from_cpuinfo_have_another_name(tree: Tree) -> None:
    cpuinfo = "".join(
        f"processor\t: {i}\ncpu MHz\t\t: {2000 + i}.5\npadding\t: {'x' * 2000}\n\n" for i in range(64)
    )
    sensor = FrequencySensor(root=tree({"proc/cpuinfo": cpuinfo}))
    sensor.open()
    found = values(sensor)
    sensor.close()
    assert len(found) == 64
    assert found["cpu_frequency_cpuinfo", "cpu63"] == 2063.5e6
    assert set(sensor.missing) == {"cpu_frequency"}


def test_pressure_is_the_time_that_some_task_waited(tree: Tree) -> None:
    text = (
        "some avg10=0.60 avg60=0.17 avg300=0.09 total=1597118\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7"
    )
    sensor = PressureSensor(root=tree({"proc/pressure/cpu": text}))
    sensor.open()
    assert values(sensor) == {("cpu_pressure", "all"): 1.597118}
    sensor.close()


@pytest.mark.parametrize("kind", [StatSensor, FrequencySensor, PressureSensor])
def test_an_empty_host_names_every_sensor(tmp_path: Path, kind) -> None:
    sensor = kind(root=tmp_path)
    sensor.open()
    assert sensor.read() == []
    assert set(sensor.missing) == set(sensor.names)
    sensor.close()
