"""The job and the configuration of a training, by what its algorithm learns from."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Mapping
from typing import Any, get_args

from rollout.api import LearnsFrom
from rollout.errors import ContractError, InputError
from rollout.registry import load_plugin

_LANGUAGE, _OFFLINE = "rollout.train.language", "rollout.train.offline"
_JOBS: Mapping[LearnsFrom, tuple[str, str]] = {
    "fragments": ("rollout.train.train:train", "rollout.train.config:TrainConfig"),
    "groups": (f"{_LANGUAGE}.groups:play_groups", f"{_LANGUAGE}.config:PlayGroupsConfig"),
    "answers": (f"{_LANGUAGE}.sft:fine_tune", f"{_LANGUAGE}.config:FineTuneConfig"),
    "actions": (
        "rollout.train.offline:learn_offline",
        "rollout.train.offline_config:OfflineConfig",
    ),
}


def learns_from(algorithm: str) -> LearnsFrom:
    """Returns what an algorithm learns from; fragments if it does not say.

    Raises:
        UnknownNameError: there is no such algorithm.
        PluginImportError: it cannot be imported.
        ContractError: it learns from something else.
    """
    found: LearnsFrom = getattr(load_plugin("algorithms", algorithm), "learns_from", "fragments")
    if found not in _JOBS:
        raise ContractError(
            f"algorithm {algorithm!r}: learns_from={found!r}; expected one of "
            f"{', '.join(get_args(LearnsFrom))}"
        )
    return found


def job_of(data: Mapping[str, Any]) -> tuple[Any, Any]:
    """Returns the function that trains as a configuration says, and the configuration's class.

    Args:
        data: the configuration as plain data. Where it names no algorithm that can be loaded, its
            class says what is wrong.
    """
    given = data.get("algorithm")
    name = given.get("name") if isinstance(given, Mapping) else given
    kind: LearnsFrom = "fragments"
    if isinstance(name, str):
        with contextlib.suppress(InputError):
            kind = learns_from(name)
    function, config = map(_named, _JOBS[kind])
    return function, config


def _named(path: str) -> Any:
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(module), name)
