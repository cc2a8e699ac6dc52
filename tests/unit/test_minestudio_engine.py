"""MineStudio's engine on the embedded Minecraft, told apart from Java's by no message."""

import json
import os
import signal
import socket
import struct
import subprocess
import sys
from contextlib import contextmanager
from tempfile import TemporaryDirectory

import numpy as np
import psutil
import pytest

from bridges.mineflayer.node import packages_problem
from bridges.minestudio import wire
from bridges.minestudio.engine import PORT_LINE, READY
from bridges.minestudio.install import JAR, PROGRAM, install
from bridges.minestudio.wire import MessageError, read_mission, read_step

WIDTH, HEIGHT = 64, 36
NEEDED = ("inventory", "isGuiOpen", "xpos", "ypos", "zpos", "pitch", "yaw")


def mission(width=WIDTH, height=HEIGHT, more=""):
    return f"""<MissionInit xmlns="http://ProjectMalmo.microsoft.com"><Mission>
        <AgentSection><AgentStart>{more}</AgentStart><AgentHandlers><VideoProducer>
        <Width>{width}</Width><Height>{height}</Height></VideoProducer></AgentHandlers>
        </AgentSection></Mission></MissionInit>""".encode()


# messages -----------------------------------------------------------------------------------------


def test_a_mission_says_picture_items_biome_and_seed():
    items = """<Inventory><InventoryObject slot="3" type="bread" quantity="5"/></Inventory>
        <PreferredSpawnBiome>forest</PreferredSpawnBiome>"""
    found = read_mission(mission(640, 360, items), b"x:0:0:1:true:42")
    assert found == wire.Mission(640, 360, "forest", ((3, "bread", 5),), 42)
    assert read_mission(mission(), b"x:0:0:1:true").seed is None


@pytest.mark.parametrize(
    ("xml", "token", "said"),
    [
        (b"<MissionInit", b"x:0:0:1:true", "expected a mission and its token"),
        (b"<MissionInit/>", b"x:0:0:1:true", "VideoProducer"),
        (mission(0, 10), b"x:0:0:1:true", "1 to 1024 pixels a side, got 0x10"),
        (mission(), b"x:0:0:2:true", "one agent, got 2"),
        (mission(), b"x:0:0:1:true:seven", "invalid literal"),
    ],
)
def test_a_mission_that_is_none_is_refused(xml, token, said):
    with pytest.raises(MessageError, match=said):
        read_mission(xml, token)


def test_a_step_has_keys_a_turn_words_and_boxes():
    step = read_step(
        "forward 1\nback 0\ncamera -2.5 10\nchat /give @s dirt\nvoxels -1,1,0,2,-1,1\nhotbar.3 1"
    )
    assert step.keys == {"forward", "hotbar.3"}
    assert step.camera == (-2.5, 10.0)
    assert step.chat == "/give @s dirt"
    assert step.voxels == [-1, 1, 0, 2, -1, 1]
    assert step.mobs is None


@pytest.mark.parametrize("line", ["camera 1", "camera a b", "voxels 1,2", "forward yes", "jump"])
def test_a_line_that_is_none_is_named(line):
    with pytest.raises(MessageError, match=line):
        read_step(f"attack 1\n{line}")


# installation -------------------------------------------------------------------------------------


def test_installing_writes_two_files_and_leaves_a_real_engine_alone(tmp_path):
    found = install(tmp_path)
    assert found == {"MINESTUDIO_DIR": str(tmp_path), "PATH_FIRST": str(tmp_path / "bin")}
    assert (tmp_path / JAR).read_bytes() == b""
    assert os.access(tmp_path / PROGRAM, os.X_OK)
    install(tmp_path)  # again, after an update
    (tmp_path / JAR).write_bytes(b"PK")
    with pytest.raises(FileExistsError, match="another folder"):
        install(tmp_path)


# the engine ---------------------------------------------------------------------------------------


