"""`cgratio analyze`: the CPU/GPU ratio in a sweep's results, with its interval."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cgratio.cli.output import INVALID, Listing, complain, refuse, say_json, show, tell

if TYPE_CHECKING:
    from cgratio.analysis.facts import Analysis, Curve, Optimum, Point, Quantity


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
        refuse(str(error))
    analysis = analyse(results)
    for flaw in analysis.flaws:
        complain(flaw, what="warning")
    try:
        store.write_json(folder / store.ANALYSIS, analysis.as_dict())
    except OSError as error:
        complain(f"{folder / store.ANALYSIS} was not saved: {error.strerror or error}", what="warning")
    if as_json:
        say_json(analysis.as_dict())
    else:
        _show(analysis)
    if analysis.valid == 0:
        raise typer.Exit(INVALID)


def _show(analysis: Analysis) -> None:
    tell(analysis.answer, style="bold")
    labels = f"; {', '.join(analysis.labels)}" if analysis.labels else ""
    tell(f"{analysis.sweep} on {analysis.host}: {analysis.valid} of {analysis.trials} trials valid{labels}")
    if analysis.points:
        _show_points(analysis.points)
    parameters = [curve for curve in analysis.curves if curve.parameters]
    if parameters:
        _show_parameters(parameters)
    for optimum in analysis.optima:
        _show_optimum(optimum)
    for rule in dict.fromkeys(optimum.counting_rule for optimum in analysis.optima):
        tell(f"counted: {rule}")
    for note in analysis.notes:
        tell(f"note: {note}")


def _show_points(points: tuple[Point, ...]) -> None:
    # An axis that only some parts have says nothing that `part` does not.
    axes = [
        name
        for name in points[0].axes
        if len({repr(point.axes[name]) for point in points if point.axes[name] is not None}) > 1
    ]
    if {"actors", "inference_batch"} <= set(axes) and _follows(points, "inference_batch", "actors"):
        axes.remove("inference_batch")
    energy = any(point.power.value is not None for point in points)
    # A model's watts are called so in the very header, where they cannot be read without it.
    label = " modelled" if any(point.power.origin == "modelled" for point in points) else ""
    units = ["samples/s", *((f"W{label}", f"samples/J{label}") if energy else ())]
    rows = []
    for point in points:
        numbers = [point.rate, *((point.power, point.samples_per_joule) if energy else ())]
        rows.append(
            [
                *("-" if point.axes[name] is None else str(point.axes[name]) for name in axes),
                *map(_plus_minus, numbers),
                f"{_percent(point.shares.get('env'))}/{_percent(point.shares.get('device_busy'))}",
                str(point.bottleneck),
                _verdict(point),
            ]
        )
    names = [name.replace("_", " ") for name in axes]
    headers = [*names, *units, "busy CPUs/ device", "limit", "valid"]
    show(Listing(title="Points", headers=headers, rows=rows))
    if not energy:
        ran = [point for point in points if point.valid] or points
        for reason in dict.fromkeys(point.power.reason for point in ran):
            tell(f"W and samples/J unknown: {reason}")


def _follows(points: tuple[Point, ...], axis: str, other: str) -> bool:
    """Whether an axis that varies does so only because another does."""
    pairs = {(point.axes[other], point.axes[axis]) for point in points}
    return len(pairs) == len({value for value, _ in pairs})


def _show_parameters(curves: list[Curve]) -> None:
    rows, reasons = [], _Reasons()
    for curve in curves:
        name = " ".join([curve.name, *(f"{axis}={value}" for axis, value in curve.group.items())])
        for parameter, quantity in curve.parameters.items():
            rows.append([name, parameter, reasons.cell(parameter, quantity), quantity.unit])
    show(Listing(title="Fitted", headers=["curve", "parameter", "value [95 %]", "unit"], rows=rows))
    reasons.tell()


def _show_optimum(optimum: Optimum) -> None:
    group = "".join(f", {axis}={value}" for axis, value in optimum.group.items())
    quantities = (optimum.threads_per_accelerator, optimum.cores_per_accelerator, optimum.threads_per_sm)
    title, reasons = f"Optimum for {optimum.goal}{group}", _Reasons()
    rows = [
        [quantity.unit, reasons.cell(quantity.unit, quantity), str(quantity.origin)]
        for quantity in quantities
    ]
    if optimum.near_optimal:
        best = f"within {optimum.tolerance:.0%} of the best"
        rows.append([best, _ranges(optimum.near_optimal), "whole threads"])
    if optimum.doubts:
        title = f"{title}, in doubt (see the notes)"
    headers = ["counted as", "value [95 %]", "origin"]
    if any(quantity.value is not None for quantity in quantities):
        show(Listing(title=title, headers=headers, rows=rows))
    else:
        tell(f"{title}:")
    reasons.tell()


class _Reasons:
    """Why numbers of a table are missing, said once below it and not in every cell."""

    def __init__(self) -> None:
        self._names: dict[str, list[str]] = {}

    def cell(self, name: str, quantity: Quantity) -> str:
        """The number and its interval, as far as they are known."""
        from cgratio.analysis.words import interval, number

        if None not in (quantity.value, quantity.low, quantity.high):
            return interval(quantity)
        if quantity.value is None:
            self._names.setdefault(f"unknown ({quantity.reason})", []).append(name)
            return "unknown"
        if quantity.low is None and quantity.high is None:
            self._names.setdefault(f"no interval ({quantity.reason})", []).append(name)
            return number(quantity.value)
        self._names.setdefault(f"an open end ({quantity.reason})", []).append(name)
        return interval(quantity)

    def tell(self) -> None:
        for reason, names in self._names.items():
            tell(f"{', '.join(dict.fromkeys(names))}: {reason}")


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.0%}"


def _verdict(point: Point) -> str:
    codes = [f"{count} {code}" for code, count in point.verdicts.items()]
    return ", ".join([f"{point.valid}/{point.trials}", *codes])


def _plus_minus(quantity: Quantity) -> str:
    """`1600±40`, or `1600 [1500, 1800]` where the halves differ by more than a tenth."""
    from cgratio.analysis.words import number

    if quantity.value is None:
        return "-"
    if quantity.low is None or quantity.high is None:
        return number(quantity.value, digits=4)
    half = quantity.half_width
    if half is None:
        ends = f"{number(quantity.low, digits=3)}, {number(quantity.high, digits=3)}"
        return f"{number(quantity.value, digits=4)} [{ends}]"
    return f"{number(quantity.value, digits=4)}{_sign()}{number(half, digits=2)}"


def _ranges(counts: tuple[int, ...]) -> str:
    """`4-8`, or the counts one by one where there are gaps."""
    if len(counts) > 2 and counts[-1] - counts[0] == len(counts) - 1:
        return f"{counts[0]}-{counts[-1]}"
    return ", ".join(map(str, counts))


def _sign() -> str:
    encoding = (sys.stdout.encoding or "ascii").lower()
    return "±" if encoding.startswith(("utf", "latin", "iso8859", "cp125")) else "+-"
