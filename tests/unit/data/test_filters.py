"""Filters of episodes: what they select, and what they refuse."""

from dataclasses import replace

import numpy as np
import pytest
from store_fragments import Player, make_manifest

from rollout.api import Outcome
from rollout.data import (
    Dataset,
    DatasetWriter,
    EpisodeFilter,
    StepWeight,
    part_of_set,
    returns_to_go,
)
from rollout.data.tables import write_table
from rollout.errors import DatasetError, InputError, UnknownNameError


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    path = tmp_path_factory.mktemp("filters")
    player = Player(width=3)
    with DatasetWriter(path, make_manifest(player.spec)) as writer:
        for _ in range(20):
            writer.append(player.play(13))
    with Dataset(path) as dataset:
        yield dataset


@pytest.fixture(scope="module")
def refs(dataset):
    return dataset.episodes(include_lost=True)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", lambda r: True),
        ("success", lambda r: r.outcome == Outcome.SUCCESS),
        ("not success and return > 5", lambda r: r.outcome != 1 and r.total_reward > 5),
        ("return<-0.5 or(return >= 1e1)", lambda r: r.total_reward < -0.5 or r.total_reward >= 10),
        ("3 < length <= 9", lambda r: 3 < r.length <= 9),
        ("length == 4 or length != 4", lambda r: True),
        ("end in ['lost', 'truncated']", lambda r: r.end in ("lost", "truncated")),
        ("end not in ('lost',)", lambda r: r.end != "lost"),
        ("split == 'train' and task == 'hunt'", lambda r: part_of_set(r.state_set) == "train"),
        ("split == 'nowhere'", lambda r: False),
        ("outcome == 'running'", lambda r: r.outcome == Outcome.RUNNING),
        ("success == True", lambda r: r.outcome == Outcome.SUCCESS),
        ("episode in [1, 2, 3]", lambda r: r.episode in (1, 2, 3)),
        ("policy == 'return'", lambda r: r.policy == "return"),
        ("success\n  or failure", lambda r: r.outcome != Outcome.RUNNING),
        ("return / length > -0.5", lambda r: r.total_reward > -0.5 * r.length),
        ("max(length, 5) - 2 * success < 4", lambda r: max(r.length, 5) - 2 * (r.outcome == 1) < 4),
        ("exp(log(length) ** 2) / 0 > 0", lambda r: r.length > 0),
    ],
)
def test_filters_select(refs, text, wanted):
    expected = [ref for ref in refs if wanted(ref)]
    assert EpisodeFilter(text).select(refs) == expected


def test_a_policy_may_be_called_return(refs):
    ref = replace(refs[0], policy="return")
    assert EpisodeFilter("policy == 'return'").matches(ref)


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("sucess", UnknownNameError, "unknown name in a filter 'sucess'. Nearest: success"),
        ("end == 'finished'", UnknownNameError, "unknown value in a filter 'finished'.*truncated"),
        ("end in ['won']", UnknownNameError, "unknown value in a filter 'won'"),
        ("'won' == end", UnknownNameError, "unknown value in a filter 'won'"),
        (
            "return > 'five'",
            DatasetError,
            "return is a number; expected likewise after >, got 'five'",
        ),
        ("split == 5", DatasetError, "split is a text; expected likewise after ==, got 5"),
        ("return", DatasetError, "expected a condition that is true or false, got a number"),
        ("success and return", DatasetError, "true or false, got return"),
        ("not length", DatasetError, "true or false, got length"),
        ("return >", DatasetError, "expected a condition such as"),
        ("split == 'train", DatasetError, "expected a condition such as"),
        ("success = True", DatasetError, "expected a condition such as"),
        ("success is True", DatasetError, "expected ==, .* got is"),
        ("length in 5", DatasetError, r"expected a list after in, e.g. \['a', 'b'\], got 5"),
        ("length in [return]", DatasetError, "expected a list of numbers or texts"),
        ("length // 2 > 5", DatasetError, r"expected names, .* got length // 2"),
        ("task + 1 > 5", DatasetError, "expected a number to compute with, got task"),
        ("exp(1, 2) > 5", DatasetError, r"expected one number for exp, got exp\(1, 2\)"),
        ("reward > 1", DatasetError, "those of steps are for the weight of a training, got reward"),
        ("count(task) > 1", DatasetError, r"expected names, .* got count\(task\)"),
        ("task.upper() == 'A'", DatasetError, "expected names"),
        ("__import__('os').system('true')", DatasetError, "expected names"),
        ("(lambda: 1)()", DatasetError, "expected names"),
        ("[x for x in ()]", DatasetError, "expected names"),
        ("success if success else success", DatasetError, "expected names"),
        ("score()", DatasetError, r"expected score\('RUN'\)"),
        ("score(return) > 1", DatasetError, r"expected score\('RUN'\)"),
        ("score('nowhere') > 1", DatasetError, "there is no table nowhere"),
        ("length > 1" + " and length > 1" * 500, DatasetError, "more than 2,000 characters"),
        ("(" * 900 + "success" + ")" * 900, DatasetError, "expected a condition such as"),
        ("None == None", DatasetError, "expected names"),
    ],
)
def test_bad_filters_are_named(text, error, message):
    with pytest.raises(error, match=message):
        EpisodeFilter(text)


