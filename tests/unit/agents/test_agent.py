"""Functions of one game as policies: what they get, what they may return, and how they fail."""

import asyncio
import logging
import pickle
import threading
import time
from dataclasses import replace

import numpy as np
import pytest
from gymnasium import spaces

from policies.callable import CallablePolicy, running
from policies.callable.options import AgentLimits
from rollout.api import Start, Task, allocate, read_calls
from rollout.api.task import Limits
from rollout.errors import BudgetExhausted, ConfigError, PluginError, PolicyUnavailable
from rollout.evaluators import GameReward
from rollout.host.policy_calls import PolicyInput, call_policy
from rollout.models.sections import Endpoint
from rollout.testing import check_policy
from rollout.testing.chat_server import ChatServer, Scripted
from rollout.testing.fakes import FakeBridge

pytest.importorskip("openai", reason="the extra dev is not installed")

SPEC = FakeBridge().spec
NAMES = SPEC.action_labels.get("move") or [str(n) for n in range(5)]
TASK = Task("walk", "Walk to the goal.", SPEC.state_space, GameReward(), Limits(9))
SEEN = []


def recipe(name, url="", **options):
    """A recipe for a function of this module."""
    if url:
        endpoint = {"url": url, "deadline_s": 5.0, **options.pop("endpoint", {})}
        options = {"endpoint": Endpoint(**endpoint), "model": "tiny", **options}
    limits = AgentLimits(**options.pop("limits", {}))
    return CallablePolicy(
        function=f"{__name__}:{name}", fallback="random", limits=limits, **options
    )


def built(name, url="", spec=SPEC, **options):
    return recipe(name, url, **options).build(spec, TASK, seed=3)


@pytest.fixture(autouse=True)
def _importable(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, __name__, Module)
    SEEN.clear()


class _Functions:
    """This module by its name: pytest imports files under names that none can import."""

    def __getattr__(self, name):
        return globals()[name]


Module = _Functions()


def observations_of(rows, step=0, spec=SPEC):
    found = allocate(spec.observation_space, rows)
    for column in found.values():
        column[...] = step
    return found


def play(policy, steps=1, seeds=(7,), spec=SPEC, explore=True):
    memory = policy.initial_memory([Start(SPEC.state_space.state(0), s, s) for s in seeds])
    decisions = []
    for step in range(steps):
        observations = observations_of(len(seeds), step, spec)
        decision = policy.act(observations, memory, details=None, explore=explore)
        memory = decision.memory
        decisions.append(decision)
    return decisions


def moves(decisions):
    return [decision.actions["move"].tolist() for decision in decisions]


# Agents, which the tests ask for by name.
def looks(observation, context):
    SEEN.append((observation, context))
    return NAMES[2]


async def asks(observation, context):
    answer = await context.async_client.chat.completions.create(
        model="any", messages=[{"role": "user", "content": f"step {context.step}"}]
    )
    await asyncio.sleep(0)
    return answer.choices[0].message.content


def sees(observation, context):
    content = [
        {"type": "text", "text": observation.text},
        {"type": "image_url", "image_url": {"url": observation.pictures["image"].url}},
    ]
    answer = context.client.chat.completions.create(
        model="any", messages=[{"role": "user", "content": content}], max_completion_tokens=7
    )
    return answer.choices[0].message.content


def counts(observation, context):
    context.memory["steps"] = context.memory.get("steps", 0) + 1
    context.memory.setdefault("lock", threading.Lock())  # nothing that pickle takes
    SEEN.append((context.seed, context.memory["steps"]))
    return NAMES[context.memory["steps"] % 5]


def fails(observation, context):
    raise KeyError("mine")


async def fails_later(observation, context):
    await asyncio.sleep(0)
    raise KeyError("mine")


async def leaves(observation, context):
    raise SystemExit(3)


def hangs(observation, context):
    SEEN.append(context)
    threading.Event().wait(30)


