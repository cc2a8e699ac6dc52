"""``make``: MineLand's environments by the id of a task."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridges.mineflayer.evaluators import (
    MinelandCombat,
    MinelandConstruction,
    MinelandCreative,
    MinelandItems,
    MinelandSurvival,
)
from bridges.mineflayer.mineland.data import Observation, TaskInfo
from bridges.mineflayer.mineland.utils import likeness
from bridges.mineflayer.mineland.world import SPARE, MineLand, Taken
from bridges.mineflayer.pictures.observation import read_picture
from bridges.mineflayer.stage import MinelandStage, StageEvaluator
from bridges.mineflayer.task_documents import MinelandTasks
from rollout.api import Evaluator, Outcome
from rollout.errors import ConfigError, UnknownNameError

MODES = ("cooperative", "competitive")
_RECIPES: Mapping[str, Any] = {
    "mineland_harvest": MinelandItems,
    "mineland_techtree": MinelandItems,
    "mineland_combat": MinelandCombat,
    "mineland_survival": MinelandSurvival,
    "mineland_construction": MinelandConstruction,
    "mineland_creative": MinelandCreative,
    "mineland_stage": MinelandStage,
}


CAMERA = "construction_camera"
"""The free camera of a task to build after a picture, at the eye of agent 0 at first."""


class TaskWorld:
    """An environment with a task, as ``make`` returns it; other attributes are those of ``env``.

    Attributes:
        env: the world.
        task_id: id of the task.
    """

    def __init__(self, env: MineLand, document: Mapping[str, Any], mode: str) -> None:
        self.env, self.task_id = env, str(document["name"])
        self._document, self._mode = document, mode
        asked = dict(document["evaluator"])
        kind = asked.pop("name")
        if kind in ("mineland_stage", "mineland_creative"):
            asked.pop("agents", None)
        self._evaluator: Evaluator = _RECIPES[kind](**asked).build(env.most_agents)
        self._scored = kind == "mineland_construction"
        metadata = document["metadata"]
        files = (metadata.get(each) for each in ("reference", "baseline"))
        self._blueprint, baseline = (read_picture(file) if file else None for file in files)
        self._baseline = 0.0
        if self._blueprint is not None and baseline is not None:
            self._baseline = likeness(baseline, self._blueprint)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.env, name)

    def reset(self) -> list[Observation]:
        """Begins an episode; returns the observations of the agents."""
        seen = self.env.reset()
        frame = self.env.frame
        assert frame is not None
        if self._blueprint is not None and not self.env.headless:
            self.env.bridge.addCamera(CAMERA)
        self._evaluator.reset(range(len(seen)), self.env.begun, frame)
        return seen

    def step(self, action: Sequence[Any]) -> Taken:
        """Plays one action of every agent; see ``MineLand.step``.

        Returns:
            As there, but whether the task is decided, and the ``TaskInfo``.
        """
        seen, code, events, _, _ = self.env.step(action)
        assert self.env.frame is not None
        verdict = self._evaluator.judge(self.env.actions, self.env.frame)
        outcomes = verdict.outcome[: self.env.agents_count]
        info = self._task(next((each for each in seen if each is not None), None))
        info.is_success = bool((outcomes == Outcome.SUCCESS).any())
        info.is_failed = not info.is_success and bool((outcomes == Outcome.FAILURE).all())
        if self._scored:
            share = float(verdict.progress[0])
            info.score = 0.0 if math.isnan(share) else share
        if self._blueprint is not None and not self.env.headless:
            info.score = self.get_score()
        if isinstance(self._evaluator, StageEvaluator):
            (play,) = self._evaluator.performances
            info.local_score, info.global_score = play.key, play.appropriateness
        return seen, code, events, info.is_success or info.is_failed, info

    def add_an_agent(self, config: Mapping[str, Any] | None = None) -> None:
        """Adds an agent; see ``MineLand.add_an_agent``."""
        self.env.add_an_agent(config)

    def get_script(self) -> str:
        """Returns the script of a play; empty for other tasks."""
        metadata = self._document["metadata"]
        return str(metadata.get("asked", self._document["goal"])) if self._is_play else ""

    def get_personalities(self) -> Mapping[str, str]:
        """Returns the personalities of the actors of a play."""
        return dict(self._document["metadata"].get("personalities", {}))

    def move_camera(self, pos: Sequence[float], yaw: float, pitch: float) -> None:
        """Moves the camera of a task to build along its own axes, and turns it further."""
        self.env.bridge.moveCamera(CAMERA, pos, yaw, pitch)

    def get_camera_view(self) -> str:
        """Returns what the camera of a task to build sees: a JPEG file in base64."""
        return self.env.bridge.getCameraView(CAMERA)

    def get_blueprint_np(self) -> NDArray[np.uint8] | None:
        """Returns the blueprint, ``(3, height, width)``; None without one."""
        return None if self._blueprint is None else self._blueprint.transpose(2, 0, 1)

    def get_score(self) -> float:
        """Returns how like the blueprint the camera's view is, in shares of the baseline picture's.

        Key points of pictures (ORB), as in MineLand: it says little. Judge recordings instead.
        """
        if self._blueprint is None or not self._baseline:
            return 0.0
        return likeness(self.env.bridge.picture(CAMERA), self._blueprint) / self._baseline

    @property
    def _is_play(self) -> bool:
        return isinstance(self._evaluator, StageEvaluator)

    def _task(self, seen: Observation | None) -> TaskInfo:
        metadata = self._document["metadata"]
        fights = metadata["family"] == "combat"
        return TaskInfo(
            self.task_id,
            goal=str(metadata.get("asked", self._document["goal"])),
            guidance=str(metadata.get("guidance", "")),
            mode=self._mode,
            target=seen["target_entities"] if fights and seen is not None else None,
            blueprint=self._blueprint,
        )


def _installed_files() -> str:
    """The task files of an installed MineLand, which is not imported; empty if there is none."""
    try:
        found = find_spec("mineland")
    except ValueError:  # a module of that name which a script has made
        found = None
    for place in (found and found.submodule_search_locations) or ():
        folder = Path(place) / "tasks" / "description_files"
        if (folder / "construction_tasks.yaml").is_file():
            return str(folder)
    return ""


def make(
    task_id: str,
    agents_count: int,
    mode: str = "cooperative",
    *,
    task_files: str | None = None,
    enable_mineclip: bool = False,
    mineclip_ckpt_path: str | None = None,
    **kwargs: Any,
) -> TaskWorld:
    """Returns an environment with a task of MineLand's, or of ours.

    Args:
        task_id: e.g. ``harvest_1_oak_log``, ``playground``, or an id of the files.
        agents_count: agents at the beginning.
        mode: ``cooperative`` or ``competitive``; what else is given is ``cooperative``.
        task_files: folder ``mineland/tasks/description_files`` of your copy, for creative,
            construction and stage performance tasks; those of an installed MineLand if None.
        enable_mineclip: accepted if False; MineCLIP is not included.
        mineclip_ckpt_path: accepted; not used.
        **kwargs: arguments of ``MineLand``, except server_host and server_port.

    Raises:
        ConfigError: an argument is not possible, or the task is not in this world; why, and the
            nearest that is.
        UnknownNameError: there is no such task.
    """
    for name in ("server_host", "server_port"):
        if name in kwargs:
            raise ConfigError(f"{name}: join a server with MineLand(...), which has no task")
    if enable_mineclip:
        raise ConfigError("enable_mineclip: MineCLIP is not included; expected False")
    del mineclip_ckpt_path
    files = _installed_files() if task_files is None else task_files
    mode = mode if mode in MODES else MODES[0]
    most = kwargs.pop("most_agents", None)
    ticks = int(kwargs.get("ticks_per_step", 5))
    most = agents_count + SPARE if most is None else most
    maker = MinelandTasks(ticks, most, mode == MODES[1], files=files)
    made = maker.document(task_id)
    if made is None:
        raise UnknownNameError("task", task_id, maker.names())
    options = dict(made.get("options", {}))
    actors = options.pop("names", None)
    cast = options.pop("agents", None)
    if actors is not None:
        if agents_count != cast:
            raise ConfigError(f"task {task_id!r}: expected agents_count={cast}, got {agents_count}")
        kwargs["agents_config"], most = [{"name": name} for name in actors], cast
    options |= dict(kwargs.pop("options", None) or {})
    states = _states(made, kwargs)
    env = MineLand(agents_count, states=states, most_agents=most, options=options, **kwargs)
    try:
        return TaskWorld(env, made, mode)
    except BaseException:
        env.close()
        raise


def _states(document: Mapping[str, Any], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The factors of a task's states, with those of the arguments, which are taken out of them."""
    states = {
        name: list(values) if isinstance(values, list | tuple) else [values]
        for name, values in document["state_space"].items()
    }
    return {**states, **(kwargs.pop("states", None) or {})}
