"""MineStudio as a bridge: its options, its spaces, its launch."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces

from bridges.mineflayer.spaces import RGB, action_labels
from bridges.minestudio.actions import LAYOUTS, action_space
from bridges.minestudio.columns import NAME, SIGNALS, WORLDS, Shape
from bridges.minestudio.hunt_sheep import factors
from bridges.minestudio.install import JAR, install
from bridges.minestudio.task_files import TaskFiles
from rollout.api import (
    BridgeSpec,
    Deadlines,
    Environment,
    Factor,
    Instance,
    Resources,
    StateSpace,
    option,
)
from rollout.errors import ConfigError, GameStartError

VERSION = "1.1.6"
ENGINES = ("gamut", "java")
STATES = ("worlds", "hunt_sheep")
TASKS = Path(__file__).with_name("tasks")
REQUIREMENTS = Path(__file__).with_name("requirements.txt")


@dataclass(frozen=True)
class MinestudioBridge:
    """MineStudio's simulator: its Python code, unchanged, on our engine or on its Java program.

    It plays in an interpreter of its own; ``gamut env make minestudio`` makes that. A step is a
    tick. With ``engine=gamut`` the same start and actions give the same bytes. What MineStudio
    calls ``info`` is in the details, with statistics counted from the start of the episode.
    """

    engine: str = option(
        "gamut",
        "gamut: the embedded Minecraft; java: MineStudio's own engine, in MINESTUDIO_DIR",
        choices=ENGINES,
    )
    actions: str = option(
        "agent",
        "action layout: agent (VPT's 8641 buttons and 121 turns), human (keys and bins of the "
        "camera), mouse (keys and degrees)",
        choices=LAYOUTS,
    )
    rgb_height: int = option(128, "height of the image rgb", unit="pixels", ge=1, le=1024)
    rgb_width: int = option(128, "width of the image rgb", unit="pixels", ge=1, le=1024)
    render_height: int = option(
        360, "height of the game's own picture, which rgb is scaled from", unit="pixels", ge=1
    )
    render_width: int = option(640, "width of it", unit="pixels", ge=1)
    states: str = option(
        "worlds",
        "worlds: the seed of the world alone; hunt_sheep: the starts of MCU's Appendix D too",
        choices=STATES,
    )
    biome: str = option("", "biome of the start, e.g. plains; empty for any")
    commands: tuple[str, ...] = option((), "commands of the start, a tick each")
    mobs: tuple[Mapping[str, Any], ...] = option(
        (), "mobs of the start, as SummonMobsCallback takes them"
    )
    inventory: tuple[Mapping[str, Any], ...] = option(
        (), "items of the start, as InitInventoryCallback takes them"
    )
    rewards: tuple[Mapping[str, Any], ...] = option((), "rewards, as RewardsCallback takes them")
    respawn: bool = option(
        True, "whether an agent that dies continues at the spawn; if not, its episode ends"
    )
    task_files: str = option("", "folder of task files of MineStudio or MCU; empty for none")

    @property
    def environment(self) -> Environment:
        """How its interpreter is made; see ``rollout.api.HasEnvironment``."""
        java = self.engine == "java"
        return Environment(
            NAME,
            REQUIREMENTS,
            "3.11",
            modules=("minestudio.simulator",),
            programs=("java", "xvfb-run") if java else (),
            files=(own_folder() / JAR,) if java else (),
        )

    @cached_property
    def spec(self) -> BridgeSpec:
        """Returns what is known before launch; does not need MineStudio."""
        ours = self.engine == "gamut"
        sheep = self.states == "hunt_sheep"
        world = Factor("world", range(WORLDS), doc="seed of the world")
        picture = spaces.Box(0, 255, (self.rgb_height, self.rgb_width, 3), np.uint8)
        return BridgeSpec(
            name=NAME,
            version=f"1/minestudio {VERSION}",
            observation_space=spaces.Dict({RGB: picture}),
            action_space=action_space(self.actions),
            state_space=StateSpace((*(factors() if sheep else ()), world)),
            signals=SIGNALS,
            reproducible=ours,
            uses_seed=ours,
            process="subprocess",
            ticks_per_second=20.0,
            deadlines=Deadlines(180.0, 90.0, 60.0, 5.0) if ours else Deadlines(600, 180, 130, 10),
            resources=Resources(cpus=1.0 if ours else 2.0, memory_mb=2000 if ours else 4000),
            tasks=TASKS,
            task_maker=TaskFiles(self.task_files),
            action_labels={} if self.actions == "agent" else action_labels(self.actions),
        )

    def launch(
        self, workdir: Path, ports: Sequence[int], *, width: int, timeout_s: float
    ) -> Instance:
        """Starts the simulator in this process, with its engine; see ``rollout.api.Bridge``.

        Raises:
            ConfigError: more than one slot, or MineStudio's engine is missing.
            GameStartError: MineStudio is missing in this interpreter, or did not start.
        """
        del ports, timeout_s  # the host has a deadline of its own
        self.spec.require_width(width)
        os.environ |= self._variables(workdir)
        try:
            from bridges.minestudio.instance import MinestudioInstance  # noqa: PLC0415
        except ImportError as error:
            raise GameStartError(
                f"MineStudio cannot be imported here: {error}; say `gamut env make {NAME}`, and "
                f"leave host.isolation alone"
            ) from error
        shape = Shape(
            self.engine == "gamut",
            self.actions,
            (self.rgb_width, self.rgb_height),
            (self.render_width, self.render_height),
            self.biome,
            {
                "SummonMobs": self.mobs,
                "InitInventory": self.inventory,
                "Rewards": self.rewards,
            },
            self.commands,
            self.states == "hunt_sheep",
            self.respawn,
        )
        return MinestudioInstance(shape)

    def _variables(self, workdir: Path) -> dict[str, str]:
        """Returns the environment of MineStudio, with a folder of its own."""
        folder, temporary = workdir.absolute() / NAME, workdir.absolute() / "tmp"
        temporary.mkdir()  # of the engine too, and removed with the game however that ends
        variables = {
            "MALMO_MINECRAFT_OUTPUT_LOGDIR": str(workdir.absolute()),
            "TMPDIR": str(temporary),
        }
        if self.engine == "gamut":
            found = install(folder, os.environ.get(Environment.HOST))
            path = f"{found['PATH_FIRST']}{os.pathsep}{os.environ.get('PATH', '')}"
            return variables | {"MINESTUDIO_DIR": found["MINESTUDIO_DIR"], "PATH": path}
        theirs = own_folder()
        if not (theirs / JAR).is_file() or not (theirs / JAR).stat().st_size:
            raise ConfigError(f"engine=java: {theirs / JAR} is missing; set MINESTUDIO_DIR")
        folder.mkdir(parents=True)
        (folder / "engine").symlink_to(theirs / "engine")
        return variables | {"MINESTUDIO_DIR": str(folder)}


def own_folder() -> Path:
    """Returns the folder in which MineStudio keeps its own engine."""
    default = Path(tempfile.gettempdir()) / "MineStudio"
    return Path(os.environ.get("MINESTUDIO_DIR") or default)
