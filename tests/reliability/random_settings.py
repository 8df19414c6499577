"""Random engines on random small corpora: what a fit gives must be a model, and its log joint that of its state.

A case is plain (settings between 0.001 and 1,000, an ordinary corpus), extreme (settings down to 1e-300 and up to
1e300, sizes of 1, huge counts) or has one setting that no engine can use. A plain case must give a model
without a warning of a division or an overflow; the others may warn, or be refused by a ValueError of one line.
"""

from __future__ import annotations

import re
import traceback
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import mc2core
from mc2core import Corpus, Posterior
from mc2core.inference.registry import specify
from mc2core.posterior.scores import estimators_of

from .children import Outcome, outcomes
from .corpora import draw_corpus
from .plain import log_joint_of_mc2, log_joint_of_mixture
from .report import Report

KINDS = ("plain", "extreme", "unusable")
ENGINES = ("gibbs", "svi", "fastex")
EXTREMES = (1e-300, 1e-30, 1e-9, 1e-5, 1e5, 1e9, 1e30, 1e300)
UNUSABLE = (float("nan"), float("inf"), -1.0, 0.0, "x", None, [], {}, True, 10**12, 2**63, 0.5, -(10**30))
_COUNTED = ("multinomial", "poisson", "gaussian")
COMPONENTS = {
    "hash": _COUNTED,
    "neighbours": ("multinomial",),
    "exact": (*_COUNTED, "gauss_wishart"),
    "auto": (*_COUNTED, "gauss_wishart"),
}
ROLES = ("group", "table", "topic")
MAX_TOKENS_SCORED = 1000
SILENCE_SECONDS = 300.0  # compiling on a busy machine included


@dataclass
class Case:
    """``model`` by ``engine`` with ``settings`` of both for ``iterations`` on ``corpus``."""

    kind: str
    model: str
    engine: str
    settings: dict[str, Any]
    iterations: int
    corpus: Corpus

    def __str__(self) -> str:
        contexts = ", ".join(self.corpus.contexts) or "no contexts"
        return (
            f"{self.kind} {self.model} by {self.engine} ({self.settings}), {self.iterations} iterations on "
            f"{self.corpus.n_documents} x {self.corpus.n_words}, {self.corpus.n_tokens} tokens, {contexts}"
        )


OF_PROPOSALS = (
    *("bits", "projection", "failure_probability", "inverse_temperature", "documents_per_round"),
    *("n_neighbours", "list_budget", "n_proposals", "uniform_share", "exact_sweeps"),
)


def draw_case(seed: int, number: int) -> Case:
    """The case of this number: the same for the same seed."""
    rng = np.random.default_rng([seed, number])
    kind = str(rng.choice(KINDS, p=(0.5, 0.35, 0.15)))
    name = str(rng.choice(ENGINES))
    corpus = draw_corpus(rng, most_documents=25, most_words=20, extreme=kind == "extreme")

    def positive() -> float:
        if kind == "extreme" and rng.random() < 0.3:
            return float(rng.choice(EXTREMES))
        return float(10 ** rng.uniform(-3, 3))

    def pick(*values: Any) -> Any:
        return values[rng.integers(len(values))]

    model = "mixture" if name == "fastex" else "mc2"
    settings: dict[str, Any] = {"threads": pick(1, 2)}
    if name == "fastex":
        settings |= {
            "n_clusters": int(rng.integers(1, 40)),
            "proposal": (proposal := pick("hash", "exact", "neighbours", "auto")),
            "component": pick(*COMPONENTS[proposal]),
            "n_neighbours": int(rng.integers(1, 12)),
            "list_budget": pick(1, 20, 1000),
            "n_proposals": int(rng.integers(1, 5)),
            "uniform_share": pick(1e-3, 0.05, 1.0),
            "exact_sweeps": pick([], [2], [1, 3]),
            "projection": pick("balanced", "paper"),
            "bits": pick(8, 16, 32, 64, 128, 256),
            "inverse_temperature": pick(0.1, 0.8, 1.0),
            "failure_probability": pick(None, 0.01, 0.5),
            "documents_per_round": pick(1, 3, 1000),
            "topic_word_prior": positive(),
            "weight_prior": positive(),
            "rate_prior": positive(),
        }
        if proposal == "auto":  # it refuses settings of what it does not choose
            settings = {name: one for name, one in settings.items() if name not in OF_PROPOSALS}
    else:
        settings |= {f"{role}_concentration": pick("learn", positive()) for role in ROLES}
        settings |= {
            "topic_word_prior": positive(),
            "concentration_priors": {role: [positive(), positive()] for role in ROLES if rng.random() < 0.3},
            "contexts": {context: _family(context, positive, rng) for context in corpus.contexts if rng.random() < 0.8},
        }
    if name == "gibbs":
        settings |= {
            "kernel": pick("collapsed", "blocked", "interleaved"),
            "start_topics": int(rng.integers(1, 30)),
            "start_clusters": int(rng.integers(1, 30)),
        }
        model = "hdp" if rng.random() < 0.15 else "mc2"
        if rng.random() < 0.3:  # documents with proportions of their own
            settings |= {
                "document_level": True,
                "document_concentration": pick("learn", positive()),
                "kernel": pick("collapsed", "parallel"),
            }
        elif "year" in corpus.contexts and rng.random() < 0.3:  # npTOT
            model, year = "nptot", _family("year", positive, rng) | {"strength": 1.0}
            settings |= {"kernel": "collapsed", "contexts": {"year": year}}
        if model != "mc2":  # no clusters
            del settings["group_concentration"]
            settings["concentration_priors"].pop("group", None)
        elif rng.random() < 0.3:  # a number of clusters that is told
            settings["n_clusters"] = pick(int(rng.integers(1, 12)), 2**31 - 1)
            settings["group_concentration"] = positive()
            settings["concentration_priors"].pop("group", None)
        if model == "hdp":
            del settings["contexts"]
    if name == "svi":
        settings |= {
            "max_clusters": int(rng.integers(1, 12)),
            "max_tables": pick(None, int(rng.integers(1, 8))),
            "max_topics": int(rng.integers(1, 15)),
            "batch_size": pick(None, 1, 3, 50),
            "schedule": pick("default", "paper"),
            "initialisation": pick("seeded", "gibbs", "random"),
        }
        if settings["max_tables"] and settings["batch_size"]:
            settings["global_step"] = pick("sequential", "joint")
        if settings["max_tables"] is None and rng.random() < 0.5:
            settings |= {"document_level": True, "document_concentration": pick("learn", positive())}
    if model == "mc2":
        settings.setdefault("document_level", False)
    if kind == "unusable":
        wrong = str(rng.choice([one for one in settings if one != "contexts"]))
        settings[wrong] = UNUSABLE[rng.integers(len(UNUSABLE))]
    return Case(kind, model, name, settings, int(rng.integers(1, 5)), corpus)


