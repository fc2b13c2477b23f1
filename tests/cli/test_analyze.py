"""`cgratio analyze`: exit codes, strict JSON, and names that a terminal might trip over."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import typer
from typer.testing import CliRunner

from cgratio.cli.analyze import analyze


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    path = Path(__file__).parents[1] / "analysis" / "generate.py"
    spec = importlib.util.spec_from_file_location("generate", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["generate"] = module  # its dataclasses look themselves up there
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def sweep(generate: ModuleType, tmp_path: Path) -> Path:
    return generate.write_sweep(tmp_path / "sweep", truth=generate.Truth())


@pytest.fixture
def app() -> typer.Typer:
    app = typer.Typer()
    app.command()(analyze)
    return app


def run(app: typer.Typer, *arguments: object, width: int = 100) -> object:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": str(width)})


def test_the_answer_comes_first_and_is_saved(app: typer.Typer, sweep: Path) -> None:
    result = run(app, sweep)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("Pong-v5 with nature_cnn wants 0.7")
    for word in (
        "threads/device CPU",
        "S1",
        "sigma",
        "environments",
        "accelerator",
        "threads = hardware threads",
    ):
        assert word in result.stdout
    saved = json.loads((sweep / "analysis.json").read_text(encoding="utf-8"))
    assert saved["answer"].startswith("Pong-v5")


def test_the_points_fit_in_80_columns(app: typer.Typer, sweep: Path) -> None:
    lines = run(app, sweep, width=80).stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert any("environments" in line and "supply" in line and "3/3" in line for line in lines)


def test_no_valid_trial_exits_4_and_says_so(app: typer.Typer, generate: ModuleType, tmp_path: Path) -> None:
    rows = [generate.one_row(status="failed", verdict=["killed:SIGABRT"], samples_per_s=None)]
    result = run(app, generate.write_rows(tmp_path / "sweep", rows))
    assert result.exit_code == 4
    assert "No valid trial among 1" in result.stdout
    assert "killed:SIGABRT" in result.stdout


def test_not_identifiable_is_an_answer(app: typer.Typer, generate: ModuleType, tmp_path: Path) -> None:
    rows = [generate.one_row(actors=n, samples_per_s=200.0) for n in (1, 2, 4, 8)]
    result = run(app, generate.write_rows(tmp_path / "sweep", rows), width=500)
    assert result.exit_code == 0
    assert "not identifiable" in result.stdout
    assert "best" not in result.stdout


def test_a_folder_without_results_is_one_line_and_exit_2(app: typer.Typer, tmp_path: Path) -> None:
    result = run(app, tmp_path)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    assert "no trials/ folder" in result.stderr


def test_a_damaged_file_is_a_warning_and_with_strict_an_error(app: typer.Typer, sweep: Path) -> None:
    (sweep / "trials" / "damaged.parquet").write_bytes(b"PAR1")
    result = run(app, sweep, "--json")
    assert result.exit_code == 0
    assert "damaged.parquet" in result.stderr
    assert "damaged.parquet" in json.loads(result.stdout)["flaws"][0]
    result = run(app, sweep, "--strict")
    assert result.exit_code == 2
    assert "damaged.parquet" in result.stderr


def test_a_folder_that_cannot_be_written_is_a_warning(
    app: typer.Typer, sweep: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, value: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("cgratio.results.store.write_json", refuse)
    result = run(app, sweep)
    assert result.exit_code == 0
    assert "analysis.json was not saved: Permission denied" in result.stderr


def test_names_in_brackets_are_shown_as_they_are(
    app: typer.Typer, generate: ModuleType, tmp_path: Path
) -> None:
    rows = generate.make_rows(truth=generate.Truth(), environment="[red]Pong[/red]", hostname="[gpu0]")
    rows += generate.make_rows(truth=generate.Truth(), environment="[b]", hostname="[gpu0]")
    result = run(app, generate.write_rows(tmp_path / "sweep", rows), width=300)
    assert result.exit_code == 0
    for name in ("[red]Pong[/red]", "[b]", "[gpu0]"):
        assert name in result.stdout


def test_json_is_plain_whatever_the_terminal_wants(sweep: Path) -> None:
    environment = {**os.environ, "NO_COLOR": "1", "FORCE_COLOR": "1", "PYTHONIOENCODING": "ascii"}
    for option in (["--json"], []):
        done = subprocess.run(
            [sys.executable, "-m", "cgratio", "analyze", str(sweep), *option],
            env=environment,
            capture_output=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        if option:
            assert b"\x1b" not in done.stdout
            json.loads(done.stdout, parse_constant=pytest.fail)
        else:
            done.stdout.decode("ascii")


@pytest.mark.parametrize("width", [1, 20, 40, 60, 79, 200, None])
def test_no_column_is_lost_however_narrow_the_terminal(
    app: typer.Typer, sweep: Path, width: int | None
) -> None:
    environment = {"COLUMNS": "" if width is None else str(width)}
    shown = CliRunner().invoke(app, [str(sweep)], env=environment).stdout
    assert width is None or max(map(len, shown.splitlines())) <= width
    letters = "".join(shown.split())  # broken over lines wherever it has to be
    analysis = json.loads((sweep / "analysis.json").read_text(encoding="utf-8"))
    points = letters[letters.index("Points") : letters.index("Fitted")]
    for header in ("part", "actors", "actor", "device", "share", "samples/s", "busy", "limit", "valid"):
        assert header in points
    assert points.count("whole") == sum(point["axes"]["part"] == "whole" for point in analysis["points"])
    assert points.count("3/3") == points.count("±") == len(analysis["points"])


def test_a_pipe_is_wide_enough_for_every_line(app: typer.Typer, sweep: Path) -> None:
    shown = CliRunner().invoke(app, [str(sweep)], env={"COLUMNS": ""}).stdout
    analysis = json.loads((sweep / "analysis.json").read_text(encoding="utf-8"))
    assert shown.splitlines()[0] == analysis["answer"]
    assert [line for line in shown.splitlines() if line.startswith("note: ")] == [
        f"note: {note}" for note in analysis["notes"]
    ]


def test_control_bytes_of_a_name_are_shown_and_not_obeyed(
    app: typer.Typer, generate: ModuleType, tmp_path: Path
) -> None:
    rows = generate.make_rows(truth=generate.Truth(), environment="\x1b[31mPong\a", hostname="host\x9b2J\r")
    rows += generate.make_rows(truth=generate.Truth(), environment="\u202egnoP", hostname="host\x9b2J\r")
    folder = generate.write_rows(tmp_path / "\x1b[2Jsweep", rows)
    (folder / "trials" / "\x1b]0;x.txt").touch()
    for option in ([], ["--json"], ["--strict"]):
        result = CliRunner().invoke(app, [str(folder), *option], env={"COLUMNS": "400"})
        assert not {"\x1b", "\x9b", "\a", "\r", "\u202e"} & set(result.stdout + result.stderr)
        if not option:
            assert r"\x1b[31mPong\x07" in result.stdout
            assert r"host\x9b2J\r" in result.stdout


def test_importing_the_command_does_not_load_what_is_slow() -> None:
    script = "import sys, cgratio.cli.analyze as a; print({'pandas', 'scipy', 'torch'} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.strip() == "set()"
