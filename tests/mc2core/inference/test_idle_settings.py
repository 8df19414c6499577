"""A setting that does nothing is refused: each one, in each mode of each engine and model, changes a fit or is named.

Every setting has a value here that differs from its default, so that a new one cannot be forgotten.
"""

import re

import numpy as np
import pytest
from helpers.fits import FIXED

import mc2core
from mc2core import Corpus
from mc2core.inference import SVI, FastEx, Gibbs
from mc2core.inference.fastex.engine import STATES
from mc2core.inference.registry import ENGINES, MODELS, engine_class, model_class, specify
from mc2core.models import MC2, Mixture

#: another value than the default, which changes a tiny fit wherever the setting has a meaning
PROBES = {
    "mc2": {
        "document_level": False,
        "document_concentration": 0.3,
        "n_clusters": 2,
        "contexts": ["year"],
        "group_concentration": 30.0,
        "table_concentration": 30.0,
        "topic_concentration": 30.0,
        "concentration_priors": [{role: (30.0, 2.0)} for role in ("group", "table", "topic", "words", "document")],
        "topic_word_prior": 2.0,
    },
    "mixture": {"n_clusters": 3, "topic_word_prior": 0.5, "weight_prior": 20.0, "rate_prior": 0.1},
    "gibbs": {"start_topics": 2, "start_clusters": 3},
    "svi": {
        "max_clusters": 3,
        "max_tables": 2,
        "max_topics": 3,
        "batch_size": 5,
        "schedule": "paper",
        "global_step": "joint",
        "learning_offset": 3.0,
        "learning_decay": 0.9,
        "initialisation": "random",
    },
    "fastex": {
        "bits": 32,
        "projection": "paper",
        "failure_probability": 0.4,
        "inverse_temperature": 0.3,
        "documents_per_round": 7,
        "n_neighbours": 2,
        "list_budget": 3,
        "n_proposals": 1,
        "uniform_share": 1.0,
        "exact_sweeps": [1, 2],
    },
}
OF_CLUSTERS, OF_DOCUMENTS = (
    ("n_clusters", "contexts", "group_concentration"),
    ("document_level", "document_concentration"),
)
PROBES["hdp"] = {name: one for name, one in PROBES["mc2"].items() if name not in OF_CLUSTERS} | {"document_level": True}
PROBES["nptot"] = {name: one for name, one in PROBES["hdp"].items() if name not in OF_DOCUMENTS}
#: settings that are the modes themselves, or whose meaning another test holds
ASIDE = {
    "threads": "they never change a result",
    "n_shards": "it needs Spark: tests/mc2core/inference/svi/test_spark.py",
    "kernel": "a mode",
    "proposal": "a mode",
    "component": "a mode",
    "burstiness": "None is True where it can be: tests/mc2core/inference/gibbs/test_repeats.py",
    "content": "of observations alone: refused by for_corpus for words",
}
ASIDE_OF = {"nptot": {"contexts": "it needs one"}}
MODES = {
    **{f"fastex {one}": ("mixture", "fastex", {"proposal": one}) for one in STATES},
    "fastex poisson": ("mixture", "fastex", {"proposal": "hash", "component": "poisson"}),
    "fastex auto": ("mixture", "fastex", {}),
    "gibbs": ("mc2", "gibbs", {}),
    "gibbs of clusters": ("mc2", "gibbs", {"document_level": False}),
    "svi": ("mc2", "svi", {}),
    "svi direct": ("mc2", "svi", {"document_level": False}),
    "svi tables": ("mc2", "svi", {"document_level": False, "max_tables": 3, "batch_size": 5}),
    "fastex gaussian": ("mixture", "fastex", {"proposal": "exact", "component": "gaussian"}),
    "fastex gauss_wishart": ("mixture", "fastex", {"component": "gauss_wishart"}),
    "gibbs parallel": ("mc2", "gibbs", {"kernel": "parallel"}),
    "gibbs blocked": ("mc2", "gibbs", {"document_level": False, "kernel": "blocked"}),
    "gibbs collapsed": ("mc2", "gibbs", {"document_level": False, "kernel": "collapsed"}),
    "gibbs of some clusters": ("mc2", "gibbs", {"document_level": False, "n_clusters": 3}),
    "gibbs fixed": ("mc2", "gibbs", {"document_level": False} | FIXED),
    "hdp": ("hdp", "gibbs", {}),
    "hdp of three levels": ("hdp", "gibbs", {"document_level": True}),
    "nptot": ("nptot", "gibbs", {"contexts": ["year"]}),
    "svi of the whole": ("mc2", "svi", {"document_level": False, "batch_size": None}),
    "svi from gibbs": ("mc2", "svi", {"document_level": False, "initialisation": "gibbs"}),
    "svi of some clusters": ("mc2", "svi", {"n_clusters": 3}),
    "svi fixed": ("mc2", "svi", {"document_level": False} | FIXED),
}
REFUSED = re.compile(r" needs |with n_clusters|^concentration_priors is .*; allowed: ")


