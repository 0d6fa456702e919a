"""What a result says of where it was computed: plugins that were others since then."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.tiny_matrix import MACHINE, finished, tiny

from turngym.benchmarks.matrix import machine_info
from turngym.benchmarks.matrix.machine_info import PLUGIN, other_plugins, this_machine
from turngym.envs.core.plugins import load_plugin, passed_on, plugin_versions


def test_results_of_another_plugin_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are kept, whatever was changed: their digests hold names and settings."""
    suite = tiny(seeds=(0, 1, 2))
    digests = ("aaa", "aaa", "bbb", None, "bbb", None)
    found = []
    for cell, digest in zip(suite.cells, digests, strict=True):
        own = {} if digest is None else {f"{PLUGIN}mine.py": digest}
        machine = MACHINE.model_copy(update={"versions": {**MACHINE.versions, **own}})
        found.append(finished(suite, cell, [[1.0] * 4] * 2).model_copy(update={"machine": machine}))
    monkeypatch.setattr(machine_info, "plugin_versions", dict)
    assert other_plugins(found) == []
    monkeypatch.setattr(machine_info, "plugin_versions", lambda: {"mine.py": "bbb", "new.py": "c"})
    (said,) = other_plugins(found)
    assert said.startswith("2 finished cells were computed with another mine.py")
    assert other_plugins(found[1:])[0].startswith("1 finished cell was computed")
    assert other_plugins([]) == []


def test_a_machine_names_the_plugins_that_were_loaded(tmp_path: Path) -> None:
    path = tmp_path / "harmless.py"
    path.write_text("A = 1\n")
    with passed_on():
        load_plugin(str(path))
        known = plugin_versions()["harmless.py"]
        assert this_machine().versions[f"{PLUGIN}harmless.py"] == known
    assert not any(name.startswith(PLUGIN) for name in this_machine().versions)
