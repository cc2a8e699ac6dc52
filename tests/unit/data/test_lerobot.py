"""LeRobot's format: written without loss, read back, and what is wrong with a folder is named."""

import json
import shutil

import cv2
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from formats_data import ACTIONS, PLAIN, STACKED, assert_same, make, python_with, run_with
from gymnasium import spaces

from rollout.commands import dataset as script
from rollout.data import Dataset
from rollout.data.formats import import_dataset
from rollout.data.formats.lerobot import LeRobot
from rollout.data.formats.lerobot_import import FromLeRobot
from rollout.errors import DatasetError

pytestmark = pytest.mark.heavy


def exported(path, out):
    with Dataset(path) as dataset:
        return LeRobot().write(dataset, dataset.episodes(include_lost=True), out)


@pytest.fixture
def folder(tmp_path):
    make(tmp_path / "d")
    exported(tmp_path / "d", tmp_path / "lr")
    return tmp_path / "lr"


def foreign(folder):
    """Makes a folder as others write them, without what only Gamut knows."""
    (folder / "meta/gamut.json").unlink()
    (folder / "meta/gamut_final.parquet").unlink()
    return folder


def change(path, how):
    """Rewrites a Parquet file through pandas."""
    table = pq.read_table(path)
    pq.write_table(how(table), path)


DATA, EPISODES = "data/chunk-000/file-000.parquet", "meta/episodes/chunk-000/file-000.parquet"


@pytest.mark.parametrize(
    ("observations", "actions", "options"),
    [
        (PLAIN, None, {"details": True}),
        (PLAIN, ACTIONS, {"codec": "png"}),
        (STACKED, ACTIONS, {"codec": "webp"}),
        ({"observation": spaces.Box(0, 255, (9, 9, 4), np.uint8)}, None, {}),
    ],
)
def test_an_export_becomes_the_same_dataset_again(tmp_path, observations, actions, options):
    make(tmp_path / "d", observations, actions, **options)
    count = exported(tmp_path / "d", tmp_path / "lr")
    done = import_dataset(FromLeRobot(), tmp_path / "lr", tmp_path / "e", form="lerobot")
    assert (done.episodes, done.flaws) == (count, ())
    assert_same(tmp_path / "d", tmp_path / "e")


def test_lossy_images_are_not_encoded_again(tmp_path):
    make(tmp_path / "d", {"rgb": spaces.Box(0, 255, (16, 16, 3), np.uint8)}, codec="jpeg:70")
    exported(tmp_path / "d", tmp_path / "lr")
    import_dataset(FromLeRobot(), tmp_path / "lr", tmp_path / "e", form="lerobot")
    assert_same(tmp_path / "d", tmp_path / "e")
    with Dataset(tmp_path / "e") as dataset:
        assert dataset.manifest.codec == "png"


def test_the_commands(tmp_path, capsys):
    make(tmp_path / "d")
    command = ["export", str(tmp_path / "d"), "--to", "lerobot", str(tmp_path / "lr")]
    assert script.main([*command, "--set", "fps=20"]) == 0
    assert json.loads((tmp_path / "lr/meta/info.json").read_text())["fps"] == 20
    back = ["import", "--from", "lerobot", str(tmp_path / "lr"), str(tmp_path / "e")]
    assert script.main(back) == 0
    assert_same(tmp_path / "d", tmp_path / "e")
    capsys.readouterr()
    assert script.main(back) == 2
    assert "overwrites nothing" in capsys.readouterr().err
    assert script.main([*command, "--set", "fsp=20"]) == 2
    assert "fps" in capsys.readouterr().err


def test_help_lists_formats_with_their_options(capsys):
    with pytest.raises(SystemExit):
        script.main(["export", "--help"])
    assert "lerobot: a folder in LeRobot's format" in (text := capsys.readouterr().out)
    assert "fps: Frames per second" in text


def test_what_others_hold_is_not_overwritten(tmp_path):
    make(tmp_path / "d")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/notes.txt").touch()
    for out, said in (("mine", "something else"), ("d", "apart from"), ("d/x", "apart from")):
        with pytest.raises(DatasetError, match=said):
            exported(tmp_path / "d", tmp_path / out)
    assert (tmp_path / "mine/notes.txt").exists()


