"""Associations of clusters and topics with contexts that chance does not explain, tested over all rows together.

A context of the model helps to form the clusters, so that their documents agree in it even if it has nothing to do with
their words. Associations are therefore tested with the clusters and topics that the words of each document predict
alone (:attr:`mc2core.explore.description.Description.by_words`).
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy import special, stats

from mc2core.explore import agreement
from mc2core.explore.description import N_TOPIC_SAMPLES, Description
from mc2core.explore.steps import steps_of
from mc2core.explore.variables import Variable, variables_of

MIN_DOCUMENTS = 5
"""Smallest number of documents on which a notable row is based."""
MIN_LIFT = 1.25
"""Smallest ratio of a notable share to the average, or of the average to the share."""
MAX_FALSE = 0.05
"""Largest expected share of false rows among the notable ones."""
TRENDS = ["of", "number", "context", "trend", "low", "high", "is_notable"]


class Associations:
    """The notable associations of a description.

    The share of a cluster or topic in the documents with a value is compared with its share in all documents. The value
    is notable if one of these shares is at least MIN_LIFT times the other, and if chance does not explain the
    difference. The test is exact (Clopper and Pearson, 1934), for the number of independent documents whose share has
    the same variance (Korn and Graubard, 1998). A trend is notable if the interval of its slope excludes 0. The median
    p-value over samples of all chains replaces the p-value if it is larger. Rows on fewer than MIN_DOCUMENTS documents,
    and clusters and topics that fewer than half of the samples contain, are not notable. The clusters of each cut, and
    the topics, are tested together over all variables, with an expected share of false rows of at most MAX_FALSE
    (Benjamini and Hochberg, 1995).

    Attributes
    ----------
    values : dict of dict of (n, V) int8
        For each variable, of each "cluster" (node) and "topic": 1 for values that are notably more common there, -1 for
        values that are notably less common, 0 for others. The values of a number are the bins of its trend.
    trends : DataFrame
        For each cluster and topic and each number: ``trend``, the slope of the share over the number, per unit, by
        linear regression over the documents; ``low`` and ``high``, the ends of its interval, which is as wide as the
        number of rows requires (Benjamini and Yekutieli, 2005), NaN if at least half of the samples lack
        the cluster or topic or have a slope of the other sign; ``is_notable``.
    """

    def __init__(self, description: Description) -> None:
        self._description, variables = description, variables_of(description)
        has = {one.name: steps_of(one)[0] if one.is_number else one.values > 0 for one in variables}
        self.values: dict[str, dict[str, np.ndarray]] = {one.name: {} for one in variables}
        kinds = ("cluster", "topic") if description.posterior.representative.n_topics else ("cluster",)
        trends = [pd.DataFrame(columns=TRENDS)]
        for kind in kinds:
            occurs = agreement.found_clusters(description) if kind == "cluster" else agreement.found_topics(description)
            is_sure = occurs.mean(axis=0) >= 0.5 if len(occurs) else True
            tests = [self._values(kind, sp.csr_matrix(one, dtype=np.float64)) for one in has.values()]
            for p, _ in tests:
                p[~np.broadcast_to(is_sure, len(p))] = np.nan
            for rows in self._group_rows(kind):
                p = np.concatenate([one[rows].ravel() for one, _ in tests] or [np.zeros(0)])
                is_notable = np.split(notable(p), np.cumsum([one[rows].size for one, _ in tests])[:-1])
                for (_, sign), part in zip(tests, is_notable, strict=False):
                    sign[rows] *= part.reshape(len(rows), -1)
            for name, (_, sign) in zip(has, tests, strict=True):
                self.values[name][kind] = sign
            tables = [self._trend(kind, one) for one in variables if one.is_number and has[one.name].shape[1]]
            for table in tables:
                table["is_based"] &= is_sure
            trends += [self._intervals(kind, pd.concat(tables, ignore_index=True))] if tables else []
        self.trends = pd.concat(trends[1:] or trends, ignore_index=True)

    def is_notable(self, kind: str, number: int, name: str, columns: np.ndarray, lift: np.ndarray) -> np.ndarray:
        """Return whether values of a variable are notable, (n,) bool, given their columns and their lift as shown."""
        sign = self.values[name][kind][number, columns]
        return (sign != 0) & (sign == np.sign(np.asarray(lift) - 1.0))

    def _group_rows(self, kind: str) -> list[np.ndarray]:
        """Return the rows that are tested together: all topics, or all clusters of a cut."""
        if kind == "topic":
            return [np.arange(self._description.posterior.representative.n_topics)]
        return [np.arange(first, first + size) for size, first in self._description.first.items()]

    def _responses(self, kind: str) -> tuple[list[sp.csr_matrix], np.ndarray, sp.csr_matrix]:
        """Return shares of each document, (J, n) CSR, by its words and in samples; the weights of documents; and (J, n)
        CSR as shown."""
        description, length = self._description, self._description.corpus.document_lengths.astype(np.float64)
        members, tokens = description.by_words
        if kind == "cluster":
            samples = description.matched_samples[:: max(1, len(description.matched_samples) // N_TOPIC_SAMPLES)]
            several = [sp.csr_matrix(sample @ sp.csr_matrix(nodes)) for sample, nodes in samples]
            return [members, *several], np.ones(len(length)), sp.csr_matrix(description.documents_of.T)
        inverse = sp.diags(1.0 / np.maximum(length, 1.0))
        tables = (tokens, *description.matched_topics)
        return [sp.csr_matrix(inverse @ one) for one in tables], length, description.document_topics

    def _values(self, kind: str, has: sp.csr_matrix) -> tuple[np.ndarray, np.ndarray]:
        """Return (n, V) p-values, NaN for values that are not tested, and the signs of the differences from the
        average."""
        several, weight, shown = self._responses(kind)
        n, has_value = np.asarray(has.sum(axis=0)).ravel(), np.diff(has.indptr) > 0
        tested = np.flatnonzero(n >= MIN_DOCUMENTS)
        into, n, shape = sp.csr_matrix(has[:, tested].T), n[tested][:, None], (shown.shape[1], len(n))
        p, sign = np.full(shape, np.nan), np.zeros(shape, np.int8)
        tails = []
        for y in several:
            average = (y.T @ (weight * has_value)) / max(float(weight @ has_value), 1e-300)
            _, share, effective = ratios(sp.csr_matrix(y.multiply(weight[:, None])), weight, into)
            share = np.clip(np.nan_to_num(share), 0.0, 1.0)
            if kind == "topic":  # the variance of few documents is uncertain itself
                effective = effective * (stats.norm.ppf(0.975) / stats.t.ppf(0.975, n - 1.0)) ** 2
            above = at_least(share * effective, effective, np.minimum(MIN_LIFT * average, 1.0))
            below = at_least((1.0 - share) * effective, effective, 1.0 - average / MIN_LIFT)
            tails.append((above, below, average))
        (above, below, average), others = tails[0], tails[1:]
        if others:
            above, below = (np.maximum(tails[0][i], np.median([one[i] for one in others], axis=0)) for i in (0, 1))
        count, squares = (into @ shown).toarray(), (into @ shown.power(2)).toarray()
        is_based = np.where(above < below, count**2 / np.maximum(squares, 1e-300), average * n) >= MIN_DOCUMENTS
        p[:, tested] = np.minimum(2.0 * np.minimum(above, below), 1.0).T
        sign[:, tested] = (np.where(above < below, 1, -1) * is_based).T
        return p, sign

    def _trend(self, kind: str, variable: Variable) -> pd.DataFrame:
        """Return slopes and their ratios to standard errors (HC3; MacKinnon and White, 1985)."""
        observed = np.flatnonzero(~np.isnan(variable.values))
        several, weight, shown = self._responses(kind)
        weight, shown = weight[observed], shown[observed]
        share = weight / max(weight.sum(), 1e-300)
        away = variable.values[observed] - share @ variable.values[observed]
        pull = share * away / max(float(share @ away**2), 1e-300)
        factor = (pull / np.maximum(1.0 - share - pull * away, 1e-6)) ** 2
        slopes, ratio = [], []
        for y in (one[observed] for one in several):
            mean, slope = y.T @ share, y.T @ pull
            variance = y.power(2).T @ factor - 2.0 * (mean * (y.T @ factor) + slope * (y.T @ (factor * away)))
            variance += mean**2 * factor.sum() + 2.0 * mean * slope * (factor @ away) + slope**2 * (factor @ away**2)
            slopes.append(slope)
            differs = y.power(2).T @ share - mean**2 > 1e-12  # not if all documents have the same share
            ratio.append(np.where(differs, slope / np.sqrt(np.maximum(variance, 1e-300)), 0.0))
        sign = np.sign(slopes[0])
        t = np.abs(ratio[0])
        if len(ratio) > 1:
            t = np.clip(np.median(sign * ratio[1:], axis=0), 0.0, t)
        sums, squares = (np.asarray(shown.power(power).sum(axis=0)).ravel() for power in (1, 2))
        is_based = sums**2 >= MIN_DOCUMENTS * np.maximum(squares, 1e-300)
        columns = {"of": kind, "number": np.arange(1, len(t) + 1), "context": variable.name, "trend": slopes[0]}
        return pd.DataFrame({**columns, "t": t, "freedom": max(len(observed) - 2, 1), "is_based": is_based})

    def _intervals(self, kind: str, table: pd.DataFrame) -> pd.DataFrame:
        """Add intervals to the slopes. Their level depends on the number of rows, and on how many of them exclude 0."""
        p = np.where(table["is_based"], 2.0 * stats.t.sf(table["t"], table["freedom"]), np.nan)
        is_notable, level = np.zeros(len(table), bool), np.ones(len(table))
        for rows in self._group_rows(kind):
            group = np.flatnonzero(table["number"].isin(rows + 1))
            is_notable[group] = notable(p[group])
            level[group] = MAX_FALSE * max(is_notable[group].sum(), 1) / max(np.isfinite(p[group]).sum(), 1)
        t = table["t"].where(table["t"] > 0)
        half = stats.t.isf(level / 2.0, table["freedom"]) * np.abs(table["trend"]) / t
        low, high = table["trend"] - half, table["trend"] + half
        return table.assign(low=low, high=high, is_notable=is_notable)[TRENDS]


def notable(p: np.ndarray) -> np.ndarray:
    """Return which of the rows are not explained by chance, (n,) bool, given their p-values, NaN for none."""
    is_notable, tested = np.zeros(len(p), bool), np.flatnonzero(np.isfinite(p))
    if len(tested):
        is_notable[tested] = stats.false_discovery_control(p[tested]) <= MAX_FALSE
    return is_notable


def at_least(count: np.ndarray, n: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Return the probability that ``count`` or more of ``n`` are drawn, each with probability ``share``.

    ``count`` and ``n`` need not be whole numbers (incomplete beta function).
    """
    a, b = np.broadcast_arrays(np.maximum(count, 1e-12), n - count + 1.0)
    return np.where(count > 1e-9, special.betainc(a, np.maximum(b, 1e-12), np.clip(share, 0.0, 1.0)), 1.0)


