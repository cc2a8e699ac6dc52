"""Comparison of runs, from what they have recorded: evaluations, or trainings with validations.

Runs are compared only if they played the same states of the same task by the same protocol; what
differs is named.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rollout.data.tables import read_table
from rollout.errors import ConfigError
from rollout.evaluate.findings import plain_estimates
from rollout.evaluate.pairs import Kind, compare_all, pairs_section
from rollout.evaluate.scoreboard import BOUNDS
from rollout.evaluate.statistics import Intervals, hierarchical, one_player
from rollout.observe.run_files import SUMMARY, read_about, read_json
from rollout.reports import render, table
from rollout.sweep.learning import NamedRun, labels_of, named_runs
from rollout.train.history import FILE, History

_EVALUATION, _TRAINING = "an evaluation", "a training with validations"
_TABLE = "episodes.parquet"
_SAME = ("bridge", "bridge_version", "bridge_options", "task", "limit_steps")
_SAME_EVALUATION = ("metric", "seed", "episode_seed", "episodes_per_state")
_SAME_VALIDATION = ("metric", "actions", "episode_seed")
_VALIDATION = "validation"


@dataclass(frozen=True)
class RecordedRun:
    """What a run has recorded.

    Attributes:
        label: its name among the others.
        kind: an evaluation, or a training with validations.
        protocol: what two runs must have in common to be compared.
        sets: the digest of each set of states.
        models: the scores of each model, (seeds, states, episodes), by set and way of acting.
        states: the index of each state, by set.
        folder: its run directory.
        players: the players of each model, by its name; of a training none.
        notes: what a reader has to know, in sentences.
    """

    label: str
    kind: str
    protocol: Mapping[str, Any]
    sets: Mapping[str, str]
    models: Mapping[str, Mapping[Kind, NDArray[np.float64]]]
    states: Mapping[str, Sequence[str]]
    folder: Path
    players: Mapping[str, Sequence[str]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class ComparedRuns:
    """The comparison of some runs.

    Attributes:
        metric: metric of the scores.
        task: the game and the task, in words.
        runs: the runs.
        models: the run of each model, and the name of the model in it.
        scores: a row for each model, set and way of acting, JSON-able.
        rows: the comparisons, as of ``rollout.evaluate.pairs.compare_all``, JSON-able.
        notes: what a reader has to know, in sentences.
    """

    metric: str
    task: str
    runs: Sequence[RecordedRun]
    models: Mapping[str, tuple[RecordedRun, str]]
    scores: Sequence[Mapping[str, Any]]
    rows: Sequence[Mapping[str, Any]]
    notes: Sequence[str] = field(default_factory=tuple)

    def report(self) -> str:
        """Returns the comparison as Markdown."""
        names = ("model", "set", "actions", "seeds", "states", "score")
        return render(
            "comparison",
            task=self.task,
            metric=self.metric,
            scores=table(names, [[row[name] for name in names] for row in self.scores]),
            pairs=pairs_section(self.rows, self.metric),
            notes=self.notes,
        )


def compare_runs(folders: Sequence[Path], *, confidence: float = 0.95) -> ComparedRuns:
    """Compares the models of some runs.

    Args:
        folders: run directories: of evaluations, or of trainings with validations; or one of an
            evaluation with several players.
        confidence: of the intervals; one minus it is the level of the tests.

    Raises:
        RunDirectoryError: a folder contains no run.
        ConfigError: there is nothing to compare, or the runs cannot be compared; the message names
            what differs.
        DatasetError: results are damaged.
    """
    runs = [
        recorded(folder, label) for folder, label in zip(folders, labels_of(folders), strict=True)
    ]
    for other in runs[1:]:
        _require_same(runs[0], other)
    named = _named_models(runs)
    models = {full: run.models[name] for full, (run, name) in named.items()}
    if len(models) < 2:
        raise ConfigError(
            f"{folders[0]} has one model, {next(iter(models))}, and nothing to compare it with; "
            f"name a second run"
        )
    common = [name for name in runs[0].sets if all(name in run.sets for run in runs)]
    notes = [note for run in runs for note in run.notes]
    notes += [
        f"{run.label} has {', '.join(left)}, which others have not; that is left out."
        for run in runs
        if (left := sorted(run.sets.keys() - set(common)))
    ]
    models = {
        name: {kind: scores for kind, scores in own.items() if kind[0] in common}
        for name, own in _of_one_shape(models).items()
    }
    metric = runs[0].protocol["metric"]
    intervals = Intervals(confidence, bounds=BOUNDS[metric])
    states = {name: _known([run.states[name] for run in runs]) for name in common}
    rows = compare_all(models, states, intervals)
    if not rows:
        raise ConfigError(
            f"{' and '.join(run.label for run in runs)} cannot be compared: they choose actions in "
            f"different ways; evaluate both with the same actions"
        )
    task = f"{runs[0].protocol['bridge']} {runs[0].protocol['task']}".strip()
    found = plain_estimates(rows)
    scores = plain_estimates(list(_score_rows(models, intervals)))
    return ComparedRuns(metric, task, runs, named, scores, found, notes)


def _named_models(runs: Sequence[RecordedRun]) -> dict[str, tuple[RecordedRun, str]]:
    """Returns the models of all runs, named after their run where it has but one."""
    found = {}
    for run in runs:
        for name in run.models:
            alone = len(run.models) == 1
            full = name if len(runs) == 1 else run.label if alone else f"{run.label}/{name}"
            found[full] = run, name
    return found


def _of_one_shape(
    models: Mapping[str, Mapping[Kind, NDArray[np.float64]]],
) -> Mapping[str, Mapping[Kind, NDArray[np.float64]]]:
    """Returns means over the states, unless all models have the scores of the states."""
    shapes = {
        s.shape[1:] for own in models.values() for kind, s in own.items() if kind[0] == _VALIDATION
    }
    if len(shapes) < 2:
        return models
    return {
        name: {kind: np.nanmean(s, axis=(1, 2), keepdims=True) for kind, s in own.items()}
        for name, own in models.items()
    }


def _known(states: Sequence[Sequence[str]]) -> list[str]:
    """Returns the indices of the states of a set, from the runs in which they have a result."""
    longest = max(states, key=len)
    return [
        next((own[i] for own in states if i < len(own) and own[i]), f"state {i}")
        for i in range(len(longest))
    ]


def _score_rows(
    models: Mapping[str, Mapping[Kind, NDArray[np.float64]]], intervals: Intervals
) -> Iterator[dict[str, Any]]:
    for name, own in models.items():
        for (set_name, actions), scores in own.items():
            seeds, states, repeats = scores.shape
            if seeds == 1:
                found = one_player(scores[0], intervals)
            else:
                kind = "crossed" if states > 1 else "fixed"
                found = hierarchical(scores, intervals, states=kind)
            yield {
                "model": name,
                "set": set_name,
                "actions": actions,
                "seeds": seeds,
                "states": f"{states} x {repeats}",
                "score": found.text(),
                "estimate": found,
            }


def _require_same(run: RecordedRun, other: RecordedRun) -> None:
    """Raises ConfigError if two runs cannot be compared."""
    both = f"{run.label} and {other.label} cannot be compared"
    if run.kind != other.kind:
        raise ConfigError(
            f"{both}: {run.label} is {run.kind}, {other.label} is {other.kind}; evaluate both by "
            f"gamut evaluate --player RUN, and compare RUN/evaluation"
        )
    ours, theirs = dict(_flat(run.protocol)), dict(_flat(other.protocol))
    wrong = [key for key in {**ours, **theirs} if ours.get(key) != theirs.get(key)]
    if wrong:
        said = "; ".join(
            f"{key} is {ours.get(key, 'not set')!r} and {theirs.get(key, 'not set')!r}"
            for key in wrong[:3]
        )
        raise ConfigError(f"{both}: {said}; evaluate both in the same way")
    common = run.sets.keys() & other.sets.keys()
    if not common:
        raise ConfigError(
            f"{both}: they have no set of states in common ({', '.join(run.sets)} and "
            f"{', '.join(other.sets)}); evaluate both on the same"
        )
    for name in sorted(common):
        if run.sets[name] != other.sets[name]:
            same = f"sets.{name}, or their trainings the same state_set"
            if run.kind == _TRAINING:
                same = "state_set and validation.states"
            sizes = len(run.states[name]), len(other.states[name])
            raise ConfigError(
                f"{both}: the states of {name} are others ({sizes[0]} states with digest "
                f"{run.sets[name]}, {sizes[1]} with {other.sets[name]}); give both the same {same}"
            )


def _flat(data: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in data.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def recorded(folder: Path, label: str) -> RecordedRun:
    """Returns what a run has recorded.

    Args:
        folder: its run directory.
        label: its name among the others.

    Raises:
        RunDirectoryError: the folder contains no run.
        ConfigError: the run has no scores of states.
        DatasetError: results are damaged.
    """
    kind = read_about(folder).get("kind")
    if kind == "EvaluateConfig":
        return _evaluation(folder, label)
    [run] = named_runs([folder])
    return _training(run, label)


def _evaluation(folder: Path, label: str) -> RecordedRun:
    about = read_json(folder / SUMMARY)
    protocol = _protocol(about)
    if not protocol.get("sets"):
        raise ConfigError(
            f"{folder} has no {SUMMARY} of its results yet; wait for it, or continue it with "
            f"--resume"
        )
    rows = read_table(folder / _TABLE)
    repeats, sets = int(protocol["episodes_per_state"]), protocol["sets"]
    sizes = {name: int(each["size"]) for name, each in sets.items()}
    scores: dict[tuple[str, str, str], NDArray[np.float64]] = {}
    states = {name: np.full(size, "", object) for name, size in sizes.items()}
    for player in protocol["players"]:
        for set_name, size in sizes.items():
            for actions in protocol["actions"]:
                mine = (rows["player"] == player) & (rows["set"] == set_name)
                mine &= rows["actions"] == actions
                own = scores[player, set_name, actions] = np.full((size, repeats), np.nan)
                own[rows["position"][mine], rows["repeat"][mine]] = rows["score"][mine]
                states[set_name][rows["position"][mine]] = rows["state"][mine]
    groups = {name: list(players) for name, players in (protocol.get("groups") or {}).items()}
    grouped = {player for players in groups.values() for player in players}
    members = {**groups, **{p: [p] for p in protocol["players"] if p not in grouped}}
    models = {
        name: {
            (set_name, actions): np.stack([scores[p, set_name, actions] for p in players])
            for set_name in sizes
            for actions in protocol["actions"]
        }
        for name, players in members.items()
    }
    missing = (about.get("results") or {}).get("missing")
    notes = (f"{label} is not complete: {missing} episodes are missing.",) if missing else ()
    return RecordedRun(
        label,
        _EVALUATION,
        {key: protocol.get(key) for key in (*_SAME, *_SAME_EVALUATION)},
        {name: str(each["digest"]) for name, each in sets.items()},
        models,
        {name: each.tolist() for name, each in states.items()},
        folder,
        members,
        notes,
    )


def _protocol(summary: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the protocol of a run; nothing if its summary is damaged."""
    found = summary.get("protocol")
    return found if isinstance(found, Mapping) else {}


