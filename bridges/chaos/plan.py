"""Latencies and faults as a pure function of seeds, attempt and step.

A latency is a distribution, written as text.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from statistics import NormalDist
from typing import Literal

from bridges.chaos.game import CRASHES, GARBAGE, HANG
from rollout.errors import ConfigError, UnknownNameError

# latencies ----------------------------------------------------------------------------------------

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
        """True if draws differ."""
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


# plans --------------------------------------------------------------------------------------------

Phase = Literal["start", "reset", "step", "close"]
PHASES: tuple[Phase, ...] = ("start", "reset", "step", "close")

ANY = "any"
_WORDS = struct.Struct("<4Q")


@dataclass(frozen=True)
class Strike:
    """The latency and fault of one request.

    Attributes:
        seconds: how long the request takes.
        fault: one of ``bridges.chaos.game.FAULTS``; empty for none.
    """

    seconds: float = 0.0
    fault: str = ""


@dataclass(frozen=True)
class Rates:
    """Rates of a phase: its latency, and the shares of its requests that fail, each 0 to 1."""

    latency: Latency = field(default_factory=Latency)
    hang: float = 0.0
    crash: float = 0.0
    garbage: float = 0.0

    @property
    def calm(self) -> bool:
        """True if every request has the same course, so that nothing has to be drawn."""
        return not (self.latency.varies or self.hang or self.crash or self.garbage)


@dataclass(frozen=True)
class EpisodeKey:
    """Inputs of the faults of an episode, besides the plan.

    Attributes:
        seed: ``Start.seed``.
        attempt: ``Start.attempt``.
        shortest: the fewest steps the episode can have; its own fault comes within them.
    """

    seed: int
    attempt: int
    shortest: int


@dataclass(frozen=True)
class FaultPlan:
    """Decides the course of every request.

    Attributes:
        seed: chooses among all plans with the same rates.
        phases: rates by phase.
        episode_hang: share of episodes that hang in one of their steps.
        episode_crash: share of episodes that crash in one of their steps.
        crash_kind: one of ``CRASHES``, or ``any`` to draw one.
        garbage_kind: one of ``GARBAGE``, or ``any`` to draw one.
        same_every_attempt: whether an episode that failed fails in the same way on every attempt.
    """

    seed: int
    phases: Mapping[Phase, Rates]
    episode_hang: float = 0.0
    episode_crash: float = 0.0
    crash_kind: str = "exit"
    garbage_kind: str = "bytes"
    same_every_attempt: bool = False

    def start(self, name: str) -> Strike:
        """Returns the course of an instance's start, which has no episode yet, only a name."""
        return self._strike("start", "start", name)

    def of_episode(self, phase: Phase, key: EpisodeKey, step: int) -> Strike:
        """Returns the course of a reset, step or close, as far as one slot decides it.

        Args:
            phase: which.
            key: the episode of the slot.
            step: number of the step, from 1; of the last one for a close; 0 for a reset.
        """
        attempt = 0 if self.same_every_attempt else key.attempt
        strike = Strike(self.phases[phase].latency.scale)
        if not self.phases[phase].calm:
            strike = self._strike(phase, phase, key.seed, attempt, step)
        if phase == "step" and not strike.fault and (self.episode_hang or self.episode_crash):
            return Strike(strike.seconds, self._of_step(key, attempt, step))
        return strike

    def _of_step(self, key: EpisodeKey, attempt: int, step: int) -> str:
        share, when, which, _ = self._shares("episode", key.seed, attempt)
        if step != 1 + int(when * key.shortest):
            return ""
        if share < self.episode_hang:
            return HANG
        crashes = share < self.episode_hang + self.episode_crash
        return _choose(self.crash_kind, CRASHES, which) if crashes else ""

    def _strike(self, phase: Phase, *key: object) -> Strike:
        rates = self.phases[phase]
        time, share, which, _ = self._shares(*key)
        fault = ""
        # One draw decides among the faults, so that their shares are exact and mutually exclusive.
        if share < rates.hang:
            fault = HANG
        elif share < rates.hang + rates.crash:
            fault = _choose(self.crash_kind, CRASHES, which)
        elif share < rates.hang + rates.crash + rates.garbage:
            fault = _choose(self.garbage_kind, GARBAGE, which)
        return Strike(rates.latency.seconds(time), fault)

    def _shares(self, *key: object) -> tuple[float, ...]:
        """Returns four independent numbers in (0, 1) that depend on the key only."""
        data = "\x1f".join(map(str, (self.seed, *key))).encode()
        words = _WORDS.unpack(blake2b(data, digest_size=_WORDS.size).digest())
        return tuple(((word >> 12) + 0.5) / 2**52 for word in words)


def worst(strikes: Sequence[Strike]) -> Strike:
    """Returns the request of several slots together: the longest time, the first fault."""
    return Strike(
        max((strike.seconds for strike in strikes), default=0.0),
        next((strike.fault for strike in strikes if strike.fault), ""),
    )


def _choose(kind: str, among: Sequence[str], share: float) -> str:
    return among[int(share * len(among))] if kind == ANY else kind
