"""How observations enter a network: each kind of column, and what cannot be read."""

import numpy as np
import pytest
import torch
from gymnasium import spaces
from torch.nn import functional

from policies.actor_critic import ActorCriticPolicy
from policies.actor_critic.columns import ColumnEntry, channels_first, entries, picture_size
from policies.actor_critic.network import Encoder, Numbers, Picture, Symbols
from rollout.api import sample
from rollout.errors import ConfigError, UnknownNameError

MOVE = spaces.Dict({"move": spaces.Discrete(5)})
SPACE = spaces.Dict(
    {
        "flag": spaces.MultiBinary((2, 2)),
        "free": spaces.Box(-np.inf, np.inf, (2,)),
        "grid": spaces.Box(-1, 11, (3, 4), np.int16),
        "health": spaces.Box(0, 20, (), np.float32),
        "image": spaces.Box(0, 255, (16, 12, 3), np.uint8),
        "item": spaces.Discrete(4, start=2),
        "items": spaces.MultiDiscrete([3, 5], start=[-1, 4]),
        "large": spaces.Box(0, 4000, (3,), np.int32),
        "privileged_map": spaces.Box(0, 1, (4,)),
        "speed": spaces.Box(np.array([-2, 0, -1], np.float32), np.array([6, 10, 1], np.float32)),
    }
)


def test_the_kind_of_each_column():
    kinds = {entry.key: entry.kind for entry in entries(SPACE)}
    assert kinds == {
        "flag": "numbers", "free": "numbers", "grid": "symbols", "health": "numbers",
        "image": "picture", "item": "symbols", "items": "symbols", "large": "numbers",
        "speed": "numbers",
    }  # fmt: skip
    assert list(kinds) == sorted(kinds)


TYPES = (np.uint8, np.int16, np.int64, np.uint64, np.float32, np.float64)
"""Data types of values from 0 to 255."""


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(
    ("most", "shape", "kind"),
    [
        (255, (7, 7, 3), "symbols"),  # MiniGrid
        (255, (5, 5), "symbols"),
        (255, (8, 8, 3), "picture"),
        (255, (84, 84, 3), "picture"),
        (255, (4, 84, 84), "picture"),
        (10, (7, 7), "symbols"),
        (10, (8, 8), "symbols"),
        (10, (40, 40), "symbols"),
        (100, (10, 10), "symbols"),
        (62, (84, 84, 3), "picture"),  # a table of symbols would have a million rows
        (1, (84, 84), "numbers"),
        (1, (7, 7), "numbers"),
    ],
)
def test_the_kind_of_a_grid_does_not_depend_on_its_data_type(most, shape, kind, dtype):
    (entry,) = entries(spaces.Dict({"view": spaces.Box(0, most, shape, dtype)}))
    assert entry.kind == kind


@pytest.mark.parametrize(
    ("space", "kind"),
    [
        (spaces.Box(0, 255, (128,), np.uint8), "numbers"),  # memory of an Atari console
        (spaces.Box(0, 62, (128,), np.uint8), "symbols"),
        (spaces.Box(0, 62, (128,), np.float32), "numbers"),
        (spaces.Box(0, 4000, (7, 7), np.int32), "numbers"),
        (spaces.Box(0, 4000, (7, 7), np.float32), "numbers"),
        (spaces.Box(-1, 10, (7, 7), np.int8), "symbols"),
        (spaces.Box(-1, 10, (7, 7), np.float32), "symbols"),
        (spaces.Box(-8, 8, (4, 3), np.float32), "numbers"),
        (spaces.Box(0, 2.5, (7, 7), np.float32), "numbers"),
        (spaces.Box(0, np.inf, (7, 7), np.float32), "numbers"),
        (spaces.Box(-1, 1, (7, 7), np.float32), "numbers"),
        (spaces.Box(0, 1, (7, 7), bool), "numbers"),
        (spaces.MultiBinary((7, 7)), "numbers"),
        (spaces.MultiDiscrete(np.full((7, 7), 11)), "symbols"),
        (spaces.Box(0, np.array([10, 5, 2] * 64).reshape(8, 8, 3), dtype=np.uint8), "symbols"),
    ],
)
def test_the_kind_of_a_column_by_its_bounds_and_shape(space, kind):
    (entry,) = entries(spaces.Dict({"view": space}))
    assert entry.kind == kind


