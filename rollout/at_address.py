"""Runs whose output is an address: they work in a local folder, which is copied behind them.

The folder is in the cache, ``outputs/`` and a name made of the address, beside ``address.json``
with the tokens of the claims of its sessions. If the address was last written by one of them, the
folder is at least as new as the address, and a session continues in it. Otherwise another machine
has continued the run: the folder is set aside, and the run is fetched.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol

from rollout.claim import OBJECT, Claim
from rollout.config import RunConfig, resolved
from rollout.configuration.secrets import refuse_secrets
from rollout.data.remote import explained, open_system
from rollout.data.sizes import free_bytes, in_units
from rollout.data.uploading import Uploader, belongs, group_of, is_whole
from rollout.errors import DatasetError, InputError, RunDirectoryError
from rollout.files import locked, read_document, set_aside, write_atomically
from rollout.observe.run_files import RUN
from rollout.run_directory import IN_RAY_JOB, folder_of, output_address
from rollout.signals import Stop

_TRIES, _PAUSE_S = 3, 1.0  # of fetching
_AT_ONCE = 8  # files that are fetched at the same time
_MARKER = "address.json"
_TOLD = 20  # files that are left at the end without a line about them

_log = logging.getLogger(__name__)


class _Session(Protocol):
    @property
    def resume(self) -> bool: ...

    @property
    def wait_s(self) -> float: ...

    @property
    def stop(self) -> Stop: ...


def run_at(
    job: Callable[..., str | None], config: Any, session: _Session, *more: object
) -> str | None:
    """Runs a job; if its output is an address, in a local folder that is copied there.

    Returns:
        None if everything was done and copied, otherwise a sentence that says what is missing.

    Raises:
        InputError: the address cannot be used; nothing was launched.
    """
    address = output_address(config.output) if isinstance(config, RunConfig) else ""
    if not address:
        return job(config, session, *more)
    if {".", ".."} & set(address.split("/")):  # a store takes them as names, folders do not
        raise RunDirectoryError(f"output {address}: give the path without . and ..")
    refuse_secrets(resolved(config))
    _require_one_machine(config, address)
    with ExitStack() as stack:
        output = _Output(address, folder_of(config.output), session.stop)
        stack.callback(output.close)
        output.begin(resume=session.resume, wait_s=session.wait_s)
        try:
            missing = job(config, session, *more)
        except InputError:
            if not output.withdraw():
                output.finish()
            raise
        except BaseException:
            if lacking := output.finish():
                _log.warning("%s", lacking)
            raise
        return "; ".join(filter(None, (missing, output.finish()))) or None


def is_copied(folder: Path) -> bool:
    """Returns whether everything in the folder of a run at an address was copied there."""
    try:
        return bool(json.loads(read_document(folder.parent / _MARKER))["copied"])
    except (OSError, ValueError, LookupError, TypeError):
        return False


def _require_one_machine(config: RunConfig, address: str) -> None:
    """Refuses jobs whose trainings write on the machines of a cluster.

    Raises:
        RunDirectoryError: it is one.
    """
    joined = getattr(getattr(config, "ray", None), "address", "")
    if config.spreads and (joined or IN_RAY_JOB in os.environ):
        raise RunDirectoryError(
            f"output {address}: the trainings of this job write their folders on the machines of "
            f"the cluster, so that it needs a folder that all of them share; give one, and copy it "
            f"afterwards, or run the job on one machine, without ray.address"
        )


class _Output:
    """The local folder of a run at an address.

    Args:
        address: the address.
        folder: the folder.
        stop: counts signals: the next one ends the last copies.
    """

    def __init__(self, address: str, folder: Path, stop: Stop) -> None:
        self._address, self._folder, self._stop = address, folder, stop
        self._signals: int | None = None  # how many had arrived when the last copies began
        self._marker = folder.parent / _MARKER
        self._stack = ExitStack()
        self._claim: Claim | None = None
        self._uploader: Uploader | None = None
        self._new = False

    def begin(self, *, resume: bool, wait_s: float) -> None:
        """Takes the claim on the address, fetches the run, and begins to copy."""
        try:
            self._begin(resume=resume, wait_s=wait_s)
        except RunDirectoryError:
            raise
        except DatasetError as error:
            raise RunDirectoryError(f"output {self._address}: {error}") from error
        except BlockingIOError as error:
            raise RunDirectoryError(
                f"{error.strerror} is working on the run at {self._address}; wait for it or stop "
                f"it, or choose another output"
            ) from None
        except Exception as error:  # libraries of stores raise errors of every kind
            raise RunDirectoryError(
                f"output {self._address} cannot be used: {explained(error)}"
            ) from error

    def _begin(self, *, resume: bool, wait_s: float) -> None:
        self._folder.parent.mkdir(parents=True, exist_ok=True)
        lock = self._folder.parent / "address.lock"
        self._stack.enter_context(locked(lock, wait_s, f"at {self._address}"))
        system, base = open_system(self._address)
        there = _listed(system, base)
        if not there:
            _require_bucket(system, base)
        if RUN in there and not resume:
            run = json.loads(system.cat_file(f"{base}/{RUN}"))["run_id"]
            raise RunDirectoryError(
                f"output {self._address} already contains the run {run}; continue it with "
                f"--resume, or choose another output"
            )
        if there and RUN not in there:
            raise RunDirectoryError(
                f"output {self._address} is not empty and holds no run (found "
                f"{', '.join(sorted(there)[:5])}); choose another output"
            )
        tokens = self._tokens()
        claim = Claim(system, base, self._address)
        newest = claim.read().get("token")
        # Before the claim: killed in between, the folder must still count as the newest.
        self._write_marker([*tokens, claim.token], copied=False)
        claim.take(tokens)
        self._claim = claim
        fetched: list[str] = []
        if there and (newest not in tokens or not (self._folder / RUN).exists()):
            self._set_aside("another machine has continued the run")
            fetched = _fetch(system, base, there, self._folder)
        self._new = not there and not (self._folder / RUN).exists()
        self._write_marker([claim.token], copied=False)
        self._uploader = Uploader(
            self._folder,
            self._address,
            lost=lambda: claim.lost or self._hurried(),
            fetched=fetched,
            there=there,
        )
        claim.gone = self._uploader.forget
        _log.info("the run works in %s, which is copied to %s", self._folder, self._address)

    def finish(self) -> str:
        """Copies the rest; returns what is missing, empty for nothing."""
        if self._uploader is None:
            return ""
        self._signals = self._stop.times
        if (files := self._uploader.left()[0]) > _TOLD:
            _log.info("copying the last %d files to %s", files, self._address)
        if (lacking := self._uploader.finish()) == "":
            self._write_marker(self._tokens(), copied=True)
        return lacking

    def _hurried(self) -> str:
        """Returns a reason if a signal arrived while the last files were copied."""
        if self._signals is None or self._stop.times <= self._signals:
            return ""
        return "another signal ended the last copies"

    def withdraw(self) -> bool:
        """Removes a new run from the address if it was removed here, since its input is wrong."""
        if not self._new or (self._folder / RUN).exists() or self._uploader is None:
            return False
        self._uploader.close()
        try:
            self._uploader.withdraw()
        except Exception as error:  # noqa: BLE001 - libraries of stores raise errors of every kind
            _log.warning("files remain at %s: %s", self._address, explained(error))
        return True

    def close(self) -> None:
        """Ends the copies, and releases the address."""
        if self._uploader is not None:
            self._uploader.close()
        if self._claim is not None:
            self._claim.release(remove=self._new and not (self._folder / RUN).exists())
        self._stack.close()

    def _tokens(self) -> list[str]:
        try:
            return list(map(str, json.loads(read_document(self._marker))["tokens"]))
        except (OSError, ValueError, LookupError, TypeError):
            return []

    def _write_marker(self, tokens: Sequence[str], *, copied: bool) -> None:
        about = {"address": self._address, "tokens": tokens, "copied": copied}
        write_atomically(self._marker, json.dumps(about) + "\n")

    def _set_aside(self, why: str) -> None:
        if self._folder.exists() and any(self._folder.iterdir()):
            place = set_aside(self._folder, "older")
            _log.warning("%s since its folder here was written: it is now %s", why, place)


def _listed(system: Any, base: str) -> dict[str, int]:
    """Returns the files at an address with their sizes, by their paths in it."""
    system.invalidate_cache()
    try:
        found: Mapping[str, Any] = system.find(base, detail=True)
    except FileNotFoundError:
        return {}
    names = {str(path).removeprefix(f"{base}/"): about["size"] for path, about in found.items()}
    return {name: int(size) for name, size in names.items() if name != OBJECT}


def _require_bucket(system: Any, base: str) -> None:
    """Checks that the bucket of an empty address exists: listings of some stores do not tell."""
    bucket = base.lstrip("/").partition("/")[0]
    if system.protocol != "memory" and not system.exists(bucket):
        raise DatasetError(f"there is no bucket {bucket}; make it, or name another")


def _fetch(system: Any, base: str, there: Mapping[str, int], folder: Path) -> list[str]:
    """Fetches a run, and removes the parts of incomplete shards and checkpoints at its address.

    Returns:
        the paths of the files that were fetched.
    """
    whole, parts = list[str](), list[str]()
    for path in there:
        head = group_of(path)
        (whole if head is None or is_whole(head, there) else parts).append(path)
    size = sum(there[path] for path in whole)
    if size > free_bytes(folder):
        raise RunDirectoryError(
            f"{in_units(size)} of the run are to be fetched to {folder}, and "
            f"{in_units(free_bytes(folder))} are free there; free some, or set GAMUT_CACHE to a "
            f"folder on another disk"
        )
    beside = folder.with_name(f".{folder.name}.tmp")

    def get(path: str) -> None:
        place = beside / path
        if not place.exists() or place.stat().st_size != there[path]:
            place.parent.mkdir(parents=True, exist_ok=True)
            system.get_file(f"{base}/{path}", str(place))

    shutil.rmtree(beside, ignore_errors=True)
    _log.info("fetching %d files, %s", len(whole), in_units(size))
    for left in reversed(range(_TRIES)):
        try:
            with ThreadPoolExecutor(_AT_ONCE) as threads:
                list(threads.map(get, filter(belongs, whole)))
            break
        except Exception as error:
            if not left:
                raise
            _log.warning("fetching is tried again: %s", explained(error))
            threading.Event().wait(_PAUSE_S)
    for path in parts:
        system.rm_file(f"{base}/{path}")
    beside.rename(folder)
    return whole