def _family(context: str, positive: Any, rng: np.random.Generator) -> dict[str, Any]:
    """As a configuration holds it: a value that no family takes is refused when the engine is built, not here."""
    strength = float(rng.choice([0.0, rng.random(), 1.0]))
    if context == "tag":
        return {"family": "dirichlet", "concentration": positive(), "strength": strength}
    if context == "hits" and rng.random() < 0.7:
        return {"family": "gamma_poisson", "a0": positive(), "b0": positive(), "strength": strength}
    values = ("mu0", float(rng.normal())), ("kappa0", positive()), ("a0", positive()), ("b0", positive())
    return {"family": "normal_gamma", **dict(values), "strength": strength}


def run(seconds: float, seed: int, scratch: Path) -> Report:
    """Try random cases for some seconds."""
    report = Report("random settings")
    scratch.mkdir(parents=True, exist_ok=True)
    for number, outcome in outcomes(lambda one: try_case(seed, one, scratch), seconds, silence=SILENCE_SECONDS):
        case = draw_case(seed, number)
        report.count(case.kind)
        report.add(f"random_settings, seed {seed}, case {number}: {case}", outcome)
    return report


def try_case(seed: int, number: int, scratch: Path) -> Outcome:
    """Fit, look at everything, save, load and look again."""
    case = draw_case(seed, number)
    outcome = Outcome()
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always", RuntimeWarning)
            settings = dict(case.settings)
            contexts, threads = settings.pop("contexts", None), settings.pop("threads")
            both = _without_idle(case.model, case.engine, settings, contexts, threads)
            burn_in = 0 if case.engine == "gibbs" else None
            fit = mc2core.fit(
                case.corpus, *both, iterations=case.iterations, burn_in=burn_in, seed=number, chains=1, progress=False
            )
            found = faults(case, fit, scratch / "posterior.npz")
        if warned:
            outcome.counts.append("warned")
        if case.kind == "plain":
            found += [f"{one.message} ({Path(one.filename).name}, line {one.lineno})" for one in warned[:1]]
        outcome.wrong = "; ".join(found)
    except ValueError as error:
        outcome.counts.append("refused")
        if len(str(error).splitlines()) != 1:
            outcome.wrong = f"a message that is not one line: {error!r}"
        elif case.kind == "plain":
            outcome.wrong = f"refused: {error}"
    except Exception as error:
        at = traceback.extract_tb(error.__traceback__)[-1]
        outcome.wrong = f"{type(error).__name__}: {error} ({Path(at.filename).name}, line {at.lineno})"
    return outcome


