import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from types import ModuleType

import pytest
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st

from rollout import registry
from rollout.api import BridgeSpec, ColumnSpec, Factor, StateSpace, option
from rollout.config import BridgeConfig
from rollout.errors import ConfigError, InputError, StateError, UnknownNameError
from rollout.tasks import bridge_and_task, load_task, task_names

SPEC = BridgeSpec(
    name="farm",
    version="1",
    observation_space=spaces.Dict({"x": spaces.Discrete(2)}),
    action_space=spaces.Dict({"x": spaces.Discrete(2)}),
    state_space=StateSpace(
        (
            Factor("seed", range(0, 100, 2)),
            Factor("biome", ("plains", "forest", "desert")),
            Factor("day", (1, 2, 3)),
        )
    ),
    signals={"wood": ColumnSpec()},
)

FOLDER = Path()


@dataclass(frozen=True)
class Farm:
    size: int = option(64, "Size.")
    folder: str = ""
    speed: float = 1.0

    @property
    def spec(self) -> BridgeSpec:
        return replace(
            SPEC, version=str(self.size), tasks=Path(self.folder) if self.folder else None
        )


@dataclass(frozen=True)
class GameReward:
    requires = frozenset()


@dataclass(frozen=True)
class Count:
    signal: str
    at_least: float = 1.0

    @property
    def requires(self) -> frozenset[str]:
        return frozenset({self.signal})


@dataclass(frozen=True)
class Both:
    parts: tuple[dict[str, object], ...]
    requires = frozenset()
    factors = frozenset({"day"})


@pytest.fixture(autouse=True, scope="module")
def plugins() -> Iterator[None]:
    module = ModuleType("tasks_test_plugins")
    for cls in (Farm, GameReward, Count, Both):
        setattr(module, cls.__name__, cls)
    plugins = {
        "bridges": {"farm": "Farm"},
        "evaluators": {"game_reward": "GameReward", "count": "Count", "both": "Both"},
    }

    def installed(group: str, _: object) -> EntryPoints:
        found = plugins[group.removeprefix("gamut.")]
        return EntryPoints(
            EntryPoint(name, f"tasks_test_plugins:{cls}", group) for name, cls in found.items()
        )

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "tasks_test_plugins", module)
        patch.setattr(registry, "_installed", installed)
        yield


WOOD = """\
goal: Collect ten pieces of wood.
bridge: farm
state_space:
  biome: [forest, plains]
  seed: {range: [10, 20, 2]}
  day: 2
evaluator: {name: count, signal: wood, at_least: 10}
limits: {steps: 1e3}
difficulty: simple
metadata: {source: MCU}
"""


@pytest.fixture
def spec(tmp_path: Path) -> BridgeSpec:
    (tmp_path / "wood.yaml").write_text(WOOD)
    (tmp_path / "stone.yml").write_text("goal: Find a stone.\n")
    (tmp_path / "notes.txt").write_text("")
    return replace(SPEC, tasks=tmp_path)


def load(spec: BridgeSpec, tmp_path: Path, text: str):
    path = tmp_path / "other.yaml"
    path.write_text(text)
    return load_task(spec, "farm", str(path))


def test_a_task_says_goal_states_judge_and_limits(spec: BridgeSpec) -> None:
    task = load_task(spec, "farm", "wood")
    assert (task.name, task.goal) == ("wood", "Collect ten pieces of wood.")
    assert task.evaluator == Count("wood", 10.0)
    assert task.limits.steps == 1000
    assert task.difficulty == "simple"
    assert task.metadata == {"source": "MCU"}
    factors = [(f.name, f.values) for f in task.state_space]
    assert factors == [
        ("seed", range(10, 20, 2)),
        ("biome", ("forest", "plains")),
        ("day", (2,)),
    ]


def test_a_task_is_composed_of_others(spec: BridgeSpec, tmp_path: Path) -> None:
    part = "{name: both, parts: [{task: stone}, {name: count, signal: wood}]}"
    text = f"evaluator: {{name: both, parts: [{{task: wood}}, {part}]}}\n"
    wood = {"name": "count", "signal": "wood", "at_least": 10}
    inner = {
        "name": "both",
        "parts": [{"name": "game_reward"}, {"name": "count", "signal": "wood"}],
    }
    assert load(spec, tmp_path, text).evaluator == Both((wood, inner))


def test_an_evaluator_asks_for_factors_that_the_task_has(spec: BridgeSpec, tmp_path: Path) -> None:
    few = replace(spec, state_space=StateSpace((Factor("seed", range(3)),)))
    with pytest.raises(UnknownNameError, match=r"unknown factor.* 'day'"):
        load(few, tmp_path, "evaluator: {name: both, parts: []}\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{name: both, parts: [{task: wod}]}", "unknown task .*Nearest: wood"),
        ("{name: both, parts: [{task: wood, at_least: 2}]}", r"parts\[0\]: expected .* alone"),
        ("{name: both, parts: [{task: other}]}", "composed of itself"),
    ],
)
def test_a_wrong_composition_is_reported(spec, tmp_path, text, message) -> None:
    with pytest.raises(InputError, match=message):
        load(spec, tmp_path, f"evaluator: {text}\n")


def test_what_a_task_does_not_say_is_the_bridges_own(spec: BridgeSpec) -> None:
    task = load_task(spec, "farm", "stone")
    assert task.state_space == SPEC.state_space
    assert task.evaluator == GameReward()
    assert task.limits.steps is None


