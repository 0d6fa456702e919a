"""Hostile texts: on the pages of the board, in terminals, and as actions of every environment."""

from __future__ import annotations

import html
import html.parser
import math
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from helpers.attack_cases import cases, filled
from helpers.board_helpers import tiny_suite
from helpers.site_helpers import index_of, says, written

from turngym.envs import TextEnv
from turngym.envs.utils.untrusted_text import plain
from turngym.leaderboard.schema.entry import ModelCard

CONTROL = ("Cc", "Cf", "Cs", "Zl", "Zp")
TEXTS = [*cases("payloads", "markup"), *cases("payloads", "control")]
NEVER = frozenset(
    (
        "style",
        "iframe",
        "object",
        "embed",
        "base",
        "img",
        "math",
        "video",
        "source",
        "marquee",
        "x-y",
    )
)


class _Tags(html.parser.HTMLParser):
    """Everything of a page that could run or load something, and its text."""

    def __init__(self) -> None:
        super().__init__()
        self.odd: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag in NEVER or (tag == "script" and not given.get("src")):
            self.odd.append(tag)
        self.odd += [name for name in given if name.startswith("on") or name == "style"]
        for name in ("href", "src", "action"):
            target = (given.get(name) or "").strip().lower()
            if "evil.test" in target or target.startswith(("javascript:", "file:", "//")):
                self.odd.append(target)

    def handle_data(self, data: str) -> None:
        self.text.append(data)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Pages of a board with one entry, whose texts are every payload."""
    pytest.importorskip("jinja2", reason="the extra web is missing")
    from turngym.leaderboard.site import SiteSettings, build_site

    suite = tiny_suite()
    root = tmp_path_factory.mktemp("board")
    texts = [param.values[0]["text"] for param in TEXTS]
    everything = "\n".join(texts)
    assert len(everything) < 8000
    flat = [text for text in texts if all(sign.isprintable() for sign in text)]
    card = ModelCard(
        model=flat[0],
        base=flat[5],
        recipe=flat[21],
        sampling=flat[22],
        data=everything,
        limitations=everything,
    )
    written(
        suite,
        root / "entries" / suite.id / "evil",
        says(everything),
        name=flat[20],
        organisation=flat[16],
        licence=flat[23],
        hardware=flat[33],
        description=everything,
        card=card,
    )
    settings = SiteSettings(entries=root / "entries", suites={suite.id: suite}, out=root / "out")
    indexed = index_of(root, suite)
    assert indexed[0].verdict.accepted
    build_site(indexed, settings)
    return {
        path.relative_to(settings.out).as_posix(): path.read_text(encoding="utf-8")
        for path in Path(settings.out).rglob("*.html")
    }


def test_the_pages_hold_no_tag_that_is_not_ours(pages: dict[str, str]) -> None:
    assert len(pages) > 5
    for name, page in pages.items():
        tags = _Tags()
        tags.feed(page)
        assert tags.odd == [], name


@pytest.mark.parametrize("case", TEXTS)
def test_texts_of_an_entry_are_shown_as_they_are(
    pages: dict[str, str], case: dict[str, Any]
) -> None:
    """As text, with a mark where a control character stood; and in no page as anything else."""
    text = case["text"]
    tags = _Tags()
    tags.feed(pages["entries/tiny-v1/evil/index.html"])
    assert plain(text) in "".join(tags.text)
    for name, page in pages.items():
        assert html.escape(text) == text or text not in page, name
        bad = {sign for sign in text if unicodedata.category(sign) in CONTROL} - set("\n\t")
        assert not bad & set(page), name


@pytest.mark.parametrize("case", TEXTS)
def test_texts_in_a_terminal(case: dict[str, Any]) -> None:
    shown = plain(case["text"])
    assert len(shown) == len(case["text"])
    assert all(unicodedata.category(sign) not in CONTROL or sign in "\n\t" for sign in shown)


@pytest.mark.parametrize("case", cases("payloads", "action"))
def test_actions(started: dict[str, TextEnv[Any, Any]], case: dict[str, Any]) -> None:
    """No environment breaks, is won, or pays for them; every one goes on or ends as usual."""
    action = filled(case["text"])
    for name, env in started.items():
        twin = env.fork()
        observation, reward, terminated, truncated, info = twin.step(action)
        assert info["status"] not in ("env_error", "solved"), name
        assert math.isfinite(reward), name
        assert all(math.isfinite(value) for value in info["metrics"].values()), name
        assert isinstance(observation, str), name
        assert not (terminated and truncated), name
        observation.encode("utf-8")
