"""Count the files that one step of each engine uses, and the modules that ``mc2 fit`` loads before the engine starts.

python tools/walks.py

A file counts if one of its functions is called (``sys.setprofile``). Calls between compiled kernels are not counted.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from mc2core import Corpus
from mc2core.inference import SVI, Gibbs
from mc2core.models import MC2

_PACKAGE = "/src/mc2core/"
#: models and engines whose step is traced
WALKS: dict[str, tuple[Any, Any]] = {
    "Gibbs": (MC2(), Gibbs(start_topics=4)),
    "SVI": (MC2(document_level=False), SVI(batch_size=20)),
    "SVI with tables": (MC2(document_level=False), SVI(batch_size=20, max_tables=3)),
    "SVI with a document level": (MC2(), SVI(batch_size=20)),
}
# code that runs `mc2 fit` and ends it when the engine makes its starting state
_FIT = """
import os, sys
from mc2core.app import cli

def look(frame, event, argument):
    if event == "call" and (frame.f_code.co_name, frame.f_globals.get("__name__", "")[-6:]) == ("init", "engine"):
        sys.setprofile(None)
        print(*sorted(name for name in sys.modules if name.partition(".")[0] == "mc2core"), sep="\\n", flush=True)
        os._exit(0)

sys.setprofile(look)
cli.main(["fit", sys.argv[1], "--out", sys.argv[1] + "/fit"])
"""


def files_entered(call: Callable[[], Any]) -> set[str]:
    """Return the files of the library with a function that ``call`` calls."""
    seen: set[str] = set()

    def look(frame: Any, event: str, argument: Any) -> None:
        _, found, file = frame.f_code.co_filename.partition(_PACKAGE)
        if event == "call" and found:
            seen.add(file)

    sys.setprofile(look)
    try:
        call()
    finally:
        sys.setprofile(None)
    return seen


def modules_before_the_start(corpus: Path) -> list[str]:
    """Return the modules of the library that ``mc2 fit`` has loaded when the engine starts."""
    done = subprocess.run([sys.executable, "-c", _FIT, str(corpus)], capture_output=True, text=True, check=True)
    return done.stdout.split()


def main() -> None:
    """Print the counts and the names."""
    corpus = Corpus(np.random.default_rng(0).poisson(0.5, (60, 12)))
    for name, (model, engine) in WALKS.items():
        state = engine.init(model.for_corpus(corpus), corpus, 0)
        engine.step(corpus, state, 0, 1)
        files = files_entered(lambda state=state, engine=engine: engine.step(corpus, state, 0, 2))
        print(f"{name}: {len(files)} files: {', '.join(sorted(files))}")
    with tempfile.TemporaryDirectory() as folder:
        corpus.save(Path(folder) / "corpus")
        modules = modules_before_the_start(Path(folder) / "corpus")
    print(f"mc2 fit: {len(modules)} modules: {', '.join(modules)}")


if __name__ == "__main__":
    main()
