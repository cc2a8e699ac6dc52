"""The findings of an evaluation: estimates for every leg, as data and as a short report."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rollout.api import Usage
from rollout.config import resolved
from rollout.data.tables import Table
from rollout.evaluate.legs import TEST, TRAIN, Leg, Legs
from rollout.evaluate.pairs import Kind, compare_all, pairs_section
from rollout.evaluate.published import (
    Published,
    attempted,
    beside,
    grouped,
    groups_section,
    own_cell,
    published_section,
)
from rollout.evaluate.scoreboard import BOUNDS, USAGE, Metric, rows_of_leg
from rollout.evaluate.statistics import (
    Estimate,
    Intervals,
    gap,
    hierarchical,
    one_player,
    wilson,
)
from rollout.reports import render, table

_Scores = NDArray[np.float64]


class Findings:
    """The estimates of an evaluation.

    The interval of a single player covers other states, for this player as it is, and says nothing
    about other training runs. For players that are training seeds of one model, it covers both.

    Args:
        table: the results, with a column ``score``.
        legs: the legs that were played.
        groups: the players that are training seeds of one model, by the model's name.
        metric: metric of ``score``; intervals of shares stay within 0 and 1.
        confidence: confidence level of the intervals.
        baseline: the player or group that is subtracted in its comparisons; None for the first one.
        published: published results to show beside these; None for none.
        labels: the groups of the states of the task, see ``published.grouped``; None for none.
    """

    def __init__(
        self,
        table: Table,
        legs: Legs,
        groups: Mapping[str, Sequence[str]],
        *,
        metric: Metric,
        confidence: float,
        baseline: str | None = None,
        published: Published | None = None,
        labels: Mapping[str, Any] | None = None,
    ) -> None:
        self._published, self._labels = published, labels
        self._intervals = Intervals(confidence, bounds=BOUNDS[metric])
        self._legs = legs
        self._by_name = {leg.name: leg for leg in legs.legs}
        self._rows: dict[str, dict[str, NDArray[Any]]] = {}
        self._scores: dict[str, _Scores] = {}
        for leg in legs.legs:
            mine = rows_of_leg(table, leg)
            rows = self._rows[leg.name] = {name: column[mine] for name, column in table.items()}
            # (states, repeats); NaN where an episode has none.
            scores = self._scores[leg.name] = np.full((leg.states.size, leg.repeats), np.nan)
            scores[rows["position"], rows["repeat"]] = rows["score"]
        grouped = {player for members in groups.values() for player in members}
        single = {leg.player: [leg.player] for leg in legs.legs if leg.player not in grouped}
        self._groups = dict(groups)
        self._models: dict[str, Sequence[str]] = {**groups, **single}
        self._baseline = next(iter(self._models)) if baseline is None else baseline
        self._kinds = list(dict.fromkeys((leg.set_name, leg.actions) for leg in legs.legs))

    def data(self) -> dict[str, Any]:
        """Returns everything as JSON-able data; NaN becomes None."""
        found = {
            "legs": [self._leg(leg) for leg in self._legs.legs],
            "groups": self._of_groups(),
            "gaps": self._gaps(),
            "differences": self._differences(),
            "grouped": [self._grouped(leg) for leg in self._legs.legs if self._labels],
            "published": self._beside(),
        }
        return dict(plain_estimates(found))

    def _leg(self, leg: Leg) -> dict[str, Any]:
        rows, scores = self._rows[leg.name], self._scores[leg.name]
        lost = rows["end"] == "lost"
        won = rows["success"][~np.isnan(rows["success"])]
        share = self._intervals.confidence
        return {
            "player": leg.player,
            "set": leg.set_name,
            "actions": leg.actions,
            "states": leg.states.size,
            "repeats": leg.repeats,
            "set_digest": leg.states.digest,
            "episodes": leg.episodes,
            "finished": int((~lost).sum()),
            "given_up": int(lost.sum()),
            "attempts_lost": int((rows["attempts"] - ~lost).sum()),
            "ends": dict(Counter(rows["end"].tolist())),
            "score": one_player(scores, self._intervals),
            "score_of_other_training_runs": self._mean(scores[None], leg),
            "success": wilson(int(won.sum()), len(won), confidence=share) if len(won) else None,
            "return": _mean(rows["total_reward"]),
            "progress": _mean(rows["progress"]),
            "length": _mean(rows["length"][~lost]),
            "usage": _usage(rows, ~lost, int(won.sum())),
        }

    def _mean(self, scores: _Scores, leg: Leg) -> Estimate:
        # A set that is the whole space is not a sample: there are no other states.
        whole = leg.states.size == self._legs.space.size
        states = "fixed" if whole else "crossed"
        return hierarchical(scores, self._intervals, states=states)

    def _of_groups(self) -> list[dict[str, Any]]:
        found = []
        for (name, players), (set_name, actions) in product(self._groups.items(), self._kinds):
            leg = self._by_name[f"{players[0]}/{set_name}/{actions}"]
            scores = self._of(players, set_name, actions)
            about = {"group": name, "players": list(players), "set": set_name, "actions": actions}
            found.append({**about, "score": self._mean(scores, leg)})
        return found

    def _gaps(self) -> list[dict[str, Any]]:
        """Returns train minus test, for every model with sets of these names."""
        found = []
        for (name, players), (set_name, actions) in product(self._models.items(), self._kinds):
            if set_name != TRAIN or (TEST, actions) not in self._kinds:
                continue
            train, test = (self._of(players, each, actions) for each in (TRAIN, TEST))
            # All players of a job play the same states, including those of the set "train".
            estimate = gap(train, test, self._intervals, train_states="crossed")
            found.append({"model": name, "actions": actions, "gap": estimate})
        return found

    def _differences(self) -> list[dict[str, Any]]:
        """Returns the comparison of every two models, paired by state and seed."""
        states: dict[str, Sequence[str]] = {}
        for leg in self._legs.legs:
            rows, known = self._rows[leg.name], states.get(leg.set_name)
            index = np.array(known, object) if known else np.full(leg.states.size, "", object)
            index[rows["position"]] = rows["state"]
            # A state without a result is none of the others.
            states[leg.set_name] = [each or f"{leg.set_name} {i}" for i, each in enumerate(index)]
        models: dict[str, dict[Kind, _Scores]] = {
            name: {kind: self._of(players, *kind) for kind in self._kinds}
            for name, players in self._models.items()
        }
        return compare_all(models, states, self._intervals, base=self._baseline)

    def _grouped(self, leg: Leg) -> dict[str, Any]:
        assert self._labels is not None
        rows = self._rows[leg.name]
        success = np.full((leg.states.size, leg.repeats), np.nan)
        undefined = np.zeros(success.shape, np.bool_)
        success[rows["position"], rows["repeat"]] = rows["success"]
        undefined[rows["position"], rows["repeat"]] = np.isnan(rows["progress"]) & (
            rows["end"] != "lost"
        )
        found = grouped(self._labels, leg.states, success, undefined)
        if not self._labels.get("attempts"):
            return {"leg": leg.name, **found}
        invalid = np.zeros(success.shape, np.bool_)
        invalid[rows["position"], rows["repeat"]] = rows["invalid"] == 1
        counts = attempted(self._labels, leg.states, success, invalid, self._intervals.confidence)
        return {"leg": leg.name, **found, "attempts": counts}

    def _beside(self) -> dict[str, Any] | None:
        """Returns published results, if there are any, and the scores of players over all sets."""
        if self._published is None:
            return None
        if self._published.tables:
            return {**resolved(self._published), "own": self._cells()}
        pooled: dict[tuple[str, str], list[_Scores]] = {}
        for leg in self._legs.legs:
            pooled.setdefault((leg.player, leg.actions), []).append(self._scores[leg.name])
        own = {who: np.concatenate(scores) for who, scores in pooled.items()}
        return beside(self._published, own, self._intervals)

    def _cells(self) -> list[dict[str, Any]]:
        """Returns the figures of every player, by set."""
        found: dict[tuple[str, str], dict[str, Any]] = {}
        for leg in self._legs.legs:
            cell = own_cell(self._rows[leg.name], self._intervals.confidence)
            found.setdefault((leg.player, leg.actions), {})[leg.set_name] = cell
        return [{"player": p, "actions": a, "cells": cells} for (p, a), cells in found.items()]

    def _of(self, players: Sequence[str], set_name: str, actions: str) -> _Scores:
        """Returns the scores of the training seeds of a model, (players, states, repeats)."""
        return np.stack([self._scores[f"{player}/{set_name}/{actions}"] for player in players])


def _mean(values: NDArray[Any]) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None


def plain(value: Any, of_estimate: Callable[[Estimate], Mapping[str, Any]]) -> Any:
    """Returns figures as JSON-able data; NaN and infinity become None."""
    if isinstance(value, Estimate):
        value = of_estimate(value)
    if isinstance(value, Mapping):
        return {key: plain(inner, of_estimate) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner, of_estimate) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def plain_estimates(value: Any) -> Any:
    """Returns figures as JSON-able data, an estimate with its text; NaN becomes None."""
    return plain(value, lambda each: {**asdict(each), "text": each.text()})


def write_report(summary: Mapping[str, Any]) -> str:
    """Returns a short Markdown report of the contents of ``summary.json``."""
    found, results = summary["findings"], summary["results"]
    tables = {
        "Models, over their training seeds": (_GROUP, found["groups"]),
        "Generalization gap: train minus test": (_GAP, found["gaps"]),
        "Episodes that were given up": (_GIVEN_UP, results["given_up"]),
        "Calls of models": (_CALLS, [calls_row(leg) for leg in found["legs"] if leg["usage"]]),
        "Films": (_VIDEO, [{**each, **_video_row(each)} for each in summary["films"]]),
    }
    pairs = found["differences"]
    return render(
        "evaluation",
        protocol=summary["protocol"],
        results=results,
        actions=actions_told(found["legs"]),
        legs=_table(_LEG, [{**leg, **_leg_row(leg)} for leg in found["legs"]]),
        tables={title: _table(columns, rows) for title, (columns, rows) in tables.items() if rows},
        pairs=pairs_section(pairs, summary["protocol"]["metric"]) if pairs else "",
        groups=groups_section(found["grouped"]) if found.get("grouped") else "",
        notes=summary.get("notes", {}),
        published=published_section(found["published"]) if found["published"] else "",
    )


_ACTIONS = {
    "sampled": "sampled actions are drawn from a player's probabilities, as while it trained and "
    "as predict() does by default",
    "deterministic": "deterministic ones are its most likely, as predict(deterministic=True) gives",
}
_LEG = ("player", "set", "actions", "states", "score", "success", "return", "length", "lost")
_GROUP = ("group", "set", "actions", "score")
_GAP = ("model", "actions", "gap")
_GIVEN_UP = ("player", "set", "actions", "position", "state", "episode_seed", "attempts")
_CALLS = (
    *("player", "set", "actions", "calls", "unusable", "tokens/step", "tokens/episode"),
    *("tokens/success", "USD", "USD/step", "USD/episode", "USD/success"),
)
_VIDEO = ("leg", "rank", "state", "score", "filmed")


def actions_told(legs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Returns what the ways of choosing actions of some legs are, for readers."""
    return [_ACTIONS[kind] for kind in dict.fromkeys(leg["actions"] for leg in legs)]


