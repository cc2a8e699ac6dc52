"""Counts, by family, the ids of a copy of MineLand's task files that can be played.

``python -m bridges.mineflayer.task_counts FOLDER`` prints the counts, and why others cannot.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from bridges.mineflayer.bridge import MineflayerBridge
from bridges.mineflayer.task_files import DATA, read_file
from rollout.errors import InputError, UnknownNameError

FAMILIES = ("harvest", "techtree", "combat", "survival", *DATA)


@dataclass(frozen=True)
class Count:
    """Numbers of ids of a family that can be played.

    Attributes:
        family: one of ``FAMILIES``.
        ids: how many the file lists.
        impossible: why an id cannot be played, by id.
        lacks: how many seem to need a mechanic that embedded worlds lack, by its name.
    """

    family: str
    ids: int
    impossible: Mapping[str, str]
    lacks: Mapping[str, int]
    warned: int = 0
    """How many ids load and seem to need at least one of them."""

    @property
    def load(self) -> int:
        """Returns how many can be played."""
        return self.ids - len(self.impossible)


def report(folder: str) -> Iterator[Count]:
    """Counts the ids of a copy's files that can be played; raises like ``load_files``."""
    maker = MineflayerBridge(task_files=folder).spec.task_maker
    assert maker is not None
    for family in FAMILIES:
        file = Path(folder).expanduser() / f"{family}_tasks.yaml"
        if not file.is_file():
            continue
        ids, impossible = [str(key) for key in read_file(file)], {}
        lacks: Counter[str] = Counter()
        warned = 0
        for each in ids:
            try:
                made = maker.document(each)
                if made is None:
                    raise UnknownNameError("task", each, maker.names())
                needs = made["metadata"].get("lacks", ())
                if "options" in made:
                    MineflayerBridge(task_files=folder, **made["options"])
                lacks.update(needs)
                warned += bool(needs)
            except InputError as error:
                impossible[each] = str(error)
        yield Count(family, len(ids), impossible, lacks, warned)


def main(folder: str) -> None:
    """Prints the counts of a copy."""
    ids = load = 0
    for row in report(folder):
        lines = [f"{row.family}: {row.load} of {row.ids} ids can be played"]
        lines += [
            f"  {n} seem to need {each}, which embedded worlds lack"
            for each, n in row.lacks.items()
        ]
        lines += [f"  {each}: {why}" for each, why in row.impossible.items()]
        sys.stdout.write("\n".join(lines) + "\n")
        ids, load = ids + row.ids, load + row.load
    sys.stdout.write(f"all: {load} of {ids}\n")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("usage: python -m bridges.mineflayer.task_counts FOLDER")
    main(sys.argv[1])
