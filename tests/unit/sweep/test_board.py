"""Boards: ranks, what intervals cover, what differs, and the three ways to get one."""

import json
import re

import numpy as np
import pytest

from rollout.commands.board import main
from rollout.data.tables import read_table, write_table
from rollout.errors import ConfigError
from rollout.sweep.board import make_board
from tests.unit.sweep.test_comparing import evaluation, training

HOSTILE = "<script>hit()</script>"


def with_columns(folder, **columns):
    """Adds columns to the results of an evaluation."""
    table = dict(read_table(folder / "episodes.parquet"))
    for name, change in columns.items():
        values = change(table) if callable(change) else [change] * len(table["score"])
        table[name] = np.array(values)
    write_table(folder / "episodes.parquet", table)
    return folder


def session(folder, version):
    about = json.loads((folder / "run.json").read_text())
    about["sessions"][-1]["versions"] = {"gamut": version}
    (folder / "run.json").write_text(json.dumps(about))


def test_ranks_are_shared_by_what_cannot_be_told_apart(tmp_path):
    a = evaluation(tmp_path / "alice", {"x": (1.0, 1), "y": (1.0, 2)})
    b = evaluation(tmp_path / "bob", {"z": (3.0, 3)})
    c = evaluation(tmp_path / "carol", {"w": (0.0, 4)})
    board = make_board([a, b, c])
    assert {row["model"]: row["rank"] for row in board.rows} == {
        "bob": 1,
        "alice/x": 2,
        "alice/y": 2,
        "carol": 4,
    }
    points = [row["estimate"]["point"] for row in board.rows]
    assert points == sorted(points, reverse=True)


def test_what_an_interval_covers_is_said(tmp_path):
    seeds = {"s0": (1.0, 1), "s1": (1.2, 2), "s2": (0.9, 3)}
    a = evaluation(tmp_path / "a", seeds, groups={"ppo": [*seeds]})
    b = evaluation(tmp_path / "b", {"one": (2.0, 4)})
    c = with_columns(evaluation(tmp_path / "c", {"flat": (2.0, 5)}), score=1.0)
    board = make_board([a, b, c])
    assert {row["model"]: row["covers"] for row in board.rows} == {
        "a": "states and 3 training seeds",
        "b": "states",
        "c": "-",
    }
    assert any("nothing about another training" in note for note in board.notes)


def test_lost_episodes_retries_and_cost_are_counted(tmp_path):
    lost = lambda t: (t["position"] == 3) & (t["player"] == "x")  # noqa: E731
    a = with_columns(
        evaluation(tmp_path / "a", {"x": (1.0, 1), "y": (0.0, 2)}),
        attempts=lambda t: 1 + 2 * (t["position"] == 3),
        end=lambda t: np.where(lost(t), "lost", "truncated"),
        score=lambda t: np.where(lost(t), np.nan, t["score"]),
        calls=2,
        unusable=1,
        input_tokens=10,
        output_tokens=0,
        usd=0.5,
        unpriced=lambda t: (t["position"] == 0).astype(int),
    )
    x, y = (
        next(row for row in make_board([a]).rows if row["model"] == name) for name in ("x", "y")
    )
    assert (x["episodes"], x["lost"], x["retries"]) == (19, 1, 2)
    assert (y["episodes"], y["lost"], y["retries"]) == (20, 0, 2)
    assert (x["calls"], x["unusable"], x["tokens"]) == (38, "50.0%", 190)
    assert x["USD"] == ">=9.5"
    assert any("Lost episodes have no score" in note for note in make_board([a]).notes)


def test_other_protocols_are_refused_and_other_differences_named(tmp_path):
    a = evaluation(tmp_path / "a", {"x": (1.0, 1)}, lost_episodes="tried again up to 3 times")
    b = evaluation(tmp_path / "b", {"x": (1.0, 2)}, lost_episodes="tried again up to 9 times")
    session(a, "1.0")
    session(b, "1.1")
    board = make_board([a, b])
    assert "Differs: the version of gamut is 1.0 in a; 1.1 in b." in board.notes
    assert any("up to 3 times in a; tried again up to 9 times in b" in n for n in board.notes)
    other = evaluation(tmp_path / "c", {"x": (1.0, 3)}, bridge_options={"size": 32})
    with pytest.raises(ConfigError, match=r"a and c .*bridge_options\.size is 64 and 32"):
        make_board([a, b, other])
    with pytest.raises(ConfigError, match="is no evaluation"):
        make_board([a, training(tmp_path / "t", [1, 2])])
    same = evaluation(tmp_path / "d", {"x": (5.0, 9)})
    assert make_board([b, same]).digest == board.digest
    changed = [evaluation(tmp_path / n, {"x": (1.0, 3)}, seed=7) for n in ("e", "f")]
    assert make_board(changed).digest != board.digest


def test_the_command_prints_tables_or_json_or_writes_a_page(tmp_path, capsys):
    a = evaluation(tmp_path / HOSTILE.replace("/", "|"), {"x": (1.0, 1)})
    b = evaluation(tmp_path / "b", {"x": (3.0, 2)})
    assert main([str(a), str(b)]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"\| 1 \| b \| \d", printed)
    assert "All pairs" in printed
    assert main([str(a), str(b), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert [row["rank"] for row in data["rows"]] == [1, 2]
    assert main([str(a), str(b), "--html", str(tmp_path / "board.html")]) == 0
    page = (tmp_path / "board.html").read_text()
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "<b>b</b> is better than" in page
    assert "default-src &#39;none&#39;" in page
    assert main([str(a), str(b), "--html", str(tmp_path / "no" / "board.html")]) == 2
    assert main([str(a), str(tmp_path / "none")]) == 2
    assert "there is no folder" in capsys.readouterr().err
