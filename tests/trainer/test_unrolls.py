"""Unrolls, against a slow and plain bookkeeping of the same stream."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cgratio.trainer.clock import StageClock
from cgratio.trainer.environments import EnvironmentFacts, Outcomes
from cgratio.trainer.unroll_queue import UnrollQueue
from cgratio.trainer.unroll_writer import UnrollWriter
from cgratio.trainer.unrolls import ClosedError, Decisions, UnrollLayout, UnrollMemory

FACTS = EnvironmentFacts(shape=(2,), dtype=np.dtype(np.float32), actions=3, frame_skip=1, is_atari=False)
DISCOUNT = 0.9
CLOCK = StageClock("transfer", "backpressure")
BATCH = 5


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
            states=self.random.normal(size=(rows, 2)).astype(np.float32),
            last_actions=self.random.integers(0, 3, rows, dtype=np.int32),
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
                "first": outcomes.fresh[row],
                "last_action": decisions.last_actions[row],
                "last_reward": outcomes.rewards[row],
                "state": decisions.states[row],
            }


def joined(layout, *, actors, spare=2 * BATCH, batch=BATCH):
    """A writer of all actors, and the queue it writes for."""
    memory = UnrollMemory(layout, actors + spare, FACTS)
    unrolls = UnrollQueue(memory, batch=batch, taken=actors)
    return UnrollWriter(memory=memory, consumer=unrolls, slots=range(actors), discount=DISCOUNT), unrolls


@settings(max_examples=80)
@given(
    seed=st.integers(0, 2**32 - 1),
    actors=st.integers(1, 5),
    stride=st.integers(1, 6),
    overlap=st.integers(0, 9),
    end_probability=st.sampled_from([0.0, 0.2, 0.6]),
)
def test_every_transition_is_taught_in_one_unroll_of_its_own_environment(
    seed, actors, stride, overlap, end_probability
):
    random = np.random.default_rng(seed)
    length = stride + overlap
    writer, unrolls = joined(
        UnrollLayout(length=length, overlap=overlap, logits=True, state_size=2), actors=actors
    )
    stream, book = Stream(random, actors=actors, end_probability=end_probability), Bookkeeper(actors)
    used = [0] * actors
    finished = 0

    def full(done):
        return max(0, (len(done) - overlap) // stride)

    for turn in range(60):
        ids = random.permutation(actors)[: random.integers(1, actors + 1)]
        outcomes, decisions = stream.outcomes(ids), stream.decisions(len(ids), turn)
        before = sum(full(done) for done in book.transitions)
        book.add(outcomes, decisions)
        samples = writer.record(outcomes, decisions, clock=CLOCK)
        assert samples == (~outcomes.fresh).sum()
        finished += sum(full(done) for done in book.transitions) - before
        while finished >= BATCH:
            finished -= BATCH
            check(unrolls.take(), book, used, length=length, stride=stride)


def check(batch, book, used, *, length, stride):
    """Compares a batch with the book, and marks in `used` how far each actor has been taught."""
    for row, actor in enumerate(batch.actors):
        expected = book.transitions[actor][used[actor] : used[actor] + length]
        used[actor] += stride
        assert len(expected) == length
        np.testing.assert_array_equal(batch.states[row], expected[0]["state"])
        for step, transition in enumerate(expected):
            np.testing.assert_array_equal(batch.observations[row, step], transition["observation"])
            np.testing.assert_array_equal(batch.logits[row, step], transition["logits"])
            assert batch.actions[row, step] == transition["action"]
            assert batch.versions[row, step] == transition["version"]
            assert batch.first[row, step] == transition["first"]
            assert batch.last_actions[row, step] == transition["last_action"]
            assert batch.last_rewards[row, step] == transition["last_reward"]
            assert batch.rewards[row, step] == pytest.approx(transition["reward"], rel=1e-6)
            assert batch.discounts[row, step] == pytest.approx(transition["discount"])
        np.testing.assert_array_equal(batch.observations[row, -1], expected[-1]["next"])


def test_a_closed_queue_wakes_whoever_waits():
    _, unrolls = joined(UnrollLayout(length=2), actors=1)
    unrolls.close()
    with pytest.raises(ClosedError):
        unrolls.take()


def test_what_no_core_reads_takes_no_memory():
    memory = UnrollMemory(UnrollLayout(length=3), 2, FACTS)
    batch = memory.gather([0, 1])
    assert memory.states is memory.first is memory.logits is None
    assert batch.states is batch.first is batch.last_actions is batch.last_rewards is batch.logits is None
