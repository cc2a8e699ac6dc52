"""The window in which a person plays: draws, keeps the pace, collects the inputs.

There is one screen, one keyboard and one mouse, and SDL has one display per process, so a process
has one ``Window``. Nothing is opened, and pygame is not loaded, before the first use.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from policies.human_keys import TALK, Controls, Inputs
from policies.human_text import HINT, EpisodeProgress, Line, help_lines, result_lines
from rollout.api import Array, BridgeSpec, Columns, Fragment, Start, Task, pixels
from rollout.errors import BudgetExhausted, ConfigError, UnknownNameError, missing_extra

Picture = NDArray[np.uint8]

CLASS = "gamut"
"""Class of the window under X11, by which programs find it."""
MOUSE = {1: "mouse left", 2: "mouse middle", 3: "mouse right"}
_FREE = 60  # redraws per second while the game waits for the person
_REPEAT_MS = 125  # steps per second of a held key while the game waits, once it repeats
_TALL, _LINE, _MARGIN = 22, 24, 8  # pixels: of the font, of a line, of the margin
_SMALL, _GAP = 11, 12  # pixels: of the smallest font, between the columns of the help
_LEAST_WIDTH = 640
_SCREEN_SHARE = 0.85  # share of the screen that the window may cover
_BACK, _TEXT, _DIM, _SHADE = (24, 26, 30), (235, 235, 235), (150, 155, 165), (0, 0, 0, 225)
_CHAT, _LONGEST_LINE = 6, 256  # lines of the chat that are shown; characters of one to say
_HEADLESS_DRIVERS = ("offscreen", "dummy")  # the driver that SDL chooses when there is no screen


@dataclass(frozen=True)
class PlaySetup:
    """The game, its controls and the display options of a window.

    Attributes:
        spec: the game.
        task: the task that is played.
        controls: the meaning of the keys.
        show: returns the picture in an observation of one slot, H x W x 3.
        rate: maximum steps per second; None for the speed of the game's clock.
        scale: screen pixels per pixel of the picture; 0 fits the screen.
        repeat_after: seconds until a held key repeats while the game waits; 0 for never.
        pause_between: whether to show each result until Enter is pressed.
    """

    spec: BridgeSpec
    task: Task
    controls: Controls
    show: Callable[[Columns], Picture]
    rate: float | None
    scale: int
    repeat_after: float
    pause_between: bool


@functools.cache
def window() -> Window:
    """Returns the window of this process; shows nothing yet.

    Raises:
        ConfigError: there is no screen, or no pygame.
    """
    return Window()


class Window:
    """The window; see the module.

    Attributes:
        closed: the person has closed the window; play no more.
        gave_up: the person wants to begin the episode again.
        stopping: called now and then; once it returns True, no call waits for the person.
        progress: the progress of the episode, shown below the picture.
    """

    def __init__(self) -> None:
        self._pygame = _load_pygame()
        self._surface: Any = None
        self._font: Any = None
        self._clock = self._pygame.time.Clock()
        self._held: dict[str, None] = {}  # in the order in which they were pressed
        self._pressed: dict[str, None] = {}  # pressed since the last step, possibly released again
        self._mouse_motion = (0.0, 0.0)
        self._clicked: tuple[float, float] | None = None
        self._said = ""  # the line that was typed since the last step
        self._chat: list[str] = []
        self._stepped_ms = 0
        self._pressed_ms = 0  # the last time that a key was pressed
        self._setup: PlaySetup | None = None
        self._picture: Picture = np.zeros((64, 64, 3), np.uint8)
        self.progress = EpisodeProgress()
        self.closed = False
        self.restart_requested = False
        self.stopping: Callable[[], bool] = lambda: False

    def check_inputs(self, names: Iterable[str]) -> None:
        """Checks that the key names exist.

        Raises:
            UnknownNameError: a name is not a key.
        """
        pygame = self._pygame
        codes = [getattr(pygame, name) for name in dir(pygame) if name.startswith("K_")]
        valid = {pygame.key.name(code) for code in codes} | set(MOUSE.values())
        for name in sorted(set(names) - valid):
            raise UnknownNameError("key", name, valid - {""})

    def begin(self, setup: PlaySetup, start: Start) -> None:
        """Begins an episode."""
        self._setup = setup
        self.progress.begin(setup.spec, setup.task, start)
        self._release_inputs()
        self._chat = []
        if self._surface is not None:
            self._capture(True)

    def hear(self, lines: Iterable[str]) -> None:
        """Shows lines of the game's chat over the picture, below the earlier ones."""
        self._chat = [*self._chat, *lines][-_CHAT:]

    def wait(self, done: Callable[[], bool]) -> None:
        """Keeps the window alive until something is done elsewhere, or the person leaves."""
        while not done() and not self.closed and not self.stopping():
            self._clock.tick(_FREE)
            self._process_events()

    def step(self, observations: Columns) -> Inputs:
        """Shows an observation until the next step is due.

        Returns:
            the inputs in that time.

        Raises:
            BudgetExhausted: the window was closed, or the episode was abandoned.
        """
        self._require_open()
        assert self._setup is not None  # an episode has begun
        self._picture = self._setup.show(observations)
        rate = self._steps_per_second()
        self._draw()
        self._clock.tick(_FREE if rate is None else rate)
        self._process_events()
        while rate is None and not self._is_step_due() and not self.closed and not self.stopping():
            self._clock.tick(_FREE)
            self._process_events()
        self._require_open()
        self._stepped_ms = self._pygame.time.get_ticks()
        inputs = self._inputs()
        self._pressed, self._mouse_motion, self._clicked, self._said = {}, (0.0, 0.0), None, ""
        return inputs

    def watch(self, fragment: Fragment) -> None:
        """Records the results of the actions; shows each result until Enter is pressed."""
        self.progress.add(fragment)
        setup = self._setup
        for k, (t, b) in enumerate(fragment.final_index.tolist()):
            if setup is None or fragment.lost[t, b]:
                continue
            final = {key: column[k] for key, column in fragment.final_observations.items()}
            self._picture = setup.show(final)
            self._draw()
            start = fragment.starts[int(fragment.start_index[t, b])]
            ended = [r for r in fragment.results if r.start.episode == start.episode]
            if setup.pause_between and ended:
                self._show_until(result_lines(ended[-1]), {"return", "enter"})

    def close(self) -> None:
        """Closes the window. Idempotent; ``window()`` makes another."""
        self._surface = None
        self._pygame.display.quit()
        window.cache_clear()

    def _require_open(self) -> None:
        if self.closed:
            raise BudgetExhausted("the window was closed")
        if self.restart_requested:
            raise BudgetExhausted("the person gave the episode up")

    def _steps_per_second(self) -> float | None:
        assert self._setup is not None
        return self.progress.rate if self._setup.rate is None else self._setup.rate

    def _is_step_due(self) -> bool:
        """Returns whether the person has given an input, in a game that waits for one."""
        assert self._setup is not None
        if not self._setup.controls.requests_action(self._inputs()):
            return self.restart_requested
        now, after = self._pygame.time.get_ticks(), 1000 * self._setup.repeat_after
        repeats = 0 < after <= now - self._pressed_ms and now - self._stepped_ms >= _REPEAT_MS
        return bool(self._pressed or self._said) or repeats

    def _inputs(self) -> Inputs:
        up_again = tuple(key for key in self._pressed if key not in self._held)
        return Inputs(up_again + tuple(self._held), *self._mouse_motion, self._clicked, self._said)

    def _process_events(self) -> None:
        """Processes the events of the window."""
        pygame = self._pygame
        for event in pygame.event.get():
            if event.type == pygame.QUIT:
                self.closed = True
            elif event.type == pygame.WINDOWFOCUSLOST:
                self._pause()
            elif event.type == pygame.KEYDOWN:
                self._press(pygame.key.name(event.key))
            elif event.type == pygame.KEYUP:
                self._held.pop(pygame.key.name(event.key), None)
            elif event.type == pygame.MOUSEBUTTONDOWN and event.button in MOUSE:
                self._press(MOUSE[event.button])
                self._clicked = self._on_picture(event.pos)
            elif event.type == pygame.MOUSEBUTTONUP:
                self._held.pop(MOUSE.get(event.button, ""), None)
            elif event.type == pygame.MOUSEMOTION:
                self._mouse_motion = (
                    self._mouse_motion[0] + event.rel[0],
                    self._mouse_motion[1] + event.rel[1],
                )

    def _on_picture(self, place: tuple[int, int]) -> tuple[float, float]:
        """Returns a place of the window as shares of the picture's width and height."""
        height, width = self._picture.shape[:2]
        scale = self._scale(width, height)
        left = (self._surface.get_width() - width * scale) // 2
        x, y = (place[0] - left) / (width * scale), place[1] / (height * scale)
        return min(max(x, 0.0), 1.0), min(max(y, 0.0), 1.0)

    def _press(self, name: str) -> None:
        if name == "f10":
            self.closed = True
        elif name in ("escape", "f1"):
            self._pause()
        elif name == TALK and self._setup is not None and "say" in self._setup.controls.chords:
            self._said = self._type_line()
        else:
            self._held[name] = self._pressed[name] = None
            self._pressed_ms = self._pygame.time.get_ticks()

    def _pause(self) -> None:
        assert self._setup is not None
        if self._show_until(help_lines(self._setup.controls), {"escape", "f1", "r"}) == "r":
            self.restart_requested = True
        self._capture(True)
        self._clock.tick()  # the pause does not count as time of a step

    def _show_until(self, lines: Sequence[Line], keys: set[str]) -> str:
        """Shows text over the picture until one of the keys is pressed; returns which."""
        pygame = self._pygame
        self._capture(False)
        pressed = ""
        while not pressed and not self.closed and not self.stopping():
            self._draw(lines)
            self._clock.tick(_FREE)
            for event in pygame.event.get():
                name = pygame.key.name(event.key) if event.type == pygame.KEYDOWN else ""
                self.closed = self.closed or event.type == pygame.QUIT or name == "f10"
                pressed = name if name in keys else pressed
        self._release_inputs()
        return pressed

    def _type_line(self) -> str:
        """Returns the line that the person types until Enter; empty after Esc. The game waits."""
        pygame = self._pygame
        line, typing = "", True
        self._capture(False)
        pygame.event.clear(pygame.TEXTINPUT)  # of the key that began it
        while typing and not self.closed and not self.stopping():
            self._draw(
                [("Say:", ""), (f"{line}_", ""), ("", ""), ("Enter", "say it"), ("Esc", "do not")]
            )
            self._clock.tick(_FREE)
            for event in pygame.event.get():
                self.closed = self.closed or event.type == pygame.QUIT
                if event.type == pygame.TEXTINPUT:
                    line = (line + event.text)[:_LONGEST_LINE]
                key = pygame.key.name(event.key) if event.type == pygame.KEYDOWN else ""
                line = line[:-1] if key == "backspace" else "" if key == "escape" else line
                typing = typing and key not in ("return", "enter", "escape")
        self._release_inputs()
        self._capture(True)
        self._clock.tick()
        return line.strip()

    def _release_inputs(self) -> None:
        """Releases all held keys: a key held during a pause must be pressed again."""
        self._held, self._pressed, self._mouse_motion, self._clicked = {}, {}, (0.0, 0.0), None

    def _capture(self, captured: bool) -> None:
        """Captures the mouse in the window, so that its movement is unlimited; or releases it."""
        captured = captured and self._setup is not None and self._setup.controls.uses_mouse
        self._pygame.event.set_grab(captured)
        self._pygame.mouse.set_visible(not captured)
        self._pygame.event.clear(self._pygame.MOUSEMOTION)  # it was moved to the window's centre

    def _draw(self, over: Sequence[Line] = ()) -> None:
        surface, pygame = self._open(), self._pygame
        height, width = self._picture.shape[:2]
        scale = self._scale(width, height)
        image = pygame.image.frombuffer(self._picture.tobytes(), (width, height), "RGB")
        image = pygame.transform.scale(image, (width * scale, height * scale))
        surface.fill(_BACK)
        surface.blit(image, ((surface.get_width() - image.get_width()) // 2, 0))
        self._write(self._chat, _TEXT, (_MARGIN, _MARGIN), self._font, _LINE, _BACK)
        lines = [*self._wrapped(self.progress.goal), self.progress.line(self._steps_per_second())]
        top = image.get_height() + _MARGIN
        self._write(lines, _TEXT, (_MARGIN, top), self._font, _LINE)
        below = _MARGIN, top + _LINE * len(lines)
        self._write([self.progress.action, HINT], _DIM, below, self._font, _LINE)
        if over:
            shade = pygame.Surface(surface.get_size(), pygame.SRCALPHA)
            shade.fill(_SHADE)
            surface.blit(shade, (0, 0))
            self._write_over(over)
        pygame.display.set_caption(self.progress.title)
        pygame.display.flip()

    def _write_over(self, lines: Sequence[Line]) -> None:
        """Writes lines over the picture in as many columns as they need, as large as they fit."""
        window_width, tall = self._surface.get_size()
        size = _TALL
        while True:
            font = self._pygame.font.Font(None, size)
            pitch = font.get_linesize() + 3
            high = max(1, (tall - 3 * _MARGIN) // pitch)
            parts = [lines[n : n + high] for n in range(0, len(lines), high)]
            tabs = [
                max((font.size(a)[0] + _GAP for a, b in part if b), default=0) for part in parts
            ]
            ends = [max((tab if b else 0) + font.size(b or a)[0] for a, b in part) + 2 * _GAP
                    for part, tab in zip(parts, tabs, strict=True)]  # fmt: skip
            if sum(ends) <= window_width or size == _SMALL:
                break
            size -= 1
        left = _GAP
        for part, tab, end in zip(parts, tabs, ends, strict=True):
            for column, at in ((0, left), (1, left + tab)):
                self._write([line[column] for line in part], _TEXT, (at, 2 * _MARGIN), font, pitch)
            left += end

    def _write(
        self,
        lines: Sequence[str],
        colour: Sequence[int],
        at: tuple[int, int],
        font: Any,
        pitch: int,
        back: Sequence[int] | None = None,
    ) -> None:
        for n, text in enumerate(lines):
            drawn = font.render(text, True, colour, back)
            self._surface.blit(drawn, (at[0], at[1] + pitch * n))

    def _wrapped(self, text: str) -> list[str]:
        lines: list[str] = []
        room = self._surface.get_width() - 2 * _MARGIN
        for word in text.split():
            longer = f"{lines[-1]} {word}" if lines else word
            if lines and self._font.size(longer)[0] <= room:
                lines[-1] = longer
            else:
                lines.append(word)
        return lines

    def _scale(self, width: int, height: int) -> int:
        """Returns the screen pixels per pixel of the picture."""
        assert self._setup is not None
        if self._setup.scale:
            return self._setup.scale
        window_width, high = self._pygame.display.get_desktop_sizes()[0]
        text = 6 * _LINE
        return max(
            1,
            min(
                int(window_width * _SCREEN_SHARE) // width,
                (int(high * _SCREEN_SHARE) - text) // height,
            ),
        )

    def _open(self) -> Any:
        """Returns the surface to draw on; opens the window if needed."""
        height, width = self._picture.shape[:2]
        scale = self._scale(width, height)
        window_width = max(_LEAST_WIDTH, width * scale)
        if self._surface is None or self._surface.get_width() != window_width:
            pygame = self._pygame
            self._font = pygame.font.Font(None, _TALL)
            size = (window_width, height * scale + 2 * _MARGIN + 6 * _LINE)
            self._surface = pygame.display.set_mode(size)
            self._capture(True)
        return self._surface


def picture(leaf: spaces.Space[Any], value: Array) -> Picture:
    """Returns the picture in a value of a column, ``(H, W, 3)``; of a stack, the newest frame."""
    value = pixels(leaf, value)
    if value.ndim == 2:
        value = value[:, :, None]
    shown = value[:, :, :3] if value.shape[2] >= 3 else np.repeat(value[:, :, -1:], 3, axis=2)
    return np.ascontiguousarray(shown)


def _load_pygame() -> Any:
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    os.environ.setdefault("SDL_VIDEO_X11_WMCLASS", CLASS)
    if sys.platform == "linux" and not os.environ.get("WAYLAND_DISPLAY"):
        # SDL would try every driver, and report each failure on a line of its own.
        if not os.environ.get("DISPLAY") and not os.environ.get("SDL_VIDEODRIVER"):
            raise _no_screen("DISPLAY is not set")
        os.environ.setdefault("SDL_VIDEODRIVER", "x11")
    try:
        import pygame  # noqa: PLC0415
    except ImportError as error:
        raise missing_extra("the window in which a person plays", "play") from error
    if pygame.display.get_init() and pygame.display.get_driver() in _HEADLESS_DRIVERS:
        pygame.display.quit()  # a game that renders in memory set it before
    try:
        pygame.display.init()
        pygame.font.init()
    except pygame.error as error:
        raise _no_screen(str(error)) from error
    driver = pygame.display.get_driver()
    if driver in _HEADLESS_DRIVERS and os.environ.get("SDL_VIDEODRIVER") != driver:
        pygame.display.quit()
        raise _no_screen(f"SDL offers {driver} only")
    return pygame


def _no_screen(why: str) -> ConfigError:
    return ConfigError(
        f"a person needs a screen, and no window can be opened here ({why}); play on a desktop, or "
        f"set DISPLAY to one; to try it without, start it under xvfb-run"
    )
