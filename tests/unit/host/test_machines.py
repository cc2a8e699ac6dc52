"""Which machines rest: those that fail more than others, never the last one, and not for ever."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollout.api import Resources
from rollout.cluster.resources import Node, require_resources
from rollout.config import HostConfig
from rollout.errors import ConfigError
from rollout.host.supervision import Machines
from rollout.train.config import LearnersConfig

RULES = HostConfig(machine_failures=3, restart_window_s=100.0, quarantine_s=50.0)


def test_a_machine_that_keeps_failing_rests_and_comes_back():
    machines = Machines(RULES)
    assert [machines.failed("a", t, "ab") for t in (0.0, 1.0, 2.0)] == [False, False, True]
    assert machines.quarantined(2.0) == ("a",)
    assert machines.quarantined(51.9) == ("a",)
    assert machines.quarantined(52.0) == ()
    # With an empty record: failures before the quarantine do not count.
    assert not machines.failed("a", 53.0, "ab")


def test_failures_are_forgotten_after_the_window():
    machines = Machines(RULES)
    assert [machines.failed("a", t, "ab") for t in (0.0, 60.0, 101.0)] == [False] * 3
    assert machines.failed("a", 102.0, "ab")


def test_a_game_that_fails_everywhere_is_no_machines_fault():
    machines = Machines(RULES)
    assert not any(machines.failed(m, 1.0, "abc") for _ in range(20) for m in "abc")


def test_a_heavy_failure_counts_for_many():
    machines = Machines(RULES)
    assert machines.failed("a", 0.0, "ab", weight=3)


def test_nobody_is_blamed_where_it_is_not_known_or_not_asked_for():
    machines = Machines(RULES)
    assert not any(machines.failed("", 0.0, "ab") for _ in range(9))
    careless = Machines(HostConfig(machine_failures=None))
    assert not any(careless.failed("a", 0.0, "ab") for _ in range(9))


def test_without_a_rest_that_ends_it_is_for_good():
    machines = Machines(HostConfig(machine_failures=1, quarantine_s=None))
    assert not machines.failed("a", 0.0, "a")
    assert machines.failed("a", 0.0, "ab", weight=2)
    assert machines.quarantined(1e9) == ("a",)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 30)), max_size=60))
def test_one_machine_is_always_left(story):
    machines, now = Machines(RULES), 0.0
    for machine, pause in story:
        now += pause
        machines.failed(machine, now, "abc")
        assert len(machines.quarantined(now)) < 3


def test_what_a_game_needs_can_be_said_in_the_configuration():
    own = Resources(cpus=2.0, memory_mb=4000, custom={"disk": 1.0})
    assert HostConfig().needs(own) == own
    given_here = HostConfig(resources={"cpus": 0.5, "memory_mb": 100.0, "gamut_game": 1.0})
    assert given_here.needs(own) == Resources(
        cpus=0.5, memory_mb=100, custom={"disk": 1.0, "gamut_game": 1.0}
    )
    with pytest.raises(ValueError, match="greater than or equal to 0"):
        HostConfig(resources={"cpus": -1.0})


def test_learners_are_placed_by_their_resources():
    assert LearnersConfig(count=1, resources={"gamut_learner": 1.0}).needs == Resources(
        cpus=0.0, memory_mb=0, custom={"gamut_learner": 1.0}
    )
    with pytest.raises(ValueError, match="set count to 1"):
        LearnersConfig(resources={"gamut_learner": 1.0})


def test_a_learner_that_fits_nowhere_is_refused_by_that_word():
    nodes = [Node("a", {"CPU": 2.0, "gamut_learner": 1.0})]
    needs = Resources(cpus=0.0, memory_mb=0, custom={"gamut_lerner": 1.0})
    with pytest.raises(ConfigError, match=r"each learner needs 1 gamut_lerner.*gamut_learner"):
        require_resources(needs, 1, nodes=nodes, what="learner")
