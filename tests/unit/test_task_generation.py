"""Tasks that a language model writes: what is sent back to it, what is kept, what is reported."""

import json

import pytest

from bridges.mineflayer.node import packages_problem
from bridges.mineflayer.task_writing import DIMENSIONS, parse, prompt
from rollout import task_generation
from rollout.commands.tasks import main
from rollout.task_trial import TaskTrial
from rollout.testing.chat_server import ChatServer

GOOD = """Here it is.
```yaml
thinking: Bread is made of wheat at a table.
text: Craft a loaf of bread.
commands:
  - /give @s wheat 6
  - /give @s crafting_table
goal: {count: craft_item, of: [bread]}
criteria: {Task Progress: [the table stands, there is bread]}
```"""
UNKNOWN = GOOD.replace("wheat 6", "wheats 6")
PRODUCT = GOOD.replace("wheat 6", "bread 6")
STORY = "I cannot do that, sorry."


def run(tmp_path, *answers, goal="Craft bread.", more=()):
    """The exit status, the requests and the report of a generation."""
    asked = []

    def script(request):
        asked.append(request)
        return answers[min(len(asked), len(answers)) - 1]

    with ChatServer(script) as server:
        status = main(
            ["generate", goal, "--bridge", "mineflayer", "--out", str(tmp_path / "new"), "--url",
             server.url, "--model", "writer", *more]
        )  # fmt: skip
    report = tmp_path / "new" / "generated.json"
    return status, asked, json.loads(report.read_text()) if report.exists() else None


@pytest.fixture
def begins(monkeypatch):
    """Whether the game begins, without one: its errors in order, then none."""
    errors = []
    monkeypatch.setattr(
        task_generation,
        "try_task",
        lambda *_: TaskTrial(errors.pop(0) if errors else "", won=None),
    )
    return errors


def test_what_is_wrong_is_sent_back_until_the_task_can_be_used(tmp_path, begins):
    begins += ["the command /give failed"]
    answers = [STORY, UNKNOWN, PRODUCT, GOOD, GOOD]
    status, asked, report = run(tmp_path, *answers, more=("--tries", "5"))
    assert status == 0
    said = [request["messages"][-1]["content"] for request in asked]
    assert "expected a mapping" in said[1]
    assert "Unknown item 'wheats'" in said[2]
    assert "the product itself" in said[3]
    assert "in the game: the command /give failed" in said[4]
    (task,) = report["tasks"]
    assert (task["passed"], task["passed_at_first"]) == (["read", "checked", "begun", "shown"], [])
    assert report["shares"]["begun"] == {"first": 0.0, "last": 1.0}
    path = tmp_path / "new" / f"{task['task']}.yaml"
    assert main(["check", str(path), "--bridge", "mineflayer"]) == 0
    assert "solvable: oracle" in path.read_text()
    assert "there is bread" in path.read_text()


def test_tries_are_bounded_and_what_failed_is_told(tmp_path, begins):
    status, asked, report = run(tmp_path, UNKNOWN, more=("--tries", "2"))
    assert (status, len(asked)) == (3, 2)
    (task,) = report["tasks"]
    assert task["passed"] == ["read"]
    assert task["problems"][0]["given"] == "/give @s wheats 6"
    assert not list((tmp_path / "new").glob("*.yaml"))


def test_a_goal_may_be_a_task_and_its_replies_are_kept(tmp_path, begins):
    for _ in range(2):
        _, asked, _ = run(tmp_path, GOOD, goal="atomic/craft_bread", more=("--difficulty", "hard"))
    assert asked == []
    assert (tmp_path / "new" / "craft_bread_at_a_crafting_table_hard.yaml").exists()


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("text: a\ncommands: []\nreward: 3", "unknown key 'reward'"),
        ("commands: []", "text: expected"),
        ("text: a\ncommands: /give", "commands: expected a list"),
        ("text: a\ncommands: []\ngoal: {count: crafted}", "unknown count 'crafted'"),
        ("text: a\ncommands: []\ngoal: {count: craft_item, of: [breads]}", "Nearest: bread"),
        ("text: a\ncommands: []\ngoal: {reach: block}", "`of` as a list"),
        ("text: a\ncommands: []\ncriteria: {Beauty: [a]}", "criteria: expected lists"),
        ("text: a\ncommands: [\n", "not valid YAML"),
    ],
)
def test_answers_are_read_strictly(answer, said):
    draft = parse("x", answer, "simple", 5)
    assert draft.document is None
    assert said in draft.problems[0].problem


def test_the_request_names_what_is_valid():
    assert all(each in prompt("simple") for each in (*DIMENSIONS, "craft_item", "at most 36 slots"))
    assert "nothing to do with the task" in prompt("hard")
    assert "nothing to do with the task" not in prompt("simple")


@pytest.mark.process
@pytest.mark.skipif(bool(packages_problem()), reason="run `make mineflayer`")
def test_the_trial_is_played_in_the_game(tmp_path):
    _, _, report = run(tmp_path, GOOD, more=("--play",))
    assert report["tasks"][0]["solvable"] == "won"
