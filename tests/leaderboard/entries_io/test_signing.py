"""Signatures under keys of small order, which fit any file, are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("cryptography")

from turngym.leaderboard.entries_io.signing import Signature, is_valid, new_key, sign

SMALL_ORDER = (
    "0100000000000000000000000000000000000000000000000000000000000000",
    "0100000000000000000000000000000000000000000000000000000000000080",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "0000000000000000000000000000000000000000000000000000000000000000",
    "0000000000000000000000000000000000000000000000000000000000000080",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
)


@pytest.mark.parametrize("key", SMALL_ORDER)
def test_keys_of_small_order_sign_nothing(key: str) -> None:
    neutral = SMALL_ORDER[0] + "00" * 32  # with such a key it fits about every eighth text, or any
    signature = Signature(public_key=key, signature=neutral)
    assert not any(is_valid(signature, b"text %d" % n) for n in range(64))


def test_other_keys_sign(tmp_path: Path) -> None:
    new_key(tmp_path / "key")
    signature = sign(b"text", tmp_path / "key")
    assert is_valid(signature, b"text")
    assert not is_valid(signature, b"another")
