"""Take a screenshot of an HTML report: ``python tools/report_pictures.py index.html picture.png [--numbered]``.

With ``--numbered``, the parts that docs/how_to/reading_report.md explains have numbers. The script needs Chromium and
Playwright.
"""

import argparse
import shutil
from pathlib import Path

#: numbered parts in order, and the distance of the number from the corner of the part in pixels
PARTS = {
    "#summary": (-12, 10),
    "#colour": (0, -6),
    "#groups": (24, 8),
    "#map": (0, 8),
    "#legend": (-12, 8),
    "#search": (0, 0),
    "#clusters": (-2, 8),
    "#panel-title": (-12, 6),
    "#cluster-bars": (-8, 4),
    "#typical": (-8, 8),
    "#about": (-8, 22),
}
NUMBER = """([part, number, dx, dy]) => {
    const box = document.querySelector(part).getBoundingClientRect(), made = document.createElement("div");
    made.textContent = number;
    made.style = `position:absolute;left:${box.left + scrollX + dx}px;top:${box.top + scrollY + dy}px;width:26px;` +
        "height:26px;margin:-13px;border-radius:50%;background:#b00020;color:#fff;font:bold 14px/26px sans-serif;" +
        "text-align:center;z-index:9";
    document.body.append(made);
}"""


def take(report, picture, width=1400, height=1250, numbered=False):
    from playwright import sync_api

    with sync_api.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": width, "height": height})
        page.goto(Path(report).resolve().as_uri())
        page.wait_for_selector("body[data-ready]")
        page.wait_for_timeout(500)
        if numbered:
            page.add_style_tag(content="body { padding-left: 12px; }")
            page.evaluate("dispatchEvent(new Event('resize'))")
            page.wait_for_timeout(500)
        for number, (part, offset) in enumerate(PARTS.items() if numbered else (), start=1):
            page.evaluate(NUMBER, [part, number, *offset])
        page.screenshot(path=picture)
        browser.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("report")
    parser.add_argument("picture")
    parser.add_argument("--numbered", action="store_true")
    parser.add_argument("--width", type=int, default=1400)
    parser.add_argument("--height", type=int, default=1250)
    chosen = parser.parse_args()
    take(chosen.report, chosen.picture, chosen.width, chosen.height, chosen.numbered)
