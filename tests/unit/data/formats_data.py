"""Datasets for tests of formats, and what must be equal after an export and an import."""

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from gymnasium import spaces
from store_fragments import STATES, frames, make_manifest, make_spec
from store_fragments import Player as MadeUp
from test_round_trip import record

from rollout.api import State
from rollout.data import Dataset, doctor

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "gamut-formats"
FOREIGN = Path(__file__).parent / "foreign"
PLAIN = {"rgb": frames(16, 24, 3), "grey": frames(12, 10), "position": spaces.Box(-1, 1, (3,))}
STACKED = {
    "stack": frames(4, 16, 16),
    "health": spaces.Discrete(21),
    "map": spaces.Box(0, 9, (2, 3)),
}
ACTIONS = {"keys": spaces.MultiDiscrete([3, 2]), "camera": spaces.Box(-1, 1, (2,))}


class Player(MadeUp):
    """A player whose starts are states of the task."""

    def start(self, episode, attempt=0):
        start = super().start(episode, attempt)
        return replace(start, state=State(start.state.index % STATES.size, {}))


def make(path, observations=PLAIN, actions=None, *, details=False, **about):
    """Records made-up episodes and returns the player that knows them."""
    player = Player(make_spec(observations, actions), details=details, instance=3)
    manifest = make_manifest(player.spec, details=details, **about)
    record(path, player, 5, manifest=manifest)
    return player


def assert_same(one, other):
    """Every episode with a result has the same columns, start and end in both datasets."""
    assert doctor(other).clean
    with Dataset(one) as a, Dataset(other) as b:
        assert [c.name for c in a.manifest.columns] == [c.name for c in b.manifest.columns]
        assert a.manifest.state_space.digest == b.manifest.state_space.digest
        assert a.manifest.task["name"] == b.manifest.task["name"]
        refs = a.episodes()
        assert len(refs) == len(b.episodes()) > 1
        for ref in refs:
            (same,) = b.episodes(episode=ref.episode)
            for name in ("state", "state_set", "seed", "policy", "end", "length", "attempt"):
                assert getattr(same, name) == getattr(ref, name)
            left, right = a.read(ref), b.read(same)
            for name in left.columns.keys() - {"slot"}:
                np.testing.assert_array_equal(left.columns[name], right.columns[name], name)
                assert left.columns[name].dtype == right.columns[name].dtype
            assert left.final_observations.keys() == right.final_observations.keys()
            for key, value in left.final_observations.items():
                np.testing.assert_array_equal(value, right.final_observations[key])
            assert left.final_details == right.final_details


def runs(python):
    """Returns True if a Python can be started."""
    done = subprocess.run([python, "-c", ""], capture_output=True, timeout=60, check=False)
    return done.returncode == 0


def python_with(*requirements, version="3.12", alone=()):
    """Returns the Python of an environment with these packages; skips where there can be none.

    Those of ``alone`` are installed without what they need.
    """
    name = sha256(" ".join((version, *requirements, *alone)).encode()).hexdigest()[:12]
    folder = CACHE / name
    python = folder / "bin" / "python"
    if (folder / "ready").exists():
        return python
    uv = Path(sys.executable).with_name("uv")
    places = [shutil.which(f"python{version}")]
    places += sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
    # Pyenv has a command for every version that it knows, which fails where it is not selected.
    found = next((place for place in places if place and runs(place)), None)
    if not uv.exists() or found is None:
        pytest.skip(f"needs uv and Python {version} for {', '.join(requirements)}")
    CACHE.mkdir(parents=True, exist_ok=True)
    subprocess.run([uv, "venv", "-q", "--clear", "-p", found, folder], check=True, timeout=60)
    for packages in (requirements, ("--no-deps", *alone) if alone else ()):
        if not packages:
            continue
        made = subprocess.run(
            [uv, "pip", "install", "-q", "--python", python, *packages],
            capture_output=True,
            text=True,
            timeout=800,
            check=False,
        )
        if made.returncode:
            pytest.skip(f"cannot install {', '.join(packages)}: {made.stderr[-300:]}")
    (folder / "ready").touch()
    return python


def run_with(python, script, *arguments):
    """Runs a script of ``foreign/`` in an environment of its own; it must not fail."""
    done = subprocess.run(
        [python, FOREIGN / script, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=800,
        check=False,
        cwd=arguments[0] if Path(arguments[0]).is_dir() else None,
        env={**os.environ, "HF_HUB_OFFLINE": "1", "RAY_raylet_start_wait_time_s": "600"},
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
