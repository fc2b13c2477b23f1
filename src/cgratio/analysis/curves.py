"""Fitted curves with their bands, ready to plot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from cgratio.analysis.facts import Curve, Origin, Quantity
from cgratio.analysis.model import Fit, log_demand, log_rate, log_supply
from cgratio.analysis.ratio import Range, reference_amount
from cgratio.analysis.statistics import ONE_REPLICATE, t_quantile
from cgratio.analysis.trials import Trial
from cgratio.analysis.workloads import Workload
from cgratio.results.words import Part

Floats = npt.NDArray[np.float64]

POINTS = 61
"""Abscissae of a curve."""

VAGUE = 3.0
"""A parameter whose log (or value, for sigma and delta) is this uncertain is not shown with an interval."""

PAST = 1.5
"""A curve goes on this many times past what was measured, there extrapolated."""


def make_curves(
    fit: Fit, *, sides: Fit, workload: Workload, tested: Range | None, unit: str
) -> tuple[Curve, ...]:
    """Every curve that the fit's terms allow.

    Args:
        fit: the fit of all parts.
        sides: the fit that supply and demand are read from.
        workload: its trials, for the measured ranges and the values held fixed.
        tested: range of threads per accelerator that trials covered.
        unit: what one accelerator is ("GPU", "device CPU").
    """
    whole = workload.of(Part.WHOLE)
    curves = []
    if sides.layout.supply:
        threads = [t.threads for t in (*whole, *workload.of(Part.SUPPLY)) if t.threads]
        curves.append(_supply(sides, threads=threads, group=workload.varying))
    if sides.layout.demand:
        amounts = [t.amount for t in (*whole, *workload.of(Part.DEMAND)) if t.amount]
        curves.append(_demand(sides, amounts=amounts or [1.0], unit=unit, group=workload.varying))
    if whole:
        reference = reference_amount(workload)
        curves.extend(
            _whole_curves(
                fit, whole=whole, tested=tested, reference=reference, unit=unit, group=workload.varying
            )
        )
    return tuple(curves)


def main_place(whole: tuple[Trial, ...]) -> tuple[float, float]:
    """The (threads, amount) at which most whole points were measured; of equals, the largest."""
    places: dict[tuple[float, float], set[str]] = {}
    for trial in whole:
        places.setdefault((trial.threads or 1.0, trial.amount or 1.0), set()).add(trial.point_id)
    return max(places, key=lambda place: (len(places[place]), place))


def _supply(fit: Fit, *, threads: list[float], group: dict[str, Any]) -> Curve:
    curve = _curve(
        fit,
        name="supply",
        x_name="actor threads",
        x_unit="threads",
        measured=threads,
        function=log_supply,
        group=group,
        before=20.0,  # far below one thread, where a fast accelerator's demand may already be met
        parameters={
            "S1": _parameter(fit, 0, unit="samples/s", log=True, fixed="absent"),
            "sigma": _parameter(fit, 1, unit="1", log=False, fixed="one thread count only: taken as 0"),
        },
    )
    # No threads supply nothing: this end of the range is known without a trial.
    return replace(curve, measured_low=curve.x[0])


def _demand(fit: Fit, *, amounts: list[float], unit: str, group: dict[str, Any]) -> Curve:
    return _curve(
        fit,
        name="demand",
        x_name="accelerator",
        x_unit=f"{unit}s",
        measured=amounts,
        function=log_demand,
        group=group,
        parameters={
            "D1": _parameter(fit, 2, unit="samples/s", log=True, fixed="absent"),
            "delta": _parameter(fit, 3, unit="1", log=False, fixed="one amount only: taken as 0"),
        },
    )


def _whole_curves(
    fit: Fit,
    *,
    whole: tuple[Trial, ...],
    tested: Range | None,
    reference: float,
    unit: str,
    group: dict[str, Any],
) -> list[Curve]:
    threads, amount = main_place(whole)
    actors = [trial.actors or trial.threads or 1.0 for trial in whole]
    most = max(actors)
    here = [t for t in whole if (t.threads or 1.0, t.amount or 1.0) == (threads, amount)]
    # What an accelerator is made of; an emulated one is one, and its device CPUs only drive it.
    emulated = here[0].axes["device"] == "emulated"
    made_of = () if emulated else ("gpus", "device_cpus")
    units = next((name for name in made_of if here[0].axes[name]), None)
    fixed = {name: here[0].axes[name] for name in ("actor_cpus", units) if name}
    curves = [
        _curve(
            fit,
            name="rate_by_actors",
            x_name="actors",
            x_unit="actors",
            measured=[trial.actors or trial.threads or 1.0 for trial in here],
            function=lambda theta, x: log_rate(theta, threads=threads, amount=amount, actors=x),
            group=group,
            fixed={**fixed, "sm_share": here[0].axes["sm_share"]},
            parameters={
                "L": _parameter(fit, 4, unit="s", log=True, fixed="actors did not vary: taken as 0"),
                "p": _parameter(fit, 5, unit="1", log=True, fixed="not fitted"),
            },
        )
    ]
    if not fit.layout.demand:
        return curves
    same = [t for t in whole if t.threads == here[0].threads and (not units or t.axes[units] == fixed[units])]
    shares = sorted({trial.axes["sm_share"] or 1.0 for trial in same})
    if len(shares) > 1 and (units or emulated):
        many = float(fixed[units]) if units else 1.0
        curves.append(
            _curve(
                fit,
                name="rate_by_share",
                x_name="share of the accelerator",
                x_unit="1",
                measured=shares,
                function=lambda theta, x: log_rate(theta, threads=threads, amount=x * many, actors=most),
                group=group,
                fixed={**fixed, "actors": here[0].axes["actors"] and int(most)},
                past=1.0,
            )
        )
    if fit.layout.supply and tested is not None:
        curves.append(
            _curve(
                fit,
                name="rate_by_ratio",
                x_name=f"threads per {unit}",
                x_unit="1",
                measured=[tested.low, tested.high],
                function=lambda theta, x: (
                    log_rate(theta, threads=x * reference, amount=reference, actors=most) - np.log(reference)
                ),
                group=group,
                fixed={"actors": int(most), "accelerators": reference},
            )
        )
    return curves


def _curve(
    fit: Fit,
    *,
    name: str,
    x_name: str,
    x_unit: str,
    measured: list[float],
    function: Callable[[Floats, Floats], Floats],
    group: dict[str, Any],
    parameters: dict[str, Quantity] | None = None,
    fixed: dict[str, Any] | None = None,
    before: float = 2.0,
    past: float = PAST,
) -> Curve:
    low, high = min(measured), max(measured)
    x = np.geomspace(low / before, high * past, POINTS)
    logs = function(fit.theta, x)
    half = fit.half_width(lambda theta: function(theta, x))
    known = half is not None
    # Past exp(50) a band says nothing and would not print; only a hopeless fit gets there.
    width = np.minimum(half, 50.0) if half is not None else np.zeros_like(x)
    return Curve(
        name=name,
        x_name=x_name,
        x_unit=x_unit,
        y_unit="samples/s",
        x=tuple(map(float, x)),
        y=tuple(map(float, np.exp(logs))),
        low=tuple(map(float, np.exp(logs - width))),
        high=tuple(map(float, np.exp(logs + width))),
        measured_low=low,
        measured_high=high,
        fixed=fixed or {},
        parameters=parameters or {},
        group=group,
        band=known,
    )


def _parameter(fit: Fit, index: int, *, unit: str, log: bool, fixed: str) -> Quantity:
    """One parameter with its interval; one that was not fitted says so."""
    raw = float(fit.theta[index])
    if not np.isfinite(raw):
        return Quantity.unknown(unit=unit, reason=fixed)
    value = float(np.exp(raw)) if log else raw
    if index not in fit.free:
        return Quantity(value=value, unit=unit, origin=Origin.FITTED, reason=fixed)
    if fit.covariance is None:
        return Quantity(value=value, unit=unit, origin=Origin.FITTED, reason=ONE_REPLICATE)
    place = fit.free.index(index)
    half = t_quantile(fit.degrees) * float(np.sqrt(max(fit.covariance[place, place], 0.0)))
    if half > VAGUE:
        return Quantity(value=value, unit=unit, origin=Origin.FITTED, reason="the data do not pin it down")
    low, high = (value * np.exp(-half), value * np.exp(half)) if log else (value - half, value + half)
    return Quantity(value=value, low=float(low), high=float(high), unit=unit, origin=Origin.FITTED)
