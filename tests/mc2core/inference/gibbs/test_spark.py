"""Gibbs on Spark: the bits of the chain of this process, with or without Spark across a resume."""

import numpy as np
import pytest
from helpers.fits import gibbs

from mc2core import Corpus
from mc2core.compute import spark
from mc2core.families import NormalGamma
from mc2core.inference.running.loop import fit


def corpus_of(n_documents=60, n_words=40):
    rng = np.random.default_rng(3)
    cluster = rng.integers(4, size=n_documents)
    content = rng.poisson(0.1 + 2.0 * (np.arange(n_words) // 10 == cluster[:, None]))
    content[7] = 0  # an empty document
    return Corpus(content, contexts={"year": rng.normal(cluster, 0.5)})


CASES = {
    "contexts": {"document_level": True, "start_clusters": 1, "contexts": {"year": NormalGamma()}},
    "of three levels": {"model": "hdp", "document_level": True},
}


def of_case(case, n_shards):
    return gibbs(kernel="parallel", n_shards=n_shards, **CASES[case])


@pytest.fixture(scope="module")
def local_spark(tmp_path_factory):
    with spark.session({"spark.master": "local[2]", spark.FOLDER: tmp_path_factory.mktemp("shards")}):
        yield


def same(one, other):
    assert one.keys() == other.keys()
    for name in one:
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)


@pytest.mark.needs("spark")
@pytest.mark.parametrize("case", CASES)
def test_shards_have_the_bits_of_this_process(local_spark, case):
    corpus = corpus_of()
    here, there = (fit(corpus, *of_case(case, n_shards), iterations=3, progress=False) for n_shards in (None, 3))
    same(here.state.arrays(), there.state.arrays())
    assert here.trace.drop(columns="seconds").equals(there.trace.drop(columns="seconds"))
    assert here.posterior.provenance == there.posterior.provenance


@pytest.mark.needs("spark")
def test_a_chain_of_this_process_goes_on_with_shards(local_spark, tmp_path):
    corpus, settings = corpus_of(), {"burn_in": 0, "progress": False}
    whole = fit(corpus, *of_case("contexts", None), iterations=4, **settings)
    for iterations, n_shards in ((2, None), (3, 2), (4, 5)):
        done = fit(
            corpus, *of_case("contexts", n_shards), iterations=iterations, checkpoint=tmp_path / "c.npz", **settings
        )
    same(whole.state.arrays(), done.state.arrays())
    assert [one.log_joint for one in whole.posterior.samples] == [one.log_joint for one in done.posterior.samples]


@pytest.mark.parametrize("kernel", ["collapsed", "interleaved"])
def test_other_kernels_are_refused(kernel):
    with pytest.raises(ValueError, match=f"n_shards is 2 and kernel {kernel!r}; only the kernel 'parallel'"):
        gibbs(kernel=kernel, document_level=True, n_shards=2)
    with pytest.raises(ValueError, match="needs a document level"):
        gibbs(kernel="parallel", n_shards=2)
