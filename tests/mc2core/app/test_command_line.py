"""The commands without the workflow, each in one process as a user would call it."""

import argparse
import csv
import fcntl
import io
import json
import logging
import os
import pty
import re
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from helpers.commands import mc2
from helpers.crossed import first
from helpers.made_up_runs import found_by, trace

from mc2core import Corpus, Posterior, clustering
from mc2core.app import cli, fit_command
from mc2core.app.cli import main
from mc2core.app.commands import in_lines
from mc2core.base import stopping, storage
from mc2core.base.checks import counted
from mc2core.inference.registry import specify
from mc2core.inference.running import checkpoint
from mc2core.inference.running.summary import ONE_CHAIN
from mc2core.posterior.consensus import in_samples
from mc2core.posterior.perplexity import ESTIMATORS
from mc2papers.cli import main as prepare


def quote(path):
    """A path as a word of the shell."""
    return shlex.quote(str(path))


PYTHON, HERE = quote(sys.executable), quote(__file__)


@pytest.mark.slow
def test_the_typical_session_of_the_help_runs_as_printed(tmp_path, monkeypatch, capfd):
    """And so do the commands that it prints; files lie in a folder whose name means something to a shell."""
    folder = tmp_path / "my fits; echo hi"
    folder.mkdir()
    monkeypatch.chdir(folder)
    for number, name in enumerate(("papers", "new", "today")):
        texts = ["lake sea river boat", "star sun moon sky"] * 8
        rows = [{"abstract": text, "year": 1990 + j + number} for j, text in enumerate(texts)]
        Path(f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    session = [line for line in cli.__doc__.splitlines() if line.startswith("mc2 ")]
    assert len(session) > 10
    for line in session:
        words, _, source = line.partition(" < ")
        if source:
            monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=open(source, "rb")))  # noqa: SIM115
        mc2(shlex.split(words)[1:])
    capfd.readouterr()
    fit = [str(folder / "data/own"), "--iterations", "2", "--chains", "1", "--out", str(folder / "fits/two")]
    mc2(["fit", *fit])
    said = capfd.readouterr().out
    assert "/posterior.npz: 2 iterations in " in said
    printed = [one for line in said.splitlines() if line.startswith(("next:", "or:", "for more or fewer")) for one in
               re.split(r"(?:^[^:]*:|;) (?=mc2 )", line)[1:]]  # fmt: skip
    assert len(printed) == 6
    for command in printed:
        mc2([word.replace("CORPUS", "data/own") for word in shlex.split(command)[1:]])


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli")
    assert prepare(["corpus", "nips", "--scale", "0.02", "--seed", "1", "--out", str(folder / "data")]) == 0
    command = ["fit", str(folder / "data/train"), "--context", "year:normal_gamma"]
    command += ["--context", "author:dirichlet,concentration=0.2,strength=0.5"]
    command += ["--set", "document_level=false", "--set", "kernel=collapsed", "--iterations", "3", "--burn-in", "1"]
    command += ["--chains", "1", "--out", str(folder / "fit")]
    mc2(command)
    return folder


@pytest.fixture(autouse=True)
def no_lines_of_progress(monkeypatch):
    """What is compared with all of stderr does not depend on how fast the machine is."""
    monkeypatch.setattr("mc2core.base.progress.LINE_SECONDS", 3600.0)


@pytest.fixture(scope="module")
def default_fit(fitted, tmp_path_factory):
    """A fit that names no model; its concentration keeps several clusters."""
    folder = tmp_path_factory.mktemp("default")
    chosen = "start_topics=4", "group_concentration=200", "table_concentration=1", "topic_concentration=1"
    command = ["fit", str(fitted / "data/train"), "--context", "year"]
    command += [part for setting in chosen for part in ("--set", setting)]
    mc2([*command, "--iterations", "2", "--chains", "1", "--out", folder])
    return folder


OF_LEVEL = "MC2 with a document level"


