"""What programs that mean harm do to the embedded Minecraft and to their neighbours.

The programs are those of ``mineflayer_hostile.yaml``. Each is begun by one agent of a world, again
in every step in which it has ended, while a second agent runs a program of its own. Counted is
whether the game's process lives, whether the program got out of its sandbox, whether it learned
what block is hidden, whether the neighbour's program goes on, and by how much a step takes longer
than before: processor time of the thread that plays the world, which every agent waits for. Needs
Node; run from the root of the repository:

    .venv/bin/python -m benchmarks.faults.mineflayer_hostile --save
"""

from __future__ import annotations

import json
import statistics
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.report import arguments, publish, table
from bridges.mineflayer import MineflayerBridge
from bridges.mineflayer.spaces import CODE, KIND, NEW, RESUME
from rollout.api import Start
from rollout.errors import GameError
from rollout.yaml12 import load_yaml

TITLE = "Mineflayer: programs that mean harm"
PROGRAMS = Path(__file__).with_suffix(".yaml")
PATIENT_S = 300.0
CALM = {"difficulty": "peaceful", "site": "flat", "time": "noon", "weather": "clear"}
WARM, ALONE, STEPS, HIDDEN_STEPS = 1, 4, 12, 2
"""Steps of an episode: not counted, without the program, with it; of one that seeks a block."""
MOST_MS = 100.0
"""By how much a median step may take longer."""
HIDDEN = ("stone", "diamond_ore", "chest")
"""What is in the hidden cell, in turn."""
ESCAPED = "ESCAPED"
NEIGHBOUR = """
for (;;) {
  await bot.waitForTicks(1);
  bot.findBlocks({ matching: 'grass_block', count: 2 });
}
"""


@dataclass(frozen=True)
class Program:
    """A program.

    Attributes:
        family: what it tries.
        text: JavaScript.
        seeks: whether it prints what it learns of the hidden cell.
    """

    family: str
    text: str
    seeks: bool = False


@dataclass
class Fate:
    """What became of a program and of those around it.

    Attributes:
        program: it.
        lives: whether the game's process went on.
        escaped: whether it said so.
        learned: whether it told hidden blocks apart.
        stopped: by what the neighbour's program ended, if it did.
        added_ms: by how much the median step took longer.
        worst_ms: the same of the longest step.
        mean_ms: the same of all steps.
        ends: how often it ended by which error.
    """

    program: Program
    lives: bool = True
    escaped: bool = False
    learned: bool = False
    stopped: str = ""
    added_ms: float = 0.0
    worst_ms: float = 0.0
    mean_ms: float = 0.0
    ends: Counter[str] = field(default_factory=Counter)

    @property
    def faults(self) -> list[str]:
        """What it did that no program may do."""
        found = {
            "ended the instance": not self.lives,
            "escaped": self.escaped,
            "learned of a hidden block": self.learned,
            f"stopped the neighbour's program by {self.stopped}": bool(self.stopped),
            f"slowed a median step by {self.added_ms:,.0f} ms": self.added_ms > MOST_MS,
        }
        return [name for name, is_so in found.items() if is_so]


def programs() -> Iterator[Program]:
    """Yields all programs of the file."""
    for group in load_yaml(PROGRAMS):
        for each in group["programs"]:
            vary = each.get("vary", {})
            for values in product(*vary.values()):
                text = each["text"]
                for name, value in zip(vary, values, strict=True):
                    text = text.replace(f"${name}", str(value))
                yield Program(group["family"], text, group.get("hidden", False))


class Arena:
    """A world of two agents: the first begins programs, the second is its neighbour.

    It is launched again when a program has ended it.

    Args:
        hidden: the block in the hidden cell.
    """

    def __init__(self, hidden: str) -> None:
        self.folder = tempfile.TemporaryDirectory()
        options: dict[str, Any] = {
            "spawning": False,
            "view_distance": 3,
            "blocks": {"2 -4 0": hidden},
        }
        self.bridge = MineflayerBridge(actions="code", agents=2, **options)
        self.game: Any = None

    def close(self) -> None:
        """Ends the instance, if there is one."""
        if self.game is not None:
            self.game.close()
            self.game = None

    def begin(self) -> None:
        """Begins an episode, and the neighbour's program in it."""
        if self.game is None:
            folder = Path(self.folder.name)
            self.game = self.bridge.launch(folder, (), width=2, timeout_s=PATIENT_S)
        space = self.bridge.spec.state_space
        first = {factor.name: factor.values[0] for factor in space}
        start = Start(space.state(space.index(first | CALM)), 40)
        self.game.reset(range(2), [start] * 2, timeout_s=PATIENT_S)
        self.step(None, NEIGHBOUR)

    def step(self, *texts: str | None) -> tuple[float, list[dict[str, Any]]]:
        """Returns the milliseconds and the details of a step in which these programs begin."""
        texts = (*texts, None, None)[:2]
        actions = {
            KIND: np.array([RESUME if text is None else NEW for text in texts], np.int64),
            CODE: np.array([text or "" for text in texts], object),
        }
        before = self.busy_ms()
        details = self.game.step(actions, timeout_s=PATIENT_S).details
        return self.busy_ms() - before, [each["code_info"] for each in details]

    def busy_ms(self) -> float:
        """Returns the processor time of the thread that plays, in milliseconds."""
        pid = self.game.driver.pid
        return int(Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()[0]) / 1e6


