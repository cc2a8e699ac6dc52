"""Code of a plug-in that exits or hangs decides neither our status nor how long we wait."""

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import gymnasium
import pytest

from bridges.gymnasium import GymnasiumBridge
from bridges.gymnasium.making import _PROBES
from rollout.api import options, probing
from rollout.cli import main
from rollout.collect import collect
from rollout.config import CollectConfig
from rollout.data import Dataset
from rollout.errors import ConfigError, GameStartError, PluginCode, PluginError, no_exit
from rollout.train.callbacks import call_all

pytestmark = pytest.mark.heavy

ROOT = Path(__file__).parents[2]

CODE = """
import asyncio
import os
import sys
import time

import gymnasium
import numpy as np

from rollout.testing.players import FakePlayer


class Odd(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (2,))
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, how):
        self.how = how
        self.do("made")

    def do(self, when):
        what = self.how.removesuffix("_" + when)
        if what == "exit":
            sys.exit(0)
        if what == "leave":
            os._exit(0)
        if what == "kill":
            os.kill(os.getpid(), 9)
        if what == "hang":
            time.sleep(3600)

    def reset(self, *, seed=None, options=None):
        return np.zeros(2, np.float32), {}

    def step(self, action):
        return np.zeros(2, np.float32), 1.0, True, False, {}

    def close(self):
        self.do("closed")


gymnasium.register("Odd-v0", entry_point=Odd)


def act(observation):
    sys.exit(0)


async def cancelled(observation, context):
    raise asyncio.CancelledError
"""


@pytest.fixture
def odd(tmp_path, monkeypatch):
    """The name of a module with games and functions that exit."""
    module = f"odd_{abs(hash(str(tmp_path)))}"
    (tmp_path / f"{module}.py").write_text(CODE)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield module
    _PROBES.clear()
    gymnasium.registry.pop("Odd-v0", None)


def play(tmp_path, capsys, *settings):
    both = (f"output={tmp_path / 'run'}", "episodes=2", "actors=0", "host.restarts=0")
    status = main(collect, CollectConfig, "", ["--set", *both, *settings])
    return status, capsys.readouterr().err


@pytest.mark.parametrize("code", [0, None, "text", 7])
def test_an_exit_is_an_error_of_the_plugin(code):
    for guarded in (PluginCode("the policy"), no_exit("the policy")):
        with pytest.raises(PluginError, match="the policy tried to end the program"), guarded:
            sys.exit(code)


def test_a_signal_is_not():
    for guarded in (PluginCode("the policy"), no_exit("the policy")):
        with pytest.raises(SystemExit), guarded:
            sys.exit(15)  # Ray's handler of SIGTERM


def test_in_a_policy(tmp_path, capsys, odd):
    given = ("bridge.name=fake", "policy.name=callable", f"policy.function={odd}:act")
    status, said = play(tmp_path, capsys, *given)
    assert status == 1
    assert f"error: the policy tried to end the program: SystemExit: 0 ({tmp_path}" in said


def test_an_interrupt_in_a_thread_is_no_signal():
    def interrupted():
        with PluginCode("the policy"):
            raise KeyboardInterrupt

    with (
        ThreadPoolExecutor(1) as pool,
        pytest.raises(PluginError, match="the policy raised KeyboardInterrupt"),
    ):
        pool.submit(interrupted).result(5)


def test_a_cancellation_ends_the_run_with_its_place(tmp_path, capsys, odd):
    given = ("bridge.name=fake", "policy.name=callable", f"policy.function={odd}:cancelled")
    given = (*given, "policy.fallback=random")
    status, said = play(tmp_path, capsys, *given)
    assert status == 1
    assert "error: the policy raised" in said
    assert "in cancelled)" in said


LEAVES = """
import os
from pathlib import Path

import numpy as np

calls = []


def act(observations):
    calls.append(1)
    if Path("{folder}/leave").exists() and len(calls) == 40:
        os._exit(0)
    return {{"move": np.zeros(len(observations["position"]), np.int64)}}
"""


