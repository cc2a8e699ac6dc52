"""What ``scripts/collect.py`` says to wrong input, and what its help holds."""

import re

import pytest
import yaml

from rollout.cli import main
from rollout.collect import collect
from rollout.config import CollectConfig


@pytest.fixture
def call(tmp_path, capsys):
    """Calls the script with a small configuration and more arguments."""
    config = tmp_path / "config.yaml"
    config.write_text(
        yaml.safe_dump(
            {
                "output": str(tmp_path / "run"),
                "bridge": {"name": "fake"},
                "policy": "random",
                "episodes": 2,
                "actors": 0,
            }
        )
    )

    def run(*arguments):
        status = main(collect, CollectConfig, "Plays.", ["--config", str(config), *arguments])
        out, err = capsys.readouterr()
        return status, out, err

    return run


BAD = {
    "bridge.name=faek": "unknown bridge 'faek'. Nearest: fake",
    "bridge.sid=8": "side",
    "policy.name=randm": "Nearest: random",
    "task=crafterr": "unknown task",
    "episodez=3": "episodes",
    "episodes=lots": "episodes",
    "state_set.split=tset": "test",
    "state_set.size=999999999": "a 'train' set of 999999999 states",
    "state_set.states=[5, 9999999]": "state index 9999999 is out of range: this space has 524288",
    "state_set.states=[5, -1]": "0 to 524287",
    "state_set.states=[5, 5]": "different indices",
    "state_set.states=[5, 6] state_set.size=3": "remove one",
    "state_set.hold_out={colour: [pink]}": "pink",
    "width=5000": "1 to 4096",
    "fragment.steps=9223372036854775808": "fragment.steps",
    "actors=-1": "actors",
    "host.step_s=0": "host.step_s",
    "recording.codec=gif": "gif",
    "bridge.side=5": "side",
}


@pytest.mark.parametrize("setting", BAD)
def test_bad_input_is_one_clear_line_and_launches_nothing(call, tmp_path, setting):
    status, _, said = call("--set", *re.split(r" (?=state_set)", setting))
    assert status == 2, said
    assert BAD[setting] in said
    assert len(said.strip().splitlines()) == 1, said
    assert not (tmp_path / "run" / "dataset" / "data").exists()


def test_help_lists_every_key_with_type_default_and_unit(call):
    status, out, _ = call("--help", "all")
    assert status == 0
    lines = [" ".join(line.split()) for line in out.splitlines()]
    for name in CollectConfig.model_fields:
        assert any(line.startswith((name, f"{name}.")) for line in lines), name
    for name in ("state_set.split", "host.step_s", "fragment.steps", "recording.codec"):
        assert any(line.startswith(name) for line in lines), name
    assert "episodes" in out
    assert "null" in out
    assert "bridge.side" in out  # the chosen plug-in's own options
