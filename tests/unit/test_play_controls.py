"""What keys and mouse mean, and what the window says; no window is opened here."""

import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st

from policies.human import HumanPolicy, _picture_column
from policies.human_keys import Camera, Inputs, make_controls, mu_law
from policies.human_text import help_lines
from policies.human_window import picture
from rollout.api import BridgeSpec, Factor, StateSpace
from rollout.errors import ConfigError, UnknownNameError

STATES = StateSpace((Factor("seed", range(10)),))
KEYS = ("attack", "back", "forward", "jump", "hotbar.1", "hotbar.2")


def make_spec(actions, labels=None, observations=None):
    seen = observations or {"rgb": spaces.Box(0, 255, (8, 8, 3), np.uint8)}
    return BridgeSpec(
        "game", "1", spaces.Dict(seen), spaces.Dict(actions), STATES, action_labels=labels or {}
    )


def human(**given):
    actions = {"keys": spaces.MultiBinary(len(KEYS)), "camera": spaces.MultiDiscrete([11, 11])}
    spec = make_spec(actions, {"keys": KEYS, "camera": ("pitch", "yaw")})
    return make_controls(spec, given, sensitivity=0.5)


def one_of(*labels, **given):
    spec = make_spec({"action": spaces.Discrete(len(labels))}, {"action": labels})
    return make_controls(spec, given, sensitivity=0.5)


def chosen(controls, *held):
    return int(controls.action(Inputs(held))["action"][0])


def test_keys_set_their_bits():
    row = human().action(Inputs(("w", "mouse left", "2", "x")))
    assert row["keys"].tolist() == [[1, 0, 1, 0, 0, 1]]
    assert row["camera"].tolist() == [[5, 5]]
    assert {key: column.dtype for key, column in row.items()} == {"keys": np.int8, "camera": int}


def test_the_mouse_turns_the_camera_by_the_nearest_bin():
    assert human().action(Inputs(right=6.4))["camera"].tolist() == [[5, 8]]  # 3.2 degrees
    assert human().action(Inputs(down=-100))["camera"].tolist() == [[0, 5]]
    assert human().action(Inputs(("up", "right")))["camera"].tolist() == [[1, 9]]


@given(st.lists(st.integers(-12, 12), max_size=30))
def test_over_a_few_steps_the_view_turns_as_far_as_the_hand_did(pixels):
    controls, turned = human(), 0.0
    angles = mu_law(11)
    for moved in [*pixels, *[0] * 30]:
        turned += angles[controls.action(Inputs(right=moved))["camera"][0, 1]]
    assert turned == pytest.approx(0.5 * sum(pixels), abs=0.31)  # half of the smallest turn


def test_of_a_wild_sweep_little_is_left_over():
    controls = human()
    controls.action(Inputs(right=5000))
    later = [int(controls.action(Inputs())["camera"][0, 1]) for _ in range(5)]
    assert later[0] == 10
    assert later[-1] == 5


def test_the_angles_are_those_of_minestudio():
    assert mu_law(11)[5:] == pytest.approx([0, 0.6154, 1.6095, 3.2154, 5.8095, 10], abs=1e-4)


def test_angles_come_from_the_labels_if_there_are_any():
    leaf = spaces.MultiDiscrete([3, 3])
    labels = {"camera": ("pitch", "yaw"), "camera/yaw": ("-90", "0", "90")}
    assert Camera.make("camera", leaf, labels).bins(4, 60) == (1, 2)
    labels["camera/yaw"] = ("left", "ahead", "right")
    with pytest.raises(ConfigError, match="expected degrees"):
        Camera.make("camera", leaf, labels)


def test_the_longest_chord_wins_and_then_the_key_pressed_last():
    controls = one_of("noop", "forward", "attack", "forward_attack", "sprint")
    assert chosen(controls) == 0
    assert chosen(controls, "w") == 1
    assert chosen(controls, "j", "w") == 3
    assert chosen(controls, "w", "left ctrl") == 4
    assert chosen(controls, "left ctrl", "w") == 1
    assert not controls.requests_action(Inputs(("x",)))
    assert controls.requests_action(Inputs(("n",)))


