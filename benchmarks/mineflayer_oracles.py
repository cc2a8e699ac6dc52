"""Success of the oracles on tasks of six families in the embedded Minecraft.

Each task is played in the first states of its test part, through the ``code`` actions, judged by
its own evaluator and limits: by the program of ``bridges.mineflayer.oracle``, and by an agent that
does nothing. Needs Node; run from the root of the repository:

    .venv/bin/python -m benchmarks.mineflayer_oracles --save
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.report import RESULTS, header, table
from bridges.mineflayer import MineflayerBridge, oracle
from bridges.mineflayer.instance import MineflayerInstance
from bridges.mineflayer.loadouts import parse_loadout
from bridges.mineflayer.oracle import attribute
from bridges.mineflayer.spaces import CODE, KIND, RESUME
from bridges.mineflayer.task_ids import parse
from rollout.api import Columns, EpisodeResult, Frame, Outcome, Splits, Start, Task
from rollout.api.state import Value
from rollout.config import BridgeConfig
from rollout.evaluate.statistics import wilson
from rollout.host.referee import Referee
from rollout.tasks import bridge_and_task
from rollout.yaml12 import load_yaml

LABEL = "protocol-real, mechanics re-implemented"
TITLE = "Mineflayer: what the oracles achieve on tasks of six families"
COMMAND = "python -m benchmarks.mineflayer_oracles"
TICKS_PER_STEP = 20
SEED = 20_261_126
PATIENCE_S = 600.0  # for a reply of the game, on a busy machine
IDLE = "idle"
ALIKE = 6  # games of an instance, which share its process
IDLE_TICKS = 2400  # an agent that does nothing plays no longer, except to survive
ENOUGH = 0.95  # share of a task's states with which it counts as won


@dataclass(frozen=True)
class Case:
    """A task to play.

    Attributes:
        task_id: its id.
        harder: replacements for the task's own values, as factors and values.
    """

    task_id: str
    harder: tuple[tuple[str, Value], ...] = ()

    @property
    def name(self) -> str:
        """Its name in the report."""
        changed = ", ".join(f"{factor} {value}" for factor, value in self.harder)
        return f"`{self.task_id}`" + (f" from {changed}" if changed else "")

    @property
    def family(self) -> str:
        """The family of its task."""
        return parse(self.task_id).family


def load_cases() -> tuple[Case, ...]:
    """Returns the cases of the table: the tasks of a list, and harder ones."""
    data: Mapping[str, Any] = load_yaml(Path(__file__).with_suffix(".yaml"))
    cases = [Case(task_id) for task_ids in data["tasks"].values() for task_id in task_ids]
    for row in data["harder"]:
        cases += [Case(task_id, tuple(row["from"].items())) for task_id in row["tasks"]]
    return tuple(cases)


CASES = load_cases()


@dataclass(frozen=True)
class Game:
    """A task in its first test states.

    Attributes:
        case: the case.
        bridge: the bridge with the options of the task.
        options: those options.
        task: the task.
        starts: one for each agent: those of a world are equal.
        agents: agents of a world.
    """

    case: Case
    bridge: MineflayerBridge
    options: Mapping[str, Any]
    task: Task
    starts: list[Start]
    agents: int

    @property
    def alike(self) -> str:
        """A key that games share which are the same for an idle agent: whatever it is given."""
        mine = parse(self.case.task_id)
        held = {item.name for item in parse_loadout(mine.loadout)}
        given = mine.loadout if mine.target in held else None
        options = {name: value for name, value in self.options.items() if name != "give"}
        states = [dict(start.state.values) for start in self.starts]
        left_out = ("loadout", "blueprint")
        kept = [{f: v for f, v in state.items() if f not in left_out} for state in states]
        return json.dumps([given, options, kept])


def prepare(case: Case, count: int, seed: int) -> Game:
    """Returns a case's game in its first test states."""
    asked = {"name": "mineflayer", "actions": "code", "ticks_per_step": TICKS_PER_STEP}
    config, bridge, task = bridge_and_task(BridgeConfig.model_validate(asked), case.task_id)
    assert isinstance(bridge, MineflayerBridge)
    changed = dict(case.harder)
    space = bridge.spec.state_space.restrict(
        {f.name: [changed[f.name]] if f.name in changed else f.values for f in task.state_space}
    )
    states = Splits(space, seed).take("test", count)
    agents = int(config.options.get("agents", 1))
    starts = [
        Start(states[k], seed=seed + k, episode=k) for k in range(count) for _ in range(agents)
    ]
    return Game(case, bridge, config.options, task, starts, agents)


