"""``mc2 verify``: check whether files are complete, and whether a rerun of a fit gives the same result."""

from __future__ import annotations

import argparse
import sys
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from mc2core.app.commands import add_threads, say

if TYPE_CHECKING:
    from mc2core.corpus import Corpus
    from mc2core.inference.running.checkpoint import Checkpoint
    from mc2core.posterior import Posterior


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "paths",
        metavar="PATH",
        nargs="+",
        type=Path,
        help="folder of a corpus or a fit, or an .npz file. For one fit and one corpus, the command also reports "
        "whether the fit was made on this corpus and with the installed versions. The exit code is 2 if a file is "
        "damaged or if the fit was made on another corpus",
    )
    parser.add_argument(
        "--rerun",
        action="store_true",
        help="run the fit again on the corpus, with its settings and seed, and compare the results bit by bit",
    )
    add_threads(parser)


def run(options: argparse.Namespace) -> int:
    """Verify every path, print the results, and return the exit code.

    The exit code is 2 if a file is damaged, if the fit was made on another corpus, or if the rerun differs.
    """
    from mc2core.base.progress import work

    code, contents = 0, {}
    for path in chain.from_iterable(map(_files, options.paths)):
        try:
            with work(f"reading {path}"):
                contents[path] = _read(path)
        except (ValueError, OSError) as error:
            print(f"mc2: error: {error}", file=sys.stderr)
            code = 2
        else:
            print(f"{path}: {_kind(contents[path])}", flush=True)
    return max(code, _compare_fit(contents, options.rerun, options.threads))


def _files(path: Path) -> list[Path]:
    """Return the .npz files in the folder of a fit, or ``path`` itself for other paths."""
    from mc2core.posterior.posterior import posterior_file

    return sorted(path.glob("*.npz")) if path.is_dir() and posterior_file(path).is_file() else [path]


def _read(path: Path) -> Corpus | Checkpoint | Posterior:
    """Return the corpus, checkpoint or posterior at a path. Raises ValueError if it is damaged."""
    from mc2core.base import storage
    from mc2core.corpus import Corpus
    from mc2core.inference.running import checkpoint
    from mc2core.posterior import Posterior

    if path.is_dir():
        corpus = Corpus.load(path, verify=True)
        _ = corpus.vocabulary, corpus.documents
        return corpus
    return checkpoint.load(path) if checkpoint.is_one(storage.read_arrays(path)) else Posterior.load(path)


def _kind(content: Corpus | Checkpoint | Posterior) -> str:
    from mc2core.base.checks import counted
    from mc2core.corpus import Corpus
    from mc2core.posterior import Posterior

    if isinstance(content, Corpus):
        return f"complete corpus of {counted(content.n_documents, 'documents')}"
    if isinstance(content, Posterior):
        return f"complete posterior of {counted(len(content.samples), 'samples')}"
    return f"complete checkpoint at iteration {content.iteration}"


def _compare_fit(contents: dict[Path, Corpus | Checkpoint | Posterior], is_rerun: bool, threads: int) -> int:
    """Print whether a fit was made from a corpus, if one fit and one corpus are given, and return the exit code.

    If ``is_rerun`` is True, the fit is run again and compared.
    """
    from mc2core.corpus import Corpus
    from mc2core.posterior import Posterior

    fits = [(path, one) for path, one in contents.items() if isinstance(one, Posterior)]
    corpora = [(path, one) for path, one in contents.items() if isinstance(one, Corpus)]
    if len(fits) != 1 or len(corpora) != 1:
        if is_rerun:
            raise ValueError("--rerun needs one fit and one corpus: mc2 verify FIT CORPUS --rerun")
        return 0
    from mc2core.explore.rerun import other_versions, rerun

    (path, posterior), (folder, corpus) = fits[0], corpora[0]
    is_fitted = posterior.was_fitted_on(corpus)
    belongs = "is the corpus of the fit" if is_fitted else "is not the corpus of the fit"
    versions = other_versions(posterior)
    environment = f"other versions: {', '.join(versions)}" if versions else "the installed versions"
    say(f"{path}: {folder} {belongs}; the fit was made with {environment}", flush=True)
    if not is_rerun:
        return 0 if is_fitted else 2
    result = rerun(posterior, corpus, threads)
    say(f"{path}: {result}")
    return 2 if result.differing else 0
