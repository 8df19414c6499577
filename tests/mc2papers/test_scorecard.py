"""The scorecard: printed numbers, the choice of data, sentences, and that documents agree with the stored table."""

import re

import pandas as pd
import pytest
from helpers.paths import ROOT

from mc2papers import targets
from mc2papers.report import scorecard
from mc2papers.report.claims import VERDICTS

NOTHING = scorecard.recorded().iloc[:0]


def claim(claim, verdict, data="real", dataset="NIPS", target="icml2014_table1", numbers="", reason="x 1 (95% 0 to 2)"):
    return {
        "target": target, "dataset": dataset, "data": data, "whose": "paper", "claim": claim, "verdict": verdict,
        "numbers": numbers, "reason": reason, "size": "all 1,740 documents", "limits": "short chains",
    }  # fmt: skip


HDP = "MC2 without contexts has a lower perplexity than HDP"
NPTOT = "MC2 has a lower perplexity than npTOT, with any features"


def card(*claims):
    return scorecard.scorecard(pd.DataFrame(list(claims)))


@pytest.fixture
def nothing_recorded(monkeypatch):
    monkeypatch.setattr(scorecard, "recorded", lambda: NOTHING)


def test_headlines_have_the_printed_numbers_of_the_papers_tables():
    for _, one in scorecard.headlines().iterrows():
        assert one["target"] in targets.registry()
        assert one["target"].startswith(one["paper"])
        path = ROOT / f"workflow/paper/{one['target']}.csv"
        if path.is_file():
            known = {float(text) for text in re.findall(r"[\d.]+\d", path.read_text().replace(",", " , "))}
            known |= {round(value, 1) for value in known} | {1.3, 1.5, 7.8, 32.0, 8.0, 100.0, 1000.0}  # ratios and K
            printed = [float(text.replace(",", "")) for text in re.findall(r"\d[\d,]*\.?\d*", one["printed"])]
            assert set(printed) <= known, one["headline"]
    assert 18 <= len(scorecard.headlines()) <= 27


def test_real_data_come_before_others_and_a_verdict_before_none(nothing_recorded):
    simulated = claim(HDP, "contradicted", "simulated (correlated topics, bursty words)", numbers="MC2 2, HDP 1; more")
    real = claim(HDP, "not reproduced", numbers="by something: MC2 4, HDP 3; unigrams 9")
    (row,) = card(simulated, real).to_dict("records")
    ours = "MC2 4, HDP 3; by something"
    assert (row["verdict"], row["data"], row["ours"], row["recorded"]) == ("not reproduced", "real", ours, "")
    (row,) = card(simulated, real | {"verdict": "precondition not met", "numbers": ""}).to_dict("records")
    assert (row["data"], row["ours"]) == ("real", "x 1")
    # rows of a paper: real data first, whatever the order of the headlines
    both = card(simulated, claim(NPTOT, "reproduced"))
    assert both["data"].tolist() == ["real", "simulated (correlated topics, bursty words)"]


def test_a_recorded_real_verdict_replaces_a_simulated_one(monkeypatch):
    old = pd.DataFrame([claim(HDP, "not reproduced") | {"run": "real", "date": "27 November 2026", "commit": "abc"}])
    monkeypatch.setattr(scorecard, "recorded", lambda: old)
    simulated = claim(HDP, "contradicted", "simulated (mixture of multinomials)")
    assert card(simulated)["recorded"].tolist() == ["27 November 2026"]
    (row,) = card(simulated, claim(HDP, "inconclusive"))[["verdict", "recorded"]].to_numpy().tolist()
    assert row == ["inconclusive", ""]


def test_three_sentences_say_what_was_reproduced_on_which_data(nothing_recorded):
    table = card(
        claim(HDP, "not reproduced"),
        claim(NPTOT, "reproduced"),
        claim("MC2 has its lowest perplexity with timestamps", "not testable on these data", "simulated (MC2)"),
    )
    assert scorecard.sentences(table, "icml2014") == [
        "Reproduced: MC2 predicts held-out papers better than npTOT.",
        "Not reproduced: MC2 without contexts predicts held-out papers better than "
        "the hierarchical Dirichlet process (HDP).",
        "These verdicts are based on real data (NIPS). Verdicts limited by short chains: 2 of 2. "
        "Claims without a verdict: 1 of 3.",
    ]
    assert scorecard.sentences(table, "uai2016") == []


def test_numbers_that_decide_are_not_cut_off(nothing_recorded):
    numbers = "words 2,237.6, words+title 2,222.2, words+authors 2,210.9, words+timestamp 2,225.7"
    table = card(claim("MC2 has its lowest perplexity with timestamps", "inconclusive", numbers=numbers))
    assert table["ours"].tolist() == [numbers]
    assert "…" not in (ROOT / "docs/papers/results.md").read_text(encoding="utf-8").partition("end of the scorecard")[0]


