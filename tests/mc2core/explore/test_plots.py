"""Pictures: what is drawn against the frames' numbers, labels and units, and nothing of pyplot."""

import itertools
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from helpers import explored_fits, fits
from helpers.commands import mc2
from matplotlib.figure import Figure

import mc2core
from mc2core import Corpus, plots
from mc2core.base import extras
from mc2core.explore import documents
from mc2core.explore import plots as code
from mc2core.families import DirichletCategorical, NormalGamma


@pytest.fixture(scope="module")
def done():
    contexts = {"year": NormalGamma(), "author": DirichletCategorical(0.1)}
    engine = fits.gibbs(contexts=contexts, start_topics=5, start_clusters=6)
    return mc2core.fit(explored_fits.corpus(), *engine, iterations=8, seed=1, chains=2, progress=False)


def test_topics_over_time_draws_shares_and_intervals_by_year(done):
    ax = plots.topics_over_time(done)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("year", "share of the words")
    year = done.contexts("year")
    assert len(ax.lines) == min(6, len(done.topics()))
    for line, band, topic in zip(ax.lines, ax.collections, done.topics()["topic"], strict=False):
        rows = year[(year["of"] == "topic") & (year["number"] == topic)]
        assert line.get_xdata().tolist() == list(range(1990, 2001))
        np.testing.assert_allclose(line.get_ydata(), rows["share"])
        assert line.get_label() == rows["name"].iloc[0]
        corners = band.get_paths()[0].vertices[:, 1]
        assert corners.max() <= rows["high"].max() + 1e-12
    ax.figure.canvas.draw()
    assert ax.get_yticklabels()[-1].get_text().endswith(" %")
    of_cut = plots.clusters_over_time(done, cut=(cut := sorted(done.description.first)[1]))
    table = done.contexts("year", cut).query("of == 'cluster'")
    assert sorted(line.get_label() for line in of_cut.lines) == sorted(done.clusters(cut)["name"])
    for line in of_cut.lines:
        drawn = table.loc[table["name"] == line.get_label(), "share"]
        np.testing.assert_allclose(line.get_ydata(), drawn)
    two = plots.topics_over_time(done, "year", topics=[2, 1])
    assert two.get_title() == f"2 of {len(done.topics())} topics over year, 90 % intervals"
    assert [line.get_label() for line in two.lines] == list(done.topics().set_index("topic")["name"].loc[[2, 1]])
    with pytest.raises(ValueError, match="there is no topic 77"):
        plots.topics_over_time(done, topics=[77])
    with pytest.raises(ValueError, match="context is 'author'; it must be one of year"):
        plots.topics_over_time(done, "author")


@pytest.mark.parametrize(
    ("context", "cut", "column"), [("author", "recommended", "value"), ("year", "all", "start"), ("label", 2, "value")]
)
def test_clusters_by_context_is_the_table_of_their_shares(done, context, cut, column):
    ax = plots.clusters_by_context(done, context, cut)
    (image,) = ax.images
    table = done.contexts(context, cut).query("of == 'cluster'")
    clusters = done.clusters(cut).sort_values("documents", ascending=False, kind="stable")
    drawn = np.ma.filled(image.get_array(), np.nan)
    assert drawn.shape == (len(clusters), table[column].nunique())
    known = table.set_index(["number", column])["share"]
    columns = [text.get_text() for text in ax.get_xticklabels()]
    for row, cluster in enumerate(clusters["cluster"]):
        for place, value in enumerate(columns):
            key = float(value) if column == "start" else value
            np.testing.assert_allclose(drawn[row, place], known[cluster, key])
    assert [text.get_text() for text in ax.get_yticklabels()] == clusters["name"].tolist()
    bar = next(one for one in ax.figure.axes if one is not ax)
    assert (ax.get_xlabel(), bar.get_ylabel()) == (context, "share of the documents")
    if column == "start":  # 1993 and 1997 are no year of a document: they have a column, without a share
        assert columns == [str(year) for year in range(1990, 2001)]
        assert np.isnan(drawn).all(axis=0).sum() == 2


