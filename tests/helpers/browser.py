"""Pages in a headless Chromium, for all tests that look at HTML.

``open_page`` makes a page and remembers what went wrong on it; at the end of the test any console
error, any uncaught exception, any dialog and any request to somewhere else fail it.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

WIDTHS = {"desktop": (1280, 900), "phone": (390, 844)}
OpenPage = Callable[..., Any]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Headless Chromium; tests that need it are skipped where it is missing.

    One per file: while it lives, Playwright's event loop runs in this thread, and tests of other
    files could not run theirs.
    """
    api = pytest.importorskip("playwright.sync_api", reason="the package playwright is missing")
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        pytest.skip("no Chromium (Debian's package chromium) on this machine")
    with api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield chromium
        chromium.close()


class Watched:
    """What went wrong on the pages of a test."""

    def __init__(self, *origins: str) -> None:
        self.allowed = ["file:", "data:", "blob:", "about:", *origins]
        self.faults: list[str] = []

    def console(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.faults.append(f"console {message.type}: {message.text}")

    def exception(self, error: Any) -> None:
        self.faults.append(f"uncaught: {error}")

    def dialog(self, dialog: Any) -> None:
        self.faults.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def request(self, request: Any) -> None:
        if not request.url.startswith(tuple(self.allowed)):
            self.faults.append(f"request outside: {request.url}")


@pytest.fixture
def open_page(browser: Any) -> Iterator[OpenPage]:
    """Opens a file or an address: ``open_page(target, width="phone", dark=False)``.

    A page from a server may talk to that server alone, a file to nobody.
    """
    watched: list[Watched] = []
    contexts: list[Any] = []

    def open_one(target: Path | str, *, width: str = "desktop", dark: bool = False) -> Any:
        address = target.resolve().as_uri() if isinstance(target, Path) else target
        own = () if address.startswith("file:") else ("/".join(address.split("/")[:3]),)
        watch = Watched(*own)
        watched.append(watch)
        wide, high = WIDTHS[width]
        context = browser.new_context(
            viewport={"width": wide, "height": high},
            has_touch=width == "phone",
            color_scheme="dark" if dark else "light",
            reduced_motion="reduce",
        )
        context.set_default_timeout(30_000)  # machines can be busy
        contexts.append(context)
        page = context.new_page()
        page.on("console", watch.console)
        page.on("pageerror", watch.exception)
        page.on("dialog", watch.dialog)
        page.on("request", watch.request)
        page.goto(address)
        return page

    yield open_one
    for context in contexts:
        context.close()
    assert [fault for watch in watched for fault in watch.faults] == []