@pytest.mark.parametrize("options", [{}, {"embedding": 4}])
@pytest.mark.parametrize("most", [10, 255])
def test_a_network_for_the_same_grid_is_the_same_whatever_its_data_type(most, options):
    values = np.random.default_rng(0).integers(0, most, (6, 7, 7), endpoint=True)
    policy, outputs = ActorCriticPolicy(hidden=(8,), **options), []
    for dtype in TYPES:
        space = spaces.Dict({"view": spaces.Box(0, most, (7, 7), dtype)})
        network = policy.network(space, MOVE, seed=0)
        logits, value, _ = network({"view": torch.from_numpy(values.astype(dtype))}, {})
        (logits.sum() + value.sum()).backward()
        gradients = [p.grad for p in network.parameters()]
        outputs.append([logits, value, *gradients])
    for other in outputs[1:]:
        torch.testing.assert_close(other, outputs[0])


@pytest.mark.parametrize("embedding", [0, 3])
def test_a_float_between_two_symbols_is_between_their_vectors(embedding):
    space = spaces.Dict({"view": spaces.Box(0, 4, (2, 2), np.float32)})
    (entry,) = entries(space)
    symbols = Symbols(entry, width=6, embedding=embedding)
    first, second = (torch.tensor([[[n, 4.0], [1.0, 0.0]]]) for n in (2.0, 3.0))
    middle = torch.tensor([[[2.25, 4.0], [1.0, 0.0]]])
    torch.testing.assert_close(symbols(middle), 0.75 * symbols(first) + 0.25 * symbols(second))


def test_pictures_of_floats_are_scaled_as_those_of_bytes_and_not_changed():
    values = torch.from_numpy(np.random.default_rng(0).integers(0, 255, (2, 40, 40, 3)))
    bytes_, floats = (spaces.Box(0, 255, (40, 40, 3), dtype) for dtype in (np.uint8, np.float32))
    unit = spaces.Box(0, 1, (40, 40, 3), np.float32)
    given = [values.to(torch.uint8), values.float(), values.float() / 255]
    before, outputs = given[1].clone(), []
    for space, pictures in zip((bytes_, floats, unit), given, strict=True):
        (entry,) = entries(spaces.Dict({"view": space}), (), {"view": "picture"})
        torch.manual_seed(0)
        outputs.append(Picture(entry, "nature", 0.25, 7)(pictures))
    torch.testing.assert_close(outputs[0], outputs[1])
    torch.testing.assert_close(outputs[0], outputs[2])
    assert torch.equal(given[1], before)


def test_how_columns_are_read_is_logged_with_a_warning_for_what_may_be_codes(caplog):
    caplog.set_level("INFO")
    ram = spaces.Box(0, 255, (128,), np.uint8)
    ActorCriticPolicy().explain(spaces.Dict({**SPACE.spaces, "ram": ram}))
    told, picture, warned = caplog.messages
    assert "'image' is read as picture of 16 x 12 x 3" in picture
    for said in (
        "flag: 2 x 2 numbers, 4 of them scaled from 0 to 1",
        "free: 2 numbers as they are",
        "grid: 3 x 4 symbols of up to 13 values",
        "image: picture of 16 x 12 x 3, through convolutions",
        "item: 1 symbols of up to 4 values",
        "speed: 3 numbers, 3 of them scaled from -2 to 10",
    ):
        assert said in told
    assert "privileged" not in told
    assert "'ram' is read as 128 numbers" in warned
    assert "policy.symbols=[ram]" in warned
    caplog.clear()
    ActorCriticPolicy(symbols=("ram",)).explain(spaces.Dict({"ram": ram}))
    assert len(caplog.messages) == 1


