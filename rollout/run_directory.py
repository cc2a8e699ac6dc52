"""The folder of one run: what it was told, what came out, and who it is.

::

    run.json        who the run is: its id, its kind, and every session that worked on it
    config.yaml     every key, defaults spelled out
    metrics.jsonl   what was measured, a line at a time; the truth that dashboards mirror
    run.log         what was said
    summary.json    what came out in the end
    dataset/        what was recorded
    checkpoints/    what was learned
    videos/         what can be shown
    wandb/          the mirror's own files
    .run.lock       locked by the process that works on it
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import secrets
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from rollout.config import RunConfig, load_config, resolved, write_config
from rollout.configuration.files import locked, write_atomically
from rollout.errors import ConfigError, InputError, RunDirectoryError
from rollout.host.processes import RUN_ID

_SWEEP, _SWEEP_RUN = "WANDB_SWEEP_ID", "WANDB_RUN_ID"  # set by `wandb agent`

RUNS_DIR = "GAMUT_RUNS_DIR"
"""Environment variable: the folder that relative output directories lie in."""

_LOCK = ".run.lock"

_BEGINNING = {
    *(_LOCK, "run.json", "config.yaml", "metrics.jsonl", "run.log"),
    *("dataset/dataset.json", "dataset/dataset.lock"),
    "sets.json",
}
"""Files of a run in which nothing was recorded, but for the mirror's."""

_IN_RAY_JOB = "RAY_JOB_CONFIG_JSON_ENV_VAR"
_PACKAGES = ("gamut", "ray", "torch", "numpy", "gymnasium", "pyarrow")
_GIT_TIMEOUT_S = 5.0


@dataclass(frozen=True)
class RunDirectory:
    """The folder of one run. Made by ``create``.

    Attributes:
        path: where it is, absolute.
        run_id: names the run for ever, also on dashboards.
        resume_count: how often the run was taken up again; 0 in its first session.
    """

    path: Path
    run_id: str
    resume_count: int = 0

    @property
    def config_file(self) -> Path:
        """The resolved configuration."""
        return self.path / "config.yaml"

    @property
    def metrics(self) -> Path:
        """The file of measurements."""
        return self.path / "metrics.jsonl"

    @property
    def log(self) -> Path:
        """The log file."""
        return self.path / "run.log"

    @property
    def summary_file(self) -> Path:
        """What came out."""
        return self.path / "summary.json"

    @property
    def dataset(self) -> Path:
        """Folder of the recorded dataset; made by its writer."""
        return self.path / "dataset"

    @property
    def checkpoints(self) -> Path:
        """Folder of checkpoints; made by their writer."""
        return self.path / "checkpoints"

    @property
    def videos(self) -> Path:
        """Folder of videos; made by their writer."""
        return self.path / "videos"

    @property
    def wandb(self) -> Path:
        """Folder of the W&B mirror; made by the mirror."""
        return self.path / "wandb"

    @classmethod
    def create(cls, path: Path | str, config: RunConfig, *, resume: bool) -> RunDirectory:
        """Returns the directory of a run, new or taken up again, with its configuration written.

        To resume where nothing was begun yet begins it, so that a job that is restarted over and
        over can always be given ``--resume``.

        Args:
            path: where; a relative path lies in ``GAMUT_RUNS_DIR`` if that is set. Under an agent
                of a W&B sweep it is a folder below, of the name of the agent's run.
            config: what the run is told to do.
            resume: whether to go on with the run that is there.

        Raises:
            RunDirectoryError: the folder holds another run, or something else, or cannot be used.
        """
        folder = _folder(path)
        config = config.model_copy(update={"output": folder})
        with _usable(folder):
            folder.mkdir(parents=True, exist_ok=True)
            found = _found(folder)
            if found and "run.json" not in found:
                raise RunDirectoryError(
                    f"output {folder} is not empty and holds no run (found "
                    f"{', '.join(found[:5])}); choose another output"
                )
            about = _read_about(folder / "run.json") if found else _new_about(config)
            changes = _check_same(folder, about, config, resume=resume) if found else []
            about["sessions"].append(_session(changes))
            run = cls(folder, about["run_id"], len(about["sessions"]) - 1)
            os.environ[RUN_ID] = run.run_id  # games are marked with it, wherever they run
            write_atomically(folder / "run.json", json.dumps(about, indent=2) + "\n")
            write_config(config, run.config_file)
        return run

    @classmethod
    @contextmanager
    def opened(
        cls, path: Path | str, config: RunConfig, *, resume: bool, wait_s: float = 0.0
    ) -> Iterator[RunDirectory]:
        """As ``create``, for the whole of a run: a new one that proves to be wrong input goes away.

        What is wrong shows at the launch at times, as a game that is not installed. Nothing was
        recorded then, so the corrected command finds the place as free as it was.

        Args:
            path: as for ``create``.
            config: as for ``create``.
            resume: as for ``create``.
            wait_s: how long another process that works on the run may take to end.

        Raises:
            RunDirectoryError: as ``create``, or another process works on the run.
        """
        with _alone(_folder(path), wait_s):
            run = cls.create(path, config, resume=resume)
            try:
                yield run
            except InputError:
                if run.resume_count == 0 and run._unused():
                    shutil.rmtree(run.path, ignore_errors=True)
                raise

    def _unused(self) -> bool:
        """Whether there is nothing in it but what every run begins with."""
        files = [p.relative_to(self.path) for p in self.path.rglob("*") if not p.is_dir()]
        known = (str(p) in _BEGINNING or p.parts[0] == self.wandb.name for p in files)
        measured = self.metrics.exists() and self.metrics.stat().st_size > 0
        return all(known) and not measured

    def write_summary(self, summary: Mapping[str, Any]) -> None:
        """Writes ``summary.json`` in one step: readers see the old one or the new one.

        Raises:
            TypeError: a value is not JSON-able.
            OSError: it cannot be written.
        """
        write_atomically(self.summary_file, json.dumps(dict(summary), indent=2) + "\n")


