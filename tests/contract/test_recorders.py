"""The conformance suite of recorders, and the recorder that comes with it."""

import copy
import dataclasses
import itertools
import re

import numpy as np
import pytest

from rollout.api import Task
from rollout.data import Dataset, DatasetWriter, describe_dataset
from rollout.errors import ContractError, DatasetError, OutOfTurnError
from rollout.testing import (
    FakeBridge,
    FakeEvaluator,
    FakePolicy,
    MemoryRecorder,
    check_recorder,
    make_fragments,
    rows_of,
)

CHECKS = [
    "keeps every row in order",
    "keeps several instances apart",
    "ended episodes are kept by append",
    "flush keeps every row",
    "lost episodes are kept",
    "idle rows are left out",
    "refuses other columns",
    "close is idempotent",
    "append after close is refused",
    "an empty recording can be closed",
]


def read_memory(recorder):
    if not recorder.fragments:
        return {}
    return rows_of(recorder.fragments)


def test_the_memory_recorder_passes():
    report = check_recorder(MemoryRecorder, read_memory)
    report.raise_if_failed()
    assert report.names("passed") == CHECKS


def test_the_trajectory_store_passes(tmp_path):
    bridge = FakeBridge(side=4, max_steps=20)
    task = Task("t", "reach the target", bridge.spec.state_space, FakeEvaluator())
    extras = FakePolicy().build(bridge.spec, task, seed=0).extras
    manifest = describe_dataset(bridge.spec, task, extras=extras)
    numbers = itertools.count()

    def make_recorder():
        return DatasetWriter(tmp_path / str(next(numbers)), manifest, fsync="never")

    def read_back(recorder):
        names = ("episode", "attempt", "step", "reward", "first")
        with Dataset(recorder.layout.root) as dataset:
            table = dataset.table([*names, "terminated", "truncated", "lost"])
        return {key: table[key].to_numpy() for key in table.column_names}

    report = check_recorder(make_recorder, read_back)
    report.raise_if_failed()
    assert report.names("passed") == CHECKS


class Flawed(MemoryRecorder):
    flaw = ""
    pending = ()

    def append(self, fragment):
        if self.flaw == "after close":
            self.closed = False
        if self.flaw == "any columns":
            self._columns = None
        if self.flaw == "lazy":
            self.pending = [*self.pending, fragment]
            return
        if self.flaw == "first only" and self.fragments:
            return
        if self.flaw == "forgets the lost":
            rows = fragment.lost.any(0)
            fragment = copy.deepcopy(fragment)
            fragment.start_index[:, rows] = -1
            fragment.first[:, rows] = fragment.lost[:, rows] = False
            fragment.terminated[:, rows] = fragment.truncated[:, rows] = False
            kept = ~rows[fragment.final_index[:, 1]]
            fragment.final_index = np.argwhere(fragment.done)
            for key, column in fragment.final_observations.items():
                fragment.final_observations[key] = column[kept]
            fragment.results = tuple(r for r in fragment.results if not rows[r.slot])
            fragment.losses = ()
        super().append(fragment)
        if self.flaw == "broken by refusal":
            self.closed = len(self.fragments) == 1

    def flush(self):
        if self.flaw == "flush needs rows" and not self.fragments:
            raise DatasetError("nothing to flush")
        if self.flaw == "flush does nothing":
            self.fragments = self.fragments[:1]

    def close(self):
        if self.flaw == "close twice" and self.closed:
            raise OutOfTurnError("closed")
        for fragment in self.pending:
            super().append(fragment)
        self.pending = ()
        super().close()


def flawed_reader(flaw):
    def read(recorder):
        columns = read_memory(recorder)
        if flaw == "backwards":
            return {key: column[::-1] for key, column in columns.items()}
        if flaw == "one instance":
            first = [f for f in recorder.fragments if f.instance == 0]
            return rows_of(first)
        if flaw == "idle kept":
            keep = np.append(np.arange(len(columns["step"])), 0)
            return {key: column[keep] for key, column in columns.items()}
        if flaw == "rounded":
            return {**columns, "reward": columns["reward"].round(1)}
        return columns

    return read


FAILURES = [
    ("keeps every row in order", "first only", "missing"),
    ("keeps every row in order", "backwards", "the steps come back as"),
    ("keeps every row in order", "rounded", "or values differ"),
    ("keeps several instances apart", "one instance", "missing"),
    ("ended episodes are kept by append", "lazy", "0 can be read|no columns"),
    ("flush keeps every row", "flush does nothing", "missing|rows"),
    ("lost episodes are kept", "forgets the lost", "missing"),
    ("idle rows are left out", "idle kept", "the steps come back as"),
    ("refuses other columns", "any columns", "was accepted; expected DatasetError"),
    ("refuses other columns", "broken by refusal", "OutOfTurnError"),
    ("close is idempotent", "close twice", "OutOfTurnError"),
    ("append after close is refused", "after close", "a fragment after close was accepted"),
    ("an empty recording can be closed", "flush needs rows", "nothing to flush"),
]


@pytest.mark.parametrize(("name", "flaw", "seen"), FAILURES, ids=[f[1] for f in FAILURES])
def test_each_check_finds_its_flaw(name, flaw, seen):
    recorder = type("Recorder", (Flawed,), {"flaw": flaw})
    report = check_recorder(recorder, flawed_reader(flaw))
    assert report[name].result == "failed", report.table()
    assert re.search(seen, report[name].seen), report.table()
    with pytest.raises(ContractError):
        report.raise_if_failed()


def test_every_check_has_a_flaw_that_fails_it():
    assert {name for name, _, _ in FAILURES} == set(CHECKS)


FRAGMENTS = make_fragments(3, length=10, lost_after=(1,))


def changed(fragment, **changes):
    return dataclasses.replace(copy.deepcopy(fragment), **changes)


def other_observations(fragment):
    columns = copy.deepcopy(fragment.observations)
    columns["image"][0] ^= 1
    return columns


@pytest.mark.parametrize(
    ("fragments", "message"),
    [
        ([FRAGMENTS[0], FRAGMENTS[0]], "expected step"),
        ([FRAGMENTS[2], FRAGMENTS[1]], "are stale"),
        ([FRAGMENTS[2], changed(FRAGMENTS[2], incarnation=2)], "an episode begins twice"),
        ([FRAGMENTS[0], changed(FRAGMENTS[1], incarnation=1)], "expected the first step"),
        (
            [FRAGMENTS[0], changed(FRAGMENTS[1], observations=other_observations(FRAGMENTS[1]))],
            "'image' is not the one the last fragment promised",
        ),
        ([FRAGMENTS[0], make_fragments(1, width=3)[0]], "the width went from 4 to 3"),
    ],
)
def test_the_memory_recorder_refuses_a_broken_stream(fragments, message):
    recorder = MemoryRecorder()
    recorder.append(fragments[0])
    with pytest.raises(ContractError, match=message):
        recorder.append(fragments[1])
    assert recorder.fragments == fragments[:1]
