"""Do contexts help: gains by contexts of real corpora, paired by seed, next to contexts of random documents."""

import itertools

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from helpers.configurations import configured
from helpers.paths import ROOT

from mc2core.corpus import Corpus
from mc2papers import inputs, targets
from mc2papers.datasets.origins import ORIGINS
from mc2papers.labelled import contexts_help
from mc2papers.labelled.contexts_help_fits import fits_with_contexts
from mc2papers.report.captions import DOCUMENT_LEVEL

NAME = "labelled_contexts_help"
PAPER = ROOT / "workflow/paper"
PRINTED = {("ICML 14, table 3", name): 0.1 for name in ("purity", "nmi", "rand_index", "f_score")}
PRINTED |= {("ICML 14, table 2", "perplexity"): -6.4, ("UAI 16, table 2, MeSH", "perplexity"): -6.3}


def fits():
    """The context adds 0.5 to agreement and takes 2 % from perplexity, in two seeds that differ by 0.02."""
    rows = []
    for method, given, seed in itertools.product(
        ("MC2", DOCUMENT_LEVEL, "SVI-MC2"), ("words", "context", "random"), (0, 1)
    ):
        gain = (0.5 + 0.02 * seed - 0.01) * (given == "context")
        columns = (
            "purity", "nmi", "rand_index", "f_score", "recommended_ari", "recommended_nmi", "fixed_ari", "fixed_nmi",
        )  # fmt: skip
        rows.append(
            {"dataset": "cora", "context": "citation", "method": method, "given": given, "seed": seed}
            | {"documents": 100, "classes": 7, "perplexity": 100.0 - 2 * (given == "context") + 50 * seed}
            | dict.fromkeys(columns, 0.1 * seed + gain)
        )
    k_means = [
        one | {"method": "K-means", "fixed_ari": one["fixed_ari"] + 0.15 * (one["given"] == "context")}
        for one in rows[:6]
    ]
    empty = dict.fromkeys((*columns[:6], "fixed_nmi", "perplexity"))
    return pd.DataFrame([*rows, *(one | empty for one in k_means)])


def test_gains_are_paired_by_seed():
    table = contexts_help.gains(fits()).set_index(["method", "given", "measure"])
    assert table.loc[("MC2", "context", "recommended_ari"), "gain"] == pytest.approx(0.5)
    # Student's t of two values: 12.7 standard errors of 0.01
    assert table.loc[("MC2", "context", "fixed_ari"), "most"] - 0.5 == pytest.approx(0.12706, rel=1e-3)
    assert table.loc[("MC2", "context", "perplexity"), "gain"] == pytest.approx(-(2 / 100 + 2 / 150) * 50)
    assert table.loc[("MC2", "random", "recommended_ari"), "gain"] == 0.0
    assert ("K-means", "context", "recommended_ari") not in table.index
    # 100 documents are too few for 21 classes
    assert set(contexts_help.gains(fits().assign(classes=21))["measure"]) == {"perplexity"}
    assert table.loc[("K-means", "context", "fixed_ari"), "gain"] == pytest.approx(0.65)


def test_conclusion_counts_what_is_above_zero():
    said = contexts_help.conclude(contexts_help.gains(fits()))
    assert said.startswith(
        "With the context, the ARI of the recommended clusters is higher (95% interval above zero) in 1"
    )
    assert f"1 of 1 cases for {DOCUMENT_LEVEL}" in said
    assert said.count("with the contexts of random documents in 0, 0 and 0.") == 2
    assert said.count(". ") == 1  # two sentences


