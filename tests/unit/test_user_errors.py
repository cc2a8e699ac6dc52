"""An error in the user's own code is reported with its place, and its traceback is in run.log."""

import logging
import re
import sys
from pathlib import Path

import pytest

from rollout.cli import main
from rollout.collect import collect
from rollout.config import CollectConfig
from rollout.errors import GameCrashed, PluginError, place_of, trace_of
from rollout.observe.logs import log_trace, set_up_logging

pytestmark = pytest.mark.heavy

CODE = """
from dataclasses import dataclass, field

from rollout.evaluators import GameReward
from rollout.testing.fakes import FakeBridge, FakeInstance
from rollout.testing.players import FakePlayer, FakePolicy

LAMPS = {}


def look_up(name):
    return LAMPS[name]  # THE PLACE


class Instance(FakeInstance):
    def reset(self, slots, starts, *, timeout_s):
        if self.bridge.at == "reset":
            look_up("lamp")
        return super().reset(slots, starts, timeout_s=timeout_s)

    def step(self, actions, *, timeout_s):
        if self.bridge.at == "step":
            look_up("lamp")
        return super().step(actions, timeout_s=timeout_s)


@dataclass(frozen=True)
class Bridge(FakeBridge):
    at: str = field(default="", metadata={"doc": "where it fails"})

    def launch(self, workdir, ports, *, width, timeout_s):
        if self.at == "launch":
            look_up("lamp")
        return Instance(self, workdir, width)


class Player(FakePlayer):
    def act(self, observations, memory, *, details, explore):
        look_up("lamp")


@dataclass(frozen=True)
class Policy(FakePolicy):
    def build(self, spec, task, *, seed):
        return Player(spec.action_space, seed, 0)


@dataclass(frozen=True)
class Evaluator(GameReward):
    def build(self, width):
        return Judge()


class Judge:
    def reset(self, slots, starts, frame):
        look_up("lamp")
"""
LINE = CODE.splitlines().index("    return LAMPS[name]  # THE PLACE") + 1


def install_lamp(tmp_path):
    """Installs the user's code as an installer would; returns where, and what reports must name."""
    name = re.sub(r"\W", "_", tmp_path.name)
    module = f"user_{name}"
    site = tmp_path / "site"
    about = site / f"{module}-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    groups = ("bridges", "policies", "evaluators")
    classes = ("Bridge", "Policy", "Evaluator")
    points = [f"[gamut.{g}]\nlamp = {module}:{c}\n" for g, c in zip(groups, classes, strict=True)]
    (about / "entry_points.txt").write_text("".join(points))
    (site / f"{module}.py").write_text(CODE)
    return site, f"KeyError: 'lamp' ({site}/{module}.py:{LINE}, in look_up)"


@pytest.fixture
def place(tmp_path, monkeypatch):
    site, said = install_lamp(tmp_path)
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.setenv("PYTHONPATH", ":".join(sys.path))  # for games in their own processes
    yield said
    set_up_logging()  # closes the log file


def play(tmp_path, capsys, *settings):
    """Collects a few episodes; returns the exit status, the terminal and run.log."""
    output = tmp_path / "run"
    both = (f"output={output}", "episodes=4", "actors=0", "host.restarts=2", "host.retries=1")
    status = main(collect, CollectConfig, "", ["--set", *both, *settings])
    return status, capsys.readouterr().err, (output / "run.log").read_text()


def assert_traced_once(log):
    """The whole traceback is in the log, once, although the error came several times."""
    assert log.count("Traceback (most recent call last)") == 1
    assert log.count("    return LAMPS[name]  # THE PLACE") == 1


@pytest.mark.parametrize("at", ["launch", "reset", "step"])
@pytest.mark.parametrize(
    "isolation",
    ["in_process", pytest.param("subprocess", marks=[pytest.mark.process, pytest.mark.heavy])],
)
def test_in_a_game(tmp_path, capsys, place, isolation, at):
    game = ("bridge.name=lamp", f"bridge.at={at}", "policy.name=random")
    status, terminal, log = play(tmp_path, capsys, *game, f"host.isolation={isolation}")
    assert status == 3
    assert place in terminal
    assert "Traceback" not in terminal
    assert_traced_once(log)