def ratios(tokens: sp.csr_matrix, length: np.ndarray, into: sp.csr_matrix) -> tuple[np.ndarray, ...]:
    """Return (n, M) each: the sums of ``tokens`` (J, M) over the rows of ``into`` (n, J), their shares of the sums of
    ``length`` (J,), and the number of independent documents whose share has the same variance.
    """
    count = np.asarray((into @ tokens).toarray())
    n, total = np.asarray(into.sum(axis=1)), (into @ length)[:, None]
    share = np.divide(count, total, where=total > 0, out=np.full_like(count, np.nan))
    squares = (into @ tokens.power(2)).toarray() - 2.0 * share * (into @ tokens.multiply(length[:, None])).toarray()
    squares += share**2 * (into @ length**2)[:, None]
    correction = np.divide(n, n - 1.0, where=n > 1, out=np.zeros_like(n, dtype=np.float64))
    variance = correction * np.maximum(squares, 0.0) / np.where(total > 0, total, 1.0) ** 2
    return count, share, np.minimum(effective(share, n, variance), np.maximum(total, n))


def effective(share: np.ndarray, n: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """Return the number of independent documents for which a share has this variance; ``n`` (rows, 1) if it has
    none."""
    smoothed = (share * n + 0.5) / (n + 1.0)
    sizes = np.broadcast_to(n, share.shape)
    return np.divide(smoothed * (1.0 - smoothed), variance, where=variance > 0, out=sizes.astype(np.float64))
