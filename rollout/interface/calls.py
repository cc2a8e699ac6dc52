"""The jobs as functions: each runs the command of its name and returns a ``Run``."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from rollout.at_address import run_at
from rollout.cli import OTHER_CODE, Session
from rollout.collect import collect as run_collect
from rollout.config import CollectConfig, RunConfig, build_plugin
from rollout.configuration import document
from rollout.configuration.document import from_document
from rollout.data import Dataset
from rollout.data.tables import read_table
from rollout.errors import DatasetError, RunDirectoryError, no_exit
from rollout.evaluate.config import EvaluateConfig
from rollout.evaluate.evaluate import evaluate as run_evaluate
from rollout.files import read_lines
from rollout.observe.logs import set_up_logging
from rollout.observe.metrics import read_metrics
from rollout.observe.run_files import METRICS, RUN, SUMMARY, parse, read_json
from rollout.run_directory import folder_of
from rollout.signals import Stop
from rollout.sweep.config import SweepConfig
from rollout.sweep.jobs import job_of
from rollout.sweep.sweep import sweep as run_sweep
from rollout.testing import check_bridge
from rollout.testing.report import Report
from rollout.train.callbacks import Callback

Config: TypeAlias = str | Path | Mapping[str, Any]
"""A YAML file, or its contents."""

_C = TypeVar("_C", bound=RunConfig)


@dataclass(frozen=True)
class Run:
    """A run, ended or in progress; its files are read whenever an attribute is.

    Attributes:
        path: its run directory.
        missing: sentence on what is missing, if the run ended early; None if everything was done.

    Raises:
        RunDirectoryError: there is no run at the path.
    """

    path: Path
    missing: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", Path(self.path).expanduser().resolve())
        if not (self.path / RUN).is_file():
            raise RunDirectoryError(
                f"there is no run in {self.path}; expected a run directory, with a {RUN}"
            )

    @property
    def summary(self) -> dict[str, Any]:
        """The contents of ``summary.json``; empty before the run has ended."""
        return dict(read_json(self.path / SUMMARY))

    @property
    def metrics(self) -> list[dict[str, Any]]:
        """The lines of ``metrics.jsonl``, oldest first; ``polars.DataFrame(run.metrics)``."""
        return [dict(line) for line in read_metrics(self.path / METRICS)]

    @property
    def episodes(self) -> list[dict[str, Any]]:
        """A row for each episode that has a result, as the job recorded it.

        Of an evaluation these are the rows of ``episodes.parquet``, of a sweep those of
        ``results.parquet``, of a training those of ``episodes.jsonl``, of a collection the results
        in the index of its dataset.

        Raises:
            RunDirectoryError: the run has recorded no episode.
            DatasetError: the file is damaged.
        """
        for name in ("episodes.parquet", "results.parquet"):
            if (self.path / name).exists():
                table = read_table(self.path / name)
                rows = zip(*(column.tolist() for column in table.values()), strict=True)
                return [dict(zip(table, row, strict=True)) for row in rows]
        if (lines := self.path / "episodes.jsonl").exists():
            return list(_rows(lines))
        if (self.path / "dataset").exists():
            with self.dataset as dataset:
                return [row for row in dataset.index.to_pylist() if row["end"] != "lost"]
        raise RunDirectoryError(f"the run in {self.path} has recorded no episode")

    @property
    def dataset(self) -> Dataset:
        """The dataset of a collection.

        Raises:
            DatasetError: the run has recorded none.
        """
        return Dataset(self.path / "dataset")

    def __repr__(self) -> str:
        state = "done" if self.missing is None else self.missing
        return f"Run({str(self.path)!r}, {json.dumps(self.summary.get('status', state))})"


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    """Yields the episodes of a run that has not ended; an incomplete last line is left out."""
    for number, raw in enumerate(read_lines(path), start=1):
        if not raw.endswith(b"\n"):
            return
        row = parse(raw)
        if row is None:
            raise DatasetError(
                f"{path}:{number}: expected an episode, got {raw[:40]!r}; remove the line"
            )
        yield row


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
        missing = run_at(job, made, Session(resume, stop), *more)
    return Run(folder_of(made.output), missing)


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
