"""The policy ``vlm`` with actors: one inference actor asks for all games."""

import itertools
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
import yaml

from rollout.data import Dataset
from rollout.testing.chat_server import ChatServer, Scripted

ROOT = Path(__file__).resolve().parents[2]
SECRET = "sk-secret-of-the-inference-actor"
pytestmark = [pytest.mark.ray]


def logs_of_ray(began):
    """The logs of Ray since the run began; they are removed with it."""
    logs = Path(tempfile.gettempdir()).glob("gamut-ray-*/r/session_2*/logs/*")
    return {p: p.read_bytes() for p in logs if p.is_file() and p.stat().st_mtime >= began}


def test_games_of_all_actors_are_asked_for_at_once_by_one_process(tmp_path, monkeypatch):
    task = {"evaluator": {"name": "signal_goal", "signal": "reached"}, "limits": {"steps": 6}}
    (tmp_path / "task.yaml").write_text(yaml.safe_dump(task))

    monkeypatch.setenv("MY_KEY", SECRET)
    began, lines, logs, calls = time.time(), [], {}, itertools.count()

    def script(request):
        seed = request["seed"]
        if not lines:
            told = subprocess.run(["ps", "-eo", "args"], capture_output=True, check=True)
            lines.append(told.stdout)
        if next(calls) % 20 == 0:
            logs.update(logs_of_ray(began))
        return Scripted(f"<thought>x</thought><action>{seed % 5}</action>", delay_s=0.05)

    with ChatServer(script) as server:
        config = {
            "output": str(tmp_path / "run"),
            "bridge": {"name": "fake"},
            "task": str(tmp_path / "task.yaml"),
            "policy": {
                "name": "vlm",
                "endpoint": {"url": server.url, "key_env": "MY_KEY"},
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
        assert set(server.keys) == {f"Bearer {SECRET}"}
    assert SECRET not in done.stdout + done.stderr
    files = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert logs
    assert not [path for path, content in {**files, **logs}.items() if SECRET.encode() in content]
    assert SECRET.encode() not in lines[0], "in no line of ps"
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
