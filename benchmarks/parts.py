"""One part of our trainer alone on one CPU, as a program that reports its samples.

python benchmarks/parts.py learner --network deep_resnet
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator

import numpy as np
import torch

from cgratio.trainer import networks
from cgratio.trainer.config import TrainerConfig
from cgratio.trainer.environments import EnvironmentFacts, describe
from cgratio.trainer.impala import Impala
from cgratio.trainer.learner import GradientStep
from cgratio.trainer.memory import keep_freed_memory
from cgratio.trainer.unrolls import UnrollBatch, UnrollMemory
from cgratio.trainer.weights import InferenceNetwork, SharedWeights, choose_precision
from host import cpus
from launched import Program

INFERENCE_BATCH = 32
EVERY_S = 0.25


def program(part: str, *, network: str, cpu: int) -> Program:
    """What runs this file with these settings, on that CPU."""
    command = [sys.executable, __file__, part, f"--network={network}", f"--cpu={cpu}"]
    return Program(command=command, report=r"^(\d+) samples")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=["inference", "learner"])
    parser.add_argument("--network", default="nature_cnn")
    parser.add_argument("--cpu", type=int, default=cpus()[-1])
    options = parser.parse_args()
    os.sched_setaffinity(0, {options.cpu})
    torch.set_num_threads(1)
    keep_freed_memory()  # as a run does
    config = TrainerConfig(network=options.network, actors=64, learner_batch=32)
    facts = describe(config.environment)
    algorithm = Impala(config)
    weights = _weights(config, algorithm, facts)
    part = _inference if options.part == "inference" else _learner
    samples, reported_s = 0, time.perf_counter()
    for done in part(config, algorithm, weights, networks.arranged(config, facts)):
        samples += done
        if time.perf_counter() > reported_s + EVERY_S:
            reported_s = time.perf_counter()
            print(samples, "samples", flush=True)


def _weights(config: TrainerConfig, algorithm: Impala, facts: EnvironmentFacts) -> SharedWeights:
    network = networks.build(config, facts, heads=algorithm.heads)
    example = _pixels(networks.arranged(config, facts), INFERENCE_BATCH, 1)
    precision = choose_precision(config.precision, network, example, device=networks.CPU)
    return SharedWeights(network, precision=precision)


def _inference(
    _config: TrainerConfig, _algorithm: Impala, weights: SharedWeights, facts: EnvironmentFacts
) -> Iterator[int]:
    network = InferenceNetwork(weights.network, precision=weights.precision, device=networks.CPU)
    observations = _pixels(facts, INFERENCE_BATCH, 1)
    with torch.inference_mode():
        while True:
            network(observations, None)
            yield INFERENCE_BATCH


def _learner(
    config: TrainerConfig, algorithm: Impala, weights: SharedWeights, facts: EnvironmentFacts
) -> Iterator[int]:
    update = GradientStep(config=config, algorithm=algorithm, weights=weights)
    batch = _batch(config, algorithm, facts)
    while True:
        update(batch)
        yield config.learner_batch * config.unroll_length


def _batch(config: TrainerConfig, algorithm: Impala, facts: EnvironmentFacts) -> UnrollBatch:
    """Unrolls of noise: the time of an update does not depend on what is seen."""
    memory = UnrollMemory(algorithm.layout, config.learner_batch, facts)
    random = np.random.default_rng(0)
    memory.rows[:] = random.integers(0, 256, memory.rows.shape, np.uint8)
    memory.actions[:] = random.integers(0, facts.actions, memory.actions.shape)
    memory.discounts[:] = config.discount
    return memory.gather(list(range(config.learner_batch)))


def _pixels(facts: EnvironmentFacts, *leading: int) -> torch.Tensor:
    shape = (*leading, *facts.shape)
    return torch.from_numpy(np.random.default_rng(0).integers(0, 256, shape, np.uint8))


if __name__ == "__main__":
    main()
