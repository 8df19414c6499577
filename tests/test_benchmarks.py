"""Every benchmark runs, at a size of seconds; figures are written, compared and shown as the README says."""

import bz2
import gzip
import io
import itertools
import json
import math
import os
import re
import sys
import tarfile
import time
import zipfile
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from benchmarks import __main__ as command
from benchmarks import (
    associations,
    cases,
    contexts,
    development,
    embeddings,
    gibbs,
    observations,
    proposals,
    recommended,
    recovery,
    report,
    starts,
    suite,
    waits,
)
from helpers.explored_fits import corpus as explored_corpus
from helpers.paths import DATA_FOLDER

from mc2core import Corpus, Posterior
from mc2core.inference import FastEx
from mc2core.inference.running.loop import fit
from mc2core.models import Mixture
from mc2core.posterior.clustering import variation_of_information
from mc2core.posterior.descent import find_hierarchy
from mc2papers.datasets.simulated import shapes

pytestmark = pytest.mark.usefixtures("short_starts")

PAGE = (
    "<page><title>Topic</title><ns>0</ns><id>1</id><revision><id>2</id><timestamp>2020-01-01T00:00:00Z</timestamp>"
    "<contributor><username>A</username><id>1</id></contributor><text>some words of an article</text></revision></page>"
)
CITATION = (
    '<PubmedArticle><MedlineCitation><PMID Version="1">1</PMID><Article><Journal><JournalIssue><PubDate>'
    "<Year>2005</Year></PubDate></JournalIssue></Journal><ArticleTitle>A title</ArticleTitle><Abstract>"
    "<AbstractText>Some words.</AbstractText></Abstract></Article></MedlineCitation></PubmedArticle>"
)


@pytest.fixture
def dumps(tmp_path):
    """A local data folder with one small dump of each kind."""
    for folder in ("wikipedia", "pubmed"):
        (tmp_path / folder).mkdir()
    small = f"<mediawiki>{PAGE}</mediawiki>".encode()
    (tmp_path / "wikipedia/enwiki-small.xml.bz2").write_bytes(bz2.compress(small))
    small = f"<PubmedArticleSet>{CITATION}</PubmedArticleSet>".encode()
    (tmp_path / "pubmed/small.xml.gz").write_bytes(gzip.compress(small))
    return tmp_path


