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
    figure, drawn = letters.draw(Corpus.load(folder / "train"), truth, firsts, n_seeds)
    ours = [method for method in models if method.startswith("MC2")]
    claims = [
        one for method in ours for one in letters.judge_recovery(truth, models[method], options["sweeps"], method)
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
        f"Letters data ({corpus['n_documents']} documents of {corpus['n_tokens']} pixels, noise {corpus['noise']}): "
        f"topics as 7 x 5 images, truth above what MC2 found in {options['sweeps']} Gibbs sweeps with the number of "
        "each document as context, by our interleaved kernel and by collapsed Gibbs as printed, LDA told 13 topics and "
        "HDP without any context; darker is likelier. MC2 and HDP start from 20 topics at random, MC2 from 20 clusters "
        "of documents by k-means of their words, as the paper does not say where it starts. Below: of MC2 by the "
        "interleaved kernel, the share of each topic in each "
        "cluster, and the number's density in each cluster (weighted by the cluster's size) over its histogram. Found "
        "topics are matched one to one with the letters, clusters with the words by the documents that they share; a "
        "letter counts as found "
        "within 0.25 of L1 distance (sampling noise alone is near 0.1). Two letters are told apart by a fit in which "
        "they have such a topic each, nearer to its letter than to the average of the two (M and N are 0.40 apart, I "
        "and T 0.53), and mixed up by one in which they are not, but some topic is within 0.25 of that average and "
        "nearer to it than to either. The first "
        f"of {counted(options['n_seeds'], 'fit')} is drawn, the claims are judged over all. Paper: ICML 2014, "
        "figure 2, where 100 sweeps recover 4 clusters and 13 topics. The letters are not identified: a document's "
        "proportions are uniform over the distinct letters of its word, so these data tell of the letters only through "
        "four distributions over pixels, which many other sets of topics give as well "
        "(tests/mc2papers/datasets/simulated/test_letters_claims.py). Clusters of fewer than 3 % of the documents may "
        "stand beside the four, and topics beside the thirteen: a Dirichlet process always expects new ones, and its "
        "posterior does not settle on the true number however many documents there are (Miller and Harrison, 2013, A "
        "simple example of Dirichlet process mixture inconsistency for the number of components)."
    )


TARGET = Target(
    title="ICML 2014, figure 2: letters, words and their context, truth beside MC2, LDA and HDP",
    shows="letters found",
    build=_build,
    caption=_caption,
    inputs={"corpora": "corpora", "models": "models"},
    datasets=("letters",),
    options=_options,
    has_claims=True,
)
