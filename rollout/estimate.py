"""What the calls of models in a run will cost, from the first episode of each of its parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from rollout.api import Usage
from rollout.reports import table

_HEAD = ("part", "played", "calls", "tokens", "US dollars")


@dataclass(frozen=True)
class Part:
    """A part of a run whose episodes cost about as much as one another.

    Attributes:
        name: for people.
        played: usage of each of its episodes that were played.
        whole: number of its episodes in the whole run.
    """

    name: str
    played: Sequence[Usage]
    whole: int

    def total(self, amount: Callable[[Usage], float]) -> tuple[float, float, float]:
        """Returns an amount for all episodes of the part: expected, least and most.

        The episodes still to play are taken to cost as much as the mean, the cheapest and the
        dearest of those that were played.
        """
        amounts = [amount(usage) for usage in self.played]
        known, left = sum(amounts), max(0, self.whole - len(amounts))
        each = (known / len(amounts), min(amounts), max(amounts))
        return known + left * each[0], known + left * each[1], known + left * each[2]


@dataclass
class Estimate:
    """Collects the parts of a run.

    Attributes:
        parts: what was played of each.
        kept: whether the played episodes are kept, so that nobody plays them again.
    """

    parts: list[Part] = field(default_factory=list)
    kept: bool = True

    def add(self, name: str, played: Sequence[Usage], whole: int) -> None:
        """Adds a part; see ``Part``."""
        self.parts.append(Part(name, played, whole))

    def text(self) -> str:
        """Returns a table of all parts and of the whole run, and how to read it."""
        seen = [part for part in self.parts if part.played]
        rows = [_row(part.name, [part]) for part in seen]
        rows += [
            [part.name, f"0 of {part.whole:,}", *["unknown"] * 3]
            for part in self.parts
            if not part.played
        ]
        if len(rows) > 1:
            rows.append(_row("whole run", self.parts))
        lines = [table(_HEAD, rows), ""]
        if any(len(part.played) > 1 for part in seen):
            lines.append(
                "In brackets: as if every other episode cost as much as the cheapest or the "
                "dearest one of its part."
            )
        else:
            lines.append("One episode of each part does not show how much they vary.")
        if not sum(usage.calls for part in seen for usage in part.played):
            lines.append("These episodes called no model.")
        elif any(usage.unpriced for part in seen for usage in part.played):
            lines.append(
                "Some prices are unknown; list the model in a file and name it: prices=FILE "
                "(docs/vlm.md)."
            )
        return "\n".join(lines)


def _row(name: str, parts: Sequence[Part]) -> list[str]:
    seen = [part for part in parts if part.played]
    played, whole = sum(len(p.played) for p in seen), sum(part.whole for part in parts)
    unpriced = sum(usage.unpriced for part in seen for usage in part.played)
    calls = sum(usage.calls for part in seen for usage in part.played)
    less = ">=" if len(seen) < len(parts) else ""
    dollars = "unknown"
    if not 0 < unpriced == calls:
        dollars = _spread(seen, lambda usage: usage.usd, ">=" if unpriced else less, ".2f")
    return [
        name,
        f"{played:,} of {whole:,}",
        _spread(seen, lambda usage: usage.calls, less, ",.0f"),
        _spread(seen, lambda usage: usage.input_tokens + usage.output_tokens, less, ",.0f"),
        dollars,
    ]


def _spread(parts: Sequence[Part], amount: Callable[[Usage], float], less: str, form: str) -> str:
    totals = [part.total(amount) for part in parts]
    middle, low, high = (sum(each) for each in zip(*totals, strict=True))
    text = f"{less}{middle:{form}}"
    several = any(len(part.played) > 1 for part in parts)
    return f"{text} ({low:{form}} to {high:{form}})" if several else text