def test_a_context_is_to_be_named_where_there_are_several(done):
    with pytest.raises(ValueError, match="a context is needed: one of author, label, year"):
        plots.clusters_by_context(done)
    with pytest.raises(ValueError, match="context is 'places'; it must be one of author"):
        plots.map_of_documents(done, "places")


def test_the_hierarchy_joins_clusters_to_those_with_most_of_them(done):
    ax = plots.hierarchy(done)
    sizes = sorted(done.description.first)
    assert [text.get_text() for text in ax.get_xticklabels()] == [str(one) for one in sorted(sizes, reverse=True)]
    assert ax.get_xlim()[0] > ax.get_xlim()[1]  # one cluster on the right
    leaves = {text.get_text() for text in ax.texts}
    assert leaves == set(done.clusters(sizes[-1])["name"])
    # of a tree: a line from each node to the next cut, and they meet in one
    assert len(ax.lines) == sum(sizes) - 1
    assert len({line.get_ydata()[2] for line in ax.lines if line.get_xdata()[2] == 1}) == 1
    at = {size: done.description.at(size) for size in sizes}
    large, small = sizes[-1], sizes[-2]
    joined = [np.bincount(at[small][at[large] == k], minlength=small).argmax() for k in range(large)]
    ends = [line.get_ydata()[2] for line in ax.lines if line.get_xdata()[0] == large]
    assert sorted(np.unique(ends, return_counts=True)[1]) == sorted(np.unique(joined, return_counts=True)[1])
    with pytest.raises(ValueError, match="cut is 99"):
        plots.hierarchy(done, 99)


def test_the_map_has_the_documents_at_the_places_of_the_page(done):
    place = documents.layout(done.description, 0)
    ax = plots.map_of_documents(done)
    drawn = np.vstack([points.get_offsets() for points in ax.collections])
    assert sorted(map(tuple, drawn.tolist())) == sorted(map(tuple, place.tolist()))
    assert [len(points.get_offsets()) for points in ax.collections] == sorted(
        done.clusters()["documents"], reverse=True
    )
    assert {text.get_text() for text in ax.texts} == set(done.clusters()["name"])
    by_year = plots.map_of_documents(done, "year")
    years = done.documents()["context_year"].to_numpy()
    got = np.ma.filled(by_year.collections[0].get_array().astype(float), np.nan)
    np.testing.assert_array_equal(got[~np.isnan(got)], years[~np.isnan(years)])
    by_label = plots.map_of_documents(done, "label")
    assert [text.get_text() for text in by_label.get_legend().get_texts()] == ["water", "land", "sky"]


def test_a_name_stands_at_its_larger_part_and_on_no_other():
    place = np.array([[0.1, 0.1]] * 5 + [[0.9, 0.9]] * 3 + [[0.12, 0.1]] * 4 + [[0.5, 0.5]] * 2)
    table = pd.DataFrame({"cluster": [1] * 8 + [2] * 4 + [3] * 2})
    table["cluster_name"] = table["cluster"].map("name {}".format)
    found = SimpleNamespace(documents=lambda cut: table)
    ax = Figure().subplots()
    code._draw_clusters(ax, found, place, None)
    assert [text.get_position() for text in ax.texts] == [(0.1, 0.1), (0.5, 0.5)]  # the second one's place is taken
    assert len(ax.collections) == 3
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["name 2"]  # each with a colour has its name


def test_words_stand_with_their_probability_in_topic_and_in_all(done):
    ax = plots.words(done, topic=1, n=4)
    p = done.posterior.word_given_topic[0]
    names = [text.get_text() for text in ax.get_yticklabels()]
    vocabulary = done.posterior.vocabulary
    for name, bar in zip(names, ax.patches, strict=True):
        assert bar.get_width() == pytest.approx(p[vocabulary.index(name)])
    counts = np.asarray(done.corpus.content.sum(axis=0)).ravel()
    base = counts / counts.sum()
    np.testing.assert_allclose(ax.lines[0].get_xdata(), [base[vocabulary.index(name)] for name in names], rtol=1e-3)
    assert len(plots.words(done, cluster=1).patches) > 0
    for wrong in ({}, {"topic": 1, "cluster": 1}):
        with pytest.raises(ValueError, match="one of topic and cluster is needed"):
            plots.words(done, **wrong)
    with pytest.raises(ValueError, match="there is no topic 99"):
        plots.words(done, topic=99)


