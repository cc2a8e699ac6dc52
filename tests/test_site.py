"""The documentation builds as a site: no warnings, every page and every public name on it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import rollout.api
import rollout.data
import rollout.testing

pytestmark = pytest.mark.long

DOCS = Path(__file__).parents[1] / "docs"


def build(source, site):
    flags = ["-W", "--keep-going", "-q", "-d", str(site.with_name("doctrees"))]
    return subprocess.run(
        [sys.executable, "-m", "sphinx", *flags, str(source), str(site)],
        cwd=DOCS.parent,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    site = tmp_path_factory.mktemp("site") / "html"
    run = build(DOCS, site)
    assert run.returncode == 0, run.stderr
    return site


def test_the_start_page_links_to_every_page(site):
    links = set(re.findall(r'href="([^"#]+)\.html', (site / "index.html").read_text()))
    pages = {p.relative_to(DOCS).with_suffix("").as_posix() for p in DOCS.rglob("*.md")}
    assert not pages - {"index"} - links


def test_no_page_loads_anything_from_elsewhere(site):
    loads = re.compile(r'<(?:link|script|img)[^>]+(?:href|src)="(?:https?:)?//[^"]*')
    assert not {
        p.name: loads.findall(p.read_text())
        for p in site.rglob("*.html")
        if loads.search(p.read_text())
    }


@pytest.mark.parametrize("package", [rollout.api, rollout.data, rollout.testing])
def test_the_reference_has_every_public_name(site, package):
    text = (site / "reference" / f"{package.__name__.split('.')[1]}.html").read_text()
    documented = set(re.findall(rf'id="{re.escape(package.__name__)}\.(?:\w+\.)?(\w+)"', text))
    assert not set(package.__all__) - documented


def test_the_reference_describes_options(site):
    text = (site / "reference" / "evaluators.html").read_text()
    assert "multiplies every reward" in text  # written in ``option`` only


def test_signatures_are_as_written(site):
    text = "".join(p.read_text() for p in (site / "reference").glob("*.html"))
    assert "Columns" in text
    assert not re.findall(r"&lt;factory&gt;|TypeAliasForwardRef", text)


def test_no_sentence_is_taken_for_a_type(site):
    """In the docstring of an attribute, ``TYPE: TEXT`` is a type: write no colon there."""
    assert not [p.name for p in site.rglob("*.html") if ">Type<" in p.read_text()]


def test_files_outside_the_pages_are_named(site):
    text = (site / "training.html").read_text()
    assert "rollout/api/algorithm.py" in text
    assert "../rollout" not in text
    assert not (site / "_downloads").exists()


def test_a_broken_link_fails_the_build(tmp_path):
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "conf.py").write_text((DOCS / "conf.py").read_text())
    (tmp_path / "source" / "index.md").write_text("# Page\n\n[nowhere](gone.md)\n")
    run = build(tmp_path / "source", tmp_path / "html")
    assert run.returncode != 0
    assert "gone.md" in run.stderr
