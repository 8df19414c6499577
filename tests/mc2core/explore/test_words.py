"""Names of clusters and topics: relevance written out, names that someone gave, what is refused."""

import json

import numpy as np
import pandas as pd
import pytest
from helpers.commands import mc2
from helpers.explored_fits import HOSTILE, corpus, data_of, gibbs

from mc2core import Fit
from mc2core.explore import texts, words
from mc2core.explore.description import Description
from mc2core.explore.names import with_names
from mc2core.explore.tables import tables_of


@pytest.fixture(scope="module")
def posterior():
    return gibbs(corpus())


def test_a_name_is_of_words_frequent_here_and_rarer_elsewhere(posterior):
    made = corpus()
    tables = tables_of(Description.from_posterior(posterior, made))
    sample = posterior.representative
    everywhere = np.asarray(made.content.sum(axis=0)).ravel() + sample.topic_word_prior
    everywhere = everywhere / everywhere.sum()
    names = tables["topics"].set_index("topic")["name"]
    for number, name in names.items():
        probability = sample.word_given_topic[number - 1]
        score = probability**0.4 * np.log(np.maximum(probability / everywhere, 1.0))
        often = score[probability >= 0.5 * probability.max()]  # none of these is too rare
        chosen = [score[made.vocabulary.index(word)] for word in name.split(", ")]
        assert chosen == sorted(chosen, reverse=True)
        assert chosen == pytest.approx(np.sort(often)[::-1][: len(chosen)])


def test_a_name_prefers_a_frequent_word_to_a_rare_exclusive_one():
    vocabulary = ["the", "energy", "synfuels", "oil"]
    probability, base = np.array([0.6, 0.02, 0.0006, 0.01]), np.array([0.6, 0.002, 2e-6, 0.001])
    top = words.top_of(probability, base, np.ones(4, bool))
    assert vocabulary[top.column[top.by_relevance == 0][0]] == "synfuels"  # as LDAvis ranks them
    assert words.name_of(vocabulary, top) == "energy, oil, synfuels"


def top_in_order(n):
    """``n`` words, each more probable and more distinctive than those after it."""
    return words.Top(np.arange(n), np.linspace(0.2, 0.1, n), np.linspace(9.0, 3.0, n), np.arange(n), np.arange(n))


def test_of_forms_of_a_word_a_name_has_one():
    vocabulary = ["infection", "infections", "art", "arts", "child", "children", "gram", "program", "sepsis"]
    assert words.name_of(vocabulary, top_in_order(9)) == "infection, art, child"
    assert words.name_of(vocabulary[6:], top_in_order(3)) == "gram, program, sepsis"


def test_words_that_name_two_clusters_equally_well_come_last():
    """Of three clusters, the first two have federal alike; tax is far more distinctive of the third."""
    vocabulary = ["federal", "budget", "deficit", "housing", "local", "tax", "income", "a", "b"]
    probability = np.array(
        [
            [0.2, 0.12, 0.1, 0.0, 0.0, 0.05, 0.0, 0.08, 0.45],
            [0.2, 0.0, 0.0, 0.12, 0.1, 0.0, 0.0, 0.08, 0.5],
            [0.0, 0.0, 0.0, 0.0, 0.0, 0.3, 0.12, 0.08, 0.5],
        ]
    )
    probability = (probability + 1e-4) / (probability + 1e-4).sum(axis=1, keepdims=True)
    base = np.array([0.05, 0.02, 0.02, 0.02, 0.02, 0.03, 0.02, 0.08, 0.74])
    tops = [words.top_of(one, base, np.ones(9, bool)) for one in probability]
    alone = words.of_words("cluster", tops, vocabulary).names
    assert alone == ["budget, federal, deficit", "housing, federal, local", "tax, income, b"]
    names = words.of_words("cluster", tops, vocabulary, [range(3)]).names
    assert names == ["budget, deficit, federal", "housing, local, federal", "tax, income, b"]
    # side by side with the third alone, nothing is shared
    assert words.of_words("cluster", tops, vocabulary, [[0, 2], [1]]).names == alone


def test_two_words_that_often_follow_each_other_stand_in_a_name():
    said = ["The solar Panel works.", "a solar panel", "solar panels", "Solar panel; a panel"] + ["solar panel"] * 3
    assert texts.phrases_of(said, ["solar", "panel", "works"]) == {"solar": "solar panel", "panel": "solar panel"}
    assert texts.phrases_of(said[:4], ["solar", "panel"]) == {}  # five times at least
    top = top_in_order(3)
    assert words.name_of(["solar", "panel", "works"], top, phrases={"solar": "solar panel"}) == "solar panel, works"


