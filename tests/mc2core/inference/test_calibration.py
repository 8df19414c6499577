"""Simulation-based calibration of every model and kernel that samples it, with all concentrations and s learnt.

A replication draws concentrations, assignments and data from the model, and starts a chain there. Sweeps that leave the
posterior invariant also leave the joint distribution of assignments and data invariant. So the mean change of each
statistic since the start is 0, however slowly the chain mixes, and replications are independent. A test fails if a mean
change exceeds 5 standard errors. For the 450 or so statistics together, the chance of a false alarm is 5e-4.

Power, measured: one move with 1.5 times omega, v or s of tokens, omega or v of observations, v of npTOT, alpha of
documents or the weight prior of a mixture gives 5.4 to 14 standard errors (4.5 to 4.9 for Poisson hashing and for
hashing as printed). Swapped proposal weights give 50. Such an error of tables, of splits and merges or of a new topic's
share mostly passes, and so does a doubled prior of contexts. Exact tests find these.

Gaussian components of mixtures cannot be simulated, because a corpus has counts. Nor can contexts of strength below 1.
"""

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.fits import fastex, gibbs, uncollapsed, without_log_joint
from scipy.stats import invwishart

from mc2core import Corpus
from mc2core.families import (
    BetaBernoulli,
    BetaBernoulliVector,
    DiagonalNormalGamma,
    DirichletCategorical,
    GammaPoisson,
    GammaPoissonVector,
    GaussWishart,
    NormalGamma,
)
from mc2core.families.contents import log_gammas_of
from mc2core.inference.gibbs import repeats as repeated
from mc2core.inference.gibbs.observations import Observations
from mc2core.inference.gibbs.weights import GammaPrior

REPLICATIONS, LIMIT = 300, 5.0
LENGTHS = np.array([12, 10, 0, 8, 16, 6, 10, 4, 12, 8, *[1] * 8])
IS_SHORT = LENGTHS == 1
DOCUMENT = np.repeat(np.arange(len(LENGTHS)), LENGTHS)
N_WORDS, N_STICKS = 6, 100
BURSTS = GammaPrior(4.0, 1.0)  # of b
PRIORS = {"group": (6.0, 2.0), "table": (6.0, 2.0), "topic": (6.0, 2.0), "document": (4.0, 2.0), "words": (3.0, 5.0)}
FAMILIES = {
    "tag": DirichletCategorical(0.7),
    "year": NormalGamma(0.2, 0.5, 2.0, 1.0),
    "visits": GammaPoisson(1.5, 0.7),
    "member": BetaBernoulli(0.6, 0.9),
    "place": DiagonalNormalGamma(-0.3, 0.5, 2.0, 1.0),
    "shape": GaussWishart(0.1, 0.5, 1.5, 0.8),
    "events": GammaPoissonVector(1.2, 0.8),
    "answers": BetaBernoulliVector(0.7, 0.5),
}
SOME = {name: FAMILIES[name] for name in ("tag", "year", "visits", "answers")}
OTHERS = {name: FAMILIES[name] for name in ("member", "place", "shape", "events")}
LEVEL, THREE = {"document_level": True}, {"n_clusters": 3, "group_concentration": 4.0}
CASES = {
    "mc2": {"contexts": SOME},
    "mc2 level": {"contexts": OTHERS, **LEVEL},
    "mc2 level repeats": {"contexts": SOME, "burstiness": True, **LEVEL},
    "mc2 level parallel": {"contexts": SOME, "kernel": "parallel", **LEVEL},
    "mc2 beta_bernoulli_vector": {"content": FAMILIES["answers"]},
    "nptot": {"contexts": {"year": FAMILIES["year"]}},
    "mc2 collapsed": {"contexts": OTHERS, "kernel": "collapsed"},
    "mc2 blocked": {"contexts": OTHERS, "kernel": "blocked"},
    "mc2 three": {"contexts": OTHERS, **THREE},
    "mc2 level three": {"contexts": SOME, **LEVEL, **THREE},
    "hdp": {},
    "hdp blocked": {"kernel": "blocked"},
    "hdp level": LEVEL,
    "hdp level parallel": {"kernel": "parallel", **LEVEL},
    "hdp diagonal_normal_gamma": {"content": FAMILIES["place"]},
    "mc2 level beta_bernoulli_vector": {"content": FAMILIES["answers"], **LEVEL},
}
for family in (FAMILIES[name] for name in ("place", "shape", "events")):
    CASES |= {f"mc2 {family.name}": {"content": family}, f"mc2 level {family.name}": {"content": family, **LEVEL}}


