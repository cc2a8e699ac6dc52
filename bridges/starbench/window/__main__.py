"""The process that shows battles in a window; ``HostedWindow`` starts it.

It reads one JSON request from each line of stdin and answers it: ``open`` (size, display, title),
``begin`` (task, seed, state, options). Clicks and keys of the window play the battle. It
ends when its stdin is closed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from typing import Any

from bridges.starbench.client import EmulatorClient
from bridges.starbench.rules.battle import Battle

_SERVER = ("Xvfb", "-nolisten", "tcp", "-terminate", "-displayfd")


def main() -> int:
    """Returns the exit status, once stdin is closed."""
    line = sys.stdin.readline()
    if not line:
        return 0
    opening = json.loads(line)
    width, height = opening["size"]
    display = opening["display"] or start_server(width, height)
    os.environ |= {"DISPLAY": display, "SDL_VIDEODRIVER": "x11", "SDL_AUDIODRIVER": "dummy"}
    os.environ |= {"PYGAME_HIDE_SUPPORT_PROMPT": "1", "SDL_VIDEO_X11_FORCE_EGL": "0"}
    if opening["display"] is None:
        os.environ["SDL_VIDEO_WINDOW_POS"] = "0,0"
    window = Window((width, height), opening["title"])
    _answer({"display": display})
    threading.Thread(target=window.listen, daemon=True).start()
    window.run()
    return 0


def start_server(width: int, height: int) -> str:
    """Starts an X server without a screen, and returns its display.

    It ends with its last connection, so that it outlives neither this process nor the client, and
    it is in the process group of this process.
    """
    read, write = os.pipe()
    command = [*_SERVER, str(write), "-screen", "0", f"{width}x{height}x24"]
    subprocess.Popen(command, pass_fds=[write], stdout=subprocess.DEVNULL)
    os.close(write)
    with os.fdopen(read) as number:
        found = number.readline().strip()
    if not found:
        raise SystemExit("Xvfb ended at its start")
    return f":{found}"


class Window:
    """The window and the battle in it.

    Args:
        size: width and height in pixels.
        title: of the window.
    """

    def __init__(self, size: tuple[int, int], title: str) -> None:
        import pygame  # noqa: PLC0415 - with the display set

        self._pygame = pygame
        pygame.display.init()
        self._surface = pygame.display.set_mode(size, pygame.NOFRAME)
        pygame.display.set_caption(title)
        self._request = pygame.event.custom_type()
        self._size = size
        self._shown: EmulatorClient | None = None

    def listen(self) -> None:
        """Passes the lines of stdin to the loop, and its end."""
        pygame = self._pygame
        for line in sys.stdin:
            pygame.event.post(pygame.event.Event(self._request, line=line))
        pygame.event.post(pygame.event.Event(pygame.QUIT))

    def run(self) -> None:
        """Handles requests, clicks and keys until the window is closed."""
        pygame = self._pygame
        while True:
            events = [pygame.event.wait(), *pygame.event.get()]
            answers = []
            changed = False
            for event in events:
                if event.type == pygame.QUIT:
                    return
                if event.type == self._request:
                    answers.append(self._begin(json.loads(event.line)))
                    changed = True
                elif self._shown is not None and event.type == pygame.MOUSEBUTTONDOWN:
                    self._shown.click(*event.pos)
                    changed = True
                elif self._shown is not None and event.type == pygame.KEYDOWN:
                    self._shown.press(pygame.key.name(event.key))
                    changed = True
                changed |= event.type == pygame.WINDOWEXPOSED
            if changed:
                self._draw()
            for answer in answers:
                _answer(answer)

    def _begin(self, request: dict[str, Any]) -> dict[str, Any]:
        battle = Battle(request["task"], request["seed"], request["state"], **request["options"])
        if self._shown is None:
            self._shown = EmulatorClient(battle, self._size)
        else:
            self._shown.begin(battle)
        return {}

    def _draw(self) -> None:
        if self._shown is None:
            return
        picture = self._shown.grab().tobytes()
        image = self._pygame.image.frombuffer(picture, self._size, "RGB")
        self._surface.blit(image, (0, 0))
        self._pygame.display.flip()


def _answer(answer: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
