"""StarBench's real window: the same battle by pixels and events, and what is left when it dies."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import cv2
import numpy as np
import psutil
import pytest
import yaml

from bridges.starbench import StarbenchBridge
from bridges.starbench.client import Direct, EmulatorClient, direct_of, send
from bridges.starbench.pictures.drawn import Label
from bridges.starbench.pictures.layout import UI_MAP, UiMap
from bridges.starbench.pictures.renderer import places
from bridges.starbench.rules.battle import Battle
from bridges.starbench.window import client as window_client
from bridges.starbench.window.calibrate import main as calibrate
from bridges.starbench.window.client import HostedWindow, WindowClient
from rollout.api import ACTION, MASK, Start
from rollout.errors import (
    ConfigError,
    GameCrashed,
    GameError,
    GameTimeout,
    InputError,
    StateError,
    UnknownNameError,
)
from rollout.tasks import load_task
from tests.processes import killed_at_end

pytestmark = pytest.mark.process
pytest.importorskip("Xlib")
pytest.importorskip("mss")
needs_x = pytest.mark.skipif(shutil.which("Xvfb") is None, reason="needs Xvfb: say `make xvfb`")

ROOT = Path(__file__).parents[2]
SIZE = (640, 360)
HOST = """
import sys, pathlib
from bridges.starbench.window.client import HostedWindow
window = HostedWindow(pathlib.Path(sys.argv[1]), size=(640, 360))
window.begin("cocolia", 1, {}, {})
print(window.pid, flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def window(tmp_path_factory):
    opened = HostedWindow(tmp_path_factory.mktemp("window"), size=SIZE)
    yield opened
    opened.close()
    gone(opened.pid)


def running(group):
    """The names of the processes of a process group that run."""
    found = []
    for process in psutil.process_iter(["name", "status"]):
        try:
            if os.getpgid(process.pid) == group and process.info["status"] != "zombie":
                found.append(process.info["name"])
        except ProcessLookupError:
            continue
    return found


def gone(group, within_s=60):
    end = time.monotonic() + within_s
    while time.monotonic() < end:
        if not running(group):
            return
        time.sleep(0.05)
    raise AssertionError(f"left: {running(group)}")


def decide(client, number, view):
    """A decision of direct control, or the events of a tool-assisted one."""
    row = [(x / 3, y / 3) for x, y in places(UiMap(), view)]
    if number % 2:
        x, y = row[number % len(row)]
        send(client, Direct("qe1x4"[number % 5], (round(x), round(y))))
    elif view.window == "off_turn":
        parts = (view.offered[0], 3, 9)
        send(client, direct_of(parts, client.ui, enemies=row, actor=None))
    else:
        send(client, direct_of((view.actor, 0, 4), client.ui, enemies=row, actor=view.actor))


class FrameClient:
    """Recorded pictures in the place of a real client: each decision shows the next.

    Args:
        pictures: in order; the last one stays.

    Attributes:
        log: the clicks ``(x, y)`` and keys that were sent.
    """

    def __init__(self, pictures):
        self._pictures = list(pictures)
        height, width = self._pictures[0].shape[:2]
        self.ui = UiMap((width, height))
        self.log = []

    def grab(self):
        """Returns the picture that is shown now."""
        return self._pictures[0]

    def click(self, x, y):
        """Notes a click."""
        self.log.append((x, y))

    def press(self, key):
        """Notes a key, which completes a decision, and shows the next picture."""
        self.log.append(key)
        if len(self._pictures) > 1:
            del self._pictures[0]

    def wait_idle(self):
        """Returns at once."""


@needs_x
def test_the_window_is_the_emulator_pixel_for_pixel(window):
    for task, seed in (("cocolia", 3), ("xianzhou", 4)):
        battle = Battle(task, seed, {})
        emulator = EmulatorClient(battle, SIZE)
        client = window.begin(task, seed, {}, {})
        for number in range(12):
            assert (client.grab() == emulator.grab()).all()
            view = battle.view()
            if view.window == "over":
                break
            decide(emulator, number, view)
            decide(client, number, view)
            assert battle.decisions == number + 1
        assert (client.grab() == emulator.grab()).all()


@needs_x
def test_a_click_outside_and_a_key_of_no_keyboard_do_no_harm(window):
    client = window.begin("cocolia", 1, {}, {})
    before = client.pulse()
    client.press("no such key")
    client.click(-5, 99999)
    client.wait_idle()
    assert client.pulse() == before + 1
    assert client.grab().shape == (360, 640, 3)


@needs_x
def test_any_window_is_played_by_its_title(window, tmp_path):
    window.begin("cocolia", 1, {}, {})
    text = yaml.safe_load(UI_MAP.read_text())
    del text["boxes"]["pulse"]  # other programs count no events
    (tmp_path / "map.yaml").write_text(yaml.safe_dump(text))
    options = {"display": window.display, "timeout_s": 0.2}
    with pytest.raises(UnknownNameError, match=r"gamut starbench"):
        WindowClient("gamut starbenhc", **options)
    with pytest.raises(InputError, match="640 x 360 pixels"):
        WindowClient(window.title, ui=UiMap(path=tmp_path / "map.yaml"), **options)
    ui = UiMap(SIZE, tmp_path / "map.yaml")
    client = WindowClient("gamut starb", display=window.display, ui=ui, still_s=1.0)
    before = client.grab()
    send(client, Direct("space", client.ui.box("skill").centre))
    assert (client.grab() != before).any()
    client.close()


class OneBoss:
    """Finds the boss that stands alone in the middle."""

    def detect(self, picture, least=0.3):
        return [Label("boss", *(890 - 124, 350 - 124), 248, 248)]


@needs_x
@pytest.mark.parametrize("view", ["ta", "dc"])
def test_the_bridge_plays_the_window_as_it_plays_the_emulator(tmp_path, monkeypatch, view):
    monkeypatch.setattr("bridges.starbench.reading.detector.Detector", OneBoss)
    bridge = StarbenchBridge(client="window", view=view, width_px=320)
    assert (bridge.spec.max_width, bridge.spec.process) == (1, "subprocess")
    state = bridge.spec.state_space.state(0)
    start = Start(state, 5)
    ours = StarbenchBridge(view=view, width_px=1920).launch(tmp_path, (), width=1, timeout_s=60)
    window = bridge.launch(tmp_path, (), width=1, timeout_s=60)
    try:
        one, other = (each.reset([0], [start], timeout_s=60) for each in (ours, window))
        for step in range(8):
            shrunk = cv2.resize(
                one.observations["frame"][0], (320, 180), interpolation=cv2.INTER_AREA
            )
            # But for the marks of what is selected, and for the count of events.
            assert (shrunk == other.observations["frame"][0]).mean() > 0.9
            # The clock on the screen is without what no-ops are charged.
            clock = ("action_value",) if step < 2 else ()
            for name in ("won", "score", "invalid", *clock, *(f"hp/{i}" for i in range(4))):
                near = 1.0 if name in ("score", "action_value") else 0.005
                assert other.signals[name][0] == pytest.approx(one.signals[name][0], abs=near)
            assert (one.game_over == other.game_over).all()
            if view == "dc":
                key = (1, 0, 2, 1, 3, 7, 0, 1)[step]  # q, none, e, q, 1, space, none, q
                action = {"x": np.array([890]), "y": np.array([350]), "key": np.array([key])}
            else:
                moves = np.flatnonzero(one.observations[MASK + ACTION][0])
                action = {ACTION: np.array([160 if step == 2 else moves[0]])}
            one, other = (each.step(action, timeout_s=60) for each in (ours, window))
        assert other.tick[0] == one.tick[0] == 8
    finally:
        window.close()


def test_tool_assisted_play_from_detector_boxes_sees_nothing_of_the_engine(tmp_path, monkeypatch):
    battle = Battle("cocolia", 5)

    class Boxes:
        def detect(self, picture, least=0.3):
            view = battle.view()
            middles = zip(view.enemies, places(UiMap(), view), strict=True)
            return [Label(each.kind, x - 60, y - 60, 120, 120) for each, (x, y) in middles]

    monkeypatch.setattr("bridges.starbench.reading.detector.Detector", Boxes)
    start = Start(load_task(StarbenchBridge().spec, "starbench", "cocolia").state_space.state(0), 5)
    bridge = StarbenchBridge(client="pixels", view="ta", width_px=1920)
    played = bridge.launch(tmp_path, (), width=1, timeout_s=60)
    frame = played.reset([0], [start], timeout_s=60)
    for _ in range(12):
        shown = np.flatnonzero(frame.observations[MASK + ACTION][0]).tolist()
        legal = battle.legal()
        assert {*legal, 160} <= {*shown}  # what a move may target is not on the screen
        assert "legal" not in frame.details[0]
        assert "enemy 4: " in frame.details[0]["text"]
        battle.act(legal[-1])
        frame = played.step({ACTION: np.array([legal[-1]])}, timeout_s=60)
        for slot, ally in enumerate(battle.allies):
            assert frame.signals[f"hp/{slot}"][0] == pytest.approx(ally.hp / ally.max_hp, abs=0.01)
    assert frame.tick[0] == battle.decisions == 12
    played.step({ACTION: np.array([160])}, timeout_s=60)
    assert frame.signals["invalid"][0] == 1


def test_in_a_real_window_a_person_begins_the_battles(tmp_path, monkeypatch):
    nothing = np.zeros((1080, 1920, 3), np.uint8)
    drawn = EmulatorClient(Battle("cocolia", 5)).grab()

    class Window(FrameClient):
        def grab(self):
            return self._pictures.pop(0) if len(self._pictures) > 1 else self._pictures[0]

        def close(self):
            self.log.append("closed")

    asked = []
    monkeypatch.setattr(
        "bridges.starbench.window.instance.Ocr",
        type("Ocr", (), {"read": lambda _, part: asked.append(part.shape) or ""}),
    )
    monkeypatch.setattr("bridges.starbench.window.instance._LOOK_S", 0.01)
    window = Window([nothing, nothing, drawn])
    monkeypatch.setattr("bridges.starbench.window.client.WindowClient", lambda *a, **k: window)
    bridge = StarbenchBridge(client="real", view="dc", title="x", real_confirmed=True)
    space, launch = bridge.spec.state_space, {"width": 1, "timeout_s": 9}
    played = bridge.launch(tmp_path, (), **launch)
    wide = next(space.state(n) for n in range(99, space.size, 99) if space.state(n)["level"] == 5)
    with pytest.raises(StateError, match="cannot set"):
        played.reset([0], [Start(wide, 1)], timeout_s=9)
    usual = load_task(bridge.spec, "starbench", "cocolia").state_space.state(3)
    frame = played.reset([0], [Start(usual, 1)], timeout_s=9)
    assert not frame.game_over[0]
    assert asked  # its texts are read by OCR
    window._pictures = [nothing]
    with pytest.raises(GameTimeout, match="begin each by hand"):
        played.reset([0], [Start(usual, 1)], timeout_s=0.1)
    played.close()
    assert window.log == ["closed"]


def test_options_that_do_not_fit_are_refused():
    for options in ({"client": "window"}, {"client": "window", "view": "dc", "snapshots": True}):
        with pytest.raises(ConfigError, match="pixels alone"):
            StarbenchBridge(**options)
    with pytest.raises(ConfigError, match="title"):
        StarbenchBridge(client="real", view="dc")
    with pytest.raises(UnknownNameError, match="window"):
        StarbenchBridge(client="windows", view="dc")
    with pytest.raises(ConfigError, match="terms of service"):
        StarbenchBridge(client="real", view="dc", title="x").launch(
            Path(), (), width=1, timeout_s=1
        )


def test_without_a_display_or_a_server_it_says_so(monkeypatch, tmp_path):
    monkeypatch.delenv("DISPLAY", raising=False)
    with pytest.raises(ConfigError, match="DISPLAY is not set"):
        WindowClient("any")
    with pytest.raises(ConfigError, match=":77 cannot be opened"):
        WindowClient("any", display=":77")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match="install Xvfb"):
        HostedWindow(tmp_path)


