"""Event files of TensorBoard: what is in metrics.jsonl is in them, however a run was stopped."""

import logging

import pytest

from rollout.observe.metrics import Metrics
from rollout.observe.tensorboard import FOLDER, TensorboardMirror, read_events


class Run:
    """Sessions of a run, on a clock that the test moves."""

    def __init__(self, folder):
        self.folder, self.now, self.session = folder, 1000.0, -1

    def clock(self):
        self.now += 1.0
        return self.now

    def play(self, *lines, mirrored=True, by_lines=False):
        self.session += 1
        constants = {"resume_count": self.session}
        with Metrics(self.folder / "metrics.jsonl", constants=constants, clock=self.clock) as m:
            mirror = TensorboardMirror(m, by_lines=by_lines) if mirrored else None
            for env_steps, values in lines:
                m.write(env_steps, values)
            if mirror is not None:
                mirror.close()

    @property
    def events(self):
        return list(read_events(self.folder / FOLDER))

    @property
    def points(self):
        """The value of ``x`` by step, as TensorBoard shows it."""
        shown = {}
        for event in self.events:
            if event.HasField("session_log"):
                shown = {step: x for step, x in shown.items() if step < event.step}
            for value in event.summary.value:
                if value.tag == "x":
                    shown[event.step] = value.simple_value
        return shown


@pytest.fixture
def run(tmp_path):
    return Run(tmp_path)


def test_a_line_is_an_event_with_its_numbers(run):
    run.play((64, {"x": 1.5, "train/update": 1, "on": True, "text": "a", "none": None}))
    (event,) = [event for event in run.events if event.HasField("summary")]
    assert (event.step, event.wall_time) == (64, run.now)
    assert {value.tag: value.simple_value for value in event.summary.value} == {
        "x": 1.5,
        "train/update": 1.0,
        "on": 1.0,
        "env_steps": 64.0,
        "resume_count": 0.0,
        "wall_s": run.now - 1001.0,
    }


def test_a_run_without_lines_has_no_folder(run):
    run.play()
    assert not (run.folder / FOLDER).exists()


def test_steps_that_are_repeated_replace_the_earlier_ones(run):
    run.play(*((64 * k, {"x": k}) for k in range(1, 6)))
    run.play((192, {"x": 30}), (256, {"x": 40}))
    assert run.points == {64: 1, 128: 2, 192: 30, 256: 40}
    assert len(list((run.folder / FOLDER).iterdir())) == 2


def test_what_a_killed_session_did_not_write_is_added(run):
    run.play((64, {"x": 1}))
    run.play((128, {"x": 2}), (192, {"x": 3}))
    newest = max((run.folder / FOLDER).iterdir())
    with newest.open("r+b") as file:  # as if the last record had come to the disk in part
        file.truncate(newest.stat().st_size - 5)
    assert run.points == {64: 1, 128: 2}
    run.play((256, {"x": 4}))
    assert run.points == {64: 1, 128: 2, 192: 3, 256: 4}


def test_a_mirror_that_is_switched_on_later_has_everything(run):
    run.play((64, {"x": 1}), (128, {"x": 2}), mirrored=False)
    run.play((128, {"x": 20}))
    assert run.points == {64: 1, 128: 20}
    run.play((192, {"x": 3}), mirrored=False)
    run.play()
    assert run.points == {64: 1, 128: 20, 192: 3}


def test_lines_are_counted_where_steps_are_in_no_order(run):
    run.play((500, {"x": 1}), (100, {"x": 2}), by_lines=True)
    run.play((100, {"x": 3}), by_lines=True)
    assert run.points == {1: 1, 2: 2, 3: 3}


def test_a_folder_that_cannot_be_written_costs_a_warning_only(run, caplog):
    (run.folder / FOLDER).write_text("a file")
    with caplog.at_level(logging.WARNING):
        run.play((64, {"x": 1}), (128, {"x": 2}))
    assert caplog.text.count("event files of TensorBoard end here") == 1
    assert len((run.folder / "metrics.jsonl").read_text().splitlines()) == 2


def test_a_damaged_line_costs_a_warning_only(run, caplog):
    run.play((64, {"x": 1}), mirrored=False)
    file = run.folder / "metrics.jsonl"
    file.write_bytes(b"damaged\n" + file.read_bytes())
    with caplog.at_level(logging.WARNING):
        run.play((128, {"x": 2}))
    assert "event files of TensorBoard end here" in caplog.text
    assert file.read_text().count("\n") == 3
