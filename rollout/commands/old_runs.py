"""Finds and removes the folders of old runs: ``gamut clean --older 30d``."""

from __future__ import annotations

import os
import re
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from rollout.at_address import is_copied
from rollout.data.sizes import in_units
from rollout.errors import ConfigError, RunDirectoryError
from rollout.files import live_holder_of, locked
from rollout.observe.run_files import RUN, RUNS_DIR, SUMMARY, read_about, read_json
from rollout.run_directory import LOCK, address_of, outputs_folder
from rollout.signals import tell

_SECONDS = {"h": 3600.0, "d": 86400.0, "w": 7 * 86400.0}
_LOCKS = (LOCK, "dataset.lock")


@dataclass(frozen=True)
class OldRun:
    """A run directory that may be removed.

    Attributes:
        path: its path.
        nbytes: its size.
        age_s: seconds since one of its files was written.
        state: ``done`` or another status of its summary; ``killed`` without one.
        kept: why it is not removed; empty if it may be.
    """

    path: Path
    nbytes: int
    age_s: float
    state: str
    kept: str = ""


def seconds_of(text: str) -> float:
    """Returns the seconds of an age such as ``30d``, ``12h`` or ``2w``.

    Raises:
        ConfigError: it is none.
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([hdw])", text)
    if found is None:
        raise ConfigError(f"--older {text}: expected a number and h, d or w, e.g. 30d")
    return float(found[1]) * _SECONDS[found[2]]


def remove_old_runs(folder: Path | None, older_s: float, *, dry_run: bool, yes: bool) -> None:
    """Lists the runs in which nothing was written for a time, and removes them.

    Args:
        folder: where to look; None for ``GAMUT_RUNS_DIR``, or the current directory, and the cache
            of runs whose outputs are addresses.
        older_s: the time, in seconds.
        dry_run: only list them.
        yes: do not ask.

    Raises:
        ConfigError: there is no such folder, or no terminal to ask in.
    """
    places = [folder or Path(os.environ.get(RUNS_DIR) or ".").expanduser()]
    if folder is None and outputs_folder().is_dir():
        places.append(outputs_folder())
    if not places[0].is_dir():
        raise ConfigError(f"there is no folder {places[0]}; name one that has runs in it")
    # Resolved: neither "." nor a link to a run can be renamed.
    found = [run for place in places for run in old_runs(place.resolve(), older_s)]
    old = [run for run in found if not run.kept]
    for run in found:
        size, days = in_units(run.nbytes), run.age_s / _SECONDS["d"]
        tell(
            f"{size:>8}  {days:5.0f} days  {run.state:<11}  {run.path}"
            + (f"  (kept: {run.kept})" if run.kept else "")
        )
    if not old:
        tell("no run is that old")
        return
    size = in_units(sum(run.nbytes for run in old))
    what = f"{len(old)} {'run' if len(old) == 1 else 'runs'}, {size}"
    if dry_run:
        tell(f"would remove {what}")
        return
    if not yes and not _agreed(what):
        tell("nothing was removed")
        return
    removed = sum(_remove(run, older_s) for run in old)
    tell(f"removed {removed} of {what}")


def old_runs(place: Path, older_s: float) -> Iterator[OldRun]:
    """Yields the runs in a folder, or the one that it is, that are old.

    A run inside another one, such as those of a sweep, is part of it. Links are not followed.
    """
    for text, within, names in os.walk(place):
        folder = Path(text)
        within.sort()
        if RUN not in names:
            continue
        within.clear()
        try:
            read_about(folder)
        except RunDirectoryError:
            continue  # some other file of that name
        nbytes, newest = _measured(folder)
        age_s = time.time() - newest
        if age_s >= older_s:
            state = str(read_json(folder / SUMMARY).get("status", "killed"))
            yield OldRun(folder, nbytes, age_s, state, _kept(folder))


def _measured(folder: Path) -> tuple[int, float]:
    """Returns the bytes of a folder, and when the newest of its files was written, Unix seconds."""
    nbytes, newest = 0, 0.0
    for text, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):  # it was removed meanwhile
                about = (Path(text) / name).lstat()
                nbytes += about.st_size
                newest = max(newest, about.st_mtime)
    return nbytes, newest


def _kept(folder: Path) -> str:
    """Returns why a run must not be removed; empty if it may be."""
    for name in _LOCKS:
        for lock in folder.rglob(name):
            try:
                if who := live_holder_of(lock):
                    return f"in use by {who}"
            except OSError as error:
                return f"{lock} cannot be opened: {error.strerror}"
    address = address_of(folder)
    if address and not is_copied(folder):
        return f"not all of it is at {address}; --resume of its command copies the rest"
    return ""


def _agreed(what: str) -> bool:
    if sys.stdin is None or not sys.stdin.isatty():
        raise ConfigError(f"{what} would be removed, and there is no terminal to ask; add --yes")
    tell(f"remove {what}? [y/N] ", end="")
    sys.stdout.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def _remove(run: OldRun, older_s: float) -> int:
    """Removes a run; returns 1, or 0 if it is in use by now, or was since the question."""
    why = _kept(run.path)
    if not why and time.time() - _measured(run.path)[1] < older_s:
        why = "it was written to meanwhile"
    if why:
        tell(f"{run.path} is kept: {why}")
        return 0
    # Under another name first: an interrupted removal leaves no part of a run that looks whole.
    beside = run.path.with_name(f".{run.path.name}.removed.tmp")
    at_address = bool(address_of(run.path))
    try:
        with locked(run.path / LOCK, 0.0, "removing it"):
            run.path.rename(beside)
            shutil.rmtree(beside)
    except OSError as error:
        state = f"removed in part, the rest is {beside}" if beside.exists() else "kept"
        tell(f"{run.path} is {state}: {error.strerror or error}")
        return 0
    if at_address:
        shutil.rmtree(run.path.parent, ignore_errors=True)
    return 1
