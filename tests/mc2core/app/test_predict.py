"""``mc2 predict``: what comes out for the lines that go in, beside predictions of a corpus; and what may go wrong."""

import io
import json
import os
import re
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from helpers.commands import mc2
from helpers.explored_fits import data_of

from mc2core import Corpus, Fit, Posterior
from mc2core.app.cli import main
from mc2core.base.faults import Fault
from mc2core.corpus.readers import lines as of_lines
from mc2core.corpus.readers.lines import LineReader
from mc2core.families import BetaBernoulli, GammaPoisson, GaussWishart, NormalGamma
from mc2core.inference import Gibbs
from mc2core.inference.running.loop import fit
from mc2core.models import MC2
from mc2core.posterior.proportions import DocumentTopics

WORDS = [f"{first}{second}" for first in ("boat", "oven", "bird") for second in ("one", "two", "three", "four", "five")]
RECORDS = [
    {"id": "a", "abstract": "Boatone, the boatthree's boatfive!", "when": "2001-07-02", "by": ["Roe"]},
    {"id": "b", "abstract": "ovenone oventwo unheard", "when": None, "by": ["Nobody", "New"]},
    {"id": 7, "abstract": "birdfive birdfour", "by": []},
    {"id": "d", "abstract": "", "when": "1999"},
    {"abstract": "unheard of", "when": "2020", "by": ["Nobody"]},
]


def lines(records):
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def made_up(n, seed=0):
    """Documents of three themes, each with its author and its years."""
    random = np.random.default_rng(seed)
    for number in range(n):
        theme = number % 3
        text = " ".join(random.choice(WORDS[5 * theme : 5 * theme + 5], 12))
        when = f"{1990 + 10 * theme + int(random.integers(5))}-03"
        yield {"id": str(number), "abstract": text, "when": when, "by": [("Roe", "New", "Poe")[theme]]}


@pytest.fixture(scope="module", params=["documents", "printed"])
def fitted(request, tmp_path_factory):
    """A posterior of one sample with a date and names, with a document level and without."""
    folder = tmp_path_factory.mktemp(request.param)
    (folder / "own.jsonl").write_bytes(lines(made_up(60)))
    contexts = ["--context", "year=when:date", "--context", "author=by:bag"]
    told = ["--text", "abstract", "--id", "id", *contexts, "--out", str(folder / "data")]
    mc2(["import", folder / "own.jsonl", *told])
    chosen = ["--engine", "svi", "--set", "max_clusters=6", "--set", "max_topics=6", "--set", "batch_size=20"]
    chosen += ["--set", "document_level=false"] if request.param == "printed" else []
    fit = ["fit", str(folder / "data"), "--context", "year", "--context", "author", *chosen, "--iterations", "3"]
    mc2([*fit, "--out", folder / "fit"])
    return folder


def predict(monkeypatch, capfd, posterior, given, *options):
    """Exit code, records and lines on standard error for ``given`` bytes."""
    reading, writing = os.pipe()
    sender = threading.Thread(target=lambda: (os.write(writing, given), os.close(writing)))
    sender.start()
    with open(reading, "rb") as stream:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=stream))
        capfd.readouterr()
        code = main(["predict", str(posterior), *options])
    sender.join()
    said = capfd.readouterr()
    return code, [json.loads(line) for line in said.out.splitlines()], said.err.splitlines()


def test_lines_are_told_as_the_documents_of_a_corpus(fitted, tmp_path, monkeypatch, capfd):
    """Clusters of ``Posterior.predict_proba``, topics of the tables of ``mc2 describe``, contexts of
    ``predict_context``."""
    (tmp_path / "new.jsonl").write_bytes(lines(one | {"id": str(i)} for i, one in enumerate(RECORDS)))
    file = fitted / "fit/posterior.npz"
    mc2(f"import {tmp_path}/new.jsonl --like {file} --out {tmp_path}/new")
    corpus, posterior = Corpus.load(tmp_path / "new"), Posterior.load(file)
    code, found, errors = predict(monkeypatch, capfd, file, lines(RECORDS), "--top", "2")
    assert (code, errors) == (0, [])
    assert [one["line"] for one in found] == [1, 2, 3, 4, 5]
    assert [one.get("id") for one in found] == ["a", "b", 7, "d", None]
    assert [one["tokens"] for one in found] == [3, 2, 2, 0, 0]
    cluster = posterior.predict_proba(corpus).argmax(axis=1)
    recommended, probability = posterior.assign(corpus, cut="recommended")
    assert [one["cluster"] - 1 for one in found] == recommended.tolist()
    assert [one["probability"] for one in found] == pytest.approx(probability.max(axis=1), abs=1e-6)
    tokens = DocumentTopics(posterior.representative).tokens(corpus, cluster, 1).toarray()
    for one, row in zip(found, tokens, strict=True):
        assert len(one["topics"]) == (2 if one["tokens"] else 0)
        for topic in one["topics"]:
            assert topic["share"] == pytest.approx(row[topic["topic"] - 1] / one["tokens"], abs=1e-6)
        largest = sorted(row / max(one["tokens"], 1), reverse=True)[: len(one["topics"])]
        assert [topic["share"] for topic in one["topics"]] == pytest.approx(largest, abs=1e-6)
    # what a document shows is not told; an unknown name shows nothing
    both = ["author", "year"]
    assert [sorted(one["contexts"]) for one in found] == [[], ["year"], both, ["author"], ["author"]]
    columns, shares = posterior.predict_context(corpus, "author").ranking(2)
    year = posterior.predict_context(corpus, "year")
    for j in (2, 3, 4):
        names = [corpus.context_names["author"][column] for column in columns[j]]
        assert [one["name"] for one in found[j]["contexts"]["author"]] == names
        assert [one["probability"] for one in found[j]["contexts"]["author"]] == pytest.approx(shares[j], abs=1e-5)
    for j in (1, 2):
        told = found[j]["contexts"]["year"]
        expected = [year.mean[j], *year.interval()[j]]
        assert [told["mean"], told["low"], told["high"]] == pytest.approx(expected, rel=1e-4)


