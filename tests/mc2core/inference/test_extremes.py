"""Settings at the ends of their ranges and beyond, and corners of corpora."""

from __future__ import annotations

import re

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.crossed import crossed
from helpers.engines import ENGINES
from helpers.fits import FIXED, fastex, gibbs, svi
from helpers.gibbs_twin import small_corpus

from mc2core import Corpus
from mc2core.families import DirichletCategorical, GammaPoisson, NormalGamma
from mc2core.families.stacked import StackedContexts
from mc2core.inference.gibbs import blocked
from mc2core.inference.gibbs.weights import PartitionLaw
from mc2core.inference.running.loop import fit
from mc2core.models import HDP, MC2, NPTOT

pytestmark = [pytest.mark.filterwarnings("error::RuntimeWarning"), pytest.mark.usefixtures("short_starts")]

FAMILIES = {"year": NormalGamma(), "tag": DirichletCategorical(0.3)}
CONCENTRATIONS = ("group_concentration", "table_concentration", "topic_concentration", "topic_word_prior")


def assert_usable(done, corpus):
    """The model is finite and its rows sum to 1."""
    model = done.posterior
    assert np.isfinite(done.trace.to_numpy(float)).all()
    for table in (
        model.cluster_weights,
        model.topic_given_cluster,
        model.word_given_topic,
        model.predict_proba(corpus),
    ):
        np.testing.assert_allclose(table.sum(axis=-1), 1.0, rtol=1e-9)
    assert np.isfinite(model.perplexity(corpus))


PRIORS = [
    *(DirichletCategorical(value) for value in (1e-10, 1e10)),
    *(GammaPoisson(a0=value) for value in (1e-10, 1e10)),
    *(GammaPoisson(b0=value) for value in (1e-50, 1e50)),
    *(NormalGamma(kappa0=value) for value in (1e-10, 1e10)),
    *(NormalGamma(a0=value) for value in (1e-10, 1e10)),
    *(NormalGamma(b0=value) for value in (1e-50, 1e50)),
    NormalGamma(mu0=9e37, kappa0=1e-10, b0=1e50),
    *(family(strength=0.0) for family in (DirichletCategorical, GammaPoisson, NormalGamma)),
    # weighted counts are not whole, and to add and to take them out again leaves a last digit
    DirichletCategorical(1e-10, strength=0.1),
    NormalGamma(kappa0=1e-10, strength=0.1),
]


class TestEndsOfRanges:
    @pytest.mark.parametrize(
        ("engine", "setting", "value"), crossed([*ENGINES], CONCENTRATIONS, [1e-10, 1e10], every=2)
    )
    def test_concentrations(self, engine, setting, value):
        corpus = small_corpus(1)
        engine = ENGINES[engine](contexts=FAMILIES, **(FIXED | {setting: value}))
        assert_usable(fit(corpus, *engine, iterations=6, progress=False), corpus)

    @pytest.mark.parametrize(("engine", "family"), crossed([*ENGINES], PRIORS, every=2))
    def test_context_priors(self, engine, family):
        small = small_corpus(1)
        value = {
            "dirichlet": small.contexts["tag"],
            "gamma_poisson": np.array([2.0**31 - 1, 0, np.nan, *range(9)]),
            "normal_gamma": np.zeros(12) if family.settings().get("b0") == 1e-50 else small.contexts["year"],
        }
        corpus = Corpus(small.content, contexts={"x": value[family.name]})
        assert_usable(fit(corpus, *ENGINES[engine](contexts={"x": family}), iterations=6, progress=False), corpus)

    def test_values_that_swamp_the_prior_are_usable_up_to_the_limit(self):
        values = np.array([9.4e7, 9.4e7, -9.4e7, np.nan, 0.0, 1.0])
        corpus = Corpus(sp.csr_matrix(np.eye(6, dtype=int)), contexts={"x": values})
        for kappa0 in (1.0, 1e-10):
            natural = NormalGamma(kappa0=kappa0).prior(4) + NormalGamma().statistics(values).toarray()[:2].sum(axis=0)
            assert np.isfinite(NormalGamma(kappa0=kappa0).log_normaliser(natural))
        assert_usable(fit(corpus, *gibbs(contexts={"x": NormalGamma()}), iterations=6, progress=False), corpus)

    def test_predictive_of_a_bag_under_a_large_prior(self):
        # each of 40 draws of one of two categories has probability 1/2, up to 40 / 1e10
        bag = sp.csr_matrix([[40, 0]])
        family = DirichletCategorical(1e10)
        stacked = StackedContexts(Corpus(np.ones((1, 1), int), contexts={"x": bag}), {"x": family})
        assert stacked.log_predictive(stacked.prior[None])[0, 0] == pytest.approx(40 * np.log(0.5), abs=1e-6)

    @pytest.mark.parametrize("concentration", [1.0, 1e3, 1e4, 1e10])
    def test_atoms_stay_few_at_any_concentration(self, concentration):
        # 1 + Poisson(9000) at most: beyond 10,000 with probability 1e-24
        smallest = blocked.smallest_atom(1e-4, concentration)
        rng = np.random.default_rng(0)
        weights, rest = blocked.split_remaining(1.0, PartitionLaw.from_concentration(concentration), 0, smallest, rng)
        assert len(weights) <= 10_000
        assert rest < smallest or concentration == 1e10
        assert weights.sum() + rest == pytest.approx(1.0)
        assert concentration > 500 or smallest == 1e-4

    def test_more_clusters_and_topics_than_there_is_content_for(self):
        """The identity corpus: every document has a word of its own, 40 times."""
        corpus = Corpus(sp.identity(200, dtype=int, format="csr") * 40)
        engine = gibbs(start_topics=200, start_clusters=200)
        done = fit(corpus, *engine, iterations=30, progress=False)
        assert_usable(done, corpus)
        assert done.trace.table_concentration.iloc[-1] < 0.1  # where rows of Gammas underflow


