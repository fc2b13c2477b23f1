"""What a careful reader should know besides the numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from cgratio.analysis.bottleneck import NEIGHBOURS
from cgratio.analysis.facts import Quantity
from cgratio.analysis.fitting import MISFIT_P
from cgratio.analysis.identify import Finding
from cgratio.analysis.points import Spreads, by_point
from cgratio.analysis.ratio import service_time_ratio
from cgratio.analysis.statistics import drift, unequal_spread_p
from cgratio.analysis.trials import Trial
from cgratio.analysis.workloads import Workload
from cgratio.results.words import Part

RARE_P = 0.01
"""A sign that a sweep went wrong is told when chance gives it less often than this."""

IDLE_SUPPLY = 0.75
"""With actor CPUs less busy than this, supply is not that of the environments."""


class ServiceNote(NamedTuple):
    """What service times say of a workload's ratio.

    Attributes:
        doubts: whether they speak against it, so that it must not be taken without this note.
    """

    text: str | None
    doubts: bool = False


def sweep_notes(trials: Sequence[Trial], *, spreads: Spreads) -> tuple[str, ...]:
    """Notes on the trials as a whole: replicates, failures, drift, hosts."""
    valid = [trial for trial in trials if trial.valid]
    notes = []
    if valid and spreads.rate.sd is None:
        notes.append(
            "one replicate of every point: windows show how steady a launch was, not how launches differ,"
            " so no number has an interval; run at least two replicates"
        )
    elif spreads.rate.sd is not None:
        notes.append(
            f"launches of one point differ by {spreads.rate.sd:.1%} (standard deviation of the rate, pooled"
            f" over points, {spreads.rate.degrees} degrees of freedom); every interval of a point rests on it"
        )
    if len(valid) < len(trials):
        notes.append(f"{len(trials) - len(valid)} of {len(trials)} trials are not valid and enter no number")
    groups = [group for group in by_point(valid).values() if len(group) > 1]
    p = unequal_spread_p([[trial.rate for trial in group] for group in groups])
    if p is not None and p < RARE_P:
        notes.append(
            f"some points scatter more than others (Levene's test, p = {p:.2g}): the pooled spread is too"
            " wide for the calm ones and too narrow for the restless ones"
        )
    if (slope := _drift(groups)) is not None:
        notes.append(
            f"the rate drifts by {slope:+.1%} from a point's first replicate to its last (p < {RARE_P})"
        )
    notes += [*_neighbours(valid), *_idle_supply(valid), *_mixed_precision(valid)]
    hosts = sorted({trial.host for trial in valid})
    if len(hosts) > 1:
        notes.append(f"trials of {len(hosts)} hosts ({', '.join(hosts)}): each host is a workload of its own")
    return tuple(notes)


def _neighbours(valid: Sequence[Trial]) -> list[str]:
    disturbed = [
        trial.others_share for trial in valid if trial.others_share and trial.others_share > NEIGHBOURS
    ]
    if not disturbed:
        return []
    note = (
        f"other processes used more than {NEIGHBOURS:.0%} of the trials' own CPUs in {len(disturbed)} of"
        f" {len(valid)} trials, up to {max(disturbed):.0%}: a quiet host would give higher rates"
    )
    return [note]


def _idle_supply(valid: Sequence[Trial]) -> list[str]:
    """Environments so cheap that handing out their actions sets the rate."""
    idle = [
        trial.shares["env"]
        for trial in valid
        if trial.part is Part.SUPPLY and trial.shares.get("env", 1.0) < IDLE_SUPPLY
    ]
    if not idle:
        return []
    note = (
        f"actor CPUs of supply trials were busy only {min(idle):.0%}: the loop that hands out actions,"
        " and not the environments alone, set what they supply; more actors or actor_groups may show more"
    )
    return [note]


def _mixed_precision(valid: Sequence[Trial]) -> list[str]:
    mixed = [
        group
        for group in by_point(valid).values()
        if len({trial.precision for trial in group if trial.precision}) > 1
    ]
    if not mixed:
        return []
    note = (
        f"`precision: auto` chose differently in trials of one point (points: {len(mixed)}), which widens"
        " the intervals; set bf16 or fp32"
    )
    return [note]


def misfit_note(finding: Finding) -> str | None:
    """How far the points are from the joint model, where that is more than chance gives."""
    fit = finding.fit
    if fit is None or fit.misfit_p is None or fit.misfit_p >= MISFIT_P:
        return None
    note = (
        f"the points miss the joint model by more than their replicates explain ({fit.scale:.1%} each,"
        f" lack-of-fit test p = {fit.misfit_p:.2g}): its intervals are widened to this misfit"
    )
    if finding.sides is not fit:
        note += ", and the crossing rests on the supply and demand trials alone"
    return note


def service_time_note(workload: Workload, *, threads: Quantity) -> ServiceNote:
    """Whether busy times tell the same ratio as the rates do."""
    found = service_time_ratio(workload)
    if found is None:
        return ServiceNote(None)
    ratio, words = found
    text = f"service times say {ratio:.3g} {threads.unit} ({words})"
    if threads.value is None:
        return ServiceNote(f"{text}; no crossing was identified to hold against it")
    low, high = threads.low, threads.high
    if low is None and high is None:
        return ServiceNote(f"{text}, the rates say {threads.value:.3g}")
    inside = (low is None or low <= ratio) and (high is None or ratio <= high)
    verdict = "in agreement" if inside else "in DISAGREEMENT"
    return ServiceNote(f"{text}, {verdict} with the interval of the rates", doubts=not inside)


def _drift(groups: Sequence[Sequence[Trial]]) -> float | None:
    """Change of the rate from a point's first replicate to its last, by their trend; None without one."""
    orders, deviations, spans = [], [], []
    for group in groups:
        mean_log = sum(math.log(trial.rate) for trial in group) / len(group)
        mean_order = sum(trial.order for trial in group) / len(group)
        # Both about the point's own mean: else where a point lies in the order would mix in.
        orders += [trial.order - mean_order for trial in group]
        deviations += [math.log(trial.rate) - mean_log for trial in group]
        spans.append(max(trial.order for trial in group) - min(trial.order for trial in group))
    line = drift(orders, deviations)
    if line is None or line[1] >= RARE_P:
        return None
    # Over no more trials than lie between replicates: beyond these the trend was not seen.
    return math.expm1(line[0] * max(spans))
