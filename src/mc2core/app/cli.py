"""Cluster documents and find topics, guided by document metadata. A typical session:

mc2 import papers.jsonl --text abstract --context year:number --out data/own
mc2 fit data/own --context year:normal_gamma --iterations 100 --out fits/own
mc2 topics fits/own
mc2 clusters fits/own data/own
mc2 describe fits/own data/own --out fits/own/description
mc2 sheet fits/own data/own --texts papers.jsonl --out sheet
mc2 import new.jsonl --like fits/own --out data/new
mc2 evaluate fits/own data/new
mc2 contexts fits/own data/new year
mc2 predict fits/own < new.jsonl
mc2 import today.jsonl --append --out data/own
mc2 update fits/own data/own --out fits/today
mc2 compare fits/own fits/today
mc2 merge fits/own 1 2 --out fits/merged
mc2 verify data/own fits/today
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from mc2core.app.commands import add_command, add_fit, add_module, add_path, add_threads, run, say, tell

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence
    from pathlib import Path

    import pandas as pd

    from mc2core.corpus import Corpus
    from mc2core.posterior import Posterior

_LONGEST = 100
"""Largest number of characters of a kept column in a table of documents."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Returns the exit code: 0, 2 after an error message, 130 after Ctrl-C."""
    return run("mc2", __doc__, _add_commands, arguments)


def _add_commands(commands: Any) -> None:
    add_module(commands, "import", "mc2core.app.import_command", "turn documents into a corpus")
    text = (
        "fit a model to a corpus; the same command resumes a stopped fit, and continues a finished one with more "
        "--iterations"
    )
    add_module(commands, "fit", "mc2core.app.fit_command", text)
    add_module(
        commands, "update", "mc2core.app.update_command", "add new documents to a fit; old ones keep their clusters"
    )
    _add_readers(commands)
    _add_predictions(commands)
    text = "compile all kernels now, so that later commands start at once"
    add_module(commands, "compile", "mc2core.app.compile_command", text)


def _add_readers(commands: Any) -> None:
    """Add the commands that read a posterior, or other files of mc2core."""
    evaluate = add_command(
        commands,
        "evaluate",
        _evaluate,
        "print scores of a posterior on a corpus as JSON: agreement of the recommended and of all clusters with "
        "the labels of the corpus, and perplexity of words or log density of observations",
    )
    add_fit(evaluate, "posterior")
    add_path(evaluate, "corpus", help="folder of held-out documents")
    evaluate.add_argument(
        "--estimator",
        action="append",
        help="estimator of perplexity or log density: marginal, context, icml14, importance or left_to_right "
        "(default: marginal if it is exact, else left_to_right); may be repeated",
    )
    evaluate.add_argument(
        "--no-perplexity", action="store_true", help="skip perplexity and log density, which take longest"
    )
    evaluate.add_argument("--seed", type=int, default=0, help="seed of estimators that draw random numbers (default 0)")
    add_threads(evaluate)

    topics = add_command(commands, "topics", _topics, "print the topics of a fit as CSV, the most frequent first")
    add_fit(topics, "posterior")
    topics.add_argument("--words", type=int, default=10, help="number of words per topic (default 10)")

    _add_compare(commands)
    _add_merge(commands)
    text = "write a question sheet by which people check clusters by words and documents, and score their answers"
    add_module(commands, "sheet", "mc2core.app.sheet_command", text)
    text = "verify saved corpora, posteriors and checkpoints by their digests, and whether a fit comes out the same"
    add_module(commands, "verify", "mc2core.app.verify_command", text)

    _add_describe(commands)


def _add_describe(commands: Any) -> None:
    """Add the command that writes the HTML report."""
    describe = add_command(
        commands, "describe", _describe, "write the HTML report (index.html) and the tables of a fit"
    )
    add_fit(describe, "posterior")
    add_path(describe, "corpus", help="folder of the fitted corpus or of new documents")
    describe.add_argument("--title", help="heading of the HTML report (default: clusters and topics of the corpus)")
    describe.add_argument(
        "--seed", type=int, default=0, help="seed of the map and of the sample of a large corpus (default 0)"
    )
    add_threads(describe)
    add_path(
        describe,
        "--names",
        metavar="FILE",
        help=(
            "CSV file with your names of clusters and topics, such as names.csv in the folder of an earlier "
            "report. Names of an earlier fit move to the clusters and topics with the same words"
        ),
    )
    describe.add_argument(
        "--texts",
        metavar="COLUMN|FILE",
        help=("show texts in the HTML report, read from a kept column or from the imported file (default: none)"),
    )
    describe.add_argument(
        "--phrases",
        action="store_true",
        help="use frequent two-word phrases of the texts (--texts) in names",
    )
    describe.add_argument(
        "--tables",
        metavar="latex|html",
        choices=("latex", "html"),
        action="append",
        default=[],
        help="also write the tables of clusters and topics for a paper: as LaTeX (.tex), or as HTML that Word opens; "
        "may be repeated",
    )
    add_path(describe, "--out", metavar="FOLDER", required=True, help="folder for index.html and tables")


