"""MineLand's environment over the Mineflayer bridge: agents by number, steps of lists, cameras."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bridges.mineflayer.bridge import MOST_AGENTS, MineflayerBridge
from bridges.mineflayer.instance import MineflayerInstance
from bridges.mineflayer.mineland.data import (
    Action,
    CodeInfo,
    Event,
    LowLevelAction,
    Observation,
    TaskInfo,
    as_base64,
    observation,
)
from bridges.mineflayer.spaces import ACTION, CODE, KIND, NEUTRAL, RGB, neutral
from bridges.mineflayer.task_documents import usual_states
from rollout.api import Columns, Frame, Start, StateSpace
from rollout.errors import ConfigError, OutOfTurnError, UnknownNameError

# cameras ------------------------------------------------------------------------------------------


@dataclass
class _Camera:
    height: int
    width: int
    place: NDArray[np.float64]
    yaw: float = 0.0
    pitch: float = 0.0


class Cameras:
    """Free cameras in the surroundings of agent 0: about 35 blocks around it are drawn.

    Angles are radians, as of agents: yaw 0 is north and grows to the west, pitch grows upwards.

    Args:
        instance: the game.
        frame: returns the last frame; None before the first.
    """

    def __init__(self, instance: MineflayerInstance, frame: Callable[[], Frame | None]) -> None:
        self._instance, self._frame = instance, frame
        self._cameras: dict[str, _Camera] = {}

    def addCamera(  # noqa: N802 # the name is MineLand's
        self, camera_id: str, image_width: int = 320, image_height: int = 180
    ) -> None:
        """Adds a camera at the eye of agent 0; one of that name is replaced.

        Raises:
            OutOfTurnError: no episode has begun.
            ConfigError: the world is headless.
        """
        frame, pictures = self._frame(), self._instance.pictures
        if frame is None or frame.details is None:
            raise OutOfTurnError("addCamera was called before reset; call reset first")
        if pictures is None:
            raise ConfigError(
                "there are no cameras in a headless world; make it with headless=False"
            )
        place = np.array(frame.details[0]["location_stats"]["pos"], np.float64)
        place[1] += 1.6
        self._cameras[camera_id] = _Camera(image_height, image_width, place)

    def getCameraView(self, camera_id: str) -> str:  # noqa: N802
        """Returns what a camera sees: a JPEG file in base64."""
        return as_base64(self.picture(camera_id))

    def picture(self, camera_id: str) -> NDArray[np.uint8]:
        """Returns what a camera sees, ``(height, width, 3)``."""
        camera, pictures = self._of(camera_id), self._instance.pictures
        assert pictures is not None
        out = np.empty((camera.height, camera.width, 3), np.uint8)
        pictures.view(0, camera.place.tolist(), camera.yaw, camera.pitch, out)
        return out

    def updateCameraLocation(  # noqa: N802
        self, camera_id: str, pos: ArrayLike, yaw: float, pitch: float
    ) -> None:
        """Moves a camera to a place and turns it."""
        camera = self._of(camera_id)
        camera.place, camera.yaw, camera.pitch = np.array(pos, np.float64), yaw, pitch

    def addCameraLocation(  # noqa: N802
        self, camera_id: str, d_pos: ArrayLike, d_yaw: float, d_pitch: float
    ) -> None:
        """Moves a camera along the axes of the world, and turns it further."""
        camera = self._of(camera_id)
        place = camera.place + np.array(d_pos, np.float64)
        self.updateCameraLocation(camera_id, place, camera.yaw + d_yaw, camera.pitch + d_pitch)

    def moveCamera(  # noqa: N802
        self, camera_id: str, d_pos: ArrayLike, d_yaw: float = 0.0, d_pitch: float = 0.0
    ) -> None:
        """Moves a camera along its own axes, forward, up and right, and turns it further."""
        camera = self._of(camera_id)
        ahead, up, right = np.array(d_pos, np.float64)
        sine, cosine = math.sin(camera.yaw), math.cos(camera.yaw)
        rise, level = math.sin(camera.pitch), math.cos(camera.pitch)
        moved = (
            ahead * np.array((-sine * level, rise, -cosine * level))
            + up * np.array((sine * rise, level, cosine * rise))
            + right * np.array((cosine, 0.0, -sine))
        )
        self.addCameraLocation(camera_id, moved, d_yaw, d_pitch)

    moveCameraLocation = moveCamera  # noqa: N815

    def _of(self, camera_id: str) -> _Camera:
        if camera_id not in self._cameras:
            raise UnknownNameError("camera", camera_id, self._cameras)
        return self._cameras[camera_id]


# worlds -------------------------------------------------------------------------------------------

SPARE = 16
"""Agents that may join after the start, if not said otherwise."""
Taken: TypeAlias = tuple[
    list[Observation | None], list[CodeInfo | None], list[list[Event]], bool, TaskInfo | None
]
"""Observations, information on programs and events by agent; whether it is over; the task."""


class MineLand:
    """A world of agents without a task.

    Unlike MineLand's, it needs no server and no Java, steps are exactly ``ticks_per_step`` ticks of
    a paused world, the same seed and actions give the same results, and agents are no operators.

    Args:
        agents_count: agents at the beginning.
        agents_config: their names, ``[{"name": ...}]``; ``MineflayerBot0`` and so on if None.
        world_type: "normal" for generated terrain, otherwise flat grass.
        ticks_per_step: game time of a step, 50 ms each.
        enable_auto_pause: accepted; the world is always paused between steps.
        enable_sound_system: accepted; there are no sounds.
        enable_low_level_action: whether steps take ``LowLevelAction`` instead of ``Action``.
        server_host: server to join, in real time; None for a world of its own.
        server_port: likewise.
        image_size: height and width of pictures.
        is_printing_server_info: accepted; nothing is printed.
        is_printing_mineflayer_info: likewise.
        headless: whether there are no pictures.
        seed: of the first episode; later ones follow from it.
        states: values of factors of the state to draw from, e.g. ``{"biome": ["desert"]}``.
        most_agents: agents at any time, with those that join later and those that have left.
        options: further options of the bridge, see docs/mineflayer.md.

    Raises:
        ConfigError: an argument is not possible.
        GameStartError: the game did not start.
    """

    def __init__(
        self,
        agents_count: int,
        agents_config: Sequence[Mapping[str, Any]] | None = None,
        world_type: str = "normal",
        ticks_per_step: int = 5,
        enable_auto_pause: bool = False,
        enable_sound_system: bool = False,
        enable_low_level_action: bool = False,
        server_host: str | None = None,
        server_port: int | None = None,
        headless: bool = False,
        image_size: tuple[int, int] = (144, 256),
        is_printing_server_info: bool = True,
        is_printing_mineflayer_info: bool = True,
        *,
        seed: int = 0,
        states: Mapping[str, Sequence[Any]] | None = None,
        most_agents: int | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        del enable_auto_pause, enable_sound_system
        del is_printing_server_info, is_printing_mineflayer_info
        most = min(agents_count + SPARE, MOST_AGENTS) if most_agents is None else most_agents
        if not 1 <= agents_count <= most:
            raise ConfigError(f"agents_count: expected 1 to {most}, got {agents_count}")
        self.agents_count, self._seed, self._episode = agents_count, seed, 0
        more: dict[str, Any] = {}
        if server_host:
            more = {"mode": "remote", "host": server_host, "port": server_port or 25565}
        if not headless:
            more |= {"rgb_height": image_size[0], "rgb_width": image_size[1]}
        self.headless = headless
        self._bridge = MineflayerBridge(
            agents=most,
            names=_names(agents_config, agents_count, most),
            actions="low_level" if enable_low_level_action else "code",
            observe=() if headless else ("life", RGB),
            ticks_per_step=ticks_per_step,
            respawn=True,
            **{**more, **(options or {})},
        )
        space = self._bridge.spec.state_space
        usual = usual_states(site="wild" if world_type == "normal" else "flat")
        singles = {name: [value] for name, value in usual.items()}
        self._states: StateSpace = space.restrict({**singles, **(states or {})})
        self._folder = tempfile.TemporaryDirectory(prefix="gamut-mineland-")
        self._instance: MineflayerInstance = self._bridge.launch(  # type: ignore[assignment]
            Path(self._folder.name),
            (),
            width=most,
            timeout_s=self._bridge.spec.deadlines.start_s,
        )
        self.names = list(self._bridge.agent_names())
        self.here: list[bool] = []
        self.frame: Frame | None = None
        self.bridge = Cameras(self._instance, lambda: self.frame)

    @property
    def most_agents(self) -> int:
        """Agents at any time."""
        return self._bridge.agents

    def starts(self, count: int) -> list[Start]:
        """Returns the starts of an episode's agents: one state, drawn by the seed."""
        rng = np.random.default_rng([self._seed, self._episode])
        digits = [int(rng.integers(factor.size)) for factor in self._states]
        state = self._states.state(self._states.index_of_digits(digits))
        seeds = rng.integers(2**62, size=count)
        return [Start(state, int(seed), self._episode) for seed in seeds]

    def reset(self) -> list[Observation]:
        """Begins an episode in a new world; returns the observations of the agents."""
        self._episode += self.frame is not None
        for slot in range(self.most_agents):
            if slot < len(self.here) and self.here[slot]:
                self._instance.leave(slot, timeout_s=self._bridge.spec.deadlines.step_s)
        self.here = [True] * self.agents_count
        self.names = list(self._bridge.agent_names())
        self._instance.names.clear()
        self.begun = self.starts(self.agents_count)
        slots = list(range(self.agents_count))
        self.frame = self._instance.reset(
            slots, self.begun, timeout_s=self._bridge.spec.deadlines.reset_s
        )
        return [self._observed(self.frame, slot) for slot in slots]

    def step(self, action: Sequence[Any]) -> Taken:
        """Plays one action of every agent, also of those that have left, whose action is not used.

        Args:
            action: ``Action``, ``LowLevelAction`` or their plain forms, one for each agent.

        Returns:
            Observations, information on programs and events, lists with an entry for each agent,
            None and no events for those that have left; False; None.

        Raises:
            OutOfTurnError: ``reset`` was not called.
            ConfigError: there are more or fewer actions than agents.
        """
        if self.frame is None:
            raise OutOfTurnError("step was called before reset; call reset first")
        if len(action) != len(self.here):
            raise ConfigError(
                f"expected {len(self.here)} actions, one for each agent that was ever there, got "
                f"{len(action)}"
            )
        self.actions = self._columns(action)
        self.frame = self._instance.step(self.actions, timeout_s=self._bridge.spec.deadlines.step_s)
        details = self.frame.details or []
        seen: list[Observation | None] = []
        code: list[CodeInfo | None] = []
        events: list[list[Event]] = []
        for slot, here in enumerate(self.here):
            seen.append(self._observed(self.frame, slot) if here else None)
            code.append(CodeInfo(details[slot]["code_info"]) if here else None)
            events.append(list(details[slot]["event"]) if here else [])
        return seen, code, events, False, None

    def add_an_agent(self, config: Mapping[str, Any] | None = None) -> None:
        """Adds an agent at the spawn; from the next step on there is an action more.

        Args:
            config: its name, ``{"name": ...}``; ``MineflayerBotN`` if None.
        """
        if self.frame is None:
            raise OutOfTurnError("add_an_agent was called before reset; call reset first")
        slot = len(self.here)
        if slot >= self.most_agents:
            raise ConfigError(f"there were {slot} agents; set most_agents for more")
        name = str((config or {}).get("name", self.names[slot]))
        taken = [each for each, here in zip(self.names, self.here, strict=False) if here]
        if name in taken:
            raise ConfigError(f"an agent called {name!r} is there already")
        self.names[slot] = self._instance.names[slot] = name
        start = self.starts(slot + 1)[slot]
        self._instance.reset([slot], [start], timeout_s=self._bridge.spec.deadlines.reset_s)
        self.here.append(True)

    def disconnect_an_agent(self, name: str) -> None:
        """Takes an agent out of the world. Its entries in lists stay, as None.

        Raises:
            UnknownNameError: no agent there has that name.
        """
        there = {self.names[slot]: slot for slot, here in enumerate(self.here) if here}
        if name not in there:
            raise UnknownNameError("agent", name, there)
        self._instance.leave(there[name], timeout_s=self._bridge.spec.deadlines.step_s)
        self.here[there[name]] = False

    def close(self) -> None:
        """Ends the game. Idempotent."""
        self._instance.close()
        self._folder.cleanup()

    def render(self, mode: str = "human") -> None:
        """Does nothing, as in MineLand."""

    def _observed(self, frame: Frame, row: int) -> Observation:
        rgb: NDArray[np.uint8] | None = None
        if not self.headless:
            rgb = frame.observations[RGB][row].astype(np.uint8)
        return observation((frame.details or [])[row], rgb)

    def _columns(self, actions: Sequence[Any]) -> Columns:
        columns = neutral(self._bridge.actions, self.most_agents)
        for slot, action in enumerate(actions):
            if not self.here[slot]:
                continue
            if self._bridge.actions == "low_level":
                if not isinstance(action, Sequence | np.ndarray) or len(action) != len(NEUTRAL):
                    raise ConfigError(f"agent {slot}: expected a LowLevelAction, got {action!r}")
                columns[ACTION][slot] = LowLevelAction(list(action))
                continue
            plain = Action(**action) if isinstance(action, Mapping) else action
            if not isinstance(plain, Action):
                raise ConfigError(f"agent {slot}: expected an Action, got {action!r}")
            columns[KIND][slot], columns[CODE][slot] = plain.type, plain.code
        return columns


def _names(config: Sequence[Mapping[str, Any]] | None, count: int, most: int) -> tuple[str, ...]:
    given = [dict(each) for each in config or ()]
    if len(given) > most or (given and len(given) < count):
        raise ConfigError(f"agents_config: expected {count} to {most} agents, got {len(given)}")
    given += [{} for _ in range(most - len(given))]
    return tuple(str(each.get("name", f"MineflayerBot{k}")) for k, each in enumerate(given))
