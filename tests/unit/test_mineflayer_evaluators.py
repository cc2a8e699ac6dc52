"""Evaluators of MineLand's families: what counts, who wins, what is paid."""

import math

import numpy as np
import pytest

from bridges.mineflayer import MineflayerBridge
from bridges.mineflayer.blueprints import blueprint
from bridges.mineflayer.evaluators import (
    MinelandCombat,
    MinelandConstruction,
    MinelandCreative,
    MinelandItems,
    MinelandSurvival,
    count_of,
)
from bridges.mineflayer.stage import MinelandStage, Performance
from rollout.api import Frame, Outcome, Start
from rollout.errors import ConfigError, UnknownNameError
from rollout.testing.evaluator_checks import check_evaluator

pytestmark = pytest.mark.heavy

SPEC = MineflayerBridge().spec
RUNNING, SUCCESS, FAILURE = (int(outcome) for outcome in tuple(Outcome)[:3])


def frame(width=1, details=None, over=(), **signals):
    columns = {name: np.zeros(width, column.dtype) for name, column in SPEC.signals.items()}
    columns["targets_left"][:] = 8
    for name, values in signals.items():
        columns[name][:] = values
    ended = np.zeros(width, bool)
    ended[list(over)] = True
    no = np.zeros(width, bool)
    return Frame({}, columns, ended, no, np.zeros(width, np.int64), details)


def starts(width, **values):
    space = SPEC.state_space
    first = {factor.name: factor.values[0] for factor in space}
    state = space.state(space.index(first | values))
    return [Start(state, number) for number in range(width)]


class Judged:
    """An evaluator over frames, in the order they are shown."""

    def __init__(self, recipe, first, **values):
        self.width = len(first.game_over)
        self.evaluator = recipe.build(self.width)
        self.evaluator.reset(range(self.width), starts(self.width, **values), first)

    def see(self, seen):
        verdict = self.evaluator.judge({}, seen)
        return verdict.reward.tolist(), verdict.progress.tolist(), verdict.outcome.tolist()


def holding(*counts, item="oak_log", beside=None):
    """Details of agents that hold so many of an item, in two stacks, and something beside it."""
    return [
        {
            "inventory": {
                "name": [item, None, item, beside] + [None] * 32,
                "quantity": [count, None, 0, None if beside is None else 5] + [None] * 32,
            }
        }
        for count in counts
    ]


RECIPES = [
    MinelandItems(),
    MinelandCombat(count=4),
    MinelandCombat(success_reward=2.0, death_reward=-1.0),
    MinelandSurvival(days=0.0002),
    MinelandConstruction(),
    MinelandConstruction(blueprint=3, at_least=0.5),
    MinelandCreative(),
    MinelandStage(agents=1),
]


@pytest.mark.parametrize("recipe", RECIPES, ids=repr)
def test_the_conformance_suite_passes(recipe):
    report = check_evaluator(recipe, SPEC)
    report.raise_if_failed()


# Harvest and tech tree ---------------------------------------------------------------------------


def test_what_is_held_counts_and_new_parts_are_paid_once():
    judged = Judged(MinelandItems(count=4), frame(details=holding(1)))
    assert judged.see(frame(details=holding(2))) == ([0.25], [0.5], [RUNNING])
    assert judged.see(frame(details=holding(0))) == ([0.0], [0.0], [RUNNING])
    assert judged.see(frame(details=holding(3, beside="dirt"))) == ([0.25], [0.75], [RUNNING])
    assert judged.see(frame(details=holding(9))) == ([0.25], [1.0], [SUCCESS])
    assert judged.see(frame(details=holding(0))) == ([0.0], [1.0], [SUCCESS])


def test_only_the_36_main_slots_count():
    slots = {"name": ["dirt"] * 38, "quantity": [1] * 38}
    assert count_of({"inventory": slots}, "dirt") == 36
    assert count_of({}, "dirt") == 0


def test_a_task_may_be_solved_at_the_start():
    judged = Judged(MinelandItems(count=1), frame(details=holding(1)))
    assert judged.see(frame(details=holding(1))) == ([0.0], [1.0], [SUCCESS])


def test_worlds_add_up_what_their_agents_hold():
    recipe = MinelandItems(count=8, agents=2)
    judged = Judged(recipe, frame(4, holding(0, 0, 0, 0)))
    rewards, shares, outcomes = judged.see(frame(4, holding(3, 5, 4, 0)))
    assert shares == [1.0, 1.0, 0.5, 0.5]
    assert rewards == [1.0, 1.0, 0.5, 0.5]
    assert outcomes == [SUCCESS, SUCCESS, RUNNING, RUNNING]


