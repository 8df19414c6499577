"""Write the reproduction report as one HTML file: overview, scorecard, and a gallery of all tables and figures."""

from __future__ import annotations

import base64
import html
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from mc2core.base import pages, storage
from mc2core.base.provenance import environment
from mc2papers.report import jobs, scorecard
from mc2papers.report.captions import counted
from mc2papers.report.claims import PAPERS_OWN, RULE, SAID, VERDICTS
from mc2papers.report.tables import PAPER, by_whose
from mc2papers.targets import PAPERS

_TITLE = "Reproduction of three papers: MC2 (ICML 2014), SVI-MC2 (UAI 2016), FastEx (NIPS 2012)"
_TABLES = re.compile(r"(<div class=\"scroll\"><table.*)</body>", re.S)
_ROWS_OF_A_THUMBNAIL, _COLUMNS_OF_A_THUMBNAIL = 8, 4


def write_reproduction_report(
    path: str | os.PathLike[str],
    entries: Sequence[Mapping[str, Any]],
    claims: pd.DataFrame,
    about: Sequence[str],
    own: Mapping[str, tuple[str, str]],
    ran: Sequence[jobs.Job] = (),
) -> None:
    """Write the report of a run: a summary per paper, the scorecard, figures with verdicts, and folded details.

    Parameters
    ----------
    path : the HTML file; links to data are relative to its folder
    entries : one per table and figure, with ``name``, ``paper`` (a key of PAPERS), ``title``, ``caption``
        (reStructuredText), ``files`` (paths by suffix, the shown file first) and ``runs`` (sentences on its fits and
        their results)
    claims : columns target and :data:`mc2papers.report.claims.COLUMNS`
    about : sentences on the run, shown at the end
    own : HTML reports of the user's corpus: by title, the path and a sentence on the result of the fit
    ran : jobs of :func:`mc2papers.report.jobs.read_jobs`, whose times are shown

    Raises ValueError for an unknown verdict, and for the file of a table that contains no table.
    """
    path = Path(path)
    unknown = sorted(set(claims["verdict"]) - set(VERDICTS))
    if unknown:
        raise ValueError(f"the verdict {unknown[0]!r} is not known; it must be one of {', '.join(VERDICTS)}")
    card = scorecard.scorecard(claims)
    # identifier, name in the list of contents, heading, content
    sections = [
        ("answers", "In short", "What was reproduced", _answers(card)),
        ("card", "Scorecard", "Scorecard: the main claims, real data first", _scorecard(card, entries)),
        ("own", "Your own corpus", "Your own corpus", _list_corpora(own, path.parent)),
        *((paper, title, title, _gallery(paper, entries, claims, path.parent)) for paper, title in PAPERS.items()),
        ("claims-of-the-papers", "All claims", "All claims", _claims(claims, entries)),
        ("times", "Times", "Where the time went", jobs.chart(ran)),
        ("made", "How it was made", "How it was made", _describe_run(about)),
    ]
    shown = [one for one in sections if one[3]]
    contents = "".join(f'<li><a href="#{name}">{html.escape(title)}</a></li>' for name, title, _, _ in shown)
    parts = [
        f"<header><h1>{_TITLE}</h1>",
        f'<nav aria-label="Contents"><ul>{contents}</ul></nav></header>',
        "<main>",
        *(f'<section id="{name}"><h2>{html.escape(title)}</h2>{body}</section>' for name, _, title, body in shown),
        "</main>",
    ]
    css, js = _asset("reproduction_report.css"), _asset("reproduction_report.js")
    with storage.replacing(path) as stream:
        stream.write(pages.page(_TITLE, "\n".join(parts), css, [js]))


_RULE = """<p>A 95 % interval over seeds decides each claim. On the paper's data, or on data drawn as in the paper, a
claim is reproduced or not reproduced. On other data, it is supported or contradicted, which is weaker evidence.</p>"""


