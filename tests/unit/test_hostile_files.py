"""Files made to take all time or memory: each is refused in one line, before it can."""

import contextlib
import io
import os
import zipfile
from types import SimpleNamespace

import numpy as np
import pytest
from gymnasium import spaces

from bridges.starbench.asking import read_log
from policies.scripted import Program, read_scripts
from rollout import files, yaml12
from rollout.configuration import document
from rollout.data.layout import Layout
from rollout.data.manifest import read_manifest
from rollout.data.space_json import space_from_json
from rollout.errors import ConfigError, GamutError, SpaceError
from rollout.evaluate.journal import Journal, note_opening
from rollout.files import holder_of
from rollout.interface.calls import Run
from rollout.judge.ratings import read_ratings
from rollout.models.client import ReplyStore
from rollout.observe.metrics import read_metrics
from rollout.observe.run_files import read_about, read_json, tail
from rollout.sweep.run import outcome_of
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


def run_of(folder):
    (folder / "run.json").touch()
    return Run(folder)


def sweep_run(folder):
    about = {"baseline": None, "digest": "d", "name": "run", "trains": "d"}
    return SimpleNamespace(folder=folder / "run", **about)


PROGRAMS = spaces.Dict({"kind": spaces.Discrete(2), "code": spaces.Text(100)})


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
        ("episodes.jsonl", lambda p: run_of(p).episodes),
        ("episodes.parquet", lambda p: run_of(p).episodes),
        ("episodes.jsonl", lambda p: Journal(p).entries),
        ("losses.jsonl", lambda p: Journal(p).losses),
        ("test_openings.jsonl", lambda p: note_opening(p, "a set")),
        (".run.run", lambda p: outcome_of(sweep_run(p))),
        ("run/result.json", lambda p: outcome_of(sweep_run(p))),
        ("a.json", lambda p: read_scripts(p / "a.json")),
        ("a.npy", lambda p: read_scripts(p / "a.npy")),
        ("a.npz", lambda p: read_scripts(p / "a.npz")),
        ("a.js", lambda p: Program(p / "a.js", PROGRAMS)),
        ("r.csv", lambda p: read_ratings(str(p / "r.csv"))),
        ("replies.jsonl", lambda p: ReplyStore(p).reported),
        ("ask_log.jsonl", lambda p: read_log(p / "ask_log.jsonl")),
        ("lock", lambda p: holder_of(p / "lock") == "another process" and None),
    ],
)
def test_what_is_no_file_or_too_large_is_refused(tmp_path, monkeypatch, kind, name, read):
    monkeypatch.setattr(files, "MOST_BYTES", 1000)
    place = tmp_path / name
    place.parent.mkdir(exist_ok=True)
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


def array(shape, dtype="<f8", *, data=b""):
    file = io.BytesIO()
    about = {"descr": dtype, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, about)
    return file.getvalue() + data


def archive(**members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as made:
        for name, data in members.items():
            made.writestr(f"{name}.npy", data)
    return file.getvalue()


ACTIONS = {
    "shape.npy": array((10**10,)),
    "shapes.npy": array((10**5, 10**5)),
    "nothing.npy": array((10**18,), "|S0"),
    "objects.npy": array((2,), "|O", data=bytes(16)),
    "cut.npy": array((10,))[:20],
    "shape.npz": archive(action=array((10**10,))),
    "empty.npz": b"",
    "cut.npz": archive(action=array((2,), data=bytes(16)))[:-30],
    "flipped.npz": archive(action=array((2,), data=bytes(16))).replace(b"\x93", b"\x94"),
    "nested.json": b"[" * 5000,
    "digits.json": b"[1" + b"0" * 5000 + b"]",
}


@pytest.mark.parametrize("name", ACTIONS)
def test_actions_that_tell_of_more_than_they_hold_are_refused(tmp_path, name):
    (tmp_path / name).write_bytes(ACTIONS[name])
    with pytest.raises(ConfigError, match=r"actions: .* cannot be read: ") as error:
        read_scripts(tmp_path / name)
    assert "\n" not in str(error.value)


def test_an_archive_that_unpacks_to_too_much_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("policies.scripted._MOST_BYTES", 1 << 20)
    (tmp_path / "bomb.npz").write_bytes(archive(action=array((1 << 20,), data=bytes(8 << 20))))
    with pytest.raises(ConfigError, match="expected at most 1,048,576 bytes of actions"):
        read_scripts(tmp_path / "bomb.npz")


@pytest.mark.parametrize("text", ["criterion,episode,score\na,1,\0", "a\n" + '"' * 200_000, "a"])
def test_ratings_that_are_no_table_are_refused(tmp_path, text):
    (tmp_path / "r.csv").write_text(text)
    with pytest.raises(ConfigError, match=r"ratings: .*r.csv"):
        read_ratings(str(tmp_path / "r.csv"))


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


@pytest.mark.parametrize("kind", ["pipe", "zero"])
def test_lines_are_appended_to_files_alone(tmp_path, kind):
    place = tmp_path / "f"
    os.mkfifo(place) if kind == "pipe" else place.symlink_to("/dev/zero")
    with pytest.raises(GamutError, match="expected a file, got a folder, a device or a pipe"):
        files.LineFile(place)


def test_texts_with_line_ends_of_unicode_are_read_back():
    for text in ("a\x85b", "a\u2028b", "a\x1bb"):
        assert yaml12.parse_yaml(yaml12.dump_yaml([text]), "f.yaml")[0] == [text]
        assert "\\" in yaml12.dump_yaml([text])
