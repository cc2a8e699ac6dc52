"""What the hosts of a run say of their games, put together."""

import math

import pytest

from rollout.observe.exporter import EXPORTED
from rollout.observe.hosts import CAUSES, HostFigures, HostTable


def test_hosts_are_added_up():
    table = HostTable()
    table.note(0, HostFigures(4, 3, waiting=2, memory_mb=100, counts={"failed": 2}))
    table.note(1, HostFigures(4, 4, waiting=5, memory_mb=50, counts={"failed": 1, "spared": 1}))
    table.queue("in_flight", 3)
    assert table.values() == {
        "games/instances": 8,
        "games/ready": 7 / 8,
        "games/memory_mb": 150,
        "restarts/failed": 3,
        "restarts/recycled": 0,
        "restarts/quarantined": 0,
        "restarts/spared": 1,
        "restarts/host": 0,
        "queue/waiting": 7,
        "queue/in_flight": 3,
    }


def test_figures_of_policies_are_added_up():
    table = HostTable()
    table.note(0, HostFigures(1, 1, policy={"models/in_flight": 3, "models/limit/usd": math.inf}))
    table.note(1, HostFigures(1, 1, policy={"models/in_flight": 2, "models/limit/usd": 5.0}))
    values = table.values()
    assert (values["models/in_flight"], values["models/limit/usd"]) == (5, math.inf)


def test_the_newest_word_of_a_host_counts():
    table = HostTable()
    table.note(0, HostFigures(2, 0, counts={"failed": 1}))
    table.note(0, HostFigures(2, 2, counts={"failed": 3}))
    assert table.values()["games/ready"] == 1.0
    assert table.values()["restarts/failed"] == 3


def test_a_host_that_died_has_no_games_and_what_it_lost_still_counts():
    table = HostTable()
    table.note(0, HostFigures(2, 2, waiting=4, counts={"failed": 3}))
    table.note(1, HostFigures(2, 2))
    table.lose(0, replaced=True)
    values = table.values()
    assert (values["games/instances"], values["games/ready"], values["queue/waiting"]) == (
        4,
        0.5,
        0,
    )
    assert (values["restarts/failed"], values["restarts/host"]) == (3, 1)
    table.note(0, HostFigures(2, 1, counts={"failed": 2}))
    assert table.values()["restarts/failed"] == 5
    table.lose(0, replaced=False)
    table.lose(0, replaced=False)
    assert (table.values()["restarts/failed"], table.values()["restarts/host"]) == (5, 1)


def test_before_a_host_has_spoken_nothing_is_known():
    table = HostTable()
    table.lose(3, replaced=True)
    table.queue("waiting", 1)
    assert table.values() == {}
    assert table.replaced == 1


def test_memory_that_is_not_measured_is_not_told():
    table = HostTable()
    table.note(0, HostFigures(1, 1))
    assert "games/memory_mb" not in table.values()


def test_an_unknown_queue_is_refused():
    with pytest.raises(ValueError, match="waiting, in_flight, inference, got 'x'"):
        HostTable().queue("x", 1)


def test_every_figure_is_exported():
    table = HostTable()
    table.note(0, HostFigures(1, 1, memory_mb=1, counts=dict.fromkeys(CAUSES, 1)))
    table.queue("in_flight", 1)
    table.queue("inference", 1)
    line = table.values()
    found = {k: v for metric in EXPORTED for k, v in metric.find(line).items()}
    assert "other" not in found
    shown = [m for m in EXPORTED if m.find(line)]
    assert sum(len(m.find(line)) for m in shown) == len(line)
