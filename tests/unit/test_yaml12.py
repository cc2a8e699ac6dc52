"""Every YAML file of ours or the user's is read as a configuration is."""

import dataclasses

import pytest

from bridges.mineflayer.task_files import read_file
from bridges.starbench.pictures.layout import UiMap
from bridges.stardojo import faults
from bridges.stardojo.rules import content as valley
from bridges.stardojo.task_table import load_files
from policies.vlm.prompt import load_prompt
from rollout.errors import ConfigError
from rollout.judge.rubric import load_rubric
from rollout.models.spending import price_of
from rollout.observe.run_files import budgets
from rollout.yaml12 import load_yaml

PROMPT = """\
extends: act
system: hello
fields: {thought: {doc: no, keep: no, chars: 1e3}}
"""
RUBRIC = """\
instructions: on
criteria: {y: {doc: no, low: 010, high: 1e3}}
"""
PRICES = """\
date: 2026-08-09
models: {no: {input: 010, cached: 1e-3, output: 1e3}}
"""


@pytest.mark.parametrize("ours", [False, True])
def test_scalars_are_those_of_configurations(tmp_path, ours):
    file = tmp_path / "x.yaml"
    file.write_text("\ufeff{a: no, b: 1e3, c: 0100, d: 1:30, e: 2026-01-01, f: on, g: 1e-3}")
    found = load_yaml(file, ours=ours)
    expected = {"a": "no", "b": 1000, "c": 100, "d": "1:30", "e": "2026-01-01", "f": "on"}
    assert found == {**expected, "g": 0.001}
    file.write_text("a: 1\nb: {c: 1, c: 2}\n")
    with pytest.raises(ConfigError, match=r"x.yaml:2: key 'c' is given twice"):
        load_yaml(file, ours=ours)


def test_prompts_rubrics_prices_and_budgets_are_read_so(tmp_path):
    file = tmp_path / "x.yaml"
    file.write_text(PROMPT)
    field = load_prompt(str(file), None).fields["thought"]
    assert (field.doc, field.keep, field.chars) == ("no", "no", 1000)
    file.write_text(RUBRIC)
    rubric = load_rubric(str(file))
    scale = rubric.criteria["y"]
    assert (rubric.instructions, scale.doc, scale.low, scale.high) == ("on", "no", 10, 1000)
    file.write_text(PRICES)
    price = price_of("no", str(file))
    assert dataclasses.astuple(price) == (10, 0.001, 1000, "2026-08-09")
    file.write_text("env_steps: 1e6\nepisodes: 010\n")
    assert budgets(str(file), 0.0) == {"env_steps": 1e6, "episodes": 10}


READERS = {
    "prompt": lambda path: load_prompt(str(path), None),
    "rubric": lambda path: load_rubric(str(path)),
    "prices": lambda path: price_of("x", str(path)),
    "UI map": lambda path: UiMap(path=path),
    "faults": faults.read,
    "tasks of StarDojo": load_files,
    "tasks of MineLand": read_file,
    "valley": lambda path: valley.load(path.parent),
}


@pytest.mark.parametrize("kind", READERS)
@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"a: {b: 1}\na: {b: 2}\n", r"farming.yaml:2: key 'a' is given twice, first in line 1"),
        (b"a: [1\nb: 2\n", r"farming.yaml:\d:\d+: not valid YAML"),
        (b"a: \xff\n", r"farming.yaml: expected text in UTF-8"),
    ],
)
def test_no_reader_lets_a_damaged_file_or_a_second_key_pass(tmp_path, kind, text, says):
    file = tmp_path / "farming.yaml"
    file.write_bytes(text)
    with pytest.raises(ConfigError, match=says):
        READERS[kind](file)


def test_a_file_of_the_user_that_nests_deeply_is_told(tmp_path):
    file = tmp_path / "creative_tasks.yaml"
    file.write_text("a: " + "[" * 4_000)
    with pytest.raises(ConfigError, match=r"creative_tasks.yaml: nested too deeply"):
        read_file(file)
