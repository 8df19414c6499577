"""The reproduction report: verdicts, tables, figures, captions and links, on made-up files."""

import base64
import html
import re

import pandas as pd
import pytest

from mc2papers.report import reproduction_report, scorecard, tables
from mc2papers.report.claims import RULE, Claim, write_claims
from mc2papers.report.jobs import Job
from mc2papers.report.reproduction_report import write_reproduction_report
from mc2papers.report.style import new_figure, write_figure
from mc2papers.report.tables import write_table

BELOW_HDP = "MC2 without contexts has a lower perplexity than HDP"
ON_ALL = {"data": "real", "size": "all 9 documents", "limits": "short chains"}
CLAIMS = [
    Claim("NIPS", "MC2 <b>below</b> npTOT", "reproduced", "1 against 2", "difference -1", data="real"),
    Claim("NIPS", BELOW_HDP, "not reproduced", "MC2 3, HDP 2; unigrams 9", "difference +1", **ON_ALL),
    Claim("NIPS", "third", "not reproduced", "", data="real"),
    Claim("PNAS", "fourth", "precondition not met", "", data="simulated (MC2)"),
    Claim("PNAS", "fifth", "inconclusive", "", data="simulated (MC2)"),
    Claim("PNAS", "sixth", "not testable on these data", "", data="simulated (MC2)"),
    Claim("PNAS", "our way is better", "supported", "", data="simulated (MC2)", whose="our variant"),
]
IN_ORDER = [
    "1 reproduced", "2 not reproduced", "1 inconclusive", "1 not testable on these data", "1 precondition not met",
]  # fmt: skip


@pytest.fixture(autouse=True)
def nothing_recorded(monkeypatch):
    none = scorecard.recorded().iloc[:0]
    monkeypatch.setattr(scorecard, "recorded", lambda: none)


@pytest.fixture
def written(tmp_path):
    """Paths of a page and its table and figure."""
    stem = tmp_path / "icml2014/icml2014_table1"
    raw = pd.DataFrame({"method": ["<i>MC2</i>", "HDP"], "perplexity": [1.5, 2.5]})
    write_table(stem, raw, raw.astype(str), "Table one", ["A note."], CLAIMS)
    figure = new_figure(2, 1)
    figure.add_subplot().plot([0, 1])
    write_figure(figure, raw, tmp_path / "uai2016/uai2016_figure3")
    write_claims(tmp_path / "claims.csv", "icml2014_table1", CLAIMS)
    about = (
        ("icml2014_table1", "Table one", "**Held-out** perplexity <script>.", ("html", "csv", "md", "tex")),
        ("uai2016_figure3", "Figure three", "Seconds.\n\nOn *one* core.", ("png", "pdf", "csv")),
    )
    entries = []
    for name, title, caption, kinds in about:
        paper = name.partition("_")[0]
        files = {kind: f"{tmp_path}/{paper}/{name}.{kind}" for kind in kinds}
        entries.append({"name": name, "paper": paper, "title": title, "caption": caption, "files": files, "runs": []})
    entries[0]["runs"] = ["nips-words: MC2 on nips"]
    own = {"mine: clusters": (str(tmp_path / "explore/mine/index.html"), "found 3 clusters & 5 topics")}
    write_reproduction_report(
        tmp_path / "index.html", entries, pd.read_csv(tmp_path / "claims.csv"), ["Datasets: nips."], own,
        [Job("fits/nips-words", 0.0, 2.5)],
    )  # fmt: skip
    return tmp_path, entries


def test_the_answer_comes_first_and_details_are_folded(written):
    text = (written[0] / "index.html").read_text(encoding="utf-8")
    contents = re.findall(r'<li><a href="#([^"]+)">([^<]+)</a></li>', text)
    assert contents == [
        ("answers", "In short"), ("card", "Scorecard"), ("own", "Your own corpus"), ("icml2014", "ICML 2014"),
        ("uai2016", "UAI 2016"), ("claims-of-the-papers", "All claims"), ("times", "Times"),
        ("made", "How it was made"),
    ]  # fmt: skip
    places = [text.index(f'<section id="{name}">') for name, _ in contents]
    assert places == sorted(places)
    title = re.search("<title>(.*)</title>", text)[1]
    assert title.startswith("Reproduction of ")
    assert f"<h1>{title}</h1>" in text
    answers = text[places[0] : places[1]]
    headline = scorecard.headlines()["headline"][0]
    assert 'data-verdict="not reproduced">Not reproduced</span>: MC2 without' in answers
    assert [re.sub("<[^>]*>", "", one) for one in re.findall("<p>(.*?)</p>", answers)] == [
        "Of 1 main claim of the three papers: 1 not reproduced.",
        "None of the main claims is reproduced.",
        f"Not reproduced: {headline}.",
        "These verdicts are based on real data (NIPS). Verdicts limited by short chains: 1 of 1.",
    ]
    (row,) = re.findall(r'<tr data-verdict="not reproduced">(.*?)</tr>', text[places[1] : places[2]])
    assert f'<a href="#icml2014_table1">{headline}</a>' in row
    assert re.findall(r'data-label="(\w+)">([^<]*)<', row) == [
        ("paper", "perplexity 1,583.2, HDP 1,922.1"), ("ours", "MC2 3, HDP 2"),
        ("data", "NIPS, real; all 9 documents; limits: short chains"),
    ]  # fmt: skip
    line = re.search(r'id="icml2014_table1"><summary>(.*?)</summary>', text, re.S)[1]
    assert re.findall(r'data-verdict="[^"]+">([^<]+)<', line) == IN_ORDER
    assert '<span class="name">Table one</span>' in line
    # a thumbnail of the table: its first rows, text that stays text
    assert "<span>&lt;i&gt;MC2&lt;/i&gt;</span><span>1.5</span>" in line
    assert re.findall(r"<details[^>]* open", text) == []
    assert 'href="report.html"' in text[places[-1] :]


