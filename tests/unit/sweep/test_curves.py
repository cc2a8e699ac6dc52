"""The numbers behind the picture and the report."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollout.data.tables import concatenate
from rollout.errors import DatasetError
from rollout.evaluate.statistics import Intervals, gap, hierarchical
from rollout.sweep.curves import (
    by_arm,
    contrasts,
    curves,
    scores_of,
    select,
    worst_cases,
)
from tests.unit.sweep.sweep_tables import BASE, lose, sweep_table

TWO = {("random", 16): {"train": 0.8, "test": 0.5}, ("random", 1024): {"train": 0.7, "test": 0.7}}


def test_points_have_the_known_scores_and_gaps():
    points = curves(sweep_table(BASE))
    assert [(p.arm, p.n) for p in points] == list(BASE)
    for point in points:
        means = BASE[point.arm, point.n]
        assert point.seeds == (0, 1, 2)
        assert point.scores["train"].point == pytest.approx(means["train"])
        assert point.scores["test"].point == pytest.approx(means["test"])
        assert point.gap.point == pytest.approx(means["train"] - means["test"])
        assert point.gap.low < point.gap.point < point.gap.high
        assert point.lost == 0
        assert point.episodes == 3 * (min(point.n, 24) + 24)


def test_arms_keep_the_order_of_the_table_and_n_ascends():
    arms = {("z", 64): {"train": 1.0}, ("z", 16): {"train": 1.0}, ("a", 16): {"train": 1.0}}
    assert [(p.arm, p.n) for p in curves(sweep_table(arms))] == [("z", 16), ("z", 64), ("a", 16)]
    assert list(by_arm(curves(sweep_table(arms)))) == ["z", "a"]


def test_estimates_are_those_of_the_statistics():
    table = sweep_table(TWO, repeats=2)
    point = curves(table)[0]
    part = {
        name: scores_of(select(table, (table["n"] == 16) & (table["set"] == name))).values
        for name in ("train", "test")
    }
    assert part["train"].shape == (3, 16, 2)
    assert part["test"].shape == (3, 24, 2)
    assert point.scores["train"] == hierarchical(part["train"], states="nested")
    assert point.scores["test"] == hierarchical(part["test"], states="crossed")
    assert point.gap == gap(part["train"], part["test"])
    decided = scores_of(select(table, (table["n"] == 16) & (table["set"] == "test")), "success")
    shares = Intervals(bounds=(0, 1))
    assert point.success["test"] == hierarchical(decided.values, shares, states="crossed")
    assert point.success["test"].point == 0.25


def test_a_success_rate_is_uncertain_where_training_seeds_disagree():
    table = sweep_table(TWO)
    rows = (table["n"] == 16) & (table["set"] == "test")
    table["success"][rows] = table["training_seed"][rows] == 0  # one seed in three succeeds
    rate = curves(table)[0].success["test"]
    assert rate.point == pytest.approx(1 / 3)
    assert (rate.low, rate.high) == (0.0, 1.0)


def test_intervals_are_made_as_asked():
    narrow, wide = (
        curves(sweep_table(TWO), intervals=Intervals(confidence=c, method=m))[0].gap
        for c, m in ((0.5, "percentile"), (0.99, "t"))
    )
    assert wide.low < narrow.low < narrow.high < wide.high
    assert wide.confidence == 0.99


def test_whether_seeds_share_states_is_read_off_the_table():
    own, shared = (sweep_table(TWO, own_orders=orders) for orders in (True, False))
    for table, states in ((own, "nested"), (shared, "crossed")):
        rows = (table["n"] == 16) & (table["set"] == "train")
        assert scores_of(select(table, rows)).states == states
    assert curves(own)[0].gap.point == pytest.approx(curves(shared)[0].gap.point)


def test_worst_cases_give_lost_episodes_the_least_and_the_greatest_score():
    table = sweep_table(TWO)
    rows = (table["n"] == 16) & (table["set"] == "test") & (table["training_seed"] == 0)
    half = np.flatnonzero(rows)[: rows.sum() // 2]
    ((arm, n, ends),) = worst_cases(lose(table, half), bounds=(0.0, 1.0))
    assert (arm, n) == (str(table["arm"][0]), 16)
    kept = table["score"].copy()
    for end, score in zip(ends["test"], (0.0, 1.0), strict=True):
        kept[half] = score
        assert end == pytest.approx(kept[(table["n"] == 16) & (table["set"] == "test")].mean())
    train = ends["train"][0]
    assert ends["train"] == (train, train)
    assert ends["gap"] == pytest.approx((train - ends["test"][1], train - ends["test"][0]))
    # Unbounded scores: those of any episode.
    ((_, _, seen),) = worst_cases(lose(table, half))
    assert seen["test"][0] < curves(lose(table, half))[0].scores["test"].point < seen["test"][1]
    assert not worst_cases(table)


@settings(max_examples=15)
@given(order=st.permutations(range(3 * (16 + 24 + 24 + 24))))
def test_the_order_of_the_rows_does_not_matter(order):
    table = sweep_table(TWO)
    shuffled = curves(select(table, np.array(order)))
    assert sorted(shuffled, key=lambda p: p.n) == curves(table)


def test_each_seed_is_distinguished():
    point = curves(sweep_table(TWO, spread=0.1))[0]
    assert np.mean(point.by_seed["test"]) == pytest.approx(0.5)
    assert np.ptp(point.by_seed["test"]) > 0.02
    assert point.by_seed["gap"] == pytest.approx(
        np.subtract(point.by_seed["train"], point.by_seed["test"])
    )


def test_actions_are_kept_apart():
    table = concatenate(
        [
            sweep_table(TWO),
            sweep_table({("random", 16): {"train": 0.1, "test": 0.2}}, actions=["deterministic"]),
        ]
    )
    assert [p.n for p in curves(table)] == [16, 1024]
    (other,) = curves(table, actions="deterministic")
    assert other.gap.point == pytest.approx(-0.1)
    assert other.actions == "deterministic"
    assert curves(sweep_table(TWO), actions="deterministic") == []


def test_lost_episodes_are_counted_and_have_no_score():
    table = sweep_table(TWO)
    table["score"][0] = 1e9  # the score of a lost episode is never used
    lost = lose(table, [0])
    lost["score"][0] = 1e9
    point = curves(lost)[0]
    assert point.lost == 1
    assert point.episodes == 3 * 40 - 1
    assert point.scores["train"].point == pytest.approx(0.8, abs=0.02)
    assert point.gap.counts["lost"] == 1


def test_a_set_with_nothing_but_lost_episodes_has_no_score():
    table = sweep_table(TWO)
    point = curves(lose(table, (table["set"] == "train") & (table["n"] == 16)))[0]
    assert list(point.scores) == ["test"]
    assert point.gap is None
    assert point.lost == 48


def test_a_seed_without_one_side_is_not_in_the_gap():
    table = sweep_table(TWO)
    gone = (table["n"] == 16) & (table["set"] == "test") & (table["training_seed"] == 1)
    point = curves(select(table, ~gone))[0]
    assert point.seeds == (0, 1, 2)
    assert point.gap.counts["seeds"] == 2
    assert np.isnan(point.by_seed["gap"][1])


def test_one_seed_has_no_interval():
    point = curves(sweep_table(TWO, seeds=[3]))[0]
    assert point.gap.low is None
    assert "one training seed" in point.gap.refused
    assert point.success["test"].low is None


def test_success_only_where_the_task_decides():
    table = sweep_table(TWO)
    table["success"][table["set"] == "train"] = np.nan
    assert list(curves(table)[0].success) == ["test"]


def test_contrasts_compare_arms_at_the_same_n():
    means = {
        **TWO,
        ("coat fixed", 16): {"train": 0.8, "test": 0.7},
        ("coat fixed", 64): {"train": 0.8, "test": 0.7},
    }
    (contrast,) = contrasts(sweep_table(means), base="random")
    assert (contrast.arm, contrast.n) == ("coat fixed", 16)
    assert contrast.gap.point == pytest.approx(0.1)
    assert contrast.base_gap.point == pytest.approx(0.3)
    assert contrast.gap_difference.point == pytest.approx(-0.2)
    assert contrast.gap_difference.high < 0
    assert contrast.test_difference.point == pytest.approx(0.2)
    assert contrast.same_test_states
    assert contrasts(sweep_table(TWO), base="random") == []


def test_arms_on_the_same_states_are_paired():
    """What is hard for both arms cancels."""
    means = {
        ("random", 16): {"train": 0.8, "test": 0.5},
        ("other", 16): {"train": 0.8, "test": 0.4},
    }
    table = sweep_table(means, noise=0.0, spread=0.0)
    hard = np.random.default_rng(0).normal(0, 0.3, 1000)
    table["score"] = table["score"] + hard[table["position"]]
    (contrast,) = contrasts(table, base="random")
    assert contrast.test_difference.low == pytest.approx(-0.1, abs=1e-6)
    assert contrast.test_difference.high == pytest.approx(-0.1, abs=1e-6)
    assert contrast.gap.high - contrast.gap.low > 0.1


def test_arms_of_other_sizes_are_compared_over_what_both_have():
    fewer = sweep_table({("few", 16): {"train": 0.9, "test": 0.4}}, states=12)
    fewer["state"] = np.char.add("9", fewer["state"])
    (contrast,) = contrasts(concatenate([sweep_table(TWO), fewer]), base="random")
    assert not contrast.same_test_states
    assert contrast.gap_difference.counts["test_states"] == 12
    assert contrast.gap_difference.point == pytest.approx(0.2, abs=0.05)


def test_an_episode_twice_is_refused():
    table = sweep_table(TWO)
    with pytest.raises(DatasetError, match=r"arm random, n 16, set train.*expected one row"):
        curves(concatenate([table, table]))


def test_what_is_no_sweep_is_refused():
    table = sweep_table(TWO)
    with pytest.raises(DatasetError, match="columns arm, score are missing"):
        curves({k: v for k, v in table.items() if k not in {"arm", "score"}})
    with pytest.raises(DatasetError, match="got n = 0"):
        curves({**table, "n": np.zeros_like(table["n"])})


def test_an_empty_table_has_no_points():
    assert curves(select(sweep_table(TWO), np.array([], int))) == []
    assert curves({}) == []
