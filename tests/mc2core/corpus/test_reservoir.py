"""The documents that are kept of those that came: an even sample, whatever blocks they came in."""

import numpy as np

from mc2core import Corpus
from mc2core.corpus import reservoir


def kept_of(sizes, most):
    """Numbers of the documents that are kept of blocks of these sizes."""
    numbers, n_before = np.zeros(0, int), 0
    for size in sizes:
        numbers = np.append(numbers, n_before + np.arange(size))[reservoir.places(n_before, size, most)]
        n_before += size
    return numbers


def test_each_document_is_kept_with_the_same_probability(monkeypatch):
    rng = np.random.default_rng(0)
    monkeypatch.setattr(reservoir.streams, "generator", lambda *_: rng)
    counts = np.zeros(30)
    for _ in range(1000):
        kept = kept_of([4, 9, 17], 6)
        assert len(set(kept.tolist())) == 6
        counts[kept] += 1
    assert np.abs(counts - 200).max() < 5 * np.sqrt(1000 * 0.2 * 0.8)
    # the first that comes when all places are taken has the same chance too
    second = sum(kept_of([1, 1], 1)[0] for _ in range(1000))
    assert abs(second - 500) < 5 * np.sqrt(1000 * 0.5 * 0.5)


def test_all_are_kept_while_there_are_few():
    assert kept_of([3, 4], 9).tolist() == list(range(7))


def test_documents_are_those_of_the_numbers_and_survive_a_file(monkeypatch):
    monkeypatch.setattr(reservoir, "MOST", 8)
    rng = np.random.default_rng(0)
    content, tags = np.arange(1, 61).reshape(30, 2), rng.integers(0, 2, (30, 3))
    contexts = {"tag": tags, "year": np.where(np.arange(30) % 4, np.arange(30.0), np.nan), "at": rng.random((30, 2))}
    corpus = Corpus(content, ["a", "b"], contexts, context_names={"tag": list("xyz")})
    parts = [corpus.subset(np.arange(first, first + 10)) for first in (0, 10, 20)]
    kept = reservoir.sample(parts[0])
    for number in (1, 2):
        kept = reservoir.update(kept, 10 * number, parts[number])
    numbers = kept_of([10, 10, 10], 8)
    arrays = reservoir.pack_reservoir(kept)
    read = reservoir.unpack_reservoir(arrays, 2, {"tag": 3, "year": None, "at": None})
    for one in (kept, read):
        assert np.array_equal(one.content.toarray(), content[numbers])
        assert np.array_equal(one.contexts["tag"].toarray(), tags[numbers])
        for name in ("year", "at"):
            assert np.array_equal(one.contexts[name], contexts[name][numbers], equal_nan=True)
    assert reservoir.unpack_reservoir({}, 2, {}) is None