@pytest.mark.slow
def test_associations_are_counted_really_and_at_random(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(associations, "CORPORA", {"small": lambda _: explored_corpus(120)})
    monkeypatch.setattr(sys, "argv", ["associations", "--permutations", "2", "--cache", str(tmp_path)])
    associations.main()
    told = [[cell.strip() for cell in line.split("|")[1:-1]] for line in capsys.readouterr().out.splitlines()]
    found = {row[1]: [re.fullmatch(r"\d+ -> (\d+) of (\d+)", cell).groups() for cell in row[2:]] for row in told[2:]}
    assert list(found) == [
        f"{how}, {where}" for where in ("in the model", "not in the model") for how in ("real", "permuted")
    ]
    for name, cells in found.items():
        notable, shown = (sum(int(cell[i]) for cell in cells) for i in (0, 1))
        assert shown > 10
        assert notable <= shown / 20 if name.startswith("permuted") else notable >= 5
    assert len(list(tmp_path.rglob("*.npz"))) == 3


def marks(one):
    yield from [pytest.mark.needs("spark")] if one.needs == "spark" else []
    if one.name != "gibbs-parallel":  # one of them in the default lane
        yield pytest.mark.slow
    if one.name.startswith("quality"):
        yield pytest.mark.skipif(
            not DATA_FOLDER.is_dir(), reason=f"the real files are not in {DATA_FOLDER} (set MC2_DATA_FOLDER)"
        )


@pytest.mark.parametrize(
    "one", [pytest.param(one, id=name, marks=[*marks(one)]) for name, one in suite.BENCHMARKS.items()]
)
def test_each_runs_and_gives_figures(one, dumps, monkeypatch):
    process_seconds, stored = cases.process_seconds, os.environ.get("NUMBA_CACHE_DIR", "")
    monkeypatch.setattr(cases, "process_seconds", lambda code, _: process_seconds(code, stored))  # compiles nothing
    data_folder = DATA_FOLDER if one.name.startswith("quality") else dumps
    assert cases.lacks(one.needs, data_folder) is None
    assert one.tiny.keys() <= one.sizes.keys()
    figures = suite.measure(one, 1, data_folder, {**one.sizes, **one.tiny})
    assert len(figures) == 1
    assert math.isfinite(figures[0])
    assert figures[0] > 0 or one.needs  # clusters may agree with classes worse than chance, Spark cost nothing
    assert one.measures[0].isupper() or one.measures[0] == "`"


ROW = suite.Row(
    date="2026-01-01", commit="abc1234", benchmark="read-texts", sizes="scale=1.0", unit="ms per MB of text",
    median=8.0, least=7.5, most=9.0, repeats=3, load=0.1, machine="A, 2 cores", versions="",
)  # fmt: skip


def test_a_figure_is_compared_with_the_last_on_the_same_machine():
    history = [ROW, replace(ROW, median=4.0), replace(ROW, median=1.0, machine="B, 2 cores")]
    assert suite.ratio(replace(ROW, median=6.0), history) == 1.5
    assert suite.ratio(replace(ROW, sizes="scale=2.0"), history) is None
    shown = suite.page("# Title\n", [*history, replace(ROW, median=6.0, commit="def5678", load=3.2)])
    line = next(line for line in shown.splitlines() if line.startswith("| `read-texts` |"))
    assert line.endswith("| 6 (7.5 to 9) | ms per MB of text | 1.50 | 3.2 | 2026-01-01, def5678 |")
    assert shown.startswith("# Title\n")
    assert len(re.findall(r"^\| `", shown, re.M)) == len(suite.BENCHMARKS)


def test_the_command_measures_compares_and_records(tmp_path, monkeypatch, capsys):
    history, page = tmp_path / "history.csv", tmp_path / "README.md"
    history.touch()
    page.write_text("# Title\n")
    monkeypatch.setattr(suite, "HISTORY", history)
    monkeypatch.setattr(suite, "PAGE", page)
    monkeypatch.setattr(sys, "argv", ["benchmarks", "--only", "import-library", "--repeats", "2", "--record"])
    seconds = itertools.cycle([0.5, 0.75, 1.0])  # four processes would take as many seconds
    monkeypatch.setattr(cases, "process_seconds", lambda *_: next(seconds))
    for _ in range(2):
        command.main()
    first, second = suite.read_history(history)
    said = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"import-library: \S+ s \(\S+ to \S+\), nothing to compare with; took \d+ s", said[0])
    assert f"{second.median / first.median:.2f} of the row before" in said[1]
    assert 0.5 <= first.least < first.median < first.most <= 1.0
    assert first.repeats == 2
    assert f"{second.median / first.median:.2f}" in page.read_text()
    assert len(said) == 2


def test_what_needs_a_data_folder_is_left_out_without_one(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["benchmarks", "--only", "quality-nips", "--data-folder", str(tmp_path / "none")])
    command.main()
    assert capsys.readouterr().out.startswith("quality-nips: left out; no local data folder of the real data in ")


def test_the_page_is_made_from_the_history():
    text = suite.PAGE.read_text(encoding="utf-8")
    assert suite.page(text, suite.read_history(suite.HISTORY)) == text


def test_a_corpus_to_recover_has_the_words_of_its_truth():
    drawn = recovery.draw(recovery.Cell(3, 40, 15, 10.0), 0)
    assert (drawn.corpus.document_lengths == 15).all()
    assert len(drawn.topic) == drawn.corpus.n_tokens == 600
    # topics of a few words each: given its topic, a token's word is one of few
    content = drawn.corpus.content
    word = np.repeat(content.indices, content.data)
    words_of = [len(np.unique(word[drawn.topic == m])) for m in range(drawn.topic.max() + 1)]
    at_random = np.random.default_rng(0).permutation(drawn.topic)
    words_at_random = [len(np.unique(word[at_random == m])) for m in range(drawn.topic.max() + 1)]
    assert sum(words_of) < 0.5 * sum(words_at_random)