def faults(case: Case, fit: Any, path: Path) -> list[str]:
    """What is wrong with a finished fit, in a few words each."""
    found: list[str] = []
    model: Posterior = fit.posterior
    for sample in model.samples:
        for name in ("cluster_weights", "new_topic_weight", "topic_weights", "natural", "log_joint"):
            if not np.all(np.isfinite(getattr(sample, name))):
                found.append(f"{name} is not finite")
        found += [
            f"rows of {name} sum to {np.ravel(rows.sum(axis=-1))[:3]}"
            for name, rows in (
                ("cluster_weights", sample.cluster_weights),
                ("topic_given_cluster", np.asarray(sample.topic_given_cluster @ np.eye(sample.n_topics))),
                ("word_given_topic", sample.word_given_topic),
            )
            if not np.allclose(rows.sum(axis=-1), 1.0, rtol=0, atol=1e-9) or not (rows >= 0).all()
        ]
        if (sample.cluster >= sample.n_clusters).any() or (sample.cluster < -1).any():
            found.append("a document is in a cluster that is not there")
    joint = "elbo" if case.engine == "svi" else "log_joint"
    if not np.isfinite(fit.trace[joint]).all():
        found.append(f"{joint} is {fit.trace[joint].tolist()}")
    found += {"gibbs": _faults_of_gibbs, "svi": _faults_of_svi, "fastex": _faults_of_fastex}[case.engine](case, fit)
    if found:
        return found
    probability = model.predict_proba(case.corpus)
    if not np.allclose(probability.sum(axis=1), 1.0, rtol=0, atol=1e-9):
        found.append("rows of predict do not sum to 1")
    (estimator,) = estimators_of(model, ["marginal"])
    # left_to_right takes the square of a document's length
    scored = case.corpus.subset(np.flatnonzero(case.corpus.document_lengths <= MAX_TOKENS_SCORED))
    likelihood = model.log_likelihood(scored, estimator)
    if not np.isfinite(likelihood).all():
        found.append("log_likelihood is not finite")
    elif (likelihood > 1e-9).any():
        found.append("a document is likelier than certain")
    model.save(path)
    again = Posterior.load(path)
    if not (
        np.array_equal(again.predict_proba(case.corpus), probability)
        and np.array_equal(again.log_likelihood(scored, estimator), likelihood)
    ):
        found.append("the model is another one after it was saved and loaded")
    return found


def _faults_of_gibbs(case: Case, fit: Any) -> list[str]:
    found = []
    state, assignments = fit.state, fit.state.assignments
    n_km, n_k, m = assignments.n_km.copy(), assignments.n_k.copy(), len(assignments.topic_weights)
    assignments.count()
    if not (np.array_equal(n_km, assignments.n_km) and np.array_equal(n_k, assignments.n_k)):
        found.append("counts are not those of the assignments")
    if (
        abs(assignments.topic_weights.sum() + assignments.remaining - 1.0) > 1e-9
        or (assignments.topic_weights <= 0).any()
    ):
        found.append(f"topic weights sum to {assignments.topic_weights.sum() + assignments.remaining}, of {m}")
    if case.kind == "plain":
        model = state.model
        value, size = log_joint_of_mc2(
            case.corpus,
            state.cluster,
            state.topic,
            assignments.topic_weights,
            alpha=state.concentrations.group if model.has_clusters else None,
            n_clusters=model.n_clusters,
            v=state.concentrations.table,
            s=model.topic_word_prior,
            families=model.cluster_contexts,
            token_families=model.contexts if model.has_token_context else {},
            document_level=(state.omega, state.proportions) if model.document_level else None,
        )
        found += _another(state.log_joint, value, size, 1e-11)
    return found


def _without_idle(model: str, engine: str, settings: dict[str, Any], contexts: Any, threads: int) -> Any:
    """Model and engine, without settings that do nothing beside the others, which are refused by their names."""
    while True:
        try:
            return specify(model, engine, settings, contexts, threads)
        except ValueError as error:
            idle = re.match(r"(\w+)(?:\['(\w+)'\])? needs ", str(error))
            if idle is None or idle[1] not in settings:
                raise
            if idle[2]:
                settings[idle[1]] = {role: one for role, one in settings[idle[1]].items() if role != idle[2]}
            else:
                del settings[idle[1]]


def _faults_of_svi(case: Case, fit: Any) -> list[str]:
    elbo = fit.trace["elbo"].to_numpy()
    is_full = case.settings["batch_size"] is None and case.kind == "plain"
    return (
        ["the ELBO falls: " + str(elbo.tolist())] if is_full and (np.diff(elbo) < -1e-8 * abs(elbo[1:])).any() else []
    )


def _faults_of_fastex(case: Case, fit: Any) -> list[str]:
    found = []
    if not np.array_equal(fit.state.sizes, np.bincount(fit.state.cluster, minlength=len(fit.state.sizes))):
        found.append("sizes are not those of the assignments")
    if case.kind == "plain":
        names = ("n_clusters", "component", "topic_word_prior", "weight_prior", "rate_prior")
        chosen = {name: case.settings[name] for name in names}
        value, size = log_joint_of_mixture(case.corpus, fit.state.cluster, **chosen)
        # the hashed state sums its terms in units of 2**-20
        found += _another(fit.state.log_joint, value, size, 1e-11, 1e-3)
    return found


def _another(found: float, plain: float, size: float, relative: float, absolute: float = 1e-8) -> list[str]:
    is_near = abs(found - plain) <= relative * size + absolute
    return [] if is_near else [f"log_joint is {found!r}, but of the state {plain!r}"]
