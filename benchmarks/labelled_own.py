"""Documents of their own on real labelled corpora, words only: agreement with classes, K over sweeps, beside k-means.

    python benchmarks/labelled_own.py MIRROR [--half validation] [--corpora uiucsports,ohsumed] [--starts 20:50,100:50]
        [--models own,mc2,svi,kmeans] [--seeds 0] [--sweeps 60]

One JSON line for each fit: clusters after every sixth of the sweeps, those of at least 1 % of the documents, NMI and
ARI of the last state, omega, processor seconds (compilation included in the first). k-means is told the classes; svi is
documents of their own by ten epochs of SVI, all else by rule.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np

from mc2core import fit
from mc2core.corpus import Corpus, parts
from mc2core.engines.baselines.kmeans import KMeans
from mc2core.engines.gibbs.engine import Gibbs
from mc2core.engines.svi.engine import SVI
from mc2core.model.clustering import adjusted_rand_index, nmi
from mc2core.sources.collections import labelled_images, labelled_texts


def read(name: str, folder: Path) -> Corpus:
    """The whole corpus of this name."""
    if name == "labelme":
        return labelled_images.read_labelme(folder / "images.tgz")
    if name == "uiucsports":
        files = folder / "uiuc-sports-annotations.txt", folder / "uiuc-sports-info.txt"
        return labelled_images.read_sports(*files)[0]
    if name == "ohsumed":
        return labelled_texts.read_ohsumed(folder / "ohsumed_single_23.tar.gz")[0]
    return labelled_texts.read_addresses(folder / "state_union.zip")[0]


def main() -> None:
    """Print a JSON line for every fit."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mirror", type=Path)
    parser.add_argument("--half", choices=parts.HALVES, default="validation")
    parser.add_argument("--corpora", default="uiucsports,stateunion,ohsumed,labelme")
    parser.add_argument("--starts", default="20:50")
    parser.add_argument("--models", default="own,mc2")
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--sweeps", type=int, default=60)
    parser.add_argument("--settings", type=json.loads, default={}, help="further settings of Gibbs, as JSON")
    options = parser.parse_args()
    for name in options.corpora.split(","):
        corpus = parts.half(read(name, options.mirror / "labelled"), options.half)
        classes = len(np.unique(corpus.labels))
        for seed in map(int, options.seeds.split(",")):
            if "kmeans" in options.models:
                found = KMeans(n_clusters=[classes]).fit(Corpus(corpus.content), seed).result.solutions[f"k{classes}"]
                show({"corpus": name, "model": "kmeans", "seed": seed}, corpus, np.asarray(found), {})
            if "svi" in options.models.split(","):
                show_fit(
                    corpus, SVI(document_concentration="learn"), 10, {"corpus": name, "model": "svi", "seed": seed}
                )
            for model in options.models.split(","):
                for start in options.starts.split(",") if model in ("own", "mc2") else ():
                    n_clusters, n_topics = (int(part) for part in start.split(":"))
                    engine = Gibbs(
                        document_concentration="learn" if model == "own" else "inf", start_clusters=n_clusters,
                        start_topics=n_topics, **options.settings,
                    )  # fmt: skip
                    about = {"corpus": name, "model": model, "start": start, "seed": seed}
                    show_fit(corpus, engine, options.sweeps, about)


def show_fit(corpus: Corpus, engine: Gibbs | SVI, iterations: int, about: dict) -> None:
    """Fit, and print the line of its last state."""
    processor = time.process_time()
    done = fit(corpus, engine, iterations=iterations, seed=about["seed"], progress=False)
    trace, step = done.trace, max(iterations // 6, 1)
    more = {
        "K over sweeps": trace["clusters"].iloc[step - 1 :: step].tolist(),
        "topics": int(trace["topics"].iloc[-1]),
        "omega": round(float(trace.get("document_concentration", trace["clusters"]).iloc[-1]), 1),
        "processor seconds": round(time.process_time() - processor, 1),
    }
    show(about, corpus, done.model.last.cluster, more)


def show(about: dict, corpus: Corpus, cluster: np.ndarray, more: dict) -> None:
    """Print the line of one clustering."""
    sizes = np.bincount(cluster)
    figures = {
        "K": int((sizes > 0).sum()),
        "of 1 %": int((sizes >= 0.01 * len(cluster)).sum()),
        "NMI": round(nmi(corpus.labels, cluster), 3),
        "ARI": round(adjusted_rand_index(corpus.labels, cluster), 3),
    }
    print(json.dumps(about | figures | more), flush=True)


if __name__ == "__main__":
    main()
