"""Reports in Markdown, pages in HTML: templates with their text, and the one writer of tables."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

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


def html_table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> dict[str, Any]:
    """Returns a table for the macro ``table`` of ``marks.html.jinja``.

    Args:
        columns: their names.
        rows: the cells: texts, numbers or what ``marked`` returns. Columns of numbers only are
            aligned to the right.
    """
    plain = [[_cell(each) for each in row] for row in rows]
    numbers = {i for i in range(len(columns)) if _rule([row[i] for row in plain]) != "---"}
    marks = {i for row in rows for i, each in enumerate(row) if isinstance(each, Mapping)}
    return {"columns": columns, "rows": rows, "numbers": numbers - marks}


def marked(estimates: Sequence[Mapping[str, Any]], *, zero: bool = False) -> list[dict[str, Any]]:
    """Returns the cells of estimates, each with the places of its interval on a common scale.

    Args:
        estimates: each with ``text``, ``point``, ``low`` and ``high``, which may be None.
        zero: whether the scale has a mark at zero.

    Returns:
        ``text``, and ``mark`` with ``point``, ``low``, ``high`` and ``zero`` from 0 to 100; None
        for one without a point.
    """
    ends = [e[k] for e in estimates for k in ("low", "point", "high") if e[k] is not None]
    ends += [0.0] * zero
    least, most = min(ends, default=0.0), max(ends, default=0.0)

    def place(value: float | None) -> float | None:
        if value is None:
            return None
        return round(3 + 94 * (value - least) / (most - least), 2) if most > least else 50.0

    return [
        {
            "text": each["text"],
            "mark": None
            if each["point"] is None
            else {k: place(each[k]) for k in ("low", "point", "high")}
            | {"zero": place(0.0) if zero else None},
        }
        for each in estimates
    ]


def _cell(value: object) -> str:
    return " ".join(str(value).replace("|", "\\|").split())


def _rule(column: list[str]) -> str:
    numbers = column and all(each[:1] in "-+" or each[0].isdigit() for each in column)
    return "--:" if numbers else "---"
