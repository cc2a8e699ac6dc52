"""Windows: the client of any window of an X display, and the process that shows our own battles."""

from __future__ import annotations

import contextlib
import difflib
import itertools
import os
import shutil
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from bridges.starbench.pictures.layout import Box, UiMap
from bridges.starbench.pictures.sprites import Picture
from rollout.api import LineProcess
from rollout.errors import (
    ConfigError,
    GameCrashed,
    GameTimeout,
    InputError,
    UnknownNameError,
    missing_extra,
)

_POLL_S = 0.002
_LEFT = 1  # mouse button


class WindowClient:
    """A window as a screen with a mouse and a keyboard, see ``Client``.

    If the map has a box ``pulse``, the window counts there, in binary, the events it has handled,
    and waiting ends when it has handled those sent. Other windows are idle once they stop changing.

    Args:
        title: of the window; a part of it is enough.
        display: of X, e.g. ``:1``; None for ``DISPLAY``.
        ui: the map of the screen; None for ours, at the size of the window.
        timeout_s: seconds for the window to appear, and later to handle events.
        still_s: seconds without change after which a window without pulse is idle.
        event_delay_s: seconds between events; StarBench has 0.5.

    Raises:
        ConfigError: there is no display, or the extra is not installed.
        UnknownNameError: there is no such window.
        InputError: the window has another size than the map.
    """

    def __init__(
        self,
        title: str,
        *,
        display: str | None = None,
        ui: UiMap | None = None,
        timeout_s: float = 20.0,
        still_s: float = 0.25,
        event_delay_s: float = 0.0,
    ) -> None:
        self._mss, self._xlib = libraries()
        name = display or os.environ.get("DISPLAY", "")
        if not name:
            raise ConfigError(
                "a window needs an X display, and DISPLAY is not set; start on a desktop, or leave "
                "out the display, so that one without a screen is started (Debian: apt-get install "
                "xvfb)"
            )
        try:
            self._shots = self._mss.MSS(display=name)  # first: Xlib leaves a socket if it fails
            self._x = self._xlib.display.Display(name)
        except (self._xlib.error.DisplayError, self._mss.ScreenShotError, OSError) as error:
            raise ConfigError(f"the X display {name} cannot be opened: {error}") from error
        self._pause = threading.Event()
        self._timeout_s, self._still_s = timeout_s, still_s
        self._event_delay_s = event_delay_s
        self.title, self._sent = title, 0
        try:
            self._window = self._find(title, timeout_s)
            self.place = self._where()
            size = (self.place.w, self.place.h)
            self.ui = ui or UiMap(size)
            if size != self.ui.size:
                raise InputError(
                    f"the window {title!r} is {size[0]} x {size[1]} pixels, and {self.ui.path} is "
                    f"for {self.ui.size[0]} x {self.ui.size[1]}; change the size of the window, or "
                    f"write a map for it"
                )
            self.restart()
        except BaseException:
            self.close()
            raise

    def _find(self, title: str, timeout_s: float) -> Any:
        end = time.monotonic() + timeout_s
        while True:
            names = dict(self._titles(self._x.screen().root))
            for name, window in names.items():
                if title in name:
                    return window
            if time.monotonic() > end:
                near = difflib.get_close_matches(title, names, 1, 0.0)
                raise UnknownNameError("window", title, near or ["(no window is open)"])
            self._pause.wait(0.05)

    def _titles(self, window: Any) -> Any:
        """Yields the titled windows below one."""
        try:
            utf8 = self._x.intern_atom("_NET_WM_NAME")
            value = window.get_full_property(utf8, self._x.intern_atom("UTF8_STRING"))
            name = value.value.decode(errors="replace") if value else window.get_wm_name()
            below = window.query_tree().children
        except self._xlib.error.XError:  # it was closed meanwhile
            return
        if name:
            yield str(name), window
        for each in below:
            yield from self._titles(each)

    def _where(self) -> Box:
        """Returns the place of the window on the display.

        Raises:
            GameCrashed: the window is gone.
        """
        try:
            shape = self._window.get_geometry()
            corner = self._window.translate_coords(self._x.screen().root, 0, 0)
        except (self._xlib.error.XError, self._xlib.error.ConnectionClosedError, OSError) as error:
            raise GameCrashed(f"the window {self.title!r} is gone: {error}") from error
        return Box(-corner.x, -corner.y, shape.width, shape.height)

    def restart(self) -> None:
        """Takes the events that the window has counted so far for those sent."""
        self._sent = self.pulse() if "pulse" in self.ui else 0

    def grab(self) -> Picture:
        """Returns the window now, (height, width, 3) in RGB.

        Raises:
            GameCrashed: it is gone.
        """
        self.place = self._where()  # it may have been moved
        return self._grab(Box(0, 0, self.place.w, self.place.h))

    def _grab(self, box: Box) -> Picture:
        area = {
            "left": self.place.x + box.x,
            "top": self.place.y + box.y,
            "width": box.w,
            "height": box.h,
        }
        try:
            shot = self._shots.grab(area)
        except (self._mss.ScreenShotError, OSError) as error:
            raise GameCrashed(f"the window {self.title!r} is gone: {error}") from error
        pixels = np.frombuffer(shot.bgra, np.uint8).reshape(box.h, box.w, 4)
        return np.asarray(cv2.cvtColor(pixels, cv2.COLOR_BGRA2RGB), np.uint8)

    def click(self, x: int, y: int) -> None:
        """Clicks on a pixel; one outside is moved to the edge."""
        left, top, w, h = self.place
        at = left + min(max(x, 0), w - 1), top + min(max(y, 0), h - 1)
        x11 = self._xlib.X
        self._send((x11.MotionNotify, 0, *at), (x11.ButtonPress, _LEFT), (x11.ButtonRelease, _LEFT))

    def press(self, key: str) -> None:
        """Presses and releases a key; one that no keyboard has does nothing."""
        symbol = self._xlib.XK.string_to_keysym(key)
        code = self._x.keysym_to_keycode(symbol) if symbol else 0
        if code:
            self._send((self._xlib.X.KeyPress, code), (self._xlib.X.KeyRelease, code))

    def _send(self, *events: tuple[int, ...]) -> None:
        if self._event_delay_s > 0 and self._sent:
            self._pause.wait(self._event_delay_s)
        try:
            for kind, detail, *at in events:
                x, y = at or (0, 0)
                self._xlib.ext.xtest.fake_input(self._x, kind, detail, x=x, y=y)
            self._x.sync()
        except (self._xlib.error.ConnectionClosedError, OSError) as error:
            raise GameCrashed(f"the window {self.title!r} is gone: {error}") from error
        self._sent += 1

    def pulse(self) -> int:
        """Returns the events that the window says it has handled, modulo their limit."""
        boxes = [self.ui.box("pulse", bit) for bit in range(self.ui.count("pulse"))]
        first, last = boxes[0], boxes[-1]
        strip = self._grab(Box(first.x, first.y, last.x + last.w - first.x, first.h))
        lit = [strip[first.h // 2, box.x - first.x + box.w // 2, 2] > 128 for box in boxes]
        return sum(1 << bit for bit, on in enumerate(lit) if on)

    def wait_idle(self) -> None:
        """Waits until the window shows what the events did.

        Raises:
            GameTimeout: it has not handled them in time.
            GameCrashed: it is gone.
        """
        end = time.monotonic() + self._timeout_s
        if "pulse" in self.ui:
            whole, polls = 1 << self.ui.count("pulse"), 0
            while self.pulse() != self._sent % whole:
                polls += 1
                if polls % 50 == 0:
                    self._where()
                if time.monotonic() > end:
                    raise GameTimeout(
                        f"the window {self.title!r} did not show within {self._timeout_s:g} s what "
                        f"the last click or key did"
                    )
                self._pause.wait(_POLL_S)
            return
        seen, since = self.grab(), time.monotonic()
        while time.monotonic() - since < self._still_s:
            if time.monotonic() > end:
                raise GameTimeout(f"the window {self.title!r} does not stop changing")
            self._pause.wait(self._still_s / 5)
            now = self.grab()
            if (now != seen).any():
                seen, since = now, time.monotonic()

    def close(self) -> None:
        """Leaves the display; the window stays. Idempotent."""
        self._shots.close()
        with contextlib.suppress(self._xlib.error.ConnectionClosedError, OSError):
            self._x.close()
        self._x.display.socket.close()  # not closed if the display is gone


def libraries() -> tuple[Any, Any]:
    """Returns mss and Xlib, which are loaded when a window is played.

    Raises:
        ConfigError: they are not installed.
    """
    try:
        import mss  # noqa: PLC0415
        import Xlib.display  # noqa: PLC0415
        import Xlib.error  # noqa: PLC0415
        import Xlib.ext.xtest  # noqa: PLC0415
        import Xlib.X  # noqa: PLC0415
        import Xlib.XK  # noqa: PLC0415
    except ImportError as error:
        raise missing_extra("playing a window", "starbench") from error
    return mss, Xlib


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
