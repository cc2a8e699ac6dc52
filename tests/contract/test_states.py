"""The conformance suites of state spaces and of their divisions."""

import dataclasses
import re

import pytest

from rollout.api import Factor, Splits, State, StateSet, StateSpace
from rollout.errors import ContractError
from rollout.testing import FakeBridge, check_splits, check_state_space

SMALL = StateSpace((Factor("a", range(7)), Factor("b", ("x", "y", "z")), Factor("c", (1.5, True))))
HUGE = StateSpace((Factor("seed", range(10**20)), Factor("map", range(0, 10**20, 7))))
ONE = StateSpace((Factor("only", ("state",)),))
FAKE = FakeBridge().spec.state_space


@pytest.mark.parametrize("space", [SMALL, HUGE, ONE, FAKE], ids=lambda space: str(space.size))
def test_whole_spaces_pass(space):
    report = check_state_space(space)
    report.raise_if_failed()
    assert not report.names("skipped")


@pytest.mark.parametrize(
    "splits",
    [
        Splits(SMALL),
        Splits(SMALL, seed=3, validation=0, test=5, hold_out={"a": [2, 5], "b": ["y"]}),
        Splits(SMALL, hold_out={"a": [0], "b": ["x"], "c": [True]}),
        Splits(HUGE, hold_out={"seed": range(5 * 10**19, 10**20)}),
        Splits(FAKE, test=0.5),
        Splits(SMALL, hold_out={"a": [2]}, only={"a": [2, 3, 5], "b": ["x", "z"]}),
        Splits(ONE, validation=0, test=0),
    ],
    ids=lambda splits: f"{splits.space.size}-{len(splits.hold_out)}-{splits.test}",
)
def test_whole_divisions_pass(splits):
    check_splits(splits).raise_if_failed()


class FlawedSpace(StateSpace):
    flaw = ""

    @property
    def size(self):
        return self.factors[0].size * 2 if self.flaw == "size" else 42

    def state(self, index):
        if self.flaw == "accepts all":
            index %= 42
        state = super().state(index)
        return State(index, {**state.values, "a": 0}) if self.flaw == "not inverse" else state

    def restrict(self, values):
        return self if self.flaw == "restrict" else super().restrict(values)

    def describe(self):
        return super().describe()[:1] if self.flaw == "describe" else super().describe()


@pytest.mark.parametrize(
    ("name", "flaw", "seen"),
    [
        ("size is the product", "size", r"size 14 is not the product of \[7, 3, 2\]"),
        ("index and state are inverse", "not inverse", "comes back as"),
        ("refuses what does not exist", "accepts all", "index -1 was accepted"),
        ("restricts", "restrict", "leaves 42 states, expected 1"),
        ("describes itself", "describe", "is another one"),
    ],
)
def test_each_check_of_spaces_finds_its_flaw(name, flaw, seen):
    space = type("Space", (FlawedSpace,), {"flaw": flaw})(SMALL.factors)
    report = check_state_space(space)
    assert report[name].result == "failed", report.table()
    assert re.search(seen, report[name].seen), report.table()


@dataclasses.dataclass(frozen=True)
class FlawedSplits(Splits):
    flaw: str = ""

    def part_of(self, index):
        return "train" if self.flaw == "part_of" else super().part_of(index)

    def take(self, part, size=None, *, order=0):
        whole = self.part_size(part)
        if self.flaw == "any size":
            size = min(max(size or whole, 1), whole)
        states = super().take(part, size, order=order)
        return FlawedSet(self, states.part, states.size, states.order)

    def require_trainable(self, index):
        if self.flaw != "trains on test":
            super().require_trainable(index)


class FlawedSet(StateSet):
    def __getitem__(self, k):
        if self.splits.flaw == "not nested" and self.part == "train":
            return super().__getitem__(self.size - 1 - k)
        if self.splits.flaw == "overlap" and self.part == "test":
            return Splits(self.splits.space).take("train")[k]
        if self.splits.flaw == "twice" and self.part == "test":
            return super().__getitem__(0)
        return super().__getitem__(k)

    def __contains__(self, index):
        return True if self.splits.flaw == "contains all" else super().__contains__(index)

    @property
    def digest(self):
        return "0" * 16 if self.splits.flaw == "digest" else super().digest

    def require_trainable(self):
        if self.splits.flaw != "trains on test set":
            super().require_trainable()


@pytest.mark.parametrize(
    ("name", "flaw", "seen"),
    [
        ("parts are a partition", "part_of", "belongs to train"),
        ("parts are a partition", "overlap", "test state .* belongs to train"),
        ("parts are a partition", "twice", "holds a state twice"),
        ("sets know their states", "contains all", "42 states known, 1 listed"),
        ("larger sets contain smaller ones", "not nested", "differ at 0"),
        ("digests are stable", "digest", "share a digest"),
        ("refuses what a part does not have", "any size", "was accepted"),
        ("only train is trained on", "trains on test", "training on a validation state was"),
        ("only train is trained on", "trains on test set", "training on validation was"),
    ],
)
def test_each_check_of_divisions_finds_its_flaw(name, flaw, seen):
    report = check_splits(FlawedSplits(SMALL, flaw=flaw))
    assert report[name].result == "failed", report.table()
    assert re.search(seen, report[name].seen), report.table()
    with pytest.raises(ContractError):
        report.raise_if_failed()
