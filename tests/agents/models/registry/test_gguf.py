"""GGUF files: read, dequantised, and refused for a reason."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.gguf_files import CONTEXT, INNER, tiny_llama, write_gguf

from turngym.agents.models.loading import load_model, load_tokenizer
from turngym.agents.models.registry.fetch import MANIFEST, converted_files, model_folder
from turngym.agents.models.registry.gguf_header import read_header
from turngym.agents.rendering.factory import ChatRenderer, make_renderer
from turngym.envs.core.errors import BadValueError, DataError, MissingExtraError, TurngymError

torch = pytest.importorskip("torch")
pytest.importorskip("gguf")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TURNGYM_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "models"


def logits(model: torch.nn.Module, ids: list[int]) -> torch.Tensor:
    with torch.no_grad():
        return model(torch.tensor([ids])).logits[0]


def test_a_file_of_plain_numbers_becomes_the_same_model(tmp_path: Path, cache: Path) -> None:
    file = write_gguf(tmp_path / "tiny.gguf")
    shown: list[float] = []
    folder = model_folder(file, lambda share, _: shown.append(share))
    assert folder.parent == cache
    assert shown == sorted(shown)
    assert shown[-1] == 1.0
    model, tokenizer = load_model(file), load_tokenizer(file)
    ids = tokenizer("search pear <|im_end|> again").input_ids
    assert torch.allclose(logits(model, ids), logits(tiny_llama(), ids), atol=1e-5)
    assert tokenizer.decode(ids) == "search pear <|im_end|> again"
    assert tokenizer.model_max_length == CONTEXT
    assert isinstance(make_renderer(tokenizer), ChatRenderer)  # its template is in the file
    about = json.loads((folder / MANIFEST).read_text())
    assert (about["dtype"], about["architecture"], about["context"]) == ("float32", "llama", 512)
    assert [one.folder for one in converted_files()] == [folder]


def test_special_tokens_are_those_that_the_file_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from transformers import AutoTokenizer

    file = write_gguf(tmp_path / "tiny.gguf")
    real = AutoTokenizer.from_pretrained

    def mistaken(path: str, **how: Any) -> Any:  # as transformers 5.17 reads SmolLM2
        tokenizer = real(path, **how)
        if "gguf_file" in how:
            tokenizer.eos_token, tokenizer.pad_token = "<|im_start|>", None
        return tokenizer

    monkeypatch.setattr(AutoTokenizer, "from_pretrained", mistaken)
    tokenizer = load_tokenizer(model_folder(file))
    assert (tokenizer.bos_token, tokenizer.eos_token) == ("<|im_start|>", "<|im_end|>")
    assert tokenizer.pad_token == "<|im_end|>"


def test_no_bars_but_ours_are_drawn(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    from transformers.utils import logging

    before = logging.is_progress_bar_enabled()
    logging.enable_progress_bar()
    try:
        model_folder(write_gguf(tmp_path / "tiny.gguf"))
        assert logging.is_progress_bar_enabled()
    finally:
        (logging.enable_progress_bar if before else logging.disable_progress_bar)()
    assert "it/s" not in capfd.readouterr().err


def test_quantised_weights_are_unpacked_once(tmp_path: Path) -> None:
    file = write_gguf(tmp_path / "tiny.Q8_0.gguf", kind="Q8_0")
    folder = model_folder(file)
    weights = folder / "model.safetensors"
    written = weights.stat().st_mtime_ns
    model = load_model(file)
    first, known = model.model.layers[1].mlp.up_proj.weight.detach(), tiny_llama().state_dict()
    exact = known["model.layers.1.mlp.up_proj.weight"]
    assert 0 < float((first - exact).abs().max()) < 0.01 * float(exact.abs().max()) + 1e-3
    assert weights.stat().st_mtime_ns == written
    weights.write_bytes(weights.read_bytes()[:-1])  # damaged: made again
    assert model_folder(file) == folder
    assert weights.stat().st_mtime_ns != written


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"architecture": "wombat"}, "architecture 'wombat'"),
        ({"general__type": "adapter"}, "holds a 'adapter'"),
        ({"split__count": 3}, "one of 3 pieces"),
    ],
)
def test_what_is_no_whole_known_model_is_refused(
    tmp_path: Path, cache: Path, changes: dict[str, str | int], says: str
) -> None:
    file = write_gguf(tmp_path / "odd.gguf", **changes)
    with pytest.raises(BadValueError, match=says):
        model_folder(file)
    assert left_in(cache) == []


def test_a_file_that_is_cut_off_is_refused(tmp_path: Path, cache: Path) -> None:
    file = write_gguf(tmp_path / "cut.gguf")
    whole = file.read_bytes()
    for size, says in (
        (len(whole) - 100, "is cut off"),
        (3000, "cannot be read"),
        (2, "no GGUF file"),
    ):
        file.write_bytes(whole[:size])
        with pytest.raises(DataError, match=says):
            model_folder(file)
    file.write_bytes(b"GGUF" + b"\x01\0\0\0" + whole[8:])
    with pytest.raises(DataError, match="version 1, expected 2 or 3"):
        model_folder(file)
    assert left_in(cache) == []


def test_tensors_of_an_unknown_kind_are_refused(tmp_path: Path) -> None:
    file = write_gguf(tmp_path / "tiny.gguf")
    data = bytearray(file.read_bytes())
    name = b"blk.0.ffn_up.weight"
    at = data.index(name) + len(name) + 4 + 2 * 8  # behind the number of dimensions, and these
    data[at : at + 4] = (250).to_bytes(4, "little")
    file.write_bytes(data)
    with pytest.raises(BadValueError, match="stored as the unknown kind 250"):
        read_header(file)


def test_a_missing_weight_is_named(tmp_path: Path, cache: Path) -> None:
    file = write_gguf(tmp_path / "tiny.gguf")
    data = file.read_bytes().replace(b"blk.1.ffn_up.weight", b"blk.1.ffn_no.weight")
    file.write_bytes(data)
    with pytest.raises(TurngymError, match="lacks 1 tensors"):
        model_folder(file)
    assert left_in(cache) == []


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"blk.0.attn_q.bias": 64}, r"takes [\d,]+: it would"),
        ({"blk.2.attn_norm.weight": 64}, r"takes [\d,]+: it would"),
        ({"rope_freqs.weight": 16}, r"rope_freqs\.weight among those left"),
    ],
)
def test_weights_that_would_be_left_out_are_refused(
    tmp_path: Path, cache: Path, more: dict[str, int], says: str
) -> None:
    file = write_gguf(tmp_path / "more.gguf", more=more)
    with pytest.raises(BadValueError, match=says):
        model_folder(file)
    assert left_in(cache) == []


def llama_3_divisors(factor: float, low: float = 1.0) -> np.ndarray:
    """As llama.cpp's converter computes them of ``rope_scaling``, for a head of 32 numbers."""
    high, context, found = 4.0, 8192, []
    for i in range(0, 32, 2):
        wave = 2 * math.pi * 10_000 ** (i / 32)
        if wave < context / high:
            found.append(1.0)
        elif wave > context / low:
            found.append(factor)
        else:
            smooth = (context / wave - low) / (high - low)
            found.append(1 / ((1 - smooth) / factor + smooth))
    return np.array(found, np.float32)


