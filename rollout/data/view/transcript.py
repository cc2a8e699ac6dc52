"""The transcript of an episode: what was said, planned, asked, remembered, called and judged."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from rollout.api import Call
from rollout.data.schema import EXTRA, column_name

TELEMETRY = column_name(EXTRA, "companion/telemetry")
"""The column in which companions record their stages, a list of maps per step."""

_FIELDS = {"plan": "plan", "notes": "memory"}  # fields of answers that are entries
_PARTS = ("plan", "question", "answer", "memory", "verdict", "violation")  # of a stage
_KINDS = {"answered": "answer", "judged": "verdict", "refused": "violation", "invalid": "violation"}
_NAMED = ("stage", "kind", "events", "who", "type", "tick", "message", *_PARTS)
_COUNTED = ("request", "subtask", "attempt")  # numbers that every event of a stage has
_NOTHING: tuple[Any, ...] = (None, "", [], {})


class Entry(NamedTuple):
    """An entry of a transcript.

    Attributes:
        step: of the frame at which it is known.
        kind: chat, event, call, stage, plan, question, answer, memory, verdict or violation.
        who: who said or did it; empty if unknown.
        text: what it was.
    """

    step: int
    kind: str
    who: str
    text: str


def transcript(
    details: Sequence[Any], telemetry: Sequence[Any], calls: Sequence[Sequence[Call]]
) -> Iterator[Entry]:
    """Yields the entries of an episode in their order; a plan or note that stays the same is one.

    Args:
        details: of each frame: ``trace`` and ``event`` are what happened since the one before.
        telemetry: of each step, the column ``companion/telemetry``: a stage, or a list of them.
        calls: of each step.
    """
    told: dict[tuple[str, str], str] = {}
    for step in range(max(len(details), len(telemetry), len(calls))):
        found = [*_events(details[step])] if step < len(details) else []
        for call in calls[step] if step < len(calls) else ():
            found += _of_call(call)
        stages = telemetry[step] if step < len(telemetry) else None
        for stage in [stages] if isinstance(stages, Mapping) else _list(stages):
            found += _of_stage(stage)
        for (kind, who, text), count in Counter(found).items():
            if kind in ("plan", "memory"):
                if told.get((kind, who)) == text:
                    continue
                told[kind, who] = text
            yield Entry(step, kind, who, f"{text} ({count} times)" if count > 1 else text)


def _events(details: Any) -> Iterator[tuple[str, str, str]]:
    """What a frame's details tell; chat is in ``trace`` where there is one."""
    if not isinstance(details, Mapping):
        return
    trace, events = (_list(details.get(name)) for name in ("trace", "event"))
    for each in [*trace, *(e for e in events if not trace or _get(e, "type") != "chat")]:
        kind, who = _get(each, "type"), _get(each, "who") or _get(each, "username")
        if kind == "chat":
            yield "chat", who, _get(each, "text") or _get(each, "only_message")
        elif kind == "violation":
            yield "violation", who, _facts(each)
        elif isinstance(each, Mapping):
            yield "event", who, _get(each, "message") or f"{kind} {_facts(each)}"
        else:
            yield "event", "", str(each)


def _of_call(call: Call) -> Iterator[tuple[str, str, str]]:
    who = call.role or ""
    for name, text in (call.fields or {}).items():
        if name in _FIELDS and text:
            yield _FIELDS[name], who, str(text)
    done = call.action if call.action != call.role else ""  # a role is no action
    said = done or call.answer or ", ".join(str(tool) for tool in call.tools)
    with suppress(ValueError, RecursionError):  # the lines of a program are easier to read
        said = as_line(json.loads(said, strict=False))
    yield "call", who, f"unusable: {call.code}" if call.usable is False else said


def _of_stage(stage: Any) -> Iterator[tuple[str, str, str]]:
    if not isinstance(stage, Mapping):
        yield "stage", "", as_line(stage)
        return
    who = _get(stage, "stage")
    if facts := _facts(stage):
        yield "stage", who, facts
    for event in _list(stage.get("events")):
        yield from _of_event(event, who)
    for name in _PARTS:
        for each in _list(stage.get(name)) if name == "memory" else [stage.get(name)]:
            if each not in _NOTHING:
                yield name, who, as_line(each)


def _of_event(event: Any, stage: str) -> Iterator[tuple[str, str, str]]:
    """An event of a stage; one of a kind that is an entry of its own shows that part first."""
    kind = _get(event, "kind")
    entry = _KINDS.get(kind, kind)
    if not kind:
        yield "stage", stage, as_line(event)
        return
    facts = _facts({k: v for k, v in event.items() if kind == "subtask" or k not in _COUNTED})
    parts = [as_line(event[name]) for name in _PARTS if event.get(name) not in _NOTHING]
    text = "\n".join(filter(None, (*parts, facts)))
    if entry not in _PARTS:
        yield "stage", f"{stage} {kind}".strip(), text
    elif text:
        yield entry, stage, text


def as_line(value: Any) -> str:
    """Returns a value of JSON as text: a list as lines, a map as names and values."""
    if isinstance(value, str):
        return value
    if isinstance(value, Sequence) and any(isinstance(each, Mapping | str) for each in value):
        return "\n".join(map(as_line, value))
    if isinstance(value, Mapping) and isinstance(value.get("subtask"), str):
        status = f" [{value['status']}]" if value.get("status") else ""
        return f"{value.get('index', '-')}. {value['subtask']}{status}"
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {as_line(each)}" for name, each in value.items())
    return json.dumps(value, ensure_ascii=False)


def _facts(data: Mapping[str, Any]) -> str:
    return as_line({k: v for k, v in data.items() if k not in _NAMED and v not in _NOTHING})


def _get(data: Any, name: str) -> str:
    value = data.get(name) if isinstance(data, Mapping) else None
    return "" if value is None else as_line(value)


def _list(value: Any) -> Iterable[Any]:
    return value if isinstance(value, list | tuple) else []
