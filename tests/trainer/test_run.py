import os
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from cgratio.results.words import Part
from cgratio.trainer import networks
from cgratio.trainer.acting import NetworkPolicy
from cgratio.trainer.clock import Allowance, ProcessorTime
from cgratio.trainer.config import DeviceProfile, TrainerConfig, TrainerError, learning_settings
from cgratio.trainer.environments import EnvironmentFacts, Outcomes, describe
from cgratio.trainer.impala import Impala
from cgratio.trainer.networks import ActorCritic
from cgratio.trainer.run import Run
from cgratio.trainer.weights import SharedWeights

CARTPOLE = {"environment": "CartPole-v1", "network": "mlp"}


def test_what_is_reported_is_what_was_done():
    # Case A3: 7 actors x unroll 20, 1000 samples asked: whole updates of 140, so 1120.
    run = Run(TrainerConfig(**CARTPOLE, actors=7, learner_batch=7, unroll_length=20))
    last = run.run(until=lambda _: False, learn_samples=1000)
    run.close()
    assert last.learned == 1120
    assert last.updates == 8
    assert last.samples >= 1120


@pytest.mark.parametrize("seed", [0, 1])
def test_it_learns_cartpole(seed):
    config = TrainerConfig(**CARTPOLE, **learning_settings("impala", "mlp"), actors=32, seed=seed)
    run = Run(config)
    last = run.run(
        until=lambda now: now.episodes >= 100 and now.recent_return >= 475, learn_samples=2_000_000
    )
    run.close()
    assert last.recent_return >= 475


@pytest.mark.parametrize("part", list(Part))
def test_each_part_runs_and_counts_its_own_time(part):
    run = Run(TrainerConfig(**CARTPOLE, part=part, actors=4))
    start = time.perf_counter()
    last = run.run(until=lambda now: now.time_s - start > 1.0)
    run.close()
    assert last.samples > 0
    assert (last.environment_cpu_s > 0) == (part != Part.DEMAND)
    assert (last.updates > 0) == (part != Part.SUPPLY)
    loop = sum(last.stages[stage] for stage in ("wait_batch", "inference", "transfer", "backpressure"))
    assert loop == pytest.approx(last.time_s - start, rel=0.1)


def test_policy_lag_is_counted():
    run = Run(TrainerConfig(**CARTPOLE, actors=8))
    last = run.run(until=lambda _: False, learn_samples=20_000)
    run.close()
    assert 0 < last.lag_sum / last.learned < 10
    assert last.lag_max >= last.lag_sum / last.learned


def test_a_failing_learner_ends_the_run_with_its_error(monkeypatch):
    run = Run(TrainerConfig(**CARTPOLE, actors=4))

    def fail(_batch):
        raise FloatingPointError("loss is not finite")

    monkeypatch.setattr(run._learner, "_update", fail)
    fail.version = 0
    with pytest.raises(FloatingPointError, match="not finite"):
        run.run(until=lambda _: False)
    run.close()


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_actor_and_learner_agree_at_lag_zero(precision):
    config = TrainerConfig(environment="Pong-v5", actors=4, precision=precision)
    facts = EnvironmentFacts(
        shape=(4, 84, 84), dtype=np.dtype(np.uint8), actions=6, frame_skip=4, is_atari=True
    )
    network = networks.build(config, facts, heads=ActorCritic)
    torch.nn.init.normal_(network.heads.first.weight, std=0.5)  # logits far apart, so that errors would show
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
    policy = NetworkPolicy(
        weights=weights,
        algorithm=Impala(config),
        actors=range(4),
        seed=0,
        precision=precision,
        device=networks.CPU,
    )
    decisions = policy.decide(outcomes)
    with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
        logits, values, _ = network(torch.from_numpy(pixels).unsqueeze(1))
    tolerance = 1e-5 if precision == "fp32" else 0.02
    np.testing.assert_allclose(
        decisions.logits, logits[:, 0].detach().numpy(), atol=tolerance, rtol=tolerance
    )
    np.testing.assert_allclose(
        decisions.values, values[:, 0].detach().numpy(), atol=tolerance, rtol=tolerance
    )


