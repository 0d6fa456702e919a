"""Pages in a headless Chromium, for all tests that look at HTML.

``open_page`` makes a page and remembers what went wrong on it; at the end of the test any console
error, any uncaught exception and any request to somewhere else fail it.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

WIDTHS = {"desktop": (1360, 860), "phone": (390, 844)}
OpenPage = Callable[..., Any]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)


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

    def request(self, request: Any) -> None:
        if not request.url.startswith(tuple(self.allowed)):
            self.faults.append(f"request outside: {request.url}")


@pytest.fixture
def open_page(browser: Any) -> Iterator[OpenPage]:
    """Opens a file or an address: ``open_page(target, width="phone", dark=False, origins=())``.

    ``origins`` are addresses that the page may talk to, as ``http://127.0.0.1:8000``.
    """
    watched: list[Watched] = []
    contexts: list[Any] = []

    def open_one(
        target: Path | str, *, width: str = "desktop", dark: bool = False, origins: Any = ()
    ) -> Any:
        watch = Watched(*origins)
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
        page.on("request", watch.request)
        page.goto(target.resolve().as_uri() if isinstance(target, Path) else target)
        return page

    yield open_one
    for context in contexts:
        context.close()
    assert [fault for watch in watched for fault in watch.faults] == []
