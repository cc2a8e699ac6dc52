"""Checkpoints: what is written is found again, whole or not at all, and plays the same."""

import dataclasses
import hashlib
import json
import shutil

import numpy as np
import pytest
import torch
from gymnasium import spaces

from policies.actor_critic import ActorCriticPolicy
from rollout.api import Limits, Splits, Start, Task
from rollout.config import build_plugin
from rollout.errors import ConfigError, InputError
from rollout.testing import FakeBridge, FakeEvaluator, check_policy
from rollout.train.checkpoint import (
    CheckpointError,
    find_checkpoint,
    newest_checkpoint,
    prune,
    write_checkpoint,
)
from rollout.train.playing import CheckpointPolicy
from rollout.train.ppo import PpoLearner, PpoSettings, Update, make_optimizer
from tests.unit.train.learning_tools import RichBridge, made_up_batch, network_of, small

pytestmark = pytest.mark.heavy

BRIDGE = RichBridge()
OPTIONS = {"hidden": [16], "columns": ["cell", "position"], "memory": "gru", "memory_size": 12}


def policy_of(options):
    return build_plugin("policies", "actor_critic", options)


def write(folder, update=7, *, bridge=BRIDGE, options=OPTIONS, network=None, optimizer=None):
    policy = policy_of(options)
    network = network or network_of(bridge, policy, seed=3)
    about = {
        "update": update, "env_steps": 100 * update,
        "policy": {"name": "actor_critic", "options": options},
        "positions": {"0": {"cursor": 5, "playing": [[3, 1]]}},
    }  # fmt: skip
    return write_checkpoint(
        folder, about, weights=network.state_dict(), optimizer=optimizer or {}, spec=bridge.spec,
        reads=policy.reads(bridge.spec.observation_space),
    )  # fmt: skip


def test_everything_comes_back(tmp_path):
    bridge = FakeBridge(side=4)
    network = network_of(bridge, small())
    optimizer = make_optimizer(network, lr=1e-3, eps=1e-5, weight_decay=0.0)
    learner = PpoLearner(network, optimizer, PpoSettings(minibatches=2, epochs=1))
    batch = made_up_batch(np.random.default_rng(0), 4, 6)
    learner.update(batch, Update(0, 0, 1e-2))
    options = {"hidden": [16, 16], "columns": ["position"]}
    place = write(
        tmp_path, bridge=bridge, options=options, network=network,
        optimizer=optimizer.state_dict(),
    )  # fmt: skip
    assert place.name == "00000007"
    found = find_checkpoint(place)
    assert (found.update, found.env_steps) == (7, 700)
    assert found.policy == ("actor_critic", options)
    assert found.about["positions"] == {"0": {"cursor": 5, "playing": [[3, 1]]}}
    assert found.observation_space == spaces.Dict(
        {"position": bridge.spec.observation_space["position"]}
    )
    assert found.action_space == bridge.spec.action_space

    # An update after the checkpoint and one after its return are the same, to the bit.
    again = network_of(bridge, small(), seed=99)
    again.load_state_dict(found.weights())
    restored = make_optimizer(again, lr=1.0, eps=1.0, weight_decay=0.0)
    restored.load_state_dict(found.optimizer())
    for which in (network, again):
        chosen = optimizer if which is network else restored
        PpoLearner(which, chosen, PpoSettings(minibatches=2, epochs=1)).update(
            batch, Update(1, 0, 5e-3)
        )
    for key, tensor in network.state_dict().items():
        assert torch.equal(tensor, again.state_dict()[key]), key


def test_the_newest_is_found_from_wherever_one_points(tmp_path):
    run = tmp_path / "run"
    for update in (2, 10, 9):
        write(run / "checkpoints", update)
    for path in (run, run / "checkpoints", run / "checkpoints" / "00000010", str(run)):
        assert find_checkpoint(path).update == 10
    assert find_checkpoint(run / "checkpoints" / "00000002").update == 2
    assert newest_checkpoint(run / "checkpoints").update == 10
    assert newest_checkpoint(tmp_path / "nowhere") is None
    for nothing in (tmp_path / "nowhere", tmp_path):
        with pytest.raises(CheckpointError, match=r"no checkpoint in .*; expected a folder with"):
            find_checkpoint(nothing)


def test_old_ones_are_removed(tmp_path):
    for update in (1, 2, 3, 4):
        write(tmp_path, update)
    left = tmp_path / ".00000005.123.tmp"
    left.mkdir()
    (tmp_path / "notes.txt").write_text("mine")
    prune(tmp_path, 2)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["00000003", "00000004", "notes.txt"]
    prune(tmp_path, 9)
    assert newest_checkpoint(tmp_path).update == 4


