"""``mc2 fit``: a saved corpus to a model, and what was found."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

#: the model of a fit by Gibbs sampling, unless one of these settings asks for another
DEFAULT_MODEL = {"document_concentration": "learn"}
_OTHER_MODELS = ("kernel", "one_cluster_per_document", "token_contexts")


def add_options(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument(
        "corpus", type=Path, help="folder written by 'mc2 import', 'mc2 corpus' (its train) or Corpus.save"
    )
    parser.add_argument(
        "--engine",
        default="gibbs",
        help="gibbs, svi or fastex (default gibbs; its documents have topic proportions of their own unless --set "
        "names document_concentration (inf is MC2), kernel, one_cluster_per_document or token_contexts)",
    )
    parser.add_argument(
        "--context",
        action="append",
        default=[],
        metavar="NAME=FAMILY",
        help="use a context: NAME=normal_gamma (numbers, dates), NAME=dirichlet (names; dirichlet:0.1 "
        "has a prior count of 0.1 of each in place of 1) or NAME=gamma_poisson "
        "(counts); may be given again",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting of the engine, such as start_topics=20 or topic_prior=1e-2, or a property of Spark "
        "(spark.master=..., docs/spark.md); may be given again",
    )
    parser.add_argument("--iterations", type=int, required=True, help="sweeps (gibbs, fastex) or epochs (svi)")
    parser.add_argument("--burn-in", type=int, help="iterations before the first sample (default: half of them)")
    parser.add_argument("--thin", type=int, default=1, help="iterations between samples (default 1)")
    parser.add_argument("--seed", type=int, default=0, help="the same seed gives the same bits (default 0)")
    parser.add_argument("--threads", type=int, default=1, help="the result does not depend on it (default 1)")
    parser.add_argument("--checkpoint-every", type=int, default=50, help="iterations between checkpoints (default 50)")
    parser.add_argument("--out", metavar="FOLDER", type=Path, required=True, help="for model, trace and provenance")


def run(options: argparse.Namespace) -> None:
    """Fit, write the files, and say what was found and what to do next."""
    from mc2core.base import storage
    from mc2core.corpus import Corpus
    from mc2core.engines.running.files import fit_corpus
    from mc2core.experiments.plan import parse_settings

    corpus, contexts = Corpus.load(options.corpus), dict(_family(text) for text in options.context)
    for name, family in contexts.items():
        if family["family"] == "normal_gamma" and name in corpus.contexts and name not in corpus.units:
            corpus = corpus.standardised(name)
    given = parse_settings(" ".join(options.set), "--set")
    if options.engine == "gibbs" and not any(given.get(name) for name in _OTHER_MODELS):
        given = DEFAULT_MODEL | given
    model, written, checkpoint = (options.out / name for name in ("model.npz", "provenance.json", "checkpoint.npz"))
    try:
        provenance = fit_corpus(
            corpus,
            engine=options.engine,
            contexts=contexts,
            settings={name: value for name, value in given.items() if not name.startswith("spark.")},
            spark={name: value for name, value in given.items() if name.startswith("spark.")},
            iterations=options.iterations,
            burn_in=options.burn_in,
            thin=options.thin,
            seed=options.seed,
            threads=options.threads,
            model=model,
            trace=options.out / "trace.tsv",
            provenance=written,
            checkpoint=checkpoint,
            checkpoint_every=options.checkpoint_every,
            leave_stopped=True,
        )
    except KeyboardInterrupt:
        stopped = storage.read_json(written).get("stopped_at") if written.is_file() else None
        so_far = f"; {model} holds what there is after {stopped:.4g} iterations" if stopped is not None else ""
        went = "goes on from the checkpoint" if checkpoint.is_file() else "starts anew, as there is no checkpoint yet"
        print(f"mc2: stopped; the same command {went}{so_far}", file=sys.stderr)
        raise SystemExit(130) from None
    print("\n".join(_summary(options, provenance)))


def _summary(options: argparse.Namespace, provenance: dict[str, Any]) -> list[str]:
    """What was found and what to do next, line by line."""
    from mc2core.engines.running.found import sentence

    model, found = options.out / "model.npz", provenance["found"]
    lines = [f"{model}: {provenance['iterations']} iterations in {provenance['seconds']:.1f} s"]
    if said := sentence(found):
        lines.append(said)
    concentration = provenance["settings"].get("document_concentration")  # FastEx has none
    if concentration == "learn":
        lines.append(
            "documents have topic proportions of their own (document_concentration=learn); "
            "--set document_concentration=inf is MC2, where those of a cluster share them"
        )
    if found["moving"]:
        longer = f"more iterations (--iterations {2 * options.iterations})"
        if "clusters" in found["moving"] and concentration == "inf":
            longer += ", or documents with topic proportions of their own (--set document_concentration=learn)"
        lines.append(f"their numbers are not yet those of the model: try {longer}")
    if not provenance["settings"].get("one_cluster_per_document"):  # an HDP has no clusters to describe
        lines.append(f"next: mc2 describe {model} {options.corpus} --out {options.out / 'found'}")
    lines.append(f"or: mc2 topics {model}; mc2 clusters {model} {options.corpus}; mc2 evaluate {model} CORPUS")
    return lines


def _family(text: str) -> tuple[str, dict[str, Any]]:
    """``"author=dirichlet:0.1"`` as (name, family settings); the number is the Dirichlet's concentration."""
    name, sign, family = text.partition("=")
    family, colon, number = family.partition(":")
    if not (name and sign and family) or (colon and family != "dirichlet"):
        raise ValueError(f"--context {text!r} must have the form NAME=FAMILY or NAME=dirichlet:CONCENTRATION")
    settings: dict[str, Any] = {"family": family}
    if colon:
        try:
            settings["concentration"] = float(number)
        except ValueError:
            raise ValueError(f"--context {text!r}: {number!r} is not a number") from None
    return name, settings
