"""Comparison of rules that recommend a number of clusters with the best cut of a fit: ``python -m
benchmarks.recommended``.

Default fits of two chains are stored in ``--cache``, so that rules are compared without new fits. ``--held-back`` uses
the corpora on which no rule was chosen. There is one line per rule. Its first columns have the ARI of the recommended
cut with the classes, divided by the ARI of the best cut: mean over corpora, worst corpus and worst fit. "Seeds agree"
is the mean ARI of the recommended cuts of two seeds. "Reported minus true" is the reported agreement of the two chains
minus the ARI with another seed's cut of the same size. The columns of the corpora have the first ratio and the
recommended numbers of clusters. If a corpus has one class, the ratio is the share of fits with one recommended cluster.
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy.special import gammaln

from benchmarks import development, starts
from benchmarks.suite import DATA_FOLDER
from mc2core import Corpus
from mc2core.inference import Gibbs
from mc2core.inference.running.loop import fit
from mc2core.posterior import Posterior
from mc2core.posterior.clustering import adjusted_rand_index
from mc2core.posterior.descent import find_hierarchy
from mc2core.posterior.hierarchy import Hierarchy, recommend
from mc2papers.datasets.collections import multiview

_MOST = 1500


# -- corpora -------------------------------------------------------------------------------------------------------
def drawn(
    shares: np.ndarray, label: np.ndarray, length: int, omega: float, words: np.ndarray, rng: np.random.Generator
) -> Corpus:
    """Draw documents whose topic proportions vary around the proportions of their class, ``shares`` (K, M)."""
    own = np.maximum(shares, 1e-9)
    counts = [rng.multinomial(length, rng.dirichlet(omega * own[k]) @ words) for k in label]
    return Corpus(sp.csr_matrix(np.array(counts)), [f"word {w}" for w in range(words.shape[1])], labels=label)


def nested(n_broad: int, length: int, broad: float, fine: float, omega: float, seed: int = 0) -> Corpus:
    """Draw 1,200 documents of 12 classes; the topic proportions of a class vary around those of its broad class."""
    rng = np.random.default_rng([seed, n_broad, 12])
    words = rng.dirichlet(np.full(1000, 0.01), 20)
    of_broad = rng.dirichlet(broad * rng.dirichlet(np.full(20, 5.0)), n_broad)
    shares = np.stack([rng.dirichlet(np.maximum(fine * of_broad[k % n_broad], 1e-3)) for k in range(12)])
    return drawn(shares, rng.integers(0, 12, 1200), length, omega, words, rng)


def flat(n_classes: int, seed: int = 0, n_documents: int = 600) -> Corpus:
    """Draw documents of 50 words from classes of similar size."""
    rng = np.random.default_rng([seed, n_classes, n_documents, 50])
    words = rng.dirichlet(np.full(500, 0.01), 12)
    shares = rng.dirichlet(5.0 * rng.dirichlet(np.full(12, 5.0)), n_classes)
    return drawn(shares, rng.integers(0, n_classes, n_documents), 50, 20.0, words, rng)


def lda(prior: float) -> Corpus:
    """Draw 600 documents of 50 words from one class; Dirichlet proportions of ten topics have this concentration."""
    rng = np.random.default_rng([0, 77])
    words = rng.dirichlet(np.full(500, 0.01), 10)
    return drawn(np.full((1, 10), 1.0), np.zeros(600, int), 50, prior, words, rng)


def noise() -> Corpus:
    """Draw 600 documents of 50 words, with all words from one distribution."""
    rng = np.random.default_rng([0, 78])
    words = np.tile(rng.dirichlet(np.ones(500)), (2, 1))
    return drawn(np.full((1, 2), 1.0), np.zeros(600, int), 50, 1.0, words, rng)


def of_views(name: str, words: int, names: int, data_folder: Path) -> Corpus:
    """Return at most 1,500 documents of a multi-view data set, with words and without contexts."""
    corpus = multiview.read(data_folder / "multiview" / name, "names", words, names)
    return starts.some(corpus.with_contexts({}), min(_MOST, corpus.n_documents))


def of_questions(data_folder: Path) -> list[tuple[str, str]]:
    """Return 2,500 questions to a digital assistant, with their intents as classes."""
    table = pd.read_csv(data_folder / "clinc150/clinc150.csv.gz").sample(2500, random_state=0)
    return list(table[["text", "label"]].itertuples(index=False, name=None))


def chosen_on(data_folder: Path) -> dict[str, Callable[[], Corpus]]:
    """Return the corpora on which the rule was chosen."""
    known = development.corpora(data_folder)
    del known["abstracts"]
    return known | {
        "two": partial(flat, 2),
        "4 of 3 each": partial(nested, 4, 60, 3.0, 12.0, 40.0),
        "3 of 4 each": partial(nested, 3, 100, 2.0, 10.0, 60.0, 1),
    }


def held_back(data_folder: Path) -> dict[str, Callable[[], Corpus]]:
    """Return the corpora on which no rule was chosen."""
    views = {
        "movies": ("Movies.mat", 0, 1),
        "cora": ("Cora.mat", 1, 0),
        "citeseer": ("CiteSeer.mat", 1, 0),
        "acm": ("ACM.mat", 0, 1),
    }
    return {
        "abstracts": development.corpora(data_folder)["abstracts"],
        "questions": partial(development.from_texts, partial(of_questions, data_folder), 2500),
        **{name: partial(of_views, *view, data_folder) for name, view in views.items()},
        "500 drawn": partial(development.drawn, 500, 2500, 40, 150),
        "eight": partial(flat, 8, 0, 1000),
        "one": partial(flat, 1),
        "topics, prior 1": partial(lda, 1.0),
        "topics, prior .1": partial(lda, 0.1),
        "noise": noise,
    }


# -- rules ---------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Fitted:
    """The hierarchies of a fit and of its chains; ``ari[n - 1]`` is the ARI of the cut of n clusters with the classes.

    ``is_one`` means that the fit prefers one cluster to several.
    """

    hierarchy: Hierarchy
    chains: list[Hierarchy]
    ari: np.ndarray
    is_one: bool

    @classmethod
    def of(cls, corpus: Corpus, seed: int, path: Path) -> Fitted:
        """Make a default fit of two chains, or load it from ``path`` if the file belongs to this corpus."""
        if path.is_file() and Posterior.load(path).provenance["corpus"] == corpus.digest:
            posterior = Posterior.load(path)
        else:
            posterior = fit(corpus, engine=Gibbs(threads=1), seed=seed, chains=2, progress=False).posterior
            path.parent.mkdir(parents=True, exist_ok=True)
            posterior.save(path)
        kept, labels = find_hierarchy(posterior, corpus), np.asarray(corpus.labels)
        stuck = posterior.provenance.get("stuck", [])
        free = [one for number, one in enumerate(posterior.chains) if number not in stuck]
        alone = [replace(one, samples=[replace(one.representative, cluster=one.cluster)]) for one in free]
        chains = [find_hierarchy(one, corpus) for one in alone] if len(alone) > 1 else []
        ari = np.array([adjusted_rand_index(labels, kept.cut(n + 1)) for n in range(kept.n_clusters)])
        return cls(kept, chains, ari, posterior.provenance.get("log_odds_of_clusters", math.inf) <= 0.0)

    @property
    def explained(self) -> np.ndarray:
        """Return (K,) fractions: the score of n clusters relative to the best score, both less the score of one."""
        scores = self.hierarchy.scores
        share: np.ndarray = (scores - scores[0]) / max(scores.max() - scores[0], 1e-9)
        return share

    @property
    def agreement(self) -> np.ndarray:
        """Return the (K,) agreement of the chains on each number of clusters; 1 for a fit of one chain."""
        return np.nan_to_num(self.hierarchy.agreement, nan=1.0) if self.chains else np.ones(self.hierarchy.n_clusters)

    def together(self, size: int) -> list[np.ndarray]:
        """Return the contingency table of each ordered pair of chains, for their cuts of this size."""
        cuts = [one.cut(min(size, one.n_clusters)) for one in self.chains]
        tables = [np.zeros((one.max() + 1, other.max() + 1)) for one, other in itertools.combinations(cuts, 2)]
        for table, pair in zip(tables, itertools.combinations(cuts, 2), strict=True):
            np.add.at(table, pair, 1.0)
        return [way for table in tables for way in (table, table.T)]


def finest(tie: float, half: float = 0.5) -> Callable[[Fitted], int]:
    """Recommend the largest n with an agreement of ``tie`` times the best, among n that explain at least ``half``."""

    def rule(one: Fitted) -> int:
        able = one.explained >= half
        able[0] = False
        if not able.any():
            return 1
        return int(np.flatnonzero(able & (one.agreement >= tie * one.agreement[able].max())).max()) + 1

    return rule


def priced(one: Fitted) -> int:
    """Apply the previous rule: the best A_n (E_n - .6 ln n / ln K), or a larger n if its A_n is at least .98."""
    if not one.chains:
        return one_chain(one)
    size, agree = np.arange(2, one.hierarchy.n_clusters + 1), one.agreement[1:]
    value = np.maximum(agree, 0.0) * np.maximum(one.explained[1:] - 0.6 * np.log(size) / math.log(max(size)), 0.0)
    return max(int(size[value.argmax()]) if value.max() > 0.0 else 1, int(size[agree >= 0.98].max(initial=1)))


def one_chain(one: Fitted) -> int:
    """Apply the rule for one chain: the explained fraction, less ln n / ln max(K, 50)."""
    return recommend(one.hierarchy.scores, one.hierarchy.agreement, are_chains=False)[0]


def by_partitions(one: Fitted) -> int:
    """Recommend the n with the highest score plus log prior of the partition, at the best of five concentrations."""

    def score(size: int) -> float:
        count = np.bincount(one.hierarchy.cut(size))
        n = count.sum()
        prior = [gammaln(a) - gammaln(a + n) + size * math.log(a) for a in (0.3, 1.0, 3.0, 10.0, 30.0)]
        return float(one.hierarchy.scores[size - 1] + max(prior) + gammaln(count).sum())

    return 1 + int(np.argmax([score(size) for size in range(1, one.hierarchy.n_clusters + 1)]))


def by_strength(least: float) -> Callable[[Fitted], int]:
    """Recommend the largest n for which the other chain keeps together a fraction ``least`` of each cluster's pairs."""

    def strength(table: np.ndarray) -> float:
        own = table.sum(axis=1)
        return float(((table * (table - 1)).sum(axis=1) / np.maximum(own * (own - 1), 1)).min())

    def rule(one: Fitted) -> int:
        sizes = range(2, one.hierarchy.n_clusters + 1) if one.chains else ()
        return max((size for size in sizes if min(map(strength, one.together(size))) >= least), default=2)

    return rule


