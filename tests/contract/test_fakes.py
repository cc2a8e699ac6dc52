"""The fake game misbehaves exactly as it is told to."""

import dataclasses
import subprocess
import sys
import time

import numpy as np
import pytest

from rollout.api import Start, StateSpace
from rollout.errors import GameCrashed, GameStartError, GameTimeout, OutOfTurnError, StateError
from rollout.testing import FakeBridge, FakePolicy
from rollout.testing.fakes import walls


def launch(tmp_path, name="instance", width=1, **options):
    bridge = FakeBridge(**options)
    folder = tmp_path / name
    folder.mkdir(exist_ok=True)
    return bridge, bridge.launch(folder, (), width=width, timeout_s=5)


def start(bridge, index=4321, seed=0):
    return Start(bridge.spec.state_space.state(index), seed)


def steps_until_crash(bridge, game, most=400):
    game.reset([0], [start(bridge)], timeout_s=5)
    for step in range(1, most):
        try:
            game.step({"move": np.array([0])}, timeout_s=5)
        except GameCrashed:
            return step
    return None


def test_a_fault_comes_at_its_call(tmp_path):
    assert steps_until_crash(*launch(tmp_path, crash_on_step=7)) == 7


def test_faults_by_chance_differ_between_instances_and_repeat_by_seed(tmp_path):
    crash = [
        [
            steps_until_crash(*launch(tmp_path, f"{k}", crash_on_step=0.1, fault_seed=s))
            for k in "abc"
        ]
        for s in (0, 0, 1)
    ]
    assert crash[0] == crash[1] != crash[2]
    assert len(set(crash[0])) > 1


def test_a_marker_lets_a_fault_happen_once_in_all_processes(tmp_path):
    marker = tmp_path / "marker"
    options = {"crash_on_step": 2, "once_file": str(marker)}
    found = [steps_until_crash(*launch(tmp_path, **options), most=5) for _ in range(3)]
    assert found == [2, None, None]
    assert marker.exists()


def test_a_start_that_fails_once_then_works(tmp_path):
    options = {"fail_on_start": 1, "once_file": str(tmp_path / "marker")}
    with pytest.raises(GameStartError, match="on request"):
        launch(tmp_path, **options)
    launch(tmp_path, **options)[1].close()


def test_an_exit_ends_the_process_with_a_message(tmp_path):
    code = (
        "import numpy as np, pathlib\n"
        "from rollout.api import Start\n"
        "from rollout.testing import FakeBridge\n"
        "b = FakeBridge(exit_on_step=2)\n"
        f"g = b.launch(pathlib.Path({str(tmp_path)!r}), (), width=1, timeout_s=5)\n"
        "g.reset([0], [Start(b.spec.state_space.state(5), 0)], timeout_s=5)\n"
        "for _ in range(9): g.step({'move': np.array([0])}, timeout_s=5)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False
    )
    assert run.returncode == 3
    assert "ends its process on request (step call 2)" in run.stderr


def test_slow_calls_respect_their_deadline(tmp_path):
    bridge, game = launch(tmp_path, step_s=5.0)
    game.reset([0], [start(bridge)], timeout_s=5)
    began = time.monotonic()
    with pytest.raises(GameTimeout, match="takes 5 s"):
        game.step({"move": np.array([0])}, timeout_s=0.05)
    assert time.monotonic() - began < 1


def test_every_target_can_be_reached():
    for side in (4, 8, 16):
        grid = walls(side)
        free = ~grid
        assert free[:, ::2].all()
        assert free[:, :, ::2].all()  # pillars are isolated, so the rest is connected
        assert grid.any()


def test_states_that_are_not_of_the_game_are_refused(tmp_path):
    bridge, game = launch(tmp_path)
    foreign = StateSpace(bridge.spec.state_space.factors[:2]).state(3)
    with pytest.raises(StateError, match=r"missing: \['start', 'target'\]"):
        game.reset([0], [Start(foreign, 0)], timeout_s=5)
    with pytest.raises(OutOfTurnError, match="no slot was ever reset"):
        game.step({"move": np.array([0])}, timeout_s=5)
    game.close()
    with pytest.raises(GameCrashed, match="was closed"):
        game.reset([0], [start(bridge)], timeout_s=5)


def test_a_restricted_space_starts_the_same_game(tmp_path):
    bridge, game = launch(tmp_path)
    part = bridge.spec.state_space.restrict({"map": [3], "colour": ["red", "teal"]})
    state = part.state(part.size - 1)
    frame = game.reset([0], [Start(state, 0)], timeout_s=5)
    whole = bridge.spec.state_space
    again = game.reset([0], [Start(whole.state(whole.index(state.values)), 0)], timeout_s=5)
    assert (frame.observations["image"] == again.observations["image"]).all()


def test_other_weights_give_other_actions():
    bridge = FakeBridge()
    player = FakePolicy().build(bridge.spec, None, seed=0)
    starts = [start(bridge)] * 50
    memory = player.initial_memory(starts)
    rows = {
        "image": np.zeros((50, 16, 16, 3), np.uint8),
        "position": np.random.default_rng(0).random((50, 2), np.float32),
    }
    before = player.act(rows, memory, details=None, explore=True).actions["move"]
    player.load({}, 7)
    assert player.version == 7
    after = player.act(rows, memory, details=None, explore=True).actions["move"]
    assert (before != after).any()
    assert set(before) == {0, 1, 2, 3, 4}


def test_options_are_documented():
    assert all(f.metadata["doc"] for f in dataclasses.fields(FakeBridge))
