"""What is read of the responses of servers, whatever their form."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollout.api import Call
from rollout.models.chat_api import (
    failure_of,
    parsed,
    read_response,
    response_of,
    split_reasoning,
)
from rollout.models.spending import Price, with_usage

PRICE = Price(input=1.0, cached=0.1, output=10.0, date="2026-11-01")


def answer(**message):
    return {"choices": [{"message": message, "finish_reason": "stop"}]}


def test_parts_of_a_content_are_read_and_thoughts_are_not_the_answer():
    content = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
        {"type": "text", "text": "<action>"},
        {"type": "output_text", "text": "up</action>"},
        {"type": "image_url", "image_url": {"url": "data:"}},
    ]
    found = read_response(answer(content=content))
    assert (found.answer, found.reasoning) == ("<action>up</action>", "hm")


@pytest.mark.parametrize(
    ("message", "reasoning"),
    [
        ({"reasoning_content": "a"}, "a"),
        ({"reasoning": "b"}, "b"),
        ({"reasoning_details": [{"type": "reasoning.text", "text": "c"}]}, "c"),
        ({"reasoning": None, "thinking_blocks": [{"type": "thinking", "thinking": "d"}]}, "d"),
    ],
)
def test_each_name_of_the_reasoning_is_known(message, reasoning):
    assert read_response(answer(content="x", **message)).reasoning == reasoning


@pytest.mark.parametrize(
    "call",
    [
        {"tool_calls": [{"function": {"name": "act", "arguments": '{"action": "up"}'}}]},
        {"tool_calls": [{"function": {"name": "act", "arguments": {"action": "up"}}}]},
        {"tool_calls": [{"name": "act", "arguments": {"action": "up"}}]},
        {"function_call": {"name": "act", "arguments": '{"action": "up"}'}},
    ],
)
def test_arguments_may_be_objects(call):
    assert read_response(answer(content=None, **call)).tools == [["act", '{"action": "up"}']]


def test_an_answer_that_the_server_has_parsed_is_json_again():
    assert read_response(answer(content={"action": "up"})).answer == '{"action": "up"}'
    assert read_response(answer(content=3)).answer == "3"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("<think>a</think>\n\nb", ("b", "a")),
        ("a\n</think>b", ("b", "a")),
        ("<think>a</think><think>b</think>c", ("c", "a\nb")),
        ("[THINK]a[/THINK]b", ("b", "a")),
        ("<think>cut off", ("", "cut off")),
        ("b", ("b", "")),
        ("b <think>a</think>", ("b <think>a</think>", "")),
    ],
)
def test_thoughts_come_before_the_answer(text, found):
    assert split_reasoning(text) == found


def events(*chunks, end=b"data: [DONE]\n\n"):
    return (
        b": waiting\n\n" + b"".join(b"data: %s\n\n" % json.dumps(c).encode() for c in chunks) + end
    )


def test_a_stream_is_put_together():
    def delta(finish=None, **more):
        return {"model": "m", "choices": [{"delta": more, "finish_reason": finish}], "usage": None}

    def tool(**function):
        return {"index": 0, "function": function}

    body = events(
        delta(role="assistant", content=""),
        delta(reasoning_content="h"),
        delta(reasoning_content="m", content="a"),
        delta(content="b", tool_calls=[tool(name="act", arguments='{"act')]),
        delta(tool_calls=[tool(arguments='ion": 1}')]),
        delta("stop"),
        {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}},
    )
    data = response_of(body)
    assert not failure_of(data)
    found = read_response(data)
    assert (found.answer, found.reasoning, found.finish) == ("ab", "hm", "stop")
    assert (found.tools, found.reported) == ([["act", '{"action": 1}']], "m")
    assert with_usage(found, data["usage"], None).input_tokens == 3
    failed = response_of(events(delta(content="a"), {"error": {"message": "lost"}}))
    assert failure_of(failed) == "lost"
    assert response_of(events(delta(content="a"), end=b"")) is None
    assert failure_of(response_of(events()))


def test_half_a_surrogate_pair_is_replaced_and_a_whole_one_is_read():
    data = parsed(rb'{"\udc00": ["\ud83d\ude00", "\ud83d.", "\\ud83d"]}')
    assert data == {"�": ["😀", "�.", "\\ud83d"]}
    assert parsed(b'"\xed\xa0\x80"').encode()


@pytest.mark.parametrize(
    ("usage", "tokens", "usd"),
    [
        ({"prompt_tokens": 10.0, "completion_tokens": "2"}, (10, 2), 30e-6),
        ({"input_tokens": 10, "output_tokens": 2}, (10, 2), 30e-6),
        (
            {"prompt_tokens": True, "completion_tokens": -1, "total_tokens": 1e400},
            (None, None),
            None,
        ),
        ({"prompt_tokens": 10, "completion_tokens": 2, "prompt_tokens_details": 3}, (10, 2), 30e-6),
        ("none", (None, None), None),
        (["a"], (None, None), None),
        ({"prompt_tokens": 10, "completion_tokens": 2, "cost": 0.5}, (10, 2), 0.5),
        (
            {"cost": 0, "is_byok": True, "cost_details": {"upstream_inference_cost": 0.25}},
            (None, None),
            0.25,
        ),
        ({"prompt_tokens": 10, "completion_tokens": 2, "cost": "free"}, (10, 2), 30e-6),
    ],
)
def test_usage_of_odd_types_and_the_price_that_a_router_reports(usage, tokens, usd):
    found = with_usage(Call(), usage, PRICE)
    assert (found.input_tokens, found.output_tokens) == tokens
    assert found.usd == (None if usd is None else pytest.approx(usd))


_NAMES = """choices message content delta text type thinking tool_calls function arguments name
index finish_reason usage prompt_tokens total_tokens cost logprobs logprob token_ids model error
refusal reasoning prompt_token_ids prompt_tokens_details cached_tokens"""
_KEYS = st.sampled_from(_NAMES.split())
_LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(["stop", "length", "text", "thinking", "<think>", "\ud83d", "x'y"])
    | st.text(max_size=5)
)
_JSON = st.recursive(
    _LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=4),
    max_leaves=12,
)
_MESSAGE = st.dictionaries(_KEYS, _JSON, max_size=4)
_CHOICE = st.fixed_dictionaries({"message": _MESSAGE | _JSON, "delta": _MESSAGE, "logprobs": _JSON})
_REPLY = st.fixed_dictionaries({"choices": st.lists(_CHOICE | _JSON, max_size=2), "usage": _JSON})


@given(_REPLY | st.dictionaries(_KEYS, _JSON, max_size=4), st.booleans())
def test_any_json_is_read_without_an_error(reply, streamed):
    body = json.dumps(reply).encode()
    data = response_of(b"data: " + body + b"\n\ndata: [DONE]\n\n" if streamed else body)
    failure_of(data).encode()
    found = with_usage(read_response(data), data.get("usage"), PRICE)
    json.dumps(found.as_json(), allow_nan=False, ensure_ascii=False).encode()
    assert all(
        isinstance(getattr(found, name), str)
        for name in ("answer", "reasoning", "reported", "finish")
    )
    assert all(isinstance(text, str) for call in found.tools for text in call)
    split_reasoning(found.answer)


@given(
    st.binary(max_size=40)
    | st.sampled_from([b"[" * 9999, b"9" * 9999, b'{"a":' * 9999, b"data: ["])
)
def test_any_bytes_are_a_response_or_none(body):
    assert isinstance(response_of(body), dict | None)


BROKEN = {"error": {"message": "down"}, "message": {"content": "x"}, "finish_reason": "stop"}
FAILURES = {
    "error": ({"error": {"message": "down"}}, "down"),
    "error in a choice": ({"choices": [BROKEN]}, "down"),
    "abort": ({"choices": [{"finish_reason": "abort", "message": {"content": "x"}}]}, "abort"),
    "no choice": ({"choices": []}, "without an answer"),
    "no message": ({"choices": [{"finish_reason": "stop", "message": None}]}, "without a message"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_each_way_to_fail_with_status_200_is_told(name):
    data, said = FAILURES[name]
    assert said in failure_of(data)


def test_an_answer_that_was_cut_or_withheld_needs_no_message():
    for finish in ("length", "content_filter"):
        assert failure_of({"choices": [{"finish_reason": finish}]}) == ""


def test_numbers_of_tokens_are_all_there_or_none():
    assert read_response(chosen(logprobs={"content": [{"logprob": -1.0}, {}]})) == read_response(
        chosen()
    )
    assert read_response(chosen(token_ids=[1, -2])).output_ids is None
    assert read_response(chosen(token_ids=[1, 2])).output_ids == [1, 2]


def chosen(**more):
    return {"choices": [{"message": {"content": "a"}, **more}]}
