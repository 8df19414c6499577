"""Names of clusters and topics: relevance written out, names that someone gave, what is refused."""

import json

import numpy as np
import pandas as pd
import pytest
from helpers.explored_fits import HOSTILE, corpus, data_of, gibbs
from helpers.small_posteriors import word_given_cluster

from mc2core.explore import texts, words
from mc2core.explore.description import Description
from mc2core.explore.tables import tables_of


@pytest.fixture(scope="module")
def posterior():
    return gibbs(corpus())


def test_a_name_is_of_the_most_relevant_words_and_not_of_the_commonest(posterior):
    made = corpus()
    tables = tables_of(Description.of(posterior, made))
    sample = posterior.representative
    everywhere = np.asarray(made.content.sum(axis=0)).ravel() + sample.topic_word_prior
    everywhere = everywhere / everywhere.sum()
    psi = (sample.word_given_topic, tables["topics"].set_index("topic")["name"])
    tau = (word_given_cluster(sample), tables["clusters"].set_index("cluster")["name"])
    for probability, names in (psi, tau):
        relevance = 0.3 * np.log(probability) + 0.7 * np.log(probability / everywhere)
        for number, name in names.items():
            chosen = name.split(", ")
            assert 1 <= len(set(chosen)) == len(chosen) <= 3
            place = [made.vocabulary.index(word) for word in chosen]
            value = relevance[number - 1, place]
            if probability is tau[0]:  # clusters side by side share no words
                continue
            assert (np.diff(value) <= 0).all()
            often = probability[number - 1] >= 0.5 * probability[number - 1].max()  # none of these is too rare
            assert (relevance[number - 1, often] <= value[0] + 1e-12).all()


def test_of_forms_of_a_word_a_name_has_one():
    vocabulary = ["infection", "infections", "art", "arts", "gram", "program", "sepsis"]
    top = words.Top(*np.array([np.arange(7)] * 5))
    assert words.name_of(vocabulary, top) == "infection, art, gram"


def test_clusters_side_by_side_share_a_word_only_where_nothing_else_tells_more():
    vocabulary = ["new", "energy", "child", "tax", "war", "peace"]
    base = np.full(6, 1 / 6)
    tops = [
        words.top_of(np.array(p), base, np.ones(6, bool))
        for p in (
            [0.4, 0.3, 0.1, 0.18, 0.01, 0.01],
            [0.5, 0.01, 0.2, 0.03, 0.17, 0.09],
            [0.4, 0.2, 0.2, 0.1, 0.08, 0.02],
        )
    ]
    alone = words.of_words("cluster", tops, vocabulary).names
    assert sum("new" in name for name in alone) == 3
    names = words.of_words("cluster", tops, vocabulary, [range(3)]).names
    # new goes to the second, where it is most relevant, and energy to the first; the third has nothing of its own
    assert names == ["energy, tax, new", "new, child, war", "new, energy, child"]
    assert words.of_words("cluster", tops, vocabulary, [range(2), [2]]).names[:2] == names[:2]


def test_two_words_that_follow_each_other_stand_in_a_name_where_they_do_so_often():
    said = ["The solar Panel works.", "a solar panel", "solar panels", "Solar panel; a panel"] + ["solar panel"] * 3
    assert texts.phrases_of(said, ["solar", "panel", "works"]) == {"solar": "solar panel", "panel": "solar panel"}
    assert texts.phrases_of(said[:4], ["solar", "panel"]) == {}  # five times at least
    top = words.Top(*np.array([np.arange(3)] * 5))
    assert words.name_of(["solar", "panel", "works"], top, phrases={"solar": "solar panel"}) == "solar panel, works"


def test_what_is_rare_in_all_documents_but_common_here_is_named():
    probability, base = np.array([0.5, 0.3, 0.2]), np.array([0.6, 0.39, 0.01])
    top = words.top_of(probability, base, np.ones(3, bool))
    assert top.column[np.argsort(top.by_relevance)].tolist() == [2, 0, 1]
    assert top.column[np.argsort(top.by_probability)].tolist() == [0, 1, 2]


def test_names_that_are_given_stand_in_every_table(posterior, tmp_path):
    made = corpus()
    plain = tables_of(Description.of(posterior, made))["names"]
    given = plain.copy()
    first_cut = posterior.representative.n_clusters + 1
    given.loc[(given["of"] == "cluster") & (given["number"] == first_cut), "name"] = "A cut, the first"
    given.loc[(given["of"] == "topic") & (given["number"] == 2), "name"] = HOSTILE
    given.iloc[::-1].to_csv(tmp_path / "names.csv", index=False)
    names = words.read_names(tmp_path / "names.csv")
    tables = tables_of(Description.of(posterior, made, names=names))
    assert tables["topics"].set_index("topic")["name"][2] == HOSTILE
    assert tables["cut_clusters"].set_index("cluster")["name"][first_cut] == "A cut, the first"
    assert tables["names"].equals(given)
    few = {"topic": {1: "One"}}
    changed = tables_of(Description.of(posterior, made, names=few))["names"]["name"] != plain["name"]
    assert changed.sum() == 1


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("of,number,name\nword,1,A", "line 2: 'of' is 'word'; it must be one of cluster, topic"),
        ("of,number,name\ntopic,x,A", "line 2: 'x' is not a number of a topic"),
        ("of,number,name\ntopic,1, ", "line 2: the name of topic 1 is empty"),
        ("of,number,name\ntopic,1,A\ntopic,1,B", "line 3: topic 1 has another name above"),
        ("of,name\ntopic,A", "has no column 'number'"),
        ("", "is not a CSV in UTF-8"),
    ],
)
def test_a_file_of_names_that_cannot_be_meant_is_refused(tmp_path, rows, said):
    (tmp_path / "names.csv").write_text(rows)
    with pytest.raises(ValueError, match=r"names\.csv") as caught:
        words.read_names(tmp_path / "names.csv")
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ({"topic": {99: "A"}}, "a name is given to topic 99, but there are"),
        ({"cluster": {0: "A"}}, "a name is given to cluster 0, but there are"),
        ({"word": {1: "A"}}, "names are given of 'word'; they can be of cluster, topic"),
        ({"topic": {1: " "}}, "the name of topic 1 is ' '; it must be a text"),
    ],
)
def test_names_of_what_is_not_there_are_refused(posterior, names, said):
    with pytest.raises(ValueError, match="name") as caught:
        Description.of(posterior, corpus(), names=names)
    assert str(caught.value).startswith(said)


def test_the_command_takes_names(posterior, tmp_path):
    from mc2core.app.cli import main

    made = corpus()
    made.save(tmp_path / "corpus")
    posterior.save(tmp_path / "posterior.npz")
    (tmp_path / "names.csv").write_text("of,number,name\ntopic,1,Lakes & rivers\n")
    files = [str(tmp_path / name) for name in ("posterior.npz", "corpus")]
    assert main(["describe", *files, "--names", str(tmp_path / "names.csv"), "--out", str(tmp_path / "out")]) == 0
    table = pd.read_csv(tmp_path / "out/topics.csv").set_index("topic")
    assert table["name"][1] == "Lakes & rivers"
    assert "Lakes & rivers" in json.dumps(data_of((tmp_path / "out/index.html").read_text()))