def test_a_chain_from_the_truth_is_held_against_the_default(tmp_path, monkeypatch, capsys):
    command = ["recovery", "--cells", "3:60:60:100", "--iterations", "5", "--out", str(tmp_path / "table")]
    monkeypatch.setattr(sys, "argv", command)
    recovery.main()
    printed = capsys.readouterr().out
    header, row = (tmp_path / "table.csv").read_text().splitlines()
    found = dict(zip(header.split(","), row.split(","), strict=True))
    assert float(found["truth_ARI"]) > 0.9
    assert float(found["truth_joint"]) < 0.0
    assert "| 3 | 60 | 60 | 100 | 0 |" in printed
    assert (tmp_path / "table.md").read_text() == printed
    assert len(recovery.ROUTINE) == 9
    assert len(recovery.GRID) == 54


class TestDevelopment:
    def test_a_missing_source_is_left_out_and_fits_are_reused(self, tmp_path, monkeypatch, capsys):
        def missing():
            raise FileNotFoundError("the Debian package nothing")

        texts = [("red apples pears", "fruit"), ("steel screws nails", "tools")] * 6 + [("", "tools")]
        known = {"small": lambda: development.from_texts(lambda: texts), "gone": missing}
        monkeypatch.setattr(development, "corpora", lambda folder: known)
        monkeypatch.setattr(sys, "argv", ["development", "--cache", str(tmp_path), "--methods", "K-means (K given)"])
        development.main()
        first = capsys.readouterr()
        assert "small: 12 documents of 3.0 words, 2 classes" in first.err
        assert "gone: left out; this machine lacks the Debian package nothing" in first.err
        assert "| small | K-means (K given) | 1.000, 1.000, 1.000 | 1.000 | 2, 2, 2 |" in first.out
        monkeypatch.setitem(development.METHODS, "K-means (K given)", None)  # not called again
        development.main()
        assert capsys.readouterr().out == first.out

    def test_manual_pages_lose_their_markup_and_have_package_classes(self):
        page = '.TH LS "1"\n.SH NAME\nls \\- list \\fBfiles\\fR of\n.\\" a comment\n\\fIfolders\\fP'
        assert development.plain(page).split() == ["ls", "list", "files", "of", "folders"]

    def test_drawn_classes_are_many_and_unequal(self):
        corpus = development.drawn(30, 300, 8, 10)
        sizes = np.bincount(corpus.labels)
        assert (corpus.document_lengths == 8).all()
        assert sizes.max() > 5 * np.median(sizes)


class TestEmbeddings:
    @pytest.mark.slow
    def test_methods_are_scored_by_corpus_and_seed(self, tmp_path, monkeypatch, capsys):
        rng, group = np.random.default_rng(0), np.arange(60) % 3
        texts = [
            f"{('boat', 'oven', 'bird')[k]} {('sail', 'bread', 'wing')[k]} day{j % 4}" for j, k in enumerate(group)
        ]
        monkeypatch.setitem(embeddings.CORPORA, "small", lambda: (texts, [str(k) for k in group]))
        np.save(tmp_path / "small.npy", rng.normal(size=(3, 30))[group] + 0.1 * rng.normal(size=(60, 30)))
        monkeypatch.setattr(embeddings, "bertopic", lambda *_: np.array([-1] * 30 + [0] * 30))
        folders = ["--vectors", str(tmp_path), "--cache", str(tmp_path / "fits")]
        monkeypatch.setattr(sys, "argv", ["embeddings", "table", "--only", "small", "--seeds", "0", "1", *folders])
        embeddings.main()
        first = capsys.readouterr()
        assert "small: 60 documents of 3 words, 3 classes" in first.err
        assert "| k-means of embeddings, K fixed | 1.000 | 1.000 (3), 1.000 (3) |" in first.out
        assert "| BERTopic | -0.0" in first.out
        for name in ("words", "embeddings", "words and embeddings"):
            assert first.out.count(f"| MC2, {name}, ") == 3
        monkeypatch.setattr(embeddings, "fit", None)  # not called again
        embeddings.main()
        assert capsys.readouterr().out == first.out

    @pytest.mark.slow
    def test_the_cost_is_that_of_fits_with_and_without_embeddings(self, monkeypatch, capsys):
        monkeypatch.setattr(sys, "argv", ["embeddings", "cost", "--documents", "600"])
        embeddings.main()
        reduction, words, both = capsys.readouterr().out.splitlines()
        assert re.match(r"reduction: .* CPU s; at most [0-9.]+ times the float32 matrix", reduction)
        assert re.match(r"words: [0-9.]+ CPU s, ", words)
        assert re.match(r"words and embeddings: [0-9.]+ CPU s, ", both)


