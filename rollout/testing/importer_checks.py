"""The conformance suite of importers, and an importer that comes with it."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces

from rollout.api import Columns, Flaw, Importer, SourceEpisode, SourceSpec
from rollout.errors import ContractError, DatasetError
from rollout.files import open_file, parse_json, read_document, read_lines
from rollout.testing.report import Report, Skipped, Suite, must_raise, require

_MOST_FILES = 24  # of a source that are damaged one by one
_MOST_BYTES = 64 << 20  # of a source that is copied
_SIZE = "size"


@dataclass(frozen=True)
class FakeImporter:
    """Reads a file with a line of JSON for each episode: ``{"rewards": [...], "end": ...}``."""

    def describe(self, source: Path) -> SourceSpec:
        """Returns one observation and one action."""
        if source.suffix != ".jsonl":
            raise DatasetError(f"expected a file .jsonl, got {source}")
        return SourceSpec(
            name=source.stem,
            observation_space=spaces.Dict({_SIZE: spaces.Box(0, 1, (2,))}),
            action_space=spaces.Dict({"action": spaces.Discrete(3)}),
            episodes=sum(1 for _ in read_lines(source)),
        )

    def episodes(self, source: Path) -> Iterator[SourceEpisode | Flaw]:
        """Yields an episode of each line."""
        for number, line in enumerate(read_lines(source)):
            try:
                data = parse_json(line)
                reward = np.array(data["rewards"], np.float32)
                columns: Columns = {
                    f"observation/{_SIZE}": np.zeros((len(reward), 2), np.float32),
                    "action": np.zeros(len(reward), np.int64),
                    "reward": reward,
                }
                yield SourceEpisode(source.name, number, columns, data["end"])
            except (ValueError, TypeError, KeyError) as error:
                yield Flaw(source.name, number, None, f"cannot be read: {error!r}")


@dataclass
class _Case:
    """An importer, what it is to read, and a folder for new datasets."""

    importer: Importer
    source: Path
    broken: Path | None
    folder: Path

    def imported(self, target: Path, source: Path | None = None, importer: Any = None) -> Any:
        from rollout.data.formats import import_dataset  # noqa: PLC0415 - loads pyarrow

        where = self.source if source is None else source
        return import_dataset(importer or self.importer, where, target, form="checked")

    def place(self, name: str) -> Path:
        """An empty folder of a check."""
        folder = self.folder / name
        folder.mkdir()
        return folder


def check_importer(
    importer: Importer, source: Path, *, broken: Path | None = None, timeout_s: float = 120.0
) -> Report:
    """Returns whether an importer keeps its contract.

    Args:
        importer: the importer.
        source: a file or folder that it can read, small, with two or more episodes, all of them
            whole; its files are damaged one by one, in copies.
        broken: another one of which some episodes are wrong and some whole; None if the check of
            faults is to be skipped.
        timeout_s: timeout of each check, in seconds.
    """
    checks: dict[str, Callable[[_Case], str]] = {
        "reads": _reads,
        "imports": _imports,
        "reads the same again": _repeats,
        "leaves the source alone": _leaves,
        "overwrites nothing": _overwrites_nothing,
        "leaves nothing when interrupted": _interrupted,
        "refuses what is no source": _refuses,
        "survives damage": _survives,
        "sets faults aside": _sets_aside,
    }
    with tempfile.TemporaryDirectory(prefix="gamut-importer-") as folder:
        case = _Case(importer, source, broken, Path(folder))
        suite = Suite(f"importer {type(importer).__name__}", timeout_s)
        return suite.run(checks, case, required="imports")


def _reads(case: _Case) -> str:
    importer = case.importer
    params = getattr(type(importer), "__dataclass_params__", None)
    require(getattr(params, "frozen", False), f"{importer!r} is not a frozen dataclass")
    spec = importer.describe(case.source)
    for name in ("observation_space", "action_space"):
        space = getattr(spec, name)
        require(isinstance(space, spaces.Dict), f"{name}: expected a Dict, got {space}")
        nested = [key for key, leaf in space.spaces.items() if isinstance(leaf, spaces.Dict)]
        require(not nested, f"{name}: expected a flat Dict, got {', '.join(nested)} within it")
    found = importer.episodes(case.source)
    require(
        iter(found) is found, f"episodes: expected an iterator, got {type(found).__name__}: a list "
        f"of all episodes does not fit in memory"
    )  # fmt: skip
    count, last = 0, -1
    for each in found:
        require(not isinstance(each, Flaw), f"expected whole episodes, got {each}")
        assert isinstance(each, SourceEpisode)
        require(each.number > last, f"expected a number above {last}, got {each.number}")
        require(not Path(each.file).is_absolute(), f"expected a relative file, got {each.file}")
        count, last = count + 1, each.number
    require(count > 1, f"expected a source of two or more episodes, got {count}")
    require(last < spec.episodes, f"describe: {spec.episodes} episodes, and there is one {last}")
    return f"{count} episodes"


def _imports(case: _Case) -> str:
    from rollout.data import doctor  # noqa: PLC0415 - loads pyarrow

    target = case.place("imports") / "new"
    done = case.imported(target)
    require(not done.flaws, f"expected whole episodes, got {'; '.join(map(str, done.flaws[:3]))}")
    report = doctor(target)
    require(report.clean, f"the dataset is damaged: {'; '.join(map(str, report.findings[:3]))}")
    return f"{done.episodes} episodes, {done.steps} steps"


def _repeats(case: _Case) -> str:
    both = zip(*(case.importer.episodes(case.source) for _ in range(2)), strict=True)
    for one, other in both:
        assert isinstance(one, SourceEpisode) and isinstance(other, SourceEpisode)  # noqa: PT018
        same = one.columns.keys() == other.columns.keys()
        same = same and all(np.array_equal(v, other.columns[k]) for k, v in one.columns.items()
                            if v.dtype.kind != "f")  # fmt: skip
        require(same, f"episode {one.number} has other values the second time")
    return "twice"


def _leaves(case: _Case) -> str:
    before = _files(case.source)
    case.imported(case.place("leaves") / "new")
    changed = sorted({path for path, _ in before ^ _files(case.source)})
    require(not changed, f"it changed {', '.join(changed)}")
    return f"{len(before)} files"


def _files(root: Path) -> set[tuple[str, str]]:
    files = [root] if root.is_file() else [p for p in root.rglob("*") if p.is_file()]
    found = set()
    for path in files:
        with open_file(path) as file:
            found.add((str(path), hashlib.file_digest(file, "sha256").hexdigest()))
    return found


def _overwrites_nothing(case: _Case) -> str:
    target = case.place("overwrites") / "new"
    target.mkdir()
    (target / "notes.txt").write_text("mine")
    must_raise(DatasetError, lambda: case.imported(target), "a folder that is not empty")
    there = [path.name for path in target.parent.rglob("*")]
    require(sorted(there) == ["new", "notes.txt"], f"expected new/notes.txt alone, got {there}")
    return "a folder that is not empty is refused"


class _InterruptError(Exception):
    """Ends an import half way."""


@dataclass(frozen=True)
class _Interrupted:
    """An importer that fails after the first episode."""

    inner: Importer

    def describe(self, source: Path) -> SourceSpec:
        return self.inner.describe(source)

    def episodes(self, source: Path) -> Iterator[SourceEpisode | Flaw]:
        yield next(iter(self.inner.episodes(source)))
        raise _InterruptError


def _interrupted(case: _Case) -> str:
    folder = case.place("interrupted")
    try:
        case.imported(folder / "new", importer=_Interrupted(case.importer))
    except _InterruptError:
        pass
    else:
        require(False, "the error of the importer was lost")
    there = [path.name for path in folder.iterdir()]
    require(not there, f"expected nothing, got {there}")
    return "no half dataset"


def _refuses(case: _Case) -> str:
    folder = case.place("refuses")
    (folder / "empty").mkdir()
    for name, data in (("text", b"nothing\n"), ("none", b"")):
        (folder / f"{name}{case.source.suffix}").write_bytes(data)
    for path in sorted(folder.iterdir()):
        target = folder / "new"
        try:
            case.imported(target, path)
        except DatasetError:
            require(not target.exists(), f"it has made a dataset of {path.name}")
        else:
            require(False, f"{path.name} was accepted; expected DatasetError")
    return "an empty folder, a text, an empty file"


def _survives(case: _Case) -> str:
    """Each file shortened, changed and removed: a dataset of what is whole, or a DatasetError."""
    files = [path for path, _ in sorted(_files(case.source))][:_MOST_FILES]
    if sum(Path(path).stat().st_size for path in files) > _MOST_BYTES:
        raise Skipped("the source is too large to be copied")
    folder, refused = case.place("damage"), 0
    for number, path in enumerate(files):
        for how, damage in (("shortened", _shorten), ("changed", _flip), ("removed", Path.unlink)):
            copy = folder / f"{number}-{how}" / case.source.name
            copy.parent.mkdir()
            if case.source.is_dir():
                shutil.copytree(case.source, copy)
                damage(copy / Path(path).relative_to(case.source))
            else:
                shutil.copy(case.source, copy)
                damage(copy)
            refused += _damaged(case, copy, Path(path).name, how)
            shutil.rmtree(copy.parent)
    return f"{len(files)} files, {refused} of {3 * len(files)} refused"


def _damaged(case: _Case, copy: Path, name: str, how: str) -> bool:
    from rollout.data import doctor  # noqa: PLC0415 - loads pyarrow

    target = copy.parent / "new"
    try:
        done = case.imported(target, copy)
    except DatasetError:
        require(not target.exists(), f"{name} {how}: it was refused, and left a dataset")
        return True
    except Exception as error:
        said = f"{name} {how}: expected DatasetError or a flaw, got {error!r}"
        raise ContractError(said) from error
    require(doctor(target).clean, f"{name} {how}: the dataset is damaged")
    require(all(each.file and each.problem for each in done.flaws), f"{name} {how}: {done.flaws}")
    return False


def _shorten(path: Path) -> None:
    data = read_document(path)
    path.write_bytes(data[: len(data) // 2])


def _flip(path: Path) -> None:
    """Changes a byte in the middle of each 4 KiB."""
    data = bytearray(read_document(path))
    for at in range(min(2048, len(data) // 2), len(data), 4096):
        data[at] ^= 0xFF
    path.write_bytes(bytes(data))


def _sets_aside(case: _Case) -> str:
    if case.broken is None:
        raise Skipped("there is no source with wrong episodes")
    target = case.place("aside") / "new"
    done = case.imported(target, case.broken)
    require(done.flaws, "expected wrong episodes, got none")
    require(done.episodes > 0, "expected whole episodes, got none")
    lines = list(read_lines(target / "quarantine" / "import.jsonl"))
    listed = [Flaw(**json.loads(line)) for line in lines]
    require(
        listed == list(done.flaws), f"expected {len(done.flaws)} flaws listed, got {len(lines)}"
    )
    root = case.broken if case.broken.is_dir() else case.broken.parent
    for flaw in done.flaws:
        require(flaw.episode is not None, f"expected the number of the episode, got {flaw}")
        require((root / flaw.file).exists(), f"expected a file of the source, got {flaw.file}")
    return f"{done.episodes} whole, {len(done.flaws)} set aside"
