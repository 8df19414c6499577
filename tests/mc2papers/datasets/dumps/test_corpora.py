"""Corpora gathered from shards: sampled categories, first writers, the account of what was left out."""

import gzip

import numpy as np
import pytest

from mc2core.base.storage import replacing_folder
from mc2papers.datasets.dumps import corpora, pubmed, shards


def shard(folder, name, documents, dropped=()):
    """A shard of (key, version, text, categories), with (key, version, reason) dropped."""
    with replacing_folder(folder / name) as new:
        writer = shards.ShardWriter(new, name, 0, names=["category"])
        for key, version, text, categories in documents:
            writer.add(shards.Document(key, version, f"Title {key}", text.encode(), {"category": categories}))
        for one in dropped:
            writer.drop(*one)
        reasons = [reason for _, _, reason in dropped]
        counts = {reason: reasons.count(reason) for reason in reasons}
        writer.finish(counts=counts | {"articles": len(documents), "pages": len(documents) + len(dropped)}, warnings=[])
    return folder / name


@pytest.fixture
def wiki(tmp_path):
    older = shard(
        tmp_path,
        "a.xml",
        [(1, 10, "oak oak ash", ["Trees"]), (2, 10, "pike", ["Fish"]), (3, 10, "carp the carp", ["Fish", "Food"])],
        [(4, 10, "disambiguation"), (5, 10, "redirect")],
    )
    newer = shard(
        tmp_path, "b.xml", [(1, 20, "oak elm", ["Trees", "Wood"]), (6, 5, "of no", [])], [(2, 20, "redirect")]
    )
    return {"shards": [newer, older]}


def test_account_tells_versions_from_documents(wiki):
    reading = corpora.read_wikipedia(
        wiki, 0, vocabulary=None, min_letters=3, drop_stop_words=True, contexts=["category"], root=""
    )
    assert reading.corpus.documents["id"].tolist() == [1, 3]
    assert reading.corpus.vocabulary == ["carp", "elm", "oak"]
    dropped = {(one.what, one.why): one.number for one in reading.dropped}
    assert dropped == {
        ("records", "disambiguation"): 1,
        ("records", "redirect"): 2,
        ("articles", "replaced by a later version"): 2,
        ("articles", "without a word of the vocabulary"): 1,
        ("tokens", "stop words and words outside the vocabulary"): 1,
    }
    assert reading.notes[0] == (
        "articles and disambiguation in the files: 6; distinct: 5. Counted by their latest version, 3 are articles, "
        "1 disambiguation, 1 redirect."
    )
    assert reading.files["b.xml"] == {"articles": 2, "pages": 3, "redirect": 1}


def test_articles_of_sampled_categories_keep_words_and_one_label(wiki):
    choices = {"least_articles": 1, "min_letters": 3, "drop_stop_words": False}
    reading = corpora.read_categories(wiki, 0, n_categories=4, **choices)
    corpus = reading.corpus
    assert corpus.label_names == ["Fish", "Food", "Trees", "Wood"]
    # each article is in two categories of one article: the first in the alphabet
    assert [corpus.label_names[label] for label in corpus.labels] == ["Trees", "Fish"]
    assert corpus.vocabulary == ["carp", "elm", "oak", "the"]
    assert "2 articles are in several of these categories" in reading.notes[-1]
    fewer = corpora.read_categories(wiki, 0, n_categories=1, **choices).corpus
    assert fewer.n_documents == 1
    assert np.array_equal(fewer.labels, [0])
    with pytest.raises(ValueError, match="5 categories are asked for, but only 4 have 1 articles or more"):
        corpora.read_categories(wiki, 0, n_categories=5, **choices)


def test_the_label_is_the_smallest_category(tmp_path):
    documents = [(1, 1, "oak", ["Ash", "Big"]), (2, 1, "elm", ["Big"]), (3, 1, "yew", ["Big", "Small"])]
    files = {"shards": [shard(tmp_path, "a.xml", documents), shard(tmp_path, "b.xml", [(4, 1, "ash", ["Ash"])])]}
    corpus = corpora.read_categories(
        files, 0, n_categories=3, least_articles=1, min_letters=3, drop_stop_words=True
    ).corpus
    assert [corpus.label_names[label] for label in corpus.labels] == ["Ash", "Big", "Small", "Ash"]


def test_citations_lose_check_tags_and_keep_labels(tmp_path):
    citation = (
        "<PubmedArticle><MedlineCitation><PMID Version='1'>{0}</PMID><Article><Journal><JournalIssue><PubDate>"
        "<Year>2001</Year></PubDate></JournalIssue></Journal><ArticleTitle>Of mice</ArticleTitle><Abstract>"
        "<AbstractText>{1}</AbstractText></Abstract></Article><MeshHeadingList>"
        "<MeshHeading><DescriptorName MajorTopicYN='N'>Humans</DescriptorName></MeshHeading>"
        "<MeshHeading><DescriptorName MajorTopicYN='Y'>Cats, Wild</DescriptorName></MeshHeading>"
        "</MeshHeadingList></MedlineCitation></PubmedArticle>"
    )
    texts = [citation.format(key, "cells and genes" if key < 3 else "") for key in range(1, 4)]
    source = tmp_path / "a.xml.gz"
    source.write_bytes(gzip.compress(f"<PubmedArticleSet>{''.join(texts)}</PubmedArticleSet>".encode()))
    pubmed.parse_citations(source, tmp_path / "shard", pubmed.Selection(first_year=2000))
    choices = {"vocabulary": 2, "min_letters": 5, "drop_stop_words": True, "contexts": ["mesh", "year"]}
    reading = corpora.read_pubmed({"shards": [tmp_path / "shard"]}, 0, check_tags=False, labels="mesh", **choices)
    assert reading.corpus.context_names["mesh"] == ["Cats, Wild"]
    assert reading.corpus.label_names == ["Cats, Wild"]
    assert reading.corpus.contexts["year"].tolist() == [2001, 2001]
    assert reading.corpus.vocabulary == ["cells", "genes"]
    assert reading.notes[0].startswith("citations in the files: 3; distinct: 3. Counted by their latest version, 2 are")
    reading = corpora.read_pubmed({"shards": [tmp_path / "shard"]}, 0, check_tags=True, labels=None, **choices)
    assert reading.corpus.context_names["mesh"] == ["Cats, Wild", "Humans"]
    assert reading.corpus.labels is None
