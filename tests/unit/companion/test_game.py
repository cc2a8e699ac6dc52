"""A companion in the real embedded world, with a scripted model in all roles.

After a change of a prompt, read what a model is told, and write the file again:
``GAMUT_WRITE_PROMPTS=1 pytest tests/unit/companion/test_game.py``.
"""

import importlib.util
import json
import os
from pathlib import Path

import pytest

from bridges.mineflayer.node import packages_problem
from rollout.api import Outcome
from rollout.cli import Session
from rollout.collect import collect
from rollout.config import CollectConfig, load_config, parse_set
from rollout.data import Dataset
from rollout.signals import Stop
from rollout.testing.chat_server import ChatServer

_FOUND = importlib.util.spec_from_file_location("c_s", Path(__file__).with_name("scripted.py"))
s = importlib.util.module_from_spec(_FOUND)
_FOUND.loader.exec_module(s)

PROMPTS = Path(__file__).with_name("prompts.txt")
CONFIG = Path(__file__).parents[3] / "configs/mineflayer/companion.yaml"
pytestmark = [
    pytest.mark.process,
    pytest.mark.heavy,
    pytest.mark.skipif(bool(packages_problem()), reason="run `make mineflayer`"),
]
PROGRAMS = {
    "dig": "await mineBlock('dirt', 2);",
    "walk": "const place = bot.players.Ada.entity.position; await bot.pathfinder.goto(new "
    "GoalNear(place.x, place.y, place.z, 2)); await bot.lookAt(place.offset(0, 1.2, 0));",
    "toss": "await bot.toss('dirt', null, 2);",
}


def prompts(requests):
    """Returns what a model is told: the first message, and the first question of each role."""
    told = [requests[0]["messages"][0]["content"], *(r["messages"][1]["content"] for r in requests)]
    chosen = [0, 1, 2, 3, 4, 5, 6]  # the system, route, plan, code, review, judge, and code again
    return "\n\n----------\n".join(told[number] for number in chosen) + "\n"


def answer(request):
    """Answers as the role in the last message wants it."""
    said = request["messages"][-1]["content"]
    if "What does the player want?" in said:
        found = s.ANSWERS["route"]
    elif "Plan it in 3 to 5 subtasks" in said:
        found = s.plan(*PROGRAMS, question="How many", unbound="count")
    elif "Write the program" in said:
        name = next(
            name for name in PROGRAMS if f"subtask {list(PROGRAMS).index(name) + 1}," in said
        )
        found = {"code": f"async function task(bot) {{ {PROGRAMS[name]} }}"}
    else:
        found = s.ANSWERS["review" if "Review this program" in said else "judge"]
    return json.dumps(found)


def test_it_does_what_a_player_asks_for(tmp_path):
    with ChatServer(answer) as server, Stop() as stop:
        chosen = [
            f"policy.endpoint={{url: {server.url}}}",
            "policy.model=m",
            "policy.limits.episode_calls=11",
            *("actors=0", "instances=1", "episodes=1", "wandb.mode=disabled"),
            f"output={tmp_path / 'run'}",
        ]
        config = load_config(CollectConfig, CONFIG, [parse_set(text) for text in chosen])
        assert collect(config, Session(resume=False, stop=stop)) is None
    told = prompts(server.requests)
    if os.environ.get("GAMUT_WRITE_PROMPTS"):
        PROMPTS.write_text(told, encoding="utf-8")
    assert told == PROMPTS.read_text(encoding="utf-8")
    with Dataset(tmp_path / "run") as dataset:
        [episode] = dataset.episodes()
        assert episode.outcome == Outcome.SUCCESS
        told = dataset.read(episode).columns["extra/companion/telemetry"]
    said = [line for each in s.events(told, "said") for line in each["lines"]]
    assert said[:2] == ["Plan: 1 dig, 2 walk, 3 toss", "How many?"]
    assert [each["answer"] for each in s.events(told, "answered")] == ["Two."]
    [dug, *_] = s.events(told, "judged")
    items = [each for each in dug["changed"] if each["key"].startswith("inventory")]
    assert [(each["key"], each["current"]) for each in items] == [("inventory.dirt", 2)]
    [memory] = (tmp_path / "run/memory").glob("*.json")
    assert '"told"' in memory.read_text()
