"""Run a fit again with its stored settings, to check whether the result is the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mc2core.base.checks import counted
from mc2core.base.provenance import environment
from mc2core.corpus import Corpus
from mc2core.explore.compare import compare
from mc2core.explore.merging import merge_clusters
from mc2core.explore.methods import burn_in_of
from mc2core.inference.registry import specified_in
from mc2core.inference.running.loop import fit
from mc2core.inference.running.summary import add_hierarchy
from mc2core.posterior import Posterior

_OF_DOCUMENTS = ("fingerprints", "kept.")  # arrays that only ``mc2 fit`` adds to the file


@dataclass(frozen=True)
class Rerun:
    """Result of :func:`rerun`.

    Attributes
    ----------
    posterior : Posterior
        Result of the second run.
    differing : list of str
        Names of the arrays of the posterior (:meth:`mc2core.Posterior.arrays`) that differ between the runs in at least
        one bit. If the list is empty, both runs have the same result.
    versions : list of str
        Differences between the versions of the first and of the second run (:func:`other_versions`).
    """

    posterior: Posterior
    differing: list[str]
    versions: list[str]
    _first: Posterior

    def __str__(self) -> str:
        samples = counted(len(self.posterior.samples), "samples")
        if not self.differing:
            return f"the rerun gives the same result, bit by bit ({samples})"
        text = f"the rerun gives another result ({counted(len(self.differing), 'arrays')} of its {samples} differ)"
        text += f"; other versions: {', '.join(self.versions)}" if self.versions else "; the versions are the same"
        if self.posterior.representative.documents_are_clusters:
            return text
        row = compare(self._first, self.posterior).agreement.set_index("level").loc["recommended"]
        numbers = f"{row['clusters_a']:.0f} and {row['clusters_b']:.0f}"
        return f"{text}; recommended clusters: {numbers}, ARI {row['ari']:.2f}"


def rerun(posterior: Posterior, corpus: Corpus, threads: int = 1, progress: bool | None = None) -> Rerun:
    """Run a fit again with its stored settings and seed, and compare the results bit by bit.

    Parameters
    ----------
    posterior : Posterior
        Result of the fit. Clusters that were merged by hand are merged again.
    corpus : Corpus
        The fitted documents.
    threads : int, optional
        Number of threads, on which the result does not depend.
    progress : bool, optional
        As in :func:`mc2core.fit`.

    Raises
    ------
    ValueError
        If ``corpus`` is not the fitted corpus, if documents were added after the fit, if the fit was stopped within an
        iteration, or if the settings of the fit are not stored.
    """
    provenance = posterior.provenance
    if not posterior.was_fitted_on(corpus):
        raise ValueError("the fit cannot be run again: the corpus is not the corpus of the fit")
    if provenance.get("updates") or provenance.get("stream"):
        raise ValueError("documents were added to this fit; only the fit before its updates can be run again")
    iterations = provenance.get("stopped_at", provenance.get("iterations"))
    if iterations is None or "seed" not in provenance:
        raise ValueError("the posterior does not record the iterations and the seed of its fit")
    if iterations != int(iterations):
        raise ValueError(f"the fit was stopped at iteration {iterations:.4g}; finish it with mc2 fit")
    model, engine = specified_in(provenance, threads)
    lengths: dict[str, Any] = {"iterations": int(iterations), "chains": len(provenance.get("chains") or [1])}
    if engine.keeps_samples:
        lengths |= {"thin": provenance["thin"], "burn_in": burn_in_of(posterior)}
    result = fit(corpus, model, engine, seed=provenance["seed"], progress=progress, **lengths)
    repeated = result.posterior
    add_hierarchy(repeated, corpus, result.provenance["inferred"])
    for merge in provenance.get("merged", []):
        repeated = merge_clusters(repeated, merge["clusters"])
    first, second = posterior.arrays(), Posterior.from_arrays(repeated.arrays(), "the rerun").arrays()  # as loaded
    names = [name for name in {**first, **second} if name != "meta" and not name.startswith(_OF_DOCUMENTS)]
    if posterior.hierarchy is None:  # the first run did not compute a hierarchy
        names = [name for name in names if not name.startswith("hierarchy.")]
    differing = [name for name in names if not _is_equal(first.get(name), second.get(name))]
    return Rerun(repeated, differing, other_versions(posterior), posterior)


def _is_equal(one: np.ndarray | None, other: np.ndarray | None) -> bool:
    if one is None or other is None or one.dtype != other.dtype or one.shape != other.shape:
        return False
    return one.tobytes() == other.tobytes()


def other_versions(posterior: Posterior) -> list[str]:
    """Return the software whose installed version differs from the version used for the fit.

    Each entry has the name of the software (mc2core and its commit, Python, NumPy, ...) and both versions. If the fit
    does not record its versions, the only entry reports this.
    """
    provenance, current = posterior.provenance, environment()
    if "versions" not in provenance:
        return ["the fit does not record its versions"]
    before, present = (one["versions"] | {"commit": _shorten(one.get("git_commit"))} for one in (provenance, current))
    return [f"{name} {one}, now {present.get(name)}" for name, one in before.items() if one != present.get(name)]


def _shorten(commit: str | None) -> str:
    number, plus, changes = (commit or "unknown").partition("+")
    return number[:8] + plus + changes
