"""The section that says how games are kept alive."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from rollout.api import Deadlines, Resources
from rollout.configuration.sections import Section, key


class HostConfig(Section):
    """How games and the actors that play them are kept alive; see docs/reliability.md.

    It is used as it is: a pool of games and the supervisor of actors read their rules from it.
    """

    renamed: ClassVar[Mapping[str, str]] = {"boots": "host.concurrent_launches"}

    isolation: Literal["auto", "in_process", "subprocess"] = key(
        "auto", "Where a game runs: beside the policy, or in its own process; auto asks the game."
    )
    restarts: int = key(
        5,
        "Failures of one instance of a game within restart_window_s after which it is restarted "
        "in any case; further ones send it into quarantine if it fails more than failure_rate.",
        unit="restarts",
        ge=0,
    )
    failure_rate: float = key(
        0.05,
        "Failures per step of one instance within restart_window_s up to which it is restarted "
        "without limit; 0 limits all failures by restarts.",
        unit="failures per step",
        ge=0,
        le=1,
    )
    actor_restarts: int = key(
        5,
        "Failures of one actor within restart_window_s after which it is replaced; one more "
        "abandons it.",
        unit="restarts",
        ge=0,
    )
    restart_window_s: float | None = key(
        3600.0, "Time after which a failure no longer counts; null counts all.", gt=0
    )
    backoff_s: float = key(
        0.1,
        "Pause before the second restart in a row, doubled for each one more.",
        unit="s",
        ge=0,
    )
    quarantine_s: float | None = key(
        300.0,
        "Time without new games after more failures than restarts, while others play; null "
        "abandons the game.",
        unit="s",
        gt=0,
    )
    machine_failures: int | None = key(
        3,
        "Failures of actors on one machine of a cluster within restart_window_s after which it "
        "gets no new actors for quarantine_s, if other machines fail less; null for no limit.",
        gt=0,
    )
    recycle_episodes: int | None = key(
        None, "Finished episodes after which a game is restarted; null never.", gt=0
    )
    recycle_minutes: float | None = key(
        None,
        "Age after which a game is restarted between two episodes; null never.",
        unit="minutes",
        gt=0,
    )
    memory_mb: float | None = key(
        None,
        "Resident memory of a game's processes at which it is killed; from 90 % of it on, it is "
        "restarted between two episodes. null for no limit.",
        unit="MB",
        gt=0,
    )
    spares: int = key(0, "Games that each actor keeps launched to replace one that fails.", ge=0)
    concurrent_launches: int | None = key(
        None, "Games that may be launched at the same time on one machine; null for no limit.", gt=0
    )
    resources: dict[str, Annotated[float, Field(ge=0)]] = key(
        dict,
        "What each game needs of its machine, where that is not what its bridge says: cpus, "
        "memory_mb, gpus, and Ray's own resources by name, e.g. {gamut_game: 1}.",
    )
    retries: int = key(20, "Times a lost episode is tried again.", unit="attempts", ge=0)
    start_s: float | None = key(
        None, "Deadline for a game to come up; null for the bridge's own.", unit="s", gt=0
    )
    reset_s: float | None = key(
        None, "Deadline for a reset; null for the bridge's own.", unit="s", gt=0
    )
    step_s: float | None = key(
        None, "Deadline for a step; null for the bridge's own.", unit="s", gt=0
    )
    close_s: float | None = key(
        None, "Deadline for a game to end; null for the bridge's own.", unit="s", gt=0
    )
    policy_s: float = key(
        300.0,
        "Deadline for a policy to decide; an actor whose policy takes longer is replaced, and a "
        "run that plays in its own process ends.",
        unit="s",
        gt=0,
    )
    max_in_flight: int | None = key(
        None,
        "Fragments that are requested from an actor at once; null for 2. Not for training, whose "
        "runners are asked for one at a time; see algorithm.max_staleness.",
        unit="fragments",
        gt=0,
    )

    @property
    def recycle_s(self) -> float | None:
        """``recycle_minutes`` in seconds."""
        return None if self.recycle_minutes is None else 60.0 * self.recycle_minutes

    def plays_in_process(self, own: str) -> bool:
        """Returns whether a game runs in its player's process; ``own`` is its bridge's choice."""
        return (own if self.isolation == "auto" else self.isolation) == "in_process"

    def needs(self, own: Resources) -> Resources:
        """Returns what a bridge's games need, with what is given here in its place."""
        given = dict(self.resources)
        return Resources(
            cpus=given.pop("cpus", own.cpus),
            memory_mb=int(given.pop("memory_mb", own.memory_mb)),
            gpus=given.pop("gpus", own.gpus),
            custom={**own.custom, **given},
        )

    def deadlines(self, own: Deadlines) -> Deadlines:
        """Returns the deadlines of a bridge, with those given here in their place."""
        given = {
            "start_s": self.start_s,
            "reset_s": self.reset_s,
            "step_s": self.step_s,
            "close_s": self.close_s,
        }
        return replace(own, **{name: s for name, s in given.items() if s is not None})
