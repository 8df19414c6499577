"""Hierarchy: clusterings of the fitted documents at every size, from the clusters of a fit down to one.

Each step merges the two clusters whose union lowers the log marginal likelihood least. Then each document in turn moves
to the cluster that raises it most. In a cut, each document is in the cluster that is likeliest by the samples. The
likelihood is the likelihood of the topics of words, with proportions from a Dirichlet around v epsilon (docs/model.md,
section 2). If each cluster is a topic, it is the likelihood of the words (FastEx, NIPS12 eq. 18). Both include the
contexts. The number of tokens of a document per topic is estimated with the mean proportions of all clusters as prior:
with topics drawn under its own cluster, a document would never move.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from mc2core.base import stopping
from mc2core.base.checks import choice
from mc2core.base.progress import Work, work
from mc2core.base.storage import Stored, check_arrays
from mc2core.compute.kernels import inner_kernel, kernel
from mc2core.compute.special import log, log_gamma
from mc2core.corpus import Corpus, matching
from mc2core.families import DirichletCategorical
from mc2core.families.contents import relative_densities
from mc2core.families.kernels import add_statistics, log_predictive
from mc2core.families.stacked import StackedContexts
from mc2core.posterior.clustering import adjusted_rand_index
from mc2core.posterior.mixture import blocks
from mc2core.posterior.predicting import shares_of
from mc2core.posterior.proportions import expected_tokens
from mc2core.posterior.repeats import expected_draws
from mc2core.posterior.sample import Sample

if TYPE_CHECKING:
    import pandas as pd

    from mc2core.posterior.posterior import Posterior

CUTS = "recommended", "broad", "fine", "all"
"""Names of cuts."""
MAX_CLUSTERS = 5000
"""Clusters of which a hierarchy is made: the table of pairs takes 8 bytes each, 0.2 GB."""
MAX_CELLS = 1 << 27
"""Of the table of topics or words (and names in contexts) by clusters, 8 bytes each."""
MAX_COMPARED = 1 << 36
"""Of cells that are compared in all merges of one descent, which take a minute or two."""
SWEEPS = 1
"""Over all documents at each size."""
WORK = 1 << 30
"""Products for one descent, about: where they suffice for some sizes only, documents move at these, and at larger ones
after each tenth of the clusters if a sweep costs at most an eighth of them."""
N_OTHERS = 3
"""Samples, at most, whose hierarchies are compared with those of the fit."""
MIN_SCALE = 50
"""Clusters in whose logarithm numbers of fewer are measured where one chain ran (docs/notes/recommended.md)."""
HALF = 0.5
"""Share of what clusters explain that a recommended clustering explains: few clusters agree easily, but say little."""
TIE = 0.9
"""Share of the highest agreement from which on chains agree as well (docs/notes/recommended.md)."""
STEP = 3.0
"""Times the gain of any further cluster that the last cluster of a broad clustering gains."""
MIN_AGREEMENT = 0.7
"""Agreement of chains below which they are said to differ."""
_BLOCK = 1 << 14  # documents whose probabilities are averaged at a time
_MIN = 1e-12  # prior of a topic: its logarithm is finite
_PASSES = 5  # over a document whose proportions are its own
_STALE = 0.05  # share of a cluster's documents that come or go before what its unions lose is computed anew
_FACTORS = 8.0  # of a product before its logarithm is taken
_SMALL_COUNT = 16.0
_TINY = 1e-9  # nats: rounding moves no document


@dataclass(frozen=True)
class Hierarchy:
    """Clusterings at every size n from K to 1. Each one but the first is made from the previous: merge, then move.

    Attributes
    ----------
    cluster : (J,) int32
        Clusters of the fit, 0..K-1, none empty; -1 for documents without a cluster, here and in every cut.
    joined : (K - 1, 2) int32
        Step i merges the second cluster into the first, which keeps its number; K - 1 - i clusters remain.
    start : (K,) int64
        ``start[i]:start[i + 1]`` are the moves of step i in ``document`` and ``to``.
    document, to : (N,) int32
        Documents, and the clusters to which they move.
    scores : (K,) float64
        Log marginal likelihood of the clustering of size n, in nats, at index n - 1.
    agreement : (K,) float64
        At index n - 1, the mean adjusted Rand index between the clusterings of size n (:meth:`at`) of pairs of chains;
        for one chain, between this one and those made from single samples. A chain or sample with fewer clusters keeps
        all of them. NaN if there is one sample.
    recommended : int
        Recommended number of clusters (:func:`recommend`); K if the model fixes the number.
    samples : sequence of (J,) int32
        Clusters of the documents in each sample, by which :meth:`cut` assigns documents; empty if there is one sample.
        They are saved with the posterior, not with the hierarchy.
    whole : Hierarchy, optional
        If this is restricted to some documents (:meth:`of_documents`), the hierarchy of all; ``rows`` (n,) are their
        numbers.
    other : int
        A second number of clusters on which chains agree (:func:`recommend`); 0 if there is none.
    merged : tuple of ints
        If clusters were merged by hand (:meth:`merged_by_hand`), the recommended cluster that each cluster of the
        clustering before has become; otherwise empty.
    """

    cluster: np.ndarray
    joined: np.ndarray
    start: np.ndarray
    document: np.ndarray
    to: np.ndarray
    scores: np.ndarray
    agreement: np.ndarray
    recommended: int
    samples: Sequence[np.ndarray] = field(default=(), repr=False)
    whole: Hierarchy | None = field(default=None, repr=False)
    rows: np.ndarray | None = field(default=None, repr=False)
    other: int = 0
    merged: tuple[int, ...] = ()
    _cuts: dict[int, np.ndarray] = field(default_factory=dict, repr=False, init=False)

    @property
    def n_clusters(self) -> int:
        """Number K of clusters."""
        return len(self.scores)

    @property
    def other_name(self) -> str:
        """Name of the clustering of size ``other``, "broad" or "fine"."""
        return "broad" if self.other < self.recommended else "fine"

    def size_of(self, cut: int | str) -> int:
        """Return the number of clusters of a cut: a number, or a name of :data:`CUTS`.

        The broad and the fine clustering are the smaller and the larger of ``recommended`` and ``other``; if there is
        no other, both are the recommended one. Raises ValueError if there is no such name.
        """
        if not isinstance(cut, str):
            return cut
        both = self.recommended, self.other or self.recommended
        named = (self.recommended, min(both), max(both), self.n_clusters)
        return dict(zip(CUTS, named, strict=True))[choice("cut", cut, CUTS)]

    def cut(self, size: int) -> np.ndarray:
        """Return the cluster of each document in the cut of ``size`` clusters, (J,) int32; -1 for none.

        If there are several samples and ``size`` is below K, each document is in its likeliest cluster
        (:meth:`probability`). Clusters are numbered from 0 in order of decreasing size. Raises ValueError unless
        ``size`` is between 1 and K.
        """
        if self.whole is not None:
            part: np.ndarray = self.whole.cut(size)[self.rows]
            return part
        if self._is_merged(size):
            before = self.cut(len(self.merged))
            return np.where(before < 0, -1, np.array(self.merged)[before]).astype(np.int32)
        if size not in self._cuts:
            numbers = self.at(size)
            seen = numbers >= 0
            found = np.unique(numbers[seen], return_inverse=True)[1]
            if size < self.n_clusters and self._can_average(size, numbers):
                found = _likeliest(_mean_shares(self.samples, found, size), found, size)
            cut = np.full(len(numbers), -1, np.int32)
            cut[seen] = by_size(found, size)[found]
            self._cuts[size] = cut
        return self._cuts[size].copy()

    def probability(self, size: int) -> np.ndarray | None:
        """Return the probability of each cluster of the cut for each document, (J, size) float64; rows sum to 1.

        In each sample, the documents that are in one cluster with a document are distributed over the clusters that the
        merges and moves have made (:meth:`at`). The result is the mean of these distributions. It is None if there is
        one sample, or if samples have too many clusters.
        """
        if self.whole is not None:
            of_all = self.whole.probability(size)
            return None if of_all is None else of_all[self.rows]
        if self._is_merged(size):
            before = self.probability(len(self.merged))
            return None if before is None else before @ np.eye(size)[list(self.merged)]
        numbers = self.at(size)
        if not self._can_average(size, numbers):
            return None
        found = np.unique(numbers, return_inverse=True)[1]
        blocks = list(_mean_shares(self.samples, found, size))
        if size < self.n_clusters:
            found = _likeliest(blocks, found, size)
        return np.concatenate([shares for _, shares in blocks])[:, np.argsort(by_size(found, size))]

    def _is_merged(self, size: int) -> bool:
        return bool(self.merged) and size == self.recommended

    def merged_by_hand(self, clusters: Sequence[int]) -> Hierarchy:
        """Return the hierarchy with ``clusters`` (numbers from 0) of the recommended clustering merged into one.

        The result takes the place of the cut with this number of clusters, whose agreement is then NaN. Other cuts do
        not change. Raises ValueError if the numbers are invalid, or if documents were added by an update.
        """
        size = self.recommended
        chosen = np.unique(clusters)
        if len(chosen) < 2 or len(chosen) < len(clusters) or chosen[0] < 0 or chosen[-1] >= size:
            raise ValueError(f"two or more different numbers of clusters from 1 to {size} are needed")
        if hasattr(self, "earlier"):
            raise ValueError("documents were added to this fit; merge clusters before mc2 update")
        label = np.arange(size)
        label[chosen] = chosen[0]
        label = np.unique(label, return_inverse=True)[1]
        found, size = self.cut(size), size - len(chosen) + 1
        label = by_size(np.where(found < 0, -1, label[found]), size)[label]
        agreement = self.agreement.copy()
        agreement[size - 1] = np.nan
        merged = tuple(label[list(self.merged)].tolist() if self.merged else label.tolist())
        other = 0 if self.other == size else self.other
        return replace(self, recommended=size, merged=merged, agreement=agreement, other=other)

    def _can_average(self, size: int, numbers: np.ndarray) -> bool:
        cells = size * sum(int(one.max()) + 1 for one in self.samples)
        return 0 < cells <= MAX_CELLS and int(numbers.min()) >= 0

    def at(self, size: int) -> np.ndarray:
        """Return :meth:`cut` with the cluster numbers of the fit that remain after the merges (``joined``)."""
        if not 1 <= size <= self.n_clusters:
            raise ValueError(f"{size} clusters were requested; a cut has 1 to {self.n_clusters}, the number of the fit")
        step = self.n_clusters - size
        found, end = self.cluster.copy(), self.start[step]
        found[self.document[:end]] = self.to[:end]  # of two moves of a document the later one stays
        joined = np.arange(self.n_clusters)
        for first, second in self.joined[:step][::-1].tolist():
            joined[second] = joined[first]
        return np.where(found < 0, -1, joined[found]).astype(np.int32)

    def of_documents(self, rows: np.ndarray) -> Hierarchy:
        """Return the clusterings restricted to the documents ``rows`` (ascending); some clusters may be empty.

        Scores are the scores of all documents, scaled to this number.
        """
        place = np.searchsorted(rows, self.document)
        kept = np.flatnonzero(rows[np.minimum(place, len(rows) - 1)] == self.document)
        return replace(
            self,
            cluster=self.cluster[rows],
            start=np.searchsorted(kept, self.start),
            document=place[kept].astype(np.int32),
            to=self.to[kept],
            scores=self.scores * (len(rows) / len(self.cluster)),
            whole=self,
            rows=rows,
        )

    def table(self) -> pd.DataFrame:
        """Return one row per size, from 1 to K.

        The columns are clusters; log_marginal, in nats per document; loss, the decrease of log_marginal from one more
        cluster (negative if moving documents gains more than merging loses); moved, the share of documents that the
        moves of this step put into another cluster; agreement; recommended, "yes" at :attr:`recommended`; and if there
        are a broad and a fine clustering, level, which is "broad" or "fine" at these.
        """
        import pandas as pd

        n_documents, size = max(len(self.cluster), 1), np.arange(1, self.n_clusters + 1)
        table = pd.DataFrame(
            {
                "clusters": size,
                "log_marginal": self.scores / n_documents,
                "loss": np.append(np.diff(self.scores), np.nan) / n_documents,
                "moved": np.append(np.diff(self.start)[::-1], 0) / n_documents,
                "agreement": self.agreement,
                "recommended": np.where(size == self.recommended, "yes", ""),
            }
        )
        if self.other:
            table["level"] = ""
            for level in ("broad", "fine"):
                table.loc[self.size_of(level) - 1, "level"] = level
        if self.merged:  # the numbers are of the clustering in whose place it is
            table.loc[self.recommended - 1, ["log_marginal", "loss", "moved"]] = np.nan
        return table

    def shares(self, size: int, cluster: np.ndarray, n_clusters: int) -> np.ndarray:
        """Return the distribution of the documents of each ``cluster`` (J,) over the cut, (n_clusters, size) float64.

        Rows sum to 1. A cluster without documents has the distribution of all documents.
        """
        return shares_of(self.cut(size), size, cluster, n_clusters)


def _mean_shares(samples: Sequence[np.ndarray], found: np.ndarray, size: int) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield blocks of documents with (B, size) mean shares.

    The share of one of the clusters ``found`` (J,) is computed in the document's cluster, and averaged over samples.
    """
    tables = []
    for cluster in samples:
        counts = np.bincount(cluster.astype(np.int64) * size + found, minlength=(int(cluster.max()) + 1) * size)
        table = counts.reshape(-1, size).astype(np.float64)
        tables.append(table / np.maximum(table.sum(axis=1, keepdims=True), 1.0))
    for start in range(0, len(found), _BLOCK):
        block = slice(start, start + _BLOCK)
        shares = np.zeros((len(found[block]), size))
        for cluster, table in zip(samples, tables, strict=True):
            shares += table[cluster[block]]
        yield block, shares / len(samples)


