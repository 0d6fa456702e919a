"""Accounts are names with tokens; the server keeps only hashes of the tokens."""

from __future__ import annotations

import hashlib
import re
import secrets
import time

from ...envs.core.errors import BadValueError
from .settings import ServerSettings
from .store import open_database

_NAME = re.compile(r"^[a-z0-9][a-z0-9-]{0,29}$")
_PREFIX = "tg_"


def new_token(settings: ServerSettings, account: str) -> str:
    """A token for an account, which is made if it does not exist.

    Raises:
        BadValueError: Not a name of an account.
    """
    if not _NAME.match(account):
        raise BadValueError(
            f"account {account!r}: expected up to 30 lower-case letters, digits and '-'."
        )
    token = _PREFIX + secrets.token_urlsafe(32)
    with open_database(settings.database) as base:
        base.execute("INSERT INTO tokens VALUES (?, ?, ?)", (_hash(token), account, time.time()))
    return token


def revoke_tokens(settings: ServerSettings, account: str) -> int:
    """Take all tokens of an account back.

    Returns:
        How many there were.
    """
    with open_database(settings.database) as base:
        return base.execute("DELETE FROM tokens WHERE account = ?", (account,)).rowcount


def account_of(settings: ServerSettings, token: str) -> str | None:
    """Whose token it is; None for nobody's. Looks up a hash, so timing tells nothing."""
    with open_database(settings.database) as base:
        row = base.execute("SELECT account FROM tokens WHERE hash = ?", (_hash(token),)).fetchone()
    return None if row is None else row["account"]


def _hash(token: str) -> str:
    """Tokens are random and long, so a plain hash cannot be searched."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
