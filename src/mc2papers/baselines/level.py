"""The marked level of another run's fit: its clusters joined as far as the data bear."""

from __future__ import annotations

from typing import ClassVar

from mc2core.corpus import Corpus
from mc2core.posterior import Posterior
from mc2core.posterior.levels import find_levels
from mc2papers.baselines.assignments import Assignments
from mc2papers.baselines.base import Baseline, Fitted


class Level(Baseline):
    """The level that :attr:`mc2core.posterior.levels.Levels.chosen` marks, where a fit found its number of clusters."""

    name: ClassVar[str] = "level"
    title: ClassVar[str] = "the marked level"
    citation: ClassVar[str] = "docs/model.md, section 5, levels"
    models: ClassVar[tuple[str, ...]] = ("mc2", "mixture")

    def __init__(self) -> None:
        pass

    def fit(self, corpus: Corpus, seed: int, model: Posterior | None = None) -> Fitted:
        if model is None:
            raise ValueError(f"{self.title} needs the model of another run")
        levels = find_levels(model, corpus)
        return Fitted(Assignments({"cluster": levels.at(levels.chosen)}), levels.n_clusters, {"cluster": True})
