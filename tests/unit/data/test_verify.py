"""Recorded actions give the recorded frames again; a frame that differs is named."""

from dataclasses import replace

import pytest

from rollout.api import Task
from rollout.commands import dataset as script
from rollout.data import Dataset, DatasetWriter, describe_dataset
from rollout.testing import FakeBridge, FakeEvaluator, FakePolicy, make_fragments


def recorded(path, change=None):
    options = {"side": 4, "max_steps": 20}
    bridge = FakeBridge(**options)
    task = Task("t", "reach the target", bridge.spec.state_space, FakeEvaluator())
    extras = FakePolicy().build(bridge.spec, task, seed=0).extras
    about = {"bridge": "fake", "bridge_options": options, "extras": extras}
    with DatasetWriter(path, describe_dataset(bridge.spec, task, **about)) as writer:
        for fragment in make_fragments(2, length=30, bridge=bridge):
            writer.append(change(fragment) if change else fragment)
    return path


def test_what_was_recorded_is_verified(tmp_path, capsys):
    assert script.main(["verify", str(recorded(tmp_path / "d"))]) == 0
    with Dataset(tmp_path / "d") as dataset:
        count = len(dataset.episodes())
    assert f"{count} of {count} episodes are the same" in capsys.readouterr().out
    assert script.main(["verify", str(tmp_path / "d"), "999"]) == 2
    assert "no such episode" in capsys.readouterr().err


@pytest.mark.parametrize("place", ["frame", "action"])
def test_what_differs_is_named(tmp_path, capsys, place):
    def change(fragment):
        if place == "frame":
            images = fragment.observations["image"].copy()
            images[1, 0, 0, 0, 0] ^= 1
            return replace(fragment, observations={**fragment.observations, "image": images})
        moves = fragment.actions["move"].copy()
        moves[0, 0] = (moves[0, 0] + 2) % 4
        return replace(fragment, actions={"move": moves})

    assert script.main(["verify", str(recorded(tmp_path / "d", change))]) == 3
    out = capsys.readouterr().out
    if place == "frame":
        assert "episode 0, step 1: observation/image differs" in out
    assert "episode 0, step " in out
