"""The results folder while a sweep owns it: locked, described, journalled."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from cgratio.results import schema, store
from cgratio.results.words import FIX
from cgratio.sweep.plan import Plan, plan_summary, software_id
from cgratio.telemetry.inventory import list_sensors

_LOCK = ".lock"
_LOCK_WAIT_S = 30.0  # how long the trials of a killed sweep may take to end


class FolderError(ValueError):
    """The folder cannot be used for this sweep; the message says what to do."""


@contextmanager
def locked(folder: Path) -> Iterator[int]:
    """Holds the folder against other sweeps.

    The lock belongs to the open file and not to a process: each trial inherits it, so after a sweep was
    killed the folder stays locked until its last trial has ended, and no longer.

    Yields:
        The descriptor of the lock, for trials to inherit.

    Raises:
        FolderError: another sweep holds it, or the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise FolderError(
            f"{folder}: cannot be written ({error.strerror}); choose another with --out"
        ) from error
    try:
        deadline = time.monotonic() + _LOCK_WAIT_S
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                if time.monotonic() > deadline:
                    raise FolderError(
                        f"{folder}: another sweep is running into this folder; wait for it or use --out"
                    ) from error
                time.sleep(0.2)
        yield descriptor
    finally:
        os.close(descriptor)


def prepare(folder: Path, plan: Plan, *, resume: bool, allow_drift: bool) -> set[str]:
    """Makes a fresh folder for a plan, or checks that a plan continues the folder's own.

    Returns:
        The ids of the trials that are finished.

    Raises:
        FolderError: the folder holds a sweep and `resume` is not set, or another sweep, or one of another
            host or other software versions and drift is not allowed.
    """
    finished = store.finished_trials(folder)
    measured_on = _identity(store.read_manifest(folder))
    if not finished and not measured_on:
        # Fresh, or a sweep was killed before it had described itself: the manifest comes last.
        _describe(folder, plan)
        return set()
    if not resume:
        raise FolderError(f"{folder}: holds a sweep already; continue it with --resume, or use another --out")
    journal = store.read_journal(folder)
    planned = {entry["trial_id"] for entry in journal if entry["state"] == "planned"}
    _check_same(folder, plan, planned=planned, finished=finished.keys())
    if not allow_drift:
        _check_drift(folder, measured_on, here=_identity(_ids(plan)))
    if not planned:
        store.append_journal(folder, *_planned(plan))
    if not measured_on:
        store.write_json(folder / store.MANIFEST, _manifest(plan))
    last = {entry["trial_id"]: entry["state"] for entry in journal}
    for trial_id, row in finished.items():
        if last.get(trial_id) != row["status"]:
            # The sweep was killed between the row and its line.
            note(folder, state=row["status"], trial_id=trial_id, reason=row["status_reason"])
    return set(finished)


def _check_same(folder: Path, plan: Plan, *, planned: AbstractSet[str], finished: AbstractSet[str]) -> None:
    """Refuses a folder of another sweep, by its journal and, where that was lost, by its trials."""
    asked = {trial.trial_id for trial in plan.trials}
    strange = (planned | finished) - asked
    new = asked - planned if planned else set()
    if strange or new:
        raise FolderError(
            f"{folder}: holds another sweep ({len(strange)} of its trials are not in this specification, "
            f"{len(new)} are new); resume with the one it was made with, {folder / store.SPEC}"
        )


def note(folder: Path, *, state: str, trial_id: str, reason: str | None = None) -> None:
    """Writes one line of the journal."""
    store.append_journal(folder, _entry(state, trial_id) | ({"reason": reason} if reason else {}))


def _entry(state: str, trial_id: str) -> dict[str, str]:
    return {"state": state, "trial_id": trial_id, "at": datetime.now(UTC).isoformat()}


def _planned(plan: Plan) -> Iterator[dict[str, str]]:
    return (_entry("planned", trial.trial_id) for trial in plan.trials)


def _describe(folder: Path, plan: Plan) -> None:
    for table in schema.TABLES:
        (folder / table).mkdir(parents=True, exist_ok=True)
    text = yaml.safe_dump(plan.spec.model_dump(mode="json"), sort_keys=False, allow_unicode=True)
    store.write_whole(folder / store.SPEC, text.encode())
    store.start_journal(folder, _planned(plan))
    store.write_json(folder / store.MANIFEST, _manifest(plan))


def _manifest(plan: Plan) -> dict[str, Any]:
    host = plan.host
    statuses = list_sensors(gpus=[gpu.uuid for gpu in host.gpus])
    missing = {
        status.sensor if status.device is None else f"{status.sensor}/{status.device}": (
            f"{status.reason}{FIX}{status.fix}" if status.fix else status.reason
        )
        for status in statuses
        if status.reason
    }
    return {
        "schema_version": schema.SCHEMA_VERSION,
        "sweep": plan.spec.name,
        "created_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "host": host.facts.as_dict(),
        "software": host.software,
        **_ids(plan),
        "sensors": {status.sensor: list(status.devices) for status in statuses if status.ok},
        "missing_sensors": missing,
        "spec": plan.spec.model_dump(mode="json"),
        "plan": plan_summary(plan),
        "notes": list(plan.notes),
    }


def _ids(plan: Plan) -> dict[str, str]:
    return {"host_id": plan.host.facts.id, "software_id": software_id(plan.host)}


def _identity(manifest: Mapping[str, Any]) -> dict[str, str]:
    """Host and software of a manifest; empty where it does not tell both."""
    names = {"host_id": "host", "software_id": "set of software versions"}
    return {what: manifest[name] for name, what in names.items()} if names.keys() <= manifest.keys() else {}


def _check_drift(folder: Path, measured_on: Mapping[str, str], *, here: Mapping[str, str]) -> None:
    if not measured_on:
        raise FolderError(
            f"{folder / store.MANIFEST}: is missing or damaged, so nothing says on which host and with which "
            "software the finished trials were measured; use another --out, or --allow-drift if you know "
            "that they were the same"
        )
    for what, value in here.items():
        if measured_on[what] != value:
            raise FolderError(
                f"{folder}: was measured on another {what}, so its trials and new ones would not compare; "
                "use another --out, or --allow-drift if you know why they do"
            )
