"""Exports of networks: what they compute, what is written beside them, and what is refused."""

import dataclasses
import functools
import importlib
import itertools
import json
import subprocess
import sys
from types import SimpleNamespace

import gamut
import numpy as np
import pytest
import torch
import yaml
from gymnasium import spaces

from policies.actor_critic import ActorCriticPolicy, QNetworkPolicy
from policies.actor_critic.network import ActorCritic
from rollout.api import sample
from rollout.api.masks import mask_spaces
from rollout.commands.export import main
from rollout.errors import ConfigError
from rollout.testing.fakes import FakeBridge
from rollout.train.checkpoint import CheckpointError, write_checkpoint
from rollout.train.export import FORMATS, export

pytestmark = pytest.mark.heavy
code = importlib.import_module("rollout.train.export.writing")

BOX = {"x": spaces.Box(-np.inf, np.inf, (3,), np.float32), "y": spaces.Box(-2, 6, (2, 2))}
MANY = spaces.Dict(
    {
        "keys": spaces.MultiBinary(3),
        "many": spaces.MultiDiscrete([2, 5], start=[1, -1]),
        "one": spaces.Discrete(3, start=-1),
        "turn": spaces.Box(-0.5, 0.7, (2,), np.float32),
        "free": spaces.Box(-np.inf, np.inf, (1,), np.float32),
    }
)
ONE = spaces.Dict({"action": spaces.Discrete(4)})
PAIR = spaces.Dict({"action": spaces.MultiDiscrete([3, 4])})
CODES = {"codes": spaces.Box(1, 5, (2, 2), np.uint8), "z": spaces.Box(0, 4, (2, 2), np.float32)}
SMALL = {"hidden": (16,)}


def masked(seen, actions):
    return {**seen, **{f"mask/{key}": each for key, each in mask_spaces(actions).items()}}


NETWORKS = {
    "masked": (masked(BOX, PAIR), PAIR, ActorCriticPolicy(hidden=(16, 8))),
    "everything": (masked(BOX, MANY), MANY, ActorCriticPolicy(**SMALL, activation="silu")),
    "squashed": (
        BOX,
        spaces.Dict({"turn": MANY["turn"]}),
        ActorCriticPolicy(**SMALL, continuous="squashed", shared=False),
    ),
    "table": (CODES, ONE, ActorCriticPolicy(**SMALL, symbols=("codes", "z"))),
    "embedding": (CODES, ONE, ActorCriticPolicy(**SMALL, symbols=("codes", "z"), embedding=4)),
    "nature": (
        {"image": spaces.Box(0, 255, (36, 36, 3), np.uint8)},
        ONE,
        ActorCriticPolicy(**SMALL, cnn_features=16),
    ),
    "impala": (
        {"image": spaces.Box(0, 255, (12, 10, 3), np.uint8), **BOX},
        ONE,
        ActorCriticPolicy(**SMALL, cnn="impala", cnn_width=0.5, cnn_features=16),
    ),
    "lstm": (
        masked(BOX, PAIR),
        PAIR,
        ActorCriticPolicy(**SMALL, memory="lstm", memory_size=8, shared=False),
    ),
    "gru": (BOX, ONE, ActorCriticPolicy(**SMALL, memory="gru", memory_size=8)),
    "values": (masked(BOX, PAIR), PAIR, QNetworkPolicy(**SMALL)),
}


def checkpoint_of(folder, name, *, bridge=None):
    """Writes a checkpoint of a network whose weights are far from those of a new one."""
    seen, actions, policy = NETWORKS[name]
    seen = spaces.Dict(seen)
    network = policy.network(seen, actions, seed=0)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(0.2 * torch.randn(parameter.shape, generator=generator))
        if name == "values":
            network.epsilon.fill_(0.1)
    spec = dataclasses.replace(
        FakeBridge().spec, observation_space=seen, action_space=actions, action_labels={}
    )
    kind = "q_network" if name == "values" else "actor_critic"
    options = {**dataclasses.asdict(policy), **policy.reading(seen, {})}
    about = {"update": 3, "env_steps": 40, "policy": {"name": kind, "options": options}}
    about |= {"bridge": bridge or {"name": "fake", "options": {}, "version": "1"}, "task": "walk"}
    reads = tuple(sorted(seen.spaces))
    weights = network.state_dict()
    return write_checkpoint(folder, about, weights=weights, optimizer={}, spec=spec, reads=reads)


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """Exports a network in a format, once for all tests."""

    @functools.cache
    def made(name, format_):
        folder = tmp_path_factory.mktemp("exported")
        return export(checkpoint_of(folder, name), format_, folder / "out")

    return made


