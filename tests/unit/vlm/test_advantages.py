"""Advantages against tables made by hand, and algorithms of one's own that compare episodes."""

from dataclasses import dataclass
from importlib.metadata import EntryPoint, EntryPoints

import numpy as np
import pytest

from rollout import registry
from rollout.api import PlayedEpisode, option
from rollout.config import make_config
from rollout.errors import ConfigError, ContractError
from rollout.testing import check_group_algorithm
from rollout.train.jobs import job_of
from rollout.train.language.algorithms import (
    Gigpo,
    GroupOptions,
    Grpo,
    Rloo,
    episode_weights,
    group_relative,
    leave_one_out,
    step_advantages,
)
from rollout.train.language.groups import _with_advantages, play_groups
from rollout.train.language.run import AnsweredEpisode


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (lambda returns: group_relative(returns, scale=False), [-1.0, -1.0, 2.0]),
        (
            lambda returns: group_relative(returns, scale=True),
            [-0.70710678, -0.70710678, 1.41421356],
        ),
        # Each is compared with the mean of the other two.
        (leave_one_out, [-1.5, -1.5, 3.0]),
    ],
)
def test_episodes_are_compared_with_their_group(found, expected):
    assert found(np.array([0.0, 0.0, 3.0])) == pytest.approx(expected)


def episodes(*returns, steps=2):
    rewards = [np.full(steps, total / steps) for total in returns]
    return [PlayedEpisode(each, ["a"] * steps, [1] * steps) for each in rewards]


@pytest.mark.parametrize("returns", [[5.0], [2.0, 2.0, 2.0], [0.1 + 0.2, 0.3]])
@pytest.mark.parametrize("algorithm", [Grpo(), Rloo(), Gigpo(step_weight=0.0)])
def test_what_cannot_be_compared_teaches_nothing(algorithm, returns):
    (found,) = algorithm.advantages([episodes(*returns)])
    assert np.abs(np.array(found)).max() < 1e-9


def test_steps_are_compared_with_steps_from_the_same_state():
    # Both see a, then one goes by b and the other by c; gamma = 0.5.
    rewards = [np.array([0.0, 4.0]), np.array([0.0, 0.0, 2.0])]
    states = [["a", "b"], ["a", "c", "a"]]
    # Returns to go: 2, 4 and 0.5, 1, 2; the mean of a is (2 + 0.5 + 2) / 3 = 1.5.
    found = step_advantages(rewards, states, 0.5)
    assert found[0] == pytest.approx([0.5, 0.0])
    assert found[1] == pytest.approx([-1.0, 0.0, 0.5])
    played = [PlayedEpisode(r, s, [1] * len(r)) for r, s in zip(rewards, states, strict=True)]
    # The mean return is 3: 1 and -1 for the episodes, votes of 5/2/2 and 5/2/3, steps half as much.
    (one, other) = Gigpo(gamma=0.5, step_weight=0.5, scale=False).advantages([played])[0]
    assert one == pytest.approx(np.array([1.25, 1.0]) * 5 / 4)
    assert other == pytest.approx(np.array([-1.5, -1.0, -0.75]) * 5 / 6)


def test_long_episodes_weigh_as_much_as_short_ones():
    # 1 + 3 + 0 answers in two episodes that have some: 2 for each of them.
    assert episode_weights([[1, 3, 0]])[0][:2] == pytest.approx([2.0, 2 / 3])
    assert episode_weights([[1], [3, 0]]) == [[2.0], [pytest.approx(2 / 3), 2.0]]


@dataclass(frozen=True)
class Best(GroupOptions):
    """Learns from the best episode of each group only."""

    bonus: float = option(1.0, "Advantage of its steps.", gt=0)

    def advantages(self, groups):
        found = []
        for group in groups:
            best = max(each.rewards.sum() for each in group)
            found.append(
                [[self.bonus * (each.rewards.sum() == best)] * len(each.rewards) for each in group]
            )
        return found


@dataclass(frozen=True)
class Astray:
    """Learns from something that no training offers."""

    learns_from = "books"


@pytest.fixture
def installed(monkeypatch):
    """A distribution with algorithms of its own."""
    found = [
        EntryPoint(name, f"{__name__}:{name.title()}", "gamut.algorithms")
        for name in ("best", "astray")
    ]
    points = registry._points

    def more(group):
        return EntryPoints([*points(group), *(found if group == "algorithms" else [])])

    monkeypatch.setattr(registry, "_points", more)


@pytest.mark.usefixtures("installed")
def test_an_algorithm_of_ones_own_trains_language_models():
    data = {
        "output": "x",
        "updates": 1,
        "bridge": "fake",
        "policy": {"name": "vlm", "local": {"model": "x"}},
        "algorithm": {"name": "best", "bonus": 3.0, "size": 2},
    }
    function, model = job_of(data)
    assert function is play_groups
    algorithm = make_config(model, data).algorithm.build()
    assert algorithm == Best(bonus=3.0, size=2)
    group = [AnsweredEpisode(e.rewards, e.states, [["lesson"]] * 2) for e in episodes(0.0, 1.0)]
    found = [(own.rewards.sum(), list(each)) for own, each in _with_advantages(algorithm, [group])]
    assert found == [(0.0, [0.0, 0.0]), (1.0, [3.0, 3.0])]
    with pytest.raises(ConfigError, match=r"best learns from groups, .* from fragments"):
        make_config(job_of({})[1], {**data, "env_steps": 1})


@pytest.mark.parametrize("algorithm", [Grpo(), Rloo(), Gigpo(), Best()])
def test_algorithms_keep_their_contract(algorithm):
    report = check_group_algorithm(algorithm)
    assert report.passed, report.table()


class Short(Best):
    def advantages(self, groups):
        return [each[:1] for each in super().advantages(groups)]


class Endless(Best):
    def advantages(self, groups):
        return [[[np.nan] * len(e.rewards) for e in group] for group in groups]


@pytest.mark.parametrize(
    ("algorithm", "says"),
    [
        (Short(), "lengths: expected"),
        (Endless(), "an advantage is not finite"),
        (Astray(), "learns_from: expected groups, got 'books'"),
    ],
)
def test_the_suite_finds_what_breaks_it(algorithm, says):
    assert says in check_group_algorithm(algorithm).table()


@pytest.mark.usefixtures("installed")
def test_what_an_algorithm_must_keep_to():
    group = [AnsweredEpisode(e.rewards, e.states, [["lesson"]] * 2) for e in episodes(0.0, 1.0)]
    with pytest.raises(ContractError, match="Short: expected an advantage for each step"):
        list(_with_advantages(Short(), [group]))
    with pytest.raises(ContractError, match="learns_from='books'; expected one of fragments"):
        job_of({"algorithm": "astray"})
