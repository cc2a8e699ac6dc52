"""Mirrors ``metrics.jsonl`` to Weights & Biases from a separate process.

The file is authoritative and the mirror only follows it. The mirror can fail, hang or be killed
without stopping or slowing the run.

One rule keeps the two consistent: *line k of the file is step k of the W&B run*. W&B's own step is
never set from a metric (W&B drops every step but the newest); ``env_steps`` is a value like any
other and the default horizontal axis. After ``init``, W&B reports how many steps it has already,
and the mirror continues with that line. So an online run resumes where it stopped, even if its last
lines never arrived. A training that continues from a checkpoint makes the lines after it again; W&B
keeps those that it has, and gets the ones after them. An offline run begins at line 0 each time, so
that the newest offline folder contains the whole run and is the only one that needs ``wandb sync``.

The datasets, checkpoints and results in ``lineage.jsonl`` are logged as artifacts, see ``lineage``.

Media of a line (videos, images, tables) are sent in the same step. W&B keeps copies of the files in
its own folder. A missing file, or one that W&B refuses, only causes a warning.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import logging
import math
import netrc
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias
from urllib.parse import urlparse

from rollout.config import WandbConfig
from rollout.errors import missing_extra
from rollout.files import open_file
from rollout.observe.lineage import ArtifactLog
from rollout.observe.metrics import Line, Media, Scalar, Table, Video, parse_line
from rollout.observe.run_files import LINEAGE

logger = logging.getLogger(__name__)

ALIASES: Mapping[str, str] = {
    "episode/return": "charts/episodic_return",
    "episode/length": "charts/episodic_length",
    "rate/steps_per_s": "charts/SPS",
    "train/learning_rate": "charts/learning_rate",
    "train/value_loss": "losses/value_loss",
    "train/policy_loss": "losses/policy_loss",
    "train/entropy": "losses/entropy",
    "train/approx_kl": "losses/approx_kl",
    "train/old_approx_kl": "losses/old_approx_kl",
    "train/clip_fraction": "losses/clipfrac",
    "train/explained_variance": "losses/explained_variance",
}
"""Metric names of CleanRL, as aliases for dashboards made for them."""

AXES = ("env_steps", "episodes", "train/update", "wall_s", "time", "sweep/n")
"""Horizontal axes of charts: ``sweep/n`` for ``sweep/...``, the first one for all others."""

JobType: TypeAlias = Literal["collect", "train", "evaluate", "sweep", "search", "judge"]
"""Job types. The run of a sweep or search and the runs that it starts form one group."""

MOST_ROWS = 10_000
"""Maximum number of rows of a table that are shown; W&B keeps no more in a table's file."""

_LARGEST_EXACT = 2**53  # larger integers lose digits in a browser
_SWEEP, _SWEEP_AXIS = "sweep/", "sweep/n"
_POLL_S = 0.5  # between reads of the file
_ORPHAN_S = 60.0  # time for a mirror whose run has died to finish
_FINISH = b"finish\n"


Settings: TypeAlias = dict[str, Any]
"""The result of :func:`mirror_settings`, as JSON-able data: the keywords of ``wandb.init``, and
``resume_count``, how often the run was resumed. W&B writes below ``wandb/`` in ``dir``."""


def require_wandb(wandb: WandbConfig) -> None:
    """Checks that the package wandb is there if ``wandb.mode`` asks for it.

    Raises:
        ConfigError: it is not installed.
    """
    if wandb.mode in ("online", "offline") and not _installed():
        raise missing_extra(f"wandb.mode={wandb.mode}", "wandb")


def _installed() -> bool:
    return importlib.util.find_spec("wandb") is not None


def mirror_settings(
    wandb: WandbConfig,
    directory: Path,
    run_id: str,
    *,
    job_type: JobType,
    config: Mapping[str, Any],
    resume_count: int = 0,
) -> Settings | None:
    """Returns the settings of a mirror, or None if it is disabled or ``auto`` without wandb.

    Without an API key the mirror is offline, whatever mode was requested.
    """
    mode: str = wandb.mode
    if mode == "auto" and not _installed():
        return None
    if mode == "auto":
        mode = os.environ.get("WANDB_MODE", "online")
    if mode not in ("online", "offline"):
        return None
    if mode == "online" and not has_api_key():
        mode = "offline"
        if wandb.mode == "online":
            logger.warning(
                "wandb.mode is online, and there is no API key; mirroring offline. "
                "Set WANDB_API_KEY, or send it later by: wandb sync %s/wandb/latest-run",
                directory,
            )
    if "WANDB_SWEEP_ID" in os.environ:
        run_id = os.environ.get("WANDB_RUN_ID", run_id)  # the run that the sweep waits for
    return {
        **wandb.model_dump(mode="json"),
        "name": wandb.name or directory.name,
        "mode": mode,
        "dir": str(directory),
        "id": run_id,
        "job_type": job_type,
        "config": dict(config),
        # Offline there is nothing to resume from: the file is sent from its first line.
        "resume": "allow" if mode == "online" else None,
        "resume_count": resume_count,
    }


