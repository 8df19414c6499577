"""How near the recommended clustering comes to the best cut of a fit: ``python -m benchmarks.recommended``.

Default fits of the corpora of :mod:`benchmarks.development`, two chains each, kept in ``--cache`` with their hierarchy,
so that rules are compared without new fits. A line for each rule: its ARI over that of the best cut (mean over corpora,
and the worst corpus), the worst seed over the median seed, the agreement of the seeds' clusterings, and by corpus the
numbers and ARI.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks import development
from benchmarks.suite import DATA_FOLDER
from mc2core import Corpus
from mc2core.inference.running.loop import fit
from mc2core.posterior import Posterior
from mc2core.posterior.clustering import adjusted_rand_index
from mc2core.posterior.hierarchy import Hierarchy, recommend


@dataclass(frozen=True)
class Fitted:
    """The hierarchy of a fit, and at n - 1 how far its cut of n clusters agrees with the classes (ARI)."""

    hierarchy: Hierarchy
    ari: np.ndarray

    @classmethod
    def of(cls, corpus: Corpus, seed: int, path: Path) -> Fitted:
        """The default fit, from ``path`` if it is there and of this corpus."""
        if path.is_file() and Posterior.load(path).provenance["corpus"] == corpus.digest:
            posterior = Posterior.load(path)
        else:
            posterior = fit(corpus, seed=seed, chains=2, progress=False).posterior
            posterior.find_hierarchy(corpus)
            path.parent.mkdir(parents=True, exist_ok=True)
            posterior.save(path)
        kept, labels = posterior.hierarchy, np.asarray(corpus.labels)
        assert kept is not None
        are_chains = len(posterior.chains) - len(posterior.provenance.get("stuck", [])) > 1
        kept = replace(kept, recommended=recommend(kept.scores, kept.agreement, are_chains))  # by the rule of today
        return cls(kept, np.array([adjusted_rand_index(labels, kept.cut(n + 1)) for n in range(kept.n_clusters)]))


def largest_loss(hierarchy: Hierarchy) -> int:
    """The largest n at which the next step loses a fifth of an even share, and agreement is .8 of the best."""
    scores, agreement = hierarchy.scores, hierarchy.agreement[1:]
    size = np.arange(2, len(scores) + 1)
    bears = size * np.diff(scores) >= 0.2 * (scores.max() - scores[0])
    if not np.isnan(agreement).all():
        bears &= agreement >= 0.8 * np.nanmax(agreement)
    return int(size[bears].max(initial=1))


def penalty(hierarchy: Hierarchy) -> int:
    """What is explained, less ln n / ln max(K, 50): the rule for one chain."""
    return recommend(hierarchy.scores, hierarchy.agreement, are_chains=False)


def agreed(hierarchy: Hierarchy) -> int:
    """The largest share of what is explained, times the agreement of chains."""
    scores, agreement = hierarchy.scores, np.nan_to_num(hierarchy.agreement)
    value = agreement * (scores - scores[0]) / max(scores.max() - scores[0], 1e-9)
    return int(value[1:].argmax()) + 2 if value[1:].max(initial=0.0) > 0.0 else penalty(hierarchy)


RULES: dict[str, Callable[[Hierarchy], int]] = {
    "recommended": lambda hierarchy: hierarchy.recommended,
    "largest n of some loss": largest_loss,
    "explained, times agreement": agreed,
    "penalty of ln n": penalty,
    "all clusters": lambda hierarchy: hierarchy.n_clusters,
}


def as_markdown(fits: Mapping[str, Sequence[Fitted]]) -> str:
    """The table; ``fits`` are those of each corpus, one a seed."""
    head = ["rule", "of the best cut's ARI: mean", "worst corpus", "worst of the median seed", "seeds agree", *fits]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    best = [_told([(int(one.ari.argmax()) + 1, one.ari.max()) for one in several]) for several in fits.values()]
    lines.append(f"| best cut | 1 | 1 | | | {' | '.join(best)} |")
    for name, rule in RULES.items():
        shares, worst, agree, cells = [], [], [], []
        for several in fits.values():
            numbers = [rule(one.hierarchy) for one in several]
            ari = np.array([one.ari[number - 1] for one, number in zip(several, numbers, strict=True)])
            shares.append(np.mean(ari / [one.ari.max() for one in several]))
            worst.append(ari.min() / np.median(ari))
            cuts = [one.hierarchy.cut(number) for one, number in zip(several, numbers, strict=True)]
            agree += [adjusted_rand_index(*pair) for pair in itertools.combinations(cuts, 2)]
            cells.append(_told(list(zip(numbers, ari, strict=True))))
        together = f"{np.mean(agree):.2f}" if agree else ""
        figures = f"{np.mean(shares):.2f} | {min(shares):.2f} | {min(worst):.2f} | {together}"
        lines.append(f"| {name} | {figures} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _told(pairs: Sequence[tuple[int, float]]) -> str:
    return ", ".join(f"{number}: {ari:.2f}" for number, ari in pairs)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recommended", description=(__doc__ or "").split(":")[0])
    known = development.corpora(DATA_FOLDER)
    parser.add_argument("--only", nargs="+", choices=known, default=list(known), metavar="CORPUS")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1], help="of the fits (default: 0 1)")
    parser.add_argument("--cache", type=Path, default=Path("results/recommended"), help="folder of fits that are done")
    parser.add_argument("--data-folder", type=Path, default=DATA_FOLDER, help="folder of the real data")
    given = parser.parse_args()
    fits: dict[str, list[Fitted]] = {}
    for name in given.only:
        try:
            corpus = development.corpora(given.data_folder)[name]()
        except FileNotFoundError as error:
            print(f"{name}: left out; this machine lacks {error}", file=sys.stderr)
            continue
        words, classes = corpus.n_tokens / corpus.n_documents, len(np.unique(np.asarray(corpus.labels)))
        key = f"{name} ({corpus.n_documents} documents, {words:.0f} words, {classes} classes)"
        fits[key] = [Fitted.of(corpus, seed, given.cache / f"{name}.{seed}.npz") for seed in given.seeds]
    print(as_markdown(fits), end="")


if __name__ == "__main__":
    main()
