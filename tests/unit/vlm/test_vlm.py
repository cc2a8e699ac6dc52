"""The policy ``vlm`` against a server of chats, over HTTP."""

import base64
import json
import math
import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from email.utils import formatdate
from pathlib import Path

import cv2
import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from policies.vlm import VlmPolicy
from policies.vlm.options import History, Limits, Picture
from policies.vlm.prompt import load_prompt
from rollout.api import Call, Start, Task, Usage, allocate, read_calls
from rollout.data import Calls, Dataset, play_text
from rollout.errors import (
    BudgetExhausted,
    ConfigError,
    DatasetError,
    PolicyUnavailable,
    UnknownNameError,
)
from rollout.evaluators import GameReward
from rollout.models.chat_api import request_body
from rollout.models.client import ReplyStore, sent_fields
from rollout.models.sections import Endpoint, Sampling
from rollout.models.spending import Budget, Price, with_usage
from rollout.models.transport import HttpClient, Limiter
from rollout.observe.run_status import read_status
from rollout.observe.view import screen
from rollout.testing import check_policy
from rollout.testing.chat_server import ChatServer, Scripted, digest_of
from rollout.testing.fakes import FakeBridge
from tests.commands import called

ROOT = Path(__file__).resolve().parents[3]
SPEC = FakeBridge().spec
TASK = Task("walk", "Walk to the goal.", SPEC.state_space, GameReward())
[KEY] = SPEC.action_space.spaces
NAMES = SPEC.action_labels.get(KEY) or [str(n) for n in range(5)]
GOOD = f"<thought>hm</thought><action>{NAMES[1]}</action>"


def by_digest(request):
    """An answer that depends on the request alone."""
    number = int(digest_of(request)[:8], 16) % len(NAMES)
    return f"<thought>{number}</thought><action>{NAMES[number]}</action>"


def recipe(url, **options):
    endpoint = {"url": url, "deadline_s": 5.0, **options.pop("endpoint", {})}
    chosen = {"fallback": "random", **options}
    return VlmPolicy(endpoint=Endpoint(**endpoint), model="tiny", **chosen)


def built(url, *, folder=None, **options):
    chosen = recipe(url, **options)
    if folder is not None:
        chosen = chosen.in_run(folder)
    return chosen.build(SPEC, TASK, seed=3)


def play(policy, steps=1, *, seeds=(7,), change=True, spec=SPEC):
    """Plays steps of invented observations; returns the decisions."""
    state = SPEC.state_space.state(0)
    memory = policy.initial_memory([Start(state, seed) for seed in seeds])
    decisions = []
    for step in range(steps):
        observations = allocate(spec.observation_space, len(seeds))
        for column in observations.values():
            column[...] = step if change and column.dtype != object else 0
        decision = policy.act(observations, memory, details=None, explore=True)
        memory = decision.memory
        decisions.append(decision)
    return decisions


@pytest.mark.heavy
def test_it_keeps_the_contract_of_policies():
    with ChatServer(by_digest) as server:
        report = check_policy(recipe(server.url), SPEC, TASK)
    report.raise_if_failed()


def test_a_call_is_recorded_with_what_was_asked_and_what_it_cost():
    with ChatServer(lambda _: Scripted(GOOD, model="tiny-0821")) as server:
        [decision] = play(built(server.url))
    [call] = decision.extras["calls"][0]
    assert call["usable"] is True
    assert (call["code"], call["action"]) == ("ok", NAMES[1])
    assert (call["asked"], call["reported"]) == ("tiny", "tiny-0821")
    assert (call["input_tokens"], call["output_tokens"], call["usd"]) == (100, 10, None)
    assert "Walk to the goal." in call["messages"][0]["content"]
    json.dumps(call)


def test_earlier_steps_are_shown_as_many_as_configured_and_thoughts_are_not():
    with ChatServer(lambda _: GOOD) as server:
        play(built(server.url, history=History(texts=2)), 5)
        last = server.requests[-1]["messages"]
    assert [m["role"] for m in last] == ["system", *["user", "assistant"] * 2, "user"]
    assert last[2]["content"] == f"<action>{NAMES[1]}</action>"
    assert [m["content"].splitlines()[0] for m in last[1::2]] == ["Step 2.", "Step 3.", "Step 4."]


def test_a_picture_of_the_goal_is_shown_once_and_first():
    plan = spaces.Box(0, 255, (20, 30, 3), np.uint8)
    seen = spaces.Dict({**SPEC.observation_space.spaces, "plan": plan})
    spec = replace(SPEC, observation_space=seen)
    with ChatServer(lambda _: GOOD) as server:
        chosen = recipe(
            server.url, history=History(texts=2, images=1), picture=Picture(goal="plan")
        )
        play(chosen.build(spec, TASK, seed=3), 4, spec=spec)
        sent = [request["messages"] for request in server.requests]
    for number, messages in enumerate(sent):
        images = [
            part["image_url"]["url"].partition(",")[2]
            for message in messages
            if isinstance(message["content"], list)
            for part in message["content"]
            if part["type"] == "image_url"
        ]
        sizes = [
            cv2.imdecode(np.frombuffer(base64.b64decode(image), np.uint8), 1).shape[:2]
            for image in images
        ]
        assert sizes == [(20, 30), sizes[1]], number
        assert "goal" in messages[1]["content"][0]["text"]
    with pytest.raises(UnknownNameError, match="Nearest: plan"):
        recipe(server.url, history=History(images=1), picture=Picture(goal="plann")).build(
            spec, TASK, seed=3
        )