def test_numbers_name_a_method_in_place_of_the_papers(nothing_recorded):
    numbers = "by plain estimates, since nothing moves: VI at 64 bits 6.57, 128 bits 6.63; without 2 seeds"
    (row,) = card(claim(HDP, "inconclusive", numbers=numbers)).to_dict("records")
    assert row["ours"] == "VI at 64 bits 6.57, 128 bits 6.63; by plain estimates, since nothing moves"


def test_a_claim_without_a_verdict_says_why(nothing_recorded):
    why = "npTOT is 55% above HDP; MC2 less npTOT -1 (95% -2 to -0)"
    more = {"not testable on these data": "; npTOT is 55% above HDP", "reproduced": "", "inconclusive": ""}
    for verdict, added in more.items():
        table = card(claim(NPTOT, verdict, numbers="MC2 3, npTOT 4; unigrams 9", reason=why))
        assert table["ours"].tolist() == [f"MC2 3, npTOT 4{added}"]
    alone = card(claim(NPTOT, "not run", reason="Spark is not available"))
    assert alone["ours"].tolist() == ["Spark is not available"]
    why = "timed while other work ran; times 3 (95% 2 to 4)"
    timed = card(claim(NPTOT, "inconclusive", numbers="3 times", reason=why))
    assert timed["ours"].tolist() == ["3 times; timed while other work ran"]


ONE = "x 1 (one seed, so no interval)"


def under(choice, verdict, **more):
    return claim(f"{choice}: {HDP}", verdict) | {"whose": "open choice"} | more


def test_a_choice_that_meets_a_claim_is_named_and_counted(nothing_recorded):
    choices = {"start from 4 topics": "not reproduced", "v = 1": "reproduced", "v = 2": "inconclusive"}
    tried = [under(*one) for one in choices.items()]
    table = card(claim(HDP, "not reproduced"), claim(NPTOT, "reproduced"), *tried)
    assert table["verdict"].tolist() == ["reproduced under an open choice", "reproduced"]
    assert table["choices"].tolist() == ["under an open choice: v = 1 (1 of 3 choices tried)", ""]
    assert scorecard.said_counts(table) == "1 reproduced, 1 reproduced under an open choice"
    said = " ".join("\n".join(scorecard.markdown(table)).split())
    assert "**reproduced under an open choice**: MC2 without contexts" in said
    assert "Under an open choice: v = 1 (1 of 3 choices tried). Data: NIPS, real" in said
    positive, negative, _ = scorecard.sentences(table, "icml2014")
    assert "Reproduced under an open choice: MC2 without contexts predicts" in positive
    assert negative == "No main claim with a verdict fails."
    # a claim that is reproduced as it is needs no choice
    assert card(claim(HDP, "reproduced"), *tried)["choices"].tolist() == [""]


OPEN, FAILS, ALONE = {"verdict": "inconclusive"}, {"verdict": "not reproduced"}, "the only open choice tried (v = 1)"
OF_ONE = OPEN | {"reason": ONE}
NO_INTERVAL = "because one fit has no interval; the number"
DISAGREES = f"{NO_INTERVAL} does not agree with the claim"
AGREES = f"{ONE}; the value of the only fit agrees"


@pytest.mark.parametrize(
    ("tried", "said"),
    [
        ([OPEN, FAILS | {"size": ""}], "none of the 2 open choices tried supports the claim"),
        ([{"verdict": "precondition not met"}], f"{ALONE} does not support the claim"),
        (
            [OF_ONE | {"size": "1 seed", "reason": AGREES}, OF_ONE | {"size": "1 seed"}],
            f"none of the 2 open choices tried (1 seed) has a verdict, {NO_INTERVAL} agrees with the claim under v = 1",
        ),
        ([OF_ONE], f"{ALONE} has no verdict, {DISAGREES}"),
        ([OF_ONE, OF_ONE], f"none of the 2 open choices tried has a verdict, {DISAGREES} under any of them"),
        ([OF_ONE, FAILS], "none of the 2 open choices tried supports the claim"),
        ([{"verdict": "reproduced", "data": "simulated (MC2)"}], ""),  # on other data than the claim
        ([{"verdict": "reproduced", "claim": f"v = 1: {NPTOT}"}], ""),  # of another claim
    ],
)  # fmt: skip
def test_no_choice_that_meets_a_claim_leaves_its_verdict(tried, said, nothing_recorded):
    choices = [under(f"v = {number}", **one) for number, one in enumerate(tried, 1)]
    row = card(claim(HDP, "not reproduced"), *choices).iloc[0]
    assert (row["verdict"], row["choices"]) == ("not reproduced", said)


