"""What must hold after every fault, and the row of the table that results.

- The run ended with status 0, or with 3 and everything saved.
- The dataset contains as many finished episodes as the run reports, each once; after status 0
  exactly those of the schedule.
- ``scripts/dataset.py doctor`` finds nothing.
- Ten seconds after the end no process or folder of the run's games is left; where a session was
  killed with its Ray, no process ten seconds after that.
- The log states the cause.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.faults.runs import ROOT, Run, pause
from rollout.data import Dataset
from rollout.data.tables import read_table
from rollout.host.processes import OWNER_FILE

LIMIT_S = 10.0  # in which leftovers may disappear


@dataclass
class Row:
    """A row of the table.

    Attributes:
        fault: its name.
        injected: the fault, how often, for how long.
        held: the counts that were checked.
        ended: exit status of each session.
        wrong: the conditions that did not hold.
    """

    fault: str
    injected: str
    held: str
    ended: str
    wrong: list[str] = field(default_factory=list)

    def cells(self) -> list[str]:
        """Returns the cells of the table."""
        verdict = "**did not hold**: " + "; ".join(self.wrong) if self.wrong else "all"
        return [self.fault, self.injected, self.held, self.ended, verdict]


def checked(
    run: Run,
    fault: str,
    injected: str,
    *,
    cause: str,
    note: str = "",
    before: list[str] | None = None,
) -> Row:
    """Returns the row of a run that has ended.

    Args:
        run: the run.
        fault: name of the row.
        injected: the fault.
        cause: regular expression that some line of its log must match; empty where the run should
            notice nothing.
        note: further counts.
        before: what ``left_after`` found when its driver was killed.
    """
    wrong = [f"left after the kill: {each}" for each in before or ()]
    status = run.sessions[-1]
    if status not in (0, 3):
        wrong.append(f"status {status}: {run.tail()}")
    counted = _evaluation(run, wrong) if run.script == "evaluate" else _dataset(run, wrong)
    told = _telling(run, cause) if cause else []
    if cause and not told:
        wrong.append(f"no line of the log has {cause!r}")
    left = leftovers(run)
    wrong += [f"left: {each}" for each in left]
    lost = Counter(re.findall(r"episode lost in (\w+)", run.log()))
    parts = [counted]
    if lost:
        parts.append("lost and played again: " + ", ".join(f"{n} in {k}" for k, n in lost.items()))
    parts += [note] if note else []
    if told:
        parts.append(f"told {len(told)} times")
    ended = ", then ".join(_status(each) for each in run.sessions)
    return Row(fault, injected, "; ".join(parts), ended, wrong)


def _status(number: int) -> str:
    return f"killed by signal {-number}" if number < 0 else f"status {number}"


def _telling(run: Run, cause: str) -> list[str]:
    """Lines of the log that state a cause; if there are none, what else was logged."""
    for text in (run.log(), run.said.read_text(errors="replace")):
        if told := [line for line in text.splitlines() if re.search(cause, line)]:
            return told
    return []


def _dataset(run: Run, wrong: list[str]) -> str:
    """Compares the dataset with what the run reports."""
    folder = run.output / "dataset"
    with Dataset(folder) as dataset:
        stored = [ref.episode for ref in dataset.episodes()]
    summary = run.summary()
    reported = summary["results"]["episodes"]
    metrics = (run.output / "metrics.jsonl").read_text().splitlines()
    measured = json.loads(metrics[-1])["episodes"] if metrics else reported
    twice = len(stored) - len(set(stored))
    if not len(stored) == reported == measured:
        wrong.append(f"{len(stored)} stored, {reported} reported, {measured} measured")
    if twice:
        wrong.append(f"{twice} episodes twice")
    wanted = set(range(run.settings["episodes"]))
    missing = wanted - set(stored)
    if set(stored) - wanted:
        wrong.append(f"not of the schedule: {sorted(set(stored) - wanted)[:5]}")
    if missing and run.sessions[-1] == 0:
        wrong.append(f"missing: {sorted(missing)[:5]}")
    if doctor(folder) != 0:
        wrong.append("doctor has findings")
    rest = f", {len(missing)} given up" if missing else ""
    return f"{len(stored)} of {len(wanted)} episodes stored and reported, each once{rest}"


def doctor(folder: Path) -> int:
    """Returns the status of ``scripts/dataset.py doctor``."""
    command = [sys.executable, "scripts/dataset.py", "doctor", str(folder)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, check=False).returncode


def _evaluation(run: Run, wrong: list[str]) -> str:
    """Compares the table of an evaluation with what the run reports."""
    table = read_table(run.output / "episodes.parquet")
    keys = [str(each) for each in zip(*(table[k] for k in table if k in _KEYS), strict=True)]
    reported, missing = (run.summary()["results"][k] for k in ("episodes", "missing"))
    if len(keys) != reported or len(set(keys)) != len(keys):
        wrong.append(f"{len(keys)} stored, {len(set(keys))} different, {reported} reported")
    if missing:
        wrong.append(f"missing: {missing}")
    return f"{len(keys)} episodes in the table and reported, each once"


_KEYS = ("player", "set", "actions", "state", "repeat")


def leftovers(run: Run) -> list[str]:
    """Returns what is left of a run's games after a while."""
    end = time.monotonic() + LIMIT_S
    while (left := _left(run)) and time.monotonic() < end:
        pause(0.2)
    return left


def left_after(run: Run) -> list[str]:
    """Returns what is left ten seconds after a driver was killed."""
    return leftovers(run)


def _left(run: Run) -> list[str]:
    # Without folder names of this machine, because the table is published.
    here = f"{Path.cwd()}/"
    found = [f"process: {each.command.replace(here, '')}" for each in run.marked()]
    found += [f"folder {path.parent}" for path in run.temporary.glob(f"gamut-*/{OWNER_FILE}")]
    return found
