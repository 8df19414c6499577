"""Tables of a fit against the posterior's arrays and the documents; what notebooks show."""

import html
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from helpers import explored_fits, fits
from helpers.explored_fits import HOSTILE

import mc2core
from mc2core import Fit, Posterior
from mc2core.explore import methods
from mc2core.explore.summary import summary
from mc2core.explore.tables import tables_of
from mc2core.families import DirichletCategorical, NormalGamma
from mc2core.models import MC2
from mc2core.posterior.consensus import between


@pytest.fixture(scope="module")
def corpus():
    return explored_fits.corpus()


@pytest.fixture(scope="module")
def done(corpus):
    contexts = {"year": NormalGamma(), "author": DirichletCategorical(0.1)}
    engine = fits.gibbs(contexts=contexts, start_topics=5, start_clusters=6)
    return mc2core.fit(corpus, *engine, iterations=8, seed=1, chains=2, progress=False)


def test_topics_are_those_of_the_posterior_with_a_name_each(done):
    topics = done.topics().set_index("topic")
    posterior = done.posterior
    tokens = np.asarray(posterior.representative.topic_words.sum(axis=1)).ravel()
    assert topics["share"].sort_index().to_numpy() == pytest.approx(tokens / tokens.sum())
    assert topics["share"].is_monotonic_decreasing
    for topic, row in topics.iterrows():
        likeliest = posterior.vocabulary[int(np.argmax(posterior.word_given_topic[topic - 1]))]
        assert row["words"].split()[0] == likeliest
        assert set(row["name"].split(", ")) <= set(posterior.vocabulary)
    assert topics["tokens"].sum() == pytest.approx(done.corpus.n_tokens)
    assert not {"x", "y"} & set(topics)  # so are those of topics


def test_clusters_and_documents_are_those_of_the_posterior(done):
    clusters, documents, kept = done.clusters(), done.documents(), done.posterior.find_hierarchy(done.corpus)
    recommended = kept.cut(kept.recommended)
    assert dict(zip(clusters["cluster"] - 1, clusters["documents"], strict=True)) == dict(
        enumerate(np.bincount(recommended))
    )
    assert (documents["cluster"].to_numpy() == recommended + 1).all()
    probability = done.posterior.assign(done.corpus, cut="recommended")[1]
    assert documents["probability"].to_numpy() == pytest.approx(probability[np.arange(len(recommended)), recommended])
    every = done.clusters("all")
    for table, column in ((clusters, "cluster"), (every, "cluster"), (done.topics(), "topic")):
        assert table.index.tolist() == table[column].tolist()
    assert sorted(every["documents"]) == sorted(np.bincount(done.posterior.cluster)[np.unique(done.posterior.cluster)])
    assert every["cluster"].tolist() == list(range(1, len(every) + 1))
    assert every["documents"].is_monotonic_decreasing
    named = clusters.set_index("cluster")["name"]
    assert (documents["cluster_name"] == documents["cluster"].map(named)).all()
    assert documents["label"].tolist() == [["water", "land", "sky"][one] for one in done.corpus.labels]
    assert documents["title"].tolist() == done.corpus.documents["title"].tolist()
    assert documents.loc[documents["document"] == 1, "context_author"].item() == "Lund; Zola & Sons"
    assert not {"x", "y"} & set(documents)  # places are the map's, and take their time


def test_a_cut_has_its_own_clusters(done):
    two = done.clusters(cut=2)
    at = done.posterior.find_hierarchy(done.corpus).cut(2)
    assert sorted(two["documents"]) == sorted(np.bincount(at))
    documents = done.documents(cut=2)
    assert documents["cluster"].tolist() == (at + 1).tolist()
    assert (
        set(documents["cluster"]) == set(two["cluster"]) == set(done.contexts(cut=2).query("of == 'cluster'")["number"])
    )
    with pytest.raises(
        ValueError, match=r"cut is 40; it must be recommended, broad, fine, all or a number that is des"
    ):
        done.clusters(cut=40)


def test_broad_and_fine_clusterings_are_cuts_with_a_name(done):
    kept = replace(done.posterior.find_hierarchy(done.corpus), recommended=3, other=2)
    two = Fit(replace(done.posterior, hierarchy=kept), done.corpus, provenance=done.provenance)
    for named, size in (("broad", 2), ("fine", 3), ("recommended", 3)):
        assert two.clusters(named)["documents"].tolist() == np.bincount(kept.cut(size)).tolist()
    assert "; the cuts of the chains into 3 agree with an adjusted Rand index of " in two.methods()
    assert two.methods().count("The broad clustering has 2 clusters.") == 1
    rows = tables_of(two.description)["summary"].set_index("name")["value"]
    assert rows["broad number of clusters"] == "2"
    assert "fine number of clusters" not in rows
    assert "3 clusters, recommended of the" in (said := summary(two.description, tables_of(two.description), "Title"))
    assert "found (broad clustering: 2), " in said
    one = Fit(replace(two.posterior, hierarchy=replace(kept, other=0)), done.corpus, provenance=done.provenance)
    assert one.clusters("broad").equals(one.clusters("fine"))
    assert "broad" not in one.methods() + summary(one.description, tables_of(one.description), "Title")


