"""Spaces, columns and codecs."""

import json

import numpy as np
import pyarrow as pa
import pytest
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st
from store_fragments import frames, make_manifest, make_spec

import rollout.data
from rollout.api import AnyText
from rollout.data import Manifest
from rollout.data.codec import choose_codec, decode, encode, parse_codec
from rollout.data.space_json import space_from_json, space_to_json
from rollout.errors import DatasetError

DTYPES = ("uint8", "int8", "int16", "int32", "int64", "uint16", "float16", "float32", "float64")
SHAPES = st.lists(st.integers(1, 5), max_size=3).map(tuple)


@st.composite
def boxes(draw):
    dtype, shape = np.dtype(draw(st.sampled_from(DTYPES))), draw(SHAPES)
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    if dtype.kind == "f":
        low, high = np.sort(rng.normal(size=(2, *shape)).astype(dtype), axis=0)
        low = np.where(rng.random(shape) < 0.3, -np.inf, low).astype(dtype)
        high = np.where(rng.random(shape) < 0.3, np.inf, high).astype(dtype)
        return spaces.Box(low, high, shape, dtype=dtype.type)
    if dtype.kind == "i" and draw(st.booleans()):
        return spaces.Box(-np.inf, np.inf, shape, dtype=dtype.type)
    if draw(st.booleans()):
        return spaces.Box(0, 100, shape, dtype=dtype.type)
    low, high = np.sort(rng.integers(0, 127, (2, *shape)), axis=0).astype(dtype)
    return spaces.Box(low, high, shape, dtype=dtype.type)


@st.composite
def others(draw):
    kind = draw(st.integers(0, 3))
    small = st.integers(1, 9)
    if kind == 0:
        return spaces.Discrete(draw(small), start=draw(st.integers(-5, 5)))
    if kind == 1:
        nvec = np.array(draw(st.lists(small, min_size=1, max_size=4)))
        return spaces.MultiDiscrete(nvec, start=nvec - 3)
    if kind == 2:
        return spaces.MultiBinary(draw(st.one_of(small, st.lists(small, min_size=1, max_size=3))))
    most = draw(small)
    return spaces.Text(
        most, min_length=draw(st.integers(0, most)), charset=draw(st.text("abcé", min_size=1))
    )


KEYS = st.text("ab/._ 1", min_size=1, max_size=4)
LEAVES = st.one_of(boxes(), others().filter(lambda s: not isinstance(s, spaces.Text)))


