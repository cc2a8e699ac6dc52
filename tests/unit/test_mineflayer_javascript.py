"""The tests of the game itself, in JavaScript: ``node --test`` on the files of ``game/test``."""

import subprocess
from itertools import groupby

import pytest

from bridges.mineflayer.bridge import game_command
from bridges.mineflayer.node import GAME, packages_problem

FILES = sorted(path.name for path in (GAME / "test").glob("*.test.js"))
# These share a process: to load the libraries takes longer than most of their tests.
TOGETHER = ("actions", "core", "generator", "mobs", "sandbox", "scene", "survival")


def group(name):
    """The process in which a file is run: one of its own, or one of its family."""
    family = name.partition("_")[0].partition(".")[0]
    return family if family in TOGETHER else name.partition(".")[0]


pytestmark = [
    pytest.mark.process,
    pytest.mark.heavy,
    pytest.mark.skipif(bool(packages_problem()), reason="run `make mineflayer`"),
]


def test_there_is_something_to_run():
    assert len(FILES) > 20


@pytest.mark.parametrize(
    "files", [tuple(f) for _, f in groupby(FILES, group)], ids=lambda f: group(f[0])
)
def test_files(files):
    run(files)


@pytest.mark.long
def test_servers_of_all_versions():
    run(["remote_versions.test.js"], ALL_VERSIONS="1")


def run(files, **more):
    (*node, _), env = game_command()
    done = subprocess.run(
        [*node, "--test", "--test-isolation=none", "--test-reporter=tap", *files],
        cwd=GAME / "test",
        env={"TZ": "UTC", "PATH": "/usr/bin:/bin", **env, **more},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert "\n# pass 0\n" not in done.stdout
