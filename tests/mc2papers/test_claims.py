"""How numbers become a verdict: intervals against SciPy's tests, ties, circular data."""

import re

import numpy as np
import pandas as pd
import pytest
from helpers.paths import ROOT
from scipy import stats

from mc2papers import targets
from mc2papers.datasets.catalogue import DATASETS, prepare
from mc2papers.datasets.origins import ORIGINS, Data, data_of
from mc2papers.report import claims
from mc2papers.report.captions import say_sources
from mc2papers.report.claims import (
    ANY_SIMULATOR,
    difference,
    judge,
    mean_of,
    not_run,
    on_data,
    ratio_of,
    share_of,
    unless,
    unmet,
)

LOW, HIGH = pd.Series([2259.0, 2251.0, 2266.0]), pd.Series([2262.0, 2270.0, 2281.0])


def ends(statistic):
    """The interval as it is printed."""
    return [float(one.replace(",", "")) for one in re.search(r"95% (\S+) to (\S+),", statistic.said).groups()]


class TestIntervals:
    def test_the_interval_of_a_difference_is_the_paired_t_tests(self):
        expected = stats.ttest_rel(LOW, HIGH).confidence_interval(0.95)
        found = difference(LOW, HIGH, below=0, digits=4)
        assert ends(found) == pytest.approx([expected.low, expected.high], abs=1e-4)
        assert [found.least, found.most] == pytest.approx([-expected.high, -expected.low])
        assert found.said == "difference -12.3333 (95% -33.0179 to +8.3512, 3 seeds)"

    def test_values_are_paired_by_seed_and_the_rest_is_left_out(self):
        shuffled = HIGH.iloc[[2, 0, 1]]
        more = pd.concat([LOW, pd.Series([1.0], index=[7])])
        assert difference(more, shuffled, below=0, digits=1) == difference(LOW, HIGH, below=0, digits=1)
        with pytest.raises(ValueError, match="difference: the two sides have none of the seeds in common"):
            difference(LOW, HIGH.set_axis([5, 6, 7]), below=0, digits=1)

    @pytest.mark.parametrize(
        ("values", "verdict"),
        [
            ([-3.2, -3.0, -3.4], "reproduced"),
            ([3.2, 3.0, 3.4], "not reproduced"),
            ([-3.2, 0.0, 0.2], "inconclusive"),
            ([0.0, 0.0, 0.0], "inconclusive"),  # a tie
            ([-2.0, -2.0], "reproduced"),  # of methods without chance
            ([-30.0], "inconclusive"),  # one fit has no spread
        ],
    )
    def test_a_verdict_is_the_side_on_which_the_whole_interval_lies(self, values, verdict):
        assert mean_of("x", values, below=0, digits=1).verdict == verdict
        assert mean_of("x", [-one for one in values], above=0, digits=1).verdict == verdict
        assert mean_of("x", [one + 5 for one in values], below=5, digits=1).verdict == verdict

    def test_one_value_says_that_it_has_no_interval(self):
        assert mean_of("speed-up", [2.0], above=1.5, digits=2).said == "speed-up 2.00 (one seed, so no interval)"
        with pytest.raises(ValueError, match="x: a bound is needed"):
            mean_of("x", [1.0, 2.0], digits=1)

    def test_ratios_are_judged_by_their_logs(self):
        """Those of figure 3, whose interval was -4.9 to 8.4 without logs: a ratio is above 0."""
        ratios = [0.034 / 0.14, 0.033 / 0.16, 0.8 / 0.13]
        found = ratio_of("times", ratios, above=4.0, digits=2)
        test = stats.ttest_1samp(np.log(ratios), 0.0)
        interval = np.exp(test.confidence_interval(0.95))
        assert (found.least, found.most) == pytest.approx(tuple(interval - 4.0))
        geometric = stats.gmean(ratios)
        assert found.said == f"times {geometric:.2f} (95% {interval[0]:.2f} to {interval[1]:.2f}, 3 seeds)"
        assert interval[0] > 0
        below = ratio_of("times", ratios, below=4.0, digits=2)
        assert (below.least, below.most) == pytest.approx(tuple(4.0 - interval[::-1]))
        assert ratio_of("times", [2.0], above=1.0, digits=1).said == "times 2.0 (one seed, so no interval)"
        with pytest.raises(ValueError, match="times: a bound is needed"):
            ratio_of("times", ratios, digits=1)

    @pytest.mark.parametrize(
        ("ratios", "counted", "verdict"),
        [
            ([np.nan, np.nan, np.nan], [1.0, 1.0, 1.0], "not reproduced"),
            ([np.nan, 9.0, 8.0], [1.0, 9.0, 8.0], "inconclusive"),
            ([np.nan, 0.5, 9.0], [0.5, 0.5, 9.0], "inconclusive"),  # never is no sooner than late
        ],
    )
    def test_what_never_arrives_is_not_sooner(self, ratios, counted, verdict):
        found, same = (ratio_of("times", one, above=3.0, digits=1) for one in (ratios, counted))
        is_any = not np.isnan(ratios).all()
        assert not is_any or (found.least, found.most) == (same.least, same.most)
        assert found.verdict == verdict
        said = f"{same.said}; 1 of the 3 seeds never reach the required level and count as not faster"
        assert found.said == (said if is_any else "none of the 3 seeds reaches the required level")  # no "times 1.0"

    @pytest.mark.parametrize(("start", "leaves"), [(101.0, False), (101.1, True), (99.0, False)])
    def test_a_chain_leaves_its_start_by_more_than_one_per_cent(self, start, leaves):
        assert claims.leaves_start(start, 100.0) == leaves

    @pytest.mark.parametrize(
        ("happened", "n", "verdict"),
        [(3, 3, "inconclusive"), (6, 6, "reproduced"), (0, 6, "not reproduced"), (8, 10, "inconclusive"),
         (9, 10, "reproduced")],
    )  # fmt: skip
    def test_a_share_of_fits_has_the_exact_binomial_interval(self, happened, n, verdict):
        found = share_of("K = 4 in", [True] * happened + [False] * (n - happened))
        exact = stats.binomtest(happened, n).proportion_ci(0.95, method="exact")
        assert (found.least, found.most) == pytest.approx((exact.low - 0.5, exact.high - 0.5))
        assert found.said == f"K = 4 in {happened} of {n} fits (95% {exact.low:.0%} to {exact.high:.0%})"
        assert found.verdict == verdict