def by_found(share: float) -> Callable[[Fitted], int]:
    """Recommend the largest n for which the other chain finds clusters with this share of documents (Jaccard >= .5)."""

    def found(table: np.ndarray) -> float:
        own, other = table.sum(axis=1), table.sum(axis=0)
        return float(own @ ((table / (own[:, None] + other - table)).max(axis=1) >= 0.5) / own.sum())

    def rule(one: Fitted) -> int:
        sizes = range(2, one.hierarchy.n_clusters + 1) if one.chains else ()
        return max((size for size in sizes if np.mean([*map(found, one.together(size))]) >= share), default=2)

    return rule


RULES: dict[str, Callable[[Fitted], int]] = {
    "recommended": lambda one: one.hierarchy.recommended,
    **{f"finest with {tie:g} of the agreement": finest(tie) for tie in (0.85, 0.95)},
    "finest with 0.9, all sizes": finest(0.9, 0.0),
    "explained, times agreement, priced": priced,
    "explained, times agreement": lambda one: 1 + int((one.agreement * one.explained).argmax()),
    "explained, one chain": one_chain,
    "score with the prior of partitions": by_partitions,
    **{f"every cluster keeps {least:g} of its pairs": by_strength(least) for least in (0.5, 0.8)},
    **{f"{share:g} of the clusters found": by_found(share) for share in (0.5, 0.8)},
    "all clusters": lambda one: one.hierarchy.n_clusters,
}


