"""Evaluations over several tasks: what is played, what a judge adds, and the tables."""

import json
import re
import shutil

import numpy as np
import pytest
import yaml

from rollout.cli import main
from rollout.evaluate.config import EvaluateConfig
from rollout.judge.rubric import load_rubric
from rollout.suite.config import Cell, SuiteConfig
from rollout.suite.jobs import job_of
from rollout.suite.tables import Episodes, Tables
from rollout.testing.chat_server import ChatServer

pytestmark = pytest.mark.heavy

MCU = load_rubric("mcu")
AT = {"endpoint": {"url": "http://127.0.0.1:9/v1"}}


@pytest.fixture
def suite(tmp_path, capfd):
    """Returns a function that runs ``gamut evaluate`` on two forms of a task of the fake game."""
    for name, steps in (("find_near", 15), ("find_far", 4)):
        goal = {"name": "signal_goal", "signal": "reached"}
        task = {"evaluator": goal, "limits": {"steps": steps}}
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(task))
    forms = {"simple": "find_near", "hard": "find_far"}
    config = {
        "output": str(tmp_path / "out"),
        "bridge": {"name": "fake"},
        "tasks": {form: {"find": str(tmp_path / f"{name}.yaml")} for form, name in forms.items()},
        "players": {
            "chance": {"policy": "random"},
            "other": {"policy": {"name": "random"}, "tasks": ["fin*"]},
        },
        "state_set": {"split": "test", "size": 5},
        "wandb": {"mode": "disabled"},
    }

    def run(status=0, resume=False, estimate=False, **more):
        path = tmp_path / "suite.yaml"
        path.write_text(yaml.safe_dump({**config, **more}))
        function, model = job_of({**config, **more})
        arguments = ["--config", str(path), *["--resume"] * resume, *["--estimate"] * estimate]
        done = main(function, model, "", arguments)
        said = "".join(capfd.readouterr())
        assert done == status, said
        return said

    return run


def judged(request):
    """Rates short recordings better, so that it is no constant."""
    texts = [part["text"] for part in request["messages"][1]["content"] if part["type"] == "text"]
    length = int(re.search(r"of (\d+)", texts[0])[1])
    return json.dumps({"evidence": "e", "scores": dict.fromkeys(MCU.criteria, 10 - length / 2)})


def test_every_player_plays_every_task_once_and_is_judged(suite, tmp_path):
    with ChatServer(judged) as server:
        judge = {"endpoint": {"url": server.url, "calls": 2}, "model": "eye"}
        suite(judge=judge)
        made = len(server.requests)
        assert made == 2 * 5, "the two players play the same, which is paid once"
        assert "whether the agent leaves the place" in server.requests[0]["messages"][0]["content"]
        suite(judge=judge, resume=True)
        assert len(server.requests) == made
    out = tmp_path / "out"
    cells = {
        f"{form}.find.{player}" for form in ("simple", "hard") for player in ("chance", "other")
    }
    assert {path.name for path in (out / "runs").iterdir()} == cells
    summary = json.loads((out / "summary.json").read_text())
    assert summary["results"] == {"episodes": 20}
    rows = {(row["difficulty"], row["player"]): row for row in summary["findings"]["players"]}
    assert set(rows) == {(f, p) for f in ("simple", "hard") for p in ("chance", "other")}
    assert all((row["tasks"], row["episodes"]) == (1, 5) for row in rows.values())
    assert rows["hard", "chance"]["material"]["point"] >= 80
    assert {row["player"] for row in summary["findings"]["change"]} == {"chance", "other"}
    assert summary["judge"]["progress"]["against"]["clips"] == 20
    report = (out / "report.md").read_text()
    for title in (
        "## simple",
        "## hard",
        "## Between tasks",
        "## Within tasks",
        "beside the machine",
    ):
        assert title in report
    assert "| Material Selection and Usage |" in report


