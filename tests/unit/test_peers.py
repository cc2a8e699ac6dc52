"""The benchmark beside other libraries: what fails is listed, and ends nothing else."""

import sys
from pathlib import Path

import pytest

from benchmarks import report
from benchmarks.throughput.peers import __main__ as peers
from benchmarks.throughput.peers import workers
from benchmarks.throughput.peers.libraries.turns import Turn

FAKE = """
import threading
from benchmarks.throughput.peers.libraries.turns import serve

def train(turn):
    print("a library prints")
    if turn.variant == "hangs" and turn.seed == 2:
        threading.Event().wait()
    if turn.variant == "fails":
        raise ValueError("no such game")
    turn.begin()
    while not turn.add(turn.size, [turn.size] * 100):
        pass

serve(train)
"""


def test_what_fails_or_hangs_is_listed_and_the_others_are_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "fakes").mkdir()
    (tmp_path / "fakes" / "gamut.py").write_text(FAKE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(peers, "MODULES", "fakes")

    def refuse(name: str) -> Path:
        raise workers.PeerError(f"not installed: {name}")

    monkeypatch.setattr(peers, "interpreter", refuse)
    ours = {"module": "gamut"}
    libraries = {
        peers.OURS: ours,
        "hangs": {**ours, "variant": "hangs"},
        "fails": {**ours, "variant": "fails"},
        "missing": {"module": "missing"},
        "cannot": {**ours, "refuses": {"Game": "has no such game"}},
    }
    settings = {
        "games": {"Game": {"about": "A game", "score": 5, "seconds": 9, "sizes": [5], "ppo": {}}},
        "libraries": libraries,
        "ppo": {},
        "tuning_s": 0.0,
        "timeout_s": 1.5,
    }

    found = peers.measure(settings, "Game", list(libraries), rounds=2, seconds=0.0)

    assert found[peers.OURS].times
    assert len(found["hangs"].turns) == 1
    errors = {name: result.error for name, result in found.items()}
    assert errors == {
        peers.OURS: "",
        "hangs": "no answer in 1.5 s; killed",
        "fails": "ValueError: no such game",
        "missing": "not installed: missing",
        "cannot": "has no such game",
    }
    text = peers.report("Game", settings, found)
    assert all(error in text for error in errors.values())


def test_an_interpreter_that_cannot_be_made_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\necho ' error: no wheel for it'\necho hint: none\nexit 2\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))

    with pytest.raises(workers.PeerError, match=r"^not installed: error: no wheel for it$"):
        workers.interpreter("torch_file")


def test_a_mean_of_no_episodes_is_none() -> None:
    asked = {"game": "Game", "size": 1, "variant": "", "seed": 0, "ppo": {}}
    turn = Turn({**asked, "seconds": 9.0, "score": 1.0})
    turn.begin()
    assert not turn.add(1, mean=float("nan"))
    assert turn.answer()["score"] is None


def test_saving_one_game_keeps_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    turn = {"steps": 100, "seconds": 1.0, "score": 480.0, "reached": True}
    result = peers.Result(size=64, began=1.0, turns=[turn], error="")
    monkeypatch.setattr(peers, "measure", lambda *_: {peers.OURS: result})
    monkeypatch.setattr(peers, "RESULTS", tmp_path)
    monkeypatch.setattr(report, "RESULTS", tmp_path)

    for game in ("Pong", "CartPole"):
        monkeypatch.setattr(sys, "argv", ["peers", "--only", game, "--save"])
        peers.main()

    text = (tmp_path / "peers.md").read_text()
    assert text.index("## CartPole") < text.index("## Pong")
    assert text.count("Measured 20") == 2
    assert (tmp_path / "peers.png").stat().st_size > 0
