"""``mc2 predict``: read documents as JSON, one per line, and print one line of predictions per document."""

from __future__ import annotations

import argparse
import json
import sys

from mc2core.app.commands import COLUMNS, add_columns, add_fit, add_threads

#: largest number of documents that are processed together, in about a quarter of a second
MOST = 512

_FORMS = """\
input:
  one JSON object per line, with the keys of the import of the fit, read as by mc2 import --like:
  {"id": "a", "abstract": "Graphs and trees", "year": 2019}
  If the fit was not made from a table, words are under "text", or as a bag {"graph": 2} under "words", and contexts
  are under their names. A context may be missing; it is then predicted.

output:
  one line per document: line, id, cluster with its probability, number of known tokens, largest topics with their
  shares, and predictions of missing contexts (likeliest names; mean and 90 % interval of a number; mean vector)
  Clusters and contexts are averaged over samples of all chains. Topics are those of mc2 topics and the HTML report.

Lines that cannot be read are reported on standard error, and the exit code is then 2."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _FORMS
    add_fit(parser, "posterior")
    add_columns(parser, "key")
    parser.add_argument(
        "--top", metavar="N", type=int, default=5, help="number of topics and names per document (default 5)"
    )
    add_threads(parser)


def run(options: argparse.Namespace) -> int:
    """Print predictions until the input ends. The exit code is 2 if a line could not be read or predicted."""
    from mc2core.app.answers import Answers
    from mc2core.base.checks import whole
    from mc2core.base.progress import showing, work
    from mc2core.corpus.readers.lines import LineReader, batches_of_lines

    if sys.stdin is None:
        raise ValueError("standard input is closed; mc2 predict reads documents from it")
    with work("reading the posterior"):
        from mc2core.posterior import Posterior

        posterior = Posterior.load(options.posterior)
        columns = {name: getattr(options, name) for name in COLUMNS}
        reader, answers = LineReader(posterior, columns), Answers(posterior, whole("top", options.top), options.threads)
    code = 0
    with showing(False):
        for batch in batches_of_lines(sys.stdin.buffer, MOST):
            documents = reader.read(batch)
            if documents.corpus is not None:
                documents = reader.without(documents, answers.outside(documents.corpus))
            for bad in documents.bad:
                code = 2
                print(f"mc2: {bad}", file=sys.stderr)
            if documents.corpus is not None:
                for line, name, entry in zip(documents.lines, documents.ids, answers.of(documents.corpus), strict=True):
                    position = {"line": line} if name is None else {"line": line, "id": name}
                    print(json.dumps(position | entry))
                sys.stdout.flush()
    for option, key in reader.unseen.items():
        print(f"mc2: no line has the key {key!r}, which was given for {option}", file=sys.stderr)
    return code
