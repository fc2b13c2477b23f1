import json
import os
import signal
import subprocess
import sys
import time

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cgratio.results import schema, store

MANIFEST = {"schema_version": 1}


@pytest.fixture
def folder(tmp_path):
    store.write_json(tmp_path / store.MANIFEST, MANIFEST)
    (tmp_path / "trials").mkdir()
    return tmp_path


def write_trial(folder, name, **fields):
    store.write_rows(folder / "trials" / f"{name}.parquet", schema.TRIALS, [{"trial_id": name, **fields}])


@pytest.mark.parametrize("names", [("a", "b"), ("b", "a")])
def test_one_table_whatever_the_order_of_files_and_their_types(folder, names):
    # Case D1: all null in the first, 70.5 in the second; an int column in one, float in the next.
    first, second = names
    pq.write_table(
        pa.table({"trial_id": [first], "power_w": pa.nulls(1), "actors": [2.0], "order": [0]}),
        folder / "trials" / f"{first}.parquet",
    )
    pq.write_table(
        pa.table({"trial_id": [second], "power_w": [70.5], "actors": [4], "order": [1]}),
        folder / "trials" / f"{second}.parquet",
    )
    trials = store.load(folder, strict=True).trials
    assert trials["trial_id"].tolist() == [first, second]
    assert trials["actors"].tolist() == [2, 4]
    assert trials["actors"].dtype == pd.Int64Dtype()
    assert trials["power_w"].isna().tolist() == [True, False]


def test_damaged_and_foreign_files_are_named_and_skipped(folder):
    # Case D2.
    for name in ("a", "cut", "whole"):
        write_trial(folder, name)
    cut = folder / "trials" / "cut.parquet"
    cut.write_bytes(cut.read_bytes()[:-20])
    (folder / "trials" / "empty.parquet").touch()
    (folder / "trials" / "notes.txt").write_text("hello")
    results = store.load(folder)
    assert sorted(results.trials["trial_id"]) == ["a", "whole"]
    assert sorted(flaw.path.name for flaw in results.flaws) == ["cut.parquet", "empty.parquet", "notes.txt"]
    with pytest.raises(store.StoreError, match=r"cut\.parquet.*empty\.parquet"):
        store.load(folder, strict=True)
    assert store.finished_trials(folder).keys() == {"a", "whole"}


@pytest.mark.parametrize(
    ("columns", "why"),
    [
        ({"city": ["Rome"], "people": [3]}, "not a file of trials/: it has unknown columns city, people"),
        ({"trial_id": ["x"], "window": [0], "start_s": [0.0]}, "it has unknown columns window, start_s"),
        ({"actors": [3]}, "not a file of trials/: it has other columns"),
        ({"trial_id": ["a"]}, "not the file of trial x: it holds a"),
        ({"trial_id": pa.nulls(1, pa.string())}, "not the file of trial x: it holds None"),
        ({"trial_id": ["x", "x"]}, "it has 2 rows, a trial has one"),
        ({"trial_id": pa.nulls(0, pa.string())}, "it has 0 rows, a trial has one"),
        ({"trial_id": ["x"], "actors": [{"a": 1}]}, "cannot be read: "),
        ({"trial_id": ["x"], "actors": ["many"]}, "cannot be read: "),
    ],
)
def test_a_parquet_file_that_is_no_trial_is_named_and_skipped(folder, columns, why):
    write_trial(folder, "a")
    pq.write_table(pa.table(columns), folder / "trials" / "x.parquet")
    results = store.load(folder)
    assert results.trials["trial_id"].tolist() == ["a"]
    assert [flaw.path.name for flaw in results.flaws] == ["x.parquet"]
    assert why in str(results.flaws[0])
    assert "\n" not in str(results.flaws[0])
    assert store.finished_trials(folder).keys() == {"a"}
    with pytest.raises(store.StoreError, match=r"x\.parquet"):
        store.load(folder, strict=True)


def test_a_column_that_stands_there_twice_and_a_folder_with_a_file_s_name_are_flaws(folder):
    twice = pa.Table.from_arrays([pa.array(["x"]), pa.array(["x"])], names=["trial_id", "trial_id"])
    pq.write_table(twice, folder / "trials" / "x.parquet")
    (folder / "trials" / "y.parquet").mkdir()
    assert [flaw.path.name for flaw in store.load(folder).flaws] == ["x.parquet", "y.parquet"]