@pytest.mark.parametrize("width", [1, 2])
def test_in_a_policy(tmp_path, capsys, place, width):
    settings = ("bridge.name=fake", "policy.name=lamp", f"instances={width}")
    status, terminal, log = play(tmp_path, capsys, *settings)
    assert status == 1
    assert f"error: the policy raised {place}; the whole traceback is in run.log" in terminal
    assert "Traceback" not in terminal
    assert log.count("    return LAMPS[name]  # THE PLACE") == 1


def test_in_an_evaluator(tmp_path, capsys, place):
    (tmp_path / "task.yaml").write_text("evaluator: {name: lamp}")
    settings = ("bridge.name=fake", "policy.name=random", f"task={tmp_path / 'task.yaml'}")
    status, terminal, log = play(tmp_path, capsys, *settings)
    assert status == 1
    assert f"error: the evaluator raised {place}" in terminal
    assert log.count("    return LAMPS[name]  # THE PLACE") == 1


@pytest.mark.parametrize("at", ["launch", "reset", "step"])
def test_in_check_bridge(capsys, place, at):
    from rollout.commands.check_bridge import main as check

    assert check(["lamp", "--set", f"at={at}", "--steps", "3"]) == 3
    said = capsys.readouterr().out
    assert place in said
    assert "rollout/testing" not in said.partition("check  ")[2]
    assert said.count("    return LAMPS[name]  # THE PLACE") == 1


def test_in_the_import_of_a_plugin(tmp_path, capsys, place):
    module = next((tmp_path / "site").glob("*.py"))
    module.write_text("def look():\n    {}['lamp']\n\n\nlook()\n")
    assert main(collect, CollectConfig, "", ["--set", "bridge.name=lamp", "output=x"]) == 2
    assert f"KeyError: 'lamp' ({module}:2, in look)" in capsys.readouterr().err


def raised(code, file):
    """The error of a call whose code seems to be in a file, with the frames from there on."""
    names = {}
    exec(compile(code, file, "exec"), names)
    try:
        names["call"]()
    except ValueError as error:
        return error.with_traceback(error.__traceback__.tb_next)
    raise AssertionError("it raised nothing")


def test_the_place_is_in_the_users_code_if_there_is_any(tmp_path, monkeypatch):
    user, library = str(tmp_path / "game.py"), "/x/lib/python3.11/site-packages/library.py"
    parse = "def call(): __import__('json').loads('{')"
    assert place_of(raised(parse, user)) == f"{user}:1, in call"  # not in json, which raised it
    assert "json/decoder.py" in trace_of(raised(parse, user))
    assert place_of(raised(parse, library)) == f"{library}:1, in call"
    ours = str(Path(place_of.__code__.co_filename).parents[1] / "bridges" / "game.py")
    assert place_of(raised(parse, ours)) == f"{ours}:1, in call"
    assert place_of(raised(parse, place_of.__code__.co_filename)) == ""


def test_errors_on_purpose_have_no_place_and_no_traceback():
    assert place_of(KeyError("never raised")) == ""
    error = GameCrashed("the server closed the connection")
    assert trace_of(error) == ""


def test_the_traceback_passes_between_processes():
    import pickle

    error = PluginError("the policy raised")
    error.trace = "Traceback"
    assert pickle.loads(pickle.dumps(error)).trace == "Traceback"


def test_each_error_is_traced_once_and_only_in_the_file(tmp_path, capsys):
    trace = 'Traceback\n  File "game.py", line {}, in step\n    look()\n{}: {}\n'
    set_up_logging("info", tmp_path / "run.log")
    log = logging.getLogger("rollout.test")
    for line, kind, text in ((1, "KeyError", "a"), (1, "KeyError", "b"), (2, "KeyError", "a")):
        log_trace(log, trace.format(line, kind, text))
    log_trace(log, trace.format(1, "ValueError", "a"))
    log_trace(log, "")
    set_up_logging()
    assert capsys.readouterr().err == ""
    found = re.findall(r"line (\d), in step\n.*\n(\w+)", (tmp_path / "run.log").read_text())
    assert found == [("1", "KeyError"), ("2", "KeyError"), ("1", "ValueError")]
