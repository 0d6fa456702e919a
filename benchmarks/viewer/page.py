"""Render the page: template, style and scripts in one self-contained file."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

from ...envs.core.errors import MissingExtraError

HERE = Path(__file__).parent
SCRIPTS = ("model", "colour", "tokens", "inspector", "turns", "tree", "crawl", "find", "main")
"""Parts of the script, in order."""


def render_page(data: dict[str, Any]) -> str:
    """Render the page as HTML.

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
        data=embed_json(data),
    )


def embed_json(data: Any) -> str:
    """Encode JSON for a script element, safe for any text.

    Every ``<``, ``>``, ``&`` and Unicode line separator is escaped, so that no text can end the
    element or start another.
    """
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text


def source_hash(text: str) -> str:
    """Return the hash that identifies an inline part in a content security policy."""
    digest = hashlib.sha256(text.encode()).digest()
    return "sha256-" + base64.b64encode(digest).decode()
