"""Tiny fits of every engine and kernel give the bits they gave when ``same_bits.json`` was written.

A change of code that is not meant to change results must leave this file alone. One that is meant to rewrites it
(``PYTHONPATH=tests python tests/mc2core/inference/test_same_bits.py``) in a commit that says why. Bits are promised for
one kind of machine and one set of libraries: elsewhere assignments must be the same and numbers agree to six digits.
"""

import dataclasses
import hashlib
import json
from functools import partial
from importlib import metadata
from pathlib import Path

import llvmlite.binding
import numpy as np
import pytest
import scipy.sparse as sp
from helpers.fits import FIXED, fastex, gibbs, svi, uncollapsed

import mc2core
from mc2core.families import DiagonalNormalGamma, DirichletCategorical, GammaPoisson, NormalGamma

STORED = Path(__file__).with_name("same_bits.json")
FAMILIES = {"tag": DirichletCategorical(0.1), "visits": GammaPoisson(), "year": NormalGamma()}
#: "place" is a vector that documents have or lack, of "shape" they may lack a part
VECTORS = {"place": DiagonalNormalGamma(strength=0.5), "shape": DiagonalNormalGamma(), "year": NormalGamma()}
ESTIMATORS = ("marginal", "context", "icml14", "importance", "left_to_right")
SIZES = {"max_clusters": 4, "max_topics": 8}
LEVEL = {"document_level": True, "contexts": FAMILIES, "start_topics": 12}
LEARNT = {"group_concentration": 1, "topic_concentration": 1, "topic_word_prior": "learn"}
COMPONENTS = ("multinomial", "poisson", "gaussian")


def of_five(engine=fastex, **settings):
    """An engine of a mixture of five clusters, and its number of iterations."""
    return engine(**{"n_clusters": 5, "topic_word_prior": 0.1, "weight_prior": 1.0} | settings), 4


FITS = {
    "gibbs collapsed": lambda: (gibbs(kernel="collapsed", contexts=FAMILIES), 6),
    "gibbs blocked": lambda: (gibbs(kernel="blocked", contexts=FAMILIES, start_topics=8), 6),
    "gibbs interleaved": lambda: (gibbs(contexts=FAMILIES, start_topics=12, start_clusters=5), 6),
    "gibbs without contexts, fixed": lambda: (gibbs(**(FIXED | {"table_concentration": 3.0})), 6),
    "gibbs hdp": lambda: (gibbs(kernel="collapsed", model="hdp", start_topics=10), 6),
    "gibbs document level": lambda: (gibbs(**LEVEL), 6),
    "gibbs document level, repeats": lambda: (gibbs(burstiness=True, **LEVEL), 6),
    "gibbs document level, parallel": lambda: (gibbs(kernel="parallel", **LEVEL), 6),
    "gibbs interleaved, vectors": lambda: (gibbs(contexts=VECTORS, start_topics=12, start_clusters=5), 6),
    "gibbs document level, vectors": lambda: (gibbs(document_level=True, contexts=VECTORS, start_topics=12), 6),
    "gibbs hdp of three levels": lambda: (gibbs(document_concentration=5.0, model="hdp", start_topics=10), 6),
    "svi mini-batches": lambda: (svi(**SIZES, max_tables=3, batch_size=7, contexts=FAMILIES), 2),
    "svi full batch": lambda: (svi(**SIZES, max_tables=3, batch_size=None, contexts=FAMILIES), 3),
    "svi from gibbs": lambda: (svi(**SIZES, max_tables=3, batch_size=10, initialisation="gibbs"), 2),
    "svi from noise": lambda: (svi(**SIZES, max_tables=3, batch_size=10, initialisation="random", schedule="paper"), 2),
    "svi direct mini-batches": lambda: (svi(**SIZES, batch_size=7, contexts=FAMILIES), 2),
    "svi direct full batch": lambda: (svi(batch_size=None, contexts=FAMILIES, **LEARNT), 3),
    "svi document level": lambda: (svi(document_level=True, batch_size=7, contexts=FAMILIES), 3),
    **{f"fastex hash {one}": partial(of_five, proposal="hash", component=one, bits=32) for one in COMPONENTS},
    **{f"fastex exact {one}": partial(of_five, proposal="exact", component=one) for one in COMPONENTS},
    **{f"uncollapsed {one}": partial(of_five, uncollapsed, component=one) for one in COMPONENTS},
    "fastex exact gauss_wishart": partial(of_five, component="gauss_wishart"),
    "fastex neighbours": partial(of_five, proposal="neighbours", list_budget=60, exact_sweeps=[3]),
    "fastex as printed": partial(of_five, proposal="hash", projection="paper", bits=128, topic_word_prior=0.01),
}