class TestModel:
    def test_document_cut_unless_told_otherwise(self, fitted, default_fit, tmp_path, capsys, output_of):
        about = json.loads((default_fit / "provenance.json").read_text())
        assert (about["model"]["name"], about["engine"]["name"]) == ("mc2", "gibbs")
        assert (about["model"]["document_level"], about["model"]["document_concentration"]) == (True, "learn")
        assert about["model"]["contexts"]["year"]["family"] == "normal_gamma"
        assert Posterior.load(default_fit / "posterior.npz").representative.has_document_level
        printed = "--set document_level=false"
        command = f"fit {fitted}/data/train --iterations 1 --out {tmp_path}"
        for number, chosen in enumerate((printed, f"{printed} --set kernel=blocked", "--model hdp")):
            mc2(f"{command}/{number} {chosen}")
            assert not Posterior.load(tmp_path / str(number) / "posterior.npz").representative.has_document_level
        told = "--set document_level=false, as in the paper"
        assert told not in capsys.readouterr().out
        assert told in output_of(f"{command}/own --model mc2")

    def test_contexts_without_a_family_take_that_of_their_kind(self, fitted, tmp_path):
        """Numbers a normal distribution, names one of names; as if the families had been named."""
        command = ["fit", str(fitted / "data/train"), "--set", "kernel=collapsed", "--iterations", "2"]
        for out, contexts in (("kinds", ("year", "author")), ("named", ("year:normal_gamma", "author:dirichlet"))):
            given = [part for context in contexts for part in ("--context", context)]
            mc2([*command, *given, "--out", tmp_path / out])
        kinds, named = (json.loads((tmp_path / out / "provenance.json").read_text()) for out in ("kinds", "named"))
        families = {name: family["family"] for name, family in kinds["model"]["contexts"].items()}
        assert families == {"year": "normal_gamma", "author": "dirichlet"}
        assert (kinds["model"], kinds["corpus"]) == (named["model"], named["corpus"])
        one, other = (Posterior.load(tmp_path / out / "posterior.npz") for out in ("kinds", "named"))
        assert one.units == other.units
        assert list(one.units) == ["year"]
        assert np.array_equal(one.representative.cluster, other.representative.cluster)

    @pytest.mark.parametrize(
        ("chosen", "model"),
        [([], "MC2 of 3 clusters with a document level"), (["--model", "mixture"], "a mixture of 3 clusters")],
    )
    def test_the_number_of_clusters_may_be_told(self, fitted, tmp_path, capsys, chosen, model):
        command = ["fit", str(fitted / "data/train"), "--clusters", "3", "--iterations", "3", *chosen]
        mc2([*command, "--out", tmp_path])
        about = json.loads((tmp_path / "provenance.json").read_text())
        assert about["model"]["n_clusters"] == 3
        assert 1 <= about["inferred"]["clusters"] <= 3
        assert f"model: {model}" in capsys.readouterr().out
        mc2(f"clusters {tmp_path}/posterior.npz {fitted}/data/train")

    def test_all_commands_take_a_posterior_with_a_document_cut(self, fitted, default_fit, tmp_path, output_of, told):
        """By the folder of the fit."""
        model, train, test = str(default_fit), str(fitted / "data/train"), str(fitted / "data/test")
        printed, n_documents = (
            json.loads(output_of(f"evaluate {model} {test}"))["perplexity"],
            Corpus.load(test).n_documents,
        )
        assert list(printed) == ["left_to_right"]
        assert 1 < printed["left_to_right"] < Corpus.load(test).n_words
        assert [row for row in told if row[0] == "left_to_right"][-1] == ("left_to_right", n_documents, n_documents)
        assert json.loads(output_of(f"evaluate {model} {test} --threads 2"))["perplexity"] == printed
        for command in (["clusters", model, test], ["clusters", model, test, "--no-context"]):
            assert len(output_of(command).splitlines()) >= n_documents
        mc2(f"clusters {model} {train} --cut 2")
        mc2(f"topics {model}")
        for part in (train, test):
            mc2(["describe", model, part, "--out", tmp_path / Path(part).name])
            assert (tmp_path / Path(part).name / "index.html").is_file()
        assert output_of(f"verify {model}").splitlines() == [
            f"{model}/checkpoint.npz: complete checkpoint at iteration 2",
            f"{model}/posterior.npz: complete posterior of 1 sample",
        ]

    @pytest.mark.parametrize(
        ("model", "engine", "settings", "name"),
        [
            ("mc2", "gibbs", {}, f"{OF_LEVEL} (document_concentration=learn), in which documents may repeat"),
            ("mc2", "svi", {"document_concentration": 0.5}, f"{OF_LEVEL} (document_concentration=0.5); "),
            ("mc2", "gibbs", {"kernel": "blocked", "document_level": False}, "MC2, the documents of a cluster share"),
            ("mc2", "svi", {"max_tables": 20, "document_level": False}, "MC2, the documents of a cluster share its"),
            ("hdp", "gibbs", {}, "the HDP; no clusters"),
            ("hdp", "gibbs", {"document_level": True}, "the HDP of three levels, in which documents may repeat"),
            ("nptot", "gibbs", {"kernel": "collapsed"}, "npTOT, an HDP whose topics emit times; no clusters"),
            ("mixture", "fastex", {"n_clusters": 30}, "a mixture of 30 clusters at most, each with words of its own"),
        ],
    )
    def test_every_fit_says_which_model_it_is(self, model, engine, settings, name):
        contexts = {"year": {"family": "normal_gamma"}} if model == "nptot" else {}
        line = next(line for line in summary(specify(model, engine, settings, contexts), [5] * 30) if "model: " in line)
        assert line.startswith(f"model: {name}")


def summary(pair, clusters, seconds=0.0):
    """The last lines of a fit of so many clusters and 7 topics in each of its iterations."""
    options = argparse.Namespace(out=Path("fit"), corpus=Path("corpus"), iterations=len(clusters), context=[])
    about = found_by(trace(clusters, [7] * len(clusters)))
    model, engine = ({"name": one.name, **one.settings()} for one in pair)
    told = {"iterations": len(clusters), "seconds": 2.4, "compile_seconds": seconds, "inferred": about}
    return fit_command._summary(options, told | {"model": model, "engine": engine})


