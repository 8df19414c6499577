"""Assignments as files, and their scores."""

import re

import numpy as np
import pytest

from mc2core import Corpus, clustering
from mc2core.posterior.scores import solutions_of
from mc2papers.baselines.assignments import Assignments, evaluate_assignments

TWO = Assignments({"k2": np.array([0, 1, 1, 0]), "k3": np.array([2, 1, 1, 0])})


def test_what_is_written_is_read(tmp_path):
    TWO.save(tmp_path / "a.tsv")
    assert (tmp_path / "a.tsv").read_text() == "document\tk2\tk3\n0\t0\t2\n1\t1\t1\n2\t1\t1\n3\t0\t0\n"
    found = Assignments.load(tmp_path / "a.tsv")
    assert list(found.solutions) == ["k2", "k3"]
    for name, values in TWO.solutions.items():
        np.testing.assert_array_equal(found.solutions[name], values)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds no assignments"),
        ("document\tk2\n", "holds no assignments"),
        ("document\tk2\tk2\n0\t1\t1\n", "holds no assignments"),
        ("document\n0\n", "holds no assignments"),
        ("document\tk2\n0\t1\n1\n", "line 3: '1' is not 2 whole numbers of at least 0"),
        ("document\tk2\n0\t-1\n", "line 2: '0\\t-1' is not 2 whole numbers of at least 0"),
        ("document\tk2\n1\t1\n", "line 2: found document 1; document 0 is needed"),
    ],
)
def test_damaged_files_are_refused_with_the_line(tmp_path, text, message):
    (tmp_path / "a.tsv").write_text(text)
    with pytest.raises(ValueError, match=re.escape(message)):
        Assignments.load(tmp_path / "a.tsv")


def test_every_solution_is_scored():
    labels = np.array([0, 0, 1, 1])
    train = Corpus(np.ones((4, 2), int), labels=labels)
    scores = evaluate_assignments(TWO, train, None)
    assert scores["perplexity"] == {}
    assert scores["estimator"] is None
    for solution, (name, values) in zip(solutions_of(scores), TWO.solutions.items(), strict=True):
        assert solution["solution"] == name
        assert solution["clusters"] == len(set(values))
        for measure in ("purity", "nmi", "rand_index", "f_score"):
            assert solution[measure] == getattr(clustering, measure)(labels, values)
    assert "purity" not in solutions_of(evaluate_assignments(TWO, Corpus(np.ones((4, 2), int)), None))[0]
    with pytest.raises(ValueError, match="the corpus has 3 documents, but the assignments have 4"):
        evaluate_assignments(TWO, train.subset(np.arange(3)), None)
