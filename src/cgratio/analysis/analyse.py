"""From stored results to the answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cgratio.analysis import counting, words
from cgratio.analysis.curves import make_curves
from cgratio.analysis.energy_optimum import energy_optimum
from cgratio.analysis.facts import Analysis, Bottleneck, Curve, Optimum, Origin, Point, Quantity
from cgratio.analysis.identify import Finding, identify
from cgratio.analysis.model import Fit
from cgratio.analysis.notes import misfit_note, service_time_note, sweep_notes
from cgratio.analysis.points import make_points
from cgratio.analysis.ratio import (
    TOLERANCE,
    crossing,
    most_threads,
    near_optimal,
    reference_amount,
    tested_range,
)
from cgratio.analysis.trials import Trial, read_trials
from cgratio.analysis.workloads import Workload, observe, split_workloads
from cgratio.results.store import Results
from cgratio.results.words import Part


@dataclass(frozen=True, slots=True, kw_only=True)
class _Result:
    """What one workload gave."""

    workload: Workload
    rate: Optimum
    energy: Optimum
    curves: tuple[Curve, ...]
    below: Bottleneck
    above: Bottleneck
    notes: tuple[str, ...]


def analyse(results: Results) -> Analysis:
    """Finds the CPU/GPU ratio in a sweep's results.

    Without a single valid trial the analysis has no optimum and `valid == 0`, and still lists every point
    with the verdicts of its trials.
    """
    trials = read_trials(results.trials)
    points, spreads = make_points(trials)
    found = [_workload(workload, manifest=results.manifest) for workload in split_workloads(trials)]
    notes = [*_missing(results), *sweep_notes(trials, spreads=spreads)]
    for result in found:
        name = " ".join(f"{axis}={value}" for axis, value in result.workload.varying.items())
        notes += [f"{name}: {note}" if name else note for note in result.notes]
    return Analysis(
        sweep=_name(results),
        host=", ".join(dict.fromkeys(trial.host for trial in trials)) or _manifest_host(results.manifest),
        answer=_answer(found, points=points, trials=trials),
        points=points,
        curves=tuple(curve for result in found for curve in result.curves),
        optima=tuple(optimum for result in found for optimum in (result.rate, result.energy)),
        below=found[0].below if found else Bottleneck.UNKNOWN,
        above=found[0].above if found else Bottleneck.UNKNOWN,
        trials=len(trials),
        valid=sum(trial.valid for trial in trials),
        labels=_labels(found, trials=trials),
        notes=tuple(notes),
        flaws=tuple(str(flaw) for flaw in results.flaws),
    )


def _workload(workload: Workload, *, manifest: Mapping[str, Any]) -> _Result:
    finding = identify(observe(workload))
    tested = tested_range(workload)
    amount = reference_amount(workload)
    accelerator = counting.accelerator(workload)
    unit = f"threads/{accelerator}"
    most = most_threads(workload)
    threads = crossing(finding, tested=tested, threads=most, amount=amount, unit=unit)
    energy = energy_optimum(finding.fit, workload=workload, unit=unit)
    misfit, service = misfit_note(finding), service_time_note(workload, threads=threads)

    def optimum(goal: str, quantity: Quantity, near: tuple[int, ...], *, rests_on: Fit | None) -> Optimum:
        # How the sides meet in the whole job need not be known well where each was measured alone.
        against = [misfit if rests_on is finding.fit else None, service.text if service.doubts else None]
        return Optimum(
            goal=goal,
            threads_per_accelerator=quantity,
            threads_per_sm=counting.per_sm(quantity, workload=workload),
            cores_per_accelerator=counting.in_cores(
                quantity, workload=workload, manifest=manifest, unit=f"cores/{accelerator}"
            ),
            near_optimal=near,
            tolerance=TOLERANCE,
            counting_rule=counting.counting_rule(workload),
            group=workload.varying,
            doubts=tuple(note for note in against if note and quantity.value is not None),
        )

    near = near_optimal(finding, optimum=threads, threads=most, amount=amount)
    known = threads.value is not None
    curves: tuple[Curve, ...] = ()
    if finding.fit is not None and finding.sides is not None:
        curves = make_curves(
            finding.fit, sides=finding.sides, workload=workload, tested=tested, unit=accelerator
        )
    return _Result(
        workload=workload,
        rate=optimum("samples_per_s", threads, near, rests_on=finding.sides),
        energy=optimum("samples_per_joule", energy.threads, energy.near_optimal, rests_on=finding.fit),
        curves=curves,
        below=Bottleneck.ENVIRONMENTS if known or finding.supply_reason is None else Bottleneck.UNKNOWN,
        above=Bottleneck.ACCELERATOR if known or _only_demand(finding) else Bottleneck.UNKNOWN,
        notes=(*finding.notes, *(note for note in (misfit, service.text) if note)),
    )


def _only_demand(finding: Finding) -> bool:
    return finding.supply_reason is not None and finding.demand_reason is None


def _answer(found: list[_Result], *, points: tuple[Point, ...], trials: tuple[Trial, ...]) -> str:
    if not found:
        return f"No valid trial among {len(trials)}: there is nothing to measure a ratio from."
    first = found[0]
    metered = [
        point
        for point in points
        if point.samples_per_joule.value is not None
        and point.axes["part"] == Part.WHOLE
        and all(point.axes.get(axis) in {value, None} for axis, value in first.workload.varying.items())
    ]
    return words.answer(
        best=max(metered, key=lambda point: point.samples_per_joule.value or 0.0, default=None),
        key=first.workload.key,
        rate=first.rate,
        energy=first.energy,
        accelerator=counting.accelerator(first.workload),
        others=tuple(result.rate for result in found[1:]),
    )


def _labels(found: list[_Result], *, trials: tuple[Trial, ...]) -> tuple[str, ...]:
    labels = []
    accelerators = {counting.accelerator(result.workload) for result in found}
    if "device CPU" in accelerators:
        labels.append(counting.STAND_IN)
    if "emulated device" in accelerators:
        labels.append("emulated")
    if any(trial.valid and trial.boundary == "modelled" for trial in trials):
        labels.append("modelled")
    quantities = [optimum.threads_per_accelerator for r in found for optimum in (r.rate, r.energy)]
    if any(quantity.origin is Origin.EXTRAPOLATED for quantity in quantities):
        labels.append("extrapolated")
    return tuple(labels)


def _missing(results: Results) -> list[str]:
    """Trials that the plan has and the folder has not."""
    plan = results.manifest.get("plan")
    planned = plan.get("trials") if isinstance(plan, Mapping) else None
    missing = planned - len(results.trials) if isinstance(planned, int) else 0
    if missing <= 0:
        return []
    return [f"{missing} of {planned} planned trials are not here: go on with `cgratio sweep ... --resume`"]


def _name(results: Results) -> str:
    names = results.trials["sweep"].dropna().unique()
    return str(names[0]) if len(names) else str(results.manifest.get("sweep") or results.folder.name)


def _manifest_host(manifest: Mapping[str, Any]) -> str:
    host = manifest.get("host")
    name = host.get("hostname") if isinstance(host, Mapping) else None
    return str(name or "unknown host")
