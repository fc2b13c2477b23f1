"""The folder of one sweep's results: written whole or not at all, read with every flaw named."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from cgratio.results import schema

if TYPE_CHECKING:
    import pandas as pd  # slow to import, and whoever only writes does not need it

MANIFEST = "manifest.json"
JOURNAL = "journal.jsonl"
SPEC = "sweep.yaml"
ANALYSIS = "analysis.json"


class StoreError(ValueError):
    """A results folder that cannot be read as one; the message names the file and what is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flaw:
    """A file that was skipped, and why."""

    path: Path
    reason: str

    def __str__(self) -> str:
        """One line: file, what is wrong."""
        return f"{self.path}: {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """What a folder holds.

    Attributes:
        folder: where it was read from.
        trials: one row per trial, columns of `schema.TRIALS`, pandas nullable types.
        windows: columns of `schema.WINDOWS`.
        manifest: host, software and sensors, as the sweep stored them.
        flaws: files that were skipped.
    """

    folder: Path
    trials: pd.DataFrame
    windows: pd.DataFrame
    manifest: dict[str, Any]
    flaws: tuple[Flaw, ...] = field(default=())


def write_whole(path: Path, data: bytes) -> None:
    """Writes a file so that it appears whole or not at all, whenever the program or the machine stops.

    Raises:
        OSError: the disk is full, read-only, or the folder is missing; the old file is then untouched.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{uuid4().hex}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)  # the rename itself must survive a power cut
    finally:
        os.close(folder)


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Writes strict JSON (no NaN, no Infinity) whole or not at all."""
    text = json.dumps(value, indent=2, allow_nan=False, ensure_ascii=False)
    write_whole(path, (text + "\n").encode())


def write_rows(path: Path, table_schema: pa.Schema, rows: Iterable[Mapping[str, Any]]) -> None:
    """Writes rows as one Parquet file of the given schema, whole or not at all."""
    sink = pa.BufferOutputStream()
    pq.write_table(schema.table(table_schema, rows), sink, compression="zstd")
    write_whole(path, sink.getvalue().to_pybytes())


def start_journal(folder: Path, entries: Iterable[Mapping[str, Any]]) -> None:
    """Begins the journal with these entries, in place of one that was there."""
    write_whole(folder / JOURNAL, _lines(entries))


def append_journal(folder: Path, *entries: Mapping[str, Any]) -> None:
    """Appends a line for each entry to the journal and makes them durable before it returns."""
    path = folder / JOURNAL
    torn = path.exists() and path.stat().st_size > 0 and not _ends_with_newline(path)
    with path.open("ab") as file:
        # A line that a crash cut short is closed first, so that it spoils only itself.
        file.write((b"\n" if torn else b"") + _lines(entries))
        file.flush()
        os.fsync(file.fileno())


def _lines(entries: Iterable[Mapping[str, Any]]) -> bytes:
    lines = (json.dumps(entry, allow_nan=False, ensure_ascii=False) + "\n" for entry in entries)
    return "".join(lines).encode()


def _ends_with_newline(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"


def read_journal(folder: Path) -> list[dict[str, Any]]:
    """Reads the journal's entries in order; a line that is none, or was cut short by a crash, is left out."""
    path = folder / JOURNAL
    lines = path.read_bytes().splitlines() if path.exists() else []
    entries = (_parsed(line) for line in lines)
    return [entry for entry in entries if isinstance(entry, dict) and {"state", "trial_id"} <= entry.keys()]


