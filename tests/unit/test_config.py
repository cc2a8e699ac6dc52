import enum
import itertools
import math
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, Literal

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import Field, ValidationError

from rollout import registry
from rollout.api import Deadlines, Factor, StateSpace, option
from rollout.config import (
    CollectConfig,
    HostConfig,
    Section,
    StateSetConfig,
    build_plugin,
    chosen,
    help_text,
    load_config,
    make_config,
    parse_set,
    resolved,
    write_config,
)
from rollout.errors import (
    ConfigError,
    ContractError,
    InputError,
    RunDirectoryError,
    StateError,
    UnknownNameError,
)
from rollout.run_directory import absolute
from rollout.yaml12 import dump_yaml, parse_yaml


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True)
class Inner:
    depth: int = 1


@dataclass(frozen=True)
class Game:
    size: int = option(64, "Edge of the picture.", unit="pixels")
    speed: float = option(1, "Speed.")
    sound: bool = False
    shape: tuple[int, int] = (2, 3)
    folder: Path = Path("saves")
    colour: Colour = Colour.RED
    mode: str = option("easy", "How hard.", choices=("easy", "hard"))
    players: int | Literal["auto"] = "auto"
    extra: dict[str, Any] = option(dict, "Passed on.")
    limit: float | None = None
    copy: int = 0
    inner: Inner = Inner()
    _hidden: int = 0
    derived: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        if self.size == 13:
            raise StateError("size 13 brings bad luck; take another")


@dataclass(frozen=True)
class Player:
    file: str
    skill: float = 0.5


@dataclass(frozen=True)
class Named:
    name: str = ""


@dataclass(frozen=True)
class Hidden:
    value: "NoSuchType" = 0  # type: ignore[name-defined]  # noqa: F821


class Plain:
    pass


PLUGINS = {
    "bridges": {"game": "Game", "named": "Named", "plain": "Plain", "hidden": "Hidden"},
    "policies": {"player": "Player"},
    "evaluators": {},
}


@pytest.fixture(autouse=True, scope="module")
def plugins() -> Iterator[None]:
    module = ModuleType("config_test_plugins")
    for cls in (Game, Player, Named, Plain, Hidden):
        setattr(module, cls.__name__, cls)

    def installed(group: str, _: object) -> EntryPoints:
        found = PLUGINS[group.removeprefix("gamut.")]
        return EntryPoints(
            EntryPoint(name, f"config_test_plugins:{cls}", group) for name, cls in found.items()
        )

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "config_test_plugins", module)
        patch.setattr(registry, "_installed", installed)
        yield


BASE = {
    "bridge": "game",
    "policy": {"name": "player", "file": "a.pt"},
    "output": "runs/x",
    "episodes": 3,
}


def base(*sets: str) -> CollectConfig:
    overrides = [*BASE.items(), *map(parse_set, sets)]
    return load_config(CollectConfig, None, overrides)


# --- build_plugin -------------------------------------------------------------------------------


def test_options_not_given_keep_their_defaults() -> None:
    assert build_plugin("bridges", "game", {}) == Game()


def test_values_are_coerced_where_json_has_no_such_type() -> None:
    game = build_plugin(
        "bridges",
        "game",
        {
            "speed": 2,
            "shape": [4, 5],
            "folder": "/tmp/x",
            "colour": "blue",
            "players": 3,
            "limit": math.inf,
            "inner": {"depth": 4},
            "extra": {"a": [1]},
        },
    )
    assert game == Game(
        speed=2.0,
        shape=(4, 5),
        folder=Path("/tmp/x"),
        colour=Colour.BLUE,
        players=3,
        limit=math.inf,
        inner=Inner(4),
        extra={"a": [1]},
    )
    assert type(game.speed) is float


