"""Crafter (Hafner 2021), a game of the old Gym interface, as a bridge.

Crafter's own ``Env`` seeds itself when it is made and counts its episodes, so what an episode shows
depends on what was played before; its ``reset`` takes no seed; ``step`` returns four values and
does not distinguish death from the time limit. ``_CrafterGame`` corrects this.

The generator is several times faster than Crafter's and bit-identical. Nearly all of Crafter's
reset is simplex noise. Its library compiles the noise of one point where numba is installed, as it
always is here, but the function that Crafter calls builds arrays around each point.
With ``describe`` the view is put in words as BALROG does.
"""

from __future__ import annotations

import collections
import functools
import importlib
import importlib.metadata
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces

from bridges.gymnasium.instance import REWARD, GymnasiumInstance
from bridges.gymnasium.making import (
    REWARD_SPEC,
    TASKS,
    check_at_least,
    check_seeds,
    import_modules,
    launch_games,
    seed_space,
)
from rollout.api import (
    ACTION,
    OBSERVATION,
    BridgeSpec,
    Columns,
    ColumnSpec,
    Deadlines,
    Instance,
    Resources,
    flatten_space,
    option,
)

# the generator ------------------------------------------------------------------------------------


def generate(world: Any, player: Any) -> None:
    """Fills an empty world; equivalent to ``crafter.worldgen.generate_world``.

    Draws the same random numbers in the same order, so that the same seed gives the same world.
    """
    from crafter import worldgen  # noqa: PLC0415 - importing the bridge must stay free

    width, height = world.area
    noise = _Noise(int(world.random.randint(0, 2**31 - 1)))
    tunnels = _Marks()
    for x in range(width):
        for y in range(height):
            worldgen._set_material(world, (x, y), player, tunnels, noise)
    for x in range(width):
        for y in range(height):
            worldgen._set_object(world, (x, y), player, tunnels)


class _Marks(dict[tuple[int, int], bool]):
    """A grid that is False where nothing has been written."""

    def __missing__(self, key: tuple[int, int]) -> bool:
        return False


class _Noise:
    """``opensimplex.OpenSimplex`` of one seed, three dimensions only."""

    def __init__(self, seed: int) -> None:
        internals: Any = importlib.import_module("opensimplex.internals")
        self._permutation, self._gradients = internals._init(seed)
        self._noise3 = internals._noise3

    def noise3(self, x: float, y: float, z: float) -> float:
        """Returns the noise at a point, -1 to 1."""
        # Always floats, so that it is compiled only once.
        value: float = self._noise3(
            float(x), float(y), float(z), self._permutation, self._gradients
        )
        return value


# the view in words --------------------------------------------------------------------------------

VIEW = (9, 7)
"""Width and height of what is seen around the player, in cells."""

_PLAIN = ("", "grass", "sand", "path")  # ground that is not named
_WAYS = {"left": "west", "right": "east", "up": "north", "down": "south"}


def labels(actions: Sequence[str]) -> tuple[str, ...]:
    """Returns the names of Crafter's actions with the directions of the text: ``Move West``."""
    words = [[_WAYS.get(word, word) for word in name.split("_")] for name in actions]
    return tuple(" ".join(word.title() for word in each) for each in words)


def describe(
    view: Sequence[Sequence[str]],
    facing: tuple[int, int],
    vitals: Mapping[str, int],
    inventory: Mapping[str, int],
    *,
    sleeping: bool = False,
) -> str:
    """Returns what is seen, what is faced, how the player is and what it carries.

    Of each kind of thing one is named: the one whose place has the smallest first number, which
    counts steps north or south if there are any. Of water only the edge counts.

    Args:
        view: what is in each cell, ``[x][y]`` from west and north, the player in the middle; empty
            outside of the world.
        facing: the direction in which the player looks, east and south.
        vitals: how the player is, 0 to 9.
        inventory: what it carries.
        sleeping: whether it sleeps.
    """
    x, y = len(view) // 2, len(view[0]) // 2
    parts = ["You died."] if not vitals["health"] > 0 else []
    if sleeping:
        parts = ["You are sleeping, and will not be able take actions until energy is full."]
    seen = [f"- {name} {where}" for name, (_, where) in _nearest(view, x, y).items()]
    parts.append("\n".join(["You see:", *seen]) if seen else "You see nothing away from you.")
    faced = view[x + facing[0]][y + facing[1]]
    parts.append(f"You face {'nothing' if faced in _PLAIN else faced} at your front.")
    parts.append("\n".join(["Your status:", *(f"- {k}: {v}/9" for k, v in vitals.items())]))
    carried = [f"- {name}: {number}" for name, number in inventory.items() if number]
    nothing = "You have nothing in your inventory."
    parts.append("\n".join(["Your inventory:", *carried]) if carried else nothing)
    return "\n\n".join(parts)


