"""Models and engines by name: what a fit has that names no setting."""

import numpy as np
import pytest

from mc2core import Corpus
from mc2core.inference.registry import specified_in, specify
from mc2core.inference.running.loop import fit
from mc2core.models import NPTOT


class TestKernelOfNptot:
    def test_by_name(self):
        for engine in (None, "gibbs"):
            assert specify("nptot", engine, {}, ["year"])[1].kernel == "collapsed"
        assert specify(None, None, {}, ["year"])[1].kernel == "interleaved"
        with pytest.raises(ValueError, match=r"^kernel is 'blocked'; for npTOT it must be 'collapsed'$"):
            specify("nptot", "gibbs", {"kernel": "blocked"}, ["year"])

    def test_of_a_model_alone(self):
        corpus = Corpus(np.eye(4, dtype=int) + 1, contexts={"year": [0.0, 1.0, 2.0, 3.0]})
        done = fit(corpus, NPTOT(contexts=["year"]), iterations=2, progress=False)
        assert done.posterior.provenance["engine"]["kernel"] == "collapsed"


@pytest.mark.parametrize("about", [{}, {"model": {"name": "mc2"}}, {"model": [], "engine": {}}])
def test_a_provenance_without_model_and_engine_is_refused(about):
    with pytest.raises(ValueError, match=r"the provenance of the fit \(model and engine\) is damaged"):
        specified_in(about)
    made = specified_in(
        {"model": {"name": "mc2", "contexts": {"year": None}}, "engine": {"name": "svi", "max_clusters": 7}}
    )
    assert (made[0].settings()["contexts"], made[1].max_clusters) == ({"year": None}, 7)
