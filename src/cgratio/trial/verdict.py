"""Whether a trial may enter a number, and if not, why. Pure."""

from __future__ import annotations

from cgratio.machine.cpulist import format_cpu_list
from cgratio.results.words import Part, Status
from cgratio.telemetry.nvml import SLOWDOWNS, throttle_names
from cgratio.trial.observed import Observed
from cgratio.trial.request import TrialRequest
from cgratio.trial.windows import between

VALID = "valid"


def verdict(request: TrialRequest, seen: Observed, *, steady_windows: int) -> list[str]:
    """`valid`, or the codes of all that is wrong (docs/measuring.md says what each means)."""
    if seen.status is not Status.COMPLETE:
        return [(seen.reason or "unknown").partition(": ")[0]]
    reasons = []
    if steady_windows < request.limits.min_windows:
        reasons.append("too_short")
    elif request.axes["part"] != Part.SUPPLY:
        updates = seen.marks[-1].updates - seen.marks[-1 - steady_windows].updates
        if updates < request.limits.min_updates:
            reasons.append("too_few_updates")
    if seen.final and seen.final.drifted:
        reasons.append("affinity_drift")
    if not _granted(request, seen):
        reasons.append("placement_not_granted")
    if _used_more_than_its_share(request, seen):
        reasons.append("share_not_granted")
    if _throttled(seen, steady_windows=steady_windows):
        reasons.append("throttled")
    return reasons or [VALID]


_SHARE_SLACK = 1.1  # an allowance lets a burst through and is settled after each piece of work


def _used_more_than_its_share(request: TrialRequest, seen: Observed) -> bool:
    share = request.axes["sm_share"]
    if request.axes["device"] != "cpu" or share is None or share == 1 or len(seen.marks) < 2:
        return False
    whole = between(seen.marks[0], seen.marks[-1])
    granted = request.device_cpus * share * whole.duration_s
    return whole.device_cpu_s is not None and whole.device_cpu_s > _SHARE_SLACK * granted


def _granted(request: TrialRequest, seen: Observed) -> bool:
    """Whether the GPUs and the masks that were read back are the ones that were asked for."""
    if seen.ready and request.axes["part"] != Part.SUPPLY:
        asked, read = ({_bare(uuid) for uuid in uuids} for uuids in (request.gpu_uuids, seen.ready.gpu_uuids))
        if asked != read:
            return False
    if not seen.ready or not seen.assignment or not seen.assignment.pinned:
        return True
    actors = seen.assignment.actor_cpus
    if request.actor_cpus and seen.ready.actor_cpu_list != format_cpu_list(actors):
        return False
    if request.device_cpus:
        return seen.ready.device_cpu_list == format_cpu_list(seen.assignment.device_cpus)
    return True


def _bare(uuid: str) -> str:
    """A UUID without `GPU-` or `MIG-`: CUDA does not say which of the two a device is."""
    return uuid.removeprefix("GPU-").removeprefix("MIG-").lower()


_THROTTLED_PART = 0.05  # a slowdown this rare moves the rate by less than launches differ


def _throttled(seen: Observed, *, steady_windows: int) -> bool:
    """Whether the GPU was slowed down by heat or by its supply for more than a moment.

    Its software power cap is not among them: at full load that is how the card works every day.
    """
    if not steady_windows:
        return False
    steady = seen.within(seen.marks[-1 - steady_windows].time_s, seen.marks[-1].time_s)
    masks = steady.values("gpu_throttle")
    slowed = sum(not SLOWDOWNS.isdisjoint(throttle_names(int(mask))) for mask in masks)
    return slowed > _THROTTLED_PART * len(masks)
