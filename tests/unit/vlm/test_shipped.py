"""Every shipped configuration of a model behind an endpoint plays, with the committed prompt.

After a change of a prompt, read what a player is told, and write the files again:
``GAMUT_WRITE_PROMPTS=1 pytest tests/unit/vlm/test_shipped.py``.
"""

import os
import re
from pathlib import Path

import pytest

from rollout.cli import Session
from rollout.collect import collect
from rollout.config import CollectConfig, load_config, parse_set
from rollout.evaluate.config import EvaluateConfig
from rollout.evaluate.evaluate import evaluate
from rollout.signals import Stop
from rollout.testing.chat_server import ChatServer
from rollout.yaml12 import load_yaml

ROOT = Path(__file__).resolve().parents[3]
PROMPTS = Path(__file__).with_name("prompts")
PLAYER = "{name: vlm, endpoint: {url: URL}, model: NAME, prompt: think, fallback: random}"


def one(task):
    """Settings of StarDojo-Lite for one of its tasks."""
    return [
        f"sets={{lite: {{split: all, size: 1, only: {{task: [{task}]}}}}}}",
        "episodes_per_state=1",
    ]


# What is set beside the endpoint, and an action of each game.
SHIPPED = {
    "vlm/collect_minigrid": (["episodes=1"], "forward"),
    "vlm/collect_minecraft": (["episodes=1"], '{"kind": "new", "code": "await moveTo(0, 70, 0)"}'),
    "vlm/balrog_babyai": ([f"players={{model: {PLAYER}}}", "sets.goto.size=1"], "go forward"),
    "vlm/balrog_crafter": ([f"players={{model: {PLAYER}}}", "sets.ten.size=1"], "Noop"),
    "stardojo/lite_vlm": (["sets.lite.size=1"], '{"name": "wait"}'),
    "starbench/vlm": ([], ""),
}

# Their prompts are in tests/unit/companion.
COMPANIONS = {"mineflayer/companion", "minenpc/companion"}
STARDOJO = "stardojo/lite_vlm"
# What a player is told in later steps: of which configuration, what is set, and what it answers.
SCENES = {
    "scene_crops": (
        STARDOJO,
        one("harvest_5_parsnip"),
        [
            '{"name": "move", "y": 3, "then/name": "choose_item", "then/slot": 2}',
            '{"name": "use", "direction": "down"}',
            '{"name": "interact", "direction": "down"}',
        ],
    ),
    "scene_growing": (
        STARDOJO,
        one("cultivate_and_harvest_1_garlic"),
        [
            '{"name": "choose_item", "slot": 1, "then/name": "use", "then/direction": "down"}',
            '{"name": "choose_item", "slot": 6, "then/name": "use", "then/direction": "down"}',
            '{"name": "choose_item", "slot": 2, "then/name": "use", "then/direction": "down"}',
            '{"name": "interact", "direction": "up"}',
            '{"name": "move", "x": 6, "y": -2}',
            '{"name": "choose_option", "option": 1}',
            '{"name": "navigate", "text": "Farm"}',
        ],
    ),
    "scene_buying": (
        STARDOJO,
        one("purchase_5_beer"),
        [
            '{"name": "interact", "direction": "up"}',
            '{"name": "choose_option", "option": 2, "quantity": 3}',
            '{"name": "close_menu"}',
        ],
    ),
    "scene_selling": (
        STARDOJO,
        one("sell_5_parsnip_to_pierre"),
        [
            '{"name": "interact", "direction": "up"}',
            '{"name": "choose_option", "option": 7, "quantity": 2, "out": "out"}',
        ],
    ),
    "scene_animals": (
        STARDOJO,
        one("purchase_1_chicken"),
        [
            '{"name": "interact", "direction": "up"}',
            '{"name": "choose_option", "option": 2}',
            '{"name": "close_menu", "then/name": "open_journal"}',
        ],
    ),
    "scene_minecraft": (
        "vlm/collect_minecraft",
        ["episodes=1", "task=techtree_1_wooden_pickaxe_with_16_oak_planks"],
        [
            r'{"kind": "new", "code": "console.log(bot.blockAt(bot.entity.position).name);\n'
            r"await craftItem('stick');\nawait craftItem('wooden_pickaxe');"
            '"}',
            '{"kind": "new", "code": "await mineBlock(\'oak_log\', 2)"}',
            '{"kind": "resume"}',
        ],
    ),
}


