"""A headless Chromium that fails a test for any console error and any request to the outside."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

WIDTHS = {"desktop": (1280, 900), "phone": (390, 844)}
Visit = Callable[..., Any]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    api = pytest.importorskip("playwright.sync_api", reason="the package playwright is missing")
    pytest.importorskip("jinja2", reason="the extra web is missing")
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        pytest.skip("no Chromium (Debian's package chromium) on this machine")
    with api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def visit(chromium: Any) -> Iterator[Visit]:
    """``visit(address, width="phone", dark=True)`` opens a page of its own context."""
    faults: list[str] = []
    contexts: list[Any] = []

    def opened(address: str, width: str = "desktop", dark: bool = False) -> Any:
        wide, high = WIDTHS[width]
        context = chromium.new_context(
            viewport={"width": wide, "height": high}, color_scheme="dark" if dark else "light"
        )
        contexts.append(context)
        context.set_default_timeout(30_000)  # machines can be busy
        page = context.new_page()
        origin = address if address.startswith("file:") else "/".join(address.split("/")[:3])
        home = ("file:", "data:") if address.startswith("file:") else (origin, "data:")
        page.on("console", lambda message: faults.append(message.text))
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("dialog", lambda dialog: faults.append(f"dialog: {dialog.message}"))
        page.on(
            "request",
            lambda request: None if request.url.startswith(home) else faults.append(request.url),
        )
        page.goto(address)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert faults == []
