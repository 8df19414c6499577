"""A fit as files: contexts that it is to do without, and what goes on from them."""

import numpy as np
import pandas as pd
import pytest
from helpers.commands import mc2

from mc2core.app.cli import main
from mc2core.base import storage
from mc2core.inference.running.files import fit_corpus
from mc2core.posterior import Posterior
from mc2papers.datasets.simulated import letters


def clusters(folder, contexts, **settings):
    corpus = letters.simulate(0, n_documents=40, n_tokens=10)[0].standardised("number")
    of_mc2 = {"model": "mc2", "engine": "gibbs", "settings": {"document_level": False}}
    about = fit_corpus(corpus, folder, **of_mc2, contexts=contexts, iterations=15, seed=1, **settings)
    assert storage.read_json(folder / "provenance.json") == about
    return Posterior.load(folder).representative.cluster, about


def test_contexts_that_are_missing_everywhere_tell_nothing(tmp_path):
    contexts = {"number": {"family": "normal_gamma"}}
    known, about = clusters(tmp_path / "known", contexts)
    nothing, _ = clusters(tmp_path / "none", {})
    assert "missing" not in about
    assert (known != nothing).any()
    for share in (0.5, 1.0):
        part, about = clusters(tmp_path / f"{share}", contexts, missing=share)
        assert about["missing"] == share
        assert np.array_equal(part, nothing) == (share == 1.0)
        assert not np.array_equal(part, known)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    path = tmp_path_factory.mktemp("corpus") / "letters"
    letters.simulate(0, n_documents=30, n_tokens=10)[0].save(path)
    return path


def files_of(folder):
    trace = pd.read_csv(folder / "trace.tsv", sep="\t").drop(columns="seconds")
    provenance = storage.read_json(folder / "provenance.json")
    return (folder / "posterior.npz").read_bytes(), trace, [provenance[name] for name in ("iterations", "inferred")]


OFTEN = ("", "--engine svi --set batch_size=7", "--engine fastex --set n_clusters=4")


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param(one.split(), id=one, marks=() if one in OFTEN else pytest.mark.slow)
        for one in (
            *OFTEN,
            "--burn-in 2 --thin 2",
            "--set kernel=collapsed --context number:normal_gamma",
            "--engine svi --set document_level=false --set max_tables=3",
            "--model hdp",
            "--model nptot --context number --set kernel=collapsed",
            "--engine fastex --set n_clusters=4 --set proposal=hash",
        )
    ],
)
def test_a_finished_fit_of_every_engine_goes_on(corpus, tmp_path, capsys, settings):
    command = ["fit", str(corpus), *settings]
    mc2([*command, "--iterations", "5", "--out", tmp_path / "parts"])
    assert "for more iterations: the same command with --iterations 10 resumes from here" in capsys.readouterr().out
    for folder in ("parts", "whole"):
        mc2([*command, "--iterations", "10", "--out", tmp_path / folder])
    (posterior, trace, about), (other, rows, told) = (files_of(tmp_path / folder) for folder in ("parts", "whole"))
    assert posterior == other
    pd.testing.assert_frame_equal(trace, rows)
    assert about == told


def test_a_finished_fit_is_not_lost_to_another(corpus, tmp_path, capsys, caplog):
    command = ["fit", str(corpus), "--out", str(tmp_path), "--set", "kernel=collapsed"]
    mc2([*command, "--iterations", "4"])
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    for other, difference in (
        (
            ["--iterations", "4", "--seed", "1"],
            "run: seed was 0, now 1; write elsewhere, or remove it to start again",
        ),
        (
            ["--iterations", "9", "--set", "start_topics=3"],
            "run: engine.start_topics was None, now 3; write elsewhere, or remove it to start again",
        ),
        (
            ["--iterations", "9", "--set", "document_level=false"],
            "run: model.document_level was True, now False; write elsewhere, or remove it to start again",
        ),
        (["--iterations", "3"], "is at iteration 4, after the requested 3; request at least 4, or write elsewhere"),
    ):
        capsys.readouterr()
        assert main([*command, *other]) == 2
        assert capsys.readouterr().err.endswith(f"{difference}\n")
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    caplog.clear()
    with caplog.at_level("INFO"):
        mc2([*command, "--iterations", "4"])
    assert "is at iteration 4 of 4: nothing is left to do" in caplog.text
    assert (tmp_path / "posterior.npz").read_bytes() == before["posterior.npz"]
    assert (tmp_path / "checkpoint.npz").read_bytes() == before["checkpoint.npz"]


@pytest.mark.parametrize(
    "settings", [["--context", "number:normal_gamma"], ["--engine", "svi"], ["--engine", "fastex"]]
)
def test_a_fit_of_another_corpus_is_told_by_the_corpus(corpus, tmp_path, capsys, settings):
    """It was called no checkpoint, with the advice to remove a good run."""
    letters.simulate(1, n_documents=1500, n_tokens=3)[0].save(tmp_path / "other")
    command = [*settings, "--iterations", "2", "--out", str(tmp_path / "fit")]
    mc2(["fit", corpus, *command])
    capsys.readouterr()
    assert main(["fit", str(tmp_path / "other"), *command]) == 2
    said = (
        f"mc2: error: {tmp_path}/fit/checkpoint.npz is the checkpoint of a run on another corpus (30 documents); "
        "write elsewhere, or remove it to start again\n"
    )
    assert capsys.readouterr().err.endswith(said)


def test_a_fit_of_the_workflow_leaves_no_checkpoint(tmp_path):
    """Its code may be another one when it is run again."""
    for chains in (1, 2):
        folder = tmp_path / f"fit{chains}"
        _, about = clusters(folder, {}, chains=chains)
        assert about.get("chains") == {1: None, 2: [8, 8]}[chains]
        assert sorted(path.name for path in folder.iterdir()) == ["posterior.npz", "provenance.json", "trace.tsv"]
