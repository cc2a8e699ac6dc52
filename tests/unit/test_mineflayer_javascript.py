"""The tests of the game itself, in JavaScript: ``node --test`` on each file of ``game/test``."""

import subprocess

import pytest

from bridges.mineflayer.bridge import game_command
from bridges.mineflayer.node import GAME, packages_problem

FILES = sorted(path.name for path in (GAME / "test").glob("*.test.js"))

pytestmark = [
    pytest.mark.process,
    pytest.mark.heavy,
    pytest.mark.skipif(bool(packages_problem()), reason="run `make mineflayer`"),
]


def test_there_is_something_to_run():
    assert len(FILES) > 20


@pytest.mark.parametrize("name", FILES)
def test_file(name):
    run(name)


@pytest.mark.long
def test_servers_of_all_versions():
    run("remote_versions.test.js", ALL_VERSIONS="1")


def run(name, **more):
    (*node, _), env = game_command()
    done = subprocess.run(
        [*node, "--test", "--test-reporter=tap", f"test/{name}"],
        cwd=GAME,
        env={"TZ": "UTC", "PATH": "/usr/bin:/bin", **env, **more},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert "\n# pass 0\n" not in done.stdout