def _training(run: NamedRun, label: str) -> RecordedRun:
    """Returns the newest validation of every seed of a training."""
    found, missing = [], []
    for name, folder in run.seeds.items():
        last = History(folder / "checkpoints").last
        protocol = _protocol(read_json(folder / SUMMARY))
        if last is None or last["score"] is None or not protocol.get(_VALIDATION):
            missing.append(name)
        else:
            found.append((last, protocol))
    if not found:
        hint = "set validation.every in training, or evaluate it by gamut evaluate --player RUN"
        if (run.folder / "evaluation" / _TABLE).exists():
            hint = f"compare its evaluation, {run.folder / 'evaluation'}"
        raise ConfigError(
            f"{run.folder} has no scores to compare: expected an evaluation, or a training that "
            f"ended with a validation (checkpoints/{FILE}); {hint}"
        )
    protocol = found[0][1]
    about = protocol[_VALIDATION]
    steps = sorted({last["env_steps"] for last, _ in found})
    notes = [f"{label}: the newest validation, after {', '.join(f'{n:,}' for n in steps)} steps."]
    status = read_json(run.folder / SUMMARY).get("status", "running, or was killed")
    if status != "done":
        notes.append(f"{label} is not complete: it is {status}.")
    if missing and run.several:
        notes.append(f"{label}: {', '.join(missing)} has no validation and is left out.")
    size = int(about["state_set"]["size"])
    whole = [last.get("scores") for last, _ in found]
    if all(scores is not None and len(scores) == size for scores in whole):
        values = np.array(whole, np.float64)[:, :, None]
    else:
        values = np.array([last["score"] for last, _ in found], np.float64)[:, None, None]
        notes.append(f"{label} has not recorded its scores by state, so only means are compared.")
    same = {key: protocol.get(key) for key in _SAME}
    return RecordedRun(
        label,
        _TRAINING,
        {**same, **{key: about.get(key) for key in _SAME_VALIDATION}},
        {_VALIDATION: str(about["state_set"]["digest"])},
        {label: {(_VALIDATION, about["actions"]): values}},
        {_VALIDATION: [f"state {i}" for i in range(size)]},
        run.folder,
        notes=tuple(notes),
    )
