import io
import logging

import pytest

from rollout.observe.progress import BarProgress, LineProgress, Throttle, share, show_progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_a_bar_and_a_file_gets_lines() -> None:
    assert isinstance(show_progress("x", every_s=1, stream=Terminal()), BarProgress)
    assert isinstance(show_progress("x", every_s=1, stream=io.StringIO()), LineProgress)


def test_a_bar_shows_share_and_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    stream = Terminal()
    with show_progress("collect", every_s=1, stream=stream) as progress:
        progress.update(0.25, {"episodes": 3, "return": 1.23456, "text": "[b]"})
    assert "collect" in stream.getvalue()
    assert "25%" in stream.getvalue()
    assert "episodes=3 return=1.235 text=[b]" in stream.getvalue()


def test_lines_come_at_first_every_so_often_and_at_the_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now = 0.0
    with caplog.at_level(logging.INFO), LineProgress("collect", 10, clock=lambda: now) as progress:
        for second in range(25):
            now = float(second)
            progress.update(second / 25, {"episodes": second})
    assert caplog.messages == [
        "collect 0% episodes=0",
        "collect 40% episodes=10",
        "collect 80% episodes=20",
        "collect 96% episodes=24",
    ]


def test_the_share_is_that_of_the_budget_nearest_to_its_end() -> None:
    assert share((5, 10), (90, 100), (3, None)) == 0.9
    assert share((5, None)) == 0
    assert share((50, 10)) == 1


def test_a_throttle_is_due_at_once_and_then_after_its_interval() -> None:
    now = 5.0
    throttle, later = (Throttle(2.0, at_once=each, clock=lambda: now) for each in (True, False))
    assert throttle.due()
    assert not throttle.due()
    assert not later.due()
    now = 7.5
    assert throttle.due()
    assert later.due()
    now = 9.0
    assert not throttle.due()
    now = 9.5
    assert throttle.due()