class TestStarts:
    def test_starts_are_held_against_each_other_by_means_over_seeds(self):
        more = {"corpus": "A", "K": 3, "M": 9, "omega": 5.0, "CPU_s": 1.0}
        found = [(1, 0.2, 110.0), (1, 0.4, 90.0), (20, 0.5, 102.0), (20, 0.3, 103.0)]
        table = [{**more, "start": n, "seed": i % 2, "ARI": a, "held_out": p} for i, (n, a, p) in enumerate(found)]
        head, rule, one, twenty, _, told = starts.as_markdown(table).splitlines()
        assert head.count("|") == rule.count("|") == one.count("|")
        assert one.startswith("| A | 1 | 0.200, 0.400 | 110, 90 | 3, 3 |")
        assert twenty.startswith("| A | 20 |")
        assert told == "A: means over seeds differ by 0.100 of ARI and 2.5% of perplexity"  # .3 and .4, 100 and 102.5

    def test_a_row_tells_of_documents_fitted_and_held_out(self):
        drawn = recovery.draw(recovery.Cell(3, 60, 60, 100.0), 0)
        corpus = Corpus(drawn.corpus.content, drawn.corpus.vocabulary, labels=drawn.cluster)
        found = list(starts.rows("A", corpus, [2, 30], [0], iterations=5))
        assert [(row["start"], row["seed"]) for row in found] == [(2, 0), (30, 0)]
        assert all(row["ARI"] > 0.5 for row in found)
        assert all(1.0 < row["held_out"] < corpus.n_words for row in found)

    def test_some_documents_come_from_all_over_and_keep_their_words(self):
        whole = Corpus(sp.identity(20, format="csr", dtype=int), [f"w{i}" for i in range(20)], labels=np.arange(20))
        part = starts.some(whole, 3)
        assert part.labels.tolist() == [0, 9, 19]
        assert part.vocabulary == ["w0", "w9", "w19"]
        assert (part.content.toarray() == np.eye(3)).all()


class TestContexts:
    def test_names_are_ranked_over_documents_with_a_right_one(self):
        scores = np.array([[0.5, 0.1, 0.3, 0.1], [0.0, 0.2, 0.2, 0.1], [1.0, 0.0, 0.0, 0.0]])
        truth = sp.csr_matrix([[0, 1, 1, 0], [0, 0, 1, 0], [0, 0, 0, 0]])  # places 1 and 2; 1 after an equal one
        found = contexts.of_names(scores, truth)
        assert found.pop("documents") == 2
        assert found == pytest.approx({"recall@1": 0.0, "recall@5": 1.0, "recall@20": 1.0, "reciprocal rank": 0.5})

    def test_numbers_are_judged_where_they_are_known(self):
        interval = np.array([[1.0, 3.0], [2.0, 6.0], [0.0, 9.0]])
        found = contexts.of_numbers(np.array([2.0, 4.0, 5.0]), interval, np.array([4.0, 3.0, np.nan]))
        assert found == {"documents": 2, "error": 1.5, "in 90 % interval": 0.5, "its width": 3.0}

    @pytest.mark.slow
    def test_each_method_tells_of_authors_and_years(self, monkeypatch, tmp_path, capsys):
        def small(data_folder):
            return shapes.simulate(shapes.NIPS, 0, 0.03, "correlated")[0].split(0.3, seed=0)

        monkeypatch.setattr(contexts, "CORPORA", {"small": (small, "", ("author", "year"))})
        out = tmp_path / "table.md"
        monkeypatch.setattr(sys, "argv", ["contexts", "--iterations", "2", "--out", str(out)])
        contexts.main()
        names, numbers = out.read_text().split("\n\n")
        assert out.read_text() == capsys.readouterr().out
        for part, width in ((names, 8), (numbers, 7)):
            rows = [line.strip("| ").split(" | ") for line in part.splitlines()[2:]]
            methods = ["MC2", "MC2, other contexts too", "prior", "nearest by tf-idf", "naive Bayes", "ridge on tf-idf"]
            assert [row[2] for row in rows] == methods
            assert all(len(row) == width for row in rows)
            assert all(float(value) >= 0 for row in rows for value in row[3:])


