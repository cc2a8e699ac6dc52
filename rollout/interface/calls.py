"""The jobs as functions: each runs the command of its name and returns the run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from rollout.cli import OTHER_CODE, Session
from rollout.collect import collect as run_collect
from rollout.config import CollectConfig, RunConfig, build_plugin
from rollout.configuration import document
from rollout.configuration.document import from_document
from rollout.errors import no_exit
from rollout.evaluate.config import EvaluateConfig
from rollout.evaluate.evaluate import evaluate as run_evaluate
from rollout.interface.run import Run
from rollout.observe.logs import set_up_logging
from rollout.run_directory import absolute
from rollout.signals import Stop
from rollout.sweep.config import SweepConfig
from rollout.sweep.sweep import sweep as run_sweep
from rollout.testing import check_bridge
from rollout.testing.report import Report
from rollout.train.callbacks import Callback
from rollout.train.jobs import job_of

Config: TypeAlias = str | Path | Mapping[str, Any]
"""A YAML file, or its contents."""

_C = TypeVar("_C", bound=RunConfig)


def collect(config: Config | None = None, /, *, resume: bool = False, **keys: Any) -> Run:
    """Plays a policy in a game and records the episodes.

    Args:
        config: a YAML file, or a mapping of keys; None if ``keys`` are all.
        resume: continue the run in the output directory.
        keys: keys that win over the configuration, as by ``--set``; for a key in a section use
            ``**{"algorithm.lr": 1e-3}``.

    Returns:
        the run; ``run.missing`` says what is missing if it ended early.

    Raises:
        InputError: the configuration is invalid; nothing was launched.
        KeyboardInterrupt: a signal arrived; what was done is saved.
    """
    return _run(CollectConfig, config, keys, resume, run_collect)


def train(
    config: Config | None = None,
    /,
    *,
    resume: bool = False,
    on_update: Callback | Sequence[Callback] = (),
    **keys: Any,
) -> Run:
    """Trains a policy by any algorithm; arguments, result and errors are as those of ``collect``.

    Args:
        config: see ``collect``.
        resume: see ``collect``.
        on_update: one or several functions that are called after every update with an
            ``UpdateRecord``; the training ends if one returns True.
        keys: see ``collect``.
    """
    called = (on_update,) if callable(on_update) else tuple(on_update)
    source = _document(config, keys)
    function, model = job_of(source.data)
    return _run(model, config, keys, resume, function, called)


def evaluate(config: Config | None = None, /, *, resume: bool = False, **keys: Any) -> Run:
    """Plays policies on state sets; arguments, result and errors are as those of ``collect``.

    ``evaluate(player=RUN_DIR)`` evaluates a training run on its own game.
    """
    return _run(EvaluateConfig, config, keys, resume, run_evaluate)


def sweep(config: Config | None = None, /, *, resume: bool = False, **keys: Any) -> Run:
    """Trains on sets of growing size; arguments, result and errors are those of ``collect``."""
    return _run(SweepConfig, config, keys, resume, run_sweep)


def check(bridge: str, *, steps: int = 100, width: int | None = None, **options: Any) -> Report:
    """Returns the report of the conformance suite on a bridge; ``print(report.table())``.

    Args:
        bridge: its name.
        steps: length of each trajectory.
        width: slots of an instance; about 4 if None.
        options: of the bridge.

    Raises:
        InputError: there is no such bridge or option.
        ContractError: the bridge has no usable spec.
    """
    return check_bridge(build_plugin("bridges", bridge, options), steps=steps, width=width)


def _run(
    model: type[_C],
    config: Config | None,
    keys: Mapping[str, Any],
    resume: bool,
    job: Callable[..., str | None],
    *more: object,
) -> Run:
    made = from_document(model, _document(config, keys))
    set_up_logging(getattr(made, "log").level)  # noqa: B009 - every job has this section
    if isinstance(config, str | Path):
        document.log_packaged(Path(config).expanduser())
    with Stop() as stop, no_exit(OTHER_CODE):
        missing = job(made, Session(resume, stop), *more)
    return Run(absolute(made.output), missing)


def _document(config: Config | None, keys: Mapping[str, Any]) -> document.Document:
    """Returns the document of a configuration with the given keys replaced."""
    if config is None or isinstance(config, Mapping):
        source = document.Document(dict(config or {}))
    else:
        source = document.read(Path(config).expanduser())
    return source.override(_plain(keys).items())


def _plain(keys: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the keys with paths as text and runs as their paths."""
    return {
        key: str(getattr(value, "path", value)) if isinstance(value, Path | Run) else value
        for key, value in keys.items()
    }