def test_react_shows_thoughts_and_plan_keeps_notes():
    answer = f"<thought>t</thought><plan>p</plan><notes>n1</notes><action>{NAMES[1]}</action>"
    with ChatServer(lambda _: answer) as server:
        play(built(server.url, prompt="react"), 2)
        assert "<thought>t</thought>" in server.requests[-1]["messages"][2]["content"]
        play(built(server.url, prompt="plan", history=History(texts=0)), 2)
        assert "Your notes: n1" in server.requests[-1]["messages"][-1]["content"]


def test_an_unusable_answer_is_asked_for_again_with_the_reason():
    answers = iter(["I go up.", GOOD])
    with ChatServer(lambda _: next(answers)) as server:
        [decision] = play(built(server.url))
        again = server.requests[1]["messages"]
    assert [c["code"] for c in decision.extras["calls"][0]] == ["no_block", "ok"]
    assert again[-2] == {"role": "assistant", "content": "I go up."}
    assert "expected one block <action>" in again[-1]["content"]


def test_after_that_the_fallback_is_played_and_too_many_end_the_episode():
    with ChatServer(lambda _: "no") as server:
        policy = built(server.url, fallback=NAMES[2], limits=Limits(reparse=0, unusable=3))
        decisions = play(policy, 3)
    assert [d.stops for d in decisions[:2]] == [None, None]
    assert "limits.unusable" in decisions[2].stops[0]
    assert all(d.actions[KEY][0] == 2 for d in decisions)
    assert Usage.of(read_calls(decisions[0].extras["calls"][0])).unusable == 1


def test_an_episode_that_is_stuck_or_has_used_its_calls_ends_without_a_call():
    with ChatServer(lambda _: GOOD) as server:
        stuck = play(built(server.url, limits=Limits(stuck=2)), 3, change=False)
        assert "limits.stuck" in stuck[2].stops[0]
        assert len(server.requests) == 2
        used = play(built(server.url, limits=Limits(episode_calls=1)), 2)
        assert "limits.episode_calls" in used[1].stops[0]
        assert len(server.requests) == 3


def test_slots_without_an_episode_cost_nothing():
    with ChatServer(lambda _: GOOD) as server:
        policy = built(server.url)
        memory = {"dialogue": np.zeros(2, object)}
        memory["dialogue"][1] = policy.initial_memory([Start(SPEC.state_space.state(0), 1)])[
            "dialogue"
        ][0]
        observations = allocate(SPEC.observation_space, 2)
        policy.act(observations, memory, details=None, explore=True)
        assert len(server.requests) == 1


_TEXTS = st.text(max_size=20)
_PARTS = st.one_of(
    st.builds(lambda text: {"type": "text", "text": text}, _TEXTS),
    st.builds(lambda name: {"type": "image", "digest": name}, st.sampled_from("ab")),
)
_MESSAGES = st.lists(
    st.builds(
        lambda role, content: {"role": role, "content": content},
        _TEXTS,
        _TEXTS | st.lists(_PARTS, max_size=3),
    ),
    max_size=4,
)


@given(st.dictionaries(_TEXTS, _TEXTS | st.integers(), max_size=3), _MESSAGES)
def test_a_body_is_the_json_of_its_request(fields, messages):
    images = {"a": b"\x00\xff1", "b": b""}

    def wired(part):
        if part["type"] == "text":
            return part
        data = base64.b64encode(images[part["digest"]]).decode()
        return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}

    whole = [
        m if isinstance(m["content"], str) else {**m, "content": [*map(wired, m["content"])]}
        for m in messages
    ]
    expected = json.dumps({**fields, "messages": whole}).encode()
    assert request_body(fields, messages, images, "image/png") == expected


# What servers do ---------------------------------------------------------------------------------

FAULTS = {
    "429 with seconds": Scripted("slow down", status=429, headers={"Retry-After": "0"}),
    "429 with a date": Scripted(
        "slow down", status=429, headers={"Retry-After": formatdate(0, usegmt=True)}
    ),
    "429 with no number": Scripted("slow down", status=429, headers={"Retry-After": "inf"}),
    "408": Scripted("late", status=408),
    "409": Scripted("conflict", status=409),
    "425": Scripted("too early", status=425),
    "500": Scripted("boom", status=500),
    "a slow server": Scripted(GOOD, delay_s=0.6),
    "an endless body": Scripted(body=b" " * 3000),
    "reset in the body": Scripted(GOOD, reset=True),
    "not JSON": Scripted(body=b'{"choices": [{"mess'),
    "an error": Scripted(body=b'{"error": {"code": 502, "message": "Provider returned error"}}'),
    "an error as text": Scripted(body=b'{"error": "overloaded"}'),
    "no choices": Scripted(body=b"{}"),
    "empty choices": Scripted(body=b'{"choices": [], "usage": {"prompt_tokens": 9}}'),
    "a choice of nothing": Scripted(body=b'{"choices": [null], "usage": null}'),
    "no message": Scripted(body=b'{"choices": [{"message": null, "finish_reason": "stop"}]}'),
    "finish_reason=error": Scripted("half an", finish="error"),
    "a stream that ends early": Scripted(body=b'data: {"choices": [{"delta": {"content": "h"}}]}'),
}