def test_values_of_their_own_type_pass() -> None:
    made = {"folder": Path("p"), "shape": (1, 2), "colour": Colour.BLUE, "inner": Inner(2)}
    assert build_plugin("bridges", "game", made) == Game(**made)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": "3"}, r"bridge.size: expected a whole number, got '3' \(text\); write 3 without"),
        ({"size": True}, "bridge.size: expected a whole number, got true"),
        ({"size": 1.5}, "bridge.size: expected a whole number, got 1.5"),
        ({"size": None}, "bridge.size: expected a whole number, got null"),
        ({"sound": "yes"}, "bridge.sound: expected true or false, got 'yes'.*write true"),
        ({"sound": 1}, "bridge.sound: expected true or false, got 1"),
        ({"shape": [1]}, r"bridge.shape"),
        ({"shape": [1, "b"]}, r"bridge.shape\[1\]: expected a whole number, got 'b'"),
        ({"colour": "green"}, "bridge.colour: expected 'red' or 'blue', got 'green'"),
        ({"mode": "hrad"}, "bridge.mode: expected one of easy, hard, got 'hrad'.*Nearest: hard"),
        ({"mode": 3}, "bridge.mode: expected text, got 3"),
        ({"players": "aut"}, "bridge.players: expected a whole number or 'auto', got 'aut'"),
        ({"sise": 3}, "bridge.sise: unknown option of bridge 'game'. Nearest: bridge.size"),
        ({"zzzzz": 3}, "bridge.zzzzz: unknown option.*Valid: bridge.size, bridge.speed"),
        ({"_hidden": 3}, "bridge._hidden: unknown option"),
        ({"derived": 3}, "bridge.derived: unknown option"),
    ],
)
def test_a_wrong_option_says_what_was_expected_and_what_came(options, message) -> None:
    with pytest.raises(ConfigError, match=message):
        build_plugin("bridges", "game", options)


def test_all_wrong_options_are_reported_at_once() -> None:
    with pytest.raises(ConfigError, match=r"bridge.siz.*; bridge.sound"):
        build_plugin("bridges", "game", {"sound": 3, "siz": 3})


def test_a_missing_option_is_reported() -> None:
    with pytest.raises(ConfigError, match=r"policy.file: is missing; policy 'player' needs it"):
        build_plugin("policies", "player", {})


def test_what_the_plugin_itself_refuses_passes_through() -> None:
    with pytest.raises(StateError, match="bad luck"):
        build_plugin("bridges", "game", {"size": 13})


def test_an_unknown_plugin_has_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="Nearest: game"):
        build_plugin("bridges", "gamee", {})


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("plain", "expected a frozen dataclass"),
        ("named", "option called 'name'"),
        ("hidden", "NoSuchType"),
    ],
)
def test_a_plugin_that_breaks_the_contract_is_named(name: str, message: str) -> None:
    with pytest.raises(ContractError, match=message):
        build_plugin("bridges", name, {})


# --- YAML ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"),
        ("on", "on"),
        ("yes", "yes"),
        ("y", "y"),
        ("true", True),
        ("False", False),
        ("null", None),
        ("~", None),
        ("1e-3", 1e-3),
        ("1e6", 1_000_000),
        ("1E6", 1_000_000),
        ("1.5e3", 1500),
        ("-2e2", -200),
        ("1e20", 10**20),
        ("1_000_000", 1_000_000),
        ("1.0e+16", 1e16),
        ("1e400", math.inf),
        ("1e999999999", math.inf),
        (".5", 0.5),
        ("5.", 5.0),
        (".inf", math.inf),
        ("-.inf", -math.inf),
        ("010", 10),
        ("0o10", 8),
        ("0x10", 16),
        ("1:30", "1:30"),
        ("2024-01-01", "2024-01-01"),
        ("1.2.3", "1.2.3"),
        ("1e", "1e"),
        ("-", "-"),
        ("'3'", "3"),
        ("[1, two]", [1, "two"]),
        ("{a: no}", {"a": "no"}),
    ],
)
def test_scalars_are_those_of_yaml_1_2(text: str, value: object) -> None:
    read = parse_set(f"k={text}")[1] if text != "-" else parse_yaml("- '-'", "x")[0][0]
    assert read == value
    assert type(read) is type(value)


