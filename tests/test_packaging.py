"""A wheel, used where the checkout cannot be seen."""

import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = ("rollout", "policies", "bridges", "configs", "pyproject.toml", "README.md", "LICENSE")
NOT_SHIPPED = ("node_modules", "test", "__pycache__", "Dockerfile")
DATA = (".yaml", ".json", ".js", ".typed", ".npmrc", ".jinja", ".tmpl", ".txt", ".png", ".css")

pytestmark = pytest.mark.heavy


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, built from a copy, so that the build leaves nothing in the checkout."""
    copy = tmp_path_factory.mktemp("source")
    unwanted = shutil.ignore_patterns("node_modules", ".node_modules*", "__pycache__", "*.egg-info")
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, copy / name, ignore=unwanted)
        else:
            shutil.copy2(ROOT / name, copy / name)
    build = ["-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "--no-index", "-w"]
    subprocess.run([sys.executable, *build, copy / "out", copy], check=True, timeout=300)
    (found,) = (copy / "out").glob("*.whl")
    return found


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """Runs a program of an environment with the wheel and this environment's other packages."""
    place = tmp_path_factory.mktemp("env")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True, timeout=300)
    (packages,) = place.glob("lib/python*/site-packages")
    # Of the packages of a folder that is named here, no .pth is read, so no checkout is added.
    (packages / "others.pth").write_text(sysconfig.get_path("purelib"))
    install = ["-m", "pip", "--python", place / "bin" / "python", "install", "-q", "--no-deps"]
    command = [sys.executable, *install, "--no-index", "--ignore-installed", wheel]
    subprocess.run(command, check=True, timeout=300)
    work = tmp_path_factory.mktemp("work")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}

    def run(program, *arguments):
        command = [place / "bin" / program, *arguments]
        how = {"cwd": work, "env": environment, "text": True, "timeout": 300}
        done = subprocess.run(command, capture_output=True, check=False, **how)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


def test_the_wheel_has_every_file_that_is_no_program(wheel):
    held = set(zipfile.ZipFile(wheel).namelist())
    expected = {
        path.relative_to(ROOT).as_posix()
        for name in ("rollout", "policies", "bridges")
        for path in (ROOT / name).rglob("*")
        if path.suffix in DATA or path.name == ".npmrc"
        if not {*path.relative_to(ROOT).parts} & {*NOT_SHIPPED}
        and not any(part.startswith(".node_modules") for part in path.parts)
    }
    moved = {name.replace("rollout/gamut/", "gamut/") for name in expected}
    assert len(expected) > 50
    assert not moved - held
    configs = {path.relative_to(ROOT).as_posix() for path in (ROOT / "configs").rglob("*.yaml")}
    assert not {
        name for name in configs if not any(each.endswith(f"share/gamut/{name}") for each in held)
    } - {name for name in configs if "/grafana/" in name}


def test_an_installed_wheel_works_without_the_checkout(installed):
    where = installed("python", "-c", "import rollout; print(rollout.__file__)")
    assert str(ROOT) not in where
    assert "usage: gamut COMMAND" in installed("gamut", "--help")
    game = ["bridge=gymnasium", "bridge.id=CartPole-v1", "policy=random", "episodes=2", "actors=0"]
    installed("gamut", "collect", "--set", *game, "output=run", "wandb.mode=disabled")
    assert "2 terminated" in installed("gamut", "dataset", "info", "run/dataset")
    assert "passed" in installed("gamut", "check-bridge", "fake", "--steps", "20")


def test_packaged_configurations_are_found_by_name(installed):
    code = (
        "from rollout.config import load_config, CollectConfig;"
        "print(load_config(CollectConfig, 'collect_hunt_sheep.yaml').bridge.name)"
    )
    assert installed("python", "-c", code).strip() == "blockworld"
