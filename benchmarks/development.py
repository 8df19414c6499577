"""Labelled corpora for the choice of defaults, and results of methods on them: ``python -m benchmarks.development``.

No reported result comes from these corpora. They are texts that are installed on a Debian machine, validation halves
of labelled corpora, and corpora drawn from the model. The texts depend on the installed versions. If the source of a
corpus is missing, the corpus is skipped and the reason is printed. Scores are stored in ``--cache`` by corpus, method
and seed, and computed again if the corpus or the code of the library has changed.
"""

from __future__ import annotations

import ast
import gzip
import importlib.util
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from benchmarks import recovery, starts
from benchmarks.suite import DATA_FOLDER, parser_of
from mc2core import Corpus
from mc2core.base import storage
from mc2core.inference import FastEx
from mc2core.inference.running.loop import fit
from mc2core.models import MC2, Mixture
from mc2core.posterior.clustering import adjusted_rand_index, nmi
from mc2core.posterior.descent import find_hierarchy
from mc2papers.baselines.assignments import Assignments
from mc2papers.baselines.registry import make_baseline
from mc2papers.code_digest import code_digest

Labelled = Iterable[tuple[str, str]]  # text and class
_SEED = 0
_MIN_DF = 2
_TOPICAL = (
    "science", "games", "graphics", "sound", "math", "mail", "electronics", "hamradio", "database", "fonts", "editors",
    "video", "httpd", "vcs",
)  # fmt: skip
_MANUALS = ("openssl", "git-man", "systemd", "iproute2", "libxt-dev", "coreutils", "util-linux", "manpages-dev")
_MODULES = (
    "numpy", "scipy", "pandas", "sklearn", "matplotlib", "docutils", "sphinx", "numba", "sqlalchemy", "snakemake",
    "PIL",
)  # fmt: skip
_WORDS_OF_LONG = 150


# -- sources: each raises FileNotFoundError if it is missing -------------------------------------------------------
@cache
def packages() -> pd.DataFrame:
    """Return a table of Debian packages: name, source package, section, tags and one-line description."""
    try:
        told = subprocess.run(["apt-cache", "dumpavail"], capture_output=True, check=True).stdout
    except (FileNotFoundError, subprocess.CalledProcessError) as error:
        raise FileNotFoundError("apt-cache, with its lists of packages") from error
    rows = []
    for paragraph in told.decode(errors="replace").replace("\n ", " ").split("\n\n"):
        fields = dict(line.split(": ", 1) for line in paragraph.splitlines() if ": " in line)
        if "Description" in fields:
            source = fields.get("Source", fields["Package"]).split()[0]
            section = fields.get("Section", "").rpartition("/")[2]
            rows.append((fields["Package"], source, section, fields.get("Tag", ""), fields["Description"]))
    if not rows:
        raise FileNotFoundError("lists of packages of apt (apt-get update)")
    return pd.DataFrame(rows, columns=["package", "source", "section", "tags", "text"]).drop_duplicates("text")


def of_sources() -> Labelled:
    """Yield descriptions of at most 80 packages from each of 120 source packages; the source package is the class."""
    groups = {str(name): rows for name, rows in packages().groupby("source") if len(rows) >= 8}
    for name in np.random.default_rng(_SEED).permutation(sorted(groups))[:120]:
        for text in groups[name]["text"].iloc[:80]:
            yield text, name


def of_sections() -> Labelled:
    """Yield descriptions of at most 200 packages from each section on a subject; the section is the class."""
    for name in _TOPICAL:
        rows = packages()[packages()["section"] == name]
        for text in rows["text"].sample(min(len(rows), 200), random_state=_SEED):
            yield text, name


def of_fields() -> Labelled:
    """Yield descriptions of packages with exactly one field of science or arts; the field is the class."""
    for text, tags in packages()[["text", "tags"]].to_numpy().tolist():
        fields = set(re.findall(r"field::(\w+)", tags)) - {"TODO"}  # TODO marks packages without a field
        if len(fields) == 1:
            yield text, fields.pop()


