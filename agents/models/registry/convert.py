"""Turn a GGUF file into an ordinary model folder: every weight dequantised, tokenizer beside."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest import mock

from ....envs.core.errors import BadValueError, DataError, MissingExtraError
from ..progress_bars import without_progress_bars
from ..size import count_weights
from .gguf_header import GgufHeader

OnShare = Callable[[float, str], None]
"""Called with the share that is done, in [0, 1], and what is being done."""
_SPECIAL = {"bos": "bos", "eos": "eos", "pad": "padding", "unk": "unknown"}
"""Special tokens by their role, as GGUF files name them."""
_WEIGHTS_END, _TOKENIZER_END = 0.7, 0.8
_ROPE = "rope_freqs.weight"
_LLAMA_3 = {
    "rope_type": "llama3",
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}
"""Scaling of the positions of Llama 3.1 to 3.3; of its settings GGUF files keep one number per
frequency."""
_PROBE = "Question: who wrote it?\n<think> look </think>  12\t{\"a\": 'é'}\n"


def convert_gguf(path: Path, header: GgufHeader, folder: Path, on_share: OnShare) -> dict[str, Any]:
    """Write the model and the tokenizer of a GGUF file as a model folder.

    Args:
        path: The file.
        header: Its header.
        folder: An existing folder to write into.
        on_share: Called as it goes on.

    Returns:
        What the folder holds: parameters, number format, context, whether there is a template.

    Raises:
        BadValueError: transformers does not know the architecture, or the file lacks weights.
        DataError: The tokenizer cannot be written so that it reads back the same.
        MissingExtraError: transformers is not installed.
    """
    try:
        for name in ("torch", "transformers"):
            import_module(name)
    except ImportError as fault:
        raise MissingExtraError("a language model", "transformers", "train", fault) from fault
    with without_progress_bars():
        return _convert(path, header, folder, on_share)


def _convert(path: Path, header: GgufHeader, folder: Path, on_share: OnShare) -> dict[str, Any]:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    here = {"gguf_file": path.name}
    try:
        with _watched(lambda share: on_share(_WEIGHTS_END * share, "dequantising")):
            loaded: Any = AutoModelForCausalLM.from_pretrained(
                str(path.parent),
                dtype=torch.float32,
                output_loading_info=True,
                ignore_mismatched_sizes=True,  # refused below, by name
                **_unpacked(),
                **here,
            )
            model, report = loaded
        on_share(_WEIGHTS_END, "tokenizer")
        tokenizer: Any = AutoTokenizer.from_pretrained(str(path.parent), **here)
    except Exception as fault:  # the library of tokenizers raises no other
        raise BadValueError(_describe(path, header, fault)) from fault
    scaled = _restore_rope(path, header, model.config)
    _check_weights(path, header, model, (report, scaled))
    _set_special_tokens(tokenizer, header)
    context = int(getattr(model.config, "max_position_embeddings", 0)) or None
    if context is not None:
        tokenizer.model_max_length = context
    tokenizer.save_pretrained(folder)
    _check_tokenizer(path, tokenizer, AutoTokenizer.from_pretrained(str(folder)))
    on_share(_TOKENIZER_END, "writing")
    model.config._name_or_path = ""
    model.to(getattr(torch, header.dtype)).save_pretrained(folder)
    on_share(1.0, "")
    return {
        "architecture": model.config.model_type,
        "parameters": count_weights(model),
        "dtype": header.dtype,
        "context": context,
        "chat_template": bool(tokenizer.chat_template),
        "stored_as": dict(header.kinds),
    }


def _restore_rope(path: Path, header: GgufHeader, config: Any) -> int:
    """Set Llama 3's scaling where the file's numbers are exactly those that it gives.

    Returns:
        How many numbers of the file the settings replace.
    """
    now = getattr(config, "rope_parameters", None) or {}
    if _ROPE not in header.weights or now.get("rope_type") != "default":
        return 0
    import torch
    from gguf import GGUFReader
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    (found,) = (one.data for one in GGUFReader(path).tensors if one.name == _ROPE)
    divisors = torch.tensor(found, dtype=torch.float32)
    made = copy.deepcopy(config)
    made.rope_parameters |= {**_LLAMA_3, "factor": float(divisors.max())}
    frequencies, _ = ROPE_INIT_FUNCTIONS["llama3"](made, "cpu")
    theta, size = now["rope_theta"], 2 * len(frequencies)
    plain = theta ** (-torch.arange(0, size, 2, dtype=torch.float32) / size)
    same = frequencies.shape == divisors.shape
    if not (same and torch.allclose(frequencies * divisors, plain, rtol=1e-5, atol=0.0)):
        return 0
    config.rope_parameters = made.rope_parameters
    return len(divisors)


def _check_weights(
    path: Path, header: GgufHeader, model: Any, loaded: tuple[Mapping[str, Any], int]
) -> None:
    """Refuse a file whose tensors are not those of the model that was made of its settings.

    Args:
        path: The file.
        header: Its header.
        model: Made of it.
        loaded: What transformers reports, and how many weights became settings.
    """
    report, restored = loaded
    kind = type(model).__name__
    if missing := sorted(report["missing_keys"]):
        raise BadValueError(
            f"{path}: the file lacks {len(missing)} tensors of a {kind} "
            f"({', '.join(missing[:3])}, …); it is no whole language model."
        )
    if other := sorted(report["mismatched_keys"]):
        name, got, expected = other[0]
        raise BadValueError(
            f"{path}: {len(other)} tensors have other sizes than the file's settings say: {name} "
            f"is {tuple(got)}, expected {tuple(expected)}; it is no whole {header.architecture!r}."
        )
    held, taken = sum(header.weights.values()), count_weights(model) + restored
    if held > taken:
        scales = [name for name in header.weights if name.startswith("rope_")]
        which = f", {', '.join(scales)} among those left" if scales else ""
        raise BadValueError(
            f"{path}: the file holds {held:,} weights, of which transformers' {kind} takes "
            f"{taken:,}{which}: it would compute other numbers than the model. Take the model as a "
            "folder (config.json, *.safetensors, tokenizer)."
        )


def _unpacked() -> dict[str, Any]:
    """Return the argument that lets transformers unpack all weights; older ones always do."""
    try:
        from transformers import GgufConfig
    except ImportError:
        return {}
    return {"quantization_config": GgufConfig(dequantize=True)}


def _set_special_tokens(tokenizer: Any, header: GgufHeader) -> None:
    """Name the special tokens that the file names: transformers 5.17 takes others of SmolLM2's."""
    for role, key in _SPECIAL.items():
        number = header.metadata.get(f"tokenizer.ggml.{key}_token_id")
        if number is not None:
            setattr(tokenizer, f"{role}_token", tokenizer.convert_ids_to_tokens(int(number)))


