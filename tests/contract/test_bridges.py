"""The conformance suite of bridges: whole games pass, and each check has a game that fails it."""

import dataclasses
import itertools
import json
import re
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import gymnasium
import numpy as np
import psutil
import pytest
from gymnasium import spaces

from rollout.api import State, StateSpace
from rollout.commands.check_bridge import main as check_bridge_script
from rollout.config import build_plugin
from rollout.errors import ContractError, GameStartError, InputError, UnknownNameError
from rollout.testing import FakeBridge, check_bridge
from rollout.testing.bridge_checks import BEFORE_LAUNCH, LAUNCHED
from rollout.testing.fakes import FakeInstance
from rollout.testing.game_checks import is_left
from rollout.testing.trial import Trial

CHECKS = [*BEFORE_LAUNCH, *LAUNCHED]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"side": 4, "max_steps": 9, "with_details": True},
        {"max_width": 1},
        {"max_width": 3, "slip": 0.0},
        {"children": 1},
    ],
    ids=str,
)
def test_the_fake_passes(options):
    report = check_bridge(FakeBridge(**options), steps=40)
    report.raise_if_failed()
    assert [check.name for check in report.checks] == CHECKS
    skipped = set(report.names("skipped"))
    expected = set()
    if options.get("max_width") == 1:
        expected = {
            "slots never reset are left alone",
            "reset leaves other slots alone",
            "width does not matter",
        }
    assert skipped - {"over slots are left alone"} == expected


@pytest.mark.parametrize("width", [1, 2, 16])
def test_the_fake_passes_at_any_width(width):
    check_bridge(FakeBridge(side=4), steps=20, width=width, seed=width).raise_if_failed()


def test_a_game_that_does_not_reproduce_may_say_so():
    report = check_bridge(dataclasses.replace(Flawed(flaw="honest"), unseeded=True))
    report.raise_if_failed()
    assert {check.seen for check in report.checks if check.result == "skipped"} == {
        "the spec says reproducible=False"
    }
    assert len(report.names("skipped")) == 7


@dataclass(frozen=True)
class Pairs(FakeBridge):
    """Worlds of two slots, which disturb one another; a launch may be asked for half a world."""

    max_width: int = 6
    half_worlds: bool = False

    @cached_property
    def spec(self):
        return dataclasses.replace(super().spec, width_step=2)

    def launch(self, workdir, ports, *, width, timeout_s):
        if not self.half_worlds or width > self.max_width or width < 1:
            self.spec.require_width(width)
        return PairsInstance(self, workdir, width)


class PairsInstance(FakeInstance):
    def reset(self, slots, starts, *, timeout_s):
        frame = super().reset(slots, starts, timeout_s=timeout_s)
        self._salt[list(slots)] = 0
        for slot in slots:
            if slot ^ 1 not in slots:
                self._salt[slot ^ 1] += np.uint64(1)
        return frame


@pytest.mark.parametrize("width", [None, 2, 6])
def test_slots_that_come_together_are_checked_as_one_world(width):
    report = check_bridge(Pairs(), steps=30, width=width)
    report.raise_if_failed()
    alone = {"slots never reset are left alone", "reset leaves other slots alone"}
    skipped = set(report.names("skipped")) - {"over slots are left alone"}
    assert skipped == (alone if width == 2 else set())
    with pytest.raises(InputError, match=r"has 2 to 6 slots, 2 at a time"):
        check_bridge(Pairs(), width=3)


class Lenient(StateSpace):
    def state(self, index):
        return State(index, {f.name: f.values[0] for f in self})


def _spec_changes(spec):
    observation = spec.observation_space.spaces
    return {
        "honest": {"reproducible": False},
        "no version": {"version": ""},
        "list observed": {
            "observation_space": spaces.Dict(
                {**observation, "chat": spaces.Sequence(spaces.Discrete(9))}
            )
        },
        "nested": {"action_space": spaces.Dict({"a": spaces.Dict({"move": spaces.Discrete(5)})})},
        "no width": {"max_width": 0},
        "no stack": {"stacks": {"image": 0}},
        "signal dtype": {"signals": {"x": dataclasses.replace(spec.signals["reward"], dtype="y")}},
        "narrow observation": {
            "observation_space": spaces.Dict(
                {**observation, "position": spaces.Box(0.0, 0.4, (2,), np.float32)}
            )
        },
        "other dtype": {
            "observation_space": spaces.Dict(
                {**observation, "position": spaces.Box(0.0, 1.0, (2,), np.float64)}
            )
        },
        "signal missing": {"signals": {**spec.signals, "health": spec.signals["reward"]}},
        "signal undeclared": {"signals": {"reward": spec.signals["reward"]}},
        "seed denied": {"uses_seed": False},
        "lenient space": {"state_space": Lenient(spec.state_space.factors)},
    }


