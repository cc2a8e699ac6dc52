"""Parts of ``benchmarks.faults.minestudio`` that run in MineStudio's own interpreter."""

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import minestudio
import numpy as np
from minestudio.simulator import MinecraftSim, callbacks

SIZE = (128, 72)
STEPS = 1000
NAMES = (
    *("build_gate", "build_pillar", "collect_wood", "combat_spider", "hunt_a_sheep"),
    *("craft_the_crafting_table", "mine_dirt", "plant_wheats", "sleep_in_bed", "use_bow"),
)


def say(**line):
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def step(env, buttons, camera):
    return env.step({"buttons": np.array([buttons]), "camera": np.array([camera])})


def files():
    folder = Path(minestudio.__file__).parent / "benchmark" / "task_configs" / "simple"
    return [folder / f"{name}.yaml" for name in NAMES]


def tasks():
    for number, file in enumerate(files()):
        begun = time.monotonic()
        chosen = [
            callbacks.CommandsCallback.create_from_conf(str(file)),
            callbacks.JudgeResetCallback(STEPS),
        ]
        env = MinecraftSim(obs_size=SIZE, render_size=SIZE, callbacks=chosen, seed=number)
        _, info = env.reset()
        dice, digest = random.Random(number), hashlib.sha256()
        over, steps = False, 0
        while not over:
            _, _, over, _, info = step(env, dice.randrange(8640), dice.randrange(121))
            steps += 1
            digest.update(np.ascontiguousarray(info["pov"]).tobytes())
            facts = [info["inventory"], info["player_pos"]]
            digest.update(json.dumps(facts, default=str, sort_keys=True).encode())
        env.close()
        taken = time.monotonic() - begun
        say(task=file.stem, steps=steps, seconds=taken, digest=digest.hexdigest())


def engine():
    """Returns the process of the only engine below this one."""
    found = subprocess.run(["pgrep", "-f", "bridges.minestudio.engine"], capture_output=True,
                           text=True, check=False).stdout.split()  # fmt: skip
    mine = [int(pid) for pid in found if descends(int(pid))]
    return mine[0]


def descends(pid):
    while pid > 1:
        if pid == os.getpid():
            return True
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            return False
    return False


def faults():
    """What MineStudio's own code does when its engine is killed, or does not answer."""
    for name, number in (("killed", signal.SIGKILL), ("silent", signal.SIGSTOP)):
        env = MinecraftSim(obs_size=SIZE, render_size=SIZE, seed=1)
        env.reset()
        step(env, 0, 60)
        pid = engine()
        os.kill(pid, number)
        said = []
        for call in (lambda: step(env, 0, 60), lambda: step(env, 0, 60), env.reset):  # noqa: B023
            begun = time.monotonic()
            try:
                call()
                said.append("nothing")
            except Exception as error:  # noqa: BLE001 - whatever its code raises
                said.append(f"{type(error).__name__} after {time.monotonic() - begun:.0f} s")
        if number == signal.SIGSTOP:
            os.kill(pid, signal.SIGKILL)
        raised = all("Error" in each for each in said)
        effect = f"step, step, reset: {'; '.join(said)}"
        say(callback=f"(engine {name})", effect=effect, seen=raised)
    try:
        callbacks.DemonstrationCallback("no_such_task")
        said = "goes on"
    except (EOFError, SystemExit) as error:
        said = f"{type(error).__name__} at once, as its terminal is closed"
    except Exception as error:  # noqa: BLE001 - likewise
        said = f"{type(error).__name__}: {error}"
    say(callback="Demonstration", effect=f"asks to download videos: {said}", seen=True)


if __name__ == "__main__":
    {"tasks": tasks, "faults": faults}[sys.argv[2]]()
