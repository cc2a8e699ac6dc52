"""MineStudio's files: recordings become episodes, and their pickles run no code."""

import collections
import decimal
import io
import os
import pickle
import re

import numpy as np
import pytest
from formats_data import python_with, run_with

from rollout.data import Dataset
from rollout.data.formats import import_dataset
from rollout.data.formats.minestudio import BUTTONS, FromMinestudio, camera_bins
from rollout.data.formats.plain_pickle import load_plain
from rollout.errors import DatasetError

pytestmark = pytest.mark.heavy

lmdb = pytest.importorskip("lmdb", reason="needs the extra formats")
CHUNK = 4


def film(frames, size=(48, 32), codec="h264"):
    import av

    out = io.BytesIO()
    with av.open(out, "w", format="mp4") as video:
        stream = video.add_stream(codec, rate=20)
        stream.width, stream.height, stream.pix_fmt = *size, "yuv420p"
        for frame in frames:
            for packet in stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")):
                video.mux(packet)
        for packet in stream.encode():
            video.mux(packet)
    return out.getvalue()


def recording(count, seed):
    rng = np.random.default_rng(seed)
    actions = {name: rng.integers(0, 2, count).astype(np.int64) for name in BUTTONS}
    actions["camera"] = rng.normal(0, 4, (count, 2))
    actions["swapHands"] = np.zeros(count, np.int64)
    frames = [np.full((32, 48, 3), 10 + 7 * (seed + i) % 200, np.uint8) for i in range(count)]
    infos = [
        {"yaw": np.float64(i), "isGuiOpen": False,
         "inventory": {0: {"type": "none", "quantity": 0}},
         "events": collections.OrderedDict(a=1)}
        for i in range(count)
    ]  # fmt: skip
    return {"action": actions, "image": frames, "meta_info": infos}


def chunks(modality, data):
    count = len(data["attack"]) if modality == "action" else len(data)
    for start in range(0, count, CHUNK):
        part = slice(start, start + CHUNK)
        if modality == "action":
            yield start, pickle.dumps({name: values[part] for name, values in data.items()})
        else:
            yield start, film(data[part]) if modality == "image" else pickle.dumps(data[part])


def write(root, recordings, changes=()):
    """Writes recordings as MineStudio does; ``changes`` are ``(file, key): value``."""
    for modality in ("action", "image", "meta_info"):
        folder = root / modality / "part-1"
        folder.mkdir(parents=True)
        infos, values = [], {}
        for index, (name, found) in enumerate(recordings.items()):
            own = list(chunks(modality, found[modality]))
            values |= {str((index, start)): data for start, data in own}
            frames = len(own) * CHUNK
            infos.append({"episode": name, "episode_idx": index, "num_frames": frames})
        about = {"__chunk_size__": CHUNK, "__chunk_infos__": infos,
                 "__num_episodes__": len(infos), "__num_total_frames__": 0}  # fmt: skip
        values |= {key: pickle.dumps(value) for key, value in about.items()}
        values |= {key: value for (where, key), value in dict(changes).items() if where == modality}
        with lmdb.open(str(folder), map_size=1 << 26) as file, file.begin(write=True) as writing:
            for key, value in values.items():
                if value is not None:
                    writing.put(key.encode(), value)
    return root


@pytest.fixture
def recordings():
    return {f"rec-{n}": recording(8, n) for n in range(3)}


def imported(source, target):
    return import_dataset(FromMinestudio(), source, target, form="minestudio")


def test_recordings_become_episodes(tmp_path, recordings):
    done = imported(write(tmp_path / "s", recordings), tmp_path / "d")
    assert (done.episodes, done.steps, done.flaws) == (3, 24, ())
    with Dataset(tmp_path / "d") as dataset:
        assert dataset.manifest.task["metadata"]["imported"]["keys"] == list(BUTTONS)
        for ref, found in zip(dataset.episodes(), recordings.values(), strict=True):
            assert ref.end == "truncated"
            columns = dataset.read(ref).columns
            for at, name in enumerate(BUTTONS):
                np.testing.assert_array_equal(columns["action/keys"][:, at], found["action"][name])
            degrees = found["action"]["camera"]
            np.testing.assert_array_equal(columns["action/camera"], camera_bins(degrees))
            np.testing.assert_allclose(columns["extra/camera_degrees"], degrees, rtol=1e-6)
            shades = columns["observation/rgb"].reshape(8, -1).mean(1)
            assert np.abs(shades - [frame.mean() for frame in found["image"]]).max() < 6
            infos = columns["extra/meta_info"]
            assert [info["yaw"] for info in infos] == list(range(8))
            assert infos[0]["inventory"] == {"0": {"type": "none", "quantity": 0}}
            assert {*map(tuple, columns["extra/other_buttons"])} == {()}


