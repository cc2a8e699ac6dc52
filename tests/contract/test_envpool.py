"""EnvPool itself under its bridge, in its own interpreter."""

import subprocess

import numpy as np
import pytest

from bridges.gymnasium import EnvpoolBridge
from rollout.api import Start, environment_folder
from rollout.commands.env import make_environment
from rollout.errors import ConfigError
from rollout.testing import check_bridge
from rollout.testing.isolated import IsolatedBridge

pytestmark = pytest.mark.long


@pytest.fixture(scope="module", autouse=True)
def python():
    """The Python of an environment with EnvPool, made once; skips where it cannot be."""
    folder = environment_folder("envpool")
    try:
        make_environment(EnvpoolBridge().environment, folder)
    except ConfigError as error:
        pytest.skip(f"cannot install EnvPool: {error}")
    return folder / "bin" / "python"


@pytest.mark.parametrize("seeding", ["episode", "slot"])
@pytest.mark.parametrize(
    ("id_", "signal"),
    [
        ("CartPole-v1", None),
        ("Pong-v5", "lives"),
        ("MiniGrid-DoorKey-5x5-v0", "mission_id"),
        ("CoinrunEasy-v0", "level_seed"),
        ("Craftax-Classic-Symbolic-v1", "Achievements/eat_cow"),
        ("Ant-v5", "x_position"),
        ("HealthGathering-v1", "HEALTH"),
    ],
)
def test_it_keeps_the_contract(id_, signal, seeding, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    bridge = EnvpoolBridge(id_, seeding=seeding)
    assert signal is None or signal in bridge.spec.signals
    # Few slots: the games of Atari and ViZDoom take up to a second to make.
    report = check_bridge(IsolatedBridge(bridge), steps=20, width=2, timeout_s=600)
    report.raise_if_failed()
    assert not list(tmp_path.iterdir())


RAW = """
import sys, envpool, numpy as np
pool = envpool.make("CartPole-v1", env_type="gymnasium", num_envs=1, env_seed=[6])
shown, ends = [pool.reset()[0][0]], []
for action in np.load(sys.argv[1]):
    observation, reward, over, cut, info = pool.step(np.array([action]))
    shown.append(observation[0])
    ends.append(over[0] or cut[0])
np.savez(sys.argv[2], shown=shown, ends=ends)
"""


def test_frames_are_those_of_envpool_to_the_last_one(python, tmp_path):
    actions = np.random.default_rng(0).integers(0, 2, 200)
    np.save(tmp_path / "actions.npy", actions)
    files = [str(tmp_path / name) for name in ("actions.npy", "raw.npz")]
    subprocess.run([python, "-c", RAW, *files], check=True, timeout=300, cwd=tmp_path)
    raw = np.load(files[1])
    length = int(raw["ends"].argmax()) + 1
    bridge = IsolatedBridge(EnvpoolBridge("CartPole-v1"))
    instance = bridge.launch(tmp_path / "game", [], width=2, timeout_s=120)
    try:
        starts = [Start(bridge.spec.state_space.state(n), seed=0) for n in (6, 7)]
        frames = [instance.reset([0, 1], starts, timeout_s=60).take([0])]
        for action in actions[:length]:
            frame = instance.step({"action": np.array([action, 0])}, timeout_s=60)
            frames.append(frame.take([0]))
    finally:
        instance.close()
    assert frames[-1].game_over.tolist() == [True]
    shown = np.concatenate([frame.observations["observation"] for frame in frames])
    assert np.array_equal(shown, raw["shown"][: length + 1])