@pytest.mark.heavy
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_tried_again(fault, monkeypatch):
    monkeypatch.setattr("rollout.models.transport._LARGEST_REPLY", 2000)
    monkeypatch.setattr("rollout.models.transport._FIRST_PAUSE_S", 0.01)
    script = iter([FAULTS[fault], Scripted(GOOD)])
    with ChatServer(lambda _: next(script)) as server:
        [decision] = play(built(server.url, endpoint={"timeout_s": 0.4}))
    [call] = decision.extras["calls"][0]
    assert call["usable"]
    assert len(call["errors"]) == 1


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b'{"choices": [{"message": {"content": null}}]}', "empty"),
        (b'{"choices": [{"message": {"refusal": "I must not"}}]}', "refused"),
        (b'{"choices": [{"message": null, "finish_reason": "content_filter"}]}', "refused"),
        (b'{"choices": [{"message": {}, "finish_reason": "length"}]}', "cut"),
    ],
)
def test_a_response_without_an_answer_is_an_unusable_answer(body, code):
    with ChatServer(lambda _: Scripted(body=body)) as server:
        [decision] = play(built(server.url, fallback="random", limits=Limits(reparse=0)))
    [call] = decision.extras["calls"][0]
    assert call["code"] == code
    assert call["input_tokens"] is None
    assert Usage.of(read_calls([call])).unpriced == 1


def test_where_there_is_no_server_the_episode_is_lost():
    with ChatServer(lambda _: GOOD) as server:
        url = server.url
    with pytest.raises(PolicyUnavailable, match=r"did not answer within 0\.3 s"):
        play(built(url, endpoint={"deadline_s": 0.3}))


def test_the_whole_time_that_a_server_asks_for_is_waited():
    busy = Scripted("slow down", status=429, headers={"Retry-After": "0.3"})
    script = iter([busy, Scripted(GOOD)])
    with ChatServer(lambda _: next(script)) as server:
        [decision] = play(built(server.url))
    [call] = decision.extras["calls"][0]
    assert call["waited_s"] >= 0.3
    busy = Scripted("slow down", status=429, headers={"Retry-After": "100"})
    with ChatServer(lambda _: busy) as server, pytest.raises(PolicyUnavailable):
        play(built(server.url))  # no second try could come before the deadline
    assert len(server.requests) == 1


@pytest.mark.heavy
def test_a_server_that_never_answers_loses_the_episode_and_not_the_run():
    with ChatServer(lambda _: Scripted("busy", status=503)) as server:
        policy = built(server.url, endpoint={"deadline_s": 2.0})
        with pytest.raises(PolicyUnavailable, match="status 503: busy"):
            play(policy)


@pytest.mark.parametrize("status", [400, 403, 404, 413, 422])
def test_each_refusal_of_the_first_request_is_the_users_to_mend(status):
    with ChatServer(lambda _: Scripted("not so", status=status)) as server:
        with pytest.raises(ConfigError, match=f"status {status}: not so"):
            play(built(server.url))
        assert len(server.requests) == 1


def test_a_refusal_of_the_first_request_is_the_users_to_mend_and_later_ones_are_not(monkeypatch):
    monkeypatch.setenv("MY_KEY", "sk-secret")
    refused = Scripted("bad key sk-secret", status=401)
    with ChatServer(lambda _: refused) as server:
        endpoint = {"key_env": "MY_KEY"}
        with pytest.raises(ConfigError, match=r"status 401: bad key \*\*\*") as told:
            play(built(server.url, endpoint=endpoint))
        assert server.keys == ["Bearer sk-secret"]
        assert "sk-secret" not in str(told.value)
    script = iter([GOOD, refused, refused, refused])
    with ChatServer(lambda _: next(script)) as server:
        policy = built(server.url)
        play(policy)
        for kind in (PolicyUnavailable, PolicyUnavailable, BudgetExhausted):
            with pytest.raises(kind) as told:
                play(policy, seeds=(8,))
            assert type(told.value) is kind


def test_many_threads_share_the_places_that_a_server_gives():
    with ChatServer(lambda _: Scripted(GOOD, delay_s=0.02)) as server:
        client = HttpClient(Endpoint(url=server.url, calls=4))
        threads = [
            threading.Thread(target=client.post, args=(b'{"model": "m"}',)) for _ in range(20)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(server.requests) == 20
    assert 1 < server.most <= 4


def test_a_proxy_is_told_the_whole_url(monkeypatch):
    with ChatServer(lambda _: GOOD) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url.removesuffix("/v1"))
        client = HttpClient(Endpoint(url="http://models.example/v1"))
        assert client.post(b"{}").data["choices"]
        assert proxy.targets == ["http://models.example/v1/chat/completions"]


def test_places_grow_without_refusals_and_shrink_with_a_burst_of_them():
    limiter = Limiter(100)

    def round_of(count):
        for _ in range(count):
            limiter.acquire(0.0)
            limiter.release(good=True)

    round_of(20)
    assert limiter.limit == 40
    for _ in range(10):
        limiter.on_rate_limit(0.0)
    assert limiter.limit == 32
    round_of(32)
    assert limiter.limit == pytest.approx(33.6)


# Replies and limits ------------------------------------------------------------------------------