def test_set_splits_at_the_first_equals_sign() -> None:
    assert parse_set("policy.url=http://x?a=b") == ("policy.url", "http://x?a=b")
    assert parse_set("task=") == ("task", "")


@pytest.mark.parametrize("text", ["seed", "=3", "a..b=3", ".a=3", "a.=3", ""])
def test_set_without_key_or_value_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="expected KEY=VALUE"):
        parse_set(text)


def test_set_with_broken_yaml_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"--set a:1:\d+: not valid YAML"):
        parse_set("a=[1, 2")


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(PLAIN)
@example(["\x85", "a\nb", "\u2028", "\ufeff", " x ", "#", "a: b", "- c"])
def test_what_is_written_reads_back_the_same(data: object) -> None:
    def typed(x: object) -> object:
        if isinstance(x, list):
            return [typed(i) for i in x]
        if isinstance(x, dict):
            return {k: typed(v) for k, v in x.items()}
        return type(x), x

    assert typed(parse_yaml(dump_yaml({"k": data}), "f")[0]) == typed({"k": data})


@given(st.sampled_from(["no", "on", "Yes", "1:30", "1e3", "0o7", "2024-01-01", "~", "", "=", "<<"]))
def test_texts_that_other_readers_mistake_are_quoted(text: str) -> None:
    import yaml

    assert yaml.safe_load(dump_yaml([text])) == [text]


# --- load_config --------------------------------------------------------------------------------


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


GOOD = """\
bridge:
  name: game
  size: 1e2
policy: {name: player, file: a.pt}
output: runs/x
episodes: 1e6
"""


def test_a_file_becomes_a_model(tmp_path: Path) -> None:
    config = load_config(CollectConfig, write(tmp_path / "c.yaml", GOOD))
    assert config.episodes == 1_000_000
    assert config.bridge.build() == Game(size=100)
    assert config.policy.options == {"file": "a.pt", "skill": 0.5}
    assert config.output == Path("runs/x")


def test_later_overrides_win_over_earlier_ones_and_over_the_file(tmp_path: Path) -> None:
    path = write(tmp_path / "c.yaml", GOOD)
    sets = [parse_set(s) for s in ("bridge.size=1", "seed=5", "bridge.size=2", "host.retries=0")]
    config = load_config(CollectConfig, path, sets)
    assert (config.bridge.options["size"], config.seed, config.host.retries) == (2, 5, 0)


