"""What README, docs and docstrings name exists: files, modules, names in them, keys, targets."""

import importlib
import inspect
import re
from functools import cache
from pathlib import Path

import pytest
from pydantic import BaseModel

from rollout.config import CollectConfig, PluginConfig
from rollout.configuration.plugins import options_of
from rollout.evaluate.config import EvaluateConfig
from rollout.registry import names
from rollout.sweep.config import SweepConfig
from rollout.train.config import TrainConfig
from rollout.train.language.config import FineTuneConfig, PlayGroupsConfig
from rollout.train.search_config import SearchConfig

ROOT = Path(__file__).parents[1]
DOCS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
SOURCES = sorted(p for p in (ROOT / "rollout").rglob("*.py"))
FOLDERS = (
    *("rollout", "policies", "bridges", "scripts", "configs", "docs", "tests", "benchmarks"),
    "examples",
)
MODELS = (CollectConfig, TrainConfig, EvaluateConfig, SweepConfig, SearchConfig)
MODELS += (FineTuneConfig, PlayGroupsConfig)

PATH = re.compile(rf"(?<![\w./-])(?:{'|'.join(FOLDERS)})/[\w./*{{}},-]*[\w*/}}]")
MODULE = re.compile(r"(?<![\w./-])(?:rollout|policies|bridges|benchmarks)(?:\.\w+)+")
KEY = re.compile(r"(?<![\w./-])[a-z][a-z_]*(?:\.[a-z][a-z_]*)+(?=[=`: ])")
SUFFIXES = ("json", "jsonl", "parquet", "py", "yaml", "md")
LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)#\s]+)")
TARGET = re.compile(r"`make ([a-z]+)`")

# Made by runs, by games or by the user; not part of the repository.
MADE = re.compile(
    r"node_modules|\.cache|runs/|<|configs/local|docs/reference|bridges/my|policies/my"
)


def code_of(text):
    """What stands in backticks or in blocks of code."""
    blocks = re.findall(r"```.*?```", text, re.DOTALL)
    rest = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    return [*blocks, *re.findall(r"`[^`]+`", rest)]


def exists(path):
    first = re.sub(r"\{([^,}]*)[^}]*\}", r"\1", path).rstrip("/")
    return any(ROOT.glob(first)) if "*" in first else (ROOT / first).exists()


def known(name):
    """Whether a dotted name is a module, or something in one."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        place = ROOT.joinpath(*parts[:length])
        file = (
            place.with_suffix(".py") if place.with_suffix(".py").exists() else place / "__init__.py"
        )
        if length == len(parts) and place.is_dir():
            return True
        if file.exists():
            rest = parts[length:]
            return not rest or re.search(rf"\b{rest[0]}\b", file.read_text()) is not None
    return False


@cache
def fields_of(model):
    return model.model_fields


def has_key(model, parts):
    if not parts:
        return True
    if isinstance(model, type) and issubclass(model, PluginConfig):
        group = model.group
        models = [options_of(group, name) for name in names(group)]
        options = {field.alias for each in models for field in each.model_fields.values()}
        return parts[0] in {*options, "name"}
    if not (isinstance(model, type) and issubclass(model, BaseModel)):
        return True  # a mapping with arbitrary keys
    field = fields_of(model).get(parts[0])
    if field is None:
        return False
    inner = [field.annotation, *getattr(field.annotation, "__args__", ())]
    sections = [a for a in inner if isinstance(a, type) and issubclass(a, BaseModel)]
    return any(has_key(section, parts[1:]) for section in sections) if sections else True


SECTIONS = {
    name
    for model in MODELS
    for name, field in fields_of(model).items()
    for kind in (field.annotation, *getattr(field.annotation, "__args__", ()))
    if isinstance(kind, type) and issubclass(kind, BaseModel) and name != "ray"  # also a library
}


def missing_in(text, code, folder):
    for target in LINK.findall(text):
        if not (folder / target).exists():
            yield f"link {target}"
    for each in code:
        for path in PATH.findall(each):
            if not MADE.search(path) and not exists(path):
                yield f"path {path}"
        for name in MODULE.findall(each):
            if not known(name):
                yield f"module {name}"
        for key in KEY.findall(each):
            parts = key.split(".")
            if (
                parts[0] in SECTIONS
                and parts[-1] not in SUFFIXES
                and not any(has_key(model, parts) for model in MODELS)
            ):
                yield f"key {key}"
        for target in TARGET.findall(each):
            if f"\n{target}:" not in (ROOT / "Makefile").read_text():
                yield f"target {target}"


@pytest.mark.parametrize("path", DOCS, ids=lambda path: path.name)
def test_what_the_docs_name_exists(path):
    text = path.read_text()
    assert not sorted(set(missing_in(text, code_of(text), path.parent)))


def test_what_docstrings_name_exists():
    found = {}
    for path in SOURCES:
        text = path.read_text()
        names_ = [n for each in re.findall(r"``[^`]+``", text) for n in MODULE.findall(each)]
        paths = [p for each in re.findall(r"``[^`]+``", text) for p in PATH.findall(each)]
        gone = [n for n in names_ if not known(n)]
        gone += [p for p in paths if not MADE.search(p) and not exists(p)]
        if gone:
            found[path.relative_to(ROOT).as_posix()] = gone
    assert not found


def test_every_page_is_in_the_table_of_contents():
    contents = (ROOT / "docs" / "index.md").read_text()
    listed = [
        line
        for each in re.findall(r"```{toctree}\n(.*?)```", contents, re.DOTALL)
        for line in each.splitlines()
        if re.fullmatch(r"[\w/-]+", line)
    ]
    pages = {
        p.relative_to(ROOT / "docs").with_suffix("").as_posix()
        for p in (ROOT / "docs").rglob("*.md")
    }
    assert sorted(listed) == sorted(pages - {"index"})


@pytest.mark.parametrize("name", ["api", "data", "testing"])
def test_the_reference_names_every_constant(name):
    """Sphinx finds classes and functions by itself; what is neither stands in the page."""
    package = importlib.import_module(f"rollout.{name}")
    page = (ROOT / "docs" / "reference" / f"{name}.md").read_text()
    listed = {path.rpartition(".")[2] for path in re.findall(r"autodata:: (\S+)", page)}
    values = {each: getattr(package, each) for each in package.__all__}
    assert listed == {
        each
        for each, value in values.items()
        if not (inspect.isclass(value) or inspect.isfunction(value))
    }


def test_there_is_one_quick_start():
    texts = [(ROOT / page).read_text() for page in ("README.md", "docs/index.md")]
    first, second = (re.search(r"```\nmake setup\n.*?```", text, re.DOTALL)[0] for text in texts)
    assert first == second


def test_no_page_installs_another_project():
    """``gamut`` on the package index is another project."""
    told = re.compile(r"pip install [^\n`]*gamut(\[|['\"`\s])")
    wrong = [page.name for page in DOCS if told.search(page.read_text())]
    assert not wrong, "say pip install -c constraints.txt -e '.[EXTRA]'"
