"""The playing loop: what a fragment holds, and what becomes of episodes when games fail."""

import itertools
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from policies.scripted import ScriptedPolicy
from rollout.api import PRIVILEGED, ColumnSpec, Limits, PolicyRecipe, Splits, Start, Task
from rollout.config import HostConfig
from rollout.errors import BudgetExhausted, ConfigError, OutOfTurnError
from rollout.host import Player, PlayOptions, Pool
from rollout.host.processes import marked_processes, owner_mark
from rollout.testing.fakes import FakeBridge, FakeInstance
from rollout.testing.players import FakeEvaluator, FakePlayer, FakePolicy


def make_player(
    folder: Path,
    bridge: FakeBridge,
    *,
    instances: int = 1,
    width: int = 1,
    isolation: str = "in_process",
    limit: int | None = 30,
    restarts: int = 5,
    retries: int = 3,
    steps: int = 16,
    seconds: float | None = None,
    policy: PolicyRecipe = FakePolicy(),  # noqa: B008 - it is frozen
) -> Player:
    spec = bridge.spec
    task = Task("t", "", spec.state_space, FakeEvaluator(), Limits(steps=limit))
    pool = Pool(
        bridge,
        folder,
        instances,
        width,
        HostConfig(isolation=isolation, restarts=restarts, backoff_s=0),
    )
    options = PlayOptions(steps, seconds, retries=retries)
    return Player(pool, task, policy.build(spec, task, seed=0), options)


def starts(bridge: FakeBridge, count: int) -> list[Start]:
    states = Splits(bridge.spec.state_space).take("train", 50)
    return [Start(states[i % 50], 1000 + i, i, 0, states.name) for i in range(count)]


def play(player: Player, episodes: list[Start]):
    player.offer(episodes)
    fragments = []
    try:
        while (fragment := player.next_fragment()) is not None:
            fragment.check()
            fragments.append(fragment)
    finally:
        player.close()
    return fragments


def rewards_by_episode(fragments):
    """Every reward of every episode that was not lost, in order, by episode number."""
    rows = {}
    for f in fragments:
        for t, b in np.argwhere(f.valid):
            start = f.starts[f.start_index[t, b]]
            rows.setdefault((start.episode, start.attempt), []).append(float(f.reward[t, b]))
    ended = {(r.start.episode, r.start.attempt) for f in fragments for r in f.results}
    lost = {(x.start.episode, x.start.attempt) for f in fragments for x in f.losses}
    return {key[0]: rewards for key, rewards in rows.items() if key in ended - lost}


@dataclass(frozen=True)
class Talker(FakePolicy):
    """Sends half a surrogate pair wherever a policy can send text, and ends its episodes."""

    def build(self, spec, task, *, seed):
        player = super().build(spec, task, seed=seed)
        player.__class__ = _Talking
        return player


class _Talking(FakePlayer):
    extras: ClassVar = {"said": ColumnSpec("object", doc="")}

    def act(self, observations, memory, *, details, explore):
        decision = super().act(observations, memory, details=details, explore=explore)
        said = np.empty(len(decision.actions["move"]), object)
        for row in range(len(said)):
            said[row] = {"\ud83d": ["\udc00.", 1]}
        return replace(decision, extras={"said": said}, stops=["\ud83d"] * len(said))


def test_the_texts_of_a_policy_are_made_whole(tmp_path):
    bridge = FakeBridge()
    player = make_player(tmp_path, bridge, width=2, policy=Talker())
    fragments = play(player, starts(bridge, 2))
    assert [f.extras["said"][0, 0] for f in fragments] == [{"�": ["�.", 1]}]
    assert {result.notice for f in fragments for result in f.results} == {"�"}


HOSTING = [(1, 1, "in_process"), (1, 8, "in_process"), (3, 1, "subprocess"), (2, 16, "subprocess")]


