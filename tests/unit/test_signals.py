"""How signals end programs: ``Stop``, and every script at random moments."""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

import pytest

from rollout.data import Dataset, doctor
from rollout.files import replacing
from rollout.signals import Stop, Stopped, interruptible

ROOT = Path(__file__).parents[2]
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
LIMIT_S = 300.0


def kill(signum=signal.SIGTERM):
    os.kill(os.getpid(), signum)


def test_no_burst_interrupts_the_cleaning_up():
    cleaned = []

    def work():
        try:
            kill()
        finally:
            for _ in range(3):
                kill()
            cleaned.append(True)

    with Stop(), pytest.raises(Stopped):
        work()
    assert cleaned


def test_in_a_deferred_block_the_second_signal_raises_and_the_third_does_not():
    seen = []

    def work():
        with stop.deferred():
            kill()
            seen.append("first")
            try:
                kill()
            finally:
                kill()
                seen.append("third")

    with Stop() as stop, pytest.raises(Stopped):
        work()
    assert seen == ["first", "third"]


def test_what_is_held_is_not_interrupted_but_what_is_released_within_is():
    seen = []

    def work():
        with stop.held():
            seen.append("opening")
            with stop.released():
                kill()
                pytest.fail("must have been raised")

    def late():
        with stop.held():
            kill()
            kill()
            seen.append("closed")
        pytest.fail("must have been raised")

    with Stop() as stop, pytest.raises(Stopped):
        work()
    with Stop() as stop, pytest.raises(Stopped):
        late()
    assert seen == ["opening", "closed"]


def test_a_stop_that_was_swallowed_is_raised_again_after_the_loop():
    def work():
        with contextlib.suppress(Stopped):
            kill()
        with stop.deferred():
            assert stop.requested

    with Stop() as stop, pytest.raises(Stopped):
        work()


def test_an_import_is_not_interrupted_and_then_it_is(tmp_path, monkeypatch, capsys):
    (tmp_path / "slow_module.py").write_text(
        "import os, signal, threading\n"
        "os.kill(os.getpid(), signal.SIGTERM)\n"
        "os.kill(os.getpid(), signal.SIGTERM)\n"
        "threading.Event().wait(0.2)\n"
        "done = True\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    seen = []

    def main():
        import slow_module

        seen.append(slow_module.done)
        time.sleep(60)
        return 0

    assert interruptible(main) == 143
    assert seen == [True]
    assert capsys.readouterr().err == "stopped by SIGTERM\n"


def test_while_a_script_imports_a_burst_ends_it_with_one_line():
    code = """
        import os
        from rollout import early
        write = os.write
        def slow(descriptor, data):
            os.kill(os.getpid(), 2)  # in the middle of the handler
            return write(descriptor, data)
        early.os.write = slow
        early.install()
        os.kill(os.getpid(), 15)
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (143, "stopped by SIGTERM\n")


def test_a_closed_terminal_is_ignored_where_nohup_says_so():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Stop() as stop:
            kill(signal.SIGHUP)
            assert not stop.requested
    finally:
        signal.signal(signal.SIGHUP, before)


FAKE = ("bridge.name=fake", "bridge.max_steps=40", "bridge.step_s=0.002", "policy=random")
SMALL_TRAINING = """
    bridge: {name: fake, step_s: 0.001}
    policy: {name: actor_critic, hidden: [16], columns: [position]}
    width: 4
    fragment: {steps: 8}
    env_steps: 1000000
    learners: {threads: 1}
    checkpoint: {every: 5, keep: 2}
"""
PLAYERS = """
    bridge: {name: fake, step_s: 0.002}
    players: {chance: random}
    sets: {train: {size: 50}}
    actors: 0
"""


def command(script, folder):
    """The command line of a script at work for seconds, whose output is ``folder/run``."""
    output = f"output={folder / 'run'}"
    arguments = {
        "collect": ["--set", *FAKE, "episodes=300", "actors=0", "fragment.steps=16", output],
        "collect_isolated": [
            *("--set", *FAKE, "episodes=300", "actors=0", "instances=2", "fragment.steps=16"),
            *("host.isolation=subprocess", output),
        ],
        "collect_on_ray": ["--set", *FAKE, "episodes=2000", "actors=2", output],
        "train": ["--config", str(folder / "train.yaml"), "--set", output],
        "evaluate": ["--config", str(folder / "players.yaml"), "--set", output],
        "check_bridge": ["fake", "--steps", "50"],
        "clean": ["--dry-run"],
    }
    (folder / "train.yaml").write_text(textwrap.dedent(SMALL_TRAINING))
    (folder / "players.yaml").write_text(textwrap.dedent(PLAYERS))
    name = script.partition("_")[0] if script.startswith("collect") else script
    return [sys.executable, str(ROOT / "scripts" / f"{name}.py"), *arguments[script]]


def handles_signals(process):
    """Whether the first lines of the script were executed: SIGTERM has a handler."""
    try:
        status = Path(f"/proc/{process.pid}/status").read_text()
    except OSError:
        return True
    caught = next((line for line in status.splitlines() if line.startswith("SigCgt")), "0")
    return bool(int(caught.split()[-1], 16) >> (signal.SIGTERM - 1) & 1)


def relatives(mark):
    """Command lines of all processes that were started by the script."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark.encode() in (place / "environ").read_bytes():
                found.append((place / "cmdline").read_text().replace("\0", " ")[:100])
    return found


def until(true, limit_s=LIMIT_S):
    end = time.monotonic() + limit_s
    while not true() and time.monotonic() < end:
        time.sleep(0.02)
    return true()


def stop_at_a_moment(script, folder, rng, most_s):
    """Starts a script, sends signals at a random moment, and checks all that was promised."""
    signum, burst = rng.choice(SIGNALS), rng.choice((1, 1, 2, 3))
    mark, said = f"SIGNAL_TEST={folder.name}-{rng.random()}", folder / "said"
    with said.open("w") as file:
        process = subprocess.Popen(
            command(script, folder),
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=file,
            env={**os.environ, **dict([mark.split("=")])},
            # The tests themselves may run under nohup, which is inherited.
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),  # noqa: PLW1509
        )
    until(lambda: handles_signals(process))
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(rng.uniform(0.0, most_s))
    came = process.poll() is None
    for _ in range(burst):
        process.send_signal(signum)
        time.sleep(rng.choice((0.0, 0.01, 0.1)))
    status = process.wait(LIMIT_S)
    where = f"{script}, {signum.name} x {burst}: {status}, {said.read_text()}"
    # It may be done just before the signal comes; else the status says which signal it was.
    assert status in ({0, 128 + signum} if came else {0}), where
    lines = [line for line in said.read_text().splitlines() if " INFO " not in line[:14]]
    assert len(lines) == (status != 0), where
    assert until(lambda: not relatives(mark), 20.0), (where, relatives(mark))
    run = folder / "run"
    assert not run.exists() or (run / "run.json").exists(), where
    if (run / "dataset" / "dataset.json").exists():
        assert doctor(run / "dataset").clean, where
        summary = run / "summary.json"
        if summary.exists():
            with Dataset(run / "dataset") as dataset:
                recorded = json.loads(summary.read_text())["results"]["episodes"]
                assert recorded == len(dataset.finished().episodes), where
    return status