def test_a_reply_is_used_again_and_never_paid_again(tmp_path):
    with ChatServer(by_digest) as server:
        first = play(built(server.url, folder=tmp_path), 5)
        again = play(built(server.url, folder=tmp_path), 5)
        assert len(server.requests) == 5
        other = play(built(server.url, folder=tmp_path), 1, seeds=(8,))
        assert len(server.requests) == 6
    for one, two in zip(first, again, strict=True):
        assert (one.actions[KEY] == two.actions[KEY]).all()
    assert [d.extras["calls"][0][0]["earlier"] for d in (first[0], again[0], other[0])] == [
        False,
        True,
        False,
    ]


def test_a_torn_line_is_no_reply(tmp_path):
    replies = ReplyStore(tmp_path)
    replies.add("a", Call(usd=1.0, answer="x"))
    [path] = tmp_path.glob("*.jsonl")
    with path.open("ab") as file:
        file.write(b'{"request": "b", "reply": {"us')
    again = ReplyStore(tmp_path)
    assert (again.get("a").answer, again.get("b"), len(again)) == ("x", None, 1)
    assert again.usage == Usage(calls=1, usd=1.0)


def test_replay_names_what_is_missing(tmp_path):
    with ChatServer(by_digest) as server:
        play(built(server.url, replies=str(tmp_path)), 2)
        replayed = built(server.url, replies=str(tmp_path), replay=True)
        play(replayed, 2)
        with pytest.raises(PolicyUnavailable, match="no reply to the request"):
            play(replayed, 1, seeds=(9,))
        assert len(server.requests) == 2


def test_another_model_than_in_earlier_sessions_is_named_and_paid_once(tmp_path):
    limits = Limits(calls=4)
    with ChatServer(lambda _: Scripted(GOOD, model="tiny-0806")) as server:
        play(built(server.url, folder=tmp_path), 2)
    with ChatServer(lambda _: Scripted(GOOD, model="tiny-1120")) as server:
        play(built(server.url, folder=tmp_path), 2)  # all replies are found
        for _ in range(3):
            with pytest.raises(ConfigError, match=r"by tiny-0806 before, and now by tiny-1120"):
                play(built(server.url, folder=tmp_path, limits=limits), seeds=(8,))
        assert len(server.requests) == 1
    [refused] = tmp_path.rglob("refused.jsonl")
    assert json.loads(refused.read_text())["reply"]["answer"] == GOOD
    refused.unlink()
    with ChatServer(lambda _: Scripted(GOOD, model="tiny-0806")) as server:
        play(built(server.url, folder=tmp_path), seeds=(8,))


def test_no_call_is_made_that_could_exceed_a_limit(tmp_path):
    with ChatServer(lambda _: GOOD) as server:
        limits = Limits(calls=3)
        with pytest.raises(BudgetExhausted, match=r"limits\.calls=3"):
            play(built(server.url, folder=tmp_path, limits=limits), 5)
        assert len(server.requests) == 3
        with pytest.raises(BudgetExhausted, match=r"limits\.calls=3"):  # of all sessions together
            play(built(server.url, folder=tmp_path, limits=limits), 5, seeds=(8,))
        assert len(server.requests) == 3


def test_a_budget_counts_what_is_reserved():
    budget = Budget(Limits(usd=1.0))
    begun, done = threading.Event(), []

    def second():
        begun.set()
        with budget.call(Usage(1, usd=0.6)) as paid:
            done.append(budget.spent)
            paid.append(Usage(1, usd=0.6))

    waiting = threading.Thread(target=second)
    with budget.call(Usage(1, usd=0.6)) as paid:
        waiting.start()
        begun.wait()
        waiting.join(0.2)
        assert not done, "it did not fit beside the first, which may cost 0.6"
        paid.append(Usage(1, usd=0.1))
    waiting.join(10)
    assert done == [Usage(1, usd=0.1)], "the first cost 0.1, so that the second fits"
    with pytest.raises(BudgetExhausted, match=r"limits\.usd=1"), budget.call(Usage(1, usd=0.6)):
        pass


def test_figures_tell_what_is_in_flight_spent_and_allowed():
    inside, go_on = threading.Event(), threading.Event()

    def script(_):
        inside.set()
        go_on.wait(10)
        return GOOD

    with ChatServer(script) as server:
        policy = built(server.url, limits=Limits(calls=8))
        before = policy.figures()
        playing = threading.Thread(target=play, args=(policy,))
        playing.start()
        inside.wait(10)
        during = policy.figures()
        go_on.set()
        playing.join(10)
        after = policy.figures()
    assert [f["models/in_flight"] for f in (before, during, after)] == [0, 1, 0]
    assert [f["models/spent/tokens"] for f in (before, during, after)] == [0, 0, 110]
    assert (after["models/limit/calls"], after["models/limit/usd"]) == (8, math.inf)
    assert before["models/tokens_per_s"] == 0 < after["models/tokens_per_s"]


def test_a_server_that_tells_no_usage_does_not_make_a_limit_endless(tmp_path):
    with ChatServer(lambda _: Scripted(GOOD, usage=None)) as server:
        limits = Limits(tokens=5000)
        for seed in (7, 8):  # and the next session counts the same
            with pytest.raises(BudgetExhausted, match=r"limits\.tokens=5000"):
                play(built(server.url, folder=tmp_path, limits=limits), 50, seeds=(seed,))
        assert 1 < len(server.requests) < 5