def _add_merge(commands: Any) -> None:
    """Add the command that merges clusters by hand."""
    merge = add_command(
        commands,
        "merge",
        _merge,
        "merge recommended clusters of a fit by hand, and save the result as another fit",
    )
    add_fit(merge, "posterior")
    merge.add_argument("clusters", metavar="CLUSTER", type=int, nargs="*", help="numbers of the clusters to merge")
    add_path(
        merge,
        "--names",
        metavar="FILE",
        help="instead, names.csv of the HTML report, in which clusters were chosen (Merge with)",
    )
    add_path(merge, "--out", metavar="FOLDER", required=True, help="new folder for the fit with merged clusters")


def _add_compare(commands: Any) -> None:
    """Add the command that compares several posteriors."""
    compare = add_command(
        commands,
        "compare",
        _compare,
        "compare the clusters of two fits of the same documents: matched clusters, splits and merges as CSV, and their "
        "agreement on standard error. With more fits, print in how many others each cluster of the first fit is found",
    )
    add_fit(compare, "first")
    add_fit(compare, "second")
    add_path(compare, "more", metavar="FIT", nargs="*", help="further fits, such as fits of other seeds")
    compare.add_argument(
        "--least",
        metavar="JACCARD",
        type=float,
        help="with more than two fits: smallest Jaccard index at which a cluster counts as found again (default 0.5)",
    )
    add_path(
        compare,
        "--picture",
        metavar="FILE",
        help="of two fits: save a picture of the matched clusters (.pdf, .svg or .png), and its numbers as .csv",
    )
    compare.add_argument("--table", action="store_true", help="print the documents in each pair of clusters instead")


def _add_predictions(commands: Any) -> None:
    """Add the commands that print predictions of a posterior for documents."""
    clusters = add_command(
        commands,
        "clusters",
        _clusters,
        "print the cluster of each document with its name and probability, as CSV; long texts are shortened",
    )
    add_fit(clusters, "posterior")
    add_path(clusters, "corpus", nargs="?", help="folder of the fitted corpus or of new documents")
    clusters.add_argument("--no-context", action="store_true", help="use the words only")
    add_threads(clusters)
    shown = clusters.add_mutually_exclusive_group()
    shown.add_argument(
        "--cut",
        metavar="broad|fine|recommended|all|N",
        type=_cut,
        default="recommended",
        help="which clusters: the recommended ones (default), the broad or the fine ones (the same as the recommended "
        "ones if chains agree on one number only), all of the fit, or N clusters; number 1 is the largest in the fit",
    )
    shown.add_argument(
        "--hierarchy",
        action="store_true",
        help="instead, print one row per possible number of clusters, and which one is recommended",
    )

    contexts = add_command(
        commands,
        "contexts",
        _contexts,
        "predict a context of documents from their words and other contexts, as CSV: the likeliest names, or the mean "
        "and 90 % interval of a number",
    )
    add_fit(contexts, "posterior")
    add_path(contexts, "corpus", help="folder of a corpus; its own values of the context are ignored")
    contexts.add_argument("name", metavar="CONTEXT", help="name of a context of the fit")
    contexts.add_argument("--top", metavar="N", type=int, default=5, help="number of names per document (default 5)")
    contexts.add_argument("--no-context", action="store_true", help="use the words only")
    add_threads(contexts)

    text = "read documents from standard input, one JSON object per line, and print their clusters and topics"
    add_module(commands, "predict", "mc2core.app.predict_command", text)


# Each command imports what it needs, so that `mc2 --help` answers at once.
def _read(options: argparse.Namespace) -> tuple[Any, Any]:
    """Return the posterior and the corpus that the arguments of a command name."""
    from mc2core.base.progress import work

    with work("reading the posterior and the corpus"):
        from mc2core.corpus import Corpus
        from mc2core.posterior import Posterior

        if _is_corpus(options.posterior) and not _is_corpus(options.corpus):
            raise ValueError(
                f"{options.posterior} is a corpus and {options.corpus} is not; give the fit first, then the corpus"
            )
        return Posterior.load(options.posterior), Corpus.load(options.corpus)


def _read_posterior(path: Path) -> Posterior:
    from mc2core.base.progress import work

    with work("reading the posterior"):
        from mc2core.posterior import Posterior

        return Posterior.load(path)


def _is_corpus(path: Path) -> bool:
    return (path / "corpus.json").is_file()


