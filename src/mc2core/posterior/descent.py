"""Computation of the hierarchy (:mod:`mc2core.posterior.hierarchy`) from a fit and its corpus.

Each step merges the two clusters whose union lowers the log marginal likelihood least. Then each document in turn moves
to the cluster that raises this likelihood most. The likelihood has two factors. The first factor is the likelihood of
the topic counts of the clusters, with proportions from Dir(v epsilon) (docs/model.md, section 2). If each cluster is a
topic (FastEx, NIPS12 eq. 18), the word counts replace the topic counts. The second factor is the likelihood of the
contexts. The topic counts of a document are estimated with the mean proportions of all clusters as prior. With the
proportions of the document's own cluster, the document would never move.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from mc2core.base import stopping
from mc2core.base.progress import Work, work
from mc2core.compute.kernels import inner_kernel, kernel
from mc2core.compute.special import log, log_gamma
from mc2core.corpus import Corpus, matching
from mc2core.corpus.row_blocks import indicator
from mc2core.families import DirichletCategorical
from mc2core.families.contents import relative_densities
from mc2core.families.kernels import add_statistics, log_predictive
from mc2core.families.stacked import StackedContexts
from mc2core.posterior.clustering import adjusted_rand_index
from mc2core.posterior.hierarchy import MAX_CELLS, Hierarchy, recommend
from mc2core.posterior.mixture import blocks
from mc2core.posterior.proportions import expected_tokens
from mc2core.posterior.repeats import expected_draws
from mc2core.posterior.sample import Sample

if TYPE_CHECKING:
    from mc2core.posterior.posterior import Posterior

MAX_CLUSTERS = 5000
"""Largest number of clusters for which a hierarchy is computed; the table of cluster pairs then takes 0.2 GB."""
MAX_COMPARED = 1 << 36
"""Largest number of cells that all merges of one hierarchy compare, which takes a minute or two."""
SWEEPS = 1
"""Largest number of sweeps over all documents after each merge."""
WORK = 1 << 30
"""Approximate number of products for one hierarchy. If this does not suffice to move documents after every merge,
documents move after every merge only at small numbers of clusters. At larger numbers, documents move each time the
number of clusters has fallen by a tenth, if a sweep costs at most an eighth of ``WORK``."""
N_OTHERS = 3
"""Largest number of samples of one chain whose hierarchies are compared with the hierarchy of the fit."""
_MIN = 1e-12  # smallest prior of a topic, so that its logarithm is finite
_PASSES = 5  # updates of the expected topic counts of a document
_STALE = 0.05  # share of moved documents of a cluster above which the gains of its merges are recomputed
_FACTORS = 8.0  # number of factors of a product before its logarithm is taken
_SMALL_COUNT = 16.0
_TINY = 1e-9  # nats: smallest gain for which a document moves, above rounding errors


def find_hierarchy(posterior: Posterior, corpus: Corpus) -> Hierarchy:
    """Return the hierarchy of a fit; ``corpus`` is the fitted corpus.

    The hierarchy starts from the consensus of the samples and uses the topics of the representative. The agreement is
    computed from one further hierarchy per chain, which starts from the consensus of the chain and uses the topics of
    its representative. If there is one chain, further hierarchies start from ``N_OTHERS`` samples and use their topics.
    One cluster is recommended if the fit found that one cluster is likelier than the clusters of its chains
    (``log_odds_of_clusters``). The result is deterministic.

    Raises ValueError if ``corpus`` is not the fitted corpus, if each document is a cluster (HDP), if there are too many
    clusters (:func:`most_clusters`), or if a score is not finite.
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
        others = [(samples[index], samples[index].cluster) for index in np.unique(places)]
    starts = [(sample, _renumber(one)) for sample, one in ((posterior.representative, posterior.cluster), *others)]
    with stopping.defer(), work("hierarchy", sum(int(one.max()) + 1 for _, one in starts), "sizes") as progress:
        hierarchy, *of_others = (
            _descend(Workspace.from_posterior(posterior, corpus, *start), progress) for start in starts
        )
    agreement = np.full(hierarchy.n_clusters, np.nan)
    for size in range(1, hierarchy.n_clusters + 1) if others else ():
        of_size = [one.at(min(size, one.n_clusters)) for one in of_others]
        # chains are compared with each other, because the consensus of all samples depends on each chain
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
    """Merge the clusters of a fit until ``size`` clusters are left, and return the cluster of each document.

    The result is (J,) int32, from 0 to ``size`` - 1. Steps and errors are those of :func:`find_hierarchy`. If the fit
    has at most ``size`` clusters, nothing is merged.
    """
    clusters = _Clusters(
        Workspace.from_posterior(posterior, corpus, posterior.representative, _renumber(posterior.cluster))
    )
    while clusters.n > size:
        clusters.step()
    return _renumber(clusters.numbers())


