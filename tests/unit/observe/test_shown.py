"""What others wrote cannot control a terminal."""

import io
import logging
import sys

import pytest

from rollout.observe.logs import set_up_logging
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
