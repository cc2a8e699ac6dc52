"""Tables of keys in the documentation show the defaults that the code has."""

import json
import re
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

from rollout.config import CollectConfig, help_text
from rollout.registry import load_plugin
from rollout.train.config import TrainConfig
from rollout.train.language.config import PlayGroupsConfig

DOCS = Path(__file__).parents[1] / "docs"

# Of each page, in the order of its tables of keys: the configuration, its plug-ins, and what may
# stand before a key.
TABLES = {
    "vlm.md": [(CollectConfig, {"policy": "vlm"}, "policy.")],
    "reliability.md": [(CollectConfig, {}, "host.")],
    "throughput.md": [(CollectConfig, {}, "")],
    "training.md": [(TrainConfig, {"algorithm": "ppo"}, "algorithm.")],
    "vlm-training.md": [
        (CollectConfig, {"policy": "vlm"}, "policy."),
        (PlayGroupsConfig, {"policy": "vlm", "algorithm": "grpo"}, ""),
    ],
    "chaos.md": [(CollectConfig, {"bridge": "chaos"}, "bridge.")],
    "minestudio.md": [(CollectConfig, {"bridge": "minestudio"}, "bridge.")],
    "gymnasium-games.md": [
        (CollectConfig, {"bridge": "gymnasium"}, ""),
        (CollectConfig, {"bridge": "atari"}, "bridge."),
        (CollectConfig, {"bridge": "envpool"}, ""),
    ],
}
TABLE = re.compile(r"^\| (?:key|option) \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", re.MULTILINE)
KEY = re.compile(r"`([\w.]+)`(?: \(([^()]*)\))?")


@cache
def defaults(table):
    """The defaults of a table's keys as ``--help`` shows them, where they are short."""
    model, plugins, _ = table
    found = re.findall(
        r"^  ([\w.]+)  \(.*?, default ([^\s,]+)(?:, unit: [^)]*)?\)$",
        help_text(model, dict(plugins)),
        re.MULTILINE,
    )
    return {key: short(value) for key, value in found if value not in ("{}", "[]", "''", '""')}


def short(value):
    """A default as the documentation writes it: whole numbers without a point."""
    return re.sub(r"\.0$", "", value)


def tables(page, text):
    """The rows of each table of keys in a page, with what the table is about."""
    found = list(TABLE.finditer(text))
    assert len(found) == len(TABLES[page]), page
    about = [(model, tuple(plugins.items()), start) for model, plugins, start in TABLES[page]]
    return list(zip(found, about, strict=True))


def default_of(key, table):
    known = defaults(table)
    return known.get(key) or known.get(table[2] + key) or nested(key, table[1])


def nested(key, plugins):
    """The default of an option within an option of a plug-in, such as ``endpoint.timeout_s``."""
    *path, last = key.removeprefix("policy.").split(".")
    for kind, name in plugins if path else ():
        section = load_plugin({"policy": "policies"}.get(kind, f"{kind}s"), name)
        for part in path:
            hints = get_type_hints(section) if is_dataclass(section) else {}
            kinds = [hints.get(part), *get_args(hints.get(part))]
            section = next((each for each in kinds if is_dataclass(each)), None)
        for field in fields(section) if section is not None else ():
            if field.name == last and isinstance(field.default, bool | int | float | None):
                return short(json.dumps(field.default))
    return None


def filled(page, text):
    """The page with the defaults of the code in its tables."""
    for match, table in reversed(tables(page, text)):
        rows = [row_with_defaults(row, table) for row in match[1].splitlines()]
        text = text[: match.start(1)] + "\n".join(rows) + "\n" + text[match.end(1) :]
    return text


def row_with_defaults(row, table):
    first, rest = row[2:].split(" | ", 1)

    def shown(found):
        default = default_of(found[1], table)
        return found[0] if default is None else f"`{found[1]}` ({default})"

    return f"| {KEY.sub(shown, first)} | {rest}"


@pytest.mark.parametrize("page", TABLES)
def test_tables_of_keys_show_their_defaults(page):
    text = (DOCS / page).read_text()
    shown = [found for match, _ in tables(page, text) for found in KEY.findall(match[1])]
    assert shown
    assert text == filled(page, text)