def test_cached_and_hidden_tokens_are_priced():
    price = Price(input=1.0, cached=0.1, output=10.0, date="2025-08-01")
    usage = {
        "prompt_tokens": 1000,
        "completion_tokens": 100,
        "total_tokens": 1500,  # 400 of hidden reasoning
        "prompt_tokens_details": {"cached_tokens": 600},
    }
    found = with_usage(Call(), usage, price)
    assert (found.output_tokens, found.cached_tokens) == (500, 600)
    assert found.usd == pytest.approx((400 * 1.0 + 600 * 0.1 + 500 * 10.0) / 1e6)
    assert with_usage(Call(), {}, price).usd is None


# What providers want ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "model", "extra", "sent"),
    [
        ("http://h/v1", "gpt-5", {}, {"temperature": 0.5, "max_tokens": 9}),
        (
            "https://api.openai.com/v1",
            "gpt-4o",
            {},
            {"temperature": 0.5, "max_completion_tokens": 9},
        ),
        ("https://api.openai.com/v1", "gpt-5-mini", {}, {"max_completion_tokens": 9}),
        ("https://api.openai.com/v1", "gpt-6-luna", {}, {"max_completion_tokens": 9}),
        ("https://api.openai.com/v1", "o4-mini", {}, {"max_completion_tokens": 9}),
        ("https://r.openai.azure.com/openai/v1", "gpt-5", {}, {"max_completion_tokens": 9}),
        (
            "https://api.anthropic.com/v1",
            "claude-opus-4-6",
            {},
            {"temperature": 0.5, "max_tokens": 9},
        ),
        ("https://api.anthropic.com/v1", "claude-opus-4-8", {}, {"max_tokens": 9}),
        ("https://api.anthropic.com/v1", "claude-sonnet-5-5", {}, {"max_tokens": 9}),
        ("http://h/v1", "m", {"temperature": None, "top_k": 3}, {"max_tokens": 9, "top_k": 3}),
        (
            "http://h/v1",
            "m",
            {"max_tokens": None, "n_predict": 7},
            {"temperature": 0.5, "n_predict": 7},
        ),
        (
            "https://api.openai.com/v1",
            "gpt-5",
            {"temperature": 1},
            {"max_completion_tokens": 9, "temperature": 1},
        ),
    ],
)
def test_fields_are_sent_as_a_provider_wants_them(url, model, extra, sent):
    fields = {"model": model, "temperature": 0.5, "max_tokens": 9}
    found = sent_fields(Endpoint(url=url, extra=extra), fields)
    assert found == {"model": model, **sent}


def test_a_field_that_is_left_out_is_not_sent_and_limits_still_count():
    extra = {"temperature": None, "max_tokens": None, "max_completion_tokens": 2000}
    with ChatServer(lambda _: Scripted(GOOD, usage=None)) as server:
        policy = built(server.url, endpoint={"extra": extra}, limits=Limits(tokens=3000))
        play(policy)
        assert policy.figures()["models/spent/tokens"] > 2000
        with pytest.raises(BudgetExhausted):
            play(policy, seeds=(8,))
        [sent] = server.requests
    assert "temperature" not in sent
    assert "max_tokens" not in sent
    assert sent["max_completion_tokens"] == 2000


def test_a_model_that_is_always_cut_off_is_told_once(caplog):
    with ChatServer(lambda _: Scripted("", finish="length")) as server:
        decisions = play(built(server.url, limits=Limits(reparse=0, unusable=11)), 11)
    [warning] = [r.getMessage() for r in caplog.records if "cut off" in r.getMessage()]
    assert "10 answers of tiny in a row were cut off at 1024 tokens" in warning
    assert "sampling.max_tokens" in decisions[-1].stops[0]


# Bad input ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"endpoint": {"url": "localhost:8000"}}, "endpoint.url='localhost:8000'"),
        ({"history": History(images=1), "endpoint": {"images": False}}, "takes no pictures"),
        ({"limits": Limits(usd=1.0)}, "the price of tiny is not known"),
        ({"prompt": "thnk"}, "unknown prompt 'thnk'. Nearest: think"),
        ({"endpoint": {"key_env": "NOT_SET_AT_ALL"}}, "NOT_SET_AT_ALL is not set"),
        ({"fallback": "fly"}, "fallback='fly'"),
        ({"replies": "https://h/replies"}, "replies: expected a path of this machine"),
        ({"replies": "s3://bucket/replies"}, "replies: expected a path of this machine"),
    ],
)
def test_it_is_refused_before_any_game_starts(options, says):
    with pytest.raises(ConfigError if "unknown" not in says else LookupError, match=says):
        built("http://127.0.0.1:9/v1", **options)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("system: '{{ gaol }}'", "unknown variable 'gaol'. Nearest: goal"),
        ("system: '{% if %}'", "system"),
        (
            "system: '{% include \"rules\" %}'\nparts: {rule: x}",
            "unknown part 'rules'; its parts are rule",
        ),
        ("system: ''\nparts: {rule: '{{ gaol }}'}", "rule: unknown variable 'gaol'"),
        ("sytem: ''", "Field required"),
        ("[", "prompt"),
    ],
)
def test_a_prompt_that_does_not_fit_is_named(tmp_path, text, says):
    path = tmp_path / "p.yaml"
    path.write_text(f"observation: ''\nunusable: ''\n{text}\n")
    with pytest.raises(ConfigError, match=says):
        load_prompt(str(path), None)


