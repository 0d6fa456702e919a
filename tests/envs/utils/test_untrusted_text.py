"""Untrusted texts: what controls a terminal is replaced, or escaped where it must be kept."""

from __future__ import annotations

import json

from turngym.envs.utils.untrusted_text import escape_json, plain

EVIL = "a\x1b[2J\x9b31m\x07\x85\u2028\u202e\U000e0041\tb\n"


def test_signs_stand_for_control_characters() -> None:
    assert plain(EVIL) == "a␚[2J␚31m␚␚␚␚␚\tb\n"


def test_escaped_json_means_the_same() -> None:
    row = {EVIL: [EVIL, "Zoë 東京"]}
    text = json.dumps(row, ensure_ascii=False)
    escaped = escape_json(text)
    assert set(text) & set(EVIL) - set(escaped) == set("\x9b\x85\u2028\u202e\U000e0041")
    assert "Zoë 東京" in escaped
    assert json.loads(escaped) == row
