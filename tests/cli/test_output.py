"""What commands print with: any name, any width, any reader."""

import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from cgratio.cli.output import Listing, plain, say_json, show


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("[gpu0] $5 訓練 Zürich ±", "[gpu0] $5 訓練 Zürich ±"),
        ("\x1b[31mred\x07", r"\x1b[31mred\x07"),
        ("a\tb\nc\r", r"a\tb\nc\r"),
        ("\x7f\x80\x9b", r"\x7f\x80\x9b"),
        ("\u202egnop\u2066", r"\u202egnop\u2066"),
        ("a\u2028b\ud800", r"a\u2028b\ud800"),
    ],
)
def test_text_cannot_steer_a_terminal(text, shown):
    assert plain(text) == shown


def test_json_holds_no_control_byte(capsys):
    say_json({"name": "\x1b\x7f\x9b訓"})
    assert capsys.readouterr().out == '{\n  "name": "\\u001b\\u007f\\u009b\\u8a13"\n}\n'


_words = st.lists(st.text(st.characters(categories=["L", "N", "P"]), min_size=1), min_size=1, max_size=3)
_cells = _words.map(" ".join)


@given(
    headers=st.lists(_cells, min_size=1, max_size=5),
    rows=st.lists(st.lists(_cells, min_size=5, max_size=5), max_size=4),
    width=st.integers(2, 60),
)
def test_every_cell_is_printed_and_no_line_is_too_long(headers, rows, width):
    rows = [row[: len(headers)] for row in rows]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(width))
        printed = _printed(Listing(title="t", headers=headers, rows=rows))
    assert max(map(cell_len, printed.splitlines())) <= width
    for cell in {cell for row in rows for cell in row}:
        found = printed.count(cell) if cell_len(cell) < 2 else None
        assert found is None or found >= sum(row.count(cell) for row in rows)
    written = [cell for row in rows for cell in row] + ([*headers] if rows else [])
    counted = "".join(printed.split())
    for letter in set("".join("".join(written).split())):
        assert counted.count(letter) >= "".join(written).count(letter)


def _printed(listing):
    import contextlib
    import io

    with contextlib.redirect_stdout(io.StringIO()) as stream:
        show(listing)
    return stream.getvalue()


@pytest.mark.parametrize("columns", ["", "0", "²", "-5", "x", "9" * 5000])
def test_a_width_that_is_none_is_passed_over(monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    row = ["word " * 50, "word " * 50]
    assert len(_printed(Listing(title="t", headers=["a", "b"], rows=[row])).splitlines()[-2]) > 500


COMMANDS = {
    "help": ["--help"],
    "version": ["--version"],
    "doctor": ["doctor"],
    "doctor --json": ["doctor", "--json"],
    "analyze": ["analyze", "FOLDER"],
    "analyze --json": ["analyze", "FOLDER", "--json"],
    "report": ["report", "FOLDER"],
    "sweep --dry-run": ["sweep", "SPEC", "--dry-run"],
    "sweep": ["sweep", "SPEC", "--out", "OUT"],
    "train": ["train", "--samples", "100"],
}


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """A results folder and a specification to run the commands on."""
    from cgratio.results import schema, store

    root = tmp_path_factory.mktemp("places")
    row = {"trial_id": "t", "part": "whole", "status": "complete", "verdict": ["valid"], "samples_per_s": 5.0}
    store.write_rows(root / "folder" / "trials" / "t.parquet", schema.TRIALS, [row])
    store.write_json(root / "folder" / store.MANIFEST, {"schema_version": 1})
    (root / "spec.yaml").write_text(
        "name: s\n"
        "axes: {environment: CartPole-v1, network: mlp, device: cpu, actors: [1, 2], actor_cpus: 1}\n"
        "replicates: 1\ntrial: {window_s: 0.1, warmup_min_s: 0, warmup_max_s: 0.2, max_s: 1}\n"
    )
    return {"FOLDER": root / "folder", "SPEC": root / "spec.yaml", "OUT": root / "out"}


def run(arguments, places, **streams):
    command = [sys.executable, "-m", "cgratio", *(str(places.get(word, word)) for word in arguments)]
    return subprocess.run(command, check=False, timeout=120, text=True, **streams)


@pytest.fixture
def no_reader():
    reading, writing = os.pipe()
    os.close(reading)
    yield writing
    os.close(writing)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_reader_that_has_left_ends_a_command_quietly(places, no_reader, name):
    done = run(COMMANDS[name], places, stdout=no_reader, stderr=subprocess.PIPE)
    assert done.returncode == 141
    assert done.stderr.replace("warning: ", "", 1).count("\n") <= 1
    assert "Error" not in done.stderr
    assert "Traceback" not in done.stderr


def test_a_sweep_whose_reader_leaves_says_that_it_stopped(places):
    command = [sys.executable, "-m", "cgratio", *(str(places.get(word, word)) for word in COMMANDS["sweep"])]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **streams) as process:
        process.stdout.readline()
        process.stdout.close()
        said = process.stderr.read()
    assert process.returncode == 141
    assert said == f"interrupted: finished trials are kept in {places['OUT']}; go on with --resume\n"


def test_the_first_line_alone_is_read_quietly(places):
    shell = f"{sys.executable} -m cgratio doctor | head -1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, check=True, timeout=60)
    assert done.stderr == ""
    assert done.stdout.splitlines()[-1] in {"0", "141"}  # whether all was written before `head` left


@pytest.mark.parametrize("name", ["version", "doctor", "analyze"])
def test_an_error_of_which_nobody_reads_is_quiet_too(places, no_reader, name):
    arguments = ["analyze", "/nonexistent"] if name == "analyze" else COMMANDS[name]
    assert run(arguments, places, stdout=no_reader, stderr=no_reader).returncode == 141


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")  # noqa: PTH110
@pytest.mark.parametrize("name", ["help", "version", "doctor", "doctor --json", "analyze", "sweep --dry-run"])
def test_a_full_disk_is_one_line_and_exit_2(places, name):
    with open("/dev/full", "w") as full:  # noqa: PTH123
        done = run(COMMANDS[name], places, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 2
    assert done.stderr.endswith("error: standard output: No space left on device\n")


def test_a_standard_output_that_is_closed_is_no_crash(places):
    cgratio = f"{sys.executable} -m cgratio"
    shell = f"{cgratio} doctor >&-; echo $?; {cgratio} train foo 2>&-; echo $?"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.splitlines() == ["0", "2"]
    assert done.stderr == ""
