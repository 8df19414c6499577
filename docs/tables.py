"""The directive ``data-table``: columns of a CSV file as a table that ``_static/filter.js`` lets readers filter."""

from __future__ import annotations

import csv
import html
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


def cells(path: Path, columns: str) -> list[list[str]]:
    """Header and rows of a CSV file; ``columns`` are separated by commas, and ``a + b`` puts two into one."""
    with open(path, encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    names = [[part.strip() for part in one.split("+")] for one in columns.split(",")]
    body = [["; ".join(filter(None, (row[part] for part in parts))) for parts in names] for row in rows]
    return [[", ".join(parts) for parts in names], *body]


class DataTable(SphinxDirective):
    """``.. data-table:: FILE`` with the option ``columns``."""

    required_arguments = 1
    option_spec = {"columns": directives.unchanged_required}  # noqa: RUF012

    def run(self) -> list[nodes.Node]:
        _, path = self.env.relfn2path(self.arguments[0])
        self.env.note_dependency(path)
        head, *body = cells(Path(path), self.options["columns"])
        lines = ["".join(f"<td>{html.escape(one)}</td>" for one in row) for row in body]
        table = (
            f"<thead><tr>{''.join(f'<th>{html.escape(one)}</th>' for one in head)}</tr></thead>"
            f"<tbody>{''.join(f'<tr>{line}</tr>' for line in lines)}</tbody>"
        )
        made = f'<div class="table-wrapper"><table class="filtered">{table}</table></div>'
        return [nodes.raw("", made, format="html")]


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("data-table", DataTable)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
