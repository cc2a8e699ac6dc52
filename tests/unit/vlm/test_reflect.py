"""Critiques of earlier episodes: who sees which, and what a kill changes."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml

from policies.random import RandomPolicy
from policies.vlm import VlmPolicy
from policies.vlm.options import Reflect
from policies.vlm.reflecting import EpisodeLogs, critique_from
from rollout.api import Splits, Start, Task, Trial, allocate
from rollout.cli import main
from rollout.collect import collect
from rollout.config import CollectConfig
from rollout.errors import ConfigError
from rollout.evaluate.config import EvaluateConfig
from rollout.evaluate.evaluate import evaluate
from rollout.evaluate.legs import Leg, Legs
from rollout.evaluate.scoreboard import LegSchedule
from rollout.evaluators import GameReward
from rollout.models.sections import Endpoint
from rollout.testing.chat_server import ChatServer, Scripted, digest_of
from rollout.testing.fakes import FakeBridge

ROOT = Path(__file__).resolve().parents[3]
SPEC = FakeBridge().spec
SPACE = SPEC.state_space
TASK = Task("walk", "Walk.", SPACE, GameReward())
WON = Trial(3, True, 1.0, 1.0, 2)
LOST = Trial(4, False, -0.5, 0.2, 9)
TRIALS, STATES, MODELS = 4, 3, ("one", "two")


def recipe(url="http://127.0.0.1:9/v1", episodes=2, **options):
    chosen = {"fallback": "random", "prompt": "act", **options}
    return VlmPolicy(
        endpoint=Endpoint(url=url), model="m", reflect=Reflect(episodes=episodes), **chosen
    )


def asks(request):
    """Whether a request asks for a critique."""
    return "Write for yourself" in str(request["messages"][-1]["content"])


# Which episodes wait for which -------------------------------------------------------------------


def legs_of(*recipes, repeats=3, states=2):
    chosen = Splits(SPACE).take("test", states)
    named = zip("ab", recipes, strict=False)
    return Legs(tuple(Leg(n, r, "test", chosen, repeats=repeats) for n, r in named), SPACE)


def test_the_episodes_of_a_state_are_played_one_after_another_and_told_of_the_last_ones():
    legs, trials = legs_of(recipe()), {}
    schedule = LegSchedule(legs, trials=trials)
    assert [s.episode for s in schedule.take(10)] == [0, 3]
    assert schedule.exhausted, "for now"
    order = []
    for episode in (3, 4, 0, 5, 1):
        trials[episode] = Trial(episode, True, 0.0, 0.0, 1)
        schedule.settle([episode])
        order += [(s.episode, [t.episode for t in s.earlier]) for s in schedule.take(10)]
    assert order == [(4, [3]), (5, [3, 4]), (1, [0]), (2, [0, 1])]


def test_others_do_not_wait_and_are_told_nothing():
    schedule = LegSchedule(legs_of(RandomPolicy(), recipe()))
    starts = schedule.take(20)
    assert [s.episode for s in starts] == [0, 1, 2, 3, 4, 5, 6, 9]
    assert not any(s.earlier for s in starts)


def test_a_resumed_schedule_tells_the_same_and_waits_for_what_was_given_up():
    legs = legs_of(recipe(episodes=2), repeats=4, states=1)
    trials = {n: Trial(n, True, 0.0, 0.0, 1) for n in (1, 2)}
    schedule = LegSchedule(legs, finished={1, 2}, trials=trials)
    [first] = schedule.take(9)
    assert (first.episode, first.earlier) == (0, ())
    schedule.settle([0])  # given up again
    [last] = schedule.take(9)
    assert (last.episode, [t.episode for t in last.earlier]) == (3, [1, 2])


def test_what_was_given_up_elsewhere_is_looked_for():
    legs = legs_of(recipe(), repeats=2, states=1)
    schedule = LegSchedule(legs, look=lambda: schedule.settle([0]))
    assert [s.episode for s in schedule.take(1)] == [0]
    assert schedule.take(1) == [], "the second is not yet known to wait"
    assert not schedule.exhausted
    [second] = schedule.take(1)
    assert (second.episode, second.earlier) == (1, ())


# What the model is asked and told ----------------------------------------------------------------


def play(policy, earlier=(), *, episode=5, steps=2, seed=7):
    memory = policy.initial_memory([Start(SPACE.state(0), seed, episode, earlier=earlier)])
    decisions = []
    for _ in range(steps):
        decision = policy.act(
            allocate(SPEC.observation_space, 1), memory, details=None, explore=True
        )
        memory = decision.memory
        decisions.append(decision)
    return decisions


def test_a_critique_is_asked_for_with_the_log_and_shown_at_each_step(tmp_path):
    def script(request):
        return "Walk to the  left!" if asks(request) else "<action>1</action>"

    with ChatServer(script) as server:
        policy = recipe(server.url).in_run(tmp_path).build(SPEC, TASK, seed=0)
        play(policy, episode=4, steps=3)
        decisions = play(policy, (LOST,), episode=5)
    [asked] = [r for r in server.requests if asks(r)]
    text = asked["messages"][0]["content"]
    assert "You failed\nafter 9 steps, with a return of -0.5." in text
    assert text.count("-> <action>1</action>") == 3
    assert "at most 150 words" in text
    later = server.requests[-2:]
    assert all("- Walk to the left!" in r["messages"][0]["content"] for r in later)
    first, second = (d.extras["calls"][0] for d in decisions)
    assert [c.get("role") for c in first] == ["reflect", None]
    assert (first[0]["usable"], first[0]["fields"]) == (True, {"critique": "Walk to the left!"})
    assert len(second) == 1
    assert "lesson" not in str(server.requests[0]), "nothing to tell yet"


def test_a_critique_is_paid_and_recorded_once(tmp_path):
    with ChatServer(lambda r: digest_of(r) if asks(r) else "<action>1</action>") as server:
        for _ in range(2):  # sessions
            policy = recipe(server.url).in_run(tmp_path).build(SPEC, TASK, seed=0)
            play(policy, (WON,), episode=4)
            decisions = play(policy, (WON, LOST), episode=5)
        made = [r for r in server.requests if asks(r)]
    assert len(made) == 2
    calls = decisions[0].extras["calls"][0]
    assert [c.get("role") for c in calls] == ["reflect", None], "the older one is not its call"
    shown = re.findall(r"^- (\w+)$", server.requests[-1]["messages"][0]["content"], re.MULTILINE)
    assert shown == [digest_of(r) for r in made], "oldest first"


def test_a_critique_is_bounded_and_an_empty_one_is_not_shown(tmp_path):
    assert critique_from("a b  c\nd", 3) == "a b c"
    with ChatServer(lambda r: " " if asks(r) else "<action>1</action>") as server:
        policy = recipe(server.url).in_run(tmp_path).build(SPEC, TASK, seed=0)
        decision, _ = play(policy, (WON,))
    assert "What you wrote" not in str(server.requests[-1]["messages"])
    assert decision.extras["calls"][0][0]["code"] == "empty"


def test_a_critique_that_is_cut_off_before_its_first_word_says_so(tmp_path):
    def script(request):
        return Scripted("", finish="length") if asks(request) else "<action>1</action>"

    with ChatServer(script) as server:
        policy = recipe(server.url).in_run(tmp_path).build(SPEC, TASK, seed=0)
        decision, _ = play(policy, (WON,))
    call = decision.extras["calls"][0][0]
    assert call["code"] == "cut"
    assert "sampling.max_tokens" in call["problem"]


@pytest.mark.parametrize("stored", [True, False])
def test_a_log_has_the_last_attempt_alone(tmp_path, stored):
    logs = EpisodeLogs(tmp_path / "trials" if stored else None)
    logs.add(1, "first", step=0, told="x" * 900, answered="a")
    logs.add(1, "first", step=1, told="lost here", answered="b")
    logs.add(1, "second", step=0, told="new", answered="c")
    logs.add(1, "first", step=2, told="a late answer", answered="d")
    logs.add(1, "second", step=1, told="end", answered="e")
    if stored:
        with (tmp_path / "trials" / "1.jsonl").open("ab") as file:
            file.write(b'{"attempt": "second", "st')
        logs = EpisodeLogs(tmp_path / "trials")
    assert [line["answered"] for line in logs.read(1)] == ["c", "e"]
    assert logs.read(2) == []
    assert max(len(str(line["told"])) for line in logs._lines(1)) < 410


# Bad input ---------------------------------------------------------------------------------------


def test_a_prompt_that_shows_no_critique_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="the prompt brief does not show the variable lessons"):
        recipe(prompt="brief").build(SPEC, TASK, seed=0)
    own = tmp_path / "own.yaml"
    own.write_text("extends: act\nsystem: '{{ lessons }}'\nreflect: '{{ logg }}'\n")
    with pytest.raises(ConfigError, match=r"reflect: unknown variable .logg.\. Nearest: log"):
        recipe(prompt=str(own)).build(SPEC, TASK, seed=0)
    with pytest.raises(ConfigError, match=r"reflect\.episodes=2 is for play"):
        recipe().example_builder(SPEC, TASK)


def config_of(folder, url, **more):
    task = {"evaluator": {"name": "signal_goal", "signal": "reached"}, "limits": {"steps": 4}}
    (folder / "walk.yaml").write_text(yaml.safe_dump({"goal": "Walk.", **task}))
    player = {"name": "vlm", "endpoint": {"url": url}, "prompt": "act", "fallback": "random"}
    player |= {
        "reflect": {"episodes": 2, "words": 20},
        "limits": {"reparse": 0},
        "sampling": {"seed": True},
    }
    config = {
        "output": str(folder / "run"),
        "bridge": {"name": "fake"},
        "task": str(folder / "walk.yaml"),
        "players": {f"player_{name}": {**player, "model": name} for name in MODELS},
        "sets": {"test": {"split": "test", "size": STATES}},
        "episodes_per_state": TRIALS,
        "metric": "return",
        "actors": 0,
        "instances": 5,
        "width": 1,
    }
    config |= more
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    return ["--config", str(folder / "config.yaml")]


def test_jobs_without_earlier_episodes_are_refused(tmp_path, capsys):
    arguments = config_of(tmp_path, "http://127.0.0.1:9/v1", episodes_per_state=1)
    assert main(evaluate, EvaluateConfig, "Plays.", arguments) == 2
    assert "episodes_per_state=1" in capsys.readouterr().err
    config = yaml.safe_load((tmp_path / "config.yaml").read_text())
    keys = ("output", "bridge", "task", "actors")
    player = config["players"]["player_one"]
    alone = {**{key: config[key] for key in keys}, "policy": player, "episodes": 2}
    (tmp_path / "collect.yaml").write_text(yaml.safe_dump(alone))
    arguments = ["--config", str(tmp_path / "collect.yaml")]
    assert main(collect, CollectConfig, "Plays.", arguments) == 2
    assert "use gamut evaluate" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


# Jobs --------------------------------------------------------------------------------------------


def answer(request):
    """Critiques tell by whom and of which log they are; actions depend on the request."""
    digest = digest_of(request)
    if asks(request):
        return f"{request['model']} {digest[:12]}"
    return f"<action>{int(digest[:8], 16) % 5}</action>"


def command_of(folder, url):
    script = str(ROOT / "scripts" / "evaluate.py")
    return [sys.executable, script, *config_of(folder, url)]


def results(run):
    rows = pq.read_table(run / "episodes.parquet").to_pylist()
    return [repr({k: v for k, v in row.items() if k != "attempts"}) for row in rows]


def test_trials_that_are_given_up_hold_up_nobody(tmp_path):
    def script(request):
        failing = request.get("seed", 1) % 6 == 0
        return Scripted("busy", status=503) if failing else answer(request)

    with ChatServer(script) as server:
        arguments = config_of(tmp_path, server.url, host={"retries": 0})
        arguments += ["--set", *(f"players.player_{m}.endpoint.deadline_s=0.1" for m in MODELS)]
        assert main(evaluate, EvaluateConfig, "Plays.", arguments) == 3
    rows = pq.read_table(tmp_path / "run" / "episodes.parquet").to_pylist()
    assert len(rows) == len(MODELS) * STATES * TRIALS
    ends = [row["end"] for row in rows]
    assert 0 < ends.count("lost") < len(rows)


@pytest.mark.process
def test_killed_and_resumed_trials_see_the_same_critiques_and_pay_once(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    with ChatServer(answer) as server:
        subprocess.run(command_of(tmp_path / "a", server.url), check=True, capture_output=True)
        whole = list(server.requests)
    critiques = {answer(r): r["model"] for r in whole if asks(r)}
    assert len(critiques) == len(MODELS) * STATES * (TRIALS - 1), "none twice"
    for request in whole:
        shown = re.findall(r"^- (.*)$", str(request["messages"][0]["content"]), re.MULTILINE)
        assert len(shown) <= 2
        assert all(critiques[each] == request["model"] for each in shown), "each its own"
    assert any("- " in r["messages"][0]["content"] for r in whole)

    killed, state = threading.Event(), {}

    def script(request):
        if not killed.is_set() and len(server.requests) == 2 * len(whole) // 3:
            killed.set()
            state["job"].send_signal(signal.SIGKILL)
        return Scripted(answer(request), delay_s=0.01)

    with ChatServer(script) as server:
        command = command_of(tmp_path / "b", server.url)
        state["job"] = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        assert state["job"].wait(60) == -signal.SIGKILL
        before = {digest_of(request) for request in server.requests}
        done = subprocess.run(
            [*command, "--resume"], env=os.environ, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        twice = {digest for digest, count in server.paid.items() if count > 1}
        assert len(twice) <= 5, "at most one in each of 5 games"
        assert twice <= before
        assert {digest_of(r) for r in server.requests} == {digest_of(r) for r in whole}
    assert results(tmp_path / "a" / "run") == results(tmp_path / "b" / "run")
    summary = json.loads((tmp_path / "b" / "run" / "summary.json").read_text())
    used = [leg["usage"]["calls"] for leg in summary["findings"]["legs"]]
    assert sum(used) == len(whole)