class TestGibbs:
    def test_a_watch_tells_blocks_from_the_rest(self):
        watch = gibbs.Watch()

        def spin(*_):
            until = time.process_time() + 0.1
            while time.process_time() < until:
                pass

        watch.timed(watch.timed_blocks(lambda: watch.timed_blocks(spin)()), "part")()
        watch.timed(spin, "part")()
        assert watch.parts["part"] == pytest.approx(0.2, abs=0.05)
        assert watch.alone["part"] == pytest.approx(0.1, abs=0.03)
        assert watch.clocks["part"] > 0.05
        assert watch.in_blocks == pytest.approx(0.1, abs=0.03)
        assert watch.clock(2) == pytest.approx(watch.seconds - watch.in_blocks / 2, abs=0.03)

    @pytest.mark.slow
    def test_kernels_are_held_against_each_other(self, monkeypatch, capsys):
        monkeypatch.setattr(gibbs, "_NUMBERS", 1 << 14)
        monkeypatch.setattr(gibbs, "CORPORA", {"small": lambda: gibbs.short(100)})
        monkeypatch.setattr(sys, "argv", ["gibbs", "--corpus", "small", "--seconds", "0.5", "--threads", "1"])
        gibbs.main()
        tables = [part.splitlines() for part in capsys.readouterr().out.strip().split("\n\n")]
        assert [len(table) for table in tables] == [6, 3, 6, 6, 3, 6]
        for quarters, parts, limits in zip(*(tables[place::3] for place in range(3)), strict=True):
            rows = [dict(zip(quarters[0].split(" | "), line.split(" | "), strict=True)) for line in quarters[2:]]
            assert [float(row["clock"]) >= 0.125 * (i + 1) for i, row in enumerate(rows)] == [True] * 4
            assert all(1 < float(row["perplexity |"].strip("| ")) < 500 for row in rows)
            figures = [float(one) for one in parts[2].strip("| ").split(" | ")[3:]]
            assert 0 < sum(figures[:-2]) < 1.1 * figures[-2]  # counts within the joint are in both
            assert 0 < figures[-1] <= figures[-2]
            rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in limits[2:]]
            assert [row[0] for row in rows] == [
                "plain loop", "corpus and topics", "and dense rows", "and entries of rows"
            ]  # fmt: skip
            assert float(rows[0][-1]) > 10.0
            for row in rows[1:]:
                size, speed, took = map(float, row[2:])
                assert took == pytest.approx(size / speed, rel=2e-3)
            alone, dense, entries = (float(row[2]) for row in rows[1:])
            assert 8.0 < alone <= 16.0
            assert alone < entries < dense + 8.0

    @pytest.mark.slow
    def test_threads_are_held_against_processes(self, monkeypatch, capsys):
        monkeypatch.setattr(gibbs, "CORPORA", {"small": lambda: gibbs.short(100)})
        monkeypatch.setattr(sys, "argv", ["gibbs", "--corpus", "small", "--gain", "1", "--kernels", "collapsed"])
        gibbs.main()
        gain, parts = [part.splitlines() for part in capsys.readouterr().out.strip().split("\n\n")]
        one, threaded, beside, of_threads, of_processes, share = map(float, gain[2].strip("| ").split(" | ")[3:])
        assert of_threads == pytest.approx(one / threaded, rel=2e-3)
        assert of_processes == pytest.approx(2.0 * one / beside, rel=2e-3)
        assert share == pytest.approx(of_threads / of_processes, rel=2e-3)
        rows = [line.strip("| ").split(" | ") for line in parts[2:]]
        assert {row[0] for row in rows} == {*gibbs.PARTS, "all"}
        alone = [float(row[-1]) for row in rows]
        assert alone == sorted(alone, reverse=True)
        assert all(0.0 <= float(row[-1]) <= 1.001 * float(row[-2]) for row in rows)

    def test_words_of_a_topic_repeat_more_than_words_at_random(self, monkeypatch, capsys):
        corpus, state = gibbs.known_state(300)
        assert (corpus.document_lengths == 100).all()
        # two tokens of a topic are the same word more often than two of any
        word = np.repeat(corpus.content.indices, corpus.content.data)

        def repeats(topic):
            return len(word) - len(np.unique(topic * corpus.n_words + word))

        assert repeats(state.topic.astype(int)) > 3 * repeats(np.random.default_rng(0).permutation(state.topic))
        monkeypatch.setattr(gibbs, "_NUMBERS", 1 << 14)
        monkeypatch.setattr(sys, "argv", ["gibbs", "--documents", "300", "--kernels", "collapsed"])
        gibbs.main()
        assert capsys.readouterr().out.splitlines()[2].startswith("| 300 | collapsed | ")

    def test_the_plain_loop_draws_from_the_posterior_of_a_token(self):
        # one document of one token: its topic is drawn prop. to omega tau_m (n_mw + s) / (n_m + V s) of the others
        topic, n_wm = np.array([0], np.int32), np.array([[2, 3], [0, 5]], np.int32)
        uniform, prior, drawn = np.linspace(0.001, 0.999, 999), np.array([[2.0, 6.0]]), []
        for u in uniform:
            table = n_wm.copy()
            gibbs._dense_sweep(
                np.array([0, 1], np.int32), np.array([0], np.int32), np.array([1], np.int32), topic[:] * 0,
                np.array([0], np.int32), prior, table, table.sum(axis=0, dtype=np.int64), 0.5, 1.0, np.array([u]), 1,
            )  # fmt: skip
            drawn.append(int(table[0, 1] - n_wm[0, 1]))
        weights = np.array([2.0 * 1.5 / 2.0, 6.0 * 3.5 / 9.0])
        assert np.mean(drawn) == pytest.approx(weights[1] / weights.sum(), abs=0.003)

    def test_topics_of_another_library_have_the_same_estimator(self):
        psi = np.array([[0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.5, 0.5]])
        test = Corpus(sp.csr_matrix([[1, 0, 0, 0], [0, 0, 1, 0]]))
        # one word: p = sum_m alpha_m / alpha. psi_mw
        assert gibbs.score(test, psi, np.array([3.0, 1.0])) == pytest.approx((0.375 * 0.125) ** -0.5)


