"""Finds retired words: ``python tests/check_words.py`` prints file, line and replacement of each.

The words are the last table of ``docs/glossary.md``. Exit status 1 if any is found.
"""

import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
GLOSSARY = "docs/glossary.md"
CHECKED = (":(glob)*.md", "bridges", "docs", "examples", "policies", "rollout", "scripts")
SUFFIXES = {".py", ".js", ".md", ".yaml"}

# What may stand between two words of a phrase: a line break with the sign of a comment after it.
_GAP = r"(?:\s+(?:#:?\s*|//\s*|\*\s*|\|\s*)?|_)"


class Word(NamedTuple):
    """A retired word, its longest part, what to write instead, and the paths that may use it."""

    part: str
    pattern: re.Pattern
    instead: str
    allowed: tuple[str, ...]


def retired(table):
    """The words of the rows ``| retired | instead | allowed in |`` of a table."""
    for row in re.findall(r"^\|(.*)\|$", table, re.MULTILINE)[2:]:
        words, instead, allowed = (cell.strip() for cell in row.split("|"))
        for word in words.replace("`", "").split(","):
            parts = [re.escape(part).replace(r"\*", "[a-z]*") for part in word.split()]
            pattern = re.compile(rf"(?<![a-z]){_GAP.join(parts)}(?![a-z])", re.IGNORECASE)
            part = max(re.split(r"[\s*]", word.lower()), key=len)
            yield Word(part, pattern, instead, tuple(allowed.replace(",", " ").split()))


def findings(name, text, words):
    """A message for every retired word in a text."""
    lower = text.lower()  # many times as fast to search as the pattern is
    for word in words:
        if word.part in lower and not name.startswith(word.allowed or ("\0",)):
            for match in word.pattern.finditer(text):
                line = text.count("\n", 0, match.start()) + 1
                said = " ".join(match[0].split())
                yield f"{name}:{line}: '{said}' is retired; write: {word.instead}"


def checked_text(path):
    """The text of a file; of the changelog, the unreleased part only."""
    text = path.read_text()
    return re.split(r"^## \[?\d", text, flags=re.MULTILINE)[0] if path.stem == "CHANGELOG" else text


def main():
    """Prints all findings; returns the exit status."""
    words = list(retired((ROOT / GLOSSARY).read_text().partition("## Retired words")[2]))
    listed = [
        "git",
        "ls-files",
        "--cached",
        "--others",
        "--exclude-standard",
        "--",
        *CHECKED,
    ]
    names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    found = []
    for name in names.splitlines():
        path = ROOT / name
        if name != GLOSSARY and path.suffix in SUFFIXES and path.is_file():
            found += findings(name, checked_text(path), words)
    sys.stdout.write("\n".join(found or [f"{len(words)} retired words, none found"]) + "\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