# Their operators are those of others: of table, impala, everything, lstm and masked.
SIMILAR = {"embedding", "nature", "squashed", "gru", "values"}
EXPORTS = [
    pytest.param(
        *(name, format_),
        marks=[pytest.mark.long] if format_ == "onnx" and name in SIMILAR else [],
        id=f"{name}-{format_}",
    )
    for name in NETWORKS
    for format_ in FORMATS
]


@pytest.mark.parametrize(("name", "format_"), EXPORTS)
def test_an_export_computes_what_the_network_does(name, format_, exported):
    made = exported(name, format_)
    assert made.rows == 128
    assert made.difference < code.TOLERANCE
    assert sorted(p.name for p in made.folder.iterdir()) == sorted(
        ["README.md", "config.json", code.FILES[format_]]
    )
    about = json.loads((made.folder / "config.json").read_text())
    assert [each["name"] for each in about["inputs"] if each["role"] == "observation"] == sorted(
        NETWORKS[name][0]
    )
    assert all(each["dtype"] and isinstance(each["shape"], list) for each in about["inputs"])


def run_example(folder, more):
    """Runs the example of a card in a process that knows nothing of Gamut; returns its output."""
    example = (folder / "README.md").read_text().split("```python\n")[1].split("```")[0]
    script = f"import sys\n{example}\n{more}\nassert 'rollout' not in sys.modules"
    ran = subprocess.run(
        [sys.executable, "-c", script], cwd=folder, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


@pytest.mark.parametrize(("name", "format_"), [("lstm", "onnx"), ("everything", "torch")])
def test_the_example_of_the_card_runs_without_gamut(name, format_, exported):
    made = exported(name, format_)
    head = yaml.safe_load((made.folder / "README.md").read_text().split("---")[1])
    assert head["pipeline_tag"] == "reinforcement-learning"
    assert "license" not in head
    assert run_example(made.folder, "print(sorted(action))") == str(sorted(NETWORKS[name][1]))


@pytest.mark.parametrize("name", ["everything", "values", "lstm"])
def test_the_layout_in_the_config_explains_the_outputs(name, exported):
    made = exported(name, "torch")
    about = json.loads((made.folder / "config.json").read_text())
    network = torch.export.load(made.folder / about["file"]).module()
    rng, rows = np.random.default_rng(0), 5
    space = spaces.Dict(NETWORKS[name][0])
    seen = sample(space, rows, rng)
    given = [
        torch.from_numpy(
            seen[i["name"]]
            if i["role"] == "observation"
            else rng.normal(size=(rows, *i["shape"])).astype(np.float32)
        )
        for i in about["inputs"]
    ]
    found = dict(zip([o["name"] for o in about["outputs"]], network(*given), strict=True))
    outputs = found["outputs"].numpy()
    for part in about["layout"]:
        action = found[f"action/{part['action']}"].numpy().reshape(rows, -1)
        if part["kind"] == "choices":
            ends = part["first"] + np.cumsum([0, *part["options"]])
            best = [outputs[:, a:b].argmax(1) for a, b in itertools.pairwise(ends)]
            np.testing.assert_array_equal(np.stack(best, 1) + part["starts"], action)
        else:
            mean = outputs[:, part["mean"] : part["mean"] + part["count"]]
            wanted = part["offset"] + np.array(part["scale"]) * mean
            leaf = NETWORKS[name][1][part["action"]]
            np.testing.assert_allclose(action, wanted.clip(leaf.low, leaf.high), rtol=1e-5)


def test_the_network_of_a_player_is_plain_torch(tmp_path):
    player = gamut.load(checkpoint_of(tmp_path, "lstm"))
    network = player.network
    assert isinstance(network, torch.nn.Module)
    seen = sample(player.observation_space, 4, np.random.default_rng(0))
    tensors = {key: torch.from_numpy(array) for key, array in seen.items()}
    memory = {key: torch.zeros(4, network.memory_size) for key in network.memory_keys}
    actions, outputs, value, after = network.decide(tensors, memory)
    action, _ = player.predict(seen, deterministic=True)
    np.testing.assert_array_equal(actions["action"].numpy(), action)
    (outputs.sum() + value.sum()).backward()
    assert any(p.grad is not None and p.grad.abs().sum() > 0 for p in network.parameters())
    assert sorted(after) == ["core/c", "core/h"]


def test_a_policy_without_a_network_is_refused_by_name(tmp_path, monkeypatch):
    place = checkpoint_of(tmp_path, "gru")
    monkeypatch.setattr(code, "policy_of", lambda _: SimpleNamespace())
    with pytest.raises(ConfigError, match=r"the policy actor_critic has no network.*q_network"):
        export(place, "torch")


def test_a_network_of_ones_own_has_to_decide(tmp_path, monkeypatch):
    place = checkpoint_of(tmp_path, "gru")
    monkeypatch.setattr(code, "policy_of", lambda _: SimpleNamespace(network=torch.nn.Linear(1, 1)))
    with pytest.raises(
        ConfigError, match=r"Linear of the policy actor_critic cannot be exported.*decide"
    ):
        export(place, "torch")


def test_a_run_without_a_checkpoint_is_refused(tmp_path):
    with pytest.raises(CheckpointError):
        export(tmp_path, "torch")


def test_a_folder_with_files_is_not_overwritten(tmp_path, capsys):
    place = checkpoint_of(tmp_path, "gru")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("")
    assert main([str(place), "--torch", "--output", str(tmp_path / "out")]) == 2
    assert "exists and is not empty; name another with --output" in capsys.readouterr().err


@pytest.mark.parametrize("output", ["file/out", "n" * 300, "/proc/out", "s3://bucket/out"])
def test_an_output_that_cannot_be_made_is_an_error_of_one_line(
    output, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    place = checkpoint_of(tmp_path, "gru")
    assert main([str(place), "--torch", "--output", output]) == 2
    assert "error: " in capsys.readouterr().err
    assert not (tmp_path / "s3:").exists()


def test_an_output_may_be_a_link_to_an_empty_folder(tmp_path):
    place = checkpoint_of(tmp_path, "gru")
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "there")
    assert main([str(place), "--torch", "--output", str(tmp_path / "link")]) == 0
    assert (tmp_path / "there" / "config.json").exists()


def test_an_operator_that_onnx_does_not_have_is_named(tmp_path, monkeypatch, capsys):
    place, original = checkpoint_of(tmp_path, "gru"), ActorCritic.forward

    def forward(self, observations, memory):
        outputs, value, after = original(self, observations, memory)
        return torch.special.bessel_j0(outputs), value, after

    monkeypatch.setattr(ActorCritic, "forward", forward)
    assert main([str(place), "--onnx", "--output", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert "bessel_j0" in said
    assert "--torch" in said
    assert not (tmp_path / "out").exists()
    assert main([str(place), "--torch", "--output", str(tmp_path / "out")]) == 0


@pytest.mark.parametrize("changed", ["outputs", "action/action", "next/memory/core/h"])
def test_an_export_that_differs_is_an_error_and_leaves_nothing(changed, tmp_path, monkeypatch):
    place, original = checkpoint_of(tmp_path, "gru"), code._to_torch

    def wrong(module, *rest):
        played, at = original(module, *rest), module.outputs.index(changed)

        def other(arrays):
            found = list(played(arrays))
            found[at] = (found[at] + 1) % 4 if changed.startswith("action") else found[at] + 0.001
            return found

        return other

    monkeypatch.setattr(code, "_to_torch", wrong)
    with pytest.raises(ConfigError, match=f"the export differs from the original: {changed} by"):
        export(place, "torch", tmp_path / "out")
    assert sorted(p.name for p in tmp_path.iterdir()) == [place.name]


def test_actions_that_are_as_likely_may_be_exchanged(tmp_path):
    seen, actions, policy = NETWORKS["gru"]
    network = policy.network(spaces.Dict(seen), actions, seed=0)
    outputs = np.array([[1.0, 1.0 + 1e-6, 0.0, 0.0], [1.0, 1.1, 0.0, 0.0]], np.float32)
    wanted = {"outputs": outputs, "action/action": np.array([1, 1])}
    found = {"outputs": outputs, "action/action": np.array([0, 0])}
    assert code._without_ties(network, found, wanted)["action/action"].tolist() == [1, 0]


def test_it_is_checked_on_observations_of_its_game(tmp_path):
    from bridges.gymnasium import GymnasiumBridge

    spec = GymnasiumBridge(id="CartPole-v1").spec
    policy = ActorCriticPolicy(**SMALL)
    network = policy.network(spec.observation_space, spec.action_space, seed=0)
    options = {**dataclasses.asdict(policy), **policy.reading(spec.observation_space, {})}
    about = {"update": 1, "env_steps": 4, "policy": {"name": "actor_critic", "options": options}}
    about["bridge"] = {"name": "gymnasium", "options": {"id": "CartPole-v1"}, "version": "1"}
    place = write_checkpoint(
        tmp_path,
        about,
        weights=network.state_dict(),
        optimizer={},
        spec=spec,
        reads=("observation",),
    )
    made = export(place, "onnx", tmp_path / "out")
    assert made.source == "played from its game"
    assert float(run_example(made.folder, "print(total)")) >= 5
