"""`cgratio train`: run the trainer alone and print returns."""

from __future__ import annotations

import math
import sys
import time
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cgratio.cli.output import INCONCLUSIVE, complain, refuse, say
from cgratio.machine.host import read_host
from cgratio.machine.software import software_versions
from cgratio.trainer.config import (
    ALGORITHMS,
    INFERENCES,
    NETWORKS,
    OF_ALGORITHM,
    PRECISIONS,
    EnvironmentFailedError,
    TrainerConfig,
    TrainerError,
    either,
    learning_settings,
)

if TYPE_CHECKING:
    from cgratio.results.training import TrainingRecord
    from cgratio.trainer.progress import Progress
    from cgratio.trainer.run import Run

MOST = 1_000_000
MOST_THREADS = 1024


def train(
    environment: Annotated[
        str,
        typer.Argument(help="An envpool id, gymnasium:ID, or package.module:factory of a Gymnasium one."),
    ] = "CartPole-v1",
    algorithm: Annotated[str, typer.Option(help=f"{either(ALGORITHMS)}.")] = "impala",
    network: Annotated[
        str | None,
        typer.Option(
            help=f"{either(NETWORKS)}, or package.module:factory of your own; chosen by the observations if "
            "not given."
        ),
    ] = None,
    lstm: Annotated[
        int | None,
        typer.Option(
            min=0, max=MOST, help="Units of a recurrent core, 0 for none; by the algorithm if not given."
        ),
    ] = None,
    samples: Annotated[int, typer.Option(min=1, help="Learn from at least this many samples.")] = 1_000_000,
    until_return: Annotated[
        float | None, typer.Option(help="Stop when the mean return of 100 episodes reaches this.")
    ] = None,
    actors: Annotated[int, typer.Option(min=1, max=MOST)] = 32,
    actor_threads: Annotated[
        int, typer.Option(min=1, max=MOST_THREADS, help="Threads that step environments.")
    ] = 1,
    actor_groups: Annotated[
        int, typer.Option(min=1, max=MOST_THREADS, help="Groups of actors with an inference loop each.")
    ] = 1,
    inference: Annotated[
        str, typer.Option(help="central, batched on the device, or local, on the actors' own threads.")
    ] = "central",
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    device_threads: Annotated[
        int, typer.Option(min=1, max=MOST_THREADS, help="Threads of an operator on the CPU.")
    ] = 1,
    unroll_length: Annotated[int, typer.Option(min=1, max=MOST)] = 20,
    learner_batch: Annotated[int, typer.Option(min=1, max=MOST, help="Unrolls in one update.")] = 16,
    inference_batch: Annotated[int | None, typer.Option(min=1, max=MOST)] = None,
    replay_ratio: Annotated[
        float | None, typer.Option(help="Of r2d2: how often it learns from each transition.")
    ] = None,
    precision: Annotated[
        str, typer.Option(help="fp32, bf16, or auto, which takes bf16 where it is clearly faster.")
    ] = "auto",
    seed: Annotated[int, typer.Option(min=0)] = 0,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="A setting of a sweep's group trainer, such as trainer.discount=0.98; learning rate, "
            "discount and entropy cost are chosen by algorithm and network if not given. Repeatable.",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for a record of the run: curve.parquet and run.json.")
    ] = None,
) -> None:
    """Train, and print the return as it goes.

    Exits 3 when --until-return was not reached.
    """
    if network is not None and network not in NETWORKS and ":" not in network:
        known = f"{', '.join(NETWORKS)} or package.module:factory"
        refuse(f"--network {network}: there is no such network; use {known}")
    for option, value, allowed in (
        ("algorithm", algorithm, ALGORITHMS),
        ("inference", inference, INFERENCES),
        ("device", device, ("cpu", "cuda")),
        ("precision", precision, PRECISIONS),
    ):
        if value not in allowed:
            refuse(f"--{option} {value}: it must be {either(allowed)}")
    if until_return is not None and not math.isfinite(until_return):
        refuse(f"--until-return {until_return}: no mean is that; give a number")
    # Imported here so that `cgratio --help` does not wait for pydantic.
    from cgratio.sweep.document import SpecError
    from cgratio.sweep.reading import read_trainer_settings

    try:
        learning = read_trainer_settings(tuple(settings or ()))
    except SpecError as error:
        refuse(str(error))
    if replay_ratio is not None:
        learning["replay_ratio"] = replay_ratio
    for other, names in OF_ALGORITHM.items():
        if other != algorithm and (strange := sorted(learning.keys() & set(names))):
            refuse(f"{strange[0]} is a setting of {other}, which {algorithm} does not have; leave it out")
    sys.path.insert(0, str(Path.cwd()))  # factories of one's own are looked for here, as `python -m` does
    run = _made(
        environment,
        network,
        given={
            "algorithm": algorithm,
            "lstm": lstm,
            "actors": actors,
            "actor_threads": actor_threads,
            "actor_groups": actor_groups,
            "inference": inference,
            "device": device,
            "device_threads": device_threads,
            "unroll_length": unroll_length,
            "learner_batch": learner_batch,
            "inference_batch": inference_batch,
            "precision": precision,
            "seed": seed,
            **learning,
        },
    )
    record = _record(out, run) if out else None
    printer = _Printer(until_return=until_return, record=record)
    try:
        last = run.run(until=printer.look, learn_samples=samples)
        printer.line(last)
    except EnvironmentFailedError as error:
        refuse(str(error))
    finally:
        if record:
            record.save()
        run.close()
    if until_return is not None and not printer.reached(last):
        complain(f"a mean return of {until_return:g} was not reached", what="inconclusive")
        raise typer.Exit(INCONCLUSIVE)