@pytest.mark.parametrize("factor", [8.0, 32.0])
def test_the_scaled_positions_of_llama_3_are_restored(tmp_path: Path, factor: float) -> None:
    divisors = llama_3_divisors(factor)
    assert len({1.0, factor} | set(divisors.tolist())) > 2  # one between the two
    file = write_gguf(tmp_path / "tiny.gguf", more={"rope_freqs.weight": divisors})
    scaling = {
        "rope_type": "llama3",
        "rope_theta": 10_000.0,
        "factor": factor,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    }
    model = load_model(file)
    assert model.config.rope_parameters == scaling
    ids = load_tokenizer(file)("pear plum fig kiwi again " * 20).input_ids
    expected = logits(tiny_llama(rope_parameters=scaling), ids)
    assert torch.allclose(logits(model, ids), expected, atol=1e-6)
    assert not torch.allclose(logits(tiny_llama(), ids), expected, atol=1e-6)


def test_scaled_positions_of_other_settings_are_refused(tmp_path: Path, cache: Path) -> None:
    more = {"rope_freqs.weight": llama_3_divisors(8.0, low=2.0)}
    with pytest.raises(BadValueError, match=r"rope_freqs\.weight among those left"):
        model_folder(write_gguf(tmp_path / "other.gguf", more=more))
    assert left_in(cache) == []


def test_sizes_that_do_not_fit_are_named(tmp_path: Path) -> None:
    file = write_gguf(tmp_path / "odd.gguf")
    name, value = b"llama.feed_forward_length", INNER.to_bytes(4, "little")
    data = file.read_bytes()
    at = data.index(name) + len(name) + 4
    assert data[at : at + 4] == value
    file.write_bytes(data[:at] + (96).to_bytes(4, "little") + data[at + 4 :])
    with pytest.raises(
        BadValueError, match=r"6 tensors have other sizes.*is \(64, 128\), expected \(64, 96\)"
    ):
        model_folder(file)


def test_a_damaged_tokenizer_is_told(tmp_path: Path) -> None:
    file = write_gguf(tmp_path / "tiny.gguf")
    data, name = file.read_bytes(), b"tokenizer.ggml.merges"
    at = data.index(name) + len(name) + 4 + 4 + 8 + 8  # behind type, type, count and length
    file.write_bytes(data[:at] + b"~~" + data[at + 2 :])
    with pytest.raises(BadValueError, match=r"cannot load this GGUF file.*out of vocabulary"):
        model_folder(file)


def test_without_the_package_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write_gguf(tmp_path / "tiny.gguf")
    monkeypatch.setitem(__import__("sys").modules, "gguf", None)
    with pytest.raises(MissingExtraError, match=r"turngym\[gguf\]"):
        model_folder(file)
    with pytest.raises(MissingExtraError, match=r"turngym\[gguf\]"):
        model_folder("smollm2-135m")


def test_a_file_that_does_not_exist_is_named() -> None:
    with pytest.raises(BadValueError, match=r"no such file; expected a GGUF file, or one of: smol"):
        model_folder("nowhere/model.gguf")


def left_in(cache: Path) -> list[str]:
    """Return what is in the cache beside locks."""
    return [path.name for path in cache.glob("*") if path.suffix != ".lock"]
