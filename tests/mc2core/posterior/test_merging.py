"""The merge tree against log marginals by predictive probabilities, one token, document and value after another."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.fits import at_strength, fastex, gibbs, svi
from scipy import stats

from mc2core import Corpus, fit
from mc2core.families import DirichletCategorical, GammaPoisson, NormalGamma
from mc2core.inference.svi.state import clusters_in_use, topics_in_use
from mc2core.posterior import Posterior, merging

FAMILIES = {
    "year": NormalGamma(0.2, 0.7, 1.3, 0.9),
    "author": DirichletCategorical(0.3),
    "pages": GammaPoisson(1.5, 0.4),
}


def small_corpus():
    rng = np.random.default_rng(5)
    near = rng.dirichlet(np.full(9, 0.2), 3)
    content = np.array([rng.multinomial(rng.integers(1, 9), near[j % 3]) for j in range(24)])
    year = rng.standard_normal(24) + np.arange(24) % 3
    year[3] = np.nan
    authors = rng.integers(0, 2, (24, 5)) * rng.integers(0, 2, (24, 1))
    pages = rng.poisson(3, 24).astype(float)
    return Corpus(content, contexts={"year": year, "author": sp.csr_matrix(authors), "pages": pages})


def urn(counts, prior):
    """ln p of a sequence with these whole counts under a Dirichlet: draw after draw."""
    met, total = np.zeros(len(prior)), 0.0
    for item, count in enumerate(counts):
        for _ in range(int(count)):
            total += math.log((prior[item] + met[item]) / (prior.sum() + met.sum()))
            met[item] += 1
    return total


def contexts_one_by_one(corpus, documents):
    """ln p of the contexts of some documents of one cluster, each predicted from those before it."""
    total, (mu, kappa, a, b) = 0.0, (0.2, 0.7, 1.3, 0.9)
    shape, rate = 1.5, 0.4
    authors = np.zeros(5)
    for j in documents:
        if not np.isnan(x := corpus.contexts["year"][j]):
            total += stats.t.logpdf(x, 2 * a, mu, math.sqrt(b * (kappa + 1) / (a * kappa)))
            a, b = a + 0.5, b + 0.5 * kappa * (x - mu) ** 2 / (kappa + 1)
            mu, kappa = (kappa * mu + x) / (kappa + 1), kappa + 1
        x = corpus.contexts["pages"][j]
        total += stats.nbinom.logpmf(x, shape, rate / (rate + 1))
        shape, rate = shape + x, rate + 1
        authors += corpus.contexts["author"][[j]].toarray().ravel()
    return total + urn(authors, np.full(5, 0.3))


def chain(corpus, engine, sweeps=3):
    state = engine.init(corpus, 1)
    for sweep in range(sweeps):
        engine.step(corpus, state, 1, sweep)
    return state


def groups_of(tree, step):
    """The clusters of each node that is left after ``step`` unions, by number."""
    nodes = {k: [k] for k in range(tree.n_clusters)}
    for number, (one, other) in enumerate(tree.pairs[:step].tolist(), tree.n_clusters):
        nodes[number] = nodes.pop(one) + nodes.pop(other)
    return nodes


def check_every_step(tree, log_marginal, exact=1e-7):
    """Each union changes the log marginal as said, and no other pair would change it by more."""
    assert tree.n_clusters >= 3
    for step, (pair, change) in enumerate(zip(tree.pairs.tolist(), tree.changes, strict=True)):
        nodes = groups_of(tree, step)
        alone = {node: log_marginal(clusters) for node, clusters in nodes.items()}
        changes = {
            (i, j): log_marginal(nodes[i] + nodes[j]) - alone[i] - alone[j] for i in nodes for j in nodes if i != j
        }
        assert change == pytest.approx(changes[tuple(pair)], rel=exact, abs=exact)
        assert change == pytest.approx(max(changes.values()), rel=exact, abs=exact)


def model_of(corpus, engine, state):
    families = engine.model.for_corpus(corpus).contexts
    dimensions = {name: family.dimension(corpus.contexts[name]) for name, family in families.items()}
    return Posterior([engine.sample(corpus, state)], families, dimensions, corpus.vocabulary)


def level_of(omega):
    """Settings of a document level, or of none."""
    return {"document_level": False} if omega is None else {"document_concentration": omega}


@pytest.mark.parametrize("omega", [None, 1.3])
def test_unions_of_mc2_change_the_marginal_likelihood_as_plain_predictions_do(omega):
    """Tokens of topics, or tables of documents with a document level, and three contexts."""
    corpus = small_corpus()
    engine = gibbs(
        contexts=FAMILIES, start_topics=3, start_clusters=5, **level_of(omega),
        group_concentration=10.0, learn_concentrations=False,
    )  # fmt: skip
    state = chain(corpus, engine)
    assignments, behind = state.assignments, state.seats
    weights = np.append(assignments.topic_weights, assignments.rest)

    def log_marginal(clusters):
        counts = np.append(behind[clusters].sum(axis=0), 0)
        documents = np.flatnonzero(np.isin(assignments.cluster, clusters))
        return urn(counts, state.concentrations.table * weights) + contexts_one_by_one(corpus, documents)

    check_every_step(merging.merge_tree(model_of(corpus, engine, state)), log_marginal)


@pytest.mark.parametrize("strength", [0.0, 0.25])
def test_unions_weigh_contexts_by_their_strength(strength):
    corpus = small_corpus()
    engine = gibbs(
        contexts=at_strength(FAMILIES, strength), start_topics=3, start_clusters=5, group_concentration=10.0,
        learn_concentrations=False,
    )  # fmt: skip
    state = chain(corpus, engine)
    assignments = state.assignments
    weights = np.append(assignments.topic_weights, assignments.rest)

    def log_marginal(clusters):
        counts = np.append(assignments.n_km[clusters].sum(axis=0), 0)
        result = urn(counts, state.concentrations.table * weights)
        documents = np.flatnonzero(np.isin(assignments.cluster, clusters))
        for name, family in FAMILIES.items():
            statistics = family.statistics(corpus.contexts[name])[documents].toarray().sum(axis=0)
            result += float(family.log_marginal(family.prior(len(statistics)) + strength * statistics))
        return result

    check_every_step(merging.merge_tree(model_of(corpus, engine, state)), log_marginal)


def test_unions_of_fastex_change_the_marginal_likelihood_of_their_words():
    corpus = small_corpus().with_contexts({})
    engine = fastex(n_clusters=6, proposal="exact", word_prior=0.2)
    state = chain(corpus, engine)
    model = model_of(corpus, engine, state)

    def log_marginal(clusters):
        documents = np.flatnonzero(np.isin(model.representative.cluster, clusters))
        return urn(corpus.content[documents].toarray().sum(axis=0), np.full(9, 0.2))

    check_every_step(merging.merge_tree(model), log_marginal)


@pytest.mark.parametrize("omega", [None, 1.3])
def test_unions_of_svi_take_its_expected_counts(omega):
    """Of tokens, or of tables with a document level."""
    corpus = small_corpus().with_contexts({})
    engine = svi(max_clusters=5, n_topics=4, batch_size=None, **level_of(omega))
    state = chain(corpus, engine)
    model = model_of(corpus, engine, state)
    n_km, v = state.n_km, state.table_concentration
    prior = v * state.topic_weights
    log_gamma = np.vectorize(math.lgamma)

    def log_marginal(clusters):
        counts = n_km[used[clusters]].sum(axis=0)
        met = counts > 0
        total = math.lgamma(v) - math.lgamma(v + counts.sum())
        return total + (log_gamma(prior[met] + counts[met]) - log_gamma(prior[met])).sum()

    used = clusters_in_use(state)
    assert len(topics_in_use(state)) == n_km.shape[1]
    # expected tables below a millionth are taken for none
    check_every_step(merging.merge_tree(model), log_marginal, 1e-7 if omega is None else 1e-5)


def test_clusters_of_svi_with_tables_are_joined_by_their_shares_of_the_tokens():
    """Its proportions are no Dirichlet's: what a total read off them would be, is not believed."""
    corpus = small_corpus().with_contexts({})
    engine = svi(max_clusters=4, n_topics=6, n_tables=3, batch_size=None)
    model = model_of(corpus, engine, chain(corpus, engine))
    totals = merging._part_of_content(model.representative)._totals
    assert totals == pytest.approx(
        model.representative.cluster_weights * model.representative.topic_words.sum(), rel=0.05
    )
    assert np.isfinite(merging.merge_tree(model).changes).all()


