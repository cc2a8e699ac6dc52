"""What the oracles achieve on MineLand's programmatic tasks in the embedded Minecraft.

Each task is played in the first states of its test part by the program of
``bridges.mineflayer.oracle``, through the ``code`` actions, judged by the task's own evaluator and
limits. Needs Node; run from the root of the repository:

    .venv/bin/python -m benchmarks.mineflayer_oracles --save
"""

from __future__ import annotations

import argparse
import fcntl
import json
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.report import RESULTS, header, table
from bridges.mineflayer.oracle import attribute
from bridges.mineflayer.task_ids import parse
from policies.callable import CallablePolicy
from rollout.api import EpisodeResult, Outcome, Splits, Start
from rollout.config import BridgeConfig
from rollout.host.referee import Referee
from rollout.tasks import bridge_and_task

LABEL = "protocol-real, mechanics re-implemented"
TICKS_PER_STEP = 20
SEED = 20_261_122

TASKS = (
    "combat_1_pig",
    "combat_1_sheep_with_1_iron_sword_and_1_shield",
    "combat_1_zombie_with_1_iron_sword_and_1_shield",
    "combat_1_husk_with_1_iron_sword_and_1_shield",
    "combat_1_spider_with_1_iron_sword_and_1_shield",
    "combat_1_silverfish_with_1_iron_sword_and_1_shield",
    "combat_1_cave_spider_with_1_iron_sword_and_1_shield",
    "combat_1_stray_with_1_diamond_sword_and_1_shield",
    "combat_1_skeleton_with_1_iron_sword_and_1_shield",
    "combat_1_creeper_with_1_diamond_sword_and_1_shield",
    "combat_1_snow_golem_with_1_iron_sword_and_1_shield",
    "combat_4_pig",
    "combat_8_sheep_with_1_iron_sword_and_1_shield",
    "combat_1_endermite_with_1_iron_sword_and_1_shield",
    "combat_4_zombie_with_1_diamond_sword_and_shield_and_diamond_and_helmet_and_leggings_and_"
    "chestplate_and_boots",
    "survival_0.01_days",
    "survival_0.05_days",
    "survival_0.1_days",
    "survival_0.2_days",
    "survival_0.5_days",
    "harvest_1_oak_log",
    "harvest_8_oak_log",
    "harvest_8_dirt",
    "harvest_1_oak_planks",
    "harvest_8_oak_planks",
    "harvest_1_stick",
    "harvest_8_stick",
    "harvest_1_crafting_table",
    "harvest_1_chest",
    "harvest_1_oak_button",
    "harvest_1_oak_slab",
    "harvest_1_oak_stairs",
    "harvest_1_oak_fence",
    "harvest_1_oak_door",
    "harvest_1_oak_trapdoor",
    "harvest_1_oak_pressure_plate",
    "harvest_1_oak_fence_gate",
    "harvest_1_oak_sign",
    "harvest_1_cobblestone_with_1_wooden_pickaxe",
    "harvest_8_cobblestone_with_1_iron_pickaxe",
    "harvest_1_cobblestone",
    "harvest_1_furnace",
    "harvest_1_stone",
    "harvest_1_oak_sapling",
    "harvest_1_coal_with_1_iron_pickaxe",
    "harvest_1_beef_with_1_iron_sword",
    "harvest_1_porkchop_with_1_iron_sword",
    "harvest_1_mutton",
    "harvest_1_white_wool",
    "techtree_1_wooden_pickaxe",
    "techtree_1_wooden_sword",
    "techtree_1_wooden_sword_with_64_oak_planks",
    "techtree_1_wooden_pickaxe_with_64_oak_planks",
    "techtree_1_wooden_axe_with_64_oak_planks",
    "techtree_1_wooden_shovel_with_64_oak_planks",
    "techtree_1_wooden_hoe_with_64_oak_planks",
    "techtree_1_stone_pickaxe",
    "techtree_1_stone_sword",
    "techtree_1_stone_axe",
    "techtree_1_stone_shovel",
    "techtree_1_stone_hoe",
    "techtree_1_shears_with_2_iron_ingot",
    "techtree_1_iron_pickaxe",
)


def play(task_id: str, count: int, seed: int) -> list[EpisodeResult]:
    """Plays a task in its first test states, side by side, and returns how the episodes ended."""
    options = {"name": "mineflayer", "actions": "code", "ticks_per_step": TICKS_PER_STEP}
    _, bridge, task = bridge_and_task(BridgeConfig.model_validate(options), task_id)
    splits = Splits(task.state_space, seed)
    states = splits.take("test", count)
    starts = [Start(states[k], seed=seed + k, episode=k) for k in range(count)]
    policy = CallablePolicy("bridges.mineflayer.oracle:" + attribute(task_id)).build(
        bridge.spec, task, seed=0
    )
    with tempfile.TemporaryDirectory() as folder:
        instance = bridge.launch(Path(folder), (), width=count, timeout_s=600.0)
        try:
            return play_all(instance, task, policy, starts)
        finally:
            instance.close()