def test_the_short_form_of_a_plugin_can_be_added_to() -> None:
    assert base("bridge=game", "bridge.size=7").bridge.options["size"] == 7


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bridge.sise=3", r"bridge.sise: unknown option.*Nearest: bridge.size"),
        ("policy.size=3", r"policy.size: unknown option of policy 'player'"),
        ("bridge.name=gaem", r"bridge.name: unknown bridge 'gaem'. Nearest: game"),
        ("actor=3", r"--set: actor: unknown key. Nearest: actors"),
        ("steps=3", r"steps: unknown key. Nearest: env_steps"),
        ("host.restrats=3", r"host.restrats: unknown key. Nearest: host.restarts"),
        ("max_in_flight=3", r"max_in_flight: unknown key. Nearest: host.max_in_flight"),
        ("hots.retries=3", r"hots: unknown key. Nearest: host"),
        ("qqqqqqqq=3", r"qqqqqqqq: unknown key. Valid: policy, policy.name"),
        ("seed=x", r"--set: seed: expected a whole number, got 'x' \(text\)"),
        ("seed=1.5", r"seed: expected a whole number, got 1.5"),
        ("seed.x=1", r"seed: expected a whole number, got \{'x': 1\}"),
        ("seed=-1", r"seed: expected a number greater than or equal to 0, got -1"),
        ("explore=no", r"explore: expected true or false, got 'no' .*write false"),
        ("host=3", r"host: expected a mapping of keys, got 3"),
        ("bridge=3", r"bridge: expected a mapping of keys, got 3"),
        ("bridge={size: 3}", r"bridge.name: is missing"),
        ("bridge.size=13", r"bridge: size 13 brings bad luck"),
        ("wandb.mode=of", r"wandb.mode: expected 'auto', 'online', 'offline' or 'disabled'"),
        ("wandb.tags=[a, 3]", r"wandb.tags\[1\]: expected text, got 3"),
        ("output=", r"output: expected a directory, got an empty text"),
        ("output=3", r"output: expected a path, got 3"),
        ("state_set.split=trian", r"state_set.split: expected train, validation"),
        ("state_set.subset=first", r"state_set.subset: expected 'random', 'prefix' or 'lists'"),
        ("state_set.prefix={a: 0}", r"state_set.prefix.a: "),
        ("state_set.only={a: {range: [1]}}", r"state_set.only.a: expected \{range:"),
        ("state_set.hold_out={a: {range: [1]}}", r"state_set.hold_out.a: expected \{range:"),
        ("host.step_s=.inf", r"host.step_s: expected a finite number"),
        ("recording.codec=gif", r"recording.codec: expected 'auto', 'raw'"),
    ],
)
def test_a_wrong_key_or_value_is_reported(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        base(text)


@pytest.mark.parametrize(
    "key",
    [
        "episodes", "env_steps", "instances", "width", "fragment.steps",
        "fragment.seconds", "host.restart_window_s", "host.start_s", "host.reset_s", "host.step_s",
        "host.close_s", "host.max_in_flight", "recording.shard_mb", "log.every_s",
        "state_set.size",
    ],
)  # fmt: skip
@pytest.mark.parametrize("value", ["0", "-1"])
def test_budgets_and_deadlines_of_zero_or_less_are_refused(key: str, value: str) -> None:
    with pytest.raises(ConfigError, match=f"{key}: expected a number greater than 0, got {value}"):
        base(f"{key}={value}")


@pytest.mark.parametrize("key", ["actors", "host.restarts", "host.actor_restarts"])
def test_counts_may_be_zero_and_not_less(key: str) -> None:
    base(f"{key}=0")
    with pytest.raises(ConfigError, match=f"{key}: expected a number greater than or equal to 0"):
        base(f"{key}=-1")


def test_a_run_needs_a_bound() -> None:
    with pytest.raises(ConfigError, match="would never end; set episodes, env_steps, or both"):
        base("episodes=null")
    assert base("episodes=null", "env_steps=10").episodes is None


def test_every_message_has_file_line_and_key(tmp_path: Path) -> None:
    path = write(
        tmp_path / "c.yaml",
        "bridge:\n  name: game\n  size: big\n"
        "policy: {name: player, file: a}\noutput: a\nepisodes: no\nhots: 3\n",
    )
    with pytest.raises(ConfigError) as caught:
        load_config(CollectConfig, path, [("seed", "x")])
    text = str(caught.value)
    assert f"{path}:3: bridge.size: expected a whole number" in text
    assert f"{path}:6: episodes:" in text
    assert f"{path}:7: hots: unknown key" in text
    assert "--set: seed:" in text
    assert "\n" not in text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [1\nb: 2", r"c.yaml:2:\d+: not valid YAML"),
        ("seed: 1\nseed: 2", r"c.yaml:2: key 'seed' is given twice, first in line 1"),
        ("- 1\n- 2", r"expected a mapping of keys, got a list"),
        ("a: &x {b: *x}", r"c.yaml:1: .*alias"),
        ("a: \x01", r"c.yaml: not valid YAML"),
        ("a: " + "[" * 1500, r"c.yaml"),
        ("a: !!python/object:os.system {}", r"c.yaml:1:\d+: not valid YAML"),
        ("a: 1\n---\nb: 2", r"not valid YAML"),
    ],
)
def test_a_file_that_is_not_a_configuration_is_refused(tmp_path, text, message) -> None:
    with pytest.raises(ConfigError, match=message):
        load_config(CollectConfig, write(tmp_path / "c.yaml", text))


