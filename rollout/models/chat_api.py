"""Messages and responses in the form of OpenAI's chat API and its many variants.

What can be read of a response is read; a value of another type than expected is left out. A
response with status 200 may still say that there is no answer, see ``failure_of``.
"""

from __future__ import annotations

import binascii
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rollout.api import Call, clean_text

_DEEPEST = 4  # levels of parts within parts
_LARGEST_ID = 2**31
_LARGEST_COUNT = 2**53
_LONGEST_INTEGER = 300  # digits; Python refuses to read integers of more than 4,300
_TEXT_OF = ("text", "thinking", "reasoning", "summary", "content", "refusal")
_REASONING = ("reasoning_content", "reasoning", "thinking", "reasoning_details", "thinking_blocks")
_THOUGHTS = ("thinking", "reasoning", "redacted_thinking")
_FAILED = ("error", "abort", "insufficient_system_resource")
_CUT = ("length", "max_tokens", "model_length")
_WITHHELD = ("content_filter", "refusal", "safety", "sensitive")
_ENDED = "[DONE]"
_MOST_EVENTS = 200_000  # of a stream: more than tokens of any answer, and seconds to read
_LINE = re.compile(rb"[^\r\n]+")
_OPENING = re.compile(r"<think>|\[THINK\]")
_OPENED = re.compile(rf"\s*(?:{_OPENING.pattern})")
_CLOSED = re.compile(r"</think>|\[/THINK\]")


def parsed(content: bytes) -> Any:
    """Returns the value of JSON; its texts are cleaned, see ``clean_text``.

    Raises:
        ValueError: it is no JSON.
    """
    text = content.decode("utf-8-sig", "replace")
    try:
        data = json.loads(text, parse_int=_integer)
        if "\\ud" in text or "\\uD" in text:  # perhaps one half of a pair without the other
            data = json.loads(clean_text(json.dumps(data, ensure_ascii=False)))
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    return data


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) <= _LONGEST_INTEGER else float(digits)


def response_of(content: bytes) -> dict[str, Any] | None:
    """Returns a response as a mapping; the events of a stream are put together.

    None for anything else, for instance a stream that ends before the answer does.
    """
    try:
        data = parsed(content)
    except ValueError:
        return _join_events(_events(content))
    return data if isinstance(data, dict) else None


def _events(content: bytes) -> Iterator[Any]:
    """Yields the data of server-sent events; None for one that is not JSON."""
    for line in _LINE.finditer(content):  # one by one: there may be millions
        kind, _, data = line[0].partition(b":")
        if kind.strip() != b"data":
            continue
        if data.strip() == _ENDED.encode():
            yield {_ENDED: True}
            continue
        try:
            yield parsed(data)
        except ValueError:
            yield None


def _join_events(events: Iterable[Any]) -> dict[str, Any] | None:
    """Returns the response that the events of a stream make up; None if it is incomplete."""
    whole: dict[str, Any] = {}
    # Pieces are joined at the end: a stream of 32 MiB may have a million of them.
    said_by: dict[str, list[str]] = {}
    tools: dict[int, tuple[list[str], list[str]]] = {}
    choice: dict[str, Any] = {}
    for number, event in enumerate(events):
        if not isinstance(event, Mapping) or number == _MOST_EVENTS:
            return None
        whole |= {name: value for name, value in event.items() if value is not None}
        chosen = _choice(event)
        delta = _mapping(chosen.get("delta") or chosen.get("message"))
        said, thought = _text_and_reasoning(delta.get("content"))
        pieces = {name: _text(delta[name]) for name in ("refusal", *_REASONING) if name in delta}
        pieces |= {"content": said, "thinking": pieces.get("thinking") or thought}
        for name, text in pieces.items():
            said_by.setdefault(name, []).append(text)
        for place, tool in enumerate(_tools(delta)):
            index, (name, arguments) = tool.get("index"), _call(tool)
            called = tools.setdefault(index if isinstance(index, int) else place, ([], []))
            called[0].append(name)
            called[1].append(arguments)
        for name in ("token_ids", "logprobs"):
            choice[name] = _longer(choice.get(name), chosen.get(name))
        choice |= {name: chosen[name] for name in ("finish_reason", "error") if chosen.get(name)}
    if not (_ENDED in whole or choice.get("finish_reason") or whole.get("error")):
        return None
    message: dict[str, Any] = {name: "".join(texts) for name, texts in said_by.items()}
    message["tool_calls"] = [
        {"function": {"name": next(filter(None, names), ""), "arguments": "".join(arguments)}}
        for names, arguments in tools.values()
    ]
    answered = choice.get("finish_reason") or choice.get("error") or any(message.values())
    return {**whole, "choices": [{**choice, "message": message}] if answered else []}


def _longer(before: Any, more: Any) -> Any:
    """Extends a list by another, or the content list of a mapping; returns the result."""
    if isinstance(before, list) and isinstance(more, list):
        before.extend(more)
        return before
    if isinstance(before, Mapping) and isinstance(more, Mapping):
        return {"content": _longer(before.get("content"), more.get("content"))}
    return before if more is None else more


