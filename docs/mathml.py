"""Mathematics as MathML, made when the site is built: no script draws it, and it can be copied and searched.

KaTeX, which comes with sphinxcontrib-katex, reads the formulas in an embedded V8. Their letters are those of STIX Two
Math, which comes with ziamath (Open Font License, named in the font).
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from docutils import nodes
from py_mini_racer import JSEvalException, MiniRacer
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.fileutil import copy_asset_file

logger = logging.getLogger(__name__)
SPACE = "http://www.w3.org/1998/Math/MathML"
ElementTree.register_namespace("", SPACE)
OPERATOR, THIN = f"{{{SPACE}}}mo", f"{{{SPACE}}}mspace"
#: characters of a formula in a line that may not fit into a narrow window
WIDE = 45
LIMITS = (f"{{{SPACE}}}munder", f"{{{SPACE}}}msub")


def drawn_by_browsers(made: str) -> str:
    """KaTeX's <math> with what browsers leave to the page: the alignment of columns, and TeX's space around names.

    Names of functions (ln) are set off from what stands before and after, unless a bracket does.
    """
    math = ElementTree.fromstring(made[made.index("<math") : made.rindex("</math>") + 7])
    for table in math.iter(f"{{{SPACE}}}mtable"):
        sides = table.get("columnalign", "").split()
        gap = "0" if table.get("columnspacing") == "0em" else "0.5em"
        for row in table:
            for cell, side in zip(row, sides, strict=False):  # the last columns may be left out of a row
                cell.set("style", f"text-align: {side}; padding: 0.25em {gap}")
    for bar in math.iter(OPERATOR):
        if bar.text in ("\u2223", "\u2225") and bar.get("stretchy") == "false":  # of a norm; others stand between
            bar.set("lspace", "0")
            bar.set("rspace", "0")
    for parent in math.iter():
        for place, one in reversed([*enumerate(parent)][:-1]):  # max over something
            name = "".join(one[0].itertext()).strip("\u2061") if one.tag in LIMITS else ""
            if name in ("max", "min") and parent[place + 1].text not in ("(", "[", "{"):
                parent.insert(place + 1, ElementTree.Element(THIN, width="0.1667em"))
        for applied in [one for one in parent if one.tag == OPERATOR and one.text == "\u2061"]:
            place = list(parent).index(applied)
            if place + 1 < len(parent) and (parent[place + 1].text or "").strip() not in set("([{|,)]}"):
                parent.insert(place + 1, ElementTree.Element(THIN, width="0.1667em"))
            if place > 1 and (parent[place - 2].tag != OPERATOR or parent[place - 2].text in set(")]}|\u2225")):
                parent.insert(place - 1, ElementTree.Element(THIN, width="0.1667em"))
    return ElementTree.tostring(math, encoding="unicode")


class Renderer:
    """Formulas of a build. ``open`` and ``close`` are called once each: V8's thread outlives who does not close it."""

    def open(self, app: Sphinx) -> None:
        self._engine = MiniRacer()
        self._engine.eval(files("sphinxcontrib").joinpath("katex.min.js").read_text(encoding="utf-8"))

    def close(self, app: Sphinx, error: Exception | None) -> None:
        self._engine.close()
        if error is None and app.builder.format == "html":
            font = files("ziamath").joinpath("fonts", "STIXTwoMath-Regular.ttf")
            copy_asset_file(str(font), Path(app.outdir) / "_static", force=True)

    def _mathml(self, node: nodes.math | nodes.math_block, block: bool) -> str:
        settings = {"output": "mathml", "displayMode": block, "strict": "error", "throwOnError": True}
        try:
            return drawn_by_browsers(self._engine.call("katex.renderToString", node.astext(), settings))
        except JSEvalException as error:
            logger.warning("%s", str(error).partition("\n")[0], location=node)
            raise nodes.SkipNode from error

    def inline(self, translator: Any, node: nodes.math) -> None:
        made = self._mathml(node, False)
        is_wide = len(node.astext()) > WIDE
        translator.body.append(f'<span class="wide-formula">{made}</span>' if is_wide else made)
        raise nodes.SkipNode

    def block(self, translator: Any, node: nodes.math_block) -> None:
        translator.body.append(f'<div class="formula">{self._mathml(node, True)}</div>')
        raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    renderer = Renderer()
    app.connect("builder-inited", renderer.open)
    app.connect("build-finished", renderer.close)
    app.add_html_math_renderer("mathml", (renderer.inline, None), (renderer.block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": False}
