"""Encoders: which models are E5's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from turngym.agents.retrieval.encoder import is_e5

HUB = "models--{}/snapshots/{}"


@pytest.mark.parametrize(
    ("folder", "origin", "expected"),
    [
        ("my-e5-base", None, True),
        ("E5", None, True),
        ("multilingual-e5-small", None, True),
        (HUB.format("intfloat--e5-base-v2", "1c644c92ad3b"), None, True),
        (HUB.format("BAAI--bge", "5c38e57c405e5b44"), None, False),
        (HUB.format("e5--bge", "5c38-e5"), None, False),
        ("5c38e57c", "intfloat/e5-base-v2", True),
        ("mine", "/home/e5/models/bge-small", False),
        ("mine", "/cache/" + HUB.format("intfloat--multilingual-e5-small", "12ab"), True),
        ("base5-large", None, False),
    ],
)
def test_e5_is_part_of_the_model_s_name(
    folder: str, origin: str | None, expected: bool, tmp_path: Path
) -> None:
    path = tmp_path / folder
    path.mkdir(parents=True)
    (path / "config.json").write_text(
        json.dumps({} if origin is None else {"_name_or_path": origin})
    )
    assert is_e5(path) is expected