@dataclass(frozen=True)
class Flawed(FakeBridge):
    """The fake with one flaw that is not among its options."""

    flaw: str = ""
    max_steps: int = 12

    @cached_property
    def spec(self):
        if self.flaw == "spec starts the game":
            STRAYS.append(subprocess.Popen([sys.executable, "-c", "input()"], stdin=-1))
        spec = super().spec
        return dataclasses.replace(spec, **_spec_changes(spec).get(self.flaw, {}))

    def launch(self, workdir, ports, *, width, timeout_s):
        if self.flaw == "any width" and width > self.max_width:
            width = self.max_width
        if self.flaw == "start error" and not 1 <= width <= self.max_width:
            raise ValueError("too wide")
        if not 1 <= width <= self.max_width:
            raise GameStartError(f"width {width}")
        return FlawedInstance(self, Path(workdir), width)


STRAYS = []
RESETS = itertools.count()


@pytest.fixture(autouse=True)
def _no_strays():
    yield
    while STRAYS:
        stray = STRAYS.pop()
        stray.kill()
        stray.communicate()


class FlawedInstance(FakeInstance):
    def __init__(self, bridge, workdir, width):
        super().__init__(bridge, workdir, width)
        self.flaw, self.steps = bridge.flaw, 0
        if self.flaw == "step before reset":
            self._begun[:] = True
        self.file = (workdir / "open").open("w") if self.flaw == "file left" else None
        if self.file:
            STRAY_FILES.append(self.file)

    def reset(self, slots, starts, *, timeout_s):
        if self.flaw == "partial resets leak" and len(slots) < self.width:
            self._salt[list(slots)] += np.uint64(1)
        frame = super().reset(slots, starts, timeout_s=timeout_s)
        if self.flaw in ("history leaks", "slots leak"):
            self._salt[list(slots) if self.flaw == "history leaks" else ...] += np.uint64(1)
        if self.flaw == "instances leak":
            self._salt[list(slots)] = next(RESETS)
        if self.flaw == "width leaks":
            self._salt[:] = self.width
        if self.flaw == "row order" and list(slots) != sorted(slots):
            return frame.take(range(len(slots))[::-1])
        if self.flaw == "plays unasked":
            self._begun[:] = True
        if self.flaw == "over on reset":
            frame.game_over[:] = True
        if self.flaw == "row missing":
            return frame.take(range(len(slots) - 1))
        return frame

    def step(self, actions, *, timeout_s):
        if self.flaw == "actions changed":
            actions["move"][:] = 0
        if self.flaw == "last action" and (actions["move"] == 4).all():
            raise RuntimeError("no such move")
        frame = super().step(actions, timeout_s=timeout_s)
        self.steps += 1
        if self.flaw == "frame order" and not self._begun.all():
            self._seed[:] = 0
        if self.flaw == "NaN" and self.steps > 20:
            self._reward[:] = np.nan
        if self.flaw == "details":
            frame.details = [{"when": object()} for _ in range(self.width)]
        if self.flaw == "details missing":
            frame.details = [{}]
        if self.flaw == "tick dtype":
            frame.tick = frame.tick.astype(np.int32)
        if self.flaw == "cut differs":
            frame.game_truncated = frame.game_truncated.astype(np.int8)
        return frame

    def _move(self, move, live):
        super()._move(move, self._begun if self.flaw == "moves when over" else live)

    def snapshot(self, slot):
        data = super().snapshot(slot)
        if self.flaw == "snapshot not bytes":
            return json.loads(data)
        if self.flaw == "snapshot forgets the seed":
            return json.dumps({**json.loads(data), "_seed": 0}).encode()
        if self.flaw == "snapshot forgets the place":
            return json.dumps({**json.loads(data), "_xy": [0, 0], "_target": [3, 3]}).encode()
        return data

    def close(self):
        if self.flaw == "close raises twice" and self._closed:
            raise RuntimeError("already closed")
        super().close()


