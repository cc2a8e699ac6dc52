"""The commands of README and docs/vlm.md by which a model plays run as written.

Replaced are the address of the server, and the number of episodes and of actors. The command of
judges has tests of its own, in tests/unit/judge.
"""

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
PAGES = {
    "README": (ROOT / "README.md").read_text().split("## Let a language model play")[1],
    "vlm": (ROOT / "docs" / "vlm.md").read_text(),
}


def commands(text):
    """The commands of the first section of a page that play or look at what was played."""
    found = COMMAND.findall(text.split("## Record a dataset")[0])
    return [each for each in found if not each.startswith("judge")]


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
    with ChatServer(lambda _: "<thought>on</thought><action>forward</action>") as server:
        for each in told:
            line = each.replace("http://127.0.0.1:8000/v1", server.url)
            if line.startswith("collect"):
                line += " episodes=2 actors=0"
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