def test_choices_of_this_run_come_before_recorded_ones(monkeypatch):
    old = pd.DataFrame([under("v = 1", "reproduced"), under("v = 2", "reproduced")]).assign(date="1 May 2026")
    monkeypatch.setattr(scorecard, "recorded", lambda: old)
    row = card(claim(HDP, "inconclusive"), under("v = 1", "not reproduced")).iloc[0]
    assert (row["verdict"], row["choices"]) == ("inconclusive", f"{ALONE} does not support the claim")
    (choices,) = card(claim(HDP, "inconclusive"))["choices"]
    assert choices == "under an open choice: v = 1; v = 2 (2 of 2 choices tried)"
    (alone,) = card(claim(HDP, "inconclusive"), under("v = 1", "reproduced"))["choices"]
    assert alone == "under an open choice: v = 1 (the only choice tried)"


def with_run(monkeypatch, new, *old):
    """The recorded claims after a new run."""
    recorded = pd.DataFrame(old).assign(run="old", date="1 May 2026", commit="abc")
    monkeypatch.setattr(scorecard, "recorded", lambda: recorded)
    return scorecard.with_run(pd.DataFrame([new]), "new", "2 May 2026", "def")


def test_claims_under_choices_are_recorded_beside_the_claims(monkeypatch):
    found = with_run(monkeypatch, under("v = 1", "reproduced"), claim(HDP, "inconclusive"))
    assert found["whose"].tolist() == ["paper", "open choice"]


def test_data_are_shown_with_their_size_and_limits_of_verdicts(nothing_recorded):
    (row,) = card(claim(HDP, "not reproduced")).to_dict("records")
    assert scorecard.said_data(row) == "NIPS, real; all 1,740 documents; limits: short chains"
    none = {"verdict": "not run"}
    assert scorecard.said_data(row | none) == "NIPS, real; all 1,740 documents"
    assert scorecard.said_data(row | {"size": "", "limits": ""}) == "NIPS, real"


def test_a_run_is_recorded_in_place_of_an_older_one(monkeypatch):
    old = claim(HDP, "inconclusive"), claim(HDP, "supported", "simulated (MC2)")
    found = with_run(monkeypatch, claim(NPTOT, "reproduced"), *old)[["claim", "data", "run"]].to_numpy().tolist()
    assert found == [[HDP, "simulated (MC2)", "old"], [NPTOT, "real", "new"]]


def test_a_study_replaces_only_its_claims_of_a_target(monkeypatch):
    old = claim(HDP, "inconclusive"), claim(NPTOT, "supported")
    found = with_run(monkeypatch, claim(NPTOT, "reproduced"), *old)
    assert found[["claim", "run"]].to_numpy().tolist() == [[HDP, "old"], [NPTOT, "new"]]


def test_a_claim_on_several_datasets_counts_once():
    rows = [
        claim(HDP, "contradicted", "simulated (MC2)"),
        claim(HDP, "not reproduced"),
        claim(HDP, "not run", "drawn as in the paper (MC2)", "PNAS"),
        claim(NPTOT, "precondition not met"),
        claim(NPTOT, "supported", "simulated (MC2)", "PNAS"),
        claim(NPTOT, "inconclusive") | {"whose": "our variant"},
        claim(HDP, "not run", target="icml2014_table2"),
    ]
    found = scorecard.once(pd.DataFrame(rows))
    assert found[["target", "claim", "verdict"]].to_numpy().tolist() == [
        ["icml2014_table1", HDP, "not reproduced"],
        ["icml2014_table1", NPTOT, "supported"],
        ["icml2014_table2", HDP, "not run"],
    ]


def test_at_most_twelve_claims_of_the_papers_have_no_verdict():
    found = scorecard.once(scorecard.recorded())
    without = found[found["verdict"].isin(["not testable on these data", "precondition not met", "not run"])]
    assert len(without) <= 12
    assert (without["reason"] != "").all()


def test_pages_give_the_same_numbers_of_main_claims():
    card = scorecard.scorecard(scorecard.recorded().iloc[:0].drop(columns="date"))
    count = card["verdict"].value_counts()
    good, bad = (sum(count.get(one, 0) for one in pair) for pair in (("reproduced", "supported"),
                 ("not reproduced", "contradicted")))  # fmt: skip
    paper = " ".join((ROOT / "docs/paper.md").read_text(encoding="utf-8").split())
    assert f"We count {len(card)} main claims" in paper
    said = f"{good} were reproduced or are supported on other data, {bad} were not reproduced or are contradicted"
    assert said in paper
    open_choice = count[[one for one in count.index if one.endswith("under an open choice")]].sum()
    assert f"{open_choice} are reproduced or supported under an open choice" in paper
    assert count.get("smaller than claimed", 0) == paper.count("smaller than claimed")
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"{bad} of the {len(card)} main claims were not reproduced or are contradicted" in changes


