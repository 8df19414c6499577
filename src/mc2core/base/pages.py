"""Self-contained HTML pages, in light and dark, that make no requests and escape all text."""

from __future__ import annotations

import html
import json
import math
import re
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

_POLICY = (
    "default-src 'none'; script-src {folder}'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'"
)
_BESIDE = "'self' file: "


def asset(package: str, name: str) -> str:
    """Return the text of a file in the folder ``assets`` of a package."""
    return resources.files(package).joinpath("assets", name).read_text(encoding="utf-8")


def page(title: str, body: str, style: str = "", scripts: Sequence[str] = (), beside: bool = False) -> str:
    """Return a complete HTML page with the title ``title`` (text) and the content ``body`` (markup).

    The content security policy of the page forbids all requests of the browser. If ``beside`` is True, scripts of the
    same folder or site are allowed. ``scripts`` are sources of scripts; data are written by :func:`data_script`.
    """
    policy, style = _POLICY.format(folder=_BESIDE if beside else ""), asset("mc2core.base", "page.css") + style
    parts = "\n".join(
        f"<script>{one}</script>" for one in (source.replace("</script", "<\\/script") for source in scripts)
    )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f"<title>{html.escape(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n{body}\n{parts}\n</body>\n</html>\n"
    )


def facts(title: str, rows: Mapping[str, Any], below: str = "") -> str:
    """Return HTML for a notebook: a title, a table of names and values (texts), and the markup ``below``."""
    lines = "".join(
        f'<tr><th style="text-align:left">{html.escape(name)}</th>'
        f'<td style="text-align:left">{html.escape(str(value))}</td></tr>'
        for name, value in rows.items()
    )
    return f"<div><strong>{html.escape(title)}</strong><table>{lines}</table>{below}</div>"


def plain(text: str) -> str:
    """Return text as one line in which characters with a meaning in Markdown and HTML are escaped."""
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*\[\]|#~]|(?<!\w)_|_(?!\w))", r"\\\1", " ".join(escaped.split()))


def data_script(name: str, value: Any) -> str:
    """Return a script that assigns a JSON-able value to the global ``name``; infinities and NaN become null.

    The script parses the value from a text, because the key ``__proto__`` of a literal would set the prototype.
    """
    text = json_text(value).replace("\\", "\\\\").replace("'", "\\'")
    return f"window.{name} = JSON.parse('{text}');"


def json_text(value: Any) -> str:
    """Return JSON that is safe in a script of an HTML page or in a script file."""
    text = json.dumps(_plain(value), separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    # "<" ends no script and opens no comment; the separators are line ends in older JavaScript
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
