"""Runs the trials of a plan in order, and keeps every one that finished."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cgratio.launch.local import LocalLauncher
from cgratio.results import store
from cgratio.results.words import Status
from cgratio.sweep.folder import locked, note, prepare
from cgratio.sweep.plan import Plan, PlannedTrial
from cgratio.trial import supervisor
from cgratio.trial.observed import Observed
from cgratio.trial.request import TrialRequest

_POLL_S = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Where a sweep stands, for whoever shows it.

    Attributes:
        done, total: trials.
        trial: the one that runs; None between trials.
        running_s: how long it has run.
        left_s: estimated time left, from what trials took so far.
        varying: axes that differ between the sweep's points.
        row: the row of a trial that has just finished, else None.
    """

    done: int
    total: int
    trial: PlannedTrial | None
    running_s: float
    left_s: float
    varying: tuple[str, ...]
    row: dict[str, Any] | None = None


def run_sweep(
    plan: Plan,
    folder: Path,
    *,
    resume: bool = False,
    allow_drift: bool = False,
    show: Callable[[State], None] = lambda _: None,
    launcher: Callable[..., LocalLauncher] = LocalLauncher,
) -> None:
    """Measures every trial that the folder does not have yet.

    Args:
        plan: what to run.
        folder: of the results.
        resume: continue what the folder holds.
        allow_drift: also on another host or other software versions.
        show: told about every trial's start, progress and end.
        launcher: makes what starts trials, given `held_fd`.

    Raises:
        FolderError: the folder cannot be used.
        OSError: a row cannot be stored (disk full, read-only); finished trials are kept.
        KeyboardInterrupt: Ctrl-C; the running trial is ended and journalled as interrupted.
    """
    with locked(folder) as lock:
        finished = prepare(folder, plan, resume=resume, allow_drift=allow_drift)
        starter = launcher(held_fd=lock)
        pace = _Pace(plan)
        left = [pair for pair in plan.requests(folder) if pair[0].trial_id not in finished]
        for index, (trial, request) in enumerate(left):
            done = len(plan.trials) - len(left) + index
            started = time.monotonic()

            def tell(
                row: dict[str, Any] | None = None,
                *,
                trial: PlannedTrial = trial,
                done: int = done,
                ahead: int = len(left) - index - 1,
                started: float = started,
            ) -> None:
                running_s = time.monotonic() - started
                now = max(0.0, pace.trial_s - running_s) if row is None else 0.0
                show(
                    State(
                        done=done + (row is not None),
                        total=len(plan.trials),
                        trial=trial,
                        running_s=running_s,
                        left_s=ahead * pace.trial_s + now,
                        varying=plan.varying,
                        row=row,
                    )
                )

            row = _run_trial(starter, request, folder, tell=tell)
            pace.add(time.monotonic() - started)
            tell(row)


def _run_trial(
    starter: LocalLauncher, request: TrialRequest, folder: Path, *, tell: Callable[[], None]
) -> dict[str, Any]:
    trial_id = request.trial_id
    seen = Observed(started_at=datetime.now(UTC), launch_s=time.monotonic())
    note(folder, state="running", trial_id=trial_id)
    try:
        with starter.start(request, log=folder / "logs" / f"{trial_id}.log") as process:
            while True:
                tell()
                try:
                    code = process.wait(timeout=_POLL_S)
                    break
                except subprocess.TimeoutExpired:
                    continue
    except BaseException:  # Ctrl-C and SIGTERM too
        # It may have stored its row just before it was told to stop: then it is finished.
        stored = store.read_trial(folder, trial_id)
        note(folder, state=stored["status"] if stored else Status.INTERRUPTED, trial_id=trial_id)
        raise
    row = store.read_trial(folder, trial_id)
    if row is None:
        # The supervisor itself failed: this too is a result of the trial, and so it gets its row.
        reason, seen.exit_code, seen.exit_signal = supervisor.exit_reason(code)
        seen.status, seen.reason = Status.FAILED, f"{reason}: the trial's supervisor, see its log"
        supervisor.write(request, seen)
        row = store.read_trial(folder, trial_id)
        assert row, f"{trial_id} was written a moment ago"
    note(folder, state=row["status"], trial_id=trial_id, reason=row["status_reason"])
    return row


class _Pace:
    """How long a trial takes, from those that have run; at first, the longest it may take."""

    def __init__(self, plan: Plan) -> None:
        self.trial_s = plan.most_s / max(1, len(plan.trials))
        self._seen_s = 0.0
        self._count = 0

    def add(self, seconds: float) -> None:
        self._seen_s += seconds
        self._count += 1
        self.trial_s = self._seen_s / self._count
