"""Atari 2600 games of the Arcade Learning Environment, with the usual preprocessing.

Sources of the rules: Machado et al. 2018, "Revisiting the Arcade Learning Environment" (sticky
actions, frame skip, no-ops, life loss), and ``gymnasium.wrappers.AtariPreprocessing`` and
``FrameStackObservation``. Without sticky actions, the same seed gives the same frames as those
wrappers, pixel for pixel, except the last frame of an episode that ends within a skip: Gymnasium
repeats or mixes older frames there, this bridge shows the last screen of the game. Sticky actions
follow the same rule, but with a separate random stream, see ``AtariGame``.
"""

from __future__ import annotations

import functools
import importlib.metadata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from bridges.gymnasium.instance import REWARD, GymnasiumInstance
from bridges.gymnasium.making import (
    REWARD_SPEC,
    TASKS,
    Probe,
    check_at_least,
    check_seeds,
    find,
    import_modules,
    launch_games,
    make,
    probe,
    seed_space,
)
from rollout.api import (
    Array,
    BridgeSpec,
    Columns,
    ColumnSpec,
    Deadlines,
    Instance,
    Resources,
    flatten_space,
    option,
)
from rollout.errors import ConfigError, UnknownNameError

# the console --------------------------------------------------------------------------------------

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


# the bridge ---------------------------------------------------------------------------------------

MAX_WIDTH = 256
FRAMES_PER_SECOND = 60.0  # of an NTSC console; a tick is one of its frames

SIGNALS = {
    REWARD: REWARD_SPEC,
    "lives": ColumnSpec("int32", unit="lives", doc="left in this game; 0 where it counts none"),
    "score": ColumnSpec("float32", unit="points", doc="of this episode, never clipped"),
}