def test_statistics_are_those_of_the_data(folder):
    stats = json.loads((folder / "meta/stats.json").read_text())
    rows = pq.read_table(folder / DATA, columns=["observation.state", "next.reward"])
    values = np.stack(rows["observation.state"].to_numpy())
    found = stats["observation.state"]
    for name, want in (("min", values.min(0)), ("mean", values.mean(0)), ("std", values.std(0))):
        np.testing.assert_allclose(found[name], want, rtol=1e-6)
    shares = {"q01": 0.01, "q10": 0.1, "q50": 0.5, "q90": 0.9, "q99": 0.99}
    for name, share in shares.items():
        np.testing.assert_allclose(found[name], np.quantile(values, share, axis=0), rtol=1e-6)
    assert found["count"] == [len(values)]
    images = [
        cell["bytes"] for cell in pq.read_table(folder / DATA)["observation.images.rgb"].to_pylist()
    ]
    pixels = np.stack([cv2.imdecode(np.frombuffer(i, np.uint8), 1)[..., ::-1] for i in images])
    pixels = pixels.reshape(-1, 3) / 255.0
    found = stats["observation.images.rgb"]
    for name, want in (
        *(("min", pixels.min(0)), ("max", pixels.max(0)), ("mean", pixels.mean(0))),
        *((name, np.quantile(pixels, share, axis=0)) for name, share in shares.items()),
    ):
        np.testing.assert_allclose(np.ravel(found[name]), want, rtol=1e-6)
    assert np.shape(stats["observation.images.rgb"]["mean"]) == (3, 1, 1)


def test_tasks_are_indexed_by_their_words(folder):
    tasks = pd.read_parquet(folder / "meta/tasks.parquet")
    assert tasks.index.tolist() == ["Hunt a cow."]
    assert tasks["task_index"].tolist() == [0]


def test_a_folder_of_others_is_imported(folder, tmp_path):
    rows = pq.read_table(foreign(folder) / DATA)
    done = import_dataset(FromLeRobot(), folder, tmp_path / "e", form="lerobot")
    assert done.steps == rows.num_rows
    with Dataset(tmp_path / "e") as dataset:
        refs = dataset.episodes()
        assert [ref.state for ref in refs] == list(range(len(refs)))
        assert {ref.state_set for ref in refs} == {"imported"}
        assert {ref.end for ref in refs} == {"terminated"}
        assert dataset.manifest.task["metadata"]["imported"]["format"] == "lerobot"
        rewards = np.concatenate([dataset.read(ref).columns["reward"] for ref in refs])
        np.testing.assert_array_equal(rewards, rows["next.reward"].to_numpy())
        read = dataset.read(refs[0], ["observation/rgb", "observation/state", "action"])
        assert read.columns["observation/rgb"].dtype == np.uint8
        assert read.final_observations == {}


def test_several_tasks_are_an_observation(folder, tmp_path):
    frame = pd.DataFrame({"task_index": [0, 1]}, index=pd.Index(["hunt", "rest"], name="task"))
    frame.to_parquet(foreign(folder) / "meta/tasks.parquet")
    import_dataset(FromLeRobot(), folder, tmp_path / "e", form="lerobot")
    with Dataset(tmp_path / "e") as dataset:
        texts = dataset.read(dataset.episodes()[0], ["observation/task"]).columns
        assert set(texts["observation/task"]) == {"hunt"}


def replaced(table, name, step, value):
    values = table[name].to_pylist()
    values[step] = value
    at = table.schema.get_field_index(name)
    return table.set_column(at, table.field(at), pa.array(values, table.field(at).type))


@pytest.mark.parametrize(
    ("step", "name", "value", "said"),
    [
        (1, "next.reward", float("nan"), "the reward is nan"),
        (1, "observation.images.rgb", {"bytes": b"no picture", "path": None}, "does not decode"),
        (1, "frame_index", 7, "expected frame 1"),
        (1, "action", 99, "outside"),
    ],
)
def test_a_wrong_step_is_named_and_whole_episodes_are_kept(
    folder, tmp_path, step, name, value, said
):
    change(folder / DATA, lambda table: replaced(table, name, step, value))
    first = pq.read_table(folder / EPISODES)["length"][0].as_py()
    assert first > step
    done = import_dataset(FromLeRobot(), folder, tmp_path / "e", form="lerobot")
    (flaw,) = done.flaws
    assert (flaw.file, flaw.episode, flaw.step) == (DATA, 0, step)
    assert said in flaw.problem
    (line,) = (tmp_path / "e/quarantine/import.jsonl").read_text().splitlines()
    assert json.loads(line) == flaw._asdict()
    with Dataset(tmp_path / "e") as dataset:
        assert len(dataset.episodes()) == done.episodes > 0


def test_an_episode_without_an_end_is_left_out(folder, tmp_path):
    last = pq.read_table(folder / EPISODES)["length"][0].as_py() - 1
    change(foreign(folder) / DATA, lambda table: replaced(table, "next.done", last, False))
    done = import_dataset(FromLeRobot(), folder, tmp_path / "e", form="lerobot")
    (flaw,) = done.flaws
    assert (flaw.episode, flaw.step) == (0, last)
    assert "has no end" in str(flaw)


def test_a_wrong_number_of_frames_is_named(folder, tmp_path):
    change(folder / EPISODES, lambda table: replaced(table, "length", 1, 1000))
    done = import_dataset(FromLeRobot(), folder, tmp_path / "e", form="lerobot")
    (flaw,) = done.flaws
    assert flaw.episode == 1
    assert "expected 1000 frames" in flaw.problem


