"""The page in a real browser: it draws, answers clicks and keys, and asks nothing of a network."""

import csv
import dataclasses
import html
import itertools
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from helpers import fits
from helpers.explored_fits import HOSTILE, corpus, data_of, fastex, gibbs, of_contexts_alone
from helpers.observed import crossed_corpus

from mc2core import Corpus
from mc2core.base import pages
from mc2core.explore.coherence import in_words
from mc2core.explore.describe import describe
from mc2core.explore.description import Description
from mc2core.explore.predicted import predictions
from mc2core.explore.topics import topic_tables
from mc2core.families import DirichletCategorical, NormalGamma
from mc2core.inference.running.loop import fit

#: what stands where nothing is given, an en dash
NOTHING = "\u2013"
#: milliseconds between two saved files: Chromium drops all but ten per second
SAVING_PAUSE = 110

pytestmark = pytest.mark.needs("browser")


@pytest.fixture(scope="module")
def description():
    made = corpus()
    return Description.from_posterior(gibbs(made), made)


@pytest.fixture(scope="module")
def folder(description, tmp_path_factory):
    folder = tmp_path_factory.mktemp("page") / "out"
    describe(description.posterior, description.corpus, folder, "Lakes & <b>woods</b>")
    return folder


def colours(page, chart):
    """Number of different colours in a chart."""
    return page.evaluate(
        """(id) => { const canvas = document.querySelector(`#${id} canvas`);
        const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
        const seen = new Set();
        for (let i = 0; i < data.length; i += 4) seen.add(data[i] << 16 | data[i + 1] << 8 | data[i + 2]);
        return seen.size; }""",
        chart,
    )


def place_on_map(page, folder, document):
    """(x, y) of a document within the map, in pixels."""
    rows = (folder / "documents.csv").read_text(encoding="utf-8").splitlines()
    row = list(csv.DictReader(rows))[document]
    box = page.locator("#map canvas").bounding_box()
    x, y = ((float(row[name]) + 0.02) / 1.04 for name in "xy")
    pad = 5  # of the drawing, on each side
    return pad + x * (box["width"] - 2 * pad), pad + (1 - y) * (box["height"] - 2 * pad)


@pytest.mark.parametrize(("width", "scheme"), [(1300, "light"), (1300, "dark"), (390, "light")])
def test_it_draws_light_and_dark_wide_and_narrow(opened, folder, width, scheme):
    with opened(folder / "index.html", width=width, scheme=scheme) as page:
        for chart in ("map", "cluster-bars", "topic-bars", "heat", "tree", "topic-map", "compare-0"):
            assert colours(page, chart) > 5
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        # else a scroll bar that comes later cuts the pictures
        assert page.evaluate("getComputedStyle(document.documentElement).overflowY") == "scroll"
        background = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (background == "rgb(255, 255, 255)") == (scheme == "light")
        page.click("#theme")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") != background


def svg_of(page, part):
    """A picture as it is saved: its texts, each with its place in pixels."""
    page.wait_for_timeout(SAVING_PAUSE)
    with page.expect_download() as caught:
        page.click(f"{part} .saves button >> nth=1")
    text = Path(caught.value.path()).read_text(encoding="utf-8")
    found = re.findall(r'<text [^>]*transform="translate\(([-\d.]+),([-\d.]+)\)[^>]*>([^<]*)</text>', text)
    return [(float(x), float(y), html.unescape(said)) for x, y, said in found]


def test_on_a_phone_lines_fill_the_width_and_names_are_whole(opened, folder, description):
    names = {
        "cluster": {
            number: f"government{number}, administration, appropriations"
            for number in range(1, len(description.nodes) + 1)
        },
        "topic": {
            number: f"{number} is, of, longest, words"
            for number in range(1, description.posterior.representative.n_topics + 1)
        },
    }
    phone = folder.parent / "phone"
    describe(description.posterior, description.corpus, phone, names=names)
    with opened(phone / "index.html", width=390) as page:
        assert page.locator("#summary").bounding_box()["width"] > 0.85 * 390
        for part in ("#map-part", "#tree-part", "#heat-part"):
            shown = [said for _, _, said in svg_of(page, part) if "government" in said]
            assert shown
            for said in shown:
                assert re.fullmatch(r"(\d+ )?government\d+(, administration)?(, appropriations| …)", said)
        before = page.locator("#heat canvas").bounding_box()["height"]
        page.select_option("#heat-by", "year")
        page.wait_for_timeout(100)
        assert page.locator("#heat canvas").bounding_box()["height"] < before  # labels are shorter: no empty band stays


def test_of_many_topics_the_heat_map_shows_those_with_room(opened, tmp_path):
    plain = corpus().with_contexts({})
    engine = fits.gibbs(start_topics=60)
    describe(fit(plain, *engine, iterations=1, seed=1, progress=False).posterior, plain, tmp_path / "out")
    n_topics = len(pd.read_csv(tmp_path / "out/topics.csv"))
    for width in (390, 1300):
        with opened(tmp_path / "out/index.html", width=width) as page:
            n_shown = len({row["column"] for row in csv_of(page, "#heat-part .saves button >> nth=0")})
            assert f"Not shown: {n_topics - n_shown} less common topics." in page.inner_text("#heat-about")
            across = page.locator("#heat canvas").bounding_box()["width"] - (130 if width < 700 else 210)
            assert (n_shown == 30) if width == 1300 else (14 <= across / n_shown < 16)


def test_of_contexts_alone_nothing_of_topics_is_shown(opened, tmp_path):
    done = of_contexts_alone()
    describe(done.posterior, done.corpus, tmp_path / "out")
    with opened(tmp_path / "out/index.html") as page:
        assert "Clusters shown: 2 of 2" in page.inner_text("#map-part")
        assert not any(page.is_visible(f"#{part}") for part in ("topics-part", "heat-part", "compare-part"))


def test_without_clusters_topics_are_shown(opened, tmp_path):
    made = corpus().with_contexts({})
    hdp = fit(made, *fits.gibbs(model="hdp", start_topics=4), iterations=3, seed=0, chains=2, progress=False)
    describe(hdp.posterior, made, tmp_path / "out")
    with opened(tmp_path / "out/index.html") as page:
        assert "clusters" not in page.inner_text("#summary")
        assert "clusters: the model (hdp) gives each document its own topics" in page.inner_text("#missing")
        hidden = ("#clusters-part", "#groups", "#heat-part", "#rename-cluster", "#technical", "#runs")
        assert not any(page.is_visible(part) for part in hidden)
        assert page.inner_text("#panel-title") == "All documents"
        assert "run" not in page.inner_text("#facts")
        assert page.inner_text("#facts-more") == ""
        assert re.match(r"● ?Topic \d+: |Topic \d+: ", page.inner_text("#legend button >> nth=0"))
        assert colours(page, "map") > 5
        assert "Cluster" not in page.inner_text("main")


def test_one_recommended_cluster_is_said_to_be_no_group(opened, description, tmp_path):
    sample, kept = description.posterior.samples[0], description.posterior.hierarchy
    several = {"samples": [sample] * 3, "provenance": description.posterior.provenance | {"chains": [1, 2]}}
    kept = dataclasses.replace(kept, recommended=1, agreement=np.full(len(kept.agreement), 0.1))
    posterior = dataclasses.replace(description.posterior, hierarchy=kept, **several)
    describe(posterior, description.corpus, tmp_path / "out")
    coherent = in_words(pd.read_csv(tmp_path / "out/topics.csv"))
    assert coherent
    summary = (tmp_path / "out/summary.md").read_text("utf-8")
    assert "\n\nNo groups of documents were found.\n\n" in summary
    assert f"## Topics\n\n{coherent}\n\n" in summary
    assert "## Clusters" not in summary
    with opened(tmp_path / "out/index.html") as page:
        assert page.inner_text("#runs") == f"No groups of documents were found. {coherent}"
        assert page.inner_text("#legend") == "All documents"
        hidden = ("#tree-part", "#heat-part", "#contents [href='#tree-part']", "#relevance", "#rename-cluster")
        assert not any(page.is_visible(one) for one in hidden)
        assert page.inner_text("#members summary") == "All 60 documents"
        assert page.locator("#about th").all_inner_texts()[1:3] == ["documents", "share of the values"]
        page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
        assert "run" not in page.text_content("#printed-list")
        assert page.inner_text("#warnings") == ""
        assert "cluster" not in page.inner_text("#summary")
        assert page.inner_text("#merged") == "no groups of documents were found"
        assert page.inner_text("#panel-title") == "All documents"
        assert page.inner_text("#facts") == "60 documents, 100 % of all \xb7 commonest label water: 33 %"
        assert page.inner_text("#facts-more") == ""
        listed = page.inner_text("#clusters")
        assert "All documents" in listed
        assert "run" not in listed
        about = page.inner_text("#about")
        assert "average" not in about
        assert "trend" not in about
        page.evaluate("document.getElementById('groups').value = 2")
        page.dispatch_event("#groups", "input")
        assert "other fits may divide the documents differently" in page.inner_text("#merged")
        assert page.inner_text("#panel-title").startswith("Cluster ")
        assert all(page.is_visible(one) for one in hidden)


