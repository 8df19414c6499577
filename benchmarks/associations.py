"""Count the context values and trends that a report marks as notable: ``python -m benchmarks.associations``.

Each corpus is fitted three times: with its contexts in the model, with each context permuted over the documents, and
without contexts. The fit without contexts is described with the real and with permuted contexts. Permuted contexts
have no true associations, so a marked row is then an error. The study counts rows of the report for recommended
clusters and for topics: values of contexts, and trends over numeric contexts. ``naive`` counts rows that look notable
without a test: values that are at least twice as frequent as on average, and trends with a rank correlation of at
least .3 over the bins. ``notable`` counts the rows that the report marks. Fits are stored in ``--cache``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy import stats

from benchmarks.suite import parser_of
from mc2core import Corpus
from mc2core.explore.clusters import cluster_tables
from mc2core.explore.description import Description
from mc2core.explore.shares import shares_tables
from mc2core.explore.topics import topic_tables
from mc2core.inference.running.loop import fit
from mc2core.models import MC2
from mc2core.posterior import Posterior

_SEED, _MOST = 0, 8
_KINDS = "cluster values", "topic values", "cluster trends", "topic trends"


# -- corpora -----------------------------------------------------------------------------------------------------
def _counted(path: Path, n: int, **columns: str) -> Corpus:
    """Return ``n`` random documents of a file that stores words with counts."""
    frame = pd.read_csv(path, dtype=str).sample(n, random_state=_SEED).reset_index(drop=True)
    pairs = frame["words"].map(lambda one: [pair.rsplit(":", 1) for pair in one.split("; ")])
    frame["words"] = pairs.map(lambda several: {word: int(count) for word, count in several})
    if "date" in frame:
        frame["date"] = pd.to_datetime(frame["date"])
    return Corpus.from_dataframe(frame, bag="words", contexts=columns, separator="; ", min_df=2)


def addresses(folder: Path) -> Corpus:
    """Return paragraphs of State of the Union addresses with year and president."""
    frame = pd.read_csv(folder / "sotu/sotu_paragraphs_1790-2026.csv.gz").sample(1500, random_state=_SEED)
    return Corpus.from_dataframe(frame, text="text", contexts=["year", "president"], min_df=5)


def movies(folder: Path) -> Corpus:
    """Return films with keywords as words and actors as context."""
    return _counted(folder / "multiview/movies.csv.gz", 617, actor="context")


def cora(folder: Path) -> Corpus:
    """Return papers with citations as context."""
    return _counted(folder / "multiview/cora.csv.gz", 1200, citation="context")


def blogs(folder: Path) -> Corpus:
    """Return posts with word stems as words, and with the blog and the date as contexts."""
    return _counted(folder / "poliblog/poliblog5k.csv.gz", 600, blog="blog", date="date")


def noise(folder: Path) -> Corpus:
    """Return documents that draw all words from one distribution, and each have a random author and a random year."""
    rng = np.random.default_rng(_SEED)
    words = rng.multinomial(60, rng.dirichlet(np.full(500, 0.3)), 400)
    author = sp.csr_matrix((np.ones(400), rng.integers(0, 200, 400), np.arange(401)), shape=(400, 200))
    contexts = {"author": author, "year": rng.integers(1990, 2020, 400).astype(float)}
    return Corpus(sp.csr_matrix(words), [f"word{w}" for w in range(500)], contexts)


CORPORA: dict[str, Callable[[Path], Corpus]] = {
    "State of the Union": addresses, "movies": movies, "cora": cora, "political blogs": blogs, "noise": noise,
}  # fmt: skip


def permuted(corpus: Corpus, seed: int) -> Corpus:
    """Return the same documents with each context permuted at random."""
    rng = np.random.default_rng([seed, 7])
    return corpus.with_contexts(
        {name: one[rng.permutation(corpus.n_documents)] for name, one in corpus.contexts.items()}
    )


def fitted(corpus: Corpus, contexts: list[str], path: Path) -> Posterior:
    """Return a default fit of two chains with its hierarchy, loaded from ``path`` if it exists."""
    if not path.is_file():
        posterior = fit(corpus, MC2(contexts=contexts), seed=_SEED, chains=2, progress=False).posterior
        posterior.find_hierarchy(corpus)
        path.parent.mkdir(parents=True, exist_ok=True)
        posterior.save(path)
    return Posterior.load(path)


# -- rows --------------------------------------------------------------------------------------------------------
def rows(description: Description) -> Iterator[pd.DataFrame]:
    """Yield tables of the rows that the report shows: the kind of each row, and whether it is naive or notable."""
    clusters, trends = cluster_tables(description), shares_tables(description)["trends"]
    topics = topic_tables(description, with_map=False)
    for what, tables in (("cluster", clusters), ("topic", topics)):
        values, numbers = tables[f"{what}_values"], tables[f"{what}_numbers"]
        last = description.recommended if what == "cluster" else np.inf
        shown = values[(values["by_share"] <= _MOST) & (values[what] <= last)]
        yield pd.DataFrame({"kind": f"{what} values", "naive": shown["lift"] >= 2.0, "notable": shown["is_notable"]})
        shown = numbers[numbers[what] <= last]
        known = trends[trends["of"] == what].groupby(["number", "context"])[["start", "share"]]
        of_steps = {pair: abs(_correlation(part)) for pair, part in known}
        naive = [of_steps.get(pair, 0.0) >= 0.3 for pair in zip(shown[what], shown["context"], strict=True)]
        yield pd.DataFrame({"kind": f"{what} trends", "naive": naive, "notable": shown["is_notable"].to_numpy()})


def _correlation(part: pd.DataFrame) -> float:
    known = part.dropna()
    is_flat = len(known) < 3 or known["share"].nunique() < 2
    return float("nan") if is_flat else float(stats.spearmanr(known["start"], known["share"]).statistic)


def main() -> None:
    parser = parser_of("associations", __doc__, CORPORA)
    parser.add_argument("--permutations", type=int, default=5, help="of contexts that are only described (default 5)")
    parser.add_argument("--cache", type=Path, default=Path("results/associations"), help="folder of finished fits")
    given = parser.parse_args()
    print("| corpus | contexts | " + " | ".join(_KINDS) + " |\n|---|---|" + "---|" * len(_KINDS))
    for name in given.only:
        corpus = CORPORA[name](given.data_folder)
        contexts, folder = sorted(corpus.contexts), given.cache / name.replace(" ", "_")
        random = permuted(corpus, 0)
        cases = [
            ("real, in the model", fitted(corpus, contexts, folder / "real.npz"), [corpus]),
            ("permuted, in the model", fitted(random, contexts, folder / "permuted.npz"), [random]),
        ]
        words = fitted(corpus, [], folder / "words.npz")
        cases.append(("real, not in the model", words, [corpus]))
        cases.append(("permuted, not in the model", words, [permuted(corpus, i) for i in range(given.permutations)]))
        for case, posterior, corpora in cases:
            table = pd.concat([part for one in corpora for part in rows(Description.from_posterior(posterior, one))])
            told = table.groupby("kind")[["naive", "notable"]].agg(["sum", "size"]).reindex(_KINDS, fill_value=0)
            cells = [
                f"{row['naive', 'sum']} -> {row['notable', 'sum']} of {row['naive', 'size']}"
                for _, row in told.iterrows()
            ]
            print(f"| {name} | {case} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