def _tell_new(posterior: Any, corpus: Any, path: Path) -> None:
    """Print a message if a corpus is not the fitted corpus, which may have been imported again or extended."""
    if not posterior.was_fitted_on(corpus):
        tell(f"{path} is not the corpus of the fit, so its documents are treated as new")


def _evaluate(options: argparse.Namespace) -> None:
    import json

    from mc2core.posterior.perplexity import suited
    from mc2core.posterior.scores import predicted_agreement

    posterior, corpus = _read(options)
    if options.no_perplexity and options.estimator:
        raise ValueError("--estimator needs the perplexity that --no-perplexity skips")
    names = options.estimator or [suited(posterior)]
    if posterior.is_of_observations:
        counted, score, scored, worse = "observations", "log_density", posterior.log_density, "lower log density"
    else:
        counted, score, scored, worse = "tokens", "perplexity", posterior.perplexity, "higher perplexity"
    scores: dict[str, Any] = {"documents": corpus.n_documents, counted: corpus.n_tokens}
    cuts = ["all"] if posterior.hierarchy is None else ["recommended", "all"]
    scores |= predicted_agreement(posterior, corpus, options.threads, cuts=cuts)
    if not options.no_perplexity:
        has_any = corpus.n_tokens > 0  # without words there is nothing to predict
        scores[score] = {
            name: scored(corpus, name, options.seed, options.threads) if has_any else None for name in names
        }
    if posterior.was_fitted_on(corpus) and not options.no_perplexity:
        print(f"mc2: the model was fitted on these documents; held-out documents have a {worse}", file=sys.stderr)
    print(json.dumps(scores, indent=2))


def _topics(options: argparse.Namespace) -> None:
    from mc2core.explore.topics import describe_topics

    table = describe_topics(_read_posterior(options.posterior), options.words)
    print(table.to_csv(index=False, float_format="%.6g"), end="")


def _compare(options: argparse.Namespace) -> None:
    from mc2core.base.progress import work
    from mc2core.explore.compare import SAME, compare, robustness

    for option in ("table", "picture"):
        if getattr(options, option) and options.more:
            raise ValueError(f"--{option} needs exactly two fits; leave out the others")
    if options.least is not None and not options.more:
        raise ValueError("--least needs more than two fits")
    with work("comparing the fits"):
        if options.more:
            least = SAME if options.least is None else options.least
            comparison: Any = robustness([options.first, options.second, *options.more], least)
        else:
            comparison = compare(options.first, options.second)
    tell(str(comparison))
    if options.picture:
        import logging

        from mc2core.explore import plots

        logging.getLogger("fontTools").setLevel(logging.WARNING)  # it reports each step of a PDF
        plots.save(plots.comparison(comparison), options.picture)
    if options.table:
        print(comparison.table.to_csv(index_label="a\\b"), end="")
    else:
        print(comparison.clusters.to_csv(index=False, float_format="%.4g"), end="")


def _merge(options: argparse.Namespace) -> None:
    import shlex

    from mc2core.base import storage
    from mc2core.explore.merging import merge_clusters, merge_named
    from mc2core.explore.methods import merged_by_hand
    from mc2core.explore.words import read_names
    from mc2core.posterior.posterior import POSTERIOR

    if options.out.exists():
        raise ValueError(f"{options.out} exists; give a new folder")
    if bool(options.clusters) == bool(options.names):
        raise ValueError("give the numbers of clusters, or --names names.csv of the HTML report")
    before, names = _read_posterior(options.posterior), None
    if options.names:
        posterior, names = merge_named(before, read_names(options.names))
    else:
        posterior = merge_clusters(before, options.clusters)
    with storage.replacing_folder(options.out) as folder:
        posterior.save(folder / POSTERIOR)
        if names is not None:
            names.to_csv(folder / "names.csv", index=False)
    sentences = merged_by_hand(posterior)[len(merged_by_hand(before)) :]
    say(f"{options.out}: {' '.join(sentences)}")
    arguments = [] if names is None else ["--names", f"{options.out / 'names.csv'}"]
    steps = ["mc2", "describe", f"{options.out}", "CORPUS", *arguments, "--out", f"{options.out / 'description'}"]
    say(f"next: {shlex.join(steps)}")


def _describe(options: argparse.Namespace) -> None:
    from mc2core.explore.describe import describe

    posterior, corpus = _read(options)
    _tell_new(posterior, corpus, options.corpus)
    folder = options.corpus.resolve()
    name = folder.parent.name if folder.name in ("train", "test", "corpus") else folder.name
    title = options.title or f"Clusters and topics of {name}"
    settings = (title, options.seed, options.threads, options.names, options.texts)
    describe(posterior, corpus, options.out, *settings, phrases=options.phrases, forms=options.tables)
    say(f"{options.out / 'index.html'}: open it in a browser; the CSV tables are in its folder")


