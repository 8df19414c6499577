"""Prediction of contexts from words, compared with four simple methods: ``python -m benchmarks.contexts``.

A corpus is divided into two parts, and the contexts of one part are hidden. MC2 with a document level (all samples of
one chain) predicts the hidden authors, tags or years from words. The simple methods are the frequencies in the
training documents (prior), the ten nearest documents by tf-idf, naive Bayes, and ridge regression on tf-idf.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.kernel_ridge import KernelRidge
from sklearn.naive_bayes import MultinomialNB
from sklearn.neighbors import NearestNeighbors

from benchmarks.cases import lacks
from benchmarks.suite import parser_of
from mc2core import Corpus
from mc2core.corpus import subsets
from mc2core.families import DirichletCategorical, NormalGamma
from mc2core.inference import Gibbs
from mc2core.inference.running.loop import fit
from mc2core.models import MC2
from mc2core.posterior.contexts import PredictedNames, PredictedNumbers
from mc2papers.datasets.collections import labelled_images, labelled_texts, nips
from mc2papers.datasets.simulated import shapes

_SEED = 0
_NEIGHBOURS = 10
_RANKS = (1, 5, 20)
_SHARE = 0.9


# -- corpora: training documents, test documents, contexts -----------------------------------------------------------
def real_nips(data_folder: Path) -> tuple[Corpus, Corpus]:
    return nips.read(data_folder / "nips/nips-corpus-20111211.zip").split(0.1, seed=_SEED)


def addresses(data_folder: Path) -> tuple[Corpus, Corpus]:
    whole = labelled_texts.read_addresses(data_folder / "labelled/state_union.zip")[0]
    return subsets.half(whole, "validation"), subsets.half(whole, "report")


def simulated_pnas(data_folder: Path) -> tuple[Corpus, Corpus]:
    return shapes.simulate(shapes.PNAS, _SEED, 0.05, "correlated")[0].split(0.1, seed=_SEED)


def sports(data_folder: Path) -> tuple[Corpus, Corpus]:
    """Return images in which every second tag is a word; the other tags are the context to predict."""
    files = (data_folder / "labelled" / f"uiuc-sports-{part}.txt" for part in ("annotations", "info"))
    whole = labelled_images.read_sports(*files)[0]
    names = np.array(whole.vocabulary)
    tags = {"tag": whole.content[:, 1::2]}
    parted = Corpus(
        whole.content[:, ::2], names[::2].tolist(), tags, documents=whole.documents,
        context_names={"tag": names[1::2].tolist()},
    )  # fmt: skip
    return subsets.half(parted, "validation"), subsets.half(parted, "report")


CORPORA: dict[str, tuple[Callable[[Path], tuple[Corpus, Corpus]], str, tuple[str, ...]]] = {
    "NIPS": (real_nips, "data_folder", ("author", "year")),
    "State of the Union": (addresses, "data_folder", ("year",)),
    "PNAS-shaped, simulated": (simulated_pnas, "", ("year",)),
    "UIUC-Sports, half of the tags": (sports, "data_folder", ("tag",)),
}


# -- names -----------------------------------------------------------------------------------------------------------
def tfidf(train: Corpus, test: Corpus) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    """Return tf-idf matrices of the training and the test documents, with rows of Euclidean norm 1."""
    scale = TfidfTransformer(sublinear_tf=True).fit(train.content)
    return scale.transform(train.content), scale.transform(test.content)


def nearest(train: Corpus, test: Corpus) -> tuple[np.ndarray, np.ndarray]:
    """Return the (n, 10) indices of the training documents nearest to each test document, and their cosines."""
    known, asked = tfidf(train, test)
    distance, row = NearestNeighbors(n_neighbors=_NEIGHBOURS, metric="cosine").fit(known).kneighbors(asked)
    return row, 1.0 - distance


def naive_bayes(train: Corpus, test: Corpus, row: np.ndarray, name: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (n, classes) probabilities and the classes, learnt from pairs of a document (``row``) and a ``name``."""
    model = MultinomialNB(alpha=0.01).fit(train.content[row], name)
    return model.predict_proba(test.content), model.classes_


def scores_of_names(train: Corpus, test: Corpus, context: str) -> Iterator[tuple[str, np.ndarray]]:
    """Yield each simple method with the (n, A) scores of all names for all test documents."""
    bag = sp.csr_matrix(train.contexts[context], dtype=np.float64)
    often = np.asarray(bag.sum(axis=0)).ravel()
    rare = 1e-9 * often  # breaks ties: the more frequent name comes first
    yield "prior", np.tile(often, (test.n_documents, 1))
    row, cosine = nearest(train, test)
    near = np.stack([cosine[j] @ bag[row[j]].toarray() for j in range(test.n_documents)])
    yield "nearest by tf-idf", near + rare
    pairs = bag.tocoo()
    probability, classes = naive_bayes(train, test, pairs.row, pairs.col)
    scores = np.zeros((test.n_documents, bag.shape[1]))
    scores[:, classes] = probability
    yield "naive Bayes", scores + 1e-300 * often
    known, asked = tfidf(train, test)
    yield "ridge on tf-idf", KernelRidge(alpha=1.0).fit(known, bag.toarray()).predict(asked) + rare


def of_names(scores: np.ndarray, truth: sp.csr_matrix) -> dict[str, float]:
    """Return the recall among the first 1, 5 and 20 names, and the mean reciprocal rank of the first correct name.

    Documents whose names do not occur in the training documents are not counted.
    """
    found: dict[str, list[float]] = {what: [] for what in (*(f"recall@{n}" for n in _RANKS), "reciprocal rank")}
    for j in range(len(scores)):
        right = truth[j].indices
        if len(right):
            place = np.empty(scores.shape[1], np.int64)
            place[np.argsort(-scores[j], kind="stable")] = np.arange(scores.shape[1])
            for n in _RANKS:
                found[f"recall@{n}"].append(np.mean(place[right] < n))
            found["reciprocal rank"].append(1.0 / (1.0 + place[right].min()))
    return {"documents": len(found["reciprocal rank"]), **{what: float(np.mean(all_)) for what, all_ in found.items()}}