async def hangs_awaiting(observation, context):
    try:
        await asyncio.sleep(30)
    except asyncio.CancelledError:
        SEEN.append("cancelled")
        raise


async def blocks(observation, context):
    time.sleep(0.4)  # noqa: ASYNC251 - what is tested
    return NAMES[1]


def nothing(observation, context):
    return None


def garbage(observation, context):
    SEEN.append(context.problem)
    return {1: object()}


def swallows(observation, context):
    try:
        sees(observation, context)
    except Exception as error:
        SEEN.append(error)
    return NAMES[0]


def asks_twice(observation, context):
    for _ in range(2):
        context.client.chat.completions.create(
            model="any", messages=[{"role": "user", "content": "the same"}]
        )
    return NAMES[0]


def keeps_the_client(observation, context):
    SEEN.append(context.client)
    return NAMES[0]


def meets(observation, context):
    BARRIER.wait(20)
    return NAMES[0]


async def meets_awaiting(observation, context):
    WAITING.append(1)
    while len(WAITING) < 64:  # noqa: ASYNC110 - other games are in other threads
        await asyncio.sleep(0.01)
    return NAMES[0]


BARRIER, WAITING = threading.Barrier(64), []


def test_what_a_function_gets():
    play(built("looks"), 2, explore=False)
    (first, context), (second, later) = SEEN
    assert (context.goal, context.step, later.step) == ("Walk to the goal.", 0, 1)
    assert (context.seed, context.episode, context.explore) == (7, 7, False)
    assert (context.left.steps, later.left.steps) == (9, 8)
    assert (context.left.calls, context.left.usd) == (None, None)
    assert "whole number" in context.actions
    assert context.schema == {"type": "integer", "minimum": 0, "maximum": 4}
    assert first.text == "position: [0.0, 0.0]"
    assert second.values["position"] == [1.0, 1.0]
    assert first.pictures["image"].array.shape == SPEC.observation_space["image"].shape
    assert first.pictures["image"].png.startswith(b"\x89PNG")
    first.columns["position"][...] = 5  # a copy
    assert context.base_url == ""
    with pytest.raises(ConfigError, match="the run has no model"):
        _ = context.client


def test_it_passes_the_conformance_suite():
    report = check_policy(recipe("looks"), SPEC, TASK)
    report.raise_if_failed()


@pytest.mark.parametrize("name", ["asks", "sees"])
def test_its_calls_are_recorded_with_the_step(name):
    with ChatServer(lambda _: Scripted(NAMES[3], model="tiny-0821")) as server:
        first, second = play(built(name, server.url), 2)
        sent = server.requests
    assert moves([first, second]) == [[3], [3]]
    [call] = read_calls(second.extras["calls"][0])
    assert (call.asked, call.reported, call.answer) == ("tiny", "tiny-0821", NAMES[3])
    assert (call.code, call.usable, call.action, call.step, call.number) == ("ok", True, "3", 1, 0)
    assert (call.input_tokens, call.output_tokens) == (100, 10)
    assert sent[0]["model"] == "tiny"
    if name == "sees":
        assert sent[0]["max_tokens"] == 7
        [_, picture] = sent[0]["messages"][0]["content"]
        assert picture["image_url"]["url"].startswith("data:image/png;base64,iVBOR")
        assert call.messages[0]["content"][1].keys() == {"type", "digest"}
        builder = recipe(name, server.url).example_builder(SPEC, TASK)
        files = builder.pictures(observations_of(1, 1))
        assert call.messages[0]["content"][1]["digest"] in files


def test_each_episode_has_a_memory_of_its_own():
    policy = built("counts")
    play(policy, 3, seeds=(1, 2))
    assert sorted(SEEN) == [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (2, 3)]


