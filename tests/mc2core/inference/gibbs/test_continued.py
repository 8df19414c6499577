"""A chain that goes on with documents added."""

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.gibbs_chains import DOCUMENTS, FAMILIES, corpus_of, fixed

from mc2core import Corpus
from mc2core.posterior import clustering

FORMS = {
    "collapsed": {"kernel": "collapsed"},
    "interleaved": {},
    "hdp": {"model": "hdp", "kernel": "collapsed"},
    "document level": {"document_concentration": 3.0},
    "document level, parallel": {"document_concentration": 3.0, "kernel": "parallel"},
    "hdp of three levels": {"model": "hdp", "document_concentration": 3.0},
}


@pytest.mark.parametrize("form", FORMS)
def test_an_extended_chain_is_of_its_state_and_all_documents(form):
    """Two documents and a word are added to one document of two words: nothing of the old corpus stays in the state, so
    that the chain goes on as one of test_exact, bit for bit.
    """
    contexts, families = ({}, {}) if "hdp" in form else FAMILIES["all, some missing"]
    corpus = corpus_of(DOCUMENTS, 3, contexts)
    pair = fixed(**FORMS[form], **({"contexts": families} if families else {}))
    first = corpus.subset([0])
    old = Corpus(first.content[:, :2], contexts=first.contexts)
    state = pair.init(old, 1)
    for iteration in range(1, 11):
        pair.step(old, state, 1, iteration)
    extended = pair.engine.extend(pair.model.for_corpus(corpus), corpus, state.arrays(), 0)
    restored = pair.restore(corpus, {name: np.array(array) for name, array in extended.arrays().items()})
    assert len(extended.topic) == corpus.n_tokens
    for iteration in range(1, 6):
        rows = [pair.step(corpus, one, 0, iteration) for one in (extended, restored)]
        assert rows[0] == rows[1]
    for name, array in extended.arrays().items():
        np.testing.assert_array_equal(array, restored.arrays()[name], err_msg=name)


@pytest.mark.parametrize("form", ["interleaved", "document level"])
def test_new_documents_begin_where_the_old_ones_say(form):
    """Two subjects of five words each, ten documents held out: they begin in the clusters of theirs, and what the chain
    knew of the others stays."""
    rng = np.random.default_rng(0)
    subject = np.arange(50) % 2
    counts = np.zeros((50, 10), int)
    for j, which in enumerate(subject):
        np.add.at(counts[j], 5 * which + rng.integers(0, 5, 12), 1)
    corpus = Corpus(sp.csr_matrix(counts))
    pair = fixed(**FORMS[form], start_topics=4, n_clusters=2)
    old = corpus.subset(np.arange(40))
    state = pair.init(old, 0)
    for iteration in range(1, 31):
        pair.step(old, state, 0, iteration)
    assert clustering.adjusted_rand_index(subject[:40], state.cluster) == 1.0
    known = {name: np.array(array) for name, array in state.arrays().items()}
    more = pair.engine.extend(pair.model, corpus, state.arrays(), 7)
    assert clustering.adjusted_rand_index(subject, more.cluster) == 1.0
    assert np.array_equal(more.topic[: old.n_tokens], known["topic"])
    for name, array in state.arrays().items():
        assert np.array_equal(array, known[name])
    same = pair.engine.extend(pair.model, corpus, state.arrays(), 7)
    assert all(np.array_equal(array, same.arrays()[name]) for name, array in more.arrays().items())
    again = pair.restore(corpus, more.arrays())
    assert again.log_joint == more.log_joint == pytest.approx(again.compute_log_joint())


def test_what_does_not_fit_is_refused():
    corpus = corpus_of(DOCUMENTS, 3)
    pair = fixed()
    state = pair.init(corpus.subset([0]), 0)
    with pytest.raises(ValueError, match="'topic'"):
        pair.engine.extend(pair.model, corpus.subset([2, 1]), state.arrays(), 0)
    empty = Corpus(np.zeros((1, 3), int), contexts={"year": np.array([1.0])})
    of_none = fixed(contexts=["year"])
    begun = of_none.init(empty, 0)
    longer = Corpus(np.array([[0, 0, 0], [1, 0, 2]]), contexts={"year": np.array([1.0, 2.0])})
    with pytest.raises(ValueError, match="the documents of the fit have no words"):
        of_none.engine.extend(of_none.model.for_corpus(longer), longer, begun.arrays(), 0)