def draw_of(family, label, rng, size=2):
    """A value of the family for each label, whose parameters are drawn from the prior."""
    n, rows = label.max(initial=0) + 1, len(label)
    if family.name == "dirichlet":
        return rng.multinomial(rng.integers(0, 4, rows), rng.dirichlet(np.full(3, family.concentration), n)[label])
    shape = (n, size) if family.name.endswith("vector") or family.name.startswith(("diag", "gauss")) else (n,)
    if "poisson" in family.name:
        return rng.poisson(rng.gamma(family.a0, 1 / family.b0, shape)[label]).astype(float)
    if "bernoulli" in family.name:
        return (rng.random((rows, *shape[1:])) < rng.beta(family.a0, family.b0, shape)[label]).astype(float)
    noise, of_mean = rng.standard_normal((rows, *shape[1:])), rng.standard_normal(shape) / np.sqrt(family.kappa0)
    if family.name == "gauss_wishart":
        law = invwishart(size - 1 + 2 * family.a0, 2 * family.b0 * np.eye(size))
        root = np.linalg.cholesky(law.rvs(n, random_state=rng).reshape(n, size, size))
        return family.mu0 + np.einsum("nij,nj->ni", root, of_mean)[label] + np.einsum("nij,nj->ni", root[label], noise)
    sd = 1 / np.sqrt(rng.gamma(family.a0, 1 / family.b0, shape))
    return family.mu0 + (sd * of_mean)[label] + sd[label] * noise


