"""Whatever a game answers costs that game its episodes at most; what was recorded reads back."""

import json
import math
import signal
import tempfile
from pathlib import Path

import numpy as np
import pytest
from garbage_game import RAISED, GarbageBridge, nest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rollout.api import Limits, Splits, Start, Task
from rollout.config import HostConfig
from rollout.data import Dataset, DatasetWriter, describe_dataset, doctor
from rollout.errors import GameCrashed
from rollout.evaluators import GameReward
from rollout.host import PlayOptions
from rollout.host.frames import FrameCheck, describe
from rollout.host.handle import InProcessHandle
from rollout.host.hosting import HostPlan, LocalFleet
from rollout.host.schedule import Schedule
from rollout.signals import Stop, Stopped
from rollout.testing.fakes import FakeBridge
from rollout.testing.players import FakePolicy

BOTH = ["in_process", pytest.param("subprocess", marks=pytest.mark.process)]
BROKEN = {
    "no frame": "expected a Frame, got NoneType",
    "no column": "no column 'position'",
    "list": "observation 'position': expected float32[1, 2], got list",
    "wrong shape": "observation 'position': expected float32[1, 2], got float32[1, 1]",
    "too many rows": "got float32[2, 2]",
    "wrong dtype": "got <U3[1, 2]",
    "nan": "observation 'position' holds NaN",
    "text reward": "signal 'reward': expected float32[1], got object[1]",
    "nan reward": "the reward is not a finite number",
    "infinite reward": "the reward is not a finite number",
    "large reward": "the reward is not a finite number of float32, whose largest is 3.4e38",
    "more details": "details: expected 1 mappings, got 2",
    "details of text": "details of row 0: expected a mapping, got str",
    "details of number": "details: expected 1 mappings, got int",
    "over of text": "frame 'game_over': expected bool[1], got <U2[1]",
    "object": "a value of type object under 'deep/down'",
    "set": "a value of type set under 'deep/down'",
    "function": "a value of type builtin_function_or_method under 'deep/down",
    "complex": "a value of type complex under 'deep/down'",
    "cycle": "more than 64 levels, or a cycle under 'deep/down/again/0",
    "deep": "more than 64 levels, or a cycle under 'deep/down/0/0",
    "laughs": "more than 1048576 values, or 16777216 characters, under 'deep/down/0/0",
    "huge": "an integer of 16610 bits under 'deep/down'",
    "both": "two keys that are both '1' as text under 'deep/down'",
    "objects": "a value of type object under 'deep/down/0'",
    "numbers for text": "observation 'chat': expected 1 texts, got 1 of ['float64']",
    "interrupt": "KeyboardInterrupt",
    "exit": "SystemExit",
    "end of file": "EOFError",
    "silent": "SilentError",
    "text_fails": "TextFails: its text cannot be shown (RuntimeError)",
    "no memory": "MemoryError",
}


def collected(folder, bridge, isolation="in_process", *, episodes=4, retries=0):
    """Plays and records some episodes; returns results, losses and what the dataset holds."""
    task = Task("t", "", bridge.spec.state_space, GameReward(), Limits(steps=6))
    plan = HostPlan(
        bridge,
        task,
        FakePolicy(),
        host=HostConfig(isolation=isolation, restarts=100, backoff_s=0),
        play=PlayOptions(16, retries=retries),
    )
    manifest = describe_dataset(bridge.spec, task, details=True, extras=extras_of(plan))
    results, losses, read = [], [], {}
    fleet = LocalFleet(plan)
    try:
        with DatasetWriter(folder / "data", manifest) as writer:
            states = Splits(bridge.spec.state_space).take("train", 50)
            for fragment in fleet.play(Schedule(states, seed=1, episodes=episodes)):
                fragment.check()
                writer.append(fragment)
                results += [r for r in fragment.results if r.end != "lost"]
                losses += fragment.losses
    finally:
        fleet.close()
    with Dataset(folder / "data") as dataset:
        for ref in dataset.episodes():
            read[ref.episode] = dataset.read(ref)
    assert doctor(folder / "data").findings == ()
    assert sorted(read) == sorted(r.start.episode for r in results)
    return results, losses, read