def test_a_thumbnail_has_the_papers_column():
    columns = ["method", "features", "perplexity", "icml14", "paper, K", "paper, perplexity on its data"]
    shown = pd.DataFrame([["MC2", "words", "1", "2", "3", "4"]], columns=columns)
    made = reproduction_report._small_table(tables._html(shown))
    assert re.findall(r"<span>([^<]+)</span>", made) == [*columns[:3], columns[5], "MC2", "words", "1", "4"]


def test_every_claim_has_verdict_and_numbers_with_variants_apart(written):
    text = (written[0] / "index.html").read_text(encoding="utf-8")
    both = text[text.index('<section id="claims-of-the-papers">') :]
    papers, ours = both.split("<h3>1 our variants</h3>")
    assert "<h3>6 claims of the papers</h3>" in papers
    assert re.findall(r'data-verdict="[\w ]+">([^<]*)</button>', papers) == IN_ORDER
    rows = re.findall(r'<tr data-verdict="([\w ]+)">(.*?)</tr>', papers)
    assert [verdict for verdict, _ in rows] == [
        "reproduced", "not reproduced", "not reproduced", "inconclusive", "not testable on these data",
        "precondition not met",
    ]  # fmt: skip
    assert "<td>NIPS</td><td>real</td>" in rows[0][1]
    assert "<td>PNAS</td><td>simulated (MC2)</td>" in rows[-1][1]
    assert html.escape(RULE) in both
    assert "MC2 &lt;b&gt;below&lt;/b&gt; npTOT" in rows[0][1]
    assert "<td>1 against 2</td><td>difference -1</td>" in rows[0][1]
    assert all('<a href="#icml2014_table1">' in row for _, row in rows)
    assert "our way is better" in ours
    assert "our way is better" not in papers


def test_a_verdict_that_no_claim_has_is_no_button(written):
    folder, entries = written
    claims = pd.read_csv(folder / "claims.csv")
    claims = claims[(claims["verdict"] != "not testable on these data") & (claims["whose"] == "paper")]
    write_reproduction_report(folder / "some.html", entries, claims, [], {})
    buttons = re.findall(r'data-verdict="[\w ]+">([^<]*)</button>', (folder / "some.html").read_text(encoding="utf-8"))
    assert buttons == [one for one in IN_ORDER if "testable" not in one]


def test_the_times_of_jobs_come_last(written):
    text = (written[0] / "index.html").read_text(encoding="utf-8")
    times = text[text.index('<section id="times">') :]
    assert "<title>fits/nips-words: 2.5 s</title>" in times
    assert "uai2016_figure3" not in times


def test_tables_and_figures_have_caption_runs_and_links_to_data(written):
    folder, _ = written
    text = (folder / "index.html").read_text(encoding="utf-8")
    table = text[text.index('id="icml2014_table1"') : text.index('id="uai2016_figure3"')]
    for shown in ("&lt;i&gt;MC2&lt;/i&gt;", "1.5", "A note.", "<strong>Held-out</strong> perplexity &lt;script&gt;."):
        assert shown in table
    assert "nips-words: MC2 on nips" in table
    assert "<summary>Notes</summary>" not in table
    assert "<p>Seconds.</p>\n<details><summary>Notes</summary><p>On <em>one</em> core.</p>" in text
    links = [link for link in re.findall(r'href="([^"#]+)"', text) if "explore" not in link and link != "report.html"]
    assert len(links) == 1 + 4 + 3
    assert all((folder / link).is_file() for link in links)
    assert '<a href="explore/mine/index.html">mine: clusters</a> found 3 clusters &amp; 5 topics</li>' in text
    picture = base64.b64decode(re.search(r'src="data:image/png;base64,([^"]+)"', text)[1])
    assert picture == (folder / "uai2016/uai2016_figure3.png").read_bytes()


