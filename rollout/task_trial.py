"""Trial runs of tasks: whether a game starts from them, and whether their solution wins."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rollout.api import Array, Columns, Instance, Outcome, Solution, Start, Task, allocate
from rollout.config import BridgeConfig
from rollout.errors import GameError, InputError
from rollout.host.instances import free_ports
from rollout.host.processes import owned_workdir, remove_workdir
from rollout.tasks import bridge_and_task

_STEPS = 200  # of tasks without a limit


@dataclass(frozen=True)
class TaskTrial:
    """Result of a trial run.

    Attributes:
        error: why the game did not begin, or not go on; empty if it did.
        won: whether the solution succeeded; None if none was played, or nothing was decided.
        steps: that it took.
    """

    error: str = ""
    won: bool | None = None
    steps: int = 0


def try_task(
    config: BridgeConfig,
    document: Mapping[str, Any],
    solution: Solution | None = None,
    *,
    seed: int = 0,
) -> TaskTrial:
    """Returns the result of one episode of a task.

    Args:
        config: of the bridge, without the options of the task.
        document: contents of the task's file.
        solution: what is played; None, or one without actions, only begins the episode.
        seed: of the state and the episode.

    Raises:
        ConfigError: the task cannot be played with this configuration.
    """
    if solution is not None and solution.options:
        config = BridgeConfig.model_validate(
            {"name": config.name, **config.options, **solution.options}
        )
    _, bridge, task = bridge_and_task(config, document)
    try:
        with _launched(bridge) as game:
            return _played(game, bridge.spec.deadlines.step_s, bridge, task, solution, seed)
    except (GameError, InputError) as error:
        return TaskTrial(" ".join(str(error).split()))


@contextlib.contextmanager
def _launched(bridge: Any) -> Iterator[Instance]:
    folder = owned_workdir("gamut-trial-")
    game: Instance | None = None
    try:
        spec = bridge.spec
        game = bridge.launch(
            folder, free_ports(spec.ports), width=1, timeout_s=spec.deadlines.start_s
        )
        yield game
    finally:
        if game is not None:
            game.close()
        remove_workdir(folder)


def _played(
    game: Instance, step_s: float, bridge: Any, task: Task, solution: Solution | None, seed: int
) -> TaskTrial:
    space = task.state_space
    start = Start(space.state(seed * 1_000_003 % space.size), seed)
    frame = game.reset([0], [start], timeout_s=bridge.spec.deadlines.reset_s)
    if solution is None or not solution.actions:
        return TaskTrial()
    evaluator = task.evaluator.build(1)
    evaluator.reset([0], [start], frame)
    limit = task.limits.steps or _STEPS
    for step in range(limit):
        actions = _row(bridge.spec.action_space, solution.actions, step)
        frame = game.step(actions, timeout_s=step_s)
        outcome = int(evaluator.judge(actions, frame).outcome[0])
        if outcome != Outcome.RUNNING or frame.game_over[0]:
            return TaskTrial(won=outcome == Outcome.SUCCESS, steps=step + 1)
    return TaskTrial(won=False, steps=limit)


def _row(space: Any, actions: Mapping[str, Array], step: int) -> Columns:
    row = allocate(space, 1)
    for key, values in actions.items():
        if step < len(values):
            row[key][0] = values[step]
    return row
