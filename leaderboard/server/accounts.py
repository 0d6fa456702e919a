"""Accounts: names with tokens, of which the server stores only hashes."""

from __future__ import annotations

import hashlib
import re
import secrets
import time

from ...envs.core.errors import BadValueError
from .settings import ServerSettings
from .store import open_database

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,29}")
_PREFIX = "tg_"


def new_token(settings: ServerSettings, account: str) -> str:
    """Issue a token for an account, which is created if it does not exist.

    Raises:
        BadValueError: The account's name is invalid.
    """
    if not _NAME.fullmatch(account):
        raise BadValueError(
            f"account {account!r}: expected up to 30 lower-case letters, digits and '-'."
        )
    token = _PREFIX + secrets.token_urlsafe(32)
    with open_database(settings.database) as base:
        base.execute("INSERT INTO tokens VALUES (?, ?, ?)", (_hash(token), account, time.time()))
    return token


def revoke_tokens(settings: ServerSettings, account: str) -> int:
    """Revoke all tokens of an account.

    Returns:
        Number of revoked tokens.
    """
    with open_database(settings.database) as base:
        return base.execute("DELETE FROM tokens WHERE account = ?", (account,)).rowcount


def account_of(settings: ServerSettings, token: str) -> str | None:
    """Return the token's account or None. Compares hashes, so timing reveals nothing."""
    with open_database(settings.database) as base:
        row = base.execute("SELECT account FROM tokens WHERE hash = ?", (_hash(token),)).fetchone()
    return None if row is None else row["account"]


def _hash(token: str) -> str:
    """Hash a token; tokens are long and random, so no salt is needed."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
