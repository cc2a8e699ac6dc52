"""The findings of an evaluation: estimates for every leg, as data and as a short report."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rollout.data.tables import Table
from rollout.evaluate.legs import TEST, TRAIN, Leg, Legs
from rollout.evaluate.scoreboard import BOUNDS, Metric, rows_of_leg
from rollout.evaluate.statistics import (
    Estimate,
    Intervals,
    difference,
    gap,
    hierarchical,
    one_player,
    wilson,
)

_Scores = NDArray[np.float64]


class Findings:
    """The estimates of an evaluation.

    The interval of a single player covers other states, for this player as it is, and says nothing
    about other training runs. For players that are training seeds of one model, it covers both.

    Args:
        table: the results, with a column ``score``.
        legs: the legs that were played.
        groups: the players that are training seeds of one model, by the model's name.
        metric: what ``score`` contains; intervals of shares stay within 0 and 1.
        confidence: confidence level of the intervals.
    """

    def __init__(
        self,
        table: Table,
        legs: Legs,
        groups: Mapping[str, Sequence[str]],
        *,
        metric: Metric,
        confidence: float,
    ) -> None:
        self._intervals = Intervals(confidence, bounds=BOUNDS[metric])
        self._legs = legs
        self._rows: dict[str, dict[str, NDArray[Any]]] = {}
        for leg in legs.legs:
            mine = rows_of_leg(table, leg)
            self._rows[leg.name] = {name: column[mine] for name, column in table.items()}
        self._scores = {leg.name: _scores(self._rows[leg.name], leg) for leg in legs.legs}
        players = list(dict.fromkeys(leg.player for leg in legs.legs))
        grouped = {player for members in groups.values() for player in members}
        single = {player: [player] for player in players if player not in grouped}
        self._groups = dict(groups)
        self._models: dict[str, Sequence[str]] = {**groups, **single}
        kinds = dict.fromkeys((leg.set_name, leg.actions) for leg in legs.legs)
        self._kinds = list(kinds)

    def data(self) -> dict[str, Any]:
        """Returns everything as JSON-able data; NaN becomes None."""
        found = {
            "legs": [self._leg(leg) for leg in self._legs.legs],
            "groups": self._of_groups(),
            "gaps": self._gaps(),
            "differences": self._differences(),
        }
        plain: dict[str, Any] = _plain(found)
        return plain

    def _leg(self, leg: Leg) -> dict[str, Any]:
        rows, scores = self._rows[leg.name], self._scores[leg.name]
        won = rows["success"][~np.isnan(rows["success"])]
        trials = len(won)
        success = None
        if trials:
            success = wilson(int(won.sum()), trials, confidence=self._intervals.confidence)
        return {
            **_about(leg),
            "episodes": leg.episodes,
            "finished": int(np.count_nonzero(rows["end"] != "lost")),
            "given_up": int(np.count_nonzero(rows["end"] == "lost")),
            "attempts_lost": int((rows["attempts"] - (rows["end"] != "lost")).sum()),
            "ends": dict(Counter(rows["end"].tolist())),
            "score": one_player(scores, self._intervals),
            "score_of_other_training_runs": self._mean([scores], leg),
            "success": success,
            "return": _mean(rows["total_reward"]),
            "progress": _mean(rows["progress"]),
            "length": _mean(rows["length"][rows["end"] != "lost"]),
        }

    def _mean(self, scores: Sequence[_Scores], leg: Leg) -> Estimate:
        # A set that is the whole space is not a sample: there are no other states.
        whole = leg.states.size == self._legs.space.size
        states = "fixed" if whole else "crossed"
        return hierarchical(np.stack(scores), self._intervals, states=states)

    def _of_groups(self) -> list[dict[str, Any]]:
        found = []
        for (name, players), (set_name, actions) in product(self._groups.items(), self._kinds):
            leg = self._find(players[0], set_name, actions)
            scores = [self._of(player, set_name, actions) for player in players]
            about = {"group": name, "players": list(players), "set": set_name, "actions": actions}
            found.append({**about, "score": self._mean(scores, leg)})
        return found

    def _gaps(self) -> list[dict[str, Any]]:
        """Train minus test, for every model with sets of these names."""
        found = []
        for (name, players), (set_name, actions) in product(self._models.items(), self._kinds):
            if set_name != TRAIN or (TEST, actions) not in self._kinds:
                continue
            train, test = (
                np.stack([self._of(player, set_, actions) for player in players])
                for set_ in (TRAIN, TEST)
            )
            # All players of a job play the same states, including those of the set "train".
            estimate = gap(train, test, self._intervals, train_states="crossed")
            found.append({"model": name, "actions": actions, "gap": estimate})
        return found

    def _differences(self) -> list[dict[str, Any]]:
        """Every model minus the first one, paired by state and seed."""
        (first, base), *others = self._models.items()
        found = []
        for (name, players), (set_name, actions) in product(others, self._kinds):
            a, b = (
                np.stack([self._of(player, set_name, actions) for player in members])
                for members in (players, base)
            )
            if len(a) == len(b) == 1:
                estimate = one_player(a[0] - b[0], self._intervals.of_differences)
            elif len(b) in (1, len(a)):
                estimate = difference(a, b, self._intervals)
            else:
                continue  # the training seeds of the two models have no pairs
            about = {"model": name, "minus": first, "set": set_name, "actions": actions}
            found.append({**about, "difference": estimate})
        return found

    def _of(self, player: str, set_name: str, actions: str) -> _Scores:
        return self._scores[self._find(player, set_name, actions).name]

    def _find(self, player: str, set_name: str, actions: str) -> Leg:
        for leg in self._legs.legs:
            if (leg.player, leg.set_name, leg.actions) == (player, set_name, actions):
                return leg
        raise KeyError(f"no leg {player}/{set_name}/{actions}")


def _about(leg: Leg) -> dict[str, Any]:
    return {
        "player": leg.player,
        "set": leg.set_name,
        "actions": leg.actions,
        "states": leg.states.size,
        "repeats": leg.repeats,
        "set_digest": leg.states.digest,
    }


def _scores(rows: Table, leg: Leg) -> _Scores:
    """The scores of a leg, (states, repeats); NaN where an episode has none."""
    scores = np.full((leg.states.size, leg.repeats), np.nan)
    scores[rows["position"], rows["repeat"]] = rows["score"]
    return scores


def _mean(values: NDArray[Any]) -> float | None:
    told = values[~np.isnan(values)]
    return float(told.mean()) if len(told) else None


def _plain(value: Any) -> Any:
    if isinstance(value, Estimate):
        return _plain({**asdict(value), "text": value.text()})
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def write_report(summary: Mapping[str, Any]) -> str:
    """Returns a short Markdown report of the contents of ``summary.json``."""
    found, protocol = summary["findings"], summary["protocol"]
    metric = protocol["metric"]
    missing = summary["results"]["missing"]
    lines = [f"# Evaluation on {protocol['bridge']} {protocol['task']}", ""]
    if missing:
        lines += [f"**Not complete: {missing} episodes are missing; continue with --resume.**", ""]
    lines += [
        f"Score: {metric}. Intervals: {protocol['confidence']:.0%}, for this player on other "
        f"states; not for other training runs.",
        "",
        *_table(
            ("player", "set", "actions", "states", "score", "success", "return", "length", "lost"),
            [
                (
                    leg["player"],
                    leg["set"],
                    leg["actions"],
                    f"{leg['states']} x {leg['repeats']}",
                    leg["score"]["text"],
                    leg["success"]["text"] if leg["success"] else "-",
                    _number(leg["return"]),
                    _number(leg["length"]),
                    f"{leg['given_up']} given up, {leg['attempts_lost']} lost attempts",
                )
                for leg in found["legs"]
            ],
        ),
    ]
    for title, key, columns in (
        ("Models, over their training seeds", "groups", ("group", "set", "actions", "score")),
        ("Generalization gap: train minus test", "gaps", ("model", "actions", "gap")),
        (
            "Differences on the same states and seeds",
            "differences",
            ("model", "minus", "set", "actions", "difference"),
        ),
    ):
        if found[key]:
            rows = [tuple(_cell(row[column]) for column in columns) for row in found[key]]
            lines += ["", f"## {title}", "", *_table(columns, rows)]
    lines += _lost(summary["results"]) + _films(summary["films"])
    lines += ["", "## Protocol", ""]
    lines += [f"- {key}: `{json.dumps(value)}`" for key, value in protocol.items()]
    return "\n".join(lines) + "\n"


def _lost(results: Mapping[str, Any]) -> list[str]:
    given_up = results["given_up"]
    if not given_up:
        return []
    columns = ("player", "set", "actions", "position", "state", "episode_seed", "attempts")
    rows = [tuple(str(entry[column]) for column in columns) for entry in given_up]
    return ["", "## Episodes that were given up", "", *_table(columns, rows)]


def _films(films: Sequence[Mapping[str, Any]]) -> list[str]:
    columns = ("leg", "rank", "state", "score", "filmed")
    rows = [
        (
            film["leg"],
            f"[{film['rank']}](videos/{film['file']})",
            film["state"],
            _number(film["score"]),
            "the same" if film["same"] else f"another run: {_number(film['replayed'])}",
        )
        for film in films
    ]
    return ["", "## Films", "", *_table(columns, rows)] if rows else []


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    bars = ["|".join([" --- "] * len(columns))]
    body = [" | ".join(cell.replace("|", "\\|") for cell in row) for row in rows]
    return [f"| {' | '.join(columns)} |", f"|{bars[0]}|", *(f"| {row} |" for row in body)]


def _cell(value: Any) -> str:
    if isinstance(value, Mapping) and "text" in value:
        return str(value["text"])
    return str(value)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"