def _leg_row(leg: Mapping[str, Any]) -> dict[str, str]:
    return {
        "states": f"{leg['states']} x {leg['repeats']}",
        "lost": f"{leg['given_up']} given up, {leg['attempts_lost']} lost attempts",
    }


def calls_row(leg: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the cells about the calls of models of a leg that has any, by column."""
    used = leg["usage"]
    units = ("step", "episode", "success")
    known = "" if not used["unpriced"] else f", {used['unpriced']} calls without a price"
    sums = Usage(**{name: used[name] or 0 for name in USAGE})
    per = {unit: used["usd_per"][unit] for unit in units}
    return {
        **{key: leg[key] for key in ("player", "set", "actions")},
        "calls": used["calls"],
        "unusable": f"{used['unusable_share']:.1%}",
        **{f"tokens/{unit}": used["tokens_per"][unit] for unit in units},
        "USD": f"{sums.price_text('.4g')}{known}",
        **{f"USD/{unit}": v and replace(sums, usd=v).price_text(".4g") for unit, v in per.items()},
    }


def _video_row(video: Mapping[str, Any]) -> dict[str, str]:
    again = f"another run: {cell_text(video['replayed'])}"
    return {
        "rank": f"[{video['rank']}](videos/{video['file']})",
        "filmed": "the same" if video["same"] else again,
    }


def _table(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> str:
    return table(columns, [[cell_text(row[column]) for column in columns] for row in rows])


def cell_text(value: Any) -> str:
    """Returns a figure or an estimate as the text of a cell."""
    if isinstance(value, Mapping):
        return str(value["text"])
    if isinstance(value, float):
        return f"{value:.4g}"
    return "-" if value is None else str(value)


def _usage(rows: Mapping[str, NDArray[Any]], ended: NDArray[np.bool_], won: int) -> Any:
    """Returns the cost of calls of models in the episodes that ended; None without calls."""
    if "calls" not in rows:  # results of version 0.1
        return None
    used = Usage(**{name: np.nansum(rows[name][ended]).item() for name in USAGE})
    if not used.calls:
        return None
    steps, episodes = int(rows["length"][ended].sum()), int(ended.sum())
    per = {"step": steps, "episode": episodes, "success": won}
    tokens, usd = used.input_tokens + used.output_tokens, used.price
    return {
        **used.as_json(),
        "unusable_share": used.unusable / used.calls,
        "tokens_per": {unit: tokens / n if n else None for unit, n in per.items()},
        "usd_per": {unit: usd / n if n and usd is not None else None for unit, n in per.items()},
    }