def test_actions_without_a_usual_key_get_digits_and_letters():
    controls = one_of("noop", "place_table", "move_left", *(f"make_{n}" for n in range(12)))
    assert controls.chords["place_table"] == ["0"]
    assert controls.chords["make_8"] == ["9"]
    assert controls.chords["make_9"] == ["b"]  # the a moves left
    plain = make_controls(make_spec({"a": spaces.Discrete(3, start=-1)}), {}, sensitivity=1)
    assert dict(plain.chords) == {"-1": ["0"], "0": ["1"], "1": ["2"]}
    assert plain.action(Inputs(("2",)))["a"].tolist() == [1]


def test_given_keys_take_the_place_of_the_usual_ones():
    assert chosen(one_of("noop", "forward", forward=("up",)), "w") == 0
    assert chosen(one_of("noop", "forward", forward=("up",)), "up") == 1
    with pytest.raises(UnknownNameError, match="Nearest: forward"):
        one_of("noop", "forward", forwrd=("up",))
    with pytest.raises(ConfigError, match="'x' is for noop already"):
        one_of("noop", "forward", noop=("x",), forward=("x",))
    with pytest.raises(ConfigError, match="is for the window already"):
        one_of("noop", "forward", noop=("escape",))


@pytest.mark.parametrize(
    "actions",
    [
        {"a": spaces.Box(-1, 1, (2,))},
        {"keys": spaces.MultiBinary(3)},  # nobody knows what the bits are
        {"buttons": spaces.Discrete(9), "camera": spaces.Discrete(9)},
    ],
)
def test_other_actions_are_refused_and_named(actions):
    with pytest.raises(ConfigError, match=next(iter(actions))):
        make_controls(make_spec(actions), {}, sensitivity=1)


def test_a_click_goes_to_its_place_on_the_picture_and_stays_there():
    place = {"x": spaces.Discrete(1920), "y": spaces.Discrete(1080)}
    spec = make_spec({**place, "key": spaces.Discrete(4)}, {"key": ("none", "q", "space", "1")})
    controls = make_controls(spec, {}, sensitivity=1)
    assert not controls.requests_action(Inputs(("mouse left",)))  # held since an earlier step
    clicked = Inputs(("mouse left",), clicked=(0.5, 1.0))
    assert controls.requests_action(clicked)
    row = {name: value.tolist() for name, value in controls.action(clicked).items()}
    assert row == {"x": [960], "y": [1079], "key": [0]}
    for key, number in (("q", 1), ("space", 2), ("1", 3), ("n", 0)):
        assert controls.requests_action(Inputs((key,)))
        row = {name: value.tolist() for name, value in controls.action(Inputs((key,))).items()}
        assert row == {"x": [960], "y": [1079], "key": [number]}
    assert dict(help_lines(controls))["click"] == "mouse left"


def test_every_key_is_in_the_help():
    lines = dict(help_lines(human()))
    assert lines["forward"] == "w"
    assert lines["attack"] == "mouse left or j"
    assert lines["hotbar"] == "1 to 2"
    assert "mouse" in lines["turn, look"]


def test_only_pictures_are_shown():
    frame = spaces.Box(0, 255, (8, 8, 3), np.uint8)
    seen = {"vitals": spaces.Box(0, 1, (8,)), "rgb": frame, "map": frame}
    spec = make_spec({"a": spaces.Discrete(2)}, observations=seen)
    assert _picture_column(spec, "") in ("map", "rgb")
    assert _picture_column(spec, "map") == "map"
    with pytest.raises(UnknownNameError, match="image observation 'vitals'"):
        _picture_column(spec, "vitals")
    blind = make_spec({"a": spaces.Discrete(2)}, observations={"vitals": seen["vitals"]})
    with pytest.raises(ConfigError, match=r"shows vitals; .*bridge.observe=\[rgb\]"):
        _picture_column(blind, "")


@pytest.mark.parametrize(
    ("shape", "stack"), [((9, 8), False), ((9, 8, 3), False), ((4, 9, 8), True), ((9, 8, 1), False)]
)
def test_a_picture_has_three_channels(shape, stack):
    value = np.arange(np.prod(shape)).reshape(shape).astype(np.uint8)
    shown = picture(spaces.Box(0, 255, shape, np.uint8), value)
    assert shown.shape == (9, 8, 3)
    newest = value[-1] if stack else value
    assert (shown[..., 0] == newest.reshape(9, 8, -1)[..., 0]).all()


@pytest.mark.parametrize("wrong", [{"steps_per_second": 0.0}, {"scale": -1}, {"sensitivity": 0.0}])
def test_options_are_checked(wrong):
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        HumanPolicy(**wrong)