def has_api_key() -> bool:
    """Returns whether W&B would find an API key without asking for one."""
    if os.environ.get("WANDB_API_KEY"):
        return True
    host = urlparse(os.environ.get("WANDB_BASE_URL", "https://api.wandb.ai")).hostname or ""
    try:
        file = os.environ.get("NETRC") or str(Path.home() / ".netrc")
        return netrc.netrc(file).authenticators(host) is not None
    except (OSError, netrc.NetrcParseError, RuntimeError):
        return False


class WandbMirror:
    """A process that follows the metrics file of a run.

    If it does not finish in time, it is killed with all its subprocesses. If this process dies, it
    finishes by itself. Its output goes to ``wandb/mirror.log``.

    Args:
        metrics: the file to follow; need not exist yet.
        settings: the W&B run.
    """

    def __init__(self, metrics: Path, settings: Settings) -> None:
        self._metrics = metrics
        folder = Path(settings["dir"]) / "wandb"
        self._log = folder / "mirror.log"
        self._finishing = False
        self._warned = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        source = str(Path(__file__).resolve().parents[2])
        path = os.pathsep.join(filter(None, (source, os.environ.get("PYTHONPATH"))))
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with self._log.open("ab") as log:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", __name__],
                    stdin=subprocess.PIPE,
                    stdout=log,
                    stderr=log,
                    cwd=settings["dir"],  # that of a job is removed before W&B's last lines
                    env={**os.environ, "PYTHONPATH": path},
                    start_new_session=True,  # a Ctrl-C at the terminal is meant for the run
                )
            self._send(json.dumps([str(metrics.resolve()), settings]).encode() + b"\n")
        except OSError as error:
            self._warn(str(error))
            return
        threading.Thread(target=self._watch, name="wandb-mirror-watch", daemon=True).start()

    @property
    def alive(self) -> bool:
        """True while the mirror process is running."""
        return self._process is not None and self._process.poll() is None

    def finish(self, deadline_s: float = 30.0) -> bool:
        """Sends the remaining lines; returns whether that ended in time. Never raises."""
        process = self._process
        if process is None:
            return False
        self._finishing = True
        self._send(_FINISH)
        if process.stdin is not None:
            with contextlib.suppress(OSError):  # it has ended; its exit status is reported below
                process.stdin.close()
        try:
            status = process.wait(timeout=deadline_s)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # its own session: pid and group are one
            process.wait()
            self._warn(f"it did not finish within {deadline_s:g} s")
            return False
        if status != 0:
            self._warn(f"it ended with status {status}")
        return status == 0

    def _send(self, data: bytes) -> None:
        if self._process is None or self._process.stdin is None:
            return
        try:
            self._process.stdin.write(data)
            self._process.stdin.flush()
        except (BrokenPipeError, ValueError):
            return  # it has ended; _watch and finish report its exit status

    def _watch(self) -> None:
        if self._process is not None and self._process.wait() != 0 and not self._finishing:
            self._warn(f"it ended with status {self._process.returncode}")

    def _warn(self, reason: str) -> None:
        if self._warned.is_set():
            return
        self._warned.set()
        logger.warning(
            "the W&B mirror failed: %s. The run continues, and %s has everything; see %s",
            reason,
            self._metrics,
            self._log,
        )


def _mirror(path: Path, settings: Settings, ended: threading.Event) -> int:
    import wandb  # noqa: PLC0415 - optional, and slow to import

    keywords = {key: value for key, value in settings.items() if key != "resume_count"}
    quiet = wandb.Settings(console="off", disable_git=True, disable_code=True, x_disable_stats=True)
    run = wandb.init(**keywords, settings=quiet)
    for axis in AXES:
        run.define_metric(axis)
    run.define_metric("*", step_metric="env_steps")
    run.summary["resume_count"] = settings["resume_count"]
    held, sent, folder = run.step, 0, Path(settings["dir"])
    artifacts = ArtifactLog(run, folder / LINEAGE, folder / "wandb" / "lineage")
    defined = set(AXES)
    artifacts.send()
    for number, line in enumerate(_follow(path, ended)):
        artifacts.send()
        if number >= held:
            _define_sweep(run, line, defined)
            for name, media in line.media.items():
                _add_media(run, name, media)
            # Never step=: W&B drops every step but the newest.
            run.log(wandb_values(line))
            sent += 1
    artifacts.send()
    run.finish()
    return sent