class TestData:
    def test_every_dataset_has_a_name_and_each_simulator_a_model(self, tmp_path):
        assert set(DATASETS) == set(ORIGINS) - {"articles"}
        assert {name for name, one in DATASETS.items() if one.simulate} == {n for n in DATASETS if ORIGINS[n].model}
        about = prepare("aua", tmp_path / "aua", source="simulated", settings={"scale": 0.0005})
        assert (about["title"], about["drawn_from"]) == ("AUA", "MC2")
        assert "AUA-shaped, simulated (MC2)" in (tmp_path / "aua/datasheet.md").read_text()
        settings = {"scale": 0.0005, "drawn_from": "correlated"}
        about = prepare("aua", tmp_path / "other", source="simulated", settings=settings)
        assert about["drawn_from"] == "correlated topics, bursty words"

    def test_captions_say_from_which_model_data_were_drawn(self):
        drawn = {"nips": {"source": "simulated", "scale": 0.2}, "w100": {"source": "simulated", "scale": 0.1}}
        about = "NIPS: simulated (MC2), 0.2 of the paper's size. "
        about += "W100: simulated (mixture of multinomials), 0.1 of the paper's size."
        assert say_sources(drawn) == about
        assert say_sources(drawn, "MC2") == f"{about} Data drawn from MC2 cannot support claims in favour of MC2."
        assert say_sources({"nips": {"source": "real"}}, "MC2") == "NIPS: real."


