"""Models and tokenizers from a name or a folder, with errors that say what is wrong."""

from __future__ import annotations

import re
import warnings
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ...envs.core.errors import BadValueError, MissingExtraError, UnknownNameError
from .device_memory import prepare_card
from .lora import ADAPTER_SETTINGS, base_of, load_adapters, merged
from .progress_bars import without_progress_bars
from .registry.fetch import is_registry_model, model_folder
from .starter_tokenizer import read_starter_tokenizer

if TYPE_CHECKING:
    import torch

SMALL = 20_000_000
"""Weights of a model that recipes have settings of their own for: larger steps, smaller batches."""
DTYPES = ("auto", "float32", "bfloat16", "float16")
_TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "tokenizer.model", "vocab.json")
_IN_LAYER = re.compile(r"(.*?)\.\d+\..*\.(?:weight|bias)$")
_WEIGHT_FILES = ("*.safetensors", "*.safetensors.index.json", "pytorch_model*.bin")


def load_tokenizer(name_or_path: str | Path, *, pad: Literal["own", "eos"] = "own") -> Any:
    """Return a tokenizer from a folder, a hub name, a name of the catalogue or a GGUF file.

    Args:
        name_or_path: Folder with tokenizer files, a name on the Hugging Face hub, or what
            :func:`~.registry.fetch.model_folder` takes.
        pad: ``"own"`` demands a pad token; ``"eos"`` lets the end-of-text token pad where there is
            none (padding is masked everywhere, so this is safe here).

    Raises:
        BadValueError: Not a tokenizer; no end-of-text token; no pad token.
    """
    where = _local(name_or_path)
    _check_folder(where, _TOKENIZER_FILES, "tokenizer")
    try:
        tokenizer: Any = read_starter_tokenizer(Path(where))
        if tokenizer is None:
            tokenizer = _transformers().AutoTokenizer.from_pretrained(where)
            _check_vocabulary(where, tokenizer)
    except BadValueError:
        raise
    except Exception as fault:  # the library of tokenizers raises no other
        raise BadValueError(f"{where}: no tokenizer could be loaded. {_first(fault)}") from fault
    if tokenizer.eos_token_id is None:
        raise BadValueError(
            f"{where}: the tokenizer has no end-of-text token, so an action could not end by "
            "itself. Set eos_token in its tokenizer_config.json."
        )
    if tokenizer.pad_token_id is None:
        if pad == "own":
            raise BadValueError(
                f"{where}: the tokenizer has no pad token. Set pad_token in its "
                f"tokenizer_config.json; its end-of-text token {tokenizer.eos_token!r} will do, "
                "since padding is masked everywhere."
            )
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def _check_vocabulary(where: str, tokenizer: Any) -> None:
    """Refuse the empty tokenizer that transformers makes where a file is missing."""
    text = "Question: who wrote it?"
    if not tokenizer(text, add_special_tokens=False).input_ids:
        files = _listing(Path(where)) if Path(where).is_dir() else "a hub's"
        raise BadValueError(
            f"{where}: the tokenizer has no vocabulary: {text!r} becomes no token. Expected "
            f"tokenizer.json, or the files of its kind; found: {files}. Fetch the whole folder."
        )


def load_model(
    name_or_path: str | Path,
    *,
    dtype: str | torch.dtype = "float32",
    device: str | torch.device = "auto",
    own_class: bool = False,
) -> Any:
    """Return a causal language model in evaluation mode.

    Args:
        name_or_path: Folder with config.json and weights, a name on the Hugging Face hub, or what
            :func:`~.registry.fetch.model_folder` takes. A folder with adapters
            (adapter_config.json) gives its base model with these merged in.
        dtype: Of the weights; ``"auto"`` see :func:`resolve_dtype`. ``"stored"`` is that of the
            files: in main memory they are then mapped, and read where a weight is used.
        device: ``"auto"`` takes the first CUDA device where there is one.
        own_class: A small model of a starter's architecture for a CPU may be a
            :class:`~.qwen3.Qwen3ForCausalLM`: the same numbers, and seconds less to import. It
            has what an engine and a learner in one process need, without adapters or gradient
            checkpointing.

    Raises:
        BadValueError: Not a model folder, weights missing or not those of a causal language model.
    """
    where = _local(name_or_path)
    if own_class and (found := _own(Path(where), dtype, device)) is not None:
        return found
    transformers = _transformers()
    if (Path(where) / ADAPTER_SETTINGS).is_file():
        return _with_adapters(Path(where), dtype, device)
    _check_folder(where, ("config.json",), "model")
    if Path(where).is_dir() and not any(any(Path(where).glob(p)) for p in _WEIGHT_FILES):
        raise BadValueError(
            f"{where}: config.json is there, but no weights ({', '.join(_WEIGHT_FILES)}). "
            f"Found: {_listing(Path(where))}."
        )
    place = resolve_device(device)
    number_format: Any = "auto" if dtype == "stored" else resolve_dtype(dtype, place)
    try:
        with without_progress_bars():
            model, report = transformers.AutoModelForCausalLM.from_pretrained(
                where,
                dtype=number_format,
                output_loading_info=True,
                ignore_mismatched_sizes=True,  # refused below, by name
            )
    except Exception as fault:  # configurations and file readers have errors of their own
        raise BadValueError(
            f"{where}: no causal language model could be loaded. {_first(fault)}"
        ) from fault
    _check_report(where, model, report)
    prepare_card(place)
    return model.to(place).eval()