def groups(games: Iterable[Game]) -> list[list[Game]]:
    """Returns the games in groups that are the same for an idle agent."""
    found: dict[str, list[Game]] = {}
    for game in games:
        found.setdefault(game.alike, []).append(game)
    return list(found.values())


class Played:
    """Games that are played and judged at once: those of one of ``groups``, or one.

    Args:
        games: the games; the first one's states and items are played.
        player: a function of ``bridges.mineflayer.oracle``.
        first: the first of their slots.
    """

    def __init__(self, games: Sequence[Game], player: str, first: int) -> None:
        self.games, self.player = games, player
        self.starts = games[0].starts
        self.rows = np.arange(first, first + len(self.starts))
        self._act = getattr(oracle, attribute(player))
        self._referees = [Referee(game.task, len(self.starts)) for game in games]
        self._results: list[list[EpisodeResult]] = [[] for _ in games]
        self._left = np.zeros(len(self.starts), np.bool_)
        self._steps = 0
        cut = player == IDLE and games[0].case.family != "survival"
        self._most = IDLE_TICKS // TICKS_PER_STEP if cut else None

    def reset(self, frame: Frame) -> None:
        """Begins the episodes."""
        for referee, game in zip(self._referees, self.games, strict=True):
            referee.reset(range(len(self.starts)), game.starts, frame)

    @property
    def active(self) -> bool:
        """Whether an episode has not ended."""
        return any(referee.active.any() for referee in self._referees)

    def act(self, frame: Frame) -> Columns:
        """Returns the actions of its slots."""
        actions: Columns = self._act(frame.observations, frame.details, False)
        actions[KIND][self._left], actions[CODE][self._left] = RESUME, ""
        return actions

    def judge(self, actions: Columns, frame: Frame) -> list[int]:
        """Judges a step; returns the slots that no task needs any more."""
        self._steps += 1
        for referee, results in zip(self._referees, self._results, strict=True):
            if not referee.active.any():
                continue
            late = "waited long enough" if self._steps == self._most else ""
            ruling = referee.judge(actions, frame, [late] * len(self.starts))
            for slot in ruling.ended:
                outcome = int(ruling.verdict.outcome[slot])
                if ruling.terminated[slot]:
                    results.append(referee.finish(slot, "terminated", outcome))
                else:
                    results.append(referee.finish(slot, "truncated", outcome))
        busy = np.any([referee.active for referee in self._referees], axis=0)
        leaving = ~busy & ~self._left
        self._left |= leaving
        return [int(slot) for slot in self.rows[leaving]]

    def scores(self) -> list[dict[str, Any]]:
        """Returns the score of each game, of the first agent of each world."""
        agents = self.games[0].agents
        ordered = [sorted(each, key=lambda result: result.slot) for each in self._results]
        return [score(each[::agents]) for each in ordered]


def play(batch: Sequence[tuple[Sequence[Game], str]]) -> list[list[dict[str, Any]]]:
    """Plays games with the same options in one instance, each in slots of its own.

    Returns:
        the scores of each of the batch: one for each of its games.
    """
    played: list[Played] = []
    for games, player in batch:
        played.append(Played(games, player, sum(len(each.starts) for each in played)))
    starts = [start for each in played for start in each.starts]
    bridge = batch[0][0][0].bridge
    with tempfile.TemporaryDirectory() as folder:
        instance = bridge.launch(Path(folder), (), width=len(starts), timeout_s=PATIENCE_S)
        try:
            assert isinstance(instance, MineflayerInstance)
            frame = instance.reset(range(len(starts)), starts, timeout_s=PATIENCE_S)
            for each in played:
                each.reset(frame.take(each.rows))
            while any(each.active for each in played):
                parts = [each.act(frame.take(each.rows)) for each in played]
                whole = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
                frame = instance.step(whole, timeout_s=PATIENCE_S)
                for each, part in zip(played, parts, strict=True):
                    for slot in each.judge(part, frame.take(each.rows)):
                        instance.leave(slot, timeout_s=PATIENCE_S)
        finally:
            instance.close()
    return [each.scores() for each in played]


def score(results: Sequence[EpisodeResult]) -> dict[str, Any]:
    """Returns what the report says of the episodes of a case."""
    won = [result for result in results if result.outcome == Outcome.SUCCESS]
    ticks = statistics.median(r.length for r in won) * TICKS_PER_STEP if won else None
    progress = statistics.median(float(result.progress) for result in results)
    return {"won": len(won), "of": len(results), "ticks": ticks, "progress": round(progress, 2)}


Plan = Sequence[tuple[Sequence[Case], str]]


