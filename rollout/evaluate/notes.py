"""What reports tell of single episodes beside their scores: failures, questions, calls by stage.

The notes of an episode are a map with any of these keys: ``why`` (conditions that did not hold),
``class`` (class of the failure), ``clarified`` (whether it asked exactly if something was open; or
None), ``preferred`` (whether it did as the player prefers; or None), ``preferences`` (``hits`` and
``misses`` of remembered preferences), ``roles`` (calls, seconds and tokens by the role of calls).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rollout.evaluate.statistics import wilson
from rollout.reports import table

_MOST = 20  # conditions that are listed
_SHARES = {
    "clarified": "Asked exactly if something was open",
    "preferred": "Did as the profile of the player says",
}


def notes_sections(found: Sequence[Mapping[str, Any]]) -> str:
    """Returns the sections of a report on the notes of some episodes; empty for none."""
    return "\n".join(_sections(found))


def _sections(found: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    classes = Counter(each["class"] for each in found if each.get("class"))
    if classes:
        yield _counts("Classes of failures", "class", classes)
    for key, about in _SHARES.items():
        known = [bool(each[key]) for each in found if each.get(key) is not None]
        if known:
            title = "Questions" if key == "clarified" else "Preferences"
            share = wilson(sum(known), len(known)).text()
            yield f"## {title}\n\n{about}: {sum(known)} of {len(known)} episodes, {share}.\n"
    hits = sum((Counter(each.get("preferences", {})) for each in found), Counter[str]())
    if hits:
        yield f"Remembered preferences: {hits['hits']} hits, {hits['misses']} misses.\n"
    roles: dict[str, Counter[str]] = {}
    for each in found:
        for role, sums in each.get("roles", {}).items():
            roles.setdefault(role, Counter()).update(sums)
    if roles:
        rows = [
            [role, s["calls"], f"{s['seconds'] / max(1, s['calls']):.2f}", s["input_tokens"],
             s["output_tokens"]]
            for role, s in roles.items()
        ]  # fmt: skip
        head = ["stage", "calls", "seconds per call", "input tokens", "output tokens"]
        yield "## Calls of models by stage\n\n" + table(head, rows) + "\n"
    missed = Counter(text for each in found for text in each.get("why", ()))
    if missed:
        yield _counts("What did not hold", "condition", missed)


def _counts(title: str, name: str, counts: Counter[str]) -> str:
    rows = [[each, count] for each, count in counts.most_common(_MOST)]
    return f"## {title}\n\n" + table([name, "episodes"], rows) + "\n"
