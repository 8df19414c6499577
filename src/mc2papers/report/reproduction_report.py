"""The reproduction report: one self-contained file, a gallery of all tables and figures, each of which opens to the
rest."""

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
from mc2papers.report import jobs
from mc2papers.report.claims import RULE, VERDICTS
from mc2papers.targets import PAPERS

_TABLES = re.compile(r"(<table>.*)</body>", re.S)
_ROWS_OF_A_THUMBNAIL = 8


def write_reproduction_report(
    path: str | os.PathLike[str],
    entries: Sequence[Mapping[str, Any]],
    claims: pd.DataFrame,
    about: Sequence[str],
    own: Mapping[str, tuple[str, str]],
    ran: Sequence[jobs.Job] = (),
) -> None:
    """Write The reproduction report: pictures first, one line of verdicts each, everything else folded.

    Parameters
    ----------
    path : the HTML file; links to data are relative to its folder
    entries : for each table and figure: ``name``, ``paper`` (of PAPERS), ``title``, ``caption`` (reStructuredText),
        ``files`` (paths by suffix, the shown one first), ``runs`` (sentences on the fits behind it, what each found
        among them)
    claims : columns target and those of :data:`mc2papers.report.claims.COLUMNS`
    about : sentences on the run, below the heading
    own : title of each HTML report of an own corpus: its path, and a sentence on what the fit found
    ran : jobs of :func:`mc2papers.report.jobs.read_jobs`, whose times are shown

    ValueError for a verdict that is none, and for a table whose file holds no table.
    """
    path = Path(path)
    unknown = sorted(set(claims["verdict"]) - set(VERDICTS))
    if unknown:
        raise ValueError(f"the verdict {unknown[0]!r} is none; it must be one of {', '.join(VERDICTS)}")
    # identifier, name in the list of contents, heading, content
    sections = [
        ("own", "Your own corpus", "Your own corpus", _own(own, path.parent)),
        *((paper, title, title, _gallery(paper, entries, claims, path.parent)) for paper, title in PAPERS.items()),
        ("claims-of-the-papers", "Claims", "What the numbers say of the papers' claims", _claims(claims, entries)),
        ("times", "Times", "What the time went into", jobs.chart(ran)),
        ("made", "How it was made", "How it was made", _made()),
    ]
    shown = [one for one in sections if one[3]]
    contents = "".join(f'<li><a href="#{name}">{html.escape(title)}</a></li>' for name, title, _, _ in shown)
    parts = [
        f"<header><h1>Three papers, reproduced</h1>{''.join(f'<p>{html.escape(one)}</p>' for one in about)}",
        f'<nav aria-label="Contents"><ul>{contents}</ul></nav></header>',
        "<main>",
        *(f'<section id="{name}"><h2>{html.escape(title)}</h2>{body}</section>' for name, _, title, body in shown),
        "</main>",
    ]
    with storage.replacing(path) as stream:
        stream.write(
            pages.page(
                "What came out of this run",
                "\n".join(parts),
                _asset("reproduction_report.css"),
                [_asset("reproduction_report.js")],
            )
        )


def _asset(name: str) -> str:
    return resources.files("mc2papers.report").joinpath("assets", name).read_text(encoding="utf-8")


def _own(own: Mapping[str, tuple[str, str]], folder: Path) -> str:
    lines = "".join(
        f'<li><a href="{html.escape(os.path.relpath(path, folder))}">{html.escape(title)}</a> {html.escape(found)}</li>'
        for title, (path, found) in own.items()
    )
    return f"<ul>{lines}</ul>" if lines else ""


