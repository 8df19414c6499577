"""ICML 2014 figure 2: letters that each method finds."""

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
        f"Letters data ({corpus['n_documents']} documents, drawn as in the paper): topics as images (darker is "
        f"likelier), for the truth, MC2 after {options['sweeps']} Gibbs sweeps as printed and with our interleaved "
        "kernel, LDA with 13 topics and the HDP. Below: topic shares and context density of MC2's largest clusters. "
        f"Drawn: the first of {counted(options['n_seeds'], 'fit')}.\n\nDocuments have {corpus['n_tokens']} pixels; "
        f"noise is {corpus['noise']}. Claims are judged over all fits. A letter is found if a topic lies within "
        "0.25 in L1 distance. The data do not identify the letters: they determine four distributions over pixels, "
        "which many sets of topics give (tests/mc2papers/datasets/simulated/test_letters_claims.py)."
    )


TARGET = Target(
    title="ICML 2014, figure 2: letters, words and their context, truth next to MC2, LDA and HDP",
    shows="letters found",
    build=_build,
    caption=_caption,
    inputs={"corpora": "corpora", "models": "models"},
    datasets=("letters",),
    options=_options,
)
