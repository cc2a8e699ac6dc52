"""Minecraft as a bridge: its options, its spaces, its launch."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from gymnasium.spaces import Dict
from numpy.typing import NDArray

from bridges.mineflayer import spaces
from bridges.mineflayer.columns import agreed, load_layout
from bridges.mineflayer.driver import Driver
from bridges.mineflayer.factors import state_space
from bridges.mineflayer.instance import MineflayerInstance, SavingInstance, Shape
from bridges.mineflayer.loadouts import given
from bridges.mineflayer.minenpc.scene import PLAYER
from bridges.mineflayer.names import VERSION, check_version
from bridges.mineflayer.node import GAME, find_node, require_packages
from bridges.mineflayer.pictures.observation import (
    PERSON_SCENE,
    Pictures,
    RayCaster,
    read_picture,
)
from bridges.mineflayer.scene import NO_SCENE, Scene, make_scene
from bridges.mineflayer.spaces import BEARINGS, LAYOUTS, RGB
from bridges.mineflayer.task_documents import MinelandTasks
from bridges.mineflayer.task_files import load_files
from bridges.mineflayer.task_tools import MinecraftTaskTools
from rollout.api import BridgeSpec, Deadlines, Instance, Resources, option
from rollout.errors import (
    ConfigError,
    GameCrashed,
    GameStartError,
    GameTimeout,
    InputError,
    UnknownNameError,
)

NAME = "mineflayer"
MODES = ("embedded", "remote")
ON_EVENT = ("go_on", "stop")
MODE_MEANS = (
    "embedded: a world in this process, in steps; remote: a server at host:port, in real time"
)
TASKS = Path(__file__).parent / "tasks"
MOST_AGENTS = 128
CLOSE_S = 5.0
_PLAYER = re.compile(r"[A-Za-z0-9_]{1,16}")
_STACK_KB = 3900  # half of the default stack size of a thread
# Programs may use 10 s of the processor in a step (game/sandbox/patience.js), on a busy machine.
_PROGRAMS_S = 20.0
_SLOW = 40.0  # the same, as a multiple of the computing time per tick, if that is more
_WATCH_MB = 20  # the thread that ends programs, game/sandbox/watch.js
_REAL_TIME = 3.0  # a remote step may take this many times as long as its ticks


@dataclass(frozen=True)
class MineflayerBridge:
    """Minecraft: Mineflayer agents on a server that implements its protocol.

    In mode ``embedded`` server and agents share one process and a virtual clock: a step is exactly
    ``ticks_per_step`` ticks, and the same start and actions give the same bytes. The protocol is
    the real one; the mechanics are our own, modelled on version 1.16.5, so results differ from
    those of Mojang's server. In mode ``remote`` the agents join your server in real time: the
    state does not change its world, and nothing is reproducible.

    An instance has ``width / agents`` worlds of ``agents`` agents each; worlds do not affect one
    another, but the agents of a world do. The signal ``reward`` is always 0: choose a task.
    """

    removed: ClassVar[Mapping[str, object]] = {"renderer": "rays"}

    mode: str = option("embedded", MODE_MEANS, choices=MODES)
    host: str = option("127.0.0.1", "address of the server, in mode remote")
    port: int = option(25565, "port of the server, in mode remote")
    version: str = option(VERSION, "version of Minecraft; 1.8 to 1.21 in mode remote")
    agents: int = option(1, "agents in each world")
    names: tuple[str, ...] = option((), "names of the agents; empty for a0, a1, ...")
    competitive: bool = option(False, "whether tasks made from ids let the agents compete")
    actions: str = option(
        "low_level",
        "action layout: array, keys, keys with angles, programs, words",
        choices=LAYOUTS,
    )
    compact_actions: tuple[str, ...] = option(
        (), "actions of the layout compact, in this order; empty for all", unit="names"
    )
    observe: tuple[str, ...] = option(
        (), "observations; empty for all except rgb and bearings", unit="names"
    )
    ticks_per_step: int = option(5, "game time of a step, 50 ms each", unit="ticks")
    view_distance: int = option(4, "radius in which the world is loaded", unit="chunks")
    rgb_height: int = option(64, "height of the image rgb", unit="pixels")
    rgb_width: int = option(64, "width of the image rgb", unit="pixels")
    hud: bool = option(
        False, "whether the image rgb shows hotbar, health, hand, crosshair and the open window"
    )
    # Senses: 0 is without limit, for ablations.
    sight_distance: float = option(
        48.0, "distance at which blocks and entities are visible", unit="blocks"
    )
    line_of_sight: bool = option(True, "whether walls hide what is behind them")
    hearing_distance: float = option(50.0, "distance at which sounds are heard", unit="blocks")
    chat_distance: float = option(50.0, "distance at which chat is received", unit="blocks")
    interest: float = option(
        48.0, "distance at which agents receive movements of others", unit="blocks"
    )
    # Rules of the world.
    needs: bool = option(True, "whether hunger and breath are simulated")
    respawn: bool = option(
        False, "whether an agent that dies continues at the spawn; if not, its episode ends"
    )
    keep_inventory: bool = option(False, "whether agents keep their items when they die")
    daylight: bool = option(True, "whether the time of day advances")
    spawning: bool = option(True, "whether mobs spawn naturally")
    give: Mapping[str, int] = option(
        dict, "items that agents get at the start, {item: n} or {agent.item: n}"
    )
    blocks: Mapping[str, str] = option(
        dict, "blocks of the start by their places from the first agent, {x y z: block}"
    )
    commands: tuple[str, ...] = option(
        (), "commands of the start in their order, run by the first agent, e.g. /give @s bow"
    )
    players: Mapping[str, Any] = option(
        dict, "scripted players, {name: {at, items, script, answers}}; see docs/mineflayer.md"
    )
    person: str = option(
        "", "scripted player that a person plays by columns person/..., see gamut play; '' for none"
    )
    regions: Mapping[str, Any] = option(
        dict,
        "named places for judges and the event trace, {name: {at, radius} or {box}, watch}; see "
        "docs/mineflayer.md",
    )
    hunt: bool = option(
        False, "whether states have the factors of MCU's Appendix D: equipment, herd and its place"
    )
    minenpc: bool = option(
        False, "whether states have the factors of MineNPC-Task, with its fixture and player"
    )
    task_files: str = option(
        "",
        "folder of your own copy of tasks: MineLand's description_files, or task_configs of MCU or "
        "MineStudio; '' for none",
    )
    blueprint_file: str = option(
        "", "picture that agents observe as blueprint, of tasks to build; '' for none"
    )
    # Limits of generated programs. Time is counted in branches, so that it is reproducible.
    code_time_ms: int = option(100, "approximate computing time of a program per tick", unit="ms")
    code_memory_mb: int = option(32, "memory limit of a program", unit="MB")
    code_on_event: str = option(
        "go_on", "whether being attacked or named in the chat ends a program", choices=ON_EVENT
    )
    code_calls: int = option(2000, "maximum calls of the bot's functions per tick")

    def __post_init__(self) -> None:
        for name, valid in (
            ("mode", MODES),
            ("actions", LAYOUTS),
            ("code_on_event", ON_EVENT),
        ):
            if getattr(self, name) not in valid:
                raise UnknownNameError(name, str(getattr(self, name)), valid)
        self._check_ranges()
        for name in ("names", "observe", "compact_actions"):
            value = getattr(self, name)
            if isinstance(value, str) or len(set(value)) != len(tuple(value)):
                raise ConfigError(f"{name} must be a list of different names, got {value!r}")
            object.__setattr__(self, name, tuple(value))
        self._check_names()
        spaces.action_space(self.actions, self.compact_actions)
        check_version(self.mode, self.version)
        given(self.give, self.agent_names())
        load_files(self.task_files)
        self.blueprint_picture()
        if self.scene != NO_SCENE and self.mode == "remote":
            raise ConfigError("commands, blocks, players and regions need mode=embedded")
        if self.hunt and self.mode == "remote":
            raise ConfigError("hunt needs mode=embedded, whose states have a herd")
        if self.minenpc and (self.mode == "remote" or self.agents > 1 or self.names):
            raise ConfigError("minenpc needs mode=embedded and one agent with its usual name")
        if self.minenpc and (self.scene != NO_SCENE or self.hunt):
            raise ConfigError("minenpc has a scene of its own: leave commands, blocks, players out")

        self._check_person()

    def _check_person(self) -> None:
        if not self.person:
            return
        if self.mode == "remote" or self.agents > 1:
            raise ConfigError("person needs mode=embedded and one agent")
        cast = (PLAYER,) if self.minenpc else tuple(self.players)
        if cast and self.person not in cast:
            raise UnknownNameError("scripted player", self.person, cast)

    @property
    def has_person(self) -> bool:
        """True if a person plays one of the players; those of a task are known with its options."""
        return bool(self.person and (self.minenpc or self.players))

    @cached_property
    def scene(self) -> Scene:
        """Returns the blocks and commands that each world begins with, parsed."""
        return make_scene(
            self.blocks, self.commands, self.players, self.agent_names(), self.regions
        )

    def blueprint_picture(self) -> NDArray[np.uint8] | None:
        """Returns the picture of what is to be built, ``(height, width, 3)``; None without one."""
        return read_picture(self.blueprint_file) if self.blueprint_file else None

    def agent_names(self) -> tuple[str, ...]:
        """Returns the names of the agents of a world."""
        return self.names or tuple(f"a{number}" for number in range(self.agents))

    def _check_ranges(self) -> None:
        for name, low, high in (
            ("agents", 1, MOST_AGENTS),
            ("port", 1, 65535),
            ("ticks_per_step", 1, 24_000),
            ("view_distance", 1, 16),
            ("rgb_height", 1, 1024),
            ("rgb_width", 1, 1024),
            ("sight_distance", 0, 1024),
            ("hearing_distance", 0, 1024),
            ("chat_distance", 0, 1024),
            ("interest", 8, 1024),
            ("code_time_ms", 1, 60_000),
            ("code_memory_mb", 1, 1024),
            ("code_calls", 1, 10**9),
        ):
            if not low <= getattr(self, name) <= high:
                raise ConfigError(f"{name}: expected {low} to {high}, got {getattr(self, name)}")

    def _check_names(self) -> None:
        if self.names and len(self.names) != self.agents:
            raise ConfigError(
                f"names: expected one for each of {self.agents} agents, got {len(self.names)}"
            )
        for name in self.names:
            if not _PLAYER.fullmatch(name):
                raise ConfigError(
                    f"names: expected 1 to 16 letters, digits or underscores, got {name!r}"
                )
        valid = self._observations()
        for name in self.observe:
            if name not in valid:
                raise UnknownNameError("observation", name, valid)

    def _observations(self) -> tuple[str, ...]:
        return (*(each.key for each in load_layout() if each.role == "observation"), BEARINGS, RGB)

    def observed(self) -> tuple[str, ...]:
        """Returns the keys of the observations."""
        return self.observe or self._observations()[:-2]

    @property
    def _memory_mb(self) -> int:
        """Memory that the game takes at most; programs may all hold what they are allowed."""
        code = self.actions == "code"
        programs = self.code_memory_mb if code else 0
        return 350 + code * _WATCH_MB + self.agents * (10 + programs)

    @property
    def max_width(self) -> int:
        """Maximum number of slots of an instance: whole worlds, and only one on a remote server."""
        worlds = 1 if self.mode == "remote" else max(1, MOST_AGENTS // self.agents)
        return worlds * self.agents

    @cached_property
    def spec(self) -> BridgeSpec:
        """Returns what is known before launch; does not need Node."""
        layout, remote = load_layout(), self.mode == "remote"
        picture, blueprint = (self.rgb_height, self.rgb_width), self.blueprint_picture()
        acts = spaces.action_space(self.actions, self.compact_actions)
        labels = spaces.action_labels(self.actions, self.compact_actions)
        if self.has_person:
            columns, names = spaces.person_actions()
            acts, labels = Dict({**acts.spaces, **columns}), {**labels, **names}
        waits = self.ticks_per_step * 0.05 * _REAL_TIME if remote else self.ticks_per_step * 0.1
        if self.actions == "code":
            tick_s = self.code_time_ms / 1000
            waits += max(_PROGRAMS_S, tick_s * _SLOW) + tick_s * self.ticks_per_step * self.agents
        return BridgeSpec(
            name=NAME,
            version=f"1/minecraft {self.version}",
            observation_space=spaces.observation_space(
                layout,
                self.observed(),
                picture,
                None if blueprint is None else blueprint.shape,
                person=self.has_person,
            ),
            action_space=acts,
            state_space=state_space(hunt=self.hunt, npc=self.minenpc),
            signals={each.key: each.signal() for each in layout if each.role == "signal"},
            max_width=self.max_width,
            width_step=self.agents,
            reproducible=not remote,
            process="subprocess",
            ticks_per_second=20.0,
            deadlines=Deadlines(
                90.0,
                60.0,
                20.0 + waits + 0.1 * self.agents,
                CLOSE_S,
            ),
            resources=Resources(cpus=1.0, memory_mb=self._memory_mb),
            tasks=TASKS,
            task_maker=MinelandTasks(
                self.ticks_per_step,
                self.agents,
                self.competitive,
                self.version,
                self.task_files,
                not remote,
            ),
            task_tools=MinecraftTaskTools(self.ticks_per_step),
            action_labels=labels,
            action_defaults=spaces.DEFAULTS.get(self.actions, {}),
        )

    def config(self, width: int) -> dict[str, Any]:
        """Returns the settings that the game gets at its start, for an instance of that width."""
        rgb = {"height": self.rgb_height, "width": self.rgb_width, "hud": self.hud}
        return {
            "mode": self.mode,
            "host": self.host,
            "port": self.port,
            "version": self.version,
            "width": width,
            "agents": self.agents,
            "names": list(self.agent_names()),
            "actions": self.actions,
            "compact_actions": list(self.compact_actions),
            "ticks_per_step": self.ticks_per_step,
            "view_distance": self.view_distance,
            "rgb": rgb if RGB in self.observe else None,
            "person": {"name": self.person, "actions": "human", "rgb": {**rgb, "hud": True}}
            if self.has_person
            else None,
            "senses": {
                "sight_distance": self.sight_distance,
                "line_of_sight": self.line_of_sight,
                "hearing_distance": self.hearing_distance,
                "chat_distance": self.chat_distance,
            },
            "interest": self.interest,
            "needs": self.needs,
            "code": {
                "time_ms": self.code_time_ms,
                "memory_mb": self.code_memory_mb,
                "calls": self.code_calls,
                "on_event": self.code_on_event,
            },
            "server": {
                "respawn": self.respawn,
                "keepInventory": self.keep_inventory,
                "doDaylightCycle": self.daylight,
                "doMobSpawning": self.spawning,
            },
        }

    def launch(
        self, workdir: Path, ports: Sequence[int], *, width: int, timeout_s: float
    ) -> Instance:
        """Starts a game process; see ``rollout.api.Bridge``.

        Raises:
            ConfigError: the width is not possible, or Node is missing or too old, or its packages
                are missing; the message has the command that installs them.
            GameStartError: it did not start, or the server refused; the message says why.
        """
        del ports
        if not 1 <= width <= self.max_width or width % self.agents:
            raise ConfigError(
                f"{NAME}: width must be a multiple of agents={self.agents} up to "
                f"{self.max_width}, got {width}"
            )
        began = time.monotonic()
        command, env = game_command()
        driver = Driver(command, Path(workdir), close_s=CLOSE_S, env=env)
        try:
            return self._handshake(driver, width, began + timeout_s)
        except (GameCrashed, GameTimeout, InputError) as error:
            driver.close()
            raise GameStartError(str(error)) from error
        except BaseException:
            driver.close()
            raise

    def _handshake(self, driver: Driver, width: int, deadline: float) -> Instance:
        left_s = max(0.0, deadline - time.monotonic())
        hello = driver.ask("hello", {"config": self.config(width)}, timeout_s=left_s)
        shape = Shape(
            agreed(hello),
            tuple(key for key in self.observed() if key != RGB),
            self.spec.action_space,
            self.spec.state_space,
            given(self.give, self.agent_names()),
            self.scene,
            self.blueprint_picture(),
            width,
            self.person if self.has_person else "",
        )
        pictures = None
        if RGB in self.observe:
            pictures = Pictures(RayCaster(hello), width, self.rgb_height, self.rgb_width)
        person = None
        if self.has_person:
            person = Pictures(
                RayCaster(hello), width, self.rgb_height, self.rgb_width, PERSON_SCENE
            )
        saves = self.mode == "embedded" and self.agents == 1
        return (SavingInstance if saves else MineflayerInstance)(driver, shape, pictures, person)


def game_command() -> tuple[list[str], dict[str, str]]:
    """Returns the command that runs the game, and its environment variables.

    Raises:
        ConfigError: Node or its packages are missing.
    """
    node, packages = find_node(), require_packages()
    # With a larger stack, QuickJS itself detects a program with endless recursion.
    command = [str(node.program), f"--stack-size={_STACK_KB}", str(GAME / "main.js")]
    return command, {"NODE_PATH": str(packages)}