@pytest.mark.process
def test_the_same_episodes_however_they_are_hosted(tmp_path):
    """One slot or many, in this process or others: the same states, actions and rewards."""
    bridge = FakeBridge()
    played = []
    for instances, width, isolation in HOSTING:
        player = make_player(
            tmp_path / isolation / str(width),
            bridge,
            instances=instances,
            width=width,
            isolation=isolation,
        )
        played.append(rewards_by_episode(play(player, starts(bridge, 40))))
    assert sorted(played[0]) == list(range(40))
    assert all(p == played[0] for p in played[1:])


@pytest.mark.parametrize("width", [1, 4, 9])
def test_a_recording_is_replayed_to_its_end_at_any_width(tmp_path, width):
    """Slots whose episode is over, or that never had one, need no more actions."""
    bridge, recorded = FakeBridge(), {}
    episodes = starts(bridge, 6)
    for f in play(make_player(tmp_path / "a", bridge, width=3), episodes):
        for t, b in np.argwhere(f.valid):
            moves = recorded.setdefault(f.starts[f.start_index[t, b]].episode, [])
            moves.append(f.actions["move"][t, b])
    lengths = {episode: len(moves) for episode, moves in recorded.items()}
    assert len(set(lengths.values())) > 1
    recipe = ScriptedPolicy({n: {"move": moves} for n, moves in recorded.items()})
    player = make_player(tmp_path / "b", bridge, width=width, policy=recipe)
    results = [result for f in play(player, episodes) for result in f.results]
    assert {result.start.episode: result.length for result in results} == lengths


@pytest.mark.parametrize("width", [1, 5])
def test_fragments_show_what_the_game_showed(tmp_path, width):
    """Replaying the recorded actions on the bare game gives the recorded frames, finals too."""
    bridge = FakeBridge(with_details=True)
    episodes = starts(bridge, 7)
    fragments = play(make_player(tmp_path, bridge, width=width, steps=7), episodes)
    seen, finals = {}, {}
    for f in fragments:
        for t, b in np.argwhere(f.valid):
            episode = f.starts[f.start_index[t, b]].episode
            seen.setdefault(episode, []).append((f, t, b))
        for k, (t, b) in enumerate(f.final_index):
            episode = f.starts[f.start_index[t, b]].episode
            finals[episode] = ({key: v[k] for key, v in f.final_observations.items()}, f, k)
    game = bridge.launch(tmp_path, [], width=1, timeout_s=5)
    for start in episodes:
        frame = game.reset([0], [start], timeout_s=5)
        for number, (f, t, b) in enumerate(seen[start.episode]):
            assert f.step[t, b] == number
            assert f.first[t, b] == (number == 0)
            for key, value in frame.observations.items():
                assert np.array_equal(f.observations[key][t, b], value[0])
            assert f.details[t][b] == frame.details[0]
            frame = game.step({k: v[t, b][None] for k, v in f.actions.items()}, timeout_s=5)
            for key, value in frame.signals.items():
                assert f.signals[key][t, b] == value[0]
            assert f.tick[t, b] == frame.tick[0]
            last = number == len(seen[start.episode]) - 1
            assert f.done[t, b] == last
        final, f, k = finals[start.episode]
        for key, value in frame.observations.items():
            assert np.array_equal(final[key], value[0])
        assert f.final_details[k] == frame.details[0]


def test_policies_do_not_see_privileged_details_and_datasets_do(tmp_path, monkeypatch):
    plain, asked = FakeInstance._frame, []

    def frame(instance):
        made = plain(instance)
        made.details = [{**each, PRIVILEGED: {"secret": 1}} for each in made.details]
        return made

    def act(policy, observations, memory, *, details, explore):
        asked.extend(details)
        return decide(policy, observations, memory, details=details, explore=explore)

    decide = FakePlayer.act
    monkeypatch.setattr(FakeInstance, "_frame", frame)
    monkeypatch.setattr(FakePlayer, "act", act)
    bridge = FakeBridge(with_details=True)
    fragments = play(make_player(tmp_path, bridge), starts(bridge, 2))
    assert asked
    assert all(set(details) <= {"text", "notice"} for details in asked)
    recorded = [row[0] for f in fragments for row in f.details] + fragments[-1].final_details
    assert any(row and row[PRIVILEGED] == {"secret": 1} for row in recorded)