@pytest.mark.parametrize(
    ("space", "read", "key"),
    [
        (spaces.Box(0, 255, (4, 84, 84), np.uint8), "picture of", ""),
        (spaces.Box(0, 255, (3, 36, 64), np.float32), "picture of", ""),
        (spaces.Box(0, 255, (3, 35, 64), np.uint8), "picture of", "symbols"),
        (spaces.Box(0, 255, (16, 16, 3), np.uint8), "picture of", "symbols"),  # a whole MiniGrid
        (spaces.Box(0, 62, (84, 84, 3), np.uint8), "picture of", "symbols"),
        (spaces.Box(0, 10, (7, 7), np.uint8), "7 x 7 symbols", ""),
        (spaces.Box(0, 10, (35, 35), np.uint8), "35 x 35 symbols", ""),
        (spaces.Box(0, 10, (40, 40), np.uint8), "40 x 40 symbols", "pictures"),
        (spaces.Box(0, 10, (7, 7), np.float32), "7 x 7 symbols", "numbers"),
        (spaces.Box(0, 255, (128,), np.int64), "128 numbers", "symbols"),
        (spaces.Box(0, 1, (128,), np.int64), "128 numbers", ""),
        (spaces.Box(0, 255, (128,), np.float32), "128 numbers", ""),
    ],
)
def test_a_reading_in_doubt_is_told_with_the_key_that_changes_it(space, read, key, caplog):
    caplog.set_level("INFO")
    seen = spaces.Dict({"map": space, "free": SPACE["free"], "ram": SPACE["large"]})
    ActorCriticPolicy(symbols=("ram",)).explain(seen)
    told, *warned = caplog.messages
    assert f"map: {read}" in told
    assert "policy.symbols" in told
    assert len(warned) == bool(key)
    if not key:
        return
    named = "[ram, map]" if key == "symbols" else "[map]"
    assert f"'map' is read as {read}" in warned[0]
    assert f"policy.{key}={named}" in warned[0]
    caplog.clear()
    own = {"symbols": ("ram",), key: ("ram", "map") if key == "symbols" else ("map",)}
    ActorCriticPolicy(**own).explain(seen)
    assert len(caplog.messages) == 1  # what the user says is not in doubt


@pytest.mark.parametrize(
    ("key", "most", "scaled"),
    [("observation", 28.3, False), ("observation", 255.0, True), ("speed", 28.3, True)],
)
def test_floats_of_a_plain_box_are_read_as_they_are(key, most, scaled):
    space = spaces.Dict({key: spaces.Box(-most, most, (2,), np.float32)})
    (entry,) = entries(space)
    assert np.isfinite(entry.low).all() == scaled
    assert ("as they are" in entry.describe()) != scaled


def test_columns_are_chosen_and_called_symbols_by_name():
    chosen = entries(SPACE, ("privileged_map", "large"), {"large": "symbols"})
    assert [(e.key, e.kind) for e in chosen] == [
        ("large", "symbols"),
        ("privileged_map", "numbers"),
    ]
    assert chosen[0].options == (4001,) * 3


@pytest.mark.parametrize(
    "dtype", [np.int8, np.int16, np.int32, np.int64, np.uint16, np.uint32, np.uint64]
)
def test_whole_numbers_without_bounds_are_numbers(dtype):
    limits = np.iinfo(dtype)
    space = spaces.Dict({"x": spaces.Box(limits.min, limits.max, (2,), dtype)})
    (entry,) = entries(space)
    assert entry.kind == "numbers"
    network = ActorCriticPolicy(hidden=(8,)).network(space, MOVE, seed=0)
    logits, _, _ = network({"x": torch.from_numpy(np.ones((3, 2), dtype))}, {})
    assert logits.isfinite().all()


def test_what_cannot_be_read_is_reported():
    with pytest.raises(UnknownNameError, match=r"'helth'\. Nearest: health"):
        entries(SPACE, ("helth",))
    with pytest.raises(UnknownNameError, match=r"symbols among those that are read 'itms'.*items"):
        entries(SPACE, (), {"itms": "symbols"})
    with pytest.raises(UnknownNameError, match="Valid: health"):
        entries(SPACE, ("health",), {"item": "symbols"})
    hidden = spaces.Dict({"privileged_map": SPACE["privileged_map"]})
    with pytest.raises(ConfigError, match=r"every observation .privileged_map. is privileged"):
        entries(hidden)
    text = spaces.Dict({"chat": spaces.Text(5)})
    with pytest.raises(ConfigError, match="cannot read the observation 'chat', Text"):
        entries(text)
    wide = spaces.Dict({"x": spaces.Box(0, 2**62, (1,), np.int64)})
    with pytest.raises(ConfigError, match="too many for symbols"):
        entries(wide, (), {"x": "symbols"})
    with pytest.raises(ConfigError, match=r"'free'.*cannot be read as symbols: expected bounds"):
        entries(SPACE, (), {"free": "symbols"})
    with pytest.raises(
        ConfigError, match=r"'grid'.*cannot be read as a picture: expected an array"
    ):
        entries(SPACE, (), {"grid": "picture"})
    with pytest.raises(
        UnknownNameError, match="column of pictures among those that are read 'ram'"
    ):
        ActorCriticPolicy(pictures=("ram",)).network(SPACE, MOVE, seed=0)
    with pytest.raises(ConfigError, match="name grid more than once"):
        ActorCriticPolicy(pictures=("grid",), numbers=("grid",))


