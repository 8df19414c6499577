"""The trace of a fit for ArviZ."""

import importlib.util

import numpy as np
import pandas as pd
import pytest

from mc2core import Fit
from mc2core.base.extras import MissingPackage
from mc2core.explore import traces

TRACE = pd.DataFrame({"chain": [1, 2] * 6, "iteration": np.repeat(np.arange(1, 7), 2)})
TRACE = TRACE.assign(seconds=0.1, tokens=9, topics=np.arange(12), log_joint=-np.arange(12.0))


def test_chains_and_draws_after_the_burn_in(monkeypatch):
    class Arviz:
        @staticmethod
        def from_dict(groups):
            return groups

    monkeypatch.setattr("importlib.util.find_spec", lambda name: object())
    monkeypatch.setattr("importlib.import_module", lambda name: Arviz)
    found = traces.to_arviz(TRACE)["posterior"]
    assert list(found) == ["topics", "log_joint"]
    assert found["topics"].tolist() == [[6, 8, 10], [7, 9, 11]]
    assert traces.to_arviz(TRACE, burn_in=5)["posterior"]["log_joint"].tolist() == [[-10], [-11]]
    assert Fit(None, None, trace=TRACE).to_arviz(5)["posterior"]["topics"].tolist() == [[10], [11]]
    with pytest.raises(ValueError, match="a loaded posterior has no trace"):
        Fit(None, None).to_arviz()
    with pytest.raises(ValueError, match="a burn-in of 6 leaves none of 6 iterations"):
        traces.to_arviz(TRACE, burn_in=6)


@pytest.mark.skipif(importlib.util.find_spec("arviz") is None, reason="needs arviz")
def test_arviz_reads_the_trace():
    found = traces.to_arviz(TRACE)
    assert found["posterior"]["topics"].to_numpy().tolist() == [[6, 8, 10], [7, 9, 11]]


def test_without_arviz_the_message_says_so(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingPackage, match="needs the package arviz, which is not installed: pip install arviz"):
        traces.to_arviz(TRACE)
