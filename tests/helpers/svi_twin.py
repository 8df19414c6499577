"""Corpora, engines and a slow per-token twin for the tests of SVI-MC2."""

import itertools

import numpy as np
import scipy.sparse as sp
from helpers.fits import svi
from helpers.gibbs_enumeration import stirling
from scipy.special import betaln, digamma, gammaln, log_softmax, logsumexp, softmax

from mc2core import Corpus
from mc2core.base import storage
from mc2core.families import DiagonalNormalGamma, DirichletCategorical, GammaPoisson, NormalGamma
from mc2core.inference.running.loop import fit
from mc2core.inference.svi.documents import take_batch
from mc2core.inference.svi.local import tables

FAMILIES = {
    "tag": DirichletCategorical(0.4),
    "time": NormalGamma(0.1, 1.2, 1.5, 0.8),
    "hits": GammaPoisson(1.5, 0.7),
    "place": DiagonalNormalGamma(-0.1, 0.9, 1.3, 0.6),
}


def some_families(number):
    """No family for 0, the first for 1, two for 2, all for 3."""
    return FAMILIES if number == 3 else dict(itertools.islice(FAMILIES.items(), number))


def small_corpus(seed=0, n_documents=6, n_words=5, mean_count=0.8):
    """Random counts and contexts with an empty document, missing contexts and a word that is never seen."""
    rng = np.random.default_rng(seed)
    content = rng.poisson(mean_count, (n_documents, n_words))
    content[:, -1] = 0
    content[0] = 0
    tags = rng.poisson(0.7, (n_documents, 3))
    time = np.where(rng.random(n_documents) < 0.3, np.nan, rng.normal(size=n_documents))
    hits = np.where(rng.random(n_documents) < 0.3, np.nan, rng.poisson(2.0, n_documents).astype(float))
    place = rng.normal(size=(n_documents, 2))
    place[rng.random(place.shape) < 0.3] = np.nan
    contexts = {"tag": sp.csr_matrix(tags), "time": time, "hits": hits, "place": place}
    # as they are, so that a fit sees the same numbers as an engine
    return Corpus(content, contexts=contexts, units={"time": (0.0, 1.0), "place": ((0.0, 0.0), (1.0, 1.0))})


def corpus_of(documents, n_words, **more):
    """The corpus of documents given as lists of word numbers."""
    return Corpus(np.array([np.bincount(one, minlength=n_words) for one in documents]), **more)


def states_equal(one, other):
    """Whether two states hold the same bits."""
    left, right = one.arrays(), other.arrays()
    return left.keys() == right.keys() and all(np.array_equal(left[name], right[name], equal_nan=True) for name in left)


def resumed_in_parts(pair, corpus, folder, iterations):
    """Run it with every state between two parts read from a file, and compare it with the straight run: whether each
    state has parts of an iteration behind it, and whether its counts are yet to be rescaled."""
    straight, state, seen = fit(corpus, *pair, iterations=iterations, seed=2, progress=False), pair.init(corpus, 2), []
    for iteration in range(1, iterations + 1):
        row = None
        while row is None:
            assert 0 <= state.progress < 1
            seen.append((state.progress > 0, state.shrink != 1.0))
            storage.write_arrays(folder / "state.npz", state.arrays())
            state = pair.restore(corpus, storage.read_arrays(folder / "state.npz"))
            row = pair.advance(corpus, state, 2, iteration)
            assert len(seen) <= 100  # or the run never ends
        assert row["elbo"] == straight.trace.elbo[iteration - 1]
    assert states_equal(straight.state, state)
    return state, seen


def state_that_fits_nowhere(**settings):
    """A document of which every cluster loses each word."""
    corpus = corpus_of([[0] * 3 + [1] * 2, [0] * 5, [1] * 5], 3)
    pair = engine_of(2, None, 3, contexts={}, topic_word_prior=1e-3, initialisation="seeded", **settings)
    state = pair.init(corpus, 0)
    n_topics = len(state.n_m)
    state.topic_words = np.array([[40.0, 0, 0], [0, 40.0, 0], [0, 0, 40.0]])[:, :n_topics]
    state.rescale()
    state.tau.n_km = np.array([[0.0, 0, 50.0], [0, 0, 60.0]])[:, :n_topics]
    state.tau.topic_weights, state.tau.remaining = np.array([2e-4, 1e-4, 1e-4])[:n_topics], 1 - 4e-4
    return corpus, state


