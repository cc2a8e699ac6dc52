"""Games as tasks of Inspect AI, found by its entry point.

::

    inspect eval gamut/stardojo_lite --model openai/gpt-5 -T 'state_set={size: 20}'

A task ``gamut/BRIDGE_TASK`` exists for each task of each installed bridge, and ``gamut/BRIDGE`` for
any task: ``-T task=NAME``. The parameters are those of ``play``. A game that crashes or hangs is an
error of its sample, which Inspect leaves out of the metrics, and repeats with ``--retry-on-error``.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any

from inspect_ai import Task
from inspect_ai import task as registered
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import (
    ChatMessageUser,
    Content,
    ContentImage,
    ContentText,
    execute_tools,
)
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.tool import Tool, ToolDef, ToolError, ToolParam, ToolParams

from rollout.config import HostConfig, StateSetConfig, make_config
from rollout.errors import GamutError
from rollout.host.schedule import episode_seed
from rollout.interop.games import Game, Games, bridge_of
from rollout.interop.moments import Moment
from rollout.interop.talking import (
    ACT,
    MOST_UNUSABLE,
    ActTool,
    Waiting,
    image_urls,
    instructions,
    read_answer,
    shown,
)
from rollout.models.grammar import UnusableAnswerError
from rollout.registry import load_plugin, names
from rollout.signals import say
from rollout.tasks import read_task, task_names

_SAMPLES = 100  # states, unless a size is given
_MOST_NAMES = 500  # made names of a bridge that become names of tasks
_KEY = "episode"


def play(
    bridge: str,
    task: str = "",
    *,
    options: Mapping[str, Any] | None = None,
    state_set: Mapping[str, Any] | None = None,
    tools: bool = True,
    pictures: bool = True,
    games: int = 4,
    seed: int = 0,
    host: Mapping[str, Any] | None = None,
) -> Task:
    """Returns the task of Inspect for a task of a game; a sample is an episode.

    Args:
        bridge: name of the bridge.
        task: name of its task, or the path of a task file; empty for the game's own reward.
        options: options of the bridge.
        state_set: the states, as the key ``state_set`` of a configuration, by default the part
            ``test``; without a size, its first 100.
        tools: whether the model plays by a tool; otherwise each answer is an action.
        pictures: whether observations have their pictures.
        games: games that are played at once; further samples wait. See ``--max-samples``.
        seed: seed of the seeds of episodes.
        host: options of hosting.

    Raises:
        InputError: something does not exist or does not fit.
    """
    chosen = make_config(StateSetConfig, {"split": "test", **(state_set or {})})
    hosting = make_config(HostConfig, host or {})
    recipe, found = bridge_of({"name": bridge, **(options or {})}, task)
    states = chosen.take(found.state_space)
    number = states.size if chosen.size else min(states.size, _SAMPLES)
    samples = [
        Sample(
            found.goal or found.name,
            id=f"{states.name}/{n}",
            metadata={"state": str(states[n].index), "seed": episode_seed(seed, n)},
        )
        for n in range(number)
    ]
    shared = _Shared(lambda: Games(recipe, found, games=games, host=hosting), number)
    return Task(
        MemoryDataset(samples, name=f"{bridge}/{found.name}"),
        solver=_plays(shared, tools, pictures),
        scorer=_evaluator(),
        fail_on_error=False,  # one game that is lost does not end the evaluation
        metadata={"bridge": bridge, "task": found.name, "states": states.digest},
    )


@dataclass
class _Shared:
    """The games of a task: launched for the first sample, ended after the last one."""

    make: Callable[[], Games]
    samples: int
    waiting: Waiting | None = None
    playing: int = 0
    finished: int = 0

    @asynccontextmanager
    async def game(self) -> AsyncIterator[tuple[Games, Game]]:
        """Waits for a game for a sample."""
        if self.waiting is None:
            self.waiting, self.finished = Waiting(self.make()), 0
        waiting = self.waiting
        self.playing += 1
        try:
            async with waiting.game() as game:
                yield waiting.games, game
        finally:
            self.playing, self.finished = self.playing - 1, self.finished + 1
            if not self.playing and self.finished >= self.samples:
                self.waiting = None
                await asyncio.to_thread(waiting.games.close)


@solver  # type: ignore[untyped-decorator] # not followed
def _plays(shared: _Shared, tools: bool, pictures: bool) -> Solver:
    async def solve(state: TaskState, generate: Generate) -> TaskState:
        async with shared.game() as (games, game):
            await _Episode(games, game, state, pictures).play(generate, tools)
        return state

    return solve


class _Episode:
    """An episode that the model of a sample plays."""

    def __init__(self, games: Games, game: Game, state: TaskState, pictures: bool) -> None:
        self._games, self._game, self._state, self._pictures = games, game, state, pictures
        self._total, self._unusable = 0.0, 0
        self._moment: Moment | None = None

    async def play(self, generate: Generate, tools: bool) -> None:
        """Plays until the episode is over, or the model gives no action several times."""
        state, of = self._state, self._state.metadata
        first = await self._game.reset_async(state=int(of["state"]), seed=int(of["seed"]))
        self._moment = first
        begin = instructions(self._games, first, tools=tools)
        state.messages = [ChatMessageUser(content=self._content(first, begin))]
        state.tools = [self._tool()] if tools else []
        self._note(first)
        while not self._moment.done and self._unusable < MOST_UNUSABLE and not state.completed:
            state = await generate(state, tool_calls="none")
            if tools and state.output.message.tool_calls:
                made = await execute_tools(state.messages, state.tools)
                state.messages.extend(made.messages)
            elif tools:
                self._unusable += 1
                state.messages.append(ChatMessageUser(content=f"Call the tool {ACT}."))
            else:
                state.messages.append(ChatMessageUser(content=await self._answered()))
        if self._unusable >= MOST_UNUSABLE:
            state.metadata[_KEY]["end"] = "no usable action"

    async def _answered(self) -> str | list[Content]:
        """Plays the action in the last answer; returns the next message."""
        try:
            moment = await self._game.step_async(read_answer(self._state.output.completion))
        except UnusableAnswerError as error:
            self._unusable += 1
            return f"That was no action: {error.problem}"
        return self._next(moment)

    def _tool(self) -> Tool:
        described = ActTool(self._games)

        async def act(**arguments: Any) -> str | list[Content]:
            if self._moment is not None and self._moment.done:
                raise ToolError("The episode is over.")
            try:
                moment = await self._game.step_async(described.action(arguments))
            except UnusableAnswerError as error:
                self._unusable += 1
                raise ToolError(error.problem) from error
            return self._next(moment)

        properties = {
            name: ToolParam.model_validate(schema) for name, schema in described.parameters.items()
        }
        parameters = ToolParams(properties=properties, required=described.required)
        return ToolDef(act, ACT, described.description, parameters, max_output=0).as_tool()

    def _next(self, moment: Moment) -> str | list[Content]:
        self._moment, self._unusable = moment, 0
        self._total += moment.reward
        self._note(moment)
        return self._content(moment)

    def _note(self, moment: Moment) -> None:
        """Leaves for the scorer what the evaluator has said so far."""
        self._state.metadata[_KEY] = {
            "return": self._total,
            "success": bool(moment.success),
            "progress": None if moment.progress != moment.progress else moment.progress,
            "length": moment.step,
            "end": moment.end or "cut by a limit of Inspect",
        }

    def _content(self, moment: Moment, before: str = "") -> str | list[Content]:
        text = "\n\n".join(filter(None, (before, shown(moment))))
        urls = image_urls(moment) if self._pictures else []
        if not urls:
            return text
        return [ContentText(text=text), *(ContentImage(image=url) for url in urls)]


@scorer(metrics={"*": [mean(), stderr()]}, name="evaluator")  # type: ignore[untyped-decorator]
def _evaluator() -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:
        del target
        found = state.metadata[_KEY]
        value = {"return": found["return"], "success": float(found["success"])}
        return Score(value=value, answer=found["end"], metadata=found)

    return score


def _register() -> None:
    """Makes the tasks known to Inspect under their names."""
    for bridge in names("bridges"):
        _add(bridge, bridge=bridge)
        try:
            spec = load_plugin("bridges", bridge)().spec
            known = [
                each
                for each in task_names(spec)
                if read_task(spec, bridge, each).get("bridge", bridge) == bridge
            ]
            made = islice(spec.task_maker.names() if spec.task_maker else (), _MOST_NAMES)
        except GamutError as error:  # for instance, its interpreter is not made
            say(f"inspect: gamut/{bridge} alone, without names of its tasks: {error}")
            continue
        for each in dict.fromkeys([*known, *made]):
            _add(f"{bridge}_{each}", bridge=bridge, task=each)


def _add(name: str, **fixed: Any) -> None:
    def function(**given: Any) -> Task:
        return play(**fixed, **given)

    own = inspect.signature(play)
    free = [each for each in own.parameters.values() if each.name not in fixed]
    function.__signature__ = own.replace(parameters=free)  # type: ignore[attr-defined] # read below
    # Inspect would put the package's name before it, and finds none in a checkout. So it is in the
    # name, and the function is said to be of a module that there is not.
    function.__module__ = "gamut.tasks"
    registered(name=f"gamut/{name}")(function)


_register()
