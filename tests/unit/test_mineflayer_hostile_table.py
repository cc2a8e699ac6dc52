"""The table of programs that mean harm: which programs there are, and what counts as harm."""

import pytest

from benchmarks.faults import mineflayer_hostile as table
from benchmarks.faults.mineflayer_hostile import Fate, Program

pytestmark = pytest.mark.heavy


def test_there_are_two_hundred_different_programs():
    programs = list(table.programs())
    assert len({each.text for each in programs}) == len(programs) >= 200
    assert len({each.family for each in programs}) >= 15
    assert not [each for each in programs if "$NAME" in each.text or "$DO" in each.text]
    assert {each.family for each in programs if each.seeks} == {"hidden blocks"}


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"lives": False}, "ended the instance"),
        ({"escaped": True}, "escaped"),
        ({"learned": True}, "learned of a hidden block"),
        ({"stopped": "FuelError"}, "stopped the neighbour's program by FuelError"),
        ({"added_ms": 100.5}, "slowed a median step by 100 ms"),
        ({"added_ms": 99.0, "worst_ms": 900.0}, None),
    ],
)
def test_each_harm_is_reported(change, fault):
    fate = Fate(Program("timers", "for (;;) a | b;"), **change)
    assert fate.faults == ([] if fault is None else [fault])
    text = table.report([fate, Fate(Program("timers", ";"))])
    assert f"{2 if fault is None else 1} of 2 programs do no harm" in text
    assert ("for (;;) a \\| b;" in text) == (fault is not None)