def test_a_signal_while_a_file_is_replaced_leaves_nothing_half_written(tmp_path):
    (file := tmp_path / "dataset.json").write_text("old")

    def write():
        with replacing(file) as new:
            new.write_text("half")
            raise Stopped(signal.SIGHUP)

    with pytest.raises(Stopped):
        write()
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [(file.name, "old")]


@pytest.mark.process
@pytest.mark.slow
def test_scripts_end_as_promised_at_any_moment(tmp_path):
    rng = random.Random(11)
    scripts = ("collect", "collect_isolated", "evaluate", "check_bridge", "clean")
    for number, script in enumerate(scripts * 2):
        folder = tmp_path / f"{number}"
        folder.mkdir()
        stop_at_a_moment(script, folder, rng, 0.5 if number < len(scripts) else 4.0)


@pytest.mark.process
@pytest.mark.long
@pytest.mark.parametrize("script", ["collect", "collect_isolated", "evaluate", "check_bridge"])
def test_scripts_end_as_promised_at_many_moments(tmp_path, script):
    rng = random.Random(script)
    for number in range(50):
        folder = tmp_path / f"{number}"
        folder.mkdir()
        stop_at_a_moment(script, folder, rng, 5.0)


@pytest.mark.ray
@pytest.mark.long
@pytest.mark.parametrize("after_s", [0.1, 1.0, 3.0])
def test_a_signal_while_ray_starts_ends_a_script_at_once(tmp_path, after_s):
    most_s = 10.0  # a second on a machine that is not busy
    mark, private = f"SIGNAL_TEST={tmp_path}", Path(tempfile.mkdtemp(dir="/tmp"))  # a short path
    env = {**os.environ, "SIGNAL_TEST": str(tmp_path), "RAY_TMPDIR": str(private)}
    with subprocess.Popen(
        command("collect_on_ray", tmp_path), cwd=ROOT, stderr=subprocess.PIPE, text=True, env=env
    ) as process:
        next(line for line in process.stderr if "starting Ray on this machine" in line)
        time.sleep(after_s)
        process.send_signal(signal.SIGTERM)
        begun = time.monotonic()
        said = process.stderr.read()
        assert process.wait() == 128 + signal.SIGTERM, said
    assert time.monotonic() - begun < most_s
    assert said.splitlines()[-1] == "stopped by SIGTERM; continue with --resume"
    assert until(lambda: not relatives(mark), 2.0), relatives(mark)
    private.rmdir()  # it is empty


@pytest.mark.ray
@pytest.mark.long
@pytest.mark.parametrize("script", ["collect_on_ray", "train"])
def test_scripts_on_ray_end_as_promised_at_many_moments(tmp_path, script):
    rng = random.Random(script)
    for number in range(20):
        folder = tmp_path / f"{number}"
        folder.mkdir()
        stop_at_a_moment(script, folder, rng, 30.0)