def failure_of(data: Mapping[str, Any]) -> str:
    """Returns why a response has no answer of a model; empty if it has one.

    Routers answer with status 200 while the model behind them fails.
    """
    choice = _choice(data)
    for error in (data.get("error"), choice.get("error")):
        if error:
            return error_text(error)
    finish = _finish(choice)
    if finish in _FAILED:
        return f"finish_reason={finish}"
    if not choice:
        return "a response without an answer: " + _json(data)
    if finish not in ("content_filter", "length") and not _message(choice):
        return "an answer without a message: " + _json(data)
    return ""


def error_text(error: Any) -> str:
    """Returns what an error says, with what the provider behind a router said."""
    if not isinstance(error, Mapping):
        return error if isinstance(error, str) else _json(error)
    said = error.get("message")
    said = said if isinstance(said, str) and said else _json(error)
    raw = _mapping(error.get("metadata")).get("raw")
    return f"{said}: {raw}" if isinstance(raw, str) and raw else said


def code_of(data: Mapping[str, Any]) -> int | None:
    """Returns the status in the error of a response, as routers give it; None without one."""
    return count_of(_mapping(data.get("error")).get("code"))


def read_response(data: Mapping[str, Any]) -> Call:
    """Returns a call with what a response has; missing parts are empty."""
    choice = _choice(data)
    message = _message(choice)
    said, thought = _text_and_reasoning(message.get("content"))
    refusal = _text(message.get("refusal"))
    reported = data.get("model")
    reasoning = next(filter(None, (_text(message.get(name)) for name in _REASONING)), thought)
    return Call(
        reported=reported if isinstance(reported, str) else "",
        answer=said or refusal,
        reasoning=reasoning,
        tools=[list(_call(tool)) for tool in _tools(message)],
        finish="content_filter" if refusal else _finish(choice),
        prompt_ids=_ids(data.get("prompt_token_ids")),
        output_ids=_ids(choice.get("token_ids")),
        output_logprobs=_logprobs(choice.get("logprobs")),
    )


def incomplete_reason(finish: str) -> tuple[str, str]:
    """Returns a code and a sentence on an answer that its model did not end; empty for others.

    Args:
        finish: why the model stopped, as ``read_response`` gives it.
    """
    if finish == "length":
        return "cut", (
            "the answer was too long and was cut off (sampling.max_tokens, which counts hidden "
            "reasoning); answer more briefly"
        )
    return ("refused", "the answer was withheld") if finish == "content_filter" else ("", "")


