"""The action layouts: MineStudio's exact numbers, and that no way round loses an action."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from bridges.blockworld.actions import (
    BUTTONS,
    CAMERAS,
    COMPACT,
    KEYS,
    LAYOUTS,
    ONLY_INVENTORY,
    STILL_CAMERA,
    camera_bins,
    camera_degrees,
    from_flat,
    to_flat,
)
from bridges.blockworld.rules import world
from rollout.api import sample
from rollout.errors import ConfigError, SpaceError

CENTRES = [-10, -5.8095, -3.2154, -1.6095, -0.6154, 0, 0.6154, 1.6095, 3.2154, 5.8095, 10]
EDGES = [0.2705, 1.0535, 2.3165, 4.3575, 7.6545]

HUMANS = st.integers(1, 30).flatmap(
    lambda n: st.tuples(
        hnp.arrays(np.int8, (n, 20), elements=st.integers(0, 1)),
        hnp.arrays(np.int64, (n, 2), elements=st.integers(0, 10)),
    )
)


def keys(*names):
    row = np.zeros((1, 20), np.int8)
    row[0, [KEYS.index(n) for n in names]] = 1
    return row


STILL = np.array([[5, 5]])


def flat(*names, camera=STILL):
    buttons, index = to_flat(keys(*names), camera)
    return int(buttons[0]), int(index[0])


def decoded(layout, columns, worlds=None):
    out = np.zeros(len(next(iter(columns.values()))), world.CONTROLS)
    LAYOUTS[layout].decode(columns, worlds, out)
    return out


def compact(*names, selected=0):
    worlds = np.zeros(len(names), world.WORLD)
    worlds["selected"] = selected
    return decoded("compact", {"action": np.array([COMPACT.index(n) for n in names])}, worlds)


def test_keys_are_the_bits_of_the_controls():
    names = [name.upper().replace(".", "_") for name in KEYS]
    assert [getattr(world, name) for name in names] == [1 << bit for bit in range(20)]


def test_bins_have_the_centres_of_minestudio():
    np.testing.assert_allclose(camera_degrees(np.arange(11)), CENTRES, atol=5e-5)
    np.testing.assert_array_equal(camera_bins(camera_degrees(np.arange(11))), np.arange(11))


@pytest.mark.parametrize(("number", "edge"), list(enumerate(EDGES)))
def test_bins_have_the_edges_of_minestudio(number, edge):
    # Found there by stepping through angles, so only nearly the edges of the formula.
    below, above, step = 5 + number, 6 + number, 1.5e-3
    assert camera_bins([edge - step, edge + step]).tolist() == [below, above]
    assert camera_bins([-edge + step, -edge - step]).tolist() == [10 - below, 10 - above]


def test_the_camera_is_clipped_at_ten_degrees():
    assert camera_bins([-180.0, 180.0, 0.0]).tolist() == [0, 10, 5]


@given(st.floats(-10, 10))
def test_a_bin_is_the_nearest_in_mu_law_units(degrees):
    encoded = np.sign(degrees) * 10 * np.log1p(abs(degrees)) / np.log(11)
    assert abs(int(camera_bins([degrees])[0]) - (encoded + 10) / 2) <= 0.5 + 1e-9


@pytest.mark.parametrize(
    ("names", "value"),
    [
        ((), 0),
        *(((f"hotbar.{n}",), 864 * n) for n in range(1, 10)),
        (("forward",), 288),
        (("back",), 576),
        (("left",), 96),
        (("right",), 192),
        (("sprint",), 32),
        (("sneak",), 64),
        (("use",), 16),
        (("drop",), 8),
        (("attack",), 4),
        (("jump",), 2),
        (("inventory",), 8640),
        (("forward", "sprint", "jump"), 322),
        (("forward", "back"), 0),
        (("left", "right", "attack"), 4),
        (("hotbar.2", "hotbar.7"), 864 * 7),
        (("sprint", "sneak"), 64),
        (("inventory", "attack", "hotbar.3"), 8640),
    ],
)
def test_buttons_have_the_place_values_of_minestudio(names, value):
    assert flat(*names) == (value, 60)


def test_the_camera_is_pitch_times_eleven_plus_yaw():
    assert flat(camera=np.array([[2, 9]])) == (1, 2 * 11 + 9)
    assert flat("inventory", camera=np.array([[2, 9]])) == (ONLY_INVENTORY, STILL_CAMERA)


def test_every_flat_action_is_defined_and_comes_back_in_its_canonical_form():
    buttons, camera = (a.ravel() for a in np.indices((BUTTONS, CAMERAS)))
    held, bins = from_flat(buttons, camera)
    assert held.min() >= 0
    assert held.max() == 1
    assert bins.min() == 0
    assert bins.max() == 10
    again_buttons, again_camera = to_flat(held, bins)
    turns = (buttons % 2 == 1) & (camera != STILL_CAMERA)
    np.testing.assert_array_equal(again_buttons, np.where(turns, buttons, buttons - buttons % 2))
    np.testing.assert_array_equal(again_camera, np.where(turns, camera, STILL_CAMERA))


def test_no_two_buttons_mean_the_same():
    held, _ = from_flat(np.arange(BUTTONS), np.zeros(BUTTONS, int))
    turns = (np.arange(BUTTONS) % 2)[:, None]
    assert len(np.unique(np.hstack([held, turns]), axis=0)) == BUTTONS


@settings(max_examples=100)
@given(HUMANS)
def test_a_human_action_changes_at_most_once_on_its_way_through_flat(human):
    once = from_flat(*to_flat(*human))
    twice = from_flat(*to_flat(*once))
    np.testing.assert_array_equal(once[0], twice[0])
    np.testing.assert_array_equal(once[1], twice[1])


@settings(max_examples=100)
@given(HUMANS)
def test_human_decodes_to_its_keys_and_angles(human):
    held, camera = human
    out = decoded("human", {"keys": held, "camera": camera})
    expected = [sum(int(on) << bit for bit, on in enumerate(row)) for row in held]
    assert out["keys"].tolist() == expected
    np.testing.assert_allclose(out["pitch"], np.take(CENTRES, camera[:, 0]), atol=5e-5)
    np.testing.assert_allclose(out["yaw"], np.take(CENTRES, camera[:, 1]), atol=5e-5)


def test_flat_decodes_as_the_human_action_that_it_stands_for():
    rng = np.random.default_rng(0)
    buttons, camera = rng.integers(0, BUTTONS, 5000), rng.integers(0, CAMERAS, 5000)
    held, bins = from_flat(buttons, camera)
    np.testing.assert_array_equal(
        decoded("human_flat", {"buttons": buttons, "camera": camera}),
        decoded("human", {"keys": held, "camera": bins}),
    )


def test_compact_is_twenty_actions():
    assert len(set(COMPACT)) == 20
    assert COMPACT[0] == "noop"


def test_compact_presses_keys_and_turns():
    out = compact("noop", "sprint", "turn_left", "look_down", "forward_attack")
    assert (out["keys"] & world.AUTO_CLICK).all()
    assert (out["keys"] & ~np.uint32(world.AUTO_CLICK)).tolist() == [
        0,
        world.FORWARD | world.SPRINT,
        0,
        0,
        world.FORWARD | world.ATTACK,
    ]
    assert out["yaw"].tolist() == [0, 0, -15, 0, 0]
    assert out["pitch"].tolist() == [0, 0, 0, 15, 0]


@pytest.mark.parametrize(
    ("name", "selected", "key"),
    [
        ("next_item", 0, world.HOTBAR_2),
        ("next_item", 8, world.HOTBAR_1),
        ("previous_item", 8, world.HOTBAR_8),
        ("previous_item", 0, world.HOTBAR_9),
    ],
)
def test_compact_goes_round_the_hotbar(name, selected, key):
    out = compact("noop", name, selected=selected)
    assert out["keys"].tolist() == [world.AUTO_CLICK, world.AUTO_CLICK | key]


@pytest.mark.parametrize("name", LAYOUTS)
def test_controls_come_back_as_the_same_action(name):
    layout = LAYOUTS[name]
    columns = sample(layout.space, 300, np.random.default_rng(1))
    worlds = np.zeros(300, world.WORLD)
    first, second = np.zeros(300, world.CONTROLS), np.zeros(300, world.CONTROLS)
    layout.decode(columns, worlds, first)
    again = layout.encode(first["keys"], first["pitch"], first["yaw"], worlds)
    assert {k: (v.dtype, v.shape) for k, v in again.items()} == {
        k: (v.dtype, v.shape) for k, v in columns.items()
    }
    layout.decode(again, worlds, second)
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize(
    ("held", "pitch", "yaw", "name"),
    [
        (0, 0, 0, "noop"),
        (0, 3, -5, "noop"),
        (world.FORWARD, 40, 8, "turn_right"),
        (world.FORWARD, -8, 7, "look_up"),
        (world.FORWARD | world.SPRINT, 0, 0, "sprint"),
        (world.FORWARD | world.JUMP | world.SPRINT, 0, 0, "jump_forward"),
        (world.FORWARD | world.ATTACK | world.JUMP, 0, 0, "forward_attack"),
        (world.ATTACK | world.USE, 0, 0, "use"),
        (world.BACK | world.LEFT, 0, 0, "back"),
    ],
)
def test_compact_takes_the_most_pressing_action(held, pitch, yaw, name):
    columns = LAYOUTS["compact"].encode(np.array([held]), np.array([pitch]), np.array([yaw]))
    assert COMPACT[columns["action"][0]] == name


def test_compact_steps_towards_a_hotbar_slot_and_stops_there():
    worlds = np.zeros(4, world.WORLD)
    worlds["selected"] = [0, 0, 8, 3]
    wanted = [world.HOTBAR_3, world.HOTBAR_9, world.HOTBAR_2, world.HOTBAR_4 | world.FORWARD]
    still = np.zeros(4)
    columns = LAYOUTS["compact"].encode(np.array(wanted), still, still, worlds)
    names = [COMPACT[a] for a in columns["action"]]
    assert names == ["next_item", "previous_item", "next_item", "forward"]


def test_compact_cannot_reach_a_hotbar_slot_without_worlds():
    with pytest.raises(ConfigError, match="worlds"):
        LAYOUTS["compact"].encode(np.array([world.HOTBAR_3]), np.zeros(1), np.zeros(1))


@pytest.mark.parametrize(
    ("layout", "columns", "message"),
    [
        ("human", {"keys": keys(), "camera": np.array([[5, 11]])}, "'camera'.*0 to 10, got 11"),
        ("human_flat", {"buttons": np.array([8641]), "camera": np.array([60])}, "'buttons'"),
        ("human_flat", {"buttons": np.array([0]), "camera": np.array([-1])}, "got -1"),
        ("compact", {"action": np.array([3, 20])}, "0 to 19, got 20"),
    ],
)
def test_values_outside_the_space_are_refused(layout, columns, message):
    with pytest.raises(SpaceError, match=message):
        decoded(layout, columns, np.zeros(2, world.WORLD))


def test_actions_read_well_in_captions():
    human, flat_layout, compact_layout = (LAYOUTS[n] for n in ("human", "human_flat", "compact"))
    row = {"keys": keys("forward", "attack")[0], "camera": np.array([2, 5])}
    assert human.describe(row) == "attack+forward, pitch -3.22, yaw 0"
    assert flat_layout.describe({"buttons": 0, "camera": 3}) == "nothing, pitch 0, yaw 0"
    assert compact_layout.describe({"action": np.int64(9)}) == "turn_left"
