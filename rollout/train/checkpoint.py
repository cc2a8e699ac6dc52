"""Checkpoints: self-describing folders that can be opened on any machine.

::

    checkpoint.json   policy, game, task, spaces, counters, schedules; digests of all three files
        weights.pt        tensors of the network, by name
        optimizer.pt      further state that resuming needs; a copy to play may be without it

A checkpoint is written to a temporary folder and renamed, so an incomplete one never has its final
name. All its files are checked when it is opened. Tensors are loaded without executing code.
"""

from __future__ import annotations

import hashlib
import io
import json
import logging
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NotRequired, Required

from gymnasium import spaces
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic_core import from_json
from typing_extensions import TypedDict

from rollout.api import BridgeSpec
from rollout.configuration.problems import wrong_in
from rollout.data import Manifest
from rollout.data.space_json import space_from_json, space_to_json
from rollout.errors import ConfigError, InputError
from rollout.files import open_file, set_aside, write_atomically
from rollout.observe.run_files import seed_folders

FORMAT = 1
_ABOUT, _WEIGHTS, _OPTIMIZER = "checkpoint.json", "weights.pt", "optimizer.pt"
_DIGITS = 8  # digits of the update in a folder's name, so that names sort

_Count = Annotated[int, Field(ge=0, lt=2**63)]


class Strict(TypedDict):
    """Base of what files of a run contain: other types than the declared ones are refused."""

    __pydantic_config__ = ConfigDict(strict=True, allow_inf_nan=False)  # type: ignore[misc]


class CurriculumState(Strict):
    """Scores of states; see ``rollout.train.curriculum.ScoredSchedule.state``."""

    drawn: _Count
    ahead: _Count
    played: str
    visits: str
    newest: str
    scored: str
    scores: str


class Position(Strict):
    """Position of a runner's schedule; see ``rollout.host.schedule.Schedule.state``."""

    state_set: str
    seed: _Count
    stride: _Count
    offset: _Count
    cursor: _Count
    again: list[tuple[_Count, _Count]]
    playing: list[tuple[_Count, _Count]]
    curriculum: NotRequired[CurriculumState]


class VisitsState(Strict):
    """Visits per state; see ``rollout.host.schedule.Visits.state``."""

    state_set: str
    episodes: _Count
    counts: str


class PolicyAbout(Strict):
    """Name and options of a policy."""

    name: str
    options: dict[str, Any]


class About(TypedDict, total=False):
    """Contents of ``checkpoint.json``; other keys are for human readers."""

    __pydantic_config__ = ConfigDict(  # type: ignore[misc]
        strict=True, allow_inf_nan=False, extra="allow"
    )

    format: Required[int]
    update: Required[_Count]
    env_steps: Required[_Count]
    policy: Required[PolicyAbout]
    observation_space: Required[dict[str, dict[str, Any]]]
    action_space: Required[dict[str, dict[str, Any]]]
    sha256: Required[dict[str, str]]
    episodes: _Count
    seconds: Annotated[float, Field(ge=0)]
    positions: dict[str, Position]
    visits: VisitsState
    lost: dict[str, _Count]
    abandoned: list[_Count]
    dropped_steps: _Count


_SCHEMA: TypeAdapter[About] = TypeAdapter(About)

_log = logging.getLogger(__name__)


