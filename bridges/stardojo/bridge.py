"""StarDojo as a bridge: a valley of our own, or the real game behind its mod."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, cast

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from bridges.stardojo import decoding, faults, skills
from bridges.stardojo.commands import setup_values
from bridges.stardojo.instance import (
    MOST_SKILLS,
    SIGNALS,
    EmbeddedInstance,
    Playing,
    StardewGame,
    StardojoInstance,
    expert_space,
)
from bridges.stardojo.judging import Judging
from bridges.stardojo.mod import ModGame, ModOptions, screenshot
from bridges.stardojo.rules import saves
from bridges.stardojo.skills import Skill
from bridges.stardojo.task_row import TaskRow
from bridges.stardojo.task_table import NO_TASK, SAME, StardojoTasks, lite, load_files
from rollout.api import (
    ACTION,
    BridgeSpec,
    Columns,
    Deadlines,
    Factor,
    Instance,
    NamedCode,
    Resources,
    Start,
    StateSpace,
    option,
)
from rollout.errors import ConfigError, UnknownNameError

VERSION = "1"
TASKS = Path(__file__).parent / "tasks"
MODES = ("embedded", "mod")
FACTORS = saves.factors()
"""What a state can change about a save; ``save`` leaves it as it is."""
_RULES = ("strict", "faithful")
_SECOND = "then"


@dataclass(frozen=True)
class StardojoBridge:
    """Hosts StarDojo's tasks in a valley (``embedded``) or in Stardew Valley itself (``mod``).

    Both have the same spaces, signals, tasks and evaluators. The state is a task, or none, and in
    the valley what the save of the task is changed by. In ``mod`` the game is started with a home
    of its own and a virtual screen; without ``game`` a server of ours takes its place.
    """

    mode: str = option(
        "embedded", "a valley in this process, or a game behind the mod", choices=MODES
    )
    actions: str = option(
        "strict", "what actions do: what one expects, or what the release does", choices=_RULES
    )
    judging: str = option(
        "strict", "which evaluators: without quirks, or as released", choices=_RULES
    )
    limits: str = option(
        "paper",
        "steps of easy, medium and hard tasks: 30, 50, 150; as released 31, 51, 201; or no limit",
        choices=("paper", "released", "none"),
    )
    layout: str = option(
        "flat", "actions as one list (flat) or as a name with arguments (calls)",
        choices=("flat", "calls"),
    )  # fmt: skip
    skills: int = option(
        1,
        "most actions of a step: the paper's 2, or 1, with twice as many steps",
        choices=(1, 2),
    )
    oracle: bool = option(
        False, "whether the expert's next action is observed, with layout=calls and skills=1"
    )
    size: int = option(3, "half of the width of the window of tiles", unit="tiles", ge=1, le=15)
    width: int = option(0, "width of the picture; 0 for none", unit="pixels", ge=0, le=1920)
    height: int = option(0, "height of the picture; 0 for none", unit="pixels", ge=0, le=1080)
    task_files: str = option("", "folder of your own copy of StarDojo's task files; '' for none")
    game: str = option("", "mode=mod: path of StardewModdingAPI; '' for the server of this bridge")
    saves: str = option("", "mode=mod: StarDojo's folder env/tasks/saves, with game")
    faults: str = option("", "mode=mod: YAML file of switches of the server; '' for none")
    settle_s: float = option(0.0, "mode=mod: running game after each action", unit="s", ge=0)
    real_time: bool = option(False, "mode=mod: whether the game runs while the policy decides")

    def __post_init__(self) -> None:
        for name, valid in (("mode", MODES), ("actions", _RULES), ("judging", _RULES),
                            ("limits", ("paper", "released", "none")),
                            ("layout", ("flat", "calls"))):  # fmt: skip
            if getattr(self, name) not in valid:
                raise UnknownNameError(name, str(getattr(self, name)), valid)
        if self.skills not in (1, 2):
            raise ConfigError(f"skills: expected 1 or 2 actions of a step, got {self.skills}")
        if self.oracle and (self.mode, self.layout, self.skills) != ("embedded", "calls", 1):
            raise ConfigError("oracle: the expert needs mode=embedded, layout=calls and skills=1")
        if bool(self.width) != bool(self.height):
            raise ConfigError(f"width and height belong together, got {self.width}, {self.height}")
        if self.mode == "mod":
            self._mod().check()
            if self.faults:
                faults.read(Path(self.faults))
        else:
            given = [
                n for n in ("game", "saves", "faults", "settle_s", "real_time") if getattr(self, n)
            ]
            if given:
                raise ConfigError(f"{given[0]} is an option of mode=mod; this is mode=embedded")
        _rows(self.task_files)

    def _mod(self) -> ModOptions:
        return ModOptions(
            self.game, self.saves, self.faults, settle_s=self.settle_s, real_time=self.real_time
        )

    def code(self) -> Sequence[NamedCode]:
        """Returns the game's program, if one is named; see ``rollout.api.NamesCode``."""
        return [NamedCode("game", self.game, program=True)] if self.game else []

    @property
    def spec(self) -> BridgeSpec:
        """Returns what is known before launch; starts nothing."""
        embedded, rows = self.mode == "embedded", _rows(self.task_files)
        factors = [Factor("task", (NO_TASK, *rows), doc="what is to be done, and its save")]
        if embedded:
            factors += [Factor(name, values) for name, values in FACTORS.items()]
        seen = decoding.space(self.size, self.width, self.height, self.layout == "flat")
        actions, labels = self._actions()
        return BridgeSpec(
            name="stardojo",
            version=f"{VERSION}/{self.mode}",
            observation_space=spaces.Dict({**seen, **(expert_space() if self.oracle else {})}),
            action_space=spaces.Dict(actions),
            state_space=StateSpace(tuple(factors)),
            signals=SIGNALS,
            max_width=64 if embedded else 1,
            default_width=8 if embedded else 1,
            reproducible=embedded,
            uses_seed=embedded,
            process="in_process" if embedded else "subprocess",
            ports=0 if embedded else 1,
            deadlines=Deadlines(start_s=120, reset_s=300, step_s=180, close_s=10),
            resources=Resources(memory_mb=400 if embedded else 3000),
            tasks=TASKS,
            task_maker=StardojoTasks(
                rows, self.limits, MOST_SKILLS // self.skills, tuple(FACTORS) if embedded else ()
            ),
            action_labels=labels,
            action_defaults=dict.fromkeys((key for key in actions if key != "name"), 0)
            if self.layout == "calls"
            else {},
        )

    def _actions(self) -> tuple[dict[str, spaces.Space[Any]], dict[str, tuple[str, ...]]]:
        """The columns of the actions, and their names."""
        if self.layout == "calls":
            return skills.call_space(self.skills), skills.call_labels(self.skills)
        flat = skills.labels()
        leaves: dict[str, spaces.Space[Any]] = {ACTION: spaces.Discrete(len(flat))}
        labels = {ACTION: flat}
        if self.skills > 1:
            leaves[_SECOND] = spaces.Discrete(len(flat))
            labels[_SECOND] = (skills.NONE, *flat[1:])
        return leaves, labels

    def launch(
        self, workdir: Path, ports: Sequence[int], *, width: int, timeout_s: float
    ) -> Instance:
        """Starts the valleys or the game; see ``rollout.api.Bridge``."""
        self.spec.require_width(width)
        read = _flat if self.layout == "flat" else skills.from_row
        judging, actions = cast("Judging", self.judging), cast("skills.Mode", self.actions)
        picture = (self.width, self.height)
        playing = Playing(
            judging, actions, self.limits, self.size, picture, self.skills, self.layout == "flat"
        )
        rows = _rows(self.task_files)
        if self.mode == "embedded":
            load = partial(_valley, self.actions == "faithful")
            return EmbeddedInstance(
                width,
                rows,
                playing,
                actions=read,
                load=load,
                draw=_drawn,
                expert=partial(_expert, judging == "faithful") if self.oracle else None,
            )
        game = ModGame(self._mod(), workdir, ports[0], timeout_s=timeout_s)
        return StardojoInstance(
            width, rows, playing, actions=read, load=partial(_loaded, game), draw=_shown,
            close=game.close,
        )  # fmt: skip


