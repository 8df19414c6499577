"""Corpora in one table: documents without words or names are left out where asked, the local data folder's counts."""

import json

import pytest
from helpers import paths

from mc2papers.datasets import catalogue


def test_only_documents_with_words_and_names_are_kept(tmp_path):
    rows = [
        {"abstract": "gene cell", "mesh": ["Humans"], "year": 1999, "review": "a"},
        {"abstract": "", "mesh": ["Humans"], "year": 1999, "review": "a"},
        {"abstract": "gene", "mesh": [], "year": 1999, "review": "b"},
        {"abstract": "cell", "mesh": ["Mice", "Humans"], "year": 2000, "review": "b"},
    ]
    path = tmp_path / "records.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    layout = {"text": "abstract", "contexts": ["mesh:bag", "year:number"], "labels": "review"}
    kept, whole = (
        catalogue._table(is_complete=is_complete, **layout).read({"files": [path]}, 0) for is_complete in (True, False)
    )
    assert whole.corpus.n_documents == 4
    assert kept.corpus.contexts["year"].tolist() == [1999, 2000]
    assert [(one.number, one.what) for one in kept.dropped][-1] == (2, "documents")


@pytest.mark.skipif(not paths.DATA_FOLDER.is_dir(), reason="the real files are not there (set MC2_DATA_FOLDER)")
@pytest.mark.parametrize(
    ("name", "file", "sizes", "n_classes"),
    [
        ("synergy", "synergy/synergy_9_reviews.jsonl.gz", (5043, 10_014, 645_335), 9),
        ("twitch", "twitch/twitch_engb.csv.gz", (7126, 2545, 148_218), 2),
        ("acl", "acl/acl_anthology_2019.jsonl.gz", (48_356, 5259, 322_299), 0),
        ("wikiimages", "wikipedia_images/wikipedia_images_counts.csv.gz", (2866, 128, 2_641_533), 10),
        ("clinc", "clinc150/clinc150.csv.gz", (22_500, 5839, 85_860), 150),
    ],
)
def test_the_files_of_the_data_folder(name, file, sizes, n_classes):
    corpus = catalogue.DATASETS[name].read({"files": [paths.DATA_FOLDER / file]}, 0).corpus
    assert (corpus.n_documents, corpus.n_words, corpus.n_tokens) == sizes
    assert len(corpus.label_names or ()) == n_classes
    assert set(corpus.contexts) == set(catalogue.contexts_of(name, {"source": "real"}))