def test_names_are_drawn_as_they_are():
    """Neither as formulas, for their dollar signs, nor left out of a legend, for a leading underscore."""
    made = explored_fits.corpus()
    names = [f"_$x_{n}$" for n in range(18)]
    odd = Corpus(
        made.content,
        names,
        made.contexts,
        labels=made.labels,
        documents=pd.DataFrame({"$p_$": ["$a_$", "_b", "c"] * 20}),
        context_names={"author": names[:7]},
        label_names=["$x_$", "_y", "z"],
    )
    engine = fits.gibbs(contexts={"author": DirichletCategorical(0.1)}, start_topics=5, start_clusters=6)
    found = mc2core.fit(odd, *engine, iterations=2, seed=1, progress=False)
    drawn = [plots.topics_over_time(found, "year"), plots.map_of_documents(found, "$p_$"), plots.hierarchy(found)]
    drawn += [plots.map_of_documents(found), plots.words(found, topic=1), plots.clusters_by_context(found, "$p_$")]
    drawn += [plots.clusters_by_context(found, "author")]
    for ax in drawn:
        ax.figure.canvas.draw()
    lines, points, *_ = drawn
    assert len(lines.get_legend().get_texts()) == len(lines.lines)
    assert [one.get_text() for one in points.get_legend().get_texts()] == [r"\$a_\$", " _b", "c"]
    assert {one.get_text() for one in drawn[4].get_yticklabels()} <= {name.replace("$", r"\$") for name in names}


def test_the_trace_has_a_line_for_each_chain(done):
    ax = plots.trace(done)
    assert [line.get_label() for line in ax.lines] == ["chain 1", "chain 2"]
    for chain, line in enumerate(ax.lines, start=1):
        rows = done.trace[done.trace["chain"] == chain]
        assert line.get_xydata().tolist() == rows[["iteration", "clusters"]].to_numpy(float).tolist()
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("iteration", "clusters")
    assert plots.trace(done, "topics").get_ylabel() == "topics"
    with pytest.raises(ValueError, match="the trace has no column 'loss'; it has "):
        plots.trace(done, "loss")


def test_a_constant_number_of_clusters_has_whole_ticks():
    fit = SimpleNamespace(trace=pd.DataFrame({"chain": 1, "iteration": range(1, 9), "clusters": 2.0}))
    ticks = plots.trace(fit).get_yticks()
    assert len(ticks)
    assert (ticks % 1 == 0).all()


def test_agreement_of_chains_is_the_rand_index_of_each_pair(done):
    sklearn = pytest.importorskip("sklearn.metrics")
    drawn = plots.agreement(done).images[0].get_array()
    first, second = (one.cluster for one in done.posterior.chains)
    known = sklearn.adjusted_rand_score(first, second)
    np.testing.assert_allclose(drawn, [[1.0, known], [known, 1.0]])
    alone = mc2core.Fit(done.posterior.chains[0], done.corpus)
    with pytest.raises(ValueError, match=r"the fit has one chain; fit\(\.\.\., chains=4\) runs several"):
        plots.agreement(alone)


def test_each_draws_into_the_given_axes_and_returns_them(done):
    calls = {"clusters_by_context": ("author",), "words": (1,)}
    for name in {*plots.__all__} - {"save"}:
        ax = Figure().subplots()
        of = mc2core.compare(done, done) if name == "comparison" else done
        assert getattr(plots, name)(of, *calls.get(name, ()), ax=ax) is ax
        assert ax.get_title()


