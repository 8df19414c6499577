"""Studies: choices that a paper does not print, and a bound on perplexity."""

import itertools
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from mc2core.base import storage
from mc2papers.icml2014 import choices, figure2_sensitivity, table1_sensitivity
from mc2papers.icml2014.word_bound import searched_perplexities

PAPER = Path(__file__).parents[2] / "workflow/paper"


class TestSearch:
    def test_one_solution_is_the_least_over_all_partitions(self):
        words = np.random.default_rng(0).poisson(1.0, (7, 5)) + np.eye(7, 5, dtype=int)

        def perplexity(parts):
            log = 0.0
            for part in set(parts):
                counts = words[[one == part for one in parts]].sum(axis=0)
                log += counts[counts > 0] @ np.log(counts[counts > 0] / counts.sum())
            return np.exp(-log / words.sum())

        for k in (1, 2, 3):
            least = min(perplexity(parts) for parts in itertools.product(range(k), repeat=len(words)))
            found = searched_perplexities(sp.csr_matrix(words), sp.csr_matrix(words), k, 40)
            assert found.loc[0, "training"] == pytest.approx(least, rel=1e-12)

    def test_a_distribution_per_document_is_as_good_as_it_gets(self):
        words = np.array([[4, 0, 0, 0], [0, 1, 1, 0], [2, 2, 2, 0]])  # no document has the last word
        entropy = 2 * np.log(2) + 6 * np.log(3)
        empty = np.zeros((1, 4), int)
        found = searched_perplexities(sp.csr_matrix(words), sp.csr_matrix(np.vstack([empty, words, empty])), 9, 40)
        assert found["solutions"].tolist() == [1, 2, 4, 8, 16, 32, 40]
        assert found["training"].iloc[0] == pytest.approx(np.exp(entropy / words.sum()))
        assert np.isfinite(found["held_out"]).all()

    def test_averaged_solutions_are_below_the_best_one(self):
        """Inside the logarithm, documents and tokens take the best of several solutions: one is no bound on these."""
        rng = np.random.default_rng(1)
        words = sp.csr_matrix(rng.multinomial(40, rng.dirichlet(np.full(12, 0.2), 40)))
        found = searched_perplexities(words, words, 4, 8).set_index("solutions")
        assert found.index.tolist() == [1, 2, 4, 8]
        for name in ("training", "training_by_token", "held_out"):
            assert (found.loc[8, name] < found.loc[1, name]).all()
        assert found.loc[1, "training"] == pytest.approx(found.loc[1, "training_by_token"])


def score(choice, perplexity, *, clusters=20.0, model="mc2", estimator="marginal", in_sample=None):
    return {
        "method": choice, "model": model, "clusters": clusters, "topics": 61.0, "estimator": estimator,
        "perplexity": {estimator: perplexity, "icml14": 3700.0}, "in_sample": in_sample,
    }  # fmt: skip


class TestTable1:
    scores = (
        score("first", 2300.0, clusters=1200.0, in_sample=1900.0),
        score("first", 2310.0, clusters=1000.0, in_sample=1910.0),
        score("v = 10,000, fixed", 2200.0),
        score("document level (ours)", 1700.0, estimator="left_to_right", clusters=40.0),
        score("HDP", 2000.0, model="hdp", estimator="left_to_right", clusters=None),
    )
    found = pd.DataFrame(
        {"clusters": [8, 8, 19, 19], "solutions": [1, 8, 1, 8], "training": [2200.0, 1900.0, 1900.0, 1700.0]}
        | {"training_by_token": [2200.0, 2000.0, 1900.0, 1800.0], "held_out": [2600.0, 2400.0, 2500.0, 2300.0]}
        | {"held_out_by_token": [2600.0, 2200.0, 2500.0, 2223.0]}
    )
    paper = pd.DataFrame({"clusters": [8, 19], "perplexity": [1100.0, 1710.0], "features": ["words+authors", "words"]})

    def test_choices_are_averaged_over_seeds(self):
        table = table1_sensitivity.sensitivity_table(self.scores).set_index("choice")
        assert table.loc["first", ["perplexity", "clusters", "in_sample", "fits"]].tolist() == [2305, 1100, 1905, 2]
        assert table["document_level"].tolist() == [False, False, True, False]
        assert np.isnan(table.loc["HDP", "clusters"])

    def test_conclusion_names_best_choices_and_what_is_reached(self):
        table = table1_sensitivity.sensitivity_table(self.scores)
        said = table1_sensitivity.conclude(table, self.found, self.paper, is_real=True)
        assert 'MC2 as printed is 10.0% above the HDP at best ("v = 10,000, fixed", K 20, M 61)' in said
        assert 'our document level is 15.0% below the HDP at best ("document level (ours)", K 40, M 61)' in said
        assert "none of the 2 printed perplexities with one solution, 1 of the 2 printed perplexities with 8" in said
        assert said.endswith("it reaches none of the 2 printed perplexities; the differences are +30 to +100%.")
        assert "cannot be compared" in table1_sensitivity.conclude(table, self.found, self.paper, is_real=False)

    def test_rows_are_choices_and_solutions_beside_printed_pairs(self):
        table = table1_sensitivity.sensitivity_table(self.scores)
        shown = table1_sensitivity.shown(table, self.found, self.paper)
        assert shown["against HDP"].tolist()[:4] == ["+15.3%", "+10.0%", "-15.0%", "+0.0%"]
        last = "19 word distributions, 8 solutions averaged per token (printed: 1,710.0, words)"
        assert shown[["choice", "p(words)", "training documents"]].iloc[-1].tolist() == [last, "2,223", "1,800"]
        assert len(shown) == 4 + 2 * 3

    def test_every_legend_entry_of_the_picture_has_points(self):
        table = table1_sensitivity.sensitivity_table(self.scores)
        for rows, paper in ((table, self.paper), (table[~table["document_level"]], self.paper[:0])):
            figure = table1_sensitivity.draw(rows, self.found, paper, 19, "")
            above, beside, below, *_ = figure.findobj(lambda one: hasattr(one, "get_yticklabels"))
            assert set(rows["choice"]) <= {one.get_text() for one in below.get_yticklabels()}
            for ax in (above, beside):
                handles, labels = ax.get_legend_handles_labels()
                drawn = [one.get_offsets() if hasattr(one, "get_offsets") else one.get_xydata() for one in handles]
                assert all(np.isfinite(np.asarray(one, float)).all(axis=1).any() for one in drawn)
                assert ("our document level, held out" in labels) == (ax is above and len(paper) > 0)
            lines = {line.get_label().partition(",")[0]: line for line in beside.lines}
            assert lines["training papers"].get_xdata().tolist() == [1, 8]
            assert ("published" in lines) == (len(paper) > 0)


