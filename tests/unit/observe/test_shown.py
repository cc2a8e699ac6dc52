"""What others wrote cannot control a terminal."""

import io
import logging
import sys
from unittest.mock import MagicMock

import pytest

from rollout.cluster.submit import _out
from rollout.commands import check_bridge, clean, dataset, watch
from rollout.errors import DatasetError
from rollout.evaluate.journal import Journal, LossEntry
from rollout.observe.logs import set_up_logging
from rollout.observe.progress import BarProgress
from rollout.observe.view import _line
from rollout.signals import say, shown


def test_terminal_and_log_show_escape_sequences_as_text(tmp_path, capsys):
    set_up_logging(file=tmp_path / "run.log")
    logging.getLogger("rollout.x").warning(
        "its last words: %s", "\x1b]0;owned\x07\x9b2J\rbye\u202e"
    )
    for text in (capsys.readouterr().err, (tmp_path / "run.log").read_text()):
        assert r"last words: \x1b]0;owned\x07\x9b2J\rbye\u202e" in text
    say("error: \x1b[2J")
    assert capsys.readouterr().err == "error: \\x1b[2J\n"


def test_lines_tabs_and_other_scripts_stay():
    assert shown("a\n\tb ß é 雪") == "a\n\tb ß é 雪"


@pytest.mark.parametrize("encoding", ["latin-1", "ascii"])
def test_a_terminal_of_another_encoding_gets_every_message(monkeypatch, encoding):
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stderr", io.TextIOWrapper(raw, encoding=encoding))
    set_up_logging()
    logging.getLogger("rollout.x").warning("no 雪")
    say("error: 雪")
    sys.stderr.flush()
    assert raw.getvalue().count(b"\\u96ea") == 2


HOSTILE = "\x1b]0;owned\x07\x9b2J"


def test_printed_text_of_others_cannot_control_a_terminal(capsys, monkeypatch):
    monkeypatch.setattr(dataset, "play_text", lambda *_: [f"step 0: {HOSTILE}"])
    monkeypatch.setattr(dataset, "Dataset", MagicMock())
    monkeypatch.setattr(dataset, "_find", lambda *_: MagicMock(end=HOSTILE, total_reward=0.0))
    assert dataset.main(["play", "x"]) == 0
    # What others wrote is in errors, too.
    monkeypatch.setattr(dataset, "_find", MagicMock(side_effect=DatasetError(HOSTILE)))
    assert dataset.main(["play", "x"]) == 2
    for command in (check_bridge, watch):
        assert command.main([f"no {HOSTILE}"]) == 2
    out, err = capsys.readouterr()
    for text, times in ((out, 2), (err, 3)):
        assert not {"\x1b", "\x07", "\x9b"} & set(text)
        assert text.count(r"\x1b]0;owned\x07\x9b2J") >= times


def test_what_dead_runs_left_is_listed_without_controlling_a_terminal(capsys, monkeypatch):
    swept = MagicMock(processes=[1], folders=[])
    swept.lines.return_value = [f"process 7, {HOSTILE}"]
    monkeypatch.setattr(clean, "sweep_orphans", lambda **_: swept)
    assert clean.main([]) == 0
    assert r"process 7, \x1b]0;owned\x07\x9b2J" in capsys.readouterr().out


def test_the_log_of_a_job_cannot_control_a_terminal(capsys):
    _out(f"{HOSTILE}\nrest")
    assert capsys.readouterr().out == "\\x1b]0;owned\\x07\\x9b2J\nrest"


def test_the_screen_shows_each_text_on_one_line():
    assert _line(f"{HOSTILE}\n\t").plain == r"\x1b]0;owned\x07\x9b2J\n\t"


def test_a_journal_keeps_what_half_a_surrogate_pair_stood_for(tmp_path):
    about = ("a", "test", "sampled", 0, "\ud83d!", 0, 7)
    with Journal(tmp_path) as journal:
        journal.append(losses=[LossEntry(*about, phase="step", reason="\udc00", steps=1)])
    with Journal(tmp_path) as journal:
        [loss] = journal.losses
    assert (loss.state, loss.reason) == ("\ufffd!", "\ufffd")


def test_a_progress_bar_shows_escape_sequences_as_text():
    stream = io.StringIO()
    with BarProgress("x", stream) as progress:
        progress.update(1.0, {"policy": HOSTILE})
    assert "\x07" not in stream.getvalue()
    assert r"\x1b]0;owned\x07\x9b2J" in stream.getvalue()
