"""The recommended cut of the fit of another run, in which clusters are merged to the recommended number."""

from __future__ import annotations

from typing import ClassVar

from mc2core.corpus import Corpus
from mc2core.posterior import Posterior
from mc2core.posterior.descent import find_hierarchy
from mc2papers.baselines.assignments import Assignments
from mc2papers.baselines.base import Baseline, Fitted


class Cut(Baseline):
    """The recommended cut (:attr:`mc2core.posterior.hierarchy.Hierarchy.recommended`) of a fit that infers K."""

    name: ClassVar[str] = "cut"
    title: ClassVar[str] = "the recommended cut"
    citation: ClassVar[str] = "docs/model.md, section 5, hierarchy"
    models: ClassVar[tuple[str, ...]] = ("mc2", "mixture")

    def __init__(self) -> None:
        pass

    def fit(self, corpus: Corpus, seed: int, model: Posterior | None = None) -> Fitted:
        if model is None:
            raise ValueError(f"{self.title} needs the model of another run")
        hierarchy = find_hierarchy(model, corpus)
        cut = Assignments({"cluster": hierarchy.cut(hierarchy.recommended)})
        return Fitted(cut, hierarchy.n_clusters, {"cluster": True})