def _answers(card: pd.DataFrame) -> str:
    """Return the counts of verdicts on main claims, then three sentences per paper."""
    parts = []
    for paper, title in scorecard.TITLES.items():
        paragraphs = "".join(f"<p>{_colour_verdicts(html.escape(one))}</p>" for one in scorecard.sentences(card, paper))
        if paragraphs:
            badges = _count_verdicts(card[card["paper"] == paper])
            parts.append(f"<div><h3>{html.escape(title)}</h3>{badges}{paragraphs}</div>")
    total = f"<p>Of {counted(len(card), 'main claim')} of the three papers: {scorecard.said_counts(card)}.</p>"
    return f'{total}<div class="answers">{"".join(parts)}</div>' if parts else ""


def _colour_verdicts(sentence: str) -> str:
    """Return a sentence in which verdicts have their colours."""
    for verdict, phrase in SAID.items():
        sentence = sentence.replace(f"{phrase}: ", f"{_badge(verdict, phrase)}: ")
    return sentence


def _scorecard(card: pd.DataFrame, entries: Sequence[Mapping[str, Any]]) -> str:
    if card.empty:
        return ""
    names, lines = {entry["name"] for entry in entries}, []
    for paper, title in scorecard.TITLES.items():
        part = card[card["paper"] == paper]
        if len(part):
            lines.append(f'<tr><th colspan="5" scope="rowgroup">{html.escape(title)}</th></tr>')
        for _, row in part.iterrows():
            headline = html.escape(str(row["headline"]))
            # the card of a recorded verdict is of other data in this run, or not there
            is_here = row["target"] in names and not row["recorded"]
            claim = f'<a href="#{row["target"]}">{headline}</a>' if is_here else headline
            data = scorecard.said_data(row)
            data += f"; from a run recorded on {row['recorded']}" if row["recorded"] else ""
            ours = "; ".join(filter(None, (row["ours"], row["choices"])))
            cells = "".join(
                f'<td data-label="{label}">{html.escape(str(value))}{drawing}</td>'
                for label, value, drawing in (
                    ("paper", row["printed"], ""),
                    ("ours", ours, _interval(row["reason"])),
                    ("data", data, ""),
                )
            )
            lines.append(
                f'<tr data-verdict="{row["verdict"]}"><td class="verdict-cell">{_badge(row["verdict"])}</td>'
                f"<td>{claim}</td>{cells}</tr>"
            )
    meanings = "".join(f"<li>{_badge(verdict)}: {html.escape(meaning)}.</li>" for verdict, meaning in VERDICTS.items())
    head = "".join(f"<th>{one}</th>" for one in ("verdict", "claim", "paper", "ours", "data"))
    introduction = (
        "In the last column, “200 of 600 sweeps” means that we ran 200 sweeps and the paper 600. A verdict has "
        "limits if it is based on fewer than half of the paper's documents or sweeps, or on fewer than 500 documents "
        "of data that no paper uses. A coloured bar is the 95 % interval that decides, and the black line is at zero."
    )
    return (
        f'<table id="scorecard"><thead><tr>{head}</tr></thead><tbody>{"".join(lines)}</tbody></table>'
        f"{_RULE}<p>{introduction}</p><details><summary>What the verdicts mean</summary><ul>{meanings}</ul></details>"
    )


_INTERVAL = re.compile(r"([^;]* [+-][\d.,]+) \(95% ([+-][\d.,]+) to ([+-][\d.,]+), [^)]*\)")


def _interval(reason: str) -> str:
    """Return a drawing of the difference that decides a claim, with its interval and a line at zero; "" for none."""
    match = _INTERVAL.search(reason)
    if match is None:
        return ""
    middle, low, high = (float(one.split()[-1].replace(",", "")) for one in match.groups())
    first, last = min(low, 0.0), max(high, 0.0)
    at_zero, at_low, at_high, at_middle = (
        4 + 132 * (one - first) / ((last - first) or 1.0) for one in (0.0, low, high, middle)
    )
    return (
        f'<div class="interval">{html.escape(match[0].strip())}<br>'
        '<svg width="140" height="12" role="img" aria-label="the interval and zero">'
        f'<line class="zero" x1="{at_zero:.1f}" x2="{at_zero:.1f}" y1="0" y2="12"/>'
        f'<line x1="{at_low:.1f}" x2="{at_high:.1f}" y1="6" y2="6"/>'
        f'<circle cx="{at_middle:.1f}" cy="6" r="3"/></svg></div>'
    )