def _nearest(view: Sequence[Sequence[str]], x: int, y: int) -> dict[str, tuple[int, str]]:
    """The first number and the place of one thing of each kind, in the order of the cells."""
    found: dict[str, tuple[int, str]] = {}
    for i, j in np.ndindex(len(view), len(view[0])):
        name = view[i][j]
        if (i, j) == (x, y) or name in _PLAIN or (name == "water" and not _edge(view, i, j)):
            continue
        ways = [(j - y, "south" if j > y else "north"), (i - x, "east" if i > x else "west")]
        away = [(abs(steps), way) for steps, way in ways if steps]
        place = " and ".join(f"{n} step{'s' if n > 1 else ''} {way}" for n, way in away)
        if name not in found or away[0][0] < found[name][0]:
            found[name] = (away[0][0], place)
    return found


def _edge(view: Sequence[Sequence[str]], i: int, j: int) -> bool:
    beside = ((i - 1, j), (i + 1, j), (i, j - 1), (i, j + 1))
    within = [(a, b) for a, b in beside if 0 <= a < len(view) and 0 <= b < len(view[0])]
    return any(view[a][b] != view[i][j] for a, b in within)


def seen_by(player: Any) -> list[list[str]]:
    """Returns what is in each cell around a player: its creature or plant, or the ground."""
    (x, y), (width, height) = player.pos.tolist(), VIEW
    columns = range(x - width // 2, x + width // 2 + 1)
    rows = range(y - height // 2, y + height // 2 + 1)
    return [[_name(*player.world[i, j]) for j in rows] for i in columns]


def _name(material: str | None, thing: Any) -> str:
    return material or "" if thing is None else type(thing).__name__.lower()


# the bridge ---------------------------------------------------------------------------------------

MAX_WIDTH = 256
MIN_SIZE = 18  # below it Crafter's digits have no pixels and its drawing fails
MIN_AREA = 16

VITALS = ("health", "food", "drink", "energy")
"""Items that are not in the inventory; each is a signal."""

ACHIEVEMENTS = "achievements"
"""Signal: the number of achievements that were unlocked in this episode, 0 to 22."""

TEXT = "text"
"""Key of the description in the details."""

_MOST_TEXT = 4096  # some thirty lines


@dataclass(frozen=True)
class CrafterBridge:
    """Hosts Crafter: survive and unlock 22 achievements in a generated world.

    The state is the seed of the world. An episode shows what ``crafter.Env(seed=seed)`` shows in
    its first episode, whatever the slot played before, with one difference: when too many
    creatures crowd a chunk, Crafter removes one by the order of a set of objects, which follows
    their addresses in memory and so differs from run to run; here the order is that in which they
    came to the chunk.

    Death is ``game_over``; the ``length`` limit is ``game_truncated``. With ``describe``, the
    details have ``text``: what is seen, and the vitals and inventory, in words.
    """

    size: int = option(64, "height and width of the image", unit="pixels")
    length: int = option(10_000, "steps after which the game truncates an episode", unit="steps")
    reward: bool = option(True, "whether there are rewards; CrafterNoReward-v1 has none")
    area: int = option(64, "height and width of the world", unit="cells")
    seeds: int = option(2**31, "number of states: the seeds 0 to seeds - 1", unit="seeds")
    describe: bool = option(
        False, "whether the details tell in words what is seen; actions get names of its directions"
    )

    def __post_init__(self) -> None:
        check_at_least("size", self.size, MIN_SIZE)
        check_at_least("length", self.length, 1)
        check_at_least("area", self.area, MIN_AREA)
        check_seeds(self.seeds)

    @property
    def spec(self) -> BridgeSpec:
        """Returns what is known before launch; reads Crafter's tables and makes no world."""
        observation, action = self._spaces()
        actions = _tables().actions
        return BridgeSpec(
            name="crafter",
            version=f"1/crafter {importlib.metadata.version('crafter')}",
            observation_space=flatten_space(observation).columns,
            action_space=flatten_space(action, ACTION).columns,
            state_space=seed_space(self.seeds, "decides the world and everything in it"),
            signals={REWARD: REWARD_SPEC, **_signals()},
            max_width=MAX_WIDTH,
            uses_seed=False,
            process="in_process",
            deadlines=Deadlines(start_s=60.0, reset_s=120.0, step_s=30.0),
            resources=Resources(memory_mb=400),
            tasks=TASKS,
            original_observation_space=observation,
            original_action_space=action,
            action_labels={ACTION: labels(actions) if self.describe else tuple(actions)},
        )

    def launch(
        self,
        workdir: Path,
        ports: Sequence[int],
        *,
        width: int,
        timeout_s: float,
    ) -> Instance:
        """Makes ``width`` games in this process; see ``rollout.api.Bridge``."""
        observation, action = self._spaces()
        options = (self.size, self.length, self.area, self.reward, self.describe)
        build = functools.partial(_CrafterGame, *options)
        return GymnasiumInstance(
            "crafter",
            launch_games("crafter", build, width=width, max_width=MAX_WIDTH, timeout_s=timeout_s),
            flatten_space(observation),
            flatten_space(action, ACTION),
            facts=_CrafterFacts(list(_signals()), width),
        )

    def _spaces(self) -> tuple[spaces.Space[Any], spaces.Discrete[np.int64]]:
        picture = spaces.Box(0, 255, (self.size, self.size, 3), np.uint8)
        actions: spaces.Discrete[np.int64] = spaces.Discrete(len(_tables().actions))
        if not self.describe:
            return picture, actions
        text = spaces.Text(_MOST_TEXT, min_length=0, charset=string.printable)
        return spaces.Dict({OBSERVATION: picture, TEXT: text}), actions


def _tables() -> Any:
    """Returns Crafter's constants; imported here so that importing the bridge stays cheap."""
    import_modules(["crafter"], "bridge 'crafter'")
    from crafter import constants  # noqa: PLC0415 - importing the bridge must stay free

    return constants


def _signals() -> dict[str, ColumnSpec]:
    """Returns the signals beside the reward, in the order in which ``_CrafterGame`` lists them."""
    tables = _tables()
    signals = {
        f"achievement/{name}": ColumnSpec("int32", unit="times", doc="how often in this episode")
        for name in tables.achievements
    }
    signals[ACHIEVEMENTS] = ColumnSpec("int32", doc="how many were unlocked in this episode")
    for name in tables.items:
        if name in VITALS:
            signals[name] = ColumnSpec("int32", doc="0 to 9; without health the game is over")
        else:
            signals[f"inventory/{name}"] = ColumnSpec("int32", unit="items", doc="carried now")
    for axis in ("x", "y"):
        signals[f"position/{axis}"] = ColumnSpec("int32", unit="cells", doc="of the player")
    return signals


class _CrafterGame:
    """One Crafter game, seeded per episode, with the interface of Gymnasium."""

    def __init__(self, size: int, length: int, area: int, reward: bool, describe: bool) -> None:
        import crafter  # noqa: PLC0415 - importing the bridge must stay free
        import cv2  # noqa: PLC0415 - likewise

        self._transpose = cv2.transpose
        # The seed given here is never used: every reset sets its own.
        self._env: Any = crafter.Env(
            area=(area, area), size=(size, size), length=length, reward=reward, seed=0
        )
        self._player_class = crafter.objects.Player
        self._describe = describe
        self._env._sem_view = _nothing  # costly to draw into every info, and not used here

    def reset(self, *, seed: int) -> tuple[Any, list[int]]:
        """Begins the first episode of ``crafter.Env(seed=seed)`` as its ``reset`` does.

        Crafter draws the world of its n-th episode from (seed, n); here n is always 1.
        """
        env, world = self._env, self._env._world
        env._seed, env._episode, env._step = seed, 1, 0
        world.reset(seed=hash((seed, 1)) % (2**31 - 1))
        world._chunks = collections.defaultdict(_InOrder)
        env._update_time()
        env._player = self._player_class(world, (world.area[0] // 2, world.area[1] // 2))
        env._last_health = env._player.health
        world.add(env._player)
        env._unlocked = set()
        generate(world, env._player)
        return self._upright(env._obs()), self._facts()

    def step(self, action: int, /) -> tuple[Any, Any, bool, bool, list[int]]:
        """Plays one action; reports death and the time limit separately."""
        observation, reward, done, info = self._env.step(action)
        dead = info["discount"] == 0
        return self._upright(observation), reward, dead, done and not dead, self._facts()

    def _upright(self, observation: Any) -> Any:
        # Crafter returns its canvas (x, y) as a transposed view (y, x). Copying pixels of three
        # bytes out of such a view is slow: 20 us, against 3 us for a real transposition of the
        # canvas.
        picture = self._transpose(observation.transpose(1, 0, 2))
        return {OBSERVATION: picture, TEXT: self._text()} if self._describe else picture

    def _text(self) -> str:
        player = self._env._player
        carried = dict(player.inventory)
        vitals = {name: carried.pop(name) for name in VITALS}
        view, facing = seen_by(player), tuple(player.facing)
        return describe(view, facing, vitals, carried, sleeping=player.sleeping)

    def _facts(self) -> list[int]:
        player = self._env._player
        counts = player.achievements.values()
        unlocked = sum(count > 0 for count in counts)
        return [*counts, unlocked, *player.inventory.values(), *player.pos.tolist()]

    def close(self) -> None:
        """Crafter has nothing to release."""


class _InOrder(dict[Any, None]):
    """A set that is iterated in insertion order."""

    def add(self, creature: Any) -> None:
        self[creature] = None

    def remove(self, creature: Any) -> None:
        del self[creature]


def _nothing() -> None:
    return None


class _CrafterFacts:
    """Crafter's signals: each column is a row of one table, which one assignment fills."""

    def __init__(self, names: Sequence[str], width: int) -> None:
        self._table = np.zeros((len(names), width), np.int32)
        self.columns: Columns = dict(zip(names, self._table, strict=True))

    def write(self, info: Any, row: int, /) -> None:
        """Copies the signals of one game into a row."""
        self._table[:, row] = info
