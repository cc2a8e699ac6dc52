"""StarBench's screen: its map, its pictures, and what clicks and keys do."""

import dataclasses
import hashlib
import subprocess
import sys

import numpy as np
import pytest
import yaml

from bridges.starbench.client import Direct, EmulatorClient, direct_of, send
from bridges.starbench.pictures.art import element
from bridges.starbench.pictures.layout import UI_MAP, UiMap
from bridges.starbench.pictures.renderer import Renderer, places
from bridges.starbench.reading.scenes import scene
from bridges.starbench.rules.view import ALL, HOLD, RELEASE, SKILL, action_id
from rollout.errors import ConfigError, InputError, UnknownNameError

pytestmark = pytest.mark.heavy

SMALL = (640, 360)
HASHES = """
import hashlib
from bridges.starbench.reading.scenes import scene
from bridges.starbench.pictures.renderer import Renderer
renderer = Renderer((640, 360))
print(*(hashlib.sha256(renderer.drawn(*scene(i)).picture).hexdigest() for i in range(3)))
"""


class StubBattle:
    """A battle that only remembers what was done; actions of ``legal`` are legal."""

    def __init__(self, view, legal):
        self._view, self.legal, self.log = view, set(legal), []

    def view(self):
        return self._view

    def mask(self):
        mask = np.zeros(160, bool)
        mask[sorted(self.legal)] = True
        return mask

    def act(self, action):
        assert action in self.legal
        self.log.append(action)
        return True

    def act_invalid(self, reason=""):
        self.log.append("invalid")

    def act_select(self):
        self.log.append("select")


def turn(**changes):
    """The turn of the first ally against three enemies."""
    for number in range(1000):
        view, _, _ = scene(number)
        if len(view.enemies) == 3 and all(ally.alive for ally in view.allies):
            changes = {"window": "turn", "actor": 0, "offered": (), **changes}
            return dataclasses.replace(view, **changes)
    raise AssertionError


SINGLE = [action_id(0, 0, t) for t in (4, 5, 6)] + [action_id(0, 1, t) for t in (4, 5, 6)]


def controls(view, legal=SINGLE):
    battle = StubBattle(view, legal)
    return battle, EmulatorClient(battle)


def enemy_at(view, k):
    x, y = places(UiMap(), view)[k]
    return round(x), round(y)


def test_the_same_view_gives_the_same_picture_in_any_process():
    renderer = Renderer(SMALL)
    here = [hashlib.sha256(renderer.drawn(*scene(i)).picture).hexdigest() for i in range(3)]
    done = subprocess.run(
        [sys.executable, "-c", HASHES], capture_output=True, text=True, check=True, timeout=300
    )
    assert done.stdout.split() == here
    assert len(set(here)) == 3


@pytest.mark.parametrize("size", [(1920, 1080), SMALL, (320, 180)])
def test_pictures_have_the_size_and_show_every_change(size):
    renderer = Renderer(size)
    view, marks, _ = scene(5)
    view = dataclasses.replace(view, message="")
    picture = renderer.draw(view, marks)
    assert picture.shape == (size[1], size[0], 3)
    assert picture.dtype == np.uint8
    hurt = dataclasses.replace(view.enemies[0], hp=view.enemies[0].hp / 2, statuses=())
    other = dataclasses.replace
    changed = [
        other(view, enemies=(hurt, *view.enemies[1:])),
        other(view, skill_points=(view.skill_points + 1) % 5),
        other(view, clock=view.clock + 40),
        other(view, message="A boss arrives"),
        other(view, damage=view.damage + 12345),
        other(view, outcome="won"),
        other(view, outcome="lost"),
    ]
    pictures = [renderer.draw(each, marks) for each in changed]
    pictures += [renderer.draw(view, other(marks, **{k: v})) for k, v in (("events", 77),)]
    assert all((each != picture).any() for each in pictures)
    assert (renderer.draw(view, marks) == picture).all()


def test_labels_and_texts_are_where_they_are_drawn():
    for number in range(12):
        view, marks, centres = scene(number)
        drawn = Renderer(SMALL).drawn(view, marks, centres)
        names = [label.name for label in drawn.labels]
        assert names.count("ally_slot") == 4
        assert [n for n in names if n in ("enemy", "boss", "summon")] == [
            enemy.kind for enemy in view.enemies
        ]
        assert names.count("ult_ready") == sum(ally.ready for ally in view.allies)
        for label in drawn.labels:
            assert label.x >= 0
            assert label.x + label.w <= SMALL[0]
            assert label.y >= 0
            assert label.y + label.h <= SMALL[1]
        for text in drawn.written:
            if text.text:
                x, y, w, h = text.box
                assert np.ptp(drawn.picture[y : y + h, x : x + w].astype(int)) > 60


def test_an_unknown_element_is_named():
    with pytest.raises(UnknownNameError, match="quantum"):
        element("quantom", 30)


def write_map(path, **changes):
    text = yaml.safe_load(UI_MAP.read_text())
    text["boxes"].update(changes)
    path.write_text(yaml.safe_dump(text))
    return path


@pytest.mark.parametrize(
    ("box", "said"),
    [
        ({"at": [1900, 10, 40, 40]}, "'skill' leaves the screen of 1920 x 1080"),
        ({"at": [0, 0, 10, 10], "stop": [1, 1]}, "step"),
        ({"at": [1, 2, 3]}, "expected"),
        ({"at": [1, 2, 3, 4], "in": "cards"}, "cards"),
        ({"at": [1, 2, 3, 4], "text": [20, "centre"]}, "center"),
        ("there", "expected"),
    ],
)
def test_a_bad_map_is_named(tmp_path, box, said):
    path = write_map(tmp_path / "map.yaml", skill=box)
    with pytest.raises((ConfigError, UnknownNameError), match=said):
        UiMap(path=path)


