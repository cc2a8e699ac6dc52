"""Copies a folder, a dataset or a whole run, to an address while it is written.

The copies of one pass are made in this order, so that a reader of the address finds everything
that a file refers to:

1. descriptions that refer to nothing, such as ``config.yaml``, ``run.json``, ``dataset.json``
2. the files of whole shards and checkpoints, except their last ones
3. lines that are appended: ``metrics.jsonl``, ``run.log``, up to their last whole line
4. the last files of shards and checkpoints, ``data/*.parquet`` and ``checkpoint.json``: with them
   a shard or a checkpoint is complete, and readers find it
5. other files that have not changed since the pass began, ``summary.json`` last

Journals, locks and temporary files stay here. The folder itself is the queue: nothing waits in
memory, whatever the speed of the store.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import stat
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from rollout.data.layout import Layout
from rollout.data.manifest import Manifest, read_manifest
from rollout.data.remote import explained, open_system
from rollout.data.shard import Seal
from rollout.errors import DatasetError, GamutError
from rollout.files import cut_last_line, open_file, read_document

_PAUSES_S = (1.0, 60.0)  # after the first failure, doubled up to the last
_TRIES = 4  # at the end of a run
_END_S = 600.0  # a file that takes longer counts as hung
_EVERY_S = 5.0  # between two passes
_SHARE = 0.01  # of the time that may be spent on looking for changed files
_AGAIN_BYTES_PER_S = 1 << 20  # a growing file is copied whole again: at most so much a second

_SHARD = re.compile(r"(?P<root>(?:.*/)?)(?P<kind>data|episodes|seals)/shard-(?P<number>\d+)\.\w+")
_CHECKPOINT = re.compile(r"(?P<root>(?:.*/)?checkpoints/)(?P<number>\d+)/(?P<file>[^/]+)")
_TEMPORARY = re.compile(r"(?:^|/)\.[^/]*\.tmp(?:/|$)")
_GROWING = re.compile(r"(?<!lineage)\.(?:jsonl|log|wandb)$|/events\.out\.tfevents[^/]*$")
_SHARD_FILES = 3  # data, index and seal
_FIRST = ("config.yaml", "environment.txt", "run.json", "dataset.json")
_LAST = "summary.json"

_log = logging.getLogger(__name__)

Stat: TypeAlias = tuple[int, int]  # size and time of modification


@dataclass
class Found:
    """The files of a folder that belong at its address, by their paths in it.

    Attributes:
        groups: files of each shard and checkpoint, by its last file; whole ones only.
        growing: files that lines are appended to.
        others: all other files.
    """

    groups: dict[str, list[str]] = field(default_factory=dict)
    growing: dict[str, Stat] = field(default_factory=dict)
    others: dict[str, Stat] = field(default_factory=dict)


def group_of(path: str) -> str | None:
    """Returns the last file of the shard or checkpoint that a file is part of; else None."""
    if shard := _SHARD.fullmatch(path):
        return f"{shard['root']}data/shard-{shard['number']}.parquet"
    if found := _CHECKPOINT.fullmatch(path):
        return f"{found['root']}{found['number']}/checkpoint.json"
    return None


def belongs(path: str) -> bool:
    """Returns whether a file of a run belongs at its address."""
    return not (_TEMPORARY.search(path) or path.endswith((".lock", ".arrows")))


def is_whole(head: str, files: Collection[str]) -> bool:
    """Returns whether the shard or checkpoint with this last file is among the files."""
    shard = _SHARD.fullmatch(head)
    return head in files and (shard is None or _seal_of(head) in files)


def _seal_of(head: str) -> str:
    """Returns the file with the digests of a shard or checkpoint, by its last file."""
    shard = _SHARD.fullmatch(head)
    return head if shard is None else f"{shard['root']}seals/shard-{shard['number']}.json"


def stat_of(path: Path) -> Stat | None:
    """Returns size and time of modification of a file; None if it is none, or a link."""
    try:
        found = path.lstat()
    except OSError:  # it was removed meanwhile
        return None
    return (found.st_size, found.st_mtime_ns) if stat.S_ISREG(found.st_mode) else None


def scan(root: Path) -> Found:
    """Returns the files in a folder that belong at its address."""
    found, parts = Found(), dict[str, list[str]]()
    for folder, within, names in os.walk(root):
        within[:] = sorted(n for n in within if not _TEMPORARY.search(n))
        for name in sorted(names):
            place = Path(folder) / name
            path = place.relative_to(root).as_posix()
            seen = stat_of(place) if belongs(path) else None
            if seen is None:
                continue
            if (group := group_of(path)) is not None:
                parts.setdefault(group, []).append(path)
            else:
                kind = found.growing if _GROWING.search(path) else found.others
                kind[path] = seen
    for head, files in parts.items():
        if is_whole(head, files) and (not _SHARD.fullmatch(head) or len(files) == _SHARD_FILES):
            found.groups[head] = [path for path in files if path != head]
    return found


class Uploader(AbstractContextManager["Uploader"]):
    """Copies what is whole in a folder to an address of fsspec, in a thread of its own.

    The local files stay, so nothing is lost while the store fails: it is tried again, and the run
    goes on meanwhile. What is at the address can be read at any time. A shard or a checkpoint that
    is there with the same digests is not copied again. What was removed here is removed there: a
    checkpoint once a newer one is there, a shard only with its whole dataset.

    Args:
        root: the folder, or a dataset.
        address: where to, e.g. ``s3://bucket/name``: empty, or an earlier state of this folder.
        lost: returns a reason if this process may no longer write to the address.
        fetched: files that were fetched from there just now.
        there: files that are there, perhaps from an earlier state.

    Attributes:
        failures: how often something could not be copied.
        error: the newest reason; empty if there is none.

    Raises:
        DatasetError: the address cannot be read, or holds another dataset.
    """

    def __init__(
        self,
        root: Path | Layout,
        address: str,
        *,
        lost: Callable[[], str] = lambda: "",
        fetched: Iterable[str] = (),
        there: Iterable[str] = (),
    ) -> None:
        self.address, self.failures, self.error = address, 0, ""
        self._root = root.root if isinstance(root, Layout) else root
        self._lost = lost
        self._system, self._base = open_system(address)
        self._groups = {
            path for path in fetched if group_of(path) == path
        }  # last files of what is at the address
        self._begun = set[str]()  # those of which the other files are there
        self._earlier = set(there)
        self._copied: dict[str, tuple[Stat, float]] = {}  # other files there, and when
        self._scan_s = 0.0  # that the newest look for changed files took
        self._wake, self._ending = threading.Event(), threading.Event()
        self._forgotten = threading.Event()
        if isinstance(root, Layout):
            self._require_own(root)
        self._thread = threading.Thread(target=self._run, name="upload", daemon=True)
        self._thread.start()

    @property
    def missing(self) -> list[int]:
        """Numbers of the shards of a dataset that are not at the address."""
        layout = Layout(self._root)
        numbers = layout.numbers("data")
        return [n for n in numbers if layout.name(layout.data(n)) not in self._groups]

    def left(self) -> tuple[int, int]:
        """Returns how many files are not at the address as they are here, and their bytes."""
        found = scan(self._root)
        missing = {head: files for head, files in found.groups.items() if head not in self._groups}
        paths = [path for head, files in missing.items() for path in (*files, head)]
        paths += [
            path
            for path, seen in (found.growing | found.others).items()
            if self._copied.get(path, (None, 0.0))[0] != seen
        ]
        return len(paths), sum((self._root / path).stat().st_size for path in paths)

    def wake(self) -> None:
        """Says that there is something new."""
        self._wake.set()

    def forget(self) -> None:
        """Looks again for everything at the address, from which files may be missing."""
        self._forgotten.set()

    def describe(self) -> dict[str, Any]:
        """Returns what was copied of a dataset, as JSON-able data."""
        return {
            "address": self.address,
            "shards": len([path for path in self._groups if path.startswith("data/")]),
            "missing": self.missing,
            "failures": self.failures,
            "error": self.error,
        }

    def finish(self) -> str:
        """Copies the rest, with a few tries, and ends the thread.

        Returns:
            what is missing; empty if everything is at the address.
        """
        self.close()
        pause = _PAUSES_S[0]
        for left in reversed(range(_TRIES)):
            if self._try(to_the_end=True):
                return ""
            if self._lost():
                break
            if left:
                threading.Event().wait(pause)
                pause *= 2
        files, size = self.left()
        return (
            f"{files} files ({size / 1e6:.1f} MB) are not at {self.address} ({self.error}); "
            f"everything is in {self._root}: --resume copies the rest"
        )

    def withdraw(self) -> None:
        """Removes what was copied, after ``close``: the run has removed its folder again."""
        for path in [*self._groups, *self._copied]:
            if self._system.exists(self._place(path)):
                self._system.rm_file(self._place(path))

    def close(self) -> None:
        """Ends the thread after the file that it copies. Idempotent."""
        self._ending.set()
        self._wake.set()
        self._thread.join(_END_S)

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self) -> None:
        pause = 0.0
        while True:
            copied = self._try()
            if copied:
                pause, wait_s = 0.0, max(_EVERY_S, self._scan_s / _SHARE)
            else:
                wait_s = pause = min(max(2 * pause, _PAUSES_S[0]), _PAUSES_S[1])
            self._wake.wait(wait_s)
            if self._ending.is_set():
                return
            self._wake.clear()

    def _try(self, *, to_the_end: bool = False) -> bool:
        if said := self._lost():
            self.error = said
            return False
        try:
            self._copy(to_the_end=to_the_end)
            if to_the_end and (lacking := self._lacking()):
                self.forget()
                raise DatasetError(f"{len(lacking)} files are gone there, e.g. {lacking[0]}")
        except Exception as error:  # noqa: BLE001 - libraries of stores raise errors of every kind
            self.failures += 1
            said = str(error) if isinstance(error, GamutError) else explained(error)
            if said != self.error:
                _log.warning("cannot copy to %s, tried again: %s", self.address, said)
            self.error = said
            self.forget()
            return False
        if self.error:
            _log.info("copies to %s again", self.address)
        self.error = ""
        return True

    def _copy(self, *, to_the_end: bool) -> None:
        """Makes one pass, in the order that the module describes."""
        if self._forgotten.is_set():
            self._forgotten.clear()
            self._groups.clear()
            self._begun.clear()
            self._copied.clear()
        began = time.monotonic()
        found = scan(self._root)
        self._scan_s = time.monotonic() - began
        rest = found.others
        first = {path: rest.pop(path) for path in list(rest) if path.endswith(_FIRST)}
        for path, seen in first.items():
            self._put_changed(path, seen)
        new, damaged = self._put_parts(found, to_the_end=to_the_end)
        if self._ending.is_set() and not to_the_end:
            return  # what follows may refer to shards and checkpoints that were left out
        for path, seen in found.growing.items():
            self._put_changed(path, seen, at_once=to_the_end or bool(new))
        for head in new:
            self._put(head)
            self._groups.add(head)
            self._begun.discard(head)
        for path, seen in sorted(rest.items(), key=lambda item: item[0].endswith(_LAST)):
            if stat_of(self._root / path) == seen:
                self._put_changed(path, seen)
        self._remove_gone(found)
        if damaged:
            raise DatasetError("; ".join(damaged))

    def _lacking(self) -> list[str]:
        """Returns the copied files that are not at the address any more, by one listing."""
        self._system.invalidate_cache()
        there = {str(place) for place in self._system.find(self._base)}
        copied = [*self._groups, *self._copied]
        return [path for path in copied if self._place(path) not in there]

    def _put_parts(self, found: Found, *, to_the_end: bool) -> tuple[list[str], list[str]]:
        """Copies shards and checkpoints without their last files.

        Returns:
            the last files that are still to be copied, and what is wrong with others.
        """
        new, damaged = list[str](), list[str]()
        for head, files in found.groups.items():
            if head in self._groups:
                continue
            if self._ending.is_set() and not to_the_end:
                break
            if head in self._begun:
                new.append(head)
            elif self._is_there(head, files):
                self._groups.add(head)
            elif why := self._damaged(head):
                damaged.append(why)
            else:
                self._remove(head)  # of other contents, which what follows would not fit
                for path in files:
                    self._put(path)
                self._begun.add(head)
                new.append(head)
        return new, damaged

    def _damaged(self, head: str) -> str:
        """Returns why a shard must not be copied; empty if it matches its seal."""
        shard = _SHARD.fullmatch(head)
        if shard is None:
            return ""
        layout = Layout(self._root / shard["root"])
        number = int(shard["number"])
        if Seal.read(layout.seal(number)).fits(layout.data(number)):
            return ""
        return (
            f"{layout.data(number)} does not match its seal; run: gamut dataset doctor "
            f"{layout.root}"
        )

    def _is_there(self, head: str, files: list[str]) -> bool:
        """True if a shard or checkpoint is at the address: equal digests, equal sizes."""
        if not all(self._system.exists(self._place(path)) for path in (*files, head)):
            return False
        sizes = {path: (self._root / path).stat().st_size for path in (*files, head)}
        if any(self._system.size(self._place(path)) != size for path, size in sizes.items()):
            return False
        digests = _seal_of(head)
        known: bytes = self._system.cat_file(self._place(digests))
        return known == read_document(self._root / digests)

    def _remove(self, path: str) -> None:
        if self._system.exists(self._place(path)):
            self._system.rm_file(self._place(path))
            self._system.invalidate_cache()

    def _remove_gone(self, found: Found) -> None:
        """Removes what is no longer here from the address, where it would come back by a fetch."""
        if not any((self._root / name).exists() for name in _FIRST):
            return  # the whole folder was removed or moved: what is there is the only copy
        for head in sorted((self._groups | self._earlier) - found.groups.keys()):
            if group_of(head) == head and self._is_gone(head, found):
                self._remove(head)  # first: without it the others are no shard or checkpoint
                shard = _SHARD.fullmatch(head)
                if shard is not None:
                    layout = Layout(shard["root"])
                    number = int(shard["number"])
                    for part in (layout.seal(number), layout.episodes(number)):
                        self._remove(part.as_posix())
                elif self._system.exists(folder := self._place(head).rpartition("/")[0]):
                    self._system.rm(folder, recursive=True)
                    self._system.invalidate_cache()
                self._groups.discard(head)
                self._earlier.discard(head)
        for path in sorted(self._copied.keys() | self._earlier):
            if group_of(path) is None and stat_of(self._root / path) is None:
                self._remove(path)
                self._copied.pop(path, None)
                self._earlier.discard(path)

    def _is_gone(self, head: str, found: Found) -> bool:
        """True for a checkpoint before one that is here, and for parts of removed folders.

        A shard or checkpoint that is missing here for another reason, such as damage, stays there.
        """
        if shard := _SHARD.fullmatch(head):
            return not (self._root / shard["root"] / "dataset.json").exists()
        old = _CHECKPOINT.fullmatch(head)
        if old is None or not (self._root / old["root"]).is_dir():
            return True
        here = (each for each in map(_CHECKPOINT.fullmatch, found.groups) if each is not None)
        return any(
            each["root"] == old["root"] and int(each["number"]) > int(old["number"])
            for each in here
        )

    def _put_changed(self, path: str, seen: Stat, *, at_once: bool = True) -> None:
        """Copies a file that has changed, a growing one not too often."""
        before, when = self._copied.get(path, (None, 0.0))
        if before == seen:
            return
        now = time.monotonic()
        if not at_once and before is not None and now - when < seen[0] / _AGAIN_BYTES_PER_S:
            return
        try:
            self._put(path)
        except FileNotFoundError:
            if (self._root / path).exists():
                raise
            return  # it was removed meanwhile
        self._copied[path] = (seen, now)

    def _put(self, path: str) -> None:
        if said := self._lost():
            raise DatasetError(said)
        place = self._place(path)
        if not self._system.async_impl:  # stores have no folders, and would make a bucket
            self._system.makedirs(place.rpartition("/")[0], exist_ok=True)
        with _whole_lines(self._root / path) as source:
            size = source.stat().st_size
            self._system.put_file(str(source), place)
        self._system.invalidate_cache()
        there = self._system.size(place)
        # A file that grows meanwhile is copied again.
        if there < size or (there != size and group_of(path) is not None):
            raise DatasetError(f"{place}: expected {size} bytes, got {there}")

    def _place(self, path: str) -> str:
        return f"{self._base}/{path}"

    def _require_own(self, layout: Layout) -> None:
        """Checks that the address is empty or holds this dataset."""
        place = self._place(layout.manifest.name)
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
            raise DatasetError(f"cannot read {self.address}: {explained(error)}") from error
        own = read_manifest(layout)
        if (there.run, there.created) != (own.run, own.created):
            raise DatasetError(
                f"{self.address} holds the dataset of another run ({there.run}, "
                f"{there.created}); nothing there is overwritten: name another address"
            )


@contextmanager
def _whole_lines(path: Path) -> Iterator[Path]:
    """Gives a file, or a copy of its whole lines if lines are appended to it."""
    if path.suffix not in {".jsonl", ".log"}:
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="gamut-upload-") as folder:
        copy = Path(folder) / path.name
        with open_file(path) as source, copy.open("w+b") as target:
            shutil.copyfileobj(source, target, 1 << 20)
            cut_last_line(target)
        yield copy
