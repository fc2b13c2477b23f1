import subprocess
import sys

import pypdf
import pytest
import typer
from typer.testing import CliRunner

from cgratio.cli.report import report
from cgratio.results import schema, store

app = typer.Typer()
app.command()(report)


def write(folder, *, verdict: str = "valid") -> None:
    """A small sweep: two launches at each of three numbers of actors."""
    for order in range(6):
        actors = (1, 4, 16)[order % 3]
        rate = None if verdict != "valid" else 1000.0 * actors**0.3
        row = {
            "schema_version": schema.SCHEMA_VERSION,
            "sweep": "small",
            "point_id": f"p{actors}",
            "trial_id": f"t{order}",
            "replicate": order // 3,
            "order": order,
            "hostname": "workbench",
            "part": "whole",
            "environment": "Pong-v5",
            "device": "cpu",
            "actors": actors,
            "actor_cpus": 1,
            "device_cpus": 1,
            "sm_share": 1.0,
            "status": "complete" if rate else "failed",
            "verdict": [verdict],
            "samples": round(rate * 10) if rate else None,
            "measured_s": 10.0 if rate else None,
            "samples_per_s": rate,
            "samples_per_joule_reason": "no power sensor",
        }
        store.write_rows(folder / "trials" / f"t{order}.parquet", schema.TRIALS, [row])


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "small"
    write(made)
    return made


def run(*arguments) -> object:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def pages(path) -> int:
    return len(pypdf.PdfReader(path).pages)


def test_the_report_lies_in_the_folder_and_its_path_is_printed(folder):
    result = run(folder)
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[0] == f"Report: {folder / 'report.pdf'}"
    assert result.stdout.splitlines()[1].startswith("Answer: ")
    assert pages(folder / "report.pdf") >= 6


def test_out_names_the_file(folder, tmp_path):
    out = tmp_path / "mine.pdf"
    assert run(folder, "--out", out).exit_code == 0
    assert pages(out) >= 6
    assert not (folder / "report.pdf").exists()


def test_all_failed_still_makes_a_report(tmp_path):
    write(tmp_path, verdict="too_short")
    assert run(tmp_path).exit_code == 0
    first = " ".join(pypdf.PdfReader(tmp_path / "report.pdf").pages[0].extract_text().split())
    assert "No valid trial among 6" in first


@pytest.mark.parametrize("case", ["missing", "empty", "not_a_pdf", "is_a_folder", "blocked", "no_parent"])
def test_bad_input_is_one_line_and_exit_code_2(folder, tmp_path, case):
    (tmp_path / "empty" / "trials").mkdir(parents=True)
    (tmp_path / "x.pdf").mkdir()
    (tmp_path / "file").write_text("in the way")
    arguments = {
        "missing": [tmp_path / "nowhere"],
        "empty": [tmp_path / "empty"],
        "not_a_pdf": [folder, "--out", folder / "manifest.json"],
        "is_a_folder": [folder, "--out", tmp_path / "x.pdf"],
        "blocked": [folder, "--out", tmp_path / "file" / "y.pdf"],
        "no_parent": [folder, "--out", tmp_path / "deep" / "er" / "y.pdf"],
    }[case]
    result = run(*arguments)
    assert result.exit_code == 2
    assert not result.stdout
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "deep").exists()


def test_damaged_files_are_named_in_the_report(folder):
    (folder / "trials" / "notes.txt").write_text("hello")
    result = run(folder)
    assert result.exit_code == 0
    assert "notes.txt: not a Parquet file" in result.stderr
    # A long path is broken over lines wherever it has to be, so white space says nothing here.
    pages = pypdf.PdfReader(folder / "report.pdf").pages
    everything = "".join("".join(page.extract_text().split()) for page in pages)
    assert "notes.txt" in everything


def test_a_path_that_the_terminal_cannot_show_is_no_crash(tmp_path):
    folder = tmp_path / "訓練"
    write(folder)
    result = subprocess.run(
        [sys.executable, "-m", "cgratio", "report", str(folder)],
        env={"PYTHONIOENCODING": "ascii", "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert r"\u8a13\u7df4" in result.stdout


def test_help_does_not_load_the_drawing():
    code = "import sys, cgratio.cli.report; sys.exit('matplotlib' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