def test_claims_of_the_papers_and_ours_are_apart():
    found = contexts_help.judge_contexts(fits(), PRINTED)
    papers = {one.of: one for one in found if one.whose == "paper"}
    assert set(papers) == {"icml2014_table2", "icml2014_table3", "uai2016_table2", "uai2016_table4"}
    assert papers["icml2014_table3"].verdict == papers["uai2016_table4"].verdict == "reproduced"
    # 1.7 % lower, 95 % -5.9 to +2.6 in two seeds
    assert papers["icml2014_table2"].verdict == "inconclusive"
    assert papers["icml2014_table2"].numbers == "with citation 123.0, without 125.0; printed -6.4%"
    ours = {one.text.removeprefix(f"{DOCUMENT_LEVEL}: "): one for one in found if one.whose != "paper"}
    assert len(ours) == 5
    assert (
        ours[
            "the ARI of the recommended clusters is higher with citation than with citation taken from random documents"
        ].verdict
        == "reproduced"
    )
    behind = ours["with K fixed, the ARI with citation is at least the ARI of K-means with words and context"]
    assert (behind.verdict, behind.numbers) == ("not reproduced", "ARI with K fixed 0.550 against 0.700")
    # years are no tags, and paragraphs without classes have no agreement
    other = contexts_help.judge_contexts(fits().assign(dataset="sotu", context="year", classes=0), PRINTED)
    assert [one.text for one in other] == [
        f"{DOCUMENT_LEVEL}: the perplexity is lower with year than with the words alone"
    ]


def test_the_study_is_written_as_a_figure_and_a_table(tmp_path):
    fits().to_csv(tmp_path / "cora.csv", index=False)
    files = {"fits": [str(tmp_path / "cora.csv")], "paper": [str(PAPER / f"{NAME}.csv")]}
    targets.make(NAME, files, {"seeds": 2}, {"cora": {"source": "real"}}, tmp_path / NAME)
    target = targets.registry()[NAME]
    written = {one.suffix[1:] for one in tmp_path.glob(f"{NAME}.*")}
    assert written == set(target.outputs()) - {"claims"} == {"png", "pdf", "csv", "html", "md", "tex"}
    assert "<li>Conclusion: With the context, the ARI" in (tmp_path / f"{NAME}.html").read_text()
    figure = contexts_help.draw(contexts_help.gains(fits()))
    assert len(figure.legends[0].get_texts()) == 8  # four methods, each with its context at random


def test_each_seed_has_one_fit_of_words_and_contexts_at_random():
    """The context tells the class and the words tell nothing: the context alone finds it, at random it does not."""
    rng = np.random.default_rng(0)
    classes = np.arange(120) % 2
    words = sp.csr_matrix(rng.poisson(0.5, (120, 12)) + np.eye(1, 12, dtype=int))
    tags = sp.csr_matrix(np.eye(2, dtype=int)[classes] * 8)
    corpus = Corpus(words, contexts={"tag": tags, "number": rng.normal(size=120)}, labels=classes)
    fit = {"model": "mc2", "engine": "gibbs", "settings": {"document_level": False, "kernel": "collapsed"}}
    fit |= {"iterations": 20, "burn_in": 10, "thin": 5}
    families = {"tag": {"family": "dirichlet", "concentration": 0.1}, "number": {"family": "normal_gamma"}}
    runs = {one: {"method": "MC2", "fit": fit | {"contexts": {one: families[one]}}} for one in families}
    table = fits_with_contexts(corpus, runs, seeds=2, tokens=round(0.9 * corpus.n_tokens))
    assert set(table["documents"]) == {108}
    cells = table.set_index(["context", "method", "given"])
    assert len(cells.loc["tag", "MC2", "context"]) == 2
    assert (cells.loc[("tag", "MC2", "context"), "fixed_ari"] > 0.9).all()
    assert (cells.loc[("tag", "MC2", ["words", "random"]), "fixed_ari"] < 0.3).all()
    words_alone = [cells.loc[(one, "MC2", "words"), "perplexity"].tolist() for one in families]
    assert words_alone[0] == words_alone[1]
    # K-means takes no numbers
    assert set(table.loc[table["method"] == "K-means", "context"]) == {"tag", "number"}
    assert ("number", "K-means", "context") not in cells.index