def job(plan: Plan, count: int, seed: int) -> list[list[dict[str, Any]]]:
    """Plays cases, each with its player, in one instance; returns their scores."""
    began = time.perf_counter()
    batch = [([prepare(case, count, seed) for case in cases], player) for cases, player in plan]
    scores = play(batch)
    seconds = time.perf_counter() - began
    for (cases, player), found in zip(plan, scores, strict=True):
        for case, each in zip(cases, found, strict=True):
            print(f"{case.name}  {player}  {each}  {seconds:.0f} s", flush=True)
    return scores


def plans(cases: Iterable[Case], rows: Mapping[str, Any], count: int, seed: int) -> list[Plan]:
    """Returns what is to be played: games of the same options and part in one instance."""
    games = [prepare(case, count, seed) for case in cases]
    alike: dict[str, list[tuple[list[Case], str]]] = {}
    for kind, found in (("oracle", [[game] for game in games]), (IDLE, groups(games))):
        for group in found:
            if all(kind in rows.get(game.case.name, {}) for game in group):
                continue
            first = group[0]
            key = json.dumps([kind, first.case.family, dict(first.options)], default=str)
            player = IDLE if kind == IDLE else first.case.task_id
            alike.setdefault(key, []).append(([game.case for game in group], player))
    return [each[k : k + ALIKE] for each in alike.values() for k in range(0, len(each), ALIKE)]


def part(player: str) -> str:
    """Returns the part of a row for a player's score."""
    return IDLE if player == IDLE else "oracle"


def run(cases: Sequence[Case], options: argparse.Namespace) -> None:
    """Plays all, and writes the results after every instance: a whole run takes an hour or two."""
    command = f"{COMMAND} --processes {options.processes}"
    command += f" --states {options.states} --seed {options.seed}"
    command += f" --tasks {' '.join(options.tasks)}" if options.tasks else ""
    # Known before anything is written, which changes the checkout.
    head, rows = header(TITLE, f"{command} --save"), {}
    if options.resume:
        former = json.loads((RESULTS / "mineflayer_oracles.json").read_text())
        head, rows = former["header"], former["rows"]
    failed = []
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.processes, mp_context=spawn) as pool:
        jobs: dict[Future[list[list[dict[str, Any]]]], Plan] = {}
        for plan in plans(cases, rows, options.states, options.seed):
            jobs[pool.submit(job, plan, options.states, options.seed)] = plan
        for future in as_completed(jobs):
            plan = jobs[future]
            if error := future.exception():
                failed.append(f"{[player for _, player in plan]}: {error}")
                continue
            for (group, player), scores in zip(plan, future.result(), strict=True):
                for case, each in zip(group, scores, strict=True):
                    rows.setdefault(case.name, {"family": case.family})[part(player)] = each
            write({"header": head, "rows": rows}, options.save)
    if failed:
        raise SystemExit("not played:\n" + "\n".join(failed))


def write(data: Mapping[str, Any], save: bool) -> None:
    """Writes the rows and their report if they are to be saved, else prints the report."""
    if not save:
        print(report(data))
        return
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "mineflayer_oracles.json").write_text(json.dumps(data, indent=1) + "\n")
    (RESULTS / "mineflayer_oracles.md").write_text(report(data))


def enough(part: Mapping[str, Any]) -> bool:
    """Whether nearly all states were won."""
    return bool(part["won"] >= ENOUGH * part["of"])


def counts(row: Mapping[str, Any]) -> bool:
    """Whether a row counts for the oracle: doing nothing wins no state of it."""
    return bool(row[IDLE]["won"] == 0)


def summary(rows: Mapping[str, Mapping[str, Any]]) -> str:
    """Returns the table of the families, and the sentence that closes it."""
    counted = {name: row for name, row in rows.items() if counts(row)}
    families = sorted({row["family"] for row in counted.values()})
    lines, solved, everything = [], 0, [0, 0]
    for family in [*families, "all"]:
        mine = {n: r for n, r in counted.items() if family in (r["family"], "all")}
        every = {name.split("`")[1] for name in mine}
        lost = {name.split("`")[1] for name, row in mine.items() if not enough(row["oracle"])}
        won, of = (sum(row["oracle"][key] for row in mine.values()) for key in ("won", "of"))
        solved, everything = len(every - lost), [won, of]
        share = f"{100 * won / of:.1f} % {interval(won, of)}"
        lines.append([family, str(len(every)), str(solved), f"{won} of {of}", share])
    won, of = everything
    text = table(["family", "tasks", "won in >= 95 % of states", "states won", "share"], lines)
    return text + (
        f"\nThe oracles win at least {100 * ENOUGH:.0f} % of the states of **{solved} tasks**, and "
        f"{won} of all {of} states, {100 * won / of:.1f} %\n{interval(won, of)}, of which doing "
        "nothing wins none (Wilson's interval, 95 %).\n"
    )