def test_what_is_rare_in_all_documents_but_common_here_is_named():
    probability, base = np.array([0.5, 0.3, 0.2]), np.array([0.6, 0.39, 0.01])
    top = words.top_of(probability, base, np.ones(3, bool))
    assert top.column[np.argsort(top.by_relevance)].tolist() == [2, 0, 1]
    assert top.column[np.argsort(top.by_probability)].tolist() == [0, 1, 2]


def test_names_that_are_given_stand_in_every_table(posterior, tmp_path):
    made = corpus()
    plain = tables_of(Description.from_posterior(posterior, made))["names"]
    given = plain.copy()
    first_cut = posterior.representative.n_clusters + 1
    given.loc[(given["of"] == "cluster") & (given["number"] == first_cut), "name"] = "A cut, the first"
    given.loc[(given["of"] == "topic") & (given["number"] == 2), "name"] = HOSTILE
    given.iloc[::-1].to_csv(tmp_path / "names.csv", index=False)
    read = words.read_names(tmp_path / "names.csv").iloc[::-1].reset_index(drop=True)
    named = with_names(Description.from_posterior(posterior, made), read)
    assert named.notes == []
    tables = tables_of(named)
    assert tables["topics"].set_index("topic")["name"][2] == HOSTILE
    assert tables["cut_clusters"].set_index("cluster")["name"][first_cut] == "A cut, the first"
    assert tables["names"].equals(given)
    few = {"topic": {1: "One"}}
    changed = tables_of(Description.from_posterior(posterior, made, names=few))["names"]["name"] != plain["name"]
    assert changed.sum() == 1
    given.to_csv(tmp_path / "names.csv", index=False, sep=";")  # as spreadsheets of many countries save it
    assert words.read_names(tmp_path / "names.csv").equals(read)
    (tmp_path / "names.csv").write_text('of,number,name\ntopic,1," Two\n lines "\n')
    assert words.read_names(tmp_path / "names.csv")["name"].tolist() == ["Two lines"]


def test_names_of_another_fit_move_with_their_words(posterior, tmp_path, caplog):
    """A file in which clusters and topics had other numbers, and one cluster words that none has now."""
    description = Description.from_posterior(posterior, corpus())
    plain = tables_of(description)["names"]
    given = plain[(plain["of"] == "topic") | (plain["level"] == "recommended")].copy()
    given["name"] = [f"{row.of} {row.number}" for row in given.itertuples()]
    n = given.groupby("of")["number"].transform("max")
    given["number"] = given["number"] % n + 1
    known = given.index[given["of"] == "cluster"]
    given.loc[known[-1], ["name", "words"]] = ["Gone", "quite other words than any cluster has today in all"]
    given.to_csv(tmp_path / "names.csv", index=False)
    named = with_names(description, words.read_names(tmp_path / "names.csv"))
    kept = len(known) - 1
    assert named.names["cluster"] == {number: f"cluster {number}" for number in range(1, kept + 1)}
    assert named.names["topic"] == {number: f"topic {number}" for number in range(1, int(n.iloc[-1]) + 1)}
    moved = "the name 'cluster 1' of cluster 2 has moved to cluster 1, which has most of its words"
    gone = "the name 'Gone' of cluster 1 is left out: no cluster of the same clustering in this fit has half"
    assert moved in caplog.text
    assert gone in caplog.text
    warned = tables_of(named)["summary"].query("name.str.startswith('warning')")["value"]
    assert {moved} < set(warned)
    again = Fit(posterior, corpus())
    again.rename(tmp_path / "names.csv")
    assert again.names == named.names


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
        ({"word": {1: "A"}}, "'word' cannot have names; only these can: cluster, topic"),
        ({"topic": {1: " "}}, "the name of topic 1 is ' '; it must be a text"),
    ],
)
def test_names_of_what_is_not_there_are_refused(posterior, names, said):
    with pytest.raises(ValueError, match="name") as caught:
        Description.from_posterior(posterior, corpus(), names=names)
    assert str(caught.value).startswith(said)


def test_the_command_takes_names(posterior, tmp_path):

    made = corpus()
    made.save(tmp_path / "corpus")
    posterior.save(tmp_path / "posterior.npz")
    (tmp_path / "names.csv").write_text("of,number,name\ntopic,1,Lakes & rivers\n")
    files = [str(tmp_path / name) for name in ("posterior.npz", "corpus")]
    mc2(["describe", *files, "--names", tmp_path / "names.csv", "--out", tmp_path / "out"])
    table = pd.read_csv(tmp_path / "out/topics.csv").set_index("topic")
    assert table["name"][1] == "Lakes & rivers"
    assert "Lakes & rivers" in json.dumps(data_of((tmp_path / "out/index.html").read_text()))