@pytest.mark.parametrize(
    ("how", "said"),
    [
        (lambda table: table.drop_columns(["next.reward"]), "lacks the columns next.reward"),
        (lambda t: t.append_column("x", t["index"]), "has columns that .* does not: x"),
    ],
)
def test_missing_and_extra_columns_are_named(folder, tmp_path, how, said):
    change(folder / DATA, how)
    with pytest.raises(DatasetError, match=said):
        import_dataset(FromLeRobot(), folder, tmp_path / "e", form="lerobot")
    assert not (tmp_path / "e").exists()


def test_damaged_files_are_named(folder, tmp_path):
    def imported():
        return import_dataset(FromLeRobot(), folder, tmp_path / "e", form="lerobot")

    (folder / DATA).write_bytes(b"PAR1 nothing")
    with pytest.raises(DatasetError, match=r"no episode of .* is whole: data/chunk-000"):
        imported()
    shutil.rmtree(folder / "meta/episodes")
    with pytest.raises(DatasetError, match="no table of episodes"):
        imported()
    (folder / "meta/info.json").write_text("{}")
    with pytest.raises(DatasetError, match=r"info\.json"):
        imported()
    with pytest.raises(DatasetError, match="no LeRobot dataset"):
        import_dataset(FromLeRobot(), tmp_path / "d", tmp_path / "e", form="lerobot")


def with_video(folder, frames):
    """Moves the images of a folder into a video, as LeRobot does by default."""
    from rollout.data.replay import write_video

    info = json.loads((folder / "meta/info.json").read_text())
    info["features"]["observation.images.rgb"]["dtype"] = "video"
    info["video_path"] = "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4"
    (folder / "meta/info.json").write_text(json.dumps(info))
    change(folder / DATA, lambda table: table.drop_columns(["observation.images.rgb"]))
    path = folder / "videos/observation.images.rgb/chunk-000/file-000.mp4"
    path.parent.mkdir(parents=True)
    write_video(path, frames, 15)
    lengths = pq.read_table(folder / EPISODES)["length"].to_numpy()
    starts = (np.cumsum(lengths) - lengths) / 15
    about = {"chunk_index": starts * 0, "file_index": starts * 0, "from_timestamp": starts}

    def added(table):
        for name, values in about.items():
            kind = pa.float64() if name == "from_timestamp" else pa.int64()
            table = table.append_column(
                f"videos/observation.images.rgb/{name}", pa.array(values).cast(kind)
            )
        return table

    change(folder / EPISODES, added)
    return path


def test_videos_are_decoded_and_short_ones_are_named(folder, tmp_path):
    count = pq.read_table(foreign(folder) / DATA).num_rows
    shades = [np.full((16, 24, 3), 10 + 3 * i % 200, np.uint8) for i in range(count)]
    path = with_video(folder, shades[:-1])  # the last frame is missing
    done = import_dataset(FromLeRobot(), folder, tmp_path / "e", form="lerobot")
    (flaw,) = done.flaws
    last = pq.read_table(folder / EPISODES)["length"][-1].as_py()
    assert flaw.file == path.relative_to(folder).as_posix()
    assert (flaw.episode, flaw.step) == (done.episodes, last - 1)
    with Dataset(tmp_path / "e") as dataset:
        seen = [dataset.read(ref).columns["observation/rgb"] for ref in dataset.episodes()]
    means = np.concatenate(seen).reshape(-1, 16 * 24 * 3).mean(1)
    wanted = np.array([shade.mean() for shade in shades[: len(means)]])
    assert np.abs(means - wanted).max() < 8  # H.264 is lossy


@pytest.mark.long
def test_lerobot_and_ray_read_an_export(folder, tmp_path):
    python = python_with("lerobot[dataset]==0.6.1", "ray[data]==2.60.0")
    run_with(python, "lerobot_reads.py", folder, tmp_path / "seen.npz")
    with Dataset(tmp_path / "d") as dataset, np.load(tmp_path / "seen.npz") as seen:
        refs = dataset.episodes()
        read = [dataset.read(ref).columns for ref in refs]
        for name, column in (
            *(("rgb", "observation/rgb"), ("ray/rgb", "observation/rgb")),
            *(("state", "observation/position"), ("action", "action")),
            *(("reward", "reward"), ("ray/reward", "reward")),
        ):
            want = np.concatenate([columns[column] for columns in read])
            np.testing.assert_array_equal(seen[name].reshape(want.shape), want, name)
        grey = np.concatenate([columns["observation/grey"] for columns in read])
        np.testing.assert_array_equal(seen["grey"].reshape(grey.shape), grey)
        assert seen["gamut/state"].tolist() == [str(ref.state) for ref in refs]
        assert seen["gamut/end"].tolist() == [ref.end for ref in refs]
        assert set(seen["gamut/state_space"]) == {dataset.manifest.state_space.digest}
        assert set(seen["tasks"]) == {dataset.manifest.task["goal"]}
