"""A corpus whose folder is replaced or appended to while it is in use, and what may be replaced at all."""

import json

import numpy as np
import pytest
from helpers.commands import mc2

from mc2core import Corpus, Posterior
from mc2core.app.cli import main
from mc2core.base import storage
from mc2core.inference.running import files

WORDS = ["bread", "crust", "ferry", "flour", "harbour", "oven", "sail", "tide"]
SETTINGS = ["--set", "start_topics=3", "--set", "start_clusters=2", "--iterations", "2"]


def written(path, words=WORDS, documents=12, prefix="a"):
    rng = np.random.default_rng(3)
    picked = [[words[word] for word in rng.integers(len(words), size=6)] for _ in range(documents)]
    rows = [{"id": f"{prefix}{number}", "words": one, "tag": [one[0]]} for number, one in enumerate(picked)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


COLUMNS = ["--bag", "words", "--id", "id", "--context", "tag:bag"]


@pytest.fixture
def data(tmp_path):
    mc2(["import", written(tmp_path / "old.jsonl"), *COLUMNS, "--out", tmp_path / "data"])
    return tmp_path / "data"


def fit_while(monkeypatch, data, out, command):
    """Fit, and run another command once the corpus is read."""
    fit = files.fit

    def meanwhile(*arguments, **named):
        mc2([*command])
        return fit(*arguments, **named)

    monkeypatch.setattr(files, "fit", meanwhile)
    code = main(["fit", str(data), "--context", "tag", *SETTINGS, "--out", str(out)])
    monkeypatch.setattr(files, "fit", fit)
    return code


@pytest.mark.slow
def test_a_fit_keeps_its_words_when_its_corpus_is_imported_again(data, tmp_path, monkeypatch):
    """With one word renamed, 179 of 180 words of the posterior were those of the new corpus, beside the old counts."""
    assert fit_while(monkeypatch, data, tmp_path / "expected", ["verify", str(data)]) == 0
    renamed = written(tmp_path / "new.jsonl", ["zebra", *WORDS[1:]], prefix="b")
    command = ["import", renamed, *COLUMNS, "--overwrite", "--out", str(data)]
    assert fit_while(monkeypatch, data, tmp_path / "fit", command) == 0
    assert "zebra" in Corpus.load(data).vocabulary
    expected, found = (Posterior.load(tmp_path / name) for name in ("expected", "fit"))
    assert found.vocabulary == expected.vocabulary
    assert found.context_names == expected.context_names
    assert (found.word_given_topic == expected.word_given_topic).all()
    assert (found.fingerprints == expected.fingerprints).all()


def test_a_fit_ends_when_its_corpus_is_appended_to(data, tmp_path, monkeypatch, capsys):
    """It was lost in its last moment: "too many values to unpack"."""
    more = written(tmp_path / "more.jsonl", prefix="more")
    assert fit_while(monkeypatch, data, tmp_path / "fit", ["import", more, "--append", "--out", str(data)]) == 0
    assert Corpus.load(data).n_documents == 24
    capsys.readouterr()
    for command in (["clusters"], ["describe", "--out", str(tmp_path / "page")]):
        mc2([*command[:1], tmp_path / "fit", data, *command[1:]])
        said = f"mc2: {data} is not the corpus of the fit, so its documents are treated as new\n"
        assert said in capsys.readouterr().err
    posterior = Posterior.load(tmp_path / "fit")
    assert (len(posterior.cluster), len(posterior.fingerprints)) == (12, 12)


def test_a_fit_is_not_resumed_on_a_corpus_with_other_words(data, tmp_path, refused):
    fit = ["fit", str(data), "--context", "tag", *SETTINGS, "--out", str(tmp_path / "fit")]
    mc2(fit)
    # the same counts: the word comes first as before
    renamed = written(tmp_path / "new.jsonl", ["aardvark", *WORDS[1:]])
    mc2(["import", renamed, *COLUMNS, "--overwrite", "--out", data])
    refused(fit, "on a corpus with the same counts but other words")
    refused(f"clusters {tmp_path}/fit {data}", "word 0 is 'bread' in the model and 'aardvark' in the corpus")


@pytest.mark.parametrize("option", [[], ["--overwrite"], ["--append"]])
def test_two_imports_at_once_do_not_replace_each_other(tmp_path, capsys, option):
    """Both had looked for a corpus before either was written: the first was lost, and both ended with 0."""
    rows = written(tmp_path / "new.jsonl")
    with storage.exclusive_lock(tmp_path / "data", "another import"):
        assert main(["import", rows, *COLUMNS, *option, "--out", str(tmp_path / "data")]) == 2
    said = f"{tmp_path / 'data'} is in use by another import that is still running; wait for it or write elsewhere\n"
    assert said in capsys.readouterr().err
    assert not (tmp_path / "data").exists()
