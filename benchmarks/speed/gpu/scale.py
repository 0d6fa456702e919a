"""How large a check is: models of Qwen2.5's sizes with random weights, rows, tokens; or toys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ....algos.core.forest import Forest, Group, Tree, Turn, last_token_reward
from ....algos.core.protocols import Credits

PEAK_TFLOPS = {"H100": 989.0, "H200": 989.0, "A100": 312.0, "L40S": 362.0}
"""Dense products in bfloat16."""
VOCABULARY = 151_936


@dataclass(frozen=True)
class Shape:
    """The sizes of a decoder.

    Attributes:
        hidden: Width of its states.
        layers: Number of layers.
        heads: Query heads.
        key_heads: Key heads.
        inner: Width inside the gated layers.
    """

    hidden: int
    layers: int
    heads: int
    key_heads: int
    inner: int


QWEN = {
    "0.5B": Shape(896, 24, 14, 2, 4864),
    "1.5B": Shape(1536, 28, 12, 2, 8960),
    "3B": Shape(2048, 36, 16, 2, 11008),
}


@dataclass(frozen=True, kw_only=True)
class Scale:
    """How large a check is, and where it runs.

    Attributes:
        device: Of models and tensors.
        sizes: Models by name, the first one for what is measured once.
        vocabulary: Token ids.
        rows: Requests that are decoded together.
        prompt: Tokens of each.
        new: Tokens sampled for each.
        groups: Groups of an update.
        paths: Paths of each group.
        opening: Tokens of a group's common prompt.
        longest: Most tokens of one observation or action.
        steps: Training steps of the step split.
        minutes: Of training the language model.
        repeats: How often a timed thing is done again; the best counts.
        toy: Whether this is no measurement but a rehearsal.
    """

    device: str = "cuda"
    sizes: Mapping[str, Shape] = field(default_factory=lambda: QWEN)
    vocabulary: int = VOCABULARY
    rows: int = 128
    prompt: int = 512
    new: int = 128
    groups: int = 4
    paths: int = 8
    opening: int = 600
    longest: int = 300
    steps: int = 4
    minutes: float = 6.0
    repeats: int = 2
    toy: bool = False

    @property
    def first(self) -> str:
        """Name of the smallest model."""
        return next(iter(self.sizes))

    def net(self, size: str, dtype: torch.dtype = torch.bfloat16) -> Any:
        """Return a model with random weights."""
        from transformers import AutoModelForCausalLM, Qwen2Config

        shape = self.sizes[size]
        config = Qwen2Config(
            vocab_size=self.vocabulary,
            hidden_size=shape.hidden,
            num_hidden_layers=shape.layers,
            num_attention_heads=shape.heads,
            num_key_value_heads=shape.key_heads,
            intermediate_size=shape.inner,
            max_position_embeddings=8192,
            tie_word_embeddings=True,
            eos_token_id=1,
            bos_token_id=None,
            pad_token_id=0,
        )
        with torch.random.fork_rng(), torch.device(self.device):
            torch.manual_seed(0)
            return AutoModelForCausalLM.from_config(config, dtype=dtype).eval()

    def folder(self, size: str, folder: Path) -> str:
        """Save a model with random weights, and a byte-level tokenizer."""
        self.net(size).save_pretrained(folder)
        tokenizer().save_pretrained(folder)
        return str(folder)

    def forest(self, seed: int = 0) -> tuple[Forest, Credits]:
        """Return groups with a common prompt and answers of many lengths, two turns each."""
        rng = np.random.default_rng(seed)
        groups, advantages = [], []
        for g in range(self.groups):
            opening, trees = rng.integers(300, self.vocabulary, self.opening), []
            for _ in range(self.paths):
                tree, total = Tree(), 0
                for t in range(2):
                    n = int(rng.integers(self.longest // 4, self.longest))
                    total += n
                    seen = rng.integers(300, self.vocabulary, self.longest) if t else opening
                    tree.add(
                        Turn(
                            parent=t - 1,
                            obs_ids=seen,
                            act_ids=rng.integers(300, self.vocabulary, n),
                            logprobs=np.full(n, -np.log(self.vocabulary), np.float32),
                            entropies=np.zeros(n, np.float32),
                            rewards=last_token_reward(1.0, n),
                            status="solved" if t else "running",
                        )
                    )
                trees.append(tree)
                advantages.append(np.full(total, rng.normal(), np.float32))
            groups.append(Group(f"g{g}", f"t{g}", trees))
        return Forest.of(groups), Credits(advantages)

    def card(self) -> str:
        """Return the device's name."""
        return torch.cuda.get_device_name() if self.device == "cuda" else "CPU"

    def peak_tflops(self) -> float | None:
        """Return what the card can do at most; None where it is not known."""
        return next((v for name, v in PEAK_TFLOPS.items() if name in self.card()), None)

    def settle(self) -> None:
        """Wait for everything that was asked of the device."""
        if self.device == "cuda":
            torch.cuda.synchronize()

    def peak_gib(self) -> float | None:
        """Return the most memory since :meth:`forget_peak`, in GiB; None on a CPU."""
        if self.device != "cuda":
            return None
        return torch.cuda.max_memory_allocated() / 2**30

    def forget_peak(self) -> None:
        """Begin to watch the memory anew."""
        if self.device == "cuda":
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()


TOY = Scale(
    device="cpu",
    sizes={"toy": Shape(64, 2, 4, 2, 128)},
    vocabulary=1_000,
    rows=6,
    prompt=20,
    new=5,
    groups=2,
    paths=3,
    opening=24,
    longest=12,
    steps=2,
    minutes=0.0,
    repeats=1,
    toy=True,
)


def tokenizer() -> Any:
    """Return a tokenizer of bytes."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = {"<pad>": 0, "<eos>": 1}
    words |= {c: i + 2 for i, c in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    inner = Tokenizer(models.BPE(vocab=words, merges=[]))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=inner, pad_token="<pad>", eos_token="<eos>")