def test_bins_are_those_of_vpt():
    angles = np.array([[0, 0.615], [1.61, 3.22], [5.81, 10], [-90, -0.615]])
    assert camera_bins(angles).tolist() == [[5, 6], [7, 8], [9, 10], [0, 4]]


class Evil:
    def __reduce__(self):
        return os.system, ("touch executed",)


def pickled(data, **changes):
    return pickle.dumps({**data["action"], **changes})


@pytest.mark.parametrize(
    ("where", "key", "value", "step", "said"),
    [
        (
            "action",
            "(1, 4)",
            pickle.dumps(Evil()),
            4,
            r"\(1, 4\): its pickle holds (posix|nt).system",
        ),
        ("action", "(1, 4)", pickle.dumps({"attack": 1}), 4, "lacks back, camera"),
        ("action", "(1, 0)", b"\x80\x04nothing", 0, "pickle is damaged"),
        ("action", "(1, 4)", None, 4, "is missing"),
        ("image", "(1, 4)", b"no film", 4, "does not decode"),
        (
            "image",
            "(1, 4)",
            film([np.zeros((32, 48, 3), np.uint8)] * 2),
            6,
            "expected 4 frames, got 2",
        ),
        (
            "image",
            "(1, 0)",
            film([np.zeros((64, 48, 3), np.uint8)] * 4, (48, 64)),
            0,
            "expected frames",
        ),
        ("meta_info", "(1, 4)", pickle.dumps([{}]), 4, "expected a list of 4 frames"),
    ],
)
def test_faults_are_named_and_whole_recordings_are_kept(
    tmp_path, recordings, monkeypatch, where, key, value, step, said
):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "s", recordings, {(where, key): value})
    done = imported(tmp_path / "s", tmp_path / "d")
    (flaw,) = done.flaws
    assert (flaw.file, flaw.episode, flaw.step) == (f"{where}/part-1/data.mdb", 1, step)
    assert flaw.problem.startswith("rec-1: ")
    assert re.search(said, flaw.problem), flaw.problem
    assert done.episodes == 2
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize(
    ("name", "value", "step", "said"),
    [
        ("attack", np.array([0, 0, 2, 0]), 2, "attack is 2"),
        ("camera", np.array([[0, 0], [0, np.nan], [0, 0], [0, 0]]), 1, "camera is"),
        ("camera", np.zeros((4, 3)), 0, "expected shape"),
        ("jump", np.zeros(3), 0, "expected shape"),
        ("jump", "yes", 0, "array of numbers"),
    ],
)
def test_actions_outside_the_space_are_named_by_step(tmp_path, recordings, name, value, step, said):
    first = {n: v[:4] for n, v in recordings["rec-1"]["action"].items()}
    change = {("action", "(1, 0)"): pickle.dumps({**first, name: value})}
    done = imported(write(tmp_path / "s", recordings, change), tmp_path / "d")
    (flaw,) = done.flaws
    assert (flaw.episode, flaw.step) == (1, step)
    assert said in flaw.problem


def test_recordings_that_do_not_agree_are_set_aside(tmp_path, recordings):
    write(tmp_path / "s", recordings)
    for modality, infos in (
        ("image", [("rec-0", 0, 8), ("rec-2", 2, 8), ("rec-3", 1, 8)]),
        ("meta_info", [("rec-0", 0, 8), ("rec-1", 1, 8), ("rec-2", 2, 4), ("rec-3", 1, 8)]),
    ):
        value = [{"episode": n, "episode_idx": i, "num_frames": f} for n, i, f in infos]
        with (
            lmdb.open(str(tmp_path / "s" / modality / "part-1"), map_size=1 << 26) as file,
            file.begin(write=True) as writing,
        ):
            writing.put(b"__chunk_infos__", pickle.dumps(value))
    done = imported(tmp_path / "s", tmp_path / "d")
    assert done.episodes == 1
    problems = [flaw.problem for flaw in done.flaws]
    assert "rec-1: is not in image" in problems[0]
    assert "rec-2: expected the same number of frames" in problems[1]
    assert "rec-3: is not in action" in problems[2]


