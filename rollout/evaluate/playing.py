"""Plays legs and records their scores: the loop of every evaluation, with or without Ray.

::

    for fragment in fleet.play(board.schedule()):     # whichever is ready first
        record(fragment)                              # the steps, if they are recorded
        board.add(fragment)                           # from here on, results are on disk
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rollout.api import Bridge, Fragment, Task
from rollout.data.tables import Table
from rollout.evaluate.journal import Journal
from rollout.evaluate.legs import Leg, Legs, LegsPolicy
from rollout.evaluate.scoreboard import Metric, Scoreboard, check_metric
from rollout.host.fleets import Fleet, open_fleet
from rollout.host.hosting import HostPlan
from rollout.host.schedule import derived_seed


def play_board(
    board: Scoreboard,
    fleet: Fleet,
    *,
    record: Callable[[Fragment], object] = lambda _: None,
    watch: Callable[[Fragment], object] = lambda _: None,
    stopping: Callable[[], bool] = lambda: False,
) -> None:
    """Plays the remaining episodes of a scoreboard until all have ended or ``stopping``.

    Args:
        board: records the scores.
        fleet: the hosts that play; it is not closed.
        record: called with every fragment before its results are recorded: an episode that has a
            result has its steps, too.
        watch: called with every fragment after its results are recorded.
        stopping: called after every fragment; true ends the loop.

    Raises:
        BudgetExhausted: no game is left; what was played is recorded.
    """
    lost = given_up = 0

    def take_news() -> None:
        nonlocal lost, given_up
        news = fleet.news
        board.lose(news.losses[lost:])
        board.give_up(news.abandoned[given_up:])
        lost, given_up = len(news.losses), len(news.abandoned)

    try:
        for fragment in fleet.play(board.schedule(take_news)):
            record(fragment)
            board.add(fragment)
            take_news()
            watch(fragment)
            if stopping():
                return
    finally:
        take_news()


def legs_plan(
    bridge: Bridge, task: Task, legs: Legs, *, session: int = 0, **hosting: Any
) -> HostPlan:
    """Returns the plan for a fleet that plays legs.

    Args:
        bridge: recipe of the game.
        task: the task.
        legs: the legs to play; they decide about sampling, not ``play``.
        session: number of the job's session: a policy that draws random numbers must not repeat
            them after a resume.
        hosting: ``instances``, ``width``, ``host`` and ``play`` of ``HostPlan``.
    """
    return HostPlan(bridge, task, LegsPolicy.of(legs), derived_seed(legs.seed, session), **hosting)


def play_legs(
    bridge: Bridge,
    task: Task,
    legs: Sequence[Leg],
    *,
    seed: int,
    metric: Metric,
    journal: Journal | None = None,
    actors: int = 0,
    watch: Callable[[Fragment], object] = lambda _: None,
    arm: str = "",
    n: int = 0,
    training_seed: int = -1,
    **hosting: Any,
) -> Table:
    """Plays legs and returns their results; a sweep evaluates its trained policies with it.

    Args:
        bridge: recipe of the game.
        task: the task.
        legs: the legs to play.
        seed: seed of the evaluation.
        metric: metric of the column ``score``.
        journal: folder of the journal, which may hold earlier results; None for no journal.
        actors: number of Ray actors, which need a running Ray; 0 plays in this process without Ray.
        watch: called with every fragment.
        arm: value of this column in every row.
        n: likewise.
        training_seed: likewise.
        hosting: as in ``legs_plan``.

    Returns:
        one row per episode with the columns ``COLUMNS``, by leg, position and repeat.

    Raises:
        InputError: something does not fit; nothing was launched.
        BudgetExhausted: no game is left; with a journal, another call continues from there.
    """
    check_metric(metric, task)
    board = Scoreboard(Legs(tuple(legs), task.state_space, seed), task, journal)
    if len(board.finished) < board.legs.episodes:
        plan = legs_plan(bridge, task, board.legs, **hosting)
        with open_fleet(plan, actors=actors) as (fleet, _):
            play_board(board, fleet, watch=watch)
    return board.table(metric, arm=arm, n=n, training_seed=training_seed)
