"""The text beside the picture in the window: the state of the episode, and the help."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import numpy as np
from gymnasium import spaces

from policies.human_keys import Chords, Controls
from rollout.api import BridgeSpec, EpisodeResult, Fragment, Start, Task
from rollout.api.spaces import Labels, describe_action

Line = tuple[str, str]
"""The left part, and the right part after a tab stop."""

_NUMBER = re.compile(r"(?<=[.(])\d+(?=$|[,)])")
HINT = "Esc: pause and keys    F10: quit"


@dataclass
class EpisodeProgress:
    """The progress of the current episode.

    Attributes:
        task: name of the task.
        goal: its instruction.
        limit: steps after which the episode is truncated; None for no limit.
        ticks_per_second: speed of the game's clock; None if it has none.
        ticks_per_step: game time of a step.
        episode: its number in the run.
        attempt: number of earlier attempts at it.
        step: number of steps so far.
        reward: of the last step.
        total: of all steps.
        action: the last one, in words.
    """

    task: str = ""
    goal: str = ""
    limit: int | None = None
    ticks_per_second: float | None = None
    ticks_per_step: int = 1
    episode: int = 0
    attempt: int = 0
    step: int = 0
    reward: float = 0.0
    total: float = 0.0
    action: str = ""
    _space: spaces.Dict = field(default_factory=spaces.Dict)
    _labels: Labels = field(default_factory=dict)
    _tick: int = 0

    def begin(self, spec: BridgeSpec, task: Task, start: Start) -> None:
        """Begins an episode."""
        self.task, self.goal, self.limit = task.name, task.goal or task.name, task.limits.steps
        self.ticks_per_second = spec.ticks_per_second
        self._space, self._labels = spec.action_space, spec.action_labels
        self.episode, self.attempt = start.episode, start.attempt
        self.step, self.reward, self.total, self.action, self._tick = 0, 0.0, 0.0, "", 0

    def add(self, fragment: Fragment) -> None:
        """Records the steps of the only slot."""
        for t in np.flatnonzero(fragment.valid[:, 0]).tolist():
            if fragment.first[t, 0]:
                self.total, self._tick = 0.0, 0
            self.step = int(fragment.step[t, 0]) + 1
            self.reward = float(fragment.reward[t, 0])
            self.total += self.reward
            tick = int(fragment.tick[t, 0])
            self.ticks_per_step, self._tick = max(1, tick - self._tick), tick
            row = {key: column[t, 0] for key, column in fragment.actions.items()}
            self.action = describe_action(self._space, self._labels, row)

    @property
    def rate(self) -> float | None:
        """Steps per second of the game's clock; None if it has none."""
        per_second = self.ticks_per_second
        return None if per_second is None else per_second / self.ticks_per_step

    @property
    def title(self) -> str:
        """The title of the window."""
        return f"{self.task}: episode {self.episode}, step {self.step}"

    def line(self, rate: float | None) -> str:
        """Returns the progress of the episode, at ``rate`` steps per second."""
        again = f" (attempt {self.attempt + 1})" if self.attempt else ""
        of = f" of {self.limit}" if self.limit is not None else ""
        parts = [f"episode {self.episode}{again}", f"step {self.step}{of}"]
        parts += [f"reward {self.reward:+g}", f"sum {self.total:g}"]
        if self.limit is not None and rate is not None:
            parts.append(f"{(self.limit - self.step) / rate:.0f} s left")
        return "    ".join(parts)


def result_lines(result: EpisodeResult) -> list[Line]:
    """Returns how an episode ended, in words."""
    how = result.outcome.name.lower() if result.outcome else result.end
    return [
        (f"Episode {result.start.episode}: {how}", ""),
        (f"{result.length} steps, sum of rewards {result.total_reward:g}", ""),
        ("", ""),
        ("Enter", "continue"),
        ("F10", "quit"),
    ]


def help_lines(controls: Controls) -> list[Line]:
    """Returns the meaning of every key."""
    lines: list[Line] = [("Paused", ""), ("", "")]
    lines += _rows(controls.chords)
    if controls.uses_mouse:
        lines.append(("turn, look", "mouse, or the arrow keys"))
    return [
        *lines,
        ("", ""),
        ("continue", "Esc or F1"),
        ("begin again", "R: this episode from its start"),
        ("quit", "F10: what has ended is saved"),
    ]


def _rows(chords: Chords) -> list[Line]:
    """The chords by label; numbered labels, ``hotbar.1`` or ``option(1, 'in')``, share one line."""
    rows: list[Line] = []
    last, number, first = "", -1, ""
    for label, own in ((label, own) for label, own in chords.items() if own):
        found = _NUMBER.search(label)
        stem = _NUMBER.sub("#", label, count=1)
        if found and stem == last and int(found[0]) == number + 1:
            rows[-1] = (stem.removesuffix(".#"), f"{first} to {own[0]}")
        else:
            rows.append((label, " or ".join(own)))
            first = own[0]
        last, number = stem, int(found[0]) if found else -1
    return rows