def play_all(instance, task, policy, starts: Sequence[Start]) -> list[EpisodeResult]:
    """Plays every start in a slot of its own until all have ended."""
    slots = range(len(starts))
    referee = Referee(task, len(starts))
    frame = instance.reset(slots, starts, timeout_s=600.0)
    referee.reset(slots, starts, frame)
    results = []
    while referee.active.any():
        decision = policy.act(frame.observations, {}, details=frame.details, explore=False)
        frame = instance.step(decision.actions, timeout_s=600.0)
        ruling = referee.judge(decision.actions, frame)
        for slot in ruling.ended:
            end = "terminated" if ruling.terminated[slot] else "truncated"
            results.append(referee.finish(slot, end, int(ruling.verdict.outcome[slot])))
    return results


def row(task_id: str, count: int, seed: int) -> list[str]:
    """The row of a task in the table."""
    began = time.perf_counter()
    results = play(task_id, count, seed)
    won = [result for result in results if result.outcome == Outcome.SUCCESS]
    ticks = f"{statistics.median(r.length for r in won) * TICKS_PER_STEP:,.0f}" if won else "-"
    progress = statistics.median(float(result.progress) for result in results)
    cells = [f"`{task_id}`", parse(task_id).family, f"{len(won)}/{count}", ticks, f"{progress:.2f}"]
    print(*cells, f"{time.perf_counter() - began:.0f} s", sep="  ", flush=True)
    return cells


NOTES = f"""
{LABEL}: these are not MineLand's results, whose agents play Mojang's server.

How to read it: states are the first of the test part of the house's own sets, each
played once; ticks are the median of the episodes that succeeded (20 are a
second), progress is the median of all. Limits are the tasks' own: a day for harvest and tech tree,
two minutes for combat. The programs know the game's recipes and nothing of a world; they were
written on states of other sets, but what was slow on these was looked at
too. They see what the bridge's senses allow: 48 blocks, no walls. Rows
may come from several runs (`--tasks`), of whatever version was there. No row says what an agent
that does nothing would achieve: some fights and most nights may be won by waiting.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--states", type=int, default=3)
    parser.add_argument("--tasks", nargs="*", default=[])
    parser.add_argument("--seed", type=int, default=SEED, help="other seeds give other states")
    parser.add_argument(
        "--save", action="store_true", help="write benchmarks/results, beside former rows"
    )
    options = parser.parse_args()
    command = "python -m benchmarks.mineflayer_oracles"
    command += f" --states {options.states}" if options.states != 3 else ""
    command += f" --seed {options.seed}" if options.seed != SEED else ""
    command += f" --tasks {' '.join(options.tasks)}" if options.tasks else ""
    rows: dict[str, list[str]] = {}
    for task_id in options.tasks or TASKS:
        rows[task_id] = row(task_id, options.states, options.seed)
        if options.save:  # after every task: a whole run takes an hour
            keep(task_id, rows[task_id])
    if not options.save:
        print(report(command, rows))


def keep(task_id: str, cells: list[str]) -> None:
    """Writes a row among those of former runs, and the report of all."""
    path = RESULTS / "mineflayer_oracles.json"
    path.parent.mkdir(exist_ok=True)
    with path.open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # several runs may share the tasks
        file.seek(0)
        rows = {**json.loads(file.read() or "{}"), task_id: cells}
        file.seek(0)
        file.truncate()
        file.write(json.dumps(rows, indent=1) + "\n")
        text = report("python -m benchmarks.mineflayer_oracles --save", rows)
        (RESULTS / "mineflayer_oracles.md").write_text(text)


def report(command: str, rows: Mapping[str, list[str]]) -> str:
    """The whole report, of the tasks that have been played."""
    scores = [tuple(map(int, cells[2].split("/"))) for cells in rows.values()]
    once, most = sum(won > 0 for won, _ in scores), sum(2 * won > of for won, of in scores)
    order = sorted(rows.values(), key=lambda cells: (cells[1], cells[0]))
    text = header("Mineflayer: what the oracles achieve on MineLand's tasks", command)
    text += f"\n{once} of {len(rows)} tasks were solved at least once, {most} in most states.\n\n"
    text += table(["task", "family", "solved", "ticks", "progress"], order) + NOTES
    left = [f"`{task_id}`" for task_id in TASKS if task_id not in rows]
    return text + (f"\nNot played to the end yet: {', '.join(left)}.\n" if left else "")


if __name__ == "__main__":
    main()
