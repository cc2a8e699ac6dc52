"""The loop of all trainings: what is written, saved, validated and called, and in which order."""

import os
import signal
from types import SimpleNamespace

import pytest

from rollout.signals import Stop, Stopped
from rollout.train import rounds
from rollout.train.config import SaveConfig
from rollout.train.rounds import Rounds


class Counting(Rounds):
    """A training whose rounds count."""

    def weights(self):
        return {}

    def checkpoint(self):
        return {}, {}

    def make(self):
        self.env_steps += 10
        return {"made": self.number + 1}

    def validate(self, last=False):
        due = last or (self.number and self.number % 2 == 0)
        return {"validation/score": self.number} if due else {}


@pytest.fixture
def events(monkeypatch):
    """What happens, in its order: lines, numbers of checkpoints, and calls of callbacks."""
    found = []
    monkeypatch.setattr(
        rounds, "write_checkpoint", lambda _, about, **more: found.append(about["update"])
    )
    monkeypatch.setattr(rounds, "prune", lambda *arguments, **more: None)
    return found


def training(events, tmp_path, *, every=1, on_update=()):
    def write(env_steps, values):
        events.append({"env_steps": env_steps, **values})

    run = SimpleNamespace(
        path=tmp_path, summary_file=tmp_path / "none", checkpoints=tmp_path, run_id="run"
    )
    metrics, lineage = SimpleNamespace(write=write), SimpleNamespace(add=lambda *_: None)
    job = SimpleNamespace(stop=Stop(), run=run, metrics=metrics, lineage=lineage)
    return Counting(job, None, SaveConfig(every=every), on_update)


def end_at_one(record):
    return record.update == 1


def test_a_line_comes_before_the_checkpoint(events, tmp_path):
    it = training(events, tmp_path)
    it.run(2, it.make, it.validate)
    assert events == [
        {"env_steps": 10, "made": 1, "train/update": 1},
        1,
        {"env_steps": 20, "made": 2, "validation/score": 2, "train/update": 2},
        2,
    ]


@pytest.mark.parametrize("after_checkpoint", [False, True])
def test_the_last_weights_are_validated_if_a_callback_ends_it(events, tmp_path, after_checkpoint):
    it = training(events, tmp_path, on_update=[end_at_one])
    more = {"after_checkpoint": True} if after_checkpoint else {}
    it.run(4, it.make, it.validate, **more)
    assert events[:2] == [{"env_steps": 10, "made": 1, "train/update": 1}, 1]
    assert events[2:] == [{"env_steps": 10, "validation/score": 1, "train/update": 1}]
    assert it.ended_by == f"callback {__name__}:end_at_one"


def test_a_validation_that_follows_its_checkpoint_has_a_line_of_its_own(events, tmp_path):
    seen = []
    it = training(events, tmp_path, on_update=[lambda record: seen.append(dict(record.metrics))])
    it.run(3, it.make, it.validate, after_checkpoint=True)
    written = [event if isinstance(event, int) else set(event) - {"env_steps"} for event in events]
    line, validation = {"made", "train/update"}, {"validation/score", "train/update"}
    assert written == [line, 1, line, 2, validation, line, 3, validation]
    assert ["validation/score" in metrics for metrics in seen] == [False, True, True]


def test_whole_rounds_are_saved_when_a_signal_ends_it(events, tmp_path):
    def stop_at_two(record):
        if record.update == 2:
            os.kill(os.getpid(), signal.SIGTERM)

    it = training(events, tmp_path, every=3, on_update=[stop_at_two])
    with it.job.stop as stop:
        stop.install()
        with pytest.raises(Stopped):
            it.run(4, it.make)
    assert events[-1] == 2


def test_a_round_without_a_line_has_no_checkpoint(events, tmp_path):
    it = training(events, tmp_path, every=4)
    it.run(2, it.make)

    def fail(*arguments):
        raise OSError("No space left on device")

    it.job.metrics.write = fail
    with pytest.raises(OSError, match="No space"):
        it.run(4, it.make)
    it.save()
    assert [event for event in events if isinstance(event, int)] == [2]