def _check_report(where: str, model: Any, report: Any) -> None:
    """Refuse weights that are not those of the model that config.json describes."""
    kind = type(model).__name__
    if missing := sorted(report["missing_keys"]):
        raise BadValueError(
            f"{where}: the weights lack {len(missing)} tensors of {kind} "
            f"({', '.join(missing[:3])}, …); is this the folder of a causal language model?"
        )
    if other := sorted(report["mismatched_keys"]):
        name, got, expected = other[0]
        raise BadValueError(
            f"{where}: {len(other)} tensors have other sizes than config.json says: {name} is "
            f"{tuple(got)}, expected {tuple(expected)}. Take config.json and weights from one "
            "place."
        )
    layers = {found[1] for name in model.state_dict() if (found := _IN_LAYER.match(name))}
    names = sorted(report["unexpected_keys"])
    if left := [n for n in names if (found := _IN_LAYER.match(n)) and found[1] in layers]:
        raise BadValueError(
            f"{where}: {len(left)} tensors of the weights have no place in the {kind} of "
            f"config.json ({', '.join(left[:3])}, …), which would compute without them. Take "
            "config.json and weights from one place."
        )


def _own(folder: Path, dtype: str | torch.dtype, device: str | torch.device) -> Any | None:
    """Return the model of a folder as one of our own, or None where that does not do."""
    place = resolve_device(device)
    if place.type != "cpu" or not is_small(str(folder)):
        return None
    from .qwen3 import load_own, why_not_own

    if (folder / ADAPTER_SETTINGS).is_file() or why_not_own(folder) is not None:
        return None
    model = load_own(folder, None if dtype == "stored" else resolve_dtype(dtype, place))
    return None if model is None else model.eval()


def _local(name_or_path: str | Path) -> str:
    """Return the folder of a packaged model or GGUF file; anything else as it is."""
    if is_registry_model(name_or_path) and not Path(name_or_path).is_dir():
        return str(model_folder(name_or_path))
    return str(name_or_path)


def _with_adapters(folder: Path, dtype: str | torch.dtype, device: str | torch.device) -> Any:
    base = load_model(base_of(folder), dtype=dtype, device=device)
    model = merged(load_adapters(base, folder)).eval()
    model.name_or_path = str(folder)  # what further adapters are put on
    return model


def check_match(model: Any, tokenizer: Any) -> None:
    """Refuse a tokenizer whose ids the model does not know.

    Raises:
        BadValueError: The model's vocabulary is smaller than the tokenizer's.
    """
    rows = int(model.get_input_embeddings().num_embeddings)
    known = tokenizer.get_vocab()
    top = max(known.values(), default=-1)
    if top >= rows:
        beyond = [token for token, at in sorted(known.items(), key=lambda e: e[1]) if at >= rows]
        raise BadValueError(
            f"the tokenizer has ids up to {top}, the model's vocabulary only {rows} rows (beyond: "
            f"{', '.join(map(repr, beyond[:3]))}): they do not belong together. Load both from one "
            f"folder; where its files have fewer tokens, {type(tokenizer).__name__} adds some of "
            f"its own. Or call model.resize_token_embeddings({top + 1}) and train the new rows."
        )


def context_limit(model: Any) -> int | None:
    """Maximum tokens that the model can see, None when its configuration names no limit."""
    config = model.config.get_text_config()
    for name in ("max_position_embeddings", "n_positions", "max_seq_len"):
        value = getattr(config, name, None)
        if isinstance(value, int) and value > 0:
            return value
    return None


def check_context(model: Any, tokens: int) -> None:
    """Refuse a context longer than the model's.

    Raises:
        BadValueError: ``tokens`` is below 2 or above the model's limit.
    """
    limit = context_limit(model)
    if tokens < 2 or (limit is not None and tokens > limit):
        top = "" if limit is None else f" and at most {limit}, the context of this model"
        raise BadValueError(f"max_context is {tokens}; expected at least 2{top}.")


