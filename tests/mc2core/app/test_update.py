"""``mc2 update``: fits in files that go on with new documents, killed or not, by names, and what is said of drift."""

import json
import multiprocessing
import os
import shlex
import shutil
import signal

import numpy as np
import pandas as pd
import pytest
from helpers.commands import mc2
from helpers.crossed import first

from mc2core import Corpus, Fit, Posterior
from mc2core.app.cli import main
from mc2core.base import storage
from mc2core.inference import Stream
from mc2core.inference.running import update
from mc2core.inference.running.update import _FitFile, update_fit
from mc2core.inference.svi import stream as stream_of_svi

SEA, BREAD = ["ferry", "harbour", "sail", "tide", "wave"], ["bread", "crust", "flour", "oven", "yeast"]


def stream_of(fits, total_samples=None):
    return _FitFile.read(fits / "svi/posterior.npz").stream(total_samples)


def rows(n, seed, subjects=(SEA, BREAD), authors=("ann", "bob"), words=8):
    rng = np.random.default_rng(seed)
    made = []
    for number in range(n):
        which = int(rng.integers(len(subjects)))
        about = {"id": f"{seed}-{number}", "by": [authors[which % len(authors)]], "year": 1990 + which}
        made.append({"text": " ".join(rng.choice(subjects[which], words))} | about)
    return made


def written(path, some):
    path.write_text("".join(json.dumps(row) + "\n" for row in some))
    return str(path)