class Client:
    """Speaks as MineStudio's does; asks nothing that it does not."""

    def __init__(self, port):
        self.link = socket.create_connection(("127.0.0.1", port), timeout=100)
        self.send(b"<MalmoEnv0.37.0/>")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.link.close()

    def send(self, message):
        self.link.sendall(struct.pack("!I", len(message)) + message)

    def receive(self):
        def exactly(size):
            data = b""
            while len(data) < size:
                more = self.link.recv(size - len(data))
                if not more:
                    raise EOFError
                data += more
            return data

        return exactly(struct.unpack("!I", exactly(4))[0])

    def begin(self, seed=None, **asked):
        self.send(b"<Quit/>")
        assert len(self.receive()) == 4
        self.send(mission(**asked))
        self.send(b"uuid:0:0:1:true" + (b"" if seed is None else f":{seed}".encode()))
        assert struct.unpack("!I", self.receive()) == (1,)
        self.send(b"<Peek/>")
        frame, state = self.receive(), json.loads(self.receive())
        assert struct.unpack("!b", self.receive()) == (0,)
        return frame, state

    def step(self, chat="", camera=(0, 0), **said):
        lines = [f"{key.replace('_', '.')} {value}" for key, value in said.items()]
        lines += [f"camera {camera[0]} {camera[1]}"] + [f"chat {chat}"] * bool(chat)
        self.send(("<StepClient0>" + "\n".join(lines) + "</StepClient0 >").encode())
        frame = self.receive()
        assert struct.unpack("!dbb", self.receive()) == (0.0, 0, 1)
        state = json.loads(self.receive())
        self.send(b"<StepServer></StepServer>")
        return frame, state


@contextmanager
def running(*command):
    command = command or (sys.executable, "-m", "bridges.minestudio.engine", "--envPort=0")
    with TemporaryDirectory() as place:  # a killed engine leaves its files there
        engine = subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, start_new_session=True,
            cwd=place, env={**os.environ, "TMPDIR": place},
        )  # fmt: skip
        try:
            line = engine.stdout.readline()
            assert line.startswith(PORT_LINE.format("")), line
            engine.port = int(line.split()[-1])
            assert engine.stdout.readline().strip() == READY
            yield engine
        finally:
            engine.stdout.close()
            engine.kill()
            engine.wait()


@pytest.fixture(scope="module")
def engine():
    with running() as started:
        yield started


@pytest.fixture
def client(engine):
    with Client(engine.port) as client:
        yield client
        client.send(b"<Disconnect/>")


needs_game = [
    pytest.mark.process,
    pytest.mark.heavy,
    pytest.mark.skipif(bool(packages_problem()), reason="run `make mineflayer`"),
]


def game(test):
    for mark in needs_game:
        test = mark(test)
    return test


@game
def test_a_mission_is_a_function_of_its_seed(client):
    def played(seed):
        frames = [client.begin(seed)[0]]
        frames += [client.step(forward=1, jump=1, camera=(1, 15))[0] for _ in range(10)]
        return frames

    first = played(3)
    assert {len(frame) for frame in first} == {WIDTH * HEIGHT * 3}
    assert len(set(first)) > 5
    assert played(3) == first
    assert played(4)[0] != first[0]
    assert client.begin()[0] != client.begin()[0]  # without a seed the engine draws one


@game
def test_a_picture_has_its_lowest_row_first(client):
    frame, _ = client.begin(3)
    for line in (
        "/gamemode creative",
        "/tp @s ~ 250 ~ 0 0",
        "/fill ~-9 249 ~-9 ~9 249 ~9 coal_block",
    ):
        frame, _ = client.step(chat=line)
    frame, _ = client.step()
    rows = np.frombuffer(frame, np.uint8).reshape(HEIGHT, WIDTH * 3).mean(-1)
    assert rows[:4].mean() < 60, "the black ground comes first"
    assert rows[-4:].mean() > 90


@game
def test_the_inventory_opens_and_its_cursor_crafts(client):
    client.begin(3)
    client.step(chat="/give @s oak_log 1")
    closed, _ = client.step()
    _, state = client.step(inventory=1)
    assert state["isGuiOpen"]
    opened, _ = client.step()
    assert np.mean(np.frombuffer(opened, np.uint8) != np.frombuffer(closed, np.uint8)) > 0.8
    # From the middle to the first slot of the hotbar, to the grid, to the result, in pixels.
    for x, y in ((-72, 67), (90, -124), (56, 10)):
        client.step(camera=(y * 360 / 2400, x * 360 / 2400))
        client.step(attack=1, sneak=int(x == 56))
        client.step()
    _, state = client.step(inventory=1)
    _, state = client.step()
    assert not state["isGuiOpen"]
    held = {(slot["type"], slot["quantity"]) for slot in state["inventory"]}
    assert held == {("oak_planks", 4), ("none", 0)}


@game
def test_the_state_has_what_the_client_requires(client):
    _, state = client.begin(3)
    assert all(key in state for key in NEEDED)
    assert [slot["slot_id"] for slot in state["inventory"]] == list(range(36))
    assert {slot["type"] for slot in state["inventory"]} == {"none"}
    assert set(state["equipped_items"]) == {
        *("mainhand", "offhand", "head", "chest", "legs", "feet")
    }
    assert json.loads(state["equipped_items"]["head"])["type"] == "air"
    assert state["custom"]["play_one_minute"] == 20
    assert "voxels" not in state
    _, state = client.step(voxels="0,0,0,0,0,0", mobs="0,0,0,0,0,0")
    assert [(each["x"], each["y"], each["z"]) for each in state["voxels"]] == [(0, 0, 0)]
    assert state["mobs"] == []