def test_no_name_is_the_games_own_task(spec: BridgeSpec) -> None:
    task = load_task(SPEC, "farm", "")
    assert (task.name, task.goal, task.limits.steps) == ("default", "", None)
    assert task.evaluator == GameReward()
    assert task.state_space == SPEC.state_space


def test_the_tasks_of_a_bridge_have_names(spec: BridgeSpec) -> None:
    assert task_names(spec) == ("stone", "wood")
    assert task_names(SPEC) == ()


def test_an_unknown_task_has_the_nearest(spec: BridgeSpec) -> None:
    with pytest.raises(UnknownNameError, match=r"task of bridge 'farm' 'wod'. Nearest: wood"):
        load_task(spec, "farm", "wod")
    with pytest.raises(UnknownNameError, match="Valid: none"):
        load_task(SPEC, "farm", "wood")
    with pytest.raises(ConfigError, match=r"no file .*wod.yaml. Nearest: .*wood.yaml"):
        load_task(spec, "farm", str(spec.tasks / "wod.yaml"))


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("gaol: x", ConfigError, r"other.yaml:1: gaol: unknown key. Nearest: goal"),
        ("bridge: crafter", ConfigError, "made for bridge 'crafter'.*'farm'"),
        ("state_space: {biom: plains}", UnknownNameError, r"biom'. Nearest: biome"),
        ("state_space: {biome: plain}", StateError, r"other.yaml: state_space.biome.*plains"),
        ("state_space: {biome: []}", StateError, "has no values"),
        ("state_space: {biome: [plains, plains]}", StateError, "lists a value twice"),
        ("state_space: {day: {range: [0, 3]}}", StateError, "day.*no value 0"),
        ("state_space: {day: {range: [0, 99]}}", StateError, "has 3 values"),
        ("state_space: {day: {range: [3, 3]}}", StateError, "has no values"),
        ("state_space: {seed: {range: [0, 50]}}", StateError, "no value (1|49)"),
        ("state_space: {seed: {range: [0, 102, 2]}}", StateError, "no value 100"),
        ("state_space: {seed: {range: [0, 1.5]}}", ConfigError, "expected {range:"),
        ("state_space: {seed: {range: [0, 9, 0]}}", ConfigError, "a step that is not 0"),
        ("evaluator: cuont", ConfigError, r"unknown evaluator 'cuont'. Nearest: count"),
        ("evaluator: count", ConfigError, r"evaluator.signal: is missing"),
        (
            "evaluator: {name: count, signal: wod}",
            UnknownNameError,
            "signal of farm.*Nearest: wood",
        ),
        (
            "evaluator: {name: count, sginal: wood}",
            ConfigError,
            "sginal.*Nearest: evaluator.signal",
        ),
        ("limits: {steps: 0}", ConfigError, "limits.steps: expected a number greater than 0"),
        ("limits: {step: 1}", ConfigError, r"limits.step: unknown key. Nearest: limits.steps"),
    ],
)
def test_a_wrong_task_is_reported(spec, tmp_path, text, error, message) -> None:
    with pytest.raises(error, match=message) as caught:
        load(spec, tmp_path, text)
    assert "other.yaml" in str(caught.value)


@given(st.data())
def test_every_range_within_a_range_is_accepted_and_no_other(tmp_path_factory, data) -> None:
    first, last = data.draw(st.integers(-5, 110)), data.draw(st.integers(-5, 110))
    step = data.draw(st.integers(-7, 7).filter(bool))
    wanted = range(first, last, step)
    text = f"state_space: {{seed: {{range: [{first}, {last}, {step}]}}}}"
    valid = len(wanted) > 0 and all(value in range(0, 100, 2) for value in wanted)
    try:
        task = load(SPEC, tmp_path_factory.getbasetemp(), text)
    except InputError:
        assert not valid
    else:
        assert valid
        assert task.state_space.factor("seed").values == wanted


def test_options_that_a_task_needs_take_the_place_of_defaults(tmp_path: Path) -> None:
    (tmp_path / "big.yaml").write_text("options: {size: 256}\n")
    config, bridge, task = bridge_and_task(BridgeConfig(name="farm", folder=str(tmp_path)), "big")
    assert bridge == Farm(256, str(tmp_path))
    assert config.options["size"] == 256
    assert config.build() == bridge
    assert task.metadata == {"options": {"size": 256}}
    again = bridge_and_task(config, "big")
    assert again[:2] == (config, bridge)


def test_a_configuration_that_contradicts_its_task_is_refused(tmp_path: Path) -> None:
    (tmp_path / "big.yaml").write_text("options: {size: 256}\n")
    config = BridgeConfig(name="farm", folder=str(tmp_path), size=128)
    with pytest.raises(ConfigError, match=r"bridge.size: the configuration has 128.*needs 256"):
        bridge_and_task(config, "big")


def test_an_option_that_a_task_needs_and_the_bridge_has_not_is_reported(tmp_path: Path) -> None:
    (tmp_path / "big.yaml").write_text("options: {sizes: 256}\n")
    config = BridgeConfig(name="farm", folder=str(tmp_path))
    with pytest.raises(ConfigError, match=r"big.yaml.*bridge.sizes.*Nearest: bridge.size"):
        bridge_and_task(config, "big")


def test_no_task_leaves_the_bridge_as_it_is() -> None:
    config = BridgeConfig(name="farm", size=3)
    assert bridge_and_task(config, "")[:2] == (config, Farm(3))
