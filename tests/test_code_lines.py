"""The counter of code lines (tools/code_lines.py)."""

import pytest
from tools.code_lines import code_lines


@pytest.mark.parametrize(
    ("text", "n_lines"),
    [
        ("", 0),
        ('"""Module."""\n\n# comment\na = 1  # reason\n', 1),
        ('def f(\n    a,\n):\n    """One\n\n    two."""\n\n    return a\n', 4),
        ('class A:\n    """A class."""\n\n    text = """\n\n    kept"""\n', 4),
        ('async def f():\n    """Doc."""\n    "no docstring"\n', 2),
        ('"""Doc."""; a = 1\n', 1),
    ],
    ids=["empty", "comments", "a function", "a text", "a further text", "one line"],
)
def test_lines_with_code_are_counted(text, n_lines):
    assert code_lines(text) == n_lines
