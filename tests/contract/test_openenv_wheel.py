"""``gamut serve`` under OpenEnv's own client and validator, and under clients that do wrong."""

import base64
import json
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import psutil
import pytest
from websockets.exceptions import WebSocketException
from websockets.sync.client import connect

from rollout.api import Environment, environment_folder
from rollout.commands.env import make_environment
from rollout.config import HostConfig
from rollout.errors import ConfigError
from rollout.host.instances import free_ports
from rollout.interop.games import Games

pytestmark = pytest.mark.long

HERE = Path(__file__).parent
OPENENV = Environment("openenv-client", HERE / "openenv_requirements.txt", "3.11")


@pytest.fixture(scope="module")
def python():
    """The Python of an environment with OpenEnv, made once; skips where it cannot be."""
    folder = environment_folder(OPENENV.name)
    try:
        make_environment(OPENENV, folder)
    except ConfigError as error:
        pytest.skip(f"cannot install OpenEnv: {error}")
    return folder / "bin" / "python"


@contextmanager
def server(tmp_path, *keys):
    """The process of a server and its address; it must end as asked."""
    config, keys = (keys[:2], keys[2:]) if keys[0] == "--config" else ((), keys)
    command = [Path(sys.executable).with_name("gamut"), "serve", *config, "--set", "port=0", *keys]
    with (tmp_path / "stderr").open("w") as stderr:
        served = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, text=True)
    try:
        url = served.stdout.readline().split()[0]
        yield served, url
        served.send_signal(signal.SIGTERM)
        assert served.wait(60) == 0, (tmp_path / "stderr").read_text()
    finally:
        served.kill()
        served.wait(10)
        served.stdout.close()


