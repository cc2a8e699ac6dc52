import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollout.api import EpisodeResult, Outcome, Start, State, Usage
from rollout.observe.aggregates import Rate
from rollout.tally import Tally

NAN = math.nan


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def result(
    total: float,
    end: str = "terminated",
    outcome: Outcome = Outcome.RUNNING,
    progress: float = NAN,
) -> EpisodeResult:
    start = Start(State(0, {}), 0)
    return EpisodeResult(start, 0, 0, end, outcome, 10, total, progress, 2.0)  # type: ignore[arg-type]


@given(st.lists(st.floats(-1e6, 1e6), min_size=1), st.integers(1, 10))
def test_a_mean_is_that_of_the_last_values(values: list[float], window: int) -> None:
    run = Tally(window=window)
    run.count(0, (result(value, progress=progress) for value in values for progress in (1, NAN)))
    last = [value for value in values for _ in range(2)][-window:]
    assert run.figures()["episode/return"] == pytest.approx(sum(last) / len(last), abs=1e-6)
    assert run.figures()["episode/progress"] == 1, "NaN is no value"


def test_a_rate_looks_back_over_its_window_only() -> None:
    clock = Clock()
    rate = Rate(10, clock)
    assert math.isnan(rate.value)
    for second in range(1, 21):
        clock.now = second
        rate.add(5)
    assert rate.value == pytest.approx(5)
    clock.now = 25
    assert rate.value == pytest.approx(2.5)
    clock.now = 100
    assert rate.value == 0


@given(st.lists(st.tuples(st.floats(0, 3), st.integers(0, 9)), min_size=1, max_size=50))
def test_a_rate_never_exceeds_what_happened(events: list[tuple[float, int]]) -> None:
    clock = Clock()
    rate = Rate(5, clock)
    clock.now = 1e-3
    for pause, count in events:
        clock.now += pause
        rate.add(count)
    assert 0 <= rate.value * clock.now <= sum(c for _, c in events) * max(1, clock.now / 5) + 1e-6


def test_the_figures_of_a_run() -> None:
    clock = Clock()
    run = Tally(window=2, clock=clock, env_steps=100, episodes=3)
    assert run.figures() == {"episodes": 3}
    clock.now = 2.0
    run.count(30, [result(1), result(2), result(4), result(99, "lost", Outcome.SUCCESS)])
    assert run.env_steps == 130
    assert run.figures() == {
        "episodes": 6,
        "episode/return": 3,
        "episode/length": 10,
        "episode/seconds": 2,
        "rate/steps_per_s": 15,
        "rate/episodes_per_s": 1.5,
    }


def test_success_is_there_once_something_was_decided() -> None:
    run = Tally(clock=Clock())
    run.count(0, [result(0, "truncated")])
    assert "episode/success" not in run.figures()
    run.count(0, [result(0, outcome=Outcome.SUCCESS, progress=1.0)])
    assert run.figures()["episode/success"] == 0.5
    assert run.figures()["episode/progress"] == 1.0


@pytest.mark.parametrize(
    ("usage", "shown", "metric"),
    [
        (Usage(2, usd=0.125), "0.12", 0.125),
        (Usage(2, unpriced=2), "unknown", None),
        (Usage(2, usd=0.125, unpriced=1), ">=0.12", 0.125),
    ],
)
def test_an_unknown_price_is_not_shown_as_zero(
    usage: Usage, shown: object, metric: float | None
) -> None:
    run = Tally()
    run.count(0, [replace(result(1.0), usage=usage)])
    assert run.brief()["USD"] == shown
    assert run.figures().get("calls/usd") == metric