def test_actions_are_drawn_from_the_softmax():
    facts = describe("CartPole-v1")
    config = TrainerConfig(**CARTPOLE, actors=4000)
    network = networks.build(config, facts, heads=ActorCritic)
    with torch.no_grad():
        network.heads.first.weight.zero_()
        network.heads.first.bias.copy_(torch.tensor([0.0, np.log(3.0)]))
    weights = SharedWeights(network, precision="fp32")
    policy = NetworkPolicy(
        weights=weights,
        algorithm=Impala(config),
        actors=range(4000),
        seed=1,
        precision="fp32",
        device=networks.CPU,
    )
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
    one, same, other = (
        networks.build(TrainerConfig(**CARTPOLE, seed=seed), facts, heads=ActorCritic) for seed in (3, 3, 4)
    )
    assert torch.equal(one.body.first.weight, same.body.first.weight)
    assert not torch.equal(one.body.first.weight, other.body.first.weight)


def test_a_network_that_cannot_read_the_observations_is_refused():
    with pytest.raises(TrainerError, match="nature_cnn cannot read CartPole-v1: it reads images of bytes"):
        Run(TrainerConfig(environment="CartPole-v1", network="nature_cnn"))


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"actors": 0}, "actors is 0; it must be at least 1"),
        ({"inference_batch": 99}, "between 1 and 16, the actors"),
        ({"sm_share": 0.0}, "above 0 and at most 1"),
        ({"device": "gpu"}, "must be cpu, cuda or emulated"),
        ({"precision": "fp8"}, "must be auto, fp32 or bf16"),
        ({"learning_rate": float("nan")}, "learning_rate is nan"),
        ({"discount": float("inf")}, "discount is inf"),
        ({"sm_share": 0.5, "device": "cuda"}, "a part of a GPU cannot be granted yet"),
        ({"algorithm": "ppo"}, "must be impala or r2d2"),
        ({"inference": "remote"}, "must be central or local"),
        ({"actors": 3, "actor_groups": 4}, "at least one for each of 4 groups"),
        (
            {"inference": "local", "actor_threads": 4, "inference_batch": 5},
            "between 1 and 4, the actors of the",
        ),
        ({"device": "emulated"}, "profile belongs to device=emulated"),
        ({"algorithm": "r2d2", "replay_sequences": 8}, "at least two batches, 32"),
        ({"replay_ratio": 0.0}, "replay_ratio is 0.0"),
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
            allowance.settle(stop)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    time.sleep(2.0)
    stop.set()
    for thread in threads:
        thread.join()
    share = (processor_time.device_s() - used) / (time.perf_counter() - start)
    assert share == pytest.approx(0.25, rel=0.2)


@pytest.mark.parametrize("algorithm", ["impala", "r2d2"])
@pytest.mark.parametrize("lstm", [0, 8])
@pytest.mark.parametrize("shape", [{"inference": "local", "actor_threads": 2}, {"actor_groups": 3}])
def test_every_combination_trains(algorithm, lstm, shape):
    config = TrainerConfig(
        **CARTPOLE, **shape, algorithm=algorithm, lstm=lstm, actors=8, learner_batch=4, burn_in=3
    )
    run = Run(config)
    last = run.run(until=lambda _: False, learn_samples=2_000)
    run.close()
    assert last.learned >= 2_000
    assert last.episodes > 0
    assert np.isfinite([weights.abs().sum().item() for weights in run.network.parameters()]).all()


def test_groups_share_actors_and_threads_and_no_environment():
    groups = TrainerConfig(actors=7, actor_threads=3, actor_groups=2, seed=10).by_group()
    assert [group.actors for group in groups] == [3, 4]
    assert [group.actor_threads for group in groups] == [1, 2]
    seeds = [seed for group in groups for seed in range(group.seed, group.seed + group.actors)]
    assert seeds == list(range(10, 17))  # envpool's i-th environment has seed + i