@game
def test_commands_run_in_the_world_and_cost_their_tick(client):
    client.begin(3)
    _, state = client.step(chat="/replaceitem entity @p weapon.mainhand minecraft:iron_sword 1")
    assert state["inventory"][0] == {"slot_id": 0, "type": "iron_sword", "quantity": 1}
    assert json.loads(state["equipped_items"]["mainhand"])["type"] == "iron_sword"
    assert state["custom"]["play_one_minute"] == 21
    summon = "/execute as @p at @p run summon minecraft:cow ~ ~3 ~ {Age:0}"
    client.step(chat=summon)
    _, state = client.step(mobs="-5,5,-5,5,-5,5")
    assert "cow" in [mob["type"] for mob in state["mobs"]]
    _, state = client.step(chat="/no such command")
    assert state["custom"]["play_one_minute"] == 24


@game
def test_an_episode_goes_on_after_a_death_as_fast_reset_needs_it(client):
    client.begin(3)
    client.step(chat="/give @s bread")
    for line in ("/kill", "/time set 6000", "/weather clear", "/kill @e[type=!player]"):
        client.step(chat=line)
    _, state = client.step(chat="/teleportbiome @a plains 100 ~0 -100")
    assert state["health"] == 20
    assert state["custom"]["deaths"] == 1
    assert {slot["type"] for slot in state["inventory"]} == {"none"}
    assert abs(state["xpos"] - 100) < 1000
    frame, _ = client.step(forward=1)
    assert len(frame) == WIDTH * HEIGHT * 3


@game
def test_a_mission_gives_its_items_in_its_biome(client):
    items = """<Inventory><InventoryObject slot="3" type="bread" quantity="5"/>
        <InventoryObject slot="39" type="iron_helmet" quantity="1"/></Inventory>
        <PreferredSpawnBiome>taiga</PreferredSpawnBiome>"""
    _, state = client.begin(3, more=items)
    assert state["inventory"][3] == {"slot_id": 3, "type": "bread", "quantity": 5}
    assert json.loads(state["equipped_items"]["head"])["type"] == "iron_helmet"
    assert state["biome_id"] == 5  # taiga, as the game numbers them


@game
def test_pictures_have_the_size_of_the_mission(client):
    frame, _ = client.begin(3, width=20, height=10)
    assert len(frame) == 600
    frame, _ = client.begin(3)
    assert len(frame) == WIDTH * HEIGHT * 3


@game
def test_nonsense_ends_its_connection_and_no_other(engine, client):
    step = b"<StepClient0>camera x</StepClient0 >"
    for sent in (b"\x00\x00\x00\x01\xff", struct.pack("!I", len(step)) + step, b"\xff" * 4):
        with Client(engine.port) as other:
            other.link.sendall(sent)
            with pytest.raises((EOFError, ConnectionResetError)):
                other.receive()
    client.send(b"<Echo>here</Echo>")
    assert client.receive() == b"here"


@game
def test_exit_on_a_new_connection_ends_it(tmp_path):
    found = install(tmp_path)
    jar, program = str(tmp_path / JAR), f"{found['PATH_FIRST']}/xvfb-run"
    with running(program, "-a", "java", "-Xmx2G", "-jar", jar, "--envPort=0") as engine:
        game = psutil.Process(engine.pid).children(recursive=True)
        assert game
        with Client(engine.port), Client(engine.port) as last:
            last.send(b"<Exit>NOW</Exit>")
            assert struct.unpack("!I", last.receive()) == (1,)
            assert engine.wait(30) == 0
        assert not psutil.wait_procs(game, timeout=10)[1]


@game
def test_it_ends_with_whoever_started_it():
    with running() as engine:
        game = psutil.Process(engine.pid).children(recursive=True)
        engine.stdout.close()  # as when its reader is killed
        assert engine.wait(30) == 0
        assert not psutil.wait_procs(game, timeout=10)[1]


@game
def test_a_game_that_dies_ends_it_with_a_reason():
    command = (sys.executable, "-m", "bridges.minestudio.engine")
    with running("sh", "-c", f"exec {' '.join(command)} 2>&1") as engine:
        with Client(engine.port) as client:
            client.begin(3)
            for child in psutil.Process(engine.pid).children(recursive=True):
                child.send_signal(signal.SIGKILL)
            with pytest.raises((EOFError, ConnectionResetError, BrokenPipeError)):
                client.step()
        assert engine.wait(30) == 1
        assert "the game failed" in engine.stdout.read()
