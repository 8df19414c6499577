"""What a run is said to have found, on traces that were made up: numbers, and no verdict on convergence."""

import logging
import re

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.made_up_runs import found_by, trace
from scipy.special import gammaln

from mc2core import Corpus
from mc2core.families import DirichletCategorical, NormalGamma
from mc2core.inference.running.loop import fit
from mc2core.inference.running.summary import ONE_CHAIN, agreement, context_weights, sentence, sentence_of_all
from mc2core.models import MC2


def test_a_rise_is_told_with_its_numbers():
    """A run of real texts: its topics rise from 653 to 680 in the last 20 of 60 iterations."""
    about = found_by(trace(np.linspace(27, 33, 60).round(), np.linspace(600, 680, 60).round()))
    ends = {"before": {"clusters": [31], "topics": [653]}, "after": {"clusters": [33], "topics": [680]}}
    assert about.pop("changing") == ["clusters", "topics"]
    assert about == {"over": 20, "clusters": 33, "topics": 680, "intervals": {}, "chains": {}, **ends}
    last = "over the last 20 iterations clusters went from 31 to 33, topics went from 653 to 680"
    about["changing"] = ["clusters", "topics"]
    quarters = "the last two quarters differ in clusters, topics"
    assert sentence(about) == f"found 33 clusters and 680 topics; {ONE_CHAIN}; {last}; {quarters}"


def test_a_stationary_chain_gets_no_verdict():
    """A chain of a standard deviation of 2.9 and an autocorrelation of .95: what is said are two of its numbers."""
    draw = np.random.default_rng(0)
    for _ in range(20):
        walk = [0.0]
        for step in draw.normal(0, 2.9 * np.sqrt(1 - 0.95**2), 90):
            walk.append(0.95 * walk[-1] + step)
        topics = np.round(100 + np.array(walk[1:]))
        told = sentence(found_by(trace([5] * 90, topics)))
        before, last = int(topics[59]), int(topics[89])
        change = f"went from {before} to {last}" if before != last else f"were {last} at the start and the end"
        assert told.removesuffix("; the last two quarters differ in topics") == (
            f"found 5 clusters and {last} topics; {ONE_CHAIN}; over the last 30 iterations "
            f"clusters were 5 at the start and the end, topics {change}"
        )


@pytest.mark.parametrize(("n", "over"), [(1, 0), (2, 0), (3, 1), (8, 2)])
def test_few_iterations(n, over):
    about = found_by(trace(range(5, 5 + n), [6] * n))
    assert about["over"] == over
    last = "iteration" if over == 1 else f"{over} iterations"
    topics = "topics were 6 at the start and the end"
    change = f"; over the last {last} clusters went from {n + 4 - over} to {n + 4}, {topics}"
    assert sentence(about) == f"found {n + 4} clusters and 6 topics; {ONE_CHAIN}" + (change if over else "")


def test_what_an_engine_does_not_find_is_not_said():
    assert sentence(found_by([{"elbo": 1.0}] * 20)) == sentence(found_by([])) == ""
    assert sentence(found_by([{"clusters": 3.0}] * 20)) == (
        f"found 3 clusters; {ONE_CHAIN}; over the last 6 iterations clusters were 3 at the start and the end"
    )
    about = found_by(trace(range(100, 190), [20] * 90), names=["topics"])
    assert "clusters" not in about
    assert sentence(about) == "found 20 topics; over the last 30 iterations topics were 20 at the start and the end"


def test_numbers_that_follow_a_truncation_are_said_with_it():
    """SVI fills its clusters: 320 of 320, and 321 topics of 640, say little of the documents."""
    about = found_by(trace([320] * 10, [321] * 10), truncations={"clusters": 320, "topics": 640})
    told = "clusters and topics depend on this limit: docs/how_to/choosing_k.md); "
    assert sentence(about).startswith(f"found 320 clusters and 321 topics (at most 320 clusters and 640 topics; {told}")
    other = found_by(trace([9] * 10, [20] * 10), truncations={"clusters": 10, "topics": 640})
    assert sentence_of_all([about, other]).startswith(
        f"found 9 to 320 clusters and 20 to 321 topics in 2 fits (at most 10 to 320 clusters and 640 topics; {told}"
    )
    joined = found_by(trace([12] * 10, [321] * 10), truncations={"topics": 640})
    assert sentence(joined).startswith(
        "found 12 clusters and 321 topics (at most 640 topics; topics depend on this limit: docs/"
    )


def test_the_fits_of_a_run_are_said_together():
    level, climbing = found_by(trace([12] * 30, [20] * 30)), found_by(trace(range(10, 40), range(51, 21, -1)))
    assert sentence_of_all([climbing]) == sentence_of_all([{}, climbing]) == sentence(climbing)
    assert sentence_of_all([{}, {}]) == sentence_of_all([]) == ""
    assert (
        sentence_of_all([level, climbing, level]) == "found 12 to 39 clusters and 20 to 22 topics in 3 fits; "
        "over the last 10 iterations clusters changed by 0 to +10, topics changed by -10 to 0; the last two quarters "
        "differ in clusters, topics"
    )
    assert sentence_of_all([climbing, climbing]) == (
        "found 39 clusters and 22 topics in 2 fits; over the last 10 iterations clusters changed by +10, "
        "topics changed by -10; the last two quarters differ in clusters, topics"
    )
    assert sentence_of_all([found_by(trace([3] * 2, [4] * 2))] * 2) == "found 3 clusters and 4 topics in 2 fits"
    assert not re.search("trend|move|steady|converge", sentence_of_all([level, level]))