#: a message of each kind; that each setting is refused where its docstring says so is in test_constructors
REFUSED = [
    (lambda: gibbs(group_concentration=1e12), "is 1000000000000.0; it must lie between 1e-10 and 1e+10"),
    (lambda: MC2(document_concentration=-1), "document_concentration is -1; it must be a finite number above 0"),
    (lambda: HDP(document_level=True, document_concentration=True), "document_concentration is True; it must be a"),
    (lambda: MC2(document_concentration="inf"), "document_concentration is 'inf'; it must be a number or 'learn'"),
    (lambda: MC2(document_level=1), "document_level is 1; it must be true or false"),
    (lambda: svi(concentration_priors={"group": (1e300, 1)}), "['group'] shape is 1e+300; it must lie between"),
    (lambda: gibbs(concentration_priors=3), "concentration_priors is 3; it must map some of group, table, topic"),
    (lambda: gibbs(concentration_priors={"group": (1, 2, 3)}), "is (1, 2, 3); it must be (shape, rate)"),
    (lambda: NPTOT(contexts=["year"], concentration_priors={"document": (1, 1)}), "'document'; allowed: table, topic"),
    (lambda: GammaPoisson(b0=1e300), "GammaPoisson b0 is 1e+300; it must lie between 1e-50 and 1e+50"),
    (lambda: NormalGamma(mu0=1e300), "NormalGamma mu0 is 1e+300; with kappa0 1 and b0 1 it must lie within"),
    (lambda: NormalGamma().statistics(np.array([0, -1e300])), "document 1 holds -1e+300; with b0 1 values must"),
    (lambda: GammaPoisson().statistics(np.array([1e300])), "document 0 holds 1e+300; counts are whole"),
    (lambda: svi(contexts=3), "contexts is 3; it must be a list of names, or map them to families such as"),
    (lambda: gibbs(contexts=[NormalGamma()]), "contexts has the name NormalGamma(mu0=0, kappa0=1, a0=1, b0=1"),
    (lambda: gibbs(contexts={"year": 3}), "contexts['year'] is 3; a family such as NormalGamma() is needed"),
    (lambda: Corpus(np.zeros((2, 0), int), contexts={"x": [0.0, 1.0]}), "content has no words: it needs a column"),
    (lambda: svi(batch_size="atuo"), "batch_size is 'atuo'; it must be a whole number, 'auto' or None"),
    (lambda: svi(learning_offset=-1), "learning_offset is -1; it must be at least 0"),
    (lambda: svi(learning_decay=0.5), "learning_decay is 0.5; it must be above 0.5 and at most 1"),
    (lambda: svi(global_step="joint"), "global_step is 'joint', which needs max_tables and mini-batches; max_tab"),
    (lambda: svi(global_step="joint", max_tables=2, batch_size=None), "max_tables is 2, batch_size None"),
    (lambda: fastex(bits=12), "bits is 12; allowed: 8, 16, 32, 64, 128, 256"),
    (lambda: fastex(projection="balance"), "did you mean 'balanced'"),
    (lambda: fastex(inverse_temperature=1.5), "inverse_temperature is 1.5; it must lie between 0 and 1"),
    (lambda: fastex(failure_probability=1.0), "failure_probability is 1; it must be less than 1"),
    (lambda: fastex(n_proposals=10**12), "is 1000000000000; it must be a whole number of at least 1 and at most 1000"),
    (lambda: fastex(exact_sweeps=5), "exact_sweeps is 5; it must be a list of numbers of sweeps, from 1"),
    (lambda: fastex(exact_sweeps=[0]), "an entry of exact_sweeps is 0; it must be a whole number of at least 1"),
    (lambda: fastex(weight_prior=1e-300), "weight_prior is 1e-300; it must be at least 1e-100"),
]


class TestRefused:
    @pytest.mark.parametrize(("refused", "message"), REFUSED, ids=[message for _, message in REFUSED])
    def test_what_is_beyond(self, refused, message):
        with pytest.raises(ValueError, match=re.escape(message)) as caught:
            refused()
        assert "\n" not in str(caught.value)

    @pytest.mark.parametrize("engine", ENGINES)
    def test_a_context_without_columns(self, engine):
        corpus = Corpus(np.eye(3, dtype=int), contexts={"tag": sp.csr_matrix((3, 0), dtype=int)})
        with pytest.raises(ValueError, match="context 'tag': no document has a value; leave the context out"):
            fit(corpus, *ENGINES[engine](contexts={"tag": DirichletCategorical()}), iterations=2, progress=False)


class TestScores:
    @pytest.mark.parametrize("estimator", ["marginal", "context", "icml14", "importance", "left_to_right"])
    def test_the_hdp_is_scored_without_a_warning(self, estimator):
        # no document shares its cluster, so a new one is in a new cluster: one draw of the prior, whatever the clusters
        corpus = small_corpus(1)
        done = fit(corpus, *gibbs(model="hdp"), iterations=4, progress=False)
        assert np.isfinite(done.posterior.log_likelihood(corpus, estimator)).all()