def test_where_agents_compete_the_first_wins():
    recipe = MinelandItems(count=4, agents=2, competitive=True)
    judged = Judged(recipe, frame(4, holding(0, 0, 0, 0)))
    assert judged.see(frame(4, holding(3, 3, 3, 0)))[2] == [RUNNING] * 4
    _, shares, outcomes = judged.see(frame(4, holding(3, 4, 3, 0)))
    assert outcomes == [FAILURE, SUCCESS, RUNNING, RUNNING]
    assert shares == [0.75, 1.0, 0.75, 0.0]
    late = judged.see(frame(4, holding(9, 4, 3, 0)))
    assert late[2] == [FAILURE, SUCCESS, RUNNING, RUNNING]


def test_an_agent_whose_game_is_over_has_failed():
    judged = Judged(MinelandItems(count=2, agents=2), frame(2, holding(0, 0)))
    assert judged.see(frame(2, holding(0, 0), over=[0]))[2] == [FAILURE, RUNNING]
    assert judged.see(frame(2, holding(0, 2), over=[0]))[2] == [FAILURE, SUCCESS]


def test_agents_must_divide_the_width():
    with pytest.raises(ConfigError, match="width 3 is no multiple of agents=2"):
        MinelandItems(agents=2).build(3)


# Combat ------------------------------------------------------------------------------------------


def test_health_that_targets_lose_is_paid():
    judged = Judged(MinelandCombat(count=2), frame())
    assert judged.see(frame(target_damage=6)) == ([6.0], [0.0], [RUNNING])
    assert judged.see(frame(target_damage=20, target_deaths=1)) == ([14.0], [0.5], [RUNNING])
    assert judged.see(frame(target_damage=40, target_deaths=2)) == ([20.0], [1.0], [SUCCESS])
    assert judged.see(frame(target_damage=99, target_deaths=2)) == ([0.0], [1.0], [SUCCESS])


def test_bonuses_are_paid_where_they_are_asked_for():
    recipe = MinelandCombat(count=1, reward=0.5, success_reward=3.0, death_reward=-2.0)
    judged = Judged(recipe, frame())
    ended = judged.see(frame(target_damage=20, target_deaths=1, deaths=1))
    assert ended == ([10.0 + 3.0 - 2.0], [1.0], [SUCCESS])


def test_combat_is_lost_once_everyone_has_died():
    judged = Judged(MinelandCombat(agents=2), frame(4))
    assert judged.see(frame(4, deaths=[1, 0, 0, 0]))[2] == [RUNNING] * 4
    outcomes = judged.see(frame(4, deaths=[1, 1, 0, 1]))[2]
    assert outcomes == [FAILURE, FAILURE, RUNNING, RUNNING]
    outcomes = judged.see(frame(4, deaths=[1, 1, 0, 1], target_deaths=[0, 0, 1, 1]))[2]
    assert outcomes == [FAILURE, FAILURE, SUCCESS, SUCCESS]


def test_combat_is_lost_once_too_few_are_left():
    """A creeper that blew up is gone and has not died."""
    judged = Judged(MinelandCombat(count=2), frame(targets_left=3))
    assert judged.see(frame(targets_left=2))[2] == [RUNNING]
    assert judged.see(frame(targets_left=1, target_deaths=1))[2] == [RUNNING]
    assert judged.see(frame(targets_left=0, target_deaths=1))[2] == [FAILURE]


def test_targets_that_are_elsewhere_need_not_be_left():
    """The dragon is in the End: nothing of it is loaded before somebody gets there."""
    judged = Judged(MinelandCombat(target="ender_dragon", placed=False), frame(targets_left=0))
    assert judged.see(frame(targets_left=0))[2] == [RUNNING]
    assert judged.see(frame(targets_left=0, target_deaths=1))[2] == [SUCCESS]


# Survival ----------------------------------------------------------------------------------------


def test_a_world_has_survived_when_nobody_died():
    recipe = MinelandSurvival(days=0.01, agents=2)  # 240 ticks
    judged = Judged(recipe, frame(2))
    assert judged.see(frame(2, survived_ticks=[120, 120]))[1] == [0.5, 0.5]
    # One died and came back: MineLand's clock starts anew for the world.
    again = judged.see(frame(2, survived_ticks=[240, 60]))
    assert again == ([0.0, 0.0], [0.25, 0.25], [RUNNING, RUNNING])
    assert judged.see(frame(2, survived_ticks=[420, 240]))[2] == [SUCCESS, SUCCESS]


