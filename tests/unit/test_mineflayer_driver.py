"""The game's process seen from Python: the wire, deadlines, deaths, the end; finding Node."""

import os
import socket
import sys
import time
from pathlib import Path

import msgpack
import psutil
import pytest

from bridges.mineflayer import MineflayerBridge
from bridges.mineflayer.driver import LOG, Driver
from bridges.mineflayer.node import (
    OLDEST,
    STAMP,
    WHERE,
    find_node,
    lock_digest,
    packages_problem,
    require_packages,
)
from bridges.mineflayer.setup import install, install_shared, main
from rollout.errors import (
    ConfigError,
    GameCrashed,
    GameError,
    GameStartError,
    GameTimeout,
    SpaceError,
    StateError,
)

FAKE = Path(__file__).with_name("mineflayer_fake.py")
CONFIG = MineflayerBridge().config(1)
PATIENT_S = 60.0
pytestmark = pytest.mark.process


def command(fault=""):
    return [sys.executable, str(FAKE), fault]


@pytest.fixture
def start(tmp_path):
    """Starts game processes, and ends them."""
    drivers = []

    def begin(fault="", *, close_s=10.0):
        driver = Driver(command(fault), tmp_path, close_s=close_s)
        drivers.append(driver)
        return driver

    yield begin
    for driver in drivers:
        driver.close()


def hello(driver, timeout_s=PATIENT_S):
    return driver.ask("hello", {"config": CONFIG}, timeout_s=timeout_s)


