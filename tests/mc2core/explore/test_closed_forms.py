"""Figures of the report against closed forms and quadrature."""

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import integrate, stats

from mc2core.explore import agreement, shares, variables


def test_effects_of_samples_are_combined_by_rubins_rule():
    """Five samples whose clusters differ: the variance within and (1 + 1/5) of that between them."""
    rng, n = np.random.default_rng(3), 80
    group = np.arange(n) % 2
    samples = rng.random((5, n)) < np.where(group, 0.6, 0.3)
    one = variables.Variable("group", "", sp.csr_matrix(np.eye(2)[group]), ["first", "second"])

    def effects(inside, matched):
        made = SimpleNamespace(
            corpus=SimpleNamespace(n_documents=n), documents_of=sp.csr_matrix(inside[None].astype(float)),
            matched_samples=matched, matched_topics=[], document_topics=sp.csr_matrix((n, 0)),
        )  # fmt: skip
        (row,) = shares.effects(made, [one]).to_dict("records")
        return row["effect"], ((row["high"] - row["low"]) / 2 / stats.t.ppf(0.95, n - 2)) ** 2

    effect, variance = np.array([effects(inside, []) for inside in samples]).T
    matched = [(sp.csr_matrix(inside[:, None].astype(float)), np.ones((1, 1))) for inside in samples]
    expected = effect.mean(), variance.mean() + (1 + 1 / 5) * effect.var(ddof=1)
    assert effects(samples[0], matched) == pytest.approx(expected)
    assert effect.var(ddof=1) > variance.mean() / 4


def test_the_overlap_of_topics_of_numbers_is_the_integral():
    rng = np.random.default_rng(1)
    one, other = (SimpleNamespace(mean=rng.standard_normal((n, 2)), sd=rng.uniform(0.5, 2.0, (n, 2))) for n in (2, 3))
    found = agreement._overlap(one, other)
    for m, o in np.ndindex(2, 3):
        expected = 1.0
        for d in range(2):
            p, q = (stats.norm(topic.mean[i, d], topic.sd[i, d]) for topic, i in ((one, m), (other, o)))
            expected *= integrate.quad(lambda x, p=p, q=q: np.sqrt(p.pdf(x) * q.pdf(x)), -20, 20)[0]
        assert found[m, o] == pytest.approx(expected)
