"""A person as a policy: sees the observation in a window, acts by keyboard and mouse.

A person can play only one slot of one game at a time, in this process.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from policies.human_keys import make_controls
from policies.human_window import Picture, PlaySetup, Window, picture, window
from rollout.api import (
    PERSON,
    BridgeSpec,
    Columns,
    ColumnSpec,
    Decision,
    Details,
    Start,
    Task,
    is_picture,
    option,
)
from rollout.errors import ConfigError, UnknownNameError


@dataclass(frozen=True)
class HumanPolicy:
    """A person plays; see ``gamut play``.

    A game with a clock is played at the speed of its clock; any other game waits for a key before
    each step.
    """

    column: str = option("", "image observation that is shown; empty for the first")
    steps_per_second: float | None = option(
        None,
        "maximum number of steps per second; null for the speed of the game's clock",
        unit="steps/s",
    )
    scale: int = option(
        0, "size of an image pixel on the screen; 0 to fit the screen", unit="pixels"
    )
    sensitivity: float = option(0.15, "rotation per pixel of mouse movement", unit="degrees")
    repeat_after: float = option(
        0.5,
        "time after which a held key repeats its step while the game waits; 0 for never",
        unit="s",
    )
    pause_between: bool = option(True, "whether to show each result until Enter is pressed")
    keys: Mapping[str, tuple[str, ...]] = option(
        dict, "keys of each action, e.g. {attack: [j, mouse left]}; w+j means both keys together"
    )

    def __post_init__(self) -> None:
        if self.steps_per_second is not None and not self.steps_per_second > 0:
            raise ConfigError(f"steps_per_second must be above 0, got {self.steps_per_second}")
        if self.scale < 0:
            raise ConfigError(f"scale must be at least 0, got {self.scale}")
        if not self.sensitivity > 0:
            raise ConfigError(f"sensitivity must be above 0, got {self.sensitivity}")
        if not self.repeat_after >= 0:
            raise ConfigError(f"repeat_after must be at least 0, got {self.repeat_after}")

    def build(self, spec: BridgeSpec, task: Task, *, seed: int) -> Human:
        """Returns the policy; see ``rollout.api.PolicyRecipe``. The window opens at the first step.

        Raises:
            ConfigError: the game shows no picture, no keys fit its actions, or there is no screen.
            UnknownNameError: there is no such picture, action or key.
        """
        column = _picture_column(spec, self.column)
        controls = make_controls(spec, self.keys, sensitivity=self.sensitivity)
        screen = window()
        for chords in self.keys.values():
            screen.check_inputs({part for chord in chords for part in chord.split("+")})
        leaf = spec.observation_space[column]

        def show(observations: Columns) -> Picture:
            return picture(leaf, observations[column])

        rate = self.steps_per_second
        setup = PlaySetup(
            spec, task, controls, show, rate, self.scale, self.repeat_after, self.pause_between
        )
        return Human(setup, screen)


def _picture_column(spec: BridgeSpec, wanted: str) -> str:
    leaves = spec.observation_space.spaces
    valid = [key for key, leaf in leaves.items() if is_picture(leaf)]
    if not valid:
        raise ConfigError(
            f"a person needs a picture to play by, and {spec.name} shows "
            f"{', '.join(leaves) or 'none'}; ask the bridge for one, e.g. bridge.observe=[rgb]"
        )
    if wanted and wanted not in valid:
        raise UnknownNameError("image observation", wanted, valid)
    return wanted or valid[0]


@dataclass
class Human:
    """The person at the window."""

    setup: PlaySetup
    screen: Window
    version: int = 0
    extras: Mapping[str, ColumnSpec] = field(default_factory=dict)
    waits_for_person: ClassVar[bool] = True

    def initial_memory(self, starts: Sequence[Start]) -> Columns:
        """Begins an episode in the window; returns no memory.

        Raises:
            ConfigError: there is more than one slot.
        """
        if len(starts) != 1:
            raise _too_many(len(starts))
        self.screen.begin(self.setup, starts[0])
        return {}

    def act(
        self,
        observations: Columns,
        memory: Columns,
        *,
        details: Sequence[Details] | None,
        explore: bool,
    ) -> Decision:
        """Shows the observation, waits until the next step is due, returns the action.

        Raises:
            BudgetExhausted: the person has closed the window or abandoned the episode.
        """
        slots = len(next(iter(observations.values())))
        if slots != 1:
            raise _too_many(slots)
        said: Details = details[0] if details else {}
        self.screen.hear(said.get("chat") or ())
        if told := said.get(f"{PERSON}told"):
            self.screen.progress.goal = f"Say: {' / '.join(told)}"
        inputs = self.screen.step({key: column[0] for key, column in observations.items()})
        return Decision(self.setup.controls.action(inputs))

    def wait(self, done: Callable[[], bool]) -> None:
        """Keeps the window alive until another has decided, or the person leaves."""
        self.screen.wait(done)


def _too_many(slots: int) -> ConfigError:
    return ConfigError(
        f"a person plays one slot, got {slots}; set actors=0 instances=1 width=1, or use gamut play"
    )
