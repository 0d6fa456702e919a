"""Environments of a user's own: files, modules, installed packages, other processes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import gymnasium as gym
import pytest

from turngym.envs import EnvironmentSpec, find_environment, register_environment
from turngym.envs.core import plugins, registration
from turngym.envs.core.errors import BadValueError, DataError, UnknownNameError
from turngym.envs.core.plugins import (
    VARIABLE,
    Plugin,
    discover,
    load_again,
    load_inherited,
    load_plugin,
    loaded_plugins,
    passed_on,
    plugin_versions,
)
from turngym.envs.core.registration import register_installed, resolve_id
from turngym.envs.diagnostic.password import Password

SOURCE = """
from turngym.envs import EnvironmentSpec, register_environment
from turngym.envs.diagnostic.password import Password

class Mine(Password):
    pass

register_environment(EnvironmentSpec(id="Mine-v0", entry_point=Mine, summary="mine"))
"""


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Forget what a test registered, loaded and imported."""
    monkeypatch.setattr(registration, "_SPECS", dict(registration._SPECS))
    monkeypatch.setattr(plugins, "_asked", set())
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(VARIABLE, raising=False)
    ids, modules = set(gym.registry), set(sys.modules)
    with passed_on():
        yield
    for env_id in set(gym.registry) - ids:
        del gym.registry[env_id]
    for name in {m for m in set(sys.modules) - modules if m.split(".")[0].startswith("mine")}:
        del sys.modules[name]


def write(folder: Path, name: str, source: str = SOURCE) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(source, encoding="utf-8")
    return path


def test_a_file_is_loaded_under_its_own_name_with_its_neighbours(tmp_path: Path) -> None:
    write(tmp_path / "there", "mine_words.py", "WORD = 'a word'\n")
    path = write(tmp_path / "there", "mine_env.py", f"import mine_words\n{SOURCE}")
    assert load_plugin(str(path)) == Plugin("", str(path))
    assert find_environment("Mine-v0").entry_point == "mine_env:Mine"
    assert type(gym.make("Mine-v0").unwrapped).__name__ == "Mine"
    assert load_plugin(str(path)) in loaded_plugins()  # again is no second environment


def test_a_file_named_like_a_known_module_gets_another_name(tmp_path: Path) -> None:
    path = write(tmp_path, "json.py")
    load_plugin(str(path))
    import json

    assert hasattr(json, "loads")
    assert find_environment("Mine-v0").entry_point == "turngym_plugin_json:Mine"
    assert gym.make("Mine-v0").reset(seed=0)[0]


@pytest.mark.parametrize("name", ["mine", "mine.inner"])
def test_a_module_beside_the_working_folder(name: str, tmp_path: Path) -> None:
    if "." in name:
        write(tmp_path / "mine", "__init__.py", "")
        write(tmp_path / "mine", "inner.py")
    else:
        write(tmp_path, "mine.py")
    assert resolve_id(f"{name}:Mine-v0") == "Mine-v0"
    assert find_environment("Mine-v0").entry_point == f"{name}:Mine"
    with pytest.raises(UnknownNameError, match=r"Mime-v0.*Did you mean 'Mine-v0'"):
        resolve_id(f"{name}:Mime-v0")
    assert resolve_id("SearchQA-v0") == "SearchQA-v0"


@pytest.mark.parametrize(
    ("word", "source", "reason"),
    [
        ("mine_absent", "", "no module 'mine_absent', neither installed nor in"),
        ("absent.py", "", "not a file"),
        ("mine.txt", SOURCE, "must end with .py"),
        ("mine:Mine", "", "neither a file nor the name of a module"),
        ("mine.py", "import nothing_like_this", "nothing_like_this"),
        ("mine.py", "raise RuntimeError('not today')", "RuntimeError: not today"),
        ("mine.py", "def broken(:", "SyntaxError"),
        ("mine.py", "import sys; sys.exit(0)", r"SystemExit\(0\).*under if __name__"),
    ],
)
def test_what_cannot_be_loaded_says_why(
    word: str, source: str, reason: str, tmp_path: Path
) -> None:
    if source:
        write(tmp_path, word, source)
    with pytest.raises(DataError, match=reason):
        load_plugin(word)
    assert "mine" not in sys.modules
    assert VARIABLE not in os.environ


def test_another_process_loads_the_same(tmp_path: Path) -> None:
    write(tmp_path, "mine.py")
    load_plugin("mine.py")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    told = run("from turngym.envs import find_environment as f; f('Mine-v0'); " + make(), elsewhere)
    assert told == gym.make("Mine-v0").reset(seed=3)[0]


def make() -> str:
    return "import gymnasium; print(gymnasium.make('Mine-v0').reset(seed=3)[0], end='')"


