"""One run: environments, actor loop and learner, joined and driven until told to stop.

    environments --outcomes--> actor loop --unrolls--> learner
         ^------- actions -------'   ^---- weights -----'

The actor loop runs in the caller's thread, the learner in a thread of its own; environments step in
envpool's threads.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from cgratio.results.words import Part
from cgratio.trainer import networks
from cgratio.trainer.acting import ActorLoop, NetworkPolicy, Policy, RandomPolicy
from cgratio.trainer.clock import Allowance, ProcessorTime, monotonic
from cgratio.trainer.config import TrainerConfig, TrainerError
from cgratio.trainer.environments import (
    EndlessEnvironments,
    EnvironmentFacts,
    Environments,
    EnvPoolEnvironments,
)
from cgratio.trainer.learner import Learner
from cgratio.trainer.unrolls import ClosedError, UnrollStore
from cgratio.trainer.weights import SharedWeights, choose_precision

_PROBE_BATCH = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Cumulative counts at one moment.

    Attributes:
        time_s: monotonic clock.
        samples: transitions that ended. learned: transitions that the learner has used.
        batches: inferences. updates: of the learner.
        lag_sum, lag_max: policy lag in updates, summed over and highest of the samples learned.
        episodes: finished. recent_return: mean of the last 100 episodes, None before the first.
        environment_cpu_s, device_cpu_s: processor time of the two sides.
        stages: wall seconds by stage of actor loop and learner.
    """

    time_s: float
    samples: int
    learned: int
    batches: int
    updates: int
    lag_sum: float
    lag_max: int
    episodes: int
    recent_return: float | None
    environment_cpu_s: float
    device_cpu_s: float
    stages: dict[str, float]


class Impala:
    """One run of the trainer.

    Attributes:
        config: as asked for.
        facts: of the environment.
        environments: being stepped.
        precision: of the network's body; None where no network runs.
        network: being trained; None on the supply side.
    """

    def __init__(self, config: TrainerConfig) -> None:
        """Builds everything; all that happens before `run` is that environments reset."""
        self.config = config
        if config.device == "cuda" and config.part != Part.SUPPLY and not torch.cuda.is_available():
            raise TrainerError("device is cuda, but torch sees no GPU here; use cpu")
        self.environments: Environments
        if config.part == Part.DEMAND:
            self.environments = EndlessEnvironments(config)
        else:
            self.environments = EnvPoolEnvironments(config)
        self.facts: EnvironmentFacts = self.environments.facts
        torch.set_num_threads(max(1, config.device_threads))
        processor_time = ProcessorTime(self.environments.threads)
        self._processor_time = processor_time
        allowance = None
        if config.sm_share < 1:
            allowance = Allowance(processor_time, processors=config.sm_share * config.device_threads)

        self.precision: str | None = None
        self.network: networks.ActorCritic | None = None
        self._learner: Learner | None = None
        self._store: UnrollStore | None = None
        policy: Policy
        arrange = None
        if config.part == Part.SUPPLY:
            policy = RandomPolicy(self.facts, batch=config.batch, seed=config.seed)
        else:
            self.network = networks.build(config, self.facts)
            facts = networks.arranged(config, self.facts)
            arrange = self.network.body.arrange
            # Of one size whatever the run's batch, so that all points of a sweep choose the same.
            example = torch.from_numpy(np.zeros((_PROBE_BATCH, *facts.shape), facts.dtype))
            example = example.to(config.device)
            self.precision = choose_precision(config.precision, self.network, example)
            weights = SharedWeights(self.network, precision=self.precision)
            self._store = UnrollStore(config, facts)
            self._learner = Learner(config=config, weights=weights, store=self._store, allowance=allowance)
            policy = NetworkPolicy(weights, seed=config.seed)
        self._loop = ActorLoop(
            config=config,
            environments=self.environments,
            policy=policy,
            store=self._store,
            allowance=allowance,
            arrange=arrange,
        )
        self._failure: BaseException | None = None

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
            every_s: how often it is asked, at least.
            learn_samples: stop after the update that reaches this many samples. Updates are whole, so the
                number learned may be higher; `Progress.learned` is what was really done.

        Returns:
            The final counts.

        Raises:
            Exception: whatever the learner raised.
        """
        learner = threading.Thread(target=self._learn, args=(learn_samples,), name="learner", daemon=True)
        if self._learner:
            learner.start()
        asked = monotonic()
        try:
            while not self._failure:
                try:
                    self._loop.turn()
                except ClosedError:
                    break
                if monotonic() - asked >= every_s:
                    asked = monotonic()
                    if until(self.progress()):
                        break
        finally:
            if self._store:
                self._store.close()
            if self._learner:
                learner.join()
        if self._failure:
            raise self._failure
        return self.progress()

    def close(self) -> None:
        """Ends the environments' threads."""
        self.environments.close()

    def progress(self) -> Progress:
        """The counts so far; any thread may ask."""
        loop, learner = self._loop, self._learner
        return Progress(
            time_s=monotonic(),
            samples=loop.samples,
            learned=learner.samples if learner else 0,
            batches=loop.batches,
            updates=learner.updates if learner else 0,
            lag_sum=learner.lag_sum if learner else 0.0,
            lag_max=learner.lag_max if learner else 0,
            episodes=loop.returns.finished,
            recent_return=loop.returns.recent_mean(),
            environment_cpu_s=self._processor_time.environments_s(),
            device_cpu_s=self._processor_time.device_s(),
            stages={**loop.clock.read(), **(learner.clock.read() if learner else {})},
        )

    def _learn(self, samples: int | None) -> None:
        assert self._learner
        assert self._store
        try:
            if self.config.device == "cuda":
                torch.cuda.set_stream(torch.cuda.Stream())  # type: ignore[no-untyped-call]
            while samples is None or self._learner.samples < samples:
                self._learner.turn()
            self._store.close()
        except ClosedError:
            return
        except BaseException as error:  # noqa: BLE001 - handed to the caller's thread, whatever it is
            self._failure = error
            self._store.close()
