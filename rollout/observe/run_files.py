"""Reads the files of a run while they are being written; of long files only the ends."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from rollout.errors import ConfigError, RunDirectoryError
from rollout.files import open_file, parse_json, read_document
from rollout.yaml12 import load_yaml

RUNS_DIR = "GAMUT_RUNS_DIR"
"""Environment variable: the folder that contains relative outputs of runs."""

RUN, SUMMARY, METRICS, LOG = "run.json", "summary.json", "metrics.jsonl", "run.log"
LINEAGE = "lineage.jsonl"

_TAIL_BYTES = 1 << 16


def read_about(folder: Path) -> dict[str, Any]:
    """Returns the contents of ``run.json``.

    Raises:
        RunDirectoryError: the file does not exist, or is damaged.
    """
    path = folder / RUN
    try:
        about: Any = parse_json(read_document(path))
        datetime.fromisoformat(about["sessions"][-1]["started"]).timestamp()
        if isinstance(about["run_id"], str) and all(isinstance(s, dict) for s in about["sessions"]):
            return dict(about)
        raise TypeError("run_id or sessions")
    except (FileNotFoundError, NotADirectoryError):
        raise RunDirectoryError(_not_a_run_message(folder)) from None
    except (OSError, ValueError, LookupError, TypeError, OverflowError) as error:
        raise RunDirectoryError(
            f"{path} does not describe a run ({type(error).__name__}: {error}); restore the file, "
            f"or choose another folder"
        ) from error


def _not_a_run_message(folder: Path) -> str:
    expected = f"expected the folder of a run, with a {RUN} in it"
    if not folder.exists():
        near = folder.parent
        while not near.is_dir():
            near = near.parent
        return f"there is no folder {folder}; {expected}.{_nearby_runs(near)}"
    return f"{folder} is no run directory: {expected}.{_nearby_runs(folder)}"


def _nearby_runs(folder: Path) -> str:
    """Returns a sentence with runs nearby, the most recently active first."""
    if not folder.is_dir():
        return ""
    found = [path.parent for pattern in (f"*/{RUN}", f"*/*/{RUN}") for path in folder.glob(pattern)]
    found.sort(key=lambda path: modified(path / METRICS), reverse=True)
    return f" There are {', '.join(map(str, found[:3]))}." if found else ""


def seed_folders(folder: Path) -> dict[str, Path]:
    """Returns the run directory of each seed of a training with ``seeds``, by its name.

    None are there in other runs, or before a seed has begun.
    """
    found = {path.parent.name: path.parent for path in folder.glob(f"runs/seed-*/{RUN}")}
    return dict(sorted(found.items(), key=lambda item: (len(item[0]), item[0])))


def modified(path: Path) -> float:
    """Returns the modification time of a file, Unix seconds; 0 if it does not exist."""
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def tail(path: Path, most: int = _TAIL_BYTES) -> list[bytes]:
    """Returns the complete lines in the last ``most`` bytes of a file, oldest first."""
    try:
        with open_file(path) as file:
            begin = max(0, file.seek(0, os.SEEK_END) - most)
            file.seek(begin)
            lines = file.read().split(b"\n")
    except OSError:
        return []
    return lines[1 if begin else 0 : -1]


def parse(raw: bytes) -> dict[str, Any] | None:
    """Returns the JSON object in a text; None if it is something else or damaged."""
    try:
        line = parse_json(raw)
    except ValueError:
        return None
    return line if isinstance(line, dict) else None


def newest_lines(path: Path) -> tuple[list[dict[str, Any]], int]:
    """Returns the last metrics lines, and the number of damaged ones among them."""
    raw = tail(path)
    lines = [line for line in map(parse, raw) if line is not None]
    return lines, len(raw) - len(lines)


def newest_values(lines: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Returns the newest value of every metric; lines come oldest first."""
    values: dict[str, Any] = {}
    for line in lines:
        values.update((k, v) for k, v in line.items() if not isinstance(v, dict))
    return values


def first_line_of_session(path: Path, session: int) -> dict[str, Any] | None:
    """Returns the first line of a session; None if there is none.

    Found by bisection, since sessions follow one another in the file.
    """
    try:
        with open_file(path) as file:
            low, high = 0, file.seek(0, os.SEEK_END)
            while high - low > _TAIL_BYTES:
                middle = (low + high) // 2
                file.seek(middle)
                file.readline()  # skip the rest of this line
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
    """Returns the JSON object in a file; an empty one if the file does not exist."""
    try:
        return parse(read_document(path)) or {}
    except OSError:
        return {}


@functools.lru_cache(maxsize=256)
def budgets(path: str, stamp: float) -> dict[str, float]:
    """Returns the budgets ``env_steps`` and ``episodes`` of a configuration, if they are set.

    Args:
        path: the file.
        stamp: modification time of the file; the cached result is used only while it is the same.
    """
    try:
        config = load_yaml(Path(path))
    except ConfigError:
        return {}
    config = config if isinstance(config, dict) else {}
    found = {name: config.get(name) for name in ("env_steps", "episodes")}
    return {k: float(v) for k, v in found.items() if type(v) is int and v > 0}


def newest_checkpoint(folder: Path) -> tuple[str, float] | None:
    """Returns the name of the newest checkpoint of a run, and when it was written, Unix seconds."""
    found = [p for p in (folder / "checkpoints").glob("*") if p.name.isdecimal()]
    newest = max(found, key=lambda p: int(p.name), default=None)
    return None if newest is None else (newest.name, modified(newest))
