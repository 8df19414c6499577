"""Markdown tables, printed row by row as benchmarks come to them."""

from __future__ import annotations


def row(*cells: object) -> None:
    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def heading(*names: str) -> None:
    print()
    row(*names)
    print("|" + "---|" * len(names), flush=True)
