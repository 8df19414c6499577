"""Corpora whose context tells a known part of the classes, and fits with and without it."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy.special import softmax
from scipy.stats import entropy

from mc2core.compute import streams
from mc2core.corpus import Corpus
from mc2core.inference.registry import specify
from mc2core.inference.running.loop import fit
from mc2core.posterior.scores import evaluate
from mc2papers.datasets.simulated import shapes
from mc2papers.report.agreement import MEASURES

logger = logging.getLogger(__name__)
#: the context of the shape that stands for contexts of any strength
CONTEXT = "tag"
#: values per document, as many as an image has tags in NUS-WIDE
N_VALUES = 6


def gains_of_contexts(
    runs: Mapping[str, Mapping[str, Any]], *, scale: float, shares: Sequence[float], repeats: int, threads: int = 1
) -> pd.DataFrame:
    """Draw ``repeats`` corpora in the shape of NUS-WIDE and fit each without its context and with one per share.

    Parameters
    ----------
    runs : ``method`` and ``fit`` by name, of :meth:`mc2papers.configuration.Configuration.fits_of`; the context is
    CONTEXT
    scale : of :func:`mc2papers.datasets.simulated.shapes.simulate`; words are drawn by the law "correlated"
    shares : of values of the context that are the document's class; the others are drawn from all classes

    Returns
    -------
    A row per repeat, run and share (NaN: without the context): method, repeat, share, bits (mutual information of
    context and class), class_bits (entropy of the class), perplexity (of a tenth held out), MEASURES, clusters.
    """
    rows = []
    for repeat in range(repeats):
        whole, _ = shapes.simulate(shapes.NUSWIDE, repeat, scale, "correlated")
        classes = np.asarray(whole.labels)
        class_shares = np.bincount(classes) / len(classes)
        for share in (np.nan, *shares):
            given = with_context(whole, share, repeat)
            bits = 0.0 if np.isnan(share) else information(class_shares, share, given.contexts[CONTEXT])
            train, test = given.split(0.1, repeat)
            for run in runs.values():
                one = run["fit"]
                contexts = {} if np.isnan(share) else one["contexts"]
                done = fit(
                    train,
                    *specify(one["model"], one["engine"], one["settings"], contexts, threads),
                    **{name: one[name] for name in ("iterations", "burn_in", "thin")},
                    seed=repeat,
                    progress=False,
                )
                scores = evaluate(done.posterior, train, test, ["marginal"])
                rows.append(
                    {
                        "method": run["method"],
                        "repeat": repeat,
                        "share": share,
                        "bits": bits,
                        "class_bits": float(entropy(class_shares, base=2)),
                        "perplexity": scores["perplexity"][scores["estimator"]],
                        **{name: scores[name] for name in MEASURES},
                        "clusters": scores["scored_clusters"],
                    }
                )
        logger.info("repeat %d of %d", repeat + 1, repeats)
    return pd.DataFrame(rows)


def with_context(corpus: Corpus, share: float, seed: int) -> Corpus:
    """Give each document N_VALUES values as context, each its class with probability ``share``, else any document's."""
    if np.isnan(share):
        return corpus.with_contexts({})
    classes = np.asarray(corpus.labels)
    rng = streams.generator(seed, "context strength")
    # the same draws for each share: values that show the class for a small one show it for a larger one, too
    shape = len(classes), N_VALUES
    value = np.where(rng.random(shape) < share, classes[:, None], rng.choice(classes, shape))
    indptr = np.arange(0, value.size + 1, N_VALUES)
    counts = sp.csr_matrix((np.ones(value.size, np.int32), value.ravel(), indptr), (shape[0], classes.max() + 1))
    counts.sum_duplicates()
    return corpus.with_contexts({CONTEXT: counts})


def information(class_shares: np.ndarray, share: float, contexts: sp.csr_matrix) -> float:
    """Estimate the mutual information of class and context in bits, for contexts drawn by :func:`with_context`.

    It is the entropy of the class less that of the class given the context, averaged over the documents; the law of the
    contexts is known.

    Parameters
    ----------
    contexts : (J, K) counts of the documents drawn
    """
    least = np.finfo(float).tiny
    law = share * np.eye(len(class_shares)) + (1.0 - share) * class_shares
    log_joint = contexts @ np.log(np.maximum(law, least)).T + np.log(np.maximum(class_shares, least))
    given = entropy(softmax(log_joint, axis=1), base=2, axis=1)
    return float(entropy(class_shares, base=2) - given.mean())