class TestEvaluate:
    def test_scores_against_labels(self, fitted, tmp_path, output_of):
        train, model = Corpus.load(fitted / "data/train"), fitted / "fit/posterior.npz"
        cluster = Posterior.load(model).cluster
        labels = np.arange(train.n_documents) % 3
        several = sp.csr_matrix((np.ones(len(labels) - 1, np.int32), (np.arange(1, len(labels)), labels[1:])))
        for given, expected in (
            (labels, {"nmi": clustering.nmi(labels, cluster), "ari": clustering.adjusted_rand_index(labels, cluster)}),
            (several, {"extended_nmi": clustering.nmi(labels[1:], cluster[1:])}),
        ):
            about = {"context_names": train.context_names, "units": train.units}
            Corpus(train.content, train.vocabulary, train.contexts, given, **about).save(tmp_path / "labelled")
            printed = json.loads(output_of(f"evaluate {model} {tmp_path}/labelled --estimator icml14"))
            of_all = printed["agreement"]["all"]
            assert of_all["clusters"] == len(np.unique(cluster))
            assert {name: of_all[name] for name in expected} == pytest.approx(expected)
            assert printed["agreement"]["recommended"]["clusters"] <= of_all["clusters"]
            if given is labels:
                assert set(of_all) >= {"purity", "f_score", "vi_bits"}
            without = json.loads(output_of(f"evaluate {model} {tmp_path}/labelled --no-perplexity"))
            assert without == {name: value for name, value in printed.items() if name != "perplexity"}

    def test_prints_the_models_own_figure(self, fitted, output_of):
        printed = json.loads(output_of(f"evaluate {fitted}/fit/posterior.npz {fitted}/data/test --estimator context"))
        test = Corpus.load(fitted / "data/test")
        assert printed["documents"] == test.n_documents
        expected = Posterior.load(fitted / "fit/posterior.npz").perplexity(test, "context")
        assert printed["perplexity"] == {"context": pytest.approx(expected)}

    def test_says_that_documents_were_fitted(self, fitted, tmp_path, capsys):
        model, train = str(fitted / "fit/posterior.npz"), Corpus.load(fitted / "data/train")
        assert set(train.contexts) > {"year", "author"}  # the fit left out another
        imported = tmp_path / "imported"
        train.subset(range(train.n_documents - 1)).save(tmp_path / "fewer")
        train.save(imported)
        warning = "mc2: the model was fitted on these documents; held-out documents have a higher"
        for corpus, was_fitted in ((imported, 1), (tmp_path / "fewer", 0), (fitted / "data/test", 0)):
            mc2(f"evaluate {model} {corpus} --estimator context")
            told = capsys.readouterr()
            assert told.err.count(warning) == was_fitted
            assert list(json.loads(told.out)["perplexity"]) == ["context"]


class TestDescriptions:
    def test_topics_come_commonest_first_with_the_words_asked_for(self, fitted, output_of):
        header, *rows = csv.reader(output_of(f"topics {fitted}/fit/posterior.npz --words 3").splitlines())
        assert header == ["topic", "share", "words"]
        weights = [float(weight) for _, weight, _ in rows]
        model = Posterior.load(fitted / "fit/posterior.npz")
        assert len(rows) == len(model.word_given_topic)
        assert weights == sorted(weights, reverse=True)
        assert sum(weights) == pytest.approx(1.0, abs=1e-6 * len(rows))
        topic = int(rows[0][0]) - 1
        assert rows[0][2].split() == model.top_words(3)[topic]

    def test_topics_have_the_share_that_the_page_says(self, fitted, tmp_path, output_of):
        model, found = str(fitted / "fit/posterior.npz"), tmp_path / "found"
        for part in ("train", "test"):
            mc2(["describe", model, fitted / "data" / part, "--out", found])
            printed = pd.read_csv(io.StringIO(output_of(f"topics {model}")))
            of_page = pd.read_csv(found / "topics.csv")
            assert printed["topic"].tolist() == of_page["topic"].tolist()
            assert printed["share"].tolist() == pytest.approx(of_page["share"].tolist(), rel=1e-5)

    def test_clusters_are_the_fits_and_for_others_the_likeliest(self, fitted, output_of, tmp_path):
        train = Corpus.load(fitted / "data/train")
        mean, sd = train.units["year"]
        raw = Corpus(train.content, contexts=train.contexts | {"year": train.contexts["year"] * sd + mean})
        raw.save(tmp_path / "raw")
        raw.subset(np.arange(20)).save(tmp_path / "new")
        posterior = Posterior.load(fitted / "fit/posterior.npz")
        of_fit = posterior.assign(train, cut="recommended")[0] + 1
        likeliest = posterior.assign(raw.subset(np.arange(20)), cut="recommended")[0] + 1
        folders = {fitted / "data/train": of_fit, tmp_path / "raw": of_fit, tmp_path / "new": likeliest}
        for folder, expected in folders.items():
            rows = list(csv.DictReader(output_of(f"clusters {fitted}/fit/posterior.npz {folder}").splitlines()))
            assert np.array_equal([int(row["cluster"]) for row in rows], expected)
            shown = [name for name in rows[0] if name.startswith("document_")]
            assert shown == [f"document_{name}" for name in Corpus.load(folder).documents.columns]

    def test_clusters_have_the_pages_names_and_long_texts_are_cut(self, default_fit, fitted, tmp_path, output_of):
        train = Corpus.load(fitted / "data/train")
        texts = [f"{j} a word\n" * 40 for j in range(train.n_documents)]
        kept = pd.DataFrame({"name": [f"https://{'x' * 120}/{j}" for j in range(train.n_documents)], "text": texts})
        kept["year"] = np.arange(train.n_documents)
        made = Corpus(train.content, train.vocabulary, train.contexts, documents=kept)
        made.units, made.imported = train.units, {"form": "", "settings": {"id": "name"}}
        made.save(tmp_path / "corpus")
        mc2(f"describe {default_fit} {tmp_path}/corpus --out {tmp_path}/page")
        for cut, file in (([], "clusters"), (["--cut", "2"], "cut_clusters")):
            table = pd.read_csv(io.StringIO(output_of(["clusters", default_fit, tmp_path / "corpus", *cut])))
            page = pd.read_csv(tmp_path / f"page/{file}.csv")
            if cut:
                page = page[page["cut"] == 2].assign(cluster=page["number"])
            names = page.set_index("cluster")["name"]
            assert table["cluster_name"].tolist() == names.loc[table["cluster"]].tolist()
            assert table["document_name"].tolist() == kept["name"].tolist()
            assert table["document_year"].tolist() == kept["year"].tolist()
            assert set(table["document_text"].str.len()) <= set(range(90, 101))
            assert all(one.endswith("…") and "\n" not in one for one in table["document_text"])

    def test_contexts_of_new_documents_are_those_python_predicts(self, fitted, output_of, refused):
        posterior, test = Posterior.load(fitted / "fit/posterior.npz"), Corpus.load(fitted / "data/test")
        command = ["contexts", str(fitted / "fit"), str(fitted / "data/test")]
        printed = pd.read_csv(io.StringIO(output_of([*command, "author", "--top", "3"])))
        columns, probability = posterior.predict_context(test, "author").ranking(3)
        assert printed["name"].tolist() == [test.context_names["author"][column] for column in columns.ravel()]
        assert printed["probability"].to_numpy() == pytest.approx(probability.ravel(), rel=1e-5)
        assert printed["document"].tolist() == np.repeat(np.arange(test.n_documents) + 1, 3).tolist()
        of_document = test.documents.iloc[:, 0].astype(str).repeat(3).tolist()
        assert printed[f"document_{test.documents.columns[0]}"].astype(str).tolist() == of_document
        printed = pd.read_csv(io.StringIO(output_of([*command, "year", "--no-context"])))
        expected = posterior.predict_context(test, "year", use_context=False)
        assert printed["mean"].to_numpy() == pytest.approx(expected.mean, rel=1e-5)
        bounds = printed[["low", "high"]].to_numpy()
        assert bounds == pytest.approx(expected.interval(), rel=1e-5)
        refused([*command, "place"], "'place' is not in the posterior; it has: author, year")


