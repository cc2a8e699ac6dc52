"""Validation of the weights of a training, on states from which it never trains."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rollout.api import BridgeSpec, Policy, PolicyRecipe, StateSet, Task
from rollout.evaluate.legs import Leg, Legs
from rollout.evaluate.playing import legs_plan, play_board
from rollout.evaluate.scoreboard import BOUNDS, Scoreboard
from rollout.evaluate.statistics import Estimate, Intervals, one_player
from rollout.host import PlayOptions
from rollout.host.fleets import Fleet
from rollout.host.hosting import HostPlan
from rollout.train.history import History, Validated, as_metrics
from rollout.train.plan import TrainPlan

log = logging.getLogger(__name__)

OpenFleet = Callable[[HostPlan], AbstractContextManager[Fleet]]
"""Opens a fleet for the games of a plan, beside those of the training."""

_PLAYER, _SET = "trained", "validation"
_SEED = 0  # the same for all runs, so that those of a sweep are validated on the same episodes


@dataclass(frozen=True, eq=False)
class FixedWeightsPolicy:
    """Recipe of a policy with given weights.

    Attributes:
        recipe: recipe of the policy.
        weights: tensors of its network, by name.
        version: their version.
    """

    recipe: PolicyRecipe
    weights: Mapping[str, Any]
    version: int

    def build(self, spec: BridgeSpec, task: Task, *, seed: int) -> Policy:
        """Returns the policy; see ``rollout.api.PolicyRecipe``."""
        policy: Any = self.recipe.build(spec, task, seed=seed)
        policy.load(self.weights, self.version)
        return policy  # type: ignore[no-any-return] # load is not part of every policy


def play_leg(
    plan: TrainPlan,
    leg: Leg,
    open_fleet: OpenFleet,
    *,
    watch: Callable[[float], object] = lambda _: None,
    stopping: Callable[[], bool] = lambda: False,
) -> Scoreboard:
    """Returns the results of the episodes of a leg, played where a training plays.

    Args:
        plan: plan of the training.
        leg: the policy and the states.
        open_fleet: launches the games.
        watch: called often with the share of the episodes that have ended.
        stopping: true ends the play.

    Raises:
        BudgetExhausted: no game is left.
    """
    c, legs = plan.config, Legs((leg,), plan.task.state_space, _SEED)
    board = Scoreboard(legs, plan.task)
    hosting = legs_plan(
        *(plan.bridge, plan.task, legs),
        instances=c.instances,
        width=c.width,
        host=c.host,
        play=PlayOptions(c.fragment.steps, c.fragment.seconds, retries=c.host.retries),
    )
    with open_fleet(hosting) as fleet:
        play_board(
            *(board, fleet),
            watch=lambda _: watch(len(board.finished) / legs.episodes),
            stopping=stopping,
        )
    return board


class Validation:
    """The validations of a run.

    Args:
        plan: plan of the run.
        states: the validation states.
        folder: folder of the run's checkpoints.
        update: update from which the run continues.

    Raises:
        CheckpointError: the list of earlier validations is damaged.
    """

    def __init__(self, plan: TrainPlan, states: StateSet, folder: Path, update: int) -> None:
        self._plan, self._config, self._states = plan, plan.config.validation, states
        self.history = History(folder, until=update)

    def due(self, update: int, env_steps: int, *, last: bool) -> bool:
        """Returns whether the weights of an update are to be validated now.

        Args:
            update: number of updates so far.
            env_steps: steps so far.
            last: whether these are the last weights of the run.
        """
        newest, every = self.history.last, self._config.every
        assert every is not None
        if not update or (newest is not None and newest["update"] == update):
            return False
        return last or env_steps // every > (newest["env_steps"] if newest else 0) // every

    @property
    def exhausted(self) -> bool:
        """True if the score has not improved for as many validations as ``patience``."""
        patience = self._config.patience
        return patience is not None and self.history.since_best >= patience

    def run(
        self,
        update: int,
        env_steps: int,
        weights: Mapping[str, Any],
        open_fleet: OpenFleet,
        *,
        watch: Callable[[float], object],
        stopping: Callable[[], bool],
    ) -> dict[str, Any]:
        """Validates weights, and returns the values of a metrics line; none if it was stopped.

        Args:
            update: number of updates so far; its checkpoint must be written.
            env_steps: steps so far.
            weights: tensors of the network, by name.
            open_fleet: launches the games.
            watch: called often with the share of the episodes that have ended.
            stopping: true ends the validation without a result.

        Raises:
            BudgetExhausted: no game is left.
        """
        began, recipe = time.monotonic(), FixedWeightsPolicy(self._plan.recipe, weights, update)
        leg = Leg(_PLAYER, recipe, _SET, self._states, self._config.actions)
        board = play_leg(self._plan, leg, open_fleet, watch=watch, stopping=stopping)
        if len(board.finished) + len(board.given_up) < leg.episodes:
            return {}
        scores = self._scores(board)
        found = one_player(scores, Intervals(bounds=BOUNDS[self._config.metric]))
        entry = _entry(update, env_steps, found)
        entry["scores"] = [None if np.isnan(each) else each for each in scores[:, 0].tolist()]
        self.history.add(entry)
        best = self.history.best
        log.info(
            "validation after update %d: %s %s; the best is %s",
            *(update, self._config.metric, _shown(entry), _shown(best)),
        )
        if board.given_up:
            log.warning("%d episodes of it were lost and have no score", len(board.given_up))
        return as_metrics(entry, best, time.monotonic() - began)

    def _scores(self, board: Scoreboard) -> NDArray[np.float64]:
        """Returns the scores, (states, 1); NaN where the episode was lost."""
        table = board.table(self._config.metric)
        scores = np.full((self._states.size, 1), np.nan)
        scores[table["position"], table["repeat"]] = table["score"]
        return scores

    def summary(self) -> dict[str, Any]:
        """Returns the number of validations and the best, JSON-able."""
        best = self.history.best
        shown = None if best is None else {k: v for k, v in best.items() if k != "scores"}
        return {"validations": len(self.history.entries), "best": shown}

    def protocol(self) -> dict[str, Any]:
        """Returns everything needed to reproduce a validation, JSON-able."""
        c = self._config
        return {
            **c.model_dump(mode="json"),
            "state_set": self._states.describe(),
            "episode_seed": f"numpy SeedSequence({_SEED}, spawn_key=(state, 0, 1))",
        }


def _entry(update: int, env_steps: int, found: Estimate) -> Validated:
    entry: Any = {
        "update": update,
        "env_steps": env_steps,
        "score": None if np.isnan(found.point) else found.point,
        "low": found.low,
        "high": found.high,
        "episodes": found.counts["episodes"],
    }
    return entry  # type: ignore[no-any-return] # as Validated declares


def _shown(entry: Validated | None) -> str:
    if entry is None or entry["score"] is None:
        return "none"
    text = f"{entry['score']:.4g}"
    if entry["low"] is not None and entry["high"] is not None:
        text += f" [{entry['low']:.4g}, {entry['high']:.4g}]"
    return f"{text} after update {entry['update']}"
