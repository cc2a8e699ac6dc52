"""What ``checkpoint.json`` contains, as far as it is read."""

from __future__ import annotations

from typing import Annotated, Any, Required

from pydantic import ConfigDict, Field
from typing_extensions import TypedDict

_Count = Annotated[int, Field(ge=0, lt=2**63)]


class Strict(TypedDict):
    """Base of what files of a run contain: other types than the declared ones are refused."""

    __pydantic_config__ = ConfigDict(strict=True, allow_inf_nan=False)  # type: ignore[misc]


class Position(Strict):
    """Position of a runner's schedule; see ``rollout.host.schedule.Schedule.state``."""

    state_set: str
    seed: _Count
    stride: _Count
    offset: _Count
    cursor: _Count
    again: list[tuple[_Count, _Count]]
    playing: list[tuple[_Count, _Count]]


class VisitsState(Strict):
    """Visits per state; see ``rollout.host.schedule.Visits.state``."""

    state_set: str
    episodes: _Count
    counts: str


class PolicyAbout(Strict):
    """Name and options of a policy."""

    name: str
    options: dict[str, Any]


class About(TypedDict, total=False):
    """Contents of ``checkpoint.json``; other keys are for human readers."""

    __pydantic_config__ = ConfigDict(  # type: ignore[misc]
        strict=True, allow_inf_nan=False, extra="allow"
    )

    format: Required[int]
    update: Required[_Count]
    env_steps: Required[_Count]
    policy: Required[PolicyAbout]
    observation_space: Required[dict[str, dict[str, Any]]]
    action_space: Required[dict[str, dict[str, Any]]]
    sha256: Required[dict[str, str]]
    episodes: _Count
    seconds: Annotated[float, Field(ge=0)]
    positions: dict[str, Position]
    visits: VisitsState
    lost: dict[str, _Count]
    abandoned: list[_Count]
    dropped_steps: _Count
