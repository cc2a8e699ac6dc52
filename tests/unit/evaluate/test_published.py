"""Published results beside our own: BALROG's arithmetic, its tables, and its two evaluations."""

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
import yaml

from rollout.cli import main
from rollout.config import resolved
from rollout.errors import ConfigError, UnknownNameError
from rollout.evaluate.config import EvaluateConfig
from rollout.evaluate.evaluate import evaluate
from rollout.evaluate.findings import plain
from rollout.evaluate.published import (
    Published,
    as_published,
    beside,
    load_published,
    own_cell,
    published_section,
)
from rollout.evaluate.statistics import Intervals, one_player
from rollout.testing.chat_server import ChatServer

pytestmark = pytest.mark.heavy

ROOT = Path(__file__).parents[3]
TASKS = ROOT / "bridges" / "gymnasium" / "tasks"


# Episodes of published logs, and mean and standard error of the summary that BALROG wrote for them.
@pytest.mark.parametrize(
    ("scores", "mean", "error"),
    [
        # Llama-3.2-3B on BabyAI, 50 episodes: 4 of goto, 1 of pickup; of goto alone; of pickup.
        ([1] * 5 + [0] * 45, 10.0, 4.242640687119283),
        ([1] * 4 + [0] * 6, 40.0, 15.491933384829665),
        ([1] + [0] * 9, 10.0, 9.486832980505138),
        # Claude 3.5 Sonnet on Crafter: achievements in each of ten episodes.
        (np.array([7, 7, 7, 6, 5, 4, 6, 12, 8, 10]) / 22, 32.72727272727273, 3.2012394293925466),
        # Claude 3.5 Sonnet, VLM, on another game: 120 episodes are said, and 119 were counted.
        ([1] * 41 + [0] * 78, 34.45378151260504, 4.3563101057350435),
        # By hand: the deviation is the root of 3/16.
        ([1, 0, 1, 1], 75.0, 100 * (3 / 16) ** 0.5 / 2),
        ([0.5], 50.0, 0.0),
    ],
)
def test_the_arithmetic_is_that_of_published_summaries(scores, mean, error):
    assert as_published(scores) == pytest.approx((mean, error), rel=1e-12)


def test_nothing_has_no_mean():
    assert np.isnan(as_published([])).all()


TABLE = Published(
    title="a | b",
    source="somewhere",
    read="2026-01-02",
    metric="progress",
    about="Means.",
    results={"big": {"text": (80, 5.7), "VLM": (74, 6.2)}, "small": {"VLM": (2.5, 2)}},
)


def test_lost_episodes_are_left_out_as_published_and_counted_as_0_beside_it():
    scores = np.array([[1.0, 0.0], [np.nan, 1.0], [0.0, 0.0]])
    intervals = Intervals(bounds=(0, 1))
    whole = np.array([[1.0, 0.0]])
    own = {("model", "sampled"): scores, ("other", "sampled"): whole}
    found = beside(TABLE, own, intervals)
    left, zero, other = found["own"]
    # 2 of 5, and 2 of 6; the deviations are the roots of 6/25 and of 2/9.
    assert left["mean"] == pytest.approx((40.0, 100 * (6 / 25 / 5) ** 0.5))
    assert zero["mean"] == pytest.approx((100 / 3, 100 * (2 / 9 / 6) ** 0.5))
    assert (left["counted"], zero["counted"]) == (
        "5 of 6 with a result",
        "6, those without a result as 0",
    )
    assert other["counted"] == "2 of 2 with a result"
    assert left["interval"] == one_player(scores, intervals)
    told = published_section(plain(found, lambda each: {"text": each.text()})).splitlines()
    assert "## Published results: a | b" in told
    assert "| model | sampled | 5 of 6 with a result | 40.0 ± 21.9 | 0.500 [0.000, 1.000] |" in told
    assert "| model | sampled | 6, those without a result as 0 | 33.3 ± 19.2 |" in "\n".join(told)
    assert (
        told[-5:]
        == [
            *("Means. Source: somewhere, read on 2026-01-02.", ""),
            "| model | text | VLM |",
            "| --- | --- | --- |",
            "| big | 80.0 ± 5.7 | 74.0 ± 6.2 |",
            "| small | - | 2.5 ± 2.0 |",
        ][1:]
    )


