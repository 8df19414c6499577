"""Tables: ours beside the paper's, with the claims the numbers bear out or not, as CSV, Markdown, LaTeX and HTML."""

from __future__ import annotations

import html
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from tabulate import tabulate

from mc2core.base import storage
from mc2core.experiments.report.claims import CLAIM_COLUMNS


def mean_sd(values: Sequence[float], digits: int = 0) -> str:
    """``"2,322 ± 4"``: mean and sd (n - 1) over seeds; the sd is left out where there is one value."""
    mean = f"{np.mean(values):,.{digits}f}"
    return f"{mean} ± {np.std(values, ddof=1):,.{digits}f}" if len(values) > 1 else mean


def number(value: Any, digits: int = 0) -> str:
    """``"2,322"``; "" where there is none."""
    return "" if pd.isna(value) else f"{value:,.{digits}f}"


def spread(row: Any, name: str, digits: int = 0) -> str:
    """``"2,322 ± 4"`` from the columns ``name`` and ``name``_sd of a row; the sd is left out where there is none."""
    sd = row[f"{name}_sd"]
    return number(row[name], digits) + (f" ± {sd:,.{digits}f}" if pd.notna(sd) else "")


# -- files ---------------------------------------------------------------------------------------------------------
def write_table(
    stem: str | os.PathLike[str],
    raw: pd.DataFrame,
    shown: pd.DataFrame,
    title: str,
    notes: Sequence[str] = (),
    claims: Sequence[Mapping[str, str]] = (),
) -> None:
    """Write ``stem``.csv (``raw``) and .md, .tex and .html (``shown``, claims and notes), each whole or not at all."""
    stem = Path(stem)
    judged = pd.DataFrame(claims, columns=CLAIM_COLUMNS)[["dataset", "claim", "verdict", "numbers"]]
    tables = [shown, judged] if len(judged) else [shown]

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
        stream.write(_PAGE.format(title=html.escape(title), tables=rendered("html"), notes=listed))


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
