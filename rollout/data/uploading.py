"""Copies the shards of a dataset to an address while it is written."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from rollout.data.layout import Layout
from rollout.data.manifest import Manifest, read_manifest
from rollout.data.remote import open_system
from rollout.data.shard import Seal
from rollout.errors import DatasetError
from rollout.files import read_document

_PAUSES_S = (1.0, 60.0)  # after the first failure, doubled up to the last
_TRIES = 4  # at the end of a run
_END_S = 600.0  # a file that takes longer counts as hung
_SHARD = ("data", "episodes", "seals")  # the seal last: with it a shard is complete

_log = logging.getLogger(__name__)


class Uploader(AbstractContextManager["Uploader"]):
    """Copies finished shards to an address of fsspec, in a thread of its own.

    The local files stay, so nothing is lost while the store fails: it is tried again, and
    collection goes on meanwhile. The dataset at the address can be read at any time, without the
    steps that are not a shard yet. A shard that is there with the same seal is not copied again.

    Args:
        layout: the dataset.
        address: where to, e.g. ``s3://bucket/name``: empty, or an earlier state of this dataset.

    Attributes:
        failures: how often something could not be copied.
        error: the newest reason; empty if there is none.

    Raises:
        DatasetError: the address cannot be read, or holds something else.
    """

    def __init__(self, layout: Layout, address: str) -> None:
        self.address, self.failures, self.error = address, 0, ""
        self._layout = layout
        self._system, self._base = open_system(address)
        self._copied: set[int] = set()
        self._wake, self._ending = threading.Event(), threading.Event()
        self._require_own()
        self._thread = threading.Thread(target=self._run, name="dataset-upload", daemon=True)
        self._thread.start()

    @property
    def missing(self) -> list[int]:
        """Numbers of the shards that are not at the address."""
        return [n for n in self._layout.numbers("data") if n not in self._copied]

    def wake(self) -> None:
        """Says that there is a new shard."""
        self._wake.set()

    def describe(self) -> dict[str, Any]:
        """Returns what was copied, as JSON-able data."""
        return {
            "address": self.address,
            "shards": len(self._copied),
            "missing": self.missing,
            "failures": self.failures,
            "error": self.error,
        }

    def finish(self) -> str:
        """Copies the rest, with a few tries, and ends the thread.

        Returns:
            what is missing; empty if the dataset is complete at the address.
        """
        self.close()
        pause = _PAUSES_S[0]
        for left in reversed(range(_TRIES)):
            if self._try(self._copy_all):
                return ""
            if left:
                threading.Event().wait(pause)
                pause *= 2
        return (
            f"{len(self.missing)} shards, or the description, are not at {self.address} "
            f"({self.error}); everything is in {self._layout.root}: --resume copies the rest"
        )

    def close(self) -> None:
        """Ends the thread after the file that it copies. Idempotent."""
        self._ending.set()
        self._wake.set()
        self._thread.join(_END_S)

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self) -> None:
        pause = 0.0
        self._wake.set()  # what earlier sessions have left
        while True:
            self._wake.wait(pause or None)
            if self._ending.is_set():
                return
            self._wake.clear()
            copied = self._try(self._copy_shards)
            pause = 0.0 if copied else min(max(2 * pause, _PAUSES_S[0]), _PAUSES_S[1])

    def _try(self, work: Callable[[], None]) -> bool:
        try:
            work()
        except Exception as error:  # noqa: BLE001 - libraries of stores raise errors of every kind
            self.failures += 1
            said = str(error) if isinstance(error, DatasetError) else repr(error)
            if said != self.error:
                _log.warning("cannot copy to %s, tried again: %s", self.address, said)
            self.error = said
            return False
        self.error = ""
        return True

    def _copy_all(self) -> None:
        self._copy_shards(to_the_end=True)
        self._put(self._layout.card)
        self._put(self._layout.manifest)

    def _copy_shards(self, *, to_the_end: bool = False) -> None:
        if not self._system.exists(self._place(self._layout.manifest)):
            self._put(self._layout.manifest)
        damaged = ""
        for number in self.missing:
            if self._ending.is_set() and not to_the_end:
                return
            if not self._is_there(number):
                if not Seal.read(self._layout.seal(number)).fits(self._layout.data(number)):
                    damaged = f"{self._layout.data(number)} does not match its seal"
                    continue
                for folder in _SHARD:
                    self._put(self._layout.file(folder, number))
            self._copied.add(number)
        if damaged:
            raise DatasetError(f"{damaged}; run: gamut dataset doctor {self._layout.root}")

    def _is_there(self, number: int) -> bool:
        """True if a shard is at the address, with the same seal, and as large as here."""
        files = [self._layout.file(folder, number) for folder in _SHARD]
        if not all(self._system.exists(self._place(path)) for path in files):
            return False
        if any(self._system.size(self._place(p)) != p.stat().st_size for p in files):
            return False
        sealed: bytes = self._system.cat_file(self._place(files[-1]))
        return sealed == read_document(files[-1])

    def _put(self, path: Path) -> None:
        place = self._place(path)
        self._system.makedirs(place.rpartition("/")[0], exist_ok=True)
        self._system.put_file(str(path), place)
        self._system.invalidate_cache()
        size = self._system.size(place)
        if size != path.stat().st_size:
            raise DatasetError(f"{place}: expected {path.stat().st_size} bytes, got {size}")

    def _place(self, path: Path) -> str:
        return f"{self._base}/{path.relative_to(self._layout.root).as_posix()}"

    def _require_own(self) -> None:
        """Checks that the address is empty or holds this dataset."""
        place = self._place(self._layout.manifest)
        try:
            if self._system.exists(place):
                there = Manifest.from_json(self._system.cat_file(place).decode())
            elif self._system.exists(self._base) and self._system.find(self._base):
                raise DatasetError(f"{self.address} holds other files; name an empty address")
            else:
                return
        except DatasetError:
            raise
        except Exception as error:
            raise DatasetError(f"cannot read {self.address}: {error!r}") from error
        own = read_manifest(self._layout)
        if (there.run, there.created) != (own.run, own.created):
            raise DatasetError(
                f"{self.address} holds the dataset of another run ({there.run}, "
                f"{there.created}); nothing there is overwritten: name another address"
            )