def _asset(name: str) -> str:
    return pages.asset("mc2papers.report", name)


def _list_corpora(corpora: Mapping[str, tuple[str, str]], folder: Path) -> str:
    lines = "".join(
        f'<li><a href="{html.escape(os.path.relpath(path, folder))}">{html.escape(title)}</a> {html.escape(text)}</li>'
        for title, (path, text) in corpora.items()
    )
    return f"<ul>{lines}</ul>" if lines else ""


def _claims(claims: pd.DataFrame, entries: Sequence[Mapping[str, Any]]) -> str:
    """Return folded lists of claims with counts of verdicts, first on the papers' claims and then on our variants.

    There is one button per verdict, which shows only the claims with this verdict.
    """
    if claims.empty:
        return "<p>No table or figure of this run has claims.</p>"
    names, parts = {entry["name"] for entry in entries}, []
    for title, part in by_whose(claims).items():
        counts = part["verdict"].value_counts()
        buttons = "".join(
            f'<button type="button" aria-pressed="false" data-verdict="{one}">{counts[one]} {one}</button>'
            for one in VERDICTS
            if one in counts
        )
        rows = []
        for row in _by_verdict(part):
            name = html.escape(str(row.target))
            link = f'<a href="#{name}">{name}</a>' if row.target in names else name
            values = (row.dataset, row.data, row.claim, row.numbers, row.reason)
            cells = "".join(f"<td>{html.escape(str(one))}</td>" for one in values)
            rows.append(f'<tr data-verdict="{row.verdict}"><td>{_badge(row.verdict)}</td><td>{link}</td>{cells}</tr>')
        columns = ("verdict", "table or figure", "dataset", "data", "claim", "our numbers", "decided by")
        head = "".join(f"<th>{one}</th>" for one in columns)
        parts.append(
            f'<div class="claim-list"><h3>{len(part)} {title}</h3><p class="row">{buttons}</p><details><summary>All of '
            f'them</summary><div class="scroll"><table class="claims"><thead><tr>{head}</tr></thead><tbody>'
            f"{''.join(rows)}</tbody></table></div></details></div>"
        )
    return (
        f'{"".join(parts)}<p class="soft">{html.escape(RULE)}</p>'
        '<p class="soft">As data: <a href="claims.csv">csv</a></p>'
    )


def _by_verdict(claims: pd.DataFrame) -> list[Any]:
    """Return rows in the order of VERDICTS."""
    filled = claims.astype(object).fillna("")
    return [row for verdict in VERDICTS for row in filled[filled["verdict"] == verdict].itertuples()]


def _badge(verdict: str, text: str | None = None) -> str:
    return f'<span class="verdict" data-verdict="{verdict}">{text or verdict}</span>'


def _count_verdicts(claims: pd.DataFrame) -> str:
    """Return the counts of verdicts in their colours, such as "3 reproduced"."""
    counts = claims["verdict"].value_counts()
    badges = "".join(_badge(one, f"{counts[one]} {one}") for one in VERDICTS if one in counts)
    return f'<span class="verdicts">{badges}</span>'


def _gallery(paper: str, entries: Sequence[Mapping[str, Any]], claims: pd.DataFrame, folder: Path) -> str:
    of_paper = [entry for entry in entries if entry["paper"] == paper]
    cards = [_card(entry, claims[claims["target"] == entry["name"]], folder) for entry in of_paper]
    return f'<div class="gallery">{"".join(cards)}</div>' if cards else ""


