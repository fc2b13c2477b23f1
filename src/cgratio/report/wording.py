"""Numbers and axis values in words, the same on every page."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from cgratio.analysis.facts import Origin, Point, Quantity

NOT_RECORDED = "not recorded"

AXIS_NAMES = {
    "part": "part",
    "environment": "environment",
    "network": "network",
    "device": "device",
    "actors": "actors",
    "actor_cpus": "actor CPUs",
    "device_cpus": "device CPUs",
    "pinning": "pinning",
    "gpus": "GPUs",
    "sm_share": "accelerator share",
    "inference_batch": "inference batch",
    "unroll_length": "unroll length",
    "learner_batch": "learner batch",
    "precision": "precision",
}


def number(value: float) -> str:
    """A number with three or more significant digits, thousands grouped: `12,345`, `1.37`, `0.0125`."""
    if value == 0:
        return "0"
    size = abs(value)
    if size >= 1e9 or size < 1e-4:
        return f"{value:.3g}"
    decimals = max(0, 2 - math.floor(math.log10(size)))
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def tick(value: float, _position: int | None = None) -> str:
    """A tick label; `_position` is what matplotlib also passes."""
    return number(round(value, 10)).replace("-", "−")


def percent(share: float) -> str:
    """A share in per cent, with one decimal below 10 % where it has one."""
    rounded = f"{100 * share:.1f}" if abs(share) < 0.0995 else f"{100 * share:.0f}"
    return f"{rounded.removesuffix('.0')} %".replace("-", "−")


def amount(quantity: Quantity, *, unit: bool = True) -> str:
    """The value with its unit, or `unknown`."""
    if quantity.value is None:
        return "unknown"
    return f"{number(quantity.value)} {quantity.unit}" if unit else number(quantity.value)


def interval(quantity: Quantity) -> str:
    """The interval, or an empty text when there is none."""
    if quantity.low is None or quantity.high is None:
        return ""
    return f"{number(quantity.low)} to {number(quantity.high)}"


def detail(quantity: Quantity) -> str:
    """What stands below an amount: its interval and origin, or why they are missing."""
    if quantity.value is None:
        return quantity.reason or "no reason was recorded"
    bounds = interval(quantity)
    first = f"95 % interval {bounds}" if bounds else f"no interval: {quantity.reason}"
    return f"{first} · {quantity.origin.value}"


def cell(quantity: Quantity) -> str:
    """An amount with its interval for a table cell: `1,234 (1,200 to 1,260)`."""
    if quantity.value is None:
        return "–"
    bounds = interval(quantity)
    mark = f" {quantity.origin.value}" if quantity.origin in {Origin.EXTRAPOLATED, Origin.MODELLED} else ""
    return f"{number(quantity.value)} ({bounds}){mark}" if bounds else f"{number(quantity.value)}{mark}"


def ranges(counts: Iterable[int]) -> str:
    """Ascending whole numbers, runs of three or more joined: `2, 3, 8–12`."""
    runs: list[list[int]] = []
    for count in counts:
        if runs and count == runs[-1][-1] + 1:
            runs[-1].append(count)
        else:
            runs.append([count])
    return ", ".join(f"{run[0]}–{run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs)


def axis_name(axis: str) -> str:
    """The name of an axis as printed."""
    return AXIS_NAMES.get(axis, axis.replace("_", " "))


def axis_value(axis: str, value: Any) -> str:
    """One axis value as a clause: `16 actors`, `share 0.5`, `precision bf16`."""
    if value is None:
        return f"no {axis_name(axis)}"
    if axis in {"part", "environment", "network", "device"}:
        return str(value)
    if axis in {"actors", "actor_cpus", "device_cpus", "gpus"}:
        name = axis_name(axis)
        return f"{plain(value)} {name.removesuffix('s') if value == 1 else name}"
    if axis == "sm_share":
        return f"share {plain(value)}"
    return f"{axis_name(axis)} {plain(value)}"


def plain(value: Any) -> str:
    """Any stored value as text; unknown is a dash."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return number(value) if math.isfinite(value) else str(value)
    return str(value)


def axes_text(axes: Mapping[str, Any], names: Iterable[str]) -> str:
    """Some axis values in one clause."""
    return " · ".join(axis_value(name, axes.get(name)) for name in names if axes.get(name) is not None)


def point_name(point: Point, varying: Iterable[str]) -> str:
    """What tells a point from the others of its sweep."""
    return axes_text(point.axes, varying) or point.point_id


def counted(counts: Mapping[str, int]) -> str:
    """Reason codes with their counts: `too_short ×2, throttled`."""
    return ", ".join(f"{code} ×{count}" if count > 1 else code for code, count in counts.items())
