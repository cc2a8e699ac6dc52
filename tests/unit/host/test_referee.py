"""The referee: what it may touch, and where it cuts."""

import numpy as np
import pytest

from rollout.api import Factor, Frame, Limits, Start, StateSpace, Task, Verdict
from rollout.host import Referee

SPACE = StateSpace((Factor("n", range(9)),))


class Keeper:
    """An evaluator whose verdicts are its own memory, as the seam allows."""

    requires: frozenset[str] = frozenset()

    def build(self, width):
        self.progress = np.zeros(width, np.float32)
        return self

    def reset(self, slots, starts, frame):
        self.progress[list(slots)] = 0.0

    def judge(self, actions, frame):
        self.progress += 0.25
        n = len(self.progress)
        return Verdict(np.ones(n, np.float32), self.progress, np.zeros(n, np.int8))


def frame(n):
    return Frame({}, {}, np.zeros(n, bool), np.zeros(n, bool), np.zeros(n, np.int64))


@pytest.fixture
def referee():
    return Referee(Task("t", "", SPACE, Keeper(), Limits(steps=3)), 2)


def starts(*numbers):
    return [Start(SPACE.state(n), 0, n) for n in numbers]


def test_a_reset_leaves_the_evaluators_memory_alone(referee):
    keeper = referee._evaluator
    referee.reset([0, 1], starts(0, 1), frame(2))
    referee.judge({}, frame(2))
    before = keeper.progress
    keeper.reset = lambda *_: None  # from here on, only the referee could change it
    referee.reset([0], starts(2), frame(1))
    assert before.tolist() == [0.25, 0.25]


def test_the_limit_cuts_each_slot_at_its_own_step(referee):
    referee.reset([0, 1], starts(0, 1), frame(2))
    assert referee.judge({}, frame(2)).ended == []
    referee.finish(1, "lost", 0)
    referee.reset([1], starts(2), frame(1))
    assert referee.judge({}, frame(2)).ended == []
    third = referee.judge({}, frame(2))
    assert third.ended == [0]
    assert third.truncated.tolist() == [True, False]
    result = referee.finish(0, "truncated", 0)
    assert (result.length, result.total_reward) == (3, 3.0)
    assert referee.judge({}, frame(2)).ended == [1]
