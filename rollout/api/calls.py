"""Calls of models: what a policy that asks a language model records with its decisions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

from rollout.api.bridge import ColumnSpec

CALLS = "calls"
"""Key of ``Decision.extras`` for the calls of each row, ``(B,)`` objects, lists of ``Call``."""

CALLS_SPEC = ColumnSpec("object", doc="calls of models that led to the action, JSON")
"""What ``CALLS`` holds in a dataset."""

UNITS = ("calls", "tokens", "usd")
"""What calls of models are counted in, for limits."""

Call: TypeAlias = Mapping[str, Any]
"""One call of a model, JSON-able. Gamut reads these keys; all others are the policy's own.

* ``usable``: whether the answer was an action;
* ``input_tokens``, ``output_tokens``: as billed; None if unknown;
* ``usd``: price; None if unknown;
* ``seconds``: from the request to the answer.
"""


@dataclass(frozen=True, slots=True)
class Usage:
    """What calls of models cost together.

    Attributes:
        calls: number of calls.
        unusable: calls whose answer was no action.
        input_tokens: tokens of the prompts.
        output_tokens: tokens of the answers, those of hidden reasoning included.
        usd: price in US dollars of the calls whose price is known.
        unpriced: calls without a known price.
    """

    calls: int = 0
    unusable: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float = 0.0
    unpriced: int = 0

    @classmethod
    def of(cls, calls: Iterable[Call]) -> Usage:
        """Returns the usage of some calls."""
        total = NO_USAGE
        for call in calls:
            usd = call.get("usd")
            total += cls(
                1,
                not call.get("usable", True),
                call.get("input_tokens") or 0,
                call.get("output_tokens") or 0,
                usd or 0.0,
                usd is None,
            )
        return total

    @property
    def price(self) -> float | None:
        """US dollars, a lower bound if some price is unknown; None if all are."""
        return None if 0 < self.unpriced == self.calls else self.usd

    def price_text(self, form: str = ".4f") -> str:
        """Returns the price for people: ``unknown``, or ``>=0.5000`` if only some is known."""
        known = self.price
        return "unknown" if known is None else f"{'>=' if self.unpriced else ''}{known:{form}}"

    def as_json(self) -> dict[str, Any]:
        """Returns the fields, with ``price`` as ``usd``."""
        return {**asdict(self), "usd": self.price}

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.calls + other.calls,
            self.unusable + other.unusable,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.usd + other.usd,
            self.unpriced + other.unpriced,
        )


NO_USAGE = Usage()
