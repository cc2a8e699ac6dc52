"""Compilation of PPO's loss: what a compiler that is missing, fails or hangs costs a run."""

import copy
import dataclasses
import logging
import tempfile
import time

import numpy as np
import pytest
import torch

from rollout.api import Progress
from rollout.testing import FakeBridge
from rollout.train import compiling
from rollout.train.compiling import compiler_fault
from rollout.train.ppo import Ppo
from rollout.train.ppo import learner as module
from rollout.train.ppo.learner import PpoLearner
from tests.unit.train.learning_tools import made_up_batch, network_of, small

BRIDGE = FakeBridge(side=4)
SETTINGS = Ppo(batch=16, minibatch=8, epochs=2)


def a_learner(**changes):
    network = network_of(BRIDGE, small(activation="silu"))  # not by hand
    return PpoLearner(network, dataclasses.replace(SETTINGS, **changes))


def progress(*, update=0, env_steps=0, budget=10**9):
    return Progress(update, env_steps, budget, seed=0)


def a_batch():
    return made_up_batch(np.random.default_rng(0), 4, 4)


@pytest.fixture
def compiled(monkeypatch):
    """What torch.compile was asked for; what it returned fails on the call that ``fails`` names."""
    asked = {"calls": 0, "fails": None}

    def compile_(function):
        def run(*given):
            asked["calls"] += 1
            if asked["calls"] == asked["fails"]:
                raise RuntimeError("a shape that cannot be compiled\nand a trace")
            return function(*given)

        return run

    monkeypatch.setattr(torch, "compile", compile_)
    monkeypatch.setattr(module, "compiler_fault", lambda: "")
    monkeypatch.setattr(module, "keep_compiled", lambda: None)
    return asked


def test_it_says_what_is_wrong_with_a_compiler(monkeypatch, tmp_path):
    """The scripts leave a child that would go on, as compilers have."""

    def named(text):
        path = tmp_path / "cxx"
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        monkeypatch.setenv("CXX", str(path))
        return path

    path = named("echo cxx: fatal error: no headers >&2; exit 3")
    said = compiler_fault()
    assert f"{path} made no file (exit code 3: cxx: fatal error: no headers);" in said
    path = named("sleep 1234567")
    began = time.monotonic()
    said = compiler_fault(limit_s=0.3)
    assert f"{path} did not end within 0.3 s" in said
    assert time.monotonic() - began < 60
    named("exit 0")
    assert "made no file" in compiler_fault()
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX")
    said = compiler_fault()
    assert "is not on PATH" in said
    assert "CXX" in said
    assert "algorithm.compile=false" in said


def test_what_it_made_is_kept_where_the_user_says(monkeypatch, tmp_path):
    monkeypatch.setenv("GAMUT_CACHE", str(tmp_path))
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)
    compiling.keep_compiled()
    assert compiling.os.environ["TORCHINDUCTOR_CACHE_DIR"] == str(tmp_path / "inductor")
    torchs = f"{tempfile.gettempdir()}/torchinductor_me"  # as torch sets it
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", torchs)
    compiling.keep_compiled()
    assert compiling.os.environ["TORCHINDUCTOR_CACHE_DIR"] == str(tmp_path / "inductor")
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "elsewhere")
    compiling.keep_compiled()
    assert compiling.os.environ["TORCHINDUCTOR_CACHE_DIR"] == "elsewhere"


def test_auto_compiles_only_what_repays_it(compiled):
    for changes, budget, compiles in (
        ({}, 10**9, True),
        ({}, 16 * 1000, False),  # too few updates
        ({"compile": False}, 10**9, False),
        ({"compile": True}, 1, True),
    ):
        learner = a_learner(**changes)
        learner.update(a_batch(), progress(budget=budget))
        assert learner.state()["chosen"]["compile"] is compiles
        assert (compiled["calls"] > 0) is compiles
        compiled["calls"] = 0
    by_hand = PpoLearner(network_of(BRIDGE, small()), dataclasses.replace(SETTINGS, compile=True))
    assert by_hand.state()["chosen"]["compile"] is False


def test_a_fault_is_told_before_the_first_step(monkeypatch, caplog):
    monkeypatch.setattr(module, "compiler_fault", lambda: "the C++ compiler g++ hangs")
    learner = a_learner(compile=True)
    assert [r.message for r in caplog.records] == [
        "compile: the C++ compiler g++ hangs. This run learns without compilation"
    ]
    learner.update(a_batch(), progress())
    assert learner.state()["chosen"]["compile"] is False


def test_a_failure_in_mid_run_falls_back_and_is_told_once(compiled, caplog):
    compiled["fails"] = 6  # the second minibatch of the second update
    learner, eager = a_learner(compile=True), a_learner(compile=False)
    for number in range(3):
        for each in (learner, eager):
            each.update(a_batch(), progress(update=number))
    told = [r.message for r in caplog.records if r.levelno >= logging.WARNING]
    assert len(told) == 1
    assert "failed (a shape that cannot be compiled)" in told[0]
    assert compiled["calls"] == 6
    for a, b in zip(learner.network.parameters(), eager.network.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=0)
    assert learner.state()["chosen"]["compile"] is False


def test_a_resumed_run_keeps_what_auto_chose(compiled):
    first = a_learner()
    first.update(a_batch(), progress())
    kept = copy.deepcopy(first.state())
    for chosen in (True, False):
        kept["chosen"]["compile"] = chosen
        later = a_learner()
        later.restore(kept)
        compiled["calls"] = 0
        later.update(a_batch(), progress(update=1, env_steps=16, budget=32))
        assert (compiled["calls"] > 0) is chosen


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::DeprecationWarning:torch", "ignore::UserWarning:torch")
def test_the_compiled_loss_is_the_same(monkeypatch, tmp_path, caplog):
    """Also with fewer rows, which are another shape, and after a resumption bit for bit."""
    if fault := compiler_fault():
        pytest.skip(fault)
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    learner, eager = a_learner(compile=True), a_learner(compile=False)
    batches = [a_batch() for _ in range(3)]
    batches[1]["valid"][0, 2:] = False
    for number, batch in enumerate(batches):
        if number == 2:
            resumed = a_learner(compile=True)
            resumed.network.load_state_dict(learner.network.state_dict())
            resumed.restore(copy.deepcopy(learner.state()))
            resumed.update(batch, progress(update=number))
        for each in (learner, eager):
            each.update(batch, progress(update=number))
    assert not [r for r in caplog.records if r.levelno >= logging.WARNING]
    assert learner.state()["chosen"]["compile"] is True
    assert list(tmp_path.iterdir())
    pairs = zip(*(n.network.parameters() for n in (learner, eager, resumed)), strict=True)
    for own, other, again in pairs:
        torch.testing.assert_close(own, other, rtol=1e-5, atol=1e-6)
        torch.testing.assert_close(own, again, rtol=0, atol=0)
