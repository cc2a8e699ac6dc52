"""Evaluators of MineLand's families: harvest and tech tree, combat, survival, and creative.

The agents of a world are judged together. Success is decided as in MineLand's code (with its
defects fixed). MineLand has no rewards, so those here are ours: shares of progress, and in combat
the health that the targets lose (MineLand, section I). Where agents compete, the first to succeed
has won and the others of its world have lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridges.mineflayer.blueprints import BLUEPRINTS, Place, score
from bridges.mineflayer.names import NEWER, VERSION, names
from rollout.api import Columns, Details, Evaluator, Frame, Outcome, Start, Verdict, option
from rollout.api.types import Bools, Floats
from rollout.errors import ConfigError, UnknownNameError

# judging by worlds --------------------------------------------------------------------------------

SLOTS = 36
"""Slots of the main inventory: what harvest and tech tree tasks count."""


class WorldJudge:
    """Judges ``width`` slots, ``agents`` of each world together.

    Subclasses say what share of the task is done and when it is decided. Progress is the current
    share; reward is paid once for each new part of it, so parts that are lost and regained pay
    nothing. An agent whose own game ends before success has failed for itself. Arrays that were
    returned are never written again.

    Args:
        width: slots of the instance.
        agents: agents of a world; slots ``k * agents`` to ``(k + 1) * agents - 1`` are one.
        reward: reward for the whole task, paid in parts.
    """

    def __init__(self, width: int, agents: int, reward: float) -> None:
        if width % agents:
            raise ConfigError(
                f"evaluator: width {width} is no multiple of agents={agents}; give the evaluator "
                f"the number of agents that the bridge has"
            )
        self.width, self.agents = width, agents
        self.known: Bools = np.zeros(width, np.bool_)
        self.over: Bools = np.zeros(width, np.bool_)
        self._reward = np.float32(reward)
        self._share: Floats = np.zeros(width, np.float32)
        self._best: Floats = np.zeros(width, np.float32)
        self._outcome = np.full(width, Outcome.RUNNING, np.int8)

    def reset(self, slots: Sequence[int], starts: Sequence[Start], frame: Frame) -> None:
        """Resets some slots."""
        rows = list(slots)
        self.known[rows] = True
        self.over, self._outcome = self.over.copy(), self._outcome.copy()
        self._share, self._best = self._share.copy(), self._best.copy()
        self.over[rows] = frame.game_over | frame.game_truncated
        self._outcome[rows] = Outcome.RUNNING
        self.begin(rows, starts, frame)
        self._share[rows] = self._best[rows] = np.clip(self.share()[rows], 0.0, 1.0)

    def judge(self, actions: Columns, frame: Frame) -> Verdict:
        """Returns the verdict on a step; see ``rollout.api.Evaluator``."""
        playing = ~self.over
        self.watch(np.flatnonzero(playing).tolist(), frame)
        share = np.clip(self.share(), 0.0, 1.0).astype(np.float32)
        share = np.where(playing, share, self._share)
        best = np.maximum(share, self._best)
        reward = (best - self._best) * self._reward + self.extra_reward(frame)
        self._share, self._best = share, best
        success, failure = self.decided(share, frame)
        failure = (failure | frame.game_over) & ~success
        decided = playing & (success | failure)
        said = np.where(success, np.int8(Outcome.SUCCESS), np.int8(Outcome.FAILURE))
        self._outcome = np.where(decided, said, self._outcome)
        self.over = self.over | decided | frame.game_over | frame.game_truncated
        reward = np.where(playing, reward, 0.0).astype(np.float32)
        return Verdict(reward, share, self._outcome)

    def begin(self, rows: list[int], starts: Sequence[Start], frame: Frame) -> None:
        """Begins new episodes; ``frame`` has one row for each of ``rows``."""
        raise NotImplementedError

    def watch(self, rows: list[int], frame: Frame) -> None:
        """Processes a step; only ``rows``, which still play, have changed."""
        raise NotImplementedError

    def share(self) -> NDArray[np.float64]:
        """Returns the current share of the task that is done, ``(width,)``; above 1 counts as 1."""
        raise NotImplementedError

    def extra_reward(self, frame: Frame) -> Any:
        """Returns the reward in addition to that for progress, ``(width,)`` or a number."""
        del frame
        return 0.0

    def decided(self, share: Floats, frame: Frame) -> tuple[Bools, Bools]:
        """Returns which agents have succeeded and failed, apart from games that end."""
        del frame
        return share >= 1.0, np.zeros(self.width, np.bool_)

    def together(self, values: NDArray[Any], reduce: Any) -> NDArray[Any]:
        """Returns each row's value reduced over the agents of its world (e.g. by ``np.sum``)."""
        worlds = values.reshape(-1, self.agents)
        return np.repeat(reduce(worlds, axis=1), self.agents)

    def against(self, success: Bools) -> tuple[Bools, Bools]:
        """Returns which agents have won and lost where the first to succeed wins its world."""
        won: Bools = success & ~self.over
        lost: Bools = self.together(success, np.any).astype(np.bool_) & ~success
        return won, lost


