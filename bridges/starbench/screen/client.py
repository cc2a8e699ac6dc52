"""What plays the screen: anything that shows pictures and takes clicks and keys."""

from __future__ import annotations

from typing import Protocol

from bridges.starbench.battle import Battle
from bridges.starbench.screen.controls import Controls, Direct
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


def send(client: Client, decision: Direct) -> None:
    """Sends the click and the key of a decision, and waits until the screen shows what they did."""
    if decision.at is not None:
        client.click(*decision.at)
    client.press(decision.key)
    client.wait_idle()


class EmulatorClient(Controls):
    """The screen of a battle in this process.

    Args:
        battle: that is played.
        size: of the screen in pixels.
    """

    def __init__(self, battle: Battle, size: tuple[int, int] = (1920, 1080)) -> None:
        self._renderer = Renderer(size)
        super().__init__(battle, self._renderer.ui)

    def grab(self) -> Picture:
        """Returns the picture of the battle now."""
        return self._renderer.draw(self.battle.view(), self.marks)

    def wait_idle(self) -> None:
        """Returns at once: every event has been handled."""