def test_the_numbers_of_a_plot_are_saved_next_to_it(done, tmp_path):
    def saved(ax):
        plots.save(ax, tmp_path / "one.pdf")
        assert (tmp_path / "one.pdf").read_bytes().startswith(b"%PDF")
        return pd.read_csv(tmp_path / "one.csv")

    year = done.contexts("year").query("of == 'topic' and number == 2")
    numbers = saved(plots.topics_over_time(done, topics=[2])).dropna()
    np.testing.assert_allclose(numbers["low"], year.dropna(subset="low")["low"], rtol=1e-5)
    assert set(numbers["number"]) == {2}
    author = saved(plots.clusters_by_context(done, "author"))
    assert len(author) == len(done.contexts("author").query("of == 'cluster'"))
    assert saved(plots.words(done, topic=1, n=3))["by_relevance"].tolist() == [1, 2, 3]
    assert len(saved(plots.trace(done))) == 16
    assert saved(plots.agreement(done)).columns.tolist() == ["chain 1", "chain 2", "of"]
    assert saved(plots.map_of_documents(done))["x"].between(0, 1).all()
    merges = saved(plots.hierarchy(done))
    assert (merges.groupby("cut")["documents"].sum() == done.corpus.n_documents).all()
    with pytest.raises(ValueError, match=r"no function of mc2core\.plots drew into these axes"):
        plots.save(Figure().subplots(), tmp_path / "two.pdf")
    (tmp_path / "own.csv").write_text("mine")
    with pytest.raises(ValueError, match=r"own\.csv exists, and the numbers of the picture would replace it"):
        plots.save(plots.trace(done), tmp_path / "own.pdf")
    assert [path.read_text() for path in tmp_path.glob("own.*")] == ["mine"]


def test_the_bands_of_two_fits_are_their_shared_documents(done, tmp_path, refused):
    own = done.documents()["cluster"].to_numpy() - 1
    other = np.where(own == 1, 0, own)  # the first two clusters in one
    sample = replace(done.posterior.representative, cluster=other)
    parts = replace(done.posterior, samples=[sample], hierarchy=None, provenance={"corpus": "same"})
    first = replace(done.posterior, provenance={"corpus": "same"})
    found = mc2core.compare(first, parts)
    ax = plots.comparison(found)
    plots.save(ax, tmp_path / "one.svg")
    numbers = pd.read_csv(tmp_path / "one.csv")
    assert numbers["shared"].sum() == len(own)
    for row in numbers.itertuples():
        assert row.shared == found.table.loc[row.a, row.b]
    assert len(numbers) == len(np.unique(own)) > 1
    assert numbers.set_index("a")["b"][1] == numbers.set_index("a")["b"][2]
    n_bars = sum((found.table.sum(axis=side) > 0).sum() for side in (0, 1))
    assert len(ax.collections) == n_bars + len(numbers)
    heights = [np.ptp(one.get_paths()[0].vertices[:2, 1]) for one in ax.collections[n_bars:]]
    assert sorted(np.round(heights).astype(int)) == sorted(numbers["shared"])
    first.save(tmp_path / "a.npz")
    parts.save(tmp_path / "b.npz")
    command = ["compare", str(tmp_path / "a.npz"), str(tmp_path / "b.npz")]
    mc2([*command, "--picture", tmp_path / "two.pdf"])
    assert (tmp_path / "two.csv").read_text() == (tmp_path / "one.csv").read_text()
    refused([*command, tmp_path / "a.npz", "--picture", tmp_path / "three.pdf"], "--picture needs exactly two fits")


def boxes(ax, texts):
    ax.figure.draw_without_rendering()
    return [text.get_window_extent() for text in texts if text.get_text()]