STRAY_FILES = []


@pytest.fixture(autouse=True)
def _no_stray_files():
    yield
    while STRAY_FILES:
        STRAY_FILES.pop().close()


@dataclass
class NotFrozen:
    spec = FakeBridge().spec
    launch = FakeBridge.launch


@dataclass(frozen=True)
class Unpicklable(FakeBridge):
    lock: object = field(default_factory=threading.Lock)


@dataclass(frozen=True)
class ChangesWhenPickled(FakeBridge):
    born: int = 0

    def __reduce__(self):
        return ChangesWhenPickled, ()


FAILURES = [
    ("spec before launch", Flawed(flaw="no version"), "expected name and version"),
    ("spec before launch", Flawed(flaw="list observed"), "'chat'.*expected a leaf"),
    ("spec before launch", Flawed(flaw="nested"), "'a'.*expected a leaf"),
    ("spec before launch", Flawed(flaw="no width"), "max_width: expected a multiple of 1, got 0"),
    ("spec before launch", Flawed(flaw="signal dtype"), "signal 'x'"),
    ("spec before launch", Flawed(flaw="spec starts the game"), "asking for the spec started"),
    ("pickles", NotFrozen(), "is not frozen"),
    ("pickles", Unpicklable(), "cannot pickle"),
    ("pickles", ChangesWhenPickled(side=4), "a pickled copy differs"),
    ("deadlines", FakeBridge(step_deadline_s=0.0), r"deadlines.step_s: expected more than 0"),
    ("deadlines", FakeBridge(close_deadline_s=float("inf")), "deadlines.close_s"),
    ("refuses unknown states", Flawed(flaw="lenient space"), "was accepted"),
    ("launch", FakeBridge(fail_on_start=1), "GameStartError: the fake game refuses"),
    ("launch", FakeBridge(once_file="/nowhere/file", fail_on_start=1), "expected GameStartError"),
    ("impossible widths are refused", Flawed(flaw="any width"), "width=4097 was accepted"),
    ("impossible widths are refused", Pairs(half_worlds=True), "width=1 was accepted"),
    ("impossible widths are refused", Flawed(flaw="start error"), "ValueError: too wide"),
    ("step before reset is refused", Flawed(flaw="step before reset"), "was accepted"),
    (
        "slots never reset are left alone",
        Flawed(flaw="plays unasked"),
        "image holds something in their rows",
    ),
    ("slots never reset are left alone", Flawed(flaw="frame order"), "beside slots that were"),
    ("reset frame", Flawed(flaw="row order"), "not in the order of the slots"),
    ("reset frame", Flawed(flaw="over on reset"), "are over on reset"),
    ("reset frame", Flawed(flaw="row missing"), r"expected uint8\[4, .*got uint8\[3"),
    ("reset frame", Flawed(flaw="other dtype"), "'position': expected float64"),
    ("reset frame", Flawed(flaw="narrow observation"), "'position' row . is outside"),
    ("reset frame", Flawed(flaw="signal missing"), r"missing: \['health'\]"),
    ("reset frame", Flawed(flaw="signal undeclared"), r"undeclared: \['distance', 'reached'\]"),
    ("reset frame", FakeBridge(crash_on_reset=1), "GameCrashed"),
    ("step frame", Flawed(flaw="details"), "must be JSON-able"),
    ("step frame", Flawed(flaw="details missing"), "expected 4 mappings, got 1"),
    ("step frame", Flawed(flaw="tick dtype"), "tick: expected int64"),
    ("step frame", Flawed(flaw="cut differs"), "game_truncated: expected bool"),
    ("step frame", FakeBridge(crash_on_step=30), "GameCrashed"),
    ("actions are left as they are", Flawed(flaw="actions changed"), "'move' was changed"),
    ("every action is accepted", Flawed(flaw="last action"), "RuntimeError: no such move"),
    ("random agent plays", Flawed(flaw="NaN"), "signal 'reward' holds NaN"),
    ("stacks of frames", Flawed(flaw="no stack"), "step 1: the older frames of 'image' are not"),
    ("over slots are left alone", Flawed(flaw="moves when over"), "were over and still changed"),
    ("same start, same frames", FakeBridge(unseeded=True), "a second instance"),
    ("seed", Flawed(flaw="seed denied"), "uses_seed=False, yet"),
    ("history does not matter", Flawed(flaw="history leaks", max_steps=0), "after other episodes"),
    ("replay gives the same", Flawed(flaw="partial resets leak"), "replay of a random agent"),
    (
        "reset leaves other slots alone",
        Flawed(flaw="slots leak", max_steps=0),
        r"slots \[0\] were reset",
    ),
    ("width does not matter", Flawed(flaw="width leaks"), "width 1 instead of 4"),
    (
        "instances do not disturb",
        Flawed(flaw="instances leak", max_steps=0),
        "an instance beside another",
    ),
    ("snapshots are exact", Flawed(flaw="snapshot not bytes"), "expected bytes, got dict"),
    (
        "snapshots are exact",
        Flawed(flaw="snapshot forgets the seed", max_steps=0),
        "a restored slot",
    ),
    ("snapshots are exact", Flawed(flaw="snapshot forgets the place"), "does not show what"),
    ("close", Flawed(flaw="close raises twice"), "RuntimeError: already closed"),
    ("close leaves nothing", FakeBridge(children=2, leave_children=True), "left 2 of 2 processes"),
    ("close leaves nothing", Flawed(flaw="file left"), "close left files open"),
]