FIT = "fit DATA --iterations 1 --out x"


class TestFit:
    def test_leaves_posterior_trace_provenance_and_checkpoint(self, fitted):
        names = ["checkpoint.npz", "posterior.npz", "provenance.json", "trace.tsv"]
        assert sorted(path.name for path in (fitted / "fit").iterdir()) == names
        provenance = json.loads((fitted / "fit/provenance.json").read_text())
        assert (provenance["iterations"], provenance["engine"]["kernel"]) == (3, "collapsed")
        author = {"family": "dirichlet", "concentration": 0.2, "strength": 0.5}
        assert provenance["model"]["contexts"]["author"] == author
        assert len((fitted / "fit/trace.tsv").read_text().splitlines()) == 4

    def test_says_what_it_found_and_what_to_do_next(self, fitted, tmp_path, capsys, caplog):
        command = ["fit", str(fitted / "data/train"), "--set", "topic_word_prior=1e-2", "--set", "start_topics=40"]
        command += ["--chains", "1"]
        mc2([*command, "--iterations", "12", "--out", tmp_path / "fit"])
        _, recommended, found, model, *advice = capsys.readouterr().out.splitlines()
        assert model.startswith("model: MC2 with a document level (document_concentration=learn)")
        about = json.loads((tmp_path / "fit/provenance.json").read_text())
        assert about["model"]["topic_word_prior"] == 0.01
        rows = list(csv.DictReader((tmp_path / "fit/trace.tsv").open(), delimiter="\t"))
        left = Posterior.load(tmp_path / "fit/posterior.npz")
        said = f"{counted(left.n_clusters, 'clusters')} ({in_samples(left.interval('main clusters'))})"
        assert re.fullmatch(rf"recommended clustering: {left.hierarchy.recommended} clusters?", recommended)
        assert found.startswith(f"found {said} and {left.representative.n_topics} topics; one chain")
        before, last = ({name: int(rows[i][name]) for name in ("clusters", "topics")} for i in (7, 11))
        assert {name: about["inferred"]["after"][name] for name in last} == {name: [one] for name, one in last.items()}
        moved, stayed = "{} went from {} to {}", "{0} were {1} at the start and the end"
        changes = [
            (stayed if before[name] == last[name] else moved).format(name, before[name], last[name]) for name in last
        ]
        assert f"; over the last 4 iterations {', '.join(changes)}; " in found
        assert found.endswith("; other values of --seed or start_topics may give another result")
        posterior, corpus = tmp_path / "fit/posterior.npz", fitted / "data/train"
        assert advice[-3] == f"next: mc2 describe {posterior} {corpus} --out {tmp_path}/fit/description"
        assert advice[-2].startswith(f"or: mc2 topics {posterior}; mc2 clusters {posterior} {corpus}")
        clusters = f"mc2 clusters {posterior} {corpus}"
        assert advice[-1] == f"for more or fewer clusters: {clusters} --cut all; {clusters} --hierarchy"
        caplog.set_level(logging.INFO, "mc2core")
        mc2([*command, "--model", "hdp", "--iterations", "1", "--out", tmp_path])
        told = capsys.readouterr()
        assert "mc2 describe" not in told.out
        assert "mc2 clusters" not in told.out
        n_topics = json.loads((tmp_path / "provenance.json").read_text())["inferred"]["topics"]
        assert re.search(rf"^found {n_topics} topics;", told.out, re.MULTILINE)
        assert "found" not in told.err  # said once
        assert "hierarchy" not in caplog.text

    def test_it_runs_chains_and_says_how_far_they_agree(self, fitted, tmp_path, capsys):
        command = ["fit", str(fitted / "data/train"), "--set", "start_topics=5", "--iterations", "6", "--threads", "2"]
        mc2([*command, "--chains", "3", "--out", tmp_path / "fit"])
        about, file = json.loads((tmp_path / "fit/provenance.json").read_text()), tmp_path / "fit/posterior.npz"
        posterior = Posterior.load(file)
        assert (len(posterior.samples), about["chains"]) == (9, [3, 3, 3])
        between = posterior.between_chains()
        assert about["inferred"]["chains"] == between
        one, two, three = between["clusters"]
        of_last = "1 cluster" if three == 1 else f"{three} clusters"
        said = f"3 chains of {one}, {two} and {of_last} agree by ARI {between['ari']:.2f}, "
        assert said in capsys.readouterr().out
        mc2(f"clusters {file} {fitted}/data/train")
        assert said in capsys.readouterr().err
        mc2(f"describe {file} {fitted}/data/train --out {tmp_path}/page")
        summary = pd.read_csv(tmp_path / "page/summary.csv", index_col="name")["value"]
        assert summary["chains"].startswith(said)

    def test_promises_no_more_than_one_run_tells(self):
        rising = "went from 19 to 29", "; the last two quarters differ in clusters"
        for clusters, (change, differ) in (([5] * 30, ("were 5 at the start and the end", "")), (range(30), rising)):
            last = f"clusters {change}, topics were 7 at the start and the end{differ}"
            told = summary(specify("mc2", "gibbs", {}), clusters)
            assert told[1] == (
                f"found {clusters[29]} clusters and 7 topics; {ONE_CHAIN}; over the last 10 iterations {last}; "
                "other values of --seed or start_topics may give another result"
            )
            automatic = ", or with --iterations auto until clusters and topics no longer change"
            level = "; this is hardly needed, because log joint, clusters and topics are level"
            more = "for more iterations: the same command with --iterations 60 resumes from here"
            assert told[3] == more + (automatic if differ else level)
            assert told[6].endswith(" --hierarchy")
            assert len(told) == 7
        of_svi = summary(specify("mc2", "svi", {}), [5] * 30)[1]
        assert of_svi.endswith("; other values of --seed may give another result")

    def test_tells_its_compiling_where_it_was_noticed(self):
        pair = specify("mixture", "fastex", {})
        assert summary(pair, [5] * 9, 3.0)[0] == "fit/posterior.npz: 9 iterations in 2.4 s"
        compiled = "fit/posterior.npz: 9 iterations in 2.4 s, after 45 s of compiling kernels (once)"
        assert summary(pair, [5] * 9, 45.4)[0] == compiled

    def test_replaces_another_if_that_is_asked_for_alone(self, fitted, tmp_path, capsys, refused):
        shutil.copytree(fitted / "fit", tmp_path / "fit", ignore=shutil.ignore_patterns("checkpoint.npz"))
        command = ["fit", str(fitted / "data/train"), "--set", "kernel=collapsed", "--iterations", "2"]
        mc2([*command, "--out", tmp_path / "new"])
        assert "replaced" not in capsys.readouterr().err
        before = (tmp_path / "fit/posterior.npz").read_bytes()
        assert main([*command, "--out", str(tmp_path / "fit")]) == 2
        why = "without a checkpoint to resume from; --overwrite replaces it\n"
        assert capsys.readouterr().err == f"mc2: error: --out {tmp_path}/fit holds a fit of 3 iterations {why}"
        assert (tmp_path / "fit/posterior.npz").read_bytes() == before
        mc2([*command, "--overwrite", "--out", tmp_path / "fit"])
        assert (tmp_path / "fit/posterior.npz").read_bytes() != before
        (tmp_path / "fit/provenance.json").write_text("[]")
        (tmp_path / "fit/checkpoint.npz").unlink()
        refused([*command, "--out", tmp_path / "fit"], f"--out {tmp_path}/fit holds a fit {why}")

    def test_does_not_write_where_it_cannot_or_must_not(self, fitted, tmp_path, monkeypatch, capsys):
        corpus, file = fitted / "data/train", tmp_path / "sotu.csv"
        file.write_text("text\n")
        before = sorted(path.name for path in corpus.iterdir())
        monkeypatch.chdir(corpus)
        of_corpus, of_file = (
            "is the folder of the corpus; give another folder for the fit",
            f"{file} is a file; give a folder",
        )
        for out, message in ((corpus, of_corpus), (".", of_corpus), (file, of_file), (file / "fit", of_file)):
            assert main(["fit", str(corpus), "--iterations", "1", "--out", str(out)]) == 2
            said = capsys.readouterr().err
            assert said.startswith(f"mc2: error: --out {out}")
            assert said.endswith(f"{message}\n")
            assert said.count("\n") == 1
        assert sorted(path.name for path in corpus.iterdir()) == before
        assert file.read_text() == "text\n"

    def test_contexts_left_out_are_named_at_its_start(self, fitted, tmp_path, caplog):
        caplog.set_level(logging.INFO, "mc2core")
        command = ["fit", str(fitted / "data/train"), "--set", "kernel=collapsed", "--iterations", "2"]
        year = ["--context", "year:normal_gamma"]
        for context, ignored in ((year, ["author", "title"]), ([], ["author", "title", "year"])):
            caplog.clear()
            mc2([*command, *context, "--out", tmp_path / str(len(ignored))])
            said = [record.getMessage() for record in caplog.records if "contexts of" in record.getMessage()]
            assert said == [f"contexts of the corpus that this fit does not use: {', '.join(ignored)}"]

    def test_a_second_one_into_the_same_folder_is_refused(self, fitted, tmp_path, capsys):
        command = ["fit", str(fitted / "data/train"), "--iterations", "2", "--out", str(tmp_path)]
        with storage.exclusive_lock(tmp_path / "posterior.npz", "a test"):
            assert main(command) == 2
        error = f"mc2: error: {tmp_path}/posterior.npz is in use by another fit that is still running; wait for it or "
        assert capsys.readouterr().err.startswith(error)
        assert list(tmp_path.iterdir()) == []


