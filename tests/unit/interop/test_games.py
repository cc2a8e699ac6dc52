"""``Games``: the same episodes as the player's, games that fail, and clients that do wrong."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import cv2
import numpy as np
import pytest

from bridges.chaos import ChaosBridge
from rollout.api import Limits, Task
from rollout.config import HostConfig, StateSetConfig
from rollout.errors import ConfigError, OutOfTurnError, SpaceError, StateError, UnknownNameError
from rollout.host import Player, PlayOptions, Pool
from rollout.host.schedule import Schedule
from rollout.interop.failures import BusyError, CapacityError, GameLost, code_of
from rollout.interop.games import Games
from rollout.models.grammar import UnusableAnswerError
from rollout.testing.fakes import FakeBridge
from rollout.testing.players import FakeEvaluator, FakePolicy

HERE = HostConfig(isolation="in_process", backoff_s=0)
APART = HostConfig(isolation="subprocess", backoff_s=0)


def task_of(bridge, steps=12):
    return Task("t", "Reach it.", bridge.spec.state_space, FakeEvaluator(), Limits(steps=steps))


@pytest.fixture
def make(request):
    def build(bridge=None, *, games=1, steps=12, host=HERE, **options):
        bridge = bridge or FakeBridge()
        built = Games(bridge, task_of(bridge, steps), games=games, host=host, **options)
        request.addfinalizer(built.close)
        return built

    return build


def recorded(bridge, states, *, seed, episodes, folder, retries=20):
    """The episodes of our own player: start, actions, rewards, observations and result of each."""
    pool = Pool(bridge, folder, 1, 1, HERE)
    task = task_of(bridge)
    policy = FakePolicy().build(bridge.spec, task, seed=0)
    player = Player(pool, task, policy, PlayOptions(steps=64, retries=retries))
    player.offer(Schedule(states, seed=seed, episodes=episodes).take(episodes))
    found = []
    while (fragment := player.next_fragment()) is not None:
        for result in fragment.results:
            index = fragment.starts.index(result.start)
            rows = fragment.start_index[:, 0] == index
            columns = {
                "action": fragment.actions["move"][rows, 0],
                "reward": fragment.reward[rows, 0],
                "image": fragment.observations["image"][rows, 0],
            }
            found.append((result, columns))
    player.close()
    return found


def test_an_episode_is_that_of_the_player(make, tmp_path):
    """Same states and seeds: same observations, rewards and results, bit by bit."""
    games = make(games=2, seed=7)
    record = recorded(FakeBridge(), games.states, seed=7, episodes=4, folder=tmp_path)
    assert len(record) == 4
    for result, rows in sorted(record, key=lambda each: each[0].start.episode):
        game = games.open()
        moment = game.reset()
        assert moment.start == result.start
        for action, reward, image in zip(*(rows[k] for k in rows), strict=True):
            assert not moment.done
            assert np.array_equal(moment.observations["image"], image)
            moment = game.step({"move": action})
            assert np.float32(moment.reward) == reward
        assert moment.end == result.end
        for name in ("outcome", "length", "total_reward", "progress"):
            assert np.array_equal(getattr(moment.result, name), getattr(result, name), True)
        game.close()


def test_seed_and_state_decide_an_episode(make):
    games = make(games=2)
    one, two = games.open(), games.open()
    for where in ({"seed": 5}, {"split": "test", "index": 3}, {"state": 17}, {"index": 2}):
        a, b = one.reset(**where), two.reset(**where)
        assert a.start == b.start
        for _ in range(6):
            a, b = one.step("1"), two.step("1")
            assert np.array_equal(a.observations["image"], b.observations["image"])
            if a.done:
                break
    assert one.reset(seed=5).start.seed == 5
    assert one.reset(seed=5, split="validation").start.state != two.reset(seed=6).start.state
    assert one.reset(state=17).start.state.index == 17
    assert one.reset(state=two.last.start.state.values).start.state == two.last.start.state
    assert one.reset().start != two.reset().start


def test_splits_are_the_state_sets(make):
    games = make(state_set=StateSetConfig(size=5, hold_out={"colour": ["red"]}))
    assert {k: s.part for k, s in games.splits.items()} == {k: k for k in games.splits}
    assert games.splits["train"].size == 5
    assert games.splits["test"].size > 5
    game = games.open()
    assert game.reset(split="test", index=1).start.state == games.splits["test"][1]
    assert make(state_set=StateSetConfig(test=0)).splits.keys() == {"train", "validation"}


@pytest.mark.parametrize(
    ("where", "kind"),
    [
        ({"seed": -1}, StateError),
        ({"seed": "a"}, StateError),
        ({"seed": True}, StateError),
        ({"split": "tset"}, UnknownNameError),
        ({"split": "test", "index": 10**30}, StateError),
        ({"split": "test", "index": -1}, StateError),
        ({"split": "test", "index": 1.5}, StateError),
        ({"split": "test", "state": 1}, StateError),
        ({"state": -1}, StateError),
        ({"state": {"colour": "red"}}, StateError),
    ],
)
def test_a_start_that_does_not_exist_is_refused_and_changes_nothing(make, where, kind):
    game = make().open()
    before = game.reset(seed=1)
    with pytest.raises(kind) as caught:
        game.reset(**where)
    assert code_of(caught.value) == "invalid"
    assert game.last is before
    assert game.step("2").step == 1


@pytest.mark.parametrize(
    ("action", "code"),
    [("7", "action_out_of_range"), ("north", "action_malformed"), ("", "action_empty")],
)
def test_an_unusable_action_takes_no_step(make, action, code):
    game = make().open()
    game.reset(seed=1)
    with pytest.raises(UnusableAnswerError) as caught:
        game.step(action)
    assert code_of(caught.value) == code
    assert game.step({"move": 2}).step == 1


def test_arrays_that_do_not_fit_take_no_step(make):
    game = make().open()
    game.reset(seed=1)
    for value in (np.int64(5), np.float32(1), np.zeros(2, np.int64)):
        with pytest.raises(SpaceError):
            game.step({"move": value})
    assert game.step({"move": np.int32(2)}).step == 1


def test_what_comes_out_of_turn_is_refused(make):
    games = make(steps=2)
    game = games.open()
    with pytest.raises(OutOfTurnError, match="reset"):
        game.step("1")
    game.reset()
    game.step("0")
    last = game.step("0")
    assert (last.end, last.done, last.success) == ("truncated", True, None)
    with pytest.raises(OutOfTurnError, match="ended"):
        game.step("1")
    game.close()
    game.close()
    with pytest.raises(OutOfTurnError, match="closed"):
        game.reset()
    games.close()
    games.close()
    with pytest.raises(OutOfTurnError, match="closed"):
        games.open()


def test_there_are_as_many_games_as_were_made(make):
    games = make(games=2)
    first, second = games.open(), games.open()
    with pytest.raises(CapacityError, match="all 2 games") as caught:
        games.open(0.01)
    assert code_of(caught.value) == "capacity"
    threading.Timer(0.05, first.close).start()
    assert games.open(10).number == first.number
    assert second.reset().step == 0


def test_a_second_request_at_once_is_refused_and_does_not_disturb(make):
    bridge = FakeBridge(step_s=0.3)
    game = make(bridge, host=APART).open()
    game.reset()
    pending = game.submit_step("1")
    with pytest.raises(BusyError) as caught:
        game.submit_step("1")
    assert code_of(caught.value) == "busy"
    assert pending.result(10).step == 1
    assert asyncio.run(game.step_async("1")).step == 2


def test_a_client_that_leaves_in_the_middle_gives_its_game_to_the_next(make):
    games = make(FakeBridge(step_s=0.2), host=APART)
    game = games.open()
    game.reset()
    pending = game.submit_step("1")
    game.close()
    following = games.open(10)
    assert pending.done()
    assert following.reset(seed=3).step == 0


def test_a_lost_game_is_an_error_and_the_next_reset_plays(make, tmp_path):
    """Here the process of the game ends in its third step, once."""
    bridge = FakeBridge(exit_on_step=3, once_file=str(tmp_path / "once"))
    game = make(bridge, host=APART).open()
    game.reset(seed=4)
    game.step("0")
    game.step("0")
    with pytest.raises(GameLost, match="on request") as caught:
        game.step("0")
    assert (caught.value.phase, code_of(caught.value)) == ("step", "lost")
    with pytest.raises(OutOfTurnError, match="no episode"):
        game.step("0")
    moment = game.reset(seed=4)
    assert moment.start.attempt == 1
    assert game.step("0").step == 1


def test_a_failing_reset_is_tried_again_unless_it_may_not_be(make, tmp_path):
    once = {"crash_on_reset": 1, "once_file": str(tmp_path / "once")}
    assert make(FakeBridge(**once)).open().reset().start.attempt == 1
    never = HostConfig(isolation="in_process", retries=0)
    with pytest.raises(GameLost) as caught:
        make(FakeBridge(crash_on_reset=1), host=never).open().reset()
    assert caught.value.phase == "reset"


def test_games_that_cannot_be_launched_are_no_capacity(make, monkeypatch):
    opened, launch = threading.Event(), FakeBridge.launch

    def waiting(*args, **options):
        opened.wait(60)
        return launch(*args, **options)

    monkeypatch.setattr(FakeBridge, "launch", waiting)
    host = HostConfig(isolation="in_process", restarts=0, failure_rate=0, retries=0)
    games = make(FakeBridge(fail_on_start=1), host=host)
    game = games.open()
    opened.set()
    with pytest.raises(GameLost, match="refuses to start"):
        game.reset()
    game.close()
    with pytest.raises(CapacityError, match="refuses to start"):
        games.open()


def test_a_slow_game_delays_no_other(make):
    bridge = FakeBridge(hang_on_step=2, step_deadline_s=2.0, once_file="")
    games = make(bridge, games=2, host=APART, steps=100)
    slow, quick = games.open(), games.open()
    slow.reset()
    slow.step("0")
    hanging = slow.submit_step("0")
    quick.reset(seed=1)
    assert quick.step("0").step == 1
    assert not hanging.done()
    with pytest.raises(GameLost, match="within 2 s"):
        hanging.result(10)


def test_an_evaluator_that_raises_ends_one_episode_only(make, monkeypatch):
    games = make(games=2)
    one, two = games.open(), games.open()
    one.reset(seed=1)
    two.reset(seed=1)

    def broken(*_):
        raise ZeroDivisionError("in the evaluator")

    monkeypatch.setattr(games._driver.seats[one.number].referee, "judge", broken)
    with pytest.raises(ZeroDivisionError):
        one.step("0")
    assert two.step("0").step == 1
    assert one.reset(seed=1).step == 0
    assert one.step("0").step == 1


def test_an_error_of_ours_leaves_no_client_waiting(make, monkeypatch, caplog):
    games = make()
    game = games.open()
    game.reset()

    def broken(**_):
        raise ZeroDivisionError("in the pool")

    monkeypatch.setattr(games._driver.pool, "recv", broken)
    with pytest.raises(OutOfTurnError, match="closed"):
        game.submit_step("0").result(10)
    with pytest.raises(OutOfTurnError, match="closed"):
        game.submit_reset().result(10)
    assert "in the pool" in caplog.text


def test_many_clients_of_chaos_get_an_answer_to_everything(request):
    """Rewards of what was lost do not exist, and every episode is played in the end."""
    bridge = ChaosBridge(mean_steps=6, step_crash=0.05, reset_crash=0.05)
    request.addfinalizer((games := Games(bridge, games=8, host=HostConfig(backoff_s=0))).close)

    def client(number):
        lost = 0
        with games.open() as game:
            for seed in range(number, number + 3):
                moment = None
                while moment is None or not moment.done:
                    try:
                        moment = game.reset(seed=seed) if moment is None else game.step("up")
                    except GameLost:
                        lost, moment = lost + 1, None
                assert moment.result.length == moment.step
        return lost

    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(client, range(0, 80, 10))) > 0
    assert games.free == 8


def test_text_and_pictures_are_those_of_the_observation(make):
    game = make(FakeBridge(with_details=True)).open()
    moment = game.reset(seed=2)
    assert "cells to go" in moment.text()
    [(name, file)] = moment.pictures()
    shown = cv2.cvtColor(cv2.imdecode(np.frombuffer(file, np.uint8), 1), cv2.COLOR_BGR2RGB)
    assert name == "image"
    assert np.array_equal(shown, moment.observations["image"])
    assert make().open().reset(seed=2).text().startswith("position: [")


def test_games_are_named_as_in_a_configuration():
    with Games({"name": "fake", "side": 4}, games=1, host=HERE) as games:
        assert games.spec.state_space.factor("start").size == 16
        assert games.grammar.schema == {"type": "integer", "minimum": 0, "maximum": 4}
    with pytest.raises(ConfigError, match="fake"):
        Games("faek")
    with pytest.raises(ConfigError, match="side"):
        Games({"name": "fake", "sied": 4})
