"""A fit as files: contexts that it is to do without."""

import numpy as np

from mc2core.base import storage
from mc2core.engines.running.files import fit_corpus
from mc2core.model import Model
from mc2core.sources.simulated import letters


def clusters(folder, contexts, **settings):
    corpus = letters.simulate(0, n_documents=40, n_tokens=10)[0].standardised("number")
    folder.mkdir()
    files = {name: folder / name for name in ("model", "trace", "provenance", "checkpoint")}
    files["model"] = folder / "model.npz"
    fit_corpus(corpus, engine="gibbs", contexts=contexts, settings={}, iterations=15, seed=1, **files, **settings)
    return Model.load(files["model"]).last.cluster, storage.read_json(files["provenance"])


def test_contexts_that_are_missing_everywhere_tell_nothing(tmp_path):
    contexts = {"number": {"family": "normal_gamma"}}
    known, about = clusters(tmp_path / "known", contexts)
    nothing, _ = clusters(tmp_path / "none", {})
    assert "missing" not in about
    assert (known != nothing).any()
    for share in (0.5, 1.0):
        part, about = clusters(tmp_path / f"{share}", contexts, missing=share)
        assert about["missing"] == share
        assert np.array_equal(part, nothing) == (share == 1.0)
        assert not np.array_equal(part, known)
