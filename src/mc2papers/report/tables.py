"""Write tables with our and the printed numbers and with verdicts on claims, as CSV, Markdown, LaTeX and HTML."""

from __future__ import annotations

import html
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Any

import pandas as pd
from tabulate import tabulate

from mc2core.base import storage
from mc2papers.report.claims import COLUMNS, OPEN, OURS, PAPERS_OWN, RULE, TONES, Claim, claims_table

#: beginning of the names of columns with printed numbers
PAPER = "paper, "
#: a cell with a number: "2,322 ± 4 * †", "-17.6%", "12.3 on 2 cores"
_NUMBER = re.compile(r"[-+]?\d[\d,.]*%?( ± \d[\d,.]*)?( \*)?( †)?( on \d+ cores)?")
#: column whose repeated values become headings of groups of rows
_GROUP = "dataset"


def number(value: Any, digits: int = 0) -> str:
    """Return a number as text, such as ``"2,322"``; "" for a missing number."""
    return "" if pd.isna(value) else f"{value:,.{digits}f}"


def mean_and_sd(values: pd.Series, name: str) -> dict[str, float]:
    """Return mean and sd (n - 1) over seeds as ``name`` and ``name``_sd; NaN if there are too few values."""
    return {name: values.mean(), f"{name}_sd": values.std(ddof=1)}


def spread(row: Any, name: str, digits: int = 0) -> str:
    """Return text such as ``"2,322 ± 4"`` from the columns of :func:`mean_and_sd`, without the sd if it is missing."""
    sd = row[f"{name}_sd"]
    return number(row[name], digits) + (f" ± {number(sd, digits)}" if pd.notna(sd) else "")


def mean_sd(values: pd.Series, digits: int = 0) -> str:
    """Return mean and sd of these values as text, such as ``"2,322 ± 4"``."""
    return spread(mean_and_sd(values, "value"), "value", digits)


def by_dataset(parts: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return the tables of several datasets as one table, with the title of the dataset in the first column.

    parts : table by title
    """
    joined = pd.concat([part.assign(**{_GROUP: title}) for title, part in parts.items()], ignore_index=True)
    return joined[[_GROUP, *joined.columns.drop(_GROUP)]]


def by_whose(claims: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Group claims under headings: the papers' claims, claims under open choices, and claims on our variants.

    Empty groups are omitted. The column ``size`` is appended to the column ``data``.

    claims : COLUMNS of :mod:`mc2papers.report.claims`, and possibly other columns
    """
    claims = claims.astype(object).fillna("")  # cells that a file has empty
    size = claims["size"].astype(str)
    claims = claims.assign(data=claims["data"] + size.where(size == "", "; " + size))
    titles = {PAPERS_OWN: "claims of the papers", OPEN: "claims under open choices", OURS: "our variants"}
    parts = {title: claims[claims["whose"] == whose] for whose, title in titles.items()}
    extra = [name for name in claims if name not in COLUMNS]
    columns = [*extra, *(name for name in COLUMNS if name not in ("whose", "size", "limits"))]
    return {name: part[columns] for name, part in parts.items() if len(part)}


# -- files ---------------------------------------------------------------------------------------------------------
def write_table(
    stem: str | os.PathLike[str],
    raw: pd.DataFrame,
    shown: pd.DataFrame,
    title: str,
    notes: Sequence[str] = (),
    claims: Sequence[Claim] = (),
) -> None:
    """Write ``stem``.csv (``raw``) and .md, .tex and .html (``shown``, claims, notes), each by an atomic replacement.

    Columns of ``shown`` whose names begin with PAPER are moved to the right; in HTML, a vertical line separates them.
    Their numbers come from other data or another machine. A note below the claims explains how claims are judged.
    """
    stem = Path(stem)
    printed = [name for name in shown if str(name).startswith(PAPER)]
    shown = shown[[name for name in shown if name not in printed] + printed]
    tables = [*by_whose(shown).values()] if "whose" in shown and len(shown) else [shown]
    tables += by_whose(claims_table(claims)).values() if claims else []
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
        tones = "\n".join(f'[data-verdict="{verdict}"] {{ --tone: {tone}; }}' for verdict, tone in TONES.items())
        page = {"title": html.escape(title), "tables": "\n".join(map(_html, tables)), "notes": listed, "tones": tones}
        template = Path(__file__).with_name("assets").joinpath("table.html").read_text(encoding="utf-8")
        stream.write(Template(template).substitute(page))


def _html(table: pd.DataFrame) -> str:
    """Return a table as HTML.

    Numbers are right-aligned, the rows of a dataset have a common heading, and verdicts have their colours.
    """
    is_claims = "verdict" in table
    groups = table[_GROUP] if _GROUP in table and not is_claims and table[_GROUP].nunique() < len(table) else None
    columns = [str(name) for name in table if groups is None or name != _GROUP]
    first = next((name for name in columns if name.startswith(PAPER)), None)  # a line before it
    is_number = {name: _is_number(table[name]) for name in columns}

    def cell(tag: str, name: str, text: Any) -> str:
        kinds = " ".join(kind for kind, has in (("number", is_number[name]), ("paper", name == first)) if has)
        content = html.escape(str(text))
        if is_number[name] and tag == "td":
            content = content.replace("-", "\N{MINUS SIGN}")
        kind = f' class="{kinds}"' if kinds else ""
        return f"<{tag}{kind}>{content}</{tag}>"

    lines, group = [], None
    for index, (_, row) in enumerate(table.iterrows()):
        if groups is not None and groups.iloc[index] != group:
            group = groups.iloc[index]
            lines.append(f'<tr><th class="group" colspan="{len(columns)}">{html.escape(str(group))}</th></tr>')
        verdict = f' data-verdict="{row["verdict"]}"' if is_claims else ""
        lines.append(f"<tr{verdict}>{''.join(cell('td', name, row[name]) for name in columns)}</tr>")
    head = "".join(cell("th", name, name) for name in columns)
    kind = ' class="claims"' if is_claims else ""
    body = f"<table{kind}><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"
    return f'<div class="scroll">{body}</div>'


def _is_number(column: pd.Series) -> bool:
    """Return whether a column has at least one number and no other text."""
    cells = [str(one) for one in column if one]
    return bool(cells) and all(_NUMBER.fullmatch(one) for one in cells)