@needs_x
def test_a_window_without_the_extra_is_refused_before_it_is_started(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "mss", None)
    monkeypatch.setattr(window_client, "LineProcess", pytest.fail)
    with pytest.raises(ConfigError, match="needs the extra starbench"):
        HostedWindow(tmp_path)


@needs_x
def test_a_killed_window_is_reported_and_leaves_nothing(tmp_path):
    window = HostedWindow(tmp_path, size=SIZE, timeout_s=20)
    client = window.begin("cocolia", 2, {}, {})
    assert "Xvfb" in running(window.pid)
    os.kill(window.pid, signal.SIGKILL)
    with pytest.raises(GameCrashed, match="is gone"):  # noqa: PT012 - it may die a moment later
        for _ in range(100):
            send(client, Direct("q", (297, 117)))
            client.grab()
    with pytest.raises(GameError):
        window.begin("cocolia", 3, {}, {})
    window.close()
    gone(window.pid)


@needs_x
def test_a_window_killed_as_it_begins_is_a_crash_of_the_game(tmp_path, monkeypatch):
    window = HostedWindow(tmp_path, size=SIZE, timeout_s=20)
    answered = window._ask

    def killed_after(request):
        answer = answered(request)
        os.killpg(window.pid, signal.SIGKILL)
        gone(window.pid)
        return answer

    monkeypatch.setattr(window, "_ask", killed_after)
    try:
        with pytest.raises(GameCrashed, match="as it began"):
            window.begin("cocolia", 2, {}, {})
    finally:
        window.close()


