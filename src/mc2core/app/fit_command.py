"""``mc2 fit``: a saved corpus to a model, and what was found."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

#: seconds of compiling from which they are told; kernels that are there already load in fewer
_COMPILED = 10.0


def add_options(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument("corpus", type=Path, help="folder written by 'mc2 import' or Corpus.save")
    parser.add_argument(
        "--engine",
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
    parser.add_argument("--iterations", type=int, help="sweeps (gibbs, fastex; default 60) or epochs (svi; default 10)")
    parser.add_argument(
        "--burn-in", type=int, help="iterations before the first sample (default: half of --iterations)"
    )
    parser.add_argument("--thin", type=int, default=1, help="iterations from one sample to the next (default 1)")
    parser.add_argument("--seed", type=int, default=0, help="the same seed gives the same bits (default 0)")
    parser.add_argument("--threads", type=int, default=1, help="the result does not depend on it (default 1)")
    parser.add_argument("--checkpoint-every", type=int, default=50, help="iterations between checkpoints (default 50)")
    parser.add_argument("--out", metavar="FOLDER", type=Path, required=True, help="for model, trace and provenance")


def run(options: argparse.Namespace) -> None:
    """Fit, write the files, and say what was found and what to do next."""
    _check_folder(options.out, options.corpus)
    try:
        provenance = _fit(options)
    except (KeyboardInterrupt, SystemExit) as stop:  # SIGINT, SIGTERM
        print(f"mc2: stopped; {_left_by_a_stop(options.out)}", file=sys.stderr)
        raise SystemExit(stop.code if isinstance(stop, SystemExit) else 130) from None
    print("\n".join(_summary(options, provenance)))


def _check_folder(out: Path, corpus: Path) -> None:
    """ValueError where the files of a fit cannot be in ``out``, or would be among those of its corpus."""
    for one in (out, *out.parents):
        if one.exists() and not one.is_dir():
            raise ValueError(f"--out {out}: {one} is a file; a folder is needed")
    if out.resolve() == corpus.resolve():
        raise ValueError(f"--out {out} is the folder of the corpus; a fit needs one of its own")


def _fit(options: argparse.Namespace) -> dict[str, Any]:
    """Read the corpus, fit and write the files; returns the provenance."""
    from mc2core.base.progress import work

    with work("reading the corpus"):
        from mc2core.base.settings import parse_settings
        from mc2core.corpus import Corpus
        from mc2core.inference.registry import DEFAULT_ENGINE, with_default_model
        from mc2core.inference.running.files import fit_corpus

        corpus, contexts = Corpus.load(options.corpus), dict(_family(text) for text in options.context)
    for name, family in contexts.items():
        if family["family"] == "normal_gamma" and name in corpus.contexts and name not in corpus.units:
            corpus = corpus.standardised(name)
    engine = options.engine or DEFAULT_ENGINE
    given = with_default_model(engine, parse_settings(" ".join(options.set), "--set"))
    model, written, checkpoint = (options.out / name for name in ("model.npz", "provenance.json", "checkpoint.npz"))
    if model.is_file() and not checkpoint.is_file():
        print(f"mc2: the model{_length(written)} in {options.out} will be replaced", file=sys.stderr)
    return fit_corpus(
        corpus,
        engine=engine,
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
        keep_all=True,
    )


def _left_by_a_stop(out: Path) -> str:
    """What the same command will do, and what the model is of."""
    from mc2core.base import storage

    model, written, checkpoint = (out / name for name in ("model.npz", "provenance.json", "checkpoint.npz"))
    stopped = storage.read_json(written).get("stopped_at") if written.is_file() else None
    so_far = f"; {model} holds what there is after {stopped:.4g} iterations" if stopped is not None else ""
    went = "goes on from the checkpoint" if checkpoint.is_file() else "starts anew, as there is no checkpoint yet"
    return f"the same command {went}{so_far}"


def _length(provenance: Path) -> str:
    """ " of 60 iterations", as told beside a model; "" where that is not to be had."""
    from mc2core.base import storage

    try:
        about = storage.read_json(provenance)
        return f" of {about.get('stopped_at', about['iterations']):g} iterations"
    except (AttributeError, KeyError, OSError, TypeError, ValueError):
        return ""


def _summary(options: argparse.Namespace, provenance: dict[str, Any]) -> list[str]:
    """What was found and what to do next, line by line."""
    from mc2core.inference.running.summary import sentence

    model, found, settings = options.out / "model.npz", provenance["found"], provenance["settings"]
    took = f"{model}: {provenance['iterations']} iterations in {provenance['seconds']:.1f} s"
    if provenance["compile_seconds"] >= _COMPILED:
        took += f", after {provenance['compile_seconds']:.0f} s of compiling kernels (once)"
    said = sentence(found)
    if said:
        others = "--seed or start_topics" if "start_topics" in settings else "--seed"
        said += f"; other values of {others} may end elsewhere"
    lines = [took, *([said] if said else []), f"model: {_name_of(settings)}"]
    lines.append(
        f"for more iterations: the same command with --iterations {2 * provenance['iterations']} goes on from here"
    )
    if settings.get("one_cluster_per_document"):  # no clusters to describe
        return [*lines, f"next: mc2 topics {model}; mc2 evaluate {model} CORPUS"]
    lines.append(f"next: mc2 describe {model} {options.corpus} --out {options.out / 'description'}")
    lines.append(f"or: mc2 topics {model}; mc2 clusters {model} {options.corpus}; mc2 evaluate {model} CORPUS")
    return lines


def _name_of(settings: dict[str, Any]) -> str:
    """The model that an engine of these settings fits."""
    omega = settings.get("document_concentration")
    if omega is None:
        return f"FastEx, {settings['n_clusters']} clusters at most, each with words of its own"
    if settings.get("one_cluster_per_document"):
        name = "the HDP" if omega == "inf" else f"the HDP of three levels (document_concentration={omega})"
        if settings["token_contexts"]:
            name = "npTOT, an HDP whose topics emit times (token_contexts)"
        return f"{name}; each document is its own cluster (one_cluster_per_document)"
    if omega == "inf":
        return "MC2, the documents of a cluster share their topic proportions (document_concentration=inf)"
    return (
        f"documents have topic proportions of their own (document_concentration={omega}); "
        "--set document_concentration=inf is MC2, where those of a cluster share them"
    )


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
