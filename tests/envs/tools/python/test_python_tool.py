"""What snippets come to, what a machine without protection gets, and the tool as a value."""

from __future__ import annotations

import copy
import errno
import os
import pickle
import sys
from collections.abc import Callable
from typing import Any

import pytest
from helpers.sandboxes import FULL, STAND_IN, need

from turngym.envs.core.batched_calls import drive_together
from turngym.envs.core.episode import Call, Outcome
from turngym.envs.core.errors import BadValueError, EnvFault
from turngym.envs.tools.python import process, protections
from turngym.envs.tools.python.tool import NO_OUTPUT, PythonResult, PythonTool


@pytest.fixture(scope="module")
def tool() -> PythonTool:
    need(FULL)
    return PythonTool(timeout_s=20.0, memory_mb=256)


def run(tool: PythonTool, code: str) -> PythonResult:
    (result,) = tool([code])
    assert isinstance(result, PythonResult)
    return result


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("print(6 * 7)", "42"),
        ("6 * 7", "42"),
        ("x = 6\nx * 7", "42"),
        ("print('a')\n'b'", "a\nb"),
        ("print('a')", "a"),
        ("None", NO_OUTPUT),
        ("x = 1", NO_OUTPUT),
        ("", NO_OUTPUT),
        ("# nothing", NO_OUTPUT),
        ("'é 漢字 \\U0001f600'", "é 漢字 😀"),
        ("if True:\n    5", NO_OUTPUT),
        ("x = 1; x + 1", "2"),
        ("from __future__ import annotations\ndef f(x: no) -> no: pass\n1", "1"),
        ("def f(n): return n and n + f(n - 1)\nf(100)", "5050"),
        ("import math, json, statistics, datetime\nstatistics.mean([1, 2])", "1.5"),
        ("__name__", "__main__"),
        ("import __main__; x = 3; __main__.x", "3"),
        ("import sys; sys.argv, sys.path[0][:8]", "(['-c'], '/python/')"),
        ("import datetime; datetime.datetime.fromtimestamp(0).isoformat()", "1970-01-01T00:00:00"),
        ("import pickle\nclass A: pass\ntype(pickle.loads(pickle.dumps(A()))).__name__", "A"),
        ("import sys; print(1); sys.exit()", "1"),
        ("import os; os.write(1, b'\\xff\\xfea\\n'); None", "\ufffd\ufffda"),
        ("print('a\\r\\nb\\x00c')", "a\nb\x00c"),
        ("print('a  \\n\\n\\n')", "a"),
        ("import atexit; atexit.register(print, 'bye'); 1", "1\nbye"),
        ("object()", "<object object at 0x…>"),
        ("0x7fffffffffff", "140737488355327"),
    ],
)
def test_code_that_ends_well(tool: PythonTool, code: str, text: str) -> None:
    assert run(tool, code) == PythonResult(text, True)


@pytest.mark.parametrize(
    ("code", "last"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("print('seen?'); nothing", "NameError: name 'nothing' is not defined"),
        ("raise ValueError('a\\nb')", "b"),
        ("def f(:", "SyntaxError: invalid syntax"),
        ("x = 1\n  y = 2", "IndentationError: unexpected indent"),
        ("a\0b", "SyntaxError: source code string cannot contain null bytes"),
        ("input()", "EOFError: EOF when reading a line"),
        ("import numpy", "ModuleNotFoundError: No module named 'numpy'"),
        ("import sys; sys.exit('bye')", "bye"),
        ("import sys; sys.exit(3)", "The code ended with status 3."),
        ("import os; os._exit(4)", "The code ended with status 4."),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("return 1", "SyntaxError: 'return' outside function"),
        ("import ctypes; ctypes.string_at(0)", "The code was killed by SIGSEGV."),
        ("import sys; sys.modules.clear(); 1/0", "ZeroDivisionError: division by zero"),
    ],
)
def test_code_that_fails(tool: PythonTool, code: str, last: str) -> None:
    text, ok = run(tool, code)
    assert text.splitlines()[-1] == last
    assert not ok
    assert "sandbox_child.py" not in text


def test_a_lone_surrogate_is_an_error_of_the_code(tool: PythonTool) -> None:
    text, ok = run(tool, "x = '\ud800'")
    assert text.splitlines()[-1].startswith("UnicodeEncodeError")
    assert not ok
    text.encode()


