"""Answers of models: the form that is asked for, and reading an answer in that form."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from policies.vlm.grammar import Grammar, Row, Unusable
from rollout.models.chat_api import incomplete, json_object

Form: TypeAlias = Literal["tags", "json", "tool"]
ACTION = "action"
_TOOL = "act"


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
        """How to answer, for the prompt."""
        docs = {**self._fields, ACTION: "the action"}
        if self._form == "tags":
            lines = [f"<{name}>{doc}</{name}>" for name, doc in docs.items()]
            return "Answer with exactly these blocks:\n" + "\n".join(lines)
        if self._form == "json":
            inner = ", ".join(f'"{name}": {doc}' for name, doc in docs.items())
            return f"Answer with one JSON object and nothing else: {{{inner}}}"
        inner = ", ".join(f"{name} ({doc})" for name, doc in docs.items())
        return f"Answer by calling the tool {_TOOL} with {inner}."

    @property
    def request(self) -> dict[str, Any]:
        """Fields of a request that ask for the form."""
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
            about = {"name": _TOOL, "schema": schema}
            return {"response_format": {"type": "json_schema", "json_schema": about}}
        tool = {"name": _TOOL, "description": "Plays an action.", "parameters": schema}
        choice = {"type": "function", "function": {"name": _TOOL}}
        return {"tools": [{"type": "function", "function": tool}], "tool_choice": choice}

    def read(self, text: str, tools: list[tuple[str, str]], finish: str) -> Answer:
        """Returns the answer of a reply.

        Args:
            text: its text.
            tools: names and arguments of its tool calls.
            finish: why the model stopped, as the server says it.

        Raises:
            Unusable: it is no action.
        """
        code, problem = incomplete(finish)
        if code:
            raise Unusable(code, problem)
        if self._form == "tool":
            return self._object(self._call(tools))
        if not text.strip():
            raise Unusable("empty", "the answer was empty")
        return self._object(text) if self._form == "json" else self._tags(text)

    def write(self, fields: Mapping[str, str], action: str) -> str:
        """Returns an answer as the model would write it, for its history."""
        if self._form == "tags":
            blocks = {**fields, ACTION: action}
            return "\n".join(f"<{name}>{text}</{name}>" for name, text in blocks.items())
        return json.dumps({**fields, ACTION: _data(action)}, ensure_ascii=False)

    def _tags(self, text: str) -> Answer:
        found = _blocks(text, ACTION)
        if len(found) != 1:
            code = "two_blocks" if found else "no_block"
            raise Unusable(
                code,
                f"expected one block <{ACTION}>...</{ACTION}>, got {len(found) or 'none'}",
            )
        action = found[0].strip()
        blocks = {name: _blocks(text, name) for name in self._fields}
        fields = {name: each[-1].strip() for name, each in blocks.items() if each}
        return Answer(self._grammar.parse(action), action, fields)

    def _call(self, tools: list[tuple[str, str]]) -> str:
        if len(tools) != 1 or tools[0][0] != _TOOL:
            code = "two_blocks" if len(tools) > 1 else "no_block"
            names = ", ".join(name for name, _ in tools) or "none"
            raise Unusable(code, f"expected one call of the tool {_TOOL}, got {names}")
        return tools[0][1]

    def _object(self, text: str) -> Answer:
        try:
            data = json_object(text)
        except ValueError as error:
            raise Unusable("malformed", str(error)) from error
        if ACTION not in data:
            raise Unusable("no_block", f'expected a JSON object with the key "{ACTION}"')
        action = data[ACTION]
        fields = {name: _shown(data[name]) for name in self._fields if name in data}
        return Answer(self._grammar.parse(action), _shown(action), fields)


def _blocks(text: str, name: str) -> list[str]:
    """What is between ``<name>`` and the next ``</name>``, each time, in one pass."""
    found, after, opening, closing = list[str](), 0, f"<{name}>", f"</{name}>"
    while (begin := text.find(opening, after)) >= 0:
        begin += len(opening)
        end = text.find(closing, begin)
        if end < 0:
            break
        found.append(text[begin:end])
        after = end + len(closing)
    return found


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _data(action: str) -> Any:
    try:
        return json.loads(action)
    except ValueError:
        return action
