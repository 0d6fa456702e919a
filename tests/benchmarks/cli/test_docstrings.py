"""Docstrings become Markdown."""

from __future__ import annotations

from turngym.benchmarks.cli.docstrings import read_docstring, table_cell, to_markdown


def described() -> None:
    """Do a thing (:class:`~some.where.Thing`).

    More about it, with ``a value
    over two lines``.

    Rewards:
        ``outcome``: 1 or 0,
        nothing between.

    Args:
        first: What comes
            first | or second.
        second: Another.

    After the sections.

    Degenerate cases: with ``n=1`` nothing
    is left.
    """


def test_a_docstring_in_parts() -> None:
    doc = read_docstring(described)
    assert doc.summary == "Do a thing (`Thing`)."
    assert doc.body == "More about it, with `a value over two lines`.\n\nAfter the sections."
    assert doc.section("Reward", "Rewards") == "`outcome`: 1 or 0,\nnothing between."
    assert doc.section("Degenerate cases") == "with `n=1` nothing\nis left."
    assert doc.section("Raises") == ""
    assert doc.arguments == {"first": "What comes first | or second.", "second": "Another."}


def test_no_docstring_is_empty() -> None:
    assert read_docstring(lambda: None).summary == ""


def test_roles_and_cells() -> None:
    assert to_markdown(":func:`a.b` and :mod:`~a.b`") == "`a.b` and `b`"
    assert table_cell("a | b\n  c") == r"a \| b c"
