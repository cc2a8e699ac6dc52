"""The server of the mod's protocol: byte for byte, its clock, its gate, its loads, its faults."""

import asyncio
import base64
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

from bridges.stardojo.faults import Faults, parse, read
from bridges.stardojo.server import Game
from rollout.errors import ConfigError, UnknownNameError

HERE = Path(__file__).parent
SMALL = {"viewport": (32, 18)}
LOAD = b"load_game_record%StarDojo_406041616"
FIELDS = ["Player", "NPCs", "GameState", "Farm", "CurrentMenuData", "ScreenShot", "Buildings",
          "Crops", "Exits", "ShopCounters", "MetaData", "CallBackData", "SurroundingsData",
          "Furnitures"]  # fmt: skip


def grey(valley, width, height):
    """A picture that tells when it was drawn."""
    return np.full((height, width, 3), valley.world.ticks % 250 + 1, np.uint8)


class Table:
    """A game behind a socket, whose clock the test moves."""

    def __init__(self, **faults):
        self.crashes = []
        self.game = Game(Faults(**{**SMALL, **faults}), grey, crash=self.crash)

    def crash(self, code):
        self.crashes.append(code)
        raise ConnectionError

    async def __aenter__(self):
        self.server = await asyncio.start_server(self.game.serve, "127.0.0.1", 0)
        self.port = self.server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_):
        self.server.close()

    async def begin(self, request):
        """Sends a request; returns what reads the reply."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(request)
        await writer.drain()
        await asyncio.sleep(0.005)
        return reader, writer

    async def ask(self, request, seconds=3.0):
        """The reply, while up to ``seconds`` of the game pass; None if none came."""
        reader, writer = await self.begin(request)
        reading = asyncio.create_task(reader.readuntil(b"<EOF>"))
        for _ in range(int(seconds * 10)):
            self.game.advance(6)
            await asyncio.sleep(0.001)
            if reading.done():
                break
        if not reading.done():
            reading.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await reading
            writer.close()
            return None
        writer.close()
        try:
            return reading.result()[:-5].decode()
        except asyncio.IncompleteReadError as error:
            return error.partial

    async def load(self, request=LOAD, seconds=3.0):
        assert await self.ask(request) == "True"
        await self.pass_(seconds)

    async def pass_(self, seconds):
        for _ in range(int(seconds * 10)):
            self.game.advance(6)
            await asyncio.sleep(0)

    async def seen(self):
        return json.loads(await self.ask(b"observe_v2%3"))


def play(session, **faults):
    async def run():
        async with Table(**faults) as table:
            return await asyncio.wait_for(session(table), 60)

    return asyncio.run(run())


def test_observations_have_the_fields_of_the_page_in_its_order():
    async def session(table):
        assert await table.ask(b"observe_v2%3") == "Message received"
        await table.load()
        seen = await table.seen()
        assert list(seen) == FIELDS
        assert seen["MetaData"]["ViewportSize"] == [32, 18]
        pixels = np.frombuffer(base64.b64decode(seen["ScreenShot"]), np.uint8).reshape(18, 32, 4)
        assert (pixels[..., 3] == 255).all()
        assert isinstance(seen["Farm"]["Buildings"][0]["position"], str)
        assert isinstance(seen["Player"]["Position"], dict)

    play(session)


def test_switches_change_observations():
    async def session(table):
        await table.load()
        seen = await table.seen()
        assert list(seen) == [*FIELDS, "Progression"]
        assert seen["Farm"]["Buildings"][0]["position"] == {"X": 59.0, "Y": 12.0}
        assert (await table.seen())["ScreenShot"] == seen["ScreenShot"]
        data = base64.b64decode(seen["ScreenShot"])
        assert not any(data)

    play(session, progression=True, vectors_as_objects=True, black=1.0)


def test_a_paused_game_holds_actions_and_plays_them_late():
    async def session(table):
        await table.load()
        assert await table.ask(b"pause") == "Message received"
        before = (await table.seen())["GameState"]["Time"]
        _, writer = await table.begin(b"turn%3")
        writer.close()  # there is no cancel
        await table.pass_(20)
        seen = await table.seen()
        assert seen["Player"]["FacingDirection"] == 2
        assert seen["GameState"]["Time"] == before
        assert await table.ask(b"get_monster_kills%Bug") is None
        assert await table.ask(b"resume") == "Message received"
        await table.pass_(1)
        assert (await table.seen())["Player"]["FacingDirection"] == 3
        await table.pass_(15)
        assert (await table.seen())["GameState"]["Time"] > before

    play(session)


def test_messages_have_no_frame():
    async def session(table):
        await table.load()
        assert await table.ask(b"turn%1turn%3") == "Message received"
        assert (await table.seen())["Player"]["FacingDirection"] == 2
        reader, writer = await table.begin(b"craft%" + b"x" * 300)
        await table.pass_(2)
        replies = [await asyncio.wait_for(reader.readuntil(b"<EOF>"), 5) for _ in range(2)]
        assert replies == [b"Message received<EOF>"] * 2, "256 bytes are one message"
        writer.write(b"get_monster_kills%Bug")  # the connection stays open
        await asyncio.sleep(0.01)
        await table.pass_(1)
        assert await asyncio.wait_for(reader.readuntil(b"<EOF>"), 5) == b"0<EOF>"
        writer.close()

    play(session)


def test_bad_numbers_fail_as_their_kind_of_method_does():
    async def session(table):
        await table.load()
        assert await table.ask(b"turn%left") == "Message received"
        assert await table.ask(b"move_relative%1.5%0") is None

    play(session)

    async def crashing(table):
        await table.load()
        assert await table.ask(b"move_relative%1.5%0") == b""
        assert table.crashes == [134]

    play(crashing, crash_on_bad_integer=True)


def test_a_load_takes_time_and_loses_what_comes_too_early():
    async def session(table):
        assert await table.ask(LOAD + b"_Port_5") == "True"
        assert await table.ask(b"observe_v2%3") == "Message received"
        assert await table.ask(b"set_money%7") == "Message received"
        await table.pass_(6)
        seen = await table.seen()
        assert (seen["Player"]["Name"], seen["Player"]["Money"]) == ("Agent New", 50000)
        assert seen["CallBackData"]["OnDayStarted"] == 1
        assert await table.ask(b"set_money%7") == "Message received"
        assert (await table.seen())["Player"]["Money"] == 7
        assert await table.ask(b"load_game_record%no_such_save") == "True"
        await table.pass_(6)
        seen = await table.seen()
        assert (seen["Player"]["Money"], seen["CallBackData"]["OnDayStarted"]) == (7, 0)
        await table.load(b"load_game_record%StarDojo_398533889", 6)
        assert (await table.seen())["Player"]["Name"] == "Agent Quests"

    play(session, load_s=5, load_loses=True)


def test_commands_wait_for_the_end_of_a_load():
    async def session(table):
        assert await table.ask(LOAD) == "True"
        assert await table.ask(b"set_money%7", 1) is None
        assert await table.ask(b"set_time%900", 4) == "Message received"
        seen = await table.seen()
        assert (seen["Player"]["Money"], seen["GameState"]["Time"]) == (7, 900)

    play(session)


def test_wait_game_start_answers_only_if_it_waits_in_time():
    async def session(table):
        assert await table.ask(LOAD) == "True"
        assert await table.ask(b"wait_game_start", 8) == "True"
        assert await table.ask(b"wait_game_start", 30) is None

    play(session)


def test_a_dialogue_ignores_choices_at_first():
    async def session(table):
        await table.load()
        await table.ask(b"warp_home")
        await table.pass_(2)
        beds = [e for e in (await table.seen())["Furnitures"] if "Bed" in e["name"]]
        x, y = map(int, beds[0]["position"].split(","))
        assert await table.ask(f"move%{x + 1}%{y + 1}".encode(), 20) == "True"
        assert (await table.seen())["CurrentMenuData"]["type"] == "DialogueBox"
        table.game._menu_tick = table.game.tick
        await table.ask(b"choose_option%2%0%0")
        assert (await table.seen())["CurrentMenuData"]["type"] == "DialogueBox"
        await table.pass_(1)
        await table.ask(b"choose_option%2%0%0")
        assert (await table.seen())["CurrentMenuData"]["type"] == "No Menu"

    play(session)


@pytest.mark.parametrize(
    ("faults", "reply"),
    [({"silent": 1.0}, b""), ({"dropped": 1.0}, b"Messag"), ({"chunk": 3}, "Message received")],
)
def test_faults_of_replies(faults, reply):
    async def session(table):
        got = await table.ask(b"pause")
        assert got == reply or got.startswith(reply)

    play(session, **faults)


def test_faults_of_actions_and_pictures():
    async def session(table):
        await table.load(seconds=6)
        assert await table.ask(b"move_relative%0%1", 9) is None, "a move that is lost"
        assert (await table.seen())["Player"]["Position"] == {"X": 64, "Y": 16}
        first = (await table.seen())["ScreenShot"]
        await table.pass_(3)
        assert (await table.seen())["ScreenShot"] == first, "stale"

    play(session, lost=1.0, stale=1.0)

    async def held(table):
        assert await table.ask(b"exit_title", 1.0) is None
        assert await table.ask(b"exit_title", 5.0) == "Message received"

    play(held, held=1.0, hold_s=2.0)

    async def delayed(table):
        assert await table.ask(b"pause", 1.0) is None
        assert await table.ask(b"pause", 5.0) == "Message received"

    play(delayed, delayed=1.0, delay_s=2.0)

    async def crash(table):
        assert await table.ask(b"pause") == "Message received"
        assert await table.ask(b"pause") == b""
        assert table.crashes == [134]

    play(crash, crash_on=2)


@pytest.mark.parametrize(
    ("text", "error", "match"),
    [
        ("speeed: 2", UnknownNameError, "speed"),
        ("speed: fast", ConfigError, "speed"),
        ("viewport: 7", ConfigError, "width and height"),
        ("progression: 1", ConfigError, "progression"),
        ("lost: -1", ConfigError, "lost"),
        ("[1]", ConfigError, "mapping"),
        ("[", ConfigError, "YAML"),
    ],
)
def test_wrong_switches_are_refused(tmp_path, text, error, match):
    (tmp_path / "faults.yaml").write_text(text)
    with pytest.raises(error, match=match):
        read(tmp_path / "faults.yaml")


def test_switches_are_read():
    assert parse({"speed": 3, "viewport": [64, 36]}, "x") == Faults(speed=3.0, viewport=(64, 36))


def free_port():
    with socket.socket() as link:
        link.bind(("127.0.0.1", 0))
        return link.getsockname()[1]


@contextlib.contextmanager
def server(tmp_path, text):
    """The program in a process of its own; its port."""
    (tmp_path / "faults.yaml").write_text(text)
    port = free_port()
    command = [sys.executable, "-m", "bridges.stardojo.server", "--port-id", str(port)]
    with subprocess.Popen(
        [*command, "--faults", str(tmp_path / "faults.yaml")], stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert str(port) in process.stderr.readline()
            yield port, process
        finally:
            process.kill()


@pytest.mark.process
def test_a_client_written_from_the_page_alone(tmp_path):
    """Two processes; the client uses a socket and the standard library."""
    with server(tmp_path, "{speed: 20, viewport: [64, 36]}") as (port, process):
        client = [sys.executable, "-I", str(HERE / "stardojo_page_client.py"), str(port)]
        run = subprocess.run(client, capture_output=True, text=True, timeout=60, check=True)
        told = json.loads(run.stdout)
        command = [sys.executable, "-m", "bridges.stardojo.server", "--port-id", str(port)]
        second = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert second.returncode == 2
        assert str(port) in second.stderr
        process.send_signal(signal.SIGINT)
        begun = time.monotonic()
        assert process.wait(10) == 0
        assert time.monotonic() - begun < 5
    assert told["before"] == "Message received<EOF>"
    assert told["load"] == "True<EOF>"
    assert told["names"] == FIELDS
    assert told["player"] == ["Agent New", {"X": 64, "Y": 15}, "Farm"]
    assert told["tiles"] == 49
    assert told["vector"] == "59, 12"
    assert told["pixels"] == 4
    assert told["examples"] == {
        "move_relative%1%1": "True<EOF>",
        "turn%0": "Message received<EOF>",
        "choose_option%1%5%0": "Message received<EOF>",
        "get_monster_kills%Green Slime": "0<EOF>",
        "no_such%1": "Message received<EOF>",
        "turn": "Message received<EOF>",
        "turn%x": "Message received<EOF>",
        "Turn%0": "Message received<EOF>",
    }
    assert told["setup"] == "Message received<EOF>"
    assert "Parsnip" in told["bag"]
    assert told["surroundings"][:3] == ["position", "object_at_tile", "terrain_at_tile"]
    assert told["hangs"] == "(timeout)"
    assert (told["facing"], told["zombie"]) == (0, 3)


COPY = os.environ.get("STARDOJO_REPOSITORY", "")
LOOP = """
    import os, sys, types
    for name in ("dotenv", "cbor", "msgpack"):  # loads keys and reads the mapped file: not needed
        sys.modules[name] = types.ModuleType(name)
    sys.modules["dotenv"].load_dotenv = lambda: None
    sys.path[:0] = [os.getcwd(), os.path.dirname(os.getcwd())]
    from env.stardew_env import StarDojo
    from env.tasks.utils import load_task
    from env.tasks.utils.init_task import InitTaskProxy

    port = int(sys.argv[1])
    game, setup = StarDojo(port=port, new_game=False), InitTaskProxy(port)
    task = load_task.load_task("farming_lite", 0)
    game.action_proxy.wait_for_server()
    task.init_task(setup)
    game.action_proxy.set_mmap_reader()
    before = game._get_obs()
    game.action_proxy.pause_game()
    game.action_proxy.resume_game()
    assert game.action_proxy.move(0, 2)
    game.action_proxy.use(2)
    after = game._get_obs()
    assert after["position"][1] == before["position"][1] + 2
    print(task.llm_description, task.evaluate(after, setup))
    for command in task.init_commands or ():
        if command.startswith("add_item_by_name"):
            name = command.split('"')[1] if '"' in command else command.split("'")[1]
            assert name in [each["Name"] for each in after["inventory"]], command
    game.action_proxy.exit_to_title()
"""


@pytest.mark.long
@pytest.mark.process
@pytest.mark.skipif(not COPY, reason="STARDOJO_REPOSITORY is not the path of a copy of StarDojo")
def test_the_released_client_plays_a_task(tmp_path, monkeypatch):
    monkeypatch.setenv("STARDEW_APP_PATH", str(tmp_path / "StardewModdingAPI"))
    monkeypatch.setenv("HOME", str(tmp_path))
    with server(tmp_path, "{viewport: [64, 36]}") as (port, _):
        run = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(LOOP), str(port)],
            cwd=Path(COPY) / "env", capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
    assert run.returncode == 0, run.stdout + run.stderr
    assert "completed" in run.stdout
