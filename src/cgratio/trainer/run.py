"""One run: environments, actor loops and learner, joined and driven until told to stop.

    environments --outcomes--> actor loop --unrolls--> learner
         ^------- actions -------'   ^---- weights -----'

Each group of actors has a loop in a thread of its own, and so has the learner; environments step in threads
(or processes) of their own. The caller's thread only watches.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from typing import Any

import numpy as np
import torch

from cgratio.results.words import Part
from cgratio.trainer import networks
from cgratio.trainer.acting import ActorLoop, NetworkPolicy, Policy, RandomPolicy
from cgratio.trainer.algorithm import Algorithm
from cgratio.trainer.bodies import arrangement
from cgratio.trainer.clock import Allowance, ProcessorTime, monotonic
from cgratio.trainer.config import EnvironmentFailedError, TrainerConfig, TrainerError
from cgratio.trainer.emulated import EmulatedDevice, EmulatedPolicy, EmulatedUpdate
from cgratio.trainer.environments import (
    EndlessEnvironments,
    EnvironmentFacts,
    Environments,
    describe,
    make_environments,
)
from cgratio.trainer.impala import Impala
from cgratio.trainer.learner import GradientStep, Learner, Update
from cgratio.trainer.memory import keep_freed_memory, refuse_what_does_not_fit
from cgratio.trainer.progress import Progress
from cgratio.trainer.r2d2 import R2D2
from cgratio.trainer.unroll_queue import DiscardedUnrolls, PreparedUnrolls
from cgratio.trainer.unroll_writer import UnrollWriter
from cgratio.trainer.unrolls import ClosedError, Consumer, UnrollMemory
from cgratio.trainer.weights import SharedWeights, choose_precision

ALGORITHMS: dict[str, type[Impala | R2D2]] = {"impala": Impala, "r2d2": R2D2}

_PROBE_BATCH = 32
_PATIENCE_S = 15.0  # an update in flight ends sooner
_RECENT_EPISODES = 100
_MANY_SLOTS = 2_000
_NICER = 5  # a third of the weight of others: sched(7)


def _let_go_first(actors: frozenset[int]) -> None:
    """Lets what runs on the device go before the actors' threads and processes.

    Where they share CPUs there are more actor threads than learners, and with equal weights the learner gets
    less than it needs: unrolls pile up until the actors wait for it, and then it runs alone beside idle CPUs
    (docs/trainer.md). What consumes goes first, so nothing piles up. On CPUs of their own it changes
    nothing.
    """
    for actor in actors:
        with suppress(ProcessLookupError):
            os.setpriority(os.PRIO_PROCESS, actor, os.getpriority(os.PRIO_PROCESS, actor) + _NICER)


class Run:
    """One run of the trainer.

    Attributes:
        config: as asked for.
        facts: of the environment.
        environments: being stepped, by group.
        actor_threads, actor_processes: kernel ids of what belongs on the actor CPUs: threads and processes
            that step environments, and with local inference the threads that infer.
        precision: of the network's body; None where no network runs.
        network: being trained or acting; None where none is.
    """

    def __init__(self, config: TrainerConfig) -> None:
        """Builds everything; all that happens before `run` is that environments reset.

        Raises:
            TrainerError: it cannot run here.
        """
        self.config = config
        if config.device == "cuda" and config.part != Part.SUPPLY and not torch.cuda.is_available():
            raise TrainerError("device is cuda, but torch sees no GPU here; use cpu")
        self._algorithm: Algorithm = ALGORITHMS[config.algorithm](config)
        layout, slots = self._algorithm.layout, self._algorithm.slots
        if slots > _MANY_SLOTS:  # so many that making their environments takes long, or never ends
            refuse_what_does_not_fit(layout, slots=slots, facts=describe(config.environment))
        groups = config.by_group()
        make = EndlessEnvironments if config.part == Part.DEMAND else make_environments
        self.environments: list[Environments] = [make(group) for group in groups]
        self.facts: EnvironmentFacts = self.environments[0].facts
        torch.set_num_threads(max(1, config.device_threads))
        keep_freed_memory()
        self._opened, self._stopping = threading.Event(), threading.Event()
        self._device: EmulatedDevice | None = None
        if config.profile and config.part != Part.SUPPLY:
            self._device = EmulatedDevice(config.profile, share=config.sm_share, stopping=self._stopping)
        self.precision: str | None = None
        self._weights = self._make_weights() if self._infers or self._updates else None
        self.network = self._weights.network if self._weights else None
        self._memory: UnrollMemory | None = None
        self._consumer: Consumer | None = None
        if config.part != Part.SUPPLY or config.inference == "local":
            self._memory = UnrollMemory(layout, slots, self._arranged)
            self._consumer = self._make_consumer(self._memory)
        self._recent: deque[float] = deque(maxlen=_RECENT_EPISODES)
        self._loops = self._make_loops(groups)
        self._failure: BaseException | None = None
        self._learner: Learner | None = None
        self._threads = [
            self._start(self._act, loop, name=f"actors-{index}") for index, loop in enumerate(self._loops)
        ]
        threads = {thread for environments in self.environments for thread in environments.threads}
        if config.inference == "local":
            threads |= {thread.native_id for thread in self._threads if thread.native_id}
        self.actor_threads = frozenset(threads)
        self.actor_processes = frozenset(
            process for environments in self.environments for process in environments.processes
        )
        _let_go_first(self.actor_threads | self.actor_processes)
        self._processor_time = ProcessorTime(self.actor_threads, self.actor_processes)
        self._learner = self._make_learner()

    @cached_property
    def _arranged(self) -> EnvironmentFacts:
        """The facts of observations as the network sees them."""
        return networks.arranged(self.config, self.facts)

    @property
    def _infers(self) -> bool:
        """Whether a network acts."""
        alone = Part.DEMAND if self.config.inference == "local" else Part.SUPPLY
        return self._device is None and self.config.part != alone

    @property
    def _updates(self) -> bool:
        """Whether a network learns."""
        return self._device is None and self.config.part != Part.SUPPLY

    def _make_weights(self) -> SharedWeights:
        """Makes the network and measures its precisions: of the learner, and of inference."""
        config = self.config
        learns = torch.device("cuda" if config.device == "cuda" and self._updates else "cpu")
        network = networks.build(config, self.facts, heads=self._algorithm.heads, device=learns)
        # Of one size whatever the run's batch, so that all points of a sweep choose the same precision.
        pixels = np.zeros((_PROBE_BATCH, 1, *self._arranged.shape), self._arranged.dtype)
        example = torch.from_numpy(pixels)
        precision = choose_precision(config.precision, network, example, device=learns)
        self._infers_on = networks.CPU if config.inference == "local" else learns
        self.precision = precision
        if self._infers_on != learns:
            self.precision = choose_precision(config.precision, network, example, device=self._infers_on)
        return SharedWeights(network, precision=precision)

    def _make_consumer(self, memory: UnrollMemory) -> Consumer:
        config = self.config
        if config.inference == "local" and config.part == Part.SUPPLY:
            return DiscardedUnrolls()
        if config.inference == "local" and config.part == Part.DEMAND:
            return PreparedUnrolls(memory, batch=config.learner_batch, taken=config.actors)
        return self._algorithm.consumer(memory)

    def _make_loops(self, groups: list[TrainerConfig]) -> list[ActorLoop]:
        loops: list[ActorLoop] = []
        first = 0
        clips = self.config.clip_rewards
        if clips is None:
            clips = self._algorithm.clips_atari and self.facts.is_atari
        # The supply side alone needs no observations, and does not pay for arranging them.
        arrange = arrangement(self.config.network if self._memory else "mlp")
        for group, environments in zip(groups, self.environments, strict=True):
            actors = range(first, first + group.actors)
            first = actors.stop
            writer = None
            if self._memory and self._consumer:
                writer = UnrollWriter(
                    memory=self._memory,
                    consumer=self._consumer,
                    slots=actors,
                    discount=self.config.discount,
                )
            loop = ActorLoop(
                actors=group.actors,
                environments=environments,
                policy=self._make_policy(group, actors=actors),
                writer=writer,
                recent=self._recent,
                arrange=arrange,
                clips=clips,
                stopping=self._stopping,
            )
            loops.append(loop)
        return loops

    def _make_policy(self, group: TrainerConfig, *, actors: range) -> Policy:
        if self._infers:
            assert self._weights
            assert self.precision
            return NetworkPolicy(
                weights=self._weights,
                algorithm=self._algorithm,
                actors=actors,
                seed=group.seed,
                precision=self.precision,
                device=self._infers_on,
            )
        anything = RandomPolicy(
            self.facts,
            batch=group.batch,
            seed=group.seed,
            state_size=self._algorithm.layout.state_size,
            version=lambda: self._learner.updates if self._learner else 0,
        )
        if self._device:
            return EmulatedPolicy(self._device, anything)
        return anything

    def _make_learner(self) -> Learner | None:
        config, allowance = self.config, None
        if config.sm_share < 1 and config.device == "cpu":
            allowance = Allowance(self._processor_time, processors=config.sm_share * config.device_threads)
            if config.inference == "central":
                for loop in self._loops:
                    loop.allowance = allowance
        if self._consumer is None or config.part == Part.SUPPLY:
            return None
        update: Update
        if self._device:
            update = EmulatedUpdate(self._device)
        else:
            assert self._weights
            update = GradientStep(config=config, algorithm=self._algorithm, weights=self._weights)
        overlap = self._algorithm.layout.overlap
        return Learner(
            update=update,
            consumer=self._consumer,
            allowance=allowance,
            overlap=overlap,
            stopping=self._stopping,
        )

    def run(
        self,
        *,
        until: Callable[[Progress], bool],
        every_s: float = 0.1,
        learn_samples: int | None = None,
    ) -> Progress:
        """Trains until told to stop.

        Args:
            until: looks at the progress, returns True to stop.
            every_s: how often it is asked.
            learn_samples: stop after the update that reaches this many samples. Updates are whole, so the
                number learned may be higher; `Progress.learned` is what was really done.

        Returns:
            The final counts.

        Raises:
            Exception: whatever an actor loop or the learner raised.
        """
        if self._learner:
            self._threads.append(self._start(self._learn, self._learner, learn_samples, name="learner"))
        self._opened.set()
        while not self._stopping.wait(every_s):
            if until(self.progress()):
                self._stop()
        self._join()
        if self._failure:
            raise self._failure
        if stuck := [thread.name for thread in self._threads if thread.is_alive()]:
            raise EnvironmentFailedError(
                f"{', '.join(stuck)} did not end within {_PATIENCE_S:g} s: a step or an update hangs"
            )
        return self.progress()

    def close(self) -> None:
        """Ends the threads and the environments."""
        self._stop()
        self._opened.set()
        # Environments first: an actor loop may be waiting for one that never returns.
        for environments in self.environments:
            environments.close()
        self._join()

    def _join(self) -> None:
        deadline = monotonic() + _PATIENCE_S
        for thread in self._threads:
            thread.join(max(0.0, deadline - monotonic()))

    def progress(self) -> Progress:
        """The counts so far; any thread may ask."""
        loops, learner = self._loops, self._learner
        recent = list(self._recent)
        prepared = isinstance(self._consumer, PreparedUnrolls)
        clocks = [loop.clock.read() for loop in loops]
        stages = {stage: sum(clock[stage] for clock in clocks) / len(clocks) for stage in clocks[0]}
        return Progress(
            time_s=monotonic(),
            samples=learner.samples if learner and prepared else sum(loop.samples for loop in loops),
            learned=learner.samples if learner else 0,
            batches=sum(loop.batches for loop in loops),
            updates=learner.updates if learner else 0,
            lag_sum=learner.lag_sum if learner else 0.0,
            lag_max=learner.lag_max if learner else 0,
            episodes=sum(loop.returns.finished for loop in loops),
            recent_return=sum(recent) / len(recent) if recent else None,
            environment_cpu_s=self._processor_time.actors_s(),
            device_cpu_s=self._processor_time.device_s(),
            device_busy_s=self._device.busy_s() if self._device else None,
            stages=stages | (learner.clock.read() if learner else {}),
        )

    def _act(self, loop: ActorLoop) -> None:
        # Each thread has a number of its own. With local inference operators stay on this actor's CPU.
        torch.set_num_threads(1 if self.config.inference == "local" else max(1, self.config.device_threads))
        while not self._stopping.is_set():
            loop.turn()

    def _learn(self, learner: Learner, samples: int | None) -> None:
        torch.set_num_threads(max(1, self.config.device_threads))
        if self.config.device == "cuda":
            torch.cuda.set_stream(torch.cuda.Stream())  # type: ignore[no-untyped-call]
        while not self._stopping.is_set() and (samples is None or learner.samples < samples):
            learner.turn()

    def _start(self, target: Callable[..., None], *args: Any, name: str) -> threading.Thread:
        """Starts a thread that waits for `run`; when any of them ends, all do."""

        def drive() -> None:
            self._opened.wait()
            try:
                target(*args)
            except ClosedError:
                pass
            except BaseException as error:  # noqa: BLE001 - handed to the caller's thread, whatever it is
                self._failure = error
            finally:
                self._stop()

        thread = threading.Thread(target=drive, name=name, daemon=True)
        thread.start()
        return thread

    def _stop(self) -> None:
        self._stopping.set()
        if self._consumer:
            self._consumer.close()
