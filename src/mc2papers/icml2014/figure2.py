"""ICML 2014 figure 2: the letters found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mc2papers.report.captions import counted
from mc2papers.targets import Built, Files, Options, Target

if TYPE_CHECKING:
    from mc2papers.configuration import Configuration


def _build(files: Files, options: Options) -> Built:
    from pathlib import Path

    from mc2core.corpus import Corpus
    from mc2core.posterior import Posterior
    from mc2papers.datasets.simulated.truth import Truth
    from mc2papers.icml2014 import letters

    (folder,) = (Path(path) for path in files["corpora"])
    n_seeds, loaded = options["n_seeds"], [Posterior.load(path) for path in files["models"]]
    models = {method: loaded[i * n_seeds : (i + 1) * n_seeds] for i, method in enumerate(options["methods"])}
    truth = Truth.load(folder / "truth.npz")
    firsts = {method: fits[0] for method, fits in models.items()}
    corpus = Corpus.load(folder / "train")
    figure, drawn = letters.draw(corpus, truth, firsts, n_seeds)
    ours = [method for method in models if method.startswith("MC2")]
    claims = [
        one
        for method in ours
        for one in letters.judge_recovery(corpus, truth, models[method], options["sweeps"], method)
    ]
    return Built(drawn, figure=figure, claims=[*claims, *letters.judge_rivals(truth, models)])


def _options(configuration: Configuration, name: str) -> dict[str, Any]:
    config = configuration.config
    return {
        "sweeps": config["fit"]["letters"]["iterations"],
        "n_seeds": config["figure2"]["seeds"],
        "methods": [configuration.runs[run]["method"] for run in configuration.runs_of(name)],
        "corpus": config["corpora"]["letters"],
    }


def _caption(options: Options) -> str:
    corpus = options["corpus"]
    return (
        f"Letters data ({corpus['n_documents']} documents, drawn as in the paper): topics as images, the truth above "
        f"MC2 after {options['sweeps']} Gibbs sweeps, LDA with 13 topics and the HDP. Below: share of each topic in "
        "each cluster of MC2, and the density of the number in each cluster, as printed and by our interleaved kernel. "
        f"The first of {counted(options['n_seeds'], 'fit')} is drawn.\n\nDocuments have {corpus['n_tokens']} pixels, "
        f"noise is {corpus['noise']}, and darker is likelier. Claims are judged over all fits. Paper: ICML 2014, "
        "figure 2. MC2 and HDP start from 20 topics at random, MC2 from 20 clusters by k-means of the words; the paper "
        "does not say where it starts. Found topics are matched one to one with the letters, and clusters with the "
        "words. A letter counts as found within 0.25 of L1 distance; sampling noise alone is near 0.1. Two letters are "
        "told apart if each has such a topic, nearer to it than to the average of the two, and mixed up if not and "
        "some topic is near that average. These data do not identify the letters: a document's proportions are uniform "
        "over the letters of its word, so that the data determine only four distributions over pixels, which many "
        "other sets of topics give as well (tests/mc2papers/datasets/simulated/test_letters_claims.py). The posterior "
        "of a Dirichlet process does not settle on the true number of clusters (Miller and Harrison, 2013)."
    )


TARGET = Target(
    title="ICML 2014, figure 2: letters, words and their context, truth beside MC2, LDA and HDP",
    shows="letters found",
    build=_build,
    caption=_caption,
    inputs={"corpora": "corpora", "models": "models"},
    datasets=("letters",),
    options=_options,
)
