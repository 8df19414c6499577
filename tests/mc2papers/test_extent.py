"""What verdicts rest on: documents, chains and seeds, from the settings of a run beside those of the papers."""

import json
import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from helpers.configurations import configured
from helpers.paths import ROOT

from mc2core.corpus import Corpus
from mc2papers import configuration, targets
from mc2papers.datasets.origins import ORIGINS
from mc2papers.report import extent


def said(whole, name, dataset, documents):
    found = targets.registry()[name].sources(whole)[dataset]["extent"]
    assert json.loads(json.dumps(found)) == found  # a parameter of a rule
    return extent.said(found, documents)


def test_the_papers_sizes_are_those_of_its_configuration():
    counts = pd.read_csv(ROOT / "workflow/paper/datasets.csv")
    counts = counts[counts["quantity"].str.endswith("documents")]
    printed = {}
    for dataset, count in zip(counts["dataset"], counts["count"], strict=True):
        number = float(re.search(r"[\d.,]+", count)[0].replace(",", "")) * (10**6 if "million" in count else 1)
        printed[dataset] = printed.get(dataset, 0) + round(number)
    printed["letters"] = configuration.read_yaml(ROOT / "config/config.yaml")["corpora"]["letters"]["n_documents"]
    sweeps = {name: configured(*files).config["fit"] for name, files in (
        ("icml2014", ["paper.yaml"]), ("uai2016", ["paper.yaml", "uai2016.yaml"]),
    )}  # fmt: skip
    for (paper, dataset), sizes in extent.paper_sizes().items():
        assert sizes.get("documents", printed.get(dataset)) == printed.get(dataset), dataset
        if "sweeps" in sizes and ORIGINS[dataset].in_papers:  # of no paper: the paper's chains of other corpora
            assert sizes["sweeps"] == sweeps[paper][dataset]["iterations"], (paper, dataset)


@pytest.mark.parametrize(
    ("files", "name", "dataset", "documents", "expected"),
    [
        (
            [], "icml2014_table1", "nips", 435,
            ("435 of 1,740 documents, 60 of 600 sweeps, 3 seeds", "few documents, short chains"),
        ),
        (["real.yaml"], "icml2014_table1", "nips", 1740,
         ("all 1,740 documents, 600 sweeps, 3 seeds", "")),
        (["paper.yaml"], "icml2014_table1", "nips", 1740, ("all 1,740 documents, 600 sweeps, 5 seeds", "")),
        (["real.yaml"], "uai2016_figure3", "nips", 1740,
         ("all 1,740 documents, 600 of 1,500 sweeps (SVI: 2 epochs), 3 seeds", "short chains")),
        (["real.yaml"], "uai2016_table3", "pubmed", 580,
         ("580 of 1.4 million documents, 1 epoch, 3 seeds", "few documents")),
        ([], "labelled_table1", "stateunion", 33,
         ("33 documents, 60 of 600 sweeps (SVI: 10 epochs), 3 seeds", "few documents, short chains")),
        ([], "icml2014_figure7", "letters", 400, ("25 to 400 documents, 60 sweeps, 10 repeats", "")),
        ([], "nips2012_table1", "articles", None, ("2,000 documents, 7 sweeps, 3 chains", "")),
        ([], "icml2014_figure2", "letters", 400, ("all 400 documents, 100 sweeps, 6 seeds", "")),
        ([], "icml2014_figure2_sensitivity", "letters", 400, ("all 400 documents, 100 sweeps, 6 seeds", "")),
    ],
)  # fmt: skip
def test_a_verdict_says_what_it_rests_on_and_what_limits_it(files, name, dataset, documents, expected):
    assert said(configured(*files), name, dataset, documents) == expected


def test_studies_count_the_fits_of_the_open_choices_alone():
    """Their rows with other numbers of sweeps, another kernel or a document level are none."""
    found = {
        name: targets.registry()[name].options(configured(), name)
        for name in ("icml2014_table1_sensitivity", "icml2014_figure2_sensitivity")
    }
    of_table = found["icml2014_table1_sensitivity"]
    assert extent.said(of_table["extent"], 1740)[0] == "all 1,740 documents, 40 of 600 sweeps, 1 seed"
    assert len(of_table["choices"]["v = 10,000, fixed"]) == 3
    for name, options in found.items():
        assert len(options["choices"]) == 13, name
        assert not any("(ours)" in one or one.endswith("sweeps") or "with" in one for one in options["choices"])


def test_a_study_without_runs_rests_on_nothing():
    assert targets.registry()["icml2014_figure2_sensitivity"].sources(configured("real.yaml")) == {}


@pytest.mark.parametrize(("documents", "few"), [(869, True), (870, False)])
def test_fewer_than_half_of_the_papers_documents_are_few(documents, few):
    _, limits = extent.said({"paper_documents": 1740, "limits": []}, documents)
    assert limits == ("few documents" if few else "")
    assert extent.said({}, documents) == ("", "")


def test_claims_are_written_with_the_documents_of_their_corpus(tmp_path):
    (tmp_path / "aua").mkdir()
    (tmp_path / "aua/source.json").write_text('{"documents": 2400}')
    Corpus(sp.csr_matrix(np.ones((20, 1), np.int32)), labels=np.arange(20) % 2).save(tmp_path / "aua/train")
    rows = [
        {"dataset": "AUA", "source": "simulated", "seed": seed, "documents": documents,
         "context_available_percent": share,
         **dict.fromkeys(("purity", "nmi", "rand_index", "f_score", "exchanged_purity", "clusters"), 0.1 * share)}
        for share in (0, 1) for seed in (0, 1) for documents in (500, 1000)
    ]  # fmt: skip
    pd.DataFrame(rows).to_csv(tmp_path / "b.csv", index=False)
    files = {"batches": [str(tmp_path / "b.csv")], "paper": [str(ROOT / "workflow/paper/uai2016_table4.csv")]}
    target = targets.registry()["uai2016_table4"]
    whole = configured()
    assert target.corpora(whole) == ["results/corpora/aua"]
    files["of_claims"] = [str(tmp_path / "aua")]
    targets.make(target.name, files, {}, target.sources(whole), tmp_path / "t")
    claims = pd.read_csv(tmp_path / "t_claims.csv")
    assert set(claims["size"]) == {"2,400 of 1 million documents, 1 epoch, 3 seeds"}
    assert set(claims["limits"]) == {"few documents"}
    # shown with the data
    assert (
        "simulated (correlated topics, bursty words); 2,400 of 1 million documents" in (tmp_path / "t.md").read_text()
    )
