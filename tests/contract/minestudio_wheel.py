"""The unchanged MineStudio on our engine: run by test_minestudio_wheel.py in its own Python.

Prints a line of JSON for each callback, whether its effect was seen, and the digest of an episode.
"""

import hashlib
import json
import random
import sys
from pathlib import Path

import av
import numpy as np
from minestudio.simulator import MinecraftSim, callbacks

SIZE = (64, 36)
OUT = Path(sys.argv[1])
FORWARD, ATTACK = 288, 4  # VPT's buttons


def sim(*chosen, **options):
    return MinecraftSim(obs_size=SIZE, render_size=SIZE, callbacks=list(chosen), **options)


def step(env, buttons=0, camera=60):
    return env.step({"buttons": np.array([buttons]), "camera": np.array([camera])})


def items(info):
    return {(slot["type"], int(slot["quantity"])) for slot in info["inventory"].values()}


def report(callback, effect, seen):
    said = json.dumps({"callback": callback, "effect": effect, "seen": bool(seen)})
    sys.stdout.write(f"{said}\n")
    sys.stdout.flush()


def world_of_commands():
    task = {"name": "hunt_pigs", "text": "hunt a pig"}
    env = sim(
        callbacks.SummonMobsCallback(
            [{"name": "cow", "number": 3, "range_x": [-4, 4], "range_z": [2, 6]}]
        ),
        callbacks.InitInventoryCallback([{"slot": 3, "type": "bread", "quantity": 5}]),
        callbacks.CommandsCallback(
            ["/give @s minecraft:netherite_sword", "/tp @s ~ ~ ~ 0 20", "/gamemode creative",
             "/summon minecraft:pig ~ ~ ~1.7 {Age:0,NoAI:1}"]
        ),
        callbacks.VoxelsCallback(),
        callbacks.RewardsCallback([{"event": "kill_entity", "identity": "pig", "objects": ["pig"],
                            "reward": 2.0, "max_reward_times": 1}]),
        callbacks.MaskActionsCallback(sneak=1),
        callbacks.RecordCallback(str(OUT / "record"), fps=20, frame_type="pov"),
        callbacks.TaskCallback([task]),
        callbacks.PrevActionCallback(),
        callbacks.SpeedTestCallback(20),
        callbacks.JudgeResetCallback(60),
        seed=5,
    )  # fmt: skip
    obs, info = env.reset()
    report("Task", "its text in the observation", obs["task"] == task)
    report("InitInventory", "5 bread in the inventory", ("bread", 5) in items(info))
    report("Commands", "a sword in the inventory", ("netherite_sword", 1) in items(info))
    rewards, terminated = [], False
    for number in range(60):
        obs, reward, terminated, _, info = step(env, ATTACK * (number % 15 == 0))
        rewards.append(reward)
        if number == 0:
            _, _, _, near = env.env.step({**env.env.action_space.no_op(), "mobs": [-9, 9] * 3})
            kinds = [mob["type"] for mob in near["mobs"]]
            report("SummonMobs", "three cows are near", kinds.count("cow") >= 3)
    report("Rewards", "2 for the first pig", sum(rewards) == 2 and info["kill_entity"]["pig"] == 1)
    report("Voxels", "15 x 15 x 15 blocks", len(info["voxels"]) == 15**3)
    report("MaskActions", "sneaking that nobody chose", info["custom"]["sneak_time"] > 0)
    report("PrevAction", "the last action in the observation", "attack" in obs["env_prev_action"])
    report("JudgeReset", "the end after 60 steps", terminated)
    env.close()
    with av.open(next((OUT / "record").glob("*.mp4"))) as film:
        frames = sum(1 for _ in film.decode(video=0))
    report("Record", "a film of 61 frames", frames == 61)
    report("SpeedTest", "runs", True)


def resets():
    env = sim(callbacks.FastResetCallback(["plains", "desert"], 100, 6000, "rain"), seed=6)
    env.reset()
    step(env, FORWARD)
    _, info = env.reset()
    fresh = info["custom"]["deaths"] == 1 and int(info["location_stats"]["biome_id"]) in (1, 2)
    report("FastReset", "a death, then plains or desert in the rain", fresh)
    env.close()
    env = sim(callbacks.VoxelsCallback(), callbacks.GateRewardsCallback(), seed=6)
    env.reset()
    step(env)
    env.env.execute_cmd("/setblock ~2 ~ ~ minecraft:obsidian")
    report("GateRewards", "more than 0 for a block of a portal", step(env)[1] > 0)
    env.close()
    place = {"seed": 9, "position": [4, 85, 4]}
    env = sim(callbacks.HardResetCallback([place]))
    _, info = env.reset()
    at = (float(info["player_pos"]["x"]), float(info["player_pos"]["z"]))
    report("HardReset", "the world of its seed at its place", np.allclose(at, 4, atol=1))
    env.close()


def windows():
    env = sim(callbacks.CommandsCallback(["/give @s minecraft:oak_log"]), seed=7)
    env.reset()

    def act(turn=(0, 0), **keys):
        action = {**env.env.action_space.no_op(), "camera": np.array(turn), **keys}
        obs, _, _, info = env.env.step(action)
        return obs["pov"].astype(int), info

    closed, _ = act()
    act(inventory=1)
    opened, info = act()
    seen = info["isGuiOpen"] and (closed != opened).any(-1).mean() > 0.8
    report("(none)", "the key opens the inventory, and the picture shows it", seen)
    for down, right in ((67, -72), (-124, 90), (10, 56)):  # hotbar, grid, result, in pixels
        act((down * 0.15, right * 0.15))
        act(attack=1, sneak=int(down == 10))
        act()
    act(inventory=1)
    _, _, _, _, info = step(env)
    crafted = not info["isGuiOpen"] and ("oak_planks", 4) in items(info)
    report("(none)", "the cursor crafts planks", crafted)
    env.close()


def episode(seed):
    env = sim(seed=seed)
    digest = hashlib.sha256()
    for _ in range(2):
        env.env.seed(seed)
        _, info = env.reset()
        dice = random.Random(1)
        for _ in range(60):
            buttons = dice.choice((0, FORWARD, FORWARD + 2, ATTACK, 864))
            _, _, _, _, info = step(env, buttons, dice.randrange(121))
            digest.update(np.ascontiguousarray(info["pov"]).tobytes())
            digest.update(json.dumps(items(info), default=sorted).encode())
    env.close()
    return digest.hexdigest()


if __name__ == "__main__":
    world_of_commands()
    resets()
    windows()
    report("(none)", "the same seed gives the same bytes", episode(3) == episode(3))
    report("(none)", "another seed gives others", episode(3) != episode(4))
