"""``mc2 update``: add new documents to a fit."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mc2core.app.commands import COLUMNS, add_columns, add_embeddings, add_fit, add_threads, say, tell

_ABOUT = """\
A fit by gibbs: old documents keep their clusters, and clusters keep their numbers. Each new document joins a cluster
or opens a new one. NEW is a file like the imported one, a corpus of new documents, or the corpus of the fit to which
'mc2 import --append' has added documents. The result is written to --out, with added.csv (the new documents) and
clusters.csv (sizes before and now), which have the names of clusters before the update.
A fit by svi: the fit continues as a stream, in place. To resume a killed update, give the same command again.
The columns of a file are those of the import of the fit, unless others are given."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _ABOUT
    add_fit(parser, "fit")
    parser.add_argument("new", type=Path, help="new documents: folder of a corpus, or a file like the imported one")
    add_columns(parser, "column")
    add_embeddings(parser)
    parser.add_argument(
        "--total-samples",
        type=int,
        help="svi: number of documents that the posterior describes; give it at the first update (default: as many "
        "as were fitted)",
    )
    parser.add_argument(
        "--new-columns",
        metavar="N",
        type=int,
        help="add columns for new words and context values that occur in at least N of the new documents; others are "
        "left out (default: the limits of the import, at least 2; svi: 1, as in 'mc2 import --append')",
    )
    parser.add_argument("--iterations", type=int, help="gibbs: number of sweeps over the new documents (default: 20)")
    add_threads(parser)
    parser.add_argument(
        "--out",
        metavar="FOLDER",
        type=Path,
        help="folder for the updated fit (default: FIT-updated next to the fit; with svi, the fit is replaced)",
    )


def run(options: argparse.Namespace) -> None:
    """Update the fit, and print a summary of the new documents and of how well the model fits them."""
    from mc2core.base.progress import work

    with work("reading the fit"):
        from mc2core.inference.running.update import beside, update_fit
        from mc2core.posterior.posterior import posterior_file
    columns = {name: getattr(options, name) for name in (*COLUMNS, "embeddings") if getattr(options, name)}
    try:
        provenance = update_fit(
            options.fit,
            options.new,
            out=options.out,
            columns=columns,
            total_samples=options.total_samples,
            new_columns=options.new_columns,
            iterations=options.iterations,
            threads=options.threads,
        )
    except (KeyboardInterrupt, SystemExit) as stop:  # SIGINT, SIGTERM
        print("mc2: stopped; the same command completes the update", file=sys.stderr)
        raise SystemExit(stop.code if isinstance(stop, SystemExit) else 130) from None
    if "updates" in provenance:
        fit = posterior_file(options.fit).parent
        _tell_added(options.out or beside(fit), fit, provenance)
        return
    posterior = posterior_file(options.out or options.fit)
    say(f"{posterior}: {_summarise(provenance)}")
    for warning in provenance.get("drift", {}).get("warnings", ()):
        tell(f"the model may no longer fit: {warning}")
    say(f"next: {_next(posterior, options.new, columns)}")


def _next(posterior: Path, new: Path, columns: Mapping[str, Any]) -> str:
    """Return the command that shows the clusters of the new documents. Documents in a file must be imported first."""
    if (new / "corpus.json").is_file():
        return shlex.join(["mc2", "clusters", str(posterior), str(new)])
    arguments = [part for name, one in columns.items() if name != "contexts" for part in (f"--{name}", one)]
    arguments += [part for one in columns.get("contexts", ()) for part in ("--context", one)]
    command = shlex.join(["mc2", "import", str(new), "--like", str(posterior), *arguments])
    return f"{command} --out FOLDER; {shlex.join(['mc2', 'clusters', str(posterior)])} FOLDER"


def _tell_added(out: Path, fit: Path, provenance: Mapping[str, Any]) -> None:
    """Write the tables of an update by Gibbs sampling, and print which clusters grew and which are new."""
    from mc2core.base import storage
    from mc2core.base.checks import counted
    from mc2core.base.progress import work
    from mc2core.corpus import Corpus
    from mc2core.explore.updates import added_documents, changed_clusters
    from mc2core.inference.running.update import UNSURE, needs_new_fit
    from mc2core.posterior import Posterior

    with work("tables of the update"):
        before, after, new = Posterior.load(fit), Posterior.load(out), Corpus.load(out / "added")
        clusters = changed_clusters(before, after, new)
        documents = added_documents(after, new, clusters)
        for name, table in (("clusters.csv", clusters), ("added.csv", documents)):
            with storage.replacing(out / name) as stream:
                stream.write(table.to_csv(index=False))
    update = provenance["updates"][-1]
    say(f"{out / 'posterior.npz'}: {counted(update['documents'], 'documents added')}")
    is_new = clusters["new"] == "yes"
    grown = clusters[~is_new & (clusters["added"] > 0)].sort_values("added", ascending=False, kind="stable")
    for change, table in (("grew", grown), ("new", clusters[is_new])):
        for row in table.itertuples():
            sizes = f"{row.before:,} -> {row.documents:,}" if change == "grew" else f"{row.documents:,}"
            say(f"  cluster {row.cluster} ({row.name}) {change}: {sizes} documents")
    if not is_new.any():
        print("  no new cluster")
    if "mean_probability" in update:
        unsure = f"{update['unsure']:,} have no cluster with probability {UNSURE:g} or more"
        say(f"  mean probability of the new documents' clusters: {update['mean_probability']:.2f}; {unsure}")
    for reason in needs_new_fit(provenance):
        tell(f"fit all documents again: {reason}")
    corpus = next(out / name for name in ("corpus", "added") if (out / name).is_dir())
    steps = shlex.join(["mc2", "clusters", str(out), str(corpus)])
    say(f"next: {out / 'added.csv'} has the new documents; {steps}")


def _summarise(provenance: dict[str, Any]) -> str:
    """Return a short summary of an update by SVI."""
    from mc2core.base.checks import counted

    update, drift = provenance["stream"]["updates"][-1], provenance["drift"]
    new = {"words": update["new_words"]} | {f"values of {name}": n for name, n in update["new_values"].items()}
    columns = ", ".join(counted(n, unit) for unit, n in new.items() if n)
    repeated = counted(update["repeated"], "documents left out as repeated (same id or file)")
    parts = [counted(update["documents"], "documents added"), *([repeated] if update["repeated"] else [])]
    lines = ["; ".join([*parts, *([f"new columns: {columns}"] if columns else [])])]
    is_first = len(provenance["stream"]["updates"]) == 1
    whose = "documents of the fit, after training on them" if is_first else "earlier updates"
    before = "" if drift["before"] is None else f" ({whose}: {drift['before']:.3f})"
    lines.append(f"log likelihood per word, before training on them: {drift['log_likelihood']:.3f} nats{before}")
    lines.append(f"new documents in clusters that were small or empty: {drift['in_small']:.1%}")
    return "\n".join(lines)
