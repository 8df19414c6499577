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