def detail(frame: Frame, row: int) -> Details:
    """Returns the details of a row; an empty mapping if there are none."""
    return {} if frame.details is None else frame.details[row]


def count_of(details: Details, item: str) -> int:
    """Returns how many of an item are in the 36 slots of the main inventory."""
    inventory = details.get("inventory")
    if not inventory:
        return 0
    pairs = zip(inventory["name"][:SLOTS], inventory["quantity"][:SLOTS], strict=True)
    return sum(int(quantity or 0) for name, quantity in pairs if name == item)


def items_of(details: Details) -> set[str]:
    """Returns the names of the items in the main inventory."""
    inventory = details.get("inventory")
    return {name for name in inventory["name"][:SLOTS] if name} if inventory else set()


# families -----------------------------------------------------------------------------------------

_AGENTS = "number of agents of a world, which are judged together"
_COMPETITIVE = (
    "whether the first agent to succeed wins; if not, the results of a world's agents are added"
)
_WORTH = "reward for the whole task, given in parts"
TICKS_PER_DAY = 24_000


def _check(agents: int, count: float = 1) -> None:
    if agents < 1 or not count > 0:
        raise ConfigError(f"expected agents >= 1 and a target above 0, got {agents=} and {count}")


@dataclass(frozen=True)
class MinelandItems:
    """Success once the inventory has enough of an item: harvest and tech tree.

    The 36 main slots count, with what agents have now: items they had at the start count too.
    """

    target: str = option("oak_log", "item to have")
    count: int = option(1, "how many of it")
    agents: int = option(1, _AGENTS)
    competitive: bool = option(False, _COMPETITIVE)
    reward: float = option(1.0, _WORTH)

    def __post_init__(self) -> None:
        _check(self.agents, self.count)
        if self.target not in names().items and self.target not in NEWER:
            raise UnknownNameError(f"item of Minecraft {VERSION}", self.target, names().items)

    @property
    def requires(self) -> frozenset[str]:
        """No signals: inventories are in the details."""
        return frozenset()

    def build(self, width: int) -> Evaluator:
        """Returns the evaluator; see ``rollout.api.EvaluatorRecipe``."""
        return _Items(self, width)


class _Items(WorldJudge):
    def __init__(self, options: MinelandItems, width: int) -> None:
        super().__init__(width, options.agents, options.reward)
        self._options = options
        self._had: NDArray[np.float64] = np.zeros(width)

    def begin(self, rows: list[int], starts: Sequence[Start], frame: Frame) -> None:
        for number, row in enumerate(rows):
            self._had[row] = count_of(detail(frame, number), self._options.target)

    def watch(self, rows: list[int], frame: Frame) -> None:
        for row in rows:
            self._had[row] = count_of(detail(frame, row), self._options.target)

    def share(self) -> NDArray[np.float64]:
        had = self._had if self._options.competitive else self.together(self._had, np.sum)
        return had / self._options.count

    def decided(self, share: Floats, frame: Frame) -> tuple[Bools, Bools]:
        if self._options.competitive:
            return self.against(share >= 1.0)
        return super().decided(share, frame)


