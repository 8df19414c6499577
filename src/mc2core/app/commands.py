"""What the command lines of both packages share: how a command is named, run, stopped, and says what is wrong."""

from __future__ import annotations

import argparse
import atexit
import logging
import os
import signal
import sys
from typing import Any

from mc2core.base import progress, stopping
from mc2core.base.extras import MissingPackage


def add_command(commands: Any, name: str, run: Any, text: str) -> argparse.ArgumentParser:
    """A command of a parser: its function, and what it does in a sentence without its capital and full stop."""
    parser = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
    parser.set_defaults(run=run)
    return parser


def run(program: str, options: argparse.Namespace) -> int:
    """Call ``options.run(options)``; returns the exit code: 0, 2 after a sentence on what was wrong, 130 after Ctrl-C.

    Progress goes to stderr, and a signal stops between two pieces of work.
    """
    atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)  # what is done is not stopped any more
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    try:
        with stopping.watching(), progress.showing(True):
            code: int = options.run(options) or 0
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
