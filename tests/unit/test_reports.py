"""The templates and tables of reports."""

import re
from pathlib import Path

import jinja2
import pytest

from rollout.reports import render, table

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"
BY_HAND = ("pilots.md", "protocol.md")
REPORTS = sorted(path for path in RESULTS.rglob("*.md") if path.name not in BY_HAND)


def test_texts_of_others_are_no_templates_and_control_no_terminal():
    leg = {"leg": "{{ 7 * 7 }} <b> \x1b[2J", "runs": 1, "undefined": []}
    assert "### {{ 7 * 7 }} <b> \\x1b[2J, 1 runs\n" in render("groups", legs=[(leg, "", "")])


def test_a_value_that_is_not_given_is_an_error():
    with pytest.raises(jinja2.UndefinedError, match="'legs' is undefined"):
        render("groups")


def test_a_cell_is_one_line_and_ends_where_it_should():
    assert table(["a|b", "n"], [["x|y", 1], ["two\nlines", -2.5]], align=True).splitlines() == [
        "| a\\|b | n |",
        "| --- | --: |",
        "| x\\|y | 1 |",
        "| two lines | -2.5 |",
    ]


def test_columns_are_aligned_on_demand_only():
    assert table(["n"], [[1], [2]]) == "| n |\n| --- |\n| 1 |\n| 2 |"
    assert table(["n"], [], align=True) == "| n |\n| --- |"


@pytest.mark.parametrize("path", REPORTS, ids=lambda path: path.relative_to(RESULTS).as_posix())
def test_committed_tables_are_written_the_same_again(path):
    """Byte for byte: a report that is made again differs in its figures only."""
    for found in re.findall(r"(?:^\|.*\n)+", path.read_text(), re.MULTILINE):
        lines = found.splitlines()
        header, rule, *rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in lines]
        cells = [[cell.strip().replace("\\|", "|") for cell in row] for row in (header, *rows)]
        assert table(cells[0], cells[1:], align=" --: " in rule).splitlines() == lines
