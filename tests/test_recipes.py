"""The recipes of ``docs/recipes.md`` run as they stand there, each in an environment of its own."""

import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from bridges.mineflayer.node import packages_problem
from rollout.testing.chat_server import ChatServer

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "recipes.md").read_text()
LIMIT_S = 600  # of a recipe; three minutes on two quiet cores

pytestmark = [pytest.mark.process, pytest.mark.long]

SECTION = re.compile(r"^## (.*?)\n(.*?)(?=^## |\Z)", re.DOTALL | re.MULTILINE)
BLOCK = re.compile(
    r"(?:`(?P<name>[\w./]+)`[^`\n]*:\n\n)?^```(?P<kind>\w*)\n(?P<text>.*?)^```",
    re.DOTALL | re.MULTILINE,
)
RECIPES = dict(SECTION.findall(PAGE))
ADDRESS = "http://127.0.0.1:8000/v1"
MAINS = {
    "gamut": "from rollout.commands.gamut import main",
    "pip": "from pip._internal.cli.main import main",
}


@pytest.fixture
def environment(tmp_path):
    """Environment variables in which ``pip`` installs into a folder of the test."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    packages = next((tmp_path / "venv").glob("lib/python*/site-packages"))
    ours = sysconfig.get_path("purelib")
    (packages / "ours.pth").write_text(f"import site; site.addsitedir({ours!r})\n")
    programs = tmp_path / "venv" / "bin"
    for name, line in MAINS.items():
        (programs / name).write_text(f"#!{programs}/python\nimport sys\n{line}\nsys.exit(main())\n")
        (programs / name).chmod(0o755)
    return {
        **os.environ,
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PIP_NO_BUILD_ISOLATION": "0",  # the setuptools of this environment, without a download
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "WANDB_MODE": "disabled",
    }


@pytest.mark.parametrize("title", RECIPES)
def test_a_recipe_runs_as_it_stands(title, tmp_path, environment):
    if "Minecraft" in title and (problem := packages_problem()):
        pytest.skip(problem)
    here, ran = tmp_path / "here", 0
    here.mkdir()
    with ChatServer(lambda _: "```js\nawait bot.waitForTicks(5);\n```") as server:
        for found in BLOCK.finditer(RECIPES[title]):
            if found["kind"]:
                assert found["name"], f"a file without a name:\n{found['text']}"
                (here / found["name"]).parent.mkdir(exist_ok=True)
                (here / found["name"]).write_text(found["text"])
                continue
            ran += 1
            commands = found["text"].replace(ADDRESS, server.url)
            done = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", commands],
                cwd=here,
                env=environment,
                capture_output=True,
                text=True,
                timeout=LIMIT_S,
                check=False,
            )
            assert done.returncode == 0, f"{commands}\n{done.stdout}\n{done.stderr}"
    assert ran == 1
    assert bool(server.requests) == ("model" in title)
