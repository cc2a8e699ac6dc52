"""Games as a taskset of verifiers, with pictures; its id is ``gamut_games``.

::

    vf-eval gamut_games --env.taskset.bridge crafter --env.taskset.game-task crafter -n 10

The game plays the user: each observation is a message with text and pictures, each answer of the
model an action. The reward is the return of the episode by the task's evaluator. An episode whose
game crashes or hangs is an error of the episode, without a reward; ``--env.retries`` repeats it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import verifiers.v1 as vf
from pydantic import Field

from rollout.config import HostConfig, StateSetConfig, make_config
from rollout.host.schedule import episode_seed
from rollout.interop.games import Games, bridge_of
from rollout.interop.moments import Moment
from rollout.interop.talking import (
    MOST_UNUSABLE,
    Waiting,
    image_urls,
    instructions,
    read_answer,
    shown,
)
from rollout.models.grammar import UnusableAnswerError

__all__ = ["GameConfig", "GameData", "GameEnv", "GameEnvConfig", "GameTask", "GameTaskset"]


class GameConfig(vf.TasksetConfig):  # type: ignore[misc] # an optional dependency, not followed
    """Which game, and from which states its episodes start."""

    bridge: str = "crafter"
    """Name of the bridge."""
    game_task: str = ""
    """Name of its task, or the path of a task file; empty for the game's own reward."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Options of the bridge."""
    state_set: dict[str, Any] = Field(default_factory=dict)
    """The states, as the key `state_set` of a configuration; by default the part `train`."""
    seed: int = 0
    """Seed of the seeds of episodes."""


class GameData(vf.TaskData):  # type: ignore[misc] # likewise
    """An episode: number of its state in the whole space, and its seed."""

    state: str
    seed: int


class GameTask(vf.Task[GameData]):  # type: ignore[misc] # likewise
    """A task of verifiers: one state of the game with one seed."""


class GameTaskset(vf.Taskset[GameTask, GameConfig]):  # type: ignore[misc] # likewise
    """The episodes of a run of ``gamut collect`` with the same seed and state set, in its order."""

    def load(self) -> Iterator[GameTask]:
        """Yields a task for each state of the set.

        Raises:
            InputError: something does not exist or does not fit.
        """
        config = self.config
        _, task = bridge_of({"name": config.bridge, **config.options}, config.game_task)
        states = make_config(StateSetConfig, config.state_set).take(task.state_space)
        for number in range(states.size):
            data = GameData(
                name=f"{task.name}/{states.name}/{number}",
                description=task.goal or None,
                state=str(states[number].index),  # may have more than 64 bits
                seed=episode_seed(config.seed, number),
            )
            yield GameTask(data, config.task)


class GameEnvConfig(vf.EnvConfig):  # type: ignore[misc] # likewise
    """Who plays, and how the games are hosted."""

    player: vf.AgentConfig = vf.AgentConfig(harness={"id": "null"}, runtime={"type": "subprocess"})
    """The model, in a conversation without tools, for which no code is run."""
    games: int = 4
    """Games that are played at once; further episodes wait."""
    pictures: bool = True
    """Whether observations have their pictures."""
    host: dict[str, Any] = Field(default_factory=dict)
    """Options of hosting, as the key `host` of a configuration."""


class GameEnv(vf.Env[GameEnvConfig]):  # type: ignore[misc] # likewise
    """Plays an episode: the game is the user of the model."""

    async def start(self) -> None:
        """Launches the games."""
        chosen, config = self.config.taskset, self.config
        games = Games(
            {"name": chosen.bridge, **chosen.options},
            chosen.game_task,
            games=config.games,
            host=make_config(HostConfig, config.host),
        )
        self._waiting: Waiting | None = Waiting(games)

    async def stop(self) -> None:
        """Ends the games."""
        waiting = getattr(self, "_waiting", None)
        if waiting is not None:
            await asyncio.to_thread(waiting.games.close)

    async def run(self, task: Any, agents: Any) -> None:
        """Plays an episode, until it is over or the model gives no action several times.

        Raises:
            GameLost: the game failed; the episode has no reward.
        """
        assert self._waiting is not None
        games, total, unusable = self._waiting.games, 0.0, 0
        async with self._waiting.game() as game:
            moment = await game.reset_async(state=int(task.data.state), seed=task.data.seed)
            message = self._message(moment, instructions(games, moment, tools=False))
            async with agents.player.interaction(task) as interaction:
                while not moment.done and unusable < MOST_UNUSABLE:
                    segment = await interaction.turn([message])
                    if segment.terminated:
                        break
                    try:
                        moment = await game.step_async(read_answer(segment.last_reply))
                    except UnusableAnswerError as error:
                        unusable += 1
                        message = vf.UserMessage(content=f"That was no action: {error.problem}")
                        continue
                    unusable, total = 0, total + moment.reward
                    message = self._message(moment)
        trace = interaction.trace
        trace.record_reward("return", total)
        trace.record_metric("success", float(bool(moment.success)))
        trace.record_metric("length", float(moment.step))
        trace.info["end"] = moment.end or "no usable action"

    def _message(self, moment: Moment, before: str = "") -> Any:
        text = "\n\n".join(filter(None, (before, shown(moment))))
        urls = image_urls(moment) if self.config.pictures else []
        if not urls:
            return vf.UserMessage(content=text)
        pictures = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
        return vf.UserMessage(content=[{"type": "text", "text": text}, *pictures])
