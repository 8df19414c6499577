"""Associations of clusters and topics with contexts that chance does not explain.

A context of the model helps to form the clusters. The documents of a cluster therefore agree in this context even if
the context is unrelated to their words. Associations are therefore tested with clusters and topics that are predicted
from the words of each document alone (:attr:`mc2core.explore.description.Description.by_words`).
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
"""Smallest number of documents on which a notable association is based."""
MIN_LIFT = 1.25
"""Smallest ratio between a notable share and the average share: the larger of the two divided by the smaller."""
MAX_FALSE = 0.05
"""Largest expected share of false associations among the notable associations (false discovery rate)."""
TRENDS = ["of", "number", "context", "trend", "low", "high", "is_notable"]


class Associations:
    """The notable associations of a description.

    The share of a cluster or topic in the documents with a value is compared with its share in all documents. The value
    is notable if one of these shares is at least MIN_LIFT times the other, and if chance does not explain the
    difference. The test is exact (Clopper and Pearson, 1934), for the number of independent documents whose share has
    the same variance (Korn and Graubard, 1998). A trend is notable if the interval of its slope excludes 0.

    The p-value is replaced by its median over samples of all chains if this median is larger. An association is not
    notable if it is based on fewer than MIN_DOCUMENTS documents, or if fewer than half of the samples contain the
    cluster or topic. All clusters of a cut, and all topics, are tested together over all variables. The expected share
    of false associations among the notable associations is at most MAX_FALSE (Benjamini and Hochberg, 1995).

    Attributes
    ----------
    values : dict of dict of (n, V) int8
        Signs of the notable associations, by variable and by "cluster" (node) or "topic". A sign is 1 if the value is
        notably more common in the cluster or topic, -1 if it is notably less common, and 0 otherwise. The values of a
        numeric variable are its bins.
    trends : DataFrame
        One row per cluster or topic and numeric variable. ``trend`` is the slope of the share over the variable, per
        unit, by linear regression over the documents. ``low`` and ``high`` are the ends of the confidence interval of
        the slope, adjusted for the number of tests (Benjamini and Yekutieli, 2005). The ends are NaN if at least half
        of the samples lack the cluster or topic or have a slope of the other sign. ``is_notable`` marks notable trends.
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
        """Return whether values of a variable are notable and on the same side of the average as ``lift``, (n,) bool.

        ``columns`` (n,) are the columns of the values, and ``lift`` (n,) the lifts that a table shows.
        """
        sign = self.values[name][kind][number, columns]
        return (sign != 0) & (sign == np.sign(np.asarray(lift) - 1.0))

    def _group_rows(self, kind: str) -> list[np.ndarray]:
        """Return groups of row numbers that are tested together: all topics, or the clusters of each cut."""
        if kind == "topic":
            return [np.arange(self._description.posterior.representative.n_topics)]
        return [np.arange(first, first + size) for size, first in self._description.first.items()]

    def _responses(self, kind: str) -> tuple[list[sp.csr_matrix], np.ndarray, sp.csr_matrix]:
        """Return the shares of the clusters or topics in each document, the weights of documents, and the shown shares.

        The first result is a list of (J, n) CSR: shares predicted from the words, then shares in several samples. The
        weights are (J,), and the shares shown in tables (J, n) CSR.
        """
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
        """Return p-values (NaN if not tested) and the signs of the differences from the average, (n, V) each."""
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
            if kind == "topic":  # corrects for the uncertainty of the estimated variance
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
        """Return slopes and their t statistics, with HC3 standard errors (MacKinnon and White, 1985)."""
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
            differs = y.power(2).T @ share - mean**2 > 1e-12  # False if all documents have the same share
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
        """Add confidence intervals to the slopes. The confidence level depends on the number of tested slopes and on
        the number of notable slopes."""
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
    """Return whether each p-value is significant at a false discovery rate of MAX_FALSE, (n,) bool; False for NaN."""
    is_notable, tested = np.zeros(len(p), bool), np.flatnonzero(np.isfinite(p))
    if len(tested):
        is_notable[tested] = stats.false_discovery_control(p[tested]) <= MAX_FALSE
    return is_notable


def at_least(count: np.ndarray, n: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Return the binomial probability of at least ``count`` successes in ``n`` trials.

    ``share`` is the probability of a success. ``count`` and ``n`` need not be integers (incomplete beta function).
    """
    a, b = np.broadcast_arrays(np.maximum(count, 1e-12), n - count + 1.0)
    return np.where(count > 1e-9, special.betainc(a, np.maximum(b, 1e-12), np.clip(share, 0.0, 1.0)), 1.0)


def ratios(tokens: sp.csr_matrix, length: np.ndarray, into: sp.csr_matrix) -> tuple[np.ndarray, ...]:
    """Return token counts, shares and effective numbers of documents per group, (n, M) each.

    The count is the sum of ``tokens`` (J, M) over the documents of a group, a row of ``into`` (n, J). The share is the
    count divided by the sum of ``length`` (J,). The effective number is the number of independent documents whose share
    has the same variance.
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
    """Return the number of independent documents whose share has the given variance, or ``n`` if it is 0."""
    smoothed = (share * n + 0.5) / (n + 1.0)
    sizes = np.broadcast_to(n, share.shape)
    return np.divide(smoothed * (1.0 - smoothed), variance, where=variance > 0, out=sizes.astype(np.float64))
