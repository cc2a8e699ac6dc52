"""Minecraft for learners: the actions of ``compact``, the observation ``bearings``."""

import numpy as np
import pytest

from bridges.mineflayer import MineflayerBridge
from bridges.mineflayer.bridge import game_command
from bridges.mineflayer.fighter import FIGHTS, fight
from bridges.mineflayer.spaces import BEARINGS, PARTS
from rollout.api import Outcome, Start
from rollout.errors import ConfigError
from rollout.host.referee import Referee
from rollout.tasks import load_task
from rollout.testing import check_bridge

pytestmark = [pytest.mark.process, pytest.mark.slow]

PATIENT_S = 300.0


@pytest.fixture(scope="module", autouse=True)
def node():
    try:
        game_command()
    except ConfigError as error:
        pytest.skip(str(error))


@pytest.mark.long
@pytest.mark.parametrize("chosen", [(), FIGHTS], ids=["all", "some"])
def test_it_passes(chosen):
    bridge = MineflayerBridge(
        actions="compact", compact_actions=chosen, observe=(BEARINGS, "life"), view_distance=2
    )
    report = check_bridge(bridge, steps=5, width=2, timeout_s=PATIENT_S)
    report.raise_if_failed()
    assert set(report.names("skipped")) <= {"over slots are left alone"}


def test_the_fighter_beats_a_zombie_that_it_sees_where_it_is(tmp_path):
    seen = (BEARINGS, "entities", "look", "on_ground")
    task = load_task(MineflayerBridge().spec, "mineflayer", "combat_1_zombie")
    acts = {"actions": "compact", "compact_actions": FIGHTS}
    calm = {"spawning": False, "daylight": False, "view_distance": 2}
    bridge = MineflayerBridge(observe=seen, **acts, **calm)
    states = [task.state_space.state(index) for index in (3, 4)]
    starts = [Start(state, seed) for seed, state in enumerate(states)]
    game = bridge.launch(tmp_path, (), width=2, timeout_s=PATIENT_S)
    try:
        referee = Referee(task, 2)
        frame = game.reset([0, 1], starts, timeout_s=PATIENT_S)
        referee.reset([0, 1], starts, frame)
        offsets = frame.observations["entities"][:, 0, 3:6]
        near = frame.observations[BEARINGS][:, 0, PARTS.index("near")]
        assert near == pytest.approx(1 / (1 + np.linalg.norm(offsets, axis=1)), rel=1e-5)
        outcomes = np.full(2, Outcome.RUNNING)
        for _ in range(task.limits.steps):
            actions = fight(frame.observations)
            frame = game.step(actions, timeout_s=PATIENT_S)
            ruling = referee.judge(actions, frame)
            outcomes = np.where(outcomes == Outcome.RUNNING, ruling.verdict.outcome, outcomes)
            if (outcomes != Outcome.RUNNING).all():
                break
    finally:
        game.close()
    assert outcomes.tolist() == [Outcome.SUCCESS] * 2
    assert frame.signals["target_damage"].tolist() == pytest.approx([20, 20])