@dataclass(frozen=True)
class MinelandCombat:
    """Success once enough targets have died, of any cause; failure once every agent has died once.

    Failure also once too few are left: a creeper that explodes is gone but did not die. Not so
    where the world has them elsewhere (``placed`` false), as the dragon of the End.

    Reward is the health that targets lost, for any reason; every agent of a world receives it.
    """

    target: str = option("zombie", "kind of the targets")
    count: int = option(1, "how many have to die")
    placed: bool = option(True, "whether the state places them around the agents")
    agents: int = option(1, _AGENTS)
    reward: float = option(1.0, "reward for each point of health that a target loses")
    success_reward: float = option(0.0, "reward for the success")
    death_reward: float = option(0.0, "reward for the agent's own death; give a negative number")

    def __post_init__(self) -> None:
        _check(self.agents, self.count)
        if self.target not in names().mobs:
            raise UnknownNameError(f"mob of Minecraft {VERSION}", self.target, names().mobs)

    @property
    def requires(self) -> frozenset[str]:
        """The damage of targets, and the deaths."""
        return frozenset({"target_deaths", "target_damage", "targets_left", "deaths"})

    def build(self, width: int) -> Evaluator:
        """Returns the evaluator; see ``rollout.api.EvaluatorRecipe``."""
        return _Combat(self, width)


class _Combat(WorldJudge):
    def __init__(self, options: MinelandCombat, width: int) -> None:
        super().__init__(width, options.agents, options.success_reward)
        self._options = options
        self._dead: NDArray[np.float64] = np.zeros(width)
        self._left: NDArray[np.float64] = np.zeros(width)
        self._mine: NDArray[np.float64] = np.zeros(width)  # own deaths
        self._damage: NDArray[np.float64] = np.zeros(width)
        self._gained: NDArray[np.float64] = np.zeros(width)

    def begin(self, rows: list[int], starts: Sequence[Start], frame: Frame) -> None:
        self._dead[rows] = frame.signals["target_deaths"]
        self._left[rows] = frame.signals["targets_left"]
        self._mine[rows] = frame.signals["deaths"]
        self._damage[rows] = frame.signals["target_damage"]

    def watch(self, rows: list[int], frame: Frame) -> None:
        damage, mine = frame.signals["target_damage"], frame.signals["deaths"]
        self._gained[:] = 0.0
        hurt = np.maximum(damage[rows] - self._damage[rows], 0.0) * self._options.reward
        died = np.maximum(mine[rows] - self._mine[rows], 0.0) * self._options.death_reward
        self._gained[rows] = hurt + died
        self._damage[rows], self._mine[rows] = damage[rows], mine[rows]
        self._dead[rows] = frame.signals["target_deaths"][rows]
        self._left[rows] = frame.signals["targets_left"][rows]

    def share(self) -> NDArray[np.float64]:
        return self.together(self._dead, np.max) / self._options.count

    def extra_reward(self, frame: Frame) -> NDArray[np.float64]:
        return self._gained

    def decided(self, share: Floats, frame: Frame) -> tuple[Bools, Bools]:
        everyone = self.together((self._mine >= 1) | ~self.known, np.all).astype(np.bool_)
        too_few = self.together(self._dead + self._left, np.max) < self._options.count
        lost = everyone | (too_few & self._options.placed)
        return share >= 1.0, lost & self.known


@dataclass(frozen=True)
class MinelandSurvival:
    """Success once no agent has died for some days; where agents compete, each is judged alone.

    Where the bridge lets agents respawn, a death restarts the clock, as in MineLand. Otherwise an
    agent that died has failed, and without competition its world with it.
    """

    days: float = option(1.0, "days to survive", unit="days")
    agents: int = option(1, _AGENTS)
    competitive: bool = option(False, "whether agents are timed separately and the first wins")
    reward: float = option(1.0, _WORTH)

    def __post_init__(self) -> None:
        _check(self.agents, self.days)

    @property
    def requires(self) -> frozenset[str]:
        """The time for which an agent has been alive."""
        return frozenset({"survived_ticks"})

    def build(self, width: int) -> Evaluator:
        """Returns the evaluator; see ``rollout.api.EvaluatorRecipe``."""
        return _Survival(self, width)


class _Survival(WorldJudge):
    def __init__(self, options: MinelandSurvival, width: int) -> None:
        super().__init__(width, options.agents, options.reward)
        self._options = options
        self._clock: NDArray[np.float64] = np.zeros(width)

    def begin(self, rows: list[int], starts: Sequence[Start], frame: Frame) -> None:
        self._clock[rows] = frame.signals["survived_ticks"]

    def watch(self, rows: list[int], frame: Frame) -> None:
        self._clock[rows] = frame.signals["survived_ticks"][rows]

    def share(self) -> NDArray[np.float64]:
        clock = self._clock
        if not self._options.competitive:
            clock = self.together(np.where(self.known, clock, np.inf), np.min)
        return clock / (self._options.days * TICKS_PER_DAY)

    def decided(self, share: Floats, frame: Frame) -> tuple[Bools, Bools]:
        if self._options.competitive:
            return self.against(share >= 1.0)
        lost = frame.game_over & (share < 1.0)
        return share >= 1.0, self.together(lost, np.any).astype(np.bool_)