def test_maps_are_scaled_and_know_their_boxes(tmp_path):
    with pytest.raises(UnknownNameError, match=r"ally\.ring"):
        UiMap().box("ally.rings")
    with pytest.raises(ConfigError, match="640 x 360"):
        UiMap((640, 480))
    with pytest.raises(ConfigError, match="no UI map"):
        UiMap(path=tmp_path / "none.yaml")
    big, small = UiMap(), UiMap(SMALL)
    for (name, i, j, one), (_, _, _, other) in zip(big.boxes(), small.boxes(), strict=True):
        assert abs(one.x / 3 - other.x) <= 1, (name, i, j)
        assert abs(one.w / 3 - other.w) <= 1, (name, i, j)


def test_a_click_selects_and_a_key_acts():
    view = turn()
    battle, played = controls(view)
    played.click(*enemy_at(view, 2))
    assert played.marks.enemy == 6
    played.press("q")
    assert not played.off_target
    played.press("e")  # the mark stays
    assert not played.off_target  # nothing was clicked, so nothing was missed
    assert played.marks.events == 3
    assert battle.log == [SINGLE[2], SINGLE[5]]


def test_a_click_on_nothing_acts_on_the_default_and_is_flagged():
    battle, played = controls(turn())
    played.click(3, 600)
    played.press("q")
    assert battle.log == [SINGLE[0]]
    assert played.off_target


def test_targets_fit_the_move():
    ally = [action_id(0, 1, t) for t in range(4)]
    view = turn()
    battle, played = controls(view, [*ally, action_id(0, 0, 4)])
    played.click(*UiMap().box("ally", 2).centre)
    played.press("e")
    played.click(*enemy_at(view, 1))
    played.press("q")
    assert battle.log == [action_id(0, 1, 2), action_id(0, 0, 4)]  # the only legal one
    battle, played = controls(view, [action_id(0, 1, ALL)])
    played.click(*enemy_at(view, 1))
    played.press("E")
    assert battle.log == [action_id(0, 1, ALL)]


def test_what_has_no_effect_is_invalid():
    view = turn()
    battle, played = controls(view, SINGLE[:3])
    played.press("e")  # no skill points
    played.press("2")  # no energy
    played.press("f12")
    played.click(3, 600)
    played.press("escape")
    assert battle.log == ["invalid"] * 4
    played.click(*UiMap().box("skill").centre)
    played.press("escape")  # the click has selected
    assert battle.log[4:] == ["select"]
    assert played.marks.move == SKILL
    played.press("space")
    assert battle.log[5:] == ["invalid"]


def test_keys_move_the_target_and_space_confirms():
    battle, played = controls(turn())
    for key, target in (("d", 5), ("d", 6), ("d", 4), ("a", 6)):
        played.press(key)
        assert played.marks.enemy == target
    played.press("space")
    assert battle.log == ["select"] * 4 + [SINGLE[2]]


def test_ultimates_are_released_and_held():
    view = turn(window="off_turn", actor=None, offered=(1, 3))
    legal = [action_id(1, RELEASE, ALL), action_id(3, RELEASE, 5)]
    legal += [action_id(c, HOLD, ALL) for c in (1, 3)]
    battle, played = controls(view, legal)
    played.press("space")  # the leftmost
    played.click(*UiMap().box("ally", 3).centre)
    played.press("space")
    played.press("4")
    played.press("2")
    held = [action_id(c, HOLD, ALL) for c in (1, 3)]
    assert battle.log == [*held, legal[1], legal[0]]
    played.press("q")
    assert battle.log[4:] == ["invalid"]


def test_nothing_happens_when_the_battle_is_over():
    battle, played = controls(turn(window="over", actor=None, outcome="won"))
    played.press("q")
    assert battle.log == []


def test_marks_stay_on_the_living():
    view = turn()
    battle, played = controls(view)
    played.click(*enemy_at(view, 2))
    battle._view = dataclasses.replace(view, enemies=view.enemies[:2])
    played.press("a")
    assert played.marks.enemy in (4, 5)


def test_assisted_actions_do_on_the_screen_what_they_do_in_the_battle():
    ally = [action_id(0, 1, t) for t in range(4)]
    cases = [
        (turn(), SINGLE[:3]),
        (turn(), [*ally, SINGLE[0]]),
        (turn(), [action_id(0, 1, ALL), action_id(2, RELEASE, 5), action_id(3, RELEASE, ALL)]),
        (
            turn(window="off_turn", actor=None, offered=(1, 3)),
            [action_id(1, HOLD, ALL), action_id(3, HOLD, ALL), action_id(3, RELEASE, 2)],
        ),
    ]
    for view, legal in cases:
        for action in legal:
            battle = StubBattle(view, legal)
            client = EmulatorClient(battle, SMALL)
            parts = (action // 40, action // 10 % 4, action % 10)
            row = [(x / 3, y / 3) for x, y in places(client.ui, view)]
            send(client, direct_of(parts, client.ui, enemies=row[::-1], actor=view.actor))
            assert battle.log == [action]


@pytest.mark.parametrize("action", [(4, 0, 4), (0, 5, 4), (0, 0, 10), (0, 0, 7), (1, 0, 4)])
def test_what_the_screen_cannot_express_is_refused(action):
    with pytest.raises(InputError):
        direct_of(action, UiMap(), enemies=[(500, 300), (700, 300)], actor=0)
    assert direct_of((0, 0, 5), UiMap(), enemies=[(700.4, 300), (500, 300)], actor=0) == Direct(
        "q", (700, 300)
    )