class TestFigure2:
    def table(self, *rows):
        columns = ["choice", "fits", "right_k", "letters_most"]
        return pd.DataFrame(rows, columns=columns)

    def test_conclusion_counts_choices_and_letters_found(self):
        table = self.table(("first", 10, 0, 2), ("v = 1,000, fixed", 10, 8, 3), ("start from 4 topics", 10, 5, 0))
        said = figure2_sensitivity.conclude(table, 4, 13)
        begin = "K = 4 is found in more than half of the fits with 1 of 3 choices (v = 1,000, fixed), and in 0"
        assert said.startswith(begin)
        assert said.endswith("No fit with any choice finds more than 3 of the 13 letters.")
        found = figure2_sensitivity.conclude(self.table(("first", 10, 6, 13)), 4, 13)
        assert found.endswith("All 13 letters are found with first.")

    def test_rows_of_3_and_of_6_fits_share_an_axis_of_shares(self):
        rows = self.table(("first", 6, 6, 0), ("start from 4 topics", 3, 3, 0)).assign(share_right_k=1.0)
        rows = rows.assign(**dict.fromkeys(("large_clusters", "letters", "nmi"), 1.0))
        ax = figure2_sensitivity.draw(rows, 4, 13).axes[0]
        ends = [line.get_xdata()[0] for line in ax.lines if line.get_marker() == "o"]
        assert ends == [1.0, 1.0]
        assert ax.get_xlabel().startswith("share of fits")


@pytest.mark.parametrize(
    ("held_out", "is_real", "verdict"),
    [(990.0, True, "not reproduced"), (980.0, True, "reproduced"), (990.0, False, "not testable on these data")],
)
def test_only_held_out_papers_are_held_against_printed_numbers(held_out, is_real, verdict):
    """On training papers several solutions may be below the printed value, and one solution bounds one sample alone."""
    found = TestTable1.found.assign(clusters=[8, 8, 15, 15], held_out=[1300.0, 1200.0, 1300.0, held_out])
    paper = pd.DataFrame({"clusters": [8.0, 15.0], "perplexity": [1246.3, 984.7]})
    claim = table1_sensitivity.judge_search("NIPS", found, paper, is_real)
    assert (claim.verdict, claim.of) == (verdict, "icml2014_table1")
    best = f"best found {held_out:,.0f} to 1,200 with 8 solutions averaged, on training papers"
    assert claim.numbers.startswith(best)
    if verdict == "not reproduced":
        why = "printed perplexity 984.7 for K = 15; lowest perplexity found 990, 0.5% above the printed one"
        assert claim.reason == why


