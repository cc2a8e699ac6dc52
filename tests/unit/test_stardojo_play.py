"""The keys by which a person plays the valley."""

import itertools
import string

import numpy as np
import pytest

from bridges.stardojo.bridge import StardojoBridge
from policies.human_keys import Inputs, make_controls
from policies.human_text import help_lines
from policies.human_window import Window
from rollout.yaml12 import load_yaml
from tests.unit.desk import ROOT


def test_the_shipped_configuration_has_a_key_for_every_action_and_tells_it():
    config = load_yaml(ROOT / "configs/stardojo/play.yaml")
    spec = StardojoBridge(width=1280, height=720).spec
    keys = config["policy"]["keys"]
    labels = spec.action_labels["action"]
    assert list(keys) == list(labels)
    controls = make_controls(spec, keys, sensitivity=1.0)
    for number, label in enumerate(labels):
        for chord in keys[label]:
            held = tuple(chord.split("+"))
            assert controls.action(Inputs(held)) == {"action": np.array([number])}
            for count in range(1, len(held)):  # keys that are pressed first ask for nothing
                assert not controls.requests_action(Inputs(held[:count])), chord
    told = dict(help_lines(controls))
    assert told["interact('up')"] == "i"
    assert told["choose_item(#)"] == "0 to ="
    assert told["choose_option(#, 1, 'out')"] == "left ctrl+1 to left ctrl+="
    assert told["move(8, 0)"] == "left alt+d"


def test_without_keys_of_ones_own_every_action_has_one():
    controls = make_controls(StardojoBridge(width=320, height=180).spec, {}, sensitivity=1.0)
    assert all(controls.chords.values())
    assert set(string.digits) <= {own[0] for own in controls.chords.values()}
    assert "interact('up')" in dict(help_lines(controls))


@pytest.mark.parametrize("size", [(1280, 880), (640, 520), (640, 340)])
def test_the_help_fits_the_window_and_its_texts_do_not_touch(size, monkeypatch):
    pygame = pytest.importorskip("pygame")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    config = load_yaml(ROOT / "configs/stardojo/play.yaml")
    spec = StardojoBridge(width=1280, height=720).spec
    lines = help_lines(make_controls(spec, config["policy"]["keys"], sensitivity=1.0))
    shown, boxes = Window(), []

    class Surface(pygame.Surface):
        def blit(self, image, place):
            boxes.append(image.get_rect(topleft=place))

    shown._surface = Surface(size)
    shown._font = pygame.font.Font(None, 22)
    shown._write_over(lines)
    seen = [box for box in boxes if box.width]
    assert len(seen) == sum(bool(text) for line in lines for text in line)
    assert all(pygame.Rect(0, 0, *size).contains(box) for box in seen)
    assert not any(a.colliderect(b) for a, b in itertools.combinations(seen, 2))