def test_a_traceback_shows_the_code_alone(tool: PythonTool) -> None:
    text = run(tool, "def f():\n    return {}['a']\nx = 1\nf()").text
    lines = [line for line in text.splitlines() if not set(line) <= set(" ^~")]
    assert lines == [
        "Traceback (most recent call last):",
        '  File "<python>", line 4, in <module>',
        *(["    f()"] if "    f()" in lines else []),
        '  File "<python>", line 2, in f',
        "    return {}['a']",
        "KeyError: 'a'",
    ]


def test_no_module_is_imported_without_its_package(tool: PythonTool) -> None:
    """`collections.abc` was there, `collections` was not: on Python 3.13 tracebacks came thrice."""
    code = "import sys\n[n for n in sys.modules if n.rpartition('.')[0] not in {'', *sys.modules}]"
    assert run(tool, code) == ("[]", True)
    assert run(tool, "import collections.abc\ncollections.abc.Sized.__name__").ok


def test_no_path_of_the_machine_shows(tool: PythonTool) -> None:
    text = run(tool, "import json\njson.loads('{')").text
    assert 'File "/python/lib' in text
    assert sys.base_prefix not in text.replace("/usr", "") or sys.base_prefix == "/usr"


def test_long_output_is_cut_with_a_notice() -> None:
    need(FULL)
    short = PythonTool(max_output_chars=100)
    assert run(short, "'x' * 150") == (f"{'x' * 100}\n[50 more characters were cut.]", True)
    text, ok = run(short, "raise ValueError('x' * 150 + 'end')")
    notice, rest = text.split("\n", 1)
    assert notice.endswith("characters before this were cut.]")
    assert rest == "x" * 97 + "end"
    assert not ok
    text, ok = run(short, "while True: print('abc')")
    assert text == "abc\n" * 25 + "\n[The code was stopped: too much output.]"
    assert not ok


def test_a_timeout_says_the_same_each_time() -> None:
    need(FULL)
    quick = PythonTool(timeout_s=0.5)
    for code in ("while True: pass", "print('a', flush=True)\nwhile True: pass"):
        assert run(quick, code) == ("The code was stopped: it ran longer than 0.5 seconds.", False)


def test_the_same_code_gives_the_same_text(tool: PythonTool) -> None:
    code = (
        "class A: pass\n"
        "print({'a', 'b', 'c', 'xyz'}, A(), A, len, lambda: 0, hash('text'))\n"
        "import os; print(os.listdir('/'), os.uname().nodename)\n"
        "open('nowhere')"
    )
    first = run(tool, code)
    assert [run(tool, code) for _ in range(4)] == [first] * 4


def test_many_at_once_keep_their_order(tool: PythonTool) -> None:
    codes = [f"import time; time.sleep({0.3 if i == 0 else 0}); {i}" for i in range(9)]
    assert tool(codes) == [(str(i), True) for i in range(9)]
    assert tool([]) == []


def test_it_serves_calls(tool: PythonTool) -> None:
    def turn(code: str):
        result = yield Call(PythonTool(timeout_s=20.0, memory_mb=256), code)
        return Outcome.move(result.text)

    outcomes = drive_together([turn("1"), turn("2 / 0"), turn("3")])
    assert [outcome.observation[-1] for outcome in outcomes] == ["1", "o", "3"]


def test_it_is_a_value(tool: PythonTool) -> None:
    same = PythonTool(timeout_s=20.0, memory_mb=256)
    assert same == tool
    assert hash(same) == hash(tool)
    assert pickle.loads(pickle.dumps(tool)) == copy.deepcopy(tool) == tool
    assert PythonTool() != tool
    assert tool.missing == ()


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"timeout_s": 0}, "timeout_s is 0; expected a number from 0.1"),
        ({"timeout_s": "5"}, "timeout_s is '5'"),
        ({"timeout_s": float("nan")}, "timeout_s is nan"),
        ({"memory_mb": 1}, "memory_mb is 1; expected an integer from 64"),
        ({"memory_mb": 100.0}, r"memory_mb is 100\.0"),
        ({"disk_mb": True}, "disk_mb is True"),
        ({"max_output_chars": 5}, "max_output_chars is 5"),
        ({"allow_weaker": 1}, "allow_weaker is 1"),
    ],
)
def test_refusals(settings: dict[str, Any], match: str) -> None:
    with pytest.raises(BadValueError, match=match):
        PythonTool(**settings)


def test_a_request_that_is_not_text_is_refused(tool: PythonTool) -> None:
    with pytest.raises(BadValueError, match="a request is a bytes"):
        tool([b"1"])  # pyright: ignore


