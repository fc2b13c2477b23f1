"""`cgratio sweep`: run a sweep into a results folder."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from cgratio.sweep.plan import Plan

BAD_INPUT = 2
INVALID = 4


def sweep(
    spec: Annotated[Path, typer.Argument(help="The sweep's specification, a YAML file.")],
    out: Annotated[
        Path | None, typer.Option("--out", help="Results folder; results/<file name> if not given.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan and run nothing.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Run what is missing in the folder.")] = False,
    allow_drift: Annotated[
        bool, typer.Option("--allow-drift", help="Resume on another host or with other versions.")
    ] = False,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="Replace a setting, such as trainer.discount=0.98. Repeatable."),
    ] = None,
) -> None:
    """Measure every point of a specification.

    Exits 4 when no trial of the folder is valid.
    """
    from cgratio.cli.progress import SweepProgress
    from cgratio.sweep.document import SpecError, located
    from cgratio.sweep.folder import FolderError
    from cgratio.sweep.host import read_sweep_host
    from cgratio.sweep.plan import make_plan
    from cgratio.sweep.runner import run_sweep
    from cgratio.sweep.spec import load_spec

    folder = out or Path("results") / spec.stem
    try:
        asked = load_spec(spec, overrides=tuple(settings or ()))
        try:
            pairs = {
                pair for grid in asked.axes for pair in itertools.product(grid.environment, grid.network)
            }
            host = read_sweep_host(pairs=sorted(pairs))
            plan = make_plan(asked, host)
        except SpecError as error:
            raise located(spec, error) from error
        if dry_run:
            _print_plan(plan, folder)
            return
        with SweepProgress(folder) as progress:
            run_sweep(plan, folder, resume=resume, allow_drift=allow_drift, show=progress.show)
    except SystemExit:  # Ctrl-C or SIGTERM, see cli.main
        typer.echo(f"interrupted: finished trials are kept in {folder}; go on with --resume", err=True)
        raise
    except (SpecError, FolderError) as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(BAD_INPUT) from error
    except OSError as error:
        typer.echo(f"error: {folder}: {error.strerror or error}; finished trials are kept", err=True)
        raise typer.Exit(BAD_INPUT) from error
    if not progress.finish():
        raise typer.Exit(INVALID)


def _print_plan(plan: Plan, folder: Path) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console(highlight=False)
    axes = list(plan.points[0])
    varying = plan.varying
    fixed = [name for name in axes if name not in varying]
    table = Table(title=escape(f"{plan.spec.name}: {len(plan.points)} points"), title_justify="left")
    for name in varying or axes[:1]:
        table.add_column(name.replace("_", " "), overflow="fold")
    for point in plan.points:
        table.add_row(
            *("-" if point[name] is None else escape(str(point[name])) for name in varying or axes[:1])
        )
    console.print(table)
    same = ", ".join(f"{name} {plan.points[0][name]}" for name in fixed)
    console.print(f"the same in all: {escape(same)}")
    for note in plan.notes:
        console.print(f"note: {escape(note)}")
    console.print(
        f"{len(plan.points)} points x {plan.spec.replicates} replicates = {len(plan.trials)} trials, "
        f"about {plan.most_s / 60:.1f} min if none stops early, into {escape(str(folder))}; nothing was run"
    )