def test_the_memory_survives_hosts_in_other_processes_and_is_missed_after_a_death():
    policy = built("counts")
    [decision] = play(policy)
    elsewhere = pickle.loads(pickle.dumps(decision.memory))
    SEEN.clear()
    policy.act(observations_of(1), elsewhere, details=None, explore=True)
    assert SEEN == [(7, 2)]
    elsewhere["agent"][0].memory.values = None
    with pytest.raises(PolicyUnavailable, match="is lost with its inference actor"):
        policy.act(observations_of(1), elsewhere, details=None, explore=True)


@pytest.mark.parametrize("name", ["fails", "fails_later"])
def test_an_error_of_the_function_names_its_line(name):
    policy = built(name)
    memory = policy.initial_memory([Start(SPEC.state_space.state(0), 1)])
    inputs = PolicyInput(observations_of(1), memory, None, True)
    with pytest.raises(PluginError, match=rf"KeyError: 'mine' \(.*test_agent.py:\d+, in {name}"):
        call_policy(policy, inputs)


def test_an_exit_ends_neither_the_process_nor_the_event_loop():
    with pytest.raises(SystemExit):
        play(built("leaves"))
    policy = built("leaves")
    with pytest.raises(SystemExit):
        play(policy)
    with pytest.raises(SystemExit):
        play(policy)


def test_what_hangs_loses_its_episode_and_its_calls(monkeypatch):
    with ChatServer(lambda _: NAMES[0]) as server:
        policy = built("hangs", server.url, timeout_s=0.1)
        with pytest.raises(PolicyUnavailable, match=r"did not decide within 0.1 s \(policy.time"):
            play(policy)
        [context] = SEEN
        with pytest.raises(Exception, match="no step of an episode with this key"):
            context.client.models.list()
        assert not server.requests


def test_a_coroutine_that_hangs_is_cancelled():
    policy = built("hangs_awaiting", timeout_s=0.1)
    with pytest.raises(PolicyUnavailable):
        play(policy)
    until = time.monotonic() + 10
    while not SEEN and time.monotonic() < until:
        time.sleep(0.01)
    assert SEEN == ["cancelled"]


def test_a_coroutine_that_blocks_is_named(monkeypatch, caplog):
    monkeypatch.setattr(running, "_LOOK_S", 0.05)
    with caplog.at_level(logging.WARNING):
        assert moves(play(built("blocks"), seeds=(1, 2))) == [[1, 1]]
    [record] = caplog.records
    assert ":blocks blocks its event loop" in record.getMessage()


def test_none_does_nothing_where_something_does(monkeypatch):
    decision = play(built("nothing"))[0]
    assert decision.stops is None
    idle = replace(SPEC, action_labels={"move": ("left", "right", "up", "noop", "down")})
    assert moves(play(built("nothing", spec=idle), spec=idle)) == [[3]]
    kept = recipe("nothing").build(SPEC, TASK, seed=0)
    assert "got None" in play(kept)[0].memory["agent"][0].dialogue.problem


def test_answers_that_are_no_actions_are_told_and_truncate_the_episode():
    decisions = play(built("garbage", limits={"unusable": 2}), 2)
    assert SEEN[0] == ""
    assert "expected a whole number" in SEEN[1]
    assert decisions[0].stops is None
    assert "2 steps in a row without a usable answer" in decisions[1].stops[0]
    with ChatServer(lambda _: "dance") as server:
        [decision] = play(built("asks", server.url))
    [call] = read_calls(decision.extras["calls"][0])
    assert (call.code, call.usable, call.action) == ("malformed", False, None)
    assert "dance" in call.problem


def test_an_illegal_action_is_replaced_by_a_legal_one():
    masks = {**SPEC.observation_space.spaces, "mask/move": spaces.MultiBinary(5)}
    spec = replace(SPEC, observation_space=spaces.Dict(masks))
    policy = built("looks", spec=spec, limits={"unusable": None})
    memory = policy.initial_memory([Start(SPEC.state_space.state(0), 1)])
    observations = {**observations_of(1), "mask/move": np.array([[0, 1, 0, 0, 0]], np.int8)}
    decision = policy.act(observations, memory, details=None, explore=True)
    assert SEEN[0][1].legal == "1"
    assert moves([decision]) == [[1]]
    assert "not legal" in decision.memory["agent"][0].dialogue.problem