def test_a_number_is_the_same_cluster_wherever_it_is_shown(fitted, tmp_path, monkeypatch, capfd):
    file, data = fitted / "fit/posterior.npz", fitted / "data"
    _, predicted, _ = predict(monkeypatch, capfd, file, lines(made_up(60)))
    mc2(f"clusters {file} {data}")
    printed = pd.read_csv(io.StringIO(capfd.readouterr().out))
    mc2(f"describe {file} {data} --out {tmp_path}")
    page, fit = data_of((tmp_path / "index.html").read_text()), Fit(Posterior.load(file), Corpus.load(data))
    assert printed["cluster"].nunique() > 1
    of_page = page["tables"]["documents"]["cluster"]
    written = pd.read_csv(tmp_path / "documents.csv")["cluster"]
    for shown in (of_page, written, fit.documents()["cluster"], [one["cluster"] for one in predicted]):
        assert list(shown) == printed["cluster"].tolist()
    names = dict(zip(printed["cluster"], printed["cluster_name"], strict=True))
    levels, codes = page["nodes"]["name"].values()
    first = zip(page["nodes"]["cluster"], (levels[code] for code in codes), strict=True)
    assert names.items() <= dict(first).items()
    for table in (pd.read_csv(tmp_path / "clusters.csv"), fit.clusters()):
        assert dict(zip(table["cluster"], table["name"], strict=True)) == names


def test_a_damaged_line_is_named_by_number_and_the_rest_is_read(fitted, monkeypatch, capfd):
    good = lines([RECORDS[0]])
    given = (
        good + b'{"abstract": "boat\n' + b"\n  \n" + good + b"[1]\n" + b'{"abstract": "\xff"}\n' + b'{"when": 2001}\n'
    )
    given += lines([{"abstract": ["boatone"]}, {"abstract": "boatone", "when": "soon"}, {"abstract": "x", "by": [{}]}])
    given += good.strip()  # the last line has no end
    code, found, errors = predict(monkeypatch, capfd, fitted / "fit/posterior.npz", given)
    assert code == 2
    assert [one["line"] for one in found] == [1, 5, 12]
    assert all(one | {"line": 0} == found[0] | {"line": 0} for one in found)
    expected = [
        r"mc2: line 2 is not one JSON object: .+",
        r"mc2: line 6 holds \[1\], not one JSON object",
        r"mc2: line 7 is not UTF-8 text: byte 0xff at place \d+",
        r"mc2: line 8 has no key 'abstract', which holds the words \(keys: 'when'\)",
        r"mc2: line 9, column 'abstract': found \['boatone'\]; text is needed",
        r"mc2: line 10, column 'when': found 'soon'; a date such as .+ is needed, or an empty cell",
        r"mc2: line 11, column 'by': found the name .+; names are text",
    ]
    assert len(errors) == len(expected)
    for error, pattern in zip(errors, expected, strict=True):
        assert re.fullmatch(pattern, error)


