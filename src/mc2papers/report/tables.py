"""Tables: ours beside the paper's, with the claims the numbers bear out or not, as CSV, Markdown, LaTeX and HTML."""

from __future__ import annotations

import html
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from tabulate import tabulate

from mc2core.base import storage
from mc2papers.report.claims import RULE, Claim, claims_table

#: how the names of columns begin that hold what a paper prints
PAPER = "paper, "
#: a cell of numbers, which stays in one line: "2,322 ± 4 * †", "(19, 61)"
_NUMBERS = re.compile(r"<td>([-+(]?[\d-][-\d(),.%±*† ]*?) *</td>")


def number(value: Any, digits: int = 0) -> str:
    """``"2,322"``; "" where there is none."""
    return "" if pd.isna(value) else f"{value:,.{digits}f}"


def mean_and_sd(values: pd.Series, name: str) -> dict[str, float]:
    """Columns ``name`` and ``name``_sd of a row: mean and sd (n - 1) over seeds; NaN where there are too few values."""
    return {name: values.mean(), f"{name}_sd": values.std(ddof=1)}


def spread(row: Any, name: str, digits: int = 0) -> str:
    """``"2,322 ± 4"`` from the columns of :func:`mean_and_sd`; the sd is left out where there is none."""
    sd = row[f"{name}_sd"]
    return number(row[name], digits) + (f" ± {number(sd, digits)}" if pd.notna(sd) else "")


def mean_sd(values: pd.Series, digits: int = 0) -> str:
    """``"2,322 ± 4"`` of the values themselves."""
    return spread(mean_and_sd(values, "value"), "value", digits)


# -- files ---------------------------------------------------------------------------------------------------------
def write_table(
    stem: str | os.PathLike[str],
    raw: pd.DataFrame,
    shown: pd.DataFrame,
    title: str,
    notes: Sequence[str] = (),
    claims: Sequence[Claim] = (),
) -> None:
    """Write ``stem``.csv (``raw``) and .md, .tex and .html (``shown``, claims and notes), each whole or not at all.

    Columns of ``shown`` that begin with PAPER are a group of their own on the right, behind a line in the HTML: what a
    paper prints is of other data or another machine. Claims come with a note on how they are judged.
    """
    stem = Path(stem)
    printed = [name for name in shown if str(name).startswith(PAPER)]
    shown = shown[[name for name in shown if name not in printed] + printed]
    tables = [shown, claims_table(claims)] if claims else [shown]
    notes = [*notes, RULE] if claims else notes

    def rendered(style: str) -> str:
        return "\n\n".join(
            tabulate(table.to_dict("list"), headers="keys", tablefmt=style, disable_numparse=True) for table in tables
        )

    with storage.replacing(stem.with_suffix(".csv")) as stream:
        raw.to_csv(stream, index=False)
    lines = "".join(f"\n- {note}" for note in notes)
    with storage.replacing(stem.with_suffix(".md")) as stream:
        stream.write(f"# {title}\n\n{rendered('github')}\n{lines}\n")
    with storage.replacing(stem.with_suffix(".tex")) as stream:
        comments = "".join(f"% {note}\n" for note in (title, *notes))
        stream.write(f"{comments}{rendered('latex_booktabs')}\n")
    with storage.replacing(stem.with_suffix(".html")) as stream:
        listed = "".join(f"<li>{html.escape(note)}</li>" for note in notes)
        groups = f'<colgroup span="{len(shown.columns) - len(printed)}"></colgroup>'
        groups += f'<colgroup class="paper" span="{len(printed)}"></colgroup>' if printed else ""
        cells = _NUMBERS.sub(lambda found: f"<td>{found[1].replace(' ', '&nbsp;')}</td>", rendered("html"))
        cells = cells.replace("<table>", f"<table>{groups}", 1)
        stream.write(_PAGE.format(title=html.escape(title), tables=cells, notes=listed))


_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>{title}</title>
<style>
body {{ font: 14px/1.4 sans-serif; margin: 1.5em; color: #111; background: #fff; }}
table {{ border-collapse: collapse; margin: 1em 0; }}
th, td {{ padding: 0.25em 0.7em; text-align: left !important; white-space: nowrap; }}
thead {{ border-bottom: 1.5px solid #111; border-top: 1.5px solid #111; }}
tbody {{ border-bottom: 1.5px solid #111; }}
colgroup.paper {{ border-left: 1.5px solid #111; }}
tbody tr:nth-child(even) {{ background: #f5f5f5; }}
li {{ max-width: 60em; }}
</style>
</head>
<body>
<h1 style="font-size: 1.2em">{title}</h1>
{tables}
<ul>{notes}</ul>
</body>
</html>
"""
