"""The page in a real browser: it draws, answers clicks and keys, and asks nothing of a network."""

import dataclasses
import re

import numpy as np
import pandas as pd
import pytest
from helpers.browser import opened
from helpers.explored_fits import HOSTILE, corpus, fastex, gibbs

from mc2core.explore.describe import describe
from mc2core.explore.description import Description

pytestmark = pytest.mark.needs("browser")


@pytest.fixture(scope="module")
def description():
    made = corpus()
    return Description.of(gibbs(made), made)


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
    import csv

    row = list(csv.DictReader(rows))[document]
    box = page.locator("#map canvas").bounding_box()
    x, y = ((float(row[name]) + 0.02) / 1.04 for name in "xy")
    pad = 5  # of the drawing, on each side
    return pad + x * (box["width"] - 2 * pad), pad + (1 - y) * (box["height"] - 2 * pad)


@pytest.mark.parametrize(("width", "scheme"), [(1300, "light"), (1300, "dark"), (390, "light")])
def test_it_draws_light_and_dark_wide_and_narrow(folder, width, scheme):
    with opened(folder / "index.html", width=width, scheme=scheme) as page:
        for chart in ("map", "cluster-bars", "topic-bars"):
            assert colours(page, chart) > 5
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        background = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (background == "rgb(255, 255, 255)") == (scheme == "light")
        page.click("#theme")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") != background


def test_it_says_how_sure_the_numbers_are_and_how_far_chains_agree(description, tmp_path):
    sample = description.posterior.samples[0]
    fewer = dataclasses.replace(sample, topic_weights=sample.topic_weights[:2])
    provenance = description.posterior.provenance | {"chains": [1, 2]}
    several = dataclasses.replace(description.posterior, samples=[fewer, sample, sample], provenance=provenance)
    describe(several, description.corpus, tmp_path / "out")
    k, m = sample.n_clusters, sample.n_topics
    with opened(tmp_path / "out/index.html") as page:
        said = page.inner_text("#summary")
    assert f"{k} clusters ({k} to {k} in 90 % of the samples) · {m} topics (2 to {m} in 90 % of the samples)" in said
    assert f" · 2 chains of {k} and {k} clusters agree by ARI 1.00, VI 0.00 bits" in said


def test_titles_and_names_are_text(folder):
    with opened(folder / "index.html") as page:
        assert page.title() == "Lakes & <b>woods</b>"
        assert page.inner_text("h1") == "Lakes & <b>woods</b>"
        page.fill("#search", "onerror")
        assert page.inner_text("#results button") == HOSTILE
        page.fill("#search", "<i>chen")
        assert page.inner_text("#results button").startswith("<i>Chen</i>: ")
        assert page.locator("main img, main b, main i, main script").count() == 0


def test_a_click_on_a_document_opens_its_cluster_and_hovering_says_its_title(folder, description):
    with opened(folder / "index.html") as page:
        for document in (0, 1):
            x, y = place_on_map(page, folder, document)
            page.hover("#map canvas", position={"x": x, "y": y})
            page.wait_for_selector("#tip:not([hidden])")
            assert re.search(r"On (lakes|woods|stars), part|script", page.inner_text("#tip"))
            page.mouse.down()
            page.mouse.up()
            cluster = int(re.search(r"Cluster (\d+)", page.inner_text("#tip"))[1])
            assert page.inner_text("#panel-title") == f"Cluster {cluster}"
            assert page.get_attribute(f"#clusters [data-cluster='{cluster}']", "aria-current") == "true"
            assert f"{(description.cluster == cluster - 1).sum()} documents" in page.inner_text("#facts")


def test_search_finds_words_titles_and_names(folder):
    with opened(folder / "index.html") as page:
        page.fill("#search", "wood1")
        assert "Clusters with the word" in page.inner_text("#results")
        assert "Topics with the word" in page.inner_text("#results")
        page.fill("#search", "part 41")
        assert page.inner_text("#results button") == "On stars, part 41"
        page.fill("#search", "okafor")
        assert page.inner_text("#results button").startswith("Okafor: On lakes")
        page.locator("#results button").first.click()
        assert page.evaluate("document.activeElement.id") == "panel-title"
        page.fill("#search", "nothing like it")
        assert page.inner_text("#results") == "nothing found"


def test_of_a_large_corpus_search_says_of_how_many_documents(description, tmp_path, monkeypatch):
    monkeypatch.setattr("mc2core.explore.documents.MOST_POINTS", 20)
    describe(description.posterior, description.corpus, tmp_path / "out")
    with opened(tmp_path / "out/index.html") as page:
        assert "60 documents" in page.inner_text("#summary")
        assert "the map shows 20 of them, drawn at random" in page.inner_text("#summary")
        page.fill("#search", "nothing like it")
        said = re.fullmatch(r"nothing found \(of (\d+) on this page\)", page.inner_text("#results"))
        assert 20 <= int(said[1]) < 60  # and the typical ones


