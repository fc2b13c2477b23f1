"""The lines that a workload writes on its progress pipe, one JSON object each.

`ready` once, when everything is placed and about to run; `progress` a few times a second, with counts that
only grow; `final` once, at the end, with the masks read back again; or `error` with what went wrong.
"""

from __future__ import annotations

import dataclasses
import json
import os
from dataclasses import dataclass, field
from typing import Any, ClassVar


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """The workload is placed and begins.

    Attributes:
        time_s: monotonic clock.
        frame_skip: frames in one sample.
        actors: environment instances that were made.
        actor_threads: threads on the environments' side, the few that only allocate included.
        actor_cpu_list, device_cpu_list: the union of the masks read back, canonical.
        inference_batch: observations in one inference.
        precision: of the network; None where none runs.
        gpu_uuids, sm_count: of the devices that were granted; sm_count over all of them, None without a GPU.
        versions: of the libraries that were loaded.
    """

    kind: ClassVar[str] = "ready"
    time_s: float
    frame_skip: int
    actors: int
    actor_threads: int
    actor_cpu_list: str | None
    device_cpu_list: str | None
    inference_batch: int | None
    precision: str | None
    gpu_uuids: list[str] = field(default_factory=list)
    sm_count: int | None = None
    versions: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """Cumulative counts at one moment; see `trainer.progress.Progress`. None = the workload cannot know."""

    kind: ClassVar[str] = "progress"
    time_s: float
    samples: int
    batches: int
    updates: int
    learned: int
    lag_sum: float
    lag_max: int
    episodes: int
    recent_return: float | None
    environment_cpu_s: float | None
    device_cpu_s: float | None
    stages: dict[str, float]
    device_busy_s: float | None = None  # of an emulated device


@dataclass(frozen=True, slots=True, kw_only=True)
class Final:
    """The workload ended as it was told to.

    Attributes:
        drifted: threads whose mask is no longer what it was pinned to, in words; empty if none.
    """

    kind: ClassVar[str] = "final"
    time_s: float
    drifted: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """The workload cannot run or go on.

    Attributes:
        code: a stable reason code.
        message: one sentence.
    """

    kind: ClassVar[str] = "error"
    code: str
    message: str


Message = Ready | Count | Final | Failure
_KINDS: dict[str, type[Ready | Count | Final | Failure]] = {m.kind: m for m in (Ready, Count, Final, Failure)}


def encode(message: Message) -> bytes:
    """One line."""
    fields: dict[str, Any] = {"kind": message.kind, **dataclasses.asdict(message)}
    return (json.dumps(fields, allow_nan=False) + "\n").encode()


def decode(line: bytes) -> Message:
    """Reads one line.

    Raises:
        ValueError: it is not a message of this protocol.
    """
    try:
        fields = json.loads(line)
        return _KINDS[fields.pop("kind")](**fields)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"not a progress line: {line[:200]!r} ({error})") from error


def write(descriptor: int, message: Message) -> None:
    """Writes one line whole; a reader that has gone away is not the writer's error."""
    data = encode(message)
    try:
        while data:
            data = data[os.write(descriptor, data) :]
    except BrokenPipeError:
        return
