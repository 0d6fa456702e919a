"""A policy in a checkpoint: all weights, or the adapters alone where only they learn."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from safetensors import safe_open
from safetensors.torch import load_file

from ...agents.models.licences import keep_licences_of
from ...agents.models.loading import load_model
from ...agents.models.lora import has_adapters
from ...agents.models.progress_bars import without_progress_bars
from ...envs.core.errors import DataError

ADAPTERS = "adapter_model.safetensors"
_SIZES = (
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "intermediate_size",
)


def save_policy(policy: Any, folder: Path) -> None:
    """Write a policy so that it loads by path; of one with adapters, these and its settings.

    The licence texts of the model that it was loaded from go along.
    """
    with without_progress_bars():
        if has_adapters(policy):
            policy.save_pretrained(folder, save_embedding_layers=False)
            (folder / "README.md").unlink(missing_ok=True)  # peft's page of blanks to fill in
            policy.config.save_pretrained(folder)
        else:
            policy.save_pretrained(folder)
    keep_licences_of(policy, folder)


def check_architecture(path: Path, policy: Any) -> None:
    """Refuse a checkpoint of another architecture than the policy's.

    Raises:
        DataError: Names both, and what differs.
    """
    alone, here = (path / ADAPTERS).is_file(), has_adapters(policy)
    if alone != here:
        kinds = {True: "adapters (LoRA)", False: "all weights"}
        raise DataError(
            f"{path}: the checkpoint holds {kinds[alone]}, this run trains {kinds[here]}. Resume "
            "with the settings that it was trained with, or start a new run in another folder."
        )
    try:
        saved = json.loads((path / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as fault:
        raise DataError(f"{path}: config.json cannot be read ({fault}).") from fault
    mine = policy.config.to_dict()
    was, now = saved.get("model_type"), mine.get("model_type")
    differing = [
        f"{k} {saved[k]} instead of {mine.get(k)}" for k in _SIZES if _differ(saved, mine, k)
    ]
    if was == now and not differing:
        return
    base = policy.get_base_model() if here else policy
    named = (saved.get("architectures") or [was])[0]
    raise DataError(
        f"{path}: the checkpoint is of a {named}, this run's model is a {type(base).__name__}"
        + (f" ({', '.join(differing)})" if differing else "")
        + ". Name the model that the run was started with, or start a new run in another folder."
    )


def load_policy_weights(path: Path, policy: Any) -> None:
    """Put the weights of a checkpoint into a policy of its architecture.

    Raises:
        ValueError: They do not fit.
    """
    if has_adapters(policy):
        _load_adapters(path, policy)
        return
    index = path / "model.safetensors.index.json"
    names = (
        sorted(set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()))
        if index.exists()
        else ["model.safetensors"]
    )
    stored = set[str]()
    for name in names:
        with safe_open(path / name, framework="pt") as file:
            stored.update(file.keys())
    own = policy.state_dict().keys()
    weights = {}
    if own - stored - set(policy.all_tied_weights_keys) and stored - own:
        # transformers gives weights of some architectures other names in files: it reads them back
        weights = load_model(path, dtype="stored", device="cpu").state_dict()
    else:
        for name in names:
            weights.update(load_file(path / name))
    missing, unexpected = policy.load_state_dict(weights, strict=False)
    # Tied weights are stored once; everything else must be there.
    absent = set(missing) - set(policy.all_tied_weights_keys)
    if absent or unexpected:
        raise ValueError(
            f"weights do not fit the model: missing {sorted(absent)[:3]}, "
            f"unexpected {list(unexpected)[:3]}"
        )


def _load_adapters(path: Path, policy: Any) -> None:
    from peft import set_peft_model_state_dict

    found = set_peft_model_state_dict(policy, load_file(path / ADAPTERS))
    absent = [name for name in found.missing_keys if "lora_" in name]
    if absent or found.unexpected_keys:
        raise ValueError(
            f"adapters do not fit the model: missing {absent[:3]}, "
            f"unexpected {list(found.unexpected_keys)[:3]}"
        )


def _differ(saved: dict[str, Any], mine: dict[str, Any], key: str) -> bool:
    return key in saved and key in mine and saved[key] != mine[key]