@pytest.mark.parametrize(
    ("name", "bridge", "seen"), FAILURES, ids=[f"{f[0]}-{k}" for k, f in enumerate(FAILURES)]
)
def test_each_check_finds_its_flaw(name, bridge, seen, recwarn):
    report = check_bridge(bridge, steps=60, only=[name])
    check = report[name]
    assert check.result == "failed", report.table()
    assert re.search(seen, check.seen), report.table()
    with pytest.raises(ContractError, match=re.escape(check.seen)):
        report.raise_if_failed()


def test_checks_can_be_chosen():
    report = check_bridge(FakeBridge(), only=["close"])
    assert [check.name for check in report.checks] == ["spec before launch", "launch", "close"]
    with pytest.raises(UnknownNameError, match="Nearest: close"):
        check_bridge(FakeBridge(), only=["closing"])


def test_every_check_has_a_flaw_that_fails_it():
    assert {name for name, _, _ in FAILURES} == set(CHECKS)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"hang_on_start": 1}, "launch"),
        ({"hang_on_reset": 1}, "step before reset is refused"),
        ({"hang_on_step": 3}, "step frame"),
        ({"hang_on_close": 1}, "step before reset is refused"),
    ],
)
def test_a_game_that_hangs_fails_and_does_not_hang_the_suite(options, name):
    began = time.monotonic()
    # A second, since listing the processes of a busy machine takes a part of it.
    report = check_bridge(FakeBridge(hang_s=20, **options), timeout_s=1, steps=20)
    assert time.monotonic() - began < 20
    assert report[name].result == "failed"
    assert "did not come back within 1 s; it is in _commit" in report[name].seen
    assert report.names("failed")


def test_a_check_that_went_on_behind_the_suite_leaves_no_folder():
    trial = Trial(FakeBridge(), steps=5, width=1, seed=0)
    trial.end()
    with pytest.raises(FileNotFoundError):
        trial.launch()
    assert not trial.root.exists()


def test_processes_that_a_game_leaves_are_ended_by_the_suite():
    before = set(psutil.Process().children(recursive=True))
    check_bridge(FakeBridge(children=2, leave_children=True), steps=5)
    assert set(psutil.Process().children(recursive=True)) == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"width": 0}, "width=0: an instance of fake has 1 to 4096 slots"),
        ({"width": 5000}, "width=5000: an instance of fake has 1 to 4096 slots"),
        ({"steps": 1}, "expected steps >= 2, got 1"),
    ],
)
def test_impossible_requests_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        check_bridge(FakeBridge(), **options)


def test_a_report_can_be_read_by_people_and_programs():
    report = check_bridge(Flawed(flaw="moves when over"), steps=60)
    table = report.table().splitlines()
    assert table[0].split() == ["check", "result", "seen"]
    assert table[-1] == f"bridge Flawed: {len(CHECKS) - 1} passed, 1 failed, 0 skipped"
    assert json.loads(json.dumps(report.describe()))["passed"] is False
    with pytest.raises(KeyError, match="no check 'nothing'"):
        report["nothing"]


