"""Messages and responses in the form of OpenAI's chat API."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

_TOKENS_PER_PICTURE = 1600  # an upper estimate, for limits
_CHARACTERS_PER_TOKEN = 2  # a lower one


_FENCE = re.compile(r"\A\s*```(?:json)?\s*\n(.*)\n\s*```\s*\Z", re.DOTALL)


def json_object(text: str) -> dict[str, Any]:
    """Returns the JSON object that a text is; a fence of Markdown around it is allowed.

    Raises:
        ValueError: it is something else.
    """
    fenced = _FENCE.match(text)
    try:
        data = json.loads(fenced[1] if fenced else text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"expected one JSON object: {error}") from error
    if not isinstance(data, dict):
        raise ValueError(f"expected one JSON object, got {type(data).__name__}")
    return data


def estimate(messages: list[dict[str, Any]]) -> int:
    """Returns an upper estimate of the tokens of messages that have their pictures."""
    tokens = 0
    for message in messages:
        content = message["content"]
        parts = [{"text": content}] if isinstance(content, str) else content
        for part in parts:
            pictures = part.get("type") == "image_url"
            text = len(part.get("text", ""))
            tokens += _TOKENS_PER_PICTURE if pictures else text // _CHARACTERS_PER_TOKEN + 8
    return tokens


def wired(
    messages: Sequence[Mapping[str, Any]], images: Mapping[str, bytes], kind: str
) -> list[dict[str, Any]]:
    """Returns messages with their pictures."""

    def part(each: dict[str, Any]) -> dict[str, Any]:
        if each["type"] != "image":
            return each
        data = base64.b64encode(images[each["digest"]]).decode()
        return {"type": "image_url", "image_url": {"url": f"data:{kind};base64,{data}"}}

    return [
        {**message, "content": list(map(part, message["content"]))}
        if isinstance(message["content"], list)
        else dict(message)
        for message in messages
    ]


def read_response(data: Mapping[str, Any]) -> dict[str, Any]:
    """What the record of a call has of a response; missing parts are empty."""
    choices = data.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else {}
    choice = choice if isinstance(choice, Mapping) else {}
    message = choice.get("message")
    message = message if isinstance(message, Mapping) else {}
    tools = []
    for tool in message.get("tool_calls") or ():
        function = (tool or {}).get("function") or {}
        tools.append([str(function.get("name", "")), str(function.get("arguments", ""))])
    scored = (choice.get("logprobs") or {}).get("content") or None
    finish = "content_filter" if message.get("refusal") else str(choice.get("finish_reason") or "")
    return {
        "reported": str(data.get("model") or ""),
        "answer": str(message.get("content") or message.get("refusal") or ""),
        "reasoning": str(message.get("reasoning_content") or message.get("reasoning") or ""),
        "tools": tools,
        "finish": finish,
        "prompt_ids": data.get("prompt_token_ids"),
        "output_ids": choice.get("token_ids"),
        "output_logprobs": scored and [float(each["logprob"]) for each in scored],
    }
