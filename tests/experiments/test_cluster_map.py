"""ICML14 figure 6: which clusters are drawn, where their documents lie, and whether that is separated."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.manifold import trustworthiness

from mc2core.base import storage
from mc2core.corpus import Corpus
from mc2core.engines import Gibbs
from mc2core.engines.running.loop import fit
from mc2core.experiments import targets
from mc2core.experiments.icml2014.parts import cluster_map


def sized(*sizes):
    """A model whose clusters have these sizes."""
    return SimpleNamespace(last=SimpleNamespace(cluster=np.repeat(np.arange(len(sizes)), sizes)))


def test_the_fit_with_most_clusters_of_five_documents_is_drawn():
    models = [sized(30, 4, 9, 4, 4, 4), sized(5, 8, 20, 1), sized(6, 7, 8)]
    model, largest = cluster_map.choose(models, 2)
    assert model is models[1]  # three, and before the other one with three
    assert largest.tolist() == [2, 1]
    message = r"figure6\.n_clusters is 7, but no fit has more than 3 clusters of at least 5 documents"
    with pytest.raises(ValueError, match=message):
        cluster_map.choose(models, 7)


def line(cluster, x):
    return pd.DataFrame({"cluster": cluster, "x": np.array(x, float), "y": 0.0})


def test_neighbours_on_the_map_are_counted_by_hand():
    # three in cluster 1, four in cluster 2: two neighbours each
    table = line([1, 1, 1, 2, 2, 2, 2], [0.0, 1.0, 3.0, 10.0, 11.5, 13.5, 4.5])
    alike = cluster_map.neighbours_alike(table)
    # nearest of 3.0 are 4.5 and 1.0; of 10 are 11.5 and 13.5; of 4.5 are 3.0 and 1.0
    assert alike.tolist() == [1.0, 1.0, 0.5, 1.0, 1.0, 1.0, 0.0]
    claim = cluster_map.judge(table, "X")
    assert (claim.text, claim.holds) == ("2 clusters separated", False)
    assert claim.numbers == (
        "79% of nearest neighbours on the map are in the same cluster, 90% wanted; from 75% to 83% by cluster, "
        "51% by chance"
    )
    apart = line(np.repeat([1, 2], 12), np.concatenate([np.arange(12), 100 + np.arange(12)]))
    assert cluster_map.judge(apart, "X").holds
    # all on one point: a document is none of its own neighbours
    assert cluster_map.neighbours_alike(line([1, 2, 1, 2], [0.0] * 4)).isin([0.0, 1.0]).all()


@pytest.fixture(scope="module")
def groups():
    """60 documents of three groups that share no word and hardly a tag, and two strays; model of the groups."""
    rng = np.random.default_rng(0)
    group = np.array([0] * 30 + [1] * 20 + [2] * 10 + [3, 3])
    words = np.zeros((62, 40))
    tags = np.zeros((62, 9))
    for j, g in enumerate(group):
        np.add.at(words[j], 10 * g + rng.integers(0, 10, 15), 1)
        tags[j, 2 * g + rng.integers(0, 3, 2)] += 1
    names = ["wolf", "cat", "whales", "hawk"]
    corpus = Corpus(words, contexts={"tag": tags}, labels=group, label_names=names)
    bare = corpus.with_contexts({"tag": corpus.contexts["tag"]})
    model = fit(bare, Gibbs(), iterations=2, burn_in=1, seed=0).model
    return corpus, replace(model, samples=[replace(model.last, cluster=group.astype(np.int32))])


def test_the_map_holds_the_documents_of_the_largest_clusters(groups):
    corpus, model = groups
    table = cluster_map.describe(corpus, [model], n_clusters=2)
    assert table["document"].tolist() == list(range(50))
    assert table["cluster"].tolist() == [1] * 30 + [2] * 20
    assert table["class"].tolist() == ["wolf"] * 30 + ["cat"] * 20
    assert set(table["seed"]) == {0}
    again = cluster_map.describe(corpus, [model], n_clusters=2)
    assert (table[["x", "y"]] == again[["x", "y"]]).all(axis=None)
    # neighbours on the map are neighbours by the tf-idf of words and tags: random places have about 0.5
    counts = np.hstack([corpus.content.toarray(), corpus.contexts["tag"].toarray()])[:50]
    tfidf = TfidfTransformer().fit_transform(counts).toarray()
    assert trustworthiness(tfidf, table[["x", "y"]], n_neighbors=8) > 0.8
    claim = cluster_map.judge(cluster_map.describe(corpus, [model], n_clusters=3), "made up")
    assert (claim.verdict, claim.text) == ("holds", "3 clusters separated")


def test_both_colourings_are_drawn(groups):
    corpus, model = groups
    table = cluster_map.describe(corpus, [model], n_clusters=3)
    figure = cluster_map.draw(table, "simulated data")
    left, right = figure.axes
    assert [text.get_text() for text in left.get_legend().get_texts()] == ["1 (30)", "2 (20)", "3 (10)"]
    assert [text.get_text() for text in right.get_legend().get_texts()] == ["cat", "whales", "wolf"]
    drawn = sorted(len(points.get_offsets()) for points in right.collections)
    assert drawn == [10, 20, 30]
    assert "simulated data" in {text.get_text() for text in figure.findobj(match=plt.Text)}
    plt.close(figure)
    many = table.assign(**{"class": [f"class {number % 13 + 1}" for number in range(len(table))]})
    figure = cluster_map.draw(many, "")
    names = [text.get_text() for text in figure.axes[1].get_legend().get_texts()]
    assert names == [f"class {number}" for number in range(1, 14)]
    looks = {(tuple(p.get_facecolor()[0]), p.get_paths()[0].vertices.shape) for p in figure.axes[1].collections}
    assert len(looks) == 13  # colour and marker tell all of them apart
    plt.close(figure)


def test_what_cannot_be_mapped_is_refused_in_one_sentence(groups):
    corpus, model = groups
    bare = Corpus(corpus.content, contexts=dict(corpus.contexts))
    with pytest.raises(ValueError, match="the classes cannot be shown: each document of the corpus needs one label"):
        cluster_map.describe(bare, [model], n_clusters=2)
    with pytest.raises(ValueError, match=r"figure6\.n_clusters is 7, but no fit has more than 3 clusters"):
        cluster_map.describe(corpus, [model])
    with pytest.raises(ValueError, match="corpus"):
        cluster_map.describe(corpus.subset(np.arange(40)), [model], n_clusters=2)


def test_figure_of_clusters_is_made_by_name(groups, tmp_path):
    corpus, model = groups
    corpus.save(tmp_path / "corpus/train")
    about = {"title": "NUS-WIDE", "source": "simulated", "documents": 62, "invented": False}
    storage.write_json(tmp_path / "corpus/source.json", about)
    model.save(tmp_path / "model.npz")
    files = {"corpora": [tmp_path / "corpus"], "models": [tmp_path / "model.npz"]}
    options = {"figure6": {"n_clusters": 3}, "corpora": {"nuswide": {"source": "simulated", "scale": 0.2}}}
    targets.make("icml2014_figure6", files, options, tmp_path / "f")
    assert len(pd.read_csv(tmp_path / "f.csv")) == 60
    assert pd.read_csv(tmp_path / "f_claims.csv")["verdict"].tolist() == ["holds"]
    assert (tmp_path / "f.png").read_bytes().startswith(b"\x89PNG")
    assert "The images of the 3 largest clusters" in targets.registry()["icml2014_figure6"].caption(options)
