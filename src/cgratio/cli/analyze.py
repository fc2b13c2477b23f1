"""`cgratio analyze`: the CPU/GPU ratio in a sweep's results, with its interval."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:
    from cgratio.analysis.facts import Analysis, Curve, Optimum, Point, Quantity

BAD_INPUT = 2
NO_VALID_TRIAL = 4

WHOLE_WORDS = ("part", "samples/s", "W", "samples/J", "limit")
"""Columns that keep their words whole; the headers of the others give way first."""


def analyze(
    folder: Annotated[Path, typer.Argument(help="Results folder that `cgratio sweep` wrote.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="A damaged file is an error.")] = False,
) -> None:
    """Find the CPU/GPU ratio in a sweep's results.

    Saves analysis.json beside the data. Exits 4 when no trial is valid.
    """
    # Imported here so that `cgratio --help` does not wait for pandas and scipy.
    from cgratio.analysis.analyse import analyse
    from cgratio.results import store

    try:
        results = store.load(folder, strict=strict)
    except store.StoreError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(BAD_INPUT) from error
    analysis = analyse(results)
    for flaw in analysis.flaws:
        typer.echo(f"warning: {flaw}", err=True)
    try:
        store.write_json(folder / store.ANALYSIS, analysis.as_dict())
    except OSError as error:
        typer.echo(f"warning: {folder / store.ANALYSIS} was not saved: {error.strerror or error}", err=True)
    if as_json:
        # ASCII only, so that no terminal's encoding can break it.
        typer.echo(json.dumps(analysis.as_dict(), indent=2, allow_nan=False))
    else:
        _show(analysis)
    if analysis.valid == 0:
        raise typer.Exit(NO_VALID_TRIAL)


def _show(analysis: Analysis) -> None:
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A name that the terminal's encoding does not have must not end the report.
        sys.stdout.reconfigure(errors="backslashreplace")
    console = Console(highlight=False)
    console.print(f"[bold]{escape(analysis.answer)}[/bold]")
    labels = f"; {', '.join(analysis.labels)}" if analysis.labels else ""
    console.print(
        escape(
            f"{analysis.sweep} on {analysis.host}: {analysis.valid} of {analysis.trials} trials valid{labels}"
        )
    )
    if analysis.points:
        console.print(_points_table(analysis.points))
    parameters = [curve for curve in analysis.curves if curve.parameters]
    if parameters:
        console.print(_parameters_table(parameters))
    for optimum in analysis.optima:
        console.print(_optimum_table(optimum))
    for rule in dict.fromkeys(optimum.counting_rule for optimum in analysis.optima):
        console.print(f"counted: {escape(rule)}")
    for note in analysis.notes:
        console.print(f"note: {escape(note)}")


def _points_table(points: tuple[Point, ...]) -> Table:
    # An axis that only some parts have says nothing that `part` does not.
    axes = [
        name
        for name in points[0].axes
        if len({repr(point.axes[name]) for point in points if point.axes[name] is not None}) > 1
    ]
    if {"actors", "inference_batch"} <= set(axes) and _follows(points, "inference_batch", "actors"):
        axes.remove("inference_batch")
    energy = any(point.power.value is not None for point in points)
    headers = [name.replace("_", " ") for name in axes]
    # A model's watts are called so in the very header, where they cannot be read without it.
    label = " modelled" if any(point.power.origin == "modelled" for point in points) else ""
    units = ["samples/s", *((f"W{label}", f"samples/J{label}") if energy else ())]
    table = _table("Points", *headers, *units, "busy CPUs/ device", "limit", "valid")
    for point in points:
        numbers = [point.rate, *((point.power, point.samples_per_joule) if energy else ())]
        table.add_row(
            *("-" if point.axes[name] is None else escape(str(point.axes[name])) for name in axes),
            *(_plus_minus(quantity) for quantity in numbers),
            f"{_percent(point.shares.get('env'))}/{_percent(point.shares.get('device_busy'))}",
            str(point.bottleneck),
            escape(_verdict(point)),
        )
    if not energy:
        table.caption = escape(f"W and samples/J unknown: {points[0].power.reason}")
    return table


def _follows(points: tuple[Point, ...], axis: str, other: str) -> bool:
    """Whether an axis that varies does so only because another does."""
    pairs = {(point.axes[other], point.axes[axis]) for point in points}
    return len(pairs) == len({value for value, _ in pairs})


def _parameters_table(curves: list[Curve]) -> Table:
    table = _table("Fitted", "curve", "parameter", "value [95 %]", "unit")
    for curve in curves:
        name = " ".join([curve.name, *(f"{axis}={value}" for axis, value in curve.group.items())])
        for parameter, quantity in curve.parameters.items():
            table.add_row(escape(name), parameter, escape(_interval(quantity)), escape(quantity.unit))
    return table


def _optimum_table(optimum: Optimum) -> Table:
    group = "".join(f", {axis}={value}" for axis, value in optimum.group.items())
    table = _table(f"Optimum for {optimum.goal}{group}", "counted as", "value [95 %]", "origin")
    quantities = (optimum.threads_per_accelerator, optimum.cores_per_accelerator, optimum.threads_per_sm)
    for quantity in quantities:
        table.add_row(escape(quantity.unit), escape(_interval(quantity)), str(quantity.origin))
    if optimum.near_optimal:
        table.add_row(
            f"within {optimum.tolerance:.0%} of the best", _ranges(optimum.near_optimal), "whole threads"
        )
    return table


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.0%}"


def _verdict(point: Point) -> str:
    codes = [f"{count} {code}" for code, count in point.verdicts.items()]
    return ", ".join([f"{point.valid}/{point.trials}", *codes])


def _plus_minus(quantity: Quantity) -> str:
    """`1600±40`; the larger half where the interval is lopsided."""
    from cgratio.analysis.words import number

    if quantity.value is None:
        return "-"
    if quantity.low is None or quantity.high is None:
        return number(quantity.value, digits=4)
    half = max(quantity.high - quantity.value, quantity.value - quantity.low)
    return f"{number(quantity.value, digits=4)}{_sign()}{number(half, digits=2)}"


def _interval(quantity: Quantity) -> str:
    from cgratio.analysis.words import interval

    return interval(quantity)


def _ranges(counts: tuple[int, ...]) -> str:
    """`4-8`, or the counts one by one where there are gaps."""
    if len(counts) > 2 and counts[-1] - counts[0] == len(counts) - 1:
        return f"{counts[0]}-{counts[-1]}"
    return ", ".join(map(str, counts))


def _sign() -> str:
    encoding = (sys.stdout.encoding or "ascii").lower()
    return "±" if encoding.startswith(("utf", "latin", "iso8859", "cp125")) else "+-"


def _table(title: str, *columns: str) -> Table:
    table = Table(
        title=escape(title),
        title_justify="left",
        caption_justify="left",
        box=box.ASCII2 if _sign() == "+-" else box.SIMPLE_HEAD,
        padding=(0, 0),  # so that the points fit 80 columns
    )
    for column in columns:
        # Fold: the default ends a long cell in a character that ASCII does not have.
        whole = column in WHOLE_WORDS
        longest = max(map(len, column.split()), default=1)  # a header is broken between words only
        table.add_column(escape(column), overflow="fold", no_wrap=whole, min_width=longest)
    return table