def test_local_inference_belongs_to_the_actors():
    local = Run(TrainerConfig(**CARTPOLE, actors=8, actor_threads=2, inference="local"))
    central = Run(TrainerConfig(**CARTPOLE, actors=8, actor_threads=2))
    stepping = {thread for group in local.environments for thread in group.threads}
    assert len(local.actor_threads - stepping) == 2
    assert central.actor_threads == central.environments[0].threads
    local.close()
    central.close()


@pytest.mark.parametrize(("part", "infers", "learns"), [("supply", True, False), ("demand", False, True)])
def test_the_parts_of_local_inference_divide_between_actors_and_device(part, infers, learns):
    run = Run(TrainerConfig(**CARTPOLE, part=part, inference="local", actors=4))
    start = time.perf_counter()
    last = run.run(until=lambda now: now.time_s - start > 0.5)
    run.close()
    assert all(isinstance(loop._policy, NetworkPolicy) == infers for loop in run._loops)
    assert (last.updates > 0) == learns


def test_a_learner_measured_alone_learns_from_prepared_unrolls():
    run = Run(TrainerConfig(**CARTPOLE, part="demand", inference="local", actors=8, learner_batch=4))
    start = time.perf_counter()
    last = run.run(until=lambda now: now.time_s - start > 1.0)
    run.close()
    assert last.samples == last.learned > 1000
    assert last.updates == last.learned / (4 * 20)
    assert last.environment_cpu_s < 0.3  # whoever prepared them waits


def test_the_actors_alone_write_what_they_would_in_training():
    run = Run(TrainerConfig(**CARTPOLE, part="supply", inference="local", actors=8))
    start = time.perf_counter()
    last = run.run(until=lambda now: now.time_s - start > 0.5)
    run.close()
    assert last.updates == 0
    assert run._memory.serials.sum() == pytest.approx(last.samples / 20, abs=8)


@pytest.mark.parametrize("network", ["own_parts:Natural", "own_parts:Frozen"])
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_network_of_ones_own_trains(network, precision, monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parent)
    run = Run(TrainerConfig(environment="CartPole-v1", network=network, precision=precision, actors=8))
    before = [weights.clone() for weights in run.network.body.parameters() if weights.requires_grad]
    last = run.run(until=lambda _: False, learn_samples=2_000)
    run.close()
    assert last.learned >= 2_000
    after = [weights for weights in run.network.body.parameters() if weights.requires_grad]
    assert any(not torch.equal(one, other) for one, other in zip(before, after, strict=True))


def test_a_run_that_sleeps_off_its_share_still_stops_at_once():
    profile = DeviceProfile(update_s=1000.0)
    run = Run(TrainerConfig(**CARTPOLE, device="emulated", profile=profile, actors=8, learner_batch=4))
    start = time.perf_counter()
    run.run(until=lambda now: now.time_s - start > 1.0)
    run.close()
    assert time.perf_counter() - start < 5.0


def test_more_than_fits_into_memory_is_refused_before_anything_is_made():
    config = TrainerConfig(environment="Pong-v5", actors=1_000_000, inference_batch=1)
    with pytest.raises(TrainerError, match=r"the unrolls need 55.\.\d GiB and .* of memory are free"):
        Run(config)


@pytest.mark.parametrize("environment", ["CartPole-v1", "gymnasium:CartPole-v1"])
def test_what_consumes_goes_before_what_steps_environments(environment):
    # With equal weights on shared CPUs the learner falls behind, and then CPUs idle while actors wait for it.
    run = Run(TrainerConfig(**CARTPOLE | {"environment": environment}, actors=4, actor_threads=2))
    own = os.getpriority(os.PRIO_PROCESS, 0)
    priorities = {os.getpriority(os.PRIO_PROCESS, a) for a in run.actor_threads | run.actor_processes}
    run.close()
    assert own < 19
    assert priorities == {min(19, own + 5)}