def _parsed(text: bytes) -> Any:
    """What a JSON text says; None if it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def load(folder: Path, *, strict: bool = False) -> Results:
    """Reads a results folder.

    Args:
        folder: a sweep's results folder.
        strict: a file that cannot be read is an error, not a flaw.

    Raises:
        StoreError: the folder does not exist, holds no trial folder, or (strict) has a flaw.
    """
    flaws: list[Flaw] = []
    try:
        if not (folder / "trials").is_dir():
            raise StoreError(f"{folder}: no trials/ folder here; give the folder that `cgratio sweep` wrote")
        trials = _load_table(folder / "trials", schema.TRIALS, flaws)
        windows = _load_table(folder / "windows", schema.WINDOWS, flaws)
    except OSError as error:
        raise StoreError(f"{folder}: cannot be read: {error.strerror}") from error
    manifest = read_manifest(folder)
    if not manifest:
        flaws.append(Flaw(path=folder / MANIFEST, reason="is missing or cannot be read"))
    if strict and flaws:
        raise StoreError("; ".join(str(flaw) for flaw in flaws))
    order = trials.sort_values(["order", "trial_id"], ignore_index=True)
    return Results(folder=folder, trials=order, windows=windows, manifest=manifest, flaws=tuple(flaws))


def finished_trials(folder: Path) -> dict[str, dict[str, Any]]:
    """The row of every trial that is stored and readable, by trial id."""
    paths = sorted((folder / "trials").glob("*.parquet"))
    rows = {path.stem: read_trial(folder, path.stem) for path in paths}
    return {trial_id: row for trial_id, row in rows.items() if row}


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest; empty when there is none that can be read."""
    try:
        manifest = _parsed((folder / MANIFEST).read_bytes())
    except OSError:
        return {}
    return manifest if isinstance(manifest, dict) else {}


def read_trial(folder: Path, trial_id: str) -> dict[str, Any] | None:
    """The stored row of one trial; None when it has none that can be read."""
    try:
        rows = _read(folder / "trials" / f"{trial_id}.parquet", schema.TRIALS).to_pylist()
    except _UNREADABLE:
        return None
    return dict(rows[0]) if rows else None


_UNREADABLE = (OSError, pa.ArrowException, StoreError)


def _load_table(folder: Path, table_schema: pa.Schema, flaws: list[Flaw]) -> pd.DataFrame:
    tables = [table_schema.empty_table()]
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if path.name.startswith("."):
            continue  # a temporary file of a writer at work
        if path.suffix != ".parquet":
            flaws.append(Flaw(path=path, reason="not a Parquet file"))
            continue
        try:
            tables.append(_read(path, table_schema))
        except StoreError as error:
            flaws.append(Flaw(path=path, reason=str(error)))
        except (OSError, pa.ArrowException) as error:
            flaws.append(Flaw(path=path, reason=f"cannot be read: {(str(error).splitlines() or ['?'])[0]}"))
    return _to_pandas(pa.concat_tables(tables))


def _read(path: Path, table_schema: pa.Schema) -> pa.Table:
    """Reads one file and casts it to the schema, whatever types its writer inferred.

    Raises:
        OSError, pa.ArrowException: it cannot be read.
        StoreError: it is whole, but not a file of this table.
    """
    stored = pq.ParquetFile(path).read()
    _check_own(path, stored, table_schema)
    columns = []
    for column in table_schema:
        if column.name in stored.column_names:
            columns.append(stored.column(column.name).cast(column.type))
        else:
            columns.append(pa.nulls(stored.num_rows, column.type))
    return pa.Table.from_arrays(columns, schema=table_schema)


def _check_own(path: Path, stored: pa.Table, table_schema: pa.Schema) -> None:
    """Refuses a file that was not written for this table under this name, so that none counts as a trial."""
    names = stored.column_names
    strange = [name for name in names if name not in table_schema.names]
    if strange or len(set(names)) < len(names) or "trial_id" not in names:
        what = f"unknown columns {', '.join(strange[:3])}" if strange else "other columns"
        raise StoreError(f"not a file of {path.parent.name}/: it has {what}")
    owners = set(stored.column("trial_id").to_pylist())
    if owners - {path.stem}:
        raise StoreError(f"not the file of trial {path.stem}: it holds {', '.join(map(str, owners))}")
    if table_schema is schema.TRIALS and stored.num_rows != 1:
        raise StoreError(f"not a file of {path.parent.name}/: it has {stored.num_rows} rows, a trial has one")


def _to_pandas(stored: pa.Table) -> pd.DataFrame:
    import pandas as pd

    # Nullable types: an unknown count stays <NA> and does not turn the column into floats.
    types: dict[pa.DataType, Any] = {
        pa.int64(): pd.Int64Dtype(),
        pa.float64(): pd.Float64Dtype(),
        pa.bool_(): pd.BooleanDtype(),
        pa.string(): pd.StringDtype(),
    }
    frame: pd.DataFrame = stored.to_pandas(types_mapper=types.get)
    return frame
