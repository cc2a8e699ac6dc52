"""A world of plain values and a model of one answer per role, for companions in tests."""

import json
import re

from bridges.mineflayer import MineflayerBridge
from policies.companion.asking import FOLDER, RoleClient, load_roles
from policies.companion.harness import Companion, CompanionPolicy
from policies.companion.stages import Limits, Stages
from rollout.api import Call, Start
from rollout.models.sections import Endpoint
from rollout.tasks import load_task

SPEC = MineflayerBridge(actions="code").spec
TASK = load_task(SPEC, "mineflayer", "look_around")
NAMES = ("walk to the mine", "mine 8 stone", "give it")
SLOTS = ("main hand", "head", "body", "legs", "feet", "off hand")
GOOD = "async function task(bot) { await moveTo(1, 64, 1); }"


def plan(*names, question="", unbound=""):
    """Returns a plan as a model writes it."""
    steps = [
        {"index": n, "subtask": name, "success_criteria": f"{name}: done"}
        for n, name in enumerate(names or NAMES, 1)
    ]
    if question:
        steps[0]["clarifying_questions"] = [question]
    return {"task_plan": steps, "unbound": unbound}


ANSWERS = {
    "route": {"intent": "task", "slots": {"count": None}, "confidence": 0.9},
    "plan": plan(),
    "code": {"code": GOOD},
    "review": {"valid": True, "confidence": 0.9},
    "judge": {"is_task_completed": True, "confidence_score": 9},
}


class Model:
    """Answers by role: a value, or a list of values of which the last stays."""

    calls = 4

    def __init__(self, **answers):
        self.answers = {**ANSWERS, **answers}
        self.asked = []

    def ask(self, request):
        role = request.identity[-2]
        self.asked.append((role, request.messages))
        found = self.answers[role]
        if isinstance(found, list):
            found = found.pop(0) if len(found) > 1 else found[0]
        text = found if isinstance(found, str) else json.dumps(found)
        return Call(answer=text, finish="stop", seconds=0.1, input_tokens=10, output_tokens=2)

    def figures(self):
        return {}

    def told(self, role):
        """Returns the last question of a role."""
        return next(m[-1]["content"] for r, m in reversed(self.asked) if r == role)


class World:
    """Details of frames; a program runs for one step."""

    def __init__(self):
        self.tick, self.items, self.chat, self.more, self.error = 0, {}, [], {}, {}
        self.running, self.said = False, []

    def says(self, who, text):
        self.chat.append(
            {
                "type": "chat",
                "username": who,
                "only_message": text,
                "tick": self.tick,
                "message": f"<{who}> {text}",
            }
        )

    def details(self):
        items = {str(n): {"name": k, "count": c} for n, (k, c) in enumerate(self.items.items(), 9)}
        air = [[["air"] * 3] * 3] * 3
        found = {
            "name": "a0",
            "tick": self.tick,
            "time": 6000,
            "day": 0,
            "inventory_all": items,
            "life_stats": {"life": 20, "food": 20, "oxygen": 20, "xp_level": 0},
            "location_stats": {
                "pos": [0.5, 64, 0.5],
                "yaw": 0,
                "biome": "plains",
                "is_raining": False,
                "can_see_sky": True,
                "light_level": 0,
                "sky_light_level": 15,
            },
            "equip": {
                key: ["air", 0] for key in ("main hand", "head", "body", "legs", "feet", "off hand")
            },
            "voxels": {"block_name": air},
            "blocks_in_sight": [],
            "entities": [],
            "target_entities": [],
            "event": self.chat,
            "chat": [],
            "code_info": {
                "is_running": self.running,
                "code_error": self.error,
                "logs": [],
                "last_code": "x",
                "code_tick": 20,
            },
            **self.more,
        }
        self.chat = []
        return found

    def act(self, kind, code):
        self.tick += 20
        self.running = kind == 1 and "await task" in code
        for line in re.findall(r'bot\.chat\((".*")\);', code if kind == 1 else ""):
            self.said.append(json.loads(line))
            self.says("a0", self.said[-1])


def companion(model, *, folder=None, memory=None, task=TASK, **limits):
    """Returns a companion that asks a model."""
    options = CompanionPolicy(endpoint=Endpoint(url="http://127.0.0.1:9/v1"), model="m")
    roles = RoleClient(options, load_roles(FOLDER / "companion.yaml", SPEC), 1)
    stages = Stages(roles, Limits(**limits))
    return Companion(stages, task, model, memory=memory, folder=folder)


def play(policy, world, steps, *, script=(), seed=7, before=None):
    """Plays steps; returns the telemetry of each and why the episode stopped.

    Args:
        script: pairs of a pattern of what the companion says, and what the player says then.
    """
    script, told, stop = list(script), [], ""
    memory = policy.initial_memory([Start(SPEC.state_space.state(0), seed)])
    for number in range(steps):
        if before:
            before(number)
        decision = policy.act({}, memory, details=[world.details()], explore=False)
        memory = decision.memory
        told.append(decision.extras["companion/telemetry"][0])
        spoken = len(world.said)
        world.act(int(decision.actions["kind"][0]), str(decision.actions["code"][0]))
        for line in world.said[spoken:]:
            if script and re.search(script[0][0], line):
                world.says("Player1", script.pop(0)[1])
        stop = decision.stops[0] if decision.stops else ""
        if stop:
            break
    json.dumps(told)
    return told, stop, memory["session"][0]


def events(told, kind):
    """Returns the events of a kind."""
    return [each for step in told for each in step["events"] if each["kind"] == kind]


def asked(world):
    """Returns the questions that the companion asked."""
    return [line for line in world.said if line.endswith("?")]