def test_intervals_stand_beside_the_numbers():
    about = found_by(trace([12] * 30, [20] * 30), intervals={"main clusters": (11, 14), "topics": (20, 20)})
    assert about["intervals"] == {"main clusters": [11, 14], "topics": [20, 20]}
    assert sentence(about).startswith(
        "found 12 clusters (11 to 14 hold 95 % of the documents in 90 % of the samples) and 20 topics; one chain; "
    )


def test_chains_are_said_with_how_far_they_agree():
    traces = trace(range(10, 40), [20] * 30), trace([31] * 30, range(51, 21, -1)), trace([36] * 30, [20] * 30)
    between = {"clusters": [39, 31, 36], "topics": [20, 22, 20], "ari": 0.71234, "vi_bits": 0.9}
    about = found_by(*traces, chains=between)
    assert about["before"]["clusters"] == [29, 31, 36]
    assert sentence(about) == (
        "found 39 clusters and 20 topics; 3 chains of 39, 31 and 36 clusters agree by ARI 0.71, VI 0.90 bits "
        "on all clusters; "
        "over the last 10 iterations clusters changed by 0 to +10, topics changed by -10 to 0; the last two quarters "
        "differ in clusters, topics"
    )
    other = found_by(*traces[:2], chains=between)
    assert sentence_of_all([other, about]) == (
        "found 39 clusters and 20 topics in 2 fits; over the last 10 iterations clusters changed by 0 to +10, "
        "topics changed by -10 to 0; the last two quarters differ in clusters, topics"
    )
    two = trace([9] * 30, [20] * 30), trace([9] * 30, [25] * 30)
    hdp = found_by(*two, names=["topics"], chains={"topics": [20, 25]})
    assert sentence(hdp).startswith("found 20 topics; 2 chains of 20 and 25 topics; over the last")


def test_what_one_cluster_means_is_said():
    one, two = found_by(trace([2, 1, 1], [5, 5, 6])), found_by(trace([2] * 3, [5] * 3))
    means = "; no groups of documents were found: topics alone explain how documents differ"
    for told in (sentence(one), sentence_of_all([one, two]), sentence_of_all([{}, one])):
        assert means in told
    assert "no groups" not in sentence(two) + sentence_of_all([two, two])
    assert means in sentence(two | {"recommended": 1})
    assert "no groups" not in sentence(one | {"recommended": 2})
    # an engine of clusters alone has nothing of the kind to say
    alone = {name: value for name, value in one.items() if name != "topics"}
    assert "no groups" not in sentence(alone | {"before": {}, "after": {}})


def test_a_fit_limited_to_one_cluster_does_not_explain_it():
    fixed = found_by(trace([1] * 3, [5] * 3), n_clusters=1)
    assert fixed["n_clusters"] == 1
    assert "no groups" not in sentence(fixed)
    assert "found: topics alone" in sentence(found_by(trace([1] * 3, [5] * 3), n_clusters=2))


def test_one_is_said_in_the_singular():
    about = found_by(trace([1] * 3, [1] * 3), intervals={"main clusters": (1, 1), "topics": (1, 2)})
    said = "found 1 cluster (1 holds 95 % of the documents in 90 % of the samples) and 1 topic"
    assert sentence(about).startswith(said)
    two = found_by(trace([2] * 3, [1] * 3), truncations={"clusters": 2, "topics": 1})
    assert sentence_of_all([two, two]).startswith("found 2 clusters and 1 topic in 2 fits (at most 2 clusters and 1 t")
    assert sentence_of_all([about, two]).startswith("found 1 to 2 clusters and 1 topic in 2 fits")
    assert agreement({"clusters": [3, 1]}) == "2 chains of 3 and 1 cluster"


def test_words_and_contexts_have_weights_in_nats():
    """Of words their entropy, of a name and a number the negative log marginal of all documents in one cluster."""
    names = sp.csr_matrix(np.eye(2, dtype=int)[[0, 0, 0, 1]])
    documents = Corpus(np.array([[2, 2], [4, 0], [0, 4], [2, 2]]), contexts={"name": names, "year": np.zeros(4)})
    families = {"name": DirichletCategorical(1.0, strength=0.5), "year": NormalGamma(strength=0.0)}
    weights = context_weights(documents, families)
    marginal = gammaln([1 + 1.5, 1 + 0.5]).sum() - gammaln(2 + 2.0)
    assert weights == pytest.approx({"": 4 * np.log(2.0), "name": -marginal / 4, "year": 0.0})


@pytest.mark.parametrize(
    ("length", "said"),
    [(200, "'name' weighs little next to the words: 0.81 nats"), (5, ""), (1, "'name' outweighs the words: 0.81 nats")],
)
def test_a_fit_begins_with_the_weights_of_contexts(caplog, length, said):
    content = np.zeros((40, 2), int)
    content[:20, 0] = content[20:, 1] = length
    names = sp.csr_matrix(np.eye(3, dtype=int)[np.arange(40) % 2])
    with caplog.at_level(logging.INFO, "mc2core"):
        fit(Corpus(content, contexts={"name": names}), MC2(contexts=["name"]), iterations=2, progress=False)
    assert re.search(r"nats per document: words [\d.]+; contexts: name [\d.]+ \(strength 1\)", caplog.text)
    warned = [one.getMessage() for one in caplog.records if one.levelno == logging.WARNING and "weigh" in one.msg]
    assert [said in one for one in warned] == [True] * bool(said)
    assert ("strength" in "".join(warned)) == bool(said)


def test_what_one_cluster_means_is_in_the_log(caplog):
    with caplog.at_level(logging.INFO, "mc2core"):
        done = fit(Corpus(sp.csr_matrix([[2, 1]])), iterations=2, progress=False)
    assert done.provenance["inferred"]["clusters"] == 1
    assert "no groups of documents were found: topics alone explain how documents differ" in caplog.text
