"""Games as environments of TRL's ``GRPOTrainer``.

::

    from rollout.interop.trl import environment

    games = environment("crafter", "crafter", pictures=True)
    GRPOTrainer(
        model=...,
        environment_factory=games,
        train_dataset=games.rows(1000),
        args=GRPOConfig(...),
    )

The model plays by a tool ``act``, whose parameters are the columns of the game's actions. The
reward is the return of the episode by the task's evaluator, so no reward function is needed. The
rollout of a game that crashed or hung has no reward: TRL leaves it out of baseline and loss.
"""

from __future__ import annotations

import inspect
import io
from collections.abc import Callable, Mapping
from typing import Any, Literal

from rollout.api import Task
from rollout.config import HostConfig, StateSetConfig
from rollout.errors import ConfigError, OutOfTurnError
from rollout.interop.failures import CapacityError, GameLost
from rollout.interop.games import Game, Games, Source
from rollout.interop.moments import Moment
from rollout.interop.talking import ACT, ActTool, instructions, shown

_WHERE = ("seed", "split", "index", "state")


def environment(
    bridge: Source,
    task: str | Mapping[str, Any] | Task = "",
    *,
    games: int = 8,
    pictures: bool = False,
    state_set: StateSetConfig | None = None,
    host: HostConfig | None = None,
    seed: int = 0,
) -> Environments:
    """Returns what ``GRPOTrainer`` takes as its ``environment_factory``.

    Args:
        bridge: see ``rollout.interop.games.Games``, as for the other arguments.
        task: likewise.
        games: number of games; at least the rollouts that TRL plays at once in this process, which
            are its ``per_device_train_batch_size`` times ``steps_per_generation``.
        pictures: whether observations have their pictures, for models that see.
        state_set: the states from which episodes start.
        host: options of hosting.
        seed: seed of the seeds of episodes.

    Raises:
        InputError: something does not exist or does not fit; nothing was launched.
    """
    made = Games(bridge, task, games=games, state_set=state_set, host=host, seed=seed)
    return Environments(made, pictures=pictures)


class Environments:
    """Makes the environments of a trainer; see ``environment``.

    Attributes:
        games: the games.
        pictures: whether observations have their pictures.
        tool: the tool that plays an action.
    """

    def __init__(self, games: Games, *, pictures: bool) -> None:
        self.games, self.pictures = games, pictures
        self.tool = ActTool(games)
        # TRL knows an environment by its class, whose name is that of the reward in its logs.
        self._kind = type(games.task.name, (_Environment,), {ACT: _act(self.tool)})

    def __call__(self) -> Any:
        """Returns an environment; the trainer calls this."""
        return self._kind(self)

    def rows(self, number: int, *, split: str | None = None) -> Any:
        """Returns a ``datasets.Dataset`` with a row for each of the next episodes of a set.

        All rollouts of a row begin in the same state with the same seed, as GRPO's groups need. The
        episodes are those of a run of ``gamut collect`` with the same seed and state set.

        Args:
            number: number of rows.
            split: train, validation or test; None for the state set of the games.

        Raises:
            UnknownNameError: there is no such split.
        """
        import datasets  # noqa: PLC0415 - an optional dependency, and a second

        prompt = [{"role": "user", "content": ""}]  # the environment tells the rest
        starts = [self.games.start(split=split) for _ in range(number)]
        return datasets.Dataset.from_list(
            [  # the number of a state may have more than 64 bits
                {"prompt": prompt, "state": str(start.state.index), "seed": start.seed}
                for start in starts
            ]
        )

    def close(self) -> None:
        """Ends the games. Idempotent."""
        self.games.close()


class _Environment:
    """An environment of TRL, whose public methods are ``reset``, ``get_reward`` and its tools."""

    def __init__(self, factory: Environments) -> None:
        self._factory, self._game = factory, _open(factory.games)
        self._resets = 0
        self._total: float | None = None  # None without an episode, and after its loss
        self._lost: GameLost | None = None

    def reset(self, **row: Any) -> str | list[dict[str, Any]]:
        """Begins an episode; returns goal and first observation.

        Args:
            row: a row of the dataset. Its columns seed, split, index and state decide the episode,
                see ``rollout.interop.games.Game.reset``. Without them the n-th reset of every
                environment begins the same episode.

        Raises:
            GameLost: the game failed in every attempt.
        """
        where = {key: row[key] for key in _WHERE if row.get(key) is not None}
        if isinstance(where.get("state"), str):
            where["state"] = int(where["state"])
        if not where:
            where = {"index": self._resets % self._factory.games.states.size}
        self._resets, self._total, self._lost = self._resets + 1, None, None
        moment = self._game.reset(**where)
        self._total = 0.0
        return self._content(moment, instructions(self._factory.games, moment, tools=True))

    def get_reward(self) -> float | None:
        """Returns the return of the episode so far; None if there is none, or it was lost."""
        return self._total

    def _play(self, arguments: Mapping[str, Any]) -> str | list[dict[str, Any]]:
        if self._lost is not None:
            raise OutOfTurnError(f"{self._lost}; the episode has no result")
        try:
            moment = self._game.step(self._factory.tool.action(arguments))
        except GameLost as error:
            self._lost, self._total = error, None
            raise
        self._total = (self._total or 0.0) + moment.reward
        return self._content(moment)

    def _content(self, moment: Moment, before: str = "") -> str | list[dict[str, Any]]:
        text = "\n\n".join(filter(None, (before, shown(moment))))
        if not self._factory.pictures:
            return text
        import PIL.Image  # noqa: PLC0415 - an optional dependency

        blocks: list[dict[str, Any]] = [{"type": "text", "text": text}]
        for _, file in moment.pictures():
            blocks.append({"type": "image", "image": PIL.Image.open(io.BytesIO(file))})
        return blocks


def _open(games: Games) -> Game:
    try:
        return games.open()
    except CapacityError as error:
        raise ConfigError(
            f"{error}. TRL needs a game for each rollout that it plays at once, "
            f"per_device_train_batch_size times steps_per_generation: set games=... of "
            f"rollout.interop.trl.environment to that, now {games.size}"
        ) from error


def _act(tool: ActTool) -> Callable[..., Any]:
    """Returns the method ``act``, with the signature and the docstring that TRL reads."""

    def act(self: _Environment, **arguments: Any) -> str | list[dict[str, Any]]:
        return self._play(arguments)

    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters, told = [own], []
    for name in sorted(tool.parameters, key=lambda name: name not in tool.required):
        hint: Any = _hint(tool.parameters[name])
        optional = name not in tool.required
        parameters.append(
            inspect.Parameter(
                name,
                inspect.Parameter.POSITIONAL_OR_KEYWORD,
                annotation=hint | None if optional else hint,
                default=None if optional else inspect.Parameter.empty,
            )
        )
        told.append(f"    {name}: {' '.join(tool.parameters[name]['description'].split())}")
    act.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined] # inspect reads it
    act.__annotations__ = {each.name: each.annotation for each in parameters[1:]}
    act.__doc__ = "\n".join([tool.description, "", "Args:", *told])
    return act


def _hint(schema: Mapping[str, Any]) -> Any:
    """Returns the type of a parameter by its JSON schema."""
    if "enum" in schema:
        return Literal[tuple(schema["enum"])]
    if schema["type"] == "array":
        return list[_hint(schema["items"])] if "items" in schema else list  # type: ignore[misc] # at run time
    kinds: dict[str, Any] = {"integer": int, "number": float, "string": str, "object": dict}
    return kinds[schema["type"]]
