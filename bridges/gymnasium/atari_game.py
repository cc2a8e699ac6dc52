"""One Atari console: repeats actions, and max-pools, resizes and stacks screens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np

from rollout.api import Array

NOOP, FIRE = 0, 1


class AtariGame:
    """Plays the emulator frame by frame and reads only the screens that are observed.

    Two things are done here instead of in Gymnasium's wrappers and in the emulator:

    * The wrappers read every screen in colour and copy the stack at each step.
    * The emulator takes a seed only when it loads the game, which costs as much as 500 steps, and
      uses it only for sticky actions. So the game is loaded once, its state is saved, and every
      reset restores it. Sticky actions are drawn here, by the emulator's own rule: on each frame,
      with the given probability, the previous action is repeated.
    """

    def __init__(
        self,
        console: Callable[[], gymnasium.Env[Any, Any]],
        *,
        sticky: float,
        frame_skip: int,
        size: int | None,
        grayscale: bool,
        stack: int,
        noop_max: int,
        terminal_on_life_loss: bool,
        fire_on_reset: bool,
        clip_reward: bool,
    ) -> None:
        env: Any = console()
        self._env: Any = env.unwrapped
        self._ale = self._env.ale
        self._actions = (
            self._ale.getLegalActionSet()
            if self._env.spec.kwargs["full_action_space"]
            else self._ale.getMinimalActionSet()
        )
        self._frame_skip, self._noop_max, self._sticky = frame_skip, noop_max, sticky
        self._life_ends, self._clip = terminal_on_life_loss, clip_reward
        self._fire = fire_on_reset
        self._screens = _Screens(self._ale, size, grayscale, stack)
        self._lives, self._score = 0, 0.0
        self._held = self._actions[NOOP]
        self._rng = np.random.default_rng(0)
        self._loaded = self._ale.cloneState()

    def reset(self, *, seed: int) -> tuple[Array, tuple[int, float]]:
        """Starts the game of a seed: no-op frames, then fire if asked."""
        # The two streams that Gymnasium's AtariEnv derives from a seed; the first draws no-ops.
        idle, sticky = np.random.SeedSequence(seed).generate_state(2)
        self._rng = np.random.default_rng(int(sticky))
        self._begin()
        if self._noop_max:
            number = np.random.default_rng(int(idle)).integers(1, self._noop_max + 1)
            for _ in range(int(number)):
                self._ale.act(self._actions[NOOP])
                if self._ale.game_over(with_truncation=True):
                    self._begin()
        self._show_first()
        for action in (FIRE, FIRE + 1) if self._fire else ():
            *_, over, cut, _ = self.step(action)
            if over or cut:
                self._begin()
                self._show_first()
        self._score = 0.0
        return self._screens.stacked, (self._lives, self._score)

    def _begin(self) -> None:
        self._ale.restoreState(self._loaded)
        self._ale.reset_game()
        self._held = self._actions[NOOP]

    def _show_first(self) -> None:
        self._screens.grab()
        self._screens.show(fill=True)
        self._lives = self._ale.lives()

    def step(self, action: int, /) -> tuple[Array, float, bool, bool, tuple[int, float]]:
        """Repeats an action for ``frame_skip`` frames, or until the game ends."""
        ale, screens, chosen = self._ale, self._screens, self._actions[action]
        last = self._frame_skip - 1
        reward, over, cut = 0.0, False, False
        for frame in range(self._frame_skip):
            if not self._sticky or self._rng.random() >= self._sticky:
                self._held = chosen
            reward += ale.act(self._held)
            over, cut = ale.game_over(with_truncation=False), ale.game_truncated()
            if self._life_ends:
                lives = ale.lives()
                over = over or lives < self._lives
                self._lives = lives
            if over or cut:
                last = -1  # the screens of a shortened skip are not pooled
                break
            if frame == last - 1:
                screens.keep()
        screens.grab()
        screens.show(pool=last > 0)
        self._lives = ale.lives()
        self._score += reward
        if self._clip:
            reward = float(np.sign(reward))
        return screens.stacked, reward, over, cut, (self._lives, self._score)

    def close(self) -> None:
        """Releases the console."""
        self._env.close()


class _Screens:
    """The last screens of a game, pooled, resized and stacked, oldest first.

    The stack is a sliding window over a buffer of twice its length. Every screen is written twice,
    so that the window is always contiguous and no data is moved.
    """

    def __init__(self, ale: Any, size: int | None, grayscale: bool, stack: int) -> None:
        import cv2  # noqa: PLC0415 - importing the bridge must stay free

        self._resize, self._area = cv2.resize, cv2.INTER_AREA
        height, width = ale.getScreenDims()
        colour = () if grayscale else (3,)
        self._read = ale.getScreenGrayscale if grayscale else ale.getScreenRGB
        self._now = np.empty((height, width, *colour), np.uint8)
        self._before = np.empty_like(self._now)
        self._size = None if size is None else (size, size)
        self._stack, self._next = stack, 0
        shape = (height, width) if size is None else (size, size)
        self._ring = np.zeros((2 * stack, *shape, *colour), np.uint8)
        self.stacked: Array = self._ring[0]

    def keep(self) -> None:
        """Reads the frame before the last one of a step, for pooling."""
        self._read(self._before)

    def grab(self) -> None:
        """Reads the last frame of a step."""
        self._read(self._now)

    def show(self, *, pool: bool = False, fill: bool = False) -> None:
        """Adds the screen that was read to the stack, or fills the stack; sets ``stacked``."""
        screen = self._now
        if pool:  # objects flicker between two frames; their maximum shows both
            np.maximum(screen, self._before, out=screen)
        if self._size is not None:
            screen = self._resize(screen, self._size, interpolation=self._area)
        at, stack = self._next, self._stack
        if fill:
            self._ring[:] = screen
        else:
            self._ring[at] = self._ring[at + stack] = screen
        self._next = (at + 1) % stack
        self.stacked = self._ring[at] if stack == 1 else self._ring[at + 1 : at + 1 + stack]