def run(program: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_what_was_loaded_is_passed_on_and_forgotten(tmp_path: Path) -> None:
    write(tmp_path, "mine.py")
    with passed_on():
        load_plugin("mine")
        told = os.environ[VARIABLE]
        (plugin,) = loaded_plugins()
        load_inherited()  # here it is loaded already
    assert loaded_plugins() == ()
    assert VARIABLE not in os.environ
    (tmp_path / "mine.py").unlink()
    load_again([plugin])  # a module that is imported stays so
    os.environ[VARIABLE] = told.replace("mine", "mine_gone")  # forgotten by the fixture
    with pytest.raises(DataError, match="mine_gone"):
        find_environment("Mein-v0")


def test_a_plugin_is_known_by_its_source(tmp_path: Path) -> None:
    path = write(tmp_path, "mine.py")
    package = tmp_path / "mine_package"
    write(package, "__init__.py", "from . import part\n")
    write(package, "part.py", "A = 1\n")

    def versions() -> dict[str, str]:
        with passed_on():
            load_plugin(str(path))
            load_plugin("mine_package")
            return plugin_versions()

    sys.path.append(str(tmp_path))
    first = versions()
    assert list(first) == ["mine.py", "mine_package"]
    assert all(len(digest) == 12 for digest in first.values())
    assert versions() == first
    path.write_text(path.read_text() + "\n# another\n")
    (package / "part.py").write_text("A = 2\n")
    after = versions()
    assert after["mine.py"] != first["mine.py"]
    assert after["mine_package"] != first["mine_package"]
    assert plugin_versions() == {}


def test_a_plugin_without_a_file_has_no_version(tmp_path: Path) -> None:
    load_plugin("itertools")
    assert plugin_versions() == {"itertools": ""}


def test_a_folder_that_runs_nothing_is_refused(tmp_path: Path) -> None:
    """`--plugin FOLDER` was taken without a word, and registered nothing."""
    (tmp_path / "mine_folder").mkdir()
    (tmp_path / "mine_folder" / "part.py").write_text("A = 1\n")
    with pytest.raises(DataError, match=r"without __init__\.py.*mine_folder\.NAME"):
        load_plugin("mine_folder")
    load_plugin("mine_folder.part")
    assert list(plugin_versions()) == ["mine_folder.part"]


def install(folder: Path, point: str, name: str = "Mine-v0") -> None:
    about = folder / "mine_package-1.0.dist-info"
    write(about, "METADATA", "Metadata-Version: 2.1\nName: mine-package\nVersion: 1.0\n")
    write(about, "entry_points.txt", f"[turngym.environments]\n{name} = {point}\n")
    sys.path.append(str(folder))


def test_installed_packages_are_found_when_they_are_asked_for(tmp_path: Path) -> None:
    write(tmp_path / "site", "mine_package.py")
    install(tmp_path / "site", "mine_package")
    register_installed()
    assert "mine_package" not in sys.modules  # costs nothing until it is used
    env = gym.make("Mine-v0", render_mode="ansi")
    assert env.unwrapped.render_mode == "ansi"
    assert "Mine-v0" in registration.all_ids()
    assert find_environment("Mine-v0").summary == "mine"
    assert gym.make_vec("Mine-v0", num_envs=2).reset(seed=0)[0]
    assert loaded_plugins() == ()  # other processes find it as this one did


@pytest.mark.parametrize("error", ["RuntimeError", "SystemExit"])
def test_an_installed_package_that_breaks_keeps_nobody_from_working(
    error: str, tmp_path: Path
) -> None:
    write(tmp_path / "site", "mine_package.py", f"raise {error}('not today')")
    install(tmp_path / "site", "mine_package")
    register_installed()
    with pytest.warns(UserWarning, match=rf"Mine-v0.*left out: {error}: not today"):
        discover()
    assert "SearchQA-v0" in registration.all_ids()
    with pytest.raises(UnknownNameError, match="Mine-v0"):
        gym.make("Mine-v0")


def test_an_installed_name_that_is_no_id_keeps_nobody_from_working(tmp_path: Path) -> None:
    """Importing the package raised gymnasium's error, so that nothing of it could be used."""
    install(tmp_path / "site", "mine_package", name="My Game-v0")
    with pytest.warns(UserWarning, match=r"My Game-v0 \(mine_package\) is left out: .*Malformed"):
        register_installed()


def test_a_class_is_an_entry_point() -> None:
    row = EnvironmentSpec(id="Mine-v0", entry_point=Password, summary="")
    assert row.entry_point == f"{Password.__module__}:Password"
    register_environment(row)
    assert isinstance(gym.make("Mine-v0").unwrapped, Password)


@pytest.mark.parametrize("value", ["mine", ":Mine", "mine:", 3, None])
def test_an_entry_point_that_is_none_is_refused(value: object) -> None:
    with pytest.raises(BadValueError, match="expected a class, or a text 'module:Class'"):
        EnvironmentSpec(id="Mine-v0", entry_point=value, summary="")


def test_a_class_that_other_processes_cannot_find_is_refused() -> None:
    class Inner(Password):
        pass

    with pytest.raises(BadValueError, match="at the top of its module"):
        EnvironmentSpec(id="Mine-v0", entry_point=Inner, summary="")
    with pytest.raises(BadValueError, match="expert"):
        EnvironmentSpec(id="Mine-v0", entry_point=Password, expert=Inner, summary="")