def engine_of(n_clusters=3, max_tables=2, max_topics=3, is_fixed=False, **settings):
    """SVI with this truncation, or where ``is_told`` of a finite mixture of so many clusters."""
    settings = {
        "batch_size": None,
        "contexts": FAMILIES,
        "topic_word_prior": 0.3,
        "initialisation": "random",
    } | settings
    clusters = {"n_clusters" if is_fixed else "max_clusters": n_clusters}
    return svi(**clusters, max_tables=max_tables, max_topics=max_topics, **settings)


def log_clusters(n_k, alpha, is_fixed):
    """ln p(z), weights summed out, of (K,) documents in named clusters: of sticks, the last one behind all of them, or
    of Dir(alpha / K, ...)."""
    if is_fixed:
        seats = gammaln(n_k + alpha / len(n_k)) - gammaln(alpha / len(n_k))
        return float(gammaln(alpha) - gammaln(alpha + n_k.sum()) + seats.sum())
    later = n_k.sum() - np.cumsum(n_k)
    return float(np.sum(betaln(1 + n_k, alpha + later) - betaln(1, alpha)))


def log_topics(counts, a, v, omega):
    """ln p(l | z) of one cluster's documents, (J, M) ``counts``: theta and tau summed out by all numbers of tables."""
    places = [(j, m) for j, m in np.ndindex(counts.shape) if counts[j, m]]
    terms = []
    for seated in itertools.product(*(range(1, counts[place] + 1) for place in places)):
        t_m, term = np.zeros(len(a)), 0.0
        for place, t in zip(places, seated, strict=True):
            t_m[place[1]] += t
            term += np.log(stirling(int(counts[place]), t)) + t * np.log(omega)
        terms.append(term + np.sum(gammaln(a + t_m) - gammaln(a)) + gammaln(v) - gammaln(v + t_m.sum()))
    return logsumexp(terms) + np.sum(gammaln(omega) - gammaln(omega + counts.sum(axis=1)))


def log_words(corpus, topic_word_prior):
    """ln p(w | l), topics summed out, as a function of the topics of all tokens."""
    words = np.concatenate([np.repeat(np.arange(corpus.n_words), row) for row in corpus.content.toarray()])

    def of_topics(topic):
        n_mw = np.full((max(topic) + 1, corpus.n_words), topic_word_prior)
        np.add.at(n_mw, (list(topic), words), 1)
        value = np.sum(gammaln(n_mw)) - n_mw.size * gammaln(topic_word_prior)
        return value + np.sum(gammaln(topic_word_prior * corpus.n_words) - gammaln(n_mw.sum(axis=1)))

    return of_topics


def log_evidence_given_weights(lengths, contexts, n_clusters, alpha, weights, is_fixed, log_tokens, omega=np.inf):
    """ln p(w, x | eps, v, omega), all z and l (and tables) up to (K, M) listed; clusters and topics beyond are left
    out, which is less. ``log_tokens`` gives ln p(w | l).
    """
    owner, n_topics = np.repeat(np.arange(len(lengths)), lengths), len(weights.topics)
    a, of_counts, terms = weights.v * weights.topics, {}, []  # many l have the same counts
    clusters = [np.array(z) for z in itertools.product(range(n_clusters), repeat=len(lengths))]
    log_clusterings = [
        log_clusters(np.bincount(z, minlength=n_clusters), alpha, is_fixed)
        + contexts.log_base.sum()
        + contexts.log_marginal(contexts.natural(z, n_clusters)).sum()
        for z in clusters
    ]

    def log_topics_given(z, counts):
        of_clusters = [counts[z == k] for k in range(n_clusters)]
        if omega < np.inf:
            return sum(log_topics(one, a, weights.v, omega) for one in of_clusters)
        n_km = np.array([one.sum(axis=0) for one in of_clusters])
        result = np.sum(gammaln(a + n_km) - gammaln(a))
        return result + np.sum(gammaln(weights.v) - gammaln(weights.v + n_km.sum(axis=1)))

    for topic in itertools.product(range(n_topics), repeat=len(owner)):
        counts = np.zeros((len(lengths), n_topics), int)
        np.add.at(counts, (owner, list(topic)), 1)
        key = counts.tobytes()
        if key not in of_counts:
            logs = (log_z + log_topics_given(z, counts) for z, log_z in zip(clusters, log_clusterings, strict=True))
            of_counts[key] = logsumexp(list(logs))
        terms.append(of_counts[key] + log_tokens(topic))
    return logsumexp(terms)


