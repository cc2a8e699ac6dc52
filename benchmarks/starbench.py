"""StarBench's battles: speed of the engine, and how hard auto-battle and random actions find them.

python -m benchmarks.starbench calibrate   # prints factors for content/battles.yaml
python -m benchmarks.starbench             # writes benchmarks/results/starbench.md
"""

from __future__ import annotations

import argparse
import random
import statistics
from collections.abc import Callable
from dataclasses import dataclass, replace

from bridges.starbench import auto, scoring, search
from bridges.starbench.battle import Battle
from bridges.starbench.content import load
from bridges.starbench.kinds import Content


@dataclass(frozen=True)
class Anchor:
    """What a battle should be like.

    Attributes:
        measure: ``steps`` of the battles that auto-battle wins, or its ``score``.
        target: the value to fit; people or auto-battle of the paper's tables 4 and 5.
        least: of the band of the measure.
        most: likewise.
        auto: share of battles that auto-battle should win (page 2.9), least and most.
        random: likewise for random actions.
        wins: the share that is fitted; 0 for no fit of ATK.
    """

    measure: str
    target: float
    least: float
    most: float
    auto: tuple[float, float]
    random: tuple[float, float]
    wins: float = 0.0


ANCHORS = {
    "cocolia": Anchor("steps", 30.3, 29.0, 35.0, (0.65, 0.9), (0.0, 0.5), 0.76),
    "phantylia": Anchor("steps", 43.8, 42.3, 51.7, (0.58, 0.98), (0.0, 0.9), 0.78),
    "swarm_king": Anchor("steps", 52.4, 51.6, 61.8, (0.56, 0.93), (0.0, 0.25), 0.75),
    "theater": Anchor("steps", 77.0, 72.5, 83.5, (0.55, 1.0), (0.0, 0.88), 0.75),
    "feixiao": Anchor("steps", 75.9, 71.7, 81.9, (0.76, 1.0), (0.0, 0.83), 0.82),
    "xianzhou": Anchor("score", 18.0, 17.5, 18.5, (0.95, 1.0), (0.0, 1.0)),
    "cliched": Anchor("score", 7120.0, 6700.0, 7550.0, (0.95, 1.0), (0.0, 1.0)),
    "stardevourer": Anchor("score", 3202.0, 3050.0, 3350.0, (0.95, 1.0), (0.0, 1.0)),
}
PLAYERS = ("random", "auto", "search")


def chooser(player: str, seed: int) -> Callable[[Battle], int]:
    """Returns what a player does; random actions are drawn uniformly from the legal ones."""
    if player == "random":
        chance = random.Random(seed)
        return lambda battle: chance.choice(battle.legal())
    return auto.choose if player == "auto" else search.choose


def play(task: str, player: str, seeds: range, content: Content) -> dict[str, float]:
    """Returns share of wins, mean steps of wins, mean score and action value, and decisions."""
    steps, scores, times, decisions = [], [], [], 0
    for seed in seeds:
        battle = Battle(task, seed, {"script": seed % 10_000}, content=content)
        choose = chooser(player, seed)
        while battle.outcome is None:
            battle.act(choose(battle))
        if battle.outcome == "won":
            steps.append(battle.decisions)
        scores.append(scoring.points(battle))
        times.append(scoring.used(battle))
        decisions += battle.decisions
    return {
        "wins": len(steps) / len(seeds),
        "steps": statistics.fmean(steps) if steps else float("nan"),
        "deviation": statistics.pstdev(steps) if steps else float("nan"),
        "score": statistics.fmean(scores),
        "action value": statistics.fmean(times),
        "decisions": decisions,
    }


def with_factors(task: str, k_hp: float, k_atk: float) -> Content:
    """Returns the content with other factors for one battle."""
    content = load()
    data = {**content.battles[task], "calibration": {"k_hp": k_hp, "k_atk": k_atk}}
    return replace(content, battles={**content.battles, task: data})


def bisect(rises: Callable[[float], bool], low: float, high: float, rounds: int = 9) -> float:
    """Returns where a condition changes from true to false, between two values."""
    for _ in range(rounds):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if rises(middle) else (low, middle)
    return round((low * high) ** 0.5, 3)


def calibrate(battles: int) -> None:
    """Prints factors that fit the anchors: HP first, then ATK, then HP again."""
    seeds = range(battles)
    for task, anchor in ANCHORS.items():
        factors = load().battles[task]["calibration"]
        k_hp, k_atk = factors["k_hp"], factors["k_atk"]

        def measured(hp: float, atk: float, task: str = task) -> dict[str, float]:
            return play(task, "auto", seeds, with_factors(task, hp, atk))

        def easier(hp: float, anchor: Anchor = anchor, measured=measured, atk=1.0) -> bool:  # type: ignore[no-untyped-def]
            found = measured(hp, atk)[anchor.measure]
            if anchor.measure == "steps":
                return bool(found < anchor.target)
            return bool(found > anchor.target)

        for _ in range(2):
            atk = k_atk if not anchor.wins else (1.0 if _ == 0 else k_atk)
            k_hp = bisect(lambda hp, atk=atk, easier=easier: easier(hp, atk=atk), 0.1, 3.0)  # type: ignore[misc]
            if anchor.wins:
                k_atk = bisect(
                    lambda atk, k_hp=k_hp, m=measured, a=anchor: m(k_hp, atk)["wins"] > a.wins,  # type: ignore[misc]
                    *(0.5, 12.0),
                )
        found = measured(k_hp, k_atk)
        print(
            f"{task}: {{k_hp: {k_hp}, k_atk: {k_atk}}}  {anchor.measure} "
            f"{found[anchor.measure]:.1f} (target {anchor.target}), wins {found['wins']:.2f}",
            flush=True,
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="?", default="report", choices=("calibrate", "report"))
    parser.add_argument("--battles", type=int, default=120)
    options = parser.parse_args()
    calibrate(options.battles)