class TestOpenChoices:
    def run(self, method, *contexts, **settings):
        settings = {"kernel": "collapsed", "document_level": False, "start_topics": 20} | settings
        fit = {"model": "mc2", "contexts": contexts, "iterations": 40, "settings": settings}
        return {"method": method, "fit": fit}

    def test_they_differ_in_unprinted_settings_alone(self):
        runs = [
            self.run("with the year", "year"),
            self.run("v = 1", table_concentration=1),
            self.run("first"),
            self.run("interleaved (ours)", kernel="interleaved"),
            self.run("interleaved, 4 topics", kernel="interleaved", start_topics=4),
            self.run("start from 4 topics", start_topics=4),
            self.run("v = 1, with the year", "year", table_concentration=1),
        ]
        longer = self.run("1,000 sweeps", table_concentration=1)
        longer["fit"]["iterations"] = 1000
        assert choices.open_choices([*runs, longer], "first") == {
            "v = 1": ["v = 1", "v = 1, with the year"],
            "start from 4 topics": ["start from 4 topics"],
        }
        assert choices.open_choices(runs, "left out") == {}

    def test_the_study_of_table_1_judges_its_fits(self, tmp_path, monkeypatch):
        words = sp.csr_matrix(np.random.default_rng(0).poisson(1.0, (60, 40)))
        loaded = SimpleNamespace(content=words, n_documents=60)
        monkeypatch.setattr("mc2core.corpus.Corpus.load", lambda path: loaded)
        model = SimpleNamespace(perplexity=lambda corpus, estimator: 30.0)
        monkeypatch.setattr("mc2core.posterior.Posterior.load", lambda path: model)
        scores = [*self.fits("v = 1", 30, 31), *self.fits("HDP", 35, 36)]
        for place, one in enumerate(scores):
            one |= {"model": "hdp" if one["method"] == "HDP" else "mc2", "test_documents": 60}
            storage.write_json(tmp_path / f"{place}.json", one)
        storage.write_json(tmp_path / "source.json", scores[0])
        files = {
            "corpora": [tmp_path], "scores": [tmp_path / f"{place}.json" for place in range(4)],
            "models": [""] * 4, "paper": [PAPER / "icml2014_table1.csv"],
        }  # fmt: skip
        options = {"n_clusters": [1], "n_starts": 1, "choices": {"v = 1": ["v = 1"]}, "estimators": ["marginal"]}
        extent = {"length": "40 of 600 sweeps", "repeats": "2 seeds", "limits": ["short chains"]}
        _, *claims = table1_sensitivity._build(files, options | {"extent": extent}).claims
        assert [(one.whose, one.of) for one in claims] == [("open choice", "icml2014_table1")] * 2
        assert {one.size for one in claims} == {"120 documents, 40 of 600 sweeps, 2 seeds"}
        assert {one.limits for one in claims} == {"few documents, short chains"}

    @staticmethod
    def fits(method, *perplexities, clusters=20.0, contexts=(), estimator="marginal"):
        about = {"title": "NIPS", "source": "real", "documents": 1740, "topics": 50, "seconds": 1.0, "threads": 1}
        return [
            about | {"method": method, "seed": seed, "contexts": contexts, "clusters": clusters}
            | {"estimator": estimator, "perplexity": {estimator: value}}
            for seed, value in enumerate(perplexities)
        ]  # fmt: skip

    def test_each_is_judged_as_table_1_by_the_fits_that_it_has(self):
        paper = pd.read_csv(PAPER / "icml2014_table1.csv")
        scores = [
            *self.fits("low", 1700, 1702, 1701),
            *self.fits("wide", 1500, 2300, 1600, clusters=700.0),
            *self.fits("high", 2300, 2302, 2301),
            *self.fits("high, with the year", 2000, 2003, 2001, contexts=("year",)),
            *self.fits("HDP", 2000, 2001, 2002, estimator="left_to_right"),
            *self.fits("unigrams", 3000),
        ]
        tried = {"low": ["low"], "wide": ["wide"], "high": ["high", "high, with the year"], "not run": ["not run"]}
        about = ("40 of 600 sweeps", "short chains")
        judged = table1_sensitivity.judge_choices(scores, tried, paper, ["marginal"], *about)
        verdicts = {one.text: one.verdict for one in judged}
        below = "MC2 without contexts has a lower perplexity than HDP"
        of_each = [verdicts[f"{one}: {below}"] for one in ("low", "wide", "high")]
        assert of_each == ["reproduced", "inconclusive", "not reproduced"]
        clusters = "MC2 finds tens of clusters, as printed"
        assert [verdicts[f"{one}: {clusters}"] for one in ("low", "wide")] == ["reproduced", "not reproduced"]
        assert verdicts["high: MC2 with timestamp has a lower perplexity than MC2 without contexts"] == "reproduced"
        assert not any("npTOT" in one or "not run" in one or "authors" in one for one in verdicts)
        (about,) = {(one.whose, one.of, one.size) for one in judged}
        assert about == ("open choice", "icml2014_table1", "40 of 600 sweeps")

    def test_one_fit_has_no_interval_but_its_side_is_said(self):
        paper = pd.read_csv(PAPER / "icml2014_table1.csv")
        scores = [*self.fits("v = 1", 1700), *self.fits("v = 2", 2300, clusters=7.0), *self.fits("HDP", 2000)]
        scores += self.fits("unigrams", 3000)
        judged = table1_sensitivity.judge_choices(scores, {"v = 1": ["v = 1"], "v = 2": ["v = 2"]}, paper, ["marginal"])
        assert {one.verdict for one in judged} == {"inconclusive"}
        assert [one.reason.endswith("agrees") for one in judged] == [True, True, False, False]