@pytest.mark.parametrize("width", [1300, 390])
def test_tables_of_who_have_room_for_both_shares(opened, folder, width):
    with opened(folder / "index.html", width=width) as page:
        for part, of in (("#about", ["documents", "share of its values", "share of all values"]), ("#topic-about", [])):
            table = page.locator(f"{part} table").first
            head = table.locator("th").all_inner_texts()[1:]
            assert head == (of or ["share of the topic's words", "share of all words"])
            block = page.locator(f"{part} .block").first.bounding_box()
            assert table.bounding_box()["width"] <= block["width"] + 1


def test_few_misfits_are_said_to_be_explained_by_chance(opened, folder, tmp_path):
    text = (folder / "index.html").read_text(encoding="utf-8")
    for n, explained in ((1, " Chance may explain this one."), (3, "")):  # 0.08 of 60 are expected
        values = ",".join(["3.4"] * n + ["0"] * (60 - n))
        changed = re.sub(r'"misfit":\[[^\]]*', f'"misfit":[{values}', text)
        (tmp_path / "index.html").write_text(changed, encoding="utf-8")
        with opened(tmp_path / "index.html") as page:
            assert (
                page.inner_text("#misfits h3")
                == f"Fits no cluster well ({n} document{'s' * (n > 1)}, {'1.7' if n == 1 else '5'} %)"
            )
            assert page.inner_text("#misfits p").endswith(f"about 0.081 of 60 documents would be listed.{explained}")


def test_it_says_how_sure_numbers_are_and_how_far_chains_agree(opened, description, tmp_path):
    sample = description.posterior.samples[0]
    fewer = dataclasses.replace(
        sample, topic_weights=sample.topic_weights[:2], topic_words=sample.topic_words[:2],
        topic_given_cluster=sample.topic_given_cluster[:, :2],
    )  # fmt: skip
    provenance = description.posterior.provenance | {"chains": [1, 2]}
    several = dataclasses.replace(description.posterior, samples=[fewer, sample, sample], provenance=provenance)
    describe(several, description.corpus, tmp_path / "out")
    k, m, n = sample.n_clusters, sample.n_topics, Description.from_posterior(several, description.corpus).recommended
    with opened(tmp_path / "out/index.html") as page:
        said, technical = page.inner_text("#summary"), page.text_content("#technical p")
        assert (
            page.inner_text("#runs")
            == f"Two runs from different starts: {n} of the {n} clusters (60 documents) were found in both."
        )
        assert " · Found by both runs" in page.inner_text("#facts")
        assert page.locator("#clusters .under").first.inner_text().endswith(" %")
        assert page.inner_text("#headline") == f"{n} clusters of 60 documents"
    assert f" · {m} topics" in said
    of_fit = f"the fit has {k} clusters ({k} hold 95 % of the documents in 90 % of the samples)"
    assert technical == f"{of_fit} · 2 chains of {k} and {k} clusters agree by ARI 1.00, VI 0.00 bits on all clusters"
    assert "cluster" not in said


def test_of_observations_it_shows_means_and_no_words(opened, tmp_path):
    made, _ = crossed_corpus(n_documents=24, n_observations=15, seed=4)
    posterior = fit(made, *fits.gibbs(start_topics=5, start_clusters=3), iterations=3, seed=1).posterior
    describe(posterior, made, tmp_path / "out")
    for width in (390, 1300):
        with opened(tmp_path / "out/index.html", width=width) as page:
            for chart in ("map", "cluster-bars", "topic-bars", "heat", "topic-map"):
                assert colours(page, chart) > 5
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            assert "360 observations · 3 numbers" in page.inner_text("#summary")
            assert page.locator("#relevance").is_hidden()
            saved = csv_of(page, "#topics-part .block .saves button >> nth=0")
            assert {row["name"] for row in saved} == {"w0", "w1", "w2"}
            said = page.inner_text("main")
            assert "words" not in said.lower()
            assert "% of the fitted observations" in said
            page.click("#typical button >> nth=0")
            assert "15 observations" in page.inner_text("#reader-facts")


