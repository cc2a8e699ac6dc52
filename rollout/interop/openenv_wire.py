"""What the server says in the protocol of OpenEnv 0.10: messages, schemas and error codes."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces
from pydantic_core import from_json, to_json

from rollout.api import Details
from rollout.errors import GamutError, UnknownNameError
from rollout.interop.failures import code_of
from rollout.interop.games import Games
from rollout.interop.moments import Moment
from rollout.models.observations import TEXT, is_shown_picture

VERSION = "1.0.0"
"""Of the HTTP interface, as OpenEnv's servers have it."""

INVALID_JSON, UNKNOWN_TYPE, VALIDATION = "INVALID_JSON", "UNKNOWN_TYPE", "VALIDATION_ERROR"
EXECUTION, CAPACITY, SESSION = "EXECUTION_ERROR", "CAPACITY_REACHED", "SESSION_ERROR"
_CODES = {
    "capacity": (CAPACITY, 503),
    "busy": (SESSION, 409),
    "out_of_turn": (EXECUTION, 409),
    "lost": (EXECUTION, 502),
    "invalid": (VALIDATION, 422),
    "internal": (EXECUTION, 500),
}
_RESET = ("seed", "split", "index", "state")


class Refused(GamutError):  # noqa: N818 - reads as what happened
    """A request that is not served.

    Attributes:
        code: of OpenEnv.
        status: of HTTP.
        reason: a finer code; see ``rollout.interop.failures.code_of``.
    """

    def __init__(self, code: str, message: str, status: int = 422, reason: str = "invalid") -> None:
        super().__init__(message)
        self.code, self.status, self.reason = code, status, reason


def refusal_of(error: Exception) -> Refused:
    """Returns the answer to a request that raised an error."""
    if isinstance(error, Refused):
        return error
    reason = code_of(error)
    code, status = _CODES.get(reason, (VALIDATION, 422))  # of actions
    message = str(error) if reason != "internal" else "an error of the server; its log has it"
    return Refused(code, message, status, reason)


def error_data(refused: Refused) -> dict[str, Any]:
    """Returns the data of an error."""
    return {"message": str(refused), "code": refused.code, "reason": refused.reason}


def read(text: str | bytes) -> dict[str, Any]:
    """Returns the JSON object of a message.

    Raises:
        Refused: it is none.
    """
    try:
        data = from_json(text, allow_inf_nan=False)
    except ValueError as error:
        raise Refused(INVALID_JSON, f"Invalid JSON: {error}", 400) from error
    if not isinstance(data, dict):
        raise Refused(VALIDATION, f"expected a JSON object, got {type(data).__name__}")
    return data


def write(kind: str, data: Mapping[str, Any]) -> str:
    """Returns the text of a message."""
    return document({"type": kind, "data": data}).decode()


def document(data: object) -> bytes:
    """Returns data as JSON; infinities and NaN, which JSON lacks, are texts such as "Infinity"."""
    return to_json(data, inf_nan_mode="strings")


def reset_arguments(data: object) -> dict[str, Any]:
    """Returns the arguments of ``Game.reset`` in the data of a reset, without ``episode_id``.

    Raises:
        Refused: there are others, which OpenEnv's own servers would ignore.
    """
    if not isinstance(data, Mapping):
        raise Refused(VALIDATION, "expected the arguments of the reset as a JSON object")
    for name in data:
        if name not in (known := (*_RESET, "episode_id")):
            raise Refused(VALIDATION, str(UnknownNameError("argument of reset", str(name), known)))
    episode = data.get("episode_id")
    if episode is not None and (not isinstance(episode, str) or len(episode) > 255):
        raise Refused(VALIDATION, "episode_id: expected a text of at most 255 characters")
    found = {name: data[name] for name in _RESET if data.get(name) is not None}
    if isinstance(found.get("state"), str) and found["state"].isdecimal():
        found["state"] = int(found["state"][:400])  # an index; JSON's numbers may be too small
    return found


def action_of(data: object) -> dict[str, Any]:
    """Returns the action in the data of a step.

    Raises:
        Refused: it is no JSON object.
    """
    if not isinstance(data, Mapping):
        raise Refused(VALIDATION, "expected the action as a JSON object; GET /schema describes it")
    return {name: value for name, value in data.items() if name != "metadata"}