def test_a_value_its_family_refuses_is_named_the_rest_is_read(tmp_path, monkeypatch, capfd):
    random = np.random.default_rng(0)
    contexts = {
        "visits": random.poisson(3.0, 30).astype(float),
        "on": random.integers(0, 2, 30).astype(float),
        "year": random.normal(0.0, 0.1, 30),
        "place": random.normal(0.0, 1.0, (30, 2)),
    }
    families = {"visits": GammaPoisson(), "on": BetaBernoulli(), "year": NormalGamma(), "place": GaussWishart()}
    corpus = Corpus(random.integers(0, 5, (30, 2)), ["boat", "oven"], contexts)
    fit(corpus, MC2(document_level=False, contexts=families), Gibbs(), iterations=2).posterior.save(tmp_path / "p.npz")
    good = {"words": {"boat": 2}, "visits": 3, "on": 1, "year": 0.05, "place": [0.0, 1.0]}
    bad = [{"visits": -1}, {"visits": 1.5}, {"on": 2}, {"year": 1e308}, {"place": [0.5, None]}, {"visits": -2, "on": 3}]
    given = lines([good, *(good | one for one in bad), {"words": [{}]}, good, {"words": ["oven"]}])
    code, found, errors = predict(monkeypatch, capfd, tmp_path / "p.npz", given)
    assert (code, [one["line"] for one in found]) == (2, [1, 9, 10])
    alone = predict(monkeypatch, capfd, tmp_path / "p.npz", lines([good]))[1]
    assert [one | {"line": 1} for one in found[:2]] == alone * 2
    expected = [
        r"line 2, column 'visits': holds -1\.0; counts are whole numbers .*",
        r"line 3, column 'visits': holds 1\.5; counts are whole numbers .*",
        r"line 4, column 'on': holds 2\.0; values are 0 or 1 .*",
        r"line 5, column 'year': holds 1e\+308, which is too far from the numbers of the fit \(mean .*, standard .*\)",
        r"line 6, column 'place': lacks part of its vector; .*",
        r"line 7, column 'visits': holds -2\.0; counts are whole numbers .*",
        r"line 8, column 'words': .*",
    ]
    assert len(errors) == len(expected)
    for error, pattern in zip(errors, expected, strict=True):
        assert re.fullmatch(f"mc2: {pattern}", error)
    assert predict(monkeypatch, capfd, tmp_path / "p.npz", lines([good | bad[0]]))[:2] == (2, [])


def test_keys_may_have_other_names(fitted, monkeypatch, capfd):
    file = fitted / "fit/posterior.npz"
    renamed = {"abstract": "body", "when": "date", "by": "writers", "id": "key"}
    given = lines({renamed[key]: value for key, value in record.items()} for record in RECORDS)
    options = ["--text", "body", "--context", "year=date", "--context", "author=writers", "--id", "key"]
    code, found, errors = predict(monkeypatch, capfd, file, given, *options)
    assert (code, errors) == (0, [])
    assert found == predict(monkeypatch, capfd, fitted / "fit", lines(RECORDS))[1]  # the folder of the fit
    options[3] = "year=Year"
    code, _, errors = predict(monkeypatch, capfd, file, given, *options)
    assert (code, errors) == (0, ["mc2: no line has the key 'Year', which was given for context 'year'"])
    assert main(["predict", str(file), "--context", "place=town"]) == 2
    assert "context 'place' is not in the model, which has: author, year" in capfd.readouterr().err


def test_words_no_table_was_read_for_are_bags_and_texts(fitted, tmp_path, monkeypatch, capfd):
    """The same documents as bags, for the model without its import, and as texts, for one of texts."""
    posterior = Posterior.load(fitted / "fit/posterior.npz")
    expected = predict(monkeypatch, capfd, fitted / "fit/posterior.npz", lines(RECORDS[:1]))[1]
    imported, bag = posterior.imported, {"boatone": 1, "boatthree": 1, "boatfive": 1, "unheard": 5}
    record = {"id": "a", "year": 2001 + 182 / 365, "author": ["Roe"]}
    for of_import, content in (
        (None, {"words": bag}),
        ({"form": "texts", "settings": {}}, {"text": RECORDS[0]["abstract"]}),
    ):
        if of_import:
            words = "tokeniser", "stop_words", "min_letters", "max_ngram", "word_counts"
            of_import["settings"] = {name: imported["settings"][name] for name in words}
        posterior.imported = of_import
        posterior.save(tmp_path / "other.npz")
        assert predict(monkeypatch, capfd, tmp_path / "other.npz", lines([record | content]))[:2] == (0, expected)


def test_a_model_without_clusters_of_documents_is_refused(fitted, tmp_path, capfd):
    posterior = Posterior.load(fitted / "fit/posterior.npz")
    own = replace(posterior.samples[0], new_cluster_weight=1.0, cluster=np.arange(posterior.samples[0].n_clusters))
    replace(posterior, samples=[own], hierarchy=None).save(tmp_path / "hdp.npz")
    for command in (["predict"], ["clusters"]):
        corpus = [str(fitted / "data")] * (command != ["predict"])
        assert main([*command, str(tmp_path / "hdp.npz"), *corpus]) == 2
        said = capfd.readouterr()
        assert (said.out, "this posterior has no clusters to" in said.err) == ("", True)


