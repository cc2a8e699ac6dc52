"""Who plays StarBench's battles: auto-battle, search, language models; and its tables."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import yaml

from bridges.starbench import agents
from bridges.starbench.options import NO_OP, SNAPSHOT, SNAPSHOT_BYTES
from bridges.starbench.oracle import auto, search
from bridges.starbench.rules.battle import Battle
from bridges.starbench.rules.view import RELEASE, action_parts
from rollout.cli import main
from rollout.errors import ConfigError
from rollout.evaluate.config import EvaluateConfig
from rollout.evaluate.evaluate import evaluate
from rollout.testing.chat_server import ChatServer

pytestmark = pytest.mark.heavy

CONFIGS = Path(__file__).parents[2] / "configs" / "starbench"


def finished(battle, choose):
    while battle.outcome is None:
        assert battle.act(choose(battle))
    return battle


def test_auto_battle_releases_what_is_ready_in_its_order():
    battle = Battle("cocolia", 0, {"energy": 100})
    slots = []
    while battle.offered:
        slot, move, _ = action_parts(auto.choose(battle))
        assert move == RELEASE
        slots.append(slot)
        battle.act(auto.choose(battle))
    assert slots[:2] == [1, 2]  # Sparkle, Silver Wolf


def test_auto_battle_wins_what_it_should():
    ends = [finished(Battle("cocolia", seed), auto.choose) for seed in range(12)]
    assert sum(battle.outcome == "won" for battle in ends) >= 6


@pytest.mark.parametrize(("task", "seed"), [("cocolia", 1), ("xianzhou", 0), ("stardevourer", 0)])
def test_search_does_as_planned_and_better_than_auto_battle(task, seed):
    battle = Battle(task, seed)
    before = battle.snapshot()
    planned = search.plan(battle, 1)
    assert battle.snapshot() == before
    made = []

    def choose(battle):
        made.append(search.choose(battle, beam=1))
        return made[-1]

    assert finished(battle, choose).outcome == "won"
    assert made == planned
    assert search.worth(battle) > search.worth(finished(Battle(task, seed), auto.choose))


def test_functions_read_whole_battles():
    battle = Battle("feixiao", 4)
    rows = np.zeros((2, SNAPSHOT_BYTES), np.uint8)
    saved = np.frombuffer(battle.snapshot(), np.uint8)
    rows[1, : len(saved)] = saved
    assert agents.auto_battle({SNAPSHOT: rows}).tolist() == [NO_OP, auto.choose(battle)]
    with pytest.raises(ConfigError, match="snapshots=true"):
        agents.search_player({"observation": rows})


def run(capsys, output, name, **changed):
    config = yaml.safe_load((CONFIGS / f"{name}.yaml").read_text())
    config |= changed
    file = output / "config.yaml"
    file.write_text(yaml.safe_dump(config))
    arguments = ["--config", str(file), "--set", f"output={output / 'run'}"]
    status = main(evaluate, EvaluateConfig, "Evaluates.", arguments)
    assert status == 0, capsys.readouterr().err
    return (output / "run" / "report.md").read_text()


def test_the_tables_stand_beside_the_papers(capsys, tmp_path):
    config = yaml.safe_load((CONFIGS / "tables.yaml").read_text())
    players = {name: config["players"][name] for name in ("random", "auto-battle")}
    sets = {"cocolia": {**config["sets"]["cocolia"], "size": 2}}
    report = run(capsys, tmp_path, "tables", players=players, sets=sets, width=2)
    assert "| **auto-battle** (sampled, this run) |" in report
    assert "| GPT TA | 100.0 / 31.4 ± 2.6 / 71.1 ± 1.8 |" in report


def test_a_language_model_plays_from_text(capsys, tmp_path):
    def reply(request):
        asked = json.dumps(request["messages"][-1])
        return f"<thought>first</thought><action>{re.search(r'[(]., ., .[)]', asked)[0]}</action>"

    config = yaml.safe_load((CONFIGS / "vlm.yaml").read_text())
    with ChatServer(reply) as server:
        players = {"react": config["players"]["react"]}
        players["react"]["endpoint"] = {"url": server.url}
        players["react"]["limits"]["episode_calls"] = 5
        report = run(capsys, tmp_path, "vlm", players=players, episodes_per_state=1, instances=1)
    assert len(server.requests) == 5
    assert "Skill points" in json.dumps(server.requests[-1])
    assert "| react | cocolia | sampled | 5 | 0.0% |" in report
