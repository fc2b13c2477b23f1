"""Findings in words: one sentence, every number with its unit."""

from __future__ import annotations

from typing import Any

from cgratio.analysis.facts import Optimum, Origin, Point, Quantity


def number(value: float, *, digits: int = 3) -> str:
    """A number with significant digits and without exponents where a person would not use one."""
    if value == 0.0:
        return "0"
    rounded = float(f"{value:.{digits}g}")
    if 1e-4 <= abs(rounded) < 1e7:
        places = max(0, digits - 1 - _magnitude(rounded))
        return f"{rounded:.{places}f}"
    return f"{rounded:.{digits - 1}e}"


def _magnitude(value: float) -> int:
    return int(f"{value:e}".rpartition("e")[2])


def interval(quantity: Quantity) -> str:
    """`0.75 [0.70, 0.81]`, with what is missing said; the unit is left to the caller."""
    if quantity.value is None:
        return f"unknown ({quantity.reason})"
    text = number(quantity.value)
    if quantity.low is None and quantity.high is None:
        return f"{text} (no interval: {quantity.reason})"
    low = "no lower end" if quantity.low is None else number(quantity.low)
    high = "no upper end" if quantity.high is None else number(quantity.high)
    return f"{text} [{low}, {high}]"


def workload_name(key: dict[str, Any]) -> str:
    """`Pong-v5 with nature_cnn`, as far as it is known."""
    environment, network = key.get("environment"), key.get("network")
    if environment is None:
        return "The workload"
    return f"{environment} with {network}" if network else str(environment)


def answer(
    *,
    key: dict[str, Any],
    rate: Optimum,
    energy: Optimum,
    best: Point | None,
    accelerator: str,
    others: tuple[Optimum, ...],
) -> str:
    """The finding in one sentence.

    Args:
        key: the workload's axis values.
        rate: its optimum for samples/s.
        energy: its optimum for samples/J.
        best: the whole point of most samples/J; None where there are no joules.
        accelerator: what one accelerator is.
        others: optima for samples/s of the sweep's other workloads.
    """
    threads = rate.threads_per_accelerator
    if threads.value is None:
        text = f"{workload_name(key)}: the CPU/GPU ratio is {_lower(threads.reason or 'unknown')}"
    else:
        where = " (extrapolated: outside the tested range)" if threads.origin is Origin.EXTRAPOLATED else ""
        text = (
            f"{workload_name(key)} wants {interval(threads)} hardware threads per {accelerator} here{where};"
            " with fewer the environments limit it, with more the accelerator does"
        )
        if rate.doubts:
            text += " (but the trials do not all agree with this: see the notes)"
    joules = energy.threads_per_accelerator
    if best is not None:
        text += (
            f"; at best it makes {interval(best.samples_per_joule)} samples/J ({best.boundary}) "
            f"with {best.axes.get('actors')} actors"
        )
    if joules.value is None:
        what = "the best ratio for samples per joule" if best else "for samples per joule"
        text += f"; {what}: unknown ({joules.reason})"
    else:
        origin = " (modelled energy)" if joules.origin is Origin.MODELLED else ""
        if energy.doubts and not rate.doubts:
            origin += " (in doubt: see the notes)"
        text += (
            f"; for samples per joule it wants {interval(joules)} hardware threads per {accelerator}{origin}"
        )
    if others:
        text += "; other workloads: " + ", ".join(_other(optimum) for optimum in others)
    return text + "."


def _other(optimum: Optimum) -> str:
    name = " ".join(f"{axis}={value}" for axis, value in optimum.group.items())
    threads = optimum.threads_per_accelerator
    if threads.value is None:
        return f"{name}: not identifiable"
    return f"{name}: {interval(threads)} {threads.unit}{' (in doubt)' if optimum.doubts else ''}"


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]
