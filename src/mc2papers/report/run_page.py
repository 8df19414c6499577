"""The page of a run: one self-contained file with the verdicts on top, then every table and figure."""

from __future__ import annotations

import base64
import html
import os
import re
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import pandas as pd

from mc2core.base import pages, storage
from mc2core.base.provenance import environment
from mc2papers.report.claims import RULE, VERDICTS
from mc2papers.targets import PAPERS

_TABLES = re.compile(r"(<table>.*)</body>", re.S)


def write_run_page(
    path: str | os.PathLike[str],
    entries: Sequence[Mapping[str, Any]],
    claims: pd.DataFrame,
    about: Sequence[str],
    own: Mapping[str, tuple[str, str]],
) -> None:
    """Write the page of a run.

    Parameters
    ----------
    path : the page; links to data are relative to its folder
    entries : for each table and figure: ``name``, ``paper`` (of PAPERS), ``title``, ``caption`` (reStructuredText),
        ``files`` (paths by suffix, the shown one first), ``runs`` (sentences on the fits behind it, what each found
        among them)
    claims : columns target and those of :data:`mc2papers.report.claims.COLUMNS`
    about : sentences on the run, below the heading
    own : title of each page of an own corpus: its path, and a sentence on what the fit found

    ValueError for a verdict that is none, and for a table whose file holds no table.
    """
    path = Path(path)
    unknown = sorted(set(claims["verdict"]) - set(VERDICTS))
    if unknown:
        raise ValueError(f"the verdict {unknown[0]!r} is none; it must be one of {', '.join(VERDICTS)}")
    parts = [
        f"<header><h1>Three papers, reproduced</h1>{''.join(f'<p>{html.escape(one)}</p>' for one in about)}</header>",
        "<main>",
        _own(own, path.parent),
        _claims(claims, entries),
        *(_paper(paper, entries, path.parent) for paper in PAPERS),
        _made(),
        "</main>",
    ]
    with storage.replacing(path) as stream:
        stream.write(
            pages.page("What came out of this run", "\n".join(parts), _asset("run_page.css"), [_asset("run_page.js")])
        )


def _asset(name: str) -> str:
    return resources.files("mc2papers.report").joinpath("assets", name).read_text(encoding="utf-8")


def _own(own: Mapping[str, tuple[str, str]], folder: Path) -> str:
    lines = "".join(
        f'<li><a href="{html.escape(os.path.relpath(path, folder))}">{html.escape(title)}</a> {html.escape(found)}</li>'
        for title, (path, found) in own.items()
    )
    return f"<section><h2>Your own corpus</h2><ul>{lines}</ul></section>" if lines else ""


def _claims(claims: pd.DataFrame, entries: Sequence[Mapping[str, Any]]) -> str:
    """Every claim, by verdict; a press of a button leaves those of one verdict."""
    counts = claims["verdict"].value_counts()
    buttons = "".join(
        f'<button type="button" aria-pressed="false" data-verdict="{one}">{_counted(one, counts.get(one, 0))}</button>'
        for one in VERDICTS
    )
    known = {entry["name"] for entry in entries}
    rows = []
    for verdict in VERDICTS:
        for row in claims[claims["verdict"] == verdict].fillna("").itertuples():
            name = html.escape(str(row.target))
            where = f'<a href="#{name}">{name}</a>' if row.target in known else name
            cells = "".join(
                f"<td>{html.escape(str(one))}</td>" for one in (row.dataset, row.data, row.claim, row.numbers)
            )
            mark = f'<td><span class="verdict">{verdict}</span></td>'
            rows.append(f'<tr data-verdict="{verdict}">{mark}<td>{where}</td>{cells}</tr>')
    table = (
        '<div class="scroll"><table id="claims"><thead><tr><th>verdict</th><th>table or figure</th><th>dataset</th>'
        f"<th>data</th><th>claim</th><th>our numbers</th></tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )
    empty = "<p>No table or figure of this run has claims.</p>"
    return (
        f'<section><h2>What the numbers say of the papers\' claims</h2><p class="row">{buttons}</p>'
        f'{table if rows else empty}<p class="soft">{html.escape(RULE)}</p>'
        '<p class="soft">As data: <a href="claims.csv">csv</a></p></section>'
    )


def _counted(verdict: str, count: int) -> str:
    """ "3 hold"."""
    return f"{count} {verdict if count == 1 else VERDICTS[verdict]}"


def _paper(paper: str, entries: Sequence[Mapping[str, Any]], folder: Path) -> str:
    own = [_entry(entry, folder) for entry in entries if entry["paper"] == paper]
    return f"<h2>{html.escape(PAPERS[paper])}</h2>{''.join(own)}" if own else ""


def _entry(entry: Mapping[str, Any], folder: Path) -> str:
    files = {kind: Path(path) for kind, path in entry["files"].items()}
    title = html.escape(entry["title"])
    if "png" in files:
        picture = base64.b64encode(files["png"].read_bytes()).decode("ascii")
        shown = f'<img alt="{title}" src="data:image/png;base64,{picture}">'
    else:
        found = _TABLES.search(files["html"].read_text(encoding="utf-8"))
        if found is None:
            raise ValueError(f"{files['html']} holds no table")
        shown = f'<div class="scroll">{found[1]}</div>'
    links = ", ".join(
        f'<a href="{html.escape(os.path.relpath(path, folder))}">{html.escape(kind)}</a>'
        for kind, path in files.items()
    )
    runs = "".join(f"<li>{html.escape(one)}</li>" for one in entry["runs"])
    behind = (
        f"<details><summary>Fits behind it ({len(entry['runs'])})</summary><ul>{runs}</ul></details>" if runs else ""
    )
    caption = f'<div class="caption">{_rst(entry["caption"])}</div>'
    data = f'<p class="soft">As data: {links}</p>'
    return f'<section id="{html.escape(entry["name"])}"><h3>{title}</h3>{shown}{caption}{behind}{data}</section>'


def _rst(text: str) -> str:
    """reStructuredText as HTML; nothing in it reads files or passes markup through."""
    from docutils.core import publish_parts

    settings = {"raw_enabled": False, "file_insertion_enabled": False, "report_level": 5}
    return publish_parts(text, writer="html5", settings_overrides=settings)["body"]


def _made() -> str:
    """Versions and commit of what wrote the page."""
    known = environment()
    versions = ", ".join(f"{name} {version}" for name, version in known["versions"].items())
    commit = known["git_commit"] or "not known"
    return f'<p class="soft">Made by {html.escape(versions)}; commit {html.escape(commit)}.</p>'
