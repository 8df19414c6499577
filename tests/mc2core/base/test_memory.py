"""Sizes that no machine holds are refused before anything is allocated."""

import os
import resource

import numpy as np
import pytest
from helpers.crossed import first
from helpers.fits import fastex, gibbs, svi

from mc2core import Corpus
from mc2core.app.cli import main
from mc2core.base import logs, memory
from mc2core.inference import SVI, Gibbs
from mc2core.inference.running.loop import fit
from mc2core.models import Mixture

CORPUS = Corpus(np.ones((4, 3), int))
TOO_MANY = 10**12


@pytest.mark.parametrize(
    ("engine", "setting"),
    [
        *((Gibbs, name) for name in ("start_clusters", "start_topics")),
        *((SVI, name) for name in ("max_clusters", "max_tables", "max_topics")),
        (Mixture, "n_clusters"),
    ],
)
def test_no_engine_takes_more_labels_than_it_can_number(engine, setting):
    with pytest.raises(ValueError, match=rf"{setting} is {TOO_MANY}; .* at least 1 and at most 2147483647"):
        engine(**{setting: TOO_MANY})


@pytest.mark.parametrize(
    ("engine", "n_bytes"),
    [
        (gibbs(start_topics=2**31 - 1, start_clusters=3), 4 * 3 * 2.0**31 + 24 * 2.0**31),
        (svi(max_clusters=2**31 - 1, max_tables=20), 24 * 2.0**31 * 20 * 120),
        (svi(max_topics=2**31 - 1, max_tables=20), 24 * 2.0**31 * (40 * 20 + 3)),
        (fastex(n_clusters=2**31 - 1, proposal="hash", bits=32), 324 * 2.0**31),
    ],
)
def test_a_start_beyond_memory_says_what_it_takes_and_there_is(engine, n_bytes, monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: 5 * 10**9)
    message = rf"would take {1e-9 * n_bytes:,.1f} GB of memory, but 5\.0 GB are available; .*"
    with pytest.raises(ValueError, match=message):
        engine.init(CORPUS, 0)


@pytest.mark.parametrize("engine", first([gibbs(), svi(), fastex(n_clusters=2, proposal="hash")]))
def test_memory_for_all_chains_is_asked_for_before_any_starts(engine, monkeypatch, tmp_path):
    """Also where they are resumed."""
    with pytest.raises(ValueError, match=r"1000000000 chains?.* would take .* of memory"):
        fit(CORPUS, *engine, chains=10**9)
    fit(CORPUS, *engine, chains=1, iterations=1, checkpoint=tmp_path / "checkpoint.npz")
    monkeypatch.setattr(memory, "available_bytes", lambda: 1)
    with pytest.raises(ValueError, match=r"would take .* of memory"):
        fit(CORPUS, *engine, chains=1, iterations=2, checkpoint=tmp_path / "checkpoint.npz")


def test_gibbs_counts_tokens_in_32_bits():
    with pytest.raises(ValueError, match="the corpus has 4294967294 tokens; the Gibbs engine takes at most 2147483647"):
        gibbs().init(Corpus(np.full((2, 1), 2**31 - 1)), 0)


def test_available_memory_is_below_the_machines_and_has_a_limit(monkeypatch):
    assert 0 < memory.available_bytes() < os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    memory.need(1000, "a thing", "")
    monkeypatch.setattr(resource, "getrlimit", lambda which: (1000, 1000))
    assert memory.available_bytes() == 1000


def test_commands_and_jobs_say_that_memory_is_not_enough(monkeypatch, capsys, tmp_path):
    def full(path):
        raise MemoryError("Unable to allocate 7 TiB")

    monkeypatch.setattr("mc2core.posterior.posterior.Posterior.load", full)
    assert main(["topics", "posterior.npz"]) == 2
    assert capsys.readouterr().err == "mc2: error: there is not enough memory: Unable to allocate 7 TiB\n"
    with (
        pytest.raises(SystemExit, match=r"^Error: there is not enough memory: Unable to allocate 7 TiB$"),
        logs.job(tmp_path / "log"),
    ):
        full("")
    assert "Unable to allocate 7 TiB" in (tmp_path / "log").read_text()
