"""Plays legs and keeps the score: the loop of every evaluation, with or without Ray.

::

    for fragment in fleet.play(board.schedule()):     # first ready, first served
        board.add(fragment)                           # results are on the disk from here on
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from rollout.api import Bridge, Fragment, Task
from rollout.data.tables import Table
from rollout.evaluate.journal import Journal
from rollout.evaluate.legs import Leg, Legs, LegsPolicy
from rollout.evaluate.scoreboard import Metric, Scoreboard, check_metric
from rollout.host import PlayOptions, PoolOptions
from rollout.host.hosting import Fleet, HostPlan, LocalFleet

_POOL, _PLAY = PoolOptions(), PlayOptions()


def play_board(
    board: Scoreboard,
    fleet: Fleet,
    *,
    watch: Callable[[Fragment], None] | None = None,
    stopping: Callable[[], bool] = lambda: False,
) -> None:
    """Plays what is left of a board's episodes, until all have ended or it is told to stop.

    Args:
        board: keeps the score.
        fleet: plays; it is left open.
        watch: told of every fragment once it was counted.
        stopping: asked after every fragment.

    Raises:
        BudgetExhausted: no game is left; what was played is on the board.
    """
    lost = given_up = 0

    def take_news() -> None:
        nonlocal lost, given_up
        news = fleet.news
        board.lose(news.losses[lost:])
        board.give_up(news.abandoned[given_up:])
        lost, given_up = len(news.losses), len(news.abandoned)

    try:
        for fragment in fleet.play(board.schedule()):
            board.add(fragment)
            take_news()
            if watch is not None:
                watch(fragment)
            if stopping():
                return
    finally:
        take_news()


def legs_plan(
    bridge: Bridge,
    task: Task,
    legs: Legs,
    *,
    instances: int = 1,
    width: int = 1,
    pool: PoolOptions = _POOL,
    play: PlayOptions = _PLAY,
    session: int = 0,
) -> HostPlan:
    """Returns what a fleet needs to play legs.

    Args:
        bridge: recipe of the game.
        task: what is played.
        legs: who plays which states; whether they sample is up to them, not to ``play``.
        instances: games beside each player.
        width: slots of each.
        pool: how they are hosted.
        play: how they are played.
        session: number of the session of the job: a policy that draws a stream of chance must
            not draw the same one again after a resume.
    """
    sequence = np.random.SeedSequence(legs.seed, spawn_key=(session,))
    seed = int(sequence.generate_state(1, np.uint64)[0] >> 1)
    return HostPlan(bridge, task, LegsPolicy.of(legs), seed, instances, width, pool, play)


@contextlib.contextmanager
def open_fleet(
    plan: HostPlan, *, actors: int = 0, max_in_flight: int = 2, restarts: int = 5
) -> Iterator[Fleet]:
    """Launches the games of a plan, and ends them in the end.

    Args:
        plan: what they play.
        actors: number of Ray actors; Ray must run. 0 plays here, without Ray.
        max_in_flight: fragments asked of one actor before the last is taken.
        restarts: how often one actor may be replaced.
    """
    fleet: Fleet
    if actors == 0:
        fleet = LocalFleet(plan)
    else:
        # Ray decides about authentication when it is imported: not before the session has.
        from rollout.host.fleet import FleetOptions, RayFleet  # noqa: PLC0415

        fleet = RayFleet(plan, FleetOptions(actors, max_in_flight, restarts))
    try:
        yield fleet
    finally:
        fleet.close()


def play_legs(
    bridge: Bridge,
    task: Task,
    legs: Sequence[Leg],
    *,
    seed: int,
    metric: Metric,
    instances: int = 1,
    width: int = 1,
    pool: PoolOptions = _POOL,
    play: PlayOptions = _PLAY,
    journal: Journal | None = None,
    actors: int = 0,
    watch: Callable[[Fragment], None] | None = None,
    arm: str = "",
    n: int = 0,
    training_seed: int = -1,
) -> Table:
    """Plays legs and returns their results; for experiments that evaluate what they trained.

    Args:
        bridge: recipe of the game.
        task: what is played.
        legs: who plays which states.
        seed: of the evaluation.
        metric: what the column ``score`` holds.
        instances: games beside each player.
        width: slots of each.
        pool: how they are hosted.
        play: how they are played; whether the players sample is up to the legs.
        journal: where to keep what happens, and what was played before; None for nowhere.
        actors: number of Ray actors; Ray must run. 0 plays here, without Ray.
        watch: told of every fragment.
        arm: what the column holds in every row.
        n: likewise.
        training_seed: likewise.

    Returns:
        one row per episode with the columns ``COLUMNS``, by leg, position and repeat.

    Raises:
        InputError: something does not fit; nothing was launched.
        BudgetExhausted: no game is left; with a journal, another call goes on from there.
    """
    check_metric(metric, task)
    board = Scoreboard(Legs(tuple(legs), task.state_space, seed), task, journal)
    if len(board.finished) < board.legs.episodes:
        plan = legs_plan(
            bridge, task, board.legs, instances=instances, width=width, pool=pool, play=play
        )
        with open_fleet(plan, actors=actors) as fleet:
            play_board(board, fleet, watch=watch)
    return board.table(metric, arm=arm, n=n, training_seed=training_seed)
