"""Benchmarks are run by hand; that they still start is seen here."""

import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.mark.parametrize(
    "script", ["trainer", "alone", "parts", "start", "raw_envpool", "peers/plain_vtrace"]
)
def test_it_still_starts(script):
    command = [sys.executable, FOLDER / f"{script}.py", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "usage" in done.stdout
