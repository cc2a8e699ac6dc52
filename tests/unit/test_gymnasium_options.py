"""GymnasiumBridge: options, spec and tasks; what is refused before anything is launched."""

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import pytest
import yaml

from bridges.gymnasium import GymnasiumBridge
from rollout.config import BridgeConfig
from rollout.errors import ConfigError, GameStartError, UnknownNameError
from rollout.tasks import bridge_and_task

pytestmark = pytest.mark.heavy


class Broken(gymnasium.Env):
    def __init__(self):
        raise AssertionError("no such luck")


gymnasium.register("GamutTestBroken-v0", Broken)


def test_unknown_ids_name_the_nearest():
    with pytest.raises(UnknownNameError, match="Nearest: CartPole-v"):
        _ = GymnasiumBridge(id="CartPol-v1").spec
    with pytest.raises(UnknownNameError, match=r"name the module: id=MODULE:MyGame-v0\. Valid"):
        _ = GymnasiumBridge(id="MyGame-v0").spec
    with pytest.raises(ConfigError, match="no_such_module"):
        _ = GymnasiumBridge(id="no_such_module:Game-v0").spec
    with pytest.raises(ConfigError, match="no_such_module"):
        _ = GymnasiumBridge(id="CartPole-v1", imports=["no_such_module"]).spec


def test_wrong_kwargs_name_the_right_ones():
    with pytest.raises(ConfigError, match=r"gravitas.*It takes: .*sutton_barto_reward"):
        _ = GymnasiumBridge(id="CartPole-v1", kwargs={"gravitas": 1}).spec


def test_a_game_that_cannot_be_made():
    with pytest.raises(GameStartError, match="no such luck"):
        _ = GymnasiumBridge(id="GamutTestBroken-v0").spec


@pytest.mark.parametrize(
    "options",
    [
        {"seeds": 0},
        {"seeds": 2**31 + 1},
        {"seeds": 1.5},
        {"id": ""},
        {"imports": "minigrid"},
        {"info_signals": ["reward"]},
        {"kwargs": ["a"]},
        {"render": True, "kwargs": {"render_mode": "human"}},
    ],
)
def test_wrong_options_are_refused_at_once(options: dict[str, Any]):
    with pytest.raises(ConfigError):
        GymnasiumBridge(**options)


def test_spec_and_width():
    bridge = GymnasiumBridge(id="gymnasium:CartPole-v1", seeds=10)
    spec = bridge.spec
    assert spec.name == "CartPole-v1"
    assert spec.version.startswith("1/gymnasium ")
    assert spec.state_space.size == 10
    assert spec.ticks_per_second == 50
    assert spec.process == "in_process"
    assert not spec.uses_seed
    assert pickle.loads(pickle.dumps(bridge)) == bridge
    for width in 0, spec.max_width + 1:
        with pytest.raises(ConfigError, match="width must be 1 to"):
            bridge.launch(Path(), [], width=width, timeout_s=60)


def test_importing_the_bridges_imports_no_game():
    code = (
        "import sys, bridges.gymnasium;"
        "bad = {'crafter', 'ale_py', 'minigrid', 'cv2', 'pygame'} & set(sys.modules);"
        "sys.exit(', '.join(bad) or None)"
    )
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


TASKS = sorted((Path(__file__).parents[2] / "bridges/gymnasium/tasks").glob("*.yaml"))


@pytest.mark.parametrize("path", TASKS, ids=lambda path: path.stem)
def test_tasks_that_come_with_the_bridges_fit_them(path):
    name = yaml.safe_load(path.read_text(encoding="utf-8"))["bridge"]
    _, bridge, task = bridge_and_task(BridgeConfig(name=name), str(path))
    assert task.name == path.stem
    assert bridge.spec.tasks == path.parent
    task.check(bridge.spec)


def test_a_folder_that_hides_an_installed_package_is_named(tmp_path, monkeypatch):
    (tmp_path / "hidden_game").mkdir()  # as the folder of a project, seen from the folder above
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ConfigError, match=r"'hidden_game' is a folder without __init__.py"):
        _ = GymnasiumBridge(id="hidden_game:Hidden-v0").spec
