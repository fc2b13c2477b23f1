import errno
import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from cgratio.telemetry.energy import EnergyBoundary, measure_energy
from cgratio.telemetry.rapl import RaplSensor

Tree = Callable[[Mapping[str, str]], Path]
BASE = "sys/class/powercap"
RANGE_UJ = 262143328850


def zone(name: str, folder: str, energy_uj: int, *, range_uj: int | None = RANGE_UJ) -> dict[str, str]:
    files = {f"{BASE}/{folder}/name": name, f"{BASE}/{folder}/energy_uj": str(energy_uj)}
    return files if range_uj is None else {**files, f"{BASE}/{folder}/max_energy_range_uj": str(range_uj)}


def refuse(monkeypatch: pytest.MonkeyPatch, *, folder: str) -> None:
    """Makes a zone's counter readable by root only, which file modes cannot show to a test that is root."""
    plain_open = os.open

    def guarded(path, *args, **kwargs):
        if folder in Path(path).parts and Path(path).name == "energy_uj":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return plain_open(path, *args, **kwargs)

    monkeypatch.setattr(os, "open", guarded)


def test_packages_and_their_memory_are_read_in_joules(tree: Tree) -> None:
    root = tree(
        zone("package-0", "intel-rapl:0", 5_000_000)
        | zone("core", "intel-rapl:0:0", 1)
        | zone("dram", "intel-rapl:0:1", 2_000_000)
        | zone("package-1", "intel-rapl:1", 7_000_000)
        | zone("package-0", "intel-rapl-mmio:0", 9)
    )
    sensor = RaplSensor(root=root)
    sensor.open()
    assert [tuple(reading) for reading in sensor.read()] == [
        ("cpu_energy", "package-0", 5.0, "J"),
        ("dram_energy", "package-0", 2.0, "J"),
        ("cpu_energy", "package-1", 7.0, "J"),
    ]
    assert sensor.missing == {}
    sensor.close()
    sensor.close()


@pytest.mark.parametrize(("range_uj", "step_j"), [(RANGE_UJ, 15.0), (None, -262128.32885)])
def test_a_wrap_is_continued_when_the_range_is_known(tree: Tree, range_uj: int | None, step_j: float) -> None:
    # Case C5.
    root = tree(zone("package-0", "intel-rapl:0", 262138328850, range_uj=range_uj))
    sensor = RaplSensor(root=root)
    sensor.open()
    (before,) = sensor.read()
    (root / BASE / "intel-rapl:0/energy_uj").write_text("10000000\n", encoding="ascii")
    (after,) = sensor.read()
    sensor.close()
    assert after.value - before.value == pytest.approx(step_j)
    readings = [(0.0, *before[:3]), (1.0, *after[:3])]
    energy = next(
        e for e in measure_energy(readings, {}, t0=0, t1=1) if e.boundary is EnergyBoundary.CPU_PACKAGE
    )
    assert energy.joules == (pytest.approx(15) if range_uj else None)


def test_an_unreadable_package_is_named_with_the_command_that_helps(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Case C6.
    root = tree(zone("package-0", "intel-rapl:0", 1) | zone("package-1", "intel-rapl:1", 3_000_000))
    refuse(monkeypatch, folder="intel-rapl:0")
    sensor = RaplSensor(root=root)
    sensor.open()
    (reading,) = sensor.read()
    sensor.close()
    assert reading.device == "package-1"
    reason = sensor.missing["cpu_energy/package-0"]
    assert "permission denied; try: sudo chmod a+r" in reason
    assert sensor.missing["dram_energy"] == "RAPL of this CPU has no DRAM domain"


def test_a_counter_that_is_no_number_is_missing(tree: Tree) -> None:
    root = tree({f"{BASE}/intel-rapl:0/name": "package-0", f"{BASE}/intel-rapl:0/energy_uj": "busy"})
    sensor = RaplSensor(root=root)
    sensor.open()
    assert sensor.read() == []
    assert sensor.missing["cpu_energy/package-0"].endswith("not a number")


def test_a_host_without_rapl_says_so(tree: Tree) -> None:
    for cpuinfo, reason in (
        ("flags\t: fpu hypervisor sse", "virtual machine"),
        ("flags\t: fpu", "sudo modprobe"),
    ):
        sensor = RaplSensor(root=tree({"proc/cpuinfo": cpuinfo}))
        sensor.open()
        assert sensor.read() == []
        assert reason in sensor.missing["cpu_energy"]
        assert reason in sensor.missing["dram_energy"]
