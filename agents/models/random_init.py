"""The blank model: a tiny decoder with random weights and a vocabulary made for one environment.

Where an environment has a few dozen words, every word is a token. A model that knows nothing then
writes all of them now and then, so it finds the actions by itself; there is nothing to imitate
first.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Literal, Protocol

import gymnasium as gym

from ...envs.core.errors import BadValueError, MissingExtraError
from ...envs.core.settings import check_choices, check_integer
from ..scripted import ExpertPolicy, NullPolicy, RandomPolicy, run_episode, text_env
from .progress_bars import without_progress_bars
from .size import count_weights
from .tokenizer import EOS, PAD, train_tokenizer

UNKNOWN = "<|unknown|>"
FEW = 64
"""Environments with at most so many words get a token per word."""
_WORDS = r"\p{L}+|\p{N}|\s|[^\s\p{L}\p{N}]"
_WORDS_RE = re.compile(r"[^\W\d_]+|\d|\s|[^\s]")  # the same, as Python spells it


class Shape(Protocol):
    """Sizes of a decoder; see :class:`BlankSettings`."""

    @property
    def hidden(self) -> int: ...  # noqa: D102
    @property
    def layers(self) -> int: ...  # noqa: D102
    @property
    def heads(self) -> int: ...  # noqa: D102
    @property
    def inner(self) -> int: ...  # noqa: D102
    @property
    def init_range(self) -> float: ...  # noqa: D102
    @property
    def context(self) -> int: ...  # noqa: D102
    @property
    def seed(self) -> int: ...  # noqa: D102


@dataclass(frozen=True, kw_only=True)
class BlankSettings:
    """How a blank model is made.

    Attributes:
        hidden: Width of the model.
        layers: Decoder layers.
        heads: Attention heads.
        inner: Width of the feed-forward part.
        init_range: Standard deviation of the initial weights; small enough for a nearly uniform
            policy.
        context: Maximum tokens that the model can see.
        vocabulary: ``"words"`` (what the environment never wrote is one unknown token), ``"bytes"``
            (a byte-level BPE for any text), or ``"auto"``: words where there are at most 64.
        vocab_size: Maximum tokens of a ``"bytes"`` vocabulary.
        episodes: Episodes of each scripted player and split that the vocabulary is taken from.
        seed: Of weights, tasks and players.
    """

    hidden: int = 64
    layers: int = 2
    heads: int = 2
    inner: int = 128
    init_range: float = 0.05
    context: int = 8192
    vocabulary: Literal["auto", "words", "bytes"] = "auto"
    vocab_size: int = 512
    episodes: int = 40
    seed: int = 0

    def __post_init__(self) -> None:
        check_choices(self)
        for name in ("hidden", "layers", "heads", "inner", "context", "vocab_size", "episodes"):
            check_integer(name, getattr(self, name), "blank model", min=1)
        if self.hidden % (2 * self.heads):
            raise BadValueError(
                f"blank model: hidden is {self.hidden}, heads {self.heads}; expected a multiple of "
                f"{2 * self.heads}, so that every head has an even width."
            )


def blank_model(
    env: gym.Env[Any, Any], folder: Path | str, settings: BlankSettings | None = None
) -> Mapping[str, int]:
    """Write a blank model and its tokenizer for an environment into ``folder``.

    Args:
        env: Any text environment.
        folder: Made when it does not exist; for ``load_model`` and ``load_tokenizer``.
        settings: How it is made.

    Returns:
        Number of ``parameters`` and tokens (``vocabulary``).

    Raises:
        BadValueError: Not a text environment.
        MissingExtraError: torch or transformers is not installed.
    """
    settings = settings or BlankSettings()
    texts = env_texts(env, settings.episodes, settings.seed)
    words = sorted({word for text in texts for word in _WORDS_RE.findall(text)})
    kind = settings.vocabulary
    if kind == "words" or (kind == "auto" and len(words) <= FEW):
        tokenizer = word_tokenizer(words, settings.context)
    else:
        tokenizer = train_tokenizer(
            texts, vocab_size=settings.vocab_size, max_length=settings.context
        )
    model = blank_decoder(tokenizer, settings)
    with without_progress_bars():
        model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    parameters = count_weights(model)
    return {"parameters": parameters, "vocabulary": len(tokenizer)}


def env_texts(env: gym.Env[Any, Any], episodes: int, seed: int) -> list[str]:
    """All texts of episodes of the expert (where there is one), a random and a silent player.

    Every observation and action is a text of its own: two of them never make one word.
    """
    inner = text_env(env)
    players: list[Any] = [RandomPolicy(seed), NullPolicy()]
    if inner.find_expert() is not None:
        players.append(ExpertPolicy(seed=seed))
    splits = [split for split, size in inner.source.sizes().items() if size != 0]
    texts = [inner.instructions] if inner.instructions else []
    for player, split in product(players, splits):
        for i in range(episodes):
            run_episode(env, player, seed=seed + i, options={"split": split})
            episode = inner.episode
            texts += [text for step in episode.steps for text in (step.observation, step.action)]
            texts.append(episode.observation)
    return texts


def word_tokenizer(words: Sequence[str], max_length: int) -> Any:
    """A tokenizer with one token per word, digit, blank and sign; others are one unknown token.

    Args:
        words: The vocabulary.
        max_length: Context of the model that it belongs to, in tokens.

    Raises:
        MissingExtraError: transformers is not installed.
    """
    try:
        from tokenizers import Regex, Tokenizer, decoders, models
        from tokenizers import pre_tokenizers as pre
        from transformers import PreTrainedTokenizerFast
    except ImportError as fault:
        raise MissingExtraError("making a tokenizer", "transformers", "train", fault) from fault
    ids = {word: i for i, word in enumerate(dict.fromkeys((PAD, EOS, UNKNOWN, *words)))}
    core = Tokenizer(models.WordLevel(ids, unk_token=UNKNOWN))
    core.pre_tokenizer = pre.Split(Regex(_WORDS), "isolated")
    core.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(
        tokenizer_object=core,
        pad_token=PAD,
        eos_token=EOS,
        unk_token=UNKNOWN,
        model_max_length=max_length,
        clean_up_tokenization_spaces=False,
    )


def blank_decoder(tokenizer: Any, shape: Shape) -> Any:
    """Return a Qwen3 decoder with fresh weights; the caller's random state stays untouched.

    Raises:
        MissingExtraError: torch or transformers is not installed.
    """
    try:
        import torch
        from transformers import Qwen3Config, Qwen3ForCausalLM

        from .usual_torch import usual_torch
    except ImportError as fault:
        raise MissingExtraError("making a model", "transformers", "train", fault) from fault
    config = Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=shape.hidden,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.heads,
        head_dim=shape.hidden // shape.heads,
        intermediate_size=shape.inner,
        max_position_embeddings=shape.context,
        rope_parameters={"rope_type": "default", "rope_theta": 10_000.0},
        tie_word_embeddings=True,
        initializer_range=shape.init_range,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    with usual_torch(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(shape.seed)
        return Qwen3ForCausalLM(config)
