"""What others wrote cannot control a terminal."""

import io
import logging
import sys
from unittest.mock import MagicMock

import pytest

from rollout import cli
from rollout.api import Factor, Limits, StateSpace, Task
from rollout.cluster.submit import _out
from rollout.collect import CollectConfig
from rollout.commands import check_bridge, clean, dataset, watch
from rollout.data import describe_dataset
from rollout.data.card import write_card
from rollout.data.layout import Layout
from rollout.errors import DatasetError
from rollout.evaluate.findings import _table
from rollout.evaluate.journal import Journal, LossEntry
from rollout.evaluate.published import groups_section, published_section
from rollout.observe.logs import set_up_logging
from rollout.observe.progress import BarProgress
from rollout.observe.view import _line
from rollout.reports import table
from rollout.signals import say, shown
from rollout.testing import FakeBridge, FakeEvaluator


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


NAME = f"a\n12:00:00 ERROR forged {HOSTILE}|b"
CELL = {"mean": 0.5, "deviation": None, "states": 3}
TITLES = {"title": "t", "about": "", "source": "s", "read": "today", "spread": "deviation of runs"}
OWN = {"player": NAME, "actions": NAME, "cells": {NAME: None}}
PUBLISHED = {**TITLES, "own": [], "tables": {}, "results": {NAME: {NAME: [1.0, 0.5]}}}


def test_names_begin_no_line_of_a_log(tmp_path, capsys):
    set_up_logging(file=tmp_path / "run.log")
    logging.getLogger("rollout.x").warning("%s: lost", NAME)
    for text in (capsys.readouterr().err, (tmp_path / "run.log").read_text()):
        assert text.count("\n") == 1
        assert "\x1b" not in text
    logging.getLogger("rollout.x").error("the traceback:\n1", extra={"file_only": True})
    assert (tmp_path / "run.log").read_text().endswith("the traceback:\n1\n")


def test_names_begin_no_line_of_a_command(capsys, monkeypatch):
    monkeypatch.setattr(dataset, "play_text", lambda *_: [NAME])
    monkeypatch.setattr(dataset, "Dataset", MagicMock())
    monkeypatch.setattr(dataset, "_find", lambda *_: MagicMock(end=NAME, total_reward=0.0))
    assert dataset.main(["play", "x"]) == 0
    assert capsys.readouterr().out.count("\n") == 2


def test_names_control_no_report(tmp_path):
    """Names of tasks, columns, labels and rows come from games and datasets."""
    told = [
        _table(["name", "mean"], [{"name": NAME, "mean": 0.5}]),
        groups_section([{"leg": "p", "runs": 1, "cells": {NAME: {NAME: CELL}}, "undefined": []}]),
        published_section(PUBLISHED),
        published_section({**TITLES, "own": [OWN], "tables": {NAME: {NAME: None}}}),
        table([NAME], [[NAME]]),
    ]
    for text in told:
        rows = [line.replace("\\|", "") for line in text.splitlines() if "|" in line]
        assert len({row.count("|") for row in rows}) == 1
    assert HOSTILE[0] not in "".join(told[1:-1])
    states = StateSpace((Factor("biome", ("plains",)),))
    task = Task("hunt", HOSTILE, states, FakeEvaluator(), Limits(10), "simple")
    about = describe_dataset(FakeBridge().spec, task)
    write_card(Layout(tmp_path), about)
    assert HOSTILE[0] not in (tmp_path / "README.md").read_text()


@pytest.mark.parametrize("encoding", ["latin-1", "ascii"])
def test_help_fits_a_terminal_of_another_encoding(monkeypatch, encoding):
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding=encoding))
    monkeypatch.setattr(cli, "help_text", lambda *_: f"of a plug-in: 雪 {HOSTILE}")
    assert cli.main(MagicMock(), CollectConfig, "Collects.", ["--help"]) == 0
    sys.stdout.flush()
    assert rb"of a plug-in: \u96ea \x1b]0;owned" in raw.getvalue()


def test_a_progress_bar_shows_escape_sequences_as_text():
    stream = io.StringIO()
    with BarProgress("x", stream) as progress:
        progress.update(1.0, {"policy": HOSTILE})
    assert "\x07" not in stream.getvalue()
    assert r"\x1b]0;owned\x07\x9b2J" in stream.getvalue()
