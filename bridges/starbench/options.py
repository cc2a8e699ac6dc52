"""The options of the bridge, and the spaces that follow from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces

from bridges.starbench import observe
from bridges.starbench.rules.battle import Battle
from bridges.starbench.rules.field import WINDOWS
from bridges.starbench.rules.view import ACTIONS
from rollout.api import (
    ACTION,
    MASK,
    OBSERVATION,
    AnyText,
    Columns,
    ColumnSpec,
    Details,
    Frame,
    Start,
    allocate,
    option,
)
from rollout.errors import ConfigError, StateError, UnknownNameError

VIEWS = ("structured", "ta", "dc")
FRAME, SNAPSHOT = "frame", "privileged_snapshot"
SNAPSHOT_BYTES = 2**13
QUESTION = "question"
PRINTABLE = "".join(map(chr, range(32, 127)))
NO_OP = ACTIONS
"""The action of an answer that is no action: an invalid decision."""

SIGNALS = {
    "reward": ColumnSpec("float64", doc="share of the enemies' HP that the decision took"),
    "depleted": ColumnSpec("float64", doc="share of the enemies' HP that is gone, 0 to 1"),
    "damage": ColumnSpec("float64", doc="HP of bosses that the decision took, of those of all"),
    "score": ColumnSpec("float64", doc="points so far; 0 in Echo of War"),
    "action_value": ColumnSpec("float64", doc="action value used so far"),
    "invalid": ColumnSpec("float64", doc="invalid decisions in a row"),
    "won": ColumnSpec("float64", doc="whether the battle is won"),
    **{
        f"hp/{n}": ColumnSpec("float64", doc=f"share of HP of the ally in slot {n}")
        for n in range(4)
    },
}


@dataclass(frozen=True)
class Options:
    """Options of the observations and actions of battles."""

    view: str = option(
        "structured",
        "what the player sees and does: numbers and a mask; ta: a picture, and character, move and "
        "target; dc: a picture, and a click and a key",
        choices=VIEWS,
    )
    tell: bool = option(False, "whether details have text tokens and legal actions; always with ta")
    ocr: bool = option(True, "whether details have the text tokens; false is TA without OCR")
    width_px: int = option(640, "width of the picture", unit="pixels", ge=160, le=1920)
    windows: str = option("enemy_next", "when ultimates are offered between turns", choices=WINDOWS)
    raw: bool = option(False, "whether enemies keep the game's HP and ATK, without calibration")
    snapshots: bool = option(
        False, "whether the whole battle is an observation, for auto-battle and search"
    )

    ask: bool = option(
        False, "whether one question may be asked before a battle (action column question)"
    )
    ask_log: str = option("", "file to which every battle adds a line on its question; '' for none")

    def __post_init__(self) -> None:
        if self.ask and self.view == "dc":
            raise ConfigError("ask: questions belong to the views structured and ta, not to dc")
        for name, valid in (("view", VIEWS), ("windows", WINDOWS)):
            if getattr(self, name) not in valid:
                raise UnknownNameError(name, str(getattr(self, name)), valid)
        if self.width_px * 9 % 16:
            raise ConfigError(
                f"width_px: the picture is 16:9, so its width is a multiple of 16, got "
                f"{self.width_px}; the nearest is {round(self.width_px / 16) * 16}"
            )

    @property
    def pixels(self) -> bool:
        """True if the player sees pictures."""
        return self.view != "structured"

    @property
    def tells(self) -> bool:
        """True if details have text."""
        return self.tell or self.ask or self.view == "ta"

    @property
    def picture(self) -> tuple[int, int]:
        """Width and height of the picture."""
        return self.width_px, self.width_px * 9 // 16

    def battle(self, start: Start) -> Battle:
        """Returns the battle of a start.

        Raises:
            StateError: its state names no battle.
        """
        values = dict(start.state.values)
        if "battle" not in values:
            raise StateError(
                f"expected a state with a value of the factor 'battle', got {values}; take states "
                f"from the bridge's state space"
            )
        name = str(values.pop("battle"))
        return Battle(name, start.seed, values, windows=self.windows, raw=self.raw)

    def screen(self, battle: Battle) -> Any:
        """Returns the screen of a battle."""
        from bridges.starbench.client import EmulatorClient  # noqa: PLC0415 - loads OpenCV

        return EmulatorClient(battle, self.picture)

    def direct(self, battle: Battle, screen: Any, actions: Columns, row: int) -> None:
        """Clicks and presses a key; without either, the decision is invalid."""
        x, y = (int(actions[each][row]) for each in ("x", "y"))
        key = _keys()[int(actions["key"][row])]
        width, height = self.picture
        before = battle.decisions
        screen.click(x * width // 1920, y * height // 1080)
        if key:
            screen.press(key)
        if battle.decisions == before:
            battle.act_invalid("the click and the key did nothing")


def _keys() -> tuple[str, ...]:
    from bridges.starbench.client import KEYS  # noqa: PLC0415 - loads OpenCV

    return ("", *KEYS)


def blank_frame(options: Options, width: int) -> Frame:
    """Returns a frame of zeros for battles that have not begun."""
    never, tick = np.zeros(width, np.bool_), np.zeros(width, np.int64)
    signals = {key: np.zeros(width, np.float64) for key in SIGNALS}
    details: list[Details] | None = [{} for _ in range(width)] if options.tells else None
    columns = allocate(observation_space(options), width)
    return Frame(columns, signals, np.zeros(width, np.bool_), never, tick, details)


def observation_space(options: Options) -> spaces.Dict:
    """Returns the columns that a player sees."""
    found: dict[str, spaces.Space[Any]] = {}
    if options.view == "structured":
        shape = (observe.size(),)
        found[OBSERVATION] = spaces.Box(-np.inf, np.inf, shape, np.float32)
    if options.view != "dc":
        found[MASK + ACTION] = spaces.MultiBinary(ACTIONS + 1)
    if options.pixels:
        width, height = options.picture
        found[FRAME] = spaces.Box(0, 255, (height, width, 3), np.uint8)
    if options.snapshots:
        found[SNAPSHOT] = spaces.Box(0, 255, (SNAPSHOT_BYTES,), np.uint8)
    return spaces.Dict(found)


def action_space(options: Options) -> spaces.Dict:
    """Returns the columns that a player fills."""
    if options.view != "dc":
        found: dict[str, spaces.Space[Any]] = {ACTION: spaces.Discrete(ACTIONS + 1)}
        if options.ask:
            found[QUESTION] = AnyText(300, min_length=0, charset=PRINTABLE)
        return spaces.Dict(found)
    sizes = {"x": 1920, "y": 1080, "key": len(_keys())}
    return spaces.Dict({name: spaces.Discrete(size) for name, size in sizes.items()})


def action_names(options: Options) -> dict[str, tuple[str, ...]]:
    """Returns the names of actions, for people and language models."""
    if options.view == "dc":
        return {"key": tuple(key or "none" for key in _keys())}
    return {ACTION: (*observe.labels(ACTIONS), observe.NO_OP)}
