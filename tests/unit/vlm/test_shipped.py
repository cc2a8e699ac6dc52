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

# What is set beside the endpoint, and an action of each game.
SHIPPED = {
    "vlm/collect_minigrid": (["episodes=1"], "forward"),
    "vlm/collect_minecraft": (["episodes=1"], '{"kind": "new", "code": "await moveTo(0, 70, 0)"}'),
    "vlm/balrog_babyai": ([f"players={{model: {PLAYER}}}", "sets.goto.size=1"], "go forward"),
    "vlm/balrog_crafter": ([f"players={{model: {PLAYER}}}", "sets.ten.size=1"], "Noop"),
    "stardojo/lite_vlm": (["sets.lite.size=1"], '{"name": "wait"}'),
    "starbench/vlm": ([], ""),
}


def endpoints(data):
    """Whether a configuration names an endpoint of a model that plays."""
    players = [data.get("policy"), *(data.get("players") or {}).values()]
    return any(isinstance(each, dict) and "endpoint" in each for each in players)


def test_all_that_are_shipped_are_here():
    found = {
        path.relative_to(ROOT / "configs").with_suffix("").as_posix()
        for path in (ROOT / "configs").rglob("*.yaml")
        if isinstance(data := load_yaml(path), dict) and endpoints(data)
    }
    assert found <= set(SHIPPED)


def texts(request):
    """The messages of a request as text."""
    for message in request["messages"]:
        said = message["content"]
        parts = [{"type": "text", "text": said}] if isinstance(said, str) else said
        shown = [part["text"] if part["type"] == "text" else "(a picture)" for part in parts]
        yield f"--- {message['role']}\n" + "\n".join(shown)


def settings(config, players, url):
    """What is replaced in every configuration: the server, and its length."""
    for player in players:
        yield f"{player}.endpoint={{url: {url}}}"
        yield f"{player}.model={player.split('.')[-1]}"
        yield f"{player}.limits.episode_calls=3"
    yield from ("actors=0", "instances=1", "wandb.mode=disabled")
    if config is EvaluateConfig:
        yield "episodes_per_state=2"


@pytest.mark.heavy
@pytest.mark.parametrize("name", SHIPPED)
def test_it_plays_with_the_prompt_that_is_committed(name, tmp_path):
    path, (more, action) = ROOT / "configs" / f"{name}.yaml", SHIPPED[name]
    data = load_yaml(path)
    kind, job = (EvaluateConfig, evaluate) if "sets" in data else (CollectConfig, collect)
    if kind is EvaluateConfig and len(data["sets"]) > 1:
        [only] = [key for key in data["sets"] if f"sets.{key}.size=1" in more]
        more = [*more[:-1], f"sets={{{only}: {{split: all, size: 1, only: {{kind: [goto]}}}}}}"]
    shipped = {
        k for k, v in data.get("players", {}).items() if isinstance(v, dict) and "model" in v
    }
    players = [f"players.{each}" for each in shipped or ["model"]] if "sets" in data else ["policy"]

    def answer(request):
        said = "\n".join(texts(request))
        legal = re.findall(r"Legal actions now:\n([(].+?[)])", said)
        return f"<thought>.</thought><action>{legal[-1] if legal else action}</action>"

    with ChatServer(answer) as server, Stop() as stop:
        chosen = [*more, *settings(kind, players, server.url), f"output={tmp_path / 'run'}"]
        config = load_config(kind, path, [parse_set(text) for text in chosen])
        assert job(config, Session(resume=False, stop=stop)) is None
    first = {}
    for request in server.requests:
        first.setdefault(request["model"], request)
    assert first.keys() == {player.split(".")[-1] for player in players}
    refused = [t for r in server.requests for t in texts(r) if "could not be used" in t]
    assert not refused, refused[0]
    told = "\n\n".join(texts(first[min(first)])) + "\n"
    file = PROMPTS / f"{name.replace('/', '_')}.txt"
    if os.environ.get("GAMUT_WRITE_PROMPTS"):
        file.write_text(told, encoding="utf-8")
    assert told == file.read_text(encoding="utf-8")
