"""The run directory: inputs, outputs and identity of one run.

::

    run.json        the run's id, its kind, and every session that worked on it
    config.yaml     every key, including defaults
    environment.txt the installed packages of the newest session, for pip install -r
    metrics.jsonl   measurements, one line each; dashboards mirror this file
    lineage.jsonl   datasets and checkpoints that it used and made, and its results
    run.log         the log
    summary.json    the results, written at the end
    dataset/        the recorded dataset
    dropped.jsonl   results of the episodes that quotas did not need
    checkpoints/    the trained weights
    videos/         the videos
    tables/         samples of the calls of models, if the policy calls any
    wandb/          the files of the W&B mirror
    tensorboard/    event files, if log.tensorboard is set
    .run.lock       locked by the process that works on the run
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import re
import secrets
import shutil
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from shlex import quote
from typing import Any, TypeVar

from rollout.api import cache_folder
from rollout.checkout import commit_of, working_commit
from rollout.config import RunConfig, load_config, resolved, write_config
from rollout.configuration.secrets import hidden, refuse_secrets
from rollout.environment import changed_packages, environment_text, installed
from rollout.errors import ConfigError, InputError, RunDirectoryError, is_disk_full
from rollout.files import locked, parse_json, read_document, remote, store_address, write_atomically
from rollout.host.processes import RUN_ID
from rollout.observe.run_files import LINEAGE, LOG, METRICS, RUN, RUNS_DIR, SUMMARY, read_about

_SWEEP, _SWEEP_RUN = "WANDB_SWEEP_ID", "WANDB_RUN_ID"  # set by `wandb agent`
IN_RAY_JOB = "RAY_JOB_CONFIG_JSON_ENV_VAR"
"""Environment variable that Ray sets in jobs."""
_CONFIG, LOCK, _ENVIRONMENT = "config.yaml", ".run.lock", "environment.txt"
_BEGINNING = {
    *(LOCK, RUN, _CONFIG, _ENVIRONMENT, METRICS, LOG, LINEAGE),
    *("dataset/dataset.json", "dataset/dataset.lock", "dataset/README.md", "sets.json"),
}
"""Files of a run in which nothing was recorded, except those of the mirror."""

_NAME = 80  # characters of an address in the name of a folder
_PACKAGES = ("gamut", "ray", "torch", "numpy", "gymnasium", "pyarrow")

_C = TypeVar("_C", bound=RunConfig)


class RunDirectory:
    """The directory of one run, made by ``create``; the module lists what lies in it.

    The folders ``dataset``, ``checkpoints``, ``videos`` and ``wandb`` are made by their writers.

    Attributes:
        path: its absolute path.
        run_id: permanent id of the run, also on dashboards.
        resume_count: number of times the run was resumed; 0 in its first session.
    """

    def __init__(self, path: Path, run_id: str, resume_count: int) -> None:
        self.path, self.run_id, self.resume_count = path, run_id, resume_count
        self.config_file, self.summary_file = path / _CONFIG, path / SUMMARY
        self.metrics, self.log = path / METRICS, path / LOG
        self.dataset, self.checkpoints = path / "dataset", path / "checkpoints"
        self.dropped = path / "dropped.jsonl"
        self.videos, self.wandb = path / "videos", path / "wandb"

    @classmethod
    def create(
        cls,
        path: Path | str,
        config: RunConfig,
        *,
        resume: bool,
        games: Sequence[Mapping[str, Any]] = (),
    ) -> RunDirectory:
        """Returns the directory of a new or resumed run, with its configuration written.

        Resuming where no run exists begins one, so that a job that is restarted repeatedly can
        always be given ``--resume``.

        A relative path is below ``GAMUT_RUNS_DIR`` if that is set. Under an agent of a W&B sweep,
        the run is a subfolder with the name of the agent's run.

        ``games`` describes the interpreters of the games, for the session, if they are others.

        Raises:
            RunDirectoryError: the folder contains another run or other files, or cannot be used.
            ConfigError: the configuration holds a secret, which would be written.
        """
        refuse_secrets(resolved(config))
        folder = folder_of(path)
        config = config.model_copy(update={"output": Path(address_of(folder) or folder)})
        with _usable(folder):
            folder.mkdir(parents=True, exist_ok=True)
            found = _found(folder)
            if not found:
                now = datetime.now(UTC)
                about: dict[str, Any] = {
                    "run_id": f"{now:%Y%m%d-%H%M%S}-{secrets.token_hex(3)}",
                    "kind": type(config).__name__,
                    "sessions": [],
                }
                changes: list[str] = []
            elif RUN in found:
                about = read_about(folder)
                changes = _check_same(folder, about, config, resume=resume)
            else:
                raise _taken(folder, found)
            environment, changed = _environment(folder / _ENVIRONMENT)
            about["sessions"].append(
                {
                    "started": datetime.now(UTC).isoformat(timespec="seconds"),
                    "host": socket.gethostname(),
                    "pid": os.getpid(),
                    "argv": sys.argv,
                    "changes": [*changes, *changed],
                    "versions": versions(),
                    **({"games": [*games]} if games else {}),
                }
            )
            run = cls(folder, about["run_id"], len(about["sessions"]) - 1)
            os.environ[RUN_ID] = run.run_id  # games are marked with it, wherever they run
            write_atomically(folder / RUN, json.dumps(about, indent=2) + "\n")
            write_config(config, run.config_file)
            write_atomically(folder / _ENVIRONMENT, environment)
        return run

    @classmethod
    @contextmanager
    def opened(
        cls,
        path: Path | str,
        config: RunConfig,
        *,
        resume: bool,
        wait_s: float = 0.0,
        games: Sequence[Mapping[str, Any]] = (),
    ) -> Iterator[RunDirectory]:
        """Opens a run as ``create`` does, for a session; removes a new run with invalid input.

        Some errors are only found at launch, such as a game that is not installed. Nothing was
        recorded then, so the corrected command finds the directory free as before.

        Raises:
            RunDirectoryError: as ``create``, or another process worked on the run for ``wait_s``
                seconds, or the directory was removed meanwhile.
        """
        with _alone(folder_of(path), wait_s):
            run = cls.create(path, config, resume=resume, games=games)
            try:
                with run._there():
                    yield run
            except InputError:
                if run.resume_count == 0 and run._unused():
                    shutil.rmtree(run.path, ignore_errors=True)
                raise
            except OSError as error:
                file = error.filename2 or error.filename
                own = isinstance(file, str) and run.path in Path(file).parents
                if is_disk_full(error) or not own:
                    raise
                raise RunDirectoryError(
                    f"{file}: {error.strerror}; it is not what the run left there: restore it or "
                    f"move it away, then continue with --resume"
                ) from error

    @contextmanager
    def _there(self) -> Iterator[None]:
        """Explains errors that follow from the loss of the whole directory."""
        try:
            yield
        except Exception as error:
            if (self.path / RUN).exists():
                raise
            raise RunDirectoryError(
                f"output {self.path} was removed or moved while the run worked in it, so the run "
                f"ends; if it was moved, move it back, then continue with --resume"
            ) from error

    def _unused(self) -> bool:
        """True if it contains only the files with which every run begins."""
        files = [p.relative_to(self.path) for p in self.path.rglob("*") if not p.is_dir()]
        known = (str(p) in _BEGINNING or p.parts[0] == self.wandb.name for p in files)
        measured = self.metrics.exists() and self.metrics.stat().st_size > 0
        return all(known) and not measured

    def write_summary(self, summary: Mapping[str, Any]) -> None:
        """Writes ``summary.json`` atomically: readers see the old one or the new one.

        Raises:
            TypeError: a value is not JSON-able.
            OSError: it cannot be written.
        """
        write_atomically(self.summary_file, json.dumps(dict(summary), indent=2) + "\n")


def absolute(path: Path | str) -> Path:
    """Returns the absolute path of an output directory.

    That of an address in a store is the folder in the cache in which its run works.

    Raises:
        RunDirectoryError: the path is relative and would be in the folder of a Ray job, which is
            removed with the job; or it is a URL of something else than a store.
    """
    if address := store_address(path):
        return cached_output(address)
    if said := remote(str(path)):
        raise RunDirectoryError(f"output: {said}")
    path = Path(path).expanduser()
    if path.is_absolute():
        return path.resolve()
    runs = os.environ.get(RUNS_DIR)
    if runs:
        base = Path(runs).expanduser()
        if not base.is_absolute():
            raise RunDirectoryError(f"{RUNS_DIR}={runs}: expected an absolute path; set one")
        return (base / path).resolve()
    if IN_RAY_JOB in os.environ:
        raise RunDirectoryError(
            f"output {path} is relative, and the working directory of a Ray job goes away with the "
            f"job; give an absolute output, or set {RUNS_DIR} in the job's env_vars"
        )
    return path.resolve()


def folder_of(path: Path | str) -> Path:
    """Returns the folder of the run whose ``output`` is ``path``; see ``RunDirectory.create``."""
    if address := output_address(path):
        return cached_output(address)
    return absolute(path) / _of_agent()


def output_address(path: Path | str) -> str:
    """Returns the address of the run whose ``output`` is ``path``; empty for a local folder."""
    address = store_address(path)
    return "/".join(filter(None, (address, _of_agent()))) if address else ""


def _of_agent() -> str:
    """Returns the run of an agent of a W&B sweep: all agents have the same output."""
    return os.environ[_SWEEP_RUN] if {_SWEEP, _SWEEP_RUN} <= os.environ.keys() else ""


def require_local(path: Path | str, what: str) -> None:
    """Refuses an address as the output of what writes files of its own beside a run.

    Raises:
        RunDirectoryError: it is one.
    """
    if address := store_address(path):
        raise RunDirectoryError(f"output {address}: {what} needs a local folder; name one")


def cached_output(address: str) -> Path:
    """Returns the folder in the cache in which the run at an address works."""
    words = re.sub(r"[^\w.]+", "-", address)[:_NAME]
    name = f"{words}-{hashlib.sha256(address.encode()).hexdigest()[:8]}"
    return outputs_folder() / name / address.rpartition("/")[2]


def outputs_folder() -> Path:
    """Returns the folder of the runs whose outputs are addresses."""
    return cache_folder().expanduser().resolve() / "outputs"


def address_of(folder: Path) -> str:
    """Returns the address to which a run is copied; empty if it is not."""
    place = folder.parent
    if place.parent != outputs_folder():
        return ""
    try:
        return str(parse_json(read_document(place / "address.json"))["address"])
    except (OSError, ValueError, LookupError, TypeError):
        return ""


def _environment(file: Path) -> tuple[str, list[str]]:
    """Returns the contents of ``environment.txt``, and what has changed since the last session."""
    packages = installed()
    before = read_document(file).decode(errors="replace") if file.exists() else ""
    return environment_text(packages), changed_packages(before, packages) if before else []


@contextmanager
def _usable(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise RunDirectoryError(
            f"output {folder} cannot be used: {error.strerror or error}; choose another output"
        ) from error


def _found(folder: Path) -> list[str]:
    """Returns the contents of a folder, except files of a crash before a run had begun."""
    names = (p.name for p in folder.iterdir() if not (p.name[0] == "." and p.suffix == ".tmp"))
    return sorted(name for name in names if name != LOCK)


@contextmanager
def _alone(folder: Path, wait_s: float) -> Iterator[None]:
    """Locks a run against other processes while this one works on it."""
    with contextlib.ExitStack() as stack:
        with _usable(folder):
            folder.mkdir(parents=True, exist_ok=True)
            found = _found(folder)
            if not found or RUN in found:  # otherwise it is not our folder
                try:
                    stack.enter_context(locked(folder / LOCK, wait_s))
                except BlockingIOError as error:
                    raise RunDirectoryError(
                        f"{error.strerror} is working on the run in {folder}; wait for it or stop "
                        f"it, or choose another output"
                    ) from None
        yield


def require_new(path: Path | str) -> None:
    """Checks that a new run could have a directory; changes nothing.

    Raises:
        RunDirectoryError: it contains a run or other files.
    """
    folder = folder_of(path)
    if folder.exists() and (found := _found(folder)):
        raise _taken(folder, found)


def _taken(folder: Path, found: Sequence[str]) -> RunDirectoryError:
    """Returns the error of an output that has files."""
    if RUN in found:
        return RunDirectoryError(
            f"output {folder} already contains the run {read_about(folder)['run_id']}; continue it "
            f"with --resume, or choose another output"
        )
    return RunDirectoryError(
        f"output {folder} is not empty and holds no run (found {', '.join(found[:5])}); choose "
        f"another output"
    )


def _check_same(
    folder: Path, about: Mapping[str, Any], config: RunConfig, *, resume: bool
) -> list[str]:
    """Returns harmless differences to the existing run; raises if there are others."""
    kind = type(config).__name__
    if about.get("kind") != kind:
        raise RunDirectoryError(
            f"output {folder} holds a run of kind {about.get('kind')}, expected {kind}; choose "
            f"another output"
        )
    if not resume:
        raise _taken(folder, [RUN])
    file = folder / _CONFIG
    if not file.exists():
        return []  # the run was interrupted before it began: nothing to compare with
    try:
        old = load_config(type(config), file)
    except ConfigError as error:
        raise RunDirectoryError(f"the run in {folder} cannot be resumed: {error}") from error
    before, after = _flat(resolved(old)), _flat(resolved(config))
    changed = [k for k in {**before, **after} if before.get(k) != after.get(k)]
    words = {k: f"{k}: {_show(before, k)} -> {_show(after, k)}" for k in changed}
    refused = [k for k in changed if not _may_change(config, k, before.get(k), after.get(k))]
    if refused:
        own = [k for k in refused if not any(_follows(config, k, other) for other in refused)]
        again = [quote(f"{k}={_show(before, k)}") for k in own if k in before]
        how = [f"set {' '.join(again)}"] if again else []
        how += [f"leave {k} out" for k in own if k not in before]
        raise RunDirectoryError(
            f"the run in {folder} was begun with another configuration "
            f"({'; '.join(words[k] for k in own)}); {', '.join(how)} to resume it, or choose "
            f"another output"
        )
    return [words[k] for k in changed]


def _follows(config: RunConfig, key: str, other: str) -> bool:
    """Returns whether the value of a key may be derived from that of another key."""
    section, _, name = other.rpartition(".")
    decided = config.derives.get(other, ())
    if name == "name" and section:  # of a plug-in, whose options are beside it
        decided = (section,)
    return not key.endswith(".name") and any(f"{key}.".startswith(f"{each}.") for each in decided)


def as_begun(config: _C, *, resume: bool) -> _C:
    """Returns a configuration with what the run that it resumes has chosen for itself.

    A key whose null leaves the choice to the program (``RunConfig.chosen``) may have got its value
    from keys that have changed since, such as the number of episodes.
    """
    left = config.left_open()
    if not resume or not left:
        return config
    try:
        begun = load_config(type(config), folder_of(config.output) / _CONFIG)
    except InputError:
        return config  # there is no run yet, or what is wrong with it is said where it is opened
    return config.model_copy(update={k: getattr(begun, k) for k in left})


def _may_change(config: RunConfig, key: str, before: Any, after: Any) -> bool:
    if any(fnmatchcase(key, k) or fnmatchcase(key, f"{k}.*") for k in config.may_change):
        return True
    if key not in config.may_grow:
        return False
    if isinstance(before, list):
        return isinstance(after, list) and {*before} <= {*after}
    return after is None or (before is not None and after >= before)


def _flat(data: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in data.items():
        if isinstance(value, Mapping) and value:
            flat.update(_flat(value, f"{prefix}{key}."))
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def _show(data: Mapping[str, Any], key: str) -> str:
    return hidden(json.dumps(data[key])) if key in data else "not given"


def versions() -> dict[str, str | int | None]:
    """Returns the environment of the run: package versions, commits, platform, CPU count.

    ``commit`` is that of Gamut when this process first asked, ``working_directory`` that of the
    checkout in which it was called.

    The version of a package that is not installed is None, and so is a commit if the code comes
    neither from a checkout nor with a job that was sent from one.
    A commit ends in ``-dirty`` if tracked files were changed.
    """
    found: dict[str, str | int | None] = {"python": platform.python_version()}
    found |= {name: _version(name) for name in _PACKAGES}
    found["commit"] = _code_commit()
    found["working_directory"] = working_commit()
    found["platform"] = platform.platform()
    found["cpus"] = os.cpu_count()
    return found


@cache
def _code_commit() -> str | None:
    """Returns the commit of Gamut, read once: the code that runs is not read again either."""
    return commit_of(Path(__file__).resolve().parent.parent)


@cache
def _version(package: str) -> str | None:
    """Returns the version of a package, read once: that of PyTorch is in 30 KB of metadata."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None