def test_a_file_that_is_cut_off_is_refused(tmp_path, recordings):
    path = write(tmp_path / "s", recordings) / "image/part-1/data.mdb"
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 2 // 3 // 4096 * 4096])
    with pytest.raises(DatasetError, match=r"image/part-1/data\.mdb, .* is cut off"):
        imported(tmp_path / "s", tmp_path / "d")


@pytest.mark.parametrize(
    "value",
    [
        {"a": np.arange(6.0).reshape(2, 3), "b": [1, "x", None, True, 2.5]},
        {"f": np.asfortranarray(np.arange(6, dtype=np.int16).reshape(2, 3)), "s": np.float32(1.5)},
        {"big": np.arange(3, dtype=">i4"), "text": np.array(["a", "bc"])},
    ],
)
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_plain_values_are_read(value, protocol):
    read = load_plain(pickle.dumps(value, protocol))
    assert read.keys() == value.keys()
    for key, each in value.items():
        np.testing.assert_array_equal(read[key], each)


def laughs():
    value = []
    for _ in range(40):
        value = [value, value]
    return value


@pytest.mark.parametrize(
    "data",
    [
        pickle.dumps(Evil()),
        pickle.dumps(decimal.Decimal(1)),
        pickle.dumps(np.array([Evil()], object)),
        pickle.dumps({1, 2}),
        pickle.dumps(laughs()),
        b"cbuiltins\neval\n(S'1'\ntR.",
        b"cnumpy\nload\n(S'x'\ntR.",
        b"\x80\x04]\x94h\x00h\x00\x86a.",  # a list within itself
        b"\x80\x04r\xff\xff\xff\xff.",
        b"\x80\x05\x96\xff\xff\xff\xff\xff\xff\xff\x7f.",
        b"",
        b"\x80\x04" + b"(" * 5000 + b".",
    ],
)
def test_other_pickles_are_refused(tmp_path, monkeypatch, data):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DatasetError):
        load_plain(data)
    assert not list(tmp_path.iterdir())


@pytest.mark.long
def test_files_of_the_writer_of_minestudio_are_imported(tmp_path):
    needs = ("lmdb", "av==13.1.0", "opencv-python-headless", "numpy<2", "rich", "tqdm", "attrs")
    python = python_with(
        *needs, "gymnasium", "absl-py", version="3.11", alone=["minestudio==1.1.6"]
    )
    found, (count, size) = {}, (70, (640, 360))
    for folder in ("action", "image", "meta_info"):
        (tmp_path / "raw" / folder).mkdir(parents=True)
    for name in ("alpha-0", "beta-0"):
        found[name] = recording(count, len(found))
        frames = [np.full((360, 640, 3), frame[0, 0], np.uint8) for frame in found[name]["image"]]
        (tmp_path / "raw/image" / f"{name}.mp4").write_bytes(film(frames, size))
        for folder in ("action", "meta_info"):
            data = pickle.dumps(found[name][folder])
            (tmp_path / "raw" / folder / f"{name}.pkl").write_bytes(data)
    run_with(python, "minestudio_writes.py", tmp_path / "raw", tmp_path / "s")
    done = imported(tmp_path / "s", tmp_path / "d")
    assert (done.episodes, done.steps, done.flaws) == (2, 128, ())  # whole chunks of 32
    with Dataset(tmp_path / "d") as dataset:
        for ref, own in zip(dataset.episodes(), found.values(), strict=True):
            columns = dataset.read(ref).columns
            for at, name in enumerate(BUTTONS):
                np.testing.assert_array_equal(
                    columns["action/keys"][:, at], own["action"][name][:64]
                )
            assert columns["observation/rgb"].shape == (64, 224, 224, 3)
            shades = columns["observation/rgb"].reshape(64, -1).mean(1)
            assert np.abs(shades - [frame.mean() for frame in own["image"][:64]]).max() < 8
            assert [info["yaw"] for info in columns["extra/meta_info"]] == list(range(64))