def test_simulated_corpora_are_left_out():
    simulated, real = configured(), configured("real.yaml")
    target = targets.registry()[NAME]
    assert "nips" in simulated.chosen
    assert target.among(simulated.chosen, simulated) == []
    chosen = target.among(real.chosen, real)
    assert "nips" in chosen
    files = inputs.files_of("contexts help", real, NAME)
    assert files == [f"results/contexts_help/{one}.csv" for one in sorted(chosen)]
    # the length of the study, not that of NIPS
    size = target.sources(real)["nips"]["extent"]
    assert (size["length"], size["repeats"]) == ("60 of 600 sweeps (SVI: 10 epochs)", "5 seeds")
    assert size["documents"] == "samples of 200,000 tokens of all"
    size = target.sources(configured("real.yaml", "printed.yaml"))["cora"]["extent"]
    assert (size.get("documents"), size["length"], size["limits"]) == (None, "600 sweeps (SVI: 10 epochs)", [])


def test_printed_gains_are_those_of_the_printed_tables():
    gains = pd.read_csv(PAPER / "labelled_contexts_help.csv").set_index(["place", "measure"])["gain"]
    first = pd.read_csv(PAPER / "icml2014_table1.csv").query("dataset == 'NIPS' and method == 'MC2'")
    perplexity = first.set_index("features")["perplexity"]
    for features, name in (("words+title", "titles"), ("words+authors", "authors"), ("words+timestamp", "timestamp")):
        change = 100 * (perplexity[features] / perplexity["words"] - 1)
        assert gains[f"ICML 14, table 1, {name}", "perplexity"] == pytest.approx(change, abs=0.05)
    images = pd.read_csv(PAPER / "icml2014_table2.csv").query("method == 'MC2'").set_index("features")["perplexity"]
    change = 100 * (images["tags+SIFT"] / images["SIFT"] - 1)
    assert gains["ICML 14, table 2", "perplexity"] == pytest.approx(change, abs=0.05)
    missing = pd.read_csv(PAPER / "icml2014_table3.csv").set_index("missing_percent")
    mesh = pd.read_csv(PAPER / "uai2016_table2.csv").query("dataset == 'PubMed' and method == 'SVI-MC2'")
    mesh = mesh.set_index("context_available_percent")["perplexity"]
    assert gains["UAI 16, table 2, MeSH", "perplexity"] == pytest.approx(100 * (mesh[100] / mesh[0] - 1), abs=0.05)
    users = pd.read_csv(PAPER / "uai2016_table4.csv").set_index("context_available_percent")
    for measure in ("rand_index", "f_score"):
        assert gains["ICML 14, table 3", measure] == pytest.approx(missing[measure][0] - missing[measure][100])
    for measure in ("nmi", "purity"):
        printed = missing[measure][0] - missing[measure][100]
        assert gains["ICML 14, table 3", measure] == pytest.approx(printed)
        assert gains["UAI 16, table 4", measure] == pytest.approx(users[measure][100] - users[measure][0])
    batches = pd.read_csv(PAPER / "uai2016_table3.csv").set_index("context_available_percent")["extended_nmi"]
    assert gains["UAI 16, table 3", "nmi"] == pytest.approx(batches[1] - batches[0])


def test_the_documents_show_the_recorded_fits():
    recorded = pd.read_csv(ROOT / "docs/papers/contexts_help.csv")
    table = contexts_help.gains(recorded)
    page = (ROOT / "docs/papers/results.md").read_text(encoding="utf-8")
    assert contexts_help.conclude(table) in " ".join(page.split())
    shown = table[(table["measure"] == "recommended_ari") & (table["given"] == "context")]
    assert len(shown)
    for _, one in shown.iterrows():
        start = f"| {ORIGINS[one['dataset']].title} ({one['documents']:,}, {one['classes']}), {one['context']} |"
        (line,) = (line for line in page.splitlines() if line.startswith(start))
        assert f" {round(one['gain'], 2) + 0.0:+.2f} ± {one['most'] - one['gain']:.2f} |" in line
