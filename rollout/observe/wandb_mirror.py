"""Mirrors ``metrics.jsonl`` to Weights & Biases, from a process of its own.

The file is the truth, and the mirror only follows it: it can fail, hang or be killed, and the
run neither stops nor slows, and nothing is lost that ``mirror_file`` cannot send again.

One rule keeps the two in step: *line k of the file is step k of the W&B run*. W&B's own step is
never set from a metric (it drops whatever is not the newest); ``env_steps`` is a value like any
other and the default horizontal axis. After ``init``, W&B says how many steps it holds already,
and the mirror goes on with that line: an online run goes on where it stopped, also when its last
lines never arrived; an offline run begins at line 0 each time, so that the newest offline folder
holds all of the run and is the only one that needs ``wandb sync``.

Media of a line (videos, images, tables) go into the same step. W&B keeps copies of the files in
its own folder. A file that is missing or that W&B refuses costs a warning and nothing else.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import logging
import netrc
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias
from urllib.parse import urlparse

from rollout.config import WandbConfig
from rollout.observe.metrics import Line, Scalar, parse_line
from rollout.observe.wandb_media import add_media

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
"""Names of CleanRL under which the same values appear again, for dashboards made for them."""

AXES = ("env_steps", "episodes", "train/update", "wall_s", "time", "sweep/n")
"""Values that charts can be drawn over: ``sweep/...`` over ``sweep/n``, all else over the first."""

JobType: TypeAlias = Literal["collect", "train", "evaluate", "sweep", "search"]
"""What a run does. The run of a sweep or a search and those that it starts have one group."""

_SWEEP, _SWEEP_AXIS = "sweep/", "sweep/n"
_POLL_S = 0.5  # between looks at the file
_ORPHAN_S = 60.0  # that a mirror whose run has died may take to finish
_FINISH = b"finish\n"


@dataclass(frozen=True)
class MirrorSettings:
    """What the W&B run is called and where its files lie.

    Attributes:
        directory: the run directory; W&B writes below ``wandb/`` in it.
        run_id: the same in every session of the run.
        mode: ``online`` or ``offline``.
        project: name of the project.
        entity: user or team.
        group: runs that belong together.
        name: name shown for the run.
        tags: labels.
        job_type: what the run does.
        config: the resolved configuration, and what else tells runs apart (digests of sets).
        resume_count: how often the run was taken up again.
    """

    directory: str
    run_id: str
    mode: Literal["online", "offline"] = "offline"
    project: str = "gamut"
    entity: str | None = None
    group: str | None = None
    name: str | None = None
    tags: tuple[str, ...] = ()
    job_type: JobType | None = None
    config: Mapping[str, Any] = field(default_factory=dict)
    resume_count: int = 0


def mirror_settings(
    wandb: WandbConfig,
    directory: Path,
    run_id: str,
    *,
    job_type: JobType,
    config: Mapping[str, Any],
    resume_count: int = 0,
) -> MirrorSettings | None:
    """Returns the settings of a mirror, or None if there shall be none.

    Without an API key the mirror is offline, whatever was asked.
    """
    mode: str = wandb.mode
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
    return MirrorSettings(
        directory=str(directory),
        run_id=run_id,
        mode="online" if mode == "online" else "offline",
        project=wandb.project,
        entity=wandb.entity,
        group=wandb.group,
        name=wandb.name or directory.name,
        tags=wandb.tags,
        job_type=job_type,
        config=config,
        resume_count=resume_count,
    )


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

    It is killed with everything it started when it does not finish in time, and it finishes by
    itself when this process dies. What it has to say goes to ``wandb/mirror.log``.

    Args:
        metrics: the file to follow; need not exist yet.
        settings: the W&B run.
    """

    def __init__(self, metrics: Path, settings: MirrorSettings) -> None:
        self._metrics = metrics
        folder = Path(settings.directory) / "wandb"
        self._log = folder / "mirror.log"
        self._finishing = False
        self._warned = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        source = str(Path(__file__).resolve().parents[2])
        path = os.pathsep.join(filter(None, (source, os.environ.get("PYTHONPATH"))))
        data = {"metrics": str(metrics.resolve()), **dataclasses.asdict(settings)}
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with self._log.open("ab") as log:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", __name__],
                    stdin=subprocess.PIPE,
                    stdout=log,
                    stderr=log,
                    env={**os.environ, "PYTHONPATH": path},
                    start_new_session=True,  # a Ctrl-C at the terminal is for the run
                )
            self._tell(json.dumps(data).encode() + b"\n")
        except OSError as error:
            self._warn(str(error))
            return
        threading.Thread(target=self._watch, name="wandb-mirror-watch", daemon=True).start()

    @property
    def alive(self) -> bool:
        """Whether the mirror is at work."""
        return self._process is not None and self._process.poll() is None

    def finish(self, deadline_s: float = 30.0) -> bool:
        """Lets the mirror send what is left; returns whether it did so in time. Never raises."""
        process = self._process
        if process is None:
            return False
        self._finishing = True
        self._tell(_FINISH)
        if process.stdin is not None:
            with contextlib.suppress(OSError):  # it is gone; its exit status says so below
                process.stdin.close()
        try:
            status = process.wait(timeout=deadline_s)
        except subprocess.TimeoutExpired:
            self._kill(process)
            self._warn(f"it did not finish within {deadline_s:g} s")
            return False
        if status != 0:
            self._warn(f"it ended with status {status}")
        return status == 0

    def _tell(self, data: bytes) -> None:
        if self._process is None or self._process.stdin is None:
            return
        try:
            self._process.stdin.write(data)
            self._process.stdin.flush()
        except (BrokenPipeError, ValueError):
            return  # it is gone; _watch and finish see its exit status

    def _kill(self, process: subprocess.Popen[bytes]) -> None:
        try:
            os.killpg(process.pid, signal.SIGKILL)  # its own session: pid and group are one
        except ProcessLookupError:
            return
        process.wait()

    def _watch(self) -> None:
        if self._process is not None and self._process.wait() != 0 and not self._finishing:
            self._warn(f"it ended with status {self._process.returncode}")

    def _warn(self, reason: str) -> None:
        if self._warned.is_set():
            return
        self._warned.set()
        logger.warning(
            "the W&B mirror failed: %s. The run goes on, and %s has everything; see %s",
            reason,
            self._metrics,
            self._log,
        )