class Rooms(Section):
    renamed: ClassVar[Mapping[str, str]] = {"beds": "rooms.places"}
    removed: ClassVar[Mapping[str, object]] = {"stars": 3}
    places: int = 2


class House(Section):
    renamed: ClassVar[Mapping[str, str]] = {"flat": "rooms"}
    rooms: Rooms = Rooms()


def test_a_renamed_key_gives_its_new_name_in_files_and_in_set(tmp_path: Path) -> None:
    file = tmp_path / "house.yaml"
    file.write_text("rooms:\n  beds: 3\n")
    with pytest.raises(ConfigError, match=r"house.yaml:2: rooms.beds: was renamed to rooms.places"):
        load_config(House, file)
    with pytest.raises(ConfigError, match=r"rooms.beds: was renamed to rooms.places"):
        load_config(House, None, [("rooms.beds", 3)])
    with pytest.raises(ConfigError, match=r"flat: was renamed to rooms"):
        load_config(House, None, [("flat.places", 3)])


def test_a_removed_key_opens_with_its_former_default_only() -> None:
    assert load_config(House, None, [("rooms.stars", 3)]) == House()
    with pytest.raises(ConfigError, match=r"rooms.stars: was removed, and is always 3"):
        load_config(House, None, [("rooms.stars", 4)])


def test_a_missing_file_has_the_nearest(tmp_path: Path) -> None:
    write(tmp_path / "crafter.yaml", GOOD)
    with pytest.raises(ConfigError, match=r"no file .*crafterr.yaml. Nearest: .*crafter.yaml"):
        load_config(CollectConfig, tmp_path / "crafterr.yaml")
    with pytest.raises(ConfigError, match="cannot be read either"):
        load_config(CollectConfig, tmp_path / "no" / "crafter.yaml")
    with pytest.raises(ConfigError, match="cannot be read"):
        load_config(CollectConfig, tmp_path)
    (tmp_path / "b.yaml").write_bytes(b"\xff\xfe\xfa")
    with pytest.raises(ConfigError, match="UTF-8"):
        load_config(CollectConfig, tmp_path / "b.yaml")


def test_an_empty_file_leaves_all_to_the_overrides(tmp_path: Path) -> None:
    path = write(tmp_path / "c.yaml", "# nothing\n")
    assert load_config(CollectConfig, path, BASE.items()) == base()


def test_a_configuration_is_frozen_all_the_way_down() -> None:
    config = base()
    with pytest.raises(ValidationError):
        config.seed = 3  # type: ignore[misc]
    with pytest.raises(ValidationError):
        config.host.restarts = 3  # type: ignore[misc]
    with pytest.raises(ValidationError):
        config.bridge.size = 3  # type: ignore[attr-defined]


def test_configurations_can_be_made_in_python(tmp_path: Path) -> None:
    config = make_config(CollectConfig, {**BASE, "output": tmp_path})
    assert config.output == tmp_path
    with pytest.raises(InputError, match="actor: unknown key"):
        make_config(CollectConfig, {**BASE, "actor": 2})


SETTINGS = st.fixed_dictionaries(
    {},
    optional={
        "seed": st.integers(0, 2**70),
        "episodes": st.none() | st.integers(1),
        "task": st.text(),
        "explore": st.booleans(),
        "bridge": st.fixed_dictionaries(
            {"name": st.just("game")},
            optional={
                "size": st.integers(min_value=14),
                "speed": st.floats(allow_nan=False),
                "limit": st.none() | st.floats(allow_nan=False),
                "shape": st.tuples(st.integers(), st.integers()),
                "folder": st.text(min_size=1).filter(lambda t: "\0" not in t).map(Path),
                "colour": st.sampled_from(["red", "blue"]),
                "players": st.just("auto") | st.integers(),
                "extra": st.dictionaries(st.text(), PLAIN, max_size=3),
                "inner": st.builds(Inner, st.integers()),
            },
        ),
        "host": st.fixed_dictionaries(
            {},
            optional={"step_s": st.floats(1e-9, 1e9), "retries": st.just(0)},
        ),
        "state_set": st.fixed_dictionaries(
            {},
            optional={
                "split": st.sampled_from(["train", "extrapolation/a"]),
                "size": st.none() | st.integers(1),
                "test": st.floats(0, 1e9),
                "subset": st.sampled_from(["random", "prefix"]),
                "prefix": st.dictionaries(st.text(), st.integers(1), max_size=2),
                "only": st.dictionaries(st.text(), st.just(range(4)), max_size=1),
                "hold_out": st.dictionaries(
                    st.text(),
                    st.just(range(2, 9, 3))
                    | st.lists(st.booleans() | st.integers() | st.text(), max_size=3),
                    max_size=2,
                ),
            },
        ),
        "wandb": st.fixed_dictionaries({}, optional={"tags": st.lists(st.text(), max_size=3)}),
    },
)  # fmt: skip