def test_its_head_names_the_observations_and_counts_clusters(opened, tmp_path):
    _, topic = crossed_corpus(n_documents=24, n_observations=15, seed=4)
    made = Corpus.from_observations(4.0 * topic[:, None] + np.arange(3), np.arange(360) // 15, kind="counts")
    posterior = fit(made, *fits.gibbs(start_topics=5, start_clusters=3), iterations=3, seed=1).posterior
    few = made.subset(np.flatnonzero(posterior.cluster == posterior.cluster[0]))
    n, recommended = posterior.n_clusters, Description.from_posterior(posterior, few).recommended
    describe(posterior, few, tmp_path / "out")
    assert len(np.unique(posterior.assign(few)[0])) < n == len(np.unique(posterior.cluster))
    with opened(tmp_path / "out/index.html") as page:
        said, technical = page.inner_text("#summary"), page.text_content("#technical p")
        assert page.inner_text("#headline") == f"{recommended} clusters of {few.n_documents} documents"
    assert f"{few.n_tokens} observations · 3 counts · " in said
    assert technical.startswith(f"the fit has {n} clusters (")
    assert f"{few.n_documents} documents, {recommended} clusters, " in (tmp_path / "out/summary.md").read_text("utf-8")


def test_a_document_has_given_and_predicted_contexts(opened, folder, description):
    told = predictions(description, np.arange(60))
    with opened(folder / "index.html", width=390) as page:
        for document in (4, 5, 7):  # one with all contexts, without a year, without an author
            page.fill("#search", f"part {document}")
            page.click("#results .hit button >> nth=0")
            rows = page.locator("#reader-predicted tbody tr").all_inner_texts()
            author, year = (row.split("\t") for row in rows)
            which = told["year"]["of"][document]
            given = description.corpus.contexts["author"][[document]].indices
            names = description.corpus.context_names["author"]
            assert author[1] == ("; ".join(names[one] for one in given) or NOTHING)
            first = told["author"]["columns"][which, 0]
            assert author[2].startswith(f"{names[first]} {100 * told['author']['probability'][which, 0]:.2g}")
            mean, low, high = (round(told["year"][part][which]) for part in ("mean", "low", "high"))
            assert year[2] == f"{mean} (90 %: {low} to {high})"
            assert (year[1] == NOTHING) == (document == 5)
            assert page.evaluate("document.documentElement.scrollWidth") <= 390
            page.click("#reader-close")


def test_shares_have_no_more_digits_than_the_report_shows(folder):
    data = data_of((folder / "index.html").read_text(encoding="utf-8"))["tables"]
    shares = [x for one in ("shares", "trends") for part in ("share", "low", "high") for x in data[one][part]]
    shares += data["cluster_words"]["probability"] + data["topic_words"]["lift"]
    shares = [x for x in shares if x]
    assert len(shares) > 100
    assert all(float(f"{x:.4g}") == x for x in shares)
    exact = pd.read_csv(folder / "shares.csv")["share"]
    assert any(float(f"{x:.4g}") != x for x in exact)


def test_titles_and_names_are_text(opened, folder):
    with opened(folder / "index.html") as page:
        assert page.title() == "Lakes & <b>woods</b>"
        assert page.inner_text("h1") == "Lakes & <b>woods</b>"
        page.fill("#search", "onerror")
        assert page.inner_text("#results .hit button") == HOSTILE
        page.fill("#search", "<i>chen")
        assert page.inner_text("#results .hit button").startswith("<i>Chen</i>: ")
        assert page.locator("main img, main b, main i, main script").count() == 0


#: names of what every JavaScript object has, what scripts and charts may take for numbers or paths, and markup
ODD = (
    "constructor", "__proto__", "toString", "hasOwnProperty", "valueOf", "length", "0", "1e5", "NaN", "null", "true",
    "undefined", "a.b", "a[0]", "x-ray", "it's", 'say "so"', "back\\slash", "<b>bold</b>", "</script>", "a b", "$x_$",
)  # fmt: skip


def odd_corpus():
    """Words, contexts, their values, kept columns and labels are all of ODD."""
    n, k = 66, len(ODD)
    rng, own = np.random.default_rng(3), np.arange(n) % k
    content = rng.poisson(0.3, (n, k))
    content[np.arange(n), own] += 9
    numbers = {name: own % 5 + 10.0 * i + rng.integers(0, 3, n) for i, name in enumerate(("__proto__", "é", "ü"))}
    names = {name: sp.csr_matrix(np.eye(k, dtype=np.int64)[own]) for name in ("constructor", "toString")}
    kept = {name: [ODD[one] for one in own] for name in ("title", "hasOwnProperty", "a.b", "a[0]")}
    return Corpus(
        content,
        ODD,
        {**numbers, **names},
        labels=own,
        documents=pd.DataFrame(kept),
        context_names=dict.fromkeys(names, ODD),
        label_names=list(ODD),
    )


def test_names_with_a_meaning_in_scripts_are_drawn_as_others(opened, tmp_path):
    made, folder = odd_corpus(), tmp_path / "out"
    families = {"number": NormalGamma, "counts": DirichletCategorical}
    contexts = {name: families[kind]() for name, kind in made.context_kinds.items()}
    engine = fits.gibbs(contexts=contexts, start_topics=4, start_clusters=4)
    names = {"cluster": {1: "constructor", 2: "__proto__"}, "topic": {1: "valueOf"}}
    texts = [ODD[one] for one in made.labels]
    describe(fit(made, *engine, iterations=3, seed=1).posterior, made, folder, names=names, texts=texts)
    with opened(folder / "index.html") as page:
        charts = [one.get_attribute("id") for one in page.locator(".chart:visible").all()]
        assert {"map", "tree", "heat", "cluster-bars", "topic-bars", "topic-map", "compare-0"} <= set(charts)
        assert [chart for chart in charts if colours(page, chart) <= 3] == []
        for what in ("cluster", "topic"):
            for button in page.locator(f"#{what}s button").all():
                button.click()
                words = {row["word"] for row in csv_of(page, f"#{what}-bars + .saves button >> nth=0")}
                assert words
                assert words <= {said for _, _, said in svg_of(page, f":has(> #{what}-bars)")}
        for name in page.locator("#colour option").all():
            page.select_option("#colour", name.get_attribute("value"))
        for name in page.locator("#heat-by option").all():
            page.select_option("#heat-by", name.get_attribute("value"))
            rows = {row["column"] for row in csv_of(page, "#heat-part .saves button >> nth=0")}
            assert rows <= {said for _, _, said in svg_of(page, "#heat-part")}
        for word in (one for one in ODD if len(one) > 1):
            page.fill("#search", word)
            assert page.locator("#results button").count(), word
            page.locator("#results button").last.evaluate("(button) => button.click()")


def test_a_click_opens_the_cluster_and_hovering_says_the_title(opened, folder, description):
    with opened(folder / "index.html") as page:
        for document in (0, 1):
            x, y = place_on_map(page, folder, document)
            page.hover("#map canvas", position={"x": x, "y": y})
            page.wait_for_selector("#tip:not([hidden])")
            assert re.search(r"On (lakes|woods|stars), part|script", page.inner_text("#tip"))
            page.mouse.down()
            page.mouse.up()
            cluster = int(re.search(r"Cluster (\d+)", page.inner_text("#tip"))[1])
            assert page.inner_text("#panel-title").startswith(f"Cluster {cluster}: ")
            assert page.get_attribute(f"#clusters [data-cluster='{cluster}']", "aria-current") == "true"
            n_documents = (description.cluster == cluster - 1).sum()
            assert f"{n_documents} documents" in page.inner_text("#facts")
        page.keyboard.press("Escape")
        page.click("#to-members")
        assert page.locator("#members-list tbody tr").count() == n_documents


def test_search_finds_words_titles_and_names(opened, folder):
    with opened(folder / "index.html") as page:
        page.fill("#search", "wood1")
        assert "Clusters with the word" in page.inner_text("#results")
        assert "Topics with the word" in page.inner_text("#results")
        page.fill("#search", "part 41")
        assert page.inner_text("#results .hit button") == "On stars, part 41"
        page.fill("#search", "41 STARS")  # all parts, in any order
        assert page.locator("#results .hit button").all_inner_texts() == ["On stars, part 41"]
        page.fill("#search", '"stars, part 41"')  # a phrase
        assert page.locator("#results .hit button").all_inner_texts() == ["On stars, part 41"]
        page.fill("#search", '"part 41 stars"')
        assert page.inner_text("#results") == "nothing found"
        page.fill("#search", "tars")  # inside a word
        assert page.inner_text("#results") == "nothing found"
        page.fill("#search", "okafor")
        assert page.inner_text("#results .hit button").startswith("Okafor: On lakes")
        n_found = page.locator("#found-list tbody tr").count()
        assert page.inner_text("#hits").startswith(f"{n_found} documents found by the search are lit.")
        page.locator("#results .hit button").first.click()
        assert page.evaluate("document.activeElement.id") == "reader-title"
        assert page.inner_text("#hits").startswith(f"{n_found} documents")
        page.fill("#search", "nothing like it")
        assert page.inner_text("#results") == "nothing found"


def test_of_a_large_corpus_search_says_of_how_many_documents(opened, description, tmp_path, monkeypatch):
    monkeypatch.setattr("mc2core.explore.documents.MAX_POINTS", 20)
    describe(description.posterior, description.corpus, tmp_path / "out")
    with opened(tmp_path / "out/index.html") as page:
        assert page.inner_text("#headline").endswith(" of 60 documents")
        assert "the map shows 20 documents, drawn at random" in page.inner_text("#summary")
        page.fill("#search", "nothing like it")
        said = re.fullmatch(r"nothing found \(of (\d+) in this report\)", page.inner_text("#results"))
        assert 20 <= int(said[1]) < 60  # and the typical ones


def test_the_slider_goes_through_levels_and_says_their_agreement(opened, folder, description):
    kept = description.posterior.hierarchy
    with opened(folder / "index.html") as page:
        assert page.locator("#clusters [data-cluster]").count() == description.recommended == kept.recommended
        assert "the recommended number of clusters" in page.inner_text("#merged")
        page.focus("#groups")
        page.keyboard.press("End")
        assert page.locator("#clusters [data-cluster]").count() == description.n_clusters
        for _ in range(description.n_clusters - 2):
            page.keyboard.press("ArrowLeft")
        assert page.inner_text("#groups-number") == f"2 of {description.n_clusters}"
        assert page.evaluate("scrollY") == 0  # what is chosen comes into sight within its list, the page stays
        assert re.match(r"Cluster \d of 2: ", page.inner_text("#panel-title"))
        sizes = [
            int(re.search(r"(\d+) document", one.get_attribute("aria-label"))[1])
            for one in page.locator("#clusters [data-cluster]").all()
        ]
        assert sizes == sorted(np.bincount(kept.cut(2)).tolist(), reverse=True)
        said = page.inner_text("#merged") + page.text_content("#merged-technical")
        assert "ARI" not in page.inner_text("#map-part")
        row = pd.read_csv(folder / "hierarchy.csv").iloc[1]
        assert f"ARI {float(f'{row.ari:.4g}'):g}" in said
        assert f"less likely, by {float(f'{row.loss:.2g}'):g} nats per document" in said
        assert ("the recommended number of clusters" in said) == (kept.recommended == 2)
        x, y = place_on_map(page, folder, 1)
        page.hover("#map canvas", position={"x": x, "y": y})
        page.wait_for_selector("#tip:not([hidden])")
        assert f"Cluster {kept.cut(2)[1] + 1} of 2" in page.inner_text("#tip")


def test_the_broad_clustering_is_named_beside_the_recommended(opened, description, tmp_path):
    kept = dataclasses.replace(description.posterior.hierarchy, recommended=3, other=2)
    describe(dataclasses.replace(description.posterior, hierarchy=kept), description.corpus, tmp_path / "out")
    with opened(tmp_path / "out/index.html") as page:
        assert page.inner_text("#headline") == "3 clusters of 60 documents · broad clustering: 2"
        assert page.inner_text("#merged").startswith("the recommended number of clusters")
        page.click("#headline button")
        assert page.inner_text("#merged").startswith("the broad clustering; 3 are recommended")
        assert page.inner_text("#groups-number").startswith("2 of ")
        page.focus("#groups")
        page.keyboard.press("ArrowLeft")
        assert page.inner_text("#merged").startswith("coarser than recommended")


def test_clusters_without_documents_are_not_listed(opened, description, tmp_path):
    few = description.corpus.subset(np.flatnonzero(description.corpus.labels == 0))
    describe(description.posterior, few, tmp_path / "out")
    used = np.unique(description.cluster[description.corpus.labels == 0]) + 1
    with opened(tmp_path / "out/index.html") as page:
        listed = page.locator("#clusters [data-cluster]").all()
        assert sorted(int(one.get_attribute("data-cluster")) for one in listed) == used.tolist()
        page.focus("#groups")
        for key in ("Home", "End"):  # all joined, and apart again
            page.keyboard.press(key)
            assert re.match(r"Cluster \d+( of \d+)?: |All documents$", page.inner_text("#panel-title"))
        assert page.locator("#clusters [data-cluster]").count() == len(used)


@pytest.mark.parametrize("differ", [True, False])
def test_one_measure_of_certainty_is_shown_another_is_in_details(opened, folder, tmp_path, differ):
    """Two runs that have less than half of the clusters in common, with and without a warning of their adjusted Rand
    index.
    """
    table = pd.read_csv(folder / "clusters.csv")
    chains = [2] * (len(table) // 2) + [0] * (len(table) - len(table) // 2)
    text = (folder / "index.html").read_text(encoding="utf-8")
    data = data_of(text)
    n_nodes = len(data["nodes"]["cluster"])
    data["nodes"]["chains"] = (chains + [1] * n_nodes)[:n_nodes]
    data["nodes"]["found"] = [one / 2 for one in data["nodes"]["chains"]]
    data["runs"] = 2
    warning = "the recommended 3 of each agree only in part (adjusted Rand index 0.50; 1 if identical): take care"
    data["summary"] += [["clusters by run", f"two runs: {len(table) // 2} of the {len(table)} came out in both"]]
    data["summary"] += [["warning 1", warning]] * differ + [["warning 2", "markup in the texts"]]
    script = f"<script>{pages.data_script('DESCRIPTION', data)}</script>"
    text = re.sub(r"<script>window\.DESCRIPTION = .*?</script>", lambda _: script, text, flags=re.S)
    (tmp_path / "index.html").write_text(text, encoding="utf-8")
    with opened(tmp_path / "index.html") as page:
        assert page.locator("#clusters .unsure").count() == len(table) - len(table) // 2
        assert page.inner_text("#runs").endswith("iterations or chains.")
        assert page.inner_text("#warnings") == "Markup in the texts."
        assert "agree" not in page.inner_text("header") + page.inner_text("#map-part")
        assert (warning in page.text_content("#technical p")) == differ


def test_what_is_found_is_counted_by_context_and_time_and_listed(opened, tmp_path):
    """Documents that have the word wood1, counted here from the counts of words."""
    made = corpus()
    describe(gibbs(made), made, tmp_path / "out", texts=texts_of(made))
    has = made.content.toarray()[:, made.vocabulary.index("wood1")] > 0
    authors, names = made.contexts["author"].toarray() > 0, made.context_names["author"]
    with opened(tmp_path / "out/index.html") as page:
        page.fill("#search", "wood1")
        table = page.locator("#found .block:has(h3:text-is('By author'))")
        page.wait_for_selector("#found canvas")
        rows = [row.split("\t") for row in table.locator("tbody tr").all_inner_texts()]
        found = {name.strip(): (int(n), int(of)) for name, n, of, _ in rows}
        both = {name: (int((has & own).sum()), int(own.sum())) for name, own in zip(names, authors.T, strict=True)}
        assert found == {name: counts for name, counts in both.items() if counts[0]}
        assert [n for n, _ in found.values()] == sorted((n for n, _ in found.values()), reverse=True)
        assert f"Found in {has.sum()} documents, {100 * has.mean():.2g} %." in page.inner_text("#results")
        first = rows[0][0].strip()
        assert f"Most by author: {first} ({found[first][0]} of {found[first][1]})" in page.inner_text("#results")
        table.locator("thead button:text-is('share found')").click()
        by_share = [row.split("\t") for row in table.locator("tbody tr").all_inner_texts()]
        share = [float(row[-1].rstrip(" %")) for row in by_share]
        assert share == sorted(share, reverse=True)
        assert {row[0] for row in by_share} == {row[0] for row in rows}
        table.locator("thead button:text-is('found')").click()
        steps = csv_of(page, "#found .block:has(#found-over-0) .saves button >> nth=0")
        assert sum(int(row["found"]) for row in steps) == (has & ~np.isnan(made.contexts["year"])).sum()
        assert page.inner_text("#found-of") == f"{has.sum()} documents"
        table.locator("tbody button").first.click()
        listed = page.locator("#found-list tbody tr")
        assert page.inner_text("#found-of").startswith(f"{found[first][0]} documents with author {first}")
        assert listed.count() == found[first][0]
        listed.first.locator("button").click()
        page.wait_for_selector("#reader-text mark")
        assert set(page.locator("#reader-text mark").all_inner_texts()) == {"wood1"}
        page.click("#reader-close")
        page.click("#found-of button")
        assert page.inner_text("#found-of") == f"{has.sum()} documents"
        page.fill("#search", "nothing like it")
        assert page.is_hidden("#found-part")


def test_no_list_scrolls_within_and_long_ones_have_a_button(opened, tmp_path):
    made = corpus(150)
    describe(gibbs(made), made, tmp_path / "out")
    scrolling = """[...document.querySelectorAll("main *")].filter((one) => one.checkVisibility() &&
        /auto|scroll/.test(getComputedStyle(one).overflowY) && one.scrollHeight > one.clientHeight + 1)
        .map((one) => one.id)"""
    with opened(tmp_path / "out/index.html") as page:
        page.click("#to-members")
        page.fill("#search", "on")
        size = int(re.match(r"All (\d+) documents", page.inner_text("#to-members"))[1])
        assert size > 20
        rows = page.locator("#members-list tbody tr:visible")
        assert rows.count() == 20
        assert page.evaluate(scrolling) == []
        page.click(f"#members-list button:text-is('Show all {size} documents')")
        assert rows.count() == size
        assert page.evaluate(scrolling) == []
        page.click("#members-list button:text-is('Show the first 20')")
        assert rows.count() == 20


def test_a_topic_has_who_and_when_as_a_cluster_has(opened, folder, description):
    """Shares of a topic's expected tokens by author, summed here over documents."""
    tokens = description.document_topics.toarray()
    authors = description.corpus.contexts["author"].toarray() > 0
    names = description.corpus.context_names["author"]
    with opened(folder / "index.html") as page:
        topic = int(re.search(r"\d+", page.inner_text("#topic-title"))[0]) - 1
        block = page.locator("#topic-about .block:has(h3:text-is('author'))")
        assert block.locator("thead").inner_text().strip().split("\t") == [
            "share of the topic's words",
            "share of all words",
        ]
        rows = [row.split("\t") for row in block.locator("tbody tr").all_inner_texts()]
        notable, facts = block.locator("p").inner_text(), page.inner_text("#topic-facts")
        year = page.inner_text("#topic-about .block:has(h3:text-is('year'))")
    share = authors.T @ tokens[:, topic] / tokens[:, topic].sum()
    lift = share / (authors.T @ tokens.sum(axis=1) / tokens.sum())
    assert [row[0] for row in rows] == [names[one] for one in np.argsort(-share, kind="stable") if share[one] > 0][:8]
    for name, said, of_all in rows:
        assert float(said.rstrip(" %")) == pytest.approx(100 * share[names.index(name)], rel=0.06)
        average = share[names.index(name)] / lift[names.index(name)]
        assert float(of_all.rstrip(" %")) == pytest.approx(100 * average, rel=0.06)
    table = topic_tables(description, with_map=False)["topic_values"].query(
        "topic == @topic + 1 and context == 'author'"
    )
    marked = table[table["is_notable"]]
    assert len(marked)
    assert {one for one in names if f"{one} (" in notable} == set(marked["value"])
    for name, times in re.findall(r"(?:[:,] )([^(]+) \(([\d.]+) \S average\)", notable):
        assert float(times) == pytest.approx(lift[names.index(name)], rel=0.06)
    trend = "(rises|falls) with year by more than chance explains: its share of the words changes by"
    assert re.search(f"{trend}|no trend with year beyond", facts)
    years = (
        description.corpus.contexts["year"] * description.corpus.units["year"][1] + description.corpus.units["year"][0]
    )
    order = np.argsort(years[~np.isnan(years)], kind="stable")
    weight = tokens[~np.isnan(years), topic][order]
    median = years[~np.isnan(years)][order][np.searchsorted(np.cumsum(weight), weight.sum() / 2)]
    assert f"median {median:.0f}; half of the topic's words" in year


def test_documents_that_came_later_are_told_with_a_warning(opened, folder, description, tmp_path):
    with opened(folder / "index.html") as page:
        assert not page.is_visible("#arrivals-part")
    changes = {"clusters_born": 2, "clusters_gone": 1, "topics_born": 0, "topics_gone": 3}
    counts = {"documents": 50, "tokens": 1000, "in_small": 4, "left_out_tokens": 10} | changes
    updates = [counts | {"file": f"day{day}", "log_evidence": 1000 * nats} for day, nats in ((1, -7.1), (2, -7.2))]
    fitted = {"documents": 100, "tokens": 2000, "log_evidence": -14000.0}
    for number, (more, wanted) in enumerate([([], False), ([updates[0] | {"log_evidence": -7500.0}], True)]):
        stream = {"stream": {"fitted": fitted, "updates": [*updates, *more]}}
        posterior = dataclasses.replace(description.posterior, provenance=stream)
        describe(posterior, description.corpus, tmp_path / str(number))
        table = pd.read_csv(tmp_path / str(number) / "arrivals.csv")
        assert table["log_likelihood"].tolist() == [-7.1, -7.2, -7.5][: len(table)]
        assert table["so_far"].tolist() == [50, 100, 150][: len(table)]
        with opened(tmp_path / str(number) / "index.html") as page:
            said = page.inner_text("#arrivals-fit")
            assert (
                "may no longer fit: the new documents are less likely than the documents of earlier" in said
            ) == wanted
            rows = page.locator("#arrivals-table tbody tr")
            assert rows.count() == 2 + wanted
            cells = "2 day2 50 -7.2 8 % 0.99 % +2 \u22121 +0 \u22123"
            assert " ".join(rows.nth(1).inner_text().split()) == cells
            assert colours(page, "arrivals-likelihood") > 2
            assert colours(page, "arrivals-small") > 2
        with opened(tmp_path / str(number) / "index.html", width=400) as page:
            box = page.locator("#arrivals-table").evaluate("(one) => [one.scrollWidth, one.clientWidth]")
            assert box[0] <= box[1]
        assert ("may no longer fit" in (tmp_path / str(number) / "summary.md").read_text("utf-8")) == wanted


def test_topics_are_listed_by_share_and_say_their_coherence(opened, folder, tmp_path):
    """The commonest topic is given no coherence."""
    table = pd.read_csv(folder / "topics.csv")
    text = (folder / "index.html").read_text(encoding="utf-8")
    (tmp_path / "index.html").write_text(re.sub(r'"npmi":\[[^,]*', '"npmi":[0.0', text), encoding="utf-8")
    table.loc[0, "npmi"] = 0.0
    more = table["npmi"] - table["npmi_by_chance"]
    is_coherent = more >= np.maximum(0.1, 3 * table["npmi_by_chance_sd"])
    assert not is_coherent[0]
    assert is_coherent.any()
    order = table.sort_values("share", ascending=False, kind="stable")["topic"].tolist()
    row = table[table["topic"] == order[0]].iloc[0]
    by_chance = " ± ".join(f"{float(f'{row[name]:.2g}'):g}" for name in ("npmi_by_chance", "npmi_by_chance_sd"))
    with opened(tmp_path / "index.html") as page:
        assert f"coherence (NPMI) {float(f'{row.npmi:.2g}'):g}, by chance {by_chance}" in page.inner_text(
            "#topic-facts"
        )
        texts = page.locator("#topics li").all_inner_texts()
        assert [int(re.search(r"(\d+): ", one)[1]) for one in texts] == order
        assert ["not coherent" in one for one in texts] == (~is_coherent)[
            np.argsort(-table["share"], kind="stable")
        ].tolist()
        assert page.inner_text("#topics-title") == "Topics by share"
        assert f"topics ({is_coherent.sum()} coherent)" in page.inner_text("#summary")
        assert page.inner_text("#topic-map-about").strip() == "Grey: not coherent."
        rgb = "154, 160, 168"
        grey = """(rgb) => { const canvas = document.querySelector("#topic-map canvas");
            const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data, n = data.length;
            for (let i = 0; i < n; i += 4) if (`${data[i]}, ${data[i + 1]}, ${data[i + 2]}` === rgb) return true;
            return false; }"""
        page.click(f"#topics li:has-text('{order[1]}: ') button")
        page.wait_for_timeout(100)
        assert page.evaluate(grey, rgb)


def test_it_can_be_used_by_keyboard(opened, folder):
    with opened(folder / "index.html") as page:
        page.keyboard.press("Tab")
        assert page.inner_text(":focus") == "Skip to the clusters"
        page.focus("#clusters [data-cluster] >> nth=1")
        cluster = page.get_attribute(":focus", "data-cluster")
        page.keyboard.press("Enter")
        assert page.inner_text("#panel-title").startswith(f"Cluster {cluster}: ")
        before = page.locator("#map canvas").screenshot()
        page.focus("#map")
        page.keyboard.press("+")
        assert page.locator("#map canvas").screenshot() != before
        page.keyboard.press("0")
        page.focus("#relevance")
        words = page.get_attribute("#cluster-bars canvas", "aria-label")
        page.keyboard.press("End")
        likely = page.get_attribute("#cluster-bars canvas", "aria-label")
        page.keyboard.press("Home")
        assert page.get_attribute("#cluster-bars canvas", "aria-label") != likely
        assert words.startswith(f"Words of Cluster {cluster}: ")


def test_it_can_be_coloured_by_label_and_by_every_context(opened, folder):
    with opened(folder / "index.html") as page:
        legends = []
        for value in ("cluster", "label", "in author", "in year"):
            page.select_option("#colour", value)
            legends.append(page.inner_text("#legend").split("\n"))
        assert sorted(legends[1]) == ["land", "sky", "water"]
        assert "<i>Chen</i>" in legends[2]
        assert legends[3][0] == "1990"


def lit_on_map(page):
    """Numbers of the documents whose dots are not grey, by colour."""
    page.wait_for_timeout(SAVING_PAUSE)
    with page.expect_download() as caught:
        page.click("#map-part .saves button >> nth=1")
    dots = re.findall(r'<path [^>]*fill="(#[0-9a-f]{6})"', Path(caught.value.path()).read_text(encoding="utf-8"))
    return Counter(one for one in dots if one not in ("#9aa0a8", "#ffffff"))


def test_the_legend_isolates_hides_and_colours_one_value(opened, folder, description):
    sizes = sorted(np.bincount(description.cluster), reverse=True)
    authors = description.corpus.contexts["author"].toarray() > 0
    with opened(folder / "index.html") as page:
        first = page.locator("#legend button").first
        first.click()
        assert sum(lit_on_map(page).values()) == sizes[0]
        first.click()
        assert sum(lit_on_map(page).values()) == sum(sizes)
        first.click(modifiers=["Shift"])
        assert sum(lit_on_map(page).values()) == sum(sizes) - sizes[0]
        assert page.get_attribute("#legend button >> nth=0", "aria-pressed") == "false"
        page.select_option("#colour", "in author")
        page.fill("#value", "<i>Chen</i>")  # of documents that have another author before it
        n = authors[:, description.corpus.context_names["author"].index("<i>Chen</i>")].sum()
        assert list(lit_on_map(page).values()) == [n]
        assert page.inner_text("#legend").split("\n") == [f"<i>Chen</i> ({n} documents)", f"all others ({60 - n})"]


def test_the_wheel_scrolls_until_the_map_was_clicked(opened, folder):
    with opened(folder / "index.html") as page:
        page.hover("#map canvas", position={"x": 30, "y": 30})
        before = page.locator("#map canvas").screenshot()
        page.mouse.wheel(0, 40)
        page.wait_for_timeout(200)
        assert page.evaluate("scrollY") > 0
        page.evaluate("scrollTo(0, 0)")
        assert page.locator("#map canvas").screenshot() == before
        page.click("#map canvas", position={"x": 30, "y": 30})
        page.mouse.wheel(0, 40)
        page.wait_for_timeout(200)
        assert page.evaluate("scrollY") == 0
        assert page.locator("#map canvas").screenshot() != before


def test_names_are_edited_in_the_report_and_read_back(opened, folder, description, tmp_path):
    with opened(folder / "index.html") as page:
        numbers = {}
        for what, title in (("cluster", "#panel-title"), ("topic", "#topic-title")):
            numbers[what] = int(re.search(r"\d+", page.inner_text(title))[0])
            page.click(f"#rename-{what}")
            page.keyboard.type(f'My "{what}", <b>renamed</b>')
            page.keyboard.press("Enter")
            assert page.inner_text(title).endswith(f': My "{what}", <b>renamed</b>')
        assert 'My "cluster", <b>renamed</b>' in page.inner_text("#clusters [aria-current]")
        with page.expect_download() as caught:
            page.click(".save-names >> nth=0")
        caught.value.save_as(tmp_path / "names.csv")
    describe(description.posterior, description.corpus, tmp_path / "out", names=tmp_path / "names.csv")
    for what, number in numbers.items():
        table = pd.read_csv(tmp_path / "out" / f"{what}s.csv").set_index(what)
        assert table["name"][number] == f'My "{what}", <b>renamed</b>'


def test_printed_each_cluster_is_there_once_lists_have_counts(opened, folder, description):
    odd = (pd.read_csv(folder / "documents.csv")["misfit"].round(1) > 3).sum()
    with opened(folder / "index.html") as page:
        page.click("#theme")
        page.wait_for_function("localStorage.getItem('mc2-report-theme') === 'dark'")
        page.reload()
        page.wait_for_selector("body[data-ready]")
        assert page.evaluate("document.documentElement.dataset.theme") == "dark"
        page.emulate_media(media="print")
        page.set_viewport_size({"width": 720, "height": 1000})
        page.wait_for_timeout(300)
        cut = """[...document.querySelectorAll("main *")].filter((one) => one.checkVisibility() && one.scrollHeight >
            one.clientHeight + 1 && getComputedStyle(one).overflowY !== "visible").map((one) => one.id)"""
        assert page.evaluate(cut) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= 720
        assert page.is_hidden("#search")
        assert page.locator("#map canvas").bounding_box()["height"] > 200
        assert page.locator("#misfits tbody button:visible").count() == min(odd, 20)
        page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
        printed = page.locator("#printed-list h3:visible").all_inner_texts()
        assert [one.partition(":")[0] for one in printed] == [
            f"Cluster {i + 1}" for i in range(description.recommended)
        ]
        assert page.is_hidden("#panel")
        assert page.is_visible("#contents a[href='#printed']")
        style = "([one, name]) => getComputedStyle(document.querySelector(one))[name]"
        for one in ("#printed-list", "#compare"):  # several columns leave pages empty
            assert page.evaluate(style, [one, "columnWidth"]) == "auto"
        for one in ("#compare-title", "#compare-part .row", "#picks"):
            assert page.evaluate(style, [one, "breakAfter"]) == "avoid"


def test_links_at_the_top_lead_to_every_part_that_is_there(opened, folder):
    with opened(folder / "index.html") as page:
        links = page.locator("#contents a:visible")
        parts = [one.get_attribute("href") for one in links.all()]
        assert {"#map-part", "#clusters-part", "#topics-part", "#limits", "#meaning"} <= set(parts)
        assert all(page.is_visible(one) for one in parts)
        assert "#arrivals-part" not in parts
        links.last.click()
        assert page.evaluate("scrollY") > 0


def test_steps_end_where_the_data_end(opened, folder, tmp_path):
    """A last step of whole numbers that is wider than what the data leave of it."""
    text = (folder / "index.html").read_text(encoding="utf-8")
    data = data_of(text)
    data["tables"]["trends"]["start"] = [1990.0 for _ in data["tables"]["trends"]["start"]]
    data["tables"]["trends"]["end"] = [2030.0 for _ in data["tables"]["trends"]["end"]]
    script = f"<script>{pages.data_script('DESCRIPTION', data)}</script>"
    text = re.sub(r"<script>window\.DESCRIPTION = .*?</script>", lambda _: script, text, flags=re.S)
    (tmp_path / "index.html").write_text(text, encoding="utf-8")
    years = pd.read_csv(folder / "cluster_numbers.csv")
    with opened(tmp_path / "index.html") as page:
        page.select_option("#heat-by", "year")
        page.wait_for_timeout(200)
        columns = {row["column"] for row in csv_of(page, "#heat-part .saves button >> nth=0")}
    least, most = (years[years["context"] == "year"][name] for name in ("least", "most"))
    assert columns == {f"{least.min():.0f} to {most.max():.0f}"}


def test_trends_are_drawn_for_contexts_of_numbers(opened, folder):
    with opened(folder / "index.html") as page:
        assert "Share of documents over year" in page.inner_text("#about")
        assert colours(page, "topic-about-0") > 3


def test_a_model_without_contexts_or_titles_has_a_page(opened, tmp_path):
    plain = corpus().with_contexts({})
    plain.labels, plain._documents = None, plain.documents[[]]
    describe(fastex(plain), plain, tmp_path / "out")
    with opened(tmp_path / "out/index.html") as page:
        assert colours(page, "map") > 5
        assert page.locator("#colour option").count() == 2  # clusters, and how sure they are
        assert page.is_hidden("#compare-part")
        assert "document " in page.inner_text("#typical")


# -- texts ---------------------------------------------------------------------------------------------------------
def texts_of(corpus):
    """A text of each document: its words, and markup that must stay text."""
    counts = corpus.content.toarray()
    said = [" ".join(word for word, n in zip(corpus.vocabulary, row, strict=True) for _ in range(n)) for row in counts]
    return [f"{HOSTILE} {text} end{j}." for j, text in enumerate(said)]


@pytest.fixture(scope="module", params=["in the page", "in scripts beside it"])
def with_texts(request, description, tmp_path_factory):
    folder = tmp_path_factory.mktemp("texts") / "out"
    with pytest.MonkeyPatch.context() as patch:
        if request.param != "in the page":
            patch.setattr("mc2core.explore.texts.MAX_INSIDE", 0)
            patch.setattr("mc2core.explore.texts.PER_SCRIPT", 4000)
        describe(description.posterior, description.corpus, folder, texts=texts_of(description.corpus))
    scripts = sorted(path.name for path in folder.glob("texts_*.js"))
    assert (len(scripts) > 2) == (request.param != "in the page")
    return folder


def test_a_point_and_a_typical_document_open_their_marked_text(opened, with_texts, description):
    with opened(with_texts / "index.html") as page:
        x, y = place_on_map(page, with_texts, 1)
        page.click("#map canvas", position={"x": x, "y": y})
        page.wait_for_selector("#reader-text mark")
        number = description.corpus.documents["title"].tolist().index(page.inner_text("#reader-title"))
        assert page.inner_text("#reader-text") == texts_of(description.corpus)[number]
        assert page.inner_text("#reader-marks").endswith(f"words of {page.inner_text('#panel-title')}")
        assert set(page.locator("#reader-text mark").all_inner_texts()) <= set(description.corpus.vocabulary)
        page.keyboard.press("Escape")
        assert page.is_hidden("#reader")
        page.wait_for_selector("#typical .excerpt mark")
        page.click("#typical button >> nth=2")
        assert page.evaluate("document.activeElement.id") == "reader-title"
        page.click("#reader-close")
        assert page.evaluate("document.activeElement.closest('#typical') !== null")
        page.click("#topic-typical button >> nth=0")
        page.wait_for_selector("#reader-text mark")
        assert page.inner_text("#reader-marks").endswith(f"words of {page.inner_text('#topic-title')}")
        assert page.locator("#reader img, #reader script, #typical img").count() == 0
        assert page.title() == "Clusters and topics"


def test_search_finds_texts_and_reads_them_when_asked(opened, with_texts):
    with opened(with_texts / "index.html") as page:
        page.fill("#search", "end41.")
        if (with_texts / "texts_1.js").exists():
            assert page.inner_text("#results .kind") == "nothing found"
            page.click("#results button")
        page.wait_for_selector("#results .excerpt mark")
        assert page.locator("#results .hit").count() == 1
        assert page.inner_text("#results .excerpt mark") == "end41."
        page.click("#results .hit button")
        page.wait_for_selector("#reader-text mark")
        assert page.inner_text("#reader-title") == "On stars, part 41"
        assert page.inner_text("#reader-text mark") == "end41."


def test_a_script_of_texts_that_is_not_there_is_named(opened, description, tmp_path, monkeypatch):
    monkeypatch.setattr("mc2core.explore.texts.MAX_INSIDE", 0)
    monkeypatch.setattr("mc2core.explore.texts.PER_SCRIPT", 4000)
    describe(description.posterior, description.corpus, tmp_path / "out", texts=texts_of(description.corpus))
    for path in (tmp_path / "out").glob("texts_*.js"):
        path.unlink()
    with opened(tmp_path / "out/index.html", known="ERR_FILE_NOT_FOUND .*/texts_") as page:
        page.click("#typical button >> nth=0")
        page.wait_for_function("document.getElementById('reader-text').textContent.includes('next to this report')")


def test_without_being_asked_for_no_text_is_in_the_page(opened, folder):
    with opened(folder / "index.html") as page:
        page.click("#typical button >> nth=0")
        assert page.inner_text("#reader-marks") == "This report has no texts; add them with mc2 describe --texts."
        assert page.inner_text("#reader-text") == ""
        assert re.search(r"\d % sure that it belongs to this cluster", page.inner_text("#reader-facts"))
        table = pd.read_csv(folder / "document_topics.csv")
        number = 1 + pd.read_csv(folder / "documents.csv")["title"].tolist().index(page.inner_text("#reader-title"))
        shares = table[(table["document"] == number) & (table["share"] >= 0.05)].head(3)
        said = re.findall(r"^([\d.]+) % Topic (\d+): ", page.inner_text("#reader-facts"), re.MULTILINE)
        assert [int(topic) for _, topic in said] == shares["topic"].tolist()
        assert [float(share) for share, _ in said] == pytest.approx((100 * shares["share"]).tolist(), rel=0.05)


# -- names, relations, export --------------------------------------------------------------------------------------
def csv_of(page, button):
    page.wait_for_timeout(SAVING_PAUSE)
    with page.expect_download() as caught:
        page.click(button)
    return list(csv.DictReader(Path(caught.value.path()).read_text(encoding="utf-8").splitlines()))


def test_names_that_are_given_are_shown_everywhere(opened, description, tmp_path):
    posterior = description.posterior
    names = {
        "cluster": {number: f"My {HOSTILE} {number}" for number in range(1, description.n_clusters + 1)},
        "topic": {number: f"Theme {number}" for number in range(1, posterior.representative.n_topics + 1)},
    }
    describe(posterior, description.corpus, tmp_path / "out", names=names)
    with opened(tmp_path / "out/index.html") as page:
        for place in ("#panel-title", "#legend button", "#clusters [data-cluster]", "#picks span"):
            assert "My <script>" in page.locator(place).first.inner_text()
        assert re.match(r"Topic \d+: Theme \d+", page.inner_text("#topic-title"))
        assert "Theme" in page.inner_text("#topics button >> nth=0")
        assert "My <script>" in page.inner_text("#topic-about")
        rows = csv_of(page, "#heat-part .saves button >> nth=0")
        assert {row["row"].split(" ", 1)[1][:10] for row in rows} == {"My <script"}
        assert all("Theme" in row["column"] for row in rows)
        assert page.locator("main img, main script").count() == 0
        page.fill("#search", "theme 2")
        assert "Theme 2" in page.inner_text("#results button")


def test_clusters_to_merge_are_chosen_and_saved(opened, folder, description):
    assert description.recommended >= 3
    with opened(folder / "index.html") as page:
        page.click("#clusters [data-cluster='1']")
        page.select_option("#merge-with", "2")
        page.click("#clusters [data-cluster='3']")
        page.select_option("#merge-with", "1")
        said = page.inner_text("#merges")
        assert said.startswith("To be merged: Cluster 1: ")
        assert said.count(" + Cluster ") == 2
        rows = csv_of(page, "#panel .save-names")
        merged = [row["number"] for row in rows if row["merge"]]
        assert merged == ["1", "2", "3"]
        assert {row["merge"] for row in rows if row["merge"]} == {"2"}
        page.select_option("#merge-with", "")  # the third is taken out again
        assert page.inner_text("#merges").count(" + Cluster ") == 1
        page.click("#clusters [data-cluster='1']")
        page.select_option("#merge-with", "")
        assert page.inner_text("#merges") == ""
        assert "merge" not in csv_of(page, "#panel .save-names")[0]


def test_pictures_and_tables_are_saved(opened, folder, description):
    with opened(folder / "index.html") as page:
        rows = csv_of(page, "#save-topics button")
        table = pd.read_csv(folder / "topics.csv")
        assert [row["name"] for row in rows] == table["name"].tolist()
        assert [float(row["share"]) for row in rows] == pytest.approx(table["share"].tolist(), rel=1e-3)
        points = csv_of(page, "#map-part .saves button >> nth=0")
        assert points[2]["title"] == HOSTILE
        assert len(points) == description.corpus.n_documents
        trend = csv_of(page, "#compare-part .block:has-text('year (') .saves button >> nth=0")
        shares = pd.read_csv(folder / "trends.csv")
        number = int(re.match(r"Cluster (\d+)", trend[0]["of"])[1])
        one = shares[(shares["of"] == "cluster") & (shares["number"] == number) & (shares["context"] == "year")]
        assert float(trend[0]["high"]) == pytest.approx(one["high"].iloc[0], rel=1e-3)
        for place, begin in ((1, b"<svg"), (2, b"\x89PNG")):
            for part in ("#map-part", "#tree-part", "#heat-part"):
                with page.expect_download() as caught:
                    page.click(f"{part} .saves button >> nth={place}")
                assert Path(caught.value.path()).read_bytes().startswith(begin)


def test_a_summary_can_be_taken_along(opened, folder):
    with opened(folder / "index.html") as page:
        page.click("#report")
        text = page.input_value("#report-text")
        assert text == (folder / "summary.md").read_text(encoding="utf-8")
        with page.expect_download() as caught:
            page.click("#report-save")
        assert Path(caught.value.path()).read_text(encoding="utf-8") == text
        page.keyboard.press("Escape")
        assert page.is_hidden("#report-box")
    assert text.startswith("# Lakes &amp; &lt;b&gt;woods&lt;/b&gt;\n")
    assert "<" not in text


def test_several_clusters_and_topics_are_compared_with_intervals(opened, folder, description):
    with opened(folder / "index.html") as page:
        assert page.locator("#picks .pick").count() == 3
        page.click("#clusters [data-cluster] >> nth=2")  # the selected one comes first
        first = page.get_attribute("#picks .pick >> nth=0", "title")
        assert first == page.inner_text("#panel-title")
        page.locator("#picks button").last.click()
        assert page.locator("#picks .pick").count() == 2
        page.select_option("#compare-add", index=1)
        assert page.locator("#picks .pick").count() == 3
        rows = csv_of(page, "#compare-part .saves button >> nth=0")
        known = pd.read_csv(folder / "documents.csv")
        authors = (
            known["context_author"].fillna("").str.split("; ").map(lambda one: [name.split(":")[0] for name in one])
        )
        year = known.assign(author=authors).explode("author").groupby("author")["context_year"].mean()
        in_time = sorted(description.corpus.context_names["author"], key=lambda one: year[one])
        assert list(dict.fromkeys(row["value"] for row in rows)) == in_time
        assert all(float(row["low"]) <= float(row["share"]) <= float(row["high"]) for row in rows)
        page.select_option("#compare-what", "topic")
        assert {row["of"].split()[0] for row in csv_of(page, "#compare-part .saves button >> nth=0")} == {"Topic"}


def test_it_lists_what_rises_and_falls_over_time(opened, folder):
    with opened(folder / "index.html") as page:
        for what in ("cluster", "topic"):
            page.select_option("#compare-what", what)
            names = pd.read_csv(folder / f"{what}s.csv").set_index(what)["name"]
            rows = pd.read_csv(folder / f"{what}_numbers.csv").query("context == 'year' and is_notable")
            rows = rows[rows[what].isin(names.index)].sort_values("trend", ascending=False)
            said = [
                f"The share {verb} with year by more than chance explains for: {'; '.join(names[some[what]])}."
                for verb, some in (("rises", rows[rows["trend"] > 0]), ("falls", rows[rows["trend"] < 0][::-1]))
                if len(some)
            ]
            expected = " ".join(said) or f"No {what} shows a trend with year beyond chance."
            assert page.inner_text("#compare .block:has-text('year (') .trends") == expected


def test_it_lists_who_writes_more_than_chance_explains(opened, folder):
    with opened(folder / "index.html") as page:
        for what in ("cluster", "topic"):
            page.select_option("#compare-what", what)
            names = pd.read_csv(folder / f"{what}s.csv").set_index(what)["name"]
            rows = pd.read_csv(folder / f"{what}_values.csv").query("context == 'author' and is_notable and lift > 1")
            rows = rows[rows[what].isin(names.index)].sort_values("lift", ascending=False, kind="stable")
            authors = rows.groupby(what)["value"].agg(list)
            assert len(authors)
            assert authors.map(len).max() <= 4
            said = page.inner_text("#compare .block:has-text('author (') .trends")
            start = "More common than chance explains: "
            assert said.startswith(start)
            listed = dict(re.findall(r"([^;]+?) \(([^)]*)\)(?:; |\.$)", said.removeprefix(start)))
            found = {names[number]: set(some) for number, some in authors.items()}
            assert {name: set(some.split(", ")) for some, name in listed.items()} == found


def test_the_heat_map_shows_contexts_and_topics(opened, folder, description):
    found = pd.read_csv(folder / "shares.csv").query("of == 'cluster' and context == 'label'")
    with opened(folder / "index.html") as page:
        page.select_option("#heat-by", "label")
        rows = csv_of(page, "#heat-part .saves button >> nth=0")
        page.select_option("#heat-as", "ratio")
        assert page.inner_text("#heat-legend").split()[-1].startswith("8")
    cluster = description.at(description.recommended)
    assert len(rows) == 3 * len(np.unique(cluster))
    for row in rows:
        one = found[(found["number"] == int(row["cluster"])) & (found["value"] == row["column"])].iloc[0]
        assert float(row["share"]) == pytest.approx(one["share"], rel=1e-3)
        whole = (cluster == int(row["cluster"]) - 1).mean()
        assert float(row["ratio"]) == pytest.approx(one["share"] / whole, rel=2e-3)


def test_ordered_values_stand_in_order_and_absent_ones_are_quiet(opened, description, tmp_path):
    made = corpus()
    days = [f"{2019 + j // 12 % 2}-{j % 12 + 1:02}-15" for j in range(60)]
    made._documents = made.documents.assign(month=np.repeat(["Mar", "Feb", "Jan"], [30, 20, 10]), day=days)
    describe(description.posterior, made, tmp_path / "out")
    with opened(tmp_path / "out/index.html") as page:
        page.select_option("#heat-by", "month")
        page.select_option("#heat-as", "ratio")
        rows = csv_of(page, "#heat-part .saves button >> nth=0")
        assert list(dict.fromkeys(row["column"] for row in rows)) == ["Jan", "Feb", "Mar"]
        first = page.locator("#heat-legend span").first
        assert first.inner_text() == "none"
        assert first.get_attribute("style") == page.evaluate(  # of the scale of shares, where it is 0
            """() => { const by = document.querySelector("#heat-as"); by.value = "share"; by.onchange();
            return document.querySelector("#heat-legend span").getAttribute("style"); }"""
        )
        page.click("#compare-about button")  # and one more
        assert {"label", "month (kept column)"} <= set(page.locator("#compare h3").all_inner_texts())
        shown = [said for _, _, said in svg_of(page, "#compare .block:has-text('day (')")]
        assert {"2019", "2020", "Jul"} <= set(shown)
        assert not any("." in said for said in shown)


def test_what_is_clicked_or_pointed_at_is_told_beside_it(opened, folder):
    with opened(folder / "index.html") as page:
        page.click("#clusters [data-cluster] >> nth=1")
        assert page.evaluate("scrollY") == 0
        words = [row["word"] for row in csv_of(page, "#cluster-bars + .saves button >> nth=0")]
        entry = page.locator("#clusters li >> nth=1")
        assert set(re.findall(r"\w+", entry.locator(".excerpt").inner_text())) & set(words[3:])
        entry.locator(".link").click()
        assert page.evaluate("document.activeElement.id") == "panel-title"
        before = page.locator("#topic-map canvas").screenshot()
        page.hover("#topic-bars canvas", position={"x": 100, "y": 15})
        page.wait_for_selector("#tip:not([hidden])")
        assert re.search(r"\d+ % of it in Topic \d+: ", page.inner_text("#tip"))
        assert page.locator("#topic-map canvas").screenshot() != before


def test_the_tree_of_levels_has_clusters_and_follows_the_slider(opened, folder, description):
    parents = pd.read_csv(folder / "cut_clusters.csv").set_index("cluster")
    sizes = [size for size in description.sizes if size <= description.recommended]
    with opened(folder / "index.html") as page:
        rows = csv_of(page, "#tree-part .saves button >> nth=0")
        page.focus("#groups")
        page.keyboard.press("ArrowLeft")
        assert len(csv_of(page, "#tree-part .saves button >> nth=0")) == sum(sizes[:-1])
        page.focus("#groups")
        page.keyboard.press("End")
        assert len(csv_of(page, "#tree-part .saves button >> nth=0")) == sum(description.sizes)
    assert len(rows) == sum(sizes) < sum(description.sizes)
    for row in rows:
        if int(row["cut"]) > 1:
            assert parents.loc[int(row["joins"]), "cut"] == int(row["cut"]) - 1


def test_what_is_unsure_is_marked(opened, description, tmp_path):
    sample, rng = description.posterior.samples[0], np.random.default_rng(0)
    drawn = [rng.permutation(sample.cluster) for _ in range(5)]
    samples = [dataclasses.replace(sample, cluster=one) for one in [sample.cluster, *drawn]]
    several = dataclasses.replace(description.posterior, samples=samples)
    describe(several, description.corpus, tmp_path / "out")
    table = pd.read_csv(tmp_path / "out/clusters.csv")
    assert (table["found"] < 0.5).any()
    with opened(tmp_path / "out/index.html") as page:
        assert page.locator("#clusters .unsure").count() == (table["found"] < 0.5).sum()
        probability = np.sort(pd.read_csv(tmp_path / "out/documents.csv")["probability"])
        doubtful = (probability < 0.5).sum()
        assert f"Hollow dots: {doubtful} document" in page.inner_text("#unsure")
        page.click("#unsure button")
        assert page.locator("#between tbody tr:visible").count() == 20 < doubtful
        page.click(f"#between-list button:text-is('Show all {doubtful} documents')")
        rows = page.locator("#between tbody tr").all_inner_texts()
        listed = [float(re.search(r"([\d.]+) %", one)[1]) for one in rows]
        assert listed == pytest.approx(100 * probability[:doubtful], abs=0.51)  # as rounded
        share = f"{100 * doubtful / len(probability):.3g} %"
        assert page.inner_text("#between output") == f"({doubtful} documents, {share})"
        title = page.inner_text("#panel-title")
        last = page.locator("#between tbody button").last
        last.scroll_into_view_if_needed()
        before = last.bounding_box()["y"]
        last.click()
        assert page.inner_text("#reader-title") == rows[-1].split("\t")[0]
        assert last.bounding_box()["y"] == pytest.approx(before, abs=2)  # the reader's place is kept
        assert page.inner_text("#panel-title") == title
        assert (
            last.locator("xpath=ancestor::table").bounding_box()["x"]
            + last.locator("xpath=ancestor::table").bounding_box()["width"]
            <= page.locator("#reader").bounding_box()["x"]
        )
        page.click("#reader-close")
        page.select_option("#colour", "sure")
        assert page.inner_text("#legend").split("\n")[-1] == "100 %"


def test_names_on_the_map_do_not_overlap_and_come_with_zoom(opened, description, tmp_path, monkeypatch):
    places = np.column_stack([np.full(60, 0.5), 0.45 + 0.02 * description.at(description.n_clusters)])
    monkeypatch.setattr("mc2core.explore.documents.layout", lambda description, seed: places)
    describe(description.posterior, description.corpus, tmp_path / "out")
    n_clusters, shown = len(np.unique(description.cluster)), []
    with opened(tmp_path / "out/index.html", width=390) as page:
        page.focus("#groups")
        page.keyboard.press("End")  # all clusters of the fit
        for keys in ("", "+" * 8):
            page.focus("#map")
            for key in keys:
                page.keyboard.press(key)
            page.wait_for_timeout(300)
            names = set(svg_of(page, "#map-part"))  # each is drawn twice, for its outline
            for (x, y, said), (other_x, other_y, other) in itertools.combinations(names, 2):
                room = 5 * (len(said) + len(other)) / 2  # a letter has at least 5 pixels, and a line 17
                assert abs(y - other_y) >= 16.9 or abs(x - other_x) >= room, (said, other)
            shown.append(len(names))
    assert 0 < shown[0] <= shown[1] == n_clusters


@pytest.mark.parametrize("width", [1300, 500])
def test_the_tooltip_is_beside_its_point(opened, folder, width):
    with opened(folder / "index.html", width=width) as page:
        for document in range(0, 12, 3):
            x, y = place_on_map(page, folder, document)
            page.locator("#map").scroll_into_view_if_needed()
            page.hover("#map canvas", position={"x": x, "y": y})
            page.wait_for_selector("#tip:not([hidden])")
            box, canvas = page.locator("#tip").bounding_box(), page.locator("#map canvas").bounding_box()
            px, py = canvas["x"] + x, canvas["y"] + y
            assert not (box["x"] <= px <= box["x"] + box["width"] and box["y"] <= py <= box["y"] + box["height"])
