"""A model and an engine in one, for tests that are about a combination: settings of both by name."""

from dataclasses import dataclass
from typing import Any

from mc2core.inference.registry import specify

#: concentrations that would be learnt, kept at 1
FIXED = {"group_concentration": 1.0, "table_concentration": 1.0, "topic_concentration": 1.0}


@dataclass
class Pair:
    """``fit(corpus, *pair)``; the engine's methods, those that take a model with this one."""

    model: Any
    engine: Any

    def __iter__(self):
        return iter((self.model, self.engine))

    def __getattr__(self, name):
        return getattr(self.engine, name)

    def init(self, corpus, seed):
        return self.engine.init(self.model.for_corpus(corpus), corpus, seed)

    def restore(self, corpus, arrays):
        return self.engine.restore(self.model.for_corpus(corpus), corpus, arrays)

    def truncations(self, corpus):
        return self.engine.truncations(self.model, corpus)

    def to_warm(self, corpus):
        return self.engine.to_warm(self.model, corpus)

    def chosen_proposal(self, corpus):
        return self.engine.chosen_proposal(self.model, corpus)

    def settings(self):
        return self.model.settings() | self.engine.settings()


def pair_of(model, engine, settings):
    """MC2 has no document level unless asked for, and words do not repeat: most tests are of the papers' model."""
    settings = dict(settings)
    contexts, threads = settings.pop("contexts", None), settings.pop("threads", 1)
    if model in ("mc2", "hdp"):
        settings.setdefault("document_level", "document_concentration" in settings)
        settings.setdefault("burstiness", False)
    return Pair(*specify(model, engine, settings, contexts, threads))


def gibbs(model="mc2", **settings):
    return pair_of(model, "gibbs", settings)


def svi(**settings):
    return pair_of("mc2", "svi", settings)


def fastex(**settings):
    return pair_of("mixture", "fastex", settings)


def uncollapsed(**settings):
    """The baseline of NIPS12."""
    from mc2papers.baselines.uncollapsed import Uncollapsed

    return pair_of("mixture", Uncollapsed, settings)


def at_strength(families, strength):
    """The same families by name, at another strength."""
    return {name: type(one)(**(one.settings() | {"strength": strength})) for name, one in families.items()}


def without_log_joint(state):
    """A Gibbs state whose steps leave the log joint out, up to a third of a step on six tokens: for chains of which
    only the states are read."""
    state.compute_log_joint = lambda *_: 0.0
    return state