@settings(max_examples=40)
@given(SETTINGS)
@example({"episodes": 2**63})
def test_the_resolved_configuration_loads_as_an_equal_one(tmp_path_factory, given_keys) -> None:
    config = make_config(CollectConfig, {**BASE, "env_steps": 5, **given_keys})
    path = tmp_path_factory.mktemp("r") / "config.yaml"
    write_config(config, path)
    again = load_config(CollectConfig, path)
    assert again == config
    assert resolved(again) == resolved(config)
    assert again.bridge.build() == config.bridge.build()


def test_the_resolved_configuration_spells_every_default_out() -> None:
    data = resolved(base())
    assert data["bridge"] == {
        "name": "game", "size": 64, "speed": 1, "sound": False, "shape": [2, 3], "folder": "saves",
        "colour": "red", "mode": "easy", "players": "auto", "extra": {}, "limit": None,
        "copy": 0, "inner": {"depth": 1},
    }  # fmt: skip
    assert data["host"]["restarts"] == 5
    assert data["fragment"] == {"steps": 64, "seconds": None}
    assert data["wandb"]["mode"] == "auto"


def test_nan_in_an_option_is_kept() -> None:
    config = base("bridge.limit=.nan")
    again = make_config(CollectConfig, parse_yaml(dump_yaml(resolved(config)), "f")[0])
    assert math.isnan(again.bridge.build().limit)


# --- sections -----------------------------------------------------------------------------------


def test_deadlines_given_take_the_place_of_the_bridges_own() -> None:
    deadlines = base("host.step_s=3").host.deadlines(Deadlines(1, 2, 9, 4))
    assert deadlines == Deadlines(1, 2, 3, 4)


def test_a_state_set_is_taken_from_a_space() -> None:
    space = StateSpace((Factor("biome", ("a", "b", "c")), Factor("seed", range(100))))
    data = {"size": 5, "hold_out": {"seed": {"range": [90, 100]}, "biome": "c"}, "order": 1}
    states = make_config(StateSetConfig, data).take(space)
    assert states.size == 5
    assert all(s["biome"] != "c" and s["seed"] < 90 for s in states)
    with pytest.raises(UnknownNameError, match="unknown split"):
        StateSetConfig(split="extrapolation/biome").take(space)


def test_a_state_set_may_be_a_prefix_of_what_is_left_of_the_factors() -> None:
    space = StateSpace((Factor("biome", ("a", "b", "c")), Factor("seed", range(100))))
    data = {"subset": "prefix", "size": 5, "prefix": {"seed": 20}, "only": {"biome": ["b", "c"]}}
    config = make_config(StateSetConfig, data)
    states = config.take(space)
    assert all(s["biome"] == "b" and s["seed"] < 20 for s in states)
    assert states.name.startswith("train-prefix-5-")
    test = config.splits(space).take("test")
    assert {s["biome"] for s in test} == {"b", "c"}
    assert not {s.index for s in states} & {s.index for s in test}
    assert config.model_copy(update={"order": 1}).take(space).digest != states.digest


