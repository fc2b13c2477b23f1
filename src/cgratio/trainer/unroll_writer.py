"""Writes unrolls as transitions happen, for one group of actors."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cgratio.trainer.clock import StageClock
from cgratio.trainer.environments import Outcomes
from cgratio.trainer.unrolls import Consumer, Decisions, UnrollMemory


class UnrollWriter:
    """Writes the unrolls of one group of actors, from the group's own thread."""

    def __init__(self, *, memory: UnrollMemory, consumer: Consumer, slots: range, discount: float) -> None:
        """Joins the parts.

        Args:
            memory: to write to.
            consumer: of full unrolls.
            slots: the first one of each of the group's actors; their numbers are the actors'.
            discount: of a reward one step later.
        """
        self._memory = memory
        self._consumer = consumer
        self._discount = discount
        self._first_actor = slots.start
        self._slot = np.array(slots, dtype=np.int64)  # the slot that each actor writes
        self._position = np.zeros(len(slots), dtype=np.int64)  # and where in it

    def record(self, outcomes: Outcomes, decisions: Decisions, *, clock: StageClock) -> int:
        """Writes one batch: the transitions that ended, then the decisions that begin the next.

        Args:
            outcomes: what the environments returned, as the network sees it.
            decisions: what was decided on those observations.
            clock: of the caller's loop, to tell the wait for a free slot from the writing.

        Returns:
            The number of transitions that ended, which is the number of samples.
        """
        memory, length = self._memory, self._memory.layout.length
        ended = ~outcomes.fresh
        ids = outcomes.ids[ended]
        slots, positions = self._slot[ids], self._position[ids]
        truncated = outcomes.truncated[ended]
        # A time limit is not an end of the task: the cut-off return is replaced by its estimate, as the
        # policy that acted values the last observation.
        cut_off = self._discount * truncated * decisions.values[ended]
        memory.rewards[slots, positions] = outcomes.rewards[ended] + cut_off
        over = outcomes.terminated[ended] | truncated
        memory.discounts[slots, positions] = np.where(over, 0, self._discount)
        self._position[ids] += 1
        for row in np.flatnonzero(ended)[self._position[ids] == length]:
            self._finish(int(row), outcomes, decisions, clock)

        # The action that follows an episode's end only resets, so it is no decision to learn from.
        decided = np.flatnonzero(~(outcomes.terminated | outcomes.truncated))
        ids = outcomes.ids[decided]
        slots, positions = self._slot[ids], self._position[ids]
        memory.rows[slots, positions] = outcomes.observations[decided]
        memory.actions[slots, positions] = decisions.actions[decided]
        memory.versions[slots, positions] = decisions.version
        if memory.logits is not None:
            assert decisions.logits is not None
            memory.logits[slots, positions] = decisions.logits[decided]
        self._record_context(slots, positions, decided, outcomes, decisions)
        return len(truncated)

    def _record_context(
        self,
        slots: NDArray[np.int64],
        positions: NDArray[np.int64],
        rows: NDArray[np.int64],
        outcomes: Outcomes,
        decisions: Decisions,
    ) -> None:
        """Writes what a recurrent core saw besides observations."""
        memory, stride = self._memory, self._memory.layout.stride
        if memory.states is None or memory.first is None:
            return
        assert memory.last_actions is not None
        assert memory.last_rewards is not None
        assert decisions.states is not None
        assert decisions.last_actions is not None
        memory.first[slots, positions] = outcomes.fresh[rows]
        memory.last_actions[slots, positions] = decisions.last_actions[rows]
        memory.last_rewards[slots, positions] = outcomes.rewards[rows]
        starts = positions % stride == 0
        memory.states[slots[starts], positions[starts] // stride] = decisions.states[rows[starts]]

    def _finish(self, row: int, outcomes: Outcomes, decisions: Decisions, clock: StageClock) -> None:
        """Ends the unroll of one row's actor with its newest observation, and begins another."""
        memory, actor = self._memory, int(outcomes.ids[row])
        slot, length = int(self._slot[actor]), memory.layout.length
        memory.rows[slot, length] = outcomes.observations[row]
        memory.owner[slot] = self._first_actor + actor
        memory.serials[slot] += 1
        one = np.array([row])
        self._record_context(np.array([slot]), np.array([length]), one, outcomes, decisions)
        free = self._consumer.put(slot, clock=clock)
        memory.continue_in(free, after=slot)
        self._slot[actor] = free
        self._position[actor] = memory.layout.overlap