@pytest.fixture
def service(fitted):
    """``mc2 predict`` as a process."""
    command = [sys.executable, "-m", "mc2core", "predict", str(fitted / "fit/posterior.npz"), "--threads", "1"]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(command, bufsize=0, **pipes) as process:
        yield process
        process.kill()


ONE_OF_TWO = [  # a process does the same with either model
    pytest.param("documents", marks=pytest.mark.slow),
    "printed",
]


@pytest.mark.parametrize("fitted", ONE_OF_TWO, indirect=True)
def test_no_document_waits_for_the_next(service):
    """The answer comes while the input stays open; a test that hangs here has failed."""
    for number in (1, 2):
        service.stdin.write(lines(RECORDS[:1]))
        assert json.loads(service.stdout.readline())["line"] == number
    service.stdin.close()
    assert service.wait(60) == 0


@pytest.mark.parametrize("fitted", ONE_OF_TWO, indirect=True)
def test_a_reader_that_ends_is_no_error(service):
    sender = threading.Thread(target=feed, args=(service.stdin, 100_000), daemon=True)
    sender.start()
    assert json.loads(service.stdout.readline())["line"] == 1
    service.stdout.close()
    assert service.wait(60) == 0
    assert service.stderr.read() == b""
    sender.join(60)
    assert not sender.is_alive()


def feed(stream, n):
    """Documents with new words and names in each, as far as they are taken."""
    try:
        for number in range(n):
            own = {
                "abstract": f"boatone unheard{number}x ovenone{number}x",
                "by": [f"Nobody {number}"],
                "id": str(number),
            }
            stream.write(lines([own]))
        stream.close()
    except (BrokenPipeError, OSError):
        return


@pytest.mark.slow
@pytest.mark.parametrize("fitted", ["printed"], indirect=True)
def test_memory_does_not_grow_with_the_stream(service):
    """Most memory ever, after 10,000 documents and after 30,000: within 4 MB, the allocator's slack."""
    sender = threading.Thread(target=feed, args=(service.stdin, 30_000), daemon=True)
    sender.start()
    most = {}
    for number, line in enumerate(io.BufferedReader(service.stdout), start=1):
        if number in (10_000, 30_000):
            assert json.loads(line)["line"] == number
            status = Path(f"/proc/{service.pid}/status").read_text(encoding="utf-8")
            most[number] = int(re.search(r"VmHWM:\s+(\d+) kB", status)[1])
    assert service.wait(60) == 0
    assert most[30_000] - most[10_000] < 4_096


class TestPipes:
    def batches(self, pieces, most):
        """Batches of what is written piece by piece, the next one after each batch, and then the end."""
        reading, writing = os.pipe()
        found, left = [], list(pieces)
        os.write(writing, left.pop(0))
        with open(reading, "rb", buffering=0) as stream:
            for batch in of_lines.batches_of_lines(stream, most):
                found.append(batch)
                if left:
                    os.write(writing, left.pop(0))
                elif writing is not None:
                    os.close(writing)
                    writing = None
        return found

    def test_lines_that_wait_come_together_and_no_batch_waits(self):
        found = self.batches([b"a\nb\nc\nd", b"e\n", b"\nf"], 2)
        assert found == [[(1, b"a"), (2, b"b")], [(3, b"c"), (4, b"de")], [(5, b"")], [(6, b"f")]]

    def test_a_line_beyond_the_limit_is_a_fault_and_held_nowhere(self, monkeypatch):
        monkeypatch.setattr(of_lines, "MAX_LINE_BYTES", 10)
        monkeypatch.setattr(of_lines, "_CHUNK", 4)
        found = self.batches([b"0123456789\n0123456789a\nbcd\n0123456789ab"], 10)
        too_long = Fault("has more than 10 bytes, the most that is allowed")
        assert [line for batch in found for line in batch] == [
            (1, b"0123456789"),
            (2, too_long),
            (3, b"bcd"),
            (4, too_long),
        ]


def test_vectors_are_lists_of_numbers():
    like = Corpus(np.eye(2, dtype=int), ["boat", "oven"], contexts={"emb": np.array([[1.0, 2.0], [3.0, np.nan]])})
    given = [{"words": ["oven"], "emb": [0.5, None]}, {"words": {"boat": 2}}, {"words": [], "emb": [1]}]
    found = LineReader(like, {}).read(enumerate(lines(given).splitlines(), start=1))
    assert found.corpus.content.toarray().tolist() == [[0, 1], [2, 0]]
    np.testing.assert_array_equal(found.corpus.contexts["emb"], [[0.5, np.nan], [np.nan, np.nan]])
    assert found.corpus.missing("emb").tolist() == [False, True]
    assert [str(bad) for bad in found.bad] == [
        "line 3, column 'emb': found [1]; a list of 2 numbers, or null, is needed"
    ]
