"""`cgratio sweep`: run a sweep into a results folder."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cgratio.cli.output import INVALID, Listing, complain, refuse, say, show, tell

if TYPE_CHECKING:
    from cgratio.sweep.grid import AxisValues
    from cgratio.sweep.plan import Plan


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
    from cgratio.results.store import StoreError
    from cgratio.sweep.document import SpecError
    from cgratio.sweep.folder import FolderError
    from cgratio.sweep.runner import run_sweep

    folder = out or Path("results") / spec.stem
    try:
        plan = _plan(spec, overrides=tuple(settings or ()))
    except SpecError as error:
        refuse(str(error))
    if dry_run:
        _show_plan(plan, folder)
        return
    try:
        with SweepProgress(folder) as progress:
            run_sweep(plan, folder, resume=resume, allow_drift=allow_drift, show=progress.show)
        valid = progress.finish()
    except SystemExit:  # Ctrl-C, SIGTERM, or nobody reads on: see cli.main
        complain(f"finished trials are kept in {folder}; go on with --resume", what="interrupted")
        raise
    except (FolderError, StoreError) as error:
        refuse(str(error))
    except OSError as error:
        refuse(f"{folder}: {error.strerror or error}; finished trials are kept")
    if not valid:
        raise typer.Exit(INVALID)


def _plan(spec: Path, *, overrides: tuple[str, ...]) -> Plan:
    from cgratio.sweep.document import SpecError
    from cgratio.sweep.host import read_sweep_host
    from cgratio.sweep.plan import make_plan
    from cgratio.sweep.reading import load_spec, located

    asked = load_spec(spec, overrides=overrides)
    say("looking at this host, the environments and the networks")  # loading torch and envpool takes seconds
    pairs = {pair for grid in asked.axes for pair in itertools.product(grid.environment, grid.network)}
    try:
        return make_plan(asked, read_sweep_host(pairs=sorted(pairs)))
    except SpecError as error:
        raise located(spec, error, overrides=overrides) from error


def _show_plan(plan: Plan, folder: Path) -> None:
    shown = plan.varying or tuple(plan.points[0])[:1]
    rows = [["-" if point[name] is None else str(point[name]) for name in shown] for point in plan.points]
    headers = [name.replace("_", " ") for name in shown]
    show(Listing(title=f"{plan.spec.name}: {len(plan.points)} points", headers=headers, rows=rows))
    tell(f"the same in all: {_named(plan.fixed)}")
    if plan.sentinel:
        point = _named({name: plan.sentinel[name] for name in plan.varying})
        tell(f"sentinel: {point}; measured once more in each block, to see the host drift")
    for note in plan.notes:
        tell(f"note: {note}")
    sentinels = f" + {plan.sentinels} sentinels" if plan.sentinels else ""
    tell(
        f"{len(plan.points)} points x {plan.spec.replicates} replicates{sentinels} = "
        f"{len(plan.trials)} trials, about {plan.most_s / 60:.1f} min if none stops early, into {folder}; "
        "nothing was run"
    )


def _named(axes: AxisValues) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in axes.items() if value is not None)