class CheckpointError(InputError):
    """The checkpoint does not exist, is damaged, or does not fit."""


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint that is complete; weights are read on request.

    Attributes:
        path: its folder.
        about: contents of ``checkpoint.json``.
        observation_space: the observation columns that the network reads.
        action_space: the action space of the policy.
    """

    path: Path
    about: About
    observation_space: spaces.Dict
    action_space: spaces.Dict

    @property
    def update(self) -> int:
        """Number of updates so far."""
        return self.about["update"]

    @property
    def env_steps(self) -> int:
        """Number of training steps so far."""
        return self.about["env_steps"]

    @property
    def policy(self) -> tuple[str, dict[str, Any]]:
        """Name and options of the policy."""
        return self.about["policy"]["name"], dict(self.about["policy"]["options"])

    def weights(self) -> dict[str, Any]:
        """Returns the network's tensors by name.

        Raises:
            CheckpointError: the file is damaged.
        """
        return self._tensors(_WEIGHTS)

    def optimizer(self) -> dict[str, Any]:
        """Returns the state of the optimizer.

        Raises:
            CheckpointError: the file is damaged.
        """
        return self._tensors(_OPTIMIZER)

    def _tensors(self, name: str) -> dict[str, Any]:
        import torch  # noqa: PLC0415 - slow to import

        data = _checked_bytes(self.path / name, self.about["sha256"].get(name))
        try:
            return dict(torch.load(io.BytesIO(data), map_location="cpu", weights_only=True))
        except Exception as error:  # torch raises many kinds of errors for a damaged file
            raise CheckpointError(
                f"{self.path / name} is no file of tensors, or holds more than tensors, and was "
                f"not opened; use another checkpoint"
            ) from error

    def require_spaces(self, spec: BridgeSpec) -> None:
        """Checks that the network fits a game: its observations and actions are those of the spec.

        The game may have further observations, which the network does not read.

        Raises:
            ConfigError: it does not fit; the message names both sides.
        """
        name, again = spec.name, "give the game the options it was trained with"
        pairs = [("action", self.action_space, spec.action_space)]
        pairs += [("observation", self.observation_space, spec.observation_space)]
        for what, own, offered in pairs:
            for key, leaf in own.spaces.items():
                trained = f"the checkpoint {self.path} was trained with the {what} {key!r}"
                if key not in offered.spaces:
                    raise ConfigError(
                        f"{trained}, {leaf}, and {name} as it is configured has: "
                        f"{', '.join(offered.spaces)}; {again}"
                    )
                if offered.spaces[key] != leaf:
                    raise ConfigError(
                        f"{trained} = {leaf}, and that of {name} as it is configured is "
                        f"{offered.spaces[key]}; {again}"
                    )
        extra = sorted(set(spec.action_space.spaces) - set(self.action_space.spaces))
        if extra:
            raise ConfigError(
                f"the checkpoint {self.path} chooses {', '.join(self.action_space.spaces)}, and "
                f"{name} as it is configured asks for {', '.join(extra)} too"
            )


def write_checkpoint(
    folder: Path,
    about: Mapping[str, Any],
    *,
    weights: Mapping[str, Any],
    optimizer: Mapping[str, Any],
    spec: BridgeSpec | Manifest,
    reads: tuple[str, ...],
) -> Path:
    """Writes a checkpoint into ``folder`` and returns its path.

    Args:
        folder: folder of all checkpoints of the run.
        about: JSON-able; ``update`` names the checkpoint.
        weights: tensors of the network.
        optimizer: state of the optimizer.
        spec: spec of the game, or the description of a dataset of it.
        reads: the observation columns that the network reads.

    Raises:
        OSError: writing failed; nothing of the checkpoint remains.
    """
    import torch  # noqa: PLC0415 - slow to import

    place = place_of(folder, int(about["update"]))
    beside = folder / f".{place.name}.{os.getpid()}.tmp"
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir(parents=True)
    try:
        digests = {}
        for name, tensors in ((_WEIGHTS, weights), (_OPTIMIZER, optimizer)):
            with (beside / name).open("wb") as file:
                torch.save(dict(tensors), file)
                file.flush()
                os.fsync(file.fileno())
            digests[name] = hashlib.sha256((beside / name).read_bytes()).hexdigest()
        read = spaces.Dict({key: spec.observation_space[key] for key in reads})
        text = json.dumps(
            {
                "format": FORMAT,
                **about,
                "observation_space": {k: space_to_json(s) for k, s in read.spaces.items()},
                "action_space": {k: space_to_json(s) for k, s in spec.action_space.spaces.items()},
                "sha256": digests,
            }
        )
        whole = from_json(text)  # parsed as readers do: the digest must not depend on the writer
        whole["sha256"][_ABOUT] = _digest_of(whole)
        write_atomically(beside / _ABOUT, json.dumps(whole, indent=1) + "\n")
        if place.exists():
            set_aside(place)
        beside.rename(place)
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise
    return place


def place_of(folder: Path, update: int) -> Path:
    """Returns the path of the checkpoint of an update."""
    return folder / f"{update:0{_DIGITS}d}"


def prune(folder: Path, keep: int, best: int | None = None) -> None:
    """Removes all but the newest ``keep`` checkpoints, and incomplete ones of killed sessions.

    The one of the update ``best`` stays. Only the session that writes to the folder may call it.
    """
    old = [place for place in _places(folder)[:-keep] if int(place.name) != best]
    for path in (*old, *folder.glob(".*.tmp")):
        shutil.rmtree(path, ignore_errors=True)


def find_checkpoint(path: Path | str) -> Checkpoint:
    """Returns a checkpoint by its path, or the newest of a run or of a folder of checkpoints.

    One that is named by its path may be without ``optimizer.pt``.

    Raises:
        CheckpointError: there is none, or it is damaged; the message names older intact ones.
    """
    path = Path(path).expanduser()
    if any((path / name).exists() for name in (_ABOUT, _WEIGHTS, _OPTIMIZER)):
        return _open(path, to_play=not (path / _OPTIMIZER).exists())
    for folder in (path, path / "checkpoints"):
        found = newest_checkpoint(folder)
        if found is not None:
            return found
    missing = f"no checkpoint in {path}" if path.exists() else f"no folder {path}"
    raise CheckpointError(
        f"there is {missing}; expected a folder with {_ABOUT}, or a run directory "
        f"with one in checkpoints/{_of_a_seed(path)}"
    )


def _of_a_seed(path: Path) -> str:
    """Returns which folder to name instead of that of a training with several seeds."""
    seeds = seed_folders(path)
    return f"; it has {len(seeds)} seeds: name one, {next(iter(seeds.values()))}" if seeds else ""


def newest_checkpoint(folder: Path, *, fallback: bool = False) -> Checkpoint | None:
    """Returns the newest checkpoint in a folder of checkpoints, or None.

    Args:
        folder: folder of all checkpoints of a run.
        fallback: whether to return the newest intact checkpoint if newer ones are damaged. Damaged
            ones are renamed and no longer considered. Only for the session that writes to the
            folder.

    Raises:
        CheckpointError: the newest is damaged and ``fallback`` is false, or all are damaged.
    """
    places = _places(folder)
    for place in reversed(places):
        try:
            found = _open(place)
        except CheckpointError as error:
            if _places(folder) != places:  # the writer has removed it meanwhile
                return newest_checkpoint(folder, fallback=fallback)
            if not fallback or place == places[0]:
                raise CheckpointError(f"{error}. {_older(places, place)}") from error
            _log.warning("%s: it is now %s", error, set_aside(place).name)
        else:
            return found
    return None


def any_checkpoint(folder: Path) -> Checkpoint | None:
    """Returns the newest intact checkpoint in a folder of checkpoints, and changes nothing."""
    return next(_intact(_places(folder)), None)


def _older(places: list[Path], damaged: Path) -> str:
    """Which other checkpoints can be opened, and how."""
    whole = [found.path for found in _intact(places[: places.index(damaged)])]
    if not whole:
        return "No older checkpoint is intact: restore the file from a copy, or start again"
    return (
        f"Intact, older: {', '.join(p.name for p in whole)}. To continue from {whole[0].name}, add "
        f"--set checkpoint.fallback=true to --resume (train.checkpoint.fallback=true in a sweep or "
        f"search); to play it, name {whole[0]}"
    )


def _intact(places: Sequence[Path]) -> Iterator[Checkpoint]:
    """Opens the intact checkpoints, newest first."""
    for place in reversed(places):
        with suppress(CheckpointError):
            yield _open(place)


def _places(folder: Path) -> list[Path]:
    """Paths of the checkpoints, oldest first."""
    try:
        found = [p for p in folder.iterdir() if p.name.isdecimal()]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise CheckpointError(
            f"{folder}: expected a folder of checkpoints, got: {error.strerror}; restore it"
        ) from error
    return sorted(found, key=lambda p: int(p.name))


def _open(path: Path, *, to_play: bool = False) -> Checkpoint:
    """Opens and checks a checkpoint; without its optimizer's state if it is to be played only."""
    data = _checked_bytes(file := path / _ABOUT, None)
    try:
        known = from_json(data)
        if known["format"] != FORMAT:
            version = known.get("versions", {}).get("gamut")
            raise CheckpointError(
                f"{file} has format {known['format']}, and this version of gamut reads format "
                f"{FORMAT}; open it with the version it names, {version}"
            )
        about = _SCHEMA.validate_json(data)
        read, chosen = (_spaces(about[key]) for key in ("observation_space", "action_space"))
    except ValidationError as error:
        raise CheckpointError(f"{file} is damaged: {wrong_in(error)}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, CheckpointError):
            raise
        raise CheckpointError(f"{file} is damaged: {error!r}") from error
    # Checkpoints of version 0.1 have no digest of the description itself.
    if about["sha256"].get(_ABOUT, own := _digest_of(known)) != own:
        raise CheckpointError(f"{file} is damaged: its text is not what was written")
    for name in (_WEIGHTS,) if to_play else (_WEIGHTS, _OPTIMIZER):
        _checked_bytes(path / name, about["sha256"].get(name, ""))
    return Checkpoint(path, about, read, chosen)


def _checked_bytes(file: Path, digest: str | None) -> bytes:
    """Returns the contents of a file, and checks their digest if one is given."""
    try:
        with open_file(file) as opened:
            data = opened.read()
    except OSError as error:
        raise CheckpointError(f"{file} cannot be read: {error.strerror or error}") from error
    own = hashlib.sha256(data).hexdigest()
    if digest not in (None, own):
        raise CheckpointError(
            f"{file} is damaged: its digest is {own[:12]}, expected {digest[:12] or 'one'}"
        )
    return data


def _digest_of(about: Mapping[str, Any]) -> str:
    """The digest of a description without its own digest."""
    files = {name: digest for name, digest in about["sha256"].items() if name != _ABOUT}
    text = json.dumps({**about, "sha256": files}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _spaces(data: Mapping[str, Any]) -> spaces.Dict:
    return spaces.Dict({key: space_from_json(leaf) for key, leaf in data.items()})
