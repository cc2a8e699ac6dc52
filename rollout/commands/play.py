"""Opens a game in a window for a person to play, and records it.

W A S D, space, left shift and left ctrl move; mouse or arrow keys turn; the buttons of the mouse,
or J and K, attack and use; Q drops, E is the inventory, 1 to 9 choose an item. Esc pauses and shows
every key, F10 quits. Other games get keys of their own; `policy.keys` changes any of them.
"""

from __future__ import annotations

from typing import Any

from pydantic import field_validator

from policies.human_window import window
from rollout.cli import Session
from rollout.collect import collect
from rollout.config import (
    BridgeConfig,
    CollectConfig,
    FragmentConfig,
    LogConfig,
    PolicyConfig,
    RecordingConfig,
    Section,
    StateSetConfig,
    WandbConfig,
    key,
)

HUMAN, WITH_PERSON = "human", "with_person"


class PlayConfig(Section):
    """A game that a person plays in a window."""

    output: str = key(
        ..., "Run directory; relative to GAMUT_RUNS_DIR if that is set, else to where you are."
    )
    bridge: BridgeConfig = key(..., "The game; it must show a picture.")
    policy: PolicyConfig = key(lambda: PolicyConfig(name=HUMAN), "How the person plays.")
    task: str = key("", "Task of the bridge, or path of a .yaml; empty for the game's own reward.")
    state_set: StateSetConfig = key(StateSetConfig, "Which states episodes start from.")
    seed: int = key(0, "Seed of everything random in the run.", ge=0)
    episodes: int = key(1, "Episodes to play.", unit="episodes", gt=0)
    recording: RecordingConfig = key(RecordingConfig, "What is kept.")
    log: LogConfig = key(LogConfig, "What is said meanwhile.")

    @field_validator("policy")
    @classmethod
    def _a_person(cls, policy: PolicyConfig) -> PolicyConfig:
        if policy.name not in (HUMAN, WITH_PERSON):
            raise ValueError(
                f"expected {HUMAN}, or {WITH_PERSON} with a policy beside the person, got "
                f"{policy.name}; others play by collect.py"
            )
        return policy

    def collecting(self) -> CollectConfig:
        """Returns the collection to run: one slot, in this process, every step sent."""
        given: dict[str, Any] = {name: getattr(self, name) for name in type(self).model_fields}
        return CollectConfig(
            width=1,  # a person plays one slot
            **given,
            actors=0,
            fragment=FragmentConfig(steps=1),
            wandb=WandbConfig(mode="disabled"),
        )


def play(config: PlayConfig, session: Session) -> str | None:
    """Plays and records a person's episodes; see ``rollout.collect.collect``."""
    screen = window()
    screen.stopping = lambda: session.stop.requested
    try:
        while True:
            missing = collect(config.collecting(), session, watch=screen.watch)
            if not screen.restart_requested:
                return missing
            # What was played of it is kept as unfinished, and the same start is played again.
            screen.restart_requested = False
            session = Session(resume=True, stop=session.stop)
    finally:
        screen.close()