def assert_same_space(one, other):
    assert type(one) is type(other)
    assert one == other
    if isinstance(one, spaces.Dict):
        assert list(one.spaces) == list(other.spaces)
        for key in one.spaces:
            assert_same_space(one[key], other[key])
    if isinstance(one, spaces.Box):  # Gymnasium compares bounds approximately
        for name in ("low", "high", "bounded_below", "bounded_above"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
            assert getattr(one, name).dtype == getattr(other, name).dtype
    if isinstance(one, spaces.Text):
        assert one.character_list == other.character_list


@given(
    st.recursive(
        st.one_of(boxes(), others()),
        lambda s: st.one_of(
            st.dictionaries(KEYS, s, max_size=3).map(spaces.Dict),
            st.lists(s, min_size=1, max_size=2).map(spaces.Tuple),
        ),
        max_leaves=4,
    )
)
@settings(max_examples=40)
def test_spaces_survive_json(space):
    text = json.dumps(space_to_json(space), allow_nan=False)
    assert_same_space(space_from_json(json.loads(text)), space)


def test_text_of_any_character_is_restored_and_equals_that_of_older_datasets():
    space = AnyText(9, min_length=0, charset="ab")
    about = space_to_json(space)
    restored, old = space_from_json(about), space_from_json({**about, "any": False})
    assert restored.contains("\u2014")
    assert not old.contains("\u2014")
    assert restored == space == old
    assert old == space


@given(LEAVES, st.integers(0, 5), st.integers(0, 2**31))
@settings(max_examples=60)
def test_values_survive_their_codec(space, count, seed):
    space.seed(seed)
    (column, *_) = [
        c
        for c in make_manifest(make_spec({"a": space})).columns
        if c.name in ("observation/a", "final_observation/a")
    ]
    values = np.array([space.sample() for _ in range(count)], column.dtype).reshape(
        count, *column.shape
    )
    array = encode(column.codec, column.arrow_type, values)
    assert array.type == column.arrow_type
    back = decode(column.codec, column.dtype, column.shape, array)
    np.testing.assert_array_equal(back, values)
    part = decode(column.codec, column.dtype, column.shape, array.slice(count // 2))
    np.testing.assert_array_equal(part, values[count // 2 :])


@pytest.mark.parametrize("shape", [(20, 30), (20, 30, 1), (20, 30, 3), (20, 30, 4)])
@pytest.mark.parametrize("codec", ["png", "webp", "jpeg:90", "raw"])
def test_image_codecs(codec, shape):
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (3, *shape), dtype=np.uint8)
    if codec[0] in "wj" and shape[-1] == 4:
        with pytest.raises(DatasetError, match="valid: raw, png"):
            choose_codec("x", "uint8", shape, "raw", codec)
        return
    chosen = choose_codec("x", "uint8", shape, codec, None)
    assert str(chosen) == codec
    kind = pa.binary(images[0].size) if codec == "raw" else pa.binary()
    back = decode(chosen, "uint8", shape, encode(chosen, kind, images))
    assert back.shape == images.shape
    if codec[0] != "j":
        np.testing.assert_array_equal(back, images)
    smooth = np.broadcast_to(np.arange(30, dtype=np.uint8)[None, None, :], (3, 20, 30))
    smooth = np.ascontiguousarray(
        smooth.reshape(3, 20, 30, *([1] * (len(shape) - 2))).repeat(
            shape[2] if len(shape) == 3 else 1, axis=-1
        )
        if len(shape) == 3
        else smooth
    )
    kind = pa.binary(smooth[0].size) if codec == "raw" else pa.binary()
    back = decode(chosen, "uint8", shape, encode(chosen, kind, smooth))
    assert np.abs(back.astype(int) - smooth).max() <= (4 if codec[0] == "j" else 0)


@pytest.mark.parametrize(
    ("space", "codec", "message"),
    [
        (spaces.Box(0, 1, (20, 20, 3), np.float32), "png", "float32.*valid: raw, none"),
        (frames(20, 20, 2), "png", "valid: raw, none"),
        (frames(20, 20, 3), "gif", "unknown codec 'gif'; valid for images: raw, png"),
        (frames(20, 20, 3), "jpeg:0", "quality from 1 to 100"),
        (frames(20, 20, 3), "jpeg:many", "quality from 1 to 100"),
        (frames(20, 20, 3), "list", "is not available"),
        (spaces.Box(0, 1, (3, 0), np.float32), "raw", "nothing to store"),
    ],
)
def test_codecs_that_cannot_carry_their_space_are_refused(space, codec, message):
    spec = make_spec({"rgb": space})
    with pytest.raises(DatasetError, match=message):
        make_manifest(spec, codecs={"rgb": codec})


def test_the_default_codec_is_for_images_only():
    manifest = make_manifest(
        make_spec({"rgb": frames(20, 20, 3), "map": spaces.Box(0, 1, (9, 9))}), codec="png"
    )
    codecs = {c.name: str(c.codec) for c in manifest.columns}
    assert codecs["observation/rgb"] == codecs["final_observation/rgb"] == "png"
    assert codecs["observation/map"] == "raw"
    with pytest.raises(DatasetError, match=r"do not exist: \['rbg'\]; there are \['compass'"):
        make_manifest(codecs={"rbg": "png"})


def test_manifests_survive_json():
    manifest = make_manifest(
        details=True, codecs={"rgb": "jpeg:80"}, policy_options={"temperature": 0.5}
    )
    back = Manifest.from_json(manifest.to_json())
    assert back == manifest
    assert back.schema.equals(manifest.schema, check_metadata=True)
    assert back.state_space.size == 2 * 10**25
    with pytest.raises(DatasetError, match="not a description"):
        Manifest.from_json("{}")
    with pytest.raises(DatasetError, match=r"policy_options\.x cannot be written as JSON"):
        make_manifest(policy_options={"x": object()})


def test_every_column_says_what_it_holds():
    for field in make_manifest(details=True).schema:
        about = {k.decode() for k in field.metadata}
        assert {"role", "key", "dtype", "shape", "codec", "unit", "doc"} <= about
        assert field.metadata[b"doc"] or field.name.startswith(("extra", "signal"))
        role, key = (field.metadata[k].decode() for k in (b"role", b"key"))
        if role in ("observation", "action"):
            space = getattr(make_spec(), f"{role}_space")[key]
            assert_same_space(space_from_json(json.loads(field.metadata[b"space"])), space)


def test_parse_codec_and_all():
    assert str(parse_codec("jpeg")) == "jpeg:95"
    assert sorted(rollout.data.__all__) == rollout.data.__all__
    assert all(hasattr(rollout.data, name) for name in rollout.data.__all__)
