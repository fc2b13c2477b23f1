"""Trials of one combination of axis values, put together as a point."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cgratio.analysis.bottleneck import find_bottleneck
from cgratio.analysis.facts import Bottleneck, Origin, Point, Quantity
from cgratio.analysis.statistics import Spread, effective_count, pooled_spread, with_interval
from cgratio.analysis.trials import Trial
from cgratio.results.words import Part

NO_VALID = "no valid trial of this point"
NO_ENERGY = "no energy was stored, and no reason for it"
NO_MODEL_ERROR = "modelled, not measured: how far that is from the truth is unknown, so no interval"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spreads:
    """Between-launch spread of each measured quantity, pooled over all points."""

    rate: Spread
    power: Spread
    samples_per_joule: Spread
    updates_per_s: Spread


def by_point(trials: Sequence[Trial]) -> dict[tuple[str, str], list[Trial]]:
    """Groups trials by host and point, in order of first appearance: hosts are never averaged together."""
    groups: dict[tuple[str, str], list[Trial]] = defaultdict(list)
    for trial in trials:
        groups[trial.host, trial.point_id].append(trial)
    return dict(groups)


def make_points(trials: Sequence[Trial]) -> tuple[tuple[Point, ...], Spreads]:
    """Makes a point of each group of trials, with intervals from the spread of all of them.

    A point without a single valid trial stays, with its verdicts and unknown numbers.
    """
    groups = by_point(trials)
    valid = [[trial for trial in group if trial.valid] for group in groups.values()]
    spreads = Spreads(
        rate=_pool(valid, lambda trial: trial.rate),
        power=_pool(valid, _power),
        samples_per_joule=_pool(valid, _samples_per_joule),
        updates_per_s=_pool(valid, lambda trial: trial.updates_per_s),
    )
    points = tuple(
        _point(trials=group, valid=chosen, spreads=spreads)
        for group, chosen in zip(groups.values(), valid, strict=True)
    )
    return tuple(sorted(points, key=_reading_order)), spreads


def _reading_order(point: Point) -> tuple[tuple[bool, float, str], ...]:
    """Parts in their own order, then each axis ascending; the full accelerator comes before shares of it."""
    parts = list(Part)

    def key(name: str, value: object) -> tuple[bool, float, str]:
        if name == "part" and value in parts:
            return False, parts.index(Part(str(value))), ""
        if isinstance(value, int | float):
            return False, -value if name == "sm_share" else value, ""
        return value is None, 0.0, str(value)

    return tuple(key(name, value) for name, value in point.axes.items())


def total_rate(trials: Sequence[Trial]) -> float:
    """Total samples over total seconds, samples/s."""
    return sum(trial.samples for trial in trials) / sum(trial.seconds for trial in trials)


def total_samples_per_joule(trials: Sequence[Trial]) -> float:
    """Total samples over total joules: a long trial counts for more than a short one, samples/J."""
    return sum(trial.samples for trial in trials) / sum(trial.joules or 0.0 for trial in trials)


def mean_shares(trials: Sequence[Trial]) -> dict[str, float]:
    """Mean of each stage share over the trials that know it, 0..1."""
    names = dict.fromkeys(name for trial in trials for name in trial.shares)
    return {name: _mean([trial.shares[name] for trial in trials if name in trial.shares]) for name in names}


def limit_of(trials: Sequence[Trial]) -> tuple[Bottleneck, str]:
    """What limits a point, by the mean shares of its trials, and the numbers that say so."""
    others = [trial.others_share for trial in trials if trial.others_share is not None]
    return find_bottleneck(
        part=trials[0].part,
        shares=mean_shares(trials),
        others=_mean(others) if others else 0.0,
        local=trials[0].axes.get("inference") == "local",
    )


def _point(*, trials: Sequence[Trial], valid: Sequence[Trial], spreads: Spreads) -> Point:
    first = trials[0]
    verdicts = Counter(code for trial in trials if not trial.valid for code in trial.codes)
    bottleneck, evidence = limit_of(valid) if valid else (Bottleneck.UNKNOWN, NO_VALID)
    boundary, metered = _metered(valid)
    if valid:
        rate = with_interval(
            value=total_rate(valid),
            unit="samples/s",
            origin=Origin.MEASURED,
            spread=spreads.rate,
            replicates=effective_count([trial.seconds for trial in valid]),
        )
    else:
        rate = Quantity.unknown(unit="samples/s", reason=NO_VALID)
    return Point(
        point_id=first.point_id,
        axes=first.axes,
        trials=len(trials),
        valid=len(valid),
        rate=rate,
        power=_power_quantity(valid=valid, metered=metered, boundary=boundary, spreads=spreads),
        samples_per_joule=_energy_quantity(valid=valid, metered=metered, boundary=boundary, spreads=spreads),
        boundary=boundary,
        updates_per_s=_updates(valid, spreads=spreads),
        policy_lag=_policy_lag(valid),
        shares=mean_shares(valid),
        bottleneck=bottleneck,
        evidence=evidence,
        verdicts=dict(sorted(verdicts.items())),
    )


def _metered(valid: Sequence[Trial]) -> tuple[str | None, list[Trial]]:
    """The trials with joules of the commonest boundary: joules of two boundaries never meet."""
    counts = Counter(trial.boundary for trial in valid if trial.joules is not None)
    if not counts:
        return None, []
    boundary = counts.most_common(1)[0][0]
    return boundary, [trial for trial in valid if trial.joules is not None and trial.boundary == boundary]


def _origin(boundary: str | None) -> Origin:
    return Origin.MODELLED if boundary == "modelled" else Origin.MEASURED


def energy_reason(valid: Sequence[Trial]) -> str:
    """Why there are no joules, in the words that the trials stored."""
    if not valid:
        return NO_VALID
    reasons = Counter(trial.energy_reason for trial in valid if trial.energy_reason)
    return reasons.most_common(1)[0][0] if reasons else NO_ENERGY


def _power_quantity(
    *, valid: Sequence[Trial], metered: Sequence[Trial], boundary: str | None, spreads: Spreads
) -> Quantity:
    powers = [power for trial in metered if (power := _power(trial)) is not None]
    if not powers:
        return Quantity.unknown(unit="W", reason=energy_reason(valid))
    seconds = [trial.seconds for trial in metered]
    value = sum(power * second for power, second in zip(powers, seconds, strict=True)) / sum(seconds)
    if _origin(boundary) is Origin.MODELLED:
        return Quantity(value=value, unit="W", origin=Origin.MODELLED, reason=NO_MODEL_ERROR)
    return with_interval(
        value=value,
        unit="W",
        origin=_origin(boundary),
        spread=spreads.power,
        replicates=effective_count(seconds),
        systematic=_mean([trial.joules_pm for trial in metered]),
    )


def _energy_quantity(
    *, valid: Sequence[Trial], metered: Sequence[Trial], boundary: str | None, spreads: Spreads
) -> Quantity:
    if not metered:
        return Quantity.unknown(unit="samples/J", reason=energy_reason(valid))
    value = total_samples_per_joule(metered)
    if _origin(boundary) is Origin.MODELLED:
        return Quantity(value=value, unit="samples/J", origin=Origin.MODELLED, reason=NO_MODEL_ERROR)
    # Samples and joules of one launch stay together: the spread is that of the launches' own ratios.
    return with_interval(
        value=value,
        unit="samples/J",
        origin=_origin(boundary),
        spread=spreads.samples_per_joule,
        replicates=effective_count([trial.joules or 0.0 for trial in metered]),
        systematic=_mean([trial.joules_pm for trial in metered]),
    )


def _updates(valid: Sequence[Trial], *, spreads: Spreads) -> Quantity:
    counted = [trial for trial in valid if trial.updates_per_s]
    if not counted:
        return Quantity.unknown(unit="updates/s", reason="no learner updates were counted")
    seconds = [trial.seconds for trial in counted]
    total = sum((trial.updates_per_s or 0.0) * trial.seconds for trial in counted)
    return with_interval(
        value=total / sum(seconds),
        unit="updates/s",
        origin=Origin.MEASURED,
        spread=spreads.updates_per_s,
        replicates=effective_count(seconds),
    )


def _policy_lag(valid: Sequence[Trial]) -> Quantity:
    lags = [trial.policy_lag for trial in valid if trial.policy_lag is not None]
    if not lags:
        return Quantity.unknown(unit="updates", reason="policy lag was not recorded")
    return Quantity(value=_mean(lags), unit="updates", reason="a mean over trials; no interval is computed")


def _pool(valid: Sequence[Sequence[Trial]], value: Callable[[Trial], float | None]) -> Spread:
    groups = [[number for trial in group if (number := value(trial))] for group in valid]
    return pooled_spread(groups)


def _power(trial: Trial) -> float | None:
    if trial.joules is None:
        return None
    return trial.power_w or trial.joules / trial.seconds


def _samples_per_joule(trial: Trial) -> float | None:
    return trial.samples / trial.joules if trial.joules else None


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