def _card(entry: Mapping[str, Any], claims: pd.DataFrame, folder: Path) -> str:
    """Return a table or figure as a thumbnail with one line of text; a click shows all its content."""
    files = {kind: Path(path) for kind, path in entry["files"].items()}
    title = html.escape(entry["title"])
    if "png" in files:
        picture = base64.b64encode(files["png"].read_bytes()).decode("ascii")
        # the thumbnail is the picture, which grows when the card is opened
        thumbnail = f'<img alt="{title}" src="data:image/png;base64,{picture}">'
        shown = _claims_of(claims)
    if "html" in files:
        match = _TABLES.search(files["html"].read_text(encoding="utf-8"))
        if match is None:
            raise ValueError(f"{files['html']} holds no table")
        shown = match[1]
        if "png" not in files:
            thumbnail = _small_table(match[1])
    of_paper = claims[claims["whose"] == PAPERS_OWN]
    verdicts = _count_verdicts(of_paper if len(of_paper) else claims)  # variants do not count for a paper
    links = ", ".join(
        f'<a href="{html.escape(os.path.relpath(path, folder))}">{html.escape(kind)}</a>'
        for kind, path in files.items()
    )
    runs = "".join(f"<li>{html.escape(one)}</li>" for one in entry["runs"])
    about_fits = f"<summary>Fits behind it ({len(entry['runs'])})</summary><ul>{runs}</ul>"
    behind = f"<details>{about_fits}</details>" if runs else ""
    caption, _, details = entry["caption"].partition("\n\n")
    notes = f"<details><summary>Notes</summary>{_rst(details)}</details>" if details else ""
    name = html.escape(entry["title"].removeprefix(f"{PAPERS[entry['paper']]}, "))
    return (
        f'<details class="card" id="{html.escape(entry["name"])}"><summary><span class="thumbnail">{thumbnail}</span>'
        f'<span class="name">{name}</span>{verdicts}</summary>'
        f'<div class="caption">{_rst(caption)}{notes}</div>{shown}{behind}<p class="soft">As data: {links}</p>'
        "</details>"
    )


def _claims_of(claims: pd.DataFrame) -> str:
    """Return the paper's claims on a figure; tables have their claims in their files."""
    lines = "".join(
        f"<li>{_badge(row.verdict)} {html.escape(f'{row.dataset}: {row.claim}')} "
        f'<span class="soft">{html.escape(": ".join(filter(None, (row.numbers, row.reason))))}</span></li>'
        for row in _by_verdict(claims)
    )
    return f"<ul>{lines}</ul>" if lines else ""


def _small_table(tables: str) -> str:
    """Return the first rows of a file's first table as spans, with its first columns and one column of the paper."""
    rows = re.findall(r"<tr[^>]*>.*?</tr>", tables[: tables.find("</table>")], re.S)[:_ROWS_OF_A_THUMBNAIL]
    cells = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.S) for row in rows if 'class="group"' not in row]
    head = [cell.strip() for cell in cells[0]]
    printed = [i for i, name in enumerate(head) if name.startswith(PAPER)]
    shown = [i for i in range(len(head)) if i not in printed][: _COLUMNS_OF_A_THUMBNAIL - bool(printed)]
    matching = [i for i in printed if head[i].removeprefix(PAPER).startswith(tuple(head[j] for j in shown))]
    shown += (matching or printed)[:1]
    lines = ("".join(f"<span>{row[i].strip()}</span>" for i in shown) for row in cells)
    return f'<span class="small-table" aria-hidden="true">{"".join(f"<span>{line}</span>" for line in lines)}</span>'


def _rst(text: str) -> str:
    """Convert reStructuredText to HTML, without reading files and without raw markup."""
    from docutils.core import publish_parts

    settings = {"raw_enabled": False, "file_insertion_enabled": False, "report_level": 5}
    return publish_parts(text, writer="html5", settings_overrides=settings)["body"]


def _describe_run(paragraphs: Sequence[str]) -> str:
    """Return a description of the run, and the versions and the commit of the code."""
    record = environment()
    versions = ", ".join(f"{name} {version}" for name, version in record["versions"].items())
    commit = record["git_commit"] or "not known"
    return (
        f"{''.join(f'<p>{html.escape(one)}</p>' for one in paragraphs)}"
        f'<p class="soft">Made by {html.escape(versions)}; commit {html.escape(commit)}.</p>'
        '<p class="soft">Which rule made each file, when, and by which code: <a href="report.html">its provenance</a> '
        "as reported by Snakemake.</p>"
    )
