"""The parts of the generalization gap."""

import numpy as np
import pytest

from rollout.data.tables import concatenate
from rollout.evaluate.statistics import Intervals, difference, gap, jackknife
from rollout.sweep.curves import by_set, cells, curves, select
from rollout.sweep.decomposition import adjusted_differences, decompositions
from tests.unit.sweep.sweep_tables import BASE, cross_played, lose, sweep_table

PARTS = ("ease", "gain", "loss", "adjusted", "change")


def test_the_parts_have_the_known_values_and_add_up_to_the_gap():
    found = decompositions(cross_played(sweep_table(BASE), ease=0.05))
    assert [(part.arm, part.n) for part in found] == list(BASE)
    top = BASE["random", 1024]
    for part in found:
        means = BASE[part.arm, part.n]
        assert part.largest == 1024
        assert part.seeds == (0, 1, 2)
        assert part.ease.point == pytest.approx(0.05)
        assert part.gain.point == pytest.approx(means["train"] - top["test"] - 0.05)
        loss = 0.0 if part.loss is None else part.loss.point
        assert loss == pytest.approx(top["test"] - means["test"])
        assert part.ease.point + part.adjusted.point == pytest.approx(part.gap.point)
        assert part.gain.point + loss == pytest.approx(part.adjusted.point)
    assert found[0].change.point == pytest.approx(0.28)
    assert (found[-1].loss, found[-1].change) == (None, None)


def test_without_cross_play_the_change_is_that_of_the_gap():
    table = sweep_table(BASE, seeds=(0, 1))
    first, *_, last = decompositions(table)
    assert first.ease is first.gain is last.ease is None
    points = curves(table)
    assert first.adjusted.point == pytest.approx(points[0].gap.point)
    assert first.adjusted.low == pytest.approx(points[0].gap.low)
    assert last.adjusted.high == pytest.approx(points[-1].gap.high)
    assert first.change.point == pytest.approx(points[0].gap.point - points[-1].gap.point)


def test_cross_play_of_two_seeds_is_not_used():
    found = decompositions(cross_played(sweep_table(BASE, seeds=(0, 1)), ease=0.3))
    assert all(part.ease is None for part in found)
    assert found[0].adjusted.low is not None


def test_the_loss_is_a_paired_difference():
    table = cross_played(sweep_table(BASE), ease=0.0)
    sets = {n: by_set(cell) for _, n, cell in cells(table, "sampled")}
    expected = difference(sets[1024]["test"].values, sets[16]["test"].values)
    loss = decompositions(table)[0].loss
    assert (loss.point, loss.low) == pytest.approx((expected.point, expected.low))


def test_pairing_finds_a_change_that_separate_intervals_do_not_show():
    table = cross_played(sweep_table(BASE, spread=0.0), ease=0.0)
    shift = np.array([-0.3, 0.0, 0.3])[table["training_seed"]]
    varied = {**table, "score": table["score"] + np.where(table["set"] == "train", shift, 0)}
    first, *_ = found = decompositions(varied)
    assert found[0].adjusted.low < found[-1].adjusted.high
    assert first.change.low > 0


def test_a_seed_without_results_is_left_out_of_all_parts():
    table = cross_played(sweep_table(BASE, seeds=range(4)), ease=0.05)
    gone = (table["n"] == 16) & (table["training_seed"] == 3)
    first, second, *_ = decompositions(select(table, ~gone))
    assert (first.seeds, second.seeds) == ((0, 1, 2), (0, 1, 2, 3))
    assert first.ease.point == pytest.approx(0.05)
    # Without the cross-play of one pair the gap is not adjusted.
    pair = (table["set"] == "train/n16-s0") & (table["training_seed"] == 1)
    assert decompositions(select(table, ~pair))[0].ease is None
    assert decompositions(select(table, ~pair))[1].ease is not None


def test_lost_episodes_of_cross_play_have_no_score():
    table = cross_played(sweep_table(BASE), ease=0.05)
    rows = np.flatnonzero(table["set"] == "train/n16-s0")
    some = decompositions(lose(table, rows[::3]))[0]
    assert some.ease.point == pytest.approx(0.05, abs=0.02)
    assert decompositions(lose(table, rows))[0].ease is None


def test_shared_training_states_add_their_uncertainty():
    table = sweep_table(BASE, own_orders=False)
    first, *_ = decompositions(cross_played(table, ease=0.05))
    assert first.ease is None  # no policy was trained without these states
    scores = by_set(next(cell for _, n, cell in cells(table, "sampled") if n == 16))
    expected = gap(scores["train"].values, scores["test"].values, train_states="crossed")
    assert first.adjusted.low == pytest.approx(expected.low)


def test_arms_are_split_with_their_own_reference():
    other = sweep_table({("a", 16): {"train": 0.9, "test": 0.4}, ("a", 64): {"train": 0.1}})
    found = decompositions(concatenate([sweep_table(BASE), other]))
    assert [(part.arm, part.n, part.largest) for part in found][-1] == ("a", 16, 16)


def test_adjusted_gaps_of_arms_are_compared_seed_by_seed():
    other = {("lists", n): dict(means) for (_, n), means in BASE.items()}
    other["lists", 16]["train"] -= 0.1
    tables = [
        cross_played(sweep_table(each), ease=ease) for each, ease in ((BASE, 0), (other, 0.05))
    ]
    found = adjusted_differences(concatenate(tables), base="random")
    assert list(found) == list(other)
    # The training states of the other arm are easier by 0.05, which is no part of its adjusted gap.
    assert found["lists", 16].point == pytest.approx(-0.15)
    assert found["lists", 16].high < 0
    own = [part.adjusted for table in tables for part in decompositions(table) if part.n == 16]
    assert own[1].point - own[0].point == pytest.approx(-0.15)
    # Only with the same seeds, with cross-play of both, and with references of the same N.
    fewer = select(tables[1], tables[1]["training_seed"] > 0)
    smallest = cross_played(sweep_table({("lists", 16): other["lists", 16]}), ease=0.05)
    for others in (fewer, sweep_table(other), smallest):
        assert not adjusted_differences(concatenate([tables[0], others]), base="random")


def test_the_jackknife_of_a_mean_is_the_t_interval():
    rng = np.random.default_rng(0)
    train, test = rng.normal(size=(2, 5, 30, 2))
    expected = gap(train, test)
    found = jackknife(
        lambda seeds: float(train[seeds].mean() - test[seeds].mean()), 5, shared=[test]
    )
    assert (found.point, found.low, found.high) == pytest.approx(
        (expected.point, expected.low, expected.high)
    )
    assert jackknife(lambda seeds: 1.0, 1).low is None
    bounded = jackknife(lambda seeds: float(train[seeds].mean()), 5, Intervals(bounds=(0.0, 0.001)))
    assert 0.0 <= bounded.low <= bounded.high <= 0.001