def assert_calibrated(engine, start, statistics, iterations=range(1, 7)):
    """``start(rng, seed)``: a corpus and a state, drawn from the model; ``statistics(corpus, state)``: numbers."""
    rng, changes = np.random.default_rng(0), []
    for seed in range(REPLICATIONS):
        corpus, state = start(rng, seed)
        before, after = np.array(statistics(corpus, state)), []
        for iteration in iterations:
            engine.step(corpus, state, seed, iteration)
            after.append(statistics(corpus, state))
        changes.append(np.mean(after[len(after) // 2 :], axis=0) - before)
    varies = np.std(changes, axis=0) > 1e-9
    assert varies.sum() >= 9
    changes = np.array(changes)[:, varies]
    scores = changes.mean(axis=0) / (changes.std(axis=0, ddof=1) / np.sqrt(REPLICATIONS))
    assert np.abs(scores).max() < LIMIT, dict(zip(np.flatnonzero(varies), np.round(scores, 1), strict=True))


# -- topics --------------------------------------------------------------------------------------------------------
def draw_clusters(model, alpha, rng):
    n = len(LENGTHS)
    if not model.has_clusters:
        return np.arange(n)
    if most := model.n_clusters:
        return np.unique(rng.choice(most, n, p=rng.dirichlet(np.full(most, alpha / most))), return_inverse=True)[1]
    cluster = np.zeros(n, int)
    for j in range(1, n):
        weights = np.append(np.bincount(cluster[:j]), alpha)
        cluster[j] = rng.choice(len(weights), p=weights / weights.sum())
    return cluster


def draw_sizes(b, rng):
    """(draws of each document, tokens of each draw): each token repeats an earlier one, or is a new draw."""
    sizes = []
    for length in LENGTHS:
        of_document = []
        for i in range(length):
            if rng.random() * (i + b) < b:
                of_document.append(1)
            else:
                of_document[rng.choice(len(of_document), p=np.array(of_document) / i)] += 1
        sizes.append(of_document)
    return [len(one) for one in sizes], np.array([one for of_document in sizes for one in of_document])


def draw(model, rng):
    """(arrays of a Gibbs state, corpus), drawn from the model; epsilon has 100 sticks, the last of them the rest."""
    numbers = {role: rng.gamma(shape, 1 / rate) for role, (shape, rate) in PRIORS.items()}
    if model.n_clusters:
        numbers["group"] = model.group_concentration
    sticks = np.append(rng.beta(1.0, numbers["topic"], N_STICKS - 1), 1.0)
    weights = np.maximum(sticks * np.append(1.0, np.cumprod(1.0 - sticks[:-1])), 1e-200)
    cluster = draw_clusters(model, numbers["group"], rng)
    tau = np.maximum(rng.dirichlet(numbers["table"] * weights, cluster.max() + 1), 1e-200)
    theta = tau[cluster]
    if model.document_level:
        theta = np.array([rng.dirichlet(numbers["document"] * row) for row in theta])
    document, size, b = DOCUMENT, np.ones(len(DOCUMENT), int), np.inf
    if model.burstiness:
        b = rng.gamma(BURSTS.shape, 1 / BURSTS.rate)
        n_draws, size = draw_sizes(b, rng)
        document = np.repeat(np.arange(len(LENGTHS)), n_draws)
    topic = (rng.random(len(document))[:, None] > np.cumsum(theta[:, :-1], axis=1)[document]).sum(axis=1)
    used, topic = np.unique(topic, return_inverse=True)
    contexts = {name: draw_of(family, cluster, rng) for name, family in model.cluster_contexts.items()}
    for name in contexts.keys() & {"year", "place"}:
        contexts[name][[2, 5]] = np.nan
    if model.has_token_context:
        contexts = {"year": np.full(len(LENGTHS), np.nan)}  # a time is of all tokens of a document: of one token
        contexts["year"][IS_SHORT] = draw_of(model.contexts["year"], topic, rng)[IS_SHORT[DOCUMENT]]
    if model.content is None:
        psi = np.cumsum(rng.dirichlet(np.full(N_WORDS, numbers["words"]), len(used)), axis=1)
        word = (rng.random(len(topic))[:, None] > psi[topic, :-1]).sum(axis=1)
        content = np.zeros((len(LENGTHS), N_WORDS), int)
        np.add.at(content, (document, word), size)
        order = np.lexsort((word, document))
        topic, size = topic[order], size[order]
        sparse = {name: sp.csr_matrix(one) if name == "tag" else one for name, one in contexts.items()}
        corpus = Corpus(sp.csr_matrix(content), contexts=sparse)
    else:
        values, kind = draw_of(model.content, topic, rng), model.content.content_kind
        corpus = Corpus.from_observations(values, DOCUMENT, n_documents=len(LENGTHS), kind=kind)
    arrays = {
        "cluster": cluster,
        "topic": topic,
        "topic_weights": weights[used],
        "scalars": np.array([1.0 - weights[used].sum(), *(numbers[role] for role in ("group", "table", "topic")), 0.0]),
        "topic_word_prior": np.array(numbers["words"]),
        "proportions": np.column_stack([tau[:, used], np.maximum(1.0 - tau[:, used].sum(axis=1), 1e-200)]),
        "tables": np.zeros((len(tau), len(used)), int),
        "document_concentration": np.array(numbers["document"]),
    }
    if model.burstiness:
        arrays |= {"draw_sizes": size, "burst_concentration": np.array(b)}
    return arrays, corpus


def statistics(_, state):
    a, c = state.assignments, state.concentrations
    document = np.repeat(np.arange(len(LENGTHS)), np.diff(a.document_start))
    n_m, n_jm = a.n_km.sum(axis=0), np.bincount(document * a.n_topics + a.topic)
    repeats = getattr(state, "repeats", None)
    of_repeats = [] if repeats is None else [np.log(repeats.concentration), len(a.topic), (repeats.size**2).sum()]
    return [
        a.n_clusters, a.n_topics, np.count_nonzero(n_jm), a.n_k.max(), n_m.max(),
        (a.n_k**2).sum(), (n_m**2).sum(), (a.n_km**2).sum(), (n_jm**2).sum(), np.sqrt(a.remaining),
        *np.log([c.group, c.table, c.topic, state.topic_word_prior, min(state.omega, 1e9)]),
        sum(state.log_topics()), sum(state.log_content()), sum(state.log_contexts()), *of_repeats,
    ]  # fmt: skip


@pytest.mark.parametrize(
    "case",
    [
        case if case in ("mc2 level", "mc2 level repeats") else pytest.param(case, marks=pytest.mark.slow)
        for case in CASES
    ],
)
def test_chains_of_topics_are_calibrated(case, monkeypatch):
    monkeypatch.setattr(repeated, "PRIOR", BURSTS)
    name, settings = case.split()[0], CASES[case]
    family = settings.get("content")
    settings = settings | ({"topic_word_prior": "learn"} if family is None else {})
    model = gibbs(name, **settings).model
    roles = [*model.roles, *["words"] * (family is None), *["document"] * model.document_level]
    engine = gibbs(name, concentration_priors={role: PRIORS[role] for role in roles}, **settings)

    def start(rng, seed):
        arrays, corpus = draw(engine.model, rng)
        state = without_log_joint(engine.restore(corpus, arrays))
        if family is not None:  # of the numbers as they are: their unit would depend on them
            x = corpus.observations
            state.observations = Observations(family, x, np.zeros(2), np.ones(2), log_gammas_of(family, x.shape))
        return corpus, state

    assert_calibrated(engine, start, statistics)


# -- mixtures ------------------------------------------------------------------------------------------------------
PROPOSALS = {
    "exact": {"proposal": "exact"},
    "neighbours": {"proposal": "neighbours", "n_neighbours": 3, "exact_sweeps": [42]},
    "hash": {"proposal": "hash", "bits": 64},
    "printed hash": {"proposal": "hash", "projection": "paper", "failure_probability": 0.1},
    "uncollapsed": None,
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("component", "proposal"),
    [*(("multinomial", one) for one in PROPOSALS), *(("poisson", one) for one in PROPOSALS if one != "neighbours")],
)
def test_chains_of_mixtures_are_calibrated(component, proposal):
    """After sweep 32: until then the projection of hashed proposals is fitted to the clusters."""
    n, a, settings = 4, 1.5, PROPOSALS[proposal]
    model = {"n_clusters": n, "topic_word_prior": a, "weight_prior": 0.8, "component": component}
    model |= {"rate_prior": 4.0} if component == "poisson" else {}
    engine = uncollapsed(**model) if settings is None else fastex(**model, **settings)

    def start(rng, seed):
        lengths = np.minimum(np.tile(LENGTHS, 3), 3)  # of longer documents, words alone tell the clusters
        cluster = rng.choice(n, len(lengths), p=rng.dirichlet(np.full(n, 0.8)))
        if component == "poisson":
            content = rng.poisson(rng.gamma(a, 1 / 4.0, (n, N_WORDS))[cluster])
        else:
            content = rng.multinomial(lengths, rng.dirichlet(np.full(N_WORDS, a), n)[cluster])
        corpus = Corpus(content)
        return corpus, engine.restore(corpus, engine.init(corpus, seed).arrays() | {"cluster": cluster})

    def statistics(corpus, state):
        x, n_k, same = corpus.content.toarray(), state.sizes, state.cluster[:, None] == state.cluster
        return [
            np.count_nonzero(n_k), n_k.max(), (n_k**2).sum(), n_k[0], n_k[0] ** 2, same[0].sum(),
            n_k @ (n_k > 2), (x @ x.T * same).sum(), state.log_joint,
        ]  # fmt: skip

    assert_calibrated(engine, start, statistics, range(40, 60))