def _likeliest(mean_shares: Iterable[tuple[slice, np.ndarray]], found: np.ndarray, size: int) -> np.ndarray:
    """Return (J,) int64: the likeliest of the clusters ``found`` (J,) for each document; of equal ones, its own.

    ``mean_shares`` are the blocks of :func:`_mean_shares`. A cluster that would lose all of its documents keeps them.
    """
    likeliest = found.copy()
    for block, shares in mean_shares:
        rows, best = np.arange(len(shares)), shares.argmax(axis=1)
        likeliest[block] = np.where(shares[rows, best] > shares[rows, found[block]], best, found[block])
    while len(left := np.setdiff1d(np.arange(size), likeliest)):
        kept = np.isin(found, left)
        likeliest[kept] = found[kept]
    return likeliest


def recommend(scores: np.ndarray, agreement: np.ndarray, are_chains: bool) -> tuple[int, int]:
    """Return the recommended number of clusters, 1 if more clusters explain nothing, and the other one, 0 if none.

    ``scores`` and ``agreement`` are those of :class:`Hierarchy`. E_n is the gain in score of n clusters over one, as a
    share of the largest gain. For several chains (``are_chains``), the recommended number is the largest one on which
    chains agree as well as on any: of the sizes with E_n of at least ``HALF``, the largest whose agreement is at least
    ``TIE`` times the highest. The samples of one chain agree at any n, so for one chain the result maximises E_n - ln n
    / ln max(K, ``MIN_SCALE``).

    The other number differs by a factor of two or more, and chains agree on it by ``MIN_AGREEMENT``. It is smaller if
    there is an edge among those n on which chains also agree as well as on any: the largest at which the last cluster
    explains ``STEP`` times as much as any further one would, or else at which chains agree more than on n + 1.
    Otherwise, it is the largest n of all.
    """
    explained = scores.max() - scores[0]
    if not explained > 0.0:
        return 1, 0
    share, size, agree = (scores[1:] - scores[0]) / explained, np.arange(2, len(scores) + 1), agreement[1:]
    if not are_chains or np.isnan(agree).all():
        value = share - np.log(size) / math.log(max(len(scores), MIN_SCALE))
        return (int(size[value.argmax()]) if value.max() > 0.0 else 1), 0
    most = agree[share >= HALF].max()
    if not most > 0.0:
        return 1, 0
    is_tie = (share >= HALF) & (agree >= TIE * most)
    recommended = int(size[is_tie].max())
    gain = np.diff(scores)
    later = np.maximum.accumulate(np.maximum(gain, 0.0)[:0:-1])[::-1]
    edges = gain[:-1] >= STEP * later, agree[1:] < TIE * agree[:-1]
    is_agreed = agree >= MIN_AGREEMENT
    is_broad = (is_tie & is_agreed & (2 * size <= recommended))[:-1]
    by_gain, by_agreement = (size[:-1][is_broad & edge].max(initial=0) for edge in edges)
    fine = size[is_agreed & (size >= 2 * recommended)].max(initial=0)
    return recommended, int(by_gain or by_agreement or fine)


