"""Any window as a client, off by default, and a client of recorded pictures in its place."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bridges.starbench.screen.layout import UI_MAP, UiMap
from bridges.starbench.screen.sprites import Picture
from bridges.starbench.window.client import WindowClient
from rollout.errors import ConfigError, InputError

WARNING = (
    "client=real sends clicks and keys to a program that is not ours. The terms of service of a "
    "game may forbid that, and an account may be closed for it. Read them; if they permit it, set "
    "real_confirmed=true"
)


def open_real(
    title: str,
    *,
    confirmed: bool,
    ui_map: Path | None = None,
    display: str | None = None,
    timeout_s: float = 20.0,
    event_delay_s: float = 0.5,
) -> WindowClient:
    """Returns a client of a window that is already open, by its title.

    Args:
        title: of the window; a part of it is enough.
        confirmed: that the user has read ``WARNING`` and wants it.
        ui_map: the map of its screen, ours by default; `python -m
            bridges.starbench.window.calibrate` shows whether it fits.
        display: of X; None for ``DISPLAY``.
        timeout_s: seconds for every wait.
        event_delay_s: seconds between events, as in StarBench.

    Raises:
        ConfigError: it was not confirmed, or there is no display.
        UnknownNameError: there is no such window.
        InputError: the window has another size than the map.
    """
    if not confirmed:
        raise ConfigError(WARNING)
    ui_map = ui_map or UI_MAP
    ui = UiMap(path=ui_map)
    client = WindowClient(
        title, display=display, ui=ui, timeout_s=timeout_s, event_delay_s=event_delay_s
    )
    found = (client.place.w, client.place.h)
    if found != ui.size:
        client.close()
        raise InputError(
            f"the window {title!r} is {found[0]} x {found[1]} pixels, and {ui_map} is for "
            f"{ui.size[0]} x {ui.size[1]}; change the size of the window, or write a map for it"
        )
    return client


class FrameClient:
    """Recorded pictures in the place of a real client: each decision shows the next.

    Args:
        pictures: in order; the last one stays.
        ui: the map of their screen.

    Attributes:
        log: the clicks ``(x, y)`` and keys that were sent.
    """

    def __init__(self, pictures: Sequence[Picture], ui: UiMap | None = None) -> None:
        if not pictures:
            raise InputError("expected recorded pictures, got none")
        self._pictures = list(pictures)
        height, width = self._pictures[0].shape[:2]
        self.ui = ui or UiMap((width, height))
        self.log: list[tuple[int, int] | str] = []

    def grab(self) -> Picture:
        """Returns the picture that is shown now."""
        return self._pictures[0]

    def click(self, x: int, y: int) -> None:
        """Notes a click."""
        self.log.append((x, y))

    def press(self, key: str) -> None:
        """Notes a key, which completes a decision, and shows the next picture."""
        self.log.append(key)
        if len(self._pictures) > 1:
            del self._pictures[0]

    def wait_idle(self) -> None:
        """Returns at once."""
