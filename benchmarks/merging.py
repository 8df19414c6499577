"""Merged to the number of classes: agreement with the labels before and after, on the report half of labelled corpora.

python benchmarks/merging.py FOLDER_OF_THE_MIRROR

One fit each, seed 0: 60 sweeps of Gibbs and FastEx (every cluster scored), 4 epochs of SVI.
"""

import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from mc2core import Corpus, fit
from mc2core.engines import SVI, FastEx, Gibbs
from mc2core.model import clustering
from mc2core.model.merging import merge_tree
from mc2core.sources.catalogue import prepare

FILES = {
    "labelme": ["images.tgz"],
    "uiucsports": ["uiuc-sports-annotations.txt", "uiuc-sports-info.txt"],
    "ohsumed": ["ohsumed_single_23.tar.gz"],
}
ENGINES = {
    "MC2": (Gibbs(), 60),
    "documents of their own": (Gibbs(document_concentration="learn"), 60),
    "FastEx": (FastEx(proposal="exact"), 60),
    "SVI": (SVI(), 4),
}


def main(mirror):
    print("| corpus | model | K | ARI | NMI | merged to | ARI | NMI | CPU seconds of the tree |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name, files in FILES.items():
        with TemporaryDirectory() as folder:
            paths = {"files": [mirror / "labelled" / file for file in files]}
            prepare(name, Path(folder) / name, source="real", seed=0, test_fraction=0.0, settings={}, files=paths)
            corpus = Corpus.load(Path(folder) / name / "train")
            for model, (engine, iterations) in ENGINES.items():
                row(
                    name,
                    model,
                    corpus,
                    fit(corpus, engine, iterations=iterations, seed=0, burn_in=iterations - 1).model,
                )


def row(name, title, corpus, model):
    merge_tree(model)  # compiles
    start = time.process_time()
    tree = merge_tree(model)
    seconds = time.process_time() - start
    n_classes = len(set(corpus.labels.tolist()))
    cells = []
    for clusters in (model.last.cluster, tree.cut(min(n_classes, tree.n_clusters))[model.last.cluster]):
        cells += [clustering.adjusted_rand_index(corpus.labels, clusters), clustering.nmi(corpus.labels, clusters)]
    before, after = (f"{ari:.3f} | {nmi:.3f}" for ari, nmi in (cells[:2], cells[2:]))
    print(f"| {name} | {title} | {tree.n_clusters} | {before} | {n_classes} | {after} | {seconds:.2f} |", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
