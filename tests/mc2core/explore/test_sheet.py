"""Sheets for people who check clusters: intruders are of other clusters, and answers are scored as by hand."""

import re

import numpy as np
import pandas as pd
import pytest

import mc2core
from mc2core import Corpus
from mc2core.app.cli import main
from mc2core.base import storage
from mc2core.explore.sheet import score_sheet, write_sheet
from mc2core.models import MC2

WORDS = [
    ["ferry", "harbour", "sail", "tide", "anchor", "pilot"],
    ["bread", "crust", "flour", "oven", "dough", "yeast"],
    ["moon", "star", "comet", "orbit", "eclipse", "dusk"],
]


@pytest.fixture(scope="module")
def corpus():
    rng = np.random.default_rng(3)
    texts = [" ".join([*rng.choice(WORDS[j % 3], 12), f"<b>{j}</b>"]) for j in range(60)]
    return Corpus.from_texts(texts, documents=pd.DataFrame({"title": [f"{j % 3} {j}" for j in range(60)]}), min_df=2)


@pytest.fixture(scope="module")
def fit(corpus, tmp_path_factory):
    """The folder of a fit whose clusters are the three groups of words."""
    folder = tmp_path_factory.mktemp("fit")
    made = mc2core.fit(corpus, MC2(n_clusters=3, burstiness=False), iterations=10, seed=0, progress=False)
    made.posterior.save(folder / "posterior.npz")
    groups = made.documents().groupby("cluster")["title"].agg(lambda titles: {one[0] for one in titles})
    assert [len(one) for one in groups] == [1, 1, 1]
    return folder


def key_of(fit, folder):
    (sheet,) = pd.read_csv(folder / "sheet.csv", dtype=str)["sheet"].unique()
    return storage.read_json(fit / f"sheet_{sheet}.json")["questions"]


@pytest.mark.parametrize("seed", range(8))
def test_intruders_are_never_of_the_cluster(fit, corpus, tmp_path, seed):
    assert write_sheet(fit, corpus, tmp_path / "sheet", seed=seed) == 6
    questions = key_of(fit, tmp_path / "sheet")
    assert [one["kind"] for one in questions] == ["words"] * 3 + ["documents"] * 3
    for one in questions:
        if one["kind"] == "words":
            groups = [next(g for g in range(3) if word in WORDS[g]) for word in one["options"]]
            assert len(groups) == 6
        else:
            groups = [int(title[0]) for title in one["options"]]
            assert len(groups) == 4
        intruder = groups.pop(one["answer"] - 1)
        assert len(set(groups)) == 1
        assert intruder not in groups


def test_the_same_seed_gives_the_same_sheet_without_answers(fit, corpus, tmp_path):
    texts = [f"<b>{title}</b>" for title in corpus.documents["title"]]
    for name, seed in (("one", 1), ("two", 1), ("other", 2)):
        write_sheet(fit, corpus, tmp_path / name, texts, seed)
    one, two, other = ((tmp_path / name / "sheet.csv").read_bytes() for name in ("one", "two", "other"))
    assert one == two != other
    table = pd.read_csv(tmp_path / "one" / "sheet.csv", keep_default_na=False)
    assert (table["answer"] == "").all()
    assert sorted(path.name for path in (tmp_path / "one").iterdir()) == ["sheet.csv", "sheet.html"]
    page = (tmp_path / "one" / "sheet.html").read_text()
    assert page.count("<fieldset>") == 6
    assert "&lt;b&gt;" in page
    assert not re.search(r"cluster|correct|right|https?:", page)  # nothing by which answers could be found


def test_answers_are_scored_as_by_hand(fit, corpus, tmp_path, output_of):
    write_sheet(fit, corpus, tmp_path / "sheet", seed=3)
    questions, table = key_of(fit, tmp_path / "sheet"), pd.read_csv(tmp_path / "sheet" / "sheet.csv", dtype=str)
    given = [one["answer"] for one in questions]
    wrong = given[1] % 6 + 1
    given[1], given[4] = wrong, ""  # a wrong word, and a question without an answer
    path = tmp_path / "answers.csv"
    table.assign(answer=given).to_csv(path, index=False)
    found = score_sheet(fit, path).set_index("kind")
    assert found[["questions", "answered", "right"]].to_numpy().tolist() == [[3, 3, 2], [3, 2, 2]]
    assert found["share"].tolist() == pytest.approx([2 / 3, 1.0])
    assert found["chance"].tolist() == pytest.approx([1 / 6, 1 / 4])
    assert found["missed"].tolist() == [str(questions[1]["cluster"]), ""]
    z, n, p = 1.6448536269514722, 3, 2 / 3  # Wilson, 90 %
    centre, half = p + z**2 / (2 * n), z * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    assert found["low"]["words"] == pytest.approx((centre - half) / (1 + z**2 / n))
    assert found["high"]["words"] == pytest.approx((centre + half) / (1 + z**2 / n))
    rows = output_of(f"sheet {fit} --score {path} {path}").splitlines()
    assert rows[0] == "kind,questions,answered,right,share,low,high,chance,missed,answers"
    assert len(rows) == 5


def test_damaged_answers_give_one_sentence(fit, corpus, tmp_path, capsys):
    write_sheet(fit, corpus, tmp_path / "sheet")
    table = pd.read_csv(tmp_path / "sheet" / "sheet.csv", dtype=str, keep_default_na=False)
    path = tmp_path / "answers.csv"
    for damaged, told in (
        (table.drop(columns="answer"), "has no column 'answer'; it needs sheet, question and answer"),
        (table.assign(sheet="0123abcd"), "has answers to the question sheet 0123abcd, which is none of"),
        (table.assign(sheet="../x"), "has answers to the question sheet ../x, which is none of"),
        (table.iloc[:0], r"has answers to the question sheet \(none\)"),
        (table.assign(question="7"), "line 2: question is '7'; it must be from 1 to 6"),
        (table.assign(question="1"), "line 3: question 1 is answered above"),
        (table.assign(answer="7"), "line 2: answer is '7'; it must be the number of an option, from 1 to 6"),
        (table.assign(answer="tide"), "line 2: answer is 'tide'; it must be"),
    ):
        damaged.to_csv(path, index=False)
        with pytest.raises(ValueError, match=told):
            score_sheet(fit, path)
    path.write_bytes(b"sheet,question\n\xfc")
    assert main(["sheet", str(fit), "--score", str(path)]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "is not a CSV in UTF-8" in said


def test_what_cannot_be_asked_is_said(fit, corpus, tmp_path, output_of, refused):
    with pytest.raises(ValueError, match="already exists and may contain answers"):
        write_sheet(fit, corpus, tmp_path)
    bare = Corpus(corpus.content, corpus.vocabulary)
    with pytest.raises(ValueError, match="the documents have no titles: give their texts"):
        write_sheet(fit, bare, tmp_path / "sheet")
    refused(f"sheet {fit}", "a question sheet needs the corpus and a folder")
    corpus.save(tmp_path / "corpus")
    assert "6 questions" in output_of(f"sheet {fit} {tmp_path}/corpus --out {tmp_path}/new")