def local_and_statistics(corpus, state, rows=None):
    rows = np.arange(corpus.n_documents) if rows is None else rows
    batch = take_batch(corpus, state.contexts, rows)
    step = tables.local_step(state, batch, None)
    topic_words = np.zeros((corpus.n_words, len(state.n_m)))
    topic_words[batch.words] = tables.topic_statistics(step.words, step.mass, step.words.table_topic, None)
    return step.documents.shares, step.documents, step.n_kt, step.log_likelihood, topic_words


# -- the per-token twin -------------------------------------------------------------------------------------------
def log_weights(one):
    """E ln of stick weights, stick by stick, as the definition says."""
    out = np.zeros((*one.shape[1:-1], one.shape[-1] + 1))
    for i in range(one.shape[-1] + 1):
        for before in range(i):
            out[..., i] += digamma(one[1, ..., before]) - digamma(one[:, ..., before].sum(axis=0))
        if i < one.shape[-1]:
            out[..., i] += digamma(one[0, ..., i]) - digamma(one[:, ..., i].sum(axis=0))
    return out


def naive(corpus, state):
    """Local step token by token, in plain loops: (mu_jk, ln Z_j, n_kt, table log likelihood, topic words)."""
    mu = softmax(state.proportions.table_topic, axis=-1)
    dirichlet = state.topic_words.T + state.topic_word_prior
    log_psi = digamma(dirichlet) - digamma(dirichlet.sum(axis=1, keepdims=True))
    log_tau = log_weights(state.proportions.table_sticks)
    n_clusters, n_tables, n_topics = mu.shape
    score = log_weights(state.group_weights) + state.contexts.log_likelihood(
        state.contexts.expected_parameters(state.natural)
    )
    tokens = [np.repeat(np.arange(corpus.n_words), row) for row in corpus.content.toarray()]
    by_table = np.einsum("ktm,mw->wkt", mu, log_psi) + log_tau
    for j, words in enumerate(tokens):
        for w in words:
            score[j] += logsumexp(by_table[w], axis=-1)
    log_evidence = logsumexp(score, axis=1)
    shares = np.exp(score - log_evidence[:, None])
    n_kt = np.zeros((n_clusters, n_tables))
    table_log_likelihood = np.zeros(mu.shape)
    topic_words = np.zeros((corpus.n_words, n_topics))
    for j, words in enumerate(tokens):
        for w in words:
            at = shares[j][:, None] * softmax(by_table[w], axis=-1)
            n_kt += at
            table_log_likelihood += at[:, :, None] * log_psi[:, w]
            topic_words[w] += np.einsum("kt,ktm->m", at, mu)
    return shares, log_evidence, n_kt, table_log_likelihood, topic_words