def test_without_respawn_one_death_loses_the_world():
    judged = Judged(MinelandSurvival(days=0.01, agents=2), frame(4))
    outcomes = judged.see(frame(4, survived_ticks=100, over=[1]))[2]
    assert outcomes == [FAILURE, FAILURE, RUNNING, RUNNING]


def test_where_agents_compete_each_has_its_clock():
    recipe = MinelandSurvival(days=0.01, agents=2, competitive=True)
    judged = Judged(recipe, frame(2))
    assert judged.see(frame(2, survived_ticks=[200, 100], over=[]))[1] == pytest.approx(
        [200 / 240, 100 / 240]
    )
    assert judged.see(frame(2, survived_ticks=[240, 140]))[2] == [SUCCESS, FAILURE]


def test_agents_that_never_came_do_not_stop_the_clock():
    recipe = MinelandSurvival(days=0.01, agents=2)
    evaluator = recipe.build(2)
    evaluator.reset([1], starts(1), frame(1))
    assert evaluator.judge({}, frame(2, survived_ticks=[0, 240])).outcome[1] == SUCCESS


# Construction ------------------------------------------------------------------------------------


def built(number, blocks):
    plan = sorted(blueprint(number).plan.items())[:blocks]
    return [{"built": [[x + 3, y, z - 2, name] for (x, y, z), name in plan]}]


def test_the_state_says_what_is_to_be_built():
    judged = Judged(MinelandConstruction(), frame(details=built(2, 0)), blueprint=2)
    rewards, shares, outcomes = judged.see(frame(details=built(2, 6)))
    assert (rewards, shares, outcomes) == (
        pytest.approx([0.4]),
        pytest.approx([0.4]),
        [RUNNING],
    )
    assert judged.see(frame(details=built(2, 3)))[:2] == ([0.0], pytest.approx([0.2]))
    assert judged.see(frame(details=built(2, 15)))[2] == [SUCCESS]


def test_part_of_a_blueprint_may_be_enough():
    judged = Judged(MinelandConstruction(blueprint=2, at_least=0.6), frame(details=[{}]))
    assert judged.see(frame(details=built(2, 8)))[2] == [RUNNING]
    assert judged.see(frame(details=built(2, 9)))[2] == [SUCCESS]
    assert MinelandConstruction(blueprint=2).factors == frozenset()
    assert MinelandConstruction().factors == {"blueprint"}


# Stage performances ------------------------------------------------------------------------------

SCRIPT = (("Ann", "get", "apple"), ("Ann", "chat", "Hello, Ben!"), ("Ben", "eat", "bread"))


def test_scores_are_those_of_the_paper():
    play = Performance(SCRIPT)
    assert (play.key, play.appropriateness) == (0.0, 0.0)
    play.play(("Ben", "eat", "bread"))  # too early: the longest common part is one action long
    play.play(("ann", "get", "Apple"))
    play.play(("Ann", "get", "stone"))
    play.play(("Ann", "chat", "hello ben"))
    assert play.key == pytest.approx(2 / 3)
    assert play.appropriateness == pytest.approx(2 / 4)
    play.play(("Ben", "eat", "bread"))
    assert (play.key, play.appropriateness) == (1.0, pytest.approx(3 / 5))


def test_the_longest_common_part_is_that_of_the_textbook():
    rng = np.random.default_rng(0)
    for _ in range(50):
        script = [("a", "get", str(n)) for n in rng.integers(4, size=6)]
        acts = [("a", "get", str(n)) for n in rng.integers(4, size=9)]
        play = Performance(script)
        for act in acts:
            play.play(act)
        table = np.zeros((len(acts) + 1, len(script) + 1), int)
        for i, act in enumerate(acts):
            for k, wanted in enumerate(script):
                table[i + 1, k + 1] = (
                    table[i, k] + 1 if act == wanted else max(table[i, k + 1], table[i + 1, k])
                )
        assert play.key == table[-1, -1] / 6


def test_chat_may_be_said_in_other_words():
    told = ("Ann", "chat", "Hello there, Ben")
    strict, loose = Performance(SCRIPT[1:2]), Performance(SCRIPT[1:2], likeness=0.6)
    for play in (strict, loose):
        play.play(told)
        play.play(("Ben", "chat", "Hello Ben"))  # another actor
    assert (strict.key, loose.key) == (0.0, 1.0)


