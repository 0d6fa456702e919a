"""A causal language model with one number on top: the reward of a whole trajectory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from ...envs.core.errors import DataError
from ..models.built_folder import whole_or_nothing
from ..models.licences import keep_licences_of
from ..models.loading import (
    check_match,
    context_limit,
    has_bfloat16,
    load_model,
    load_tokenizer,
)
from ..models.progress_bars import without_progress_bars
from ..models.size import is_large
from ..rendering.factory import make_renderer
from ..warm_start.imitation import in_chunks, row_attention
from .settings import REWARD_FILE, ReadingSettings
from .trajectory import Trajectory

HEAD = "reward_head.safetensors"


class Reader:
    """Trajectories as token ids, in the same way in training and in scoring.

    Args:
        tokenizer: The model's; dialogues go through its chat template where it has one.
        settings: How they are shown.
        limit: Maximum tokens that the model can see, None for no limit.
    """

    def __init__(self, tokenizer: Any, settings: ReadingSettings, limit: int | None) -> None:
        self._renderer = make_renderer(tokenizer)
        self._settings = settings
        self._limit = min(settings.max_tokens, limit or settings.max_tokens)
        self.pad_id = self._renderer.pad_id

    def ids(self, trajectory: Trajectory) -> list[int]:
        """Return the ids of a trajectory and the request to judge it, at most as many as fit.

        Of a longer one the middle is cut: the instruction keeps at most half of the room.
        """
        renderer, settings = self._renderer, self._settings
        ids = first = renderer.open("", trajectory.instruction)
        last = len(trajectory.moves) - 1
        for place, (action, observation) in enumerate(trajectory.moves):
            written = renderer.write(action)
            seen = observation if place != last else self._end(observation)
            ids = ids + written + renderer.observe(seen, written)
        ids = ids + renderer.write(settings.stub)
        if len(ids) <= self._limit:
            return ids
        head = min(len(first), self._limit // 2)
        return ids[:head] + ids[head - self._limit :]

    def _end(self, observation: str) -> str:
        return (observation if self._settings.closing else "") + self._settings.request


class RewardModel:
    """Scores trajectories; higher is better. The scores are unbounded, and centred by training.

    Asked for scores, a large model on a CPU that computes in bfloat16 multiplies in it. Training
    does not: weights that were stored in bfloat16 lie on its grid, the few steps that preferences
    take change most of them by less than half its spacing, and a forward pass in bfloat16 would
    not see what the steps before it had learned.

    Args:
        model: A causal language model on its device; its output layer is not used.
        tokenizer: The one that belongs to it.
        settings: How trajectories are shown.
        seed: Of the head's weights; its bias begins at 0.

    Raises:
        BadValueError: The tokenizer does not belong to the model.

    Attributes:
        model: The causal model.
        backbone: What computes hidden states.
        head: From a hidden state ``[hidden]`` to the reward, float32.
        reader: Trajectories as ids.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        settings: ReadingSettings | None = None,
        seed: int = 42,
    ) -> None:
        check_match(model, tokenizer)
        self.settings = settings or ReadingSettings()
        self.model = model.eval()
        self.backbone: Any = model.base_model
        self.tokenizer = tokenizer
        self.reader = Reader(tokenizer, self.settings, context_limit(model))
        width = int(model.get_input_embeddings().embedding_dim)
        self.device = next(model.parameters()).device
        self.head = _new_head(width, seed).to(self.device)
        on_cpu = self.device.type == "cpu"
        self._half = on_cpu and is_large(model) and has_bfloat16(self.device)

    def score(self, trajectories: Sequence[Trajectory]) -> list[float]:
        """Return the reward of each trajectory.

        How they are batched changes no more than the rounding.
        """
        rows = [self.reader.ids(trajectory) for trajectory in trajectories]
        found = [0.0] * len(rows)
        self.backbone.eval()
        with torch.inference_mode():
            for part in in_chunks([len(row) for row in rows]):
                values = self.rewards([rows[i] for i in part]).tolist()
                for i, value in zip(part, values, strict=True):
                    found[i] = value
        return found

    def rewards(self, rows: Sequence[Sequence[int]]) -> torch.Tensor:
        """Return rewards ``[rows]`` of rows of ids, with gradients: one forward pass."""
        left = self.settings.padding == "left"
        width = max(map(len, rows))
        ids = torch.full((len(rows), width), self.reader.pad_id)
        mask = torch.zeros((len(rows), width), dtype=torch.long)
        for i, row in enumerate(rows):
            place = slice(width - len(row), width) if left else slice(0, len(row))
            ids[i, place] = torch.tensor(row)
            mask[i, place] = 1
        last = torch.full((len(rows),), width - 1) if left else mask.sum(-1) - 1
        hidden = self._hidden(ids, mask)
        picked = hidden[torch.arange(len(rows)), last].float()
        return self.head(picked)[:, 0]

    def _hidden(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        inputs: dict[str, torch.Tensor] = {"input_ids": ids.to(self.device)}
        if not bool(mask.all()):
            inputs["attention_mask"] = mask.to(self.device)
            if self.settings.padding == "left":
                inputs["position_ids"] = (mask.cumsum(-1) - 1).clamp(min=0).to(self.device)
        with self._products(), row_attention(self.device, ids.shape[1]):
            return self.backbone(**inputs, use_cache=False).last_hidden_state

    def _products(self) -> AbstractContextManager[Any]:
        if self._half and not torch.is_grad_enabled():
            return torch.autocast("cpu", torch.bfloat16)
        return nullcontext()

    def save(self, folder: Path | str, training: Mapping[str, Any] | None = None) -> None:
        """Write a folder for :func:`open_reward_model`.

        Args:
            folder: Not there yet, or empty.
            training: What to note about how it was trained.

        Raises:
            DataError: The disk is full or cannot be written; the folder is as it was.
        """
        head = {name: tensor.contiguous().cpu() for name, tensor in self.head.state_dict().items()}
        with whole_or_nothing(Path(folder)) as path:
            with without_progress_bars():
                self.model.save_pretrained(path)
            self.tokenizer.save_pretrained(path)
            keep_licences_of(self.model, path)
            save_file(head, path / HEAD)
            REWARD_FILE.write(path, self.settings, training)


def open_reward_model(
    folder: Path | str, *, device: str = "auto", dtype: str = "float32"
) -> RewardModel:
    """Return the reward model of a folder.

    Args:
        folder: Written by :meth:`RewardModel.save`.
        device: ``"auto"`` takes the first CUDA device where there is one.
        dtype: Of the backbone's weights; ``"auto"`` is bfloat16 where the device computes in it.

    Raises:
        BadValueError: The folder holds no reward model.
        DataError: A file of it cannot be read.
        MissingExtraError: torch or transformers is not installed.
    """
    path = Path(folder).expanduser()
    settings = REWARD_FILE.read(path)
    model = load_model(path, device=device, dtype=dtype)
    made = RewardModel(model, load_tokenizer(path, pad="eos"), settings)
    try:
        made.head.load_state_dict(load_file(path / HEAD))
    except (OSError, SafetensorError, RuntimeError) as fault:
        raise DataError(
            f"{path / HEAD}: not the head of this reward model ({str(fault).splitlines()[0]}); "
            "train it again."
        ) from fault
    return made


def _new_head(width: int, seed: int) -> torch.nn.Linear:
    """Fresh weights; the caller's random state stays untouched."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        head = torch.nn.Linear(width, 1)
        torch.nn.init.normal_(head.weight, std=1.0 / width)
        torch.nn.init.zeros_(head.bias)
    return head
