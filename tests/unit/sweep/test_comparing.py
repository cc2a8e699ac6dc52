"""Comparison of runs by what they recorded: verdicts, and what cannot be compared."""

import json

import numpy as np
import pytest

from rollout.commands.compare import main
from rollout.data.tables import write_table
from rollout.errors import ConfigError
from rollout.evaluate.pairs import ALL_SETS
from rollout.observe.run_files import read_json
from rollout.sweep.comparing import compare_runs

PROTOCOL = {
    "bridge": "fake",
    "bridge_version": "1",
    "bridge_options": {"size": 64},
    "task": "go",
    "limit_steps": 20,
    "metric": "return",
    "seed": 0,
    "episodes_per_state": 1,
    "actions": ["sampled"],
    "episode_seed": "numpy",
    "groups": {},
}


def run(folder, kind, summary):
    folder.mkdir(parents=True)
    about = {"run_id": "r", "kind": kind, "sessions": [{"started": "2026-11-28T12:00:00+00:00"}]}
    (folder / "run.json").write_text(json.dumps(about))
    (folder / "summary.json").write_text(json.dumps(summary))
    return folder


def evaluation(folder, players, *, states=20, sets=None, digests=None, missing=0, **changed):
    """An evaluation in which each player has a mean score on every set, and the states vary."""
    sets = {"test": 0} if sets is None else sets  # by name, the first state
    protocol = {
        **PROTOCOL,
        "players": {name: {} for name in players},
        "sets": {
            name: {"digest": (digests or {}).get(name, f"d-{name}"), "size": str(states)}
            for name in sets
        },
        **changed,
    }
    rows = []
    for name, (mean, seed) in players.items():
        chance = np.random.default_rng(seed)
        for set_name, first in sets.items():
            for position in range(states):
                score = mean + position % 5 + 0.1 * chance.normal()
                rows.append((name, set_name, "sampled", position, str(first + position), 0, score))
    names = ("player", "set", "actions", "position", "state", "repeat", "score")
    columns = {name: np.array(column) for name, column in zip(names, zip(*rows, strict=True),
               strict=True)}  # fmt: skip
    run(folder, "EvaluateConfig", {"protocol": protocol, "results": {"missing": missing}})
    write_table(folder / "episodes.parquet", columns)
    return folder


def training(folder, scores, *, kind="TrainConfig", env_steps=100, state_set=None, **changed):
    """A training whose newest validation has these scores."""
    states = {"digest": "d", "size": str(len(scores)), **(state_set or {})}
    about = {"metric": "return", "actions": "sampled", "episode_seed": "numpy", "state_set": states}
    run(folder, kind, {"protocol": {**PROTOCOL, "validation": about, **changed}})
    (folder / "checkpoints").mkdir()
    entry = {"update": 1, "env_steps": env_steps, "score": float(np.mean(scores)), "low": None,
             "high": None, "episodes": len(scores), "scores": list(map(float, scores))}  # fmt: skip
    (folder / "checkpoints" / "validation.json").write_text(json.dumps([entry]))
    return folder


def of_seeds(folder, *scores):
    run(folder, "TrainConfig", {})
    for number, own in enumerate(scores):
        training(folder / "runs" / f"seed-{number}", own)
    return folder


def test_two_evaluations_are_compared_state_by_state(tmp_path):
    a = evaluation(tmp_path / "a" / "evaluation", {"trained": (1.0, 1)})
    b = evaluation(tmp_path / "b" / "evaluation", {"trained": (0.0, 2)})
    found = compare_runs([a, b])
    [row] = found.rows
    assert (row["model"], row["minus"], row["better"]) == ("b", "a", "a")
    assert row["difference"]["point"] == pytest.approx(-1, abs=0.1)
    assert row["difference"]["high"] < -0.8, "the variation of the states cancels"
    assert row["ahead"] == 0
    report = found.report()
    low, high = row["difference"]["low"], row["difference"]["high"]
    by = f"{-row['difference']['point']:.3f} [{-high:.3f}, {-low:.3f}]"
    assert f"**a** is better than **b**, by {by} return on 20 states, p < 0.001." in report


