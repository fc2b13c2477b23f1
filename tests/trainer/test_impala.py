import threading
import time

import numpy as np
import pytest
import torch

from cgratio.results.words import Part
from cgratio.trainer import networks
from cgratio.trainer.acting import NetworkPolicy
from cgratio.trainer.clock import Allowance, ProcessorTime
from cgratio.trainer.config import LEARNING, TrainerConfig, TrainerError
from cgratio.trainer.environments import EnvironmentFacts, Outcomes, describe
from cgratio.trainer.impala import Impala
from cgratio.trainer.weights import SharedWeights

CARTPOLE = {"environment": "CartPole-v1", "network": "mlp"}


def test_what_is_reported_is_what_was_done():
    # Case A3: 7 actors x unroll 20, 1000 samples asked: whole updates of 140, so 1120.
    run = Impala(TrainerConfig(**CARTPOLE, actors=7, learner_batch=7, unroll_length=20))
    last = run.run(until=lambda _: False, learn_samples=1000)
    run.close()
    assert last.learned == 1120
    assert last.updates == 8
    assert last.samples >= 1120


@pytest.mark.parametrize("seed", [0, 1])
def test_it_learns_cartpole(seed):
    config = TrainerConfig(**CARTPOLE, **LEARNING["mlp"], actors=32, seed=seed)
    run = Impala(config)
    last = run.run(
        until=lambda now: now.episodes >= 100 and now.recent_return >= 475, learn_samples=2_000_000
    )
    run.close()
    assert last.recent_return >= 475


@pytest.mark.parametrize("part", list(Part))
def test_each_part_runs_and_counts_its_own_time(part):
    run = Impala(TrainerConfig(**CARTPOLE, part=part, actors=4))
    start = time.perf_counter()
    last = run.run(until=lambda now: now.time_s - start > 1.0)
    run.close()
    assert last.samples > 0
    assert (last.environment_cpu_s > 0) == (part != Part.DEMAND)
    assert (last.updates > 0) == (part != Part.SUPPLY)
    loop = sum(last.stages[stage] for stage in ("wait_batch", "inference", "transfer", "backpressure"))
    assert loop == pytest.approx(last.time_s - start, rel=0.1)


def test_policy_lag_is_counted():
    run = Impala(TrainerConfig(**CARTPOLE, actors=8))
    last = run.run(until=lambda _: False, learn_samples=20_000)
    run.close()
    assert 0 < last.lag_sum / last.learned < 10
    assert last.lag_max >= last.lag_sum / last.learned


def test_a_failing_learner_ends_the_run_with_its_error(monkeypatch):
    run = Impala(TrainerConfig(**CARTPOLE, actors=4))

    def fail(_batch):
        raise FloatingPointError("loss is not finite")

    monkeypatch.setattr(run._learner, "update", fail)
    with pytest.raises(FloatingPointError, match="not finite"):
        run.run(until=lambda _: False)
    run.close()


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_actor_and_learner_agree_at_lag_zero(precision):
    config = TrainerConfig(environment="Pong-v5", actors=4, precision=precision)
    facts = EnvironmentFacts(
        shape=(4, 84, 84), dtype=np.dtype(np.uint8), actions=6, frame_skip=4, is_atari=True
    )
    network = networks.build(config, facts)
    torch.nn.init.normal_(network.policy.weight, std=0.5)  # logits far apart, so that errors would show
    weights = SharedWeights(network, precision=precision)
    raw = np.random.default_rng(0).integers(0, 256, (4, 4, 84, 84), dtype=np.uint8)
    pixels = network.body.arrange(raw)
    no = np.zeros(4, bool)
    outcomes = Outcomes(
        ids=np.arange(4, dtype=np.int32),
        observations=pixels,
        rewards=np.zeros(4, np.float32),
        terminated=no,
        truncated=no,
        fresh=no,
    )
    decisions = NetworkPolicy(weights, seed=0).decide(outcomes)
    with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
        logits, values = network(torch.from_numpy(pixels))
    tolerance = 1e-5 if precision == "fp32" else 0.02
    np.testing.assert_allclose(decisions.logits, logits.detach().numpy(), atol=tolerance, rtol=tolerance)
    np.testing.assert_allclose(decisions.values, values.detach().numpy(), atol=tolerance, rtol=tolerance)


def test_actions_are_drawn_from_the_softmax():
    facts = describe("CartPole-v1")
    network = networks.build(TrainerConfig(**CARTPOLE), facts)
    with torch.no_grad():
        network.policy.weight.zero_()
        network.policy.bias.copy_(torch.tensor([0.0, np.log(3.0)]))
    policy = NetworkPolicy(SharedWeights(network, precision="fp32"), seed=1)
    no = np.zeros(4000, bool)
    outcomes = Outcomes(
        ids=np.arange(4000, dtype=np.int32),
        observations=np.zeros((4000, 4), np.float32),
        rewards=np.zeros(4000, np.float32),
        terminated=no,
        truncated=no,
        fresh=no,
    )
    assert policy.decide(outcomes).actions.mean() == pytest.approx(0.75, abs=0.03)


def test_the_same_seed_builds_the_same_network():
    facts = describe("CartPole-v1")
    one, same, other = (networks.build(TrainerConfig(**CARTPOLE, seed=seed), facts) for seed in (3, 3, 4))
    assert torch.equal(one.body.first.weight, same.body.first.weight)
    assert not torch.equal(one.body.first.weight, other.body.first.weight)


def test_a_network_that_cannot_read_the_observations_is_refused():
    with pytest.raises(TrainerError, match="nature_cnn reads images"):
        Impala(TrainerConfig(environment="CartPole-v1", network="nature_cnn"))


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"actors": 0}, "actors is 0; it must be at least 1"),
        ({"inference_batch": 99}, "between 1 and actors=16"),
        ({"sm_share": 0.0}, "above 0 and at most 1"),
        ({"device": "gpu"}, "must be cpu or cuda"),
        ({"precision": "fp8"}, "must be auto, fp32 or bf16"),
        ({"learning_rate": float("nan")}, "learning_rate is nan"),
        ({"discount": float("inf")}, "discount is inf"),
        ({"sm_share": 0.5, "device": "cuda"}, "a part of a GPU cannot be granted yet"),
    ],
)
def test_a_setting_that_no_run_could_mean_is_refused(setting, message):
    with pytest.raises(TrainerError, match=message):
        TrainerConfig(**setting)


def test_an_allowance_holds_the_device_side_to_its_share():
    # Two threads that would use all they can get, granted a quarter of one processor together.
    processor_time = ProcessorTime(frozenset())
    allowance = Allowance(processor_time, processors=0.25)
    start, used = time.perf_counter(), processor_time.device_s()
    stop = threading.Event()

    def work():
        while not stop.is_set():
            sum(range(20_000))
            allowance.settle()

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    time.sleep(2.0)
    stop.set()
    for thread in threads:
        thread.join()
    share = (processor_time.device_s() - used) / (time.perf_counter() - start)
    assert share == pytest.approx(0.25, rel=0.2)