def test_a_limit_of_the_run_pauses_it_even_if_the_agent_goes_on():
    with ChatServer(lambda _: NAMES[0]) as server:
        policy = built("swallows", server.url, limits={"calls": 1})
        with pytest.raises(BudgetExhausted, match=r"limits\.calls=1 of the run is reached"):
            play(policy, 2)
        assert len(server.requests) == 1
    assert "limits.calls=1" in str(SEEN[0])


def test_a_model_that_is_away_loses_the_episode_even_if_the_agent_goes_on():
    with ChatServer(lambda _: Scripted("no", status=500)) as server:
        policy = built("swallows", server.url, endpoint={"deadline_s": 0.2})
        with pytest.raises(PolicyUnavailable, match="did not answer within"):
            play(policy)
    [error] = SEEN
    assert error.status_code == 503


def test_the_calls_of_an_episode_are_limited():
    with ChatServer(lambda _: NAMES[0]) as server:
        policy = built("asks_twice", server.url, limits={"episode_calls": 3})
        first, second = play(policy, 2)
        assert len(server.requests) == 3
    assert first.stops is None
    assert second.stops == ["the episode has used its calls (limits.episode_calls)"]
    assert [len(d.extras["calls"][0]) for d in (first, second)] == [2, 1]


def test_a_resumed_run_pays_no_call_again(tmp_path):
    with ChatServer(lambda _: NAMES[0]) as server:
        for paid in (4, 4):
            policy = recipe("asks_twice", server.url).in_run(tmp_path).build(SPEC, TASK, seed=0)
            decisions = play(policy, 2)
            assert len(server.requests) == paid
    calls = [c for d in decisions for c in read_calls(d.extras["calls"][0])]
    assert [call.earlier for call in calls] == [True] * 4


def test_a_client_is_of_no_use_after_its_step():
    with ChatServer(lambda _: NAMES[0]) as server:
        policy = built("keeps_the_client", server.url)
        play(policy, 2)
        with pytest.raises(Exception, match="no step of an episode with this key"):
            SEEN[0].models.list()
        assert SEEN[0].api_key == SEEN[1].api_key
        assert not server.requests


@pytest.mark.parametrize("name", ["meets", "meets_awaiting"])
def test_64_games_at_once_do_not_wait_for_one_another(name):
    WAITING.clear()
    BARRIER.reset()
    policy = built(name)
    assert policy.calls == 64
    memory = policy.initial_memory([Start(SPEC.state_space.state(0), n) for n in range(64)])
    done = []

    def decide(row):
        own = {key: column[row : row + 1] for key, column in memory.items()}
        done.append(policy.act(observations_of(1), own, details=None, explore=True))

    threads = [threading.Thread(target=decide, args=(row,)) for row in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(done) == 64


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"limits": {"calls": 3}}, r"limits\.calls=3 is for a model"),
        ({"limits": {"episode_calls": 3}}, r"limits\.episode_calls=3 is for a model"),
        ({"replay": True}, "replay=True is for a model"),
        ({"model": "tiny"}, "expected the base URL"),
    ],
)
def test_options_that_do_not_fit(options, said):
    with pytest.raises(ConfigError, match=said):
        recipe("looks", **options)


def test_a_function_over_columns_asks_no_model():
    with pytest.raises(ConfigError, match="which asks no model"):
        built("over_columns", "http://127.0.0.1:1/v1")
    assert recipe("over_columns").calls == 1
    assert not recipe("over_columns").keeps_files
    assert recipe("looks", "http://127.0.0.1:1/v1").keeps_files


def over_columns(observations):
    return np.zeros(len(observations["position"]), np.int64)
