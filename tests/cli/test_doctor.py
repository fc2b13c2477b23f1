import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from cgratio.cli.doctor import doctor


@pytest.fixture
def app() -> typer.Typer:
    app = typer.Typer()
    app.command()(doctor)
    return app


def save(root: Path, *, model: str = "Some CPU") -> Path:
    files = {
        "sys/devices/system/cpu/online": "0-63",
        "proc/self/status": "Cpus_allowed_list:\t0-15",
        "proc/self/cgroup": "0::/job",
        "sys/fs/cgroup/job/cpu.max": "400000 100000",
        "proc/cpuinfo": f"processor\t: 0\nmodel name\t: {model}",
        "sys/class/powercap/intel-rapl:0/name": "package-0",
        "sys/class/powercap/intel-rapl:0/energy_uj": "1000000",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text + "\n", encoding="utf-8")
    return root


def test_a_saved_tree_is_described(app: typer.Typer, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["--sysroot", str(save(tmp_path))], env={"COLUMNS": "200"})
    assert result.exit_code == 0
    text = " ".join(result.output.split())
    for part in ("64 (0-63)", "16 (0-15)", "4 CPUs of time", "ok: package-0", "not a saved tree", "Some CPU"):
        assert part in text


def test_json_is_strict_and_whole(app: typer.Typer, tmp_path: Path) -> None:
    environment = {"NO_COLOR": "1", "FORCE_COLOR": "1"}
    result = CliRunner().invoke(app, ["--json", "--sysroot", str(save(tmp_path))], env=environment)
    report = json.loads(result.output, parse_constant=pytest.fail)
    assert (report["threads_online"], report["threads_allowed"], report["quota_cpus"]) == (64, 16, 4.0)
    assert report["ratio"]["ratio"] is None
    assert report["ratio"]["reason"]
    sensors = {sensor["sensor"]: sensor for sensor in report["sensors"]}
    assert sensors["cpu_energy"]["ok"]
    assert sensors["gpu_power"]["reason"]


def test_this_host_is_described(app: typer.Typer) -> None:
    assert CliRunner().invoke(app, []).exit_code == 0
    assert json.loads(CliRunner().invoke(app, ["--json"]).output)["threads_allowed"] >= 1


def test_names_with_brackets_and_without_ascii_survive_an_ascii_terminal(tmp_path: Path) -> None:
    # Case H1.
    root = save(tmp_path, model="[gpu0] Xeon\u00ae [/] " + "long " * 30)
    result = subprocess.run(
        [sys.executable, "-m", "cgratio", "doctor", "--sysroot", str(root)],
        env={**os.environ, "PYTHONIOENCODING": "ascii", "COLUMNS": "80"},
        capture_output=True,
        check=True,
    )
    assert b"[gpu0] Xeon\\xae [/]" in result.stdout
    assert result.stderr == b""


def test_control_bytes_of_a_name_are_shown_and_not_obeyed(app: typer.Typer, tmp_path: Path) -> None:
    root = save(tmp_path, model="\x1b[31mXeon\x07")
    for option in ([], ["--json"]):
        result = CliRunner().invoke(app, ["--sysroot", str(root), *option])
        assert result.exit_code == 0
        assert not {"\x1b", "\x07"} & set(result.output)
        assert (r"\u001b[31mXeon\u0007" if option else r"\x1b[31mXeon\x07") in result.output


@pytest.mark.parametrize("width", [1, 10, 40, 80])
def test_nothing_is_lost_on_a_narrow_terminal(app: typer.Typer, tmp_path: Path, width: int) -> None:
    result = CliRunner().invoke(app, ["--sysroot", str(save(tmp_path))], env={"COLUMNS": str(width)})
    assert max(map(len, result.output.splitlines())) <= width
    text = "".join(result.output.split())
    for part in ("64(0-63)", "16(0-15)", "SomeCPU", "cpu_energy", "package-0"):
        assert part in text or (width == 80 and part == "64(0-63)")


def test_a_folder_without_cpus_is_bad_usage(app: typer.Typer, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["--sysroot", str(tmp_path)])
    assert result.exit_code == 2
    assert "online" in result.output
