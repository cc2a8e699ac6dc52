"""The list of validations: which checkpoint is the best, and what a damaged list costs."""

import pytest

from rollout.config import PolicyConfig, make_config
from rollout.errors import ConfigError
from rollout.train.checkpoint import CheckpointError, place_of, prune
from rollout.train.history import FILE, History, best_checkpoint
from rollout.train.playing import CheckpointPolicy


def entry(update, score):
    return {
        "update": update,
        "env_steps": 10 * update,
        "score": score,
        "low": None,
        "high": None,
        "episodes": 3,
    }


def made(folder, scores):
    history = History(folder)
    for update, score in scores.items():
        place_of(folder, update).mkdir(parents=True)
        history.add(entry(update, score))
        prune(folder, 1, best=history.best and history.best["update"])
    return history


def there(folder):
    return sorted(int(path.name) for path in folder.glob("0*"))


def test_the_best_is_the_first_of_the_highest(tmp_path):
    history = made(tmp_path, {2: -5.0, 4: -3.0, 6: -3.0, 8: None, 9: -4.0})
    assert history.best["update"] == 4
    assert history.since_best == 3
    assert there(tmp_path) == [4, 9]
    again = History(tmp_path)
    assert again.best == history.best
    assert again.entries == history.entries


def test_a_run_that_continues_from_an_older_checkpoint_forgets_the_later_ones(tmp_path):
    made(tmp_path, {2: 3.0, 4: 1.0, 6: 9.0})
    assert there(tmp_path) == [6]
    older = History(tmp_path, until=4)
    assert [e["update"] for e in older.entries] == [2, 4]
    assert older.best is None, "its checkpoint is gone"
    assert older.since_best == 2


def test_without_a_score_there_is_no_best(tmp_path):
    assert made(tmp_path, {2: None}).since_best == 1
    with pytest.raises(CheckpointError, match=r"no best checkpoint.*validation\.every"):
        best_checkpoint(tmp_path)


@pytest.mark.parametrize(
    "text", ["", "[", "{}", "[1]", '[{"update": 1}]', '[{"update": -1}]', "[null]"]
)
def test_a_damaged_list_is_named(tmp_path, text):
    (tmp_path / FILE).write_text(text)
    with pytest.raises(CheckpointError, match=f"{FILE} is damaged: .*; restore it, or remove it"):
        History(tmp_path)


def test_another_checkpoint_than_newest_and_best_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"one of newest, best, got 'bst'.*Nearest: best"):
        make_config(
            PolicyConfig, {"name": "checkpoint", "path": str(tmp_path), "checkpoint": "bst"}
        )
    with pytest.raises(CheckpointError, match="no best checkpoint"):
        CheckpointPolicy(str(tmp_path), "best").build(None, None, seed=0)
