"""Threads never change a result: every engine and kernel with default settings but for sizes, on 1 and on 2 threads.

The corpus has more documents and more words than a block of any kernel, and more documents than the 1,000 that FastEx
took to a round, once, where it was given several threads.
"""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.fits import fastex, gibbs, svi, uncollapsed

from mc2core import Corpus
from mc2core.families import DirichletCategorical, NormalGamma
from mc2core.inference.running.loop import fit
from mc2core.inference.svi import engine as svi_engine

pytestmark = pytest.mark.usefixtures("short_starts")  # threads of a start have tests of their own

ITERATIONS, BEFORE = 4, 2
CONTEXTS = {"year": NormalGamma(), "tag": DirichletCategorical(0.3)}
FASTEXES = [
    {"proposal": proposal, "component": component}
    for proposal, component in itertools.product(("auto", "hash", "exact"), ("multinomial", "poisson", "gaussian"))
]
FASTEXES += [{"proposal": "neighbours", "exact_sweeps": [2]}]
FASTEXES += [{"proposal": "hash", "projection": "paper"}, {"proposal": "hash", "documents_per_round": 300}]
SIZES = {
    gibbs: {"contexts": CONTEXTS, "start_topics": 5, "start_clusters": 6},
    svi: {"contexts": CONTEXTS, "max_clusters": 6, "max_topics": 8},
    fastex: {"n_clusters": 40},
    uncollapsed: {"n_clusters": 40},
}
CASES = [
    *((gibbs, {"kernel": kernel}) for kernel in ("collapsed", "blocked", "interleaved")),
    *((gibbs, {"document_level": True, "kernel": kernel}) for kernel in ("interleaved", "parallel")),
    *((svi, {"max_tables": n, "batch_size": batch_size}) for n in (4, None) for batch_size in (None, 50)),
    *((svi, {"document_level": True, "batch_size": batch_size}) for batch_size in (None, 50)),
    *((fastex, settings) for settings in FASTEXES),
    *((uncollapsed, {"component": component}) for component in ("multinomial", "poisson", "gaussian")),
]
NAMES = ["-".join([kind.__name__, *map(str, settings.values())]) for kind, settings in CASES]


@pytest.fixture(autouse=True)
def _small_batches_go_to_threads_too(monkeypatch):
    monkeypatch.setattr(svi_engine, "_MIN_FOR_THREADS", 0)


@pytest.fixture(scope="module")
def corpus():
    """1,250 documents of 12 tokens in 6 clusters, 4,200 words of which each cluster prefers 100."""
    rng = np.random.default_rng(0)
    truth = np.arange(1250) % 6
    common = rng.random((1250, 12)) < 0.3
    words = np.where(common, rng.integers(0, 4200, (1250, 12)), 100 * truth[:, None] + rng.integers(0, 100, (1250, 12)))
    rows = np.repeat(np.arange(1250), 12)
    tags = sp.csr_matrix((np.ones(1250, int), (np.arange(1250), (truth + rng.integers(0, 2, 1250)) % 6)), (1250, 6))
    return Corpus(
        sp.csr_matrix((np.ones(rows.size, int), (rows, words.ravel())), (1250, 4200)),
        contexts={"year": truth + rng.normal(size=1250), "tag": tags},
        units={"year": (0.0, 1.0)},
    )


def run(corpus, kind, settings, threads, iterations=ITERATIONS, **more):
    burn_in = 1 if kind is gibbs else None
    done = fit(
        corpus,
        *kind(**SIZES[kind], **settings, threads=threads),
        iterations=iterations,
        burn_in=burn_in,
        seed=3,
        **more,
    )
    return done.state, done.trace.drop(columns="seconds")


#: of the mixtures, one of each proposal and one of each component
OFTEN = ("gibbs", "svi", "fastex-auto-multinomial", "fastex-hash-poisson", "fastex-exact-gaussian", "fastex-neighbours")


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        pytest.param(*one, id=name, marks=() if name.startswith(OFTEN) else pytest.mark.slow)
        for one, name in zip(CASES, NAMES, strict=True)
    ],
)
def test_same_bits_and_checkpoints_on_one_thread_and_on_two(tmp_path, corpus, kind, settings):
    one, trace = run(corpus, kind, settings, 1)
    assert len(np.unique(one.cluster)) > 2
    other, other_trace = run(corpus, kind, settings, 2)
    for before, after in ((1, 2), (2, 1)):
        path = tmp_path / f"{before}.npz"
        run(corpus, kind, settings, before, BEFORE, checkpoint=path)
        resumed, resumed_trace = run(corpus, kind, settings, after, checkpoint=path)
        for state, rows in ((other, other_trace), (resumed, resumed_trace)):
            assert rows.equals(trace)
            for name, array in one.arrays().items():
                np.testing.assert_array_equal(array, state.arrays()[name], err_msg=name)


def test_a_stop_within_an_epoch_may_change_the_threads(corpus):
    settings = SIZES[svi] | {"max_tables": 4, "batch_size": 50}
    whole, _ = run(corpus, svi, {"max_tables": 4, "batch_size": 50}, 1, 1)
    engine = svi(**settings)
    state = engine.init(corpus, 3)
    assert engine.advance(corpus, state, 3, 1) is None
    engine = svi(**settings, threads=2)
    state = engine.restore(corpus, state.arrays())
    while engine.advance(corpus, state, 3, 1) is None:
        pass
    for name, array in whole.arrays().items():
        np.testing.assert_array_equal(array, state.arrays()[name], err_msg=name)


def test_a_batch_too_small_for_threads_stays_on_one(corpus, monkeypatch):
    """Handing its blocks to two threads made an epoch of 174 short documents a third longer."""

    class Untouched:
        n_helpers = 1

        def submit(self, *_):
            raise AssertionError("a block went to another thread")

    engine = svi(**SIZES[svi], max_tables=4, threads=2)
    state, rows = engine.init(corpus, 3), np.arange(400)
    with pytest.raises(AssertionError, match="went to another thread"):
        engine.batch_step(corpus, state, rows, 0.1, Untouched())
    monkeypatch.setattr(svi_engine, "_MIN_FOR_THREADS", 200_000)
    engine.batch_step(corpus, engine.init(corpus, 3), rows, 0.1, Untouched())