def test_a_prompt_extends_another(tmp_path):
    path = tmp_path / "p.yaml"
    path.write_text("extends: plan\nobservation: 'now {{ step }}'\n")
    prompt = load_prompt(str(path), None)
    assert prompt.render("observation", step=3) == "now 3"
    assert list(prompt.fields) == ["thought", "plan", "notes"]
    path.write_text(
        "extends: act\nparts: {goal: 'To {{ goal }}.'}\nsystem: '{% include \"goal\" %} Go.'\n"
    )
    assert load_prompt(str(path), None).render("system", goal="win") == "To win. Go."
    path.write_text("extends: pln\n")
    with pytest.raises(LookupError, match="Nearest: plan"):
        load_prompt(str(path), None)
    path.write_text(f"extends: {path}\n")
    with pytest.raises(ConfigError, match=r"^the prompt \S+p.yaml extends itself"):
        load_prompt(str(path), None)


def test_a_misspelt_option_of_a_group_is_named_with_the_nearest(tmp_path):
    status, said = ran(*job(tmp_path, "http://h/v1", "--set", "policy.endpoint.timeout=3"))
    assert status == 2
    assert "policy.endpoint.timeout_s" in said


def test_templates_run_in_a_sandbox(tmp_path):
    path = tmp_path / "p.yaml"
    path.write_text("system: \"{{ ''.__class__.__mro__ }}\"\nobservation: ''\nunusable: ''\n")
    with pytest.raises(ConfigError, match="unsafe"):
        load_prompt(str(path), None).render("system")


# Text that is not whole Unicode ------------------------------------------------------------------

HALF = "<thought>\ud83d</thought><action>{}</action>"


def encodable(calls):
    json.dumps(calls, ensure_ascii=False).encode()
    return calls


def test_half_a_surrogate_pair_in_an_answer_is_replaced(tmp_path):
    answers = iter([HALF.format(NAMES[1]), json.dumps({"thought": "\ud83d", "action": NAMES[1]})])
    with ChatServer(lambda _: next(answers)) as server:
        for form in ("tags", "json"):
            [decision] = play(built(server.url, folder=tmp_path, form=form))
            [call] = encodable(decision.extras["calls"][0])
            assert call["fields"] == {"thought": "\ufffd"}


def test_half_a_surrogate_pair_in_an_error_is_replaced():
    failed = Scripted(body=rb'{"error": {"message": "\ud83d"}}')
    with ChatServer(lambda _: failed) as server, pytest.raises(PolicyUnavailable) as told:
        play(built(server.url, endpoint={"deadline_s": 0.1}))
    assert str(told.value).encode()


def test_old_replies_with_it_or_of_an_outage_do_not_make_a_resume_fail(tmp_path):
    with ChatServer(lambda _: GOOD) as server:
        play(built(server.url, folder=tmp_path), 2)
        [path] = tmp_path.rglob("*.jsonl")
        first, second = path.read_text().splitlines()
        old = json.loads(second)
        outage = {"answer": "", "reasoning": "", "tools": [], "finish": "", "output_tokens": None}
        old["reply"] |= outage
        path.write_text(f"{first.replace('hm', chr(92) + 'ud83d')}\n{json.dumps(old)}\n")
        again = play(built(server.url, folder=tmp_path), 2)
        assert len(server.requests) == 3, "the second reply was a failure of the server"
    calls = [encodable(decision.extras["calls"][0])[0] for decision in again]
    assert [call["fields"]["thought"] for call in calls] == ["\ufffd", "hm"]
    assert [call["earlier"] for call in calls] == [True, False]


def test_a_field_of_an_answer_is_json_and_not_python():
    answer = json.dumps({"thought": {"a": ["b", None]}, "action": NAMES[1]})
    with ChatServer(lambda _: answer) as server:
        [decision] = play(built(server.url, form="json"))
    assert decision.extras["calls"][0][0]["fields"] == {"thought": '{"a": ["b", null]}'}


def test_thoughts_before_the_answer_are_reasoning_unless_the_prompt_asks_for_them(tmp_path):
    text = f"<think><action>no</action></think><action>{NAMES[1]}</action>"
    path = tmp_path / "p.yaml"
    path.write_text("extends: act\nfields:\n  think: {doc: why, keep: latest}\n")
    with ChatServer(lambda _: text) as server:
        [decision] = play(built(server.url))
        [call] = decision.extras["calls"][0]
        assert (call["code"], call["reasoning"]) == ("ok", "<action>no</action>")
        [decision] = play(built(server.url, prompt=str(path), limits=Limits(reparse=0)))
        [call] = decision.extras["calls"][0]
        assert (call["code"], call["answer"]) == ("two_blocks", text)


# Jobs --------------------------------------------------------------------------------------------


def job(folder, url, *more, key=""):
    task = {"evaluator": {"name": "signal_goal", "signal": "reached"}, "limits": {"steps": 12}}
    (folder / "task.yaml").write_text(yaml.safe_dump(task))
    config = {
        "output": str(folder / "run"),
        "bridge": {"name": "fake"},
        "task": str(folder / "task.yaml"),
        "policy": {
            "name": "vlm",
            "endpoint": {"url": url, "key_env": "MY_KEY" if key else ""},
            "model": "tiny",
            "fallback": "random",
            "sampling": {"seed": True},  # so that no two requests are equal
        },
        "instances": 8,
        "actors": 0,
        "episodes": 24,
    }
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    script = str(ROOT / "scripts" / "collect.py")
    command = [sys.executable, script, "--config", str(folder / "config.yaml"), *more]
    return command, {**os.environ, "MY_KEY": key}


