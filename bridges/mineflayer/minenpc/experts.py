"""Scripted experts: a program for each task of MineNPC-Task, through the sandbox as any program.

An expert is told what a companion is told: the request, the memory and the user profile, in the
details of the first frame. ``policy.name=callable`` plays all tasks with ``bridge.actions=code``
and ``policy.function=bridges.mineflayer.minenpc.experts:play``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from bridges.mineflayer.minenpc.scene import tasks
from bridges.mineflayer.oracle import WAITING
from bridges.mineflayer.spaces import CODE, KIND, MOST_CODE, NEW, RESUME
from rollout.api import Columns
from rollout.errors import ConfigError
from rollout.yaml12 import load_yaml

_LIBRARY = Path(__file__).with_name("library.js")
_FIELDS = {"n": r"\d+", "m": r"[a-z_]+"}
_PLACE = r"-?\d+ -?\d+ -?\d+"
_PROGRAMS = Path(__file__).parents[1] / "data" / "minenpc_experts.yaml"


@lru_cache
def _library() -> tuple[str, ...]:
    """Returns the declarations and statements of the library, in their order."""
    lines = _LIBRARY.read_text(encoding="ascii").splitlines()
    code = "\n".join(x for x in lines if not x.lstrip().startswith(("//", "/**", "*")))
    return tuple(re.split(r"\n+(?=[a-z])", code))


def _used(parts: Sequence[str], own: str) -> str:
    """Returns what a program uses of the parts, in their order, and what is no declaration."""
    names = [re.match(r"(?:const|let|(?:async )?function) (\w+)", part) for part in parts]
    kept = [name is None for name in names]
    words = set(re.findall(r"\w+", own))
    while True:
        words.update(*(re.findall(r"\w+", p) for p, keep in zip(parts, kept, strict=True) if keep))
        now = [name is None or name[1] in words for name in names]
        if now == kept:
            break
        kept = now
    text = "\n".join(part for part, keep in zip(parts, kept, strict=True) if keep)
    return re.sub(r"\n\s+", "\n", text)


@lru_cache
def programs() -> Mapping[str, str]:
    """Returns the programs by the names of their tasks, without the library."""
    found: Mapping[str, str] = load_yaml(_PROGRAMS, ours=True)
    return found


def task_of(request: str) -> tuple[str, dict[str, int | str]]:
    """Returns the name of the task that a request is of, and what it asks for: ``n`` and ``m``.

    Raises:
        ConfigError: it is the request of none.
    """
    for name, task in tasks().items():
        parts = re.split(r"\{(\w+)\}", task["request"])
        parts[::2] = map(re.escape, parts[::2])
        fields = parts[1::2]
        parts[1::2] = (f"({_FIELDS.get(field, _PLACE)})" for field in fields)
        if found := re.fullmatch("".join(parts) + "( .+)?", request):
            said = zip(fields, found.groups(), strict=False)
            asked = {key: x for key, x in said if key in _FIELDS}
            return name, {key: int(x) if x.isdecimal() else x for key, x in asked.items()}
    raise ConfigError(f"no expert knows the request {request[:80]!r}")


def program(told: Mapping[str, Any]) -> str:
    """Returns the program for what an agent is told: its request, memory and user profile."""
    places = {e["key"]: e["value"] for e in told["memory"] if e["kind"] == "landmark"}
    name, asked = task_of(told["request"])
    known = {"MEMORY": places, "USER": told["user"], "ASKED": asked}
    parts = [f"const {key} = {json.dumps(value)};" for key, value in known.items()]
    own = programs()[name]
    text = f"{_used([*parts, *_library()], own)}\n{own}console.log('done');\n{WAITING}"
    if len(text) > MOST_CODE:
        raise ConfigError(f"the program has {len(text)} of {MOST_CODE} characters")
    return text


def play(observations: Columns, details: Any, explore: bool) -> Columns:
    """Plays the experts, for the policy ``callable``.

    Args:
        observations: of ``B`` rows.
        details: of each row; the first of an episode has the request.
        explore: not used.

    Returns:
        the actions, ``(B,)`` each: a program in the first step of an episode.
    """
    rows = len(next(iter(observations.values())))
    code = np.full(rows, "", object)
    for row, said in enumerate(details or ()):
        if "request" in said:
            code[row] = program(said)
    return {KIND: np.where(code != "", NEW, RESUME).astype(np.int64), CODE: code}