def test_a_run_without_results_has_no_figure():
    found = beside(TABLE, {("model", "sampled"): np.full((2, 1), np.nan)}, Intervals())
    told = published_section(json.loads(json.dumps(plain(found, lambda e: {"text": e.text()}))))
    assert "| model | sampled | 0 of 2 with a result | - |" in told


@pytest.mark.parametrize("name", ["balrog_babyai", "balrog_crafter"])
def test_the_packaged_tables(name):
    published = load_published(name, TASKS)
    assert published == load_published(str(TASKS / "published" / f"{name}.yaml"), None)
    assert len(published.results) == 12
    for columns in published.results.values():
        for column, (mean, error) in columns.items():
            assert column in {"text", "VLM"}
            assert 0 <= mean <= 100
            assert 0 < error < 10
    config = yaml.safe_load((ROOT / "configs" / "vlm" / f"{name}.yaml").read_text())
    assert (config["published"], config["task"], config["metric"]) == (name, name, "progress")


def test_wrong_tables_are_refused(tmp_path):
    with pytest.raises(UnknownNameError, match=r"published results 'balrog'.*balrog_crafter"):
        load_published("balrog", TASKS)
    with pytest.raises(UnknownNameError, match="A path ends with"):
        load_published("balrog_babyai", None)
    path = tmp_path / "table.yaml"
    with pytest.raises(ConfigError, match=r"table\.yaml"):
        load_published(str(path), None)
    path.write_text("title: t\nsource: s\nread: r\nmetric: progress\nresults: {a: {text: [1]}}\n")
    with pytest.raises(ConfigError, match=r"table\.yaml:5: results\.a\.text"):
        load_published(str(path), None)
    path.write_text("title: t\nsource: s\nread: r\nmetric: speed\nresults: {}\n")
    with pytest.raises(ConfigError, match="metric"):
        load_published(str(path), None)


def run(capsys, tmp_path, name, *settings):
    config = ["--config", str(ROOT / "configs" / "vlm" / f"{name}.yaml")]
    arguments = [*config, "--set", f"output={tmp_path / 'run'}", *settings]
    status = main(evaluate, EvaluateConfig, "Evaluates.", arguments)
    return status, capsys.readouterr().err


@pytest.mark.heavy
def test_baselines_play_balrogs_babyai(capsys, tmp_path):
    kinds = ("goto", "pickup", "open", "putnext", "pick_up_seq_go_to")
    status, said = run(capsys, tmp_path, "balrog_babyai", *(f"sets.{k}.size=1" for k in kinds))
    assert status == 0, said
    found = json.loads((tmp_path / "run" / "summary.json").read_text())["findings"]
    assert [leg["set"] for leg in found["legs"]] == [*kinds, *kinds]
    assert all(leg["progress"] in {0, 1} for leg in found["legs"])
    for leg in found["legs"]:
        limit = 64 if leg["set"] in {"goto", "pickup"} else 128
        assert leg["length"] < limit if leg["progress"] else leg["length"] == limit
    shares = [leg["progress"] for leg in found["legs"]]
    own = found["published"]["own"]
    assert [row["player"] for row in own] == ["chance", "forward"]
    assert [row["mean"] for row in own] == [
        pytest.approx(as_published(each)) for each in (shares[:5], shares[5:])
    ]
    report = (tmp_path / "run" / "report.md").read_text()
    assert "| forward | sampled | 5 of 5 with a result | 20.0 ± 17.9 | 0.200" in report
    assert "| GPT-4o | 77.6 ± 3.7 | 62.0 ± 4.3 |" in report