def _clusters(options: argparse.Namespace) -> None:
    import numpy as np
    import pandas as pd

    from mc2core.base.progress import work
    from mc2core.explore.clusters import names_of
    from mc2core.inference.running.summary import ONE_CHAIN, agreement

    if options.hierarchy:
        _print_hierarchy(options)
        return
    if options.corpus is None:
        raise ValueError("give a corpus: mc2 clusters FIT CORPUS (only --hierarchy needs none)")
    posterior, corpus = _read(options)
    chains = posterior.between_chains()
    tell(agreement(chains) if chains else ONE_CHAIN)
    _tell_new(posterior, corpus, options.corpus)
    cut = _find_cut(posterior, corpus, options.cut)
    cluster, probability = posterior.assign(corpus, not options.no_context, options.threads, cut=cut)
    document = np.arange(corpus.n_documents)
    with work("names of clusters"):
        names = np.array(names_of(posterior, corpus, cluster, cut), dtype=object)
    table = pd.DataFrame(
        {
            "document": document + 1,
            "cluster": cluster + 1,
            "cluster_name": names[cluster],
            "probability": probability[document, cluster].round(6),
        }
    )
    print(table.join(_metadata(corpus)).to_csv(index=False), end="")


def _cut(text: str) -> int | str:
    """Parse the value of --cut."""
    from mc2core.posterior.hierarchy import CUTS

    if text in CUTS:
        return text
    try:
        return int(text)
    except ValueError:
        from argparse import ArgumentTypeError

        raise ArgumentTypeError(f"{text!r} is neither a number of clusters nor one of {', '.join(CUTS)}") from None


def _find_cut(posterior: Posterior, corpus: Corpus, cut: int | str) -> int | str:
    """Return the number of clusters of a cut, or "all" if a named cut is requested but there is no hierarchy."""
    from mc2core.base.checks import counted

    if cut == "all" or not isinstance(cut, str):
        return cut
    try:
        if posterior.hierarchy is None and posterior.was_fitted_on(corpus):
            posterior.find_hierarchy(corpus)
    except ValueError as error:
        tell(f"no clustering is recommended: {error}")
    if posterior.hierarchy is None:
        return "all"
    hierarchy, size = posterior.hierarchy, posterior.hierarchy.size_of(cut)
    all_of_them = "" if size == hierarchy.n_clusters else f" of {hierarchy.n_clusters}; --cut all prints these"
    message = f"the {cut} clustering has {counted(size, 'clusters')}{all_of_them}"
    if cut != "recommended" and not hierarchy.other:
        message += "; it is the recommended one, because only one number of clusters stands out"
    elif hierarchy.other and size == hierarchy.recommended:
        message += f"; the {hierarchy.other_name} clustering has {hierarchy.other} (--cut {hierarchy.other_name})"
    tell(message)
    return size


def _metadata(corpus: Corpus) -> pd.DataFrame:
    """Return the kept columns for a table of documents. Long texts are shortened, but ids are not."""
    import pandas as pd

    column = (corpus.imported or {}).get("settings", {}).get("id")

    def cut(value: Any) -> Any:
        is_long = isinstance(value, str) and len(value) > _LONGEST
        return " ".join(value[: _LONGEST - 1].split()) + "…" if is_long else value

    columns = {name: values if name == column else values.map(cut) for name, values in corpus.documents.items()}
    return pd.DataFrame(columns, index=corpus.documents.index).add_prefix("document_").reset_index(drop=True)


def _contexts(options: argparse.Namespace) -> None:
    from pathlib import Path

    from mc2core.posterior.contexts import PredictedNames

    if _is_corpus(Path(options.name)) and not _is_corpus(options.corpus):
        raise ValueError(
            f"{options.name} is a corpus and {options.corpus} is not; give the corpus first, then the name of the "
            "context"
        )
    posterior, corpus = _read(options)
    predicted = posterior.predict_context(corpus, options.name, not options.no_context, options.threads)
    table = predicted.table(options.top) if isinstance(predicted, PredictedNames) else predicted.table()
    metadata = _metadata(corpus)
    metadata.index = metadata.index + 1
    print(table.join(metadata, on="document").to_csv(index=False, float_format="%.6g"), end="")


def _print_hierarchy(options: argparse.Namespace) -> None:
    """Print the table of the hierarchy, which is computed from the corpus if the posterior has no hierarchy."""
    from mc2core.corpus import Corpus

    posterior = _read_posterior(options.posterior)
    hierarchy = posterior.hierarchy
    if hierarchy is None:
        if options.corpus is None:
            raise ValueError(f"{options.posterior} contains no hierarchy; give the corpus of the fit to compute it")
        hierarchy = posterior.find_hierarchy(Corpus.load(options.corpus))
    print(hierarchy.table().to_csv(index=False, float_format="%.6g"), end="")


if __name__ == "__main__":
    sys.exit(main())