def test_results_agree_with_the_rows(tmp_path):
    bridge = FakeBridge(with_details=True)
    fragments = play(make_player(tmp_path, bridge, width=4), starts(bridge, 25))
    rewards = rewards_by_episode(fragments)
    results = {r.start.episode: r for f in fragments for r in f.results}
    assert len(results) == 25
    for episode, result in results.items():
        assert result.length == len(rewards[episode]) <= 30
        assert result.total_reward == pytest.approx(sum(rewards[episode]), abs=1e-4)
        assert result.end == ("truncated" if result.length == 30 else "terminated")
        assert result.notice == ("" if result.end == "truncated" else "the agent arrived")
    assert {r.end for r in results.values()} == {"terminated", "truncated"}


def test_next_observations_continue_in_the_next_fragment(tmp_path):
    bridge = FakeBridge()
    fragments = play(make_player(tmp_path, bridge, steps=5), starts(bridge, 4))
    for before, after in itertools.pairwise(fragments):
        if before.length == 5 and not before.done[-1, 0]:
            for key in before.next_observations:
                assert np.array_equal(before.next_observations[key], after.observations[key][0])


def test_memory_continues_across_fragments(tmp_path):
    """The fake policy counts steps in its memory; the fragment tells where it stood."""
    bridge = FakeBridge()
    fragments = play(make_player(tmp_path, bridge, steps=5), starts(bridge, 4))
    for f in fragments:
        assert f.memory["count"][0] == f.step[0, 0]


def test_fewer_episodes_than_slots_leave_slots_idle(tmp_path):
    bridge = FakeBridge()
    fragments = play(make_player(tmp_path, bridge, width=8), starts(bridge, 3))
    assert sum(len(f.results) for f in fragments) == 3
    assert all((~f.valid).any() for f in fragments)


FAULTS = {
    "crash_on_step": ("step", "crash"),
    "crash_on_reset": ("reset", "crash"),
    "exit_on_step": ("step", "exit code 3"),
    "hang_on_step": ("step", "no answer to step"),
    "hang_on_reset": ("reset", "no answer to reset"),
    "hang_on_start": ("start", "no answer to start"),
    "fail_on_start": ("start", ""),
}


@pytest.mark.process
@pytest.mark.parametrize("fault", FAULTS)
def test_a_failing_game_costs_one_attempt(tmp_path, fault):
    """Whatever fails, and wherever: the episode is tried again, the other games go on."""
    bridge = FakeBridge(
        once_file=str(tmp_path / "once"),
        step_deadline_s=1.5,  # duration of a hang; shorter ones also occur on busy machines
        reset_deadline_s=1.5,
        start_deadline_s=30.0 if "start" not in fault else 4.0,
        **{fault: 4.0 if "step" in fault else 1.0},
    )
    player = make_player(tmp_path / "games", bridge, instances=2, isolation="subprocess")
    episodes = starts(bridge, 8)
    fragments = play(player, episodes)
    assert (tmp_path / "once").exists(), "the fault never fired, so this shows nothing"
    assert sorted(rewards_by_episode(fragments)) == list(range(8))
    losses = [loss for f in fragments for loss in f.losses]
    phase, reason = FAULTS[fault]
    if phase == "start":
        assert not losses  # no episode had been given to it
    else:
        assert [loss.phase for loss in losses] == [phase]
        assert reason.lower() in losses[0].reason.lower()
    clean = FakeBridge()
    expected = rewards_by_episode(play(make_player(tmp_path / "clean", clean), episodes))
    assert rewards_by_episode(fragments) == expected


