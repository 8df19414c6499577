"""Functions of both command lines, which add, run and stop commands, and report errors.

A command line imports this module first, and other modules inside functions. Otherwise, Ctrl-C during imports would end
in a traceback.
"""

from __future__ import annotations

import atexit
import errno
import importlib
import io
import os
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TextIO

from mc2core import __version__
from mc2core.base import stopping
from mc2core.base.extras import MissingPackage

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence


def add_command(commands: Any, name: str, run: Any, text: str) -> argparse.ArgumentParser:
    """Add a command with its function ``run``. ``text`` is its description, without initial capital and full stop."""
    # argparse formats the help, but not the description
    parser = commands.add_parser(name, help=text.replace("%", "%%"), description=text[0].upper() + text[1:] + ".")
    parser.set_defaults(run=run)
    return parser


def add_module(commands: Any, name: str, module: str, text: str) -> None:
    """Add a command that is defined in another module, which is imported only if the command is given.

    The module must have functions ``add_options`` and ``run``.
    """
    add_command(commands, name, None, text).set_defaults(module=module)


def add_path(parser: argparse.ArgumentParser, name: str, **settings: Any) -> None:
    """Add the argument or option ``name``, a path; ``settings`` are those of ``add_argument``."""
    from pathlib import Path

    parser.add_argument(name, type=Path, **settings)


def add_fit(parser: argparse.ArgumentParser, name: str) -> None:
    """Add the argument ``name``, the path of a fit."""
    add_path(parser, name, metavar="FIT", help="folder of a fit, or the file of its posterior")


def add_words(parser: argparse.ArgumentParser, what: str) -> None:
    """Add the options for the words of documents; ``what`` is "column" or "key"."""
    words, metavar = parser.add_mutually_exclusive_group(), what.upper()
    words.add_argument("--text", metavar=metavar, help=f"{what} of running text")
    words.add_argument("--bag", metavar=metavar, help=f"{what} of words, which are used unchanged")
    words.add_argument("--counts", metavar=metavar, help=f"{what} of words with counts: 'graph:2; tree'")


def add_columns(parser: argparse.ArgumentParser, what: str) -> None:
    """Add the options COLUMNS of a command that reads documents with the words and contexts of a fit."""
    add_words(parser, what)
    metavar = f"NAME={what.upper()}"
    parser.add_argument(
        "--context", dest="contexts", action="append", metavar=metavar, help=f"{what} of a context; may be repeated"
    )
    parser.add_argument("--id", metavar=what.upper(), help=f"{what} with a unique name per document")


def add_embeddings(parser: argparse.ArgumentParser) -> None:
    """Add the option ``--embeddings`` of a command that reads documents from a file."""
    parser.add_argument(
        "--embeddings",
        metavar="FILE.npy",
        help="sentence embeddings: a matrix with one row per document, used by mc2 fit as the context 'embedding'",
    )


def add_threads(parser: argparse.ArgumentParser) -> None:
    """Add the option ``--threads``; the result of the command does not depend on it."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    text = f"number of threads; the result does not depend on it (default {cores}: all cores)"
    parser.add_argument("--threads", type=int, default=cores, help=text)


#: settings that :func:`add_columns` takes
COLUMNS = "text", "bag", "counts", "contexts", "id"


#: parameters that messages name after others, with their values
_NUMBERS = "burn_in", "thin", "iterations", "n_clusters", "checkpoint_every"


class _OutputError(OSError):
    """Standard output could not be written."""


class _Output(io.FileIO):
    """Standard output. Its errors have their own class, to distinguish them from errors of other files."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            failed = _OutputError(f"standard output could not be written: {error.strerror}")
            failed.errno = error.errno
            raise failed from error


class _Messages(io.FileIO):
    """Standard error. If it cannot be written, the text is lost, but the command continues."""

    def write(self, data: Any, /) -> int:
        with suppress(OSError):
            return super().write(data)
        return len(data)


