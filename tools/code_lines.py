"""Count the lines of Python files that contain code; docstrings, comments and blank lines do not count.

python tools/code_lines.py [--files] [FOLDER ...]

The output has one line per folder (default: src and tests) and, with --files, one line per file.
"""

from __future__ import annotations

import argparse
import ast
import io
import tokenize
from pathlib import Path

_NO_CODE = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
    *(tokenize.ENCODING, tokenize.ENDMARKER),
}


def code_lines(text: str) -> int:
    """Return the number of lines of a module that contain code."""
    docstrings = {
        (node.body[0].lineno, node.body[0].col_offset)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and ast.get_docstring(node, clean=False) is not None
    }
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _NO_CODE and token.start not in docstrings and token.string != ";":
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines)


def main() -> None:
    """Print the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, default=[Path("src"), Path("tests")], metavar="FOLDER")
    parser.add_argument("--files", action="store_true", help="also count each file")
    arguments = parser.parse_args()
    for folder in arguments.folders:
        paths = [folder] if folder.is_file() else sorted(folder.rglob("*.py"))
        counts = {path: code_lines(path.read_text(encoding="utf-8")) for path in paths}
        if arguments.files:
            for path, count in sorted(counts.items(), key=lambda pair: pair[1]):
                print(f"{count:7,} {path}")
        print(f"{sum(counts.values()):7,} {folder}")


if __name__ == "__main__":
    main()