@needs_x
@pytest.mark.parametrize("both", [False, True])
def test_a_killed_host_leaves_nothing(tmp_path, both):
    command, pipe = [sys.executable, "-c", HOST, str(tmp_path)], subprocess.PIPE
    started = subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True)
    with killed_at_end(started) as program:
        pid = int(program.stdout.readline())
        assert "Xvfb" in running(pid)
        program.kill()
        if both:
            os.kill(pid, signal.SIGKILL)
        program.communicate(timeout=60)
    gone(pid)


def test_a_decision_is_a_click_then_a_key():
    pictures = [np.full((360, 640, 3), each, np.uint8) for each in (1, 2)]
    client = FrameClient(pictures)
    send(client, Direct("q", (10, 20)))
    assert client.log == [(10, 20), "q"]
    assert client.grab()[0, 0, 0] == 2
    send(client, Direct("e"))
    assert client.log[2:] == ["e"]
    assert client.grab()[0, 0, 0] == 2  # the last one stays


def test_calibration_draws_every_box(tmp_path, capsys):
    shot, out = tmp_path / "shot.png", tmp_path / "out.png"
    cv2.imwrite(str(shot), np.zeros((720, 1280, 3), np.uint8))
    assert calibrate([str(shot), "--out", str(out)]) == 0
    drawn = cv2.imread(str(out))
    assert drawn.shape == (720, 1280, 3)
    for _, _, _, box in UiMap((1280, 720)).boxes():
        assert drawn[box.y, box.x : box.x + box.w].any()
    assert calibrate([str(tmp_path / "no.png"), "--out", str(out)]) == 2
    cv2.imwrite(str(shot), np.zeros((700, 1280, 3), np.uint8))
    assert calibrate([str(shot), "--out", str(out)]) == 2
    assert "640 x 360" in capsys.readouterr().err