# -- numbers ---------------------------------------------------------------------------------------------------------
def numbers(train: Corpus, test: Corpus, context: str) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield each simple method with (n,) predicted values and their (n, 2) intervals."""
    values = train.contexts[context]
    known_rows = np.flatnonzero(~np.isnan(values))
    values = values[known_rows]
    train = train.subset(known_rows)
    tails = np.array([0.5 - _SHARE / 2.0, 0.5 + _SHARE / 2.0])
    n = test.n_documents
    yield "prior", np.full(n, values.mean()), np.tile(np.quantile(values, tails), (n, 1))
    row, cosine = nearest(train, test)
    weight = np.maximum(cosine, 1e-9)
    yield (
        "nearest by tf-idf",
        (values[row] * weight).sum(axis=1) / weight.sum(axis=1),
        np.quantile(values[row], tails, axis=1).T,
    )
    probability, classes = naive_bayes(train, test, np.arange(len(values)), values.astype(str))
    classes = classes.astype(float)
    order = np.argsort(classes)
    below = probability[:, order].cumsum(axis=1)
    bounds = [classes[order][np.minimum((below < share).sum(axis=1), len(classes) - 1)] for share in tails]
    yield "naive Bayes", probability @ classes, np.stack(bounds, axis=1)
    known, asked = tfidf(train, test)
    centred = values - values.mean()
    gram = (known @ known.T).toarray()
    hat = gram @ np.linalg.inv(gram + np.eye(len(gram)))
    left_out = (centred - hat @ centred) / (
        1.0 - np.diag(hat)
    )  # error of each document if all other documents predict it
    told = KernelRidge(alpha=1.0).fit(known, centred).predict(asked) + values.mean()
    yield "ridge on tf-idf", told, told[:, None] + np.quantile(left_out, tails)


def of_numbers(mean: np.ndarray, interval: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    """Return the mean absolute error, the share of values in the 90 % intervals, and the median width of the
    intervals."""
    seen = ~np.isnan(truth)
    inside = (interval[seen, 0] <= truth[seen]) & (truth[seen] <= interval[seen, 1])
    return {
        "documents": int(seen.sum()),
        "error": float(np.abs(mean - truth)[seen].mean()),
        "in 90 % interval": float(inside.mean()),
        "its width": float(np.median(np.ptp(interval[seen], axis=1))),
    }


# -- all together ------------------------------------------------------------------------------------------------------
def rows(name: str, data_folder: Path, iterations: int) -> Iterator[dict[str, Any]]:
    """Yield one row per context and method for a corpus."""
    read, _, contexts = CORPORA[name]
    train, test = read(data_folder)
    families = {
        one: DirichletCategorical(0.1) if sp.issparse(train.contexts[one]) else NormalGamma() for one in contexts
    }
    posterior = fit(train, MC2(contexts=families), Gibbs(), iterations=iterations, seed=_SEED).posterior
    for context in contexts:
        about = {"corpus": name, "context": context}
        others = {"MC2": False, "MC2, other contexts too": True} if len(contexts) > 1 else {"MC2": False}
        found = {
            method: posterior.predict_context(test, context, use_context, threads=2)
            for method, use_context in others.items()
        }
        truth = test.contexts[context]
        if sp.issparse(truth):
            known = np.asarray(train.contexts[context].sum(axis=0)).ravel() > 0
            right = sp.csr_matrix(truth.multiply(known))
            right.eliminate_zeros()
            right.sort_indices()
            for method, told in found.items():
                assert isinstance(told, PredictedNames)
                yield about | {"method": method} | of_names(told.of(slice(None)), right)
            for method, scores in scores_of_names(train, test, context):
                yield about | {"method": method} | of_names(scores, right)
        else:
            for method, told in found.items():
                assert isinstance(told, PredictedNumbers)
                yield about | {"method": method} | of_numbers(told.mean, told.interval(_SHARE), truth)
            for method, mean, interval in numbers(train, test, context):
                yield about | {"method": method} | of_numbers(mean, interval, truth)


def as_markdown(table: list[Mapping[str, Any]]) -> str:
    """Return one Markdown table for names and one for numbers."""
    parts = []
    for last in ("reciprocal rank", "its width"):
        chosen = [row for row in table if last in row]
        if chosen:
            heads = list(chosen[0])
            lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
            lines += [
                "| " + " | ".join(f"{one:.3g}" if isinstance(one, float) else str(one) for one in row.values()) + " |"
                for row in chosen
            ]
            parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def main() -> None:
    parser = parser_of("contexts", __doc__, CORPORA)
    parser.add_argument("--iterations", type=int, default=Gibbs.default_iterations, help="of the chain")
    parser.add_argument("--out", type=Path, help="write the tables to this Markdown file")
    given = parser.parse_args()
    table: list[Mapping[str, Any]] = []
    for name, (_, needs, _) in CORPORA.items():
        if name in given.only:
            if lack := lacks(needs, given.data_folder):
                print(f"{name}: left out; {lack}", file=sys.stderr)
                continue
            table += rows(name, given.data_folder, given.iterations)
    print(as_markdown(table), end="")
    if given.out:
        given.out.write_text(as_markdown(table), encoding="utf-8")


if __name__ == "__main__":
    main()
