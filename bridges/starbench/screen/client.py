"""What plays the screen: anything that shows pictures and takes clicks and keys."""

from __future__ import annotations

from typing import Protocol

from bridges.starbench.screen.controls import Click, Controls, Key, Played
from bridges.starbench.screen.layout import UiMap
from bridges.starbench.screen.renderer import Renderer
from bridges.starbench.screen.sprites import Picture


class Client(Protocol):
    """A screen with a mouse and a keyboard. Nothing else is known of the game behind it."""

    @property
    def ui(self) -> UiMap:
        """The map of its screen, in its pixels."""
        ...

    def grab(self) -> Picture:
        """Returns the screen now, (height, width, 3) in RGB."""
        ...

    def click(self, x: int, y: int) -> None:
        """Clicks on a pixel of the screen."""
        ...

    def press(self, key: str) -> None:
        """Presses and releases a key."""
        ...

    def wait_idle(self) -> None:
        """Waits until the screen shows what the clicks and keys did.

        Raises:
            GameTimeout: it does not.
        """
        ...


def send(client: Client, events: list[Click | Key]) -> None:
    """Sends clicks and keys, and waits until the screen shows what they did."""
    for event in events:
        if isinstance(event, Click):
            client.click(event.x, event.y)
        else:
            client.press(event.name)
    if events:
        client.wait_idle()


class EmulatorClient:
    """The screen of a battle in this process.

    Args:
        battle: that is played.
        size: of the screen in pixels.
    """

    def __init__(self, battle: Played, size: tuple[int, int] = (1920, 1080)) -> None:
        self.renderer = Renderer(size)
        self.controls = Controls(battle, self.renderer.ui)
        self.battle = battle

    def begin(self, battle: Played) -> None:
        """Shows another battle from now on."""
        self.battle, self.controls = battle, Controls(battle, self.renderer.ui)

    @property
    def ui(self) -> UiMap:
        """The map of the screen."""
        return self.renderer.ui

    def grab(self) -> Picture:
        """Returns the picture of the battle now."""
        return self.renderer.draw(self.battle.view(), self.controls.marks)

    def click(self, x: int, y: int) -> None:
        """Clicks on a pixel."""
        self.controls.click(x, y)

    def press(self, key: str) -> None:
        """Presses a key."""
        self.controls.press(key)

    def wait_idle(self) -> None:
        """Returns at once: every event has been handled."""
