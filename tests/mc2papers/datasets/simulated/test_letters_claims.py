"""What the letters data of ICML14 section 4.1 can and cannot show: four clusters yes, thirteen topics no.

The paper reports that 100 sweeps recover K = 4 and M = 13. Documents of one cluster share its topic proportions,
uniform over the distinct letters of its word, so the data tell of the topics only through four distributions over
35 pixels. Many sets of topics make the same four.
"""

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.fits import gibbs
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from scipy.special import gammaln

from mc2core.families import NormalGamma
from mc2core.inference.running.loop import fit
from mc2core.posterior import clustering
from mc2papers.datasets.simulated import letters

ENGINE = {"contexts": {"number": NormalGamma(b0=0.02)}, "start_topics": 20}


def distances(truth, found):
    """L1 distance of each true topic to the topic found for it, one to one."""
    table = cdist(truth, found, "cityblock")
    rows, columns = linear_sum_assignment(table)
    return table[rows, columns]


def test_other_topics_give_the_very_same_data():
    """M and H occur in MACHINE only and equally often: deal their pixels out anew and nothing changes."""
    _, truth = letters.simulate(0)
    names = list(letters.bitmaps())
    m, h = names.index("M"), names.index("H")
    other = truth.word_given_topic.copy()
    pool = other[m] + other[h]
    # the upper pixels to one topic, the lower ones to the other
    other[m] = np.clip(1.0 - (np.cumsum(pool) - pool), 0.0, pool)
    other[h] = pool - other[m]
    assert np.allclose(other.sum(axis=1), 1.0)
    same = truth.topic_given_cluster @ other
    assert np.abs(same - truth.topic_given_cluster @ truth.word_given_topic).max() < 1e-15
    assert (distances(truth.word_given_topic, other)[[m, h]] > 0.25).all()


def test_four_topics_explain_the_data_as_well_as_thirteen():
    """One topic for each cluster has the same word distributions; its joint with the tokens is far likelier."""
    corpus, truth = letters.simulate(0)
    rng = np.random.default_rng(1)
    counts = corpus.content.toarray()
    by_letter, by_word = np.zeros((4, 13)), np.zeros((13, 35))
    for document, cluster in zip(counts, corpus.labels, strict=True):
        weight = truth.topic_given_cluster[cluster][:, None] * truth.word_given_topic
        for pixel in np.flatnonzero(document):
            tokens = rng.multinomial(document[pixel], weight[:, pixel] / weight[:, pixel].sum())
            by_letter[cluster] += tokens
            by_word[:, pixel] += tokens
    by_cluster = np.stack([counts[corpus.labels == cluster].sum(axis=0) for cluster in range(4)])

    def log_joint(n_km, n_mw, s=0.01):
        prior = np.full(n_km.shape[1], 1.0 / n_km.shape[1])  # v = 1, equal topic weights
        topics = gammaln(1.0) - gammaln(1.0 + n_km.sum(1)) + (gammaln(prior + n_km) - gammaln(prior)).sum(1)
        words = gammaln(35 * s) - gammaln(35 * s + n_mw.sum(1)) + (gammaln(s + n_mw) - gammaln(s)).sum(1)
        return topics.sum() + words.sum()

    assert log_joint(np.diag(by_cluster.sum(1)), by_cluster) > log_joint(by_letter, by_word) + 10_000


def test_a_chain_that_starts_at_the_truth_leaves_it():
    corpus, truth = letters.simulate(0)
    corpus = corpus.standardised("number")
    engine = gibbs(**ENGINE)
    arrays = engine.init(corpus, 0).arrays()
    rng = np.random.default_rng(0)
    topic = []
    content = sp.csr_matrix(corpus.content)
    for j in range(corpus.n_documents):
        for position in range(content.indptr[j], content.indptr[j + 1]):
            weight = truth.topic_given_cluster[corpus.labels[j]] * truth.word_given_topic[:, content.indices[position]]
            topic.extend(rng.choice(13, size=content.data[position], p=weight / weight.sum()))
    arrays |= {
        "cluster": corpus.labels.astype(np.int32),
        "topic": np.array(topic, np.int32),
        "topic_weights": np.full(13, 1 / 14),
    }
    arrays["scalars"] = np.array([1 / 14, 1.0, 1.0, 1.0, 0.0])
    state = engine.restore(corpus, arrays)
    at_truth = state.compute_log_joint()
    assert distances(truth.word_given_topic, engine.sample(corpus, state).word_given_topic).max() < 0.25
    for iteration in range(1, 101):
        engine.step(corpus, state, 0, iteration)
    assert state.log_joint > at_truth + 5_000
    # not even half of the letters are still there, though the chain never saw a better start
    still = distances(truth.word_given_topic, engine.sample(corpus, state).word_given_topic) < 0.25
    assert still.sum() < 7


@pytest.mark.slow
def test_the_four_clusters_are_recovered_within_100_sweeps():
    """For at least 7 of 10 seeds: four clusters beside strays of less than 3 % of documents, and the right ones.

    It was so for 46 of the seeds 0 to 49: with other bits, as of another processor, this fails with a chance of 0.6 %.
    """
    recovered = []
    for seed in range(10):
        corpus, truth = letters.simulate(seed)
        result = fit(corpus.standardised("number"), *gibbs(**ENGINE), iterations=100, seed=seed, burn_in=99)
        sizes = np.bincount(result.state.cluster) / corpus.n_documents
        # pixels and number under the true parameters: as well as anyone could do
        known = corpus.content @ np.log(np.maximum(truth.topic_given_cluster @ truth.word_given_topic, 1e-300)).T
        mean, sd = truth.contexts["number"].T
        numbers = corpus.contexts["number"][:, None]
        known = known - 0.5 * ((numbers - mean) / sd) ** 2 - np.log(sd)
        best = clustering.nmi(corpus.labels, known.argmax(axis=1))
        found = clustering.nmi(corpus.labels, result.state.cluster)
        recovered.append((sizes >= 0.03).sum() == 4 and found > best - 0.08)
    assert sum(recovered) >= 7, recovered