def test_verdicts_on_cells_that_are_done_are_estimated_once(suite, tmp_path):
    with ChatServer(judged) as server:
        judge = {"endpoint": {"url": server.url, "calls": 2}, "model": "eye"}
        suite(judge=judge)
        for cell in sorted((tmp_path / "out" / "runs").iterdir())[:2]:
            shutil.rmtree(cell)
        said = suite(judge=judge, resume=True, estimate=True)
    [line] = [line for line in said.splitlines() if line.startswith("| verdicts ")]
    assert line.split("|")[2].strip() == "2 of 20"


def test_the_tables_are_there_without_a_judge(suite, tmp_path):
    suite()
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    row = summary["findings"]["players"][0]
    assert row["success"]["low"] <= row["success"]["point"] <= row["success"]["high"]
    assert "progress" not in row


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"tasks": {}}, "tasks: is empty"),
        ({"tasks": {"simple": {"find": "gone"}}}, "simple, find, chance: unknown task"),
        ({"players": {"a": {"policy": "random", "tasks": ["x*"]}}}, "players.a.tasks: none of"),
        ({"players": {"a": {"policy": "random", "tasks": []}}}, "players.a.tasks: none of"),
        ({"players": {"a": {"policy": {"name": "scripted", "actions": "x"}}}}, "hard, find, a"),
        ({"judge": {"model": "eye", "output": "x"}}, "judge.output: the suite sets it"),
        ({"judge": {"model": "eye", **AT, "criteria": "gone"}}, "no file or folder gone"),
        ({"judge": {"modl": "eye"}}, "model"),
        ({"judge": {"model": "eye", "endpoint": {"url": "x"}}}, "endpoint.url"),
        ({"judge": {"model": "eye", **AT, "ratings": "gone.csv"}}, "ratings: gone.csv"),
        ({"state_set": {"split": "test"}}, "expected a number of states"),
        ({"recording": {"enabled": False}}, "cannot be rated"),
    ],
)
def test_bad_input_is_refused_before_anything_is_played(suite, tmp_path, more, says):
    assert says in suite(2, **more)
    assert not (tmp_path / "out").exists()


def test_a_configuration_of_one_task_is_played_as_before():
    assert job_of({"task": "x", "players": {}})[1] is EvaluateConfig


def test_a_task_is_named_in_the_options_of_a_player():
    player = {"policy": {"name": "callable", "function": "m:$task"}, "bridge": {"seed": "$name"}}
    config = SuiteConfig.model_validate(
        {
            "output": "o",
            "bridge": {"name": "fake"},
            "tasks": {"simple": {"hunt": "combat_1_pig"}},
            "players": {"scripted": player},
        },
        strict=False,
    )
    cell = next(config.cells())
    assert cell.folder == "simple.hunt.scripted"
    with pytest.raises(Exception, match=r"simple, hunt, scripted.*seed"):
        config.collection(cell)


def test_figures_are_percent_and_what_is_missing_counts_nowhere():
    nan = np.nan
    easy = Episodes(np.array([1.0, 1, 0, nan]), np.array([1.0, 0.5, 0, nan]),
                    {"progress": np.array([10.0, 5, nan, 0])})  # fmt: skip
    hard = Episodes(np.zeros(4), np.zeros(4), {"progress": np.array([1.0, 2, 3, 2])})
    found = {Cell(form, "t", "t", "p"): each for form, each in (("simple", easy), ("hard", hard))}
    tables = Tables(found, MCU, 0.95, judged=True)
    rows = {row["difficulty"]: row for row in tables.by_player()}
    assert rows["simple"]["success"].point == pytest.approx(200 / 3)
    assert rows["simple"]["machine progress"].point == pytest.approx(50)
    assert rows["simple"]["progress"].point == pytest.approx(50)
    assert rows["simple"]["control"] is None
    [change] = tables.by_change()
    assert change["progress"].point == pytest.approx(20 - 50)
    assert change["progress"].low < -30 < change["progress"].high
    assert change["control"] is None
