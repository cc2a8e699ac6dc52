"""What describes an export: its ``config.json``, and a model card as hubs show it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rollout.api import MASK, leaf_dtype, leaf_shape
from rollout.data.space_json import space_to_json
from rollout.observe.run_files import SUMMARY, read_json
from rollout.reports import render
from rollout.run_directory import versions
from rollout.train.checkpoint import Checkpoint
from rollout.train.export.network import MEMORY, ExportedNetwork
from rollout.train.history import History

_FORMAT = 1


def config_of(checkpoint: Checkpoint, module: ExportedNetwork, file: str) -> dict[str, Any]:
    """Returns the contents of ``config.json``: what goes in, what comes out, where it is from.

    Args:
        checkpoint: the checkpoint.
        module: its network.
        file: name of the exported network.
    """
    about: Mapping[str, Any] = checkpoint.about
    trained = about.get("versions") or {}
    name, options = checkpoint.policy
    return {
        "format": _FORMAT,
        "file": file,
        "game": about["bridge"],
        "task": about.get("task", ""),
        "policy": {"name": name, "options": options},
        "update": checkpoint.update,
        "env_steps": checkpoint.env_steps,
        "run_id": about.get("run_id", ""),
        "inputs": [_input(checkpoint, module, each) for each in module.inputs],
        "outputs": [{"name": each} for each in module.outputs],
        "layout": module.network.describe_outputs(),
        "observation_space": {
            key: space_to_json(leaf) for key, leaf in checkpoint.observation_space.spaces.items()
        },
        "action_space": {
            key: space_to_json(leaf) for key, leaf in checkpoint.action_space.spaces.items()
        },
        "commit": trained.get("commit"),
        "versions": {"trained": trained, "exported": versions()},
    }


def _input(checkpoint: Checkpoint, module: ExportedNetwork, name: str) -> dict[str, Any]:
    if name.startswith(MEMORY):
        shape, dtype, role = [module.network.memory_size], "float32", "memory"
    else:
        leaf = checkpoint.observation_space[name]
        shape, dtype, role = list(leaf_shape(leaf)), leaf_dtype(leaf).name, "observation"
    return {"name": name, "role": role, "dtype": dtype, "shape": shape}


def card(about: Mapping[str, Any], checkpoint: Checkpoint, run: Path, format: str) -> str:  # noqa: A002 - as its option
    """Returns the model card, in the format of Hugging Face.

    Args:
        about: contents of ``config.json``.
        checkpoint: the checkpoint.
        run: the run directory.
        format: of the export.
    """
    game, options = about["game"]["name"], about["game"]["options"]
    names = [each["name"] for each in about["inputs"] if each["role"] == "observation"]
    plain = names == ["observation"] and list(checkpoint.action_space) == ["action"]
    title = str(options.get("id", game))
    made = {"id": title, "kwargs": options.get("kwargs") or {}}
    return render(
        "model",
        about=about,
        title=title,
        gymnasium=made if game == "gymnasium" and plain else None,
        format=format,
        scores=list(_scores(checkpoint, run)),
        masks=[name for name in names if name.startswith(MASK)],
    )


def _scores(checkpoint: Checkpoint, run: Path) -> Iterator[dict[str, Any]]:
    """Yields the result of its validation; without one, that of the training at its end."""
    summary = read_json(run / SUMMARY)
    validation = (summary.get("protocol") or {}).get("validation") or {}
    for entry in History(checkpoint.path.parent).entries:
        if entry["update"] == checkpoint.update and entry["score"] is not None:
            name = str(validation.get("metric", "score"))
            yield {"name": name, "what": "validation", **entry}
            return
    results = summary.get("results") or {}
    last = (results.get("last") or {}).get("episode/return")
    if results.get("updates") == checkpoint.update and isinstance(last, int | float):
        yield {"name": "return", "what": "last update of the training", "score": last}
