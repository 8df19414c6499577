"""The command line of the reproduction."""

import subprocess
import sys

import pytest
from helpers.paths import ROOT

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
        (["corpus", "pnas", "--real", "pnas.zip", "--out", "x"], "needs shards: the rules of the workflow make them"),
    ],
)
def test_bad_input_ends_with_2_and_one_sentence(tmp_path, monkeypatch, capsys, command, message):
    monkeypatch.chdir(tmp_path)
    assert main(command) == 2
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert error.startswith("mc2papers: error: ")
    assert message in error
    assert not (tmp_path / "x").exists()


@pytest.mark.workflow
@pytest.mark.slow
def test_run_makes_a_figure_in_its_folder_and_passes_options_on(tmp_path):
    def run(*arguments):
        command = [sys.executable, "-m", "mc2papers", "run", "uai2016_figure1", "--cores", "1", *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    planned = run("--", "--dry-run")
    assert planned.returncode == 0, planned.stderr
    assert "This was a dry-run" in planned.stderr + planned.stdout
    assert not (tmp_path / "results").exists()
    made = run()
    assert made.returncode == 0, made.stderr
    assert (tmp_path / "results/uai2016/uai2016_figure1.png").stat().st_size > 1000
    assert run("--", "--no-such-option").returncode != 0


def test_the_folder_of_the_workflow_is_the_checkout(capsys):
    assert main(["folder"]) == 0
    assert capsys.readouterr().out == f"{ROOT}\n"
