"""Links are found outside code, moved with their pages, and checked."""

from __future__ import annotations

from turngym.benchmarks.docs.links import anchors, broken_links, find_links, relink

PAGE = """# One page

A [link](other.md#a-heading), `code [no](link.md)`, ![picture](a.png "title"),
[`code` in it](https://example.org/x).

```python
call()["x"](no.md)
```
"""


def test_links_in_code_are_none() -> None:
    assert [(link.line, link.target) for link in find_links(PAGE)] == [
        (3, "other.md#a-heading"),
        (3, "a.png"),
        (4, "https://example.org/x"),
    ]


def test_links_move_with_their_page() -> None:
    moved = relink(PAGE, "docs/one.md", "sub/one.md", lambda path: path.replace("docs/", ""))
    assert "(../other.md#a-heading)" in moved
    assert '(../a.png "title")' in moved
    assert "https://example.org/x" in moved
    assert 'call()["x"](no.md)' in moved


def test_anchors_are_those_of_mkdocs() -> None:
    text = "# A `b` (c), [d](e.md)\n## Same\n## Same\n```sh\n# no heading\n```\n"
    assert anchors(text) == {"a-b-c-d", "same", "same_1"}


def test_broken_links_say_where_and_why() -> None:
    pages = {
        "a.md": "\n[x](b.md) [y](b.md#two) [z](b.md#one) [w](c.md) [v](#one) [f](f.png)\n",
        "b.md": "# One\n",
    }
    assert [str(link) for link in broken_links(pages, files={"f.png"})] == [
        "a.md:2 links to b.md#two: no heading has this anchor",
        "a.md:2 links to c.md: there is no such page or file",
        "a.md:2 links to #one: no heading has this anchor",
    ]
    assert broken_links(pages, checked=["b.md"]) == []
