"""The versions with vLLM: they fit each other, and the package registry has them."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
# what vLLM 0.32 asks for in its own metadata
OF_VLLM = ("torch==2.13.0", "transformers<5.20")


def pins(name: str) -> dict[str, str]:
    found = re.findall(r"^([A-Za-z0-9_.\-]+)==(\S+)$", (ROOT / name).read_text(), re.MULTILINE)
    return {canonicalize_name(package): version for package, version in found}


def wanted() -> list[Requirement]:
    """What the project and its extras train and vllm ask for."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    lines = [*project["dependencies"], *extras["train"], *extras["vllm"]]
    return [Requirement(line) for line in lines]


def test_the_pins_are_what_the_project_and_vllm_ask_for() -> None:
    here = pins("constraints-vllm.txt")
    for need in (*wanted(), *map(Requirement, OF_VLLM)):
        assert need.specifier.contains(here[canonicalize_name(need.name)]), need
    assert here["vllm"] == "0.32.0"


def test_the_pins_without_vllm_do_not_fit_it() -> None:
    """Which is why there are two files: `-c constraints.txt` with the extra vllm had no answer."""
    usual = pins("constraints.txt")
    assert not Requirement("transformers<5.20").specifier.contains(usual["transformers"])


@pytest.mark.slow  # asks a package registry, some minutes
@pytest.mark.timeout(1500)
@pytest.mark.parametrize(
    ("constraints", "resolves"), [("constraints-vllm.txt", True), ("constraints.txt", False)]
)
def test_a_package_registry_resolves_them(constraints: str, resolves: bool) -> None:
    asked = [str(need) for need in wanted()]
    pip = [sys.executable, "-m", "pip", "install", "--dry-run", "--quiet", "--ignore-installed"]
    done = subprocess.run(
        [*pip, "--only-binary", ":all:", "-c", str(ROOT / constraints), *asked],
        capture_output=True,
        text=True,
        check=False,
    )
    if "ConnectionError" in done.stderr or "Could not fetch" in done.stderr:
        pytest.skip("no package registry")
    assert (done.returncode == 0) is resolves, done.stderr[-2000:]
    assert resolves or "ResolutionImpossible" in done.stderr or "conflict" in done.stderr
