import pytest

from cgratio.telemetry.energy import Energy, EnergyBoundary, EnergyReason, PowerModel, measure_energy

GPU = "GPU-1"
T = [i / 10 for i in range(101)]


def series(sensor: str, device: str, *, watts: float, counter: bool) -> list[tuple[float, str, str, float]]:
    return [(t, sensor, device, watts * t if counter else watts) for t in T]


def measure(readings: list, missing: dict[str, str] | None = None, **options) -> dict[EnergyBoundary, Energy]:
    found = measure_energy(sorted(readings), missing or {}, t0=0, t1=10, **options)
    assert [energy.boundary for energy in found] == list(EnergyBoundary)
    return {energy.boundary: energy for energy in found}


def test_a_counter_is_preferred_to_power() -> None:
    readings = series("gpu_energy", GPU, watts=200, counter=True) + series(
        "gpu_power", GPU, watts=1, counter=False
    )
    energy = measure(readings)[EnergyBoundary.GPU_BOARD]
    assert energy.joules == pytest.approx(2000)
    assert (energy.method, energy.source, energy.usable) == ("counter", "NVML energy counter", True)


def test_power_is_integrated_where_there_is_no_counter() -> None:
    # Case C3.
    missing = {f"gpu_energy/{GPU}": "not supported by this GPU"}
    energy = measure(series("gpu_power", GPU, watts=150, counter=False), missing)[EnergyBoundary.GPU_BOARD]
    assert energy.joules == pytest.approx(1500)
    assert (energy.method, energy.reason, energy.usable) == ("integrated", None, True)
    assert energy.plus_minus_j == pytest.approx(75)


def test_neither_counter_nor_power_is_null_with_the_sensors_reason() -> None:
    # Case C3.
    missing = {f"gpu_{what}/{GPU}": "not supported by this GPU" for what in ("energy", "power")}
    # Utilisation is no substitute.
    energy = measure(series("gpu_utilisation", GPU, watts=1, counter=False), missing)[
        EnergyBoundary.GPU_BOARD
    ]
    assert (energy.joules, energy.reason) == (None, "not supported by this GPU")
    assert not energy.usable
    assert energy.plus_minus_j is None


def test_a_missing_package_makes_the_total_partial() -> None:
    # Case C6.
    missing = {"cpu_energy/package-0": "permission denied"}
    energy = measure(series("cpu_energy", "package-1", watts=80, counter=True), missing)[
        EnergyBoundary.CPU_PACKAGE
    ]
    assert energy.joules == pytest.approx(800)
    assert (energy.reason, energy.usable) == (EnergyReason.PARTIAL, False)


def test_packages_and_gpus_add_up_within_their_boundary() -> None:
    readings = [
        *series("cpu_energy", "package-0", watts=80, counter=True),
        *series("cpu_energy", "package-1", watts=20, counter=True),
        *series("dram_energy", "package-0", watts=5, counter=True),
        *series("gpu_energy", GPU, watts=300, counter=True),
        *series("gpu_power", "GPU-2", watts=100, counter=False),
    ]
    found = measure(readings)
    assert found[EnergyBoundary.CPU_PACKAGE].joules == pytest.approx(1000)
    assert found[EnergyBoundary.DRAM].joules == pytest.approx(50)
    board = found[EnergyBoundary.GPU_BOARD]
    assert board.joules == pytest.approx(4000)
    assert (board.method, board.source) == ("integrated", "NVML energy counter and NVML power")


def test_a_wrap_of_unknown_range_is_null() -> None:
    # Case C5, as measured.
    readings = [(0.0, "cpu_energy", "package-0", 262138.3), (10.0, "cpu_energy", "package-0", 10.0)]
    energy = measure(readings)[EnergyBoundary.CPU_PACKAGE]
    assert (energy.joules, energy.reason) == (None, EnergyReason.COUNTER_RESET)


def test_without_any_sensor_each_boundary_says_why() -> None:
    found = measure([], {"cpu_energy": "no RAPL", "gpu_energy": "no driver"})
    assert all(energy.joules is None for energy in found.values())
    assert found[EnergyBoundary.CPU_PACKAGE].reason == "no RAPL"
    assert found[EnergyBoundary.GPU_BOARD].reason == "no driver"
    assert found[EnergyBoundary.NODE].reason == EnergyReason.NO_SENSOR
    assert found[EnergyBoundary.MODELLED].reason == EnergyReason.NO_POWER_MODEL


def test_a_model_has_a_boundary_of_its_own() -> None:
    model = PowerModel(idle_w=50, max_w=150)
    found = measure(series("cpu_busy", "all", watts=0.5, counter=False), power_model=model)
    modelled = found[EnergyBoundary.MODELLED]
    assert (modelled.joules, modelled.method) == (pytest.approx(1000), "modelled")
    assert found[EnergyBoundary.CPU_PACKAGE].joules is None
    assert (
        measure([], {"cpu_busy": "no /proc/stat"}, power_model=model)[EnergyBoundary.MODELLED].reason
        == "no /proc/stat"
    )
