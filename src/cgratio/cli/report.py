"""`cgratio report`: the findings of a results folder as a PDF."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cgratio.cli.output import complain, refuse, say


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
        refuse(f"{target}: --out must end in .pdf")
    try:
        if target.is_dir():
            refuse(f"{target}: is a folder; give the name of a file")
        if out is not None and not target.parent.is_dir():
            refuse(f"{target}: there is no folder {target.parent}; make it first, or give another --out")
        results = store.load(folder)
        if results.trials.empty:
            why = f"; {len(results.flaws)} files were skipped, the first: {results.flaws[0]}"
            refuse(f"{folder}: no trial is stored here yet{why if results.flaws else ''}")
        for flaw in results.flaws:
            complain(str(flaw), what="warning")
        analysis = analyse(results)
        write_report(results, analysis, target)
    except store.StoreError as error:
        refuse(str(error))
    except OSError as error:
        refuse(f"{target}: cannot be written: {error.strerror or error}")
    say(f"Report: {target}")
    say(f"Answer: {analysis.answer}")
