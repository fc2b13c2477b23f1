"""Unrolls, against a slow and plain bookkeeping of the same stream."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cgratio.trainer.clock import StageClock
from cgratio.trainer.config import TrainerConfig
from cgratio.trainer.environments import EnvironmentFacts, Outcomes
from cgratio.trainer.unrolls import ClosedError, Decisions, UnrollStore

FACTS = EnvironmentFacts(shape=(2,), dtype=np.dtype(np.float32), actions=3, frame_skip=1, is_atari=False)
DISCOUNT = 0.9
CLOCK = StageClock("transfer", "backpressure")


class Stream:
    """Environments that write their own name and time into every observation."""

    def __init__(self, random, *, actors, end_probability):
        self.random, self.actors, self.end = random, actors, end_probability
        self.time = np.zeros(actors, int)
        self.ended = np.ones(actors, bool)

    def outcomes(self, ids):
        fresh = self.ended[ids].copy()
        self.time[ids] += 1
        over = (self.random.random(len(ids)) < self.end) & ~fresh
        truncated = over & (self.random.random(len(ids)) < 0.5)
        self.ended[ids] = over
        return Outcomes(
            ids=ids.astype(np.int32),
            observations=np.stack([ids, self.time[ids]], axis=1).astype(np.float32),
            rewards=self.random.normal(size=len(ids)).astype(np.float32),
            terminated=over & ~truncated,
            truncated=truncated,
            fresh=fresh,
        )

    def decisions(self, rows, version):
        return Decisions(
            actions=self.random.integers(0, 3, rows, dtype=np.int32),
            logits=self.random.normal(size=(rows, 3)).astype(np.float32),
            values=self.random.normal(size=rows).astype(np.float32),
            version=version,
        )


class Bookkeeper:
    """What each environment's transitions were, one dictionary each."""

    def __init__(self, actors):
        self.open = [None] * actors
        self.transitions = [[] for _ in range(actors)]

    def add(self, outcomes, decisions):
        for row, actor in enumerate(outcomes.ids):
            started = self.open[actor]
            if not outcomes.fresh[row]:
                started |= {
                    "reward": outcomes.rewards[row]
                    + DISCOUNT * outcomes.truncated[row] * decisions.values[row],
                    "discount": 0.0 if outcomes.terminated[row] or outcomes.truncated[row] else DISCOUNT,
                    "next": outcomes.observations[row],
                }
                self.transitions[actor].append(started)
            self.open[actor] = {
                "observation": outcomes.observations[row],
                "action": decisions.actions[row],
                "logits": decisions.logits[row],
                "version": decisions.version,
            }


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    actors=st.integers(1, 5),
    length=st.integers(1, 6),
    end_probability=st.sampled_from([0.0, 0.2, 0.6]),
)
def test_every_transition_is_in_one_unroll_of_its_own_environment(seed, actors, length, end_probability):
    random = np.random.default_rng(seed)
    config = TrainerConfig(
        # So large a batch that the spare slots never run out, since here nobody takes while records are made.
        actors=actors,
        unroll_length=length,
        learner_batch=5,
        discount=DISCOUNT,
        inference_batch=1,
    )
    store = UnrollStore(config, FACTS)
    stream, book = Stream(random, actors=actors, end_probability=end_probability), Bookkeeper(actors)
    used = [0] * actors
    finished = 0
    for turn in range(60):
        ids = random.permutation(actors)[: random.integers(1, actors + 1)]
        outcomes, decisions = stream.outcomes(ids), stream.decisions(len(ids), turn)
        before = [len(done) // length for done in book.transitions]
        book.add(outcomes, decisions)
        samples = store.record(outcomes, decisions, clock=CLOCK)
        assert samples == (~outcomes.fresh).sum()
        finished += sum(len(done) // length for done in book.transitions) - sum(before)
        while finished >= 5:
            finished -= 5
            batch = store.take()
            for row, actor in enumerate(batch.environments):
                expected = book.transitions[actor][used[actor] : used[actor] + length]
                used[actor] += length
                assert len(expected) == length
                for step, transition in enumerate(expected):
                    np.testing.assert_array_equal(batch.observations[row, step], transition["observation"])
                    np.testing.assert_array_equal(batch.logits[row, step], transition["logits"])
                    assert batch.actions[row, step] == transition["action"]
                    assert batch.versions[row, step] == transition["version"]
                    assert batch.rewards[row, step] == pytest.approx(transition["reward"], rel=1e-6)
                    assert batch.discounts[row, step] == pytest.approx(transition["discount"])
                np.testing.assert_array_equal(batch.observations[row, -1], expected[-1]["next"])


def test_rewards_are_clipped_where_asked():
    config = TrainerConfig(actors=1, unroll_length=1, learner_batch=1, inference_batch=1, clip_rewards=True)
    store = UnrollStore(config, FACTS)
    random = np.random.default_rng(0)
    stream = Stream(random, actors=1, end_probability=0.0)
    for _ in range(2):
        outcomes = stream.outcomes(np.array([0]))
        outcomes.rewards[:] = 7.0
        store.record(outcomes, stream.decisions(1, 0), clock=CLOCK)
    assert store.take().rewards.item() == 1.0


def test_a_closed_store_wakes_whoever_waits():
    store = UnrollStore(TrainerConfig(actors=1, inference_batch=1), FACTS)
    store.close()
    with pytest.raises(ClosedError):
        store.take()
