"""StarBench's battles as a bridge: observations, masks, scores, tasks, and bad input."""

import dataclasses

import numpy as np
import pytest

from bridges.starbench import StarbenchBridge
from bridges.starbench.evaluators import StarbenchScore, hp_reward
from bridges.starbench.options import NO_OP, SNAPSHOT
from bridges.starbench.rules.battle import Battle
from bridges.starbench.rules.field import BATTLES
from rollout.api import ACTION, MASK, OBSERVATION, Start
from rollout.errors import ConfigError, UnknownNameError
from rollout.tasks import load_task
from rollout.testing import check_bridge, check_evaluator

pytestmark = pytest.mark.heavy

BRIDGE = StarbenchBridge()


def test_the_bridge_keeps_the_contract():
    check_bridge(StarbenchBridge(tell=True, snapshots=True), steps=40).raise_if_failed()


@pytest.mark.parametrize("view", ["ta", "dc"])
def test_pictures_keep_the_contract(view):
    pytest.importorskip("cv2")
    bridge = StarbenchBridge(view=view, width_px=160)
    checks = (
        "launch",
        "reset frame",
        "step frame",
        "same start, same frames",
        "snapshots are exact",
    )
    report = check_bridge(bridge, steps=6, width=1, only=checks)
    assert not report.names("failed"), report.table()


def test_the_evaluator_keeps_the_contract():
    check_evaluator(StarbenchScore(), BRIDGE.spec).raise_if_failed()
    check_evaluator(StarbenchScore(reward="dense"), BRIDGE.spec).raise_if_failed()


@pytest.mark.parametrize("name", BATTLES)
def test_every_battle_has_a_task(name, tmp_path):
    task = load_task(BRIDGE.spec, "starbench", name)
    assert task.state_space.size == 10_000
    instance = BRIDGE.launch(tmp_path, (), width=1, timeout_s=5)
    start = Start(task.state_space.state(17), 3)
    frame = instance.reset([0], [start], timeout_s=5)
    evaluator = task.evaluator.build(1)
    evaluator.reset([0], [start], frame)
    total, chance = 0.0, np.random.default_rng(0)
    while not frame.game_over[0]:
        legal = np.flatnonzero(frame.observations[MASK + ACTION][0])
        actions = {ACTION: np.array([chance.choice(legal)])}
        frame = instance.step(actions, timeout_s=5)
        verdict = evaluator.judge(actions, frame)
        total += float(verdict.reward[0])
    won = bool(frame.signals["won"][0])
    assert (verdict.outcome[0] == 1) == won
    if name in ("cliched", "stardevourer") or (name == "xianzhou" and won):
        assert total == pytest.approx(frame.signals["score"][0])
    instance.close()


def test_a_row_shows_the_battle_and_its_mask(tmp_path):
    bridge = StarbenchBridge(tell=True, snapshots=True)
    instance = bridge.launch(tmp_path, (), width=2, timeout_s=5)
    state = load_task(bridge.spec, "starbench", "cocolia").state_space.state(0)
    frame = instance.reset([1], [Start(state, 5)], timeout_s=5)
    battle = Battle("cocolia", 5)
    mask = frame.observations[MASK + ACTION][0]
    assert np.flatnonzero(mask).tolist() == battle.legal()
    row = frame.observations[OBSERVATION][0]
    assert row[0] == pytest.approx(3 / 7)
    assert np.isfinite(row).all()
    told = frame.details[0]
    assert "Skill points 3/7" in told["text"]
    assert len(told["legal"]) == len(battle.legal())
    again = Battle.from_snapshot(frame.observations[SNAPSHOT][0].tobytes().rstrip(b"\0"))
    assert again.view() == battle.view()
    for _ in range(9):
        frame = instance.step({ACTION: np.full(2, NO_OP)}, timeout_s=5)
    assert frame.signals["invalid"][1] == 9
    frame = instance.step({ACTION: np.full(2, NO_OP)}, timeout_s=5)
    assert frame.game_over.tolist() == [False, True]


def test_the_coherent_reward_rewards_healing():
    def of(h, change, before, mode="coherent"):
        rows = (np.full((1, 4), value) for value in (h, change, before))
        return float(hp_reward(*rows, mode)[0])

    assert of(0.8, -0.1, 0.0) == pytest.approx(-0.1)  # safe: what changed
    assert of(0.3, 0.3, -0.4) == pytest.approx(0.3)  # at risk and healed
    assert of(0.3, -0.1, -0.4) == pytest.approx(-0.2)  # at risk and neglected: h - 1/2
    # As printed, an ally at risk that was healed is punished like one that was not.
    assert of(0.3, 0.3, -0.4, "literal") == pytest.approx(-0.2)
    assert of(0.3, -0.1, -0.4, "literal") == pytest.approx(-0.1)
    assert of(0.8, -0.1, 0.0, "literal") == pytest.approx(of(0.8, -0.1, 0.0))


@pytest.mark.parametrize(
    ("options", "error", "told"),
    [
        ({"view": "structurd"}, UnknownNameError, "structured"),
        ({"windows": "enemy"}, UnknownNameError, "enemy_next"),
        ({"width_px": 650}, ConfigError, "656"),
    ],
)
def test_wrong_options_are_told_with_the_nearest(options, error, told):
    with pytest.raises(error, match=told):
        StarbenchBridge(**options)


def test_wrong_evaluator_options_are_told():
    with pytest.raises(UnknownNameError, match="coherent"):
        StarbenchScore(hp_mode="coherant")
    assert dataclasses.replace(StarbenchScore(), reward="dense").reward == "dense"