def by_size(cluster: np.ndarray, n_clusters: int) -> np.ndarray:
    """Return the rank of each cluster by size, (n_clusters,) int64, from 0 for the largest; ties keep their order.

    ``cluster`` (J,) has the cluster of each document, or -1 for none.
    """
    sizes = np.bincount(cluster[cluster >= 0], minlength=n_clusters)
    number = np.empty(n_clusters, np.int64)
    number[np.argsort(-sizes, kind="stable")] = np.arange(n_clusters)
    return number


# -- a descent -----------------------------------------------------------------------------------------------------
def find_hierarchy(posterior: Posterior, corpus: Corpus) -> Hierarchy:
    """Return the hierarchy of a fit; ``corpus`` is the fitted corpus.

    It starts from the consensus of the samples and uses the topics of the representative. For the agreement, further
    hierarchies start from the consensus of each chain, with the topics of its own representative, or for one chain from
    ``N_OTHERS`` of its samples, with their own topics. One cluster is recommended if the run found that it is likelier
    than the clusters in which its chains ended (``log_odds_of_clusters``). The result is deterministic.

    Raises ValueError for other documents, if each document is a cluster (HDP), if there are more clusters than
    :func:`most_clusters` of the columns, or if a score is not finite.
    """
    if posterior.representative.documents_are_clusters:
        raise ValueError("this posterior has no clusters to merge: each document is its own cluster")
    posterior.check_fitted(corpus)
    others: list[tuple[Sample, np.ndarray]] = []
    if posterior.cluster.max(initial=-1) < 0:
        raise ValueError("no document is in a cluster")
    posterior.stacked(corpus.subset(np.zeros(1, np.int64)))  # checks the columns of contexts
    stuck = posterior.provenance.get("stuck", [])
    chains = [one for number, one in enumerate(posterior.chains) if number not in stuck]
    samples = chains[0].samples if len(chains) == 1 else posterior.samples
    if are_chains := len(chains) > 1:
        others = [(one.representative, one.cluster) for one in chains]
    elif len(samples) > 1:
        places = np.linspace(0, len(samples) - 1, N_OTHERS).astype(int)
        others = [(samples[place], samples[place].cluster) for place in np.unique(places)]
    starts = [(sample, _numbered(one)) for sample, one in ((posterior.representative, posterior.cluster), *others)]
    with stopping.defer(), work("hierarchy", sum(int(one.max()) + 1 for _, one in starts), "sizes") as told:
        hierarchy, *of_others = (_descend(_Held.of(posterior, corpus, *start), told) for start in starts)
    agreement = np.full(hierarchy.n_clusters, np.nan)
    for size in range(1, hierarchy.n_clusters + 1) if others else ():
        of_size = [one.at(min(size, one.n_clusters)) for one in of_others]
        # chains with each other: what all samples say is of each of them
        pairs = itertools.combinations(of_size, 2) if are_chains else ((hierarchy.at(size), one) for one in of_size)
        agreement[size - 1] = np.mean([adjusted_rand_index(*pair) for pair in pairs])
    if posterior.provenance.get("model", {}).get("n_clusters") is not None:
        recommended, other = hierarchy.n_clusters, 0
    elif posterior.provenance.get("log_odds_of_clusters", math.inf) <= 0.0:
        recommended, other = 1, 0
    else:
        recommended, other = recommend(hierarchy.scores, agreement, are_chains)
    hierarchy = replace(hierarchy, recommended=recommended, other=other)
    return replace(hierarchy, samples=posterior.clusterings, agreement=agreement)


