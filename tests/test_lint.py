"""``make lint``, as one of the tests: its processor time is free while others wait."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_make_lint():
    done = subprocess.run(
        ["make", "lint"], cwd=ROOT, capture_output=True, text=True, timeout=800, check=False
    )
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-4_000:]
