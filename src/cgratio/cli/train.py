"""`cgratio train`: run the trainer alone and print returns."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from cgratio.trainer.run import Progress

BAD_INPUT = 2


def train(
    environment: Annotated[str, typer.Argument(help="An envpool id.")] = "CartPole-v1",
    network: Annotated[
        str | None, typer.Option(help="nature_cnn or mlp; chosen by the observations if not given.")
    ] = None,
    samples: Annotated[int, typer.Option(min=1, help="Learn from at least this many samples.")] = 1_000_000,
    until_return: Annotated[
        float | None, typer.Option(help="Stop when the mean return of 100 episodes reaches this.")
    ] = None,
    actors: Annotated[int, typer.Option(min=1)] = 32,
    actor_threads: Annotated[int, typer.Option(min=1, help="Threads that step environments.")] = 1,
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    device_threads: Annotated[int, typer.Option(min=1, help="Threads of an operator on the CPU.")] = 1,
    unroll_length: Annotated[int, typer.Option(min=1)] = 20,
    learner_batch: Annotated[int, typer.Option(min=1, help="Unrolls in one update.")] = 16,
    inference_batch: Annotated[int | None, typer.Option(min=1)] = None,
    learning_rate: Annotated[float | None, typer.Option(help="By the network if not given.")] = None,
    discount: Annotated[float | None, typer.Option(min=0, max=1, help="By the network if not given.")] = None,
    entropy_cost: Annotated[float | None, typer.Option(min=0, help="By the network if not given.")] = None,
    seed: Annotated[int, typer.Option(min=0)] = 0,
) -> None:
    """Train, and print the return as it goes.

    Exits 3 when --until-return was not reached.
    """
    from cgratio.trainer.config import TrainerConfig, TrainerError, learning_settings
    from cgratio.trainer.environments import describe
    from cgratio.trainer.run import Run

    settings: dict[str, Any] = {
        "learning_rate": learning_rate,
        "discount": discount,
        "entropy_cost": entropy_cost,
    }
    given: dict[str, Any] = {name: value for name, value in settings.items() if value is not None}
    try:
        chosen = network or ("nature_cnn" if len(describe(environment).shape) == 3 else "mlp")
        run = Run(
            TrainerConfig(
                environment=environment,
                network=chosen,
                actors=actors,
                actor_threads=actor_threads,
                device=device,
                device_threads=device_threads,
                unroll_length=unroll_length,
                learner_batch=learner_batch,
                inference_batch=inference_batch,
                seed=seed,
                **(learning_settings("impala", chosen) | given),
            )
        )
    except TrainerError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(BAD_INPUT) from error
    printer = _Printer(until_return=until_return)
    last = run.run(until=printer.look, learn_samples=samples)
    run.close()
    printer.line(last)
    if until_return is not None and not printer.reached(last):
        typer.echo(f"a mean return of {until_return:g} was not reached", err=True)
        raise typer.Exit(3)


class _Printer:
    """Prints a line every few seconds and says when the wanted return is reached."""

    _EVERY_S = 5.0
    _EPISODES = 100

    def __init__(self, *, until_return: float | None) -> None:
        self._wanted = until_return
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
        typer.echo(
            f"{seconds:6.1f} s  learned {progress.learned} samples in {progress.updates} updates, stepped "
            f"{progress.samples} ({progress.samples / seconds:.0f} samples/s)  policy lag {lag:.1f} updates  "
            f"return over the last {min(100, progress.episodes)} episodes: {shown}"
        )
