"""Documents without a word: a batch of nothing else is answered as each of them is among others."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from helpers.commands import mc2

from mc2core import Corpus
from mc2core.inference import SVI, FastEx, Gibbs, Stream
from mc2core.inference.running.loop import fit
from mc2core.models import HDP, MC2, Mixture

SEA, BREAD = ["ferry", "harbour", "sail", "tide"], ["bread", "crust", "flour", "oven"]
TEXTS = [" ".join(np.random.default_rng(j).choice((SEA, BREAD)[j % 2], 6)) for j in range(24)]
FITS = {
    "gibbs": (MC2(), Gibbs(start_topics=3, start_clusters=2)),
    "gibbs, no document level": (MC2(document_level=False), Gibbs(start_topics=3, start_clusters=2)),
    "gibbs, hdp": (HDP(), Gibbs(start_topics=3)),
    "svi": (MC2(), SVI(max_clusters=3, max_topics=4, batch_size=8)),
    "fastex": (Mixture(n_clusters=2), FastEx()),
}


@pytest.fixture(scope="module")
def corpus():
    return Corpus.from_texts(
        TEXTS, {"year": [1990.0 + j % 2 for j in range(24)], "by": ["ab"[j % 2] for j in range(24)]}
    )


@pytest.fixture(scope="module", params=FITS)
def fitted(request, corpus):
    return fit(corpus, *FITS[request.param], iterations=3)


def blanks(n, like):
    return Corpus.from_texts([""] * n, like=like)


def test_a_batch_of_blanks_is_answered_as_blanks_among_others(fitted):
    posterior = fitted.posterior
    alone, among = blanks(2, posterior), Corpus.from_texts(["", TEXTS[0], ""], like=posterior)
    assert (alone.n_documents, alone.n_tokens, alone.vocabulary) == (2, 0, posterior.vocabulary)
    assert posterior.log_likelihood(alone).tolist() == [0.0, 0.0]
    assert np.isfinite(posterior.log_likelihood(among)).all()
    with pytest.raises(ValueError, match="perplexity needs words"):
        posterior.perplexity(alone)
    if posterior.representative.documents_are_clusters:
        return
    found = posterior.predict_proba(alone)
    weights = posterior.cluster_weights
    assert np.allclose(found, weights / weights.sum())
    assert np.allclose(found, posterior.predict_proba(among)[[0, 2]])
    assert (posterior.assign(alone)[0] == weights.argmax()).all()
    # the matrix of a caller, and a batch of no document at all
    by_hand = Corpus(np.zeros((2, posterior.n_words), int), posterior.vocabulary)
    assert np.allclose(posterior.predict_proba(by_hand), found)
    nobody = among.subset(np.zeros(0, int))
    assert posterior.predict_proba(nobody).shape == (0, found.shape[1])
    assert posterior.log_likelihood(nobody).shape == (0,)


def test_contexts_alone_decide(corpus):
    posterior = fit(corpus, MC2(contexts=["by"]), Gibbs(start_topics=3, start_clusters=2), iterations=3).posterior
    given = {"by": ["a", "b", None]}
    alone, among = (Corpus.from_texts(["", "", "", *more], {"by": [*given["by"], *[None] * len(more)]}, like=posterior)
                    for more in ([], TEXTS[:2]))  # fmt: skip
    assert np.allclose(posterior.predict_proba(alone), posterior.predict_proba(among)[:3])
    assert np.allclose(posterior.predict_context(alone, "by").shares.sum(axis=1), 1.0)


def test_a_stream_takes_blanks_and_says_nothing_of_them(corpus):
    stream = Stream(fit(corpus, MC2(), SVI(max_clusters=3, max_topics=4, batch_size=8), iterations=2))
    stream.partial_fit(blanks(5, stream.posterior))
    assert stream.n_documents == 5
    weights = stream.posterior.cluster_weights
    assert np.isfinite(weights).all()
    assert np.isfinite(stream.posterior.word_given_topic).all()


def test_commands_take_blanks(tmp_path, monkeypatch, capsys, output_of, refused):
    def written(name, texts):
        path = tmp_path / name
        path.write_text("".join(json.dumps({"t": text}) + "\n" for text in texts))
        return str(path)

    data, made, new = (str(tmp_path / name) for name in ("data", "fit", "new"))
    mc2(["import", written("old.jsonl", TEXTS), "--text", "t", "--out", data])
    settings = ["--set", "start_topics=3", "--set", "start_clusters=2", "--iterations", "3"]
    mc2(["fit", data, *settings, "--out", made])
    blank = written("new.jsonl", ["", ""])
    for like in (data, made):
        mc2(f"import {blank} --like {like} --overwrite --out {new}")
        assert Corpus.load(new, verify=True).content.shape == (2, 8)
    capsys.readouterr()
    mc2(f"evaluate {made} {new}")
    assert json.loads(capsys.readouterr().out) == {"documents": 2, "tokens": 0, "perplexity": {"left_to_right": None}}
    assert output_of(f"clusters {made} {new}").count("\n") == 3
    mc2(f"describe {made} {new} --out {tmp_path}/page")
    capsys.readouterr()
    with open(blank, "rb") as lines:
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=lines))
        mc2(f"predict {made}")
    answers = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(one["line"], one["tokens"], one["topics"]) for one in answers] == [(1, 0, []), (2, 0, [])]
    # what says nothing at all is still no corpus of its own
    refused(f"import {blank} --text t --out {tmp_path}/alone", "no document has a word")