class TestProposals:
    def test_a_chain_is_timed_and_scored_after_each_sweep(self, tmp_path, capsys):
        given = ["--clusters", "5", "--words", "400", "--distinct-words", "20", "--folder", str(tmp_path)]
        parsed = proposals.parser().parse_args(given)
        proposals.draw(parsed, 5)
        fitted, held_out = Corpus.load(tmp_path / "fitted"), Corpus.load(tmp_path / "held_out")
        assert (fitted.n_documents, held_out.n_documents) == (30, 50)
        chain = ["--chain", "exact", "--sweeps", "3", "--set", "topic_word_prior=2e-2"]
        assert proposals.main([*given, *chain]) == 0
        rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert [row["sweep"] for row in rows] == [0, 1, 2, 3]
        assert rows[-1]["seconds"] == pytest.approx(sum(row["of_sweep"] for row in rows) * 30 / 1e6)
        model = Mixture(n_clusters=5, topic_word_prior=0.02, weight_prior=1.0)
        found = fit(fitted, model, FastEx(proposal="exact"), iterations=3, progress=False)
        assert rows[-1]["log_joint"] == pytest.approx(found.trace["log_joint"].iloc[-1] / 30)
        perplexity = found.posterior.perplexity(held_out, estimator="marginal")
        assert np.exp(-rows[-1]["held_out"]) == pytest.approx(perplexity)
        assert rows[-1]["vi"] == pytest.approx(variation_of_information(fitted.labels, found.posterior.cluster))

    def test_a_table_has_the_median_of_repeats_and_the_most_memory(self):
        start = {"sweep": 0, "of_sweep": 10.0, "seconds": 1.0}
        after = {"sweep": 1, "of_sweep": 20.0, "seconds": 3.0, "vi": 0.5, "log_joint": -7.0, "held_out": -6.5}
        chains = [[start, after | {"seconds": seconds}] for seconds in (3.0, 9.0, 4.0)]
        first, last = proposals.summarised(1000, "exact", chains, 5_000_000)
        assert first.split(" | ")[2:5] == ["0", "10.0", "1.00"]
        assert last == "| 1,000 | exact | 1 | 20.0 | 4.00 | 0.50 | -7.00 | -6.5000 | 5 |"