def observation_data(moment: Moment, episode_id: str, goal: str) -> dict[str, Any]:
    """Returns the data of an observation: its parts, reward, done and metadata.

    Pictures of bytes are PNG files in base64, as image content of MCP; all other columns are JSON.
    """
    spaces_of = moment.spec.observation_space.spaces
    pictures = [
        {
            "type": "image",
            "name": name,
            "mimeType": "image/png",
            "data": base64.b64encode(file).decode("ascii"),
        }
        for name, file in moment.pictures()
    ]
    columns = {
        name: value if isinstance(value, str) else np.asarray(value).tolist()
        for name, value in moment.observations.items()
        if not (is_shown_picture(spaces_of[name]) and spaces_of[name].dtype == np.uint8)
    }
    details: Details = {key: value for key, value in moment.details.items() if key != TEXT}
    result = moment.result
    metadata = {
        "episode_id": episode_id,
        "step": moment.step,
        "goal": goal,
        "state": str(moment.start.state.index),
        "seed": moment.start.seed,
        "attempt": moment.start.attempt,
        "state_set": moment.start.state_set,
        "progress": None if math.isnan(moment.progress) else moment.progress,
        "success": moment.success,
        "end": moment.end,
        "total_reward": None if result is None else result.total_reward,
    }
    return {
        "observation": {
            "text": moment.text(),
            "pictures": pictures,
            "columns": columns,
            "legal": moment.legal,
            "details": details,
            "metadata": metadata,
        },
        "reward": moment.reward if moment.step else None,
        "done": moment.done,
        "metadata": metadata,
    }


def state_data(moment: Moment | None, episode_id: str | None) -> dict[str, Any]:
    """Returns the state of a session: the episode and its steps."""
    if moment is None:
        return {"episode_id": None, "step_count": 0}
    start = moment.start
    found = {"episode_id": episode_id, "step_count": moment.step, "seed": start.seed}
    found |= {"state": str(start.state.index), "state_set": start.state_set}
    return {**found, "values": dict(start.state.values), "done": moment.done}


def schemas(games: Games) -> dict[str, Any]:
    """Returns the JSON schemas of actions, observations and states."""
    schema = dict(games.grammar.schema)
    columns = games.spec.action_space.spaces
    if schema["type"] != "object" or len(columns) == 1:
        [name] = columns
        schema = {"type": "object", "properties": {name: schema}, "required": [name]}
    extra = {"metadata": {"type": "object", "description": "It is ignored."}}
    action = {**schema, "title": "Action", "properties": {**schema["properties"], **extra}}
    text = {"type": "string"}
    picture = {"type": text, "name": text, "mimeType": {"const": "image/png"}, "data": text}
    shown = games.observation_space.spaces.items()
    observed = {name: {"description": str(leaf)} for name, leaf in shown if _is_data(leaf)}
    parts: dict[str, Any] = {
        "text": {**text, "description": "The observation in words."},
        "pictures": {"type": "array", "items": {"type": "object", "properties": picture}},
        "columns": {"type": "object", "properties": observed},
        "legal": {**text, "description": "What is legal now, if anything is restricted."},
        "details": {"type": "object"},
        "metadata": {"type": "object"},
        "reward": {"type": ["number", "null"]},
        "done": {"type": "boolean"},
    }
    state = {"episode_id": {"type": ["string", "null"]}, "step_count": {"type": "integer"}}
    return {
        "action": action,
        "observation": {"title": "Observation", "type": "object", "properties": parts},
        "state": {"title": "State", "type": "object", "properties": state},
    }


def _is_data(leaf: spaces.Space[Any]) -> bool:
    return not (is_shown_picture(leaf) and leaf.dtype == np.uint8)


def openapi(paths: Mapping[str, Mapping[str, str]]) -> dict[str, Any]:
    """Returns the OpenAPI document of routes: ``{path: {method: summary}}``."""
    answer = {"200": {"description": "The answer as JSON."}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Games of Gamut as an OpenEnv environment", "version": VERSION},
        "paths": {
            path: {
                method: {"summary": summary, "responses": answer}
                for method, summary in methods.items()
            }
            for path, methods in paths.items()
        },
    }