def _check_tokenizer(path: Path, made: Any, read: Any) -> None:
    if made(_PROBE).input_ids != read(_PROBE).input_ids:
        raise DataError(
            f"{path}: the tokenizer of this file does not read back as it was written, so the "
            "model would see other tokens than it was trained on."
        )


def _describe(path: Path, header: GgufHeader, fault: BaseException) -> str:
    import transformers

    said = (str(fault).strip().splitlines() or [type(fault).__name__])[0][:300]
    return (
        f"{path}: transformers {transformers.__version__} cannot load this GGUF file of the "
        f"architecture {header.architecture!r} as a causal language model: {said} Take a model "
        "that transformers loads from GGUF, or a model folder."
    )


@contextmanager
def _watched(on_share: Callable[[float], None]) -> Iterator[None]:
    """Report transformers' pass over the tensors, whose own bar is not shown."""
    try:
        from transformers import modeling_gguf_pytorch_utils as loader
    except ImportError:
        yield
        return

    def watch(items: Iterable[Any], **_: Any) -> Iterator[Any]:
        todo = list(items)
        for number, item in enumerate(todo):
            on_share(number / len(todo))
            yield item

    # `create`: a version without this pass shows its own progress, or none
    with mock.patch.object(loader, "tqdm", watch, create=True):
        yield
