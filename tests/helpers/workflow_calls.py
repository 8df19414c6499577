"""Snakemake as a user calls it, for the tests of the workflow."""

import multiprocessing
import os
import shutil
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

#: what every run of Snakemake on this workflow loads
PARTS = [
    *("mc2papers.configuration", "mc2papers.inputs", "mc2papers.targets", "mc2papers.datasets.catalogue"),
    *("mc2papers.baselines.registry", "mc2core.inference.registry", "mc2papers.datasets.download.fetch"),
]
LOADED = ["snakemake.cli", *PARTS]
_loaded = multiprocessing.get_context("forkserver")
_loaded.set_forkserver_preload(LOADED)


def copy_checkout(folder):
    """Make a folder with all that a checkout needs to run the workflow."""
    for part in ("workflow", "config", "profiles"):
        shutil.copytree(ROOT / part, folder / part)
    shutil.copy(ROOT / "Snakefile", folder)


def snakemake(folder, *arguments):
    """(return code, output) of ``python -m snakemake --cores 2`` with these arguments, in a folder.

    By a process forked from one that has loaded all that it needs, which takes as long as a dry run.
    """
    arguments = ["--cores", "2", *map(str, arguments)]
    search_path = [str(folder), *(path for path in sys.path if path not in (str(ROOT), str(ROOT / "tests")))]
    with tempfile.TemporaryDirectory() as scratch:
        outputs = [Path(scratch) / name for name in ("out", "err")]
        process = _loaded.Process(target=_call, args=(folder, arguments, dict(os.environ), search_path, outputs))
        process.start()
        process.join(900)  # one that hangs is a failure, not a wait
        process.kill()
        process.join()
        return process.exitcode, "".join(path.read_text(encoding="utf-8") for path in outputs)


def _call(folder, arguments, environment, search_path, outputs):
    from snakemake import cli

    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[:] = search_path
    sys.argv[:] = ["snakemake", *arguments]  # which the default profile reads
    for stream, path in enumerate(outputs, start=1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), stream)
    cli.main()
