"""Reports in Markdown: the one writer of tables."""

from __future__ import annotations

from collections.abc import Iterable


def table(
    header: Iterable[object], rows: Iterable[Iterable[object]], *, align: bool = False
) -> str:
    """Returns a table without the last line end. Texts of others cannot end a cell or a row.

    Args:
        header: the names of the columns.
        rows: the cells, as many in each row.
        align: whether columns that contain only numbers and estimates are aligned to the right.
    """
    names, *cells = [[_cell(each) for each in line] for line in (header, *rows)]
    rules = [_rule([row[i] for row in cells] if align else []) for i in range(len(names))]
    return "\n".join(f"| {' | '.join(line)} |" for line in (names, rules, *cells))


def _cell(value: object) -> str:
    return " ".join(str(value).replace("|", "\\|").split())


def _rule(column: list[str]) -> str:
    numbers = column and all(each[:1] in "-+" or each[0].isdigit() for each in column)
    return "--:" if numbers else "---"
