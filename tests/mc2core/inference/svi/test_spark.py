"""SVI-MC2 on Spark: the bits of the local engine, and what is wrong on an executor in one sentence."""

import os
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from helpers.fits import svi

from mc2core import Corpus
from mc2core.app.cli import main
from mc2core.compute import spark
from mc2core.families import DirichletCategorical, NormalGamma
from mc2core.inference.running.loop import fit
from mc2core.inference.shards import name_of, open_shard, remove_steps_of_killed_processes, step_file, write_shards

FAMILIES = {"tag": DirichletCategorical(0.1), "year": NormalGamma()}


def corpus_of(n_documents=120, n_words=40):
    rng = np.random.default_rng(3)
    cluster = rng.integers(4, size=n_documents)
    rate = 0.1 + 2.0 * (np.arange(n_words) // 10 == cluster[:, None])
    content = rng.poisson(rate)
    content[7] = 0  # an empty document
    tag = sp.csr_matrix(rng.poisson(0.6 * (np.arange(6) == cluster[:, None])))
    year = rng.normal(cluster, 0.5)
    year[::5] = np.nan
    return Corpus(content, contexts={"tag": tag, "year": year})


CASES = {
    "direct": {"max_clusters": 6, "max_topics": 8},
    "tables": {"max_clusters": 6, "max_topics": 8, "max_tables": 4},
    "full batch": {"max_clusters": 6, "max_topics": 8, "batch_size": None},
    # topics so sparse that likelihoods of words vanish: documents are assigned anew
    "vanishing": {"max_clusters": 6, "max_topics": 8, "topic_word_prior": 0.001},
}


@pytest.fixture(scope="module")
def local_spark(tmp_path_factory):
    with spark.session({"spark.master": "local[2]", spark.FOLDER: tmp_path_factory.mktemp("shards")}):
        yield


def same(one, other):
    assert one.keys() == other.keys()
    for name in one:
        assert np.array_equal(one[name], other[name], equal_nan=True), name


def files(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def damaged(made, how):
    path = made.folder / name_of(1)
    if how == "missing":
        shutil.rmtree(path)
    elif how == "changed":
        counts = np.load(path / "content.data.npy")
        counts[3], counts[4] = counts[4] + 1, counts[3] + 1
        np.save(path / "content.data.npy", counts)
    elif how == "cut off":
        file = path / "content.data.npy"
        file.write_bytes(file.read_bytes()[:-40])
    else:
        shutil.rmtree(path)
        shutil.copytree(made.folder / name_of(0), path)


DAMAGE = ["missing", "changed", "cut off", "another one"]


class TestFits:
    @pytest.mark.needs("spark")
    @pytest.mark.parametrize("case", CASES)
    def test_one_shard_has_the_bits_of_the_local_engine(self, local_spark, case):
        corpus, settings = corpus_of(), {"batch_size": 30, "contexts": FAMILIES} | CASES[case]
        here = fit(corpus, *svi(**settings), iterations=2, progress=False)
        there = fit(corpus, *svi(**settings, n_shards=1), iterations=2, progress=False)
        same(here.state.arrays(), there.state.arrays())
        assert here.trace.drop(columns="seconds").equals(there.trace.drop(columns="seconds"))

    @pytest.mark.needs("spark")
    def test_several_shards_sum_up_to_the_same_figures(self, local_spark):
        corpus, settings = corpus_of(), {"batch_size": 30, "contexts": FAMILIES} | CASES["direct"]
        here = fit(corpus, *svi(**settings), iterations=2, progress=False)
        there = fit(corpus, *svi(**settings, n_shards=7), iterations=2, progress=False)
        assert there.trace["elbo"].to_numpy() == pytest.approx(here.trace["elbo"].to_numpy(), rel=1e-9)
        assert (here.state.cluster == there.state.cluster).all()
        again = fit(corpus, *svi(**settings, n_shards=7), iterations=2, progress=False)
        same(there.state.arrays(), again.state.arrays())

    @pytest.mark.needs("spark")
    def test_a_document_without_a_finite_weight_is_named(self, local_spark):
        corpus = corpus_of()
        corpus = corpus.with_contexts({"year": np.where(np.arange(120) == 60, 1e300, corpus.contexts["year"])})
        corpus.units = {"year": (0.0, 1.0)}  # or fit() refuses to standardise it
        messages = []
        for n_shards in (None, 3):
            engine = svi(
                max_clusters=4,
                max_topics=4,
                contexts={"year": NormalGamma()},
                n_shards=n_shards,
                initialisation="random",
            )
            with pytest.raises(ValueError, match="document 60") as caught, np.errstate(all="ignore"):
                fit(corpus, *engine, iterations=1, progress=False)
            messages.append(str(caught.value))
        assert messages[0] == messages[1]


class TestShards:
    def test_documents_in_their_order(self, tmp_path):
        corpus = corpus_of()
        made = write_shards(corpus, tmp_path, 7)
        parts = [open_shard(made, p) for p in range(7)]
        assert [part.n_documents for part in parts] == np.diff(made.bounds).tolist()
        assert (sp.vstack([part.content for part in parts]) != corpus.content).nnz == 0
        years = np.concatenate([part.contexts["year"] for part in parts])
        assert np.array_equal(years, corpus.contexts["year"], equal_nan=True)
        stamp = (made.folder / "00003" / "corpus.json").stat().st_mtime_ns
        assert write_shards(corpus, tmp_path, 7).digests == made.digests
        assert (made.folder / "00003" / "corpus.json").stat().st_mtime_ns == stamp  # they are there already
        assert write_shards(corpus, tmp_path, 500).bounds.tolist() == list(range(121))  # no more than documents

    def test_words_and_contexts_alone(self, tmp_path):
        plain = corpus_of()
        names, titles = [f"word{i}" for i in range(40)], pd.DataFrame({"title": [f"title {i}" for i in range(120)]})
        tags = {"tag": list("abcdef")}
        full = Corpus(plain.content, names, plain.contexts, np.arange(120) % 3, titles, context_names=tags)
        assert full.digest == plain.digest
        of_full, of_plain = (write_shards(one, tmp_path / name, 2) for one, name in ((full, "full"), (plain, "plain")))
        assert files(of_full.folder) == files(of_plain.folder)
        assert full.vocabulary == names
        assert full.labels[4] == 1
        assert full.documents["title"][7] == "title 7"

    @pytest.mark.parametrize("how", DAMAGE)
    def test_damage_is_not_opened(self, tmp_path, how):
        made = write_shards(corpus_of(), tmp_path, 3)
        damaged(made, how)
        with pytest.raises(ValueError, match="00001"):
            open_shard(made, 1)

    @pytest.mark.needs("spark")
    @pytest.mark.parametrize("how", DAMAGE)
    def test_damage_ends_the_fit_with_shard_and_host(self, local_spark, how):
        corpus = corpus_of().subset(np.arange(100 - DAMAGE.index(how))).with_contexts({})  # shards of its own
        damaged(write_shards(corpus, spark.folder(), 3), how)
        with pytest.raises(ValueError, match=r"^shard 00001 on \S+: .*00001") as caught:
            fit(corpus, *svi(max_clusters=3, max_topics=4, batch_size=50, n_shards=3), iterations=1, progress=False)
        assert "\n" not in str(caught.value)
        assert caught.value.__cause__ is None

    def test_files_of_killed_steps_are_removed(self, tmp_path):
        left, ours = tmp_path / "step-host-1-0.npz", tmp_path / "step-host-2-0.npz"
        left.write_bytes(b"half a step")
        with step_file(ours, {"rows": np.arange(3)}):
            remove_steps_of_killed_processes(tmp_path)
            assert [path.name for path in tmp_path.iterdir()] == [ours.name]
            with np.load(ours) as step:
                assert np.array_equal(step["rows"], np.arange(3))
        assert not list(tmp_path.iterdir())


class TestSession:
    @pytest.mark.parametrize(("lack", "message"), [("java", "Java 17"), ("pyspark", "pip install")])
    def test_what_is_missing_is_said(self, tmp_path, monkeypatch, capsys, lack, message):
        monkeypatch.setattr("importlib.util.find_spec", lambda name: None if lack == "pyspark" else object())
        monkeypatch.setattr(spark.shutil, "which", lambda name: None)
        monkeypatch.delenv("JAVA_HOME", raising=False)
        assert message in spark.missing()
        corpus_of().with_contexts({}).save(tmp_path / "corpus")
        command = f"fit {tmp_path / 'corpus'} --engine svi --iterations 1 --out {tmp_path / 'fit'}".split()
        settings = "document_level=false", "n_shards=2", "spark.master=local[2]"
        assert main([*command, *(word for one in settings for word in ("--set", one))]) == 2
        error = capsys.readouterr().err
        assert error.splitlines()[-1].startswith("mc2: error: Spark needs ")
        assert message in error

    def test_properties_of_other_programs_are_refused(self):
        with (
            pytest.raises(ValueError, match=r"'executor.memory' is not a property of Spark"),
            spark.session({"executor.memory": "1g"}),
        ):
            pass


@pytest.mark.needs("spark")
def test_ctrl_c_stops_a_fit_between_two_steps(tmp_path):
    """Of the whole foreground, as a terminal sends it; pyspark's own handler would fail within a call of the JVM."""
    corpus_of().save(tmp_path / "corpus")
    command = [sys.executable, "-m", "mc2core", "fit", str(tmp_path / "corpus"), "--engine", "svi"]
    command += ["--set", "document_level=false", "--set", "n_shards=2", "--set", "spark.master=local[1]"]
    command += ["--set", "max_clusters=6", "--iterations", "100000", "--out", str(tmp_path / "fit")]
    trace = tmp_path / "fit/trace.tsv"
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True) as run:
        while not trace.is_file() or trace.read_text().count("\n") < 3:
            assert run.poll() is None
            time.sleep(0.05)
        os.killpg(run.pid, signal.SIGINT)
        said = run.communicate()[1]
    assert run.returncode == 130
    assert "Traceback" not in said
    assert "mc2: stopped; the same command resumes from the checkpoint; " in said