def test_numbers_are_scaled_by_their_bounds():
    (entry,) = entries(SPACE, ("speed",))
    values = torch.tensor([[-2.0, 0, -1], [6, 10, 1], [2, 5, 0.25]])
    expected = torch.tensor([[-1.0, -1, -1], [1, 1, 1], [0, 0, 0.25]])
    torch.testing.assert_close(Numbers(entry)(values), expected)
    (scalar,) = entries(SPACE, ("health",))
    torch.testing.assert_close(
        Numbers(scalar)(torch.tensor([0.0, 5, 20])), torch.tensor([[-1.0], [-0.5], [1]])
    )
    (free,) = entries(SPACE, ("free",))
    torch.testing.assert_close(
        Numbers(free)(torch.tensor([[1e4, -3.0]])), torch.tensor([[1e4, -3.0]])
    )
    (flag,) = entries(SPACE, ("flag",))
    bits = torch.tensor([[[0, 1], [1, 0]]], dtype=torch.int8)
    torch.testing.assert_close(Numbers(flag)(bits), torch.tensor([[0.0, 1, 1, 0]]))


def one_hot(entry, values):
    """One-hot rows of every place, side by side."""
    flat = values.reshape(len(values), -1).to(torch.int64)
    parts = [
        functional.one_hot(flat[:, i] - start, options)
        for i, (start, options) in enumerate(zip(entry.starts, entry.options, strict=True))
    ]
    return torch.cat(parts, 1).float()


@pytest.mark.parametrize("key", ["item", "items", "grid"])
def test_symbols_are_one_hot_rows_times_a_matrix(key):
    (entry,) = entries(SPACE, (key,))
    values = torch.from_numpy(sample(SPACE, 40, np.random.default_rng(0))[key])
    symbols = Symbols(entry, width=6, embedding=0)
    weights = symbols.table.detach().clone().requires_grad_()
    expected = one_hot(entry, values) @ weights
    got = symbols(values)
    torch.testing.assert_close(got, expected)
    cotangent = torch.randn(got.shape, generator=torch.Generator().manual_seed(0))
    (got * cotangent).sum().backward()
    (expected * cotangent).sum().backward()
    torch.testing.assert_close(symbols.table.grad, weights.grad)


@pytest.mark.parametrize("key", ["item", "items", "grid"])
def test_embedded_symbols_share_a_table(key):
    (entry,) = entries(SPACE, (key,))
    values = torch.from_numpy(sample(SPACE, 40, np.random.default_rng(0))[key])
    symbols = Symbols(entry, width=6, embedding=3)
    flat = values.reshape(40, -1) - torch.tensor(entry.starts)
    expected = torch.cat([symbols.table[flat[:, i]] for i in range(flat.shape[1])], 1)
    torch.testing.assert_close(symbols(values), expected)
    assert symbols.size == expected.shape[1]


@pytest.mark.parametrize("embedding", [0, 3])
@pytest.mark.parametrize("start", [-9, 2])
def test_a_slot_that_never_played_may_show_what_is_no_symbol(embedding, start):
    entry = ColumnEntry("x", "symbols", (2,), (3, 4), (start, start))
    symbols = Symbols(entry, width=6, embedding=embedding)
    assert symbols(torch.zeros(1, 2)).isfinite().all()
    legal = torch.tensor([[start, start + 3]])
    assert not torch.equal(symbols(legal), symbols(torch.zeros(1, 2)))


SHAPES = {
    (36, 40): (1, 36, 40),
    (36, 40, 3): (3, 36, 40),
    (3, 36, 40): (3, 36, 40),
    (4, 36, 40): (4, 36, 40),
    (2, 36, 40, 3): (6, 36, 40),
}