@cache
def _rows(files: str) -> dict[str, TaskRow]:
    return {**lite(), **(load_files(Path(files)).rows if files else {})}


def _flat(actions: Columns, row: int) -> list[Skill]:
    chosen = [int(actions[ACTION][row])]
    if _SECOND in actions and (second := int(actions[_SECOND][row])):
        chosen.append(second)  # 0, which waits as the first, is none here
    return [skills.flat()[each] for each in chosen]


def _expert(idle: bool, game: StardewGame, row: TaskRow) -> Iterator[Skill]:
    from bridges.stardojo.oracle.oracle import PAUSE, Oracle  # noqa: PLC0415 - the valley's rules

    oracle = Oracle(cast("Any", game), row, idle=idle)
    while True:
        name, args = oracle.skill()
        if name != PAUSE:  # the end of a step; here every action is one
            yield skills.called(name, args)


def _valley(faithful: bool, slot: int, row: TaskRow | None, start: Start, left_s: float) -> Any:
    from bridges.stardojo.rules.valley import Valley  # noqa: PLC0415 - it loads all its rules

    state = {name: start.state.values.get(name, SAME) for name in FACTORS}
    save = row.save if row else "save_new"
    valley = Valley(save, start.seed % 2**63, state=state, faithful=faithful)
    for name, words in row.setup if row else ():
        valley.setup(name, setup_values(name, words))
    return valley


def _drawn(game: StardewGame, seen: Any, width: int, height: int) -> NDArray[np.uint8]:
    from bridges.stardojo.pictures import draw  # noqa: PLC0415 - it loads OpenCV

    return draw(game, width, height)  # type: ignore[arg-type]


def _loaded(
    game: ModGame, slot: int, row: TaskRow | None, start: Start, left_s: float
) -> StardewGame:
    save, setup = (row.save, row.setup) if row else ("save_new", ())
    game.load(save, setup, timeout_s=left_s)
    return game


def _shown(game: StardewGame, seen: Any, width: int, height: int) -> NDArray[np.uint8]:
    import cv2  # noqa: PLC0415 - only for pictures

    frame = screenshot(seen)
    if frame is None:
        return np.zeros((height, width, 3), np.uint8)
    with contextlib.suppress(cv2.error):
        small = cv2.resize(frame, (width, height), interpolation=cv2.INTER_AREA)
        return np.asarray(small, np.uint8)
    return np.zeros((height, width, 3), np.uint8)
