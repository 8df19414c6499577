"""Multi-view corpora: what is written is read, what is damaged is refused, the local data folder's counts."""

import numpy as np
import pytest
from helpers import paths
from scipy.io import savemat

from mc2papers.datasets import catalogue
from mc2papers.datasets.collections import multiview

DATA_FOLDER = paths.DATA_FOLDER / "multiview"
WORDS = np.array([[2, 0, 1], [0, 1, 0]], np.uint8)


def write(path, views, classes=(7, 3)):
    cells = np.empty((len(views), 1), object)
    cells[:, 0] = views
    savemat(path, {"X": cells, "y": np.array([classes], np.uint8).T})
    return path


def test_words_names_and_classes_are_read(tmp_path):
    corpus = multiview.read(write(tmp_path / "Films.mat", [WORDS, np.array([[1, 0, 1], [0, 0, 2]])]), "actor", 0, 1)
    assert corpus.content.toarray().tolist() == WORDS.tolist()
    assert corpus.contexts["actor"].toarray().tolist() == [[1, 0, 1], [0, 0, 2]]
    assert corpus.context_names["actor"] == ["n0", "n1", "n2"]
    assert [corpus.label_names[one] for one in corpus.labels] == ["c7", "c3"]
    assert corpus.documents["id"].tolist() == ["films0", "films1"]


def test_a_document_does_not_name_itself(tmp_path):
    path = write(tmp_path / "papers.mat", [np.array([[1, 1], [1, 0]]), WORDS])
    assert multiview.read(path, "citation", 1, 0).contexts["citation"].toarray().tolist() == [[0, 1], [1, 0]]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda path: path.unlink(), "x.mat is missing"),
        (lambda path: path.write_bytes(b"no file"), "x.mat is not a MATLAB file with the views X and the classes y: "),
        (lambda path: path.write_bytes(path.read_bytes()[:200]), "x.mat is not a MATLAB file"),
        (lambda path: savemat(path, {"X": WORDS}), "x.mat is not a MATLAB file"),
        (lambda path: write(path, [WORDS]), "x.mat is not a MATLAB file"),
        (lambda path: write(path, [WORDS, WORDS[:1]]), "of 2, 1 and 2 documents; their numbers must be equal"),
    ],
)
def test_damage_is_refused_in_a_sentence(tmp_path, change, said):
    path = write(tmp_path / "x.mat", [WORDS, WORDS])
    change(path)
    with pytest.raises(ValueError, match=said):
        multiview.read(path, "actor", 0, 1)


@pytest.mark.skipif(not DATA_FOLDER.is_dir(), reason="the real files are not there (set MC2_DATA_FOLDER)")
@pytest.mark.parametrize(
    ("name", "file", "sizes"),
    [
        ("movies", "Movies.mat", (617, 1878, 20_189, 5322, 17)),
        ("cora", "Cora.mat", (2708, 1433, 49_216, 10_556, 7)),
        ("citeseer", "CiteSeer.mat", (3312, 3703, 105_165, 9072, 6)),
        ("acm", "ACM.mat", (3025, 1870, 253_300, 26_256, 3)),
    ],
)
def test_the_files_of_the_data_folder(name, file, sizes):
    corpus = catalogue.DATASETS[name].read({"files": [DATA_FOLDER / file]}, 0).corpus
    (context,) = catalogue.contexts_of(name, {"source": "real"})
    counts = corpus.n_documents, corpus.n_words, corpus.n_tokens, corpus.contexts[context].nnz, len(corpus.label_names)
    assert counts == sizes