def test_contexts_count_the_documents_of_each_value(done):
    table = done.contexts("author")
    assert "start" not in table
    of_clusters = table[table["of"] == "cluster"]
    authors = done.corpus.contexts["author"].toarray() > 0
    names = done.corpus.context_names["author"]
    for row in of_clusters.itertuples():
        both = authors[:, names.index(row.value)] & (done.documents()["cluster"].to_numpy() == row.number)
        assert row.count == both.sum()
        assert row.name == done.clusters().set_index("cluster")["name"][row.number]
    assert of_clusters.groupby("value")["share"].sum().to_numpy() == pytest.approx(1.0)
    year = done.contexts("year")
    assert "value" not in year
    seen = year[(year["of"] == "topic") & (year["documents"] > 0)]
    assert seen.groupby("start")["share"].sum().to_numpy() == pytest.approx(1.0)
    assert set(done.contexts()["context"]) == {"author", "year", "label"}
    with pytest.raises(
        ValueError, match="there is no context 'auther' of numbers, dates or names; known: author, label, year"
    ):
        done.contexts("auther")


def test_topics_of_documents_have_names(done):
    table = done.document_topics()
    assert list(table.columns) == ["document", "topic", "name", "tokens", "share"]
    assert (table["name"] == table["topic"].map(done.topics().set_index("topic")["name"])).all()
    assert set(table["document"]) == set(done.documents()["document"])


def test_effects_have_names_and_are_of_the_fit_or_a_cut(done):
    table = done.effects(["year", "label"])
    assert set(table["context"]) == {"year", "label"}
    assert set(table["number"][table["of"] == "cluster"]) == set(done.clusters()["cluster"])
    assert (
        table["name"] == [done._names[what][number] for what, number in zip(table["of"], table["number"], strict=True)]
    ).all()
    of_cut = done.effects(["label"], cut=2)
    assert set(of_cut["number"][of_cut["of"] == "cluster"]) == set(done.clusters(2)["cluster"])
    with pytest.raises(
        ValueError, match="there is no context 'yer' of numbers, dates or names; known: author, year, label"
    ):
        done.effects("yer")
    pd.testing.assert_frame_equal(done.effects("year"), done.effects(["year"]))


def test_contexts_that_the_model_does_not_use_are_reported_too(corpus):
    engine = fits.gibbs(contexts={"year": NormalGamma()}, start_topics=5, start_clusters=4)
    several = mc2core.fit(corpus, *engine, iterations=2, seed=1, progress=False)
    assert set(several.posterior.families) == {"year"}
    assert set(several.contexts()["context"]) == {"author", "year", "label"}
    assert set(several.contexts("author")["value"]) == set(corpus.context_names["author"])
    assert several.corpus is corpus


def test_names_that_are_given_are_everywhere_and_others_stay(done):
    found = Fit(done.posterior, done.corpus)
    before = found.topics().set_index("topic")["name"]
    found.rename({"cluster": {1: "First"}})
    found.rename({"topic": {2: "Second"}})
    assert found.clusters().set_index("cluster")["name"][1] == "First"
    assert found.topics().set_index("topic")["name"][2] == "Second"
    assert found.topics().set_index("topic")["name"][1] == before[1]
    assert "First" in set(found.documents()["cluster_name"])
    assert {"First", "Second"} <= set(found.contexts()["name"])
    with pytest.raises(ValueError, match="a name is given to topic 99"):
        found.rename({"topic": {99: "None"}})
    with pytest.raises(ValueError, match="a name is given to cluster '1', which is not a whole number"):
        found.rename({"cluster": {"1": "First"}})
    assert "First" in set(found.clusters()["name"])  # a refused name changes nothing


def test_a_posterior_that_was_loaded_tells_the_same(done, tmp_path):
    done.posterior.save(tmp_path / "p.npz")
    found = Fit(Posterior.load(tmp_path / "p.npz"), done.corpus)
    for name in ("topics", "clusters", "documents", "contexts"):
        pd.testing.assert_frame_equal(getattr(found, name)(), getattr(done, name)())
    table = done.topics()
    table["share"] = 0.0  # a copy: nobody else's is changed
    assert done.topics()["share"].sum() == pytest.approx(1.0)