def extras_of(plan):
    return dict(plan.policy.build(plan.bridge.spec, plan.task, seed=0).extras)


def check_flaws(folder, flaws, isolation):
    """Each flaw costs one episode; those before and after are played to their end."""
    bridge = GarbageBridge(flaws=tuple(f for flaw in flaws for f in (flaw, "")), chat="hello")
    with Stop():  # what a script has in place; else a KeyboardInterrupt could be that of the user
        results, losses, _ = collected(folder, bridge, isolation, episodes=2 * len(flaws))
    assert sorted(r.start.episode for r in results) == list(range(1, 2 * len(flaws), 2))
    assert sorted(loss.start.episode for loss in losses) == list(range(0, 2 * len(flaws), 2))
    for loss in losses:
        flaw = bridge.flaws[loss.start.episode]
        assert loss.phase == "step"
        assert BROKEN[flaw] in loss.reason
        assert flaw in RAISED or "fake: " in loss.reason


@pytest.mark.heavy
@pytest.mark.filterwarnings("ignore:overflow encountered in cast")  # of the large reward
def test_garbage_costs_the_episode_it_comes_in(tmp_path):
    check_flaws(tmp_path, list(BROKEN), "in_process")


@pytest.mark.process
def test_garbage_of_a_process_costs_the_episode_it_comes_in(tmp_path):
    flaws = ["function", "wrong shape", "nan reward", "interrupt", "exit", "text_fails"]
    check_flaws(tmp_path, flaws, "subprocess")


def test_a_game_that_always_answers_garbage_is_abandoned_alone(tmp_path):
    results, losses, _ = collected(tmp_path, GarbageBridge(flaws=("nan",)), retries=2)
    assert not results
    assert len(losses) == 4 * 3


@pytest.mark.parametrize("isolation", BOTH)
def test_texts_are_observed_and_recorded_as_strings(tmp_path, isolation):
    bridge = GarbageBridge(chat="sn\N{SNOWMAN}w \ud800")
    _, _, read = collected(tmp_path, bridge, isolation)
    for episode in read.values():
        said = episode.columns["observation/chat"].tolist()
        assert said == [f"sn\N{SNOWMAN}w \ufffd {step}" for step in range(len(said))]
        final = episode.final_observations["chat"]
        assert final == f"sn\N{SNOWMAN}w \ufffd {len(said)}"


CONVERTED = [
    (np.int64(3), 3),
    (np.float32(0.5), 0.5),
    (np.bool_(True), True),
    (np.str_("a"), "a"),
    (np.arange(4, dtype=np.uint8).reshape(2, 2), [[0, 1], [2, 3]]),
    (np.array(7), 7),
    (np.array([b"x", None, (1,)], object), ["x", None, [1]]),
    ((1, (2, [3])), [1, [2, [3]]]),
    (math.nan, None),
    ([math.inf, -math.inf, np.float64("nan")], [None, None, None]),
    (b"caf\xc3\xa9", "caf\u00e9"),
    (bytearray(b"\xff\x00"), "\\xff\x00"),
    ("a\ud800b", "a\ufffdb"),
    ("\ud83d\ude00", "\N{GRINNING FACE}"),  # two halves that belong together
    ({(1, "a"): 1, 2: 3, None: 4, b"k": 5}, {"(1, 'a')": 1, "2": 3, "None": 4, "k": 5}),
    ({np.int8(9): 6, "\udfff": 7}, {"9": 6, "\ufffd": 7}),
    (2**4000, 2**4000),
    (nest(62), nest(62)),
]


def shown(folder, value):
    """Returns what the host makes of a value in the details of a game."""
    bridge = GarbageBridge(details=value)
    game = bridge.launch(folder, [], width=1, timeout_s=5)
    start = Start(bridge.spec.state_space.state(0), 0)
    frame = game.reset([0], [start], timeout_s=5)
    plain = FrameCheck(bridge.spec)(frame, 1).details[0]["junk"]
    assert frame.details[0]["junk"] is value  # the game's own is left as it is
    return plain


@pytest.mark.parametrize(("value", "expected"), CONVERTED)
def test_what_converts(tmp_path, value, expected):
    plain = shown(tmp_path, value)
    assert plain == expected
    assert json.loads(json.dumps(plain, allow_nan=False).encode()) == plain