INSTALLED = [
    ("gymnasium", {"id": "CartPole-v1"}, 100),
    ("gymnasium", {"id": "MiniGrid-Empty-5x5-v0"}, 40),
    ("gymnasium", {"id": "MiniGrid-FourRooms-v0"}, 40),
    pytest.param("crafter", {}, 12, marks=pytest.mark.long),
    pytest.param("atari", {"id": "Pong"}, 12, marks=pytest.mark.long),
    pytest.param("blockworld", {}, 60, marks=pytest.mark.heavy),
    pytest.param(
        "blockworld",
        {
            "observe": [
                *("semantic_rays", "semantic_grid", "entities", "vitals", "inventory", "compass"),
                *("privileged_grid", "privileged_entities", "privileged_compass"),
            ],
            "actions": "compact",
            "ticks_per_step": 4,
            "threads": 2,
            "oracle": "hunt_sheep",
        },
        60,
        marks=pytest.mark.heavy,
    ),
    pytest.param("blockworld", {"actions": "human_flat"}, 30, marks=pytest.mark.heavy),
]


@pytest.mark.parametrize(("name", "options", "steps"), INSTALLED)
def test_installed_games_pass(name, options, steps):
    bridge = build_plugin("bridges", name, options)
    check_bridge(bridge, steps=steps, width=2).raise_if_failed()


class Unseeded(gymnasium.Env):
    """Takes a seed and does not use it, as some published games do."""

    observation_space = spaces.Box(0.0, 1.0, (2,))
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.random.default_rng().random(2, np.float32), {}

    def step(self, action):
        return np.random.default_rng().random(2, np.float32), 0.0, False, False, {}


def test_a_gymnasium_game_whose_seed_does_nothing_is_found():
    gymnasium.register("GamutUnseeded-v0", entry_point=Unseeded, disable_env_checker=True)
    try:
        bridge = build_plugin("bridges", "gymnasium", {"id": "GamutUnseeded-v0"})
        report = check_bridge(bridge, steps=20)
    finally:
        gymnasium.registry.pop("GamutUnseeded-v0")
    assert "same start, same frames" in report.names("failed")


def test_the_script_passes_the_fake(capsys):
    assert check_bridge_script(["fake", "--set", "side=4", "bridge.slip=0", "--steps", "30"]) == 0
    out = capsys.readouterr().out
    assert "not used, as the spec says" in out
    assert "0 failed" in out


def test_the_script_fails_a_broken_game_in_json(capsys):
    assert check_bridge_script(["fake", "--json", "--set", "unseeded=true", "--steps", "30"]) == 3
    found = json.loads(capsys.readouterr().out)
    assert found["passed"] is False
    assert {c["name"]: c["result"] for c in found["checks"]}["same start, same frames"] == "failed"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gymnasium", "--set", "id=CartPole-v7"], "Nearest: CartPole-v1"),
        (["faek"], "unknown bridge 'faek'. Nearest: fake"),
        (["fake", "--set", "sid=4"], "Nearest: bridge.side"),
        (["fake", "--set", "side=5"], "4"),
        (["fake", "--set", "side"], "expected KEY=VALUE"),
        (["fake", "--set", "a.b=1"], "is no option of a bridge"),
        (["fake", "--set", "side=4", "--set", "bridge.side=8"], "given twice"),
        (["fake", "--width", "0"], "an instance of fake has 1 to 4096 slots"),
    ],
)
def test_the_script_says_what_is_wrong_in_one_line(capsys, arguments, message):
    assert check_bridge_script(arguments) == 2
    out, err = capsys.readouterr()
    assert not out
    assert err.startswith("error: ")
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.process
def test_a_zombie_is_left_by_its_parent_alone():
    """Whoever takes over orphans reaps them when it likes; a game cannot."""
    code = "import os, time; print(os.fork() or os._exit(0), flush=True); time.sleep(600)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as parent:
        other, own = psutil.Process(int(parent.stdout.readline())), psutil.Process(parent.pid)
        wait_for_zombie(other)
        assert not is_left(other)
        assert is_left(own)
        parent.kill()
        wait_for_zombie(own)
        assert is_left(own)
    assert not is_left(own)


def wait_for_zombie(process):
    while process.status() != psutil.STATUS_ZOMBIE:
        time.sleep(0.01)