def of_manuals() -> Labelled:
    """Yield the first words of at most 150 manual pages of each package; the package is the class."""
    for name in _MANUALS:
        lists = [*Path("/var/lib/dpkg/info").glob(f"{name}.list"), *Path("/var/lib/dpkg/info").glob(f"{name}:*.list")]
        if not lists:
            raise FileNotFoundError(f"the Debian package {name}")
        pages = [Path(line) for line in re.findall(r"(?m)^/usr/share/man/man\d/.*\.gz$", lists[0].read_text())]
        pages = sorted(one for one in pages if one.is_file() and not one.is_symlink())
        for page in pages[:: max(1, len(pages) // 150)][:150]:
            yield _first(plain(gzip.decompress(page.read_bytes()).decode(errors="replace")), _WORDS_OF_LONG), name


def plain(page: str) -> str:
    """Return the text of a manual page without the commands and escapes of roff."""
    return re.sub(r"(?m)^[.'](\\\"|[a-zA-Z]+).*$|\\[fF]\S|\\\S", " ", page)


@cache
def of_docstrings() -> list[tuple[str, str]]:
    """Return at most 150 docstrings of 30 or more words from each Python package; the package is the class."""
    found = []
    for name in _MODULES:
        spec = importlib.util.find_spec(name)
        if spec is None or not spec.submodule_search_locations:
            continue
        texts = sorted(set(_docstrings(Path(spec.submodule_search_locations[0]))))
        found += [(_first(text, _WORDS_OF_LONG), name) for text in texts[:: max(1, len(texts) // 150)][:150]]
    return found


def _docstrings(folder: Path) -> Iterator[str]:
    for path in sorted(folder.rglob("*.py")):
        if "tests" in path.parts:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8", errors="replace"))):
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
                text = ast.get_docstring(node)
                if text and len(text.split()) >= 30:
                    yield text


def _first(text: str, n_words: int) -> str:
    return " ".join(text.split()[:n_words])


# -- corpora -------------------------------------------------------------------------------------------------------
def drawn_texts(
    source: Callable[[], Labelled], most: int = 2000, beginning: int | None = None
) -> tuple[list[str], list[str]]:
    """Return at most ``most`` random texts, each cut to its first ``beginning`` words, and their classes."""
    rows = list(source())
    chosen = np.sort(np.random.default_rng(_SEED).permutation(len(rows))[:most])
    texts, labels = zip(*(rows[i] for i in chosen), strict=True)
    return [_first(text, beginning) if beginning else text for text in texts], list(labels)


def from_texts(source: Callable[[], Labelled], most: int = 2000, beginning: int | None = None) -> Corpus:
    """Return the texts of :func:`drawn_texts` as a corpus, without empty documents."""
    texts, labels = drawn_texts(source, most, beginning)
    corpus = Corpus.from_texts(texts, labels=labels, min_df=_MIN_DF)
    return corpus.subset(np.flatnonzero(corpus.document_lengths))


def drawn(n_classes: int, n_documents: int, length: int, n_topics: int) -> Corpus:
    """Draw documents from MC2 with a document level, with class sizes proportional to 1 / rank."""
    rng = np.random.default_rng([_SEED, n_classes, n_documents, length])
    words = rng.dirichlet(np.full(3000, 0.01), n_topics)
    tau = np.maximum(rng.dirichlet(2.0 * rng.dirichlet(np.full(n_topics, 5.0)), n_classes), 1e-9)
    shares = 1.0 / np.arange(3, n_classes + 3)
    label = rng.choice(n_classes, n_documents, p=shares / shares.sum())
    counts = [rng.multinomial(length, rng.dirichlet(20.0 * tau[k]) @ words) for k in label]
    return Corpus(sp.csr_matrix(np.array(counts)), [f"word {w}" for w in range(3000)], labels=label)


def recovered() -> Corpus:
    """Return a corpus of :mod:`benchmarks.recovery` with 8 clusters and 1,000 documents of 100 words."""
    one = recovery.draw(recovery.Cell(8, 1000, 100, 20.0), _SEED)
    return Corpus(one.corpus.content, one.corpus.vocabulary, labels=one.cluster)


def half_of(corpus: Callable[[Path], Corpus], data_folder: Path) -> Corpus:
    if not data_folder.is_dir():
        raise FileNotFoundError(f"the local data folder {data_folder} (--data-folder, MC2_DATA_FOLDER)")
    return corpus(data_folder).with_contexts({})


def corpora(data_folder: Path) -> dict[str, Callable[[], Corpus]]:
    """Return functions that make the corpora, by name: texts of different length with few or many classes."""
    return {
        "sources": partial(from_texts, of_sources),
        "drawn-short": partial(drawn, 100, 2000, 8, 80),
        "sections": partial(from_texts, of_sections),
        "fields": partial(from_texts, of_fields),
        "docstrings-short": partial(from_texts, of_docstrings, 2000, 15),
        "manuals": partial(from_texts, of_manuals, 1000),
        "docstrings": partial(from_texts, of_docstrings, 1200),
        "drawn-long": recovered,
        "sports": partial(half_of, starts.sports, data_folder),
        "abstracts": partial(half_of, starts.abstracts, data_folder),
    }


# -- methods -------------------------------------------------------------------------------------------------------
def mixture(corpus: Corpus, seed: int, n_clusters: int | None = None, sweeps: int = 60, **priors: Any) -> np.ndarray:
    """Return the clusters that FastEx finds with exact scores; by default, K is the number of classes."""
    model = Mixture(n_clusters=n_clusters or _n_classes(corpus), **priors)
    return fit(corpus, model, FastEx(proposal="exact"), iterations=sweeps, seed=seed, progress=False).posterior.cluster


def topics(corpus: Corpus, seed: int, is_told: bool = False) -> dict[str, np.ndarray]:
    """Return the clusters of a default fit of two chains and, unless K is fixed, of its recommended cut."""
    model = MC2(n_clusters=_n_classes(corpus) if is_told else None)
    posterior = fit(corpus, model, seed=seed, chains=2, progress=False).posterior
    if is_told:
        return {"": posterior.cluster}
    hierarchy = find_hierarchy(posterior, corpus)
    return {"": posterior.cluster, ", recommended": hierarchy.cut(hierarchy.recommended)}


def rival(name: str, corpus: Corpus, seed: int, **settings: Any) -> np.ndarray:
    """Return the clusters of a baseline with K fixed."""
    result = make_baseline(name, {"n_clusters": _n_classes(corpus), **settings}).fit(corpus, seed).result
    assert isinstance(result, Assignments)
    return next(iter(result.solutions.values()))


def _n_classes(corpus: Corpus) -> int:
    return len(np.unique(np.asarray(corpus.labels)))


_GSDMM: dict[str, Any] = {"topic_word_prior": 0.1, "weight_prior": 0.1}
METHODS: dict[str, Callable[[Corpus, int], Any]] = {
    "MC2": topics,
    "GSDMM, K at most 300": partial(mixture, n_clusters=300, sweeps=30, **_GSDMM),
    "Mixture, K at most 300": partial(mixture, n_clusters=300),
    "MC2, K given": partial(topics, is_told=True),
    "GSDMM, K given": partial(mixture, sweeps=30, **_GSDMM),
    "Mixture, K given": mixture,
    "K-means (K given)": partial(rival, "kmeans"),
    "LSA + K-means (K given)": partial(rival, "kmeans", dimension=100),
    "NMF (K given)": partial(rival, "nmf"),
}


def rows_of(name: str, corpus: Corpus, method: str, seed: int, folder: Path) -> list[dict[str, Any]]:
    """Return ARI, NMI and number of clusters of a method; load them from ``folder`` if they are stored there."""
    digest = corpus.digest[:12]
    path = folder / f"{name}-{digest}-{re.sub(r'[^a-z0-9]+', '-', method.lower())}-{seed}-{_code()}.json"
    if path.is_file():
        return list(json.loads(path.read_text()))
    started = time.process_time()
    found = METHODS[method](corpus, seed)
    seconds = time.process_time() - started
    labels = np.asarray(corpus.labels)
    rows = [
        {
            "corpus": name, "method": method + suffix, "seed": seed, "K": len(np.unique(cluster)),
            "ARI": adjusted_rand_index(labels, cluster), "NMI": nmi(labels, cluster),
            "CPU_s": seconds,
        }
        for suffix, cluster in (found if isinstance(found, dict) else {"": found}).items()
    ]  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    storage.write_json(path, rows)
    return rows


@cache
def _code() -> str:
    return code_digest(
        "mc2core.inference.gibbs.engine", "mc2core.inference.fastex.engine", "mc2papers.baselines.registry"
    )[:12]


def as_markdown(table: Sequence[dict[str, Any]]) -> str:
    """Return one line per corpus and method: ARI and number of clusters per seed, mean NMI and mean CPU seconds."""
    lines = ["| corpus | method | ARI, by seed | NMI | K | CPU s |", "|---" * 6 + "|"]
    for (name, method), rows in pd.DataFrame(table).groupby(["corpus", "method"], sort=False):
        scores, numbers = (", ".join(format(one, kind) for one in rows[c]) for c, kind in (("ARI", ".3f"), ("K", "d")))
        lines.append(
            f"| {name} | {method} | {scores} | {rows['NMI'].mean():.3f} | {numbers} | {rows['CPU_s'].mean():.1f} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = parser_of("development", __doc__, corpora(DATA_FOLDER))
    parser.add_argument(
        "--methods", nargs="+", choices=METHODS, default=list(METHODS), metavar="METHOD", help="; ".join(METHODS)
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2], help="of the fits")
    parser.add_argument("--cache", type=Path, default=Path("results/development"), help="folder of fits that are done")
    given = parser.parse_args()
    table: list[dict[str, Any]] = []
    for name in given.only:
        try:
            corpus = corpora(given.data_folder)[name]()
        except FileNotFoundError as error:
            print(f"{name}: left out; this machine lacks {error}", file=sys.stderr)
            continue
        print(f"{name}: {corpus.n_documents} documents of {corpus.n_tokens / corpus.n_documents:.1f} words, "
              f"{_n_classes(corpus)} classes", file=sys.stderr, flush=True)  # fmt: skip
        for method in given.methods:
            for seed in given.seeds:
                table += rows_of(name, corpus, method, seed, given.cache)
    print(as_markdown(table), end="")


if __name__ == "__main__":
    main()
