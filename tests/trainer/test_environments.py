import os
import threading
from collections import deque
from dataclasses import replace

import numpy as np
import pytest

from cgratio.machine.affinity import AffinityError, pin_threads, read_masks
from cgratio.trainer.acting import ActorLoop, RandomPolicy
from cgratio.trainer.bodies import MLP
from cgratio.trainer.config import TrainerConfig, TrainerError
from cgratio.trainer.environments import EndlessEnvironments, EnvPoolEnvironments, describe

CARTPOLE = TrainerConfig(environment="CartPole-v1", network="mlp", actors=8, inference_batch=8)


def loop_of(environments, policy, *, actors, recent, writer=None, clips=False):
    """An actor loop without a learner."""
    return ActorLoop(
        actors=actors,
        environments=environments,
        policy=policy,
        writer=writer,
        recent=recent,
        arrange=MLP.arrange,
        clips=clips,
        stopping=threading.Event(),
    )


def test_the_call_that_only_resets_is_no_sample():
    # Case A1: 600 step calls of 8 environments, each sixth of which resets.
    environments = EnvPoolEnvironments(CARTPOLE, max_episode_steps=5)
    policy = _AlwaysLeft(environments.facts, batch=8, seed=0)
    recent = deque(maxlen=100)
    loop = loop_of(environments, policy, actors=8, recent=recent)
    loop.turn()  # the first observations: nothing was stepped yet
    assert loop.samples == 0
    for _ in range(600):
        loop.turn()
    environments.close()
    assert loop.samples == 4000
    assert set(recent) == {5.0}
    assert loop.returns.finished == 800


class _AlwaysLeft(RandomPolicy):
    """Falls over after more than five steps, so that the time limit alone ends episodes."""

    def decide(self, outcomes):
        decisions = super().decide(outcomes)
        decisions.actions[:] = 0
        return decisions


def test_a_time_limit_truncates_and_a_fall_terminates():
    limited = EnvPoolEnvironments(CARTPOLE, max_episode_steps=3)
    falling = EnvPoolEnvironments(CARTPOLE, max_episode_steps=400)
    for environments, name in ((limited, "truncated"), (falling, "terminated")):
        seen = {"truncated": 0, "terminated": 0}
        for _ in range(100):
            outcomes = environments.receive()
            seen["truncated"] += int(outcomes.truncated.sum())
            seen["terminated"] += int(outcomes.terminated.sum())
            environments.send(np.zeros(8, np.int32), outcomes.ids)
        environments.close()
        assert seen.pop(name) > 0
        assert set(seen.values()) == {0}


def test_an_unknown_environment_is_named_with_its_neighbours():
    with pytest.raises(TrainerError, match=r"'Pong-v55' is not one of envpool's .* did you mean Pong-v5\?"):
        describe("Pong-v55")


def test_continuous_actions_are_refused():
    with pytest.raises(TrainerError, match="discrete actions only"):
        describe("Pendulum-v1")


def test_facts_of_atari():
    facts = describe("Pong-v5")
    assert facts.shape == (4, 84, 84)
    assert facts.dtype == np.uint8
    assert facts.actions == 6
    assert facts.frame_skip == 4
    assert facts.is_atari


def test_environments_are_stepped_by_threads_that_can_be_named():
    environments = EnvPoolEnvironments(CARTPOLE)
    assert environments.threads
    environments.close()


def test_endless_environments_hand_out_every_lane_in_turn_and_never_wait():
    config = TrainerConfig(environment="CartPole-v1", network="mlp", actors=6, inference_batch=4)
    environments = EndlessEnvironments(config)
    ids, fresh = [], []
    for _ in range(6):
        outcomes = environments.receive()
        ids += outcomes.ids.tolist()
        fresh += outcomes.fresh.tolist()
    assert ids == [*range(6)] * 4
    assert fresh == [True] * 6 + [False] * 18  # each lane's first row ends no transition


def test_rewards_are_learned_from_clipped_and_reported_whole():
    environments = _Rich()
    writer = _Listener()
    policy = RandomPolicy(environments.facts, batch=2, seed=0)
    recent = deque()
    loop = loop_of(environments, policy, actors=2, recent=recent, writer=writer, clips=True)
    loop.turn()
    assert writer.rewards.tolist() == [1.0, -1.0]
    assert list(recent) == [7.0, -5.0]


class _Rich(EndlessEnvironments):
    """Pays 7 and -5, and ends."""

    def __init__(self):
        super().__init__(TrainerConfig(environment="CartPole-v1", network="mlp", actors=2, inference_batch=2))

    def receive(self):
        paid = np.array([7, -5], np.float32)
        yes, no = np.ones(2, bool), np.zeros(2, bool)
        return replace(super().receive(), rewards=paid, fresh=no, terminated=yes)


class _Listener:
    def record(self, outcomes, decisions, *, clock):
        self.rewards = outcomes.rewards
        return len(outcomes.ids)


def test_an_offset_that_no_cpu_has_is_named_when_the_masks_are_read_back():
    # Case B2: envpool takes it without a word and pins its thread to a CPU that nobody named.
    with_offset = EnvPoolEnvironments(
        TrainerConfig(environment="CartPole-v1", network="mlp", actors=2, actor_threads=1),
        thread_affinity_offset=1000,
    )
    threads = with_offset.threads
    assert threads
    assert all(read_masks()[thread] <= os.sched_getaffinity(0) for thread in threads)
    with pytest.raises(AffinityError, match="CPU 1000 was not granted"):
        pin_threads(threads, frozenset({1000}))
    with_offset.close()
