"""Every importer keeps the contract; the suite finds those that do not."""

import io
import json
import pickle
from dataclasses import dataclass, replace

import h5py
import numpy as np
import pyarrow.parquet as pq
import pytest
from gymnasium import spaces

from rollout.api import Task
from rollout.configuration.plugins import build_plugin
from rollout.data import Dataset, DatasetWriter, describe_dataset
from rollout.data.formats.minestudio import BUTTONS
from rollout.registry import names
from rollout.testing import (
    FakeBridge,
    FakeEvaluator,
    FakeImporter,
    FakePolicy,
    check_importer,
    make_fragments,
)


def recorded(path):
    bridge = FakeBridge(side=4, max_steps=20)
    task = Task("t", "reach the target", bridge.spec.state_space, FakeEvaluator())
    extras = FakePolicy().build(bridge.spec, task, seed=0).extras
    manifest = describe_dataset(bridge.spec, task, extras=extras)
    with DatasetWriter(path, manifest, fsync="never") as writer:
        for fragment in make_fragments(2, length=30, bridge=bridge, policy=FakePolicy()):
            writer.append(fragment)
    return path


def exported(name, folder, **options):
    with Dataset(recorded(folder / "d")) as dataset:
        out = folder / "source-v0"
        build_plugin("exporters", name, options).write(dataset, dataset.episodes(), out)
    return out


def lerobot(folder, *, broken):
    out = exported("lerobot", folder)
    if broken:
        path = out / "data/chunk-000/file-000.parquet"
        table = pq.read_table(path)
        rewards = table["next.reward"].to_numpy().copy()
        rewards[1] = np.nan
        at = table.schema.get_field_index("next.reward")
        pq.write_table(table.set_column(at, table.field(at), [rewards]), path)
    return out


def minari(folder, *, broken):
    pytest.importorskip("minari", reason="needs the extra formats")
    out = exported("minari", folder, storage="hdf5")
    if broken:
        with h5py.File(out / "data/main_data.hdf5", "r+") as file:
            file["episode_1/rewards"][0] = np.nan
    return out


def gymnasium(folder, *, broken):
    path = folder / "walk.npz"
    ends = np.isin(np.arange(9), (2, 5, 8))
    rewards = np.where(np.arange(9) == 4, np.nan if broken else 0.5, 1.0)
    arrays = {"observations": np.ones((9, 4), np.float32), "actions": np.arange(9) % 2}
    folder.mkdir(exist_ok=True)
    np.savez(path, rewards=rewards, terminals=ends, **arrays)
    return path


def minestudio(folder, *, broken):
    lmdb = pytest.importorskip("lmdb", reason="needs the extra formats")
    about = {"episodes": [f"e{n}" for n in range(3)], "frames": 4}
    for modality in ("action", "image"):
        (folder / "s" / modality / "part-1").mkdir(parents=True)
        path = folder / "s" / modality / "part-1"
        with lmdb.open(str(path), map_size=1 << 24) as file, file.begin(write=True) as writing:
            infos = [
                {"episode": name, "episode_idx": n, "num_frames": about["frames"]}
                for n, name in enumerate(about["episodes"])
            ]
            writing.put(b"__chunk_size__", pickle.dumps(about["frames"]))
            writing.put(b"__chunk_infos__", pickle.dumps(infos))
            for n in range(len(infos)):
                value = film() if modality == "image" else pickle.dumps(pressed(broken and n == 1))
                writing.put(str((n, 0)).encode(), value)
    return folder / "s"


def pressed(broken):
    keys = {name: np.zeros(4, np.int64) for name in BUTTONS}
    return keys | {"camera": np.full((4, 2), np.nan if broken else 1.0)}


def film():
    import av

    out = io.BytesIO()
    with av.open(out, "w", format="mp4") as video:
        stream = video.add_stream("h264", rate=20)
        stream.width, stream.height, stream.pix_fmt = 32, 32, "yuv420p"
        for shade in range(4):
            frame = np.full((32, 32, 3), 40 * shade, np.uint8)
            video.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
        video.mux(stream.encode())
    return out.getvalue()


SOURCES = {"gymnasium": gymnasium, "lerobot": lerobot, "minari": minari, "minestudio": minestudio}


@pytest.mark.parametrize("name", SOURCES)
def test_an_importer_keeps_the_contract(name, tmp_path):
    whole, broken = (SOURCES[name](tmp_path / str(b), broken=b) for b in (False, True))
    report = check_importer(build_plugin("importers", name, {}), whole, broken=broken)
    report.raise_if_failed()
    assert not report.names("skipped")


def test_every_importer_is_checked():
    assert set(SOURCES) == set(names("importers"))


def lines(path, episodes):
    path.write_text("".join(json.dumps(each) + "\n" for each in episodes))
    return path


@pytest.fixture
def fake(tmp_path):
    whole = [{"rewards": [1.0] * n, "end": "terminated"} for n in (2, 3)]
    broken = [*whole, {"rewards": [1.0], "end": None}, {"rewards": "?"}]
    return lines(tmp_path / "w.jsonl", whole), lines(tmp_path / "b.jsonl", broken)


def test_the_fake_importer_keeps_the_contract(fake):
    report = check_importer(FakeImporter(), fake[0], broken=fake[1])
    report.raise_if_failed()
    assert not report.names("skipped")


@dataclass(frozen=True)
class Broken(FakeImporter):
    """The fake importer with one thing wrong."""

    fault: str = ""

    def describe(self, source):
        if self.fault == "accepting":
            source = source.with_suffix(".jsonl")
        if self.fault == "meddling":
            source.write_text(source.read_text().replace(": ", ":  "))
        spec = super().describe(source)
        if self.fault == "nested":
            return replace(spec, observation_space=spaces.Dict({"a": spec.observation_space}))
        return replace(spec, episodes=1) if self.fault == "few" else spec

    def episodes(self, source):
        found = super().episodes(source)
        return list(found) if self.fault == "eager" else self._changed(found)

    def _changed(self, found):
        for each in found:
            if self.fault == "absolute":
                yield (
                    each._replace(file="/x")
                    if hasattr(each, "_replace")
                    else replace(each, file="/x")
                )
            elif self.fault == "random" and hasattr(each, "columns"):
                action = np.random.default_rng().integers(0, 3, len(each.columns["action"]))
                yield replace(each, columns={**each.columns, "action": action})
            elif self.fault == "unnamed" and not hasattr(each, "columns"):
                yield each._replace(episode=None)
            elif self.fault == "raising" and not hasattr(each, "columns"):
                raise ValueError(each.problem)
            else:
                yield each


@pytest.mark.parametrize(
    ("fault", "check", "said"),
    [
        ("nested", "reads", "flat Dict"),
        ("few", "reads", "1 episodes, and there is one 1"),
        ("eager", "reads", "expected an iterator"),
        ("absolute", "reads", "relative"),
        ("random", "reads the same again", "other values"),
        ("meddling", "leaves the source alone", "it changed"),
        ("raising", "survives damage", "got ValueError"),
        ("unnamed", "sets faults aside", "number of the episode"),
    ],
)
def test_the_suite_finds_what_is_wrong(fault, check, said, fake):
    if fault == "random":
        lines(fake[0], [{"rewards": [1.0] * 50, "end": "terminated"}] * 2)
    report = check_importer(Broken(fault), fake[0], broken=fake[1])
    assert said in report[check].seen
    assert report[check].result == "failed"
