"""ICML 2014 figure 2: the letters found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mc2core.experiments.targets import Built, Files, Options, Target

if TYPE_CHECKING:
    from mc2core.experiments.plan import Plan


def _build(files: Files, options: Options) -> Built:
    from pathlib import Path

    from mc2core.corpus import Corpus
    from mc2core.experiments.icml2014.parts import letters
    from mc2core.experiments.report.claims import Claim
    from mc2core.model import Model
    from mc2core.sources.simulated.shapes import Truth

    (folder,) = (Path(path) for path in files["corpora"])
    models = [Model.load(path) for path in files["models"]]
    truth = Truth.load(folder / "truth.npz")
    figure, drawn = letters.draw(Corpus.load(folder / "train"), truth, {"MC2": models[0]}, len(models))
    claims = [
        *letters.judge(truth, models, options["sweeps"]),
        Claim("letters", "LDA and HDP mix up M and N, I and T", None, "no fit of LDA and HDP"),
    ]
    return Built(drawn, figure=figure, claims=claims)


def _options(plan: Plan, name: str) -> dict[str, Any]:
    config = plan.config
    return {
        "sweeps": config["fit"]["letters"]["iterations"],
        "n_seeds": config["seeds"],
        "corpus": config["corpora"]["letters"],
    }


def _caption(options: Options) -> str:
    corpus = options["corpus"]
    return (
        f"Letters data ({corpus['n_documents']} documents of {corpus['n_tokens']} pixels, noise {corpus['noise']}): "
        f"topics as 7 x 5 images, truth above what MC2 found in {options['sweeps']} Gibbs sweeps with the number of "
        "each document as context; darker is likelier. Below: the share of each topic in each cluster, and the "
        "number's density in each cluster (weighted by the cluster's size) over its histogram. Found topics are "
        "matched one to one with the letters; a letter counts as found within 0.25 of L1 distance (sampling noise "
        f"alone is near 0.1). The first of {options['n_seeds']} fits is drawn, the claims are judged over all. Paper: "
        "ICML 2014, figure 2, where 100 sweeps recover 4 clusters and 13 topics. A document's proportions are uniform "
        "over the distinct letters of its word, so these data tell of the letters only through four distributions over "
        "pixels, which many other sets of topics give as well (tests/sources/simulated/test_letters_claims.py). The "
        "paper does not print the variances of the numbers; ours are those of the dotted curves."
    )


TARGET = Target(
    title="ICML 2014, figure 2: letters, words and their context, truth beside MC2",
    shows="letters found",
    build=_build,
    caption=_caption,
    inputs={"corpora": "corpora", "models": "models"},
    datasets=("letters",),
    options=_options,
    has_claims=True,
)
