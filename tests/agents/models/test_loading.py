"""Loading: every wrong folder says what was found and what was expected."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import pytest
import torch
from helpers.small_models import byte_level, model
from safetensors.torch import load_file, save_file

from turngym.agents.models.loading import (
    check_context,
    check_match,
    context_limit,
    has_bfloat16,
    load_model,
    load_tokenizer,
    resolve_device,
    resolve_dtype,
    warn_of_emulation,
)
from turngym.envs.core.errors import BadValueError, UnknownNameError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    model("Qwen2").save_pretrained(tmp_path)
    byte_level().save_pretrained(tmp_path)
    return tmp_path


def test_a_saved_model_comes_back(folder: Path) -> None:
    net, tokenizer = load_model(folder), load_tokenizer(folder)
    assert not net.training
    assert net.dtype == torch.float32
    assert load_model(folder, dtype="bfloat16").dtype == torch.bfloat16
    check_match(net, tokenizer)
    assert context_limit(net) == 160
    for mine, yours in zip(model("Qwen2").parameters(), net.parameters(), strict=True):
        assert torch.equal(mine, yours)


def test_not_a_model_folder(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(BadValueError, match=r"expected config\.json; found: notes\.txt"):
        load_model(tmp_path)
    with pytest.raises(BadValueError, match=r"not a tokenizer folder.*found: notes\.txt"):
        load_tokenizer(tmp_path)
    with pytest.raises(BadValueError, match="no such folder"):
        load_model(tmp_path / "nowhere")
    with pytest.raises(BadValueError, match="is a file"):
        load_tokenizer(tmp_path / "notes.txt")


def test_weights_missing_or_foreign(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "elsewhere")
    with pytest.raises(BadValueError, match="no weights"):
        load_model(folder)
    (folder / "model.safetensors").write_bytes(b"not tensors")
    with pytest.raises(BadValueError, match="no causal language model could be loaded"):
        load_model(folder)


def test_weights_of_another_head_are_refused(tmp_path: Path) -> None:
    net = model("Qwen2", tie_word_embeddings=False)
    net.model.save_pretrained(tmp_path)
    with pytest.raises(BadValueError, match=r"lack 1 tensors of Qwen2ForCausalLM \(lm_head"):
        load_model(tmp_path)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (
            {"num_hidden_layers": 1, "layer_types": None},
            r"12 tensors .*no place.*model\.layers\.1\.",
        ),
        ({"model_type": "llama"}, r"6 tensors .*no place.*q_proj\.bias"),
        (
            {"intermediate_size": 64},
            r"6 tensors have other sizes.*is \(32, 48\), expected \(32, 64\)",
        ),
    ],
)
def test_weights_of_another_configuration_are_refused(
    folder: Path, changes: dict[str, object], says: str
) -> None:
    about = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(about | changes))
    with pytest.raises(BadValueError, match=says):
        load_model(folder)


def test_tensors_outside_of_the_layers_are_passed_over(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    weights["v_head.weight"] = torch.ones(3)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    load_model(folder)


def test_broken_config(folder: Path) -> None:
    (folder / "config.json").write_text("{")
    with pytest.raises(BadValueError, match="no causal language model"):
        load_model(folder)


def test_a_setting_of_another_type(folder: Path) -> None:
    about = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(about | {"max_position_embeddings": "160"}))
    with pytest.raises(
        BadValueError, match=r"no causal.*max_position_embeddings': TypeError.*'160'"
    ):
        load_model(folder)


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        # older versions of transformers say it themselves
        ("tokenizer.json", None, r"no vocabulary.*found: config\.json|Couldn't instantiate"),
        ("tokenizer.json", '{"a": 1}', r"KeyError: 'added_tokens'"),
        ("tokenizer_config.json", "[]", "'list' object has no attribute|list indices must be"),
        ("merges", None, "out of vocabulary"),
    ],
)
def test_a_damaged_tokenizer(folder: Path, name: str, text: str | None, says: str) -> None:
    if name == "merges":
        about = json.loads((folder / "tokenizer.json").read_text())
        about["model"]["merges"].append(["no", "such"])
        (folder / "tokenizer.json").write_text(json.dumps(about))
    elif text is None:
        (folder / name).unlink()
    else:
        (folder / name).write_text(text)
    with pytest.raises(BadValueError, match=says):
        load_tokenizer(folder)


def test_pad_token(tmp_path: Path) -> None:
    byte_level(pad_token=None).save_pretrained(tmp_path)
    with pytest.raises(BadValueError, match=r"Set pad_token.*its end-of-text token '<eos>'"):
        load_tokenizer(tmp_path)
    assert load_tokenizer(tmp_path, pad="eos").pad_token_id == 1
    path = tmp_path / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"pad_token": "<eos>"}))
    tokenizer = load_tokenizer(tmp_path)
    assert tokenizer.pad_token_id == tokenizer.eos_token_id == 1


def test_end_of_text_token(tmp_path: Path) -> None:
    byte_level(eos_token=None).save_pretrained(tmp_path)
    with pytest.raises(BadValueError, match="no end-of-text token"):
        load_tokenizer(tmp_path)


def test_vocabulary_and_context() -> None:
    with pytest.raises(BadValueError, match="vocabulary only 300 rows"):
        check_match(model("Qwen2", vocab_size=300), byte_level())
    more = byte_level()
    more.add_special_tokens({"additional_special_tokens": ["<|extra|>"]})
    rows = len(more) - 1
    with pytest.raises(BadValueError, match=rf"only {rows} rows \(beyond: '<\|extra\|>'\)"):
        check_match(model("Qwen2", vocab_size=rows), more)
    check_context(model("Qwen2"), 160)
    with pytest.raises(
        BadValueError, match="max_context is 161; expected at least 2 and at most 160"
    ):
        check_context(model("Qwen2"), 161)
    with pytest.raises(BadValueError, match="at least 2"):
        check_context(model("GPT2"), 1)


def test_dtypes_and_devices() -> None:
    cpu = torch.device("cpu")
    assert resolve_dtype("auto", cpu) in (torch.float32, torch.bfloat16)
    assert resolve_dtype(None, cpu) == resolve_dtype("auto", cpu)
    assert resolve_dtype(torch.float64, cpu) == torch.float64
    with pytest.raises(UnknownNameError, match="Did you mean 'bfloat16'"):
        resolve_dtype("bfloat", cpu)
    with pytest.raises(BadValueError, match="warp"):
        resolve_device("warp")
    assert resolve_device("cpu") == cpu
    if not torch.cuda.is_available():
        with pytest.raises(BadValueError, match="no CUDA device"):
            resolve_device("cuda:0")


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_bfloat16_that_the_processor_emulates_is_told(
    monkeypatch: pytest.MonkeyPatch, known: bool, dtype: torch.dtype
) -> None:
    monkeypatch.setattr("turngym.agents.models.loading.has_bfloat16", lambda _: known)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        warn_of_emulation(dtype, torch.device("cpu"), "the engine")
    expected = not known and dtype == torch.bfloat16
    assert len(told) == expected
    if expected:
        assert "the engine computes in bfloat16" in str(told[0].message)
        assert "'auto' takes float32" in str(told[0].message)


def test_a_torch_without_onednn_computes_in_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on Apple's processors, whose build has none of the operations to ask."""
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: False)
    monkeypatch.setattr(torch.ops, "mkldnn", object())
    assert not has_bfloat16(torch.device("cpu"))
    assert resolve_dtype("auto", torch.device("cpu")) == torch.float32