COLUMNS = ["--text", "text", "--context", "author=by:bag", "--context", "year:number", "--id", "id"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A corpus, a fit of it by SVI and one by Gibbs."""
    made = tmp_path_factory.mktemp("update")
    old = written(made / "old.jsonl", rows(60, 0))
    mc2(["import", old, *COLUMNS, "--out", made / "data"])
    command = ["fit", str(made / "data"), "--context", "year", "--context", "author"]
    settings = ["max_clusters=4", "max_topics=6", "batch_size=10"]
    svi = [part for one in settings for part in ("--set", one)]
    mc2([*command, "--engine", "svi", *svi, "--iterations", "4", "--out", made / "svi"])
    gibbs = ["--set", "start_topics=4", "--set", "start_clusters=3", "--iterations", "4", "--chains", "2"]
    mc2([*command, *gibbs, "--out", made / "gibbs"])
    return made


@pytest.fixture(autouse=True)
def _an_update_has_several_blocks(monkeypatch):
    monkeypatch.setattr(stream_of_svi, "_BLOCK", 10)


@pytest.fixture
def fits(folder, tmp_path):
    """Copies to change."""
    for name in ("svi", "gibbs", "data"):
        shutil.copytree(folder / name, tmp_path / name)
    return tmp_path


def test_a_fit_that_cannot_be_updated_says_what_to_do(fits):
    posterior = Posterior.load(fits / "gibbs")
    posterior.provenance["engine"] = {"name": "fastex"}
    posterior.save(fits / "gibbs/posterior.npz")
    why = r"is by fastex, which cannot be updated .* mc2 import --like and mc2 clusters"
    with pytest.raises(ValueError, match=why):
        update_fit(fits / "gibbs", fits / "data")


def test_it_is_the_stream_of_python_from_a_file_or_a_corpus(fits, output_of):
    new = written(fits / "new.jsonl", rows(35, 1))
    mc2(f"import {new} --like {fits}/data --out {fits}/new")
    said = output_of(f"update {fits}/svi {fits}/new --total-samples 500 --out {fits}/one")
    assert "35 documents added\n" in said
    assert "(documents of the fit, after training on them: -" in said
    mc2(f"update {fits}/svi {new} --total-samples 500 --threads 2 --out {fits}/two")
    stream = stream_of(fits, 500).partial_fit(Corpus.load(fits / "new"))
    for name in ("one", "two"):
        found = Stream.load(fits / name / "posterior.npz")
        assert (found.total_samples, found.n_documents) == (500, 35)
        ours, theirs = stream._state.arrays(), found._state.arrays()
        assert all(np.array_equal(ours[array], theirs[array], equal_nan=True) for array in ours)
    about = json.loads((fits / "one/provenance.json").read_text())
    assert about["seed"] == 0
    taken = about["stream"]["updates"][0]
    assert (taken["file"], taken["documents"], taken["tokens"]) == ("new", 35, 280)
    assert taken["from"] == storage.read_signed(fits / "svi/posterior.npz")[1]
    assert len(taken["batches"]) == 4
    said = Fit(Posterior.load(fits / "one"), Corpus.load(fits / "new")).methods()
    assert "to 60 documents." in said
    assert "The fit was then updated with 35 documents in 1 update." in said
    mc2(f"clusters {fits}/two/posterior.npz {fits}/new")


def test_names_stay_with_their_clusters_after_an_update(fits, caplog):
    """Numbers are ranks by size, which new documents of one subject change."""

    def report(fit, *more):
        out = fits / f"{fit}-report"
        mc2(["describe", fits / fit, fits / "data", *more, "--out", out])
        return pd.read_csv(out / "clusters.csv").set_index("cluster"), pd.read_csv(out / "names.csv")

    def called(words):
        return "Ships" if words.split()[0] in SEA else "Bakers"

    clusters, names = report("svi")
    is_named = (names["of"] == "cluster") & (names["level"] == "recommended")
    names.loc[is_named, "name"] = names.loc[is_named, "words"].map(called)
    names.to_csv(fits / "names.csv", index=False)
    first = called(clusters["words"][1])
    smaller = BREAD if first == "Ships" else SEA
    new = written(fits / "new.jsonl", rows(120, 5, subjects=(smaller,)))
    mc2(f"import {new} --append --out {fits}/data")
    mc2(f"update {fits}/svi {new} --total-samples 180")
    clusters, _ = report("svi", "--names", str(fits / "names.csv"))
    assert called(clusters["words"][1]) != first
    assert clusters["name"].to_dict() == clusters["words"].map(called).to_dict()
    moved = f"the name {first!r} of cluster 1 has moved to cluster "
    assert moved in caplog.text
    assert moved in (fits / "svi-report/summary.md").read_text()


def test_columns_of_a_file_may_have_other_names(fits, output_of, refused, monkeypatch):
    """As in the error that names the option; the same bits, and the next steps that are told can be done."""
    monkeypatch.chdir(fits)
    some, renamed = rows(25, 14), {"text": "body", "by": "writers", "year": "year", "id": "key"}
    same = written(fits / "same.jsonl", some)
    other = written(fits / "other.jsonl", [{renamed[key]: value for key, value in row.items()} for row in some])
    refused(f"update svi {other}", "has no column 'text', which held the words; name another with --text COLUMN")
    options = "--text body --context author=writers --id key"
    said = output_of(
        f"update svi/posterior.npz {other} {options} --out one"
    ).splitlines()  # the file of the fit will do
    assert said[0] == "one/posterior.npz: 25 documents added"
    for step in said[-1].removeprefix("next: ").split("; "):
        mc2(shlex.split(step.replace("FOLDER", "corpus"))[1:])
    mc2(f"update svi {same}")
    one, two = (Posterior.load(folder) for folder in ("one", "svi"))
    np.testing.assert_array_equal(one.word_given_topic, two.word_given_topic)
    np.testing.assert_array_equal(one.context_parameters("author"), two.context_parameters("author"))
    refused("update one data --text body", "'text' applies only to a file of documents, but data is a corpus")


def test_an_update_by_other_columns_is_not_taken_up(fits, monkeypatch, refused):
    monkeypatch.setattr(update, "_CHECKPOINT_SECONDS", 0.0)
    new = written(fits / "new.jsonl", [row | {"title": row["text"]} for row in rows(25, 15)])
    assert killed_at(2, ["update", str(fits / "svi"), new, "--text", "title"], "replace") == -signal.SIGKILL
    refused(f"update {fits}/svi {new}", "update.npz belongs to another update")


def test_update_in_place_takes_each_file_once(fits, refused):
    days = [written(fits / f"day{day}.jsonl", rows(20, day)) for day in (1, 2)]
    for day in days:
        mc2(f"update {fits}/svi {day}")
    before = {path.name: path.read_bytes() for path in (fits / "svi").iterdir()}
    assert set(before) == {"posterior.npz", "provenance.json", "trace.tsv"}
    assert Stream.load(fits / "svi/posterior.npz").n_documents == 40
    mc2(f"update {fits}/svi {days[1]}")  # the last one again: it may have been killed at its end
    assert {path.name: path.read_bytes() for path in (fits / "svi").iterdir()} == before
    refused(f"update {fits}/svi {days[0]}", "; a document can be used only once")
    refused(f"update {fits}/svi {fits}/data", "; a document can be used only once")
    updates = json.loads((fits / "svi/provenance.json").read_text())["stream"]["updates"]
    assert [(one["file"], "batches" in one) for one in updates] == [("day1.jsonl", False), ("day2.jsonl", True)]


def test_a_document_whose_id_came_before_is_left_out(tmp_path, output_of, refused, caplog):
    """Some of the fit and of an earlier update, which was killed on its way, come again among others that are new."""
    fitted = tmp_path / "svi"
    days = {"old": rows(60, 0, words=40), "one": rows(30, 1, words=40), "two": rows(25, 2, words=40)}
    old = written(tmp_path / "old.jsonl", days["old"])
    mc2(["import", old, *COLUMNS, "--out", tmp_path / "data"])
    settings = [part for one in ("max_clusters=4", "max_topics=6", "batch_size=10") for part in ("--set", one)]
    command = ["fit", str(tmp_path / "data"), "--context", "year", "--context", "author", "--engine", "svi", *settings]
    mc2([*command, "--iterations", "2", "--out", fitted])
    one = written(tmp_path / "one.jsonl", days["one"])
    assert killed_at(1, ["update", str(fitted), one], "replace") == -signal.SIGKILL
    mc2(f"update {fitted} {one}")
    shutil.copytree(fitted, tmp_path / "alone")
    again = written(tmp_path / "two.jsonl", [*days["old"][3:9], *days["two"], *days["one"][5:19]])
    alone = written(tmp_path / "alone.jsonl", days["two"])
    said = "25 documents added; 20 documents left out as repeated (same id or file)"
    assert said in output_of(f"update {fitted} {again}")
    assert "left out: 20 documents: already in the fit" in caplog.text
    mc2(f"update {tmp_path}/alone {alone}")
    found, wanted = (Stream.load(path / "posterior.npz") for path in (fitted, tmp_path / "alone"))
    assert (found.n_documents, found.updates[-1]["repeated"]) == (55, 20)
    ours, theirs = found._state.arrays(), wanted._state.arrays()
    assert all(np.array_equal(ours[array], theirs[array], equal_nan=True) for array in ours)
    assert set(found.taken) == set(wanted.taken)
    error = "; a document can be used only once"
    refused(["update", fitted, written(tmp_path / "three.jsonl", days["one"][:4])], error)


def test_without_ids_only_the_same_file_has_the_same_documents(tmp_path, output_of, refused):
    """New documents with the words of earlier ones were left out: of short texts most are like another."""
    (made := [row for seed in range(3) for row in rows(20, seed, words=1)])
    for row in made:
        del row["id"]
    old, one, two = (written(tmp_path / f"{n}.jsonl", made[20 * n : 20 * n + 20]) for n in range(3))
    data, fitted = str(tmp_path / "data"), str(tmp_path / "svi")
    mc2(["import", old, *COLUMNS[:-2], "--out", data])
    settings = [part for one in ("max_clusters=4", "max_topics=6", "batch_size=10") for part in ("--set", one)]
    command = ["fit", data, "--context", "year", "--context", "author", "--engine", "svi", *settings]
    mc2([*command, "--iterations", "1", "--out", fitted])
    for same in (old, data):
        refused(f"update {fitted} {same}", "; a document can be used only once")
    assert "20 documents added; new columns: " in output_of(f"update {fitted} {one}")
    mc2(f"update {fitted} {two}")
    for same in (old, data, one):
        refused(f"update {fitted} {same}", "; a document can be used only once")
    # of a corpus of several files, those that are new
    last = written(tmp_path / "3.jsonl", made[5:12])
    for file in (one, last):
        mc2(f"import {file} --append --out {data}")
    said = "7 documents added; 40 documents left out as repeated (same id or file)"
    assert said in output_of(f"update {fitted} {data}")
    stream = Stream.load(fitted)
    assert (stream.n_documents, len(stream.taken)) == (47, 0)
    # a part of a corpus is not the file that the whole came from
    Corpus.load(data).subset([3, 4]).save(tmp_path / "part")
    mc2(f"update {fitted} {tmp_path}/part")


def test_names_decide_and_new_ones_get_columns(fits, output_of):
    """A file whose words come in another order, with a word and an author that are new in several documents."""
    known = Posterior.load(fits / "svi/posterior.npz")
    some = rows(30, 3)
    for row in some[:4]:
        row["text"] += " snow snow snow"
        row["by"] = ["zoe"]
    some[0]["text"] += " hail"
    new = written(fits / "new.jsonl", some)
    said = output_of(f"update {fits}/svi {new} --new-columns 4 --out {fits}/one")
    assert "30 documents added; new columns: 1 word, 1 value of author" in said
    found = Posterior.load(fits / "one/posterior.npz")
    assert found.vocabulary == [*known.vocabulary, "snow"]
    assert found.context_names["author"] == ["ann", "bob", "zoe"]
    mc2(["import", new, *COLUMNS, "--out", fits / "new"])
    corpus = Corpus.load(fits / "new")
    order, people = np.random.default_rng(0).permutation(corpus.n_words), [2, 0, 1]
    turned = Corpus(
        corpus.content[:, order], [corpus.vocabulary[word] for word in order],
        {"author": corpus.contexts["author"][:, people], "year": corpus.contexts["year"]},
        context_names={"author": [corpus.context_names["author"][a] for a in people]},
    )  # fmt: skip
    turned.save(fits / "turned")
    mc2(f"update {fits}/svi {fits}/turned --new-columns 4 --out {fits}/two")
    other = Posterior.load(fits / "two/posterior.npz")
    assert other.vocabulary == found.vocabulary
    np.testing.assert_array_equal(other.representative.natural, found.representative.natural)
    np.testing.assert_array_equal(other.word_given_topic, found.word_given_topic)
    share = found.word_given_topic[:, found.vocabulary.index("snow")] @ found.representative.topic_weights
    assert share > 0.005


def test_a_new_column_has_the_mass_of_the_prior_and_no_more(fits):
    stream, before = stream_of(fits), stream_of(fits).posterior
    some = rows(5, 4)
    for row in some:
        row["text"] += " snow hail"
        row["by"] = ["zoe"]
    new = written(fits / "new.jsonl", some)
    mc2(["import", new, *COLUMNS, "--out", fits / "new"])
    placed = stream.grow(Corpus.load(fits / "new"), 5)
    assert placed.vocabulary == stream.posterior.vocabulary == [*before.vocabulary, "hail", "snow"]
    sample, n_words = before.representative, before.n_words
    s, tokens = sample.topic_word_prior, sample.topic_words.sum(axis=1)
    factor = (tokens + s * n_words) / (tokens + s * (n_words + 2))
    after = stream.posterior.word_given_topic
    np.testing.assert_allclose(after[:, :n_words], factor[:, None] * before.word_given_topic, rtol=1e-12)
    np.testing.assert_allclose(after[:, n_words:], np.repeat(s / (tokens + s * (n_words + 2)), 2).reshape(-1, 2))
    authors, years = (stream.posterior.context_parameters(name) for name in ("author", "year"))
    assert authors.shape == (len(stream.posterior.cluster_weights), 3)
    assert (authors[:, 2] == stream.posterior.families["author"].concentration).all()
    assert np.array_equal(authors[:, :2], before.context_parameters("author"))
    assert np.array_equal(years, before.context_parameters("year"))


def test_documents_without_new_names_are_learnt_from_as_ever(fits):
    new = written(fits / "new.jsonl", rows(30, 5))
    mc2(f"import {new} --like {fits}/data --out {fits}/new")
    corpus = Corpus.load(fits / "new")
    plain = stream_of(fits).partial_fit(corpus).posterior
    stream = stream_of(fits)
    assert stream.grow(corpus, 1).vocabulary == corpus.vocabulary
    np.testing.assert_array_equal(stream.partial_fit(corpus).posterior.word_given_topic, plain.word_given_topic)


def killed_at(left, command, name, number=signal.SIGKILL):
    """Run a command in a process that gets a signal at its call ``left`` of a function of ``os``; its exit code."""

    def run():
        real, state = getattr(os, name), {"left": left}

        def call(*arguments, **more):
            if state["left"] == 0:
                os.kill(os.getpid(), number)
            state["left"] -= 1
            return real(*arguments, **more)

        setattr(os, name, call)
        os._exit(main(command))

    child = multiprocessing.get_context("fork").Process(target=run)
    child.start()
    child.join()
    return child.exitcode


@pytest.mark.parametrize("is_in_place", first([True, False]))
def test_killed_anywhere_and_run_again_nothing_is_lost_or_twice(fits, monkeypatch, is_in_place):
    monkeypatch.setattr(update, "_CHECKPOINT_SECONDS", 0.0)
    new = written(fits / "new.jsonl", [*rows(30, 6), *rows(6, 7, subjects=[[*SEA, "snow"]])])
    mc2(f"update {fits}/svi {new} --out {fits}/undisturbed")
    wanted = (fits / "undisturbed/posterior.npz").read_bytes()
    old = (fits / "svi/posterior.npz").read_bytes()
    out = fits / ("svi" if is_in_place else "out")
    command, codes = ["update", str(fits / "svi"), new, *([] if is_in_place else ["--out", str(out)])], []
    calls = [*((n, "replace") for n in (0, 1, 1)), (0, "fsync"), (1, "unlink"), (2, "replace"), (1, "replace")]
    for left, name in calls:
        codes.append(killed_at(left, command, name))
        path = out / "posterior.npz"
        if path.is_file() and not is_in_place:
            assert path.read_bytes() == wanted
        if is_in_place:
            assert path.read_bytes() in (old, wanted)
    assert codes.count(-signal.SIGKILL) >= 5
    mc2(command)
    assert (out / "posterior.npz").read_bytes() == wanted
    if not is_in_place:
        assert (fits / "svi/posterior.npz").read_bytes() == old
    assert not list(out.glob("update.npz"))
    assert not list(out.glob(".*"))


def test_a_signal_stops_it_with_a_checkpoint(fits, monkeypatch, capfd):
    monkeypatch.setattr(update, "_CHECKPOINT_SECONDS", 0.0)
    new = written(fits / "new.jsonl", rows(30, 13))
    old = (fits / "svi/posterior.npz").read_bytes()
    code = killed_at(0, ["update", str(fits / "svi"), new], "replace", signal.SIGTERM)
    assert code == 128 + signal.SIGTERM
    assert "mc2: stopped; the same command completes the update" in capfd.readouterr().err
    assert (fits / "svi/posterior.npz").read_bytes() == old
    taken = Stream.load(fits / "svi/update.npz").updates[-1]["documents"]
    assert 0 < taken < 30
    assert main(["update", str(fits / "svi"), new, "--total-samples", "7"]) == 2
    assert "belongs to another update" in capfd.readouterr().err
    mc2(f"update {fits}/svi {new}")
    assert Stream.load(fits / "svi/posterior.npz").n_documents == 30


def test_drift_is_told_and_kept(fits, capsys):
    for day, subjects in ((1, (SEA, BREAD)), (2, (SEA, BREAD))):
        mc2(["update", fits / "svi", written(fits / f"{day}.jsonl", rows(40, day, subjects))])
    assert "may no longer fit" not in capsys.readouterr().err
    about = json.loads((fits / "svi/provenance.json").read_text())
    assert about["drift"]["warnings"] == []
    first, second = about["stream"]["updates"]
    assert about["drift"]["before"] == first["log_evidence"] / first["tokens"]
    assert about["drift"]["log_likelihood"] == second["log_evidence"] / second["tokens"]
    # every document of both subjects at once, whose words the model holds apart
    mixed = [[*SEA, *BREAD]]
    mc2(["update", fits / "svi", written(fits / "3.jsonl", rows(40, 3, mixed))])
    warning = "mc2: the model may no longer fit: the new documents are less likely than the documents of earlier"
    assert warning in capsys.readouterr().err
    other = [["iron", "steel", "anvil", "forge", "bread"]]
    mc2(["update", fits / "svi", written(fits / "4.jsonl", rows(40, 4, other)), "--new-columns", "41"])
    assert "of the words of the new documents are unknown" in capsys.readouterr().err


def test_what_cannot_go_on_is_refused_in_a_sentence(fits, refused):
    new = written(fits / "new.jsonl", rows(12, 8))
    out = str(fits / "out")
    (fits / "bare").mkdir()
    shutil.copy(fits / "svi/posterior.npz", fits / "bare")
    wrong = [
        (["svi", "--iterations", "3"], "a fit by svi uses each new document once"),
        (["gibbs", "--total-samples", "9", "--out", out], "only fits by svi use it"),
        (["gibbs", "--out", str(fits / "gibbs")], "a fit by gibbs is a new fit; give another folder with --out"),
        (["gibbs", "--iterations", "0"], "--iterations is 0"),
        (["bare"], "checkpoint.npz is missing; mc2 fit writes it, and an update needs it"),
        (["svi", "--new-columns", "0"], "--new-columns is 0; it must be"),
        (["nowhere"], "nowhere is missing; the folder of a fit or an array file (.npz) is needed"),
        (["data"], "data is a folder that holds a corpus; the folder of a fit or an array file (.npz) is needed"),
        (["copy.npz"], "copy.npz is not posterior.npz in the folder of a fit"),
    ]
    shutil.copy(fits / "svi/posterior.npz", fits / "copy.npz")
    (fits / "empty.jsonl").write_text("")
    refused(f"update {fits}/svi {fits}/empty.jsonl", f"{fits / 'empty.jsonl'} has no document")
    for (name, *more), message in wrong:
        where = new if name != "gibbs" else str(fits / "data")
        refused(["update", fits / name, where, *more], message)
    refused(f"update {fits}/gibbs {fits}/data --out {out}", "has no documents other than those of the fit")
    old = written(fits / "old.jsonl", rows(60, 0)[:5])
    refused(f"update {fits}/gibbs {old} --out {out}", "are in the fit already (same ids)")
    mc2(f"update {fits}/svi {new} --total-samples 100")
    later = written(fits / "later.jsonl", rows(12, 9))
    refused(f"update {fits}/svi {later} --total-samples 200", "--total-samples is 200, but")


MOON = ["comet", "moon", "orbit", "planet", "star"]


def test_new_documents_join_clusters_or_open_new_ones(fits, output_of):
    """Old ones keep their clusters and numbers; the corpus with all documents and the file of new ones say the same."""
    before = Posterior.load(fits / "gibbs")
    some = rows(15, 10) + rows(12, 11, subjects=(MOON,), authors=("cid",))
    new = written(fits / "new.jsonl", some)
    said = output_of(f"update {fits}/gibbs {new}")
    out = fits / "gibbs-updated"
    assert f"{out / 'posterior.npz'}: 27 documents added" in said
    after, added = Posterior.load(out), Corpus.load(out / "added")
    size = before.hierarchy.recommended
    assert after.hierarchy.recommended == size + 1
    for n in range(1, before.hierarchy.n_clusters + 1):
        assert np.array_equal(after.hierarchy.cut(n + 1)[:60], before.hierarchy.cut(n))
        assert np.array_equal(after.hierarchy.at(n + 1)[:60], before.hierarchy.at(n))
    assert np.array_equal(after.cluster[:60], before.cluster)
    assert np.array_equal(after.by_size[after.cluster[:60]], before.by_size[before.cluster])
    for one, sample in zip(after.samples, before.samples, strict=True):
        assert np.array_equal(one.cluster[:60], sample.cluster)
        # draws of words, of which there is one at least for each word of a document
        assert added.content.nnz <= one.topic_words.sum() - sample.topic_words.sum() <= added.n_tokens
    found = after.hierarchy.cut(size + 1)[60:]
    subject = [SEA, BREAD, MOON]
    which = np.array([next(k for k, words in enumerate(subject) if row["text"].split()[0] in words) for row in some])
    table = pd.crosstab(which, found)
    assert table.shape == (3, 3)
    assert (table > 0).sum().sum() == 3  # each subject has a cluster
    assert set(found[which == 2]) == {size}  # the new one has the last number
    documents, clusters = (pd.read_csv(out / f"{name}.csv") for name in ("added", "clusters"))
    assert (documents["cluster"] == found + 1).all()
    assert documents["new"].fillna("").tolist() == ["yes" if one == 2 else "" for one in which]
    assert documents["probability"].between(0.5, 1.0).all()
    assert clusters["documents"].sum() == 87
    assert clusters["added"].tolist() == np.bincount(found).tolist()
    assert f"cluster {size + 1} ({clusters['name'].iloc[-1]}) new: 12 documents" in said
    assert set(clusters["name"].iloc[-1].split(", ")) <= set(MOON)
    about = json.loads((out / "provenance.json").read_text())["updates"][0]
    assert (about["documents"], about["before"], about["new_words"], about["sweeps"]) == (27, 60, 5, 20)
    mc2(f"import {new} --append --out {fits}/data")
    mc2(f"update {fits}/gibbs {fits}/data --threads 2 --out {fits}/all")
    whole = Posterior.load(fits / "all")
    assert np.array_equal(whole.cluster, after.cluster)
    corpus = Corpus.load(fits / "all/corpus")
    assert whole.was_fitted_on(corpus)
    assert np.array_equal(whole.assign(corpus, cut="recommended")[0][60:], found)
    said = Fit(whole, corpus).methods()
    assert "27 documents were added to the 60 of the fit in 1 update: given each sample" in said
    mc2(f"describe {fits}/all {fits}/all/corpus --out {fits}/report")
    written_before = (out / "posterior.npz").stat().st_mtime_ns
    mc2(f"update {fits}/gibbs {new}")  # again: nothing is left to do
    assert (out / "posterior.npz").stat().st_mtime_ns == written_before


def test_updates_follow_each_other(fits, output_of, refused):
    first, second = (written(fits / f"{seed}.jsonl", rows(10, seed)) for seed in (20, 21))
    mc2(f"update {fits}/gibbs {first}")
    both = written(fits / "both.jsonl", rows(10, 20) + rows(10, 21) + rows(8, 22, subjects=(MOON,)))
    assert "18 documents added" in output_of(f"update {fits}/gibbs-updated {both}")  # ten came before
    one, two = Posterior.load(fits / "gibbs-updated"), Posterior.load(fits / "gibbs-updated2")
    assert two.added.before.tolist() == [60, 70]
    assert np.array_equal(two.cluster[:70], one.cluster)
    size = one.hierarchy.recommended
    assert np.array_equal(two.hierarchy.cut(size + 1)[:70], one.hierarchy.cut(size))
    assert [one["documents"] for one in two.provenance["updates"]] == [10, 18]
    refused(f"update {fits}/gibbs {second}", "gibbs-updated holds another fit")


def test_words_and_values_are_new_by_the_rules_of_the_import(tmp_path, caplog):
    """A word in fewer documents than the import asked for has no column; rarely used names neither."""
    old, out = written(tmp_path / "old.jsonl", rows(40, 0)), tmp_path / "data"
    mc2(["import", old, *COLUMNS, "--min-df", "3", "--rare", "author=2", "--out", out])
    mc2(f"fit {out} --context author --iterations 4 --out {tmp_path}/fit")
    some = rows(6, 1)
    for row, word, author in zip(some, ["ice", "ice", "ice", "fog", "fog", "sea"], "xxyzzz", strict=True):
        row["text"] += f" {word}"
        row["by"].append(author)
    new = written(tmp_path / "new.jsonl", some)
    mc2(f"update {tmp_path}/fit {new}")
    found, before = Posterior.load(tmp_path / "fit-updated"), Posterior.load(tmp_path / "fit")
    assert set(found.vocabulary) - set(before.vocabulary) == {"ice"}
    assert set(found.context_names["author"]) - set(before.context_names["author"]) == {"x", "z"}
    assert "left out: 2 words: unknown to the model" in caplog.text
    mc2(f"update {tmp_path}/fit {new} --new-columns 1 --out {tmp_path}/one")
    assert set(Posterior.load(tmp_path / "one").vocabulary) - set(before.vocabulary) == {"ice", "fog", "sea"}


def test_a_new_fit_is_due_after_many_or_strange_documents():
    update_of = {"before": 100, "documents": 20, "sizes": [60, 60], "n_old_clusters": 2, "left_out_tokens": 0}
    update_of |= {"tokens": 100, "unsure": 1}
    assert update.needs_new_fit({"updates": [update_of]}) == []
    assert "40 documents were added to the 100" in update.needs_new_fit({"updates": [update_of, update_of]})[0]
    strange = update_of | {"sizes": [60, 50, 10], "left_out_tokens": 50, "unsure": 9}
    reasons = update.needs_new_fit({"updates": [strange]})
    assert [one.split(" of the ")[0] for one in reasons] == ["10", "33%", "9"]
    assert len(update.needs_new_fit({"updates": [strange | {"unsure_before": 0.3}]})) == 2
    assert "and 20% of the earlier ones" in update.needs_new_fit({"updates": [strange | {"unsure_before": 0.2}]})[2]


def test_an_update_of_another_is_not_taken_up(fits, monkeypatch):
    monkeypatch.setattr(update, "_CHECKPOINT_SECONDS", 0.0)
    one, other = (written(fits / f"{seed}.jsonl", rows(25, seed)) for seed in (11, 12))
    assert killed_at(2, ["update", str(fits / "svi"), one], "replace") == -signal.SIGKILL
    with pytest.raises(ValueError, match=r"update\.npz belongs to another update; finish that one, or remove it"):
        update_fit(fits / "svi", other)


def test_what_to_do_next_can_be_done(fits, capsys, output_of, monkeypatch):
    monkeypatch.chdir(fits)
    written(fits / "new.jsonl", rows(12, 8))
    for new in ("new.jsonl", "corpus"):
        steps = output_of(f"update svi {new}").splitlines()[-1].removeprefix("next: ").split("; ")
        for step in steps:
            program, *command = step.replace("FOLDER", "corpus").split()
            assert program == "mc2"
            mc2(command)
        assert len(capsys.readouterr().out.splitlines()) > 12
        mc2(["import", written(fits / "later.jsonl", rows(12, 9)), *COLUMNS, "--overwrite", "--out", "corpus"])


def test_a_fit_does_not_replace_updates_unasked(fits, refused):
    for seed in (8, 9):
        mc2(["update", fits / "svi", written(fits / f"{seed}.jsonl", rows(12, seed))])
    command = f"fit {fits}/data --engine svi --set batch_size=10 --iterations 1 --out {fits}/svi"
    refused(command, f"--out {fits / 'svi'} holds a fit of 4 iterations and 2 updates without")
    assert len(Stream.load(fits / "svi").updates) == 2


@pytest.mark.parametrize("engine", ["svi", "gibbs"])
def test_an_update_does_not_replace_another_fit(fits, refused, engine):
    new = written(fits / "new.jsonl", rows(12, 8))
    if engine == "gibbs":
        mc2(f"import {new} --append --out {fits}/data")
        new = str(fits / "data")
    shutil.copytree(fits / "svi", fits / "other", ignore=shutil.ignore_patterns("checkpoint*"))
    before = (fits / "other/posterior.npz").read_bytes()
    error = f"{fits / 'other'} holds another fit; name another folder, or remove it"
    refused(["update", fits / engine, new, "--out", fits / "other"], error)
    assert (fits / "other/posterior.npz").read_bytes() == before
    error = f"{fits / 'data'} holds a corpus; name another folder, or remove it"
    refused(["update", fits / engine, new, "--out", fits / "data"], error)
    assert not (fits / "data/posterior.npz").exists()


def test_the_posterior_is_read_and_verified_once(fits, monkeypatch):
    """It may be gigabytes: by an update of a fit, by one of an update, in place or not, and by one that has all."""
    read, path = [], {"svi": fits / "svi/posterior.npz", "gibbs": fits / "gibbs/posterior.npz"}
    open_whole, digest = storage.read_signed, storage.digest_file
    monkeypatch.setattr(storage, "read_signed", lambda one: read.append(str(one)) or open_whole(one))
    monkeypatch.setattr(storage, "digest_file", lambda one: read.append(str(one)) or digest(one))
    new = written(fits / "new.jsonl", rows(12, 1))
    for out in (fits / "one", fits / "svi", fits / "svi", fits / "svi"):
        read.clear()
        update_fit(fits / "svi", new, out=out, progress=False)
        assert read.count(str(path["svi"])) == 1
        new = new if len(read) < 2 else written(fits / "more.jsonl", rows(12, 2))
    read.clear()
    more = written(fits / "more.jsonl", rows(9, 3))
    mc2(f"import {more} --append --out {fits}/data")
    update_fit(fits / "gibbs", fits / "data", out=fits / "two", iterations=1, progress=False)
    assert read.count(str(path["gibbs"])) == 1
