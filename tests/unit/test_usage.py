"""What calls of models cost: a price that is unknown is shown as unknown, never as zero."""

import math

import numpy as np
import pytest

from rollout.api import NO_USAGE, Call, Usage
from rollout.data.calls import describe_calls
from rollout.errors import BudgetExhausted
from rollout.evaluate.findings import _usage, calls_row
from rollout.models.sections import RunLimits
from rollout.models.spending import Budget, Price
from rollout.observe.aggregates import spent_figures

KNOWN, UNKNOWN = Call(usd=0.25, input_tokens=7), Call(input_tokens=7)


@pytest.mark.parametrize(
    ("calls", "price", "text"),
    [
        ([], 0.0, "0.0000"),
        ([KNOWN, KNOWN], 0.5, "0.5000"),
        ([Call(usd=0.0)], 0.0, "0.0000"),
        ([UNKNOWN, UNKNOWN], None, "unknown"),
        ([UNKNOWN, KNOWN], 0.25, ">=0.2500"),
    ],
)
def test_a_sum_of_prices_says_what_is_unknown(calls, price, text):
    used = sum((Usage.of([call]) for call in calls), NO_USAGE)
    assert used == Usage.of(calls)
    assert (used.price, used.price_text(), used.as_json()["usd"]) == (price, text, price)
    figures = spent_figures(used)
    assert figures.get("calls/usd") == price
    assert figures.get("calls/unpriced", 0) == used.unpriced
    assert f"{text} USD" in describe_calls(calls or [KNOWN], used)[1]


@pytest.mark.parametrize("price", [None, Price(1.0, 1.0, 1.0, "2026-11-01")])
def test_a_budget_tells_no_price_that_it_does_not_know(price):
    budget = Budget(RunLimits(calls=1))
    unpriced = price is None
    assert budget.figures()["models/spent/usd"] == 0, "nothing was called yet"
    with budget.call(Usage(1, usd=0.5, unpriced=unpriced)) as paid:
        paid.append(Usage(1, usd=0.0 if unpriced else 0.125, unpriced=unpriced))
    assert budget.spent == Usage(1, usd=0.0 if unpriced else 0.125, unpriced=unpriced)
    figures = budget.figures()
    assert figures.get("models/spent/usd") == (None if unpriced else 0.125)
    assert figures.get("models/unpriced") == (1 if unpriced else None)
    says = "unknown USD; the next.*unknown USD" if unpriced else r"0\.12 USD; the next.*0\.50 USD"
    after = Usage(1, usd=0.0 if unpriced else 0.5, unpriced=unpriced)
    with pytest.raises(BudgetExhausted, match=says), budget.call(after):
        pass


@pytest.mark.parametrize(
    ("unpriced", "usd", "shown", "each"),
    [
        ([0, 0], [0.5, 0.25], "0.75", "0.375"),
        ([1, 1], [math.nan, math.nan], "unknown, 2 calls without a price", None),
        ([0, 1], [0.5, math.nan], ">=0.5, 1 calls without a price", ">=0.25"),
    ],
)
def test_a_report_marks_prices_that_are_not_wholly_known(unpriced, usd, shown, each):
    ones = np.ones(2, np.int64)
    rows = dict.fromkeys(("calls", "input_tokens", "output_tokens", "length"), ones)
    rows |= {"unusable": 0 * ones, "unpriced": np.array(unpriced), "usd": np.array(usd)}
    used = _usage(rows, np.ones(2, bool), 0)
    assert used["usd"] == (None if each is None else np.nansum(usd))
    leg = {"player": "a", "set": "test", "actions": "sampled", "usage": used}
    found = calls_row(leg)
    assert (found["USD"], found["USD/episode"], found["USD/success"]) == (shown, each, None)
