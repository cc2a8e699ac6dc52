"""The check of retired words finds them in prose, comments and names, and nowhere else."""

import pytest

from tests.check_words import GLOSSARY, ROOT, checked_text, findings, retired

TABLE = """
| retired | write instead | allowed in |
|---|---|---|
| `boot`, boots | launch | bridges/ |
| let go* of | release | |
"""
WORDS = list(retired(TABLE))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("x\nAll Boots.", 2),
        ("host.max_boots = 1", 1),
        ("a key is let\n    # go of", 1),
        ("letgoof\nlet\n * going of", 2),
    ],
)
def test_a_retired_word_is_found_with_its_line_and_replacement(text, line):
    (found,) = findings("rollout/x.py", text, WORDS)
    assert found.startswith(f"rollout/x.py:{line}: '")
    assert found.endswith(("launch", "release"))


@pytest.mark.parametrize("text", ["reboot", "bootstrap", "let it go of", "letgo of"])
def test_other_words_are_not(text):
    assert not list(findings("rollout/x.py", text, WORDS))


def test_a_word_is_allowed_where_the_table_says():
    assert not list(findings("bridges/x.py", "boots", WORDS))


def test_the_glossary_has_retired_words_and_only_the_unreleased_changes_are_checked(tmp_path):
    assert len(list(retired((ROOT / GLOSSARY).read_text().partition("## Retired words")[2]))) > 10
    (tmp_path / "CHANGELOG.md").write_text("## Unreleased\nnew\n## 0.1.0\nold\n")
    assert checked_text(tmp_path / "CHANGELOG.md") == "## Unreleased\nnew\n"