def gone(pid):
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def wait_until_gone(pid):
    # Whoever takes over orphans here reaps them when it likes.
    deadline = time.monotonic() + PATIENT_S
    while not gone(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert gone(pid)


def test_a_process_says_hello_on_its_socket_in_a_group_of_its_own(start, monkeypatch):
    monkeypatch.setenv("NODE_OPTIONS", "--inspect")
    leaked = os.dup(2)
    os.set_inheritable(leaked, True)
    driver = start()
    os.close(leaked)
    said = hello(driver)["said"]
    assert {0, 1, 2} <= set(said["fds"])
    assert len(said["fds"]) <= 5  # those, and the folder it lists them from
    assert said["group"] == driver.pid
    assert (said["tz"], said["node"]) == ("UTC", None)


def test_close_ends_the_process_and_what_it_started_and_may_be_said_twice(start):
    driver = start()
    other = hello(driver)["said"]["grandchild"]
    driver.close()
    driver.close()
    assert gone(driver.pid)
    wait_until_gone(other)


@pytest.mark.parametrize("fault", ["close=hang", "close=deaf", "close=exit:3"])
def test_close_ends_a_process_that_does_not_want_to(start, fault):
    driver = start(fault, close_s=2.0)
    other = hello(driver)["said"]["grandchild"]
    began = time.monotonic()
    driver.close()
    assert time.monotonic() - began < 20.0
    assert gone(driver.pid)
    wait_until_gone(other)


def test_a_process_ends_by_itself_when_its_bridge_has_gone(start):
    driver = start()
    hello(driver)
    driver.child._socket.shutdown(socket.SHUT_RDWR)
    assert driver.child.ended(time.monotonic() + PATIENT_S) == "exit code 0"


def test_a_deadline_is_kept_and_the_log_is_quoted(start):
    driver = start("reset=hang")
    hello(driver)
    began = time.monotonic()
    with pytest.raises(GameTimeout, match=r"no answer to reset within 0.3 s"):
        driver.ask("reset", {}, timeout_s=0.3)
    assert time.monotonic() - began < 20.0
    driver.close()
    assert gone(driver.pid)


@pytest.mark.parametrize(
    ("fault", "error", "message"),
    [
        (
            "reset=exit:7",
            GameCrashed,
            r"ended in reset: exit code 7; last lines of node.log:\nlast",
        ),
        ("reset=kill", GameCrashed, "ended in reset: killed by SIGKILL"),
        ("reset=garbage", GameCrashed, "answered reset with garbage: not msgpack"),
        ("reset=huge", GameCrashed, "garbage: 2147483648 bytes announced"),
        ("reset=other", GameCrashed, "garbage: no answer to request 2"),
        ("reset=state:no such biome", StateError, "^no such biome$"),
        ("reset=action:no such item", SpaceError, "^no such item$"),
        ("reset=kicked:You are banned", GameCrashed, "kicked an agent: You are banned"),
        ("reset=refused:Outdated client", GameCrashed, "server refused: Outdated client"),
        ("reset=ended:reset by peer", GameCrashed, "server has gone: reset by peer"),
        ("reset=bug:x is undefined", GameCrashed, "failed in reset: x is undefined"),
    ],
)
def test_what_goes_wrong_is_reported(start, fault, error, message):
    driver = start(fault)
    hello(driver)
    with pytest.raises(error, match=message):
        driver.ask("reset", {"slots": [], "starts": []}, timeout_s=PATIENT_S)


def test_a_refused_state_leaves_the_game_in_order(start):
    driver = start("reset=state:no")
    hello(driver)
    with pytest.raises(StateError):
        driver.ask("reset", {"slots": [], "starts": []}, timeout_s=PATIENT_S)
    answer = driver.ask("step", {"actions": {"action": bytes(64)}}, timeout_s=PATIENT_S)
    assert len(answer["details"]) == 1


def test_messages_of_megabytes_cross_the_wire(start):
    driver = start()
    hello(driver)
    seen = driver.ask(
        "reset",
        {"slots": [0], "starts": [{"seed": 1, "state": {"long": "x" * 3_000_000}}]},
        timeout_s=PATIENT_S,
    )
    assert len(seen["details"][0]["start"]["state"]["long"]) == 3_000_000


def test_a_program_that_is_not_there_is_a_failed_start(tmp_path):
    with pytest.raises(GameStartError, match=r"/nowhere/node did not start: No such file"):
        Driver(["/nowhere/node", "main.js"], tmp_path, close_s=1.0)


def test_the_log_stays_in_the_folder_of_the_instance(start, tmp_path):
    driver = start("step=exit:1")
    hello(driver)
    with pytest.raises(GameError):
        driver.ask("step", {"actions": {}}, timeout_s=PATIENT_S)
    assert (tmp_path / LOG).read_text() == "last words of the game\n"


# Node and its packages --------------------------------------------------------------------------


def program(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_the_node_of_this_environment_is_new_enough():
    node = find_node()
    assert int(node.version.split(".")[0]) >= OLDEST
    assert "site-packages" in str(node.program)  # the wheel goes before the PATH


@pytest.mark.parametrize(
    ("says", "message"),
    [
        (
            "echo v20.20.2",
            r"Node 22 or newer, needs the extra mineflayer.*'\.\[mineflayer\]'.*20\.20\.2",
        ),
        ("echo hello", "is no Node that runs"),
        ("exit 1", "is no Node that runs"),
    ],
)
def test_an_old_node_is_reported_with_the_way_to_a_newer_one(tmp_path, says, message):
    program(tmp_path, "node", says)
    with pytest.raises(ConfigError, match=message):
        find_node(str(tmp_path))


def test_no_node_at_all_is_reported(tmp_path):
    with pytest.raises(ConfigError, match="none was found"):
        find_node(str(tmp_path))


def test_a_node_on_the_path_is_taken(tmp_path):
    path = program(tmp_path, "node", "echo v22.1.0")
    assert find_node(str(tmp_path)).program == path


LOCK = '{"packages": {"": {}, "node_modules/vec3": {"version": "0.1.10"}}}'
NPM = """
mkdir -p node_modules/vec3
cp package-lock.json node_modules/.package-lock.json
echo called >> "$OUT"
"""


@pytest.fixture
def game(tmp_path, monkeypatch):
    monkeypatch.setenv(WHERE, str(tmp_path / "shared"))
    folder = tmp_path / "game"
    folder.mkdir()
    (folder / "package.json").write_text("{}")
    (folder / "package-lock.json").write_text(LOCK)
    monkeypatch.setenv("OUT", str(tmp_path / "calls"))
    return folder


def test_packages_are_installed_once_and_again_when_the_lock_changes(game, tmp_path):
    npm = [str(program(tmp_path, "npm", NPM))]
    assert packages_problem(game) == "its packages are not installed"
    with pytest.raises(ConfigError, match=r"not installed, .*; run `make mineflayer`"):
        require_packages(game)
    assert install(game, command=npm)
    assert not install(game, command=npm)
    require_packages(game)
    assert (game / "node_modules" / STAMP).read_text().strip() == lock_digest(game)
    (game / "package-lock.json").write_text(LOCK.replace("0.1.10", "0.1.11"))
    assert "older or newer" in packages_problem(game)
    assert install(game, command=npm)
    assert (tmp_path / "calls").read_text() == "called\ncalled\n"
    assert sorted(p.name for p in game.iterdir() if not p.name.endswith(".lock")) == [
        "node_modules",
        "package-lock.json",
        "package.json",
    ]


def test_packages_can_be_shared_by_the_copies_of_a_checkout(game, tmp_path):
    npm = [str(program(tmp_path, "npm", NPM))]
    assert install_shared(game, command=npm)
    assert not install_shared(game, command=npm)
    there = require_packages(game)
    assert there == tmp_path / "shared" / lock_digest(game) / "node_modules"
    (there / STAMP).unlink()
    (there / ".package-lock.json").unlink()
    with pytest.raises(ConfigError, match=r"not installed, nor are there any in .*shared"):
        require_packages(game)
    install_shared(game, command=npm)
    install(game, command=npm)
    assert require_packages(game) == game / "node_modules"
    (game / "package-lock.json").write_text(LOCK.replace("0.1.10", "0.1.11"))
    with pytest.raises(ConfigError, match="older or newer"):
        require_packages(game)


def test_packages_that_npm_installed_by_hand_are_compared_with_the_lock(game):
    (game / "node_modules").mkdir()
    assert "not completely" in packages_problem(game)
    (game / "node_modules" / ".package-lock.json").write_text(LOCK)
    assert not packages_problem(game)
    (game / "package-lock.json").write_text(LOCK.replace("0.1.10", "0.2.0"))
    assert "node_modules/vec3 differ" in packages_problem(game)


def test_an_installation_that_fails_leaves_the_former_packages(game, tmp_path):
    install(game, command=[str(program(tmp_path, "npm", NPM))])
    (game / "package-lock.json").write_text(LOCK.replace("0.1.10", "0.2.0"))
    broken = [str(program(tmp_path, "npm", "echo E404 no such package; exit 1"))]
    with pytest.raises(ConfigError, match=r"exit status 1:\nE404 no such package"):
        install(game, command=broken)
    assert (game / "node_modules" / "vec3").is_dir()
    assert len(list(game.iterdir())) == 4
    slow = [str(program(tmp_path, "npm", "exec sleep 60"))]
    with pytest.raises(ConfigError, match=r"within 0.2 s"):
        install(game, command=slow, timeout_s=0.2)


def test_the_command_says_why_it_failed(monkeypatch, capsys):
    def refuse(**kwargs):
        raise ConfigError("no Node")

    monkeypatch.setattr("bridges.mineflayer.setup.install", refuse)
    assert main([]) == 2
    assert capsys.readouterr().err == "no Node\n"


def test_every_key_of_the_config_is_plain_data():
    assert msgpack.unpackb(msgpack.packb(CONFIG)) == CONFIG