def _add_media(run: Any, name: str, media: Media) -> None:
    """Adds a file to the step that the next ``run.log`` closes, or warns why it cannot be shown."""
    try:
        if not media.path.is_file():
            raise FileNotFoundError("there is no such file")
        # One by one before the values, so that an invalid file does not affect them.
        run.log({name: _as_wandb(run, name, media)}, commit=False)
    except Exception as error:  # noqa: BLE001 - W&B's errors have no common base class
        kind = type(error).__name__
        logger.warning("W&B does not show %s, %s: %s: %s", name, media.path, kind, error)


def _as_wandb(run: Any, name: str, media: Media) -> object:
    import wandb  # noqa: PLC0415 - optional, and slow to import

    if isinstance(media, Table):
        rows, total = read_rows(media.path)
        if total > MOST_ROWS:
            run.summary[f"{name}/rows_left_out"] = total - MOST_ROWS
            logger.warning(
                "W&B shows the first %d of the %d rows of %s; %s has them all",
                *(MOST_ROWS, total, name, media.path),
            )
        return wandb.Table(columns=list(rows), data=list(zip(*rows.values(), strict=True)))
    # Without fps: W&B uses the file unchanged, and warns that fps has no effect.
    kind = wandb.Video if isinstance(media, Video) else wandb.Image
    return kind(str(media.path), caption=media.caption or None)


def read_rows(path: Path, most: int = MOST_ROWS) -> tuple[dict[str, list[Any]], int]:
    """Returns the columns of a table with its first ``most`` rows, and its number of rows.

    NaN and infinity become None. A column with integers beyond 2**53 (seeds, for example) becomes
    text, since a browser would round them.

    Raises:
        DatasetError: the file is not a table, or is damaged.
    """
    from rollout.data.tables import read_table, rows_of  # noqa: PLC0415 - Arrow loads slowly

    table = read_table(path)
    columns = {}
    for name, column in table.items():
        values = column[:most].tolist()
        if column.dtype.kind == "f":
            values = [value if math.isfinite(value) else None for value in values]
        elif column.dtype.kind in "iu" and any(abs(value) > _LARGEST_EXACT for value in values):
            values = [str(value) for value in values]
        columns[name] = values
    return columns, rows_of(table)


def _define_sweep(run: Any, names: Iterable[str], defined: set[str]) -> None:
    """Defines the horizontal axis of new metrics of a sweep.

    By their full names: where both "sweep/*" and "*" match, W&B chooses one at random.
    """
    for name in names:
        if name.startswith(_SWEEP) and name not in defined:
            run.define_metric(name, step_metric=_SWEEP_AXIS)
            defined.add(name)


def wandb_values(line: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """Returns the values of a line for W&B: with aliases, and without nulls."""
    aliases = {alias: line[name] for name, alias in ALIASES.items() if name in line}
    return {name: value for name, value in {**line, **aliases}.items() if value is not None}


def _follow(path: Path, ended: threading.Event) -> Iterator[Line]:
    """Yields the lines of a file as they are appended, until ``ended`` is set and all are read."""
    number = 0
    while not path.exists():
        if ended.wait(_POLL_S):
            break
    if not path.exists():
        return
    with open_file(path) as file:
        while True:
            last = ended.is_set()  # read first, so that everything written before it is still read
            position = file.tell()
            raw = file.readline()
            if raw.endswith(b"\n"):
                number += 1
                yield parse_line(raw, f"{path}:{number}", path.parent)
                continue
            file.seek(position)  # an incomplete line: its writer has not finished it
            if last:
                return
            ended.wait(_POLL_S)


def _main() -> int:
    """Runs the mirror process: line 1 of stdin has its settings, end of file ends it."""
    # `ray job stop` signals every descendant of the driver; the mirror ends when the run does.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    path, settings = json.loads(sys.stdin.buffer.readline())
    ended = threading.Event()

    def wait_for_end() -> None:
        finished = sys.stdin.buffer.readline() == _FINISH
        ended.set()
        if not finished:  # the run died: there is no one to set a deadline
            timer = threading.Timer(_ORPHAN_S, os._exit, (1,))
            timer.daemon = True
            timer.start()

    threading.Thread(target=wait_for_end, daemon=True).start()
    _mirror(Path(path), settings, ended)
    return 0


if __name__ == "__main__":
    sys.exit(_main())
