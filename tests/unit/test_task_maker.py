"""Tasks that a bridge makes out of their names, beside those that lie with it as files."""

import pickle
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from typing import Any

import pytest

from rollout import registry
from rollout.api import BridgeSpec
from rollout.config import BridgeConfig
from rollout.errors import ConfigError, InputError, UnknownNameError
from rollout.tasks import bridge_and_task, load_task, task_names
from rollout.testing import FakeBridge


@dataclass(frozen=True)
class Walks:
    """Makes ``walk_N``, N steps long, on an island of ``side`` cells."""

    side: int

    def names(self) -> Iterator[str]:
        return (f"{group}walk_{steps}" for group in ("", "hills/") for steps in (1, 2, 4))

    def document(self, name: str) -> Mapping[str, Any] | None:
        head, _, steps = name.removeprefix("hills/").partition("_")
        if head != "walk":
            return None
        if not steps.isdigit():
            raise ConfigError(f"task {name!r}: how far? nearest: walk_1")
        return {
            "goal": f"Walk {steps} of {self.side}.",
            "options": {"side": 16},
            "limits": {"steps": int(steps)},
            "evaluator": {"name": "game_reward", "success_return": 1.0},
        }


@dataclass(frozen=True)
class WalkBridge(FakeBridge):
    folder: str = ""

    @property
    def spec(self) -> BridgeSpec:
        tasks = Path(self.folder) if self.folder else None
        return replace(super().spec, tasks=tasks, task_maker=Walks(self.side))


@pytest.fixture(autouse=True)
def installed(monkeypatch):
    monkeypatch.setattr(FakeBridge, "WalkBridge", WalkBridge, raising=False)

    others = registry._installed

    def points(group, places):
        if group == "gamut.bridges":
            target = "rollout.testing.fakes:FakeBridge.WalkBridge"
            return EntryPoints([EntryPoint("walks", target, group)])
        return others(group, places)

    monkeypatch.setattr(registry, "_installed", points)


def test_a_name_makes_a_task_with_the_options_it_needs():
    config, bridge, task = bridge_and_task(BridgeConfig(name="walks"), "walk_3")
    assert (task.name, task.limits.steps) == ("walk_3", 3)
    assert config.options["side"] == 16
    # What it says may depend on the options: it was asked again once they were known.
    assert task.goal == "Walk 3 of 16."
    assert task.metadata == {"options": {"side": 16}}
    assert config.build() == bridge


def test_a_configuration_that_contradicts_it_is_refused():
    with pytest.raises(ConfigError, match=r"bridge.side: .* has 4.*task walk_1 needs 16"):
        bridge_and_task(BridgeConfig(name="walks", side=4), "walk_1")


def test_a_file_of_the_name_goes_first(tmp_path):
    (tmp_path / "walk_1.yaml").write_text("goal: From a file.\n")
    spec = WalkBridge(folder=str(tmp_path)).spec
    assert task_names(spec) == ("walk_1",)
    assert load_task(spec, "walks", "walk_1").goal == "From a file."
    assert load_task(spec, "walks", "walk_2").goal == "Walk 2 of 8."


def test_it_can_be_a_part_of_another(tmp_path):
    (tmp_path / "both.yaml").write_text(
        "evaluator: {name: and, parts: [{task: walk_1}, {task: walk_2}]}\n"
    )
    spec = WalkBridge(folder=str(tmp_path)).spec
    part = {"name": "game_reward", "success_return": 1.0}
    assert load_task(spec, "walks", "both").evaluator.parts == (part, part)


def test_names_of_no_task_have_the_nearest_and_its_own_errors_arrive():
    spec = WalkBridge().spec
    with pytest.raises(UnknownNameError, match=r"'wlak_2'. Nearest: walk_2"):
        load_task(spec, "walks", "wlak_2")
    with pytest.raises(InputError, match="how far"):
        load_task(spec, "walks", "walk_far")


def test_a_name_with_a_slash_is_no_path_unless_there_is_such_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    spec = WalkBridge(folder=str(tmp_path)).spec
    assert load_task(spec, "walks", "hills/walk_2").name == "hills/walk_2"
    with pytest.raises(UnknownNameError, match=r"'hills/wlak_2'. Nearest: hills/walk_2"):
        load_task(spec, "walks", "hills/wlak_2")
    with pytest.raises(ConfigError, match="moors/walk_2"):
        load_task(spec, "walks", "moors/walk_2")
    (tmp_path / "hills").mkdir()
    (tmp_path / "hills" / "walk_2.yml").write_text("goal: From a file.\n")
    for name in ("hills/walk_2", "hills/walk_2.yml"):
        assert load_task(spec, "walks", name).goal == "From a file."


def test_what_it_says_is_checked_like_a_file():
    class Wrong(Walks):
        def document(self, name: str) -> Mapping[str, Any]:
            return {"gaol": name}

    spec = replace(WalkBridge().spec, task_maker=Wrong(8))
    with pytest.raises(ConfigError, match=r"walk_1: gaol: unknown key. Nearest: goal"):
        load_task(spec, "walks", "walk_1")


def test_a_spec_with_one_can_be_sent():
    maker = WalkBridge().spec.task_maker
    assert pickle.loads(pickle.dumps(maker)) == maker