def test_rows_may_have_no_details(tmp_path):
    bridge = GarbageBridge()
    frame = FakeBridge(with_details=True).launch(tmp_path, [], width=2, timeout_s=5)._frame()
    frame.details[1] = None
    assert FrameCheck(bridge.spec)(frame, 2).details == [frame.details[0], {}]


KEYS = st.one_of(st.text(), st.integers(), st.none(), st.booleans(), st.binary(max_size=3))
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(2**62, 2**70),
    st.floats(),
    st.text(st.characters()),  # lone surrogates too
    st.binary(max_size=5),
    st.complex_numbers(),
    st.sampled_from([np.float32(1), np.int64(2), np.arange(3), np.array(["a"]), np.zeros((0, 2))]),
    st.sampled_from([np.datetime64("2020-01-01"), np.longdouble(1), np.timedelta64(1, "s")]),
    st.sets(st.integers(), max_size=2),
    st.dates(),
)
DETAILS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.tuples(inner, inner),
        st.dictionaries(st.one_of(KEYS, st.tuples(KEYS, KEYS)), inner, max_size=3),
    ),
    max_leaves=8,
)


def check_any(folder, value, isolation):
    results, losses, read = collected(folder, GarbageBridge(details=value), isolation, episodes=2)
    assert len(results) + len(losses) == 2
    assert all("fake: details of row 0: " in loss.reason for loss in losses)
    for episode in read.values():
        for details in [*episode.columns["details"], episode.final_details]:
            json.dumps(details, allow_nan=False).encode()


@pytest.mark.heavy
@given(DETAILS)
@settings(max_examples=40)
def test_any_details_in_process(value):
    with tempfile.TemporaryDirectory() as folder:
        check_any(Path(folder), value, "in_process")


@pytest.mark.process
@given(DETAILS)
@settings(max_examples=4)
@example(float("nan"))
def test_any_details_of_a_process(value):
    with tempfile.TemporaryDirectory() as folder:
        check_any(Path(folder), value, "subprocess")


class Interrupted:
    """A bridge and an instance whose step meets a signal."""

    spec = GarbageBridge().spec

    def __init__(self, error=None, turned=None):
        self.error, self.turned = error, turned

    def launch(self, workdir, ports, *, width, timeout_s):
        return self

    def step(self, actions, *, timeout_s):
        if self.error is not None:
            raise self.error
        try:
            signal.raise_signal(signal.SIGINT)
        finally:
            if self.turned is not None:
                raise self.turned

    def close(self):
        if self.error is not None:
            raise self.error


def stepped(folder, game):
    handle = InProcessHandle(game, folder, [], 1)
    handle.launch(1)
    handle.result()
    handle.step({}, 1)
    try:
        return handle.result()
    finally:
        handle.close(0)


def test_a_signal_within_a_game_is_no_failure_of_the_game(tmp_path):
    # A shell starts what runs in the background with SIGINT ignored, which Python keeps.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with Stop(), pytest.raises(Stopped):
        stepped(tmp_path, Interrupted())
    with Stop(), pytest.raises(Stopped):  # as a lock does, whose wait is interrupted
        stepped(tmp_path, Interrupted(turned=RuntimeError("release unlocked lock")))
    with pytest.raises(KeyboardInterrupt):  # with Python's own handler
        stepped(tmp_path, Interrupted())
    with pytest.raises(SystemExit):  # by Ray's handler of SIGTERM
        stepped(tmp_path, Interrupted(SystemExit(signal.SIGTERM)))
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(1), RuntimeError()])
def test_a_game_that_raises_when_closed_is_closed(tmp_path, error):
    with Stop(), pytest.raises(GameCrashed, match=type(error).__name__):
        stepped(tmp_path, Interrupted(error))


def test_errors_in_words():
    assert describe(ValueError("no\ud800")) == "ValueError: no\ufffd"
    assert describe(ValueError()) == "ValueError"
    assert describe(GameCrashed("it fell")) == "it fell"
    assert describe(GameCrashed()) == "GameCrashed"
    assert len(describe(ValueError("x" * 10**6))) < 2100
