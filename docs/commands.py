"""The directive ``command``: a section with the help that a command prints."""

from __future__ import annotations

import contextlib
import io
import os
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import mc2core.app.cli
import mc2papers.cli

MAINS = {"mc2": mc2core.app.cli.main, "mc2papers": mc2papers.cli.main}


class Command(SphinxDirective):
    """``.. command:: mc2 fit``"""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0]
        os.environ["COLUMNS"] = "86"  # of the terminal, for argparse: as wide as the site shows without a scroll bar
        with contextlib.redirect_stdout(io.StringIO()) as said, contextlib.suppress(SystemExit):
            program, *command = name.split()
            MAINS[program]([*command, "--help"])
        section = nodes.section(ids=[name.replace(" ", "-")])
        section += [nodes.title(text=name), nodes.literal_block(text=said.getvalue().rstrip(), language="none")]
        return [section]


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("command", Command)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
