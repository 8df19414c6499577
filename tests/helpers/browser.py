"""A real browser without a window, for tests of pages: Chromium of the system, driven by Playwright."""

import contextlib
import functools
import re
import shutil

from helpers.needs import BROWSERS
from playwright import sync_api


@contextlib.contextmanager
def running():
    """A browser: the function that opens pages in it."""
    chromium = next(filter(None, map(shutil.which, BROWSERS)))
    with sync_api.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        yield functools.partial(_opened, browser)
        browser.close()


@contextlib.contextmanager
def _opened(browser, path, width=1300, height=900, scheme="light", ready="body[data-ready]", known=None):
    """A page of a file, once it has what is ``ready``; afterwards, that nothing was said on the console, except what
    matches ``known``, or asked of a network.
    """
    with browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme) as context:
        page = context.new_page()
        said, asked = [], []
        page.on("console", lambda message: said.append(f"{message.type}: {message.text} ({message.location['url']})"))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(path.resolve().as_uri())
        page.wait_for_selector(ready, timeout=60_000)
        yield page
    assert [one for one in said if not (known and re.search(known, one))] == []
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