def test_players_of_one_evaluation_and_all_sets_together(tmp_path):
    players = {"a": (0.0, 1), "b": (0.0, 2), "c": (2.0, 3)}
    sets = {"train": 0, "test": 100, "full": 90}
    found = compare_runs([evaluation(tmp_path / "e", players, sets=sets)])
    assert len(found.rows) == 3 * 4
    pooled = {(r["model"], r["minus"]): r for r in found.rows if r["set"] == ALL_SETS}
    # Ten of the states of full are those of test.
    assert {r["difference"]["counts"]["states"] for r in pooled.values()} == {50}
    assert {pair: r["better"] for pair, r in pooled.items()} == {
        ("b", "a"): None,
        ("c", "a"): "c",
        ("c", "b"): "c",
    }
    report = found.report()
    assert "No difference is shown between **b** and **a**" in report
    assert "corrected for the 12 comparisons" in report


@pytest.mark.parametrize("status", ["done", "interrupted", None])
def test_a_training_that_is_not_done_is_named(tmp_path, status):
    for name in "ab":
        training(tmp_path / name, [1.0, 2.0, 3.0])
        (tmp_path / name / "summary.json").write_text(
            json.dumps(read_json(tmp_path / name / "summary.json") | {"status": "done"})
        )
    about = read_json(tmp_path / "a" / "summary.json")
    about.pop("status")
    about |= {"status": status} if status else {}
    (tmp_path / "a" / "summary.json").write_text(json.dumps(about))
    notes = compare_runs([tmp_path / "a", tmp_path / "b"]).notes
    assert [note for note in notes if "not complete" in note] == (
        []
        if status == "done"
        else [f"a is not complete: it is {status or 'running, or was killed'}."]
    )


def test_groups_are_models_and_runs_name_them(tmp_path):
    players = {"s0": (0.0, 1), "s1": (0.1, 2), "s2": (-0.1, 3), "other": (0.0, 4)}
    a = evaluation(tmp_path / "a", players, groups={"ppo": ["s0", "s1", "s2"]})
    b = evaluation(tmp_path / "b", {"trained": (0.0, 5)})
    found = compare_runs([a, b])
    pairs = {(r["model"], r["minus"]): r["unit"] for r in found.rows}
    assert pairs == {
        ("a/other", "a/ppo"): "training seeds",
        ("b", "a/ppo"): "training seeds",
        ("b", "a/other"): "states",
    }


def test_validations_of_seeds_are_compared_by_seeds(tmp_path):
    chance = np.random.default_rng(0)
    states = chance.normal(size=30)
    a = of_seeds(tmp_path / "a", *(states + 0.1 * chance.normal(size=30) for _ in range(4)))
    b = of_seeds(tmp_path / "b", *(states + 1 + 0.1 * chance.normal(size=30) for _ in range(4)))
    found = compare_runs([a, b])
    [row] = found.rows
    assert (row["better"], row["unit"]) == ("b", "training seeds")
    assert row["difference"]["counts"]["seeds"] == 8
    assert "a: the newest validation, after 100 steps." in found.notes


def test_a_training_of_one_seed_is_compared_as_a_player(tmp_path):
    a = training(tmp_path / "a", np.arange(10.0))
    b = training(tmp_path / "b", np.arange(10.0) + [1.0, 1.5] * 5)
    [row] = compare_runs([a, b]).rows
    assert (row["better"], row["unit"]) == ("b", "states")


def test_validations_without_scores_of_states_are_compared_by_their_means(tmp_path):
    a = of_seeds(tmp_path / "a", [1, 1], [2, 2], [3, 3])
    b = of_seeds(tmp_path / "b", [1, 1], [2, 3], [3, 3])
    file = a / "runs/seed-0/checkpoints/validation.json"
    [entry] = json.loads(file.read_text())
    del entry["scores"]
    file.write_text(json.dumps([entry]))
    found = compare_runs([a, b])
    assert found.rows[0]["difference"]["point"] == pytest.approx(0.5 / 3)
    assert any("only means are compared" in note for note in found.notes)


