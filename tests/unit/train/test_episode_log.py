"""The log of training episodes."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from rollout.api import EpisodeResult, Outcome, Start, State
from rollout.errors import UnknownNameError
from rollout.train.episodes import EpisodeLog, chosen_signals, read_episodes


def result(episode: int) -> EpisodeResult:
    start = Start(State(7, {"seed": 7}), seed=3, episode=episode)
    return EpisodeResult(start, 0, 1, "terminated", Outcome.SUCCESS, 9, 2.5, float("nan"), 0.25)


def test_a_line_for_each_episode(tmp_path: Path) -> None:
    with closing(EpisodeLog(tmp_path / "e.jsonl", 0)) as log:
        log.write(1, 100, [result(4)], [{"kills": 2}])
    (line,) = read_episodes(tmp_path / "e.jsonl")
    assert line == {
        "update": 1,
        "env_steps": 100,
        "episode": 4,
        "state": 7,
        "seed": 3,
        "end": "terminated",
        "outcome": "success",
        "length": 9,
        "return": 2.5,
        "progress": None,
        "seconds": 0.25,
        "signal/kills": 2,
    }


def test_what_is_played_again_is_forgotten_and_a_torn_line_too(tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl"
    with closing(EpisodeLog(path, 0)) as log:
        for update in (1, 2, 3):
            log.write(update, 100 * update, [result(update), result(10 * update)], [{}, {}])
    with path.open("ab") as file:
        file.write(b'{"update": 3, "ep')
    with closing(EpisodeLog(path, 2)) as log:
        log.write(3, 300, [result(33)], [{}])
    assert [line["episode"] for line in read_episodes(path)] == [1, 10, 2, 20, 33]


def test_signals_are_chosen_by_pattern_and_an_unknown_one_is_named() -> None:
    known = ["reward", "kills/sheep", "kills/cow"]
    assert chosen_signals(["kills/*", "reward"], known) == ("reward", "kills/sheep", "kills/cow")
    with pytest.raises(UnknownNameError, match="kills/sheep"):
        chosen_signals(["kills/sheeep"], known)
