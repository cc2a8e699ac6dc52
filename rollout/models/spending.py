"""Prices of calls, and the budget of a run."""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any

from rollout.api import NO_USAGE, Call, Usage
from rollout.api.calls import UNITS
from rollout.errors import BudgetExhausted, ConfigError
from rollout.models.chat_api import count_of, number_of
from rollout.models.sections import RunLimits
from rollout.observe.aggregates import Rate
from rollout.yaml12 import load_yaml

_PACKAGED = Path(__file__).with_name("prices.yaml")
_MILLION = 1e6
_RATE_S = 60.0  # tokens per second are taken over


@dataclass(frozen=True)
class Price:
    """Price of a model in US dollars per million tokens.

    Attributes:
        input: tokens of the prompt.
        cached: tokens of the prompt that the server had in its cache.
        output: tokens of the answer, hidden reasoning included.
        date: when the price was looked up, ISO 8601.
    """

    input: float
    cached: float
    output: float
    date: str

    def of(self, input_tokens: int, cached_tokens: int, output_tokens: int) -> float:
        """Returns the price of a call in US dollars."""
        fresh = input_tokens - cached_tokens
        paid = fresh * self.input + cached_tokens * self.cached + output_tokens * self.output
        return paid / _MILLION


def price_of(model: str, path: str) -> Price | None:
    """Returns the price of a model; None if it is not listed.

    Args:
        model: its name.
        path: the file of the prices; empty for Gamut's.

    Raises:
        ConfigError: the file cannot be read, or is not a list of prices.
    """
    models = _prices(Path(path).expanduser() if path else _PACKAGED)
    return models.get(model)


@functools.cache
def _prices(path: Path) -> dict[str, Price]:
    try:
        data = load_yaml(path)
        date = str(data["date"])
        return {
            str(name): Price(float(p["input"]), float(p["cached"]), float(p["output"]), date)
            for name, p in data["models"].items()
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(
            f"prices: {path}: expected a date and models with input, cached and output in US "
            f"dollars per million tokens, as in {_PACKAGED}; {error!r}"
        ) from error


class Budget:
    """Tracks the usage of a run against its limits; thread-safe.

    Args:
        limits: the limits.
        spent: usage of earlier sessions of the run.
    """

    def __init__(self, limits: RunLimits, spent: Usage = NO_USAGE) -> None:
        self.spent = spent
        self._most = limits.of_run
        self._reserved = NO_USAGE
        self._tokens = Rate(_RATE_S)
        self._settled = threading.Condition()

    @contextmanager
    def call(self, estimate: Usage) -> Iterator[list[Usage]]:
        """Reserves the maximum usage of a call; append its actual usage to the yielded list.

        Calls usually cost less than was reserved for them, so a call that does not fit beside
        those in flight waits for one of them.

        Raises:
            BudgetExhausted: a limit could be exceeded; nothing was called.
        """
        with self._settled:
            while self._exceeded(self.spent + self._reserved + estimate):
                over = self._exceeded(self.spent + estimate)
                if over:
                    raise BudgetExhausted(
                        f"{over} of the run is reached: {self.spent.calls} calls, "
                        f"{self.spent.input_tokens + self.spent.output_tokens} tokens, "
                        f"{self.spent.price_text('.2f')} USD; the next call may cost up to "
                        f"{estimate.input_tokens + estimate.output_tokens} tokens, "
                        f"{estimate.price_text('.2f')} USD; raise it and continue with --resume"
                    )
                self._settled.wait()  # for a call in flight, which ends by its deadline
            self._reserved += estimate
        actual: list[Usage] = []
        try:
            yield actual
        finally:
            with self._settled:
                self._reserved += _negative(estimate)
                for usage in actual:
                    self.spent += usage
                    self._tokens.add(usage.input_tokens + usage.output_tokens)
                self._settled.notify_all()

    def figures(self) -> dict[str, float]:
        """Returns usage, limits and tokens per second of the last minute, for metrics.

        A price that is unknown is left out; where some is, ``models/unpriced`` counts the calls.
        """
        with self._settled:
            spent, rate = self.spent, self._tokens.value
        amounts = dict(zip(UNITS, _amounts(spent), strict=True))
        if spent.price is None and not spent.usd:  # nor estimated
            del amounts["usd"]
        return {
            "models/tokens_per_s": rate,
            **({"models/unpriced": spent.unpriced} if spent.unpriced else {}),
            **{f"models/spent/{unit}": amount for unit, amount in amounts.items()},
            **{f"models/limit/{u}": most for u, most in zip(UNITS, self._most, strict=True)},
        }

    def _exceeded(self, usage: Usage) -> str:
        """Returns the first limit that a usage exceeds, for messages; empty for none."""
        for name, value, most in zip(UNITS, _amounts(usage), self._most, strict=True):
            if value > most:
                return f"limits.{name}={most:g}"
        return ""


def _amounts(usage: Usage) -> tuple[float, float, float]:
    """Returns calls, tokens and dollars."""
    return usage.calls, usage.input_tokens + usage.output_tokens, usage.usd


def _negative(usage: Usage) -> Usage:
    return Usage(*(-amount for amount in astuple(usage)))


def usage_for_limits(reply: Call) -> Usage:
    """Returns the usage of a reply for the limits of a run; unknown parts are estimated.

    Otherwise a limit would have no effect on servers that report no usage.
    """
    known, most = Usage.of([reply]), reply.at_most or {}
    if reply.input_tokens is None or reply.output_tokens is None:
        known = replace(known, input_tokens=int(most.get("tokens", 0)), output_tokens=0)
    return known if reply.usd is not None else replace(known, usd=most.get("usd", 0.0))


def with_usage(call: Call, usage: Any, price: Price | None) -> Call:
    """Returns a call with its tokens and its price, from the ``usage`` of the response.

    Tokens of hidden reasoning that a server counts in the total only are tokens of the answer.
    A price that the server reports, as OpenRouter does, counts before that of the list. What the
    server does not report is None, never 0.
    """
    usage = usage if isinstance(usage, Mapping) else {}
    given = count_of(usage.get("prompt_tokens", usage.get("input_tokens")))
    answer = count_of(usage.get("completion_tokens", usage.get("output_tokens")))
    total = count_of(usage.get("total_tokens"))
    if given is not None and answer is not None and total is not None:
        answer = max(answer, total - given)
    cached = _detail(usage, "prompt_tokens_details", "cached_tokens")
    thought = _detail(usage, "completion_tokens_details", "reasoning_tokens")
    usd = _reported(usage)
    if usd is None and price is not None and given is not None and answer is not None:
        usd = price.of(given, min(cached or 0, given), answer)
    return replace(
        call,
        input_tokens=given,
        cached_tokens=cached,
        output_tokens=answer,
        reasoning_tokens=thought,
        usd=usd,
    )


def _detail(usage: Mapping[str, Any], group: str, name: str) -> int | None:
    details = usage.get(group)
    return count_of(details.get(name)) if isinstance(details, Mapping) else None


def _reported(usage: Mapping[str, Any]) -> float | None:
    """Returns the price in US dollars that OpenRouter reports.

    With a key of the provider's own, ``cost`` is OpenRouter's fee and the rest is in the details.
    """
    details = usage.get("cost_details")
    upstream = details.get("upstream_inference_cost") if isinstance(details, Mapping) else None
    own = number_of(usage.get("cost"))
    more = number_of(upstream) or 0.0 if usage.get("is_byok") is True else 0.0
    return None if own is None or min(own, more) < 0 else own + more
