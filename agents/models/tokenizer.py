"""A small byte-level BPE tokenizer trained on an environment's own text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ...envs.core.errors import BadValueError, MissingExtraError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

PAD = "<|pad|>"
EOS = "<|endoftext|>"
TAGS = tuple(
    f"<{bar}{name}>" for name in ("think", "search", "information", "answer") for bar in ("", "/")
)
"""Tags that every starter knows as single tokens, whether its environment uses them or not."""

_TAG = re.compile(r"</?[a-z][a-z_]*>")
# A word with the blank before it, a digit, or all that stands between: words are never glued to
# punctuation, so that a name is the same token wherever it stands, while boilerplate merges.
_PIECES = r" ?\p{L}+| ?\p{N}|(?:(?! ?[\p{L}\p{N}])[\s\S])+"
_BYTES = 256


def tags_in(texts: Iterable[str]) -> tuple[str, ...]:
    """:data:`TAGS`, then the other ``<tag>`` and ``</tag>`` words of ``texts``, sorted."""
    found = {tag for text in texts for tag in _TAG.findall(text)}
    return TAGS + tuple(sorted(found.difference(TAGS)))


def train_tokenizer(
    texts: Sequence[str], *, vocab_size: int, max_length: int
) -> PreTrainedTokenizerFast:
    """Train a tokenizer; the same texts give the same tokenizer.

    Tags are added tokens that are not special: each is one token, and decoding keeps it. Any text
    can be encoded and comes back unchanged, since all bytes are in the vocabulary.

    Args:
        texts: What to train on.
        vocab_size: Maximum tokens, tags included; fewer when the texts hold no more pairs.
        max_length: Context of the model that it belongs to, in tokens.

    Raises:
        BadValueError: No text, or a vocabulary too small for the bytes and the tags.
        MissingExtraError: transformers is not installed.
    """
    try:
        from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, trainers
        from tokenizers import pre_tokenizers as pre
        from transformers import PreTrainedTokenizerFast
    except ImportError as fault:
        raise MissingExtraError("training a tokenizer", "transformers", "train", fault) from fault
    if not texts:
        raise BadValueError("train_tokenizer: got no text; expected at least one transcript.")
    tags = tags_in(texts)
    minimum = _BYTES + 2 + len(tags)
    if vocab_size < minimum:
        raise BadValueError(
            f"train_tokenizer: vocab_size is {vocab_size}; expected at least {minimum}: the bytes, "
            f"{PAD}, {EOS} and {len(tags)} tags."
        )
    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre.Sequence(
        [
            pre.Split(Regex(_PIECES), "isolated"),
            pre.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    core.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size - len(tags),
        special_tokens=[PAD, EOS],
        initial_alphabet=sorted(pre.ByteLevel.alphabet()),
        min_frequency=2,
        show_progress=False,
    )
    between = re.compile("|".join(map(re.escape, sorted(tags, key=len, reverse=True))))
    core.train_from_iterator((part for text in texts for part in between.split(text)), trainer)
    core.add_tokens([AddedToken(tag, normalized=False, special=False) for tag in tags])
    return PreTrainedTokenizerFast(
        tokenizer_object=core,
        pad_token=PAD,
        eos_token=EOS,
        model_max_length=max_length,
        clean_up_tokenization_spaces=False,
    )
