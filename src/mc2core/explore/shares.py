"""Shares of clusters and topics by value or bin of a variable, and effects of several variables, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy import special, stats

from mc2core.explore.associations import Associations, ratios
from mc2core.explore.description import Description
from mc2core.explore.steps import steps_of
from mc2core.explore.variables import Variable, variables_of

MAX_VALUES = 50
"""Largest number of values of a variable for which shares are computed; the commonest values are used."""
INTERVAL = 0.9
"""Probability of the intervals from ``low`` to ``high``."""
_BY_VALUE = ["of", "number", "context", "value", "documents", "count", "share", "low", "high"]
_BY_STEP = [*_BY_VALUE[:3], "start", "end", "period", *_BY_VALUE[4:]]


def shares_tables(description: Description) -> dict[str, pd.DataFrame]:
    """Return the tables shares and trends, by name.

    ``shares`` has the rows of :func:`shares_by_value` for all variables with groups, and ``trends`` the rows of
    :func:`shares_over` for all numeric variables. The last column, ``is_notable``, marks shares that differ from the
    average by more than chance explains (:class:`mc2core.explore.associations.Associations`).
    """
    parts: dict[str, list[pd.DataFrame]] = {"shares": [], "trends": []}
    for variable in variables_of(description):
        name, table_of = ("trends", shares_over) if variable.is_number else ("shares", shares_by_value)
        table, sign = table_of(description, variable), description.once(Associations).values[variable.name]
        column = table.groupby(["of", "number"]).cumcount()
        if not variable.is_number:
            column = table["value"].map({value: i for i, value in enumerate(variable.names)})
        of_rows = zip(table["of"], table["number"], column, strict=True)
        parts[name].append(table.assign(is_notable=[sign[kind][n - 1, i] != 0 for kind, n, i in of_rows]))
    columns = {"shares": [*_BY_VALUE, "is_notable"], "trends": [*_BY_STEP, "is_notable"]}
    tables = {
        name: pd.concat(several, ignore_index=True) if several else pd.DataFrame(columns=columns[name])
        for name, several in parts.items()
    }
    if tables["trends"]["period"].isna().all():  # there are no dates
        tables["trends"] = tables["trends"].drop(columns="period")
    return tables


def shares_by_value(description: Description, variable: Variable) -> pd.DataFrame:
    """Return the share of each cluster and topic per value of a variable, for the MAX_VALUES commonest values.

    The columns are:

    - ``of`` ("cluster" or "topic"), ``number`` (as in the other tables), ``context`` (name of the variable), ``value``;
    - ``documents``, the number of documents with the value;
    - ``count``, the number of these documents in the cluster, or the expected tokens of the topic in these documents;
    - ``share``, ``count`` divided by ``documents`` or by the tokens of these documents;
    - ``low`` and ``high``, the ends of the interval of the share.

    The interval has probability INTERVAL under a Beta distribution. This distribution has the mean and variance of a
    mixture of Beta distributions, one per sample of all chains. For a cluster, the Beta distribution of a sample
    (Jeffreys' prior) follows from the number of documents in the sample's matched clusters. A cluster of a sample is
    matched to the cluster that contains most of its documents. For a topic, the distribution follows from the share of
    the sample's topics with the most similar words, and from an effective number of documents. The effective number
    follows from the variance of the share between documents (linearised ratio; Korn and Graubard, 1998). If there is
    one sample, or if the documents were not fitted, the interval is computed from ``count`` alone.

    The interval shows the uncertainty of the share for documents like these. The interval does not show whether another
    fit would contain the cluster or topic. ``share`` refers to the shown clusters and topics, but the interval to all
    samples. ``share`` can therefore lie outside the interval.
    """
    has = sp.csr_matrix(variable.values > 0, dtype=np.float64).T.tocsr()
    documents = np.asarray(has.sum(axis=1)).ravel()
    common = np.argsort(-documents, kind="stable")[:MAX_VALUES]
    common = common[documents[common] > 0]
    return _table(description, variable, has[common], {"value": np.array(variable.names, dtype=object)[common]})


def shares_over(description: Description, variable: Variable) -> pd.DataFrame:
    """Return the share of each cluster and topic per bin of a numeric variable or date.

    The columns are those of :func:`shares_by_value`, with ``start`` and ``end`` of the bin in place of ``value``. Dates
    also have the ``period`` (:func:`mc2core.explore.steps.periods_of`). The table has no rows if all values are equal.
    """
    into, rows = steps_of(variable)
    if not into.shape[1]:
        return pd.DataFrame(columns=_BY_STEP)
    return _table(description, variable, into.T.tocsr(), rows)


_ROUNDING = 1e-12  # smaller effects are rounding errors, for example if a context determines a cluster


def effects(description: Description, variables: Sequence[Variable]) -> pd.DataFrame:
    """Return the effect of each variable on the share of each cluster and topic, with the other variables held fixed.

    The columns are:

    - ``of`` ("cluster" or "topic"), ``number``, ``context`` (name of the variable);
    - ``value`` and ``reference``, the commonest value, for groups;
    - ``documents``, the number of documents with the value and without missing variables;
    - ``effect``, the change of the share per unit of a numeric variable, or from ``reference`` to ``value``;
    - ``low`` and ``high``, the ends of the interval of the effect, with probability INTERVAL.

    Effects are estimated by linear regression over the documents. The response is membership in the cluster, or the
    share of the topic in the document's tokens, weighted by the number of tokens. Intervals use Student's t
    distribution and a heteroscedasticity-consistent variance (White, 1980; HC1). Clusters and topics of the samples are
    matched as in :func:`shares_by_value`. The effects and variances of the samples are combined by the rule for
    multiple imputation (Rubin, 1987).

    Raises ValueError if a variable has several values in a document or more than MAX_VALUES values, or if a variable is
    determined by the others.
    """
    chosen = np.ones(description.corpus.n_documents, bool)
    for one in variables:
        several = 0 if one.is_number else np.diff(sp.csr_matrix(one.values > 0).indptr).max(initial=0)
        if several > 1 or len(one.names) > MAX_VALUES:
            number = "several values of" if several > 1 else f"{len(one.names)} values of"
            raise ValueError(f"documents have {number} {one.name!r}; effects need a number, or one of few values")
        chosen &= ~np.isnan(one.values) if one.is_number else np.diff(sp.csr_matrix(one.values > 0).indptr) > 0
    observed = np.flatnonzero(chosen)
    if not len(observed):
        raise ValueError(f"no document has all of {', '.join(one.name for one in variables)}")
    columns = [np.ones(len(observed))]
    rows: list[tuple[str, str | None, str | None, int]] = []
    for variable in variables:
        if variable.is_number:
            columns.append(variable.values[observed] - variable.values[observed].mean())
            rows.append((variable.name, None, None, len(observed)))
            continue
        has = (variable.values[observed] > 0).toarray()
        counts = has.sum(axis=0)
        order = [int(value) for value in np.argsort(-counts, kind="stable") if counts[value] > 0]
        for value in order[1:]:
            columns.append(has[:, value].astype(np.float64))
            rows.append((variable.name, variable.names[value], variable.names[order[0]], int(counts[value])))
    x, tokens = np.column_stack(columns), sp.csr_matrix(description.document_topics[observed])
    length = np.asarray(tokens.sum(axis=1)).ravel()
    weigh = sp.diags(1.0 / np.where(length > 0, length, 1.0))
    share = (weigh @ tokens).toarray()
    inside = description.documents_of[:, observed].T.toarray()
    of_samples = {
        "cluster": (sample[observed] @ nodes for sample, nodes in description.matched_samples),
        "topic": ((weigh @ sp.csr_matrix(several)[observed]).toarray() for several in description.matched_topics),
    }
    parts = []
    for kind, y, weight in (("cluster", inside, np.ones(len(observed))), ("topic", share, length)):
        if not y.shape[1]:  # a fit to contexts only has no topics
            continue
        pull = _regression(x, weight)
        effect, variance = _coefficients(x, y, pull)
        of_each = [_coefficients(x, one, pull) for one in of_samples[kind]]
        if len(of_each) > 1:
            effects_of, variances = (np.array(part) for part in zip(*of_each, strict=True))
            effect = effects_of.mean(axis=0)
            between = (1.0 + 1.0 / len(of_each)) * np.var(effects_of, axis=0, ddof=1)
            variance = variances.mean(axis=0) + between
        half = stats.t.ppf(0.5 + INTERVAL / 2.0, len(observed) - x.shape[1]) * np.sqrt(variance)
        m = y.shape[1]
        part = pd.DataFrame(rows * m, columns=["context", "value", "reference", "documents"])
        part.insert(0, "of", kind)
        part.insert(1, "number", np.repeat(np.arange(m) + 1, len(rows)))
        for name, table in (("effect", effect), ("low", effect - half), ("high", effect + half)):
            part[name] = table[1:].T.ravel()
        parts.append(part)
    return pd.concat(parts, ignore_index=True)


def _regression(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return the matrix (p, n) that maps n responses to weighted least-squares coefficients, given ``x`` (n, p).

    Raises ValueError if the columns of ``x`` are linearly dependent.
    """
    used = x[weight > 0]
    used = used / np.maximum(np.abs(used).max(axis=0, initial=0.0), 1e-300)
    if len(used) <= x.shape[1] or np.linalg.matrix_rank(used) < x.shape[1]:
        raise ValueError(
            "the effects of these contexts cannot be separated: one has a single value or depends on the others"
        )
    weighted = (x * weight[:, None]).T
    return np.linalg.solve(weighted @ x, weighted)


def _coefficients(x: np.ndarray, y: np.ndarray, pull: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the regression coefficients of the responses ``y`` (n, m), (p, m), and their variances, (p, m)."""
    n, p = x.shape
    effect = pull @ y
    effect[np.abs(effect) * np.abs(x).max(axis=0)[:, None] < _ROUNDING] = 0.0
    return effect, n / (n - p) * (pull**2 @ (y - x @ effect) ** 2)


def _table(description: Description, variable: Variable, into: sp.csr_matrix, rows: dict[str, Any]) -> pd.DataFrame:
    """Return a table of clusters and topics by groups of documents; ``into`` (n, J) marks the documents of groups."""
    documents, parts = np.asarray(into.sum(axis=1)).ravel(), []
    for kind, (count, share, low, high) in (
        ("cluster", _of_clusters(description, into)),
        ("topic", _of_topics(description, into)),
    ):
        n, m = share.shape
        columns = {"documents": np.tile(documents.astype(np.int64), m)}
        columns |= {"count": count.T.ravel(), "share": share.T.ravel(), "low": low.T.ravel(), "high": high.T.ravel()}
        keys = {name: np.tile(values, m) for name, values in rows.items()}
        number = np.repeat(np.arange(m) + 1, n)
        parts.append(pd.DataFrame({"of": kind, "number": number, "context": variable.name, **keys, **columns}))
    return pd.concat(parts, ignore_index=True)


def _of_clusters(description: Description, into: sp.csr_matrix) -> tuple[np.ndarray, ...]:
    """Return counts of documents, shares, and lower and upper interval bounds per group and node, (n, nodes) each."""
    count = np.asarray((into @ description.documents_of.T).toarray())
    n = np.asarray(into.sum(axis=1))
    share = np.divide(count, n, where=n > 0, out=np.full_like(count, np.nan))
    counts = np.array([(into @ sample).toarray() @ nodes for sample, nodes in description.matched_samples] or [count])
    shares = np.divide(counts, n, where=n > 0, out=np.full_like(counts, np.nan))
    return count, share, *_bound_mixtures(shares, n)


def _bound_mixtures(shares: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return lower and upper bounds of central intervals of shares.

    The interval is that of a Beta distribution with the mean and variance of a mixture over the S samples. ``shares``
    (S, ...) are shares in ``sizes`` independent documents. An interval begins at 0 if the share is 0 in all samples,
    and ends at 1 if the share is 1 in all samples (Brown, Cai and DasGupta, 2001).
    """
    means = (shares * sizes + 0.5) / (sizes + 1.0)
    mean, variances = means.mean(axis=0), means * (1.0 - means) / (sizes + 2.0)
    total = mean * (1.0 - mean) / (variances.mean(axis=0) + means.var(axis=0)) - 1.0
    tail = (1.0 - INTERVAL) / 2.0
    low, high = (special.betaincinv(mean * total, (1.0 - mean) * total, one) for one in (tail, 1.0 - tail))
    return np.where(shares.max(axis=0) == 0.0, 0.0, low), np.where(shares.min(axis=0) == 1.0, 1.0, high)


def _of_topics(description: Description, into: sp.csr_matrix) -> tuple[np.ndarray, ...]:
    """Return expected tokens, shares, and lower and upper interval bounds per group and topic, (n, M) each."""
    length = np.asarray(description.document_topics.sum(axis=1)).ravel()
    count, share, effective = ratios(description.document_topics, length, into)
    several = [ratios(tokens, length, into)[1:] for tokens in description.matched_topics]
    shares, sizes = (np.array(part) for part in zip(*(several or [(share, effective)]), strict=True))
    return count, share, *_bound_mixtures(shares, sizes)
