"""The page about the format names what the code writes: files, keys, columns, codecs."""

import re
from dataclasses import fields
from pathlib import Path

import pytest
from store_fragments import make_manifest, make_spec, stacked_spec

from rollout.api import Call
from rollout.data import Layout, Manifest
from rollout.data.codec import parse_codec
from rollout.data.episodes import INDEX_SCHEMA
from rollout.data.journal import LOSSES_KEY as JOURNAL_LOSSES
from rollout.data.manifest import FORMATS, METADATA_KEY
from rollout.data.message import NOTE_KEY
from rollout.data.roll import OPEN_KEY
from rollout.data.schema import IDENTITY, RESULT
from rollout.data.shard import LOSSES_KEY

PAGE = (Path(__file__).parents[3] / "docs" / "dataset-format.md").read_text()


def tables():
    """The rows of each table, by its heading and the first cells."""
    found, heading = {}, ""
    for part in re.split(r"\n\n|\n(?=#)", PAGE):
        heading = part.splitlines()[0].lstrip("# ") if part.startswith("#") else heading
        rows = [line[1:-1].split("|") for line in part.splitlines() if line.startswith("|")]
        rows = [[cell.strip() for cell in row] for row in rows]
        if rows:
            found.setdefault(heading, []).append(rows[2:])
    return found


TABLES = tables()


def names_of(rows):
    return [row[0].strip("`") for row in rows]


@pytest.mark.parametrize(("place", "columns"), [(0, IDENTITY), (2, RESULT)])
def test_the_columns_of_steps_are_those_of_the_schema(place, columns):
    expected = [[f"`{c.name}`", str(c.arrow_type), c.unit, c.doc] for c in columns]
    assert TABLES["Steps"][place] == expected


def test_every_other_column_has_its_kind_in_the_page():
    kinds = {re.sub("KEY", ".+", name) for rows in TABLES["Steps"][1::2] for name in names_of(rows)}
    known = {column.name for column in (*IDENTITY, *RESULT)}
    columns = [
        c for s in (make_spec(), stacked_spec()) for c in make_manifest(s, details=True).stored
    ]
    others = [column.name for column in columns if column.name not in known]
    assert others
    for name in others:
        assert any(re.fullmatch(f"{kind}|{kind.partition('/')[0]}", name) for kind in kinds), name


def test_the_index_of_episodes_is_that_of_the_schema():
    expected = []
    for field in INDEX_SCHEMA:
        kind = str(field.type)
        if field.name == "pieces":
            kind = "list of struct(shard int32, row_start int64, rows int64)"
        about = {key.decode(): value.decode() for key, value in field.metadata.items()}
        expected.append([f"`{field.name}`", kind, about["unit"], about["doc"]])
    assert TABLES["Episodes"] == [expected]


def test_the_keys_of_the_description_and_of_calls():
    keys = ["format", *(field.name for field in fields(Manifest)), "columns"]
    assert names_of(TABLES["dataset.json"][0]) == keys
    assert f"version of the format: {FORMATS[0]}, or {FORMATS[1]} with" in PAGE
    calls = ["try" if field.name == "number" else field.name for field in fields(Call)]
    assert names_of(TABLES["Calls, tokens and cost"][0]) == calls


def test_the_metadata_of_a_field():
    column = make_manifest(stacked_spec()).frame_stacks["observation/first"].newest
    described = PAGE.partition("The metadata of each field has")[2].partition(".")[0]
    named = set(re.findall("`([a-z]+)`", described))
    assert {key.decode() for key in column.field().metadata} <= named


def test_codecs_and_files(tmp_path):
    for name in names_of(TABLES["Type, shape and codec of a column"][0]):
        codec = parse_codec(re.sub(":[A-Z]+$", ":9", name))
        assert str(codec).startswith(name.partition(":")[0])
    layout = Layout(tmp_path)
    paths = [layout.manifest, layout.card, layout.lock, layout.quarantine]
    paths += [layout.file(folder, 0) for folder in layout.folders]
    written = {layout.name(path).replace("000000", "NNNNNN") for path in paths}
    assert {name.rstrip("/") for name in names_of(TABLES["Files"][0])} == written
    for key in (METADATA_KEY, OPEN_KEY, LOSSES_KEY, JOURNAL_LOSSES, NOTE_KEY):
        assert f"`{key}`" in PAGE
