"""``mc2 fit``: fit a model to a saved corpus, and print the result."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import Any

from mc2core.app.commands import add_threads, say, tell
from mc2core.inference.base import AUTO

#: seconds of compilation from which they are reported; loading of stored kernels takes less
_COMPILED = 10.0
#: iterations from which on it is known whether numbers are level
_FEWEST = 16


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("corpus", type=Path, help="folder written by 'mc2 import' or Corpus.save")
    parser.add_argument(
        "--model",
        help="model: mc2, hdp, nptot or mixture (default: mc2 with a document level; --set document_level=false is the "
        "model of the paper)",
    )
    parser.add_argument(
        "--engine", help="inference engine: gibbs, svi or fastex (default: gibbs; fastex for a mixture)"
    )
    parser.add_argument(
        "--clusters",
        type=int,
        metavar="N",
        help="number of clusters (mc2, mixture); some may stay empty (default: mc2 infers it, a "
        "mixture has at most 100)",
    )
    parser.add_argument(
        "--context",
        action="append",
        default=[],
        metavar="NAME[:FAMILY[,SETTING=VALUE...]]",
        help="use a context, by default with the family of its kind. Families: normal_gamma (numbers, dates), "
        "dirichlet (names), gamma_poisson (counts), beta_bernoulli (zeros and ones), and for vectors "
        "diagonal_normal_gamma, gauss_wishart, gamma_poisson_vector, beta_bernoulli_vector. Settings: "
        "dirichlet,concentration=0.1, and for all families strength, such as normal_gamma,strength=0.1 to weaken "
        "the context; may be repeated",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="setting of the model or engine, such as topic_word_prior=1e-2 or start_topics=20, or a property of Spark "
        "(spark.master=..., docs/how_to/spark.md); may be repeated",
    )
    parser.add_argument(
        "--iterations",
        type=_iterations,
        metavar="N|auto",
        help="number of sweeps (gibbs, fastex; default 60) or epochs (svi; default 10); auto doubles the sweeps until "
        "log joint, clusters and topics are stable, up to 960",
    )
    parser.add_argument(
        "--burn-in", type=int, help="iterations before the first sample (default: half of --iterations)"
    )
    parser.add_argument("--thin", type=int, default=1, help="keep every N-th iteration as a sample (default 1)")
    parser.add_argument("--seed", type=int, default=0, help="seed; the same seed gives the same result (default 0)")
    parser.add_argument(
        "--chains",
        type=int,
        help="number of independent runs (chains); their samples are pooled, and their agreement shows how certain the "
        "clusters are. Each takes the processor time and memory of one fit; two chains run in parallel on two threads "
        "(default 2; 1 for svi and on Spark)",
    )
    add_threads(parser)
    parser.add_argument("--checkpoint-every", type=int, default=50, help="iterations between checkpoints (default 50)")
    parser.add_argument(
        "--out", metavar="FOLDER", type=Path, required=True, help="folder for the posterior, trace and provenance"
    )
    parser.add_argument(
        "--overwrite", action="store_true", help="replace the fit in --out if it has no checkpoint to resume from"
    )


def run(options: argparse.Namespace) -> None:
    """Fit the model, write the files, and print the result and the next commands."""
    _check_folder(options.out, options.corpus)
    try:
        provenance = _fit(options)
    except (KeyboardInterrupt, SystemExit) as stop:  # SIGINT, SIGTERM
        tell(f"stopped; {_describe_stop(options.out)}")
        raise SystemExit(stop.code if isinstance(stop, SystemExit) else 130) from None
    say("\n".join(_summary(options, provenance)))
    for warning in provenance["inferred"]["warnings"]:
        tell(f"warning: {warning}")


def _check_folder(out: Path, corpus: Path) -> None:
    """Raise ValueError if ``out`` cannot be a folder, or if ``out`` is the folder of the corpus."""
    for folder in (out, *out.parents):
        if folder.exists() and not folder.is_dir():
            raise ValueError(f"--out {out}: {folder} is a file; give a folder")
    if out.resolve() == corpus.resolve():
        raise ValueError(f"--out {out} is the folder of the corpus; give another folder for the fit")


def _iterations(text: str) -> int | str:
    """Parse the value of --iterations."""
    try:
        return text if text == AUTO else int(text)
    except ValueError:
        from argparse import ArgumentTypeError

        raise ArgumentTypeError(f"{text!r} is neither a whole number nor {AUTO}") from None


def _fit(options: argparse.Namespace) -> dict[str, Any]:
    """Read the corpus, fit the model and write the files. Return the provenance."""
    from mc2core.base.progress import work

    with work("reading the corpus"):
        from mc2core.base.checks import once
        from mc2core.base.settings import parse_settings
        from mc2core.corpus import Corpus
        from mc2core.inference.running.files import fit_corpus

        corpus, contexts = Corpus.load(options.corpus), once(map(_family, options.context), "--context")
    fixed = [] if options.clusters is None else [f"n_clusters={options.clusters}"]
    settings = parse_settings([*fixed, *options.set], "--set")
    is_there, may_resume = ((options.out / name).is_file() for name in ("posterior.npz", "checkpoint.npz"))
    if is_there and not may_resume and not options.overwrite:
        length = _length(options.out / "provenance.json")
        raise ValueError(
            f"--out {options.out} holds a fit{length} without a checkpoint to resume from; --overwrite replaces it"
        )
    return fit_corpus(
        corpus,
        options.out,
        model=options.model,
        engine=options.engine,
        contexts=contexts or None,
        settings={name: value for name, value in settings.items() if not name.startswith("spark.")},
        spark={name: value for name, value in settings.items() if name.startswith("spark.")},
        iterations=options.iterations,
        chains=options.chains,
        burn_in=options.burn_in,
        thin=options.thin,
        seed=options.seed,
        threads=options.threads,
        checkpoint_every=options.checkpoint_every,
        keep_all=True,
    )


def _describe_stop(out: Path) -> str:
    """Return a message on whether the same command resumes the stopped fit, and on the posterior written so far."""
    from mc2core.base import storage

    posterior, provenance, checkpoint = (out / name for name in ("posterior.npz", "provenance.json", "checkpoint.npz"))
    stopped = storage.read_json(provenance).get("stopped_at") if provenance.is_file() else None
    so_far = f"; {posterior} has the result after {stopped:.4g} iterations" if stopped is not None else ""
    went = "resumes from the checkpoint" if checkpoint.is_file() else "starts again, as there is no checkpoint yet"
    return f"the same command {went}{so_far}"


def _length(provenance: Path) -> str:
    """Return a phrase on the length of a fit, such as " of 60 iterations and 2 updates"; "" if it is unknown."""
    from mc2core.base import storage
    from mc2core.base.checks import counted

    try:
        record = storage.read_json(provenance)
        updates = len(record["stream"]["updates"]) if "stream" in record else 0
        and_updates = f" and {counted(updates, 'updates')}" if updates else ""
        return f" of {record.get('stopped_at', record['iterations']):g} iterations{and_updates}"
    except (AttributeError, KeyError, OSError, TypeError, ValueError):
        return ""


def _summary(options: argparse.Namespace, provenance: dict[str, Any]) -> list[str]:
    """Return the lines that are printed after a fit, on the result and on the next commands."""
    from mc2core.base.checks import counted
    from mc2core.inference.registry import model_class
    from mc2core.inference.running.summary import sentence

    posterior = options.out / "posterior.npz"
    settings = {name: value for name, value in provenance["model"].items() if name != "name"}
    if provenance["engine"]["name"] != "gibbs" or provenance["engine"]["kernel"] == "parallel":  # fits no burstiness
        settings |= {"burstiness": False} if "burstiness" in settings else {}
    model = model_class(provenance["model"]["name"])(**settings)
    took = f"{posterior}: {counted(provenance['iterations'], 'iterations')} in {provenance['seconds']:.1f} s"
    if provenance["compile_seconds"] >= _COMPILED:
        took += f", after {provenance['compile_seconds']:.0f} s of compiling kernels (once)"
    result = sentence(provenance["inferred"])
    if result:
        remedies = "--seed or start_topics" if "start_topics" in provenance["engine"] else "--seed"
        result += f"; other values of {remedies} may give another result"
    lines = [took]
    for name in ("recommended", "broad", "fine"):
        if (size := provenance["inferred"].get(name)) is not None:
            lines.append(f"{name} clustering: {counted(size, 'clusters')}")
    lines += [*([result] if result else []), f"model: {model.describe()}"]
    if not options.context:  # contexts that are used without being named
        lines += [
            f"context {name}: the embeddings of the corpus, strength {one.strength:g} (default rule)"
            for name, one in model.contexts.items()
        ]
    advice = f"the same command with --iterations {2 * provenance['iterations']} resumes from here"
    if provenance["inferred"]["changing"]:
        advice += ", or with --iterations auto until clusters and topics no longer change"
    elif provenance["iterations"] >= _FEWEST and provenance["engine"]["name"] != "svi":
        advice += "; this is hardly needed, because log joint, clusters and topics are level"
    lines.append(f"for more iterations: {advice}")
    fit, corpus, out = (shlex.quote(str(one)) for one in (posterior, options.corpus, options.out / "description"))
    if "clusters" not in model.reported:  # there are none to describe
        return [*lines, f"next: mc2 topics {fit}; mc2 evaluate {fit} CORPUS"]
    clusters = f"mc2 clusters {fit} {corpus}"
    lines.append(f"next: mc2 describe {fit} {corpus} --out {out}")
    lines.append(f"or: mc2 topics {fit}; {clusters}; mc2 evaluate {fit} CORPUS")
    level = next((name for name in ("broad", "fine") if name in provenance["inferred"]), "all")
    lines.append(f"for more or fewer clusters: {clusters} --cut {level}; {clusters} --hierarchy")
    return lines


def _family(text: str) -> tuple[str, dict[str, Any] | None]:
    """Parse ``"author:dirichlet,concentration=0.1,strength=0.5"`` to (name, settings of the family).

    A name alone, such as ``"year"``, gives ("year", None).
    """
    from mc2core.base.settings import parse_settings, split_settings

    name, colon, family = text.partition(":")
    family, comma, settings = family.partition(",")
    if not name or "=" in name or bool(colon) != bool(family) or bool(comma) != bool(settings):
        raise ValueError(f"--context {text!r} must have the form NAME, NAME:FAMILY or NAME:FAMILY,SETTING=VALUE,...")
    if not family:
        return name, None
    return name, {"family": family, **parse_settings(split_settings(settings, ","), f"--context {text!r}")}
