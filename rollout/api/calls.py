"""Calls of language models, which a policy records with its decisions, and their cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

from rollout.api.bridge import ColumnSpec

CALLS = "calls"
"""Key of ``Decision.extras`` for the calls of each row, ``(B,)`` lists of ``Call.as_json``."""

CALLS_SPEC = ColumnSpec("object", doc="calls of models that led to the action, JSON")
"""Description of the column ``CALLS`` in a dataset."""

UNITS = ("calls", "tokens", "usd")
"""Units of limits on calls of models."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a model: its reply, the request, and the interpretation by the policy.

    Attributes:
        started: when it began, Unix seconds.
        seconds: from the request to the answer.
        waited_s: of these, waited before another try.
        errors: why earlier tries failed.
        asked: the requested model.
        reported: the model that answered, according to the server.
        answer: the text of the answer.
        reasoning: the model's reasoning before the answer.
        tools: name and arguments of each call of a tool.
        finish: reason why the model stopped, by OpenAI's names.
        prompt_ids: tokens of the prompt; None if unknown, as all numbers of tokens.
        output_ids: tokens of the answer.
        output_logprobs: their log-probabilities.
        input_tokens: tokens of the prompt, as billed.
        cached_tokens: of these, found in a cache.
        output_tokens: tokens of the answer, as billed.
        reasoning_tokens: of these, hidden reasoning.
        usd: price in US dollars; None if unknown.
        at_most: ``tokens`` and ``usd`` that count for limits where the real ones are unknown.
        request: digest of the request.
        earlier: whether the reply was recorded before, so that nothing was paid.
        version: of the weights of a model in this process.
        temperature: of the distribution that was sampled, of a model in this process.
        messages: the request; pictures are digests.
        role: ``reflect`` for a call that asked for a critique.
        step: number of the step in its episode.
        number: number of the try at this step; recorded as ``try``.
        prompt: digest of the prompt's templates.
        seen: digest of the observation.
        code: ``ok``, or the reason why the answer could not be used.
        usable: whether the answer was an action.
        action: the action, in words; None without one.
        fields: further fields of the answer.
        problem: message to the model about an answer that could not be used.
    """

    started: float = 0.0
    seconds: float | None = None
    waited_s: float = 0.0
    errors: Sequence[str] = ()
    asked: str = ""
    reported: str = ""
    answer: str = ""
    reasoning: str = ""
    tools: Sequence[Sequence[str]] = ()
    finish: str = ""
    prompt_ids: Sequence[int] | None = None
    output_ids: Sequence[int] | None = None
    output_logprobs: Sequence[float] | None = None
    input_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    usd: float | None = None
    at_most: Mapping[str, float] | None = None
    request: str | None = None
    earlier: bool | None = None
    version: int | None = None
    temperature: float | None = None
    messages: Sequence[Mapping[str, Any]] | None = None
    role: str | None = None
    step: int | None = None
    number: int | None = None
    prompt: str | None = None
    seen: str | None = None
    code: str | None = None
    usable: bool | None = None
    action: str | None = None
    fields: Mapping[str, str] | None = None
    problem: str | None = None

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Returns the call that was recorded; keys that are not Gamut's are left out."""
        return cls(**{name: data[key] for name, key in _KEYS.items() if key in data})

    def as_json(self) -> dict[str, Any]:
        """Returns what is recorded in datasets and replies: what is known so far."""
        null = _NULL if self.code is None else (*_NULL, "action")
        values = {name: getattr(self, name) for name in (_KEYS if self.version is None else _LOCAL)}
        return {_KEYS[n]: v for n, v in values.items() if v is not None or n in null}


_KEYS = {f.name: "try" if f.name == "number" else f.name for f in fields(Call)}
"""The keys under which the fields are recorded, in their order."""

_LOCAL = (
    *("started", "seconds", "waited_s", "errors", "reported", "asked", "answer", "reasoning"),
    *("tools", "finish", "prompt_ids", "output_ids", "output_logprobs", "input_tokens"),
    *("output_tokens", "usd", "earlier", "version", "fields", "temperature", "messages", "role"),
    *("step", "number", "prompt", "seen", "code", "usable", "action", "problem"),
)
"""Keys that are recorded of a model in this process, in their order."""

_NULL = (
    *("prompt_ids", "output_ids", "output_logprobs", "input_tokens", "cached_tokens"),
    *("output_tokens", "reasoning_tokens", "usd"),
)
"""Keys that are recorded as null if unknown."""


def read_calls(recorded: Iterable[Mapping[str, Any]] | None) -> list[Call]:
    """Returns the calls of a step, as ``CALLS`` has them."""
    return [Call.from_json(each) for each in recorded or ()]


@dataclass(frozen=True, slots=True)
class Usage:
    """Total cost of calls of models.

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
            total += cls(
                1,
                call.usable is False,
                call.input_tokens or 0,
                call.output_tokens or 0,
                call.usd or 0.0,
                call.usd is None,
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