def naive_elbo(corpus, state, concentrations):
    """sum_j ln Z_j - KL, the divergences written out from their densities (concentrations are known numbers)."""
    total = naive(corpus, state)[1].sum()
    for one, c in zip(
        (state.group_weights, state.proportions.table_sticks, state.proportions.topic_sticks),
        concentrations,
        strict=True,
    ):
        a, b = one
        log_v, log_rest = digamma(a) - digamma(a + b), digamma(b) - digamma(a + b)
        log_q = (a - 1) * log_v + (b - 1) * log_rest - betaln(a, b)
        total -= np.sum(log_q - (c - 1) * log_rest + betaln(1, c))
    log_mu = log_softmax(state.proportions.table_topic, axis=-1)
    total -= np.sum(np.exp(log_mu) * (log_mu - log_weights(state.proportions.topic_sticks)))
    s, dirichlet = state.topic_word_prior, state.topic_words + state.topic_word_prior
    log_psi = digamma(dirichlet) - digamma(dirichlet.sum(axis=0))
    total -= np.sum((dirichlet - s) * log_psi - gammaln(dirichlet) + gammaln(s))
    total -= np.sum(gammaln(dirichlet.sum(axis=0)) - gammaln(s * len(dirichlet)))
    return total - state.contexts.kl(state.natural).sum()


# -- the same for direct assignment -------------------------------------------------------------------------------
def dirichlet_logs(state):
    """E ln tau (K, M + 1, what remains last), and E ln psi (M, V)."""
    v, weights = (state.tau.table_concentration, np.append(state.tau.topic_weights, state.tau.remaining))
    tau = v * weights + np.append(state.tau.n_km, np.zeros((len(state.tau.n_km), 1)), axis=1)
    psi = state.topic_words.T * state.shrink + state.topic_word_prior
    log_tau = digamma(tau) - digamma(tau.sum(axis=1, keepdims=True))
    return log_tau, digamma(psi) - digamma(psi.sum(axis=1, keepdims=True))


def naive_direct(corpus, state, word_mass=None):
    """(mu_jk, ln Z_j, n_km, topic words, lse (V, K)); ``word_mass`` puts that mass on each word in each cluster."""
    log_tau, log_psi = dirichlet_logs(state)
    by_topic = log_tau[:, :-1] + log_psi.T[:, None]
    lse = logsumexp(by_topic, axis=-1)
    score = log_weights(state.group_weights)[:-1] + state.contexts.log_likelihood(
        state.contexts.expected_parameters(state.natural)
    )
    tokens = [np.repeat(np.arange(corpus.n_words), row) for row in corpus.content.toarray()]
    for j, words in enumerate(tokens):
        for w in words:
            score[j] += lse[w]
    log_evidence = logsumexp(score, axis=1)
    shares = np.exp(score - log_evidence[:, None])
    n_km, topic_words = np.zeros(state.tau.n_km.shape), np.zeros(state.topic_words.shape)
    places = [(w, shares[j]) for j, words in enumerate(tokens) for w in words]
    if word_mass is not None:
        places = [(w, np.full(len(n_km), word_mass)) for w in range(corpus.n_words)]
    for w, share in places:
        at = share[:, None] * softmax(by_topic[w], axis=-1)
        n_km += at
        topic_words[w] += at.sum(axis=0)
    return shares, log_evidence, n_km, topic_words, lse


def naive_direct_elbo(corpus, state, alpha):
    """sum_j ln Z_j - KL + eta ln eps_rest, the divergences written out from their densities (alpha, v are known)."""
    total = naive_direct(corpus, state)[1].sum() + state.model.topic_concentration * np.log(state.tau.remaining)
    a, b = state.group_weights
    log_v, log_rest = digamma(a) - digamma(a + b), digamma(b) - digamma(a + b)
    total -= np.sum((a - 1) * log_v + (b - 1) * log_rest - betaln(a, b) - (alpha - 1) * log_rest + betaln(1, alpha))
    log_tau, log_psi = dirichlet_logs(state)
    prior = state.tau.table_concentration * np.append(state.tau.topic_weights, state.tau.remaining)
    s = np.full(len(state.topic_words), state.topic_word_prior)
    for counts, p, logs in [(state.tau.n_km, prior, log_tau), (state.topic_words.T, s, log_psi)]:
        for n, log_x in zip(counts, logs, strict=True):
            q = p.copy()
            q[: len(n)] += n
            total -= (q - p) @ log_x + gammaln(q.sum()) - gammaln(q).sum() - gammaln(p.sum()) + gammaln(p).sum()
    return total - state.contexts.kl(state.natural).sum()
