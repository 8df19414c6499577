"""UAI 2016 table 2: held-out perplexity of SVI-MC2 with and without contexts, and of LDA, on the large corpora."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from mc2core.base import storage
from mc2core.compute.spark import missing
from mc2papers.datasets.origins import MC2
from mc2papers.icml2014.perplexity_rows import (
    ABOUT_UNIGRAMS,
    UNIGRAMS,
    format_perplexity_table,
    judge_order,
    perplexities,
    perplexity_rows,
    unigram_score,
)
from mc2papers.report.captions import counted, say_data, say_sources
from mc2papers.report.claims import ANY_SIMULATOR, NO_SPARK, Claim, not_run
from mc2papers.targets import Built, Files, Options, Target
from mc2papers.uai2016.methods import about_svi

if TYPE_CHECKING:
    from mc2papers.configuration import Configuration

DATASETS = ("wikipedia", "pubmed", "aua", "synergy", "twitch")
SVI, LDA, WORDS = "SVI-MC2", "LDA", "words"
#: replaces MLlib's LDA if Spark is missing
LDA_BATCH = "LDA, scikit-learn"
#: names of features by the contexts of a fit
FEATURES = {
    (): WORDS,
    ("writer",): "words+writer",
    ("mesh",): "words+MeSH",
    ("product",): "words+products",
    ("friend",): "words+friends",
}
WITH_CONTEXTS = f"{SVI} with contexts has a lower perplexity than {SVI} without contexts"
_PRINTED = {"writer": "words+writer", "MeSH": "words+MeSH", "other products": "words+products"}


def perplexity_table(
    scores: Sequence[Mapping[str, Any]], paper: pd.DataFrame, estimators: Sequence[str], has_spark: bool = True
) -> tuple[pd.DataFrame, list[Claim]]:
    """Return table 2 of UAI16, made by :func:`perplexity_rows`, and its claims.

    paper : columns dataset, context, context_available_percent, method, perplexity as printed.
    has_spark : whether LDA could be fitted.
    """
    features = np.where(paper["context_available_percent"] == 100, paper["context"].map(_PRINTED), WORDS)
    table = perplexity_rows(scores, paper.assign(features=features), estimators, FEATURES)
    claims: list[Claim] = []
    for dataset, fits in perplexities(scores, estimators, FEATURES).items():
        contexts = sorted((set(FEATURES.values()) - {WORDS}) & set(table.loc[table["dataset"] == dataset, "features"]))
        claims += _claims(dataset, fits, contexts, has_spark)
    return table, claims


def _claims(
    dataset: str, fits: Mapping[tuple[str, str], pd.Series], contexts: Sequence[str], has_spark: bool
) -> list[Claim]:
    """Judge whether contexts lower the perplexity of SVI-MC2, and whether LDA is worse than SVI-MC2 on words only."""
    words = {WORDS: fits[SVI, WORDS]} if (SVI, WORDS) in fits else {}
    rival = LDA_BATCH if (LDA, WORDS) not in fits and (LDA_BATCH, WORDS) in fits else LDA
    lda = {WORDS: fits[rival, WORDS]} if (rival, WORDS) in fits else {}
    unigrams = fits.get((UNIGRAMS, WORDS))
    judged = []
    for name in contexts:
        better = f"{SVI} with {name.partition('+')[2]}", {name: fits[SVI, name]} if (SVI, name) in fits else {}
        judged.append(
            judge_order(dataset, WITH_CONTEXTS, better, (f"{SVI} without contexts", words), unigrams, ANY_SIMULATOR)
        )
    text = f"{SVI} without contexts has a lower perplexity than LDA"
    if not has_spark and not lda:
        return [*judged, not_run(dataset, text, NO_SPARK)]
    return [*judged, judge_order(dataset, text, (SVI, words), (rival, lda), unigrams, MC2)]


# -- the contract --------------------------------------------------------------------------------------------------
def _build(files: Files, options: Options) -> Built:
    scores = [storage.read_json(path) for path in files["scores"]]
    estimators = options["estimators"]
    scores += [unigram_score(folder, estimators) for folder in files["corpora"]]
    table, claims = perplexity_table(scores, pd.read_csv(files["paper"][0]), estimators, options["has_spark"])
    return Built(table, shown=format_perplexity_table(table, estimators, (SVI, WORDS)), claims=claims)


def _options(configuration: Configuration, name: str) -> dict[str, Any]:
    on_spark = [run for run in configuration.runs_of(name) if configuration.is_on_spark(run)]
    return {
        "estimators": configuration.config["estimators"],
        "n_seeds": configuration.config["seeds"],
        "corpora": configuration.corpora_of(DATASETS),
        "lda": configuration.runs[on_spark[0]]["fit"]["settings"] if on_spark else None,
        "has_spark": missing() is None,
    }


def _caption(options: Options) -> str:
    lda = options["lda"]
    rival = f"MLlib's LDA was not fitted{'' if options['has_spark'] else f': {NO_SPARK}'}."
    if lda:
        rival = f"LDA: Spark's MLlib with {lda['n_topics']} topics, fitted once and therefore not judged."
    return (
        f"Held-out perplexity of words (lower is better) on {say_data(options['corpora'])}: SVI-MC2 with and without "
        f"the context of each document, mean and sd over {counted(options['n_seeds'], 'seed')} next to the paper's "
        f"figures. Contexts of held-out documents are not used.\n\n{rival} {say_sources(options['corpora'], MC2)}"
    )


TARGET = Target(
    title="UAI 2016, table 2: held-out perplexity on the large corpora (lower is better)",
    shows="held-out perplexity",
    build=_build,
    caption=_caption,
    inputs={"scores": "scores", "corpora": "corpora"},
    datasets=DATASETS,
    options=_options,
    notes=(
        "Perplexity: exact, or by left_to_right (*) if each document has its own "
        "topic proportions (LDA, document level).",
        about_svi(500, "; SYNERGY, Twitch: 50"),
        f"{LDA_BATCH}: batch variational Bayes.",
        ABOUT_UNIGRAMS,
    ),
    has_paper=True,
)
