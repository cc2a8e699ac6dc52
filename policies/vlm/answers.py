"""The form in which a model answers, and the parser of such answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from rollout.models.chat_api import incomplete_reason, json_object
from rollout.models.grammar import Grammar, Row, UnusableAnswerError

Form: TypeAlias = Literal["tags", "json", "tool"]
ACTION = "action"
_TOOL_NAME = "act"


@dataclass(frozen=True)
class Answer:
    """A usable answer.

    Attributes:
        row: the action.
        action: the action as the model wrote it.
        fields: the other fields of the answer.
    """

    row: Row
    action: str
    fields: Mapping[str, str]


class Reader:
    """Reads answers in one form.

    Args:
        form: ``tags`` (``<action>...</action>`` in text), ``json`` (an object) or ``tool`` (the
            arguments of a tool call).
        grammar: the actions.
        fields: the other fields of an answer, with what they are for.
    """

    def __init__(self, form: Form, grammar: Grammar, fields: Mapping[str, str]) -> None:
        self._form, self._grammar, self._fields = form, grammar, dict(fields)

    @property
    def instruction(self) -> str:
        """Instructions on the form of an answer, for the prompt."""
        docs = {**self._fields, ACTION: "the action"}
        if self._form == "tags":
            lines = [f"<{name}>{doc}</{name}>" for name, doc in docs.items()]
            return "Answer with exactly these blocks:\n" + "\n".join(lines)
        if self._form == "json":
            inner = ", ".join(f'"{name}": {doc}' for name, doc in docs.items())
            return f"Answer with one JSON object and nothing else: {{{inner}}}"
        inner = ", ".join(f"{name} ({doc})" for name, doc in docs.items())
        return f"Answer by calling the tool {_TOOL_NAME} with {inner}."

    @property
    def request(self) -> dict[str, Any]:
        """The fields of a request that ask for this form."""
        if self._form == "tags":
            return {}
        properties: dict[str, Any] = {
            name: {"type": "string", "description": doc} for name, doc in self._fields.items()
        }
        properties[ACTION] = self._grammar.schema
        schema = {
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        }
        if self._form == "json":
            about = {"name": _TOOL_NAME, "schema": schema}
            return {"response_format": {"type": "json_schema", "json_schema": about}}
        tool = {"name": _TOOL_NAME, "description": "Plays an action.", "parameters": schema}
        choice = {"type": "function", "function": {"name": _TOOL_NAME}}
        return {"tools": [{"type": "function", "function": tool}], "tool_choice": choice}

    def read(self, text: str, tools: list[tuple[str, str]], finish: str) -> Answer:
        """Returns the answer of a reply.

        Args:
            text: its text.
            tools: names and arguments of its tool calls.
            finish: reason why the model stopped, as the server gives it.

        Raises:
            Unusable: it is no action.
        """
        code, problem = incomplete_reason(finish)
        if code:
            raise UnusableAnswerError(code, problem)
        if self._form == "tool":
            return self._read_object(self._tool_arguments(tools))
        if not text.strip():
            raise UnusableAnswerError("empty", "the answer was empty")
        return self._read_object(text) if self._form == "json" else self._read_tags(text)

    def write(self, fields: Mapping[str, str], action: str) -> str:
        """Returns an answer as the model would write it, for its history."""
        if self._form == "tags":
            blocks = {**fields, ACTION: action}
            return "\n".join(f"<{name}>{text}</{name}>" for name, text in blocks.items())
        return json.dumps({**fields, ACTION: _as_json(action)}, ensure_ascii=False)

    def _read_tags(self, text: str) -> Answer:
        found = _tagged_blocks(text, ACTION)
        if len(found) != 1:
            code = "two_blocks" if found else "no_block"
            raise UnusableAnswerError(
                code,
                f"expected one block <{ACTION}>...</{ACTION}>, got {len(found) or 'none'}",
            )
        action = found[0].strip()
        blocks = {name: _tagged_blocks(text, name) for name in self._fields}
        fields = {name: each[-1].strip() for name, each in blocks.items() if each}
        return Answer(self._grammar.parse(action), action, fields)

    def _tool_arguments(self, tools: list[tuple[str, str]]) -> str:
        if len(tools) != 1 or tools[0][0] != _TOOL_NAME:
            code = "two_blocks" if len(tools) > 1 else "no_block"
            names = ", ".join(name for name, _ in tools) or "none"
            raise UnusableAnswerError(
                code, f"expected one call of the tool {_TOOL_NAME}, got {names}"
            )
        return tools[0][1]

    def _read_object(self, text: str) -> Answer:
        try:
            data = json_object(text)
        except ValueError as error:
            raise UnusableAnswerError("malformed", str(error)) from error
        if ACTION not in data:
            raise UnusableAnswerError("no_block", f'expected a JSON object with the key "{ACTION}"')
        action = data[ACTION]
        fields = {name: _as_text(data[name]) for name in self._fields if name in data}
        return Answer(self._grammar.parse(action), _as_text(action), fields)


def _tagged_blocks(text: str, name: str) -> list[str]:
    """Returns each text between ``<name>`` and the next ``</name>``, in one pass."""
    found, after, opening, closing = list[str](), 0, f"<{name}>", f"</{name}>"
    while (begin := text.find(opening, after)) >= 0:
        begin += len(opening)
        end = text.find(closing, begin)
        if end < 0:
            break
        found.append(text[begin:end])
        after = end + len(closing)
    return found


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _as_json(action: str) -> Any:
    try:
        return json.loads(action)
    except ValueError:
        return action