@dataclass(frozen=True)
class AtariBridge:
    """Hosts an Atari game: the last ``stack`` screens, ``(stack, size, size)`` bytes.

    With ``stack: 1`` the first axis is absent; in colour a last axis of 3 follows; without a
    ``size`` pictures are 210 by 160 (250 on some games). The state is the seed of the emulator's
    sticky actions and of the number of no-ops.

    A tick is a frame of the console, so a step is ``frame_skip`` ticks (the last step of a game
    counts whole). Reaching ``max_frames`` is ``game_truncated``. The reward of the frames of a
    step is summed; frames played by the reset (no-ops, fire) count nowhere.
    """

    id: str = option("ALE/Pong-v5", "game of the Arcade Learning Environment; Pong for short")
    frame_skip: int = option(4, "number of frames for which an action is repeated", unit="frames")
    size: int | None = option(
        84, "height and width; null for the console's resolution", unit="pixels"
    )
    grayscale: bool = option(True, "whether images are grayscale, not in colour")
    stack: int = option(4, "number of stacked frames", unit="screens")
    noop_max: int = option(
        30, "maximum number of no-op frames at the start (minimum 1)", unit="frames"
    )
    sticky: float = option(0.25, "probability that the last action is repeated instead")
    terminal_on_life_loss: bool = option(False, "whether losing a life ends the episode")
    fire_on_reset: bool = option(
        False, "whether a reset presses fire and then the next action, to start the game"
    )
    full_action_space: bool = option(
        False, "whether there are all 18 actions, not only those that the game uses"
    )
    clip_reward: bool = option(False, "whether the reward is the sign of the points: -1, 0, 1")
    mode: int | None = option(None, "mode of the cartridge; null for its default")
    difficulty: int | None = option(None, "difficulty switch; null for the game's default")
    max_frames: int = option(
        108_000, "frames after which an episode is truncated (30 min)", unit="frames"
    )
    seeds: int = option(2**31, "number of states: the seeds 0 to seeds - 1", unit="seeds")

    def __post_init__(self) -> None:
        if not self.id:
            raise ConfigError(f"id must be a game such as 'ALE/Pong-v5' or 'Pong', got {self.id!r}")
        for name in ("frame_skip", "stack", "max_frames"):
            check_at_least(name, getattr(self, name), 1)
        if self.size is not None:
            check_at_least("size", self.size, 1)
        check_at_least("noop_max", self.noop_max, 0)
        check_at_least("sticky", self.sticky, 0.0)
        if self.sticky > 1:
            raise ConfigError(f"sticky is a probability, 0 to 1, got {self.sticky}")
        check_seeds(self.seeds)

    @property
    def spec(self) -> BridgeSpec:
        """Returns what is known before launch; loads the game once per process.

        Raises:
            UnknownNameError: there is no such game.
            ConfigError: the game has no such mode or difficulty, or no fire button.
        """
        seen, observation = self._probe(), self._screen()
        flat = flatten_space(observation)
        return BridgeSpec(
            name=self._full_id,
            version=f"1/ale-py {importlib.metadata.version('ale-py')}",
            observation_space=flat.columns,
            action_space=seen.action.columns,
            state_space=seed_space(self.seeds, "decides sticky actions and idle frames"),
            signals=SIGNALS,
            max_width=MAX_WIDTH,
            uses_seed=False,
            process="in_process",
            ticks_per_second=FRAMES_PER_SECOND,
            deadlines=Deadlines(start_s=180.0, reset_s=60.0, step_s=30.0),  # at the greatest width
            resources=Resources(memory_mb=400),
            tasks=TASKS,
            stacks={"observation": 0} if self.stack > 1 else {},
            original_observation_space=observation,
            original_action_space=seen.action.original,
        )

    def launch(
        self,
        workdir: Path,
        ports: Sequence[int],
        *,
        width: int,
        timeout_s: float,
    ) -> Instance:
        """Makes ``width`` consoles in this process; see ``rollout.api.Bridge``."""
        seen, name = self._probe(), self._full_id
        build = functools.partial(
            AtariGame,
            self._build_console(),
            sticky=self.sticky,
            frame_skip=self.frame_skip,
            size=self.size,
            grayscale=self.grayscale,
            stack=self.stack,
            noop_max=self.noop_max,
            terminal_on_life_loss=self.terminal_on_life_loss,
            fire_on_reset=self.fire_on_reset,
            clip_reward=self.clip_reward,
        )
        return GymnasiumInstance(
            name,
            launch_games(name, build, width=width, max_width=MAX_WIDTH, timeout_s=timeout_s),
            flatten_space(self._screen()),
            seen.action,
            facts=_AtariFacts(width),
            ticks_per_step=self.frame_skip,
        )

    @property
    def _full_id(self) -> str:
        import_modules(["ale_py"], "bridge 'atari'")
        import ale_py  # noqa: PLC0415 - importing the bridge must stay free

        ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)  # no banner for every console
        games = {name for name in gymnasium.registry if name.startswith("ALE/")}
        if self.id in games:
            return self.id
        if f"ALE/{self.id}-v5" in games:
            return f"ALE/{self.id}-v5"
        short = sorted(name.removeprefix("ALE/").removesuffix("-v5") for name in games)
        raise UnknownNameError("Atari game", self.id, games if "/" in self.id else short)

    def _screen(self) -> spaces.Box:
        shape = self._probe().observation.original.shape
        assert shape is not None
        height, width = shape[:2] if self.size is None else (self.size, self.size)
        stack = () if self.stack == 1 else (self.stack,)
        colour = () if self.grayscale else (3,)
        return spaces.Box(0, 255, (*stack, height, width, *colour), np.uint8)

    def _build_console(self) -> functools.partial[gymnasium.Env[Any, Any]]:
        return functools.partial(
            make,
            find(self._full_id, ()),
            {
                "obs_type": "rgb",
                "frameskip": 1,  # atari_game draws screens into it, see Screen
                "repeat_action_probability": 0.0,  # AtariGame draws them
                "full_action_space": self.full_action_space,
                "max_num_frames_per_episode": self.max_frames,
                "mode": self.mode,
                "difficulty": self.difficulty,
            },
        )

    def _probe(self) -> Probe:
        build = self._build_console()
        key = f"{self._full_id} {build.args[1]}"
        seen = probe(key, find(self._full_id, ()), build)
        if self.fire_on_reset and seen.actions[FIRE : FIRE + 1] != ("FIRE",):
            raise ConfigError(f"fire_on_reset: {self.id} has no fire button; set it to false")
        return seen


class _AtariFacts:
    """Returns lives and score as signals."""

    def __init__(self, width: int) -> None:
        self._lives = np.zeros(width, np.int32)
        self._score = np.zeros(width, np.float32)
        self.columns: Columns = {"lives": self._lives, "score": self._score}

    def write(self, info: Any, row: int, /) -> None:
        """Copies the signals of one game into a row."""
        self._lives[row], self._score[row] = info