class TestObservations:
    def test_a_corpus_of_vectors_has_the_clusters_of_its_truth(self):
        corpus, topic = observations.draw(1.5, 100.0, 0, documents=40)
        assert corpus.observations.shape == (40 * observations.LENGTH, observations.DIMENSION)
        counts = np.zeros((40, observations.TOPICS))
        np.add.at(counts, (np.repeat(np.arange(40), observations.LENGTH), topic), 1)
        alike = (counts @ counts.T) / np.linalg.norm(counts, axis=1) / np.linalg.norm(counts, axis=1)[:, None]
        same = corpus.labels[:, None] == corpus.labels
        assert alike[same].mean() > 0.9 > alike[~same].mean() + 0.2

    @pytest.mark.slow
    def test_a_row_holds_every_method_against_the_truth(self):
        found = observations.row(1.5, 100.0, 1, iterations=4, documents=40)
        assert all(found[name] <= 1.0 for name in ("MC2", "MC2 as printed", "Gaussian mixture", "DP mixture"))
        assert found["MC2"] > 0.5
        head, rule, row, mean = observations.table([found])
        assert head.count("|") == rule.count("|") == row.count("|") == mean.count("|")


@pytest.fixture
def checkouts(tmp_path):
    """Two checkouts whose programs leave what those of a checkout leave, and a local data folder of two documents."""
    roots = []
    for name, posterior in (("before", "model.npz"), ("now", "posterior.npz")):
        programs = tmp_path / name / ".venv" / "bin"
        programs.mkdir(parents=True)
        (tmp_path / name / "src").mkdir()
        for program in ("mc2", "python", "snakemake"):
            text = (
                "#!/bin/bash\n"
                'echo "${0##*/} $*" >> calls\n'
                f'[ "$1" != fit ] || {{ mkdir -p "${{!#}}" && touch "${{!#}}/{posterior}"; }}\n'
            )
            (programs / program).write_text(text)
            (programs / program).chmod(0o755)
        roots.append(f"{name}={tmp_path / name}")
    (tmp_path / "labelled").mkdir()
    with tarfile.open(tmp_path / "labelled/ohsumed_single_23.tar.gz", "w:gz") as archive:
        member = tarfile.TarInfo("C01/1")
        member.size = 10
        archive.addfile(member, io.BytesIO(b"A title\nb\n"))
    (tmp_path / "nips").mkdir()
    with zipfile.ZipFile(tmp_path / "nips/nips-corpus-20111211.zip", "w") as archive:
        archive.writestr("corpus/nips.corpus", "2 0:2 1:1\n\n")
        archive.writestr("corpus/nips.vocab", "net = 0 = 2 1 \r\nbrain = 1 = 1 1 \r\n")
    return tmp_path, roots


