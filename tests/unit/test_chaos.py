"""The chaos game: its walk, its plan of faults, and each fault as its process commits it."""

import dataclasses
import errno
import itertools
import math
import os
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest

from bridges.chaos import ChaosBridge
from bridges.chaos.game import CRASHES, FAULTS, GARBAGE, ROW, Layout, Walk
from bridges.chaos.plan import EpisodeKey, FaultPlan, Latency, Rates, Strike, parse_latency, worst
from rollout.api import Start
from rollout.config import BridgeConfig, build_plugin
from rollout.errors import (
    ConfigError,
    GameCrashed,
    GameError,
    GameStartError,
    GameTimeout,
    InputError,
    OutOfTurnError,
    SpaceError,
    StateError,
    UnknownNameError,
)
from rollout.tasks import bridge_and_task

pytestmark = pytest.mark.heavy

ROOT = Path(__file__).parents[2]
PATIENCE_S = 300.0  # a deadline that a loaded machine keeps as well
HANG_S = 0.3  # a deadline that a hang is given
STAY, UP, DOWN = range(3)
process = pytest.mark.process


def start_of(episode, attempt=0, difficulty="easy"):
    space = ChaosBridge().spec.state_space
    state = space.state(space.index({"seed": 1000 + episode, "difficulty": difficulty}))
    return Start(state, 77 + episode, episode, attempt)


def act(*actions):
    return {"action": np.array(actions, np.int64)}


@pytest.fixture
def launch(tmp_path):
    """Launches games that are closed, and whose processes are ended, after the test."""
    numbers = itertools.count()
    launched, pids = [], []

    def launch(width=1, timeout_s=PATIENCE_S, name="", **options):
        folder = tmp_path / (name or f"game-{next(numbers)}")
        folder.mkdir(exist_ok=True)
        bridge = ChaosBridge(**options)
        instance = bridge.launch(folder, [], width=width, timeout_s=timeout_s)
        launched.append(instance)
        if not bridge.zero_cost:
            pids.extend(both(instance))
        return instance

    yield launch
    for instance in launched:
        instance.close()
    for pid in pids:
        if lives(pid):
            os.kill(pid, signal.SIGKILL)


def both(instance):
    game = instance.engine.process
    return [pid for pid in (game.pid, game.grandchild_pid) if pid]