def mirror_file(path: Path, settings: MirrorSettings) -> int:
    """Sends a whole metrics file to W&B, here and now; returns the number of lines sent.

    Lines that the W&B run holds already are not sent again.

    Raises:
        FileNotFoundError: there is no such file.
        DatasetError: a line is damaged.
        wandb.Error: W&B refuses.
    """
    if not path.exists():
        raise FileNotFoundError(f"there is no metrics file {path}")
    ended = threading.Event()
    ended.set()
    return _mirror(path, settings, ended)


def _mirror(path: Path, settings: MirrorSettings, ended: threading.Event) -> int:
    import wandb  # noqa: PLC0415 - optional, and slow to import

    run = wandb.init(
        id=settings.run_id,
        dir=settings.directory,
        mode=settings.mode,
        project=settings.project,
        entity=settings.entity,
        group=settings.group,
        name=settings.name,
        tags=settings.tags,
        job_type=settings.job_type,
        config=dict(settings.config),
        # Offline there is nothing to resume from: the file is sent from its first line.
        resume="allow" if settings.mode == "online" else None,
        settings=wandb.Settings(
            console="off", disable_git=True, disable_code=True, x_disable_stats=True
        ),
    )
    for axis in AXES:
        run.define_metric(axis)
    run.define_metric("*", step_metric="env_steps")
    run.summary["resume_count"] = settings.resume_count
    held, sent = run.step, 0
    defined = set(AXES)
    for number, line in enumerate(_follow(path, ended)):
        if number >= held:
            _define_sweep(run, line, defined)
            for name, media in line.media.items():
                add_media(run, name, media)
            # Never step=: W&B drops what is not the newest step.
            run.log(shown(line))
            sent += 1
    run.finish()
    return sent


def _define_sweep(run: Any, names: Iterable[str], defined: set[str]) -> None:
    """Has new names of a sweep drawn over its own axis.

    By their full names: where "sweep/*" and "*" both fit, W&B takes either, by chance.
    """
    for name in names:
        if name.startswith(_SWEEP) and name not in defined:
            run.define_metric(name, step_metric=_SWEEP_AXIS)
            defined.add(name)


def shown(line: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """Returns the values of a line as W&B shows them: with aliases, and without nulls."""
    aliases = {alias: line[name] for name, alias in ALIASES.items() if name in line}
    return {name: value for name, value in {**line, **aliases}.items() if value is not None}


def _follow(path: Path, ended: threading.Event) -> Iterator[Line]:
    """Yields the lines of a file as they are appended, until ``ended`` and the file is read."""
    number = 0
    while not path.exists():
        if ended.wait(_POLL_S):
            break
    if not path.exists():
        return
    with path.open("rb") as file:
        while True:
            last = ended.is_set()  # asked first: what was written before it is then still read
            position = file.tell()
            raw = file.readline()
            if raw.endswith(b"\n"):
                number += 1
                yield parse_line(raw, f"{path}:{number}", path.parent)
                continue
            file.seek(position)  # half a line: its writer is not done with it
            if last:
                return
            ended.wait(_POLL_S)


def _main() -> int:
    """The mirror process: settings come in the first line of stdin; its end is the run's end."""
    # `ray job stop` signals every descendant of the driver. The mirror ends when the run does.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    data = json.loads(sys.stdin.buffer.readline())
    path = Path(data.pop("metrics"))
    settings = MirrorSettings(**{**data, "tags": tuple(data["tags"])})
    ended = threading.Event()

    def wait_for_the_end() -> None:
        asked = sys.stdin.buffer.readline() == _FINISH
        ended.set()
        if not asked:  # the run died: nobody is left to set us a deadline
            timer = threading.Timer(_ORPHAN_S, os._exit, (1,))
            timer.daemon = True
            timer.start()

    threading.Thread(target=wait_for_the_end, daemon=True).start()
    _mirror(path, settings, ended)
    return 0


if __name__ == "__main__":
    sys.exit(_main())
