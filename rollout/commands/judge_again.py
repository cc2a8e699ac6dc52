"""Judges recorded episodes again by the evaluator of their task, without the game.

    gamut judge --again runs/first

RUN_DIR is a run that recorded a dataset with the details of its frames. Each episode is shown to
the evaluator that the task has now, which may have changed since; what was recorded stays as it is.
RUN_DIR/judged_again.md has the results by category with intervals, the classes of failures, and
what has changed; judged_again.json has each episode.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from rollout.api import Frame, Outcome, Start, Task, notes_of
from rollout.cli import fail
from rollout.config import BridgeConfig, make_config
from rollout.configuration.document import read
from rollout.data import Dataset
from rollout.data.refs import EpisodeRef
from rollout.data.schema import DETAILS
from rollout.errors import ConfigError, InputError, named
from rollout.evaluate.notes import notes_sections
from rollout.evaluate.statistics import wilson
from rollout.files import write_atomically
from rollout.reports import table
from rollout.tasks import bridge_and_task

TELEMETRY = "extra/companion/telemetry"
_SUMS = ("calls", "seconds", "input_tokens", "output_tokens")
RESULT, REPORT = "judged_again.json", "judged_again.md"


def main() -> int:
    """Runs the command with the arguments of the process; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="gamut judge", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--again", metavar="RUN_DIR", type=Path, required=True)
    run = parser.parse_args().again.expanduser()
    try:
        found = judge_again(run)
    except InputError as error:
        return fail(error)
    write_atomically(run / RESULT, json.dumps(found, indent=1) + "\n")
    report = write_report(found)
    write_atomically(run / REPORT, report)
    sys.stdout.write(report)
    return 0


def judge_again(run: Path) -> list[dict[str, Any]]:
    """Returns the results of the recorded episodes of a run, one map each.

    Args:
        run: its directory, with ``config.yaml`` and a dataset.

    Raises:
        ConfigError: it has no details, or its evaluator reads signals of the first frame, which
            are not recorded.
        DatasetError: there is no dataset, or it is damaged.
    """
    path = run / "config.yaml"
    if not path.is_file():
        raise ConfigError(f"--again: expected the directory of a run with config.yaml, got {run}")
    config = read(path).data
    with named(str(path)):
        bridge_config = make_config(BridgeConfig, config["bridge"])
        _, _, task = bridge_and_task(bridge_config, config.get("task", ""))
    if task.evaluator.requires:
        raise ConfigError(
            f"task {task.name!r} is judged by signals ({', '.join(sorted(task.evaluator.requires))}"
            f"), and those of the first frame are not recorded; only evaluators that read details "
            f"can judge again"
        )
    with closing(Dataset(run)) as dataset:
        if DETAILS not in dataset.columns:
            raise ConfigError(f"{run}: no details were recorded; set recording.details=true")
        return [_judged(dataset, ref, task) for ref in dataset.episodes()]


def _judged(dataset: Dataset, ref: EpisodeRef, task: Task) -> dict[str, Any]:
    evaluator = task.evaluator.build(1)
    start = Start(task.state_space.state(ref.state), ref.seed, ref.episode)
    frames = _frames(dataset, ref)
    evaluator.reset([0], [start], next(frames))
    outcome, progress = Outcome.RUNNING, float("nan")
    for frame in frames:
        verdict = evaluator.judge({}, frame)
        outcome, progress = Outcome(int(verdict.outcome[0])), float(verdict.progress[0])
        if outcome != Outcome.RUNNING:
            break
    return {
        "episode": ref.episode,
        "category": _category(task, start),
        "before": ref.outcome.name.lower(),
        "now": outcome.name.lower(),
        "progress": None if np.isnan(progress) else progress,
        **notes_of(evaluator, 0),
        **_telemetry(dataset, ref),
    }


def _telemetry(dataset: Dataset, ref: EpisodeRef) -> dict[str, Any]:
    """Returns what a companion's telemetry says: calls by role, hits of preferences."""
    if TELEMETRY not in dataset.columns:
        return {}
    roles: dict[str, Counter[str]] = {}
    hits: Counter[str] = Counter()
    for step in dataset.read(ref, [TELEMETRY]).columns[TELEMETRY]:
        for entry in step if isinstance(step, list) else [step or {}]:
            for event in entry.get("events") or ():
                if event.get("kind") == "asked":
                    mine = roles.setdefault(str(event.get("role")), Counter())
                    mine.update({name: event.get(name) or 0 for name in _SUMS})
                elif event.get("kind") == "preference":
                    hits["hits" if event.get("hit") else "misses"] += 1
    return {"roles": roles, "preferences": hits}


def _category(task: Task, start: Start) -> str:
    labels = task.metadata.get("table")
    if labels:
        return str(labels["rows"].get(start.state.values[labels["factor"]], ""))
    return str(task.metadata.get("category", task.name))


def _frames(dataset: Dataset, ref: EpisodeRef) -> Iterator[Frame]:
    """Yields the frames of an episode with their details alone."""
    episode = dataset.read(ref, [DETAILS])
    shown = [*episode.columns[DETAILS], episode.final_details]
    ended = ref.end == "terminated" and ref.outcome in (Outcome.RUNNING, Outcome.FAILURE)
    for step, details in enumerate(shown):
        last = step == len(shown) - 1
        over, cut = np.array([last and ended]), np.array([last and ref.end == "truncated"])
        yield Frame({}, {}, over, cut, np.array([step], np.int64), [details or {}])


def write_report(found: Sequence[Mapping[str, Any]]) -> str:
    """Returns the report of episodes that were judged again, in Markdown."""
    rows = []
    for category in (*dict.fromkeys(each["category"] for each in found), "all"):
        mine = [each for each in found if category in (each["category"], "all")]
        now = Counter(each["now"] for each in mine)
        valid = len(mine) - now["invalid"]
        share = wilson(now["success"], valid).text() if valid else "-"
        rows.append([category, f"{now['success']} / {valid}", share, now["invalid"]])
    changed = [each for each in found if each["before"] != each["now"]]
    parts = [
        "# Judged again\n",
        f"{len(found)} recorded episodes, judged by the evaluator of their task as it is now. "
        "Invalid runs broke the policy and are not among the attempted.\n",
        table(["category", "success / attempted", "share [95 %]", "invalid"], rows) + "\n",
    ]
    parts.append(notes_sections(found))
    if changed:
        listed = [[each["episode"], each["before"], each["now"]] for each in changed]
        parts.append("## Changed\n\n" + table(["episode", "before", "now"], listed) + "\n")
    return "\n".join(parts)
