"""The figures of README and docs are those that the published episodes give."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.heavy

ROOT = Path(__file__).parents[3]


def words(text):
    return " ".join(text.split())


def test_the_prose_has_the_figures_that_the_episodes_give():
    command = [sys.executable, "-I", ROOT / "benchmarks" / "reanalysis.py"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert not done.stderr
    said = [line.partition(": ") for line in done.stdout.splitlines()]
    pages = {name: words((ROOT / name).read_text()) for name, *_ in said}
    assert {"README.md", "docs/sweep.md", "docs/known.md"} <= pages.keys()
    missing = [f"{name}: {text}" for name, _, text in said if words(text) not in pages[name]]
    assert not missing, "\n".join(missing)
    assert all(re.search(r"\d", text) for *_, text in said)