def test_a_cut_leaves_the_groups_of_the_unions_so_far():
    pairs = np.array([[1, 3], [0, 2], [4, 5]])  # 4 = {1, 3}, 5 = {0, 2}
    tree = merging.MergeTree(pairs, np.zeros(3))
    assert tree.cut(4).tolist() == [0, 1, 2, 3]
    assert tree.cut(3).tolist() == [0, 1, 2, 1]
    assert tree.cut(2).tolist() == [0, 1, 0, 1]
    assert tree.cut(1).tolist() == [0, 0, 0, 0]
    for wrong in (0, 5):
        with pytest.raises(ValueError, match=f"{wrong} clusters were asked for; there are 4, and merging leaves"):
            tree.cut(wrong)


def test_rows_move_up_when_the_store_is_full_and_keep_their_counts():
    rng = np.random.default_rng(2)
    counts = rng.integers(1, 4, (8, 6)).astype(float)  # unions share all columns: the store never needs to grow
    part = merging._Dirichlet(sp.csr_matrix(counts), np.full(6, 0.5))
    for one, other in ((0, 1), (2, 3), (0, 2), (4, 5), (6, 7), (4, 6), (0, 4)):
        part.join(one, other)
        counts[one] += counts[other]
        columns, values = part._entries(one)
        assert (columns.tolist(), values.tolist()) == (list(range(6)), counts[one].tolist())
    far = merging._Dirichlet(sp.csr_matrix(np.eye(9)), np.full(9, 0.5))  # unions share none
    for other in range(1, 9):
        far.join(0, other)
    assert far._entries(0)[0].tolist() == list(range(9))


def test_a_model_whose_documents_are_clusters_is_refused():
    corpus = small_corpus().with_contexts({})
    hdp = fit(corpus, *gibbs(kernel="collapsed", model="hdp", start_topics=2), iterations=1, seed=0)
    with pytest.raises(ValueError, match="each document is a cluster of its own"):
        merging.merge_tree(hdp.posterior)