def test_pages_give_the_same_times():
    results, paper = ((ROOT / f"docs/{one}").read_text(encoding="utf-8") for one in ("papers/results.md", "paper.md"))
    before = results.partition("### nips2012_table2")[0]
    rows = dict(re.findall(r"^\| (proposals from|exact scores of all) .*?\| (.*) \|$", before, re.M))
    _, thousand, most = map(float, rows["proposals from"].split(" | "))
    exact = float(rows["exact scores of all"].split(" | ")[-1])
    assert f"{thousand} microseconds per document for 1,000 clusters and {most:.0f} for 10,000" in paper
    assert f"exact scores take {exact / most:.1f} times as long" in paper
    times = pd.read_csv(ROOT / "src/mc2papers/report/assets/recorded_times.csv", index_col="configuration")["time"]
    words = {"5": "five", "6": "six"}
    for name, page in (("nips.yaml", "config/nips.yaml"), ("config.yaml", "docs/papers/index.md")):
        assert f"about {words[times[name][0]]} minutes" in (ROOT / page).read_text(encoding="utf-8"), page


def test_the_readme_has_an_entry_per_paper_best_first(nothing_recorded):
    fast = "the time per document of standard collapsed Gibbs is linear in K*"
    kinds = {"target": "nips2012_table1", "dataset": "simulated articles", "data": "simulated (mixture)"}
    table = card(
        claim(NPTOT, "not run"),
        claim(HDP, "not reproduced", numbers="MC2 (one seed) 4, HDP (several K) 3; more"),
        claim(fast.replace("*", ""), "supported", numbers="13.6 times") | kinds,
    )
    runs = [("nips-words", 3.0), ("nips-words", 5.0), ("nips-hdp", 2.0), ("nips-document-level", 1001.4)]
    real = pd.DataFrame(runs, columns=["run", "perplexity"])
    level, fastex, mc2 = " ".join("\n".join(scorecard.found(table, real)).split()).split("- **")[1:]
    assert fastex.startswith("[NIPS 2012: FastEx](docs/papers/results.md#nips-2012)**, 1 main claim: 1 supported.")
    assert "2 main claims: 1 not reproduced, 1 not run. Not reproduced: MC2 without contexts" in mc2
    assert "Published: perplexity 1,583.2, HDP 1,922.1. Ours: MC2 4, HDP (several K) 3 (NIPS, real)." in mc2
    assert "4 for MC2, 2 for the HDP, 1,001 for our document level." in level
    again = pd.concat([real, pd.DataFrame({"run": ["nips-repeats"], "perplexity": [7.0]})])
    assert ", 7 for repeated words too (200 sweeps)." in " ".join(" ".join(scorecard.found(table, again)).split())
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= 700


def test_pages_give_the_perplexities_of_recorded_fits():
    mean = pd.read_csv(ROOT / "docs/papers/real.csv").groupby("run")["perplexity"].mean()
    for page in ("docs/paper.md", "docs/papers/index.md", "docs/papers/results.md"):
        text = (ROOT / page).read_text(encoding="utf-8")
        for run in ("nips-words", "nips-hdp", "nips-document-level", "nips-repeats"):
            assert f"{mean[run]:,.0f}" in text, (page, run)


def test_documents_have_the_scorecard_of_the_recorded_runs():
    """Made again by python -m mc2papers.report.scorecard docs README.md."""
    assert set(scorecard.recorded()["verdict"]) <= set(VERDICTS)
    for path, text in scorecard.documents(ROOT / "docs", ROOT / "README.md").items():
        assert path.read_text(encoding="utf-8") == text, path


def test_counts_do_not_depend_on_the_order_of_datasets():
    known = scorecard.recorded()
    counted_once = scorecard.once(known).set_index(["target", "claim"])
    mixed = scorecard.once(known.sample(frac=1.0, random_state=0)).set_index(["target", "claim"])
    assert counted_once["dataset"].to_dict() == mixed["dataset"].to_dict()
    # equally good data: the dataset of the scorecard decides
    by_tags = "icml2014_table2", "MC2 with tags has a lower perplexity than MC2 without tags"
    assert counted_once.loc[by_tags, "dataset"] == "Cora"
