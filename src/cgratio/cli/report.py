"""`cgratio report`: the findings of a results folder as a PDF."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer


def report(
    folder: Annotated[Path, typer.Argument(help="Results folder that `cgratio sweep` wrote.")],
    out: Annotated[
        Path | None, typer.Option("--out", help="PDF file to write.", show_default="FOLDER/report.pdf")
    ] = None,
) -> None:
    """Write the findings of a results folder as a PDF.

    The same results give the same bytes. When every trial failed the report is made all the same, and says
    so.

    Exits with 0, or with 2 when the folder cannot be read or the file cannot be written.
    """
    # Drawing takes a second to import, and no other command needs it.
    from cgratio.analysis.analyse import analyse
    from cgratio.report.document import write_report
    from cgratio.results import store

    target = folder / "report.pdf" if out is None else out
    if target.suffix.lower() != ".pdf":
        _refuse(f"{target}: --out must end in .pdf")
    if target.is_dir():
        _refuse(f"{target}: is a folder; give the name of a file")
    try:
        results = store.load(folder)
    except store.StoreError as error:
        _refuse(str(error))
    if results.trials.empty:
        why = (
            f"; {len(results.flaws)} files were skipped, the first: {results.flaws[0]}"
            if results.flaws
            else ""
        )
        _refuse(f"{folder}: no trial is stored here yet{why}")
    try:
        analysis = analyse(results)
        write_report(results, analysis, target)
    except OSError as error:
        _refuse(f"{target}: cannot be written: {error.strerror or error}")
    _say(f"Report: {target}", to_stderr=False)
    _say(f"Answer: {analysis.answer}", to_stderr=False)


def _refuse(message: str) -> NoReturn:
    _say(f"error: {message}", to_stderr=True)
    raise typer.Exit(2)


def _say(text: str, *, to_stderr: bool) -> None:
    """Prints one line, whatever characters the terminal can show."""
    stream = sys.stderr if to_stderr else sys.stdout
    encoding = stream.encoding or "utf-8"
    line = " ".join(text.split("\n"))
    typer.echo(line.encode(encoding, "backslashreplace").decode(encoding), err=to_stderr)
