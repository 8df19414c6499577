"""The directive ``picture``: a picture of the example by :mod:`mc2core.plots`, drawn when the site is built."""

from __future__ import annotations

import functools
import logging
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).parents[1]
FOLDER = "gallery/pictures"  # of what a build makes


@functools.cache
def _example() -> Any:
    """Two short chains of the example texts."""
    import pandas as pd

    import mc2core
    from mc2core.models import MC2

    logging.getLogger("mc2core").setLevel(logging.ERROR)
    frame = pd.read_csv(ROOT / "config/example.csv")
    contexts = {"year": "year", "author": "authors"}
    corpus = mc2core.Corpus.from_dataframe(frame, text="text", contexts=contexts, separator=";", min_df=2)
    return mc2core.fit(corpus, MC2(contexts=["year", "author"]), iterations=20, chains=2, progress=False)


class Picture(SphinxDirective):
    """``.. picture:: words(fit, topic=1)``"""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        import mc2core
        from mc2core import plots

        call = self.arguments[0]
        name = re.sub(r"\W+", "-", call).strip("-") + ".png"
        path = Path(self.env.srcdir) / FOLDER / name
        if not path.is_file():
            path.parent.mkdir(parents=True, exist_ok=True)
            function = call.partition("(")[0]
            ax = eval(call, {function: getattr(plots, function), "fit": _example(), "mc2core": mc2core})
            ax.figure.savefig(path, dpi=110)
        image = nodes.image(uri=f"/{FOLDER}/{name}", alt=call, width="70%")
        return [nodes.literal_block(text=f"mc2core.plots.{call}", language="python"), image]


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("picture", Picture)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