def play(python, url, sessions, episodes, actions):
    command = [python, HERE / "openenv_sessions.py", url, str(sessions), str(episodes)]
    done = subprocess.run(
        [*command, json.dumps(actions)], capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return [episode for session in json.loads(done.stdout) for episode in session]


def test_64_sessions_of_the_client_play_the_same_episodes(python, tmp_path):
    bridge = {"name": "fake", "max_steps": 15}
    actions = ["move", 1, 2, 3, 4, 0]
    keys = ["bridge=fake", "bridge.max_steps=15", "games=64"]
    with server(tmp_path, *keys) as (_, url):
        found = play(python, url, 64, 3, actions)
    host = HostConfig(isolation="in_process")
    with Games(bridge, host=host) as games, games.open() as game:
        for seed, episode in enumerate(found):
            moment, rewards = game.reset(seed=seed, split="test", index=seed), []
            pictures = [base64.b64encode(file).decode() for _, file in moment.pictures()]
            assert episode["pictures"] == pictures
            while not moment.done:
                moment = game.step({"move": actions[1 + (seed + moment.step) % 5]})
                rewards.append(moment.reward)
            assert episode["rewards"] == rewards
            assert episode["metadata"]["total_reward"] == moment.result.total_reward
            assert not episode["errors"]


def test_the_example_of_the_page_runs(python, tmp_path):
    page = (HERE.parents[1] / "docs" / "serve.md").read_text()
    example = re.findall("```py\n(.*?)```", page, re.DOTALL)[0]
    with server(tmp_path, "--config", "configs/serve_crafter.yaml", "games=2") as (_, url):
        script = example.replace("http://127.0.0.1:8000", url)
        done = subprocess.run(
            [python, "-c", script], capture_output=True, text=True, timeout=600, check=False
        )
    assert done.returncode == 0, done.stderr[-3000:]
    assert len(done.stdout.splitlines()) > 10


def test_the_validator_passes_it(python, tmp_path):
    with server(tmp_path, "bridge=fake") as (_, url):
        command = [python.with_name("openenv"), "validate", url]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "FAIL" not in done.stdout


def test_chaos_is_lost_and_never_a_reward(python, tmp_path):
    """Every episode ends with the rewards of a calm game, however often it was lost."""
    keys = ["bridge=chaos", "bridge.mean_steps=30", "games=16"]
    actions = ["action", "up", "up", "down"]
    with server(tmp_path, *keys) as (_, url):
        calm = play(python, url, 16, 2, actions)
    faults = ["step_crash=0.005", "step_hang=0.001", "reset_crash=0.05", "step_deadline_s=2"]
    with server(tmp_path, *keys, *(f"bridge.{each}" for each in faults)) as (_, url):
        wild = play(python, url, 16, 2, actions)
    assert [e["rewards"] for e in wild] == [e["rewards"] for e in calm]
    errors = [error for episode in wild for error in episode["errors"]]
    assert errors
    assert all("was lost" in error for error in errors), set(errors)


def rss(process):
    return psutil.Process(process.pid).memory_info().rss / 2**20


def test_a_thousand_connections_and_worse_disturb_no_session(tmp_path):
    keys = ["bridge=blockworld", "bridge.observe=[rgb]", "bridge.rgb_width=640"]
    keys += ["bridge.rgb_height=360", "games=4", "idle_s=30"]
    with server(tmp_path, *keys) as (served, url):
        address = url.replace("http", "ws") + "/ws"
        with connect(address, compression=None, max_size=2**24) as good:

            def ask(**message):
                good.send(json.dumps(message))
                return json.loads(good.recv(60))

            first = ask(type="reset", data={"seed": 1, "episode_id": "one"})
            before, code = rss(served), set()
            for _ in range(25):
                with ExitStack() as held:
                    opened = [held.enter_context(connect(address)) for _ in range(40)]
                    for other in opened[3:]:  # three more have a game
                        code.add(json.loads(other.recv(30))["data"]["code"])
            assert code == {"CAPACITY_REACHED"}
            slow = flood(served, url)
            for junk in (b"\0" * 5000, b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 10**6):
                with socket.create_connection(host_of(url), 10) as raw:
                    raw.sendall(junk)
            with connect(address) as large:
                large.send('{"type": "reset", "data": {"seed": "' + "9" * 10**6)
            half = upgraded(url)
            half.sendall(RESET[:20])  # the other half never comes
            half.close()
            assert rss(served) < before + 150
            again = ask(type="reset", data={"seed": 1, "episode_id": "one"})
            assert again["data"]["observation"] == first["data"]["observation"]
            slow.close()


def host_of(url):
    host, _, port = url.removeprefix("http://").partition(":")
    return host, int(port)


def upgraded(url):
    """A raw connection that has become a socket of the protocol."""
    raw = socket.create_connection(host_of(url), 10)
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    key = base64.b64encode(os.urandom(16)).decode()
    raw.sendall(
        f"GET /ws HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
    )
    assert b" 101 " in raw.recv(4096)
    return raw


_TEXT = b'{"type": "reset", "data": {}}'
RESET = bytes([0x81, 0x80 | len(_TEXT), 0, 0, 0, 0]) + _TEXT  # a frame, masked with zeros


def flood(served, url):
    """A client that asks for gigabytes of pictures and reads nothing."""
    raw = upgraded(url)
    raw.settimeout(5)
    try:
        for _ in range(1000):  # more than buffers of the system hold
            raw.sendall(RESET * 2000)
    except TimeoutError:
        pass  # the server reads no more of it
    else:
        pytest.fail("the server took all requests of a client that reads no answers")
    assert served.poll() is None
    return raw


def test_replicas_of_ray_serve_play_the_same_episodes(tmp_path):
    token = "a-token-of-sixteen-letters"
    (tmp_path / "token").write_text(token)
    port = free_ports(1)[0]
    args = {"bridge": {"name": "fake"}, "games": 1, "token_file": str(tmp_path / "token")}
    app = {"name": "games", "route_prefix": "/", "args": args}
    app["import_path"] = "rollout.interop.ray_serving:application"
    app["deployments"] = [
        {"name": "Games", "num_replicas": 2, "ray_actor_options": {"num_cpus": 0}}
    ]
    file = tmp_path / "serve.json"
    file.write_text(json.dumps({"http_options": {"port": port}, "applications": [app]}))
    command = [Path(sys.executable).with_name("serve"), "run", file]
    with (tmp_path / "log").open("w") as log:
        run = subprocess.Popen(command, stdout=log, stderr=log, env=local_ray())
    address = f"ws://127.0.0.1:{port}/{token}/ws"
    try:
        shown = []
        with ExitStack() as held:
            deadline = time.monotonic() + 500
            while len(shown) < 2:  # one game in each of two replicas
                assert time.monotonic() < deadline, (tmp_path / "log").read_text()[-3000:]
                with suppress(OSError, WebSocketException):
                    socket = held.enter_context(connect(address))
                    socket.send(json.dumps({"type": "reset", "data": {"seed": 5}}))
                    if (answer := json.loads(socket.recv(30)))["type"] == "observation":
                        shown.append(answer["data"]["observation"]["columns"])
                threading.Event().wait(0.5)
        assert shown[0] == shown[1]
    finally:
        run.send_signal(signal.SIGINT)
        run.wait(60)


def local_ray():
    """The environment of a Ray of its own, which only we may use."""
    inherited = {name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"}
    own = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    return inherited | own | {"RAY_raylet_start_wait_time_s": "300"}  # a busy machine
