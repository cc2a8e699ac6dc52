"""Checkpoints: what is written is found again, whole or not at all, and plays the same."""

import dataclasses
import hashlib
import json
import shutil
import sys

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
from rollout.train.ppo import Ppo, Rates
from rollout.train.ppo.learner import PpoLearner
from tests.unit.train.learning_tools import RichBridge, made_up_batch, network_of, small

pytestmark = pytest.mark.heavy

BRIDGE = RichBridge()
OPTIONS = {"hidden": [16], "columns": ["cell", "position"], "memory": "gru", "memory_size": 12}
POSITION = {
    "state_set": "abc",
    "seed": 0,
    "stride": 1,
    "offset": 0,
    "cursor": 5,
    "again": [],
    "playing": [(3, 1)],
}


def policy_of(options):
    return build_plugin("policies", "actor_critic", options)


def write(
    folder, update=7, *, bridge=BRIDGE, options=OPTIONS, network=None, optimizer=None, names=None
):
    policy = policy_of(options)
    network = network or network_of(bridge, policy, seed=3)
    about = {
        "update": update, "env_steps": 100 * update,
        "policy": names or {"name": "actor_critic", "options": options},
        "positions": {"0": POSITION}, "visits": {"state_set": "abc", "episodes": 3, "counts": ""},
        "episodes": 3, "seconds": 1.5, "lost": {"step": 1}, "abandoned": [4], "dropped_steps": 0,
    }  # fmt: skip
    return write_checkpoint(
        folder, about, weights=network.state_dict(), optimizer=optimizer or {}, spec=bridge.spec,
        reads=policy.reads(bridge.spec.observation_space),
    )  # fmt: skip


def test_everything_comes_back(tmp_path):
    bridge = FakeBridge(side=4)
    network = network_of(bridge, small())
    learner = PpoLearner(network, Ppo(batch=2, minibatch=1, epochs=1))
    batch = made_up_batch(np.random.default_rng(0), 4, 6)
    learner.learn(batch, Rates(1e-2, 0.01), np.random.default_rng(0))
    options = {"hidden": [16, 16], "columns": ["position"]}
    place = write(
        tmp_path, bridge=bridge, options=options, network=network,
        optimizer=learner.state(),
    )  # fmt: skip
    assert place.name == "00000007"
    found = find_checkpoint(place)
    assert (found.update, found.env_steps) == (7, 700)
    assert found.policy == ("actor_critic", options)
    assert found.about["positions"] == {"0": POSITION}
    assert found.observation_space == spaces.Dict(
        {"position": bridge.spec.observation_space["position"]}
    )
    assert found.action_space == bridge.spec.action_space

    # An update after the checkpoint and one after its return are the same, to the bit.
    again = network_of(bridge, small(), seed=99)
    again.load_state_dict(found.weights())
    restored = PpoLearner(again, Ppo(batch=2, minibatch=1, epochs=1, lr=1.0, adam_eps=1.0))
    restored.restore(found.optimizer())
    for which in (learner, restored):
        which.learn(batch, Rates(5e-3, 0.01), np.random.default_rng(1))
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
        with pytest.raises(CheckpointError, match=r"there is no .*; expected a folder with"):
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


def test_a_checkpoint_that_is_there_already_is_set_aside(tmp_path):
    write(tmp_path, 4)
    network = network_of(BRIDGE, policy_of(OPTIONS), seed=8)
    write(tmp_path, 4, network=network)
    weights = find_checkpoint(tmp_path).weights()
    assert torch.equal(weights["policy_head.weight"], network.policy_head.weight)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["00000004", "00000004.damaged"]


FILES = ("checkpoint.json", "weights.pt", "optimizer.pt")


def flip(file):
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)


@pytest.mark.parametrize("name", FILES)
def test_damaged_files_are_refused_when_it_is_opened(tmp_path, name):
    place = write(tmp_path)
    flip(place / name)
    with pytest.raises(CheckpointError, match=rf"{name} is damaged: "):
        find_checkpoint(place)
    (place / name).unlink()
    with pytest.raises(CheckpointError, match=rf"{name} cannot be read: No such file"):
        newest_checkpoint(tmp_path)


def test_one_named_by_its_path_plays_without_the_optimizer(tmp_path):
    place = write(tmp_path)
    (place / "optimizer.pt").unlink()
    assert find_checkpoint(place).weights().keys()
    with pytest.raises(CheckpointError, match=r"optimizer\.pt cannot be read"):
        find_checkpoint(tmp_path)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("damage", [flip, lambda file: file.unlink()], ids=["changed", "deleted"])
def test_an_older_one_is_taken_when_asked(tmp_path, name, damage):
    """Never by itself; what is damaged is kept, and is no checkpoint any more."""
    run = tmp_path / "run"
    folder = run / "checkpoints"
    for update in (1, 2, 3, 4):
        write(folder, update)
    damage(folder / "00000002" / name)
    damage(folder / "00000004" / name)
    words = r"Intact, older: 00000003, 00000001\. .*00000003.*checkpoint\.fallback=true.*--resume"
    for find in (lambda: find_checkpoint(run), lambda: newest_checkpoint(folder)):
        with pytest.raises(CheckpointError, match=rf"00000004/{name} .*{words}"):
            find()
    assert find_checkpoint(folder / "00000003").update == 3
    kept = set((folder / "00000004").iterdir())
    assert newest_checkpoint(folder, fallback=True).update == 3
    assert {p.name for p in (folder / "00000004.damaged").iterdir()} == {p.name for p in kept}
    assert find_checkpoint(run).update == 3
    prune(folder, 1)
    assert sorted(p.name for p in folder.iterdir()) == ["00000003", "00000004.damaged"]


