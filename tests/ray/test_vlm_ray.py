"""The policy ``vlm`` with actors: one inference actor asks for all games."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from rollout.data import Dataset
from rollout.testing.chat_server import ChatServer, Scripted

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.ray]


def test_games_of_all_actors_are_asked_for_at_once_by_one_process(tmp_path):
    task = {"evaluator": {"name": "signal_goal", "signal": "reached"}, "limits": {"steps": 6}}
    (tmp_path / "task.yaml").write_text(yaml.safe_dump(task))

    def script(request):
        seed = request["seed"]
        return Scripted(f"<thought>x</thought><action>{seed % 5}</action>", delay_s=0.05)

    with ChatServer(script) as server:
        config = {
            "output": str(tmp_path / "run"),
            "bridge": {"name": "fake"},
            "task": str(tmp_path / "task.yaml"),
            "policy": {
                "name": "vlm",
                "endpoint": {"url": server.url},
                "model": "tiny",
                "fallback": "random",
                "sampling": {"seed": True},
            },
            "instances": 8,
            "actors": 2,
            "episodes": 24,
        }
        (tmp_path / "config.yaml").write_text(yaml.safe_dump(config))
        script_file = str(ROOT / "scripts" / "collect.py")
        command = [sys.executable, script_file, "--config", str(tmp_path / "config.yaml")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert server.most > 8  # of both actors together
        assert len(list((tmp_path / "run" / "replies").iterdir())) == 1
        assert max(server.paid.values()) == 1
        made = len(server.requests)
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["inference"]["actors"] == 1
    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    figures = [json.loads(line) for line in lines]
    assert figures[-1]["models/spent/calls"] == made, "asked of the inference actor at the end"
    assert max(line["models/in_flight"] for line in figures if "models/in_flight" in line) <= 64
    with Dataset(tmp_path / "run" / "dataset") as dataset:
        steps = sum(ref.length for ref in dataset.episodes())
    assert steps <= made  # some may be of episodes that had not ended
    more = subprocess.run(
        [*command, "--set", "inference.actors=2", f"output={tmp_path / 'two'}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert more.returncode == 2
    assert "expected 1, since this policy has limits" in more.stdout + more.stderr
