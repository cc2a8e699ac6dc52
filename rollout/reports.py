"""Reports in Markdown, pages in HTML: templates with their text, and the one writer of tables."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from rollout.signals import shown

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATES = Path(__file__).parent / "templates" / "reports"


def render(template: str, **values: object) -> str:
    """Returns a report as a terminal may get it, see ``rollout.signals.shown``.

    Args:
        template: the name of a file in ``TEMPLATES``, without ``.md.jinja``.
        values: the variables of the template.
    """
    return shown(_environment().get_template(f"{template}.md.jinja").render(values))


def render_page(template: str, **values: object) -> Iterator[str]:
    """Yields the text of an HTML page.

    Args:
        template: the name of a file in ``templates/view``, without ``.html.jinja``.
        values: the variables of the template; what it does not mark as safe is escaped.
    """
    return _environment().get_template(f"{template}.html.jinja").generate(values)


@cache
def _environment() -> Environment:
    from jinja2 import (  # noqa: PLC0415 - slow to load
        Environment,
        FileSystemLoader,
        StrictUndefined,
        select_autoescape,
    )

    environment = Environment(
        loader=FileSystemLoader([TEMPLATES, TEMPLATES.parent / "view"]),
        autoescape=select_autoescape(("html.jinja",), default=False),  # Markdown is not escaped
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["json"] = json.dumps
    environment.filters["python"] = repr
    return environment


def table(
    header: Iterable[object], rows: Iterable[Iterable[object]], *, align: bool = False
) -> str:
    """Returns a table without the last line end. Texts of others cannot end a cell or a row.

    Args:
        header: the names of the columns.
        rows: the cells, as many in each row.
        align: align columns that contain only numbers and estimates to the right.
    """
    names, *cells = [[_cell(each) for each in line] for line in (header, *rows)]
    rules = [_rule([row[i] for row in cells] if align else []) for i in range(len(names))]
    return "\n".join(f"| {' | '.join(line)} |" for line in (names, rules, *cells))


def _cell(value: object) -> str:
    return " ".join(str(value).replace("|", "\\|").split())


def _rule(column: list[str]) -> str:
    numbers = column and all(each[:1] in "-+" or each[0].isdigit() for each in column)
    return "--:" if numbers else "---"