def test_documents_that_are_their_own_clusters_have_topics_only(corpus):
    hdp = mc2core.fit(corpus.with_contexts({}), *fits.gibbs(model="hdp"), iterations=2, seed=0, progress=False)
    assert hdp.topics()["share"].sum() == pytest.approx(1.0)
    with pytest.raises(ValueError, match="the model has no clusters of documents"):
        hdp.clusters()
    assert "topics" in hdp._repr_html_()
    assert len(hdp.documents()) == corpus.n_documents
    made = tables_of(hdp.description)
    assert not [name for name in made["summary"]["name"] if "cluster" in name or "chain" in name]
    assert not {"found", "chains", "certainty"} & {*made["clusters"]}
    said = summary(hdp.description, made, "HDP")
    assert ", no clusters, " in said
    assert "# Cluster" not in said
    # as one cluster of a model with a document level, it expects the same tokens of each topic
    own = hdp.posterior.representative
    counts = np.bincount(hdp.document_topics()["topic"] - 1, hdp.document_topics()["tokens"], own.n_topics)
    expected = np.asarray(own.topic_words.sum(axis=1)).ravel()
    assert counts / counts.sum() == pytest.approx(expected / expected.sum(), abs=0.1)


def test_a_stopped_run_is_given_as_a_fit_with_frames(corpus):
    stopped = []

    def stop(iteration, state):
        import signal

        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        mc2core.fit(
            corpus, *fits.gibbs(), iterations=5, seed=0, chains=1, callback=stop, on_stop=stopped.append, progress=False
        )
    assert len(stopped[0].documents()) == corpus.n_documents
    assert isinstance(stopped[0], Fit)


def test_a_report_is_shown_in_a_notebook_and_written(done, tmp_path):
    texts = [f"text {HOSTILE} {j}" for j in range(done.corpus.n_documents)]
    report = done.report(tmp_path / "out", title="Lakes & woods", texts=texts)
    cell = report._repr_html_()
    inside = html.unescape(re.fullmatch(r'<iframe [^>]*srcdoc="([^"]*)"[^>]*></iframe>', cell)[1])
    assert inside == (tmp_path / "out/index.html").read_text(encoding="utf-8")
    assert "<title>Lakes &amp; woods</title>" in inside
    names = pd.read_csv(tmp_path / "out/names.csv").query("of == 'topic'").set_index("number")["name"]
    assert done.topics().set_index("topic")["name"].to_dict() == names.to_dict()
    with pytest.raises(ValueError, match="phrases are found in the texts"):
        done.report(phrases=True)


def test_notebooks_show_what_there_is_and_text_stays_text(done):
    fit, posterior, documents = done._repr_html_(), done.posterior._repr_html_(), done.corpus._repr_html_()
    k, m = done.posterior.representative.n_clusters, done.posterior.representative.n_topics
    assert f"{k} clusters" in fit
    assert "2 chains" in fit
    assert fit.count("<tr") > m
    assert '<th style="text-align:left">samples</th><td style="text-align:left">8</td>' in posterior
    assert ">60<" in documents
    assert "year (numbers)" in documents
    years = done.corpus.contexts["year"] * done.corpus.units["year"][1] + done.corpus.units["year"][0]
    assert f"<td>{np.nanmin(years):.6g} to {np.nanmax(years):.6g}</td>" in documents
    assert f"<td>{(~np.isnan(years)).sum()}</td>" in documents
    largest = done.clusters().sort_values("documents", ascending=False, kind="stable").iloc[0]
    assert fit.index(html.escape(largest["name"])) < fit.index("words</th>")  # clusters stand before topics
    assert "&lt;script&gt;" in documents
    assert "<script>" not in documents


def test_the_methods_paragraph_says_model_settings_and_numbers(done):
    said = done.methods()
    clusters, within = done.posterior.n_clusters, between(done.posterior.interval("main clusters"))
    for part in (
        "without a document level, as in the paper",
        "year (normal_gamma, strength 1), author (dirichlet, strength 1)",
        f"to {done.corpus.n_documents} documents",
        "8 sweeps, of which the first 4 were discarded, in 2 independent chains, with the random seed 1",
        "start_topics 5",
        f"{clusters} clusters ({within} hold 95 % of the documents in 90 % of the samples)",
        f"the chains agree with an adjusted Rand index of {done.posterior.between_chains()['ari']:.2f}.",
        f"mc2core {mc2core.__version__}",
    ):
        assert part in said
    with pytest.raises(ValueError, match="no provenance of a fit"):
        Fit(replace(done.posterior, provenance={}), done.corpus).methods()


