"""Trains PPO with Gamut and with what a user would pick instead, side by side.

For each game, all libraries train with the same settings, in turns: from new weights, until the
mean return of the last 100 episodes is the game's score, or its seconds are over. A turn gives
steps per second and time to score. Building and, before the first turn, compiling do not count;
they are in the time to begin. Each library runs in a process and an interpreter of its own, which
is made when it is missing and used again. What does not install, fails or hangs is in the table
with its error. See ``settings.yaml``.

    python -m benchmarks.throughput.peers
    python -m benchmarks.throughput.peers --only CartPole --libraries RLlib PufferLib --rounds 1

``--save`` keeps what was measured of the other games: ``benchmarks/results/peers.json`` has the
answers of all, each game with its date and commit.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from benchmarks.report import RESULTS, arguments, publish, run_line, spread, table
from benchmarks.throughput.peers.picture import draw
from benchmarks.throughput.peers.workers import HERE, MODULES, PeerError, Worker, interpreter

OURS = "gamut, defaults"
"""To which the others are compared."""


class Result(NamedTuple):
    """What was measured of a library on a game.

    Attributes:
        size: at which it was fastest.
        began: seconds from the start of its process to the end of its first update.
        turns: its answers, one for each round.
        error: what ended it, if anything did.
    """

    size: Any
    began: float
    turns: list[dict[str, Any]]
    error: str

    @property
    def rates(self) -> list[float]:
        """Steps per second of each turn."""
        return [turn["steps"] / turn["seconds"] for turn in self.turns]

    @property
    def times(self) -> list[float]:
        """Seconds to the score; empty unless all turns reached it."""
        reached = all(turn["reached"] for turn in self.turns)
        return [turn["seconds"] for turn in self.turns] if reached else []


class Peer:
    """A library on a game: its process, and what it has answered."""

    def __init__(self, settings: dict[str, Any], game: str, name: str, seconds: float) -> None:
        self._game = settings["games"][game]
        self._library = self._game.get("libraries", settings["libraries"])[name]
        self._order = {
            "game": self._game.get("game", game),
            "variant": self._library.get("variant", "eager"),
            "ppo": {**settings["ppo"], **self._game["ppo"]},
            "score": self._game.get("score"),
        }
        self._timeout_s, self._seconds = settings["timeout_s"], seconds
        self._tuning_s = min(seconds, settings["tuning_s"])
        self._worker: Worker | None = None
        self.name, self.size, self.began, self.error = name, None, 0.0, ""
        self.turns: list[dict[str, Any]] = []

    def start(self) -> None:
        """Starts it, and finds its best size."""
        if refused := self._library.get("refuses", {}).get(self._order["game"]):
            raise PeerError(refused)
        module = self._library["module"]
        own = module.startswith("gamut") or self._order["game"] == "blockworld"
        made = self._library.get("requirements", module)
        python = Path(sys.executable) if own else interpreter(made)
        self._worker = Worker(python, f"{MODULES}.{module}")
        own_sizes = self._library.get("sizes", self._game.get(module, self._game["sizes"]))
        rates = []
        for size in self._game.get(self.name, own_sizes):
            self._ask(size, 0, 0.0)  # compiles
            self.began = self.began or time.monotonic() - self._worker.started
            answer = self._ask(size, 0, self._tuning_s)
            rates.append((answer["steps"] / answer["seconds"], len(rates), size))
        self.size = max(rates)[2]

    def turn(self, number: int) -> None:
        """Trains once."""
        self.turns.append(self._ask(self.size, 1 + number, self._seconds))

    def _ask(self, size: Any, seed: int, seconds: float) -> dict[str, Any]:
        assert self._worker is not None
        order = {**self._order, "size": size, "seed": seed, "seconds": seconds}
        return self._worker.ask(order, seconds + self._timeout_s)

    def attempt(self, what: Any, *given: Any) -> None:
        """Does something, unless it has failed before; a failure is kept."""
        try:
            if not self.error:
                what(*given)
        except PeerError as failure:
            self.error = str(failure)
        print(
            self._order["game"], self.name, self.error or self.turns[-1:] or self.size, flush=True
        )

    def close(self) -> Result:
        """Ends its process, and returns what was measured."""
        if self._worker is not None:
            self._worker.close()
        return Result(self.size, self.began, self.turns, self.error)


def measure(
    settings: dict[str, Any],
    game: str,
    names: Sequence[str],
    rounds: int | None = None,
    seconds: float | None = None,
) -> dict[str, Result]:
    """Returns what was measured of each library on a game."""
    limit = settings["games"][game]["seconds"] if seconds is None else seconds
    rounds = settings["games"][game]["rounds"] if rounds is None else rounds
    peers = [Peer(settings, game, name, limit) for name in names]
    try:
        for peer in peers:
            peer.attempt(peer.start)
        for number in range(rounds):
            # Every second round in reverse, so that a change of the machine's load falls on all.
            for peer in peers if number % 2 == 0 else peers[::-1]:
                peer.attempt(peer.turn, number)
    finally:
        results = {peer.name: peer.close() for peer in peers}
    return results


def report(
    game: str, settings: dict[str, Any], results: dict[str, Result], measured: str = ""
) -> str:
    """Returns the section of a game, and says when it was measured, if that is given."""
    about, rows = settings["games"][game], []
    score = about.get("score")
    for name, result in results.items():
        if not result.turns:
            rows.append([name, result.error, *[""] * 5])
            continue
        base = results.get(OURS, result)
        ratios = [a / b for a, b in zip(result.rates, base.rates, strict=False)]
        ends = [turn["score"] for turn in result.turns if turn["score"] is not None]
        times = spread(result.times, 1) if result.times else "not reached"
        rows.append(
            [
                name + (f" ({result.error})" if result.error else ""),
                spread(result.rates),
                f"{statistics.median(ratios):.2f}" if ratios else "",
                times if score is not None else "",
                spread(ends, 2) if ends else "no 100 episodes",
                _size(result.size),
                f"{result.began:.0f}",
            ]
        )
    head = ["library", "steps/s: median (range)", f"to {OURS}", f"s to {score}" if score else ""]
    head += ["return at the end", "games", "s to begin"]
    about_it = f"{about['about']}.{measured and f' Measured {measured}.'}"
    return f"## {game}\n\n{about_it}\n\n{table(head, rows)}\n"


def _size(size: Any) -> str:
    if isinstance(size, dict):
        flat = {**size, **size.get("fragment", {})}
        numbers = [f"{key} {value}" for key, value in flat.items() if not isinstance(value, dict)]
        return ", ".join(numbers) or "defaults"
    games, runners = size if isinstance(size, list) else (size, 0)
    return f"{games} in each of {runners} runners" if runners else str(games)


def main() -> None:
    settings = yaml.safe_load((HERE / "settings.yaml").read_text())
    parser = arguments(__doc__)
    games, libraries = list(settings["games"]), list(settings["libraries"])
    parser.add_argument("--only", nargs="+", metavar="GAME", default=games, choices=games)
    parser.add_argument(
        "--libraries", nargs="+", metavar="NAME", default=libraries, choices=libraries
    )
    parser.add_argument("--rounds", type=int, help="turns of each library, instead of the game's")
    parser.add_argument("--seconds", type=float, help="most of a turn, instead of the game's")
    options = parser.parse_args()
    kept = RESULTS / "peers.json"
    known = json.loads(kept.read_text()) if options.save and kept.exists() else {}
    for game in options.only:
        names = settings["games"][game].get("libraries", options.libraries)
        results = measure(settings, game, list(names), options.rounds, options.seconds)
        known[game] = {
            "measured": run_line(),
            "results": {name: result._asdict() for name, result in results.items()},
        }
        known = {name: known[name] for name in settings["games"] if name in known}
        # After each game, since all take half an hour.
        show(known, settings, save=options.save)
        if options.save:
            kept.write_text(json.dumps(known, indent=1) + "\n")


def show(known: dict[str, Any], settings: dict[str, Any], *, save: bool) -> None:
    """Prints the report of what was measured; writes it, and its picture, if they are to be saved.

    Args:
        known: when each game was measured, and the fields of its results by library.
        settings: of this benchmark.
        save: whether to write ``peers.md`` and ``peers.png``.
    """
    found = {
        game: {name: Result(**fields) for name, fields in about["results"].items()}
        for game, about in known.items()
    }
    text = "".join(
        report(game, settings, results, known[game]["measured"]) for game, results in found.items()
    )
    publish("peers", "PPO beside other libraries", text, save=save)
    if save:
        own = [name for name in found if "libraries" not in settings["games"][name]]
        draw(RESULTS / "peers.png", {name: found[name] for name in own}, OURS)


if __name__ == "__main__":
    main()
