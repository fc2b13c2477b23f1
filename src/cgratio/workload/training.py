"""The built-in workload: the trainer, placed, verified and reporting its progress.

    python -m cgratio.workload.training PROGRESS_FD PARENT_PID

Reads one line of JSON from standard input (see `Request`) and runs until standard input closes or SIGTERM
arrives. Environments, CUDA and every thread pool are created in this process, after it is pinned.
"""

from __future__ import annotations

import dataclasses
import json
import os
import select
import signal
import sys
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cgratio.machine.affinity import AffinityError, pin_process, pin_threads, read_masks, thread_ids
from cgratio.machine.cpulist import format_cpu_list, parse_cpu_list
from cgratio.machine.processes import die_with_parent
from cgratio.results.words import Part
from cgratio.trainer.clock import monotonic
from cgratio.trainer.config import EnvironmentFailedError, TrainerConfig, TrainerError
from cgratio.workload.protocol import Count, Failure, Final, Ready, write

if TYPE_CHECKING:
    from cgratio.trainer.progress import Progress
    from cgratio.trainer.run import Run

_REPORTS_PER_S = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What the process is asked to run.

    Attributes:
        trainer: fields of `TrainerConfig`.
        pinned: whether the CPU lists below are enforced.
        actor_cpu_list: CPUs for the threads that step environments; None if there are none.
        main_cpu_list: CPUs for every other thread: inference, learner and their operator threads.
    """

    trainer: dict[str, Any]
    pinned: bool
    actor_cpu_list: str | None
    main_cpu_list: str

    def line(self) -> bytes:
        """The line for standard input."""
        return (json.dumps(dataclasses.asdict(self)) + "\n").encode()


class _Placement:
    """Pins the two groups of threads, and says later whether they stayed.

    Until the run begins, its threads share all CPUs of the trial: environments are made on several.
    """

    def __init__(self, request: Request) -> None:
        self._request = request
        self._actor_threads: frozenset[int] = frozenset()
        self._actor_processes: frozenset[int] = frozenset()
        self._main_cpus = parse_cpu_list(request.main_cpu_list)
        self._actor_cpus = parse_cpu_list(request.actor_cpu_list or "")
        if request.pinned:
            pin_process(self._main_cpus | self._actor_cpus)

    def pin(self, *, threads: frozenset[int], processes: frozenset[int]) -> None:
        """Pins what belongs to the actors, then all other threads; those that start later inherit it."""
        if self._actor_cpus or not self._request.pinned:
            # Without CPUs of their own (a demand trial) they are threads like all others.
            self._actor_threads, self._actor_processes = threads, processes
        if self._request.pinned:
            if self._actor_cpus:
                pin_threads(self._actor_threads, self._actor_cpus)
                for process in processes:
                    pin_threads(thread_ids(process), self._actor_cpus)
            pin_threads(thread_ids() - self._actor_threads, self._main_cpus)

    def observed(self) -> tuple[str | None, str | None]:
        """The CPUs that environments, and all other threads, may really run on."""
        masks = read_masks("self")
        actors = [mask for thread, mask in masks.items() if thread in self._actor_threads]
        for process in self._actor_processes:
            actors += read_masks(process).values()
        others = [mask for thread, mask in masks.items() if thread not in self._actor_threads]
        return (
            format_cpu_list(frozenset().union(*actors)) if actors else None,
            format_cpu_list(frozenset().union(*others)),
        )

    def drifted(self) -> list[str]:
        """Threads that no longer have the mask they were given."""
        if not self._request.pinned:
            return []
        wanted = [
            (thread, mask, self._actor_cpus if thread in self._actor_threads else self._main_cpus)
            for thread, mask in read_masks("self").items()
        ]
        for process in self._actor_processes:
            wanted += [(thread, mask, self._actor_cpus) for thread, mask in read_masks(process).items()]
        return [
            f"thread {thread}: {format_cpu_list(mask)} for {format_cpu_list(cpus)}"
            for thread, mask, cpus in wanted
            if mask != cpus
        ]


def main(progress_fd: int, parent: int) -> int:
    """Runs one request.

    Args:
        progress_fd: the pipe for `workload.protocol`'s lines.
        parent: pid of the process that started this one, with which it dies.

    Returns:
        The exit code: 0 if it ran until told to stop, 2 for a request that cannot run.
    """
    die_with_parent(signal.SIGKILL, parent=parent)
    request = Request(**json.loads(sys.stdin.buffer.readline()))
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is for the sweep, which then tells us
    try:
        placement = _Placement(request)
        from cgratio.trainer.run import Run  # loads torch, in threads that are pinned already

        config = TrainerConfig.read(request.trainer)
        run = Run(config)
        placement.pin(threads=run.actor_threads, processes=run.actor_processes)
        write(progress_fd, _ready(run, placement))
    except (AffinityError, TrainerError, EnvironmentFailedError) as error:
        codes = {AffinityError: "affinity", TrainerError: "bad_request"}
        write(progress_fd, Failure(code=codes.get(type(error), "environment"), message=str(error)))
        return 2
    reporter = threading.Thread(target=_report, args=(run, progress_fd, stopping), daemon=True)
    reporter.start()
    try:
        last = run.run(until=lambda _: stopping.is_set(), every_s=0.05)
    except EnvironmentFailedError as error:
        write(progress_fd, Failure(code="environment", message=str(error)))
        return 1
    stopping.set()
    reporter.join()
    write(progress_fd, _count(last))
    write(progress_fd, Final(time_s=last.time_s, drifted=placement.drifted()))
    run.close()
    return 0


def _report(run: Run, progress_fd: int, stopping: threading.Event) -> None:
    """Writes the counts until told to stop, or until standard input closes."""
    while not stopping.is_set():
        write(progress_fd, _count(run.progress()))
        readable, _, _ = select.select([sys.stdin], [], [], 1 / _REPORTS_PER_S)
        if readable and not os.read(sys.stdin.fileno(), 1024):
            stopping.set()


def _count(progress: Progress) -> Count:
    fields = {field.name for field in dataclasses.fields(Count)}
    return Count(**{name: value for name, value in dataclasses.asdict(progress).items() if name in fields})


def _ready(run: Run, placement: _Placement) -> Ready:
    import torch

    actor_cpus, device_cpus = placement.observed()
    uuids: list[str] = []
    sm_count = None
    if run.config.device == "cuda" and run.config.part != Part.SUPPLY:  # a supply trial was given no GPU
        facts = torch.cuda.get_device_properties(torch.cuda.current_device())
        uuids, sm_count = [f"GPU-{facts.uuid}"], facts.multi_processor_count
    return Ready(
        time_s=monotonic(),
        frame_skip=run.facts.frame_skip,
        actors=sum(environments.count for environments in run.environments),
        actor_threads=len(run.actor_threads) + len(run.actor_processes),
        actor_cpu_list=actor_cpus,
        device_cpu_list=device_cpus,
        inference_batch=run.config.batch,
        precision=run.precision,
        gpu_uuids=uuids,
        sm_count=sm_count,
    )


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
