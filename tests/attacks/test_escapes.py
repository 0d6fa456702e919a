"""Code that wants out of the python tool: one process per protection tries everything."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest
from helpers.attack_cases import cases
from helpers.sandboxes import FULL, STAND_IN, Sandbox, need

from turngym.envs.core.errors import BadValueError
from turngym.envs.tools.python import protections
from turngym.envs.tools.python.tool import PythonTool

PROGRAM = """
import ctypes, json
libc = ctypes.CDLL(None, use_errno=True)
def call(number):
    done = libc.syscall(number, 0, 0, 0, 0, 0, 0)
    if done < 0: raise OSError(ctypes.get_errno(), "refused")
    return done
said = {}
for name, code in json.loads(TRIES):
    try: said[name] = "got " + repr(eval(code))[:80]
    except BaseException as fault: said[name] = type(fault).__name__
print(json.dumps(said))
"""
EVERYTHING = cases("escapes")
REFUSALS = {  # dbm calls its error "error"
    "OSError",
    "PermissionError",
    "FileNotFoundError",
    "ProcessLookupError",
    "ChildProcessError",
    "gaierror",
    "URLError",
    "RuntimeError",
    "ModuleNotFoundError",
    "KeyError",
    "OperationalError",
    "ZipImportError",
    "ZeroDivisionError",
    "ValueError",
    "AttributeError",
    "NotADirectoryError",
    "ConnectionError",
    "error",
    "SystemExit",  # of the ensurepip of Debian and its children
}


@pytest.fixture(scope="module", params=[FULL, STAND_IN], ids="+".join)
def said(request: pytest.FixtureRequest) -> dict[str, str]:
    """What each snippet got: the name of its error, or ``got …``."""
    need(request.param)
    tries = [(p.values[0]["case"], p.values[0]["code"]) for p in EVERYTHING]
    with pytest.MonkeyPatch.context() as patch:
        sandbox = Sandbox(request.param, patch)
        out = sandbox.out(PROGRAM.replace("TRIES", repr(json.dumps(tries))))
        assert sandbox.left_alive() == []
    return json.loads(out.splitlines()[-1])  # importing everything prints too, in some Pythons


@pytest.mark.parametrize("case", EVERYTHING)
def test_a_snippet_gets_nothing(said: dict[str, str], case: dict[str, Any]) -> None:
    if case["group"] == "calls" and os.uname().machine != "x86_64":
        pytest.skip("numbers of x86_64")
    assert said[case["case"]] in REFUSALS


@pytest.mark.parametrize("layer", FULL)
def test_a_weaker_sandbox_is_refused_by_name(monkeypatch: pytest.MonkeyPatch, layer: str) -> None:
    monkeypatch.setattr(protections, "find_missing", lambda: {layer: "switched off"})
    with pytest.raises(BadValueError, match=rf"lacks {layer} .*switched off.*allow_weaker=True"):
        PythonTool()
    with pytest.warns(RuntimeWarning, match=f"runs without {layer}"):
        PythonTool(allow_weaker=True)
