"""``mc2 compile``: compile kernels before they are needed, such as in a container image or at the start of a job."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("engines", metavar="ENGINE", nargs="*", help="gibbs, svi or fastex (default: all)")


def run(options: argparse.Namespace) -> None:
    """Compile the kernels, and print the time and the folder of the kernels."""
    import logging

    from mc2core.base.checks import choice
    from mc2core.base.progress import work
    from mc2core.compute.kernel_store import folder, store
    from mc2core.compute.kernels import compile_seconds
    from mc2core.inference.registry import ENGINES
    from mc2core.inference.running.ahead import compile_kernels

    engines = [choice("engine", one, ENGINES) for one in options.engines] or sorted(ENGINES)
    if folder() is None:
        raise ValueError("no folder for compiled kernels: set NUMBA_CACHE_DIR to a folder with 64 MB of free space")
    logger = logging.getLogger("mc2core")
    level = logger.level
    logger.setLevel(logging.ERROR)  # messages of fits to made-up documents are not useful
    try:
        with compile_seconds() as seconds:
            for engine in engines:
                with store.taking_turns(engine), work(f"{engine}, preparing kernels"):
                    compile_kernels(engine)
    finally:
        logger.setLevel(level)
    took = f"compiled in {sum(seconds):.0f} s" if seconds else "all compiled before"
    print(f"kernels of {', '.join(engines)}: {took}; stored in {folder()}")
