"""Latency of a phase of the chaos game: a distribution, written as text."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import NormalDist

from rollout.errors import ConfigError, UnknownNameError

KINDS: Mapping[str, tuple[int, int]] = {
    "constant": (1, 1),
    "exponential": (1, 2),
    "lognormal": (2, 3),
}
"""Minimum and maximum count of parameters of each distribution."""

USAGE = "seconds, lognormal(MEDIAN, SIGMA[, CAP]) or exponential(MEAN[, CAP])"
_FORM = re.compile(r"\s*(\w+)\s*\(([^()]*)\)\s*")
_BETWEEN = re.compile(r"\s*,\s*|\s+")  # a comma separates values in YAML's inline mappings
_NORMAL = NormalDist()


@dataclass(frozen=True)
class Latency:
    """A distribution of seconds.

    Attributes:
        kind: ``constant``, ``exponential`` or ``lognormal``.
        scale: the constant, the mean, or the median, in seconds.
        sigma: standard deviation of the logarithm, of a lognormal.
        cap: upper limit of every draw, in seconds.
    """

    kind: str = "constant"
    scale: float = 0.0
    sigma: float = 0.0
    cap: float = math.inf

    def seconds(self, share: float) -> float:
        """Returns the quantile at ``share``, between 0 and 1 (exclusive), limited by the cap."""
        if self.kind == "exponential":
            drawn = -self.scale * math.log1p(-share)
        elif self.kind == "lognormal":
            drawn = self.scale * math.exp(self.sigma * _NORMAL.inv_cdf(share))
        else:
            drawn = self.scale
        return min(drawn, self.cap)

    @property
    def varies(self) -> bool:
        """Whether draws differ."""
        return self.kind != "constant"


def parse_latency(text: str | float, option: str) -> Latency:
    """Returns the distribution that an option describes; see ``USAGE``.

    Args:
        text: a number of seconds, or the name of a distribution with its numbers.
        option: name of the option, for messages.

    Raises:
        UnknownNameError: there is no such distribution.
        ConfigError: the text cannot be parsed, or has invalid numbers.
    """
    if isinstance(text, int | float) and not isinstance(text, bool):
        kind, numbers = "constant", [float(text)]
    else:
        kind, numbers = _taken_apart(text, option)
    if not all(math.isfinite(number) and number >= 0 for number in numbers):
        raise ConfigError(f"{option}: expected numbers from 0, got {text!r}")
    make: Mapping[str, Callable[..., Latency]] = {
        "constant": lambda scale: Latency("constant", scale),
        "exponential": lambda mean, cap=math.inf: Latency("exponential", mean, 0.0, cap),
        "lognormal": lambda median, sigma, cap=math.inf: Latency("lognormal", median, sigma, cap),
    }
    return make[kind](*numbers)


def _taken_apart(text: object, option: str) -> tuple[str, list[float]]:
    match = _FORM.fullmatch(str(text))
    if match is None:
        try:
            return "constant", [float(str(text))]
        except ValueError:
            raise ConfigError(f"{option}: expected {USAGE}, got {text!r}") from None
    kind = match[1]
    if kind not in KINDS:
        raise UnknownNameError(f"distribution of {option}", kind, KINDS)
    try:
        numbers = [float(number) for number in _BETWEEN.split(match[2].strip())]
    except ValueError:
        raise ConfigError(f"{option}: expected {USAGE}, got {text!r}") from None
    fewest, most = KINDS[kind]
    if not fewest <= len(numbers) <= most:
        raise ConfigError(
            f"{option}: {kind} takes {fewest} to {most} numbers, got {len(numbers)}: {text!r}; "
            f"expected {USAGE}"
        )
    return kind, numbers
