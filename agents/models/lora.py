"""Adapters (LoRA through peft): put on, and seen as one model with merged weights."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...envs.core.errors import BadValueError, MissingExtraError
from ...envs.core.settings import check_integers
from .registry.fetch import name_of_folder

ADAPTER_SETTINGS = "adapter_config.json"
"""The file that makes a folder one of adapters; it names their base model."""


@dataclass(frozen=True, kw_only=True)
class LoraSettings:
    """Low-rank adapters (LoRA, arXiv 2106.09685): the model's own weights stay as they are.

    Attributes:
        rank: Rank of each adapter.
        alpha: Its output is scaled by ``alpha / rank``.
        targets: Names of the layers that get one; ``"all-linear"`` for all linear layers but the
            output layer.
        rslora: Scale by ``alpha / sqrt(rank)`` instead.
    """

    rank: int = 16
    alpha: float = 32.0
    targets: tuple[str, ...] = ("all-linear",)
    rslora: bool = False

    def __post_init__(self) -> None:
        check_integers(self)
        if self.rank < 1:
            raise BadValueError(f"LoraSettings.rank is {self.rank}; expected at least 1.")
        if not self.alpha > 0:
            raise BadValueError(f"LoraSettings.alpha is {self.alpha}; expected above 0.")
        if not self.targets or not all(self.targets):
            raise BadValueError(
                f"LoraSettings.targets are {self.targets}; expected names of layers as "
                "('q_proj', 'v_proj'), or ('all-linear',)."
            )


def with_lora(
    model: Any,
    settings: LoraSettings,
    seed: int = 0,
    *,
    dropout: float = 0.0,
    task: str | None = "CAUSAL_LM",
) -> Any:
    """``model`` with fresh adapters, which start as no change; only they learn.

    Args:
        model: A causal language model, or its backbone; it is changed in place.
        settings: Of the adapters.
        seed: Of their first weights.
        dropout: Before the adapters. In reinforcement learning it must stay 0: the ratio of new to
            old log-probabilities would be noise.
        task: What peft takes the model for; None for a backbone.

    Raises:
        MissingExtraError: peft is not installed.
        BadValueError: The model has no layers of these names, or one of them is an embedding whose
            weight is the output layer's as well.
    """
    peft = _peft("LoRA")
    import torch

    _refuse_tied_targets(model, settings.targets)
    targets = "all-linear" if settings.targets == ("all-linear",) else list(settings.targets)
    config = peft.LoraConfig(
        r=settings.rank,
        lora_alpha=settings.alpha,
        lora_dropout=dropout,
        target_modules=targets,
        use_rslora=settings.rslora,
        task_type=task,
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        try:
            made = peft.get_peft_model(model, config)
        except ValueError as fault:
            raise BadValueError(f"LoRA on {type(model).__name__}: {fault}") from fault
    made.active_peft_config.base_model_name_or_path = lasting_name(model.name_or_path)
    for weight in made.parameters():
        if weight.requires_grad:  # small steps vanish in half precision
            weight.data = weight.data.float()
    return made.eval()


def _refuse_tied_targets(model: Any, targets: tuple[str, ...]) -> None:
    """Refuse adapters of a weight that two layers share: one of them alone would have them."""
    tied = _tied_layers(model)
    for name, module in model.named_modules():
        found = next((t for t in targets if name == t or name.endswith(f".{t}")), None)
        if found is not None and id(module) in tied:
            raise BadValueError(
                f"LoRA on {type(model).__name__}: the target {found!r} is its {tied[id(module)]}, "
                "and input embedding and output layer are one weight (tie_word_embeddings), which "
                "cannot have adapters in one place and none in the other. Possible targets: "
                f"{', '.join(_linear_names(model, tied))}; or 'all-linear' for all of them."
            )


def _tied_layers(model: Any) -> dict[int, str]:
    """Return what the layers are that share one weight, by identity; empty where none do."""
    last = model.get_output_embeddings()  # None of a backbone
    tied = getattr(model.config.get_text_config(), "tie_word_embeddings", False)
    if last is None or not tied:
        return {}
    return {id(model.get_input_embeddings()): "input embedding", id(last): "output layer"}


def _linear_names(model: Any, but: Mapping[int, str]) -> list[str]:
    from torch import nn
    from transformers.pytorch_utils import Conv1D

    found = (
        name
        for name, m in model.named_modules()
        if isinstance(m, (nn.Linear, Conv1D)) and id(m) not in but
    )
    return sorted({name.rpartition(".")[2] for name in found})


def has_adapters(model: Any) -> bool:
    """True for a peft model."""
    return hasattr(model, "peft_config") and hasattr(model, "get_base_model")


def merged(model: Any) -> Any:
    """Return a model of the plain architecture that computes what ``model`` does; for engines.

    Weights without an adapter are shared with ``model``, those with one are new; ``model`` itself
    is not changed. A model without adapters is returned as it is.

    Raises:
        BadValueError: There are adapters on a weight that input and output share.
    """
    if not has_adapters(model):
        return model
    if layer := _adapted_tied_layer(model):
        raise BadValueError(
            f"LoRA on {type(model.get_base_model()).__name__}: there are adapters on its {layer}, "
            "and input embedding and output layer are one weight (tie_word_embeddings): merged, "
            "both would have them. Train adapters of other layers."
        )
    return _detached(model).merge_and_unload(safe_merge=True)


def without_adapters(model: Any) -> Any:
    """Return a model of the plain architecture that shares the weights below the adapters.

    A model without adapters is returned as it is.
    """
    return _detached(model).unload() if has_adapters(model) else model


def merged_view(model: Any) -> Any:
    """Return what :func:`merged` does for whoever reads weights one after the other.

    Each merged weight is computed when it is read, and there never is a second set of them.
    ``model`` is not changed, and need not be whole: weights that are spread over processes are
    gathered as they are read, so that all of them must read the same in the same order. Adapters of
    other kinds than LoRA's own on linear layers are merged as a whole.
    """
    if not has_adapters(model):
        return model
    return MergedWeights(model.get_base_model()) if has_plain_lora(model) else merged(model)


def has_plain_lora(model: Any) -> bool:
    """Return whether all adapters of a peft model are products added to linear layers."""
    from peft.tuners.lora.layer import Linear
    from peft.tuners.tuners_utils import BaseTunerLayer
    from peft.utils.other import AuxiliaryTrainingWrapper

    base = model.get_base_model()
    return not _adapted_tied_layer(model) and not any(
        isinstance(module, AuxiliaryTrainingWrapper)
        or (
            isinstance(module, BaseTunerLayer)
            and (
                not isinstance(module, Linear)
                or module.merged
                or bool(module.lora_variant)
                or any(module.lora_bias.values())
            )
        )
        for module in base.modules()
    )


def _adapted_tied_layer(model: Any) -> str | None:
    """Return which of the layers that share one weight has adapters; None where none has."""
    from peft.tuners.tuners_utils import BaseTunerLayer

    tied = _tied_layers(model.get_base_model())
    layers = (m for m in model.modules() if isinstance(m, BaseTunerLayer))
    return next((tied[id(layer)] for layer in layers if id(layer) in tied), None)


class MergedWeights:
    """A module with adapters as an engine reads it: names and weights of the plain architecture.

    Args:
        module: Of a model for which :func:`has_plain_lora` holds.
    """

    def __init__(self, module: Any) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        from torch import Tensor, nn

        if name == "weight" and _adapted(self._module):
            return _merged_weight(self._module)
        found = getattr(self._module, name)
        if isinstance(found, Tensor):
            return _gathered(found)
        if isinstance(found, nn.ModuleList):
            return [MergedWeights(module) for module in found]
        return MergedWeights(found) if isinstance(found, nn.Module) else found

    def state_dict(self) -> Mapping[str, Any]:
        """Return weights and buffers by name, each computed when it is read."""
        layers = {name: m for name, m in self._module.named_modules() if _adapted(m)}
        found: dict[str, Any] = {}
        for name, value in self._module.state_dict().items():
            layer, _, last = name.rpartition(".base_layer.")
            if ".lora_" not in name:
                whole = layers[layer] if layer in layers and last == "weight" else value
                found[name.replace(".base_layer.", ".")] = whole
        return _Read(found)


class _Read(Mapping[str, Any]):
    def __init__(self, found: Mapping[str, Any]) -> None:
        self._found = found

    def __getitem__(self, name: str) -> Any:
        found = self._found[name]
        return _merged_weight(found) if _adapted(found) else _gathered(found)

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)


def _adapted(module: Any) -> bool:
    return hasattr(module, "base_layer") and hasattr(module, "lora_A")


def _gathered(value: Any) -> Any:
    """Return a weight whole, where it is cut up between processes."""
    value = value.detach()
    return value.full_tensor() if hasattr(value, "full_tensor") else value


def _merged_weight(layer: Any) -> Any:
    """Return what peft would leave in the layer's weight, in memory of its own."""
    weight = _gathered(layer.get_base_layer().weight)
    for name in layer.active_adapters:
        if name not in layer.lora_A:
            continue
        a, b = (_gathered(part[name].weight) for part in (layer.lora_A, layer.lora_B))
        if a.device.type == "cpu":  # as peft, which rounds the product once
            change = (b.float() @ a.float()).T if layer.fan_in_fan_out else b.float() @ a.float()
            change = change.mul_(layer.scaling[name]).to(b.dtype)
        else:
            change = ((b @ a).T if layer.fan_in_fan_out else b @ a).mul_(layer.scaling[name])
        weight = change.to(weight.dtype).add_(weight)
    return weight