def interval(won: int, of: int) -> str:
    """Returns the interval of a share, in percent."""
    found = wilson(won, of)
    low, high = (100 * (end if end is not None else np.nan) for end in (found.low, found.high))
    return f"[{low:.1f}, {high:.1f}]"


def report(data: Mapping[str, Any]) -> str:
    """Returns the whole report, of all cases played by both."""
    rows = {n: row for n, row in data["rows"].items() if "oracle" in row and IDLE in row}
    order = sorted(rows.items(), key=lambda item: (item[1]["family"], item[0]))
    waited = [name for name, row in order if not counts(row)]
    text = f"{data['header']}\n"
    if len(waited) < len(rows):
        text += summary(rows)
    if waited:
        text += f"\nNot counted, because waiting wins states of it: {', '.join(waited)}.\n"
    text += "\n" + table(
        ["task", "family", "oracle", "idle", "ticks", "progress", "idle progress"],
        [cells(name, row) for name, row in order],
    )
    text += NOTES
    short = [name for name, row in order if not enough(row["oracle"])]
    if short:
        text += "\nWhat the oracle does not win in nearly all states:\n\n"
        text += "".join(f"- {name}\n" for name in short)
    left = [case.name for case in CASES if case.name not in rows]
    return text + (f"\nNot played: {', '.join(left)}.\n" if left else "")


def cells(name: str, row: Mapping[str, Any]) -> list[str]:
    """Returns a row of the table."""
    oracle, idle = row["oracle"], row[IDLE]
    won = [f"{part['won']}/{part['of']}" for part in (oracle, idle)]
    ticks = "-" if oracle["ticks"] is None else f"{oracle['ticks']:,.0f}"
    progress = [f"{part['progress']:.2f}" for part in (oracle, idle)]
    return [name, row["family"], *won, ticks, *progress]


NOTES = f"""
{LABEL}: these are not MineLand's results, whose agents play Mojang's server.

How to read it: states are the first of the test part of the house's own sets, each played once by
the oracle and once by an agent whose program only waits (`idle`; where several tasks differ for it
in nothing but what it is given, its episodes are the same and were played once for all of them).
`idle` plays {IDLE_TICKS:,} ticks at most, except to survive; in this table's edition of 2026-11-22
it played whole days of harvest and tech tree, and won nothing. Ticks are the median of the oracle's
episodes that succeeded (20 are a second), progress is the median of all. Limits are the tasks' own:
a day for harvest, tech tree and construction, two minutes for combat, half a day for plays.
Construction and plays are of the house; what the other ids begin with is what `task=` gives: for
`harvest_1_oak_log` and `techtree_1_wooden_pickaxe` that is a file of the house, some of whose
load-outs have planks; all others are of MineLand's id, in biomes that have what is asked for
(`grows.yaml`).

Survival: MineLand's tasks begin in the morning, and where `idle` wins as well, winning is no merit.
The rows with "from" are harder ones of our own: the same ids, but it is midnight, the difficulty is
hard, and in most of them there are mobs around the agent.

The programs know the game's recipes and nothing of a world; in construction and plays they have the
blueprint and the script, which the goal tells. They see what the bridge's senses allow: 48 blocks,
no walls. The list of tasks and the programs were made with states of seeds 31 to 35. Each edition
of this table opens a fresh seed. With 20261126 and 20261127 the oracles won 137 of 147 and 131 of
145 tasks, the latter with none among zombies; then the survival program was rewritten. With
20261128 two instances were ended by a defect of the game, which is mended, and 126 of 130 tasks
were won. With three states, a task is won if all three are. The intervals
take states as independent of one another, but many tasks begin in the same worlds.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--states", type=int, default=3)
    parser.add_argument("--tasks", nargs="*", default=[])
    parser.add_argument("--seed", type=int, default=SEED, help="other seeds give other states")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--save", action="store_true", help="write benchmarks/results")
    parser.add_argument("--resume", action="store_true", help="play only what was not played")
    parser.add_argument(
        "--again", action="store_true", help="only write the report of a former run"
    )
    options = parser.parse_args()
    if options.again:
        data = json.loads((RESULTS / "mineflayer_oracles.json").read_text())
        (RESULTS / "mineflayer_oracles.md").write_text(report(data))
        return
    run([*map(Case, options.tasks)] or CASES, options)


if __name__ == "__main__":
    main()