class TestClaims:
    def test_a_claim_is_supported_if_all_its_statistics_are(self):
        sure = mean_of("sure", [-9.0, -9.1, -9.2], below=0, digits=1)
        near = mean_of("near", [-1.0, -1.1, -1.2], below=0, digits=1)
        tied = mean_of("tied", [-1.0, 0.0, 1.1], below=0, digits=1)
        against = mean_of("against", [1.0, 1.1, 1.2], below=0, digits=1)
        for statistics, verdict, name in (
            ([sure, near], "reproduced", "near"),
            ([sure, tied, near], "inconclusive", "tied"),
            ([tied, against, sure], "not reproduced", "against"),
        ):
            claim = judge("NIPS", "all below 0", statistics, "numbers")
            assert claim.verdict == verdict
            assert claim.said.startswith(f"numbers: {name} ")
            assert (claim.numbers, claim.reason.split()[0]) == ("numbers", name)

    def test_verdicts_say_on_what_kind_of_data_they_are(self):
        """Real data or data drawn as the paper draws them; another kind; drawn from the model that is to win."""
        differences = [mean_of("x", pair, below=0, digits=1) for pair in ([-1.0, -1.1], [1.0, 1.1], [-1.0, 1.1])]
        claims = [judge("NIPS", "MC2 has a lower perplexity than HDP", [one], favours="MC2") for one in differences]
        simulated = "simulated (correlated topics, bursty words)"
        own, elsewhere = ["reproduced", "not reproduced"], ["supported", "contradicted"]
        for dataset, corpus, label, verdicts in (
            ("nips", {"source": "real", "drawn_from": "mc2"}, "real", own),
            ("nips", {"source": "real excerpt"}, "real excerpt", elsewhere),
            ("letters", {"source": "simulated"}, "drawn as in the paper (MC2)", own),
            ("ohsumed", {"source": "real"}, "real, of no paper", elsewhere),
            ("nips", {"source": "simulated", "drawn_from": "correlated"}, simulated, elsewhere),
            ("w100", {"source": "simulated"}, "simulated (mixture of multinomials)", elsewhere),
        ):
            found = on_data(claims, {"NIPS": data_of(dataset, corpus)})
            assert {one.data for one in found} == {label}
            assert [one.verdict for one in found] == [*verdicts, "inconclusive"]
            assert [one.said for one in found] == [one.said for one in claims]
        found = on_data(claims, {"NIPS": data_of("nips", {"source": "simulated", "drawn_from": "mc2"})})
        assert {one.verdict for one in found} == {"not testable on these data"}
        assert found[0].reason.startswith("the data were drawn from MC2, which the claim favours; x -1.1 (95%")

    def test_what_a_simulator_sets_is_not_testable_on_its_data(self):
        told = judge("NIPS", "tens of clusters", [mean_of("x", [1.0, 1.1], above=0, digits=1)], favours=ANY_SIMULATOR)
        bursty = {"source": "simulated", "drawn_from": "correlated"}
        (found,) = on_data([told], {"NIPS": data_of("nips", bursty)})
        assert found.verdict == "not testable on these data"
        assert found.reason == f"the simulator determines the claimed effect; {told.reason}"
        assert on_data([told], {"NIPS": Data("real", True)})[0].verdict == "reproduced"

    def test_claims_without_a_verdict_and_of_our_variants(self):
        drawn = {"NIPS": data_of("nips", {"source": "simulated", "drawn_from": "mc2"})}
        absent = [unmet("NIPS", "below HDP", "no fit of HDP"), not_run("NIPS", "16 cores", "needs 16 cores")]
        assert [one.verdict for one in on_data(absent, drawn)] == ["precondition not met", "not run"]
        ours = judge("NIPS", "x", [mean_of("x", [1.0, 1.1], above=0, digits=1)], whose="our variant")
        assert on_data([ours], {"NIPS": Data("real", True)})[0].verdict == "supported"

    def test_a_reason_against_counting_only_removes_support(self):
        for sign, verdict in ((1.0, "not testable on these data"), (-1.0, "not reproduced")):
            claim = judge("NIPS", "x", [mean_of("x", [sign, 1.1 * sign], above=0, digits=1)])
            assert unless(claim, "") == claim
            found = unless(claim, "the rival learns nothing")
            assert found.verdict == verdict
            assert found.reason.startswith("the rival learns nothing; x ") == (sign > 0)

    @pytest.mark.parametrize(("number", "sign"), [(29, 1.0), (29, -1.0), (30, 1.0)])
    def test_a_claim_about_too_few_documents_is_not_tested(self, number, sign):
        claim = judge("NIPS", "x", [mean_of("x", [sign, 1.1 * sign], above=0, digits=1)])
        found = claims.too_few(claim, number, "documents with a context")
        if number == 30:
            assert found == claim
            return
        assert found.verdict == "not testable on these data"
        assert found.reason == f"there are 29 documents with a context, fewer than the required 30; {claim.reason}"
        absent = unmet("NIPS", "x", "no fit")
        assert claims.too_few(absent, 1, "documents") == absent

    @pytest.mark.parametrize(("per_class", "is_tested"), [(4.9, False), (5.0, True)])
    def test_every_claim_by_classes_needs_five_documents_per_class(self, per_class, is_tested):
        judged = [judge("NIPS", "x", [mean_of("x", [sign, 1.1 * sign], above=0, digits=1)]) for sign in (1.0, -1.0)]
        data = {"NIPS": Data("real, of no paper", per_class=per_class)}
        found = on_data([*judged, unmet("NIPS", "x", "no fit")], data)
        assert found[-1].verdict == "precondition not met"
        assert {one.verdict == "not testable on these data" for one in found[:2]} == {not is_tested}
        why = "" if is_tested else "there are 4.9 documents per class, fewer than the required 5; "
        assert found[0].reason == f"{why}{judged[0].reason}"

    def test_a_claim_under_a_choice_keeps_its_own_size(self):
        claim = judge("NIPS", "x", [mean_of("x", [1.0, 1.1], above=0, digits=1)])
        tried = claims.under("v = 1", [claim], "icml2014_table1", "1 sweep", "short chains")
        of = {"NIPS": Data("real, of no paper", size="33 documents", limits="few documents")}
        found = on_data([claim, *tried, *claims.under("v = 2", [claim], "icml2014_table1")], of)
        assert [(one.text, one.verdict, one.whose, one.size, one.limits) for one in found] == [
            ("x", "supported", "paper", "33 documents", "few documents"),
            ("v = 1: x", "supported", "open choice", "1 sweep", "short chains"),
            ("v = 2: x", "supported", "open choice", "33 documents", "few documents"),
        ]

    def test_targets_that_are_judged_by_classes_say_so(self):
        """Their corpora have the number of documents per class by which :func:`on_data` decides."""
        assert {name for name, one in targets.registry().items() if one.by_classes} == {
            "icml2014_figure5", "icml2014_figure6", "icml2014_table3", "labelled_contexts_help", "labelled_table1",
            "nips2012_figure1", "nips2012_table2", "uai2016_table4",
        }  # fmt: skip

    @pytest.mark.parametrize(
        ("values", "claimed", "verdict"),
        [
            ([-0.8, -0.7, -0.6], 0.0, "smaller than claimed"),  # below zero, not by 1 %
            ([-1.5, -1.4, -1.3], 0.0, "reproduced"),
            ([-1.4, -1.2, -1.0], 0.0, "inconclusive"),  # below zero; 1 % lies in the interval
            ([-1.4, -1.2, -1.0], 21.3, "smaller than claimed"),  # less than is printed
            ([-1.5, -1.4, -1.3], 21.3, "reproduced"),  # the claim is that of a sign
            ([-2.9, 0.1, 0.2], 21.3, "inconclusive"),
            ([-0.1, 0.0, 0.1], 21.3, "not reproduced"),  # no gain that counts is in the interval
            ([0.6, 0.7, 0.8], 21.3, "not reproduced"),
        ],
    )
    def test_sign_and_size_of_a_gain_are_judged_apart(self, values, claimed, verdict):
        change = mean_of("change, %", values, below=0, digits=1, size=1.0, claimed=claimed)
        (found,) = on_data([judge("NIPS", "lower", [change])], {"NIPS": Data("real", True)})
        assert found.verdict == verdict
        both = judge("NIPS", "lower", [change, mean_of("sure", [-9.0, -9.1], below=0, digits=1)])
        assert both.verdict == verdict

    def test_a_perplexity_is_lower_by_the_per_cent_that_count(self):
        titles, words = pd.Series([1986.0, 1985.0, 1987.0]), pd.Series([2000.0, 2000.0, 2000.0])
        found = claims.change(titles, words, "title against words")
        assert found.verdict == "smaller than claimed"
        assert found.said == "change of perplexity in %, title against words, -0.7 (95% -0.8 to -0.6, 3 seeds)"

    @pytest.mark.parametrize(
        ("clusters", "said"),
        [
            ([33, 33], "SVI puts each of 33 documents in a cluster of its own"),
            ([1, 1], "SVI puts all documents in one cluster"),
            ([1, 2], ""),
            ([33, 32], ""),
        ],
    )
    def test_no_clustering_is_one_cluster_or_one_per_document(self, clusters, said):
        assert claims.degenerate(clusters, 33, "SVI") == said

    def test_a_claim_on_a_dataset_its_target_lacks_is_refused(self):
        why = "the claim 'x' is on 'NIP', but its target has no dataset of this name; did you mean 'NIPS'"
        with pytest.raises(ValueError, match=why):
            on_data([unmet("NIP", "x", "")], {"NIPS": Data("real")})

    def test_claims_follow_from_rules_and_their_targets_name_data(self):
        """Only report.claims makes a Claim, from statistics with intervals; its data come from what the target
        names."""
        texts = {path: path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py")}
        made = [path for path, text in texts.items() if re.search(r"\bClaim\(", text)]
        assert made == [ROOT / "src/mc2papers/report/claims.py"]
        for target in targets.registry().values():
            assert not target.has_claims or target.datasets or target.draws, target.name
            assert {*target.datasets, *target.draws} <= set(ORIGINS)

    def test_claims_are_written_with_their_target_data_and_verdict(self, tmp_path):
        values = np.array([1.0, 1.2, 1.1])
        judged = [judge("NIPS", "A below B", [mean_of("x", sign * values, below=0, digits=1)]) for sign in (-1, 1)]
        judged.append(unmet("NIPS", "A below C", "no fit of C"))
        claims.write_claims(tmp_path / "c.csv", "icml2014_table1", on_data(judged, {"NIPS": Data("real", True)}))
        rows = pd.read_csv(tmp_path / "c.csv")
        assert list(rows) == [
            "target", "dataset", "data", "size", "limits", "whose", "claim", "verdict", "numbers", "reason",
        ]  # fmt: skip
        assert rows["verdict"].tolist() == ["reproduced", "not reproduced", "precondition not met"]
        assert set(rows["whose"]) == {"paper"}
        assert set(rows["data"]) == {"real"}
        assert rows["reason"][0] == "x -1.1 (95% -1.3 to -0.9, 3 seeds)"
        claims.write_claims(tmp_path / "none.csv", "icml2014_table1", [])
        assert pd.read_csv(tmp_path / "none.csv").empty
