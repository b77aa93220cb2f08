"""Tables on the command line: Rich in a terminal, plain text in a pipe, never a cut name."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text


def print_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    title: str = "",
    whole: Sequence[str] = (),
) -> None:
    """Prints a table on stdout.

    Args:
        columns: headings.
        rows: one text for each column.
        title: a line above.
        whole: columns whose texts are kept on one line; the others wrap.
    """
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in columns:
        table.add_column(column, no_wrap=column in whole, overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    console = Console(soft_wrap=False)
    least = sum(
        max(len(text) for text in (column, *(row[index] for row in rows))) + 2
        for index, column in enumerate(columns)
        if column in whole
    )
    if console.width < least:
        console.width = least + 20 * (len(columns) - len(whole))
    if title:
        console.print(Text(title, style="bold"))
    console.print(table)
