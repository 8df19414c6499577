"""ICML14 figure 4: distribution of a topic over time."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from mc2core.corpus import Corpus
from mc2core.families import NormalGamma
from mc2core.posterior import Posterior
from mc2papers.report import palette, style

YEAR = "year"
#: smallest fraction of tokens of a topic with the narrowest peak; the peak of a smaller topic is one or two documents
MIN_PEAK_SHARE = 0.002
_POINTS_A_YEAR = 4


def time_given_topic(model: Posterior, time: np.ndarray) -> np.ndarray:
    """Return the (M, n) density per year of each topic at n values of the context ``year``.

    p(t | m) = sum_k pi_k tau_km p(t | phi_k) / sum_k pi_k tau_km, where p(t | phi_k) is the posterior predictive of
    cluster k's context (docs/model.md, section 1). All parameters are from the representative sample.
    """
    mean, sd = model.units.get(YEAR, (0.0, 1.0))
    natural = model.context_parameters(YEAR)
    density = NormalGamma.predictive(natural[:, None]).pdf((np.asarray(time, np.float64) - mean) / sd) / sd
    weight = np.asarray(model.cluster_weights)[:, None] * model.topic_given_cluster
    return (weight / np.maximum(weight.sum(axis=0), 1e-300)).T @ density


def narrowest(model: Posterior, time: np.ndarray) -> int:
    """Return the topic with the shortest interval that contains half of its mass, on the grid ``time``."""
    density = time_given_topic(model, time)
    share = np.asarray(model.cluster_weights) @ model.topic_given_cluster
    ordered = np.sort(density, axis=1)[:, ::-1]
    reached = np.cumsum(ordered, axis=1) >= 0.5 * ordered.sum(axis=1, keepdims=True)
    width = np.where(share >= min(MIN_PEAK_SHARE, share.max()), np.argmax(reached, axis=1), len(time))
    return int(np.argmin(width))


def topic_of(model: Posterior, word: str) -> int:
    """Return the topic in which ``word`` is likeliest. Raises ValueError if no topic has the word."""
    if word not in model.vocabulary:
        raise ValueError(f"figure4.word is {word!r}; the vocabulary has no such word")
    counts = np.asarray(model.representative.topic_words[:, [model.vocabulary.index(word)]].sum(axis=1)).ravel()
    if counts.max() < 0.5:
        raise ValueError(f"figure4.word is {word!r}; no topic of the model has a token of it")
    return int(np.argmax(model.word_given_topic[:, model.vocabulary.index(word)]))


def describe(corpus: Corpus, model: Posterior, word: str | None = None, n_words: int = 8) -> pd.DataFrame:
    """Return the development of a topic over time as a table: part, year, value, text.

    The parts "topic" and "all" are densities on a grid of quarter years; "all" is the mixture of all clusters. The part
    "documents" is the number of documents per year that contain the word. The part "words" has the likeliest words of
    the topic, with their probabilities as values. ``word`` selects the topic. If ``word`` is None, the topic with the
    narrowest peak is used, with its likeliest word.

    Raises ValueError if the model was not fitted to ``corpus``, or if no topic has ``word``.
    """
    model.check_fitted(corpus)
    mean, sd = corpus.units.get(YEAR, (0.0, 1.0))
    years = np.asarray(corpus.contexts[YEAR]) * sd + mean
    first, last = np.floor(np.nanmin(years)), np.ceil(np.nanmax(years))
    time = np.linspace(first, last, int((last - first) * _POINTS_A_YEAR) + 1)
    topic = narrowest(model, time) if word is None else topic_of(model, word)
    words = model.top_words(n_words)[topic]
    word = words[0] if word is None else word
    density = time_given_topic(model, time)
    share = np.asarray(model.cluster_weights) @ model.topic_given_cluster
    has_word = np.asarray(corpus.content[:, [corpus.vocabulary.index(word)]].sum(axis=1)).ravel() > 0
    counted, number = np.unique(np.rint(years[has_word & ~np.isnan(years)]), return_counts=True)
    share_of_words = [model.word_given_topic[topic, model.vocabulary.index(one)] for one in words]
    parts = [
        pd.DataFrame({"part": "topic", "year": time, "value": density[topic]}),
        pd.DataFrame({"part": "all", "year": time, "value": share @ density / share.sum()}),
        pd.DataFrame({"part": "documents", "year": counted, "value": number.astype(float), "text": word}),
        pd.DataFrame({"part": "words", "value": share_of_words, "text": words}),
    ]
    return pd.concat(parts, ignore_index=True)[["part", "year", "value", "text"]]


def draw(table: pd.DataFrame, source: str) -> Figure:
    """Draw the table of :func:`describe`."""
    parts = dict(iter(table.groupby("part")))
    figure = style.new_figure(5.6, 4.2)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[1.7, 1.0])
    above.plot(parts["topic"]["year"], parts["topic"]["value"], color=palette.look("MC2")[0], label="this topic")
    above.plot(parts["all"]["year"], parts["all"]["value"], color=palette.SOFT, linestyle="--", label="all topics")
    above.set(ylabel="density per year", title="Topic: " + ", ".join(parts["words"]["text"]))
    above.set_ylim(bottom=0)
    above.legend(loc="upper left")
    documents = parts.get("documents", table.iloc[:0])
    below.bar(documents["year"], documents["value"], color=palette.DATA, width=0.8)
    word = documents["text"].iloc[0] if len(documents) else parts["words"]["text"].iloc[0]
    below.set(xlabel="year", ylabel=f"documents\nwith “{word}”")
    style.mark_source(figure, source)
    return figure
