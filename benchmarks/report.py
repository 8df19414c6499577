"""Measure the size of an HTML report, the time to its first paint, and the time until all charts are drawn.

    python -m benchmarks.report description/index.html

Each repeat starts a new Chromium without a window. The table has the median and the range in milliseconds. The study
needs Chromium and Playwright.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

import numpy as np

_WATCH = """new MutationObserver(() => { if (document.body?.dataset.ready) window.drawn ??= performance.now(); })
    .observe(document, { subtree: true, childList: true, attributes: true });"""
_TIMES = "[performance.getEntriesByName('first-contentful-paint')[0].startTime, window.drawn]"


def times(page: Path, repeats: int = 6) -> np.ndarray:
    """Return a (repeats, 2) array of milliseconds: to the first contentful paint, and to the last chart."""
    from playwright import sync_api

    rows = []
    with sync_api.sync_playwright() as driver:
        for _ in range(repeats):
            browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            tab = browser.new_page(viewport={"width": 1400, "height": 900})
            tab.add_init_script(_WATCH)
            tab.goto(page.resolve().as_uri())
            tab.wait_for_function("window.drawn && performance.getEntriesByName('first-contentful-paint').length")
            rows.append(tab.evaluate(_TIMES))
            browser.close()
    return np.array(rows, dtype=np.float64)


def main(arguments: list[str] | None = None) -> None:
    options = argparse.ArgumentParser(prog="python -m benchmarks.report", description=__doc__.split("\n")[0])
    options.add_argument("pages", nargs="+", type=Path)
    options.add_argument("--repeats", type=int, default=6)
    chosen = options.parse_args(arguments)
    print("| page | MB | first paint, ms | all charts, ms |\n|---|---|---|---|")
    for page in chosen.pages:
        cells = [f"{np.median(one):.0f} ({one.min():.0f} to {one.max():.0f})" for one in times(page, chosen.repeats).T]
        print(f"| {page} | {page.stat().st_size / 1e6:.1f} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
