"""Checkpoints: folders that say what is in them, and that open on any machine.

::

    checkpoint.json   policy, game, task, spaces, counters, schedules; names and digests the rest
    weights.pt        the network's, a mapping of tensors
    optimizer.pt      what resuming needs besides

A checkpoint is written beside its place and renamed into it, so there is never half of one. Files
of tensors are read without running any code they might hold.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gymnasium import spaces

from rollout.api import BridgeSpec
from rollout.data.space_json import space_from_json, space_to_json
from rollout.errors import ConfigError, InputError

FORMAT = 1
_ABOUT, _WEIGHTS, _OPTIMIZER = "checkpoint.json", "weights.pt", "optimizer.pt"
_NEEDED = {"update", "env_steps", "policy", "observation_space", "action_space", "sha256"}
_DIGITS = 8  # of the update in a folder's name, so that names sort


class CheckpointError(InputError):
    """There is no such checkpoint, it is damaged, or it is of something else."""


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint that was found; weights are read when they are asked for.

    Attributes:
        path: its folder.
        about: what ``checkpoint.json`` says.
    """

    path: Path
    about: Mapping[str, Any]

    @property
    def update(self) -> int:
        """Number of updates that were made."""
        return int(self.about["update"])

    @property
    def env_steps(self) -> int:
        """Steps that were trained on."""
        return int(self.about["env_steps"])

    @property
    def policy(self) -> tuple[str, dict[str, Any]]:
        """Name and options of the policy."""
        return str(self.about["policy"]["name"]), dict(self.about["policy"]["options"])

    @property
    def observation_space(self) -> spaces.Dict:
        """The observation columns that the network reads."""
        return _spaces(self.about["observation_space"])

    @property
    def action_space(self) -> spaces.Dict:
        """The actions it chooses."""
        return _spaces(self.about["action_space"])

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

        file = self.path / name
        try:
            digest = hashlib.sha256(file.read_bytes()).hexdigest()
            if digest != self.about["sha256"][name]:
                raise CheckpointError(
                    f"{file} is damaged: its digest is {digest[:12]}, expected "
                    f"{self.about['sha256'][name][:12]}; use another checkpoint"
                )
        except OSError as error:
            raise CheckpointError(f"{file} cannot be read: {error.strerror or error}") from error
        try:
            return dict(torch.load(file, map_location="cpu", weights_only=True))
        except Exception as error:  # whatever torch says of a file that it does not trust
            raise CheckpointError(
                f"{file} is no file of tensors, or holds more than tensors, and was not opened; "
                f"use another checkpoint"
            ) from error

    def require_spaces(self, spec: BridgeSpec) -> None:
        """Checks that the network fits a game: it reads what is there, and chooses what is asked.

        Columns that the network does not read may be added to the game's observations.

        Raises:
            ConfigError: it does not fit; both sides are named.
        """
        pairs = [("action", self.action_space, spec.action_space)]
        pairs += [("observation", self.observation_space, spec.observation_space)]
        for what, own, offered in pairs:
            for key, leaf in own.spaces.items():
                if key not in offered.spaces:
                    raise ConfigError(
                        f"the checkpoint {self.path} was trained with the {what} {key!r}, {leaf}, "
                        f"and {spec.name} as it is configured has: {', '.join(offered.spaces)}; "
                        f"give the game the options it was trained with"
                    )
                if offered.spaces[key] != leaf:
                    raise ConfigError(
                        f"the checkpoint {self.path} was trained with the {what} {key!r} = {leaf}, "
                        f"and that of {spec.name} as it is configured is {offered.spaces[key]}; "
                        f"give the game the options it was trained with"
                    )
        extra = sorted(set(spec.action_space.spaces) - set(self.action_space.spaces))
        if extra:
            raise ConfigError(
                f"the checkpoint {self.path} chooses {', '.join(self.action_space.spaces)}, and "
                f"{spec.name} as it is configured asks for {', '.join(extra)} too"
            )


def write_checkpoint(
    folder: Path,
    about: Mapping[str, Any],
    *,
    weights: Mapping[str, Any],
    optimizer: Mapping[str, Any],
    spec: BridgeSpec,
    reads: tuple[str, ...],
) -> Path:
    """Writes a checkpoint into ``folder`` and returns where it lies.

    Args:
        folder: of all checkpoints of the run.
        about: JSON-able; ``update`` names the checkpoint.
        weights: tensors of the network.
        optimizer: its state.
        spec: of the game.
        reads: the observation columns that the network reads.

    Raises:
        OSError: the disk refuses; nothing of it stays.
    """
    import torch  # noqa: PLC0415 - slow to import

    place = folder / f"{int(about['update']):0{_DIGITS}d}"
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
        whole = {
            "format": FORMAT,
            **about,
            "observation_space": {k: space_to_json(s) for k, s in read.spaces.items()},
            "action_space": {k: space_to_json(s) for k, s in spec.action_space.spaces.items()},
            "sha256": digests,
        }
        with (beside / _ABOUT).open("w") as text:
            text.write(json.dumps(whole, indent=1) + "\n")
            text.flush()
            os.fsync(text.fileno())
        if place.exists():  # written by a session that was killed before it could say so
            shutil.rmtree(place)
        beside.rename(place)
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise
    return place


def prune(folder: Path, keep: int) -> None:
    """Removes all but the newest ``keep`` checkpoints, and what killed sessions left half of.

    Only the one session that writes to the folder may call it.
    """
    kept = _inside(folder)[-keep:]
    rest = [p for p in folder.iterdir() if p.name.isdigit() and p not in kept]
    for path in (*rest, *folder.glob(".*.tmp")):
        shutil.rmtree(path, ignore_errors=True)


def find_checkpoint(path: Path | str) -> Checkpoint:
    """Returns a checkpoint: the folder itself, or the newest in a run or its checkpoints folder.

    Raises:
        CheckpointError: there is none, or it cannot be read.
    """
    path = Path(path).expanduser()
    for folder in (path, path / "checkpoints"):
        if (folder / _ABOUT).exists():
            return _read(folder)
        found = _inside(folder)
        if found:
            return _read(found[-1])
    raise CheckpointError(
        f"there is no checkpoint in {path}; expected a folder with {_ABOUT}, or a run directory "
        f"with one in checkpoints/"
    )


def newest_checkpoint(folder: Path) -> Checkpoint | None:
    """Returns the newest checkpoint in a folder of them, or None."""
    found = _inside(folder)
    return _read(found[-1]) if found else None


def _inside(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(p for p in folder.iterdir() if p.name.isdigit() and (p / _ABOUT).exists())


def _read(path: Path) -> Checkpoint:
    file = path / _ABOUT
    try:
        about = json.loads(file.read_text())
        known = about["format"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{file} is damaged ({error}); use another checkpoint") from error
    if known != FORMAT:
        raise CheckpointError(
            f"{file} has format {known}, and this version of gamut reads format {FORMAT}; open it "
            f"with the version it names, {about.get('versions', {}).get('gamut')}"
        )
    missing = sorted(_NEEDED - about.keys())
    if missing:
        raise CheckpointError(
            f"{file} is damaged: it does not say {', '.join(missing)}; use another checkpoint"
        )
    return Checkpoint(path, about)


def _spaces(data: Mapping[str, Any]) -> spaces.Dict:
    return spaces.Dict({key: space_from_json(leaf) for key, leaf in data.items()})
