"""arXiv's ids: without a version, with a date, and in links."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

UNDATED = 99991231
"""Date of a paper whose id tells none: no request finds it, so that nothing leaks."""
_NEW = r"[0-9]{4}\.[0-9]{4,5}"
_OLD = r"[a-z][a-z-]*(?:\.[A-Za-z-]+)?/[0-9]{7}"
_ID = re.compile(rf"{_NEW}|{_OLD}")
_VERSION = re.compile(r"v[0-9]+\Z")
_PLACE = re.compile(rf"/(?:abs|pdf|html)/({_NEW}|{_OLD})(?:v[0-9]+)?(?:\.pdf)?/?\Z")
_FIRST_YEAR = 91


def strip_version(text: str) -> str:
    """An id without white space around it, ``arXiv:`` and version: ``"2104.00731"``."""
    text = text.strip()
    if text[:6].lower() == "arxiv:":
        text = text[6:].strip()
    return _VERSION.sub("", text)


def read_date(paper_id: str) -> int:
    """The first day of the month in an id, as ``YYYYMMDD``.

    ``2104.00731`` and ``cs/0309040`` were submitted in April 2021 and September 2003. The day is
    not in an id: a paper counts as known from the first day of its month.

    Returns:
        The date; :data:`UNDATED` for what is no id of arXiv.
    """
    if _ID.fullmatch(paper_id) is None:
        return UNDATED
    digits = paper_id.rpartition("/")[2]
    year, month = int(digits[:2]), int(digits[2:4])
    if not 1 <= month <= 12:
        return UNDATED
    century = 1900 if "/" in paper_id and year >= _FIRST_YEAR else 2000
    return (century + year) * 10_000 + month * 100 + 1


def find_id_in_link(link: str) -> str | None:
    """The id that a link to arXiv's pages, PDF or HTML leads to; None for any other link."""
    try:
        split = urlsplit(link)
        host = split.hostname or ""
    except ValueError:
        return None
    if host != "arxiv.org" and not host.endswith(".arxiv.org"):
        return None
    found = _PLACE.search(split.path)
    return None if found is None else found[1]
