"""How a network reads observations is decided once: checkpoints keep it, old ones too."""

import dataclasses
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from gymnasium import spaces

from rollout.config import PolicyConfig
from rollout.errors import ConfigError
from rollout.testing.fakes import FakeBridge
from rollout.train.checkpoint import any_checkpoint, find_checkpoint, write_checkpoint
from rollout.train.config import TrainConfig
from rollout.train.plan import TrainPlan, check_others
from rollout.train.playing import CheckpointPolicy
from rollout.train.reading import decided

pytestmark = pytest.mark.heavy

BEFORE = Path(__file__).parent / "before_kinds"
"""A checkpoint of version 0.1, which keeps no kinds, and what its network did (acts.npz)."""

CODES = spaces.Dict(
    {
        "grid": spaces.Box(0, 10, (9, 9), np.uint8),
        "view": spaces.Box(0, 255, (8, 8, 3), np.uint8),
        "speed": spaces.Box(-1, 1, (2,), np.float32),
    }
)
OPTIONS = {"hidden": [4], "cnn": "impala", "cnn_width": 0.2, "cnn_features": 2}
KINDS = {"symbols": ["grid"], "pictures": ["view"], "numbers": ["speed"]}


def spec_of(observation_space):
    return dataclasses.replace(FakeBridge().spec, observation_space=observation_space)


def written(folder, options, space=CODES, seed=3):
    """Writes a checkpoint of an actor_critic; returns its network."""
    recipe, spec = PolicyConfig(name="actor_critic", **options).build(), spec_of(space)
    network = recipe.network(space, spec.action_space, seed=seed)
    about = {"update": 7, "env_steps": 0, "policy": {"name": "actor_critic", "options": options}}
    write_checkpoint(
        folder, about, weights=network.state_dict(), optimizer={}, spec=spec,
        reads=recipe.reads(space),
    )  # fmt: skip
    return network


@pytest.fixture
def other_rules(monkeypatch):
    """Makes every column numbers, as a later version might."""

    def change():
        monkeypatch.setattr("policies.actor_critic.columns.kind_of", lambda leaf: "numbers")

    return change


def test_an_old_checkpoint_reads_its_columns_as_it_did():
    found = find_checkpoint(BEFORE)
    player = CheckpointPolicy(str(BEFORE)).build(spec_of(found.observation_space), None, seed=0)
    with np.load(BEFORE / "acts.npz") as file:
        acts = dict(file)
    seen = {k: torch.from_numpy(acts[f"observation/{k}"]) for k in found.observation_space}
    with torch.no_grad():
        logits, values, _ = player.network(seen, {})
    torch.testing.assert_close(logits, torch.from_numpy(acts["logits"]))
    torch.testing.assert_close(values, torch.from_numpy(acts["value"]))


def test_the_options_of_a_decided_policy_say_how_every_column_is_read(other_rules):
    policy = decided(PolicyConfig(name="actor_critic", **OPTIONS), CODES)
    assert {key: policy.options[key] for key in KINDS} == KINDS
    other_rules()
    assert decided(policy, CODES) == policy


def test_a_checkpoint_with_kinds_is_not_read_by_other_rules(tmp_path, other_rules):
    policy = decided(PolicyConfig(name="actor_critic", **OPTIONS), CODES)
    network = written(tmp_path, policy.options)
    other_rules()
    player = CheckpointPolicy(str(tmp_path / "00000007")).build(spec_of(CODES), None, seed=0)
    rng = np.random.default_rng(0)
    seen = {
        "grid": torch.from_numpy(rng.integers(0, 11, (3, 9, 9)).astype(np.uint8)),
        "view": torch.from_numpy(rng.integers(0, 256, (3, 8, 8, 3)).astype(np.uint8)),
        "speed": torch.from_numpy(rng.random((3, 2), np.float32)),
    }
    with torch.no_grad():
        assert torch.equal(player.network(seen, {})[0], network.eval()(seen, {})[0])


def plan_config(folder="/nowhere", **keys):
    policy = {"name": "actor_critic", **OPTIONS, **keys.pop("policy", {})}
    keys = {"bridge": {"name": "fake"}, "output": str(folder), "policy": policy, **keys}
    return TrainConfig.model_validate({**keys, "env_steps": 64, "fragment": {"steps": 32}})


@pytest.mark.parametrize("options", [OPTIONS, {**OPTIONS, "pictures": ["image"]}])
def test_a_training_reads_as_the_checkpoint_it_continues_or_begins_with(
    tmp_path, other_rules, options
):
    network = written(tmp_path, options, FakeBridge().spec.observation_space)
    found = find_checkpoint(tmp_path / "00000007")
    other_rules()
    assert TrainPlan.make(plan_config()).decided_policy.options["numbers"] == ["image", "position"]
    for kept in ({"begun": found}, {"first": found}):
        plan = TrainPlan.make(plan_config(), **kept)
        assert plan.decided_policy.options["pictures"] == ["image"]
        plan.network().load_state_dict(network.state_dict())
        # What the user said is in the configuration of the run, not what was decided.
        assert plan.config.policy.options["pictures"] == []


def test_an_option_overrides_an_initial_checkpoint_which_then_does_not_fit(tmp_path):
    written(tmp_path, OPTIONS, FakeBridge().spec.observation_space)
    first = find_checkpoint(tmp_path / "00000007")
    config = plan_config(initialize_from=str(first.path), policy={"symbols": ["image"]})
    plan = TrainPlan.make(config, first=first)
    assert plan.decided_policy.options["symbols"] == ["image"]
    with pytest.raises(ConfigError, match=r"another architecture.*'symbols': \['image'\]"):
        check_others(plan)


def test_a_dataset_decides_as_the_game_that_was_recorded(tmp_path):
    """Its spaces come from a file."""
    policy = PolicyConfig(name="actor_critic", **OPTIONS)
    written(tmp_path, decided(policy, CODES).options)
    recorded = find_checkpoint(tmp_path / "00000007").observation_space
    assert recorded == CODES
    assert decided(policy, recorded) == decided(policy, CODES)


def test_kinds_that_are_damaged_are_refused(tmp_path):
    written(tmp_path, OPTIONS)
    place = tmp_path / "00000007"
    about = json.loads((place / "checkpoint.json").read_text())
    del about["sha256"]["checkpoint.json"]
    about["policy"]["options"] |= {"pictures": 5}
    (place / "checkpoint.json").write_text(json.dumps(about))
    found = find_checkpoint(place)
    with pytest.raises(ConfigError, match=r"policy\.pictures: expected a list"):
        decided(PolicyConfig(name="actor_critic", **OPTIONS), CODES, first=found)
    with pytest.raises(ConfigError, match=r"policy\.pictures: expected a list"):
        CheckpointPolicy(str(place)).build(spec_of(CODES), None, seed=0)


def test_the_kinds_of_a_run_are_found_beside_a_damaged_checkpoint(tmp_path):
    written(tmp_path, OPTIONS)
    shutil.copytree(tmp_path / "00000007", tmp_path / "00000009")
    (tmp_path / "00000009" / "weights.pt").write_bytes(b"")
    assert any_checkpoint(tmp_path).path.name == "00000007"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["00000007", "00000009"]
    assert any_checkpoint(tmp_path / "none") is None