def slows(arena: Arena, fate: Fate) -> None:
    """Plays a program beside a neighbour."""
    arena.begin()
    alone = [arena.step()[0] for _ in range(WARM + ALONE)][WARM:]
    usual = statistics.median(alone)
    again, taken = True, []
    for _ in range(STEPS):
        ms, (own, other) = arena.step(fate.program.text if again else None)
        taken.append(ms - usual)
        again = not own["is_running"]
        fate.escaped |= any(ESCAPED in line for line in own["logs"])
        error = other["code_error"].get("error_type", "" if other["is_running"] else "no error")
        fate.stopped = fate.stopped or error
        if own["code_error"]:
            fate.ends[own["code_error"]["error_type"]] += 1
    fate.added_ms, fate.worst_ms = statistics.median(taken), max(taken)
    fate.mean_ms = statistics.mean(taken)


def learned(arena: Arena, program: Program) -> str:
    """Returns what a program learns where its block is hidden."""
    arena.begin()
    said = [arena.step(program.text)[1][0]]
    said += [arena.step()[1][0] for _ in range(HIDDEN_STEPS - 1)]
    return json.dumps(said, sort_keys=True)


def played(arenas: Sequence[Arena], program: Program) -> Fate:
    """Returns what becomes of a program."""
    fate = Fate(program)
    told: set[str] = set()
    arena = arenas[0]
    try:
        slows(arena, fate)
        for arena in arenas if program.seeks else ():
            told.add(learned(arena, program))
    except GameError as error:
        print(f"the instance ended: {str(error)[:300]}", flush=True)
        fate.lives = False
        arena.close()
    fate.learned = len(told) > 1
    return fate


def report(fates: list[Fate]) -> str:
    """Returns the table."""
    rows = []
    for family in dict.fromkeys(fate.program.family for fate in fates):
        own = [fate for fate in fates if fate.program.family == family]
        ends: Counter[str] = sum((fate.ends for fate in own), Counter())
        added = [fate.added_ms for fate in own]
        clean = sum(not fate.faults for fate in own)
        cells = [family, str(len(own)), str(clean)]
        cells.append(f"{statistics.median(added):,.0f} ({max(added):,.0f})")
        most = max(f.mean_ms for f in own), max(f.worst_ms for f in own)
        cells += [f"{ms:,.0f}" for ms in most]
        often = ", ".join(f"{name} {count}" for name, count in ends.most_common(4))
        rows.append([*cells, often or "none"])
    count = Counter(fault.split(" by ")[0] for fate in fates for fault in fate.faults)
    clean = sum(not fate.faults for fate in fates)
    text = (
        f"{clean} of {len(fates)} programs do no harm: the instance lives, nothing escapes or "
        "learns of a hidden block, the neighbour's program goes on, and the median of "
        f"{STEPS} steps takes at most {MOST_MS:.0f} ms longer than without it, in processor time "
        "of the thread that plays the world. A program begins again in each step in which it has "
        "ended.\n"
    )
    for name, number in count.items():
        text += f"\n- {name}: {number}"
    head = ["family", "programs", "without harm", "median step, ms more: median (most)"]
    head += ["mean step, ms more: most", "longest step, ms more: most", "ended by"]
    text += "\n" + ("\n" if count else "") + table(head, rows)
    harmful = [fate for fate in fates if fate.faults]
    if harmful:
        text += "\nThose that do harm:\n\n"
        lines = [
            [fate.program.family, f"`` {fate.program.text} ``", ", ".join(fate.faults)]
            for fate in harmful
        ]
        text += table(["family", "program", "what it did"], lines)
    return text


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--family", help="only this one")
    parser.add_argument("--every", type=int, default=1, help="only every so many-th program")
    args = parser.parse_args()
    chosen = [each for each in programs() if args.family in (None, each.family)][:: args.every]
    arenas, fates = [Arena(hidden) for hidden in HIDDEN], []
    try:
        for program in chosen:
            fates.append(played(arenas, program))
            last = fates[-1]
            times = f"{last.added_ms:6.0f} {last.worst_ms:6.0f}"
            print(times, last.faults, program.text, flush=True)
    finally:
        for arena in arenas:
            arena.close()
    publish("mineflayer_hostile", TITLE, report(fates), save=args.save)


if __name__ == "__main__":
    main()