@dataclass(frozen=True)
class MinelandConstruction:
    """Success once enough of a blueprint's blocks are placed; see ``blueprints``.

    MineLand compares pictures by ORB key points; this counts blocks, so scores are not comparable.
    """

    blueprint: int = option(0, "number of the blueprint to build; 0 for the one of the state")
    at_least: float = option(1.0, "share of the blocks that counts as a success")
    agents: int = option(1, _AGENTS)
    reward: float = option(1.0, _WORTH)

    def __post_init__(self) -> None:
        _check(self.agents, self.at_least)
        if not 0 <= self.blueprint <= len(BLUEPRINTS) or self.at_least > 1:
            raise ConfigError(
                f"expected a blueprint from 0 to {len(BLUEPRINTS)} and at_least up to 1, got "
                f"{self.blueprint} and {self.at_least}"
            )

    @property
    def requires(self) -> frozenset[str]:
        """No signals: the placed blocks are in the details."""
        return frozenset()

    @property
    def factors(self) -> frozenset[str]:
        """The factor that decides what is to be built."""
        return frozenset() if self.blueprint else frozenset({"blueprint"})

    def build(self, width: int) -> Evaluator:
        """Returns the evaluator; see ``rollout.api.EvaluatorRecipe``."""
        return _Construction(self, width)


class _Construction(WorldJudge):
    def __init__(self, options: MinelandConstruction, width: int) -> None:
        super().__init__(width, options.agents, options.reward)
        self._options = options
        self._number = [options.blueprint] * width
        self._stands: list[list[Any]] = [[] for _ in range(width)]
        self._score: NDArray[np.float64] = np.zeros(width)

    def begin(self, rows: list[int], starts: Sequence[Start], frame: Frame) -> None:
        for number, (row, start) in enumerate(zip(rows, starts, strict=True)):
            if not self._options.blueprint:
                self._number[row] = int(start.state["blueprint"])
            self._stands[row] = []
            self._score[row] = 0.0
            self._look(row, frame, number)

    def watch(self, rows: list[int], frame: Frame) -> None:
        for row in rows:
            self._look(row, frame, row)

    def _look(self, row: int, frame: Frame, number: int) -> None:
        # Most steps change no block, and comparing lists is fast.
        built = detail(frame, number).get("built") or []
        if self._number[row] and built != self._stands[row]:
            self._stands[row] = built
            # An agent knows its own blocks: all agents together know all of them.
            first = row - row % self.agents
            known = {tuple(x) for each in self._stands[first : first + self.agents] for x in each}
            placed: list[tuple[Place, str]] = [((x, y, z), name) for x, y, z, name in known]
            self._score[row] = score(placed, self._number[row])

    def share(self) -> NDArray[np.float64]:
        return self.together(self._score, np.max)

    def decided(self, share: Floats, frame: Frame) -> tuple[Bools, Bools]:
        least = self._options.at_least - 1e-6  # a share of whole blocks, as a float32
        return share >= least, np.zeros(self.width, np.bool_)


@dataclass(frozen=True)
class MinelandCreative:
    """Never decides and gives no reward: a goal in words, for judges that look at the episode."""

    goal: str = option("", "the goal")

    @property
    def requires(self) -> frozenset[str]:
        """No signals."""
        return frozenset()

    def build(self, width: int) -> Evaluator:
        """Returns the evaluator; see ``rollout.api.EvaluatorRecipe``."""
        return _Creative(width)


class _Creative:
    def __init__(self, width: int) -> None:
        nothing = np.zeros(width, np.float32)
        undefined = np.full(width, np.nan, np.float32)
        self._verdict = Verdict(nothing, undefined, np.full(width, Outcome.RUNNING, np.int8))

    def reset(self, slots: Sequence[int], starts: Sequence[Start], frame: Frame) -> None:
        """There is no state to reset."""

    def judge(self, actions: Columns, frame: Frame) -> Verdict:
        """Always returns a verdict without reward or outcome."""
        return self._verdict
