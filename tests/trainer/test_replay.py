import threading

import numpy as np
import pytest

from cgratio.trainer.clock import StageClock
from cgratio.trainer.environments import EnvironmentFacts
from cgratio.trainer.replay import IMPORTANCE_EXPONENT, PRIORITY_EXPONENT, Replay
from cgratio.trainer.unrolls import ClosedError, UnrollLayout, UnrollMemory

FACTS = EnvironmentFacts(shape=(1,), dtype=np.dtype(np.float32), actions=2, frame_skip=1, is_atari=False)
CLOCK = StageClock("transfer", "backpressure")


def made(*, sequences=8, batch=4, ratio=0.1, least=4):
    """A replay of one writer; at this ratio it may write what it likes."""
    memory = UnrollMemory(UnrollLayout(length=1), 1 + sequences, FACTS)
    return memory, Replay(memory, batch=batch, taken=1, ratio=ratio, least=least, seed=0)


def write(memory, replay, count, *, slot=0):
    """Writes unrolls that hold 0, 1, 2, ...; returns the slot that the next one goes to."""
    for number in range(count):
        memory.rewards[slot] = number
        memory.serials[slot] += 1
        slot = replay.put(slot, clock=CLOCK)
    return slot


def learn_freely(replay):
    """From here on the learner may take what it likes, and the writer would wait."""
    replay._ratio = 1e6


def test_the_newest_are_remembered_and_the_oldest_forgotten():
    memory, replay = made()
    write(memory, replay, 12)
    learn_freely(replay)
    seen = {int(reward) for _ in range(40) for reward in replay.take().rewards[:, 0]}
    assert seen == set(range(4, 12))


def test_unrolls_are_drawn_by_priority_and_weighted_against_it():
    memory, replay = made()
    write(memory, replay, 8)
    learn_freely(replay)
    priorities = np.arange(1.0, 9.0, dtype=np.float32)
    known = {}
    while len(known) < 8:
        batch = replay.take()
        numbers = batch.rewards[:, 0].numpy().astype(int)
        known |= dict.fromkeys(numbers.tolist())
        replay.learned(batch, priorities[numbers])
    drawn = np.zeros(8)
    for _ in range(1500):
        batch = replay.take()
        numbers = batch.rewards[:, 0].numpy().astype(int)
        np.add.at(drawn, numbers, 1)
        wanted = (priorities[numbers] ** PRIORITY_EXPONENT) ** -IMPORTANCE_EXPONENT
        np.testing.assert_allclose(batch.weights, wanted / wanted.max(), rtol=1e-5)
    expected = priorities**PRIORITY_EXPONENT
    np.testing.assert_allclose(drawn / drawn.sum(), expected / expected.sum(), atol=0.02)


def test_an_unroll_forgotten_while_it_was_learned_from_passes_its_priority_to_none():
    memory, replay = made(sequences=8)
    slot = write(memory, replay, 8)
    learn_freely(replay)
    batch = replay.take()
    replay._ratio = 0.1
    write(memory, replay, 9, slot=slot)  # all eight are gone
    replay.learned(batch, np.full(4, 1000.0, np.float32))
    assert replay._priorities.max() <= 1.0


@pytest.mark.parametrize("ratio", [0.5, 1.0, 4.0])
def test_the_replay_ratio_is_held_from_both_sides(ratio):
    memory, replay = made(ratio=ratio)
    learned = 0
    stop = threading.Event()

    def learn():
        nonlocal learned
        try:
            while True:
                replay.learned(replay.take(), None)
                learned += 4
        except ClosedError:
            stop.set()

    learner = threading.Thread(target=learn)
    learner.start()
    write(memory, replay, 400)
    replay.close()
    learner.join()
    assert stop.is_set()
    assert learned == pytest.approx(ratio * 400, abs=4 * ratio + 12)
