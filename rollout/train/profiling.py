"""The job of ``gamut profile``: where a training in one process spends its time."""

from __future__ import annotations

import inspect
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rollout.cli import Session
from rollout.errors import ConfigError
from rollout.files import write_atomically
from rollout.run_directory import folder_of, require_local
from rollout.signals import tell
from rollout.train.config import TrainConfig
from rollout.train.plan import TrainPlan
from rollout.train.updates import Trainer

_SECONDS = 10.0
_ROOT = Path(__file__).parents[2]
_PARTS = {
    "rollout/train/gradients.py": "optimizer",
    "rollout/train/ppo/gather.py": "gathering",
    "rollout/train/batch.py": "gathering",
    "rollout/train/gae.py": "gathering",
    "rollout/train": "learning",
    "rollout/host": "host",
    "bridges": "game",
    "policies": "network",
}
"""Files and folders, and the part of the time that is spent in them and in what they call."""
_ORDER = ("game", "host", "policy", "gathering", "network", "learning", "optimizer", "other")


def profile(config: TrainConfig, session: Session) -> str | None:
    """Makes updates for some seconds, and reports the time of each part of a step.

    Games and updates take turns in this process, whatever ``runners`` says. Two files are written
    beside the run directory: ``OUTPUT.profile.html`` is a tree of calls, and
    ``OUTPUT.speedscope.json`` a flame graph for the viewer speedscope. Nothing else is kept.

    Returns:
        None.

    Raises:
        InputError: the configuration is invalid; nothing was launched.
    """
    try:
        from pyinstrument import Profiler  # noqa: PLC0415 - an extra
        from pyinstrument.renderers import HTMLRenderer, SpeedscopeRenderer  # noqa: PLC0415
    except ImportError as error:
        raise ConfigError("gamut profile needs pyinstrument: install gamut[profile]") from error
    if session.resume:
        raise ConfigError("gamut profile keeps no run; leave --resume out")
    require_local(config.output, "gamut profile")
    seconds = config.measure if isinstance(config.measure, float) else _SECONDS
    plan = TrainPlan.make(config.model_copy(update={"runners": 0, "measure": None}))
    training = Trainer(plan)
    try:
        training.train()  # launches the games, and compiles
        profiler = Profiler(interval=0.001, async_mode="disabled")
        steps, began = 0, time.monotonic()
        with profiler:
            while time.monotonic() - began < seconds and not session.stop.requested:
                training.train()
                steps += training.last.fresh_steps
        elapsed = time.monotonic() - began
    finally:
        training.stop()
    found = profiler.last_session
    times = parts_of(found.root_frame(), _folders(plan)) if found is not None else Counter()
    whole = sum(times.values()) or 1.0
    tell(f"{steps:,} steps, {steps / elapsed:,.0f} a second; microseconds of a step:")
    for part in _ORDER:
        share = times[part] / whole
        tell(f"  {part:<10} {1e6 * share * elapsed / max(steps, 1):8.1f}  {share:6.1%}")
    folder = folder_of(config.output)
    folder.parent.mkdir(parents=True, exist_ok=True)
    for ending, renderer in (
        (".profile.html", HTMLRenderer()),
        (".speedscope.json", SpeedscopeRenderer(show_all=True)),
    ):
        file = folder.with_name(folder.name + ending)
        write_atomically(file, profiler.output(renderer))
        tell(f"written: {file}")
    return None


def parts_of(root: Any, folders: Mapping[str, str]) -> Counter[str]:
    """Returns the seconds of each part of ``_ORDER`` in a tree of pyinstrument's frames.

    Args:
        root: the outermost frame; None without any.
        folders: paths, the innermost first, and the part that begins there.
    """
    times: Counter[str] = Counter()
    left = [(root, "other")] if root is not None else []
    while left:
        frame, part = left.pop()
        path = frame.file_path or ""
        found = next((own for folder, own in folders.items() if path.startswith(folder)), part)
        playing = found == "network" and part in ("host", "policy")
        part = "policy" if playing else found
        times[part] += frame.time - sum(child.time for child in frame.children)
        left += [(child, part) for child in frame.children]
    return times


def _folders(plan: TrainPlan) -> dict[str, str]:
    """Returns ``_PARTS`` with absolute paths, and the folders of the game and of the policy."""
    own = {str(_ROOT / path): part for path, part in _PARTS.items()}
    for plugin, part in ((plan.bridge, "game"), (plan.recipe, "network")):
        own.setdefault(str(Path(inspect.getfile(type(plugin))).parent), part)
    return own