def test_the_slider_goes_through_the_levels_and_says_how_well_they_agree(folder, description):
    kept = description.posterior.levels
    with opened(folder / "index.html") as page:
        assert page.locator("#clusters button").count() == description.n_clusters
        page.focus("#groups")
        for _ in range(description.n_clusters - 3):
            page.keyboard.press("ArrowLeft")
        assert page.inner_text("#groups-number") == f"3 of {description.n_clusters}"
        assert page.evaluate("scrollY") == 0  # what is chosen comes into sight within its list, the page stays
        assert re.fullmatch(r"Cluster \d of 3", page.inner_text("#panel-title"))
        sizes = [
            int(re.search(r"(\d+) document", one.get_attribute("aria-label"))[1])
            for one in page.locator("#clusters button").all()
        ]
        assert sizes == sorted(np.bincount(kept.at(3)).tolist(), reverse=True)
        said = page.inner_text("#merged")
        row = pd.read_csv(folder / "levels.csv").iloc[2]
        assert f"ARI {float(f'{row.ari:.4g}'):g}" in said
        assert f"loses {float(f'{row.loss:.4g}'):g} nats a document" in said
        assert ("marked: as fine as the data bear" in said) == (kept.chosen == 3)
        x, y = place_on_map(page, folder, 1)
        page.hover("#map canvas", position={"x": x, "y": y})
        page.wait_for_selector("#tip:not([hidden])")
        assert f"Cluster {kept.at(3)[1] + 1} of 3" in page.inner_text("#tip")


def test_clusters_without_documents_are_not_listed(description, tmp_path):
    few = description.corpus.subset(np.flatnonzero(description.corpus.labels == 0))
    describe(description.posterior, few, tmp_path / "out")
    used = np.unique(description.cluster[description.corpus.labels == 0]) + 1
    with opened(tmp_path / "out/index.html") as page:
        listed = page.locator("#clusters button").all()
        assert sorted(int(one.get_attribute("data-cluster")) for one in listed) == used.tolist()
        page.focus("#groups")
        for key in ("Home", "End"):  # all joined, and apart again
            page.keyboard.press(key)
            assert re.fullmatch(r"Cluster \d+( of \d+)?", page.inner_text("#panel-title"))
        assert page.locator("#clusters button").count() == len(used)


def test_topics_say_their_coherence_and_that_of_chance(folder):
    row = pd.read_csv(folder / "topics.csv").iloc[0]
    by_chance = " ± ".join(f"{float(f'{row[name]:.4g}'):g}" for name in ("npmi_by_chance", "npmi_by_chance_sd"))
    with opened(folder / "index.html") as page:
        assert f"coherence (NPMI) {float(f'{row.npmi:.4g}'):g}, by chance {by_chance}" in page.inner_text(
            "#topic-facts"
        )


def test_it_can_be_used_by_keyboard(folder):
    with opened(folder / "index.html") as page:
        page.keyboard.press("Tab")
        assert page.inner_text(":focus") == "Skip to the clusters"
        page.focus("#clusters button >> nth=1")
        cluster = page.get_attribute(":focus", "data-cluster")
        page.keyboard.press("Enter")
        assert page.inner_text("#panel-title") == f"Cluster {cluster}"
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


def test_it_can_be_coloured_by_label_and_by_every_context(folder):
    with opened(folder / "index.html") as page:
        legends = []
        for value in ("cluster", "label", "in author", "in year"):
            page.select_option("#colour", value)
            legends.append(page.inner_text("#legend").split("\n"))
        assert sorted(legends[1]) == ["land", "sky", "water"]
        assert "<i>Chen</i>" in legends[2]
        assert legends[3][0] == "1990"


def test_trends_are_drawn_for_contexts_of_numbers(folder):
    with opened(folder / "index.html") as page:
        assert "Share of documents over year" in page.inner_text("#about")
        assert colours(page, "topic-about-year") > 3


def test_a_model_without_contexts_or_titles_has_a_page(tmp_path):
    plain = corpus().with_contexts({})
    plain.labels, plain._documents = None, plain.documents[[]]
    describe(fastex(plain), plain, tmp_path / "out")
    with opened(tmp_path / "out/index.html") as page:
        assert colours(page, "map") > 5
        assert page.locator("#colour option").count() == 1
        assert "document " in page.inner_text("#typical")