def small_corpus():
    rng = np.random.default_rng(2)
    group = np.arange(30) % 3
    counts = rng.poisson(np.where((np.arange(15) // 5) == group[:, None], 1.5, 0.2))
    return Corpus(counts, contexts={"year": group + rng.normal(0, 0.3, 30)})


CORPUS = small_corpus()


def numbers(model, engine, settings):
    """All that a short fit leaves, as bytes."""
    settings = dict(settings)
    both = specify(model, engine, settings, settings.pop("contexts", None))
    done = mc2core.fit(CORPUS, *both, iterations=4, seed=1, chains=1, progress=False)
    arrays = {name: one for name, one in done.posterior.arrays().items() if name != "meta"} | done.state.arrays()
    trace = done.trace.drop(columns="seconds")
    return {name: np.asarray(one).tobytes() for name, one in arrays.items()}, trace.to_csv()


def changes(of_mode, model, engine, settings):
    """Whether a setting changes the fit, or the sentence that refuses it."""
    try:
        return numbers(model, engine, settings) != of_mode
    except ValueError as error:
        return str(error)


@pytest.mark.parametrize(
    "mode", [one if one in ("fastex auto", "svi") else pytest.param(one, marks=pytest.mark.slow) for one in MODES]
)
def test_a_setting_changes_the_fit_or_is_refused(mode):
    model, engine, settings = MODES[mode]
    of_mode = numbers(model, engine, settings)
    for name, probes in (PROBES[model] | PROBES[engine]).items():
        if name in settings:
            continue
        for value in probes if name == "concentration_priors" else [probes]:
            if name == "global_step" and "max_tables" not in settings:
                continue  # what it needs is said when it is made
            if name == "group_concentration" and "n_clusters" in settings:
                value = 1e-3  # 30 leaves the clusters of this small corpus as they are
            outcome = changes(of_mode, model, engine, settings | {name: value})
            if isinstance(outcome, str):
                assert name in outcome or name.replace("_", " ") in outcome, outcome
                assert REFUSED.search(outcome), outcome
            else:
                assert outcome, f"{name}={value} does nothing in the mode {mode}"


def test_no_setting_is_left_out():
    for known, class_of in ((MODELS, model_class), (ENGINES, engine_class)):
        for name in known:
            settings = set(class_of(name).defaults()) | set(class_of(name).names())
            aside = ASIDE | ASIDE_OF.get(name, {})
            assert settings - set(aside) == set(PROBES[name]), name


def test_defaults_may_be_named_everywhere():
    """As provenance names them all, by which a fit goes on."""
    for model, engine, settings in MODES.values():
        both = specify(
            model, engine, {name: one for name, one in settings.items() if name != "contexts"}, settings.get("contexts")
        )
        named = {name: one for part in both for name, one in part.settings().items()}
        contexts = named.pop("contexts", None)
        again = specify(model, engine, named, contexts)
        assert [one.settings() for one in again] == [one.settings() for one in both]


HASH, NEIGHBOURS = (f"needs proposal='{one}' (--set proposal={one})" for one in ("hash", "neighbours"))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FastEx(proposal="exact", bits=32, n_neighbours=3, n_proposals=9), f"bits {HASH}"),
        (lambda: FastEx(proposal="hash", n_proposals=9), f"n_proposals {NEIGHBOURS}"),
        (
            lambda: mc2core.fit(CORPUS, Mixture(n_clusters=3), FastEx(bits=32)),
            f"bits {HASH}; 'auto' chooses 'exact' for this corpus",
        ),
        (lambda: Mixture(rate_prior=2), "rate_prior needs another component than 'multinomial'"),
        (
            lambda: SVI(schedule="paper", learning_offset=3, learning_decay=0.7),
            "schedule needs learning_offset and learning_decay not to be both given",
        ),
        (lambda: mc2core.fit(CORPUS, engine=SVI(), burn_in=3), "burn_in needs an engine that keeps samples"),
        (lambda: mc2core.fit(CORPUS, engine=SVI(), thin=3), "thin needs an engine that keeps samples"),
        (lambda: mc2core.fit(CORPUS, checkpoint_every=3), "checkpoint_every needs checkpoint"),
        (
            lambda: specify("mc2", "svi", {"concentration_priors": {"topic": (2, 3)}}),
            "concentration_priors['topic'] needs max_tables",
        ),
        (
            lambda: MC2(topic_word_prior="learn").for_corpus(Corpus.from_observations(np.ones((4, 2)), [0, 0, 1, 1])),
            "topic_word_prior needs a corpus of words, and this one holds observations",
        ),
        (lambda: Gibbs(start_clusters=3).supports(MC2(n_clusters=4)), "start_clusters needs a model without n_"),
    ],
)
def test_what_is_needed_is_said(make, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        make()