def _made(environment: str, network: str | None, *, given: dict[str, Any]) -> Run:
    """Makes the run, or says in one line why it cannot be."""
    from cgratio.trainer.environments import describe
    from cgratio.trainer.run import Run

    said = {name: value for name, value in given.items() if value is not None}
    try:
        chosen = network or ("nature_cnn" if len(describe(environment).shape) == 3 else "mlp")
        settings = learning_settings(given["algorithm"], chosen) | said
        return Run(TrainerConfig(environment=environment, network=chosen, **settings))
    except TrainerError as error:
        refuse(str(error))
    except ImportError as error:  # some of envpool's families want libraries of the host
        refuse(f"{environment}: {error}")
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "memory" not in str(error):
            raise
        refuse("there is not enough memory; use fewer actors, shorter unrolls or a smaller batch")


def _record(folder: Path, run: Run) -> TrainingRecord:
    """Begins the record of a run, or says in one line why it cannot be."""
    from cgratio.results.training import TrainingRecord

    facts = {
        "created_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "config": asdict(run.config),
        "precision": run.precision,
        "frame_skip": run.facts.frame_skip,
        "host": read_host().facts.as_dict(),
        "software": software_versions(),
    }
    try:
        return TrainingRecord(folder, facts)
    except OSError as error:
        refuse(f"--out {folder}: {error.strerror or error}")


class _Printer:
    """Prints a line every few seconds and says when the wanted return is reached."""

    _EVERY_S = 5.0
    _SAVED_EVERY = 12  # lines
    _EPISODES = 100

    def __init__(self, *, until_return: float | None, record: TrainingRecord | None) -> None:
        self._wanted = until_return
        self._record = record
        self._lines = 0
        self._start = self._spoken = time.perf_counter()

    def reached(self, progress: Progress) -> bool:
        return (
            self._wanted is not None
            and progress.episodes >= self._EPISODES
            and progress.recent_return is not None
            and progress.recent_return >= self._wanted
        )

    def look(self, progress: Progress) -> bool:
        if progress.time_s - self._spoken >= self._EVERY_S:
            self._spoken = progress.time_s
            self.line(progress)
        return self.reached(progress)

    def line(self, progress: Progress) -> None:
        seconds = progress.time_s - self._start
        shown = "no episode yet" if progress.recent_return is None else f"{progress.recent_return:.1f}"
        lag = progress.lag_sum / progress.learned if progress.learned else 0.0
        if self._record:
            self._record.add(_row(progress, seconds))
            self._lines += 1
            if self._lines % self._SAVED_EVERY == 0:
                self._record.save()
        say(
            f"{seconds:6.1f} s  learned {progress.learned} samples in {progress.updates} updates, stepped "
            f"{progress.samples} ({progress.samples / seconds:.0f} samples/s)  policy lag {lag:.1f} updates  "
            f"return over the last {min(100, progress.episodes)} episodes: {shown}"
        )


def _row(progress: Progress, seconds: float) -> dict[str, Any]:
    return {
        "time_s": seconds,
        "samples": progress.samples,
        "learned": progress.learned,
        "updates": progress.updates,
        "episodes": progress.episodes,
        "return_mean": progress.recent_return,
        "policy_lag_mean": progress.lag_sum / progress.learned if progress.learned else None,
        "environment_cpu_s": progress.environment_cpu_s,
        "device_cpu_s": progress.device_cpu_s,
    }