def split_reasoning(answer: str) -> tuple[str, str]:
    """Returns an answer without the reasoning that comes first in it, and that reasoning.

    Models that reason write it between ``<think>`` and ``</think>`` (or ``[THINK]``) unless their
    server takes it out. Templates that open it themselves leave the closing mark only.
    """
    reasoning: list[str] = []
    at = 0
    while True:
        opened, closed = _OPENED.match(answer, at), _CLOSED.search(answer, at)
        if closed is None and opened is None:
            break
        if opened is None and (reasoning or _OPENING.search(answer, at, closed.start())):  # type: ignore[union-attr]
            break
        begin, end = (
            opened.end() if opened else at,
            closed.start() if closed else len(answer),
        )
        reasoning.append(answer[begin:end].strip())
        at = closed.end() if closed else len(answer)
    return answer[at:].lstrip() if reasoning else answer, "\n".join(reasoning)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _choice(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the first choice; empty without one."""
    choices = data.get("choices")
    return _mapping(choices[0]) if isinstance(choices, list) and choices else {}


def _message(choice: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the message of a choice; empty without one."""
    message = choice.get("message", choice.get("text"))
    return {"content": message} if isinstance(message, str) else _mapping(message)


def _finish(choice: Mapping[str, Any]) -> str:
    """Returns the reason why the model stopped, in OpenAI's terms."""
    finish = choice.get("finish_reason")
    finish = finish.lower() if isinstance(finish, str) else ""
    if finish in _CUT:
        return "length"
    return "content_filter" if finish.startswith(_WITHHELD) else finish


def _text_and_reasoning(content: Any) -> tuple[str, str]:
    """Returns text and reasoning of a content: a text, parts, or a JSON object."""
    number = isinstance(content, int | float) and not isinstance(content, bool)
    part = isinstance(content, Mapping) and isinstance(content.get("type"), str)
    if number or (isinstance(content, Mapping) and not part):
        return _json(content), ""
    parts = content if isinstance(content, list) else [content]
    flags = [_mapping(part).get("type") in _THOUGHTS for part in parts]
    said = "".join(_text(p) for p, thought in zip(parts, flags, strict=True) if not thought)
    return said, "".join(_text(p) for p, thought in zip(parts, flags, strict=True) if thought)


def _text(value: Any, depth: int = _DEEPEST) -> str:
    """Returns the text of a text, a part, or a list of them; empty for anything else."""
    if isinstance(value, str):
        return value
    if depth and isinstance(value, list):
        return "".join(_text(each, depth - 1) for each in value)
    if depth and isinstance(value, Mapping):
        return next(filter(None, (_text(value.get(n), depth - 1) for n in _TEXT_OF)), "")
    return ""


def _tools(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Returns the tool calls of a message, also those in the deprecated form."""
    calls = message.get("tool_calls") or message.get("function_call") or ()
    calls = [calls] if isinstance(calls, Mapping) else calls
    return [_mapping(each) for each in calls] if isinstance(calls, list) else []


def _call(tool: Mapping[str, Any]) -> tuple[str, str]:
    """Returns name and arguments of a tool call; other arguments than text become JSON."""
    function = _mapping(tool.get("function")) or tool
    name, arguments = function.get("name"), function.get("arguments", function.get("input"))
    written = arguments if isinstance(arguments, str) else ""
    if isinstance(arguments, Mapping | list):
        written = _json(arguments)
    return name if isinstance(name, str) else "", written


def _json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return ""


def count_of(value: Any) -> int | None:
    """Returns a number of tokens, which some servers write as a text or as ``100.0``."""
    if isinstance(value, str) and value.strip().isdecimal() and len(value) < _LONGEST_INTEGER:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 0 <= value < _LARGEST_COUNT and value == int(value) else None


def _ids(value: Any) -> list[int] | None:
    """Returns token ids; None unless all are valid."""
    if not isinstance(value, list):
        return None
    right = all(type(each) is int and 0 <= each < _LARGEST_ID for each in value)
    return value if right else None


def _logprobs(value: Any) -> list[float] | None:
    """Returns the log-probabilities of the tokens; None unless each is a number."""
    value = _mapping(value)
    found = value.get("content") or value.get("token_logprobs")
    if not isinstance(found, list) or not found:
        return None
    each = [number_of(e.get("logprob") if isinstance(e, Mapping) else e) for e in found]
    numbers = [number for number in each if number is not None]
    return numbers if len(numbers) == len(found) else None


def number_of(value: Any) -> float | None:
    """Returns a finite number; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:  # an integer that no float can hold
        return None


_TOKENS_PER_PICTURE = 1600  # an upper estimate, for limits
_CHARACTERS_PER_TOKEN = 2  # a lower one


def json_object(text: str) -> dict[str, Any]:
    """Returns the JSON object that a text is; a fence of Markdown around it is allowed.

    Raises:
        ValueError: it is something else.
    """
    try:
        data = parsed(_unfenced(text).encode())
    except ValueError as error:
        raise ValueError(f"expected one JSON object: {error}") from error
    if not isinstance(data, dict):
        raise ValueError(f"expected one JSON object, got {type(data).__name__}")
    return data


def _unfenced(text: str) -> str:
    """Returns the text without a Markdown fence around it."""
    inner = text.strip()
    if inner[:3] != "```" or inner[-3:] != "```":
        return text
    kind, _, rest = inner[3:-3].partition("\n")
    body, newline, after = rest.rpartition("\n")
    fenced = newline and not after.strip() and kind.rstrip() in ("", "json")
    return body if fenced else text


def shorten(value: object) -> str:
    """Returns a value as text of at most 80 characters, for messages."""
    try:
        text = repr(value)
    except RecursionError:
        return "something that is nested too deeply"
    return text if len(text) <= 80 else f"{text[:77]}..."


def estimated_tokens(messages: Sequence[Mapping[str, Any]]) -> int:
    """Returns an upper estimate of the tokens of messages."""
    tokens = 0
    for message in messages:
        content = message["content"]
        parts = [{"text": content}] if isinstance(content, str) else content
        for part in parts:
            pictures = part.get("type") == "image"
            text = len(part.get("text", ""))
            tokens += _TOKENS_PER_PICTURE if pictures else text // _CHARACTERS_PER_TOKEN + 8
    return tokens


def request_body(
    fields: Mapping[str, Any],
    messages: Sequence[Mapping[str, Any]],
    images: Mapping[str, bytes],
    kind: str,
) -> bytes:
    """Returns the body of a request, with the files of the pictures that messages name.

    Base64 needs no escapes in JSON, so pictures are put between parts that are JSON already:
    they are most of a body, and are copied once.
    """
    pieces: list[bytes] = []

    def append_object(mapping: Mapping[str, Any], key: str) -> None:
        """Appends a JSON object that ends with the open list ``key``."""
        others = {name: value for name, value in mapping.items() if name != key}
        pieces.append(json.dumps({**others, key: []}).encode()[:-2])

    append_object(fields, "messages")
    for number, message in enumerate(messages):
        pieces.append(b", " if number else b"")
        content = message["content"]
        if isinstance(content, str):
            pieces.append(json.dumps(message).encode())
            continue
        append_object(message, "content")
        for place, part in enumerate(content):
            pieces.append(b", " if place else b"")
            if part["type"] != "image":
                pieces.append(json.dumps(part).encode())
                continue
            url = f'{{"type": "image_url", "image_url": {{"url": "data:{kind};base64,'
            data = binascii.b2a_base64(images[part["digest"]], newline=False)
            pieces += (url.encode(), data, b'"}}')
        pieces.append(b"]}")
    pieces.append(b"]}")
    return b"".join(pieces)