def lives(pid):
    """Whether a process runs; a zombie that nobody waited for does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def gone(pids, within_s=20.0):
    until = time.monotonic() + within_s
    while time.monotonic() < until:
        if not any(lives(pid) for pid in pids):
            return True
        time.sleep(0.02)
    return False


def reset(instance, *starts, timeout_s=PATIENCE_S):
    return instance.reset(range(len(starts)), starts, timeout_s=timeout_s)


# Latencies.


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (0.25, Latency("constant", 0.25)),
        (2, Latency("constant", 2.0)),
        ("0.25", Latency("constant", 0.25)),
        ("constant(0.5)", Latency("constant", 0.5)),
        ("exponential(0.5)", Latency("exponential", 0.5)),
        (" exponential( 0.5 , 2 ) ", Latency("exponential", 0.5, 0.0, 2.0)),
        ("lognormal(0.02, 1.2)", Latency("lognormal", 0.02, 1.2)),
        ("lognormal(0.02 1.2  2)", Latency("lognormal", 0.02, 1.2, 2.0)),
        ("lognormal(0.02, 1.2, 2)", Latency("lognormal", 0.02, 1.2, 2.0)),
    ],
)
def test_latencies_are_read(text, expected):
    assert parse_latency(text, "step_latency") == expected


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ("lognormale(1, 2)", UnknownNameError, "of step_latency.*Nearest: lognormal"),
        ("slow", ConfigError, r"step_latency: expected seconds, lognormal\(.*got 'slow'"),
        ("lognormal(1)", ConfigError, "takes 2 to 3 numbers, got 1"),
        ("exponential(1, 2, 3)", ConfigError, "takes 1 to 2 numbers, got 3"),
        ("lognormal(1, a)", ConfigError, "got 'lognormal"),
        ("lognormal()", ConfigError, "got 'lognormal"),
        ("lognormal(1,, 2)", ConfigError, "got 'lognormal"),
        (-1.0, ConfigError, "expected numbers from 0"),
        ("exponential(nan)", ConfigError, "expected numbers from 0"),
        ("exponential(inf)", ConfigError, "expected numbers from 0"),
        (True, ConfigError, "got True"),
    ],
)
def test_latencies_that_are_none_are_refused(text, error, said):
    with pytest.raises(error, match=said):
        ChaosBridge(step_latency=text)


def test_latencies_have_the_distribution_they_name():
    shares = [(k + 0.5) / 4000 for k in range(4000)]
    exponential = [parse_latency("exponential(0.5)", "x").seconds(share) for share in shares]
    assert statistics.mean(exponential) == pytest.approx(0.5, rel=0.01)
    assert statistics.median(exponential) == pytest.approx(0.5 * math.log(2), rel=0.01)
    lognormal = [parse_latency("lognormal(0.02, 1.5, 2)", "x").seconds(share) for share in shares]
    assert statistics.median(lognormal) == pytest.approx(0.02, rel=0.01)
    logs = [math.log(drawn) for drawn in lognormal if drawn < 2]
    assert statistics.stdev(logs) == pytest.approx(1.5, rel=0.02)
    assert max(lognormal) == 2.0
    assert {Latency("constant", 0.1).seconds(share) for share in shares} == {0.1}


# The plan.


def plan_of(**options):
    return ChaosBridge(**options).plan()


def faults(plan, count=20_000, phase="step", attempt=0):
    return [plan.of_episode(phase, EpisodeKey(9, attempt, 5), step).fault for step in range(count)]


@pytest.mark.parametrize("phase", ["reset", "step", "close"])
def test_faults_come_at_the_rates_asked_for(phase):
    rates = {f"{phase}_hang": 0.03, f"{phase}_crash": 0.05}
    if phase != "close":
        rates[f"{phase}_garbage"] = 0.1
    drawn = faults(plan_of(crash_kind="kill", garbage_kind="nan", **rates), phase=phase)
    for name, share in zip(("hang", "kill", "nan"), rates.values(), strict=False):
        spread = math.sqrt(share * (1 - share) * len(drawn))
        assert abs(drawn.count(name) - share * len(drawn)) < 4 * spread, name
    assert set(drawn) == {"", "hang", "kill", "nan"} - ({"nan"} if phase == "close" else set())


def test_starts_fail_at_their_rate_and_by_the_name_of_their_folder():
    plan = plan_of(start_crash=0.2, start_latency="exponential(1)")
    drawn = [plan.start(f"instance-{k:04d}-000") for k in range(5000)]
    crashes = sum(strike.fault == "exit" for strike in drawn)
    assert abs(crashes - 1000) < 4 * math.sqrt(5000 * 0.2 * 0.8)
    assert len({strike.seconds for strike in drawn}) == 5000
    assert plan.start("instance-0001-000") == drawn[1]


def test_a_share_of_one_always_and_of_zero_never_strikes():
    assert set(faults(plan_of(step_crash=1.0), 500)) == {"exit"}
    assert set(faults(plan_of(reset_crash=1.0), 500)) == {""}


def test_any_kind_draws_all_of_them_evenly():
    drawn = faults(plan_of(step_crash=1.0, crash_kind="any"), 5000)
    assert set(drawn) == set(CRASHES)
    assert all(800 < drawn.count(kind) < 1200 for kind in CRASHES)
    garbage = faults(plan_of(step_garbage=1.0, garbage_kind="any"), 3000)
    assert set(garbage) == set(GARBAGE)


def test_fate_hangs_on_seeds_attempt_and_step_only():
    options = {"step_crash": 0.1, "step_latency": "lognormal(0.01, 1)"}
    plan = plan_of(**options)
    key = EpisodeKey(9, 0, 5)
    drawn = [plan.of_episode("step", key, step) for step in range(300)]
    assert drawn == [plan_of(**options).of_episode("step", key, step) for step in range(300)]
    others = (
        [plan.of_episode("step", EpisodeKey(10, 0, 5), step) for step in range(300)],
        [plan.of_episode("step", EpisodeKey(9, 1, 5), step) for step in range(300)],
        [plan_of(chaos_seed=1, **options).of_episode("step", key, step) for step in range(300)],
        [plan.of_episode("reset", key, step) for step in range(300)],
    )
    assert all(drawn != other for other in others)


def test_latencies_do_not_choose_the_faults():
    calm = faults(plan_of(step_crash=0.1), 500)
    assert calm == faults(plan_of(step_crash=0.1, step_latency="exponential(1)"), 500)
    assert calm.count("exit") > 20


def test_the_same_on_every_attempt_if_asked():
    plan = plan_of(step_crash=0.1, same_every_attempt=True)
    assert faults(plan, 300, attempt=0) == faults(plan, 300, attempt=3)
    plan = plan_of(episode_crash=0.3, same_every_attempt=True)
    assert faults(plan, 300, attempt=0) == faults(plan, 300, attempt=3)


def test_a_share_of_episodes_fails_once_each_within_its_shortest_length():
    plan = plan_of(episode_hang=0.1, episode_crash=0.2, crash_kind="kill")
    counts = {"hang": 0, "kill": 0}
    when = set()
    for seed in range(3000):
        key = EpisodeKey(seed, 0, 7)
        struck = [
            (step, fault)
            for step in range(1, 50)
            if (fault := plan.of_episode("step", key, step).fault)
        ]
        assert len(struck) <= 1
        for step, fault in struck:
            counts[fault] += 1
            when.add(step)
    assert abs(counts["hang"] - 300) < 4 * math.sqrt(3000 * 0.1 * 0.9)
    assert abs(counts["kill"] - 600) < 4 * math.sqrt(3000 * 0.2 * 0.8)
    assert when == set(range(1, 8))


def test_slots_share_the_slowest_time_and_the_first_fault():
    assert worst([]) == Strike()
    strikes = [Strike(0.1), Strike(0.3, "hang"), Strike(0.2, "kill")]
    assert worst(strikes) == Strike(0.3, "hang")


def test_a_plan_without_chance_draws_nothing():
    assert Rates(Latency("constant", 0.5)).calm
    assert not Rates(Latency("exponential", 0.5)).calm
    plan = FaultPlan(0, {phase: Rates(Latency("constant", 0.5)) for phase in ("step", "reset")})
    assert plan.of_episode("step", EpisodeKey(1, 0, 1), 1) == Strike(0.5)


# Options.


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"mean_steps": 1}, "mean_steps: expected 2 to 1e"),
        ({"slip": 1.5}, "slip: expected 0 to 1, got 1.5"),
        ({"exit_code": 0}, "exit_code: expected 1 to 255"),
        ({"step_deadline_s": 0.0}, "step_deadline_s: expected more than 0"),
        ({"memory_cap_mb": 5}, "memory_cap_mb: expected 0 for none, or 64"),
        ({"step_hang": 0.6, "step_crash": 0.6}, "at most 1 together"),
        ({"reset_crash": -0.1}, "reset_hang, reset_crash and reset_garbage are shares"),
        ({"episode_crash": 1.1}, "episode_crash"),
        ({"step_crash": math.nan}, "are shares"),
        ({"crash_kind": "sigkill"}, "unknown crash_kind 'sigkill'. Nearest: kill"),
        ({"garbage_kind": "byte"}, "Nearest: bytes"),
        ({"grandchild": "orphans"}, "Nearest: orphan"),
    ],
    ids=str,
)
def test_options_that_cannot_be_are_refused(options, said):
    with pytest.raises(InputError, match=said):
        ChaosBridge(**options)


def test_options_come_through_the_configuration():
    bridge = build_plugin("bridges", "chaos", {"step_latency": "exponential(0.1)", "step_hang": 0})
    assert bridge == ChaosBridge(step_latency="exponential(0.1)")
    assert build_plugin("bridges", "chaos", {"step_latency": 1}).plan().phases["step"].calm


# The walk.


def test_layouts_take_the_mean_time_and_their_share_of_it():
    layouts = [Layout(seed, 1, 60) for seed in range(4000)]
    assert statistics.mean(layout.length for layout in layouts) == pytest.approx(60, rel=0.02)
    assert min(layout.length for layout in layouts) >= 30
    assert max(layout.length for layout in layouts) <= 90
    for layout in layouts:
        gap = (layout.target - layout.start) % layout.cells
        assert min(gap, layout.cells - gap) == layout.distance == int(layout.length * 0.4)
    assert [Layout(5, level, 60).distance for level in range(3)] == sorted(
        {Layout(5, level, 60).distance for level in range(3)}
    )


@pytest.mark.parametrize("seed", range(8))
def test_the_shortest_episode_is_as_long_as_its_layout_says(seed):
    layout = Layout(seed, 2, 40)
    ways = []
    for action in (UP, DOWN):
        walk = Walk(1, 40, slip=0.0)
        walk.reset(0, seed, seed, 2, 0.0)
        steps, over = 0, False
        while not over:
            walk.step(bytes([action]), 0.0)
            tick, *_, over = ROW.unpack_from(walk.rows)
            steps += 1
            assert tick == steps
        ways.append((steps, ROW.unpack_from(walk.rows)[5]))
    assert (layout.distance, 1.0) in ways
    assert max(ways)[0] <= layout.length


def test_a_walker_slips_as_often_as_asked_and_never_outside():
    walk, slips = Walk(1, 1000, slip=0.3), 0
    walk.reset(0, 5, 3, 2, 0.0)
    for _ in range(400):
        before = ROW.unpack_from(walk.rows)
        walk.step(bytes([STAY]), 0.0)
        after = ROW.unpack_from(walk.rows)
        slips += before[6] != after[6]
        assert all(-1 <= value <= 1 for value in after[1:5])
    assert 40 < slips < 120  # two of three slips move it


@pytest.mark.parametrize("zero_cost", [True, pytest.param(False, marks=process)])
def test_an_instance_refuses_what_it_cannot_play(launch, zero_cost):
    instance = launch(width=2, zero_cost=zero_cost)
    with pytest.raises(OutOfTurnError, match="no slot was ever reset"):
        instance.step(act(0, 0), timeout_s=1)
    state = dataclasses.replace(start_of(0).state, values={"seed": -1, "difficulty": "easy"})
    with pytest.raises(StateError, match="'seed'"):
        reset(instance, dataclasses.replace(start_of(0), state=state))
    with pytest.raises(InputError, match="distinct slots from 0 to 1"):
        instance.reset([2], [start_of(0)], timeout_s=1)
    reset(instance, start_of(0), start_of(1))
    with pytest.raises(SpaceError, match=r"actions from 0 to 2.*got \[0, 3\]"):
        instance.step(act(0, 3), timeout_s=1)
    instance.step(act(0, 1), timeout_s=PATIENCE_S)
    instance.close()
    with pytest.raises(OutOfTurnError, match="is closed"):
        instance.step(act(0, 0), timeout_s=1)


def test_zero_cost_starts_no_process(launch):
    before = set(psutil.Process().children())
    instance = launch(zero_cost=True, step_crash=1.0, start_crash=1.0, close_hang=1.0)
    reset(instance, start_of(0))
    instance.step(act(UP), timeout_s=1)
    assert set(psutil.Process().children()) == before
    spec = ChaosBridge(zero_cost=True).spec
    assert spec.process == "in_process"
    assert ChaosBridge().spec.process == "subprocess"


def test_its_task_is_to_reach_the_target(launch):
    config, bridge, task = bridge_and_task(BridgeConfig(name="chaos", zero_cost=True), "chaos_walk")
    assert config.name == "chaos"
    instance = launch(zero_cost=True)
    judge = task.evaluator.build(1)
    frame = reset(instance, start_of(0))
    judge.reset([0], [start_of(0)], frame)
    verdict = None
    while not frame.game_over[0]:
        gap = frame.observations["walker"][0, 2]
        actions = act(UP if gap > 0 else DOWN)
        frame = instance.step(actions, timeout_s=1)
        verdict = judge.judge(actions, frame)
    assert verdict is not None
    assert frame.signals["distance"][0] == 0
    assert verdict.outcome[0] == 1
    assert bridge.spec.signals.keys() == frame.signals.keys()


# Its process.


def play(instance, start):
    """The observations and rewards of an episode; raises as the game does."""
    frame = reset(instance, start)
    shown = [(frame.observations["walker"].copy(), frame.signals["reward"].copy())]
    rng = np.random.default_rng(start.episode)
    while not frame.game_over[0]:
        frame = instance.step(act(int(rng.integers(3))), timeout_s=PATIENCE_S)
        shown.append((frame.observations["walker"].copy(), frame.signals["reward"].copy()))
    return shown


def same(one, other):
    return len(one) == len(other) and all(
        np.array_equal(a, b)
        for x, y in zip(one, other, strict=True)
        for a, b in zip(x, y)  # noqa: B905
    )


@process
def test_the_process_plays_what_the_library_plays(launch):
    apart, local = launch(mean_steps=12), launch(mean_steps=12, zero_cost=True)
    for episode in range(4):
        assert same(play(apart, start_of(episode)), play(local, start_of(episode)))
    assert not same(play(apart, start_of(4)), play(local, start_of(5)))


DEATHS = {
    "exit": "exit code 7",
    "kill": "killed by SIGKILL",
    "abort": "killed by SIGABRT",
    "segfault": "killed by SIGSEGV",
    "memory": f"exit code {errno.ENOMEM}",
}


def fail_at(launch, phase, **options):
    """Launches a game whose phase fails, and goes as far as that."""
    instance = launch(exit_code=7, **options)
    deadline = HANG_S if f"{phase}_hang" in options else PATIENCE_S
    reset(instance, start_of(0), timeout_s=deadline if phase == "reset" else PATIENCE_S)
    return instance.step(act(UP), timeout_s=deadline)


@process
@pytest.mark.parametrize("phase", ["reset", "step"])
@pytest.mark.parametrize("kind", CRASHES)
def test_it_dies_in_every_way_and_says_so(launch, phase, kind):
    with pytest.raises(GameCrashed, match=f"ended in {phase}: {DEATHS[kind]}") as caught:
        fail_at(launch, phase, **{f"{phase}_crash": 1.0}, crash_kind=kind)
    assert "last output: chaos game" in str(caught.value)
    words = f"dies in {phase} as ordered: {kind}" if kind != "memory" else "MemoryError"
    assert words in str(caught.value)


@process
@pytest.mark.parametrize("kind", CRASHES)
def test_a_start_fails_in_every_way(launch, kind):
    with pytest.raises(GameStartError, match=f"ended in start: {DEATHS[kind]}"):
        launch(start_crash=1.0, crash_kind=kind, exit_code=7)


@process
@pytest.mark.parametrize("phase", ["reset", "step"])
def test_it_hangs(launch, phase):
    with pytest.raises(GameTimeout, match=f"no answer to {phase} within 0.3 s"):
        fail_at(launch, phase, **{f"{phase}_hang": 1.0})


@process
def test_a_start_hangs_and_leaves_nothing(launch):
    before = set(psutil.Process().children(recursive=True))
    with pytest.raises(GameStartError, match="no answer to start within"):
        launch(start_hang=1.0, timeout_s=HANG_S)
    assert gone([p.pid for p in set(psutil.Process().children(recursive=True)) - before])


GARBLED = {"bytes": "begins with", "length": "announced instead of", "nan": "not finite"}


@process
@pytest.mark.parametrize("phase", ["reset", "step"])
@pytest.mark.parametrize("kind", GARBAGE)
def test_it_answers_with_garbage(launch, phase, kind):
    said = f"answered {phase} with garbage: .*{GARBLED[kind]}"
    with pytest.raises(GameCrashed, match=said):
        fail_at(launch, phase, **{f"{phase}_garbage": 1.0}, garbage_kind=kind)


@process
@pytest.mark.parametrize("kind", GARBAGE)
def test_a_start_that_is_garbage_fails(launch, kind):
    with pytest.raises(GameStartError, match="answered start with garbage"):
        launch(start_garbage=1.0, garbage_kind=kind)


def test_every_fault_is_among_these_tests():
    assert {"", "hang", *DEATHS, *GARBLED} == set(FAULTS)


@process
def test_it_can_die_in_silence(launch):
    with pytest.raises(GameCrashed) as caught:
        fail_at(launch, "step", step_crash=1.0, crash_kind="kill", last_words=False)
    assert str(caught.value).endswith("killed by SIGKILL")


@process
def test_a_game_that_failed_is_asked_no_more(launch):
    instance = launch(step_hang=1.0)
    reset(instance, start_of(0))
    with pytest.raises(GameTimeout):
        instance.step(act(UP), timeout_s=HANG_S)
    assert gone(both(instance))  # without a close: a host that has given up may only kill
    for call in (
        lambda: instance.step(act(UP), timeout_s=HANG_S),
        lambda: reset(instance, start_of(1)),
    ):
        with pytest.raises(OutOfTurnError, match="has failed; launch another"):
            call()
    instance.close()


@process
def test_a_slow_answer_is_late_or_waited_for(launch):
    instance = launch(step_latency=0.2)
    reset(instance, start_of(0))
    began = time.monotonic()
    instance.step(act(UP), timeout_s=PATIENCE_S)
    assert time.monotonic() - began >= 0.2
    with pytest.raises(GameTimeout):
        instance.step(act(UP), timeout_s=0.02)


@process
def test_a_crash_takes_every_slot(launch):
    instance = launch(width=3, step_crash=0.02, slip=0.0, mean_steps=1000)
    starts = [start_of(k) for k in range(3)]
    reset(instance, *starts)
    plan, width = ChaosBridge(step_crash=0.02).plan(), range(3)
    keys = [EpisodeKey(start.seed, start.attempt, 1) for start in starts]
    due = next(
        step
        for step in itertools.count(1)
        if any(plan.of_episode("step", keys[slot], step).fault for slot in width)
    )
    for _ in range(due - 1):
        instance.step(act(0, 0, 0), timeout_s=PATIENCE_S)
    with pytest.raises(GameCrashed, match="exit code 3"):
        instance.step(act(0, 0, 0), timeout_s=PATIENCE_S)


def stay_until_it_fails(instance, shown=None):
    while True:
        frame = instance.step(act(STAY), timeout_s=PATIENCE_S)
        if shown is not None:
            shown.append(float(frame.signals["rss_mb"][0]))


@process
def test_a_leak_grows_to_the_cap_and_kills(launch):
    options = {"leak_bytes": 8 << 20, "memory_cap_mb": 256, "show_memory": True}
    assert not ChaosBridge(**options).spec.reproducible
    instance = launch(mean_steps=1000, **options)
    shown = [float(reset(instance, start_of(0, difficulty="hard")).signals["rss_mb"][0])]
    with pytest.raises(GameCrashed, match=f"exit code {errno.ENOMEM}.*MemoryError in step"):
        stay_until_it_fails(instance, shown)
    assert 5 < len(shown) < 32
    assert shown[0] > 1
    # What a step leaks is counted before its answer, but for the first, all pages are touched.
    assert all(6 < later - earlier < 12 for earlier, later in itertools.pairwise(shown[1:]))


def attempts(launch, episodes, **options):
    """Plays episodes until each finishes: their trajectories, and every failure on the way."""
    instance, shown, failures = None, [], []
    for episode in range(episodes):
        for attempt in range(30):
            instance = instance or launch(mean_steps=8, **options)
            try:
                shown.append(play(instance, start_of(episode, attempt)))
                break
            except GameError as error:
                what = str(error).partition("; last output")[0]
                failures.append((episode, attempt, type(error).__name__, what))
                instance.close()
                instance = None
    return shown, failures


TROUBLE = {
    "step_crash": 0.04,
    "step_garbage": 0.04,
    "reset_crash": 0.1,
    "crash_kind": "any",
    "garbage_kind": "any",
    "step_latency": "exponential(0.002, 0.01)",
}


@process
def test_a_run_with_faults_replays_and_finishes_what_a_calm_one_does(launch):
    calm, none = attempts(launch, 10)
    assert none == []
    rough, failures = attempts(launch, 10, **TROUBLE)
    assert len(calm) == len(rough) == 10
    assert all(same(one, other) for one, other in zip(calm, rough, strict=True))
    again, same_failures = attempts(launch, 10, **TROUBLE)
    assert all(same(one, other) for one, other in zip(rough, again, strict=True))
    assert failures == same_failures
    assert len(failures) >= 3
    assert {name for *_, name, _ in failures} == {"GameCrashed"}
    _, others = attempts(launch, 10, chaos_seed=1, **TROUBLE)
    assert others != failures


@process
def test_an_episode_that_fails_on_every_attempt_never_finishes(launch):
    options = {"episode_crash": 0.5, "same_every_attempt": True, "mean_steps": 8}
    plan = ChaosBridge(**options).plan()
    key = EpisodeKey(start_of(0).seed, 0, 1)
    seeds = (k for k in itertools.count() if plan.of_episode("step", _seeded(key, k), 1).fault)
    start = dataclasses.replace(start_of(0), seed=next(seeds))
    for attempt in range(3):
        with pytest.raises(GameCrashed):
            play(launch(**options), dataclasses.replace(start, attempt=attempt))


def _seeded(key, seed):
    return dataclasses.replace(key, seed=seed)


# Its end.


@process
@pytest.mark.parametrize("grandchild", ["none", "child", "setsid"])
@pytest.mark.parametrize("how", ["closed", "stubborn", "killed", "hung"])
def test_nothing_is_left_after_close(launch, grandchild, how):
    options = {"close_hang": 1.0, "ignore_sigterm": True} if how == "stubborn" else {}
    instance = launch(grandchild=grandchild, step_hang=1.0, close_deadline_s=2.0, **options)
    pids = both(instance)
    assert len(pids) == (1 if grandchild == "none" else 2)
    assert all(lives(pid) for pid in pids)
    if grandchild != "none":
        group = os.getpgid(pids[1])
        assert (group == pids[0]) == (grandchild == "child")
    reset(instance, start_of(0))
    if how == "killed":
        os.kill(pids[0], signal.SIGKILL)
    elif how == "hung":
        with pytest.raises(GameTimeout):
            instance.step(act(UP), timeout_s=HANG_S)
    instance.close()
    instance.close()
    # Whoever had to be killed is waited for by the init process of the machine.
    assert not lives(pids[0])
    assert gone(pids)


@process
@pytest.mark.parametrize("fault", [{"close_crash": 1.0}, {"close_latency": 30.0}, {}])
def test_a_close_that_goes_wrong_ends_it_all_the_same(launch, fault):
    instance = launch(close_deadline_s=1.0, **fault)
    reset(instance, start_of(0))
    instance.close()
    assert gone(both(instance))
    log = instance.engine.process._child.log.read_text()
    assert ("dies in close" in log) == ("close_crash" in fault)


@process
def test_an_orphan_outlives_its_game(launch):
    instance = launch(grandchild="orphan")
    game, orphan = both(instance)
    assert os.getpgid(orphan) != game
    assert orphan not in [p.pid for p in psutil.Process(game).children(recursive=True)]
    instance.close()
    assert gone([game])
    assert lives(orphan)  # the fixture ends it


@process
def test_an_orphan_ends_by_itself_at_last(launch):
    instance = launch(grandchild="orphan", orphan_s=0.2)
    assert gone(both(instance)[1:])
    reset(instance, start_of(0))


@process
def test_a_game_does_not_live_without_its_grandchild(launch):
    instance = launch()
    game, grandchild = both(instance)
    reset(instance, start_of(0))
    os.kill(grandchild, signal.SIGKILL)
    assert gone([grandchild])
    with pytest.raises(GameCrashed, match=f"exit code {errno.ECHILD}.*helper process {grandchild}"):
        stay_until_it_fails(instance)
    instance.close()
    assert gone([game])


HOST = """
import sys
from pathlib import Path
from bridges.chaos import ChaosBridge
bridge = ChaosBridge(ignore_eof=sys.argv[2] == "True")
instance = bridge.launch(Path(sys.argv[1]), [], width=1, timeout_s=60)
print(instance.engine.process.pid, instance.engine.process.grandchild_pid, flush=True)
sys.stdin.read()
"""


@process
@pytest.mark.parametrize("ignore_eof", [False, True])
def test_it_ends_with_its_bridge_unless_it_does_not_notice(tmp_path, ignore_eof):
    command = [sys.executable, "-c", HOST, str(tmp_path), str(ignore_eof)]
    pids = []
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as host:
        try:
            pids = [int(pid) for pid in host.stdout.readline().split()]
            assert len(pids) == 2
            assert all(lives(pid) for pid in pids)
            host.kill()
            host.wait()
            if ignore_eof:
                time.sleep(0.3)
                assert all(lives(pid) for pid in pids)
            else:
                assert gone(pids)
        finally:
            host.kill()
            for pid in filter(lives, pids):
                os.kill(pid, signal.SIGKILL)
