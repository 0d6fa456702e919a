"""Optional signatures: Ed25519 over the canonical bytes of an entry's files."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import Field

from ...envs.core.errors import BadValueError, DataError, MissingExtraError
from ..schema.base import Form
from ..schema.entry import SIGNATURE

_HEAD = b"turngym entry 1\n"
_P = 2**255 - 19
_D = -121665 * pow(121666, -1, _P) % _P


class Signature(Form):
    """``signature.json``: a signature over every byte of the other files."""

    algorithm: Literal["ed25519"] = "ed25519"
    public_key: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    signature: Annotated[str, Field(pattern=r"^[0-9a-f]{128}$")]

    @property
    def fingerprint(self) -> str:
        """Return a short name of the key."""
        return hashlib.sha256(bytes.fromhex(self.public_key)).hexdigest()[:16]


def canonical_bytes(root: Path, files: list[PurePosixPath]) -> bytes:
    """Return the signed bytes: path, size and SHA-256 of every other file, sorted by path."""
    lines = [_HEAD]
    for path in sorted(files, key=str):
        if str(path) != SIGNATURE:
            size, digest = _hashed(root / path)
            lines.append(f"{path} {size} {digest}\n".encode())
    return b"".join(lines)


def _hashed(path: Path) -> tuple[int, str]:
    digest = hashlib.sha256()
    size = 0
    with path.open("rb") as file:
        while chunk := file.read(2**20):
            digest.update(chunk)
            size += len(chunk)
    return size, digest.hexdigest()


def entry_digest(canonical: bytes) -> str:
    """Return a short hash of an entry's files."""
    return hashlib.sha256(canonical).hexdigest()[:32]


def new_key(path: Path) -> str:
    """Write a new private key that only its owner can read.

    Returns:
        The public key in hex.

    Raises:
        BadValueError: The file exists.
        MissingExtraError: The package ``cryptography`` is missing.
    """
    keys = _library()
    private = keys.Ed25519PrivateKey.generate()
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise BadValueError(
            f"{path}: exists, and keys are never overwritten; choose another file."
        ) from None
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(private.private_bytes_raw().hex() + "\n")
    return private.public_key().public_bytes_raw().hex()


def read_key(path: Path) -> Any:
    """Read the private key from a file of :func:`new_key`.

    Raises:
        DataError: The file is missing or not a key.
        MissingExtraError: The package ``cryptography`` is missing.
    """
    keys = _library()
    try:
        raw = bytes.fromhex(path.read_text(encoding="ascii").strip())
        return keys.Ed25519PrivateKey.from_private_bytes(raw)
    except (OSError, ValueError) as error:
        raise DataError(
            f"{path}: not a signing key ({error}); make one with `turngym leaderboard key`."
        ) from error


def sign(canonical: bytes, key: Path) -> Signature:
    """Sign with the private key in a file of :func:`new_key`.

    Raises:
        DataError: The file is missing or not a key.
        MissingExtraError: The package ``cryptography`` is missing.
    """
    private = read_key(key)
    return Signature(
        public_key=private.public_key().public_bytes_raw().hex(),
        signature=private.sign(canonical).hex(),
    )


def is_valid(signature: Signature, canonical: bytes) -> bool:
    """Return whether the signature matches the files.

    Raises:
        MissingExtraError: The package ``cryptography`` is missing.
    """
    keys = _library()
    from cryptography.exceptions import InvalidSignature

    if _has_small_order(bytes.fromhex(signature.public_key)):
        return False
    try:
        public = keys.Ed25519PublicKey.from_public_bytes(bytes.fromhex(signature.public_key))
        public.verify(bytes.fromhex(signature.signature), canonical)
    except (InvalidSignature, ValueError):
        return False
    return True


def _has_small_order(key: bytes) -> bool:
    """Return whether a public key is a point of small order, under which any file may verify.

    Eight times such a point is the neutral element (0, 1); the key's encoding is its y-coordinate
    with the sign of x (RFC 8032, section 5.1).
    """
    y = int.from_bytes(key, "little") & ((1 << 255) - 1)
    y %= _P
    for _ in range(3):  # double: of the result only y is needed, which depends on y alone
        x2 = (y * y - 1) * pow(_D * y * y + 1, -1, _P) % _P
        t = _D * x2 * y * y % _P
        y = (y * y + x2) * pow(1 - t, -1, _P) % _P
    return y == 1


def _library() -> Any:
    try:
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError:
        raise MissingExtraError("signing entries", "cryptography", "web") from None
    return ed25519
