"""A policy that hangs in the process of its job: it is named, and the run ends by its deadline."""

import logging
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from rollout.cli import main
from rollout.collect import collect
from rollout.config import CollectConfig
from rollout.errors import BudgetExhausted
from rollout.host.actors import Pulse
from rollout.host.hosting import PolicyWatch

CODE = """
import time
from pathlib import Path
import numpy as np

def act(observation):
    if Path(__file__).with_name("hangs").exists():
        time.sleep(60)
    Path(__file__).with_name("hangs").touch()
    return np.zeros(1, np.int64)

def stubborn(observation):
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            time.sleep(60)
        except Exception:
            if Path(__file__).with_name("asked").exists():
                raise
            Path(__file__).with_name("asked").touch()
"""


@pytest.mark.parametrize("function", ["act", "stubborn"])
def test_a_policy_that_hangs_ends_the_run(tmp_path, capsys, monkeypatch, function):
    module = f"hanging_{abs(hash(str(tmp_path)))}"
    (tmp_path / f"{module}.py").write_text(CODE)
    monkeypatch.syspath_prepend(str(tmp_path))
    before, began = signal.getsignal(signal.SIGURG), time.monotonic()
    settings = ("episodes=2", "actors=0", "host.policy_s=0.5", "bridge.name=fake")
    policy = ("policy.name=callable", f"policy.function={module}:{function}")
    output = f"output={tmp_path / 'run'}"
    assert main(collect, CollectConfig, "", ["--set", output, *settings, *policy]) == 3
    said = capsys.readouterr().err
    assert time.monotonic() - began < 20
    assert f"the policy {module}:{function} has not decided for 0" in said
    assert said.splitlines()[-1].startswith("ended short: the policy")
    assert "Traceback" not in said
    assert signal.getsignal(signal.SIGURG) == before


class Person:
    waits_for_person = True


def watching(policy, limit_s):
    began = time.monotonic()
    return PolicyWatch(policy, lambda: Pulse(0, time.monotonic() - began), limit_s)


def test_a_person_has_no_deadline():
    watch = watching(Person(), 0.1)
    time.sleep(0.3)
    watch.close()


def test_other_threads_are_only_warned(caplog):
    caplog.set_level(logging.WARNING)
    watches = []
    thread = threading.Thread(target=lambda: watches.append(watching(object(), 0.1)))
    thread.start()
    thread.join()
    time.sleep(0.3)
    watches[0].close()
    [record] = caplog.records
    assert record.message.startswith("the policy builtins.object has not decided for 0.0")


STOPPED = """
import os, signal, time
from rollout.host import hosting
from rollout.host.actors import Pulse

hosting._STOPPED_S = 0.5
began = time.monotonic()
watch = hosting.PolicyWatch(object(), lambda: Pulse(0, time.monotonic() - began), 2.0)
os.kill(os.getpid(), signal.SIGSTOP)
time.sleep(1.0)
print("played on")
time.sleep(10.0)
"""


def test_time_in_which_the_process_is_stopped_does_not_count():
    """By Ctrl-Z, or by a scheduler that suspends jobs."""
    with subprocess.Popen(
        [sys.executable, "-c", STOPPED], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
        time.sleep(3.0)
        process.send_signal(signal.SIGCONT)
        said, errors = process.communicate(timeout=60)
    assert said == "played on\n", errors
    assert "BudgetExhausted" in errors, "its deadline holds after that"


def test_only_a_decision_in_progress_is_interrupted():
    deciding_s = [0.0]
    watch = PolicyWatch(object(), lambda: Pulse(0, deciding_s[0]), 0.1)
    try:
        signal.raise_signal(signal.SIGURG)
        deciding_s[0] = 1.0
        with pytest.raises(BudgetExhausted, match=r"has not decided for 0\.1 s"):
            time.sleep(20)
    finally:
        deciding_s[0] = 0.0
        watch.close()