def as_markdown(fits: Mapping[str, Sequence[Fitted]]) -> str:
    """Return a Markdown table of the rules; ``fits`` has one fit per seed for each corpus.

    If a fit prefers one cluster, all rules recommend one cluster.
    """
    head = [
        "rule",
        "of the best cut's ARI: mean",
        "worst corpus",
        "worst fit",
        "seeds agree",
        "reported minus true",
        *fits,
    ]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for name, rule in RULES.items():
        shares, agree, gaps, cells = [], [], [], []
        for several in fits.values():
            numbers = [1 if one.is_one or one.hierarchy.n_clusters == 1 else rule(one) for one in several]
            cuts = [one.hierarchy.cut(number) for one, number in zip(several, numbers, strict=True)]
            shares.append([one.ari[n - 1] / one.ari.max() for one, n in zip(several, numbers, strict=True)])
            agree += [adjusted_rand_index(*pair) for pair in itertools.combinations(cuts, 2)]
            for (one, n), (other, _) in itertools.permutations(zip(several, numbers, strict=True), 2):
                if n > 1 and one.chains:
                    of_other = other.hierarchy.cut(min(n, other.hierarchy.n_clusters))
                    gaps.append(one.agreement[n - 1] - adjusted_rand_index(one.hierarchy.cut(n), of_other))
            cells.append(f"{np.mean(shares[-1]):.2f}: {', '.join(map(str, numbers))}")
        means = [np.mean(one) for one in shares]
        together = f"{np.mean(agree):.2f}" if agree else ""
        gap = f"{np.mean(gaps):+.2f} ({np.abs(gaps).mean():.2f})" if gaps else ""
        figures = f"{np.mean(means):.2f} | {min(means):.2f} | {min(map(min, shares)):.2f} | {together} | {gap}"
        lines.append(f"| {name} | {figures} | {' | '.join(cells)} |")
    best = [f"{np.mean([one.ari.max() for one in several]):.2f}" for several in fits.values()]
    lines.append(f"| ARI of the best cut |{' |' * 5} {' | '.join(best)} |")
    levels = [", ".join(_level(one) for one in several) for several in fits.values()]
    lines.append(f"| recommended and other number, with their agreement |{' |' * 5} {' | '.join(levels)} |")
    return "\n".join(lines) + "\n"


