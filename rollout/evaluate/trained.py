"""The keys of an evaluation that follow from a training run: game, task, player and state sets."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from rollout.api import Task
from rollout.config import BridgeConfig, StateSetConfig, make_config, resolved
from rollout.configuration.document import read
from rollout.errors import ConfigError, named
from rollout.named_code import check_code
from rollout.tasks import bridge_and_task

PLAYER = "trained"
_STATES = 100  # of each set: enough for an interval, and played in a minute by small games
_FOLLOW = ("bridge", "task", "players", "sets", "output")


def completed(given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the keys of an evaluation, with those that it does not give taken from its player.

    The sets are states that the run trained on and states of its validation part, of each at most
    100. Test states are not opened unless ``sets`` names them.

    Args:
        given: keys, among them ``player``: a run directory of a training, or a checkpoint in it.

    Raises:
        InputError: ``player`` is not of a training run, or its game imports a module of the current
            folder that ``given`` does not name.
    """
    player = given["player"]
    if not isinstance(player, str) or not player:
        raise ConfigError(f"player: expected the folder of a training run, got {player!r}")
    if all(key in given for key in _FOLLOW) and "name" in dict(given["bridge"] or {}):
        return dict(given)
    run = _run_of(Path(player).expanduser())
    trained = read(run / "config.yaml").data
    bridge, states = dict(trained["bridge"]), dict(trained["state_set"])
    changed = given.get("bridge") or {}
    bridge |= changed if isinstance(changed, Mapping) else {"name": changed}
    task = given.get("task", trained["task"])
    config = make_config(BridgeConfig, bridge)
    own = set(changed) if isinstance(changed, Mapping) else set()
    check = partial(check_code, source=f"the run {run}", kind="bridge", given=own)
    with named("bridge"):
        check(config.build())
        _, _, built = bridge_and_task(config, task, None if "task" in given else check)
    return {
        "output": str(run / "evaluation"),
        "players": {PLAYER: {"name": "checkpoint", "path": player}},
        "sets": _sets(states, built) if "sets" not in given else None,
        **given,
        "task": task,
        "bridge": bridge,
    }


def _run_of(path: Path) -> Path:
    for folder in (path, *path.parents[:2]):
        if (folder / "config.yaml").is_file() and (folder / "checkpoints").is_dir():
            return folder
    raise ConfigError(
        f"player: expected the run directory of a training with its checkpoints, got {path}; train "
        f"one by `gamut train`, or name its output"
    )


def _sets(states: dict[str, Any], built: Task) -> dict[str, Any]:
    """The states it trained on, and validation states if there are any."""
    config = make_config(StateSetConfig, states)
    if config.states is not None:
        return {"train": states}
    own = config.take(built.state_space)
    sets = {"train": {**states, "size": min(own.size, _STATES)}}
    if held_out := config.splits(built.state_space).part_size("validation"):
        sets["validation"] = resolved(config.of_part("validation", min(held_out, _STATES)))
    return sets
