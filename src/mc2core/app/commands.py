"""What the command lines of both packages share: how a command is named, run, stopped, and says what is wrong.

A command line imports this first and all else inside functions: Ctrl-C before :func:`run` ends in a traceback.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
from typing import TYPE_CHECKING, Any

from mc2core.base import stopping
from mc2core.base.extras import MissingPackage

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence


def add_command(commands: Any, name: str, run: Any, text: str) -> argparse.ArgumentParser:
    """A command of a parser: its function, and what it does in a sentence without its capital and full stop."""
    # argparse formats the help and leaves the description as it is
    parser = commands.add_parser(name, help=text.replace("%", "%%"), description=text[0].upper() + text[1:] + ".")
    parser.set_defaults(run=run)
    return parser


def add_fit(parser: argparse.ArgumentParser, name: str) -> None:
    """The argument ``name`` of a command that reads what a fit found."""
    from pathlib import Path

    parser.add_argument(name, metavar="FIT", type=Path, help="folder of a fit, or the file of its posterior")


def add_words(parser: argparse.ArgumentParser, what: str) -> None:
    """Options that say where documents hold their words; ``what`` is "column" or "key"."""
    words, metavar = parser.add_mutually_exclusive_group(), what.upper()
    words.add_argument("--text", metavar=metavar, help=f"{what} of running text")
    words.add_argument("--bag", metavar=metavar, help=f"{what} of words, taken as they are")
    words.add_argument("--counts", metavar=metavar, help=f"{what} of words with counts: 'graph:2; tree'")


def add_columns(parser: argparse.ArgumentParser, what: str) -> None:
    """:func:`add_words` and the rest of COLUMNS, for documents that are read as those of a fit were."""
    add_words(parser, what)
    metavar = f"NAME={what.upper()}"
    parser.add_argument(
        "--context", dest="contexts", action="append", metavar=metavar, help=f"{what} of a context; may be given again"
    )
    parser.add_argument("--id", metavar=what.upper(), help=f"{what} of a document's name")


#: settings that :func:`add_columns` takes
COLUMNS = "text", "bag", "counts", "contexts", "id"


def run(program: str, parser: Callable[[], argparse.ArgumentParser], arguments: Sequence[str] | None) -> int:
    """Parse the arguments (those of the process if None) and call ``options.run(options)``.

    Returns the exit code: 0, 2 after a sentence on what was wrong, 130 after Ctrl-C. Progress goes to stderr, and a
    signal stops between two pieces of work.
    """
    atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)  # what is done is not stopped any more
    try:
        with stopping.watching():
            code = _call(parser().parse_args(arguments))
        sys.stdout.flush()
    except BrokenPipeError:  # `mc2 topics ... | head` has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (ValueError, OSError, MissingPackage) as error:
        print(f"{program}: error: {error}", file=sys.stderr)
        return 2
    except MemoryError as error:
        print(f"{program}: error: there is not enough memory{f': {error}' if str(error) else ''}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"{program}: stopped", file=sys.stderr)
        return 130
    return code


def _call(options: argparse.Namespace) -> int:
    import logging

    from mc2core.base import progress

    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    with progress.showing(True):
        return options.run(options) or 0
