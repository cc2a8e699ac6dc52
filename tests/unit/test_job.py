"""What all jobs share: how a run is concluded, whatever it ends with."""

import errno
import json
import os
import re
import signal

import pytest

from rollout.api import Limits, Task
from rollout.cli import main
from rollout.commands import gamut
from rollout.config import LogConfig, RayConfig, RunConfig, WandbConfig, key
from rollout.errors import BudgetExhausted, is_disk_full
from rollout.host.fleets import open_fleet
from rollout.host.hosting import HostPlan
from rollout.job import open_job
from rollout.testing.fakes import FakeBridge
from rollout.testing.players import FakeEvaluator, FakePolicy


class Config(RunConfig):
    ray: RayConfig = key(RayConfig, "Which cluster.")
    wandb: WandbConfig = key(WandbConfig, "Mirroring.")
    log: LogConfig = key(LogConfig, "Log.")


@pytest.fixture
def job(tmp_path, capsys):
    """Runs a job that consists of ``play``; returns its status, what it said, its summary."""

    def run(play, *arguments):
        def work(config, session):
            with open_job("collect", config, session, needs_ray=False) as job:
                job.report()
                with job.ray():

                    def conclude(status):
                        job.write_summary(status, steps=job.metrics.path.stat().st_size)
                        return "3 steps"

                    return job.finish(lambda: play(job), conclude)

        settings = ["--set", f"output={tmp_path / 'run'}", *arguments]
        status = main(work, Config, "", settings)
        summary = json.loads((tmp_path / "run" / "summary.json").read_text())
        return status, capsys.readouterr().err.splitlines()[-1], summary

    return run


def raising(error):
    def play(job):
        job.metrics.write(1, {"a": 1})
        raise error

    return play


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_a_full_disk_ends_it_early_with_its_summary_and_it_continues(job, number):
    status, said, summary = job(raising(OSError(number, os.strerror(number))))
    assert status == 3
    assert said.startswith(f"ended short: [Errno {number}]")
    assert "--resume" in said
    assert summary["status"] == "ended short"
    assert summary["steps"] > 0
    status, _, summary = job(lambda job: None, "--resume")
    assert (status, summary["status"], summary["resume_count"]) == (0, "done", 1)


def test_any_other_error_is_raised_with_the_summary_written(job, tmp_path):
    with pytest.raises(ZeroDivisionError, match="of the user"):
        job(raising(ZeroDivisionError("of the user")))
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["status"] == "ended short"


def test_an_error_while_it_concludes_does_not_hide_the_first(job):
    def play(job):
        job.write_summary = None
        raise ZeroDivisionError("of the user")

    with pytest.raises(ZeroDivisionError, match="of the user"):
        job(play)


def test_a_full_disk_in_an_actor_is_one_too():
    class RemoteError(OSError):
        cause = OSError(errno.ENOSPC, "No space left on device")

    assert is_disk_full(RemoteError("ray::Actor.play()"))
    assert not is_disk_full(OSError(errno.EACCES, "Permission denied"))


def test_games_that_are_used_up_are_reported_with_what_was_saved(job):
    status, said, summary = job(raising(BudgetExhausted("no game is left")))
    assert (status, said) == (3, "ended short: no game is left. Saved: 3 steps")
    assert summary["status"] == "ended short"


def test_a_signal_while_it_concludes_interrupts_nothing(job):
    def play(job):
        write = job.write_summary

        def interrupted(status, **parts):
            os.kill(os.getpid(), signal.SIGHUP)
            return write(status, **parts)

        job.write_summary = interrupted

    status, said, summary = job(play)
    assert (status, summary["status"]) == (129, "done")
    assert said.startswith("stopped by SIGHUP")


def test_a_run_and_its_continuation_are_named_at_once(job, caplog):
    for arguments, kind in (((), "new"), (("--resume",), "resumed")):
        caplog.clear()
        job(lambda job: None, *arguments)
        assert re.fullmatch(rf"{kind} run in .*/run", caplog.messages[0])


def test_games_are_announced_before_they_are_launched(caplog):
    bridge = FakeBridge()
    task = Task("t", "", bridge.spec.state_space, FakeEvaluator(), Limits(steps=25))
    plan = HostPlan(bridge, task, FakePolicy(), instances=2, width=4)
    with caplog.at_level("INFO", "rollout"), open_fleet(plan):
        pass
    said = "launching 2 x fake in this process, 4 slots each; the first results may take a minute"
    assert said in caplog.messages


def test_a_job_says_at_once_that_it_loads(monkeypatch, capfd):
    def imported(_):
        raise ImportError

    monkeypatch.setattr(gamut, "_named", imported)
    for arguments, said in (([], r"\d\d:\d\d:\d\d INFO train: loading modules\n"), (["-h"], "")):
        monkeypatch.setattr("sys.argv", ["gamut train", *arguments])
        with pytest.raises(ImportError):
            gamut.run("train")
        assert re.fullmatch(said, capfd.readouterr().err)
