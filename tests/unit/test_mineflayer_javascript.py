"""The tests of the game itself, in JavaScript: ``node --test`` on the files of ``game/test``."""

import subprocess
from itertools import groupby

import pytest

from bridges.mineflayer.bridge import game_command
from bridges.mineflayer.node import GAME, packages_problem

LARGE = ("actions", "sandbox", "survival")


def group(name):
    """The process of a file: that of its family, its own, or one that all others share.

    To load the libraries takes longer than most of the tests. A file with servers has its own.
    """
    stem = name.partition(".")[0]
    family = stem.partition("_")[0]
    return stem if family == "remote" else family if family in LARGE else "others"


FILES = sorted((path.name for path in (GAME / "test").glob("*.test.js")), key=group)

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
@pytest.mark.parametrize(
    "file", [file for file in FILES if "env.LONG" in (GAME / "test" / file).read_text()]
)
def test_all_versions_of_servers_all_seeds(file):
    run([file], LONG="1")


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
    failed = done.stdout[max(0, done.stdout.find("not ok ")) :]
    assert done.returncode == 0, failed[:6000] + done.stdout[-500:] + done.stderr[-2000:]
    assert "\n# pass 0\n" not in done.stdout