def test_methods_say_where_no_groups_were_found(done):
    kept = replace(done.posterior.hierarchy, recommended=1)
    said = Fit(replace(done.posterior, hierarchy=kept), done.corpus, provenance=done.provenance).methods()
    topics = done.posterior.representative.n_topics
    assert f"No groups of documents were found (one cluster is recommended). The fit has {topics} topics." in said
    assert "Rand" not in said


def test_methods_of_a_saved_posterior_name_the_version(done, tmp_path):
    done.posterior.save(tmp_path / "posterior.npz")
    loaded = Posterior.load(tmp_path / "posterior.npz")
    assert f"mc2core {mc2core.__version__}, NumPy" in Fit(loaded, done.corpus).methods()
    older = {name: one for name, one in loaded.provenance.items() if name not in ("versions", "git_commit")}
    said = Fit(replace(loaded, provenance=older | {"git_commit": "0123456789+changes"}), done.corpus).methods()
    assert "We used mc2core (version not recorded) (commit 01234567, with changes)." in said


def test_methods_say_how_words_were_made_and_what_is_missing(done):
    texts = ["apple tree leaf", "leaf tree", "iron nail forge", "nail iron", "apple", "iron"]
    call = {"stop_words": ["the", "a"], "min_df": 2, "max_df": 0.9, "max_ngram": 2, "missing": [-99]}
    years = [1990, None, -99, 1993, 1994, 1995]
    made = mc2core.Corpus.from_texts(texts, contexts={"year": years}, **call)
    fit = mc2core.fit(made, MC2(contexts=["year"]), iterations=2, chains=1, progress=False)
    said = fit.methods()
    assert "Preprocessing: tokeniser unicode, stop_words a list of 2, min_letters 2, max_ngram 2, " in said
    assert "min_df 2, max_df 0.9, missing -99." in said
    assert "Values are missing: year in 2 documents." in said
    for rule, why in (("year=2", " (or all left out as rare)"), ("year=2:pool", "")):
        chosen = replace(fit.posterior, imported={**made.imported, "chosen": {"rare": [rule]}})
        assert f"Values are missing: year in 2 documents{why}." in Fit(chosen, made).methods()
    other = made.subset(np.arange(3))
    said = Fit(fit.posterior, other).methods()
    assert "to 6 documents." in said
    assert "missing:" not in said
    counts = mc2core.Corpus(made.content)
    assert "The corpus was built from counts" in mc2core.fit(counts, iterations=2, chains=1, progress=False).methods()


def test_methods_say_what_the_texts_of_a_bibliography_are(done):
    known = {"records": 9, "same_id": 1, "same_title": 0, "without_abstract": 2, "forms": 5, "authors": 4}
    imported = {"form": "a table", "settings": {"min_letters": 2}, "bibliography": known}
    said = methods._preprocessing(imported, done.corpus)
    assert said.startswith("9 records; the text of a document is its title and abstract. Duplicates left out: 1 with")
    assert "2 documents without an abstract: only the title is the text. Authors as 'Surname, I.': 5 forms" in said
    assert said.endswith("(1 merged). Preprocessing: min_letters 2.")


def test_methods_of_one_sweep_and_one_document_are_singular():
    about = {"iterations": 1, "engine": {"name": "svi"}, "updates": [{"documents": 1, "before": 9, "sweeps": 1}]}
    assert methods._run(None, about, "epochs") == "1 epoch"
    assert methods._updates(about).startswith("1 document was added to the 9 of the fit in 1 update:")
    about["updates"].append({"documents": 2, "before": 10, "sweeps": 20})
    assert methods._updates(about).startswith("3 documents were added to the 9 of the fit in 2 updates:")


def test_methods_compare_the_recommended_cuts_of_the_chains(done):
    kept = replace(done.posterior.find_hierarchy(done.corpus), agreement=np.full(done.posterior.n_clusters + 9, 0.34))
    cut = Fit(replace(done.posterior, hierarchy=kept), done.corpus, provenance=done.provenance)
    cut.description = replace(done.description, recommended=2)
    assert "into 2 clusters; the cuts of the chains into 2 agree with an adjusted Rand index of 0.34." in cut.methods()


def test_the_paragraph_of_methods_names_the_recommended_cut(done):
    cut = Fit(done.posterior, done.corpus, provenance=done.provenance)
    cut.description = replace(done.description, recommended=2)
    assert "We report the recommended clustering, a cut of these into 2 clusters" in cut.methods()
    cut.description = replace(done.description, recommended=done.posterior.representative.n_clusters)
    assert "recommended" not in cut.methods()