class Killed(BaseException):
    """Stands for a signal that ends the process."""


@pytest.mark.parametrize("at", ["torch.save", "json.dumps", "pathlib.Path.rename"])
def test_a_write_that_is_broken_off_leaves_the_last_checkpoint(tmp_path, monkeypatch, at):
    write(tmp_path, 1)

    def broken(*args, **kwargs):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(at, broken)
        with pytest.raises(Killed):
            write(tmp_path, 2)
    assert [p.name for p in tmp_path.iterdir()] == ["00000001"]
    assert newest_checkpoint(tmp_path).update == 1


def test_what_a_kill_left_half_written_is_no_checkpoint(tmp_path):
    whole = write(tmp_path, 1)
    shutil.copytree(whole, tmp_path / ".00000002.4711.tmp")
    (tmp_path / "00000003").mkdir()  # a folder without its description
    assert find_checkpoint(tmp_path).update == 1
    write(tmp_path, 2)
    assert find_checkpoint(tmp_path).update == 2


def test_what_a_kill_left_half_removed_is_removed(tmp_path):
    (write(tmp_path, 1) / "checkpoint.json").unlink()
    (write(tmp_path, 2) / "weights.pt").unlink()
    for update in (3, 4):
        write(tmp_path, update)
    prune(tmp_path, 2)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["00000003", "00000004"]


def test_a_checkpoint_that_is_there_already_is_replaced(tmp_path):
    write(tmp_path, 4)
    network = network_of(BRIDGE, policy_of(OPTIONS), seed=8)
    write(tmp_path, 4, network=network)
    weights = find_checkpoint(tmp_path).weights()
    assert torch.equal(weights["policy_head.weight"], network.policy_head.weight)


@pytest.mark.parametrize("name", ["weights.pt", "optimizer.pt"])
def test_damaged_files_are_refused(tmp_path, name):
    place = write(tmp_path)
    read = {"weights.pt": "weights", "optimizer.pt": "optimizer"}[name]
    data = bytearray((place / name).read_bytes())
    data[len(data) // 2] ^= 1
    (place / name).write_bytes(data)
    with pytest.raises(CheckpointError, match=rf"{name} is damaged: its digest is"):
        getattr(find_checkpoint(place), read)()
    (place / name).unlink()
    with pytest.raises(CheckpointError, match=rf"{name} cannot be read: No such file"):
        getattr(find_checkpoint(place), read)()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is damaged"),
        ("[1]", "is damaged"),
        ('{"update": 3}', "is damaged"),
        ('{"format": 9, "versions": {"gamut": "7.1"}}', r"has format 9.*reads format 1.*7\.1"),
        ('{"format": 1, "update": 3}', "does not say action_space, env_steps, .*sha256"),
    ],
)
def test_a_description_that_cannot_be_read_is_refused(tmp_path, text, said):
    place = write(tmp_path)
    (place / "checkpoint.json").write_text(text)
    with pytest.raises(CheckpointError, match=said) as info:
        find_checkpoint(place)
    assert isinstance(info.value, InputError)
    assert str(place) in str(info.value)


def changed(spec, **spaces_):
    """The spec with other observation or action columns; None takes one away."""
    out = {}
    for name, changes in spaces_.items():
        own = {**getattr(spec, name).spaces, **changes}
        out[name] = spaces.Dict({k: v for k, v in own.items() if v is not None})
    return dataclasses.replace(spec, **out)


