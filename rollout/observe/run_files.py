"""Reading the files of a run from outside while they are being written, of long ones the ends."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml

from rollout.errors import RunDirectoryError
from rollout.observe.metrics import Scalar

RUN, SUMMARY, METRICS, LOG = "run.json", "summary.json", "metrics.jsonl", "run.log"

_TAIL = 1 << 16


def read_about(folder: Path) -> dict[str, Any]:
    """Returns what ``run.json`` says.

    Raises:
        RunDirectoryError: there is none, or it is damaged.
    """
    path = folder / RUN
    try:
        about: Any = json.loads(path.read_text(encoding="utf-8"))
        datetime.fromisoformat(about["sessions"][-1]["started"])
        str(about["run_id"])
        return dict(about)
    except (FileNotFoundError, NotADirectoryError):
        raise RunDirectoryError(_no_run(folder)) from None
    except (OSError, ValueError, KeyError, IndexError, TypeError) as error:
        raise RunDirectoryError(
            f"{path} does not describe a run ({type(error).__name__}: {error}); name another "
            f"folder, or restore the file"
        ) from error


def _no_run(folder: Path) -> str:
    expected = f"expected the folder of a run, with a {RUN} in it"
    if not folder.exists():
        near = folder.parent
        while not near.is_dir():
            near = near.parent
        return f"there is no folder {folder}; {expected}.{_runs_below(near)}"
    return f"{folder} is no run directory: {expected}.{_runs_below(folder)}"


def _runs_below(folder: Path) -> str:
    """Names runs nearby, the ones that were heard of last first."""
    if not folder.is_dir():
        return ""
    found = [path.parent for pattern in (f"*/{RUN}", f"*/*/{RUN}") for path in folder.glob(pattern)]
    found.sort(key=lambda path: modified(path / METRICS), reverse=True)
    return f" There are {', '.join(map(str, found[:3]))}." if found else ""


def modified(path: Path) -> float:
    """Returns when a file was modified, Unix seconds; 0 if it is not there."""
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def tail(path: Path, most: int = _TAIL) -> list[bytes]:
    """Returns the whole lines in the last ``most`` bytes of a file, oldest first."""
    try:
        with path.open("rb") as file:
            begin = max(0, file.seek(0, os.SEEK_END) - most)
            file.seek(begin)
            lines = file.read().split(b"\n")
    except OSError:
        return []
    return lines[1 if begin else 0 : -1]


def parse(raw: bytes) -> dict[str, Any] | None:
    """Returns the JSON object in a text; None if it is something else, or damaged."""
    try:
        line = json.loads(raw)
    except ValueError:
        return None
    return line if isinstance(line, dict) else None


def newest_lines(path: Path) -> tuple[list[dict[str, Any]], int]:
    """Returns the last lines of metrics, and how many more there are that are damaged."""
    raw = tail(path)
    lines = [line for line in map(parse, raw) if line is not None]
    return lines, len(raw) - len(lines)


def newest_values(lines: Iterable[Mapping[str, Any]]) -> dict[str, Scalar]:
    """Returns the newest value of every name in lines of metrics, oldest line first."""
    values: dict[str, Scalar] = {}
    for line in lines:
        values.update((k, v) for k, v in line.items() if not isinstance(v, dict))
    return values


def first_of(path: Path, session: int) -> dict[str, Any] | None:
    """Returns the first line of a session; None if there is none.

    It is found by bisection, for sessions follow one another.
    """
    try:
        with path.open("rb") as file:
            low, high = 0, file.seek(0, os.SEEK_END)
            while high - low > _TAIL:
                middle = (low + high) // 2
                file.seek(middle)
                file.readline()  # what is left of the line there
                line = parse(file.readline())
                if line is None or line.get("resume_count", 0) >= session:
                    high = middle
                else:
                    low = middle
            file.seek(low)
            for raw in file:
                line = parse(raw) if raw.endswith(b"\n") else None
                if line is not None and line.get("resume_count", 0) == session:
                    return line
    except OSError:
        return None
    return None


def read_json(path: Path) -> dict[str, Any]:
    """Returns the JSON object in a file; an empty one if there is none."""
    try:
        return parse(path.read_bytes()) or {}
    except OSError:
        return {}


@functools.lru_cache(maxsize=256)
def budgets(path: str, stamp: float) -> dict[str, float]:
    """Returns the budgets of a configuration, ``env_steps`` and ``episodes`` as far as it has them.

    Args:
        path: the file.
        stamp: when it was modified; another one has it read anew.
    """
    try:
        config = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError):
        return {}
    config = config if isinstance(config, dict) else {}
    found = {name: config.get(name) for name in ("env_steps", "episodes")}
    return {k: float(v) for k, v in found.items() if type(v) is int and v > 0}


def newest_checkpoint(folder: Path) -> tuple[str, float] | None:
    """Returns the name of the newest checkpoint of a run, and when it was written, Unix seconds."""
    found = [p for p in (folder / "checkpoints").glob("*") if p.name.isdigit()]
    newest = max(found, key=lambda p: int(p.name), default=None)
    return None if newest is None else (newest.name, modified(newest))
