"""Model: the only shape in which a fit leaves an engine. Scores, tables and figures read corpus and model."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import logsumexp

from mc2core import matching, perplexity, storage
from mc2core.corpus import Corpus
from mc2core.described import Stored, check, check_csr
from mc2core.families import Family, family_from_settings, family_settings
from mc2core.families.base import ScalarFamily
from mc2core.families.stacked import StackedContexts

FORMAT = "mc2core model 1"


@dataclass(frozen=True)
class Sample:
    """One draw of the posterior (Gibbs) or the posterior mean (SVI), given which documents are independent.

    Attributes
    ----------
    cluster_weights : (K,) float64, sums to 1
        E[pi_k] over the clusters in use.
    new_cluster_weight : float
        Mass of a cluster not seen so far: group_concentration / (J + group_concentration), or 0.
    topic_given_cluster : (K, M) float64, rows sum to 1, dense or CSR
        E[tau_km] over the topics in use. Sparse where every cluster is a topic of its own, thousands of them.
    new_topic_weight : (K,) float64
        Mass of a topic not seen so far in each cluster; such a topic is uniform over words.
    topic_words : (M, V) CSR or dense, >= 0
        Counts (or pseudo-counts) behind the topics, without the prior.
    topic_prior : float
        s: word_given_topic = (topic_words + s) / (its row sum).
    topic_weights : (M,) float64, sums to less than 1
        epsilon_m; 1 - sum is the mass of topics not in use.
    table_concentration : float
        v: a document or cluster with proportions of its own draws them from DP(v, epsilon).
    natural : (K, D) float64
        Posterior natural parameters of the stacked contexts of each cluster.
    cluster : (J,) int32
        Cluster of each training document.
    log_joint : float
        Log joint (Gibbs) or ELBO (SVI) in nats.
    """

    cluster_weights: np.ndarray
    new_cluster_weight: float
    topic_given_cluster: Any
    new_topic_weight: np.ndarray
    topic_words: Any
    topic_prior: float
    topic_weights: np.ndarray
    table_concentration: float
    natural: np.ndarray
    cluster: np.ndarray
    log_joint: float = float("nan")

    @property
    def n_clusters(self) -> int:
        """K, clusters in use."""
        return len(self.cluster_weights)

    @property
    def n_topics(self) -> int:
        """M, topics in use."""
        return len(self.topic_weights)

    @property
    def word_given_topic(self) -> np.ndarray:
        """(M, V) float64, rows sum to 1."""
        counts = self.topic_words.toarray() if sp.issparse(self.topic_words) else np.asarray(self.topic_words)
        counts = counts + np.float64(self.topic_prior)
        return counts / counts.sum(axis=1, keepdims=True)

    @property
    def word_given_cluster(self) -> np.ndarray:
        """(K, V) float64, rows sum to 1: the words of a token of each cluster, topics not in use included."""
        n_words = self.topic_words.shape[1]
        known = self.topic_given_cluster @ self.word_given_topic
        return (1.0 - self.new_topic_weight)[:, None] * known + (self.new_topic_weight / n_words)[:, None]


_SAMPLE_SCALARS = ("new_cluster_weight", "topic_prior", "table_concentration", "log_joint")
_SAMPLE_ARRAYS = ("cluster_weights", "new_topic_weight", "topic_weights", "natural", "cluster")
_SAMPLE_TABLES = {"topic_given_cluster": "topic_given_cluster", "topic_words": "words"}  # field: name on disk


def pack_sample(sample: Sample, prefix: str) -> dict[str, np.ndarray]:
    """A sample as plain arrays, their names led by ``prefix``."""
    arrays = {f"{prefix}{name}": getattr(sample, name) for name in _SAMPLE_ARRAYS}
    arrays[f"{prefix}scalars"] = np.array([getattr(sample, name) for name in _SAMPLE_SCALARS])
    for field_name, name in _SAMPLE_TABLES.items():
        table = getattr(sample, field_name)
        if sp.issparse(table):
            table = sp.csr_matrix(table)
            arrays |= {f"{prefix}{name}.{part}": getattr(table, part) for part in ("indptr", "indices", "data")}
            arrays[f"{prefix}{name}.shape"] = np.array(table.shape)
        else:
            arrays[f"{prefix}{name}"] = table
    return arrays


_ROUNDING = 1e-6
_DESCRIBED = {
    "cluster_weights": Stored("f", "K", least=0, most=1 + _ROUNDING),
    "topic_weights": Stored("f", "M", least=0, most=1 + _ROUNDING),
    "new_topic_weight": Stored("f", "K", least=0, most=1 + _ROUNDING),
    "natural": Stored("f", "K D"),
    "cluster": Stored("i", "J", least=-1, below="K"),
    "new_cluster_weight": Stored("f", "", least=0, most=1 + _ROUNDING),
    "topic_prior": Stored("f", "", least=0),
    "table_concentration": Stored("f", "", least=0, is_finite=False),
    "log_joint": Stored("f", "", is_finite=False),
}
_DESCRIBED_TABLES = {"topic_given_cluster": Stored("f", "K M", least=0), "words": Stored("n", "M V", least=0)}


def unpack_sample(arrays: Mapping[str, np.ndarray], prefix: str, sizes: Mapping[str, int]) -> Sample:
    """The inverse of :func:`pack_sample`.

    ``sizes``: J, V and D, as far as they are known. ValueError where an array is missing, has another shape, or holds
    what cannot be in a sample.
    """
    own = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
    try:
        check(own, {"scalars": Stored("f", str(len(_SAMPLE_SCALARS)), is_finite=False)}, {})
        own |= zip(_SAMPLE_SCALARS, own["scalars"], strict=True)
        sizes = check(own, _DESCRIBED, sizes)
        fields: dict[str, Any] = {name: own[name] for name in _SAMPLE_ARRAYS}
        fields |= {name: float(own[name]) for name in _SAMPLE_SCALARS}
        for field_name, name in _SAMPLE_TABLES.items():
            if name in own:
                sizes = check(own, {name: _DESCRIBED_TABLES[name]}, sizes)
                fields[field_name] = own[name]
            else:
                sizes = check_csr(own, name, _DESCRIBED_TABLES[name], sizes)
                parts = own[f"{name}.data"], own[f"{name}.indices"], own[f"{name}.indptr"]
                fields[field_name] = sp.csr_matrix(parts, shape=tuple(own[f"{name}.shape"]))
        shares = np.asarray(fields["topic_given_cluster"].sum(axis=1))
        if abs(fields["cluster_weights"].sum() - 1.0) > _ROUNDING or (shares > 1.0 + _ROUNDING).any():
            raise ValueError("shares of clusters or topics sum to another number than 1")
    except ValueError as error:
        raise ValueError(f"sample {prefix.removesuffix('.')}: {error}") from error
    return Sample(**fields)


#: Words of which a topic holds fewer (expected) tokens are none of its words: the prior alone gives them their share.
FEWEST_TOKENS = 0.01


def _largest(row: Any, n: int) -> np.ndarray:
    """Columns of the n largest entries of at least FEWEST_TOKENS of a row, dense or (1, V) sparse; of equal entries
    the first.
    """
    if sp.issparse(row):
        row = sp.csr_matrix(row)
        columns, values = row.indices, row.data
    else:
        columns, values = np.arange(len(row)), row
    met = values >= FEWEST_TOKENS
    return columns[met][np.lexsort((columns[met], -values[met]))][:n]


@dataclass
class Model:
    """What was learnt, whatever engine learnt it.

    ``samples`` holds at least one :class:`Sample`; the plain attributes (``cluster_weights`` ...) are those of the
    last one. ``evidence`` says how it came about (engine, settings, seed, versions, digests, seconds), ``imported`` how
    the documents were read (:class:`mc2core.Corpus`).
    """

    samples: list[Sample]
    families: dict[str, Family]
    dimensions: dict[str, int]
    vocabulary: list[str]
    context_names: dict[str, list[str]] = field(default_factory=dict)
    units: dict[str, tuple[float, float]] = field(default_factory=dict)
    evidence: dict[str, Any] = field(default_factory=dict)
    imported: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        if not self.samples:
            raise ValueError("a model needs at least one sample; burn_in must be below the number of iterations")

    # -- the last sample -----------------------------------------------------------------------------------
    @property
    def last(self) -> Sample:
        """The last sample."""
        return self.samples[-1]

    @property
    def cluster_weights(self) -> np.ndarray:
        """(K,) float64, sums to 1, of the last sample."""
        return self.last.cluster_weights

    @property
    def topic_given_cluster(self) -> np.ndarray:
        """(K, M) float64, dense, rows sum to 1, of the last sample."""
        shares = self.last.topic_given_cluster
        return shares.toarray() if sp.issparse(shares) else shares

    @property
    def word_given_topic(self) -> np.ndarray:
        """(M, V) float64, rows sum to 1, of the last sample."""
        return self.last.word_given_topic

    @property
    def n_words(self) -> int:
        """V."""
        return self.last.topic_words.shape[1]

    def context_parameters(self, name: str) -> np.ndarray:
        """(K, D) posterior natural parameters of the context ``name`` in each cluster of the last sample."""
        offset = 0
        for context in sorted(self.families):
            if context == name:
                return self.last.natural[:, offset : offset + self.dimensions[context]]
            offset += self.dimensions[context]
        raise ValueError(f"context {name!r} is not in the model; it has: {', '.join(sorted(self.families)) or 'none'}")

    def context_mean(self, name: str) -> np.ndarray:
        """Posterior mean of a context in each cluster: (K, A) probabilities, or (K,) values in their own unit."""
        parameters = self.context_parameters(name)
        mean = self.families[name].mean(parameters)
        centre, sd = self.units.get(name, (0.0, 1.0))
        return mean * sd + centre if mean.ndim == 1 else mean

    def top_words(self, n: int = 10) -> list[list[str]]:
        """The n likeliest words of each topic of the last sample, likeliest first; fewer where it has met fewer."""
        if n < 1:
            raise ValueError(f"{n} words were asked for; it must be at least 1")
        return [[self.vocabulary[word] for word in _largest(row, n)] for row in self.last.topic_words]

    # -- documents -----------------------------------------------------------------------------------------
    def check_corpus(self, corpus: Corpus) -> None:
        """ValueError unless ``corpus`` has the model's words in their order.

        Where either has no names for them, their number is compared and a warning logged.
        """
        found = corpus.vocabulary if corpus.has_vocabulary else None
        matching.check_columns("the corpus", "words", self.vocabulary, found, self.n_words, corpus.n_words)

    def check_fitted(self, corpus: Corpus) -> None:
        """ValueError unless ``corpus`` may be the one the model was fitted on: its words, as many documents."""
        self.check_corpus(corpus)
        if corpus.n_documents != len(self.last.cluster):
            raise ValueError(
                f"the corpus has {corpus.n_documents} documents, but the model was fitted on {len(self.last.cluster)}"
            )

    def stacked(self, corpus: Corpus) -> StackedContexts:
        """The model's contexts of ``corpus``, numbers in the unit they were fitted in.

        ValueError where one is absent or has other columns; where either has no names for them, their number is
        compared and a warning logged.
        """
        stacked = StackedContexts(matching.in_units(corpus, self.families, self.units), self.families)
        for name, family in zip(stacked.names, stacked.families, strict=True):
            if not isinstance(family, ScalarFamily):
                matching.check_columns(
                    f"context {name!r}",
                    "columns",
                    self.context_names.get(name),
                    corpus.context_names.get(name),
                    self.dimensions[name],
                    corpus.contexts[name].shape[1],
                )
        return stacked

    def predict(self, corpus: Corpus, use_context: bool = True) -> np.ndarray:
        """(J, K) float64: P(z_j = k | w_j, x_j) over the clusters of the last sample; rows sum to 1."""
        self.check_corpus(corpus)
        sample = self.last
        log_p = np.log(sample.cluster_weights) + perplexity.log_likelihood_of_clusters(corpus, sample)
        if use_context and self.families:
            log_p += self.stacked(corpus).log_predictive(sample.natural)
        total = logsumexp(log_p, axis=1, keepdims=True)
        if not np.isfinite(total).all():
            wrong = int(np.flatnonzero(~np.isfinite(total[:, 0]))[0])
            raise ValueError(
                f"document {wrong}: its log likelihood in all clusters together is {total[wrong, 0]}; "
                "the model's weights, topic_words and natural must be finite"
            )
        return np.exp(log_p - total)

    def log_likelihood(
        self, corpus: Corpus, estimator: str = "marginal", seed: int = 0, threads: int = 1
    ) -> np.ndarray:
        """(J,) float64 nats: ln p(w_j) of each document by ``estimator`` (see :mod:`mc2core.perplexity`)."""
        return perplexity.log_likelihood(corpus, self, estimator, seed, threads)

    def perplexity(self, corpus: Corpus, estimator: str = "marginal", seed: int = 0, threads: int = 1) -> float:
        """exp(-sum_j ln p(w_j) / sum_j N_j), words only; a uniform model gives V."""
        return perplexity.perplexity(corpus, self, estimator, seed, threads)

    # -- disk ----------------------------------------------------------------------------------------------
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one .npz file, whole or not at all."""
        meta = {
            "format": FORMAT,
            "n_samples": len(self.samples),
            "families": {name: family_settings(family) for name, family in self.families.items()},
            "dimensions": self.dimensions,
            "vocabulary": self.vocabulary,
            "context_names": self.context_names,
            "units": {name: list(unit) for name, unit in self.units.items()},
            "evidence": self.evidence,
            "imported": self.imported,
        }
        arrays: dict[str, np.ndarray] = {"meta": np.array(json.dumps(meta))}
        for i, sample in enumerate(self.samples):
            arrays |= pack_sample(sample, f"{i}.")
        storage.write_arrays(path, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Model:
        """Read a saved model; ValueError for a damaged or changed file or another format."""
        arrays = storage.read_arrays(path)
        try:
            meta = storage.parse_json(str(arrays["meta"]))
            if meta["format"] != FORMAT:
                raise ValueError(f"its format is {meta['format']!r}, not {FORMAT!r}")
            _check_meta(meta)
            sizes = {"V": len(meta["vocabulary"]), "D": sum(meta["dimensions"].values())}
            samples = []
            for i in range(meta["n_samples"]):
                samples.append(unpack_sample(arrays, f"{i}.", sizes))
                sizes["J"] = len(samples[0].cluster)
            return cls(
                samples=samples,
                families={name: family_from_settings(one) for name, one in meta["families"].items()},
                dimensions=meta["dimensions"],
                vocabulary=meta["vocabulary"],
                context_names=meta["context_names"],
                units={name: (mean, sd) for name, (mean, sd) in meta["units"].items()},
                evidence=meta["evidence"],
                imported=meta.get("imported"),
            )
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path} is not a saved model: {error}") from error


def _check_meta(meta: Mapping[str, Any]) -> None:
    """ValueError where names, sizes or units of a saved model are not such as are saved."""
    dimensions = meta["dimensions"]
    if dimensions.keys() != meta["families"].keys() or not all(
        isinstance(dimension, int) and dimension >= 0 for dimension in dimensions.values()
    ):
        raise ValueError(f"the dimensions of its contexts are {dimensions}")
    lists = {"vocabulary": meta["vocabulary"], **meta["context_names"]}
    for name, names in lists.items():
        if not isinstance(names, list) or not all(isinstance(one, str) for one in names):
            raise ValueError(f"the names of {name} are no list of texts")
        if name != "vocabulary" and len(names) != dimensions.get(name):
            raise ValueError(f"{len(names)} names are given for the {dimensions.get(name, 0)} columns of {name!r}")
    for name, (mean, sd) in meta["units"].items():
        if name not in dimensions or not (math.isfinite(mean) and math.isfinite(sd) and sd > 0):
            raise ValueError(f"the unit of {name!r} is {mean, sd}; a mean and a deviation above 0 are needed")