@pytest.mark.slow
def test_nothing_is_cut_off_and_no_words_lie_on_others(done):
    called = mc2core.Fit(done.posterior, done.corpus)
    called.rename({"cluster": {one: f"administration, appropriations {one}" for one in done.clusters(2)["cluster"]}})
    words = mc2core.fit(
        done.corpus.with_contexts({}), *fits.fastex(n_clusters=40, proposal="exact"), iterations=1, seed=1,
        progress=False,
    )  # fmt: skip
    drawn = [plots.clusters_by_context(called, "author", 2), plots.clusters_by_context(called, "year")]
    drawn += [plots.map_of_documents(done, one) for one in (None, "year", "author")]
    drawn += [plots.topics_over_time(done), plots.trace(done), plots.agreement(done), plots.words(done, topic=1)]
    drawn.append(plots.hierarchy(words))
    for ax in drawn:
        ax.figure.draw_without_rendering()
        whole, width, height = ax.figure.get_tightbbox(), *ax.figure.get_size_inches()
        assert min(whole.x0, whole.y0) > -0.05, ax.get_title()
        assert whole.x1 < width + 0.05, ax.get_title()
        assert whole.y1 < height + 0.05, ax.get_title()
        across = sorted(boxes(ax, ax.get_xticklabels()), key=lambda box: box.x1)
        assert all(one.x1 < two.x1 - 2 for one, two in itertools.pairwise(across)), ax.get_title()
    assert len(drawn[-1].get_xticks()) < len(words.description.first)  # of many cuts not all are written
    ticks = sorted(boxes(drawn[-1], drawn[-1].get_xticklabels()), key=lambda box: box.x0)
    assert all(one.x1 < two.x0 for one, two in itertools.pairwise(ticks))
    over_time = drawn[5]
    assert over_time.get_legend().get_window_extent().x0 >= over_time.get_window_extent().x1  # beside the lines
    assert (drawn[6].get_xticks() % 1 == 0).all()


def test_names_on_the_map_stay_within_it():
    place = np.array([[0.0, 0.0]] * 3 + [[1.0, 1.0]] * 2)
    table = pd.DataFrame({"cluster": [1, 1, 1, 2, 2]}).assign(cluster_name="a name of twenty-six letters")
    ax = code._axes(None, (7.0, 6.0))
    code._draw_clusters(ax, SimpleNamespace(documents=lambda cut: table), place, None)
    ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    inside = ax.get_window_extent()
    for box in boxes(ax, ax.texts):
        assert inside.x0 - 4 < box.x0 < box.x1 < inside.x1 + 4


def test_colours_are_those_of_the_page():
    source = (Path(code.__file__).parent / "assets/data.js").read_text(encoding="utf-8")
    listed = re.search(r"const LIGHT = \[(.*?)\];", source, re.S)[1]
    assert tuple(re.findall(r'"(#\w+)"', listed)) == code.COLOURS
    assert f'const REST = "{code.REST}"' in source


def test_matplotlib_is_loaded_late_and_missed_in_one_sentence(done, monkeypatch):
    said = "import sys, mc2core; mc2core.plots.words; mc2core.fit; print('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", said], capture_output=True, text=True).stdout == "False\n"
    monkeypatch.setattr(extras.importlib.util, "find_spec", lambda module: None)
    with pytest.raises(extras.MissingPackage, match=r"pip install 'mc2core\[plots\]'"):
        plots.trace(done)


#: what eyes without one kind of cones see (Machado et al., 2009), of linear red, green and blue
BLIND = {
    "none": np.eye(3),
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
}


@pytest.mark.parametrize("kind", BLIND)
def test_colours_of_clusters_can_be_told_apart(kind):
    red_green_blue = np.array([[int(one[i : i + 2], 16) / 255 for i in (1, 3, 5)] for one in code.COLOURS])
    linear = np.where(red_green_blue <= 0.04045, red_green_blue / 12.92, ((red_green_blue + 0.055) / 1.055) ** 2.4)
    seen = np.clip(linear @ np.transpose(BLIND[kind]), 0, 1)
    xyz = seen @ np.transpose([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    x, y, z = np.cbrt(np.maximum(xyz / [0.9505, 1.0, 1.089], 0.008856)).T
    lab = np.column_stack([116 * y - 16, 500 * (x - y), 200 * (y - z)])
    apart = np.linalg.norm(lab[:, None] - lab, axis=-1)[np.triu_indices(len(lab), 1)]
    assert apart.min() > 12
