"""Forged entries: one thing is changed in a true entry, and the entry is refused by that."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers.attack_cases import cases, filled
from helpers.board_helpers import make_entry, refusal_of, tiny_suite, verdict_of

from turngym.leaderboard.entries_io.files import EntryFiles, write_signature
from turngym.leaderboard.entries_io.signing import new_key, sign
from turngym.leaderboard.schema.entry import Budget, Run, Track
from turngym.leaderboard.schema.suite import Suite

ORDER = 2**252 + 27742317777372353535851937790883648493
"""Number of points of the group of Ed25519 (RFC 8032, section 5.1)."""
Files = dict[str, bytes]


@pytest.fixture(scope="module")
def suite() -> Suite:
    return tiny_suite()


@pytest.fixture(scope="module")
def bases(suite: Suite, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Files]:
    """The files of a plain entry, a signed one, and one of three training runs."""
    root = tmp_path_factory.mktemp("bases")
    make_entry(suite, root / "plain")
    make_entry(suite, root / "signed")
    new_key(root / "key")
    write_signature(root / "signed", sign(EntryFiles(root / "signed").canonical, root / "key"))
    used = Budget(sampled_tokens=1000, tool_calls=100)
    runs = tuple(Run(seed=seed, used=used) for seed in range(3))
    track = Track(start="starter", start_digest="sha256:" + "a" * 64, budget=used)
    make_entry(suite, root / "algorithms", "random", board="algorithms", track=track, runs=runs)
    return {
        name: {
            path.relative_to(root / name).as_posix(): path.read_bytes()
            for path in (root / name).rglob("*")
            if path.is_file()
        }
        for name in ("plain", "signed", "algorithms")
    }


def _look(data: Any, at: list[Any]) -> Any:
    for step in at:
        data = data[step]
    return data


def _set(data: Any, at: list[Any], value: Any) -> Any:
    if not at:
        return value
    _look(data, at[:-1])[at[-1]] = value
    return data


def _merge(data: Any, at: list[Any], given: Any) -> Any:
    source, names = given
    _look(data, at).update({name: data[source][name] for name in names})
    return data


def _repeat(data: Any, at: list[Any], times: int) -> Any:
    _look(data, at[:-1]).extend([_look(data, at)] * times)
    return data


def _delete(data: Any, at: list[Any], _: Any) -> Any:
    del _look(data, at[:-1])[at[-1]]
    return data


def _flip(data: Any, at: list[Any], place: int) -> Any:
    old = _look(data, at)
    digit = format(int(old[place], 16) ^ 1, "x")
    return _set(data, at, old[:place] + digit + old[place + 1 :])


def _add_order(data: Any, at: list[Any], _: Any) -> Any:
    """S + L in place of S: the same signature to a verifier that does not check the range."""
    old = bytes.fromhex(_look(data, at))
    large = int.from_bytes(old[32:], "little") + ORDER
    return _set(data, at, (old[:32] + large.to_bytes(32, "little")).hex())


def _copy_run(data: Any, _: Any, runs: list[int]) -> Any:
    source, *targets = runs
    kept = [episode for episode in data if episode.get("run", 0) not in targets]
    copied = [e | {"run": run} for run in targets for e in data if e.get("run", 0) == source]
    return kept + copied


Change = Callable[[Any, list[Any], Any], Any]
CHANGES: dict[str, Change] = {
    "set": _set,
    "append": lambda data, at, value: _set(data, at, [*_look(data, at), value]),
    "suffix": lambda data, at, more: _set(data, at, _look(data, at) + more),
    "fill": lambda data, at, given: _set(data, at, filled(given)),
    "reverse": lambda data, at, _: _set(data, at, _look(data, at)[::-1]),
    "copy": lambda data, at, source: _set(data, at, _look(data, source)),
    "merge": _merge,
    "repeat": _repeat,
    "delete": _delete,
    "flip": _flip,
    "malleable": _add_order,
    "copy_run": _copy_run,
}


def _changed(old: bytes, case: dict[str, Any]) -> bytes:
    """The file after the change that the case names."""
    name = next(name for name in CHANGES if name in case)
    lines = case["file"].endswith(".jsonl")
    data = [json.loads(line) for line in old.splitlines()] if lines else json.loads(old)
    data = CHANGES[name](data, case.get("at", []), case[name])
    return "".join(json.dumps(line) + "\n" for line in (data if lines else [data])).encode()


def forge(files: Files, case: dict[str, Any]) -> Files:
    """The files of an entry with the change of a case."""
    name = case["file"]
    if "text" in case:
        new = case["text"].encode()
    elif "text_fill" in case:
        new = filled(case["text_fill"]).encode()
    elif "hex" in case:
        new = bytes.fromhex(case["hex"])
    elif "lines" in case:
        new = files[name] + files[case["lines"]]
    elif "find" in case:
        put = case["put"] + "9" * case.get("digits", 0)
        assert case["find"].encode() in files[name]
        new = files[name].replace(case["find"].encode(), put.encode(), 1)
    else:
        new = _changed(files[name], case)
    forged = files | {name: new}
    if "copy_run" in case:  # in every environment
        name = "episodes/Fork-v0.jsonl"
        forged[name] = _changed(files[name], case | {"file": name})
    return forged


def write(files: Files, root: Path) -> Path:
    for name, data in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return root


@pytest.mark.parametrize("base", ["plain", "signed", "algorithms"])
def test_entries_that_nobody_touched_are_accepted(
    bases: dict[str, Files], suite: Suite, tmp_path: Path, base: str
) -> None:
    verdict = verdict_of(write(bases[base], tmp_path), suite)
    assert verdict.refusal is None
    assert bool(verdict.signed_by) == (base == "signed")


@pytest.mark.parametrize("case", cases("forgeries"))
def test_a_forged_entry_is_refused(
    bases: dict[str, Files], suite: Suite, tmp_path: Path, case: dict[str, Any]
) -> None:
    files = forge(bases[case["base"]], case)
    assert files != bases[case["base"]]
    refusal = refusal_of(write(files, tmp_path), suite)
    assert refusal.reason == case["reason"], refusal.message
    assert all(sign.isprintable() for sign in refusal.message), refusal.message