def seen(name, items=(), events=()):
    return {
        "name": name,
        "inventory": {"name": [*items, None], "quantity": [1] * len(items) + [None]},
        "event": list(events),
    }


def said(who, text):
    return {"type": "chat", "username": who, "only_message": text}


def test_actions_are_read_from_what_agents_saw():
    recipe = MinelandStage(acts=SCRIPT, progress="mean")
    judged = Judged(recipe, frame(2, [seen("Ann"), seen("Ben", ["bread"])]))
    hello = said("Ann", "Hello Ben")
    # Both hear it; it was said once.
    rewards, shares, _ = judged.see(
        frame(2, [seen("Ann", ["apple"], [hello]), seen("Ben", ["bread"], [hello])])
    )
    # Within one step events go before what was picked up, so the apple comes too late.
    play = judged.evaluator.performances[0]
    assert (play.played, play.key) == (2, pytest.approx(1 / 3))
    assert shares == pytest.approx([5 / 12] * 2)
    assert rewards == pytest.approx([5 / 12] * 2)
    judged.see(frame(2, [seen("Ann", ["apple"], [hello]), seen("Ben", ["bread"])]))
    ate = {"type": "entityEat", "entity_type": "self", "entity_name": "Ben", "item": "bread"}
    others = {**ate, "entity_type": "bot"}
    outcome = judged.see(frame(2, [seen("Ann", ["apple"], [others]), seen("Ben", [], [ate])]))[2]
    assert outcome == [SUCCESS, SUCCESS]
    assert play.played == 4


def test_kills_are_those_of_the_killer():
    recipe = MinelandStage(acts=(("Ann", "combat", "zombie"),), agents=2)
    dead = {"type": "entityDead", "entity_type": "zombie", "entity_name": "zombie"}
    judged = Judged(recipe, frame(2, [seen("Ann"), seen("Ben")]))
    both = [seen("Ann", events=[dead]), seen("Ben", events=[dead])]
    assert judged.see(frame(2, both, kills=[0, 1]))[2] == [RUNNING, RUNNING]
    assert judged.see(frame(2, both, kills=[1, 1]))[2] == [SUCCESS, SUCCESS]


def test_a_new_episode_is_a_new_play():
    recipe = MinelandStage(acts=SCRIPT[:1], agents=1)
    judged = Judged(recipe, frame(1, [seen("Ann")]))
    assert judged.see(frame(1, [seen("Ann", ["apple"])]))[2] == [SUCCESS]
    judged.evaluator.reset([0], starts(1), frame(1, [seen("Ann", ["apple"])]))
    rewards, shares, outcomes = judged.see(frame(1, [seen("Ann", ["apple"])]))
    assert (rewards, shares, outcomes) == ([0.0], [0.0], [RUNNING])  # it had it from the start


# Creative, and wrong options ---------------------------------------------------------------------


def test_creative_tasks_decide_nothing():
    judged = Judged(MinelandCreative("Build a snow man."), frame(2))
    rewards, shares, outcomes = judged.see(frame(2, over=[1]))
    assert (rewards, outcomes) == ([0.0, 0.0], [RUNNING, RUNNING])
    assert all(math.isnan(share) for share in shares)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: MinelandItems(target="oak_lgo"), UnknownNameError, "Nearest: oak_log"),
        (lambda: MinelandItems(count=0), ConfigError, "a target above 0"),
        (lambda: MinelandCombat(target="zombi"), UnknownNameError, "Nearest: zombie"),
        (lambda: MinelandCombat(agents=0), ConfigError, "agents >= 1"),
        (lambda: MinelandSurvival(days=0), ConfigError, "above 0"),
        (lambda: MinelandConstruction(blueprint=14), ConfigError, "blueprint from 0 to 13"),
        (lambda: MinelandConstruction(at_least=1.1), ConfigError, "at_least up to 1"),
        (lambda: MinelandStage(script="bake"), UnknownNameError, "script 'bake'"),
        (lambda: MinelandStage(acts=(("A", "eats", "x"),)), UnknownNameError, "Nearest: eat"),
        (lambda: MinelandStage(progress="keys"), UnknownNameError, "Nearest: key"),
        (lambda: MinelandStage(likeness=2.0), ConfigError, "likeness from 0 to 1"),
    ],
)
def test_a_wrong_option_is_reported(make, error, message):
    with pytest.raises(error, match=message):
        make()