def test_a_state_set_may_have_the_first_entries_of_three_lists() -> None:
    names = ("hand", "place", "cow", "seed")
    space = StateSpace(tuple(Factor(name, range(100)) for name in names))
    lists = {"equipment": ["hand"], "sheep": ["place"], "other": ["cow"]}
    config = make_config(StateSetConfig, {"subset": "lists", "size": 100, "lists": lists})
    states = config.take(space)
    assert states.name.startswith("train-lists-100-")
    assert all(s["hand"] < 12 and s["place"] < 3 and s["cow"] < 3 for s in states)
    assert config.of_part("test", 5).take(space).size == 5


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"subset": "prefix", "size": 5, "split": "test"}, "training states, but split=test"),
        ({"subset": "prefix", "states": [1]}, r"but state_set\.states is given"),
        ({"subset": "prefix"}, r"needs state_set\.size"),
        ({"prefix": {"seed": 5}}, r"state_set\.subset is random; set state_set\.subset=prefix"),
        ({"subset": "prefix", "size": 5, "prefix": {"seed": 101}}, "expected 1 to 100"),
        ({"subset": "lists", "size": 5, "prefix": {"seed": 5}}, r"set state_set\.subset=prefix"),
        ({"lists": {"sheep": ["biome"]}}, r"is random; set state_set\.subset=lists"),
        ({"subset": "lists"}, r"subset=lists needs state_set\.size"),
        ({"cut": ["sheep"]}, r"state_set\.subset is random; set state_set\.subset=lists"),
        ({"shuffled": True}, r"state_set\.subset is random; set state_set\.subset=lists"),
        ({"subset": "lists", "size": 5, "split": "all"}, "training states, but split=all"),
    ],
)
def test_a_prefix_that_makes_no_sense_is_refused(data: dict[str, Any], message: str) -> None:
    space = StateSpace((Factor("biome", ("a", "b", "c")), Factor("seed", range(100))))
    with pytest.raises(StateError, match=message):
        make_config(StateSetConfig, data).take(space)


# --- what was chosen ----------------------------------------------------------------------------


def test_keys_that_are_added_with_their_defaults_do_not_change_what_was_chosen() -> None:
    class Later(StateSetConfig):
        added: int = 3

    data = {"size": 5, "seed": 0, "hold_out": {"biome": ["a"]}}
    now, later = make_config(StateSetConfig, data), make_config(Later, data)
    assert chosen(now) == chosen(later) == {"size": 5, "hold_out": {"biome": ["a"]}}
    assert chosen(make_config(Later, {"added": 4})) == {"added": 4}


def test_what_was_chosen_names_plugins_and_their_options_that_differ() -> None:
    config = make_config(CollectConfig, {**BASE, "host": {"isolation": "subprocess"}})
    found = chosen(config)
    assert found["bridge"]["name"] == config.bridge.name
    assert set(found["bridge"]) - {"name"} == set(config.bridge.chosen)
    assert chosen(make_config(CollectConfig, found)) == found


# --- help ---------------------------------------------------------------------------------------


def test_help_has_every_key_with_type_default_unit_and_meaning() -> None:
    text = help_text(CollectConfig)
    assert "  seed  (int, default 0)\n      Seed of all random numbers" in text
    assert "  output  (path, required)" in text
    assert "  host.step_s  (float | null, default null, unit: s)" in text
    assert "  wandb.tags  (list of text, default [])" in text
    assert "  recording.fsync  (never|episode|shard, default shard)" in text
    assert "The game. Installed: game" in text
    for key in _leaves(resolved(base())):
        if not key.startswith(("bridge.", "policy.")):
            assert f"\n  {key}  (" in text


def test_help_has_the_options_of_every_plugin_and_says_which_are_broken() -> None:
    text = help_text(CollectConfig)
    assert "bridge.* of bridge 'game':" in text
    assert "  bridge.size  (int, default 64, unit: pixels)\n      Edge of the picture." in text
    assert "  bridge.mode  (easy|hard, default easy)" in text
    assert "  bridge.shape  ([int, int], default [2, 3])" in text
    assert "policy.file  (text, required)" in text
    assert "bridge 'plain'" in text
    assert "cannot be used: bridge 'plain': expected a frozen dataclass" in text


