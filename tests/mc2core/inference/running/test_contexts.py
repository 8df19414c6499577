"""What a fit says of contexts that it does not use, or that are far from their prior."""

import numpy as np
import pytest
from helpers.fits import fastex, svi

from mc2core import Corpus, fit
from mc2core.families import DirichletCategorical, NormalGamma
from mc2core.inference.running.files import fit_corpus

COUNTS = np.array([[2, 1, 0], [1, 2, 0], [0, 1, 3], [0, 0, 4]])
CORPUS = Corpus(COUNTS, contexts={"year": [1990.0, 1991.0, np.nan, 2005.0], "tag": COUNTS[:, :2]})


def said(caplog):
    return [one.getMessage() for one in caplog.records if one.levelname == "WARNING"]


def test_contexts_that_are_not_used_are_said_once(caplog, tmp_path):
    fit(CORPUS, *fastex(n_clusters=2), iterations=1)
    assert said(caplog) == ["contexts of the corpus that this fit does not use: tag, year"]
    caplog.clear()
    names = ("posterior", "trace", "provenance", "checkpoint")
    files = {name: tmp_path / name for name in names} | {"posterior": tmp_path / "posterior.npz"}
    settings = {"n_clusters": 2}
    fit_corpus(CORPUS, model=None, engine="fastex", contexts={}, settings=settings, seed=0, iterations=1, **files)
    assert said(caplog) == ["contexts of the corpus that this fit does not use: tag, year"]


def test_a_fit_is_of_its_corpus_whatever_other_contexts_that_has():
    """Else clusters of the fit's own documents would be predicted, as those of new ones are."""
    posterior = fit(CORPUS, *fastex(n_clusters=2), iterations=1).posterior
    assert posterior.was_fitted_on(CORPUS)
    assert posterior.was_fitted_on(CORPUS.with_contexts({}))
    used = fit(CORPUS, *svi(contexts={"tag": DirichletCategorical()}), iterations=1).posterior
    assert used.was_fitted_on(CORPUS)
    assert not used.was_fitted_on(CORPUS.with_contexts({"tag": COUNTS[:, 1:]}))


@pytest.mark.parametrize(
    ("corpus", "prior", "is_far"),
    [
        (CORPUS, NormalGamma(), True),
        (CORPUS.standardised("year"), NormalGamma(), False),
        (CORPUS, NormalGamma(mu0=2000.0), False),
        (CORPUS, NormalGamma(b0=1e6), False),  # 1995 is two of a thousand
        (CORPUS.with_contexts({"year": np.full(4, np.nan), "tag": COUNTS[:, :2]}), NormalGamma(), False),
        (CORPUS.with_contexts({"year": [-9.0, 10, 12, -8], "tag": COUNTS[:, :2]}), NormalGamma(), False),
    ],
)
def test_numbers_far_from_their_prior_are_said_once(caplog, corpus, prior, is_far):
    contexts = {"year": prior, "tag": DirichletCategorical()}
    done = fit(corpus, *svi(max_clusters=2, n_topics=3, contexts=contexts), iterations=1)
    assert done.provenance["found"]["truncations"] == {"clusters": 2, "topics": 3}
    far = "context 'year' has the mean 1995, far from what its prior expects, 0 with standard deviation 1: "
    assert said(caplog) == [far + "corpus.standardised('year') has the mean 0"] * is_far
