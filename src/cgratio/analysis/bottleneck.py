"""What limits a trial's rate, read from where its time went.

The rule is that of a closed queueing network (Denning and Buzen 1978, Computing Surveys 10:225): the
station that is busy nearly all the time is the bottleneck, and when none is, too few customers (actors) are
in flight. docs/measuring.md tells it to users.
"""

from __future__ import annotations

from collections.abc import Mapping

from cgratio.analysis.facts import Bottleneck
from cgratio.results.words import Part

BUSY = 0.9
"""A part that is busy this share of its time is the limit, with the inference batches that so many actors
make: without larger ones, more of the others would gain at most 1/0.9."""

HELD_BACK = 0.1
"""Actors that wait for the learner this share of their loop are held back by it."""

NEIGHBOURS = 0.05
"""Other processes' share of a trial's CPUs that matters: about as much as launches differ by themselves."""


def find_bottleneck(
    *, part: Part, shares: Mapping[str, float], others: float = 0.0, local: bool = False
) -> tuple[Bottleneck, str]:
    """Names the limit and quotes the shares that say so.

    Args:
        part: what the trial ran.
        shares: stage shares in 0..1, by name (`env`, `device_busy`, `learner`, `inference`, ...).
        others: share of the trial's CPU time that other processes used, 0..1.
        local: whether inference runs on the actor CPUs, so that its loops do not drive the accelerator.

    Returns:
        The bottleneck, and a clause with the numbers it rests on.
    """
    if part is Part.SUPPLY:
        return Bottleneck.ENVIRONMENTS, _supply_evidence(shares)
    if part is Part.DEMAND:
        return Bottleneck.ACCELERATOR, _demand_evidence(shares)
    if "device_busy" in shares:
        limit, evidence = _compare(env=shares.get("env"), device=shares["device_busy"])
        driver = _driver(shares, local=local)
        if limit is Bottleneck.ACTORS and driver:
            limit, evidence = Bottleneck.ACCELERATOR, f"{evidence}, {driver}"
        full = max(shares["device_busy"], shares.get("env", 0.0)) >= BUSY
    else:
        limit, evidence = _without_device_time(env=shares.get("env"), shares=shares)
        full = shares.get("env", 0.0) >= BUSY
    if others > NEIGHBOURS and not full:
        # A side that they kept from its work looks as if it had waited for the other.
        return Bottleneck.UNKNOWN, f"{evidence}, and other processes had {others:.0%} of these CPUs"
    return limit, evidence


def _supply_evidence(shares: Mapping[str, float]) -> str:
    text = "supply trial: the accelerator never makes the environments wait"
    if (env := shares.get("env")) is not None:
        text += f", actor CPUs busy {env:.0%}"
        text += "" if env >= BUSY else ", the rest goes to handing out actions"
    return text


def _demand_evidence(shares: Mapping[str, float]) -> str:
    """What kept the accelerator's side from more: itself, or the threads that drive it."""
    parts = ["demand trial: samples are never short"]
    if (device := shares.get("device_busy")) is not None:
        parts.append(f"device busy {device:.0%}")
        if device < BUSY:
            parts.append(
                _driver(shares, local=False) or "the rest goes to handing work over between its threads"
            )
    return ", ".join(parts)


def _driver(shares: Mapping[str, float], *, local: bool) -> str | None:
    """The loop that drives the accelerator and is itself full, in words; None if neither is.

    Then more actors would not help, though neither processors nor the accelerator are busy all the time:
    each item of work waits for its turn in that loop.
    """
    held = shares.get("backpressure", 0.0)
    if not local and "wait_batch" in shares and 1.0 - shares["wait_batch"] - held >= BUSY:
        return f"the loop that drives inference busy {1.0 - shares['wait_batch'] - held:.0%}"
    if shares.get("learner", 0.0) >= BUSY and held >= HELD_BACK:
        return f"the learner's loop busy {shares['learner']:.0%}, which holds the actors back"
    return None


def _compare(*, env: float | None, device: float) -> tuple[Bottleneck, str]:
    evidence = f"device busy {device:.0%}"
    if env is None:
        evidence += ", busy share of the actor CPUs unknown"
        return (Bottleneck.ACCELERATOR if device >= BUSY else Bottleneck.UNKNOWN), evidence
    evidence += f", actor CPUs busy {env:.0%}"
    if device >= BUSY and device >= env:
        return Bottleneck.ACCELERATOR, evidence
    if env >= BUSY:
        return Bottleneck.ENVIRONMENTS, evidence
    return Bottleneck.ACTORS, evidence


def _without_device_time(*, env: float | None, shares: Mapping[str, float]) -> tuple[Bottleneck, str]:
    """Falls back on the loops that use the accelerator when its own busy time is unknown."""
    known = {name: shares[name] for name in ("learner", "inference", "backpressure") if name in shares}
    if env is None and not known:
        return Bottleneck.UNKNOWN, "no stage shares were recorded"
    quoted = [f"actor CPUs busy {env:.0%}"] if env is not None else []
    words = {
        "learner": "learner loop busy {:.0%}",
        "inference": "actor loop in inference {:.0%}",
        "backpressure": "actor loop held back by the learner {:.0%}",
    }
    quoted += [words[name].format(share) for name, share in known.items()]
    evidence = ", ".join(quoted) + " (accelerator time unknown)"
    user = max(known.get("learner", 0.0), known.get("inference", 0.0))
    if user >= BUSY and user >= (env or 0.0):
        return Bottleneck.ACCELERATOR, evidence
    if env is not None and env >= BUSY:
        return Bottleneck.ENVIRONMENTS, evidence
    if known.get("backpressure", 0.0) >= HELD_BACK:
        return Bottleneck.ACCELERATOR, evidence
    return (Bottleneck.ACTORS if env is not None and known else Bottleneck.UNKNOWN), evidence