def resolve_device(device: str | torch.device) -> torch.device:
    """``"auto"`` is the first CUDA device, else the CPU.

    Raises:
        BadValueError: No such device here.
    """
    torch = _torch()
    if str(device) == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        place = torch.device(device)
    except RuntimeError as fault:
        raise BadValueError(f"device {device!r}: {_first(fault)}") from fault
    if place.type == "cuda" and not torch.cuda.is_available():
        raise BadValueError(f"device is {device!r}, but torch sees no CUDA device; use 'cpu'.")
    return place


def resolve_dtype(dtype: str | torch.dtype | None, device: torch.device) -> torch.dtype:
    """Return a number format by name.

    ``"auto"`` (or None) is bfloat16 where the device computes in it, else float32.

    Raises:
        UnknownNameError: No such name.
    """
    torch = _torch()
    if dtype is None or isinstance(dtype, str):
        name = dtype or "auto"
        if name not in DTYPES:
            raise UnknownNameError("dtype", name, DTYPES)
        if name == "auto":
            return torch.bfloat16 if has_bfloat16(device) else torch.float32
        return getattr(torch, name)
    return dtype


def has_bfloat16(device: torch.device) -> bool:
    """True where the device multiplies bfloat16 in hardware."""
    torch = _torch()
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    if device.type != "cpu" or not torch.backends.mkldnn.is_available():
        return False  # without oneDNN, as on Apple's processors, torch has not even the question
    return torch.ops.mkldnn._is_mkldnn_bf16_supported() and _cpu_bf16()


def warn_of_emulation(dtype: torch.dtype, device: torch.device, what: str) -> None:
    """Warn where a processor that does not multiply bfloat16 is asked to.

    Args:
        dtype: Number format of the products.
        device: Where they are made.
        what: What makes them, for the message.
    """
    if dtype == _torch().bfloat16 and device.type == "cpu" and not has_bfloat16(device):
        warnings.warn(
            f"{what} computes in bfloat16, which this processor emulates: products take several "
            "times as long as in float32. 'auto' takes float32 here.",
            stacklevel=3,
        )


def _cpu_bf16() -> bool:
    """Emulated bf16 is slower than float32, so the instruction itself is asked for."""
    torch = _torch()
    caps = torch.cpu.get_capabilities() if hasattr(torch.cpu, "get_capabilities") else {}
    return bool(caps.get("avx512_bf16") or caps.get("amx_bf16") or caps.get("bf16"))


def _check_folder(where: str, wanted: tuple[str, ...], what: str) -> None:
    """A path that exists, or that only a path can look like, must be a folder of the right kind."""
    path = Path(where)
    if path.is_file():
        raise BadValueError(f"{where}: is a file; expected the {what}'s folder or a hub name.")
    if not path.is_dir():
        if path.is_absolute() or where.startswith(("./", "../", "~")) or where.count("/") > 1:
            raise BadValueError(f"{where}: no such folder; expected a {what}'s folder.")
        return
    if not any((path / name).is_file() for name in wanted):
        raise BadValueError(
            f"{where}: not a {what} folder: expected {' or '.join(wanted)}; "
            f"found: {_listing(path)}."
        )


def _listing(path: Path) -> str:
    names = sorted(p.name for p in path.iterdir())
    return (", ".join(names[:8]) + (", …" if len(names) > 8 else "")) or "nothing"


def _first(fault: BaseException) -> str:
    lines = [line.strip() for line in str(fault).strip().splitlines()]
    if not lines:
        return type(fault).__name__
    # a heading says nothing without what follows
    more = lines[1:2] if lines[0].endswith(":") else []
    said = " ".join([lines[0], *more])[:300]
    return f"{type(fault).__name__}: {said}" if isinstance(fault, KeyError) else said


def _torch() -> Any:
    try:
        import torch
    except ImportError as fault:
        raise MissingExtraError("a language model", "torch", "train", fault) from fault
    return torch


def _transformers() -> Any:
    try:
        import transformers
    except ImportError as fault:
        raise MissingExtraError("a language model", "transformers", "train", fault) from fault
    return transformers


def is_small(model: str) -> bool:
    """Return whether a model folder holds at most :data:`SMALL` weights; a hub name does not.

    Files that cannot be read do not either: :func:`load_model` says what is wrong with them.
    """
    files = sorted(Path(model).glob("*.safetensors"))
    if not files:
        return False
    from safetensors import SafetensorError, safe_open

    count = 0
    try:
        for file in files:
            with safe_open(str(file), framework="pt") as weights:
                for name in weights.keys():  # noqa: SIM118 - it is no mapping
                    count += prod(weights.get_slice(name).get_shape())
    except (OSError, SafetensorError):
        return False
    return count <= SMALL