@pytest.mark.process
def test_lost_rows_are_marked_and_the_death_notice_says_why(tmp_path):
    bridge = FakeBridge(exit_on_step=6.0, once_file=str(tmp_path / "once"))
    player = make_player(tmp_path / "games", bridge, isolation="subprocess", limit=None)
    fragments = play(player, starts(bridge, 1))
    lost = [f for f in fragments if f.lost.any()]
    assert len(lost) == 1
    assert lost[0].lost[-1, 0]
    assert lost[0].step[-1, 0] == 4  # the sixth step got no reply
    result = next(r for r in lost[0].results if r.end == "lost")
    assert result.length == 5
    assert "exit code 3" in lost[0].losses[0].reason
    assert lost[0].losses[0].steps == 5


def test_an_episode_that_always_fails_is_abandoned_and_told(tmp_path):
    bridge = FakeBridge(crash_on_reset=0.999999)
    player = make_player(tmp_path, bridge, restarts=100, retries=2)
    fragments = play(player, starts(bridge, 2))
    attempts = Counter(x.start.episode for f in fragments for x in f.losses)
    assert attempts == {0: 3, 1: 3}
    assert {s.episode for s in player.abandoned} == {0, 1}


@pytest.mark.parametrize(
    "isolation", ["in_process", pytest.param("subprocess", marks=pytest.mark.process)]
)
def test_a_spent_budget_ends_the_play_after_all_was_given(tmp_path, isolation):
    bridge = FakeBridge(crash_on_step=20.0)  # each fresh instance plays nineteen steps
    player = make_player(
        tmp_path, bridge, isolation=isolation, restarts=2, retries=99, limit=10, steps=4
    )
    player.offer(starts(bridge, 99))
    fragments = []
    with pytest.raises(BudgetExhausted, match="failed more than 2 times"):
        fragments.extend(iter(player.next_fragment, None))
    player.close()
    assert sum(f.env_steps for f in fragments) == 3 * 19


@pytest.mark.process
def test_a_slow_instance_slows_only_itself(tmp_path):
    """Ready first, served first: while one game stands still, the other plays all the rest."""
    bridge = FakeBridge(
        hang_on_step=3.0, hang_s=2.0, once_file=str(tmp_path / "once"), step_deadline_s=60.0
    )
    player = make_player(tmp_path / "games", bridge, instances=2, isolation="subprocess", limit=10)
    fragments = play(player, starts(bridge, 12))
    played = Counter(r.instance for f in fragments for r in f.results)
    assert sorted(played.values()) == [1, 11]
    assert not any(f.losses for f in fragments)


@pytest.mark.process
def test_nothing_is_left_behind(tmp_path):
    bridge = FakeBridge(children=1, hang_on_close=1.0, close_deadline_s=0.3)
    player = make_player(tmp_path, bridge, instances=2, isolation="subprocess")
    player.offer(starts(bridge, 4))
    assert player.next_fragment() is not None
    mine = [each for each in marked_processes() if each.owner == owner_mark()]
    assert len(mine) >= 2  # they are children of their guards, not of this process
    player.close()
    assert not [each for each in marked_processes() if each.owner == owner_mark()]
    assert not list(tmp_path.iterdir())


def test_pool_says_what_is_wrong(tmp_path):
    bridge = FakeBridge(max_width=4)
    with pytest.raises(ConfigError, match="1 to 4"):
        Pool(bridge, tmp_path, 1, 5)
    with pytest.raises(ConfigError, match="at least 1"):
        Pool(bridge, tmp_path, 0, 1)
    pool = Pool(bridge, tmp_path, 1, 1)
    with pytest.raises(OutOfTurnError, match="not running"):
        pool.send(0, {})
    pool.launch()
    with pytest.raises(OutOfTurnError, match="busy with a start"):
        pool.send(0, {})
    pool.close()
    with pytest.raises(OutOfTurnError, match="no command in flight"):
        pool.recv()


def test_figures_tell_the_time_spent_in_games_from_the_rest(tmp_path):
    bridge = FakeBridge(step_s=0.02)
    player = make_player(tmp_path, bridge, limit=10)
    play(player, starts(bridge, 2))
    slow = player.figures
    assert slow.games_s >= 0.02 * 10
    assert 0 < slow.own_s < slow.games_s