# ---------------------------------------------------------------------- machines that lack a layer


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Makes this a machine that refuses some layers."""
    real = protections._find_fault

    def lacks(*names: str) -> None:
        def find_fault(asked: tuple[str, ...]) -> str | None:
            return "no such thing" if set(asked) & set(names) else real(asked)

        monkeypatch.setattr(protections, "_find_fault", find_fault)

    return lacks


@pytest.mark.parametrize("name", FULL)
def test_a_missing_protection_is_refused_by_name(machine: Callable[..., None], name: str) -> None:
    need(FULL)
    machine(name)
    with pytest.raises(BadValueError, match=rf"lacks {name} \(.*\): no such thing") as refused:
        PythonTool()
    assert "allow_weaker=True" in str(refused.value)


def test_a_tool_that_moves_to_a_weaker_machine_fails(
    tool: PythonTool, machine: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    machine(*FULL)
    used: list[tuple[str, ...]] = []

    def refused(code: str, layers: tuple[str, ...], limits: process.Limits) -> process.Ended:
        used.append(layers)
        raise EnvFault("no namespaces here")

    monkeypatch.setattr("turngym.envs.tools.python.tool.run_sandboxed", refused)
    assert isinstance(pickle.loads(pickle.dumps(tool))(["1"])[0], EnvFault)
    assert used == [FULL]


def test_weaker_protection_on_request(machine: Callable[..., None]) -> None:
    need(STAND_IN)
    machine("namespaces")
    with pytest.warns(RuntimeWarning, match=r"without namespaces \(.*landlock closes the files"):
        weaker = PythonTool(allow_weaker=True)
    assert weaker.missing == ("namespaces",)
    assert protections.choose_layers() == ("seccomp", "landlock")
    assert run(weaker, "1 + 1") == ("2", True)
    assert not run(weaker, "open('/etc/passwd')").ok


def test_no_protection_at_all_on_request(machine: Callable[..., None]) -> None:
    machine("namespaces", "seccomp", "landlock")
    with pytest.raises(BadValueError, match=r"namespaces .*seccomp"):
        PythonTool()
    with pytest.warns(RuntimeWarning, match=r"namespaces .*seccomp"):
        open_tool = PythonTool(allow_weaker=True, timeout_s=0.5)
    assert open_tool.missing == FULL
    assert run(open_tool, "1 + 1") == ("2", True)
    assert not run(open_tool, "while True: pass").ok


def test_other_systems_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    protections._find_fault.cache_clear()
    monkeypatch.setattr(sys, "platform", "darwin")
    try:
        with pytest.raises(BadValueError, match="needs Linux, this is darwin"):
            PythonTool()
        with pytest.raises(BadValueError, match="needs Linux, this is darwin"):
            PythonTool(allow_weaker=True)  # the code would not start there
    finally:
        protections._find_fault.cache_clear()


@pytest.mark.parametrize(
    ("interpreter", "match"),
    [
        ("/nowhere/python", "does not start"),
        ("", "sys.executable is empty"),
        ("/bin/true", "could not close a process off"),
    ],
)
def test_a_process_that_does_not_start_is_a_fault_in_its_place(
    tool: PythonTool, monkeypatch: pytest.MonkeyPatch, interpreter: str, match: str
) -> None:
    monkeypatch.setattr(sys, "executable", interpreter)
    for result in tool(["1", "2"]):
        assert isinstance(result, EnvFault)
        assert match in str(result)


@pytest.mark.parametrize(
    ("place", "error"), [("os.pipe", errno.EMFILE), ("tempfile.TemporaryFile", errno.ENOSPC)]
)
def test_a_machine_without_room_is_a_fault_in_its_place(
    tool: PythonTool, monkeypatch: pytest.MonkeyPatch, place: str, error: int
) -> None:
    def full() -> None:
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(f"turngym.envs.tools.python.process.{place}", full)
    (result,) = tool(["1"])
    assert isinstance(result, EnvFault)
    assert os.strerror(error) in str(result)


def test_a_layer_that_fails_stops_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    need(FULL)
    monkeypatch.setattr(process, "call_filter", lambda *_: [(0xFFFF, 0, 0, 0)])
    (result,) = PythonTool()(["print('ran')"])
    assert isinstance(result, EnvFault)
    assert "PR_SET_SECCOMP" in str(result)
    places = {**process._find_files(), "readable": [("/nowhere", "/nowhere")]}
    monkeypatch.setattr(process, "_find_files", lambda: places)
    (result,) = PythonTool()(["print('ran')"])
    assert "mount /new/nowhere" in str(result)