def _level(one: Fitted) -> str:
    sizes = [size for size in (one.hierarchy.recommended, one.hierarchy.other) if size]
    return " and ".join(f"{size} ({one.hierarchy.agreement[size - 1]:.2f})" for size in sizes)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recommended", description=(__doc__ or "").split(":")[0])
    parser.add_argument("--held-back", action="store_true", help="the corpora on which no rule was chosen")
    parser.add_argument("--only", nargs="+", metavar="CORPUS", help="only these corpora")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2], help="of the fits (default: 0 1 2)")
    parser.add_argument("--cache", type=Path, default=Path("results/recommended"), help="folder of fits that are done")
    parser.add_argument("--data-folder", type=Path, default=DATA_FOLDER, help="folder of the real data")
    given = parser.parse_args()
    known = (held_back if given.held_back else chosen_on)(given.data_folder)
    fits: dict[str, list[Fitted]] = {}
    for name in given.only or known:
        try:
            corpus = known[name]()
        except FileNotFoundError as error:
            print(f"{name}: left out; this machine lacks {error}", file=sys.stderr)
            continue
        words, classes = corpus.n_tokens / corpus.n_documents, len(np.unique(np.asarray(corpus.labels)))
        key = f"{name} ({corpus.n_documents} documents, {words:.0f} words, {classes} classes)"
        fits[key] = [Fitted.of(corpus, seed, given.cache / f"{name}.{seed}.npz") for seed in given.seeds]
        print(key, file=sys.stderr, flush=True)
    print(as_markdown(fits), end="")


if __name__ == "__main__":
    main()