@pytest.mark.process
def test_a_policy_that_ends_the_process_of_a_job(tmp_path):
    """Nothing can catch it, but what was played is kept."""
    (tmp_path / "leaves.py").write_text(LEAVES.format(folder=tmp_path))
    (tmp_path / "leave").touch()
    policy = ("policy.name=callable", "policy.function=leaves:act")
    given = ("bridge.name=fake", "bridge.max_steps=8", *policy, "episodes=30", "fragment.steps=8")
    command = [sys.executable, str(ROOT / "scripts" / "collect.py"), "--resume", "--set"]
    command += [*given, f"output={tmp_path / 'run'}", "actors=0"]

    def collected():
        env = {**os.environ, "PYTHONPATH": str(tmp_path)}
        both = {"cwd": tmp_path, "env": env, "capture_output": True, "text": True}
        done = subprocess.run(command, check=False, **both)
        with Dataset(tmp_path / "run" / "dataset") as dataset:
            return done.returncode, done.stderr, sorted(ref.episode for ref in dataset.episodes())

    status, said, kept = collected()
    assert status == 0, "as the policy wants"
    assert not (tmp_path / "run" / "summary.json").exists()
    assert len(kept) < 30
    (tmp_path / "leave").unlink()
    status, said, episodes = collected()
    assert status == 0, said
    assert episodes == list(range(30)), "each once"


def test_in_a_callback():
    with pytest.raises(PluginError, match="callback mine tried to end"):
        call_all([("mine", lambda record: sys.exit(0))], None)


def test_in_the_import_of_a_module(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "leaves_at_once.py").write_text("import sys\nsys.exit(0)")
    with pytest.raises(ConfigError, match="cannot be imported: SystemExit: 0"):
        options.load_function("leaves_at_once:act")
    with pytest.raises(ConfigError, match="SystemExit: 0"):
        _ = GymnasiumBridge(id="leaves_at_once:Odd-v0").spec


def test_anywhere_else(tmp_path, capsys):
    def job(config, session):
        sys.exit(0)

    given = ("bridge.name=fake", "policy.name=random", "episodes=1", f"output={tmp_path}")
    assert main(job, CollectConfig, "", ["--set", *given]) == 1
    assert "error: code of a plug-in tried to end the program: SystemExit: 0" in (
        capsys.readouterr().err
    )


@pytest.mark.parametrize("how", ["exit_made", "leave_made", "kill_made", "hang_made"])
def test_in_the_constructor_of_a_game(tmp_path, capsys, monkeypatch, odd, how):
    if how == "hang_made":
        monkeypatch.setattr(probing, "DEADLINE_S", 1.0)
    began = time.monotonic()
    game = ("bridge.name=gymnasium", f"bridge.id={odd}:Odd-v0", f"bridge.kwargs={{how: {how}}}")
    status, said = play(tmp_path, capsys, *game, "policy.name=random")
    assert time.monotonic() - began < 30.0
    assert status == 1
    told = {
        "exit": "SystemExit: 0",
        "leave": "exit code 0",
        "kill": "killed by SIGKILL",
        "hang": "not made within 1 s",
    }
    assert "error: Odd-v0 did not come up: " in said
    assert told[how.partition("_")[0]] in said
    assert "Traceback" not in said


@pytest.mark.parametrize("how", ["exit_closed", "leave_closed", "hang_closed"])
def test_in_the_close_of_a_game(monkeypatch, odd, how):
    monkeypatch.setattr(probing, "_CLOSE_S", 0.5)
    began = time.monotonic()
    assert GymnasiumBridge(id=f"{odd}:Odd-v0", kwargs={"how": how}).spec.name == "Odd-v0"
    assert time.monotonic() - began < 30.0


def test_a_game_that_no_other_process_knows_is_made_here(monkeypatch, odd):
    local = []

    def make():
        return local.pop()()

    spec = gymnasium.envs.registration.EnvSpec("Local-v0", entry_point=make)
    monkeypatch.setitem(gymnasium.registry, "Local-v0", spec)
    local.append(lambda: sys.exit(3))
    with pytest.raises(GameStartError, match="did not come up: SystemExit: 3"):
        _ = GymnasiumBridge(id="Local-v0").spec
    local.append(lambda: gymnasium.make("CartPole-v1"))
    assert GymnasiumBridge(id="Local-v0").spec.name == "Local-v0"
    assert not local
