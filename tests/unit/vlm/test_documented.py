"""The commands of README and docs/vlm.md by which a model plays and judges run as written.

Replaced are the address of the server and the number of episodes; those of docs/vlm.md play without
actors, those of README with the default number, on Ray.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from rollout.testing.chat_server import ChatServer

ROOT = Path(__file__).resolve().parents[3]
GAMUT = Path(sys.executable).with_name("gamut")
COMMAND = re.compile(r"^(?:\.venv/bin/)?gamut ((?:[^\n]*\\\n)*[^\n]*)$", re.MULTILINE)
SECTION = re.compile(r"^## Let a language model play\n(.*?)^## ", re.MULTILINE | re.DOTALL)
PAGES = {
    "README": SECTION.findall((ROOT / "README.md").read_text())[0],
    "vlm": (ROOT / "docs" / "vlm.md").read_text(),
}


VERDICT = {
    "evidence": "a sheep",
    "scores": {"progress": 7, "control": 6, "correction": None, "efficiency": 5},
    "success": True,
}


def answer(request):
    """The verdict of a judge, or the action of a player."""
    if "You rate" in str(request["messages"]):
        return json.dumps(VERDICT)
    return "<thought>on</thought><action>forward</action>"


USERS_FILES = ("VIDEOS", "runs/mine")  # what only a user of the page has


def commands(text):
    """The commands ``gamut`` of a text that need no file of a user, without the program's name."""
    return [each for each in COMMAND.findall(text) if not any(n in each for n in USERS_FILES)]


@pytest.mark.long
@pytest.mark.process
@pytest.mark.parametrize("page", PAGES)
def test_the_commands_run(page, tmp_path):
    (tmp_path / "configs").symlink_to(ROOT / "configs")
    told = commands(PAGES[page])
    assert len(told) >= 3
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "MY_KEY": "secret",
        "WANDB_MODE": "disabled",
    }
    with ChatServer(answer) as server:
        for each in told:
            line = each.replace("http://127.0.0.1:8000/v1", server.url)
            if line.startswith("collect"):
                line += " episodes=2" + " actors=0" * (page == "vlm")
            done = subprocess.run(
                ["/bin/sh", "-c", f'"{sys.executable}" "{GAMUT}" {line}'],
                cwd=tmp_path,
                env=environment,
                capture_output=True,
                text=True,
                timeout=600,
                check=False,
            )
            assert done.returncode == 0, f"{each}\n{done.stdout}\n{done.stderr}"
    assert set(server.keys) == {"Bearer secret"}
    assert {request["model"] for request in server.requests} == {"NAME"}
    judged = [request for request in server.requests if "You rate" in str(request["messages"])]
    assert bool(judged) == any(each.startswith("judge") for each in told)
