"""Where it is said that a model no longer fits what comes, number by number."""

import pytest

from mc2core.inference.running.drift import drift

FITTED = {"documents": 100, "tokens": 1000, "log_evidence": -7000.0}


def update(nats=-7.0, documents=200, in_small=0, left_out=0):
    """Of 1000 tokens."""
    return {
        "documents": documents, "tokens": 1000, "log_evidence": 1000 * nats, "in_small": in_small,
        "left_out_tokens": left_out,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("updates", "said"),
    [
        ([update(-7.74)], None),
        (
            [update(-7.76)],
            "less likely than the fitted documents (-7.760 against -7.000 nats per word, before",
        ),
        ([update(-7.5), update(-7.74)], None),
        (
            [update(-7.5), update(-7.76)],
            "less likely than the documents of earlier updates (-7.760 against -7.500 nats per word, before",
        ),
        # the mean over all earlier ones, not the last of them
        ([update(-7.2), update(-7.4), update(-7.56)], "(-7.560 against -7.300 nats per word, before training on them)"),
        ([update(in_small=40)], None),
        ([update(in_small=41)], "20% of the new documents are in clusters that were empty or had"),
        ([update(left_out=250)], None),
        ([update(left_out=251)], "20% of the words of the new documents are unknown"),
    ],
)
def test_one_sentence_from_the_bound_on(updates, said):
    warnings = drift(FITTED, updates)["warnings"]
    assert len(warnings) == (said is not None)
    assert said is None or said in warnings[0]


def test_a_fit_without_a_whole_epoch_says_nothing_of_likelihood():
    found = drift(FITTED | {"log_evidence": None}, [update(-20.0)])
    assert (found["before"], found["warnings"]) == (None, [])
