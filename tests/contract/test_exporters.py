"""Every exporter keeps the contract; the suite finds those that do not."""

import json
from dataclasses import dataclass, replace

import numpy as np
import pytest

from rollout.api import CALLS, CALLS_SPEC, Call, Task
from rollout.commands import dataset as script
from rollout.commands import dataset_formats
from rollout.configuration.plugins import build_plugin
from rollout.data import Dataset, DatasetWriter, describe_dataset
from rollout.errors import DatasetError
from rollout.registry import names
from rollout.testing import (
    FakeBridge,
    FakeEvaluator,
    FakeExporter,
    FakePolicy,
    check_exporter,
    make_fragments,
)
from rollout.testing.players import FakePlayer

FILES = {"actions": "a.npz", "calls": "c.jsonl", "hf": "hf", "lerobot": "lr", "minari": "m-v0"}
FILES |= {"mp4": "e.mp4", "rlds": "rlds", "rllib": "rllib"}
OPTIONS = {"rllib": {"column": "observation/image"}}
SAID = Call(usable=True, answer="up", messages=[{"role": "user", "content": "?"}])


class Asking(FakePlayer):
    """A player whose actions are answers of a model."""

    @property
    def extras(self):
        return {CALLS: CALLS_SPEC}

    def act(self, observations, memory, *, details, explore):
        decision = super().act(observations, memory, details=details, explore=explore)
        calls = np.empty(len(memory["count"]), object)
        calls[:] = [[SAID.as_json()] for _ in calls]
        return replace(decision, extras={CALLS: calls})


class AskingPolicy(FakePolicy):
    def build(self, spec, task, *, seed):
        return Asking(spec.action_space, seed, 0)


@pytest.fixture
def recorded(tmp_path):
    bridge = FakeBridge(side=4, max_steps=20)
    task = Task("t", "reach the target", bridge.spec.state_space, FakeEvaluator())
    manifest = describe_dataset(bridge.spec, task, extras={CALLS: CALLS_SPEC})
    with DatasetWriter(tmp_path / "d", manifest, fsync="never") as writer:
        for fragment in make_fragments(2, length=30, bridge=bridge, policy=AskingPolicy()):
            writer.append(fragment)
    with Dataset(tmp_path / "d") as dataset:
        yield dataset


@pytest.mark.parametrize("name", FILES)
def test_an_exporter_keeps_the_contract(name, recorded):
    episodes = recorded.episodes()[: 1 if name == "mp4" else None]
    exporter = build_plugin("exporters", name, OPTIONS.get(name, {}))
    check_exporter(exporter, recorded, episodes, FILES[name]).raise_if_failed()


def test_every_exporter_is_checked():
    assert set(FILES) == set(names("exporters"))


def test_the_fake_exporter_keeps_the_contract(recorded):
    check_exporter(FakeExporter(), recorded, recorded.episodes(), "r.jsonl").raise_if_failed()


@dataclass(frozen=True)
class Broken(FakeExporter):
    """The fake exporter with one thing wrong."""

    fault: str = ""

    def check(self, dataset, episodes, out):
        if self.fault == "eager":
            out.touch()

    def write(self, dataset, episodes, out):
        count = super().write(dataset, episodes[self.fault == "short" :], out)
        if self.fault == "litter":
            (out.parent / "rest").touch()
        if self.fault == "meddling":
            (dataset.layout.root / "exported").write_text(str(out.stat().st_mtime_ns))
        return 0 if self.fault == "uncounted" else count

    def read(self, path):
        for columns in super().read(path):
            yield {"reward": columns["reward"] + (self.fault == "wrong")}


@pytest.mark.parametrize(
    ("fault", "check", "said"),
    [
        ("eager", "writes", "it has written"),
        ("uncounted", "writes", "number of what was written"),
        ("litter", "writes", "alone"),
        ("meddling", "leaves the dataset alone", "exported"),
        ("short", "reads back", "were read"),
        ("wrong", "reads back", "other values of reward"),
    ],
)
def test_the_suite_finds_what_is_wrong(fault, check, said, recorded):
    report = check_exporter(Broken(fault), recorded, recorded.episodes(), "r.jsonl")
    assert said in report[check].seen
    assert report[check].result == "failed"


def test_what_a_format_cannot_hold_is_refused(recorded, tmp_path):
    episodes = recorded.episodes()
    with pytest.raises(DatasetError, match="expected one episode"):
        build_plugin("exporters", "mp4", {}).write(recorded, episodes, tmp_path / "e.mp4")
    with pytest.raises(DatasetError, match=r"expected a file \.npz"):
        build_plugin("exporters", "actions", {}).check(recorded, episodes, tmp_path / "a.json")


def test_an_exporter_of_another_package_is_used(recorded, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(dataset_formats, "names", lambda _: ("calls", "mp4", "rewards"))
    monkeypatch.setattr(dataset_formats, "build_plugin", lambda *_: FakeExporter())
    out = tmp_path / "r.jsonl"
    assert script.main(["export", str(recorded.layout.root), "--to", "rewards", str(out)]) == 0
    count = len(recorded.episodes(include_lost=True))
    assert f"{count} written by the exporter rewards" in capsys.readouterr().out
    assert len([json.loads(line) for line in out.read_text().splitlines()]) == count
