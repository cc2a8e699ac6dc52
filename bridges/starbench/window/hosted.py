"""The window of our own battles: a process that a bridge starts, and ends with all it started."""

from __future__ import annotations

import itertools
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bridges.starbench.pictures.layout import UiMap
from bridges.starbench.window.client import WindowClient, libraries
from rollout.api import LineProcess
from rollout.errors import ConfigError, GameCrashed, InputError

ROOT = Path(__file__).parents[3]
_NUMBERS = itertools.count(1)


class HostedWindow:
    """A process that shows battles in a window, under an X server of its own or on a desktop.

    The battle is played through ``client`` alone. The process and its X server are one process
    group, which ends with this object, with the process, or with the host.

    Args:
        workdir: the folder it runs in.
        size: of the window in pixels.
        display: an X display, e.g. ``:0``; None to start a server without a screen (Xvfb).
        timeout_s: seconds for its start, and later for every wait.

    Raises:
        ConfigError: Xvfb or the extra is not installed, or the display cannot be opened.
        GameStartError: it did not start.
    """

    def __init__(
        self,
        workdir: Path,
        *,
        size: tuple[int, int] = (1920, 1080),
        display: str | None = None,
        timeout_s: float = 60.0,
    ) -> None:
        if display is None and shutil.which("Xvfb") is None:
            raise ConfigError(
                "the window needs an X display: install Xvfb (Debian: apt-get install xvfb), or "
                "set `display`, e.g. to :0 on a desktop"
            )
        libraries()  # before anything is started
        self._timeout_s = timeout_s
        self.client: WindowClient | None = None
        self._process = LineProcess(
            ["env", f"PYTHONPATH={ROOT}", sys.executable, "-m", "bridges.starbench.window"],
            cwd=workdir,
        )
        try:
            title = f"gamut starbench {os.getpid()}.{next(_NUMBERS)}"
            opening = {"op": "open", "size": list(size), "display": display, "title": title}
            self.display = str(self._ask(opening)["display"])
            self.title, self._ui = title, UiMap(size)
        except BaseException:
            self.close()
            raise

    @property
    def pid(self) -> int:
        """The process id, which is also that of the process group."""
        return self._process.pid

    def begin(
        self, task: str, seed: int, state: Mapping[str, Any], options: Mapping[str, Any]
    ) -> WindowClient:
        """Begins a battle and returns the client that plays it.

        Raises:
            GameCrashed: the window has died.
        """
        self._ask({"op": "begin", "task": task, "seed": seed, "state": state, "options": options})
        if self.client is not None:
            self.client.restart()
            return self.client
        try:
            self.client = WindowClient(
                self.title, display=self.display, ui=self._ui, timeout_s=self._timeout_s
            )
        except InputError as error:  # no such display or window: not what the user configured
            raise GameCrashed(f"the window died as it began: {error}") from error
        return self.client

    def close(self) -> None:
        """Ends the process and its X server. Idempotent."""
        if self.client is not None:
            self.client.close()
        self._process.close()

    def _ask(self, request: Mapping[str, Any]) -> Any:
        return self._process.ask(request, timeout_s=self._timeout_s)