def absolute(path: Path | str) -> Path:
    """Returns where an output directory is.

    Raises:
        RunDirectoryError: the path is relative and would lie in the folder of a Ray job, which
            goes away with the job.
    """
    path = Path(path).expanduser()
    if path.is_absolute():
        return path.resolve()
    runs = os.environ.get(RUNS_DIR)
    if runs:
        base = Path(runs).expanduser()
        if not base.is_absolute():
            raise RunDirectoryError(f"{RUNS_DIR}={runs}: expected an absolute path; set one")
        return (base / path).resolve()
    if _IN_RAY_JOB in os.environ:
        raise RunDirectoryError(
            f"output {path} is relative, and the working directory of a Ray job goes away with the "
            f"job; give an absolute output, or set {RUNS_DIR} in the job's env_vars"
        )
    return path.resolve()


def _folder(path: Path | str) -> Path:
    folder = absolute(path)
    if _SWEEP in os.environ and _SWEEP_RUN in os.environ:
        folder = folder / os.environ[_SWEEP_RUN]  # all agents of a sweep say the same output
    return folder


@contextmanager
def _usable(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise RunDirectoryError(
            f"output {folder} cannot be used: {error.strerror or error}; choose another output"
        ) from error


def _found(folder: Path) -> list[str]:
    """What is in a folder, but for what a crash leaves that had not yet begun a run in it."""
    names = (p.name for p in folder.iterdir() if not (p.name[0] == "." and p.suffix == ".tmp"))
    return sorted(name for name in names if name != _LOCK)


@contextmanager
def _alone(folder: Path, wait_s: float) -> Iterator[None]:
    """Keeps others from a run while we work on it."""
    with contextlib.ExitStack() as stack:
        with _usable(folder):
            folder.mkdir(parents=True, exist_ok=True)
            found = _found(folder)
            if not found or "run.json" in found:  # else it is not ours to write in
                try:
                    stack.enter_context(locked(folder / _LOCK, wait_s))
                except BlockingIOError as error:
                    raise RunDirectoryError(
                        f"{error.strerror} is working on the run in {folder}; wait for it or stop "
                        f"it, or choose another output"
                    ) from None
        yield


def _new_about(config: RunConfig) -> dict[str, Any]:
    now = datetime.now(UTC)
    return {
        "run_id": f"{now:%Y%m%d-%H%M%S}-{secrets.token_hex(3)}",
        "kind": type(config).__name__,
        "sessions": [],
    }


def _read_about(path: Path) -> dict[str, Any]:
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(about["run_id"], str) and isinstance(about["sessions"], list):
            return dict(about)
    except (ValueError, KeyError, TypeError) as error:
        raise RunDirectoryError(
            f"{path} is damaged ({error}); choose another output, or restore the file"
        ) from error
    raise RunDirectoryError(f"{path} does not describe a run; choose another output")


def _check_same(
    folder: Path, about: Mapping[str, Any], config: RunConfig, *, resume: bool
) -> list[str]:
    """The harmless differences to the run that is there; raises if there are others."""
    kind = type(config).__name__
    if about.get("kind") != kind:
        raise RunDirectoryError(
            f"output {folder} holds a run of kind {about.get('kind')}, expected {kind}; choose "
            f"another output"
        )
    if not resume:
        raise RunDirectoryError(
            f"output {folder} already holds the run {about['run_id']}; go on with it by --resume, "
            f"or choose another output"
        )
    file = folder / "config.yaml"
    if not file.exists():
        return []  # the run was interrupted before it began: there is nothing to differ from
    try:
        old = load_config(type(config), file)
    except ConfigError as error:
        raise RunDirectoryError(f"the run in {folder} cannot be resumed: {error}") from error
    before, after = _flat(resolved(old)), _flat(resolved(config))
    changed = [k for k in {**before, **after} if before.get(k) != after.get(k)]
    words = {k: f"{k}: {_show(before, k)} -> {_show(after, k)}" for k in changed}
    refused = [words[k] for k in changed if not _may_change(config, k, before.get(k), after.get(k))]
    if refused:
        raise RunDirectoryError(
            f"the run in {folder} was begun with another configuration ({'; '.join(refused)}); "
            f"undo that to resume it, or choose another output"
        )
    return [words[k] for k in changed]


def _may_change(config: RunConfig, key: str, before: Any, after: Any) -> bool:
    if any(key == k or key.startswith(f"{k}.") for k in config.may_change):
        return True
    if key not in config.may_grow:
        return False
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
    return json.dumps(data[key]) if key in data else "not given"


def _session(changes: list[str]) -> dict[str, Any]:
    return {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "argv": sys.argv,
        "changes": changes,
        "versions": versions(),
    }


def versions() -> dict[str, str | int | None]:
    """Returns what the run runs on: versions of packages, commit, platform, CPU count.

    A package that is not installed has the version None, and so has the commit when the code is
    not run from a checkout. A commit ends in ``-dirty`` if tracked files were changed.
    """
    found: dict[str, str | int | None] = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    found["commit"] = _commit(Path(__file__).resolve().parent.parent)
    found["platform"] = platform.platform()
    found["cpus"] = os.cpu_count()
    return found


def _commit(root: Path) -> str | None:
    top = _git(root, "rev-parse", "--show-toplevel")
    # An environment that lies inside another project's checkout is not a checkout of ours.
    if top is None or Path(top).resolve() != root:
        return None
    commit = _git(root, "rev-parse", "HEAD")
    changed = _git(root, "status", "--porcelain", "--untracked-files=no")
    return f"{commit}-dirty" if commit and changed else commit


def _git(root: Path, *arguments: str) -> str | None:
    program = shutil.which("git")
    if program is None:
        return None
    command = [program, "--no-optional-locks", "-C", str(root), *arguments]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_GIT_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
