"""How hard auto-battle and random actions find StarBench's battles.

python -m benchmarks.science.starbench calibrate   # prints factors for content/battles.yaml
python -m benchmarks.science.starbench
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable
from dataclasses import dataclass, replace

from benchmarks.report import arguments, publish, table
from bridges.starbench.oracle import auto
from bridges.starbench.rules import scoring
from bridges.starbench.rules.battle import Battle
from bridges.starbench.rules.content import load
from bridges.starbench.rules.units import Content

PLAYERS = ("random", "auto")


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


def chooser(player: str, seed: int) -> Callable[[Battle], int]:
    """Returns what a player does; random actions are drawn uniformly from the legal ones."""
    chance = random.Random(seed)
    return auto.choose if player == "auto" else lambda battle: chance.choice(battle.legal())


def play(task: str, player: str, seeds: range, content: Content) -> dict[str, float]:
    """Returns the share of wins, their mean steps, and the mean score."""
    steps, scores = [], []
    for seed in seeds:
        battle = Battle(task, seed, {"script": seed % 10_000}, content=content)
        choose = chooser(player, seed)
        while battle.outcome is None:
            battle.act(choose(battle))
        if battle.outcome == "won":
            steps.append(battle.decisions)
        scores.append(scoring.points(battle))
    return {
        "wins": len(steps) / len(seeds),
        "steps": statistics.fmean(steps) if steps else float("nan"),
        "score": statistics.fmean(scores),
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


def calibrate(battles: int, tasks: list[str]) -> None:
    """Prints factors that fit the anchors: HP first, then ATK, then HP again.

    Its scripts and seeds are not those of the report.
    """
    seeds = range(1_000, 1_000 + battles)
    for task in tasks or ANCHORS:
        anchor = ANCHORS[task]
        factors = load().battles[task]["calibration"]
        k_hp, k_atk = factors["k_hp"], factors["k_atk"]

        def measured(hp: float, atk: float, task: str = task) -> dict[str, float]:
            return play(task, "auto", seeds, with_factors(task, hp, atk))

        def easier(hp: float, atk: float, task: Anchor = anchor) -> bool:
            found = measured(hp, atk)[task.measure]
            return found < task.target if task.measure == "steps" else found > task.target

        for weak in (True, False):  # at first enemies hardly hurt, so that auto-battle wins
            atk = 1.0 if weak and anchor.wins else k_atk
            k_hp = bisect(lambda hp: easier(hp, atk), 0.1, 3.0)  # noqa: B023
            if anchor.wins:
                k_atk = bisect(
                    lambda atk: measured(k_hp, atk)["wins"] > anchor.wins,  # noqa: B023
                    *(0.5, 12.0),
                )
        found = measured(k_hp, k_atk)
        print(
            f"{task}: {{k_hp: {k_hp}, k_atk: {k_atk}}}  {anchor.measure} "
            f"{found[anchor.measure]:.1f} (target {anchor.target}), wins {found['wins']:.2f}",
            flush=True,
        )


def report(battles: int) -> str:
    """Returns who wins how often."""
    text = (
        f"Success / steps of won battles / score; {battles} battles, each with "
        f"its own script and seed. The band is that of auto-battle: its steps in Echo of War "
        f"(people of the paper), else its score, and its victories.\n\n"
    )
    rows = []
    for task, anchor in ANCHORS.items():
        cells, found = [task], {}
        for player in PLAYERS:
            found[player] = play(task, player, range(10_000, 10_000 + battles), load())
            one = found[player]
            cells.append(f"{one['wins']:.0%} / {one['steps']:.1f} / {one['score']:.0f}")
        value, wins = found["auto"][anchor.measure], found["auto"]["wins"]
        inside = anchor.least <= value <= anchor.most
        inside = inside and anchor.auto[0] <= wins <= anchor.auto[1]
        inside = inside and anchor.random[0] <= found["random"]["wins"] <= anchor.random[1]
        cells.append(f"{anchor.least:g} to {anchor.most:g}, {anchor.auto[0]:.0%} to")
        cells[-1] += f" {anchor.auto[1]:.0%}, random {anchor.random[1]:.0%} at most"
        rows.append([*cells, "yes" if inside else "no"])
    text += table(["battle", *PLAYERS, "band", "within"], rows)
    return text


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("what", nargs="?", default="report", choices=("calibrate", "report"))
    parser.add_argument("--battles", type=int, help="120; 400 to calibrate")
    parser.add_argument("--only", nargs="*", default=[], choices=ANCHORS, metavar="BATTLE")
    args = parser.parse_args()
    if args.what == "calibrate":
        calibrate(args.battles or 400, args.only)
    else:
        publish("starbench", "StarBench", report(args.battles or 120), save=args.save)


if __name__ == "__main__":
    main()
