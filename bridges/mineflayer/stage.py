"""The evaluator of stage performances: the share of a script's actions played, and their order.

MineLand, section 3.3, equation 1: with A the actions of the agents and R those of the script, the
keypoint score is |LCS(A, R)| / |R| and the appropriateness score |LCS(A, R)| / |A|. MineLand's code
takes the longest common subsequence over the characters of the joined texts, by which nearly any
two plays are similar; here it is over actions, (actor, verb, object), as the paper says.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridges.mineflayer.evaluators import WorldJudge, detail, items_of
from bridges.mineflayer.scripts import SCRIPTS, VERBS, Act
from rollout.api import Details, Evaluator, Frame, Start, option
from rollout.errors import ConfigError, UnknownNameError

SCORES = ("key", "appropriateness", "mean")


def plain(text: str) -> str:
    """Returns a text normalised for comparison: lower case, single spaces, no punctuation."""
    kept = (c if c.isalnum() else " " for c in text.casefold())
    return " ".join("".join(kept).split())


def normal(act: Act) -> Act:
    """Returns an action normalised for comparison."""
    return plain(act[0]), plain(act[1]), plain(act[2])


class Performance:
    """Compares the actions of one world with those of a script.

    Args:
        script: the actions that must happen.
        likeness: minimum similarity of two chat texts that count as the same, 0 to 1; 1 for equal.
    """

    def __init__(self, script: Sequence[Act], likeness: float = 1.0) -> None:
        self._script = [normal(act) for act in script]
        self._likeness = likeness
        self._common = [0] * (len(script) + 1)  # LCS of all actions so far and script[:k]
        self.played = 0

    def play(self, act: Act) -> None:
        """Adds an action."""
        done, before = normal(act), self._common
        now = [0]
        for k, wanted in enumerate(self._script):
            same = before[k] + 1 if self._same(done, wanted) else 0
            now.append(max(before[k + 1], now[k], same))
        self._common = now
        self.played += 1

    def _same(self, done: Act, wanted: Act) -> bool:
        if done[:2] != wanted[:2]:
            return False
        if done[2] == wanted[2]:
            return True
        if done[1] != "chat" or self._likeness >= 1.0:
            return False
        return difflib.SequenceMatcher(None, done[2], wanted[2]).ratio() >= self._likeness

    @property
    def key(self) -> float:
        """The keypoint score: how complete the play is."""
        return self._common[-1] / len(self._script)

    @property
    def appropriateness(self) -> float:
        """The appropriateness score: the share of actions that are the script's; 0 if none."""
        return self._common[-1] / self.played if self.played else 0.0


@dataclass(frozen=True)
class MinelandStage:
    """Success once every action of a script was played, in order.

    Actions are read from the details: ``chat`` and ``eat`` from an agent's own events, ``combat``
    from the deaths of what it killed, ``get`` when its inventory has an item that it did not have
    before. Within a step, events come before new items, and agents of lower slots before others.
    """

    script: str = option("cook", "name of one of our plays; see bridges/mineflayer/data/plays.yaml")
    acts: tuple[tuple[str, str, str], ...] = option((), "actor, verb, object each; instead of one")
    agents: int = option(0, "agents of a world; 0 for as many as the script has actors")
    likeness: float = option(0.6, "how alike chat texts must be to be the same, 0 to 1")
    progress: str = option("key", "which score progress is", choices=SCORES)
    reward: float = option(1.0, "reward for the whole of that score, paid in parts")

    def __post_init__(self) -> None:
        if not self.acts and self.script not in SCRIPTS:
            raise UnknownNameError("script", self.script, SCRIPTS)
        if self.progress not in SCORES:
            raise UnknownNameError("score", self.progress, SCORES)
        for _, verb, _ in self.acts:
            if verb not in VERBS:
                raise UnknownNameError("verb of a script", verb, VERBS)
        if not 0 <= self.likeness <= 1 or self.agents < 0:
            raise ConfigError(
                f"expected likeness from 0 to 1 and agents from 0, got {self.likeness} and "
                f"{self.agents}"
            )

    @property
    def requires(self) -> frozenset[str]:
        """The victims of an agent."""
        return frozenset({"kills"})

    def wanted(self) -> tuple[Act, ...]:
        """Returns the actions that must happen."""
        return self.acts or SCRIPTS[self.script].acts

    def build(self, width: int) -> Evaluator:
        """Returns the evaluator; see ``rollout.api.EvaluatorRecipe``."""
        actors = len({actor for actor, _, _ in self.wanted()})
        if not self.acts:
            actors = len(SCRIPTS[self.script].actors)
        return StageEvaluator(self, width, self.agents or actors)


class StageEvaluator(WorldJudge):
    """Judges performances.

    Attributes:
        performances: one for each world.
    """

    def __init__(self, options: MinelandStage, width: int, agents: int) -> None:
        super().__init__(width, agents, options.reward)
        self._options = options
        self._new()
        self._items: list[set[str]] = [set() for _ in range(width)]
        self._kills: NDArray[np.float64] = np.zeros(width)

    def _new(self) -> None:
        self.performances = [self._performance() for _ in range(self.width // self.agents)]

    def _performance(self) -> Performance:
        return Performance(self._options.wanted(), self._options.likeness)

    def begin(self, rows: list[int], starts: Sequence[Start], frame: Frame) -> None:
        """Begins the plays of worlds reset as a whole; a slot that joins one continues its play."""
        for world in {row // self.agents for row in rows}:
            cast = range(world * self.agents, (world + 1) * self.agents)
            if all(row in rows or self.over[row] or not self.known[row] for row in cast):
                self.performances[world] = self._performance()
        for number, row in enumerate(rows):
            self._items[row] = items_of(detail(frame, number))
            self._kills[row] = frame.signals["kills"][number]

    def watch(self, rows: list[int], frame: Frame) -> None:
        """Adds the actions of agents, lower slots first."""
        for row in rows:
            kills = float(frame.signals["kills"][row])
            said = detail(frame, row)
            for act in self._acts(row, said, int(kills - self._kills[row])):
                self.performances[row // self.agents].play(act)
            self._kills[row] = kills

    def _acts(self, row: int, said: Details, kills: int) -> Iterator[Act]:
        actor = str(said.get("name", ""))
        for event in said.get("event", ()):
            kind = event.get("type")
            if kind == "chat" and event.get("username") == actor:
                yield actor, "chat", str(event.get("only_message", ""))
            elif kind == "entityEat" and event.get("entity_type") == "self":
                yield actor, "eat", str(event.get("item", ""))
            elif kind == "entityDead" and kills > 0 and _is_mob(event):
                kills -= 1
                yield actor, "combat", str(event.get("entity_type", ""))
        now = items_of(said)
        for item in sorted(now - self._items[row]):
            yield actor, "get", item
        self._items[row] = now

    def share(self) -> NDArray[np.float64]:
        """Returns the score of each row's world."""
        scores = [self._scored(each) for each in self.performances]
        return np.repeat(np.array(scores, np.float64), self.agents)

    def _scored(self, performance: Performance) -> float:
        key, appropriate = performance.key, performance.appropriateness
        return {"key": key, "appropriateness": appropriate, "mean": (key + appropriate) / 2}[
            self._options.progress
        ]

    def decided(self, share: Any, frame: Frame) -> tuple[Any, Any]:
        """Returns success where the play is complete; there is no failure."""
        complete = [each.key >= 1.0 for each in self.performances]
        return np.repeat(np.array(complete), self.agents), np.zeros(self.width, np.bool_)


def _is_mob(event: Mapping[str, Any]) -> bool:
    return event.get("entity_type") not in ("self", "bot", "player")