def small_corpus():
    """40 documents of 60 words in three groups, one empty; contexts partly missing."""
    rng = np.random.default_rng(11)
    group = np.arange(40) % 3
    words = rng.dirichlet(np.full(60, 0.15), 3)
    content = np.array([rng.multinomial(rng.integers(5, 50), words[k]) for k in group])
    content[7] = 0
    year = np.where(rng.random(40) < 0.2, np.nan, group + rng.normal(0, 0.5, 40))
    visits = np.where(rng.random(40) < 0.2, np.nan, rng.poisson(3 * group + 1))
    tags = rng.poisson(rng.dirichlet(np.full(6, 0.3), 3)[group] * 2)
    place = group[:, None] + rng.normal(0, 3.0, (40, 9))
    place[rng.random(40) < 0.2] = np.nan
    shape = np.where(rng.random((40, 3)) < 0.2, np.nan, group[:, None] + rng.normal(0, 3.0, (40, 3)))
    contexts = {"tag": sp.csr_matrix(tags), "visits": visits, "year": year, "place": place, "shape": shape}
    units = {"year": (0.0, 1.0), "place": (np.zeros(9), np.ones(9)), "shape": (np.zeros(3), np.ones(3))}
    return mc2core.Corpus(sp.csr_matrix(content), contexts=contexts, units=units)


def results_of(name):
    """Public results of a fit and of its scores: whole numbers and reals apart."""
    engine, iterations = FITS[name]()
    corpus = small_corpus()
    fit = mc2core.fit(corpus, *engine, iterations=iterations, seed=5, chains=1, progress=False)
    model = fit.posterior
    whole = [fit.state.cluster, *([fit.state.topic] if hasattr(fit.state, "topic") else [])]
    last = dataclasses.replace(model, samples=model.samples[-1:])
    real = [last.cluster_weights, last.topic_given_cluster, last.word_given_topic, last.predict_proba(corpus)]
    real += [fit.trace[column].to_numpy() for column in ("log_joint", "elbo") if column in fit.trace]
    if not name.startswith(("fastex", "uncollapsed")):
        estimators = ESTIMATORS[3:] if last.representative.has_document_level else ESTIMATORS
        estimators = ESTIMATORS[4:] if last.representative.has_repeats else estimators
        real += [model.log_likelihood(corpus, estimator) for estimator in estimators]
    return [np.asarray(one, dtype=np.int64) for one in whole], [np.asarray(one, dtype=np.float64) for one in real]


def digest(arrays):
    return hashlib.sha256(b"".join(np.ascontiguousarray(one).tobytes() for one in arrays)).hexdigest()


def summary_of(name):
    whole, real = results_of(name)
    return {
        "assignments": digest(whole),
        "bits": digest([*whole, *real]),
        # the mean shows a change everywhere, the largest a change in one place
        "reals": [[float(one.mean()), float(np.abs(one).max())] for one in real],
    }


def machine():
    return {
        "processor": llvmlite.binding.get_host_cpu_name(),
        **{package: metadata.version(package) for package in ("numba", "numpy", "scipy")},
    }


@pytest.mark.parametrize("name", FITS)
def test_results_are_those_stored(name):
    stored = json.loads(STORED.read_text(encoding="utf-8"))
    now = summary_of(name)
    assert now["assignments"] == stored["fits"][name]["assignments"]
    np.testing.assert_allclose(now["reals"], stored["fits"][name]["reals"], rtol=1e-6)
    if machine() == stored["machine"]:
        assert now["bits"] == stored["fits"][name]["bits"]


def test_every_fit_is_stored():
    assert set(json.loads(STORED.read_text(encoding="utf-8"))["fits"]) == set(FITS)


if __name__ == "__main__":
    content = {"machine": machine(), "fits": {name: summary_of(name) for name in FITS}}
    STORED.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