def test_help_about_a_chosen_plugin_leaves_the_others_out() -> None:
    text = help_text(CollectConfig, {"bridge": "game"})
    assert "bridge.size" in text
    assert "of bridge 'plain'" not in text
    assert "policy.file" in text


def test_help_about_the_first_keys_is_short() -> None:
    text = help_text(CollectConfig, about="")
    assert len(text.splitlines()) < 60
    assert "  episodes  (int | null" in text
    assert "  bridge.name  (text, required)" in text
    assert "bridge.size" not in text
    assert "\n  host       How games are hosted and restarted." in text
    assert "host.step_s" not in text


@pytest.mark.parametrize(
    ("about", "there", "missing"),
    [
        ("host", "  host.step_s  (", "seed"),
        ("host.step_s", "  host.step_s  (", "host.reset_s"),
        ("bridge", "  bridge.size  (", "policy"),
    ],
)
def test_help_about_a_section_has_its_keys_alone(about, there, missing) -> None:
    text = help_text(CollectConfig, about=about)
    assert there in text
    assert f"  {missing}" not in text
    assert "sections" not in text


def test_help_has_the_keys_of_a_section_that_may_be_null() -> None:
    class Tuned(CollectConfig):
        search: HostConfig | None = Field(None, description="How it searches.")

    text = help_text(Tuned)
    assert "  search  (HostConfig | null, default null)\n      How it searches." in text
    assert "  search.step_s  (float | null, default null, unit: s)" in text
    assert "  search.step_s  (" in help_text(Tuned, about="search")


def test_help_about_nothing_that_there_is_names_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match=r"section or key 'hots'\. Nearest: host"):
        help_text(CollectConfig, about="hots")


@pytest.mark.parametrize("url", ["s3://bucket/a", "S3:/b", "gs://b/c", "hdfs://h/p", "file:///a"])
def test_urls_are_refused_under_every_key_but_the_output(url: str, tmp_path: Path) -> None:
    """None of them becomes a local folder ``s3:``; nor does one that is an option of a plug-in."""
    for key in ("dataset", "policy.path", "players.a.path", "bridge.any_of_a_stranger"):
        with pytest.raises(ConfigError, match=rf"^--set: {key}: expected a path of this machine"):
            load_config(CollectConfig, None, [(key, url)])
    file = tmp_path / "c.yaml"
    file.write_text(f"a:\n- x\n- {url}\n")
    with pytest.raises(ConfigError, match=rf"c.yaml:3: a\[1\]: .*, got {url}; \w+ is not supp"):
        load_config(CollectConfig, file)
    with pytest.raises(ConfigError, match="expected a path of this machine"):
        load_config(CollectConfig, url)


def test_a_url_of_the_web_is_no_folder_either() -> None:
    for url in ("https://h/a", "HTTP://h:8000/a"):
        with pytest.raises(ConfigError, match="expected a path of this machine"):
            load_config(CollectConfig, url)
        with pytest.raises(RunDirectoryError, match="output: expected a path of this machine"):
            absolute(Path(url))


def test_addresses_are_no_paths(tmp_path: Path) -> None:
    file = write(tmp_path / "c.yaml", GOOD)
    config = load_config(CollectConfig, file, [("ray.address", "ray://head:10001")])
    assert config.ray.address == "ray://head:10001"


def test_every_key_has_a_description() -> None:
    lines = help_text(CollectConfig).split(".* of")[0].splitlines()
    keys = [pair for pair in itertools.pairwise(lines) if re.match(r"  \S", pair[0])]
    assert len(keys) > 40
    assert all(after.startswith("      ") for _, after in keys)


def _leaves(data: dict[str, Any], prefix: str = "") -> Iterator[str]:
    for key, value in data.items():
        if isinstance(value, dict) and value:
            yield from _leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}"