def copy_modules(model: Any, part: Callable[[Any], Any], *, keep_buffers: bool = False) -> Any:
    """Return a copy of a model's modules with other weights, which learn nothing.

    Args:
        model: Any module.
        part: From a weight to the tensor that takes its place, such as the one that it shares.
        keep_buffers: Whether buffers are shared; else they are copied.
    """
    from torch import nn

    memo: dict[int, Any] = {id(b): b for b in model.buffers()} if keep_buffers else {}
    for weight in model.parameters():
        memo[id(weight)] = nn.Parameter(part(weight), requires_grad=False)
    return copy.deepcopy(model, memo)


def load_adapters(model: Any, folder: Path | str) -> Any:
    """``model`` with the adapters of a folder.

    Raises:
        MissingExtraError: peft is not installed.
        BadValueError: The adapters do not fit the model.
    """
    peft = _peft("a checkpoint with adapters")
    try:
        return peft.PeftModel.from_pretrained(model, str(folder), is_trainable=True)
    except (OSError, ValueError, RuntimeError, KeyError) as fault:
        first = (str(fault).strip().splitlines() or [type(fault).__name__])[0]
        raise BadValueError(f"{folder}: the adapters do not fit: {first[:300]}") from fault


def lasting_name(model: str) -> str:
    """Return how adapters name their base model, so that it is found from elsewhere too.

    Args:
        model: What it was loaded from: the catalogue's name is that of a folder in a cache, another
            folder is its whole path; a hub's name stays.
    """
    if not model or not Path(model).is_dir():
        return model
    return name_of_folder(model) or str(Path(model).resolve())


def base_of(folder: Path) -> str:
    """Name or folder of the base model of a folder with adapters, as it is found here.

    Raises:
        BadValueError: The folder does not say, or names a folder that is not here.
    """
    path = folder / ADAPTER_SETTINGS
    try:
        base = json.loads(path.read_text(encoding="utf-8"))["base_model_name_or_path"]
    except (OSError, ValueError, KeyError) as fault:
        raise BadValueError(f"{path}: not readable as the settings of adapters: {fault}") from fault
    if not base:
        raise BadValueError(
            f"{path}: base_model_name_or_path is empty; write the base model there."
        )
    found = str(base) if Path(base).is_dir() else name_of_folder(base) or str(base)
    if Path(found).is_absolute() and not Path(found).exists():
        raise BadValueError(
            f"{path}: base_model_name_or_path is {found}, and there is no such folder here. Write "
            "there where the base model lies, or its name in the catalogue or on a hub."
        )
    return found


def _detached(model: Any) -> Any:
    return copy_modules(model, lambda weight: weight.data, keep_buffers=True)


def _peft(what: str) -> Any:
    try:
        import peft
    except ImportError as fault:
        raise MissingExtraError(what, "peft", "train", fault) from fault
    return peft
