"""Numbers and axis values in words, the same on every page."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from cgratio.analysis.facts import Optimum, Origin, Point, Quantity

NOT_RECORDED = "not recorded"

AXIS_NAMES = {
    "part": "part",
    "environment": "environment",
    "algorithm": "algorithm",
    "network": "network",
    "lstm": "LSTM",
    "inference": "inference",
    "device": "device",
    "actors": "actors",
    "actor_groups": "actor groups",
    "actor_cpus": "actor CPUs",
    "device_cpus": "device CPUs",
    "pinning": "pinning",
    "gpus": "GPUs",
    "sm_share": "accelerator share",
    "inference_batch": "inference batch",
    "unroll_length": "unroll length",
    "learner_batch": "learner batch",
    "replay_ratio": "replay ratio",
    "precision": "precision",
}


def rounded(value: float) -> str:
    """A result with three significant digits, thousands grouped: `12,345`, `1.40`, `0.0125`."""
    if value == 0:
        return "0"
    if not 1e-4 <= abs(value) < 1e9:
        return f"{value:.3g}"
    return f"{value:,.{_decimals(value, digits=3)}f}"


def number(value: float) -> str:
    """A number without the zeros that end it: what was asked for or counted, `0.5`, `12,345`."""
    text = rounded(value)
    return text.rstrip("0").rstrip(".") if "." in text and "e" not in text else text


def _decimals(value: float, *, digits: int) -> int:
    """Decimals that a number other than 0 needs for so many significant digits, after rounding to them."""
    exponent = int(f"{value:.{digits - 1}e}".rpartition("e")[2])
    return max(0, digits - 1 - exponent)


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
    return f"{rounded(quantity.value)} {quantity.unit}" if unit else rounded(quantity.value)


def interval(quantity: Quantity) -> str:
    """The 95 % interval, `[0.570, 1.07]`, with an end that is missing named; empty when both are."""
    if quantity.low is None and quantity.high is None:
        return ""
    low = "no lower end" if quantity.low is None else rounded(quantity.low)
    high = "no upper end" if quantity.high is None else rounded(quantity.high)
    return f"[{low}, {high}]"


def detail(quantity: Quantity) -> str:
    """What stands below an amount: its interval and origin, or why they are missing."""
    if quantity.value is None:
        return quantity.reason or "no reason was recorded"
    bounds = interval(quantity)
    first = f"95 % interval {bounds}" if bounds else f"no interval: {quantity.reason}"
    return f"{first} · {quantity.origin.value}"


def tags(optimum: Optimum) -> list[str]:
    """What has to be said wherever the threads of an optimum are shown."""
    is_extrapolated = optimum.threads_per_accelerator.origin is Origin.EXTRAPOLATED
    held = {"extrapolated": is_extrapolated, "in doubt": bool(optimum.doubts)}
    return [tag for tag, holds in held.items() if holds]


def reasons(found: Iterable[str], *, most: int = 2) -> str:
    """Some reasons, each once; of many the first few."""
    every = list(dict.fromkeys(found))
    more = [f"and {count(len(every) - most, 'more reason')}"] if len(every) > most else []
    return "; ".join([*every[:most], *more])


def cell(quantity: Quantity) -> str:
    """An amount with its interval and, unless it was measured or fitted, its origin, for a table cell.

    `1,234 ± 26` where both halves of the interval agree within a tenth, else `1,234 [1,100, 1,400]`: one
    half-width would hide that the interval is lopsided.
    """
    if quantity.value is None:
        return "–"
    text = _plus_minus(quantity) or f"{rounded(quantity.value)} {interval(quantity)}".rstrip()
    is_plain = quantity.origin in {Origin.MEASURED, Origin.FITTED}
    return text if is_plain else f"{text} {quantity.origin.value}"


def _plus_minus(quantity: Quantity) -> str | None:
    """`26.20 ± 0.81`, the half-width with two digits; None where the halves differ or one is missing."""
    half = quantity.half_width
    if quantity.value is None or half is None or not 1e-9 < half < 1e9:
        return None
    decimals = _decimals(half, digits=2)
    return f"{quantity.value:,.{decimals}f} ± {half:,.{decimals}f}"


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
    if value is None or (axis == "lstm" and value == 0):
        return f"no {axis_name(axis)}"
    if axis in {"part", "environment", "algorithm", "network", "device", "host"}:
        return brief(str(value))
    if axis in {"actors", "actor_groups", "actor_cpus", "device_cpus", "gpus"}:
        name = axis_name(axis)
        return f"{plain(value)} {name.removesuffix('s') if value == 1 else name}"
    clauses = {"sm_share": "share {}", "inference": "{} inference", "lstm": "LSTM of {}"}
    return clauses.get(axis, f"{axis_name(axis)} {{}}").format(plain(value))


def brief(text: str, *, most: int = 20) -> str:
    """A long name cut in its middle: names of one kind differ at their ends."""
    if len(text) <= most:
        return text
    return f"{text[: most // 2 - 1]}…{text[-(most // 2) :]}"


def count(number_of: int, name: str) -> str:
    """`1 point`, `2 points`."""
    return f"{number_of:,} {name}" if number_of == 1 else f"{number_of:,} {name}s"


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