@pytest.mark.parametrize(("shape", "size"), SHAPES.items())
@pytest.mark.parametrize("cnn", ["nature", "impala"])
def test_pictures_of_every_shape(shape, size, cnn):
    space = spaces.Dict({"p": spaces.Box(0, 255, shape, np.uint8)})
    (entry,) = entries(space)
    assert entry.kind == "picture"
    assert picture_size(shape) == size
    picture = Picture(entry, cnn, 0.25, 7)
    values = torch.from_numpy(sample(space, 2, np.random.default_rng(0))["p"])
    before = values.clone()
    out = picture(values)
    assert out.shape == (2, 7)
    assert out.dtype == torch.float32
    torch.testing.assert_close(values, before)
    # By hand: channels first, 0 to 1, through the same layers.
    by_hand = channels_first(values, shape).float().contiguous() / 255
    assert by_hand.shape == (2, *size)
    expected = functional.relu(picture.linear(picture.cnn(by_hand).flatten(1)))
    torch.testing.assert_close(out, expected, rtol=1e-4, atol=1e-5)


def test_frames_of_a_stack_become_channels_in_order():
    stack = torch.arange(2 * 8 * 9 * 3).reshape(1, 2, 8, 9, 3)
    channels = channels_first(stack, (2, 8, 9, 3))
    for frame in range(2):
        for colour in range(3):
            torch.testing.assert_close(
                channels[0, 3 * frame + colour], stack[0, frame, :, :, colour]
            )


def test_small_arrays_of_bytes_are_no_pictures():
    space = spaces.Dict({"view": spaces.Box(0, 255, (7, 7, 3), np.uint8)})
    assert [e.kind for e in entries(space)] == ["symbols"]
    assert [e.kind for e in entries(space, (), {"view": "symbols"})] == ["symbols"]
    large = spaces.Dict({"view": spaces.Box(0, 255, (16, 16, 3), np.uint8)})
    assert [e.kind for e in entries(large, (), {"view": "symbols"})] == ["symbols"]


def test_a_picture_too_small_for_the_network_is_refused():
    (entry,) = entries(SPACE, ("image",))
    with pytest.raises(ConfigError, match="'image' is 12 x 16; use cnn=impala"):
        Picture(entry, "nature", 1.0, 8)


def test_all_kinds_together_and_each_matters():
    torch.manual_seed(0)  # in a network this small, all units that see the image may be dead
    observed = entries(SPACE)
    encoder = Encoder(
        observed, width=10, activation="tanh", embedding=0, cnn="impala", cnn_width=0.5,
        cnn_features=5,
    )  # fmt: skip
    rng = np.random.default_rng(0)
    columns = {k: torch.from_numpy(v) for k, v in sample(SPACE, 6, rng).items()}
    others = {k: torch.from_numpy(v) for k, v in sample(SPACE, 6, rng).items()}
    whole = encoder(columns)
    assert whole.shape == (6, 10)
    for entry in observed:
        changed = encoder({**columns, entry.key: others[entry.key]})
        assert not torch.allclose(changed, whole), entry.key
    torch.testing.assert_close(
        encoder({**columns, "privileged_map": others["privileged_map"]}), whole
    )
    order = torch.tensor([3, 1, 5, 0, 2, 4])
    torch.testing.assert_close(encoder({k: v[order] for k, v in columns.items()}), whole[order])


@pytest.mark.parametrize(
    "leaf",
    [spaces.Discrete(2**31 - 1), spaces.MultiDiscrete([2**40, 1, 3])],
)
def test_very_many_values_are_numbers(leaf):
    """A table of vectors for each of them would take terabytes."""
    (entry,) = entries(spaces.Dict({"seed": leaf}))
    assert entry.kind == "numbers"
    most = torch.tensor(np.array([np.asarray(leaf.nvec if leaf.shape else leaf.n) - 1]))
    encoded = Numbers(entry)(most)
    assert encoded.isfinite().all()
    assert encoded.abs().max() == 1.0
    with pytest.raises(ConfigError, match="too many for symbols"):
        entries(spaces.Dict({"seed": leaf}), (), {"seed": "symbols"})
