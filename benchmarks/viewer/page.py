"""The page: template, style and scripts in one file that asks for nothing from outside."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

from ...envs.core.errors import MissingExtraError

HERE = Path(__file__).parent
SCRIPTS = ("model", "colour", "tokens", "inspector", "turns", "tree", "crawl", "find", "main")
"""Parts of the script, in this order."""


def render_page(data: dict[str, Any]) -> str:
    """The whole page as HTML.

    Raises:
        MissingExtraError: Jinja is not installed.
    """
    try:
        import jinja2
    except ImportError:
        raise MissingExtraError("turngym view", "jinja2", "web") from None
    loader = jinja2.FileSystemLoader(HERE)
    environment = jinja2.Environment(
        loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, keep_trailing_newline=True
    )
    style = (HERE / "style.css").read_text(encoding="utf-8")
    parts = [(HERE / f"{name}.js").read_text(encoding="utf-8") for name in SCRIPTS]
    script = '"use strict";\n(() => {\n' + "\n".join(parts) + "\n})();\n"
    return environment.get_template("page.html").render(
        title=data["title"],
        style=style,
        script=script,
        style_hash=source_hash(style),
        script_hash=source_hash(script),
        data=embedded(data),
    )


def embedded(data: Any) -> str:
    """JSON that can stand inside a script element whatever the texts hold.

    No text can end the element or begin another: every ``<``, ``>`` and ``&`` is written as an
    escape of JSON, and so are the line separators that old scripts stumble over.
    """
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text


def source_hash(text: str) -> str:
    """What a content security policy calls an inline part by."""
    digest = hashlib.sha256(text.encode()).digest()
    return "sha256-" + base64.b64encode(digest).decode()