def ran(command, env):
    """Runs a job in this process, which spares it the imports; returns its status and output."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MY_KEY", env["MY_KEY"])
        return called(Path(command[1]).stem, *command[2:])


def watched(run):
    """The screen of ``gamut watch``."""
    console = Console(width=100)
    with console.capture() as captured:
        console.print(screen(read_status(run), console))
    return captured.get()


def as_evaluation(command, folder):
    """Makes the job of ``job`` an evaluation of the same policy and random actions."""
    config = yaml.safe_load((folder / "config.yaml").read_text())
    config |= {"players": {"model": config.pop("policy"), "random": {"name": "random"}}}
    config |= {"sets": {"full": {"split": "all", "size": 12}}, "metric": "return"}
    del config["episodes"]
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    return [command[0], str(ROOT / "scripts" / "evaluate.py"), *command[2:]]


def results(run):
    if not (run / "episodes.parquet").exists():
        with Dataset(run / "dataset") as dataset:
            return [(e.episode, e.length, e.total_reward, e.end) for e in dataset.episodes()]
    rows = pq.read_table(run / "episodes.parquet").to_pylist()
    mine = [row for row in rows if row["player"] == "model"]
    return [repr({k: v for k, v in row.items() if k != "attempts"}) for row in mine]


@pytest.mark.process
@pytest.mark.parametrize("evaluation", [False, True], ids=["collect", "evaluate"])
def test_killed_and_resumed_nothing_is_paid_twice_and_the_run_is_the_same(tmp_path, evaluation):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    killed = threading.Event()
    state = {}

    def script(request):
        if not killed.is_set() and len(server.requests) == 60:
            state["job"].send_signal(signal.SIGKILL)
            killed.set()
        return Scripted(by_digest(request), delay_s=0.01)

    with ChatServer(script) as server:
        command, env = job(tmp_path / "a", server.url, key="sk-secret-key")
        command = as_evaluation(command, tmp_path / "a") if evaluation else command
        state["job"] = subprocess.Popen(
            command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        assert state["job"].wait(60) == -signal.SIGKILL
        before = {digest_of(request) for request in server.requests}
        status, said = ran([*command, "--resume"], env)
        assert status == 0, said
        twice = {digest for digest, count in server.paid.items() if count > 1}
        # Their answers came after the death of the job, at most one in each of 8 games.
        assert len(twice) <= 8
        assert twice <= before
    with ChatServer(by_digest) as server:
        command, env = job(tmp_path / "b", server.url, key="sk-secret-key")
        command = as_evaluation(command, tmp_path / "b") if evaluation else command
        assert ran(command, env)[0] == 0
    assert results(tmp_path / "a" / "run") == results(tmp_path / "b" / "run")
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or b"sk-secret" not in path.read_bytes(), path
    assert "sk-secret" not in said


def test_a_limit_of_the_run_pauses_it_and_a_refusal_ends_it_with_status_2(tmp_path):
    with ChatServer(by_digest) as server:
        status, said = ran(*job(tmp_path, server.url, "--set", "policy.limits.calls=20"))
        assert (status, len(server.requests)) == (3, 20), said
        assert "limits.calls=20 of the run is reached" in said
    last = json.loads((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()[-1])
    assert (last["models/spent/calls"], last["models/limit/calls"]) == (20, 20)
    assert (last["models/spent/tokens"], last["models/limit/tokens"]) == (20 * 110, None)
    assert "calls 20 of 20   tokens 2,200   USD unknown" in watched(tmp_path / "run")
    with ChatServer(by_digest) as server:  # elsewhere by now
        status, said = ran(*job(tmp_path, server.url, "--resume"))
        assert status == 0, said
        made = 20 + len(server.requests)
    assert f"calls {made}   tokens" in watched(tmp_path / "run"), "of both sessions, without limit"
    with ChatServer(lambda _: Scripted("no such model", status=404)) as server:
        other = f"output={tmp_path / 'other'}"
        status, said = ran(*job(tmp_path, server.url, "--set", other))
        assert status == 2, said
        assert "no such model" in said


@pytest.mark.process
def test_no_secret_is_in_a_run_or_on_the_terminal(tmp_path):
    secrets = [f"sEcReT-{name}" for name in ("key", "header", "proxy", "wandb" + "0" * 40)]
    said = "<thought>{}</thought><action>{}</action>"

    def script(_):
        if len(server.requests) == 2:
            return Scripted(" ".join(secrets[:3]), status=500)
        return Scripted(said.format(" ".join(secrets[:3]), NAMES[1]))

    with ChatServer(script) as server:  # takes itself for a proxy
        command, env = job(tmp_path, "http://models.example/v1", key=secrets[0])
        config = yaml.safe_load((tmp_path / "config.yaml").read_text())
        config["policy"]["endpoint"]["headers"] = {"x-api-key": "$MY_HEADER"}
        config |= {"episodes": 2, "wandb": {"mode": "offline"}}
        (tmp_path / "config.yaml").write_text(yaml.safe_dump(config))
        proxy = server.url.replace("http://", f"http://me:{secrets[2]}@").removesuffix("/v1")
        env |= {"MY_HEADER": secrets[1], "http_proxy": proxy, "WANDB_API_KEY": secrets[3]}
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert server.headers[0]["x-api-key"] == secrets[1]
    files = [path for path in (tmp_path / "run").rglob("*") if path.is_file()]
    assert len(files) > 8
    for secret in secrets:
        assert secret not in done.stdout + done.stderr
        assert not [path for path in files if secret.encode() in path.read_bytes()], secret
    url = f"policy.endpoint.url=http://me:{secrets[2]}@h/v1"
    output = f"output={tmp_path / 'other'}"
    refused = subprocess.run(
        [*command, "--set", url, output], env=env, capture_output=True, text=True, check=False
    )
    assert refused.returncode == 2
    assert "endpoint.url" in refused.stderr
    assert secrets[2] not in refused.stdout + refused.stderr
    assert not (tmp_path / "other").exists()


def test_deterministic_actions_are_asked_for_with_temperature_0():
    with ChatServer(lambda _: GOOD) as server:
        policy = built(server.url, sampling=Sampling(temperature=0.7, seed=True))
        memory = policy.initial_memory([Start(SPEC.state_space.state(0), 1)])
        for explore in (True, False):
            policy.act(allocate(SPEC.observation_space, 1), memory, details=None, explore=explore)
        assert [r["temperature"] for r in server.requests] == [0.7, 0.0]
        assert len({r["seed"] for r in server.requests}) == 1


@pytest.mark.process
def test_an_evaluation_reports_what_calls_cost_and_the_calls_can_be_exported(tmp_path):
    (tmp_path / "prices.yaml").write_text(
        "date: '2025-08-01'\nmodels:\n  tiny: {input: 10.0, cached: 1.0, output: 100.0}\n"
    )
    with ChatServer(by_digest) as server:
        command, env = job(tmp_path, server.url)
        config = yaml.safe_load((tmp_path / "config.yaml").read_text())
        player = {**config.pop("policy"), "prices": str(tmp_path / "prices.yaml")}
        del config["episodes"]
        config |= {"players": {"model": player, "random": {"name": "random"}}}
        config |= {"sets": {"full": {"split": "all", "size": 6}}, "metric": "return", "videos": 1}
        config |= {"wandb": {"mode": "offline"}}
        (tmp_path / "config.yaml").write_text(yaml.safe_dump(config))
        command[1] = str(ROOT / "scripts" / "evaluate.py")
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        made = len(server.requests)
    legs = json.loads((tmp_path / "run" / "summary.json").read_text())["findings"]["legs"]
    used = {leg["player"]: leg["usage"] for leg in legs}
    assert used["random"] is None
    assert used["model"]["calls"] == made, "films show calls that were paid before"
    assert len(list((tmp_path / "run" / "videos").glob("model-*.mp4"))) == 2
    assert used["model"]["usd"] == pytest.approx(made * (100 * 10 + 10 * 100) / 1e6)
    assert used["model"]["tokens_per"]["step"] == pytest.approx(110)
    assert "## Calls of models" in (tmp_path / "run" / "report.md").read_text()
    [file] = (tmp_path / "run").glob("wandb/offline-run-*/files/media/table/tables/calls_*.json")
    table = json.loads(file.read_text())
    rows = [dict(zip(table["columns"], row, strict=True)) for row in table["data"]]
    assert len(rows) == made
    assert rows[0]["prompt"].startswith(f"Step {rows[0]['step']}.")
    assert f"<action>{rows[0]['action']}</action>" in rows[0]["answer"]
    assert (rows[0]["model"], rows[0]["usable"], rows[0]["tokens"]) == ("tiny", True, 110)


def test_calls_are_exported_as_a_table_and_as_conversations(tmp_path):
    with ChatServer(by_digest) as server:
        assert ran(*job(tmp_path, server.url))[0] == 0
        made = len(server.requests)
    assert (tmp_path / "run" / "tables" / f"calls-0-{made}.parquet").is_file()
    table, chat = tmp_path / "calls.parquet", tmp_path / "chat.jsonl"
    with Dataset(tmp_path / "run" / "dataset") as dataset:
        episodes = dataset.episodes(include_lost=True)
        assert Calls().write(dataset, episodes, table) == made
        assert Calls().write(dataset, episodes, chat) == made
        with pytest.raises(DatasetError, match="no token ids, which rows of verl need"):
            Calls("verl").write(dataset, episodes, tmp_path / "verl.jsonl")
        assert not (tmp_path / "verl.jsonl").exists()
        [first, *_] = play_text(dataset, dataset.episodes()[0])
        assert "thought=" in first
    rows = pq.read_table(table).to_pylist()
    assert {row["code"] for row in rows} == {"ok"}
    assert sorted({row["episode"] for row in rows}) == list(range(24))
    lines = [json.loads(line) for line in chat.read_text().splitlines()]
    assert lines[0]["messages"][-1] == {"role": "assistant", "content": rows[0]["answer"]}


def test_a_dataset_without_calls_says_so(tmp_path):
    command, env = job(tmp_path, "http://127.0.0.1:9/v1", "--set", "episodes=2")
    config = yaml.safe_load((tmp_path / "config.yaml").read_text())
    config["policy"] = {"name": "random"}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config))
    assert ran(command, env)[0] == 0
    with (
        Dataset(tmp_path / "run" / "dataset") as dataset,
        pytest.raises(DatasetError, match=r"no column extra/calls: its policy, random"),
    ):
        Calls().write(dataset, dataset.episodes(), tmp_path / "calls.parquet")
    assert not (tmp_path / "calls.parquet").exists()