def run(program: str, description: str, add: Callable[[Any], None], arguments: Sequence[str] | None) -> int:
    """Parse the arguments (by default, of the process), call ``options.run(options)``, and return the exit code.

    ``description`` describes the program, and ``add`` the function that adds its commands. The exit code is 0, 2
    after an error message, or 130 after Ctrl-C. Progress is shown on stderr. A signal stops the command between two
    steps of its work.
    """
    atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)  # from here on, a signal does not stop the command
    try:
        with stopping.install():
            if arguments is None:
                _prepare_streams()
                arguments = sys.argv[1:]
            try:
                code = _call(_parse(program, description, add, arguments))
            finally:
                sys.stdout.flush()
    except _OutputError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # buffered output goes to this file when the process ends
        if error.errno == errno.EPIPE:  # `mc2 topics ... | head` has read enough
            return 0
        print(f"{program}: error: {error}", file=sys.stderr)
        return 2
    except (ValueError, OSError, MissingPackage) as error:
        message = str(error)
        if isinstance(error, OSError) and error.strerror:
            message = ": ".join(str(one) for one in (error.filename, error.strerror) if one is not None)
        tell(f"error: {in_shell(message, arguments or ())}", program)
        return 2
    except MemoryError as error:
        print(f"{program}: error: there is not enough memory{f': {error}' if str(error) else ''}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"{program}: stopped", file=sys.stderr)
        return 130
    return code


def in_shell(message: str, arguments: Sequence[str]) -> str:
    """Return a message with names of Python parameters replaced by the command-line options in ``arguments``."""
    import re

    names_given = [one.partition("=")[0] for one in arguments if one.startswith("--")]
    names = {one[2:].replace("-", "_"): one for one in names_given}
    if "clusters" in names:
        names["n_clusters"] = names.pop("clusters")
    if not names:
        return message
    numbers = "|".join(one for one in names if one in _NUMBERS) or "(?!)"
    pattern = rf"^(?:{'|'.join(names)})(?= is | needs )|\b(?:{numbers})(?=,? (?:is |here )?-?[0-9])"
    return re.sub(pattern, lambda match: names[match[0]], message)


def in_lines(text: str, stream: TextIO) -> str:
    """Return text wrapped at words if ``stream`` is a terminal; otherwise return the text unchanged.

    Lines of a wrapped command, such as "next: mc2 topics FIT", end with a backslash.
    """
    if not stream.isatty():
        return text
    import re
    import textwrap
    from functools import partial

    columns = os.get_terminal_size(stream.fileno()).columns or 80
    commands = "(next|or|for [a-z ]+): mc2 "
    lines = [(line, " \\" if re.match(commands, line) else "") for line in text.split("\n")]
    wrap = partial(textwrap.wrap, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    return "\n".join(f"{mark}\n".join(wrap(line, columns - len(mark))) for line, mark in lines)


def say(text: str, flush: bool = False) -> None:
    """Print a text, wrapped at words on a terminal (:func:`in_lines`)."""
    print(in_lines(text, sys.stdout), flush=flush)


def tell(text: str, program: str = "mc2") -> None:
    """Print a message to stderr, with the name of the program, wrapped at words on a terminal (:func:`in_lines`)."""
    print(in_lines(f"{program}: {text}", sys.stderr), file=sys.stderr)


def _prepare_streams() -> None:
    """Replace standard output and standard error by streams with controlled errors.

    Errors of standard output end the command with a message; errors of standard error are ignored. A closed stream
    (``>&-``) is opened again as /dev/null, because otherwise the next file would get its number. Standard output is
    opened for reading, so that writing still fails.
    """
    for number, mode in enumerate((os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, mode)  # gets the lowest free number
    for name, kind in (("stdout", _Output), ("stderr", _Messages)):
        before = getattr(sys, name)
        stream = io.TextIOWrapper(
            io.BufferedWriter(kind(1 if name == "stdout" else 2, "w", closefd=False)),
            encoding=before.encoding if before else "utf-8",
            errors=before.errors if before else "backslashreplace",
            line_buffering=name == "stderr" or (before is not None and before.line_buffering),
            write_through=before is not None and before.write_through,
        )
        setattr(sys, name, stream)


def _parse(program: str, description: str, add: Callable[[Any], None], arguments: Sequence[str]) -> argparse.Namespace:
    """Return the parsed options.

    Each command parses its own options. Options may therefore stand between arguments, and errors show the usage of the
    command.
    """
    import argparse

    class Version(argparse.Action):
        def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
            from mc2core.base.provenance import commit

            revision = commit()
            print(f"{program} {__version__}" + (f" (commit {revision})" if revision else ""))
            parser.exit()

    arguments = list(arguments)
    for at in range(len(arguments) - 2, -1, -1):
        if arguments[at] == "--missing" and not arguments[at + 1].startswith("--"):  # a code such as -99 is no option
            arguments[at : at + 2] = [f"--missing={arguments[at + 1]}"]
    parser = argparse.ArgumentParser(
        prog=program, description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--version", action=Version, nargs=0, help="print the version, with the commit if it is known")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    add(commands)
    command = commands.choices.get(arguments[0]) if arguments else None
    if command is not None and (name := command.get_default("module")):
        module = importlib.import_module(name)
        module.add_options(command)
        command.set_defaults(run=module.run)
    return parser.parse_args(arguments) if command is None else command.parse_intermixed_args(arguments[1:])


def _call(options: argparse.Namespace) -> int:
    import logging

    from mc2core.base import progress

    class Messages(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            progress.to_stderr(in_lines(self.format(record), sys.stderr))

    logging.basicConfig(level=logging.INFO, format="%(message)s", handlers=[Messages()])
    with progress.showing(True):
        return options.run(options) or 0