REFUSED = {
    "another observation": (
        {"observation_space": {"cell": spaces.MultiDiscrete([9, 9])}},
        r"trained with the observation 'cell' = MultiDiscrete\(\[4 4\].*is MultiDiscrete\(\[9 9\]",
    ),
    "an observation less": (
        {"observation_space": {"cell": None}}, r"observation 'cell'.*has: image, position",
    ),
    "another action": (
        {"action_space": {"move": spaces.Discrete(7)}},
        r"the action 'move' = Discrete\(5, start=1\).*is Discrete\(7\)",
    ),
    "an action less": (
        {"action_space": {"keys": None}}, r"the action 'keys'.*has: camera, move",
    ),
    "an action more": (
        {"action_space": {"say": spaces.Discrete(2)}},
        "chooses camera, keys, move, and fake as it is configured asks for say too",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("changes", "said"), REFUSED.values(), ids=REFUSED)
def test_other_spaces_are_refused_with_both_sides_named(tmp_path, changes, said):
    write(tmp_path)
    spec = changed(BRIDGE.spec, **changes)
    with pytest.raises(ConfigError, match=said):
        find_checkpoint(tmp_path).require_spaces(spec)
    with pytest.raises(ConfigError, match=said):
        CheckpointPolicy(str(tmp_path)).build(spec, None, seed=0)


def play(player, bridge, folder, steps=15, more=None):
    """Actions, log-probabilities and values of a few episodes."""
    folder.mkdir()
    states = Splits(bridge.spec.state_space).take("train", 4)
    starts = [Start(states[i], 50 + i, i, 0, states.name) for i in range(4)]
    game = bridge.launch(folder, (), width=4, timeout_s=10)
    frame = game.reset(range(4), starts, timeout_s=10)
    memory, out = player.initial_memory(starts), []
    for step in range(steps):
        seen = {**frame.observations, **(more or {})}
        decision = player.act(seen, memory, details=None, explore=step % 3 > 0)
        memory = decision.memory
        out.append({**decision.actions, **decision.extras})
        frame = game.step(decision.actions, timeout_s=10)
    game.close()
    return {k: np.stack([row[k] for row in out]) for k in out[0]}


@pytest.mark.parametrize(
    "options",
    [
        OPTIONS,
        {"hidden": [16]},
        {"hidden": [8], "columns": ["cell"], "symbols": ["cell"], "embedding": 2, "shared": False},
    ],
    ids=["gru", "all columns", "symbols"],
)
def test_a_checkpoint_plays_exactly_as_the_network_did(tmp_path, options):
    if "columns" not in options:
        options = {**options, "cnn": "impala", "cnn_width": 0.3, "cnn_features": 8}
    bridge = RichBridge()
    trained = policy_of(options).build(bridge.spec, None, seed=5)
    with torch.no_grad():
        trained.network.policy_head.weight.mul_(100)
    write(tmp_path / "c", 12, options=options, network=trained.network)
    expected = play(trained, bridge, tmp_path / "a")
    player = build_plugin("policies", "checkpoint", {"path": str(tmp_path / "c")}).build(
        bridge.spec, None, seed=77
    )
    assert player.version == 12
    for key, column in play(player, bridge, tmp_path / "b").items():
        np.testing.assert_array_equal(column, expected[key])

    # A game that shows more than it did is played the same.
    extra = {
        "chart": spaces.Box(0, 255, (64, 64, 3), np.uint8),
        "privileged_goal": spaces.Discrete(3),
    }
    richer = changed(bridge.spec, observation_space=extra)
    player = CheckpointPolicy(str(tmp_path / "c")).build(richer, None, seed=77)
    more = {"chart": np.ones((4, 64, 64, 3), np.uint8), "privileged_goal": np.zeros(4, np.int64)}
    for key, column in play(player, bridge, tmp_path / "d", more=more).items():
        np.testing.assert_array_equal(column, expected[key])


CONFORMING = {
    "mlp": {"hidden": [16], "columns": ["cell", "position"]},
    "cnn": {"hidden": [16], "cnn": "impala", "cnn_width": 0.3, "cnn_features": 8},
    "gru": OPTIONS,
    "lstm": {**OPTIONS, "memory": "lstm", "shared": False},
    "embedding": {"hidden": [16], "columns": ["cell"], "embedding": 3},
}


@pytest.mark.parametrize("options", CONFORMING.values(), ids=CONFORMING)
def test_actor_critics_and_checkpoints_keep_the_contract_of_policies(tmp_path, options):
    task = Task("t", "", BRIDGE.spec.state_space, FakeEvaluator(), Limits(10))
    recipe = policy_of(options)
    network = recipe.network(BRIDGE.spec.observation_space, BRIDGE.spec.action_space, seed=0)
    with torch.no_grad():  # no two choices so close that the order of a sum decides
        network.policy_head.weight.mul_(100)
    write(tmp_path, options=options, network=network)
    for policy in (recipe, CheckpointPolicy(str(tmp_path))):
        report = check_policy(policy, BRIDGE.spec, task)
        report.raise_if_failed()
        assert not report.names("skipped")


def test_a_checkpoint_must_be_named():
    with pytest.raises(ConfigError, match="path must name a checkpoint or a run directory"):
        CheckpointPolicy()


def test_files_of_tensors_run_no_code(tmp_path):
    """A file with a valid digest that holds anything but tensors and numbers is not opened."""
    place = write(tmp_path)
    torch.save({"weights": ActorCriticPolicy()}, place / "weights.pt")
    about = json.loads((place / "checkpoint.json").read_text())
    about["sha256"]["weights.pt"] = hashlib.sha256((place / "weights.pt").read_bytes()).hexdigest()
    (place / "checkpoint.json").write_text(json.dumps(about))
    with pytest.raises(CheckpointError, match="holds more than tensors"):
        find_checkpoint(place).weights()
