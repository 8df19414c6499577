"""ICML 2014 figure 2: letters that each method finds."""

from __future__ import annotations

from mc2papers.report.captions import counted
from mc2papers.targets import Built, Files, Options, Target, options_of


def _build(files: Files, options: Options) -> Built:
    from itertools import islice
    from pathlib import Path

    from mc2core.corpus import Corpus
    from mc2core.posterior import Posterior
    from mc2papers.datasets.simulated.truth import Truth
    from mc2papers.icml2014 import letters

    (folder,) = (Path(path) for path in files["corpora"])
    n_seeds, loaded = options["n_seeds"], (Posterior.load(path) for path in files["models"])
    models = {run["method"]: list(islice(loaded, n_seeds)) for run in options["runs"].values()}
    truth = Truth.load(folder / "truth.npz")
    firsts = {method: fits[0] for method, fits in models.items()}
    corpus = Corpus.load(folder / "train")
    figure, drawn = letters.draw(corpus, truth, firsts, n_seeds)
    claims = []
    for method, fits in models.items():
        if method.startswith("MC2"):
            claims += letters.judge_recovery(corpus, truth, fits, options["sweeps"], method)
    return Built(drawn, figure=figure, claims=[*claims, *letters.judge_rivals(truth, models)])


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
    options=options_of("runs", sweeps="fit.letters.iterations", n_seeds="figure2.seeds", corpus="corpora.letters"),
)
