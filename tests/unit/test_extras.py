"""What is said when the packages of an extra are not installed."""

import sys
import tomllib
from pathlib import Path

import pytest

from rollout.config import WandbConfig, build_plugin
from rollout.errors import ConfigError, missing_extra
from rollout.observe.wandb_mirror import mirror_settings, require_wandb

EXTRAS = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"][
    "optional-dependencies"
]


@pytest.mark.parametrize(
    ("bridge", "options", "module", "extra"),
    [
        ("crafter", {}, "crafter", "crafter"),
        ("atari", {"id": "pong"}, "ale_py", "atari"),
        ("gymnasium", {"id": "MiniGrid-FourRooms-v0"}, "minigrid", "minigrid"),
    ],
)
def test_a_bridge_without_its_packages_names_the_extra(monkeypatch, bridge, options, module, extra):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ConfigError) as error:
        _ = build_plugin("bridges", bridge, options).spec
    assert f"needs the extra {extra}" in str(error.value)
    assert f"pip install -c constraints.txt -e '.[{extra}]'" in str(error.value)
    assert extra in EXTRAS


def test_wandb_is_needed_only_if_it_is_asked_for(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "wandb", None)
    monkeypatch.delenv("WANDB_MODE", raising=False)
    require_wandb(WandbConfig())
    require_wandb(WandbConfig(mode="disabled"))
    assert mirror_settings(WandbConfig(), tmp_path, "r", job_type="train", config={}) is None
    with pytest.raises(ConfigError, match=r"wandb\.mode=online needs the extra wandb"):
        require_wandb(WandbConfig(mode="online"))
    assert "wandb" in EXTRAS


def test_no_message_installs_the_name_gamut_from_an_index():
    assert "install gamut" not in str(missing_extra("a bridge", "crafter"))
    assert "-e '.[crafter]'" in str(missing_extra("a bridge", "crafter"))