def endpoints(data):
    """Whether a configuration names an endpoint of a model that plays."""
    players = [data.get("policy"), *(data.get("players") or {}).values()]
    return any(isinstance(each, dict) and "endpoint" in each for each in players)


def test_all_that_are_shipped_are_here():
    found = {
        path.relative_to(ROOT / "configs").with_suffix("").as_posix()
        for path in (ROOT / "configs").rglob("*.yaml")
        if path.parent.name not in ("cluster", "grafana")  # files of other programs
        and isinstance(data := load_yaml(path), dict)
        and endpoints(data)
    }
    assert found <= set(SHIPPED) | COMPANIONS


def texts(request):
    """The messages of a request as text."""
    for message in request["messages"]:
        said = message["content"]
        parts = [{"type": "text", "text": said}] if isinstance(said, str) else said
        shown = [part["text"] if part["type"] == "text" else "(a picture)" for part in parts]
        yield f"--- {message['role']}\n" + "\n".join(shown)


def settings(config, players, url, calls, episodes):
    """What is replaced in every configuration: the server, and its length."""
    for player in players:
        yield f"{player}.endpoint={{url: {url}}}"
        yield f"{player}.model={player.split('.')[-1]}"
        yield f"{player}.limits.episode_calls={calls}"
    yield from ("actors=0", "instances=1", "wandb.mode=disabled")
    if config is EvaluateConfig:
        yield f"episodes_per_state={episodes}"


def play(name, more, answer, calls, folder, *, episodes=1):
    """Plays a shipped configuration with a scripted model; returns its requests and players."""
    path = ROOT / "configs" / f"{name}.yaml"
    data = load_yaml(path)
    kind, job = (EvaluateConfig, evaluate) if "sets" in data else (CollectConfig, collect)
    if kind is EvaluateConfig and len(data["sets"]) > 1:
        [only] = [key for key in data["sets"] if f"sets.{key}.size=1" in more]
        more = [*more[:-1], f"sets={{{only}: {{split: all, size: 1, only: {{kind: [goto]}}}}}}"]
    shipped = {
        k for k, v in data.get("players", {}).items() if isinstance(v, dict) and "model" in v
    }
    players = [f"players.{each}" for each in shipped or ["model"]] if "sets" in data else ["policy"]
    with ChatServer(answer) as server, Stop() as stop:
        chosen = [
            *more,
            *settings(kind, players, server.url, calls, episodes),
            f"output={folder / 'run'}",
        ]
        config = load_config(kind, path, [parse_set(text) for text in chosen])
        assert job(config, Session(resume=False, stop=stop)) is None
    refused = [t for r in server.requests for t in texts(r) if "could not be used" in t]
    assert not refused, refused[0]
    return server.requests, {each.split(".")[-1] for each in players}


def check(file, told):
    """Compares what a player is told with the file that is committed."""
    path = PROMPTS / f"{file}.txt"
    if os.environ.get("GAMUT_WRITE_PROMPTS"):
        path.write_text(told, encoding="utf-8")
    assert told == path.read_text(encoding="utf-8")


@pytest.mark.heavy
@pytest.mark.parametrize("name", SHIPPED)
def test_it_plays_with_the_prompt_that_is_committed(name, tmp_path):
    more, action = SHIPPED[name]

    def answer(request):
        said = "\n".join(texts(request))
        legal = re.findall(r"Legal actions now:\n([(].+?[)])", said)
        return f"<thought>.</thought><action>{legal[-1] if legal else action}</action>"

    requests, players = play(name, more, answer, 3, tmp_path, episodes=2)
    first = {}
    for request in requests:
        first.setdefault(request["model"], request)
    assert first.keys() == players
    check(name.replace("/", "_"), "\n\n".join(texts(first[min(first)])) + "\n")


@pytest.mark.heavy
@pytest.mark.parametrize("scene", SCENES)
def test_later_steps_are_told_as_in_the_file_that_is_committed(scene, tmp_path):
    name, more, script = SCENES[scene]
    answers = iter(script)

    def answer(_):
        return f"<thought>.</thought><action>{next(answers, script[-1])}</action>"

    requests, _ = play(name, more, answer, len(script) + 1, tmp_path)
    told = [list(texts(request))[-1] for request in requests]
    assert len(told) in (len(script), len(script) + 1)  # the last answer may reach the goal
    steps = [f"{said}\n\n>>> {action}" for said, action in zip(told, script, strict=False)]
    check(scene, "\n\n".join([*steps, *told[len(script) :]]) + "\n")
