"""Files made to take all time or memory: each is refused in one line, before it can."""

import contextlib
import os

import pytest

from rollout import files, yaml12
from rollout.configuration import document
from rollout.data.layout import Layout
from rollout.data.manifest import read_manifest
from rollout.data.space_json import space_from_json
from rollout.errors import GamutError, SpaceError
from rollout.observe.metrics import read_metrics
from rollout.observe.run_files import read_about, read_json, tail
from rollout.train.checkpoint import find_checkpoint
from rollout.train.episodes import read_episodes
from rollout.train.history import History

BOX = {"type": "Box", "dtype": "float32", "low": 0.0, "high": 1.0}


def laughs(depth, width=9, merge=""):
    """Lines whose aliases stand for ``width ** depth`` values."""
    lines = ["a0: &a0 {k: 1}"]
    for n in range(1, depth):
        again = ", ".join([f"*a{n - 1}"] * width)
        lines.append(f"a{n}: &a{n} {{{merge}: [{again}]}}" if merge else f"a{n}: &a{n} [{again}]")
    return "\n".join(lines)


NESTED = "not valid|nested too deeply"
TEXTS = {
    "aliases": (laughs(300), r"expected at most 1,000,000 values"),
    "merged": (laughs(300, merge="<<"), r"expected at most 1,000,000 values"),
    "a chain": (
        "\n".join(f"a{n}: &a{n} [*a{n - 1}]" for n in range(400)).replace("[*a-1]", "1"),
        NESTED,
    ),
    "lists": ("[" * 400 + "]" * 400, NESTED),
    "mappings": ("{a: " * 400 + "1" + "}" * 400, NESTED),
    "indents": ("\n".join(" " * n + "a:" for n in range(400)), NESTED),
    "itself": ("a: &a [*a]", "contains itself"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_yaml_cannot_stand_for_more_than_it_says(name):
    """The sizes are such that visiting each path would never end."""
    text, said = TEXTS[name]
    with pytest.raises(GamutError, match=said) as error:
        yaml12.parse_yaml(text, "f.yaml")
    assert "\n" not in str(error.value)


def test_yaml_with_honest_aliases_is_read():
    text = "base: &b {lr: 1}\nruns: [*b, *b, {<<: *b, n: 2}]"
    data, lines = yaml12.parse_yaml(text, "f.yaml")
    assert data["runs"] == [{"lr": 1}, {"lr": 1}, {"lr": 1, "n": 2}]
    assert lines["runs", 2] == 2


@pytest.mark.parametrize("kind", ["pipe", "zero", "folder", "large"])
@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("f.yaml", lambda p: document.read(p / "f.yaml")),
        ("f.yaml", lambda p: yaml12.load_yaml(p / "f.yaml")),
        ("run.json", read_about),
        ("summary.json", lambda p: read_json(p / "summary.json")),
        ("dataset.json", lambda p: read_manifest(Layout(p))),
        ("validation.json", lambda p: History(p, until=1)),
        ("checkpoint.json", find_checkpoint),
        ("metrics.jsonl", lambda p: list(read_metrics(p / "metrics.jsonl"))),
        ("metrics.jsonl", lambda p: tail(p / "metrics.jsonl", most=100)),  # ends in no whole line
        ("episodes.jsonl", lambda p: read_episodes(p / "episodes.jsonl")),
    ],
)
def test_what_is_no_file_or_too_large_is_refused(tmp_path, monkeypatch, kind, name, read):
    monkeypatch.setattr(files, "MOST_BYTES", 1000)
    place = tmp_path / name
    if kind == "pipe":
        os.mkfifo(place)
    elif kind == "zero":
        place.symlink_to("/dev/zero")
    elif kind == "folder":
        place.mkdir()
    else:
        place.write_bytes(b"{" * 1001 + b"\n")
    with contextlib.suppress(OSError, GamutError):  # a view of a run shows nothing instead
        assert not read(tmp_path)


def test_the_message_names_the_file_and_the_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "MOST_BYTES", 1000)
    (tmp_path / "f.yaml").write_text("#" * 1001)
    with pytest.raises(GamutError, match=r"f.yaml cannot be read: expected at most 1,000 bytes"):
        document.read(tmp_path / "f.yaml")


def nested(levels):
    space = BOX | {"shape": [1]}
    for _ in range(levels):
        space = {"type": "Dict", "spaces": {"a": space}}
    return space


SPACES = {
    "shape": BOX | {"shape": [10**10]},
    "shapes": BOX | {"shape": [10**5, 10**5]},
    "many": {"type": "Tuple", "spaces": [BOX | {"shape": [6 * 10**7]}] * 2},
    "none of many": BOX | {"shape": [0, 10**10]},
    "dtype": BOX | {"shape": [10], "dtype": "S1000000000"},
    "dtypes": BOX | {"shape": [10], "dtype": "1000000000f4"},
    "nested": nested(400),
    "deeply nested": nested(5000),
}


@pytest.mark.parametrize("name", SPACES)
def test_spaces_too_large_to_be_built_are_refused(name):
    with pytest.raises(SpaceError, match=r"too large|too deeply|dtype") as error:
        space_from_json(SPACES[name])
    assert len(str(error.value)) < 400