def test_where_none_is_whole_training_does_not_begin_again(tmp_path):
    for update in (1, 2):
        flip(write(tmp_path, update) / "weights.pt")
    for fallback in (False, True):
        with pytest.raises(CheckpointError, match="No older checkpoint is intact"):
            newest_checkpoint(tmp_path, fallback=fallback)


DAMAGED = {
    "update: '7'": ({"update": "7"}, "update: .*valid integer, got '7'"),
    "update: -1": ({"update": -1}, "update: .*greater than or equal to 0"),
    "update: 2**70": ({"update": 2**70}, "update: .*less than"),
    "update: null": ({"update": None}, "update: .*got null"),
    "episodes": ({"episodes": [1]}, "episodes: "),
    "seconds": ({"seconds": float("nan")}, "seconds: .*finite"),
    "visits": ({"visits": {"state_set": "abc"}}, "visits.episodes: Field required"),
    "visits' counts": ({"visits": {"state_set": "", "episodes": 1, "counts": 3}}, "visits.counts"),
    "positions": ({"positions": {"0": {**POSITION, "again": [[1]]}}}, "positions.0.again"),
    "a position less": ({"positions": {"0": {"cursor": 1}}}, "positions.0.state_set: Field req"),
    "policy": ({"policy": "actor_critic"}, "policy: "),
    "policy's name": ({"policy": {"name": 3, "options": {}}}, "policy.name: "),
    "versions": ({"format": 9, "versions": 3}, "is damaged"),
    "lost": ({"lost": {"step": "x"}}, "lost.step: "),
    "abandoned": ({"abandoned": {}}, "abandoned: "),
    "sha256": ({"sha256": {}}, "weights.pt is damaged: .*expected one"),
    "spaces": ({"action_space": {"move": {"type": "Discrete", "n": -1}}}, "action_space|Discrete"),
    "no spaces": ({"observation_space": 3}, "observation_space: "),
    "something else": ({"task": "another"}, "text is not what was written"),
}


@pytest.mark.parametrize(("values", "said"), DAMAGED.values(), ids=DAMAGED)
def test_damaged_values_are_named(tmp_path, values, said):
    file = write(tmp_path) / "checkpoint.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **values}))
    with pytest.raises(CheckpointError, match=said) as info:
        find_checkpoint(tmp_path)
    assert str(file.parent) in str(info.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", "is damaged"),
        (b"[1]", "is damaged"),
        (b"\xff\xfe", "is damaged"),
        (b"[" * 100_000, "is damaged"),
        (b'{"update": 3}', "is damaged"),
        (b'{"format": 9, "versions": {"gamut": "7.1"}}', r"has format 9.*reads format 1.*7\.1"),
        (b'{"format": 1, "update": 3}', "env_steps: Field required"),
    ],
)
def test_a_description_that_cannot_be_read_is_refused(tmp_path, text, said):
    place = write(tmp_path)
    (place / "checkpoint.json").write_bytes(text)
    with pytest.raises(CheckpointError, match=said) as info:
        find_checkpoint(place)
    assert isinstance(info.value, InputError)
    assert str(place) in str(info.value)


def test_checkpoints_of_older_versions_are_read(tmp_path):
    """They have no digest of the description, and say less."""
    file = write(tmp_path) / "checkpoint.json"
    about = json.loads(file.read_text())
    del about["sha256"]["checkpoint.json"], about["dropped_steps"]
    file.write_text(json.dumps(about))
    assert find_checkpoint(tmp_path).update == 7


def test_checkpoints_must_be_a_folder(tmp_path):
    (tmp_path / "checkpoints").write_text("")
    with pytest.raises(CheckpointError, match="checkpoints: expected a folder of checkpoints"):
        newest_checkpoint(tmp_path / "checkpoints")


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


@pytest.mark.parametrize("name", ["callable", "checkpoint", "random", "vlm"])
def test_a_checkpoint_names_a_policy_that_can_be_trained_and_nothing_else(
    tmp_path, monkeypatch, name
):
    """Not a function of any module, not itself, and not a model at an endpoint."""
    (tmp_path / "evil_module.py").write_text("def act(observations): ...")
    monkeypatch.syspath_prepend(tmp_path)
    place = tmp_path / "00000007"
    endpoint = {"endpoint": {"url": "http://127.0.0.1:9/v1"}, "model": "theirs"}
    options = {"callable": {"function": "evil_module:act"}, "checkpoint": {"path": str(place)}}
    options["vlm"] = endpoint
    write(tmp_path, names={"name": name, "options": options.get(name, {})})
    with pytest.raises(CheckpointError, match=rf"names the policy {name}, expected one that can"):
        CheckpointPolicy(str(place)).build(BRIDGE.spec, None, seed=0)
    assert "evil_module" not in sys.modules


def test_files_of_tensors_run_no_code(tmp_path):
    """A file with a valid digest that holds anything but tensors and numbers is not opened."""
    place = write(tmp_path)
    torch.save({"weights": ActorCriticPolicy()}, place / "weights.pt")
    about = json.loads((place / "checkpoint.json").read_text())
    about["sha256"] = {
        name: hashlib.sha256((place / name).read_bytes()).hexdigest()
        for name in ("weights.pt", "optimizer.pt")
    }
    (place / "checkpoint.json").write_text(json.dumps(about))
    with pytest.raises(CheckpointError, match="holds more than tensors"):
        find_checkpoint(place).weights()