def are_too_many(n_clusters: int, columns: int) -> bool:
    """Return whether a hierarchy of ``n_clusters`` clusters with ``columns`` topics, words or names is too large."""
    return n_clusters > most_clusters(columns)


def most_clusters(columns: int) -> int:
    """Return the largest number of clusters of a hierarchy, given the number of topics (or words) and names."""
    columns = max(columns, 1)
    return min(MAX_CLUSTERS, MAX_CELLS // columns, math.isqrt(MAX_COMPARED // columns))


def _renumber(cluster: np.ndarray) -> np.ndarray:
    """Return the clusters renumbered from 0 without gaps, (J,) int32; documents without a cluster keep -1."""
    used, number = np.unique(cluster, return_inverse=True)
    numbered: np.ndarray = (number - np.searchsorted(used, 0)).astype(np.int32)
    return numbered


def _descend(workspace: Workspace, progress: Work) -> Hierarchy:
    """Return the hierarchy; its agreement and recommended number are not yet computed."""
    clusters = _Clusters(workspace)
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
        progress.advance()
    sizes = np.array([len(went) for went, _ in moves], np.int64)
    document, to = (
        np.concatenate([np.zeros(0, np.int32), *(move[part] for move in moves)]).astype(np.int32) for part in (0, 1)
    )
    if not np.isfinite(scores).all():
        raise ValueError("the log marginal likelihood of a cut is not a number")
    start_of = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return Hierarchy(workspace.start, joined, start_of, document, to, scores, np.full(n_clusters, np.nan), n_clusters)


@dataclass(frozen=True)
class Workspace:
    """Sufficient statistics of the documents and of the clusters from which a hierarchy starts.

    Topics (or words) and each context of counts form blocks of columns, each with a Dirichlet prior.

    Attributes
    ----------
    start : (J,) int32
        Cluster of each document from which the hierarchy starts, -1 for none.
    sums : pair of (F, n) and (n, D) float64
        Counts and natural parameters of the n starting clusters.
    counts : (J, F) float64 CSR or None
        Counts of each document, sorted, without zeros; None if moving documents would be too expensive at any size.
    block, prior : (F,) int64 and (F,) float64
        Block and Dirichlet prior of each column.
    totals : (B,) float64
        Sum of the prior over each block.
    numbers : StackedContexts
        Contexts other than counts. If ``counts`` is None, only the contexts of the last documents.
    products : float
        Approximate number of products of one sweep over the documents, per cluster.
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
    def from_posterior(cls, posterior: Posterior, corpus: Corpus, sample: Sample, start: np.ndarray) -> Workspace:
        """Compute the statistics, with the topics of ``sample`` and the clusters ``start``.

        Counts of documents are stored only if documents may move. Raises ValueError if there are too many clusters.
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
        stored_counts: list[sp.csr_matrix] | None = []
        products = 0.0
        with stopping.defer(), work("topics of documents", corpus.n_documents, "documents") as progress:
            for rows in blocks(corpus, len(prior)):
                some = corpus.subset(rows)
                stacked = StackedContexts(
                    matching.in_units(some, posterior.families, posterior.units), posterior.families
                )
                tables = [content(some, progress.advance)]
                tables += [
                    stacked.statistics[:, columns]
                    for family, columns in stacked.segments()
                    if isinstance(family, DirichletCategorical)
                ]
                counts = sp.csr_matrix(sp.hstack(tables, format="csr"), dtype=np.float64)
                counts.sum_duplicates()
                counts.eliminate_zeros()
                of_block = StackedContexts(matching.in_units(some, numbers, posterior.units), numbers)
                members = indicator(start[rows], n_clusters)
                table += sp.csr_matrix(members.T @ counts).toarray().T
                of_block.add_statistics(start[rows], natural)
                products += float(np.minimum(counts.data, _SMALL_COUNT).sum()) + 32.0 * of_block.statistics.nnz
                if stored_counts is not None:
                    stored_counts.append(counts)
                if 2.0 * SWEEPS * products > WORK:
                    stored_counts = None
        block = np.repeat(np.arange(len(parts)), list(map(len, parts)))
        all_counts = None if stored_counts is None else sp.csr_matrix(sp.vstack(stored_counts, format="csr"))
        if stored_counts is not None:
            of_block = StackedContexts(matching.in_units(corpus, numbers, posterior.units), numbers)
        totals = np.bincount(block, prior)
        return cls(start, sums, all_counts, block, prior, totals, of_block, max(1.0, products))

    @property
    def most_refined(self) -> int:
        """Largest number of clusters from which on documents move after every merge, within ``WORK`` products."""
        return int(math.sqrt(2.0 * WORK / (SWEEPS * self.products)))


# -- counts of documents -------------------------------------------------------------------------------------------
def _content(sample: Sample) -> tuple[Callable[[Corpus, Callable[[float], None]], sp.csr_matrix], np.ndarray]:
    """Return a function that computes whole counts of documents, (B, F), and the Dirichlet prior of the counts, (F,).

    If each cluster is a topic, the columns are words. Otherwise the columns are the topics, and a last column for other
    topics. The arguments of the function are documents and a callable that receives the number of completed documents.
    """
    tau: Any = sample.topic_given_cluster
    if sp.issparse(tau):
        if tau.shape[0] != tau.shape[1] or (tau != sp.identity(tau.shape[0], format="csr")).nnz:
            raise ValueError("a hierarchy needs topic proportions that are not sparse, or one topic per cluster")

        def words(corpus: Corpus, done: Callable[[float], None]) -> sp.csr_matrix:
            done(corpus.n_documents)
            return sp.csr_matrix(corpus.content)

        return words, np.full(sample.topic_words.shape[1], sample.topic_word_prior)
    weights = np.append(sample.topic_weights, max(0.0, 1.0 - sample.topic_weights.sum()))
    contents = sample.contents
    of_words = np.ascontiguousarray(sample.word_given_topic.T) if contents is None else np.zeros((0, 0))
    shares = sample.cluster_weights @ ((1.0 - sample.new_topic_weight)[:, None] * tau)
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
        return sp.csr_matrix(np.column_stack([_round_rows(tokens), np.zeros(len(tokens))]))

    return topics, np.maximum(sample.table_concentration * weights, _MIN)


def _round_rows(tokens: np.ndarray) -> np.ndarray:
    """Return ``tokens`` rounded to whole numbers with the same row sums, (B, M): the largest remainders are rounded
    up."""
    rounded = np.floor(tokens)
    remainder = np.rint((tokens - rounded).sum(axis=1))
    order = np.argsort(rounded - tokens, axis=1, kind="stable")
    rows, places = np.nonzero(np.arange(tokens.shape[1]) < remainder[:, None])
    rounded[rows, order[rows, places]] += 1.0
    return rounded


# -- clusters of one size ------------------------------------------------------------------------------------------
class _Clusters:
    """The n current clusters, in columns 0 to n - 1 of tables, and the change of the score by merging each pair."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace, cluster = workspace, workspace.start
        self._counts, self._natural = workspace.sums
        self.n = n = self._counts.shape[1]
        self._column = cluster.astype(np.int64)
        self._number = np.arange(n, dtype=np.int32)  # cluster number of each column
        self._sizes = np.bincount(cluster[cluster >= 0], minlength=n).astype(np.int64)
        self._totals = np.zeros((len(workspace.totals), n))
        np.add.at(self._totals, workspace.block, self._counts)
        self._changes = np.full((n, n), -np.inf)
        for one in range(n):
            self._renew(one)
        self._n_moved = np.zeros(n, np.int64)
        self._n_at_sweep = math.inf  # clusters when documents last moved

    def numbers(self) -> np.ndarray:
        """Return the cluster number of each document, (J,) int32; -1 for none."""
        return np.where(self._column < 0, np.int32(-1), self._number[self._column])

    def score(self) -> float:
        """Return the log marginal likelihood of the current clusters."""
        workspace, n = self._workspace, self.n
        of_counts = _score(self._counts, self._totals, n, workspace.block, workspace.prior, workspace.totals)
        return float(of_counts + workspace.numbers.log_marginal(self._natural[:n]).sum())

    def step(self) -> tuple[tuple[int, int], np.ndarray]:
        """Merge two clusters, then move documents unless this is too expensive at this number of clusters.

        Returns the numbers of the merged clusters, and the cluster numbers of documents before documents move.
        """
        workspace, pair = self._workspace, self.join_best()
        before = self.numbers()
        is_tenth = self.n <= 0.9 * self._n_at_sweep and 8.0 * workspace.products * self.n <= WORK
        if self.n > 1 and (self.n <= workspace.most_refined or is_tenth):
            self._n_at_sweep = self.n
            for _ in range(SWEEPS):
                if not self.sweep():
                    break
        self.renew()
        return pair, before

    def join_best(self) -> tuple[int, int]:
        """Merge the two clusters whose union has the best score, and return both numbers. The union has the smaller
        number."""
        index = int(self._changes[: self.n, : self.n].argmax())
        one, other = divmod(index, self.n)
        if self._number[one] > self._number[other]:
            one, other = other, one
        pair = int(self._number[one]), int(self._number[other])
        workspace, last = self._workspace, self.n - 1
        self._natural[one] += self._natural[other] - workspace.numbers.prior
        for table in (self._counts, self._totals):
            table[:, one] += table[:, other]
        self._sizes[one] += self._sizes[other]
        # the last column replaces the column of the removed cluster
        union = other if one == last else one
        target = np.arange(self.n)
        target[last] = other
        target[[one, other]] = union
        if other != last:
            self._natural[other] = self._natural[last]
            for table in (self._counts, self._totals, self._changes):
                table[:, other] = table[:, last]
            self._changes[other] = self._changes[last]
            for values in (self._sizes, self._n_moved, self._number):
                values[other] = values[last]
        self.n -= 1
        self._number[union] = pair[0]
        self._changes[union, union] = -np.inf
        self._n_moved[union] = self._sizes[union]
        self._column = np.where(self._column < 0, -1, target[self._column])
        return pair

    def sweep(self) -> bool:
        """Move each document in turn to the cluster that raises the score most. Return whether any document moved."""
        workspace, counts, numbers = self._workspace, self._workspace.counts, self._workspace.numbers
        assert counts is not None
        of_counts = (
            *(counts.indptr.astype(np.int64), counts.indices.astype(np.int64), counts.data),
            *(workspace.block, workspace.prior),
        )
        statistics = numbers.statistics
        of_numbers = (
            *(statistics.indptr.astype(np.int64), statistics.indices.astype(np.int64), statistics.data),
            *(self._natural, numbers.totals(self._natural), numbers.offsets, numbers.codes),
        )
        clusters = self._counts, self._totals, self._column, self._sizes, self._n_moved
        return bool(_sweep(of_counts, workspace.totals, of_numbers, clusters, self.n))

    def renew(self) -> None:
        """Recompute the gains of merges for clusters in which more than the share ``_STALE`` of documents moved."""
        for k in np.flatnonzero(self._n_moved[: self.n] > _STALE * self._sizes[: self.n]):
            self._renew(int(k))
            self._n_moved[k] = 0

    def _renew(self, k: int) -> None:
        workspace, n = self._workspace, self.n
        row = np.zeros(n)
        _fill_changes(self._counts, self._totals, k, workspace.block, workspace.prior, workspace.totals, row)
        if workspace.numbers.dimension:
            natural = self._natural[:n]
            alone = workspace.numbers.log_marginal(natural)
            row += workspace.numbers.log_marginal(natural + natural[k] - workspace.numbers.prior) - alone - alone[k]
        row[k] = -np.inf
        self._changes[k, :n] = self._changes[:n, k] = row


@inner_kernel
def _rising(a, x):
    """Return ln G(a + x) / G(a)."""
    return log_gamma(a + x) - log_gamma(a)


@kernel
def _score(counts, totals, n, block, prior, total_prior):
    """Return the sum over clusters of ln p(counts) under the Dirichlet priors."""
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
    """Move each document in turn to the cluster that raises the score most. Return the number of documents that moved.

    ``clusters`` are the counts (F, K), block totals (B, K), columns of documents, sizes and numbers of moves, which
    change in place.
    """
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