@pytest.mark.heavy
def test_baselines_play_balrogs_crafter(capsys, tmp_path):
    status, said = run(capsys, tmp_path, "balrog_crafter", "sets.ten.size=1")
    assert status == 0, said
    found = json.loads((tmp_path / "run" / "summary.json").read_text())["findings"]
    chance, noop = found["legs"]
    assert chance["progress"] * 22 == pytest.approx(round(chance["progress"] * 22), abs=1e-4)
    assert noop["progress"] == 0
    report = (tmp_path / "run" / "report.md").read_text()
    assert "| noop | sampled | 1 of 1 with a result | 0.0 ± 0.0 |" in report
    assert "| Grok 4 | 57.3 ± 3.9 | - |" in report


def test_results_of_another_metric_are_refused(capsys, tmp_path):
    status, said = run(capsys, tmp_path, "balrog_babyai", "metric=return")
    assert status == 2
    assert "metric=progress, and the evaluation has metric=return" in said
    assert not (tmp_path / "run" / "episodes.jsonl").exists()


@pytest.mark.parametrize(
    ("name", "kind", "fallback", "picture", "says", "row"),
    [
        (
            "balrog_babyai",
            "goto",
            "turn left",
            "",
            "wall",
            "| GPT-4o | 77.6 ± 3.7 | 62.0 ± 4.3 |",
        ),
        ("balrog_crafter", "ten", "Noop", "observation", "You face", "| Grok 4 | 57.3 ± 3.9 | - |"),
    ],
    ids=["babyai in words", "crafter in pictures"],
)
def test_a_model_plays_balrog_and_stands_beside_what_was_published(
    capsys, tmp_path, name, kind, fallback, picture, says, row
):
    config = yaml.safe_load((ROOT / "configs" / "vlm" / f"{name}.yaml").read_text())
    player = {"name": "vlm", "model": "tiny", "prompt": "act", "fallback": fallback}
    player |= {"history": {"texts": 16, "images": bool(picture) * 1}}
    player |= {"picture": {"column": picture}, "limits": {"episode_calls": 8}}
    sets = {kind: {**config["sets"][kind], "size": 2}}
    with ChatServer(lambda _: f"<action>{fallback}</action>") as server:
        players = {"model": {**player, "endpoint": {"url": server.url}}}
        changes = (
            f"{key}={json.dumps(value)}" for key, value in (("players", players), ("sets", sets))
        )
        status, said = run(capsys, tmp_path, name, *changes)
    assert status == 0, said
    assert len(server.requests) == 8 * 2
    [*_, last] = server.requests[-1]["messages"]
    assert says in json.dumps(last)
    assert ("data:image/png;base64," in json.dumps(last)) == bool(picture)
    [leg] = json.loads((tmp_path / "run" / "summary.json").read_text())["findings"]["legs"]
    assert (leg["usage"]["calls"], leg["usage"]["unusable"]) == (16, 0)
    report = (tmp_path / "run" / "report.md").read_text()
    assert "| model | sampled | 2 of 2 with a result | 0.0 ± 0.0 |" in report
    assert row in report


def test_tables_by_task_have_success_steps_and_return():
    columns = {
        "success": np.array([1.0, 0.0, 1.0, np.nan]),
        "length": np.array([30, 99, 34, 1]),
        "total_reward": np.array([70.0, 10.0, 74.0, np.nan]),
    }
    cell = own_cell(columns, 0.95)
    assert cell["episodes"] == 3
    assert cell["length"] == (32.0, 2.0)
    assert cell["total"] == pytest.approx((154 / 3, np.std([70, 10, 74])))
    published = load_published("starbench", ROOT / "bridges" / "starbench" / "tasks")
    own = [{"player": "me", "actions": "sampled", "cells": {"cocolia": cell}}]
    found = plain({**resolved(published), "own": own}, lambda e: {"point": e.point, **asdict(e)})
    told = published_section(found)
    assert "**me** (sampled, this run) | 66.7 [21, 94] / 32.0 ± 2.0 / 51.3 ± 29.3 | - |" in told
    assert "| GPT TA | 100.0 / 31.4 ± 2.6 / 71.1 ± 1.8 |" in told
    assert "| Auto-battle | - | - | - | - | - | - / - / 18.0 ± 0.0 | - / - / 7120 ± 0 |" in told