def test_scores_of_a_judge(tmp_path, refs):
    first, second, third = sorted({ref.episode for ref in refs})[:3]
    table = {
        "episode": np.array([first, first, second, first]),
        "other": np.array([-1, -1, -1, third]),
        "criterion": np.array(["build", "build", "build", "play"]),
        "score": np.array([4.0, 5.0, np.nan, 0.25]),
    }
    write_table(tmp_path / "verdicts.parquet", table)

    def kept(text):
        return {ref.episode for ref in EpisodeFilter(text).select(refs)}

    assert kept(f"score('{tmp_path}', 'build') == 4.5") == {first}
    assert kept(f"score('{tmp_path}', 'play') > 0.5") == {third}
    assert kept(f"score('{tmp_path}') > 3") == {first}
    with pytest.raises(UnknownNameError, match=r"unknown criterion .* 'built'. Nearest: build"):
        EpisodeFilter(f"score('{tmp_path}', 'built') > 0.5")
    write_table(tmp_path / "other.parquet", {"episode": np.array([1])})
    with pytest.raises(InputError, match="expected a run of gamut judge"):
        EpisodeFilter(f"score('{tmp_path}/other.parquet') > 0.5")


def test_episodes_of_a_dataset_are_filtered(dataset):
    every = dataset.episodes()
    assert dataset.episodes(filter="length > 5") == [r for r in every if r.length > 5]
    with pytest.raises(UnknownNameError, match="Nearest: length"):
        dataset.episodes(filter="lenght > 5")


@pytest.mark.parametrize("discount", [1.0, 0.9, 0.0])
def test_returns_to_go(discount):
    rewards = np.random.default_rng(0).normal(size=30).astype(np.float32)
    found = returns_to_go(rewards, discount)
    for t in range(30):
        expected = sum(discount**k * float(r) for k, r in enumerate(rewards[t:]))
        assert found[t] == pytest.approx(expected)
    assert len(returns_to_go([], discount)) == 0


STEPS = {
    "reward": np.array([0, 1, 0, 2, 0], np.float32),
    "progress": np.array([np.nan, 0.5, 0.25, 0.75, 0.75], np.float32),
}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("1", [1, 1, 1, 1, 1]),
        ("success", [0, 0, 0, 0, 0]),
        ("success or return_to_go > 0", [1, 1, 1, 1, 0]),
        ("not (reward > 0)", [1, 0, 1, 0, 1]),
        ("reward in [0, 2] and 0 <= progress_to_go < 0.3", [0, 0, 1, 1, 1]),
        ("progress_to_go", [0.75, 0.75, 0.25, 0.25, 0]),
        ("leg == 1", [0, 0, 1, 0, 1]),
        ("exp(return_to_go / 3) * (length == 5)", np.exp(np.array([3, 3, 2, 2, 0]) / 3)),
        ("6 / count(task)", [2, 2, 2, 2, 2]),
    ],
)
def test_weights_of_steps(refs, text, wanted):
    ref = replace(refs[0], length=5, outcome=Outcome.RUNNING)
    others = [ref, replace(ref, episode=8), replace(ref, episode=9), replace(ref, task="other")]
    weight = StepWeight(text, others, parts=2)
    assert weight.of(ref, STEPS) == pytest.approx(np.array(wanted, np.float32))
    assert weight.columns <= STEPS.keys()


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        (
            "reward_to_go",
            UnknownNameError,
            "name in a weight 'reward_to_go'. Nearest: return_to_go",
        ),
        ("task", DatasetError, "expected a number or a condition, got a text"),
        ("leg", DatasetError, "expected a task with the evaluator `then`"),
        ("count(3)", DatasetError, r"expected count\(NAME\), e.g. count\(task\), got count\(3\)"),
        ("count(reward)", DatasetError, "expected values of episodes, got reward"),
        ("1 +", DatasetError, r"expected a number such as exp\(return / 10\)"),
    ],
)
def test_bad_weights_are_named(refs, text, error, message):
    with pytest.raises(error, match=message):
        StepWeight(text, refs)


@pytest.mark.parametrize("text", ["-1", "log(0)", "0 / 0", "exp(1000)", "0.5 - reward"])
def test_weights_that_are_none_are_refused(refs, text):
    ref = replace(refs[0], length=5)
    with pytest.raises(DatasetError, match=r"weights from 0 on.* of episode"):
        StepWeight(text).of(ref, STEPS)