@pytest.mark.parametrize("name", ["nowhere", "a" * 5000])
def test_a_folder_that_cannot_be_looked_at_is_said_so(tmp_path, name):
    with pytest.raises(store.StoreError, match=f"{name}: "):
        store.load(tmp_path / name)


def test_a_folder_without_a_sweep_is_said_so(tmp_path):
    with pytest.raises(store.StoreError, match="no trials/ folder here"):
        store.load(tmp_path)


def test_a_column_that_the_schema_lacks_is_refused(folder):
    with pytest.raises(KeyError, match="sampels"):
        write_trial(folder, "a", sampels=1)


def test_every_column_has_a_unit_or_needs_none():
    floats = [name for name in schema.TRIALS.names if schema.TRIALS.field(name).type == pa.float64()]
    units = ("_s", "_w", "_j", "_hz", "_c", "_bytes", "_per_s", "_per_joule", "_per_joule_pm", "_per_sample")
    dimensionless = {
        "sm_share",
        "observed_sm_share",
        "device_busy_share",
        "policy_lag_mean",
        "policy_lag_max",
    }
    dimensionless |= {name for name in floats if name.startswith("share_")}
    dimensionless |= {"observed_inference_batch_mean", "episode_return_mean", "samples_per_s_half_width"}
    dimensionless |= {
        "cpu_utilisation_mean",
        "cpu_steal_mean",
        "gpu_utilisation_mean",
        "others_cpu_share",
        "replay_ratio",
    }
    assert [name for name in floats if not name.endswith(units) and name not in dimensionless] == []


def test_a_file_appears_whole_or_not_at_all(tmp_path):
    # A writer that replaces a file over and over is killed; whoever reads then sees one version, whole.
    code = (
        "import sys; from pathlib import Path; from cgratio.results.store import write_whole\n"
        "n = 0\nwhile True:\n    n += 1\n    write_whole(Path(sys.argv[1]), bytes([n % 256]) * 3_000_000)"
    )
    path = tmp_path / "file"
    for _ in range(3):
        writer = subprocess.Popen([sys.executable, "-c", code, str(path)])
        deadline = time.monotonic() + 20
        while not path.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.13)
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        data = path.read_bytes()
        assert len(data) == 3_000_000
        assert len(set(data)) == 1


def test_a_write_that_fails_leaves_the_old_file_and_no_other(tmp_path, monkeypatch):
    path = tmp_path / "file"
    store.write_whole(path, b"old")

    def full(_descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        store.write_whole(path, b"new")
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_json_is_strict(tmp_path):
    with pytest.raises(ValueError, match="not JSON compliant"):
        store.write_json(tmp_path / "x.json", {"x": float("nan")})
    store.write_json(tmp_path / "x.json", {"name": "訓練 $5"})
    assert json.loads((tmp_path / "x.json").read_text(encoding="utf-8")) == {"name": "訓練 $5"}


@given(cut=st.integers(0, 200))
def test_a_journal_line_cut_short_spoils_only_itself(tmp_path_factory, cut):
    folder = tmp_path_factory.mktemp("journal")
    for number in range(3):
        store.append_journal(folder, {"state": "complete", "trial_id": str(number)})
    path = folder / store.JOURNAL
    data = path.read_bytes()
    path.write_bytes(data[: max(0, len(data) - cut)])
    left = store.read_journal(folder)
    store.append_journal(folder, {"state": "complete", "trial_id": "after"})
    assert store.read_journal(folder) == [*left, {"state": "complete", "trial_id": "after"}]


def test_the_row_of_one_trial(folder):
    write_trial(folder, "a", actors=3)
    assert store.read_trial(folder, "a")["actors"] == 3
    assert store.read_trial(folder, "b") is None


@pytest.mark.parametrize("text", ["[1]", "5", "{", "", "[" * 100_000])
def test_a_manifest_that_is_none_is_a_flaw(folder, text):
    (folder / store.MANIFEST).write_text(text)
    assert store.load(folder).flaws[0].path.name == store.MANIFEST


def test_a_journal_line_that_is_no_entry_is_left_out(folder):
    entry = {"state": "running", "trial_id": "a"}
    deep = "[" * 100_000
    (folder / store.JOURNAL).write_text(f'5\n{{"state": "running"}}\nnull\n{deep}\n{json.dumps(entry)}\n')
    assert store.read_journal(folder) == [entry]