def _claims(claims: pd.DataFrame, entries: Sequence[Mapping[str, Any]]) -> str:
    """How many claims have each verdict, and all of them, folded; a press of a button leaves those of one verdict."""
    if claims.empty:
        return "<p>No table or figure of this run has claims.</p>"
    counts = claims["verdict"].value_counts()
    buttons = "".join(
        f'<button type="button" aria-pressed="false" data-verdict="{one}">{_counted(one, counts[one])}</button>'
        for one in VERDICTS
        if one in counts
    )
    known = {entry["name"] for entry in entries}
    rows = []
    for row in _by_verdict(claims):
        name = html.escape(str(row.target))
        where = f'<a href="#{name}">{name}</a>' if row.target in known else name
        cells = "".join(f"<td>{html.escape(str(one))}</td>" for one in (row.dataset, row.data, row.claim, row.numbers))
        rows.append(f'<tr data-verdict="{row.verdict}"><td>{_badge(row.verdict)}</td><td>{where}</td>{cells}</tr>')
    table = (
        '<div class="scroll"><table id="claims"><thead><tr><th>verdict</th><th>table or figure</th><th>dataset</th>'
        f"<th>data</th><th>claim</th><th>our numbers</th></tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )
    return (
        f'<p class="row">{buttons}</p><details id="all-claims"><summary>All {len(claims)} claims</summary>{table}'
        f'</details><p class="soft">{html.escape(RULE)}</p>'
        '<p class="soft">As data: <a href="claims.csv">csv</a></p>'
    )


def _by_verdict(claims: pd.DataFrame) -> list[Any]:
    """Rows in the order of VERDICTS."""
    told = claims.fillna("")
    return [row for verdict in VERDICTS for row in told[told["verdict"] == verdict].itertuples()]


def _badge(verdict: str, said: str | None = None) -> str:
    return f'<span class="verdict" data-verdict="{verdict}">{said or verdict}</span>'


def _counted(verdict: str, count: int) -> str:
    """ "3 hold"."""
    return f"{count} {verdict if count == 1 else VERDICTS[verdict]}"


def _gallery(paper: str, entries: Sequence[Mapping[str, Any]], claims: pd.DataFrame, folder: Path) -> str:
    cards = [
        _card(entry, claims[claims["target"] == entry["name"]], folder) for entry in entries if entry["paper"] == paper
    ]
    return f'<div class="gallery">{"".join(cards)}</div>' if cards else ""


def _card(entry: Mapping[str, Any], claims: pd.DataFrame, folder: Path) -> str:
    """A table or figure: a thumbnail and one line, which opens to all of it."""
    files = {kind: Path(path) for kind, path in entry["files"].items()}
    title = html.escape(entry["title"])
    if "png" in files:
        picture = base64.b64encode(files["png"].read_bytes()).decode("ascii")
        # the thumbnail is the picture, which grows when the card is opened
        thumbnail = f'<img alt="{title}" src="data:image/png;base64,{picture}">'
        shown = _claims_of(claims)
    if "html" in files:
        found = _TABLES.search(files["html"].read_text(encoding="utf-8"))
        if found is None:
            raise ValueError(f"{files['html']} holds no table")
        shown = f'<div class="scroll">{found[1]}</div>'
        if "png" not in files:
            thumbnail = _small_table(found[1])
    counts = claims["verdict"].value_counts()
    verdicts = "".join(_badge(one, _counted(one, counts[one])) for one in VERDICTS if one in counts)
    links = ", ".join(
        f'<a href="{html.escape(os.path.relpath(path, folder))}">{html.escape(kind)}</a>'
        for kind, path in files.items()
    )
    runs = "".join(f"<li>{html.escape(one)}</li>" for one in entry["runs"])
    behind = (
        f"<details><summary>Fits behind it ({len(entry['runs'])})</summary><ul>{runs}</ul></details>" if runs else ""
    )
    name = html.escape(entry["title"].removeprefix(f"{PAPERS[entry['paper']]}, "))
    return (
        f'<details class="card" id="{html.escape(entry["name"])}"><summary><span class="thumbnail">{thumbnail}</span>'
        f'<span class="name">{name}</span><span class="verdicts">{verdicts}</span></summary>'
        f'<div class="caption">{_rst(entry["caption"])}</div>{shown}{behind}<p class="soft">As data: {links}</p>'
        "</details>"
    )


def _claims_of(claims: pd.DataFrame) -> str:
    """What the paper claims of a figure; tables have theirs in their files."""
    lines = "".join(
        f"<li>{_badge(row.verdict)} {html.escape(f'{row.dataset}: {row.claim}')} "
        f'<span class="soft">{html.escape(str(row.numbers))}</span></li>'
        for row in _by_verdict(claims)
    )
    return f"<ul>{lines}</ul>" if lines else ""


def _small_table(tables: str) -> str:
    """The first rows of a file's first table, for a look and not for reading: its markup as spans."""
    rows = re.findall(r"<tr>.*?</tr>", tables[: tables.find("</table>")], re.S)[:_ROWS_OF_A_THUMBNAIL]
    cells = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.S) for row in rows]
    lines = ("".join(f"<span>{cell.strip()}</span>" for cell in row) for row in cells)
    return f'<span class="small-table" aria-hidden="true">{"".join(f"<span>{line}</span>" for line in lines)}</span>'


def _rst(text: str) -> str:
    """reStructuredText as HTML; nothing in it reads files or passes markup through."""
    from docutils.core import publish_parts

    settings = {"raw_enabled": False, "file_insertion_enabled": False, "report_level": 5}
    return publish_parts(text, writer="html5", settings_overrides=settings)["body"]


def _made() -> str:
    """Versions and commit of what wrote the report, and where each file comes from."""
    known = environment()
    versions = ", ".join(f"{name} {version}" for name, version in known["versions"].items())
    commit = known["git_commit"] or "not known"
    return (
        f'<p class="soft">Made by {html.escape(versions)}; commit {html.escape(commit)}.</p>'
        '<p class="soft">Which rule made each file, when, and by which code: <a href="report.html">its provenance</a> '
        "as Snakemake tells it.</p>"
    )
