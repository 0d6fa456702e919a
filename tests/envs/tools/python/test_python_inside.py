"""What code sees inside the sandbox: every text encoding, and no path of the machine."""

from __future__ import annotations

import os
import sys

import pytest
from helpers.sandboxes import Sandbox

ENCODINGS = (
    "ascii", "latin-1", "cp1252", "utf-8-sig", "utf-16", "utf-32-le", "utf-7", "idna", "punycode",
    "cp437", "koi8-r", "shift_jis", "gb18030", "big5", "rot13", "hex", "base64", "unicode_escape",
)  # fmt: skip

LOOK = """
import sys, types, {more}
old, seen, found = {old!r}, set(), []

def look(what, where, depth):
    if id(what) in seen or depth > 6:
        return
    seen.add(id(what))
    if isinstance(what, str):
        if old in what and not where.endswith("__main__.old"):
            found.append((where, what))
    elif isinstance(what, (list, tuple, set, frozenset)):
        for one in list(what):
            look(one, where, depth + 1)
    elif isinstance(what, dict):
        for key, one in list(what.items()):
            look(key, where, depth + 1)
            look(one, f"{{where}}.{{key}}", depth + 1)
    elif isinstance(what, (types.ModuleType, type)):
        look(vars(what), f"{{where}}.{{what.__name__}}", depth + 1)
    elif isinstance(what, types.FunctionType):
        look(what.__code__.co_filename, f"{{where}}()", depth + 1)

look(vars(sys), "sys", 0)
look({{name: repr(module) for name, module in sys.modules.items()}}, "repr", 0)
for name, module in list(sys.modules.items()):
    for part in ("__spec__", "__loader__", "__path__"):
        look(repr(getattr(module, part, None)), f"{{name}}.{{part}}", 0)
print(found[:5])
"""


@pytest.mark.parametrize("group", [ENCODINGS[:9], ENCODINGS[9:]])
def test_text_encodings_work(sandbox: Sandbox, group: tuple[str, ...]) -> None:
    code = f"import codecs\nfor name in {group!r}:\n    codecs.lookup(name)\n"
    code += "print('Grüße'.encode('latin-1'), b'\\x80'.decode('cp1252'))"
    assert sandbox.out(code) == "b'Gr\\xfc\\xdfe' €\n"


def test_files_in_other_encodings(sandbox: Sandbox) -> None:
    code = "open('a', 'w', encoding='utf-8-sig').write('x')\nprint(open('a', 'rb').read())"
    assert sandbox.out(code) == "b'\\xef\\xbb\\xbfx'\n"


@pytest.mark.parametrize("more", ["os", "json, re, enum, ctypes, decimal, random, statistics"])
def test_no_path_of_the_machine_shows(full: Sandbox, more: str) -> None:
    old = os.path.realpath(sys.base_prefix)
    if old in os.defpath:  # a system's own Python is in /usr, as are paths that every Python has
        old = os.path.realpath(os.path.dirname(os.__file__))
    assert full.out(LOOK.format(old=f"{old}/", more=more)) == "[]\n"


@pytest.mark.parametrize(
    "code",
    [
        "import json; json.loads('{')",
        "import enum; enum.Enum('A', 'x x')",
        "import signal; signal.Signals(999)",
        "b'x'.decode('idna' * 3)",
        "'é'.encode('idna' if 0 else 'ascii')",
        "'a..b'.encode('idna')",
    ],
)
def test_tracebacks_name_no_path_of_the_machine(full: Sandbox, code: str) -> None:
    ended = full(code)
    assert ended.status > 0
    assert os.path.realpath(sys.base_prefix) + "/" not in ended.err.decode()
