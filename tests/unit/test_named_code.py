"""What files of strangers name is not run: checkpoints, run directories and datasets."""

import sys
from functools import partial

import gymnasium
import pytest
import yaml

from rollout import named_code
from rollout.api import NamedCode
from rollout.config import BridgeConfig, make_config
from rollout.errors import ConfigError
from rollout.evaluate.config import EvaluateConfig
from rollout.named_code import check_code, search_current_folder
from rollout.tasks import bridge_and_task

REGISTERS = """
import gymnasium
gymnasium.register("Theirs-v0", entry_point="gymnasium.envs.classic_control:CartPoleEnv")
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A current folder with a module, as the scripts see it; nothing has imported the module."""
    (tmp_path / "theirs_here.py").write_text(REGISTERS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [p for p in sys.path if p])
    monkeypatch.setattr(named_code, "_added", set())
    search_current_folder()
    yield tmp_path
    sys.modules.pop("theirs_here", None)
    gymnasium.registry.pop("Theirs-v0", None)


def run_of(folder, bridge, task=""):
    run = folder / "trained"
    (run / "checkpoints").mkdir(parents=True)
    states = {"split": "train", "size": 2}
    config = {"bridge": bridge, "task": task, "state_set": states}
    (run / "config.yaml").write_text(yaml.safe_dump(config))
    return run


def evaluated(run, **keys):
    return make_config(EvaluateConfig, {"player": str(run), **keys})


@pytest.mark.parametrize(
    "named",
    [{"id": "theirs_here:Theirs-v0"}, {"id": "Theirs-v0", "imports": ["theirs_here"]}],
    ids=["id", "imports"],
)
def test_a_run_does_not_import_from_the_current_folder(here, named):
    run = run_of(here, {"name": "gymnasium", **named})
    with pytest.raises(ConfigError, match=r"imports theirs_here .*; if you trust it, set bridge\."):
        evaluated(run)
    assert "theirs_here" not in sys.modules
    config = evaluated(run, bridge=named)  # the user's own word
    assert config.bridge.options["id"] == named["id"]
    assert "theirs_here" in sys.modules


def test_nor_does_the_task_of_a_run(here):
    task = here / "task.yaml"
    needs = {"id": "Theirs-v0", "imports": ["theirs_here"]}
    task.write_text(yaml.safe_dump({"options": needs}))
    run = run_of(here, {"name": "gymnasium"}, str(task))
    with pytest.raises(ConfigError, match="imports theirs_here"):
        evaluated(run)
    assert "theirs_here" not in sys.modules
    assert evaluated(run, task=str(task)).task == str(task)


def test_modules_where_python_looks_are_imported(here, monkeypatch):
    run = run_of(here, {"name": "gymnasium", "id": "theirs_here:Theirs-v0"})
    monkeypatch.setattr(named_code, "_added", set())  # as with PYTHONPATH=.
    assert list(evaluated(run).sets) == ["train", "validation"]


def test_a_dataset_cannot_be_told_to_be_trusted(here):
    config = make_config(BridgeConfig, {"name": "gymnasium", "id": "theirs_here:Theirs-v0"})
    check = partial(check_code, source="the dataset d")
    with pytest.raises(ConfigError, match=r"the dataset d imports .* PYTHONPATH$"):
        bridge_and_task(config, "", check)


def test_programs_are_started_on_the_users_word_alone():
    class Recipe:
        def code(self):
            return [NamedCode("game", "/home/me/Game", program=True)]

    with pytest.raises(ConfigError, match=r"the run r starts the program .*set bridge.game"):
        check_code(Recipe(), "the run r", "bridge")
    check_code(Recipe(), "the run r", "bridge", given={"game"})
    check_code(Recipe(), "the dataset d", starts=False)