def merge_clusters(posterior: Posterior, corpus: Corpus, size: int) -> np.ndarray:
    """Merge the clusters of the fitted ``corpus`` until ``size`` are left, and return them, (J,) int32 in 0..size-1.

    Steps and errors are those of :func:`find_hierarchy`. If there are no more than ``size`` clusters, they do not
    change.
    """
    clusters = _Clusters(_Held.of(posterior, corpus, posterior.representative, _numbered(posterior.cluster)))
    while clusters.n > size:
        clusters.step()
    return _numbered(clusters.numbers())


def are_too_many(n_clusters: int, columns: int) -> bool:
    """Return whether a hierarchy with so many clusters and columns would need too much memory or time."""
    return n_clusters > most_clusters(columns)


def most_clusters(columns: int) -> int:
    """Return the largest number of clusters for which a hierarchy is computed, given the number of columns."""
    columns = max(columns, 1)
    return min(MAX_CLUSTERS, MAX_CELLS // columns, math.isqrt(MAX_COMPARED // columns))


def _numbered(cluster: np.ndarray) -> np.ndarray:
    """Return (J,) int32: clusters renumbered from 0 without gaps; -1 for documents without a cluster."""
    used, number = np.unique(cluster, return_inverse=True)
    numbered: np.ndarray = (number - np.searchsorted(used, 0)).astype(np.int32)
    return numbered


def _descend(held: _Held, told: Work) -> Hierarchy:
    """Return the hierarchy without agreement and recommended number."""
    clusters = _Clusters(held)
    n_clusters = clusters.n
    joined, moves = np.zeros((n_clusters - 1, 2), np.int32), []
    scores = np.empty(n_clusters)
    scores[-1] = clusters.score()
    for step in range(n_clusters - 1):
        joined[step], before = clusters.step()
        after = clusters.numbers()
        went = np.flatnonzero(before != after)
        moves.append((went.astype(np.int32), after[went]))
        scores[clusters.n - 1] = clusters.score()
        told.advance()
    sizes = np.array([len(went) for went, _ in moves], np.int64)
    document, to = (
        np.concatenate([np.zeros(0, np.int32), *(move[part] for move in moves)]).astype(np.int32) for part in (0, 1)
    )
    if not np.isfinite(scores).all():
        raise ValueError("the log marginal likelihood of a cut is not a number")
    start_of = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return Hierarchy(held.start, joined, start_of, document, to, scores, np.full(n_clusters, np.nan), n_clusters)


@dataclass(frozen=True)
class _Held:
    """Data of documents for the hierarchy: counts under Dirichlet priors, in blocks, and sufficient statistics of other
    families.

    Attributes
    ----------
    start : (J,) int32, clusters from which the hierarchy is made, -1 for none
    sums : (F, n) float64 counts and (n, D) natural parameters of these clusters
    counts : (J, F) float64 CSR, sorted, no zeros; None if documents are too many to move at any size
    block : (F,) int64; prior : (F,) float64; totals : (B,) float64, the prior's sums
    numbers : StackedContexts, those that are no counts; where counts are None, of the last documents alone
    products : float, of a sweep, for each cluster
    """

    start: np.ndarray
    sums: tuple[np.ndarray, np.ndarray]
    counts: sp.csr_matrix | None
    block: np.ndarray
    prior: np.ndarray
    totals: np.ndarray
    numbers: StackedContexts
    products: float

    @classmethod
    def of(cls, posterior: Posterior, corpus: Corpus, sample: Sample, start: np.ndarray) -> _Held:
        """Collect the sums of clusters in blocks of documents. Counts are stored if documents may move.

        Topics are the topics of ``sample``. Raises ValueError if there are too many clusters.
        """
        content, of_content = _content(sample)
        priors = {name: one.prior(posterior.dimensions[name]) for name, one in sorted(posterior.families.items())}
        numbers = {name: one for name, one in posterior.families.items() if not isinstance(one, DirichletCategorical)}
        parts = [of_content, *(prior for name, prior in priors.items() if name not in numbers)]
        prior, n_clusters = np.concatenate(parts), int(start.max()) + 1
        if are_too_many(n_clusters, len(prior)):
            raise ValueError(
                f"{n_clusters} clusters of {len(prior)} topics, words or names are too many for a hierarchy; "
                f"at most {MAX_CLUSTERS}, and {most_clusters(len(prior))} of so many"
            )
        of_numbers = np.concatenate([np.zeros(0), *(priors[name] for name in sorted(numbers))])
        sums = table, natural = np.zeros((len(prior), n_clusters)), np.tile(of_numbers, (n_clusters, 1))
        kept: list[sp.csr_matrix] | None = []
        products = 0.0
        with stopping.defer(), work("topics of documents", corpus.n_documents, "documents") as told:
            for rows in blocks(corpus, len(prior)):
                some = corpus.subset(rows)
                stacked = StackedContexts(
                    matching.in_units(some, posterior.families, posterior.units), posterior.families
                )
                tables = [content(some, told.advance)]
                tables += [
                    stacked.statistics[:, columns]
                    for family, columns in stacked.segments()
                    if isinstance(family, DirichletCategorical)
                ]
                counts = sp.csr_matrix(sp.hstack(tables, format="csr"), dtype=np.float64)
                counts.sum_duplicates()
                counts.eliminate_zeros()
                of_block = StackedContexts(matching.in_units(some, numbers, posterior.units), numbers)
                seen = np.flatnonzero(start[rows] >= 0)
                one_hot = np.ones(len(seen)), (start[rows][seen], seen)
                members = sp.csr_matrix(one_hot, shape=(n_clusters, len(rows)))
                table += sp.csr_matrix(members @ counts).toarray().T
                of_block.add_statistics(start[rows], natural)
                products += float(np.minimum(counts.data, _SMALL_COUNT).sum()) + 32.0 * of_block.statistics.nnz
                if kept is not None:
                    kept.append(counts)
                if 2.0 * SWEEPS * products > WORK:
                    kept = None
        block = np.repeat(np.arange(len(parts)), list(map(len, parts)))
        whole = None if kept is None else sp.csr_matrix(sp.vstack(kept, format="csr"))
        if kept is not None:
            of_block = StackedContexts(matching.in_units(corpus, numbers, posterior.units), numbers)
        totals = np.bincount(block, prior)
        return cls(start, sums, whole, block, prior, totals, of_block, max(1.0, products))

    @property
    def most_refined(self) -> int:
        """Largest size up to which documents move at all sizes, with at most ``WORK`` products in total.

        It is above 1 only if the counts of documents are stored.
        """
        return int(math.sqrt(2.0 * WORK / (SWEEPS * self.products)))


# -- what documents hold -------------------------------------------------------------------------------------------
def _content(sample: Sample) -> tuple[Callable[[Corpus, Callable[[float], None]], sp.csr_matrix], np.ndarray]:
    """Return a function that computes (B, F) whole counts of documents, and their (F,) Dirichlet prior.

    The counts are word counts if each cluster is a topic, else counts of topics, the rest in the last column. The
    function reports how many documents are done.
    """
    known: Any = sample.topic_given_cluster
    if sp.issparse(known):
        if known.shape[0] != known.shape[1] or (known != sp.identity(known.shape[0], format="csr")).nnz:
            raise ValueError("a hierarchy needs topic proportions that are not sparse, or one topic per cluster")

        def words(corpus: Corpus, done: Callable[[float], None]) -> sp.csr_matrix:
            done(corpus.n_documents)
            return sp.csr_matrix(corpus.content)

        return words, np.full(sample.topic_words.shape[1], sample.topic_word_prior)
    weights = np.append(sample.topic_weights, max(0.0, 1.0 - sample.topic_weights.sum()))
    contents = sample.contents
    of_words = np.ascontiguousarray(sample.word_given_topic.T) if contents is None else np.zeros((0, 0))
    shares = sample.cluster_weights @ ((1.0 - sample.new_topic_weight)[:, None] * known)
    concentration = sample.document_concentration if sample.has_document_level else sample.table_concentration

    def topics(corpus: Corpus, done: Callable[[float], None]) -> sp.csr_matrix:
        psi = of_words
        if contents is not None:
            psi, _ = relative_densities(contents.log_densities(np.asarray(corpus.observations))[:, :-1])
        of_all = np.zeros(corpus.n_documents, np.int64)
        content, prior = corpus.content, concentration * shares
        cells = expected_draws((content.indptr, content.indices, content.data), psi, prior, sample.burst_concentration)
        drawn = sp.csr_matrix((cells[2], cells[1], cells[0]), shape=content.shape)
        tokens = expected_tokens(drawn, psi, prior[None], of_all, _PASSES, done=done)
        return sp.csr_matrix(np.column_stack([_whole(tokens), np.zeros(len(tokens))]))

    return topics, np.maximum(sample.table_concentration * weights, _MIN)


def _whole(tokens: np.ndarray) -> np.ndarray:
    """Return (B, M) whole numbers with the same row sums, which are whole: the largest remainders are rounded up."""
    whole = np.floor(tokens)
    left = np.rint((tokens - whole).sum(axis=1))
    order = np.argsort(whole - tokens, axis=1, kind="stable")
    rows, places = np.nonzero(np.arange(tokens.shape[1]) < left[:, None])
    whole[rows, order[rows, places]] += 1.0
    return whole


# -- clusters of one size ------------------------------------------------------------------------------------------
class _Clusters:
    """Clusters of one size, in columns 0..n-1 of tables, and the change of the score by the merge of any two."""

    def __init__(self, held: _Held) -> None:
        self._held, cluster = held, held.start
        self._counts, self._natural = held.sums
        self.n = n = self._counts.shape[1]
        self._column = cluster.astype(np.int64)
        self._number = np.arange(n, dtype=np.int32)  # of the cluster in each column
        self._sizes = np.bincount(cluster[cluster >= 0], minlength=n).astype(np.int64)
        self._totals = np.zeros((len(held.totals), n))
        np.add.at(self._totals, held.block, self._counts)
        self._changes = np.full((n, n), -np.inf)
        for one in range(n):
            self._renew(one)
        self._came = np.zeros(n, np.int64)
        self._swept = math.inf  # clusters when documents last moved

    def numbers(self) -> np.ndarray:
        """Number of each document's cluster, (J,) int32; -1 for none."""
        return np.where(self._column < 0, np.int32(-1), self._number[self._column])

    def score(self) -> float:
        """Log marginal likelihood of all clusters."""
        held, n = self._held, self.n
        of_counts = _score(self._counts, self._totals, n, held.block, held.prior, held.totals)
        return float(of_counts + held.numbers.log_marginal(self._natural[:n]).sum())

    def step(self) -> tuple[tuple[int, int], np.ndarray]:
        """Merge two clusters, and then move documents unless this is too expensive at this size.

        Returns the numbers of the two clusters, and :meth:`numbers` before documents move.
        """
        held, pair = self._held, self.join_best()
        before = self.numbers()
        is_tenth = self.n <= 0.9 * self._swept and 8.0 * held.products * self.n <= WORK
        if self.n > 1 and (self.n <= held.most_refined or is_tenth):
            self._swept = self.n
            for _ in range(SWEEPS):
                if not self.sweep():
                    break
        self.renew()
        return pair, before

    def join_best(self) -> tuple[int, int]:
        """Merge the two clusters whose union has the best score. Returns their numbers; the smaller one is kept."""
        place = int(self._changes[: self.n, : self.n].argmax())
        one, other = divmod(place, self.n)
        if self._number[one] > self._number[other]:
            one, other = other, one
        pair = int(self._number[one]), int(self._number[other])
        held, last = self._held, self.n - 1
        self._natural[one] += self._natural[other] - held.numbers.prior
        for table in (self._counts, self._totals):
            table[:, one] += table[:, other]
        self._sizes[one] += self._sizes[other]
        # the last column takes the place of the one that goes
        kept = other if one == last else one
        target = np.arange(self.n)
        target[last] = other
        target[[one, other]] = kept
        if other != last:
            self._natural[other] = self._natural[last]
            for table in (self._counts, self._totals, self._changes):
                table[:, other] = table[:, last]
            self._changes[other] = self._changes[last]
            for values in (self._sizes, self._came, self._number):
                values[other] = values[last]
        self.n -= 1
        self._number[kept] = pair[0]
        self._changes[kept, kept] = -np.inf
        self._came[kept] = self._sizes[kept]
        self._column = np.where(self._column < 0, -1, target[self._column])
        return pair

    def sweep(self) -> bool:
        """Move each document in turn to the cluster that raises the score most. Returns whether any document moved."""
        held, counts, numbers = self._held, self._held.counts, self._held.numbers
        assert counts is not None
        of_counts = counts.indptr.astype(np.int64), counts.indices.astype(np.int64), counts.data, held.block, held.prior
        statistics = numbers.statistics
        of_numbers = (
            *(statistics.indptr.astype(np.int64), statistics.indices.astype(np.int64), statistics.data),
            *(self._natural, numbers.totals(self._natural), numbers.offsets, numbers.codes),
        )
        clusters = self._counts, self._totals, self._column, self._sizes, self._came
        return bool(_sweep(of_counts, held.totals, of_numbers, clusters, self.n))

    def renew(self) -> None:
        """Recompute the gains of merges for clusters of which a share ``_STALE`` of the documents has changed."""
        for one in np.flatnonzero(self._came[: self.n] > _STALE * self._sizes[: self.n]):
            self._renew(int(one))
            self._came[one] = 0

    def _renew(self, one: int) -> None:
        held, n = self._held, self.n
        row = np.zeros(n)
        _fill_changes(self._counts, self._totals, one, held.block, held.prior, held.totals, row)
        if held.numbers.dimension:
            natural = self._natural[:n]
            alone = held.numbers.log_marginal(natural)
            row += held.numbers.log_marginal(natural + natural[one] - held.numbers.prior) - alone - alone[one]
        row[one] = -np.inf
        self._changes[one, :n] = self._changes[:n, one] = row


@inner_kernel
def _rising(a, x):
    """Return ln G(a + x) / G(a)."""
    return log_gamma(a + x) - log_gamma(a)


@kernel
def _score(counts, totals, n, block, prior, total_prior):
    """Sum over clusters of ln p(counts) under the Dirichlet priors."""
    result = 0.0
    for f in range(prior.size):
        for k in range(n):
            if counts[f, k] > 0.0:
                result += _rising(prior[f], counts[f, k])
    for b in range(total_prior.size):
        for k in range(n):
            result -= _rising(total_prior[b], totals[b, k])
    return result


@kernel
def _fill_changes(counts, totals, one, block, prior, total_prior, out):
    """Add the change of the score by merging each cluster with ``one`` to ``out`` (n,)."""
    for f in range(prior.size):
        met = counts[f, one]
        if met > 0.0:
            alone = _rising(prior[f], met)
            for k in range(out.size):
                if counts[f, k] > 0.0:
                    out[k] += _rising(prior[f] + counts[f, k], met) - alone
    for b in range(total_prior.size):
        alone = _rising(total_prior[b], totals[b, one])
        for k in range(out.size):
            out[k] -= _rising(total_prior[b] + totals[b, k], totals[b, one]) - alone


@inner_kernel
def _take_logs(product, log_p, n):
    for k in range(n):
        log_p[k] += log(product[k])
        product[k] = 1.0


@kernel
def _sweep(of_counts, total_prior, of_numbers, clusters, n):
    """Move documents; returns how many moved. ``clusters``: tables (F, K) and (B, K), columns and sizes, in place."""
    indptr, indices, values, block, prior = of_counts
    number_indptr, number_indices, number_values, natural, natural_totals, offsets, codes = of_numbers
    counts, totals, column, sizes, came = clusters
    log_p, product, length, moved = np.empty(n), np.ones(n), np.zeros(total_prior.size), 0
    for j in range(column.size):
        own = column[j]
        if own < 0 or sizes[own] == 1:
            continue
        first, last = indptr[j], indptr[j + 1]
        for position in range(first, last):
            f = indices[position]
            counts[f, own] -= values[position]
            totals[block[f], own] -= values[position]
            length[block[f]] += values[position]
        if codes.size > 0:
            add_statistics(
                number_indptr, number_indices, number_values, j, -1.0, natural[own], natural_totals[own], offsets
            )
        log_p[:] = 0.0
        factors = 0
        for position in range(first, last):
            f, x = indices[position], values[position]
            if x <= _SMALL_COUNT and x == math.floor(x):
                for i in range(int(x)):
                    a = prior[f] + i
                    for k in range(n):
                        product[k] *= counts[f, k] + a
                    factors += 1
                    if factors == _FACTORS:
                        _take_logs(product, log_p, n)
                        factors = 0
            else:
                for k in range(n):
                    log_p[k] += _rising(prior[f] + counts[f, k], x)
        _take_logs(product, log_p, n)
        for b in range(total_prior.size):
            if length[b] > 0.0:
                for k in range(n):
                    log_p[k] -= _rising(total_prior[b] + totals[b, k], length[b])
                length[b] = 0.0
        if codes.size > 0:
            for k in range(n):
                log_p[k] += log_predictive(
                    number_indptr, number_indices, number_values, j, natural[k], natural_totals[k], offsets, codes
                )
        best = int(log_p.argmax())
        if not log_p[best] > log_p[own] + _TINY:
            best = own
        for position in range(first, last):
            f = indices[position]
            counts[f, best] += values[position]
            totals[block[f], best] += values[position]
        if codes.size > 0:
            add_statistics(
                number_indptr, number_indices, number_values, j, 1.0, natural[best], natural_totals[best], offsets
            )
        if best != own:
            column[j] = best
            sizes[own] -= 1
            sizes[best] += 1
            came[own] += 1
            came[best] += 1
            moved += 1
    return moved


# -- on disk -------------------------------------------------------------------------------------------------------
_PREFIX = "hierarchy."
_DESCRIBED = {
    "scores": Stored("f", "K"),
    "agreement": Stored("f", "K"),
    "recommended": Stored("i", ""),
    "cluster": Stored("i", "J", below="K"),
    "joined": Stored("i", "K-1 2", below="K"),
    "start": Stored("i", "K"),
    "document": Stored("i", "N", below="J"),
    "to": Stored("i", "N", below="K"),
}


def pack_hierarchy(hierarchy: Hierarchy) -> dict[str, np.ndarray]:
    """Return a hierarchy as plain arrays with names that start with "hierarchy."."""
    names = (*_DESCRIBED, "other", *(["merged"] if hierarchy.merged else []))
    return {f"{_PREFIX}{name}": np.asarray(getattr(hierarchy, name)) for name in names}


def unpack_hierarchy(arrays: Mapping[str, np.ndarray], n_documents: int) -> Hierarchy | None:
    """Return the hierarchy of :func:`pack_hierarchy`, or None. Raises ValueError if the arrays are invalid."""
    stored = {name.removeprefix(_PREFIX): array for name, array in arrays.items() if name.startswith(_PREFIX)}
    if not stored:
        return None
    try:
        stored.setdefault("other", np.array(0))  # files that were written before it was there
        stored.setdefault("merged", np.zeros(0, np.int64))
        more = {"other": Stored("i", ""), "merged": Stored("i", "B", below="K")}
        sizes = check_arrays(stored, _DESCRIBED | more, {"J": n_documents})
        for name, least in (("recommended", 1), ("other", 0)):
            if not least <= stored[name] <= sizes["K"]:
                raise ValueError(f"{name!r} is {stored[name]}; it must lie within {least}..{sizes['K']}")
        merged, recommended = stored["merged"], int(stored["recommended"])
        if len(merged) and (len(merged) > sizes["K"] or np.unique(merged).tolist() != list(range(recommended))):
            raise ValueError("'merged' does not give the recommended clusters")
    except ValueError as error:
        raise ValueError(f"hierarchy: {error}") from error
    arrays_of: dict[str, Any] = {name: stored[name] for name in _DESCRIBED}
    arrays_of["merged"] = tuple(stored["merged"].tolist())
    return Hierarchy(**arrays_of | {name: int(stored[name]) for name in ("recommended", "other")})
