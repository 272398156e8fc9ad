"""A browser that opens a page and records what it complains about."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from conformance.pytest_plugin.tiers import chromium


@pytest.fixture(scope="module")
def look():
    """Open a page in a window of that width and colour scheme; return the page and the errors it logs."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # Chromium's own sandbox does not start as root, and these pages are ours.
        browser = playwright.chromium.launch(executable_path=str(chromium()), args=["--no-sandbox"])

        @contextmanager
        def opened(address, width, scheme):
            context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
            context.set_default_timeout(120_000)  # of a machine with other work
            page, complaints = context.new_page(), []
            page.on("console", lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None)
            page.on("pageerror", lambda error: complaints.append(str(error)))
            page.on("requestfailed", lambda request: complaints.append(f"cannot load {request.url}"))
            page.goto(address)
            yield page, complaints
            context.close()

        yield opened
        browser.close()