@pytest.mark.parametrize(("commit", "said"), [("0a1b+changes", "0a1b+changes"), (None, "not known")])
def test_the_footer_names_the_commit_as_it_is(written, monkeypatch, commit, said):
    folder, entries = written
    made = {"versions": {"python": "3.x"}, "git_commit": commit}
    monkeypatch.setattr("mc2papers.report.reproduction_report.environment", lambda: made)
    write_reproduction_report(folder / "footer.html", entries, pd.read_csv(folder / "claims.csv"), [], {})
    page = (folder / "footer.html").read_text(encoding="utf-8")
    assert f'<p class="soft">Made by python 3.x; commit {said}.</p>' in page


def test_a_run_without_claims_has_a_page(written):
    folder, entries = written
    claims = pd.read_csv(folder / "claims.csv")
    write_reproduction_report(folder / "none.html", entries[1:], claims.iloc[:0], [], {})
    assert "No table or figure of this run has claims." in (folder / "none.html").read_text(encoding="utf-8")
    with pytest.raises(ValueError, match="the verdict 'perhaps' is not known; it must be one of reproduced, supported"):
        write_reproduction_report(folder / "wrong.html", entries, claims.assign(verdict="perhaps"), [], {})
    assert not (folder / "wrong.html").exists()


@pytest.mark.needs("browser")
def test_in_a_browser_a_press_leaves_the_claims_of_one_verdict(opened, written):
    with opened(written[0] / "index.html", width=390) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        small = page.locator("#uai2016_figure3 img").bounding_box()
        assert page.evaluate("document.querySelector('img').naturalWidth") > small["width"] > 100
        rows = page.locator(".claim-list").first.locator("tbody tr:visible")
        assert rows.count() == 0  # folded
        page.click("button[data-verdict='not reproduced']")
        assert rows.count() == 2
        page.click("button[data-verdict='not reproduced']")
        assert rows.count() == 6
        # on a phone all of a claim is in sight, not to the right of it
        boxes = [cell.bounding_box() for cell in rows.first.locator("td").all()]
        assert all(box["x"] + box["width"] <= 390 for box in boxes)


@pytest.mark.needs("browser")
def test_in_a_browser_a_link_opens_a_card_and_its_picture_grows(opened, written):
    with opened(written[0] / "index.html") as page:
        # the answer and the scorecard are on the first screen
        assert page.locator("#scorecard tbody").bounding_box()["y"] < 450
        card, picture = page.locator("#uai2016_figure3"), page.locator("#uai2016_figure3 img")
        small = picture.bounding_box()["width"]
        assert not page.locator("#uai2016_figure3 .caption").is_visible()
        page.evaluate("location.hash = '#uai2016_figure3'")
        page.wait_for_selector("#uai2016_figure3[open]")
        assert page.locator("#uai2016_figure3 .caption").is_visible()
        assert picture.bounding_box()["width"] > small
        # by the keyboard, too
        card.locator("summary").first.focus()
        page.keyboard.press("Enter")
        assert not page.locator("#uai2016_figure3 .caption").is_visible()


@pytest.mark.needs("browser")
def test_in_a_browser_a_table_of_claims_breaks_no_word(opened, tmp_path):
    long = [" ".join(["gain in agreement +0.128 (95% +0.066 to +0.191)"] * n) for n in (2, 4, 4)]
    claim = Claim("NUS-WIDE", long[0], "contradicted", long[1], long[2], data="simulated (correlated topics)")
    raw = pd.DataFrame({"method": ["MC2"]})
    write_table(tmp_path / "one", raw, raw, "One", ["A note."], [claim])
    lines = """cells => cells.flatMap(cell => [...cell.textContent.matchAll(/[\\w.]+/g)].map(word => {
        const range = document.createRange();
        range.setStart(cell.firstChild, word.index);
        range.setEnd(cell.firstChild, word.index + word[0].length);
        return range.getClientRects().length;
    }))"""
    with opened(tmp_path / "one.html", width=720, ready=".claims") as page:
        counts = page.locator(".claims td:not(:empty)").evaluate_all(lines)
    assert len(counts) > 50
    assert set(counts) == {1}


@pytest.mark.parametrize(
    ("said", "ends", "zero"),
    [
        ("change of perplexity in %, MC2 (words) against HDP, +10.0 (95% +5.0 to +20.0, 3 seeds)", (37.0, 136.0), 4.0),
        ("less title -1,000.0 (95% -3,000.0 to +1,000.0, 3 seeds)", (4.0, 136.0), 103.0),
        ("K = 4 in 6 of 6 fits (95% 54% to 100%)", (), None),
        ("", (), None),
    ],
)  # fmt: skip
def test_the_deciding_interval_is_drawn_beside_zero(said, ends, zero):
    made = reproduction_report._interval(f"few documents; {said}")
    assert re.findall(r'"interval">([^<]*)<', made) == ([said] if ends else [])
    drawn = [tuple(map(float, one)) for one in re.findall(r'<line x1="([^"]*)" x2="([^"]*)"', made)]
    assert drawn == ([ends] if ends else [])
    assert re.findall(r'class="zero" x1="([^"]*)"', made) == ([f"{zero:.1f}"] if ends else [])