STOPPED_AT_AN_IMPORT = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell's background jobs lack
class Stop:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[1]:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Stop())
from {package}.cli import main
sys.exit(main(["{command}", "nothing", "--out", "nowhere"]))
"""


class TestStopped:
    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    @pytest.mark.parametrize("where", ["mc2core.corpus.Corpus.load", "mc2core.inference.gibbs.engine.Gibbs.init"])
    def test_before_the_first_checkpoint(self, fitted, tmp_path, monkeypatch, capsys, where, number):
        """While the corpus is read, and in the start."""

        def stop(*_, **__):
            os.kill(os.getpid(), number)
            for _ in range(100):
                time.sleep(0.01)
                stopping.check()

        monkeypatch.setattr(where, stop)
        monkeypatch.setattr("mc2core.inference.running.loop._warm", lambda *_: 0.0)
        with pytest.raises(SystemExit) as stopped:
            main(["fit", str(fitted / "data/train"), "--iterations", "3", "--out", str(tmp_path / "fit")])
        assert stopped.value.code == 128 + number
        said = capsys.readouterr().err
        assert said == "mc2: stopped; the same command starts again, as there is no checkpoint yet\n"

    @pytest.mark.parametrize("number", first([signal.SIGINT, signal.SIGTERM]))
    def test_a_fit_leaves_a_posterior_of_its_samples_so_far(self, fitted, tmp_path, number):
        command = [sys.executable, "-m", "mc2core", "fit", str(fitted / "data/train"), "--iterations", "100000"]
        command += ["--burn-in", "2", "--out", str(tmp_path), "--set", "kernel=collapsed", "--chains", "1"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as run:
            trace = tmp_path / "trace.tsv"
            while not trace.is_file() or trace.read_text().count("\n") < 6:
                assert run.poll() is None
                time.sleep(0.05)
            run.send_signal(number)
            said = run.communicate()[1]
        assert run.returncode == 128 + number
        assert "Traceback" not in said
        about = json.loads((tmp_path / "provenance.json").read_text())
        assert len(Posterior.load(tmp_path / "posterior.npz").samples) == about["stopped_at"] - 2 > 0
        assert (tmp_path / "checkpoint.npz").is_file()
        told = f"{tmp_path}/posterior.npz has the result after {about['stopped_at']:.4g} iterations\n"
        assert said.endswith(f"mc2: stopped; the same command resumes from the checkpoint; {told}")

    @pytest.mark.parametrize(
        ("program", "package", "command", "module"),
        [("mc2", "mc2core.app", "fit", name) for name in ("argparse", "logging", "mc2core.base.progress", "numpy")]
        + [("mc2papers", "mc2papers", "corpus", name) for name in ("argparse", "numpy")],
    )
    def test_ctrl_c_while_a_command_loads_shows_no_traceback(self, program, package, command, module, tmp_path):
        script = STOPPED_AT_AN_IMPORT.format(package=package, command=command)
        done = subprocess.run([sys.executable, "-c", script, module], capture_output=True, cwd=tmp_path, check=False)
        assert (done.returncode, done.stderr.decode()) == (130, f"{program}: stopped\n")

    def test_ctrl_c_of_a_job_ends_it_without_a_traceback(self, tmp_path):
        script = """
