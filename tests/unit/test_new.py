"""Packages that ``gamut new`` writes: they pass their own tests, and bad names write nothing."""

import os
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from rollout.commands.new import main, write_package
from rollout.errors import ConfigError, UnknownNameError

ROOT = Path(__file__).parents[2]
KINDS = ("bridge", "policy", "evaluator", "algorithm")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.heavy
@pytest.mark.process
def test_new_packages_are_clean_and_pass_their_own_tests(here, capsys):
    for kind in KINDS:
        assert main([kind, f"zoo_{kind}"]) == 0
        written = {str(path) for path in Path(f"zoo_{kind}").rglob("*") if path.is_file()}
        assert set(capsys.readouterr().out.splitlines()[:-1]) == written
        assert not [path for path in written if "NAME" in path or "tmpl" in path]
    folders = [here / f"zoo_{kind}" for kind in KINDS]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, [*folders, ROOT]))}
    tests = ["pytest", "-q", "-W", "error", "-p", "no:cacheprovider", "--import-mode=importlib"]
    for command in (
        ["ruff", "check", "--isolated", "--no-cache"],
        ["ruff", "format", "--isolated", "--no-cache", "--check"],
        tests,
    ):
        done = subprocess.run(
            [sys.executable, "-m", *command, *map(str, folders)],
            env=environment,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.heavy
@pytest.mark.process
def test_an_editable_package_is_found_from_the_folder_above(here):
    # There the folder of the project looks like a package of the same name to Python.
    write_package("bridge", "zoo_bridge", here / "zoo_bridge")
    build = "from setuptools.build_meta import build_editable; build_editable('..')"
    subprocess.run([sys.executable, "-c", build], cwd=here / "zoo_bridge", check=True, timeout=120)
    [wheel] = here.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        [path] = [name for name in archive.namelist() if name.endswith(".pth")]
        added = archive.read(path).decode().strip()
    assert (Path(added) / "zoo_bridge" / "bridge.py").is_file()


@pytest.mark.heavy
@pytest.mark.process
def test_a_package_within_another_project_has_its_own_settings_of_pytest(here):
    (here / "pyproject.toml").write_text(
        "[tool.pytest.ini_options]\naddopts = '--no-such-option'\n"
    )
    write_package("evaluator", "zoo_evaluator", here / "zoo_evaluator")
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([".", str(ROOT)])}
    subprocess.run(command, cwd=here / "zoo_evaluator", env=environment, check=True, timeout=120)


@pytest.mark.parametrize("kind", KINDS)
def test_the_entry_point_names_the_class(here, kind):
    write_package(kind, f"zoo_{kind}", here / "p")
    project = tomllib.loads((here / "p" / "pyproject.toml").read_text())["project"]
    [(group, entries)] = project["entry-points"].items()
    assert group == {"policy": "gamut.policies"}.get(kind, f"gamut.{kind}s")
    [(name, target)] = entries.items()
    assert name == project["name"] == f"zoo_{kind}"
    module, _, attribute = target.partition(":")
    exports = (here / "p" / module / "__init__.py").read_text()
    assert f'__all__ = ["{attribute}"]' in exports


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("my-game", "expected an identifier in lower case.*got 'my-game'; nearest: my_game"),
        ("MyGame", "nearest: mygame"),
        ("2048", r"expected an identifier in lower case, e\.g\. my_bridge, got '2048'$"),
        ("lambda", "expected an identifier"),
        ("game_", "nearest: game"),
        ("../game", "nearest: game"),
        ("crafter", "there is already a bridge 'crafter'"),
        ("json", "there is already a module 'json'"),
        ("rollout", "there is already a module 'rollout'"),
    ],
)
def test_a_bad_name_writes_nothing(here, name, why):
    with pytest.raises(ConfigError, match=why):
        write_package("bridge", name, here / "p")
    assert not list(here.iterdir())


def test_nothing_is_overwritten(here, capsys):
    (here / "zoo").mkdir()
    (here / "zoo" / "thesis.txt").touch()
    assert main(["bridge", "zoo"]) == 2
    assert "error: zoo exists; nothing is overwritten" in capsys.readouterr().err
    assert [path.name for path in (here / "zoo").iterdir()] == ["thesis.txt"]
    assert main(["bridge", "zoo", "--out", "other"]) == 0
    assert (here / "other" / "zoo" / "bridge.py").exists()


def test_an_unknown_kind_names_the_nearest(here):
    with pytest.raises(UnknownNameError, match=r"unknown kind of package 'polcy'. Nearest: policy"):
        write_package("polcy", "zoo", here / "zoo")


def test_templates_are_package_data():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "templates/**/*.tmpl" in project["tool"]["setuptools"]["package-data"]["rollout"]
