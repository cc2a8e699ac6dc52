"""The keys by which a person plays the valley."""

import string

import numpy as np

from bridges.stardojo.bridge import StardojoBridge
from policies.human_keys import Inputs, controls_for
from policies.human_text import help_lines
from rollout.yaml12 import load_yaml
from tests.unit.desk import ROOT


def test_the_shipped_configuration_has_a_key_for_every_action_and_tells_it():
    config = load_yaml(ROOT / "configs/stardojo/play.yaml")
    spec = StardojoBridge(width=1280, height=720).spec
    keys = config["policy"]["keys"]
    labels = spec.action_labels["action"]
    assert list(keys) == list(labels)
    controls = controls_for(spec, keys, sensitivity=1.0)
    for number, label in enumerate(labels):
        for chord in keys[label]:
            held = tuple(chord.split("+"))
            assert controls.action(Inputs(held)) == {"action": np.array([number])}
            for count in range(1, len(held)):  # keys that are pressed first ask for nothing
                assert not controls.means(Inputs(held[:count])), chord
    told = dict(help_lines(controls))
    assert told["interact('up')"] == "i"
    assert told["choose_item(#)"] == "0 to ="
    assert told["choose_option(#, 1, 'out')"] == "left ctrl+1 to left ctrl+="
    assert told["move(8, 0)"] == "left alt+d"


def test_without_keys_of_ones_own_every_action_has_one():
    controls = controls_for(StardojoBridge(width=320, height=180).spec, {}, sensitivity=1.0)
    assert all(controls.chords.values())
    assert set(string.digits) <= {own[0] for own in controls.chords.values()}
    assert "interact('up')" in dict(help_lines(controls))