def test_waits_of_two_checkouts_stand_side_by_side(checkouts):
    folder, roots = checkouts
    (folder / "now/src/kernel.nbi").touch()
    assert waits.main([*roots, "--data-folder", str(folder), "--out", str(folder / "waits.md")]) == 0
    lines = (folder / "waits.md").read_text().splitlines()
    assert lines[0] == "| what | before | now |"
    assert len(lines) == 13
    assert all(re.fullmatch(r"\| .+ \| [\d.]+ \([\d.]+\) \| [\d.]+ \([\d.]+\) \|", line) for line in lines[2:])
    assert not (folder / "now/src/kernel.nbi").exists()
    calls = [(folder / name / "calls").read_text() for name in ("before", "now")]
    assert "fit-nips/model.npz" in calls[0]
    assert "fit-nips/posterior.npz" in calls[1]


def test_a_wait_that_fails_ends_the_table(checkouts):
    folder, roots = checkouts
    (folder / "before/.venv/bin/snakemake").write_text("#!/bin/bash\necho broken >&2; exit 3\n")
    with pytest.raises(SystemExit, match=r"snakemake -n --quiet ended with 3: broken"):
        waits.main([*roots, "--data-folder", str(folder), "--out", str(folder / "waits.md")])


def test_waits_are_of_the_texts_of_the_data_folder(checkouts, tmp_path):
    tables = waits.write_tables(checkouts[0], tmp_path)
    texts = {name: path.read_text().splitlines() for name, path in tables.items()}
    assert texts == {
        "abstracts": ["text", "A title b"],
        "titles": ["text", "A title"],
        "nips": ["text", "net net brain"],
    }


@pytest.mark.needs("browser")
def test_times_of_a_report_are_its_first_paint_and_last_chart(tmp_path, capsys):
    page = tmp_path / "index.html"
    page.write_text("<body><h1>Soon</h1><script>setTimeout(() => { document.body.dataset.ready = 1; }, 700)</script>")
    report.main([str(page), "--repeats", "2"])
    row = capsys.readouterr().out.splitlines()[-1]
    paint, drawn = (float(one) for one in re.findall(r"(\d+) \(", row))
    assert paint > 0
    assert drawn >= 700


def test_rules_of_the_recommended_number_are_compared(monkeypatch, capsys, tmp_path):
    known = {"small": lambda: recommended.flat(3, n_documents=60), "one": lambda: recommended.flat(1, n_documents=60)}
    monkeypatch.setattr(recommended, "chosen_on", lambda folder: known)
    monkeypatch.setattr(sys, "argv", ["recommended", "--seeds", "0", "1", "--cache", str(tmp_path)])
    recommended.main()
    first = capsys.readouterr().out
    told = {
        row[0]: row[1:] for row in ([cell.strip() for cell in line.split("|")[1:-1]] for line in first.splitlines())
    }
    assert set(recommended.RULES) < set(told)
    fits = [Posterior.load(path) for path in sorted(tmp_path.glob("small.*"))]
    cuts = [find_hierarchy(posterior, known["small"]()) for posterior in fits]
    assert told["recommended"][5].split(": ")[1] == ", ".join(str(one.recommended) for one in cuts)
    assert told["all clusters"][5].split(": ")[1] == ", ".join(str(one.n_clusters) for one in cuts)
    monkeypatch.setattr(recommended, "fit", None)  # not called again
    recommended.main()
    assert capsys.readouterr().out == first


@pytest.mark.slow
@pytest.mark.parametrize(
    ("corpus", "sizes", "other"),
    [
        (partial(recommended.nested, 4, 60, 3.0, 12.0, 40.0), range(10, 14), 4),
        (partial(recommended.nested, 3, 100, 2.0, 10.0, 60.0, 1), range(10, 14), 3),
        (partial(recommended.flat, 8, 0, 1000), range(8, 13), 0),
        (partial(recommended.flat, 1), [1], 0),
    ],
)
def test_fits_find_broad_and_fine_clusters_where_both_are(corpus, sizes, other):
    documents = corpus()
    found = find_hierarchy(fit(documents, seed=0, chains=2, progress=False).posterior, documents)
    assert found.recommended in sizes
    assert found.other == other