import os, signal, sys
from mc2core.base.logs import job
signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell's background jobs lack
with job(sys.argv[1]):
    os.kill(os.getpid(), signal.SIGINT)
    import time; time.sleep(5)
"""
        done = subprocess.run([sys.executable, "-c", script, str(tmp_path / "a.log")], capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (130, b"")
        assert "interrupted" in (tmp_path / "a.log").read_text()


class TestCommands:
    @pytest.mark.parametrize(
        ("command", "message"),
        [
            ("topics .", ". is a folder; the folder of a fit or an array file (.npz) is needed"),
            (f"topics {HERE}", "test_command_line.py is not a complete array file: File is not a zip file"),
            ("clusters nowhere .", "nowhere is missing; the folder of a fit or an array file (.npz) is needed"),
            ("topics DATA", "is a folder that holds a corpus; the folder of a fit or an array file (.npz) is"),
            (f"fit {HERE} --out x", "it is a file; mc2 import makes the folder of a corpus of documents"),
            ("fit nowhere --iterations 1 --out x", "nowhere holds no corpus: corpus.json is missing"),
            ("topics nothing.npz", "nothing.npz"),
            ("sheet fit --score a.csv", "a.csv: No such file or directory"),
            ("import 'a- 5.csv' --out x", "a- 5.csv is missing"),
            (f"{FIT} --engine gibs", "engine is 'gibs'"),
            (f"{FIT} --set kernle=blocked", "did you mean 'kernel'?"),
            (f"{FIT} --set kernel", "must have the form name=value"),
            (f"{FIT} --set topic_word_prior=[1", "topic_word_prior is '[1'; it must be"),
            (f"{FIT} --context yaer:normal_gamma", "has no context 'yaer'"),
            (f"{FIT} --context year:normal", "use 'normal_gamma' for a number or a date"),
            (f"{FIT} --context =normal_gamma", "must have the form NAME, NAME:FAMILY or NAME:FAMILY,SETTING=VALUE,..."),
            (f"{FIT} --context year:normal_gamma,", "have the form NAME, NAME:FAMILY or NAME:FAMILY,SETTING=VALUE"),
            (f"{FIT} --context year:normal_gamma,2", "'year:normal_gamma,2': '2' must have the form name=value"),
            (f"{FIT} --context year:normal_gamma,strenght=1", "no setting 'strenght'; did you mean 'strength'?"),
            (f"{FIT} --context year:normal_gamma,strength=2", "NormalGamma strength is 2; it must lie between 0"),
            (f"{FIT} --context yaer", "the corpus has no context 'yaer'; it has: author, title, year"),
            (f"{FIT} --model mc3", "model is 'mc3'; allowed: hdp, mc2, mixture, nptot; did you mean 'mc2'?"),
            (f"{FIT} --model hdp --context year", "model 'hdp' uses words only; it cannot use context"),
            (
                f"{FIT} --set document_level=false --set document_concentration=3",
                "document_concentration needs document_level=True (--set document_level=true)",
            ),
            (f"{FIT} --burn-in 3 --thin=4", "--burn-in 3 and --thin 4 leave no sample in "),
            ("contexts DATA fit year", "data/train is a corpus and fit is not; give the fit first"),
            ("contexts fit year DATA", "data/train is a corpus and year is not; give the corpus first"),
            (f"{FIT} --clusters 3 --set n_clusters=4", "'n_clusters' is set twice"),
            (
                f"{FIT} --clusters 3 --engine svi --set max_clusters=4",
                "max_clusters is 4; with --clusters, here 3, it must be None",
            ),
            (f"{FIT} --clusters 3 --model hdp", "hdp with gibbs has no setting 'n_clusters'"),
            (f"{FIT} --iterations 0", "error: --iterations is 0; it must be a whole number of at least 1"),
        ],
    )
    def test_bad_input_ends_with_2_and_one_sentence(self, fitted, tmp_path, monkeypatch, capsys, command, message):
        monkeypatch.chdir(tmp_path)
        assert main(shlex.split(command.replace("DATA", str(fitted / "data/train")))) == 2
        error = capsys.readouterr().err.strip().splitlines()[-1]
        assert error.startswith("mc2: error: ")
        assert message in error
        assert not (tmp_path / "x").exists()

    def test_what_is_written_to_a_terminal_breaks_between_words(self):
        reader, writer = pty.openpty()
        fcntl.ioctl(writer, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 60, 0, 0))
        found = "found 12 clusters (10 to 14 in 90 % of samples) and 40 topics; over the last 4 iterations"
        command = "next: mc2 describe results/own/fit/posterior.npz results/own/corpus --out results/own/description"
        with open(reader), open(writer, "w") as stream:
            assert in_lines(f"{found}\n{command}", stream).split("\n") == [
                "found 12 clusters (10 to 14 in 90 % of samples) and 40",
                "  topics; over the last 4 iterations",
                "next: mc2 describe results/own/fit/posterior.npz \\",
                "  results/own/corpus --out results/own/description",
            ]
        assert in_lines(found, io.StringIO()) == found

    def test_help_names_every_command_and_estimator(self, capsys):
        said = []
        for command in (["--help"], ["contexts", "--help"], ["evaluate", "--help"]):
            with pytest.raises(SystemExit) as stopped:
                main(command)
            assert stopped.value.code == 0
            said.append(" ".join(capsys.readouterr().out.split()))
        assert all(f"mc2 {name}" in said[0] for name in ("import", "fit", "evaluate", "topics", "clusters", "verify"))
        assert all("mean and 90 % interval of a number" in text for text in said[:2])
        assert all(name in said[2] for name in ESTIMATORS)

    def test_a_reader_that_has_read_enough_is_no_error(self, fitted):
        command = f"{PYTHON} -m mc2core topics {quote(fitted / 'fit/posterior.npz')} | true; exit ${{PIPESTATUS[0]}}"
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")

    @pytest.mark.parametrize(
        ("streams", "code", "said", "commands"),
        first(
            [
                (">&-", 2, "Bad file descriptor", ["topics {fit}"]),
                (">/dev/full", 2, "No space left on device", ["topics {fit}", "verify {fit}", "--help", "fit --help"]),
                ("2>&-", 0, "", ["topics {fit}", "--help"]),
                ("2>/dev/full", 0, "", ["verify {fit}"]),
                (">/dev/null <&- 2>&-", 0, "", ["topics {fit}"]),
            ]
        ),
    )
    def test_output_that_cannot_be_written_is_no_traceback(self, fitted, streams, code, said, commands):
        error = [f"mc2: error: standard output could not be written: {said}"] if said else []
        for command in commands:
            line = f"{PYTHON} -m mc2core {command.format(fit=quote(fitted / 'fit/posterior.npz'))} {streams}"
            done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
            lines = [one for one in done.stderr.splitlines() if not re.match("[a-z ]+: [0-9]+ s$", one)]  # of progress
            assert (done.returncode, lines) == (code, error), command

    @pytest.mark.parametrize("streams", first(["2>/dev/full", ">&- 2>&-"]))
    def test_an_error_that_cannot_be_said_keeps_its_exit_code(self, streams):
        line = f"{PYTHON} -m mc2core topics nowhere {streams}"
        assert subprocess.run(["bash", "-c", line], check=False).returncode == 2

    @pytest.mark.slow
    def test_no_file_gets_the_number_of_a_closed_stream(self, fitted, tmp_path):
        """Else what is printed would be in the middle of it."""
        out = tmp_path / "new"
        paths = " ".join(map(quote, (fitted / "fit", fitted / "data/train", "--out", out)))
        line = f"{PYTHON} -m mc2core describe {paths} >&- 2>&-"
        assert subprocess.run(["bash", "-c", line], check=False).returncode == 2  # it says where the page is
        assert not [one for one in out.iterdir() if b"open it in a browser" in one.read_bytes()]
        assert (out / "index.html").is_file()

    def test_predict_says_that_there_is_nothing_to_read(self, fitted):
        line = f"{PYTHON} -m mc2core predict {quote(fitted / 'fit')} <&-"
        done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
        error = "mc2: error: standard input is closed; mc2 predict reads documents from it\n"
        assert (done.returncode, done.stderr) == (2, error)

    def test_codes_of_missing_values_may_begin_with_a_dash(self, tmp_path):
        (tmp_path / "a.csv").write_text("text,age\nsea ferry,-99\nsea bread,7\nsea,-\n")
        command = ["import", str(tmp_path / "a.csv"), "--text", "text", "--context", "age:number"]
        mc2([*command, "--missing", "-99", "--missing", "-,x", "--out", tmp_path / "corpus"])
        assert Corpus.load(tmp_path / "corpus").missing("age").tolist() == [True, False, True]

    @pytest.mark.parametrize(
        "order", ["F --cut 2 C", "--cut 2 F C", "F C --cut 2", "F --cut=2 --threads 1 C", "--cut 2 -- F C"]
    )
    def test_options_may_stand_between_arguments(self, fitted, default_fit, output_of, order):
        paths = {"F": default_fit, "C": fitted / "data/train"}
        printed = output_of(["clusters", *(paths.get(part, part) for part in order.split())])
        assert set(pd.read_csv(io.StringIO(printed))["cluster"]) == {1, 2}

    @pytest.mark.parametrize(
        ("program", "command", "error"),
        [
            (main, ["fit", "data", "--out", "x", "--cut", "3"], "mc2 fit: error: unrecognized arguments: --cut 3"),
            (main, ["topics", "--words", "a", "x"], "mc2 topics: error: argument --words: invalid int value: 'a'"),
            (main, ["clusters", "--cut", "3"], "mc2 clusters: error: the following arguments are required: FIT"),
            (prepare, ["corpus", "a", "b", "--out", "x"], "mc2papers corpus: error: unrecognized arguments: b"),
        ],
    )
    def test_a_wrong_option_shows_the_usage_of_its_command(self, capsys, program, command, error):
        with pytest.raises(SystemExit) as stopped:
            program(command)
        assert stopped.value.code == 2
        usage, *_, last = capsys.readouterr().err.splitlines()
        assert usage.startswith(f"usage: {error.split(':')[0]} [-h]")
        assert last == error

    def test_verify_reads_all_there_is_and_names_what_was_changed(self, fitted, tmp_path, capsys):
        corpus, model = tmp_path / "corpus", tmp_path / "posterior.npz"
        shutil.copytree(fitted / "data/train", corpus)
        shutil.copy(fitted / "fit/posterior.npz", model)
        checkpoint.write(tmp_path / "c.npz", checkpoint.Checkpoint({}, 0, 0.0, {"cluster": np.zeros(2)}))
        mc2(f"verify {corpus} {model} {tmp_path}/c.npz")
        assert capsys.readouterr().out.splitlines() == [
            f"{corpus}: complete corpus of {Corpus.load(corpus).n_documents} documents",
            f"{model}: complete posterior of 2 samples",
            f"{tmp_path}/c.npz: complete checkpoint at iteration 0",
            f"{model}: {corpus} is the corpus of the fit; the fit was made with the installed versions",
        ]
        names = (corpus / "context.author.names.txt").read_text()
        (corpus / "context.author.names.txt").write_text(names.swapcase())
        Corpus.load(corpus)
        assert main(["verify", str(model), str(corpus)]) == 2
        error = f"{corpus}/context.author.names.txt was changed after it was saved: its digest differs"
        assert capsys.readouterr().err == f"mc2: error: {error}\n"
        (tmp_path / "bad.npz").write_bytes(b"bad")
        paths = [tmp_path / "bad.npz", model, corpus, tmp_path / "missing", tmp_path / "c.npz"]
        assert main(["verify", *map(str, paths)]) == 2
        said = capsys.readouterr()
        assert [line.split(":")[0] for line in said.out.splitlines()] == [str(model), f"{tmp_path}/c.npz"]
        assert said.err.splitlines() == [
            f"mc2: error: {tmp_path}/bad.npz is not a complete array file: File is not a zip file",
            f"mc2: error: {error}",
            f"mc2: error: {tmp_path}/missing is missing; the folder of a fit or an array file (.npz) is needed",
        ]