def test_three_episodes_decide_nothing_in_words(tmp_path):
    a, b = training(tmp_path / "a", [0, 0, 0]), training(tmp_path / "b", [1, 1, 1])
    found = compare_runs([a, b])
    assert found.rows[0]["difference"]["low"] is None
    report = found.report()
    assert "No difference is shown between **b** and **a**" in report
    assert "all 3 states differ alike" in report
    assert "3 states are too few to show any" in report
    assert "[1.000, 1.000]" not in report


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"task": "stay"}, "task is 'go' and 'stay'"),
        ({"bridge": "other"}, "bridge is 'fake' and 'other'"),
        ({"bridge_options": {"size": 96}}, "bridge_options.size is 64 and 96"),
        ({"bridge_options": {}}, "bridge_options.size is 64 and 'not set'"),
        ({"limit_steps": None}, "limit_steps is 20 and None"),
        ({"metric": "success"}, "metric is 'return' and 'success'"),
        ({"seed": 1}, "seed is 0 and 1"),
        ({"digests": {"test": "other"}}, "the states of test are others (20 states with digest"),
        ({"sets": {"full": 0}}, "no set of states in common (test and full)"),
        ({"states": 5, "digests": {"test": "o"}}, "5 with o"),
    ],
)
def test_runs_that_cannot_be_compared_are_refused_with_what_differs(
    tmp_path, changed, said, capsys
):
    a = evaluation(tmp_path / "a", {"trained": (0.0, 1)})
    b = evaluation(tmp_path / "b", {"trained": (0.0, 2)}, **changed)
    with pytest.raises(ConfigError) as error:
        compare_runs([a, b])
    assert "a and b cannot be compared" in str(error.value)
    assert said in str(error.value)
    assert main([str(a), str(b)]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"state_set": {"digest": "e"}}, "the states of validation are others"),
        ({"task": "stay"}, "task is 'go' and 'stay'"),
    ],
)
def test_trainings_that_were_validated_otherwise_are_refused(tmp_path, changed, said):
    a, b = training(tmp_path / "a", [1, 2]), training(tmp_path / "b", [1, 2], **changed)
    with pytest.raises(ConfigError) as error:
        compare_runs([a, b])
    assert said in str(error.value)


def test_what_is_no_scored_run_is_named(tmp_path):
    a, b = training(tmp_path / "a", [1, 2]), evaluation(tmp_path / "b", {"p": (0.0, 1)})
    c = run(tmp_path / "c", "TrainConfig", {"protocol": PROTOCOL})
    d = run(tmp_path / "d", "EvaluateConfig", {})
    e = run(tmp_path / "e", "TrainConfig", {"protocol": 3})
    for folders, said in (
        ([a, b], "a is a training with validations, b is an evaluation"),
        ([a, c], "has no scores to compare"),
        ([a, e], "has no scores to compare"),
        ([b, d], "has no summary.json of its results yet"),
        ([a], "has one model, a, and nothing to compare it with"),
        ([a, a], "is given twice"),
    ):
        with pytest.raises(ConfigError) as error:
            compare_runs(folders)
        assert said in str(error.value)


def test_an_evaluation_beside_a_training_without_validations_is_named(tmp_path):
    a = run(tmp_path / "a", "TrainConfig", {"protocol": PROTOCOL})
    evaluation(a / "evaluation", {"trained": (0.0, 1)})
    with pytest.raises(ConfigError, match=r"compare its evaluation, .*a/evaluation"):
        compare_runs([a, training(tmp_path / "b", [1, 2])])


def test_sets_that_not_all_have_are_left_out_and_named(tmp_path, capsys):
    a = evaluation(tmp_path / "a", {"p": (0.0, 1)}, sets={"test": 0, "train": 50}, missing=3)
    b = evaluation(tmp_path / "b", {"p": (0.0, 2)})
    found = compare_runs([a, b])
    assert [row["set"] for row in found.rows] == ["test"]
    assert "a has train, which others have not; that is left out." in found.notes
    assert "a is not complete: 3 episodes are missing." in found.notes
    assert main([str(a), str(b)]) == 0
    said = capsys.readouterr().out
    assert said.startswith("# Comparison on fake go\n")
    assert "which others have not" in said
