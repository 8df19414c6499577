"""The command line of the reproduction."""

import pytest

from mc2core import Corpus
from mc2papers.cli import main


def test_a_drawn_corpus_is_split_and_written(tmp_path, capsys):
    assert main(["corpus", "nips", "--scale", "0.02", "--seed", "1", "--out", str(tmp_path / "data")]) == 0
    train, test = (Corpus.load(tmp_path / "data" / part) for part in ("train", "test"))
    assert (train.n_documents, test.n_documents) == (31, 4)
    assert '"test_documents"' in capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["corpus", "nisp", "--out", "x"], "dataset 'nisp' is not known; known: letters, nips, pnas"),
        (["corpus", "letters", "--scale", "2", "--out", "x"], "dataset 'letters' has no setting 'scale'"),
        (
            ["corpus", "pnas", "--real", "pnas.zip", "--out", "x"],
            "needs shards: the rules of the workflow make them",
        ),
    ],
)
def test_bad_input_ends_with_2_and_one_sentence(tmp_path, monkeypatch, capsys, command, message):
    monkeypatch.chdir(tmp_path)
    assert main(command) == 2
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert error.startswith("mc2papers: error: ")
    assert message in error
    assert not (tmp_path / "x").exists()
