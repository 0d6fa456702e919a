"""A language model as the selector of a crawl, and opening one from its folder."""

from __future__ import annotations

import hashlib
import inspect
import math
import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from ...envs.core.digest import digest_of
from ...envs.core.errors import BadValueError, EnvFault
from ...envs.core.fork import Shared
from ...envs.paper_crawler.papers import Judged
from ...envs.paper_crawler.prompts import PROMPTS
from ..models.loading import check_match, context_limit, load_model, load_tokenizer
from ..rendering.factory import make_renderer
from .decision import decision_of
from .settings import SELECTOR_FILE, TAIL, SelectorSettings

_PAPER = re.compile(r"\n(?:Paper title|paper): .*\n")
REMEMBERED = 1_000_000
"""Scores that a selector remembers; the oldest are forgotten first."""


class LanguageModelSelector(Shared):
    """Judges a paper by the probability that the model's next token is True.

    One forward pass per paper; rows of similar length go through the model together. Every
    question is asked once: scores are remembered, and copies of an environment share them. How
    rows are batched changes a score by no more than the rounding of the model's number format.
    The states of episodes hold the scores, so digests of equal episodes may differ by it: between
    a selector that remembers and one that does not, or between one copy and several.

    Args:
        model: A causal language model, on its device; it is not changed.
        tokenizer: The one that belongs to it.
        settings: How it is asked.
        batch: Maximum number of papers per forward pass.

    Raises:
        BadValueError: The tokenizer does not belong to the model, or does not know the verdicts.

    Attributes:
        identity: Changes with weights, tokenizer and settings.
        blocking: False: the model runs in this process.
        settings: How it is asked.
        decision: The verdicts' tokens.
    """

    def __init__(
        self, model: Any, tokenizer: Any, settings: SelectorSettings | None = None, batch: int = 32
    ) -> None:
        if batch < 1:
            raise BadValueError(f"selector: batch is {batch}; expected at least 1.")
        check_match(model, tokenizer)
        self.settings = settings or SelectorSettings()
        self.decision = decision_of(tokenizer, chat=self.settings.chat, blank=self.settings.blank)
        self.blocking = False
        self.identity = f"lm:{digest_of((_fingerprint(model, tokenizer), self.settings))}"
        self.prompts = Questions(tokenizer, self.settings, context_limit(model))
        self._ask = PROMPTS[self.settings.prompt].select
        self._model = model.eval()
        self._keeps = "logits_to_keep" in inspect.signature(model.forward).parameters
        self._batch = batch
        self._known: dict[bytes, float] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_known": {}}

    def probabilities(self, judged: Sequence[Judged]) -> list[float]:
        """Return the probability that each paper answers its request.

        Raises:
            EnvFault: The model computes no number.
        """
        return self.of_prompts([self._ask(request, paper) for request, paper in judged])

    def of_prompts(self, prompts: Sequence[str]) -> list[float]:
        """Return the same for questions that are written already.

        Raises:
            EnvFault: The model computes no number.
        """
        keys = [hashlib.blake2b(text.encode(), digest_size=16).digest() for text in prompts]
        new = {k: text for k, text in zip(keys, prompts, strict=True) if k not in self._known}
        scores = {key: self._known[key] for key in keys if key in self._known}
        rows = sorted(((self.prompts.ids(text), key) for key, text in new.items()), key=_length)
        for start in range(0, len(rows), self._batch):
            part = rows[start : start + self._batch]
            found = self._forward([ids for ids, _ in part])
            scores.update(zip((key for _, key in part), found, strict=True))
        self._known.update((key, scores[key]) for key in new)
        while len(self._known) > REMEMBERED:
            del self._known[next(iter(self._known))]
        return [scores[key] for key in keys]

    @torch.inference_mode()
    def _forward(self, rows: Sequence[Sequence[int]]) -> list[float]:
        """Probabilities of rows of ids. They are padded on the left, so that all end together."""
        width = max(map(len, rows))
        ids = torch.full((len(rows), width), self.prompts.pad_id)
        mask = torch.zeros((len(rows), width), dtype=torch.long)
        for i, row in enumerate(rows):
            ids[i, width - len(row) :] = torch.tensor(row)
            mask[i, width - len(row) :] = 1
        place = next(self._model.parameters()).device
        logits = self._model(
            input_ids=ids.to(place),
            attention_mask=mask.to(place),
            position_ids=(mask.cumsum(-1) - 1).clamp(min=0).to(place),
            use_cache=False,
            **({"logits_to_keep": 1} if self._keeps else {}),
        ).logits[:, -1]
        return [self._shifted(p) for p in self._true(logits.double()).tolist()]

    def _true(self, logits: torch.Tensor) -> torch.Tensor:
        """Return the probability of True ``[rows]`` from logits ``[rows, vocabulary]``."""
        if self.settings.probability == "vocabulary":
            return logits.softmax(-1)[:, self.decision.true]
        return (logits[:, self.decision.true] - logits[:, self.decision.false]).sigmoid()

    def _shifted(self, p: float) -> float:
        if not math.isfinite(p):
            raise EnvFault(
                "selector: the model's probability is not a number; its weights are broken, or "
                "its number format is too small. Load it with dtype='float32'."
            )
        at = self.settings.threshold
        if at == 0.5:
            return p
        yes, no = p * (1 - at), (1 - p) * at
        return yes / (yes + no)


class Questions:
    """Questions as token ids, in the same way in training and in judging.

    Args:
        tokenizer: The model's.
        settings: How it is asked.
        limit: Maximum tokens that the model can see, None for no limit.

    Raises:
        BadValueError: The model sees no more than what is never cut of a question.

    Attributes:
        pad_id: Fills rows.
        eos_id: Ends an answer.
    """

    def __init__(self, tokenizer: Any, settings: SelectorSettings, limit: int | None) -> None:
        self._renderer = make_renderer(
            tokenizer, "chat" if settings.chat else "plain", observations="inline"
        )
        if limit is not None and limit <= TAIL:
            raise BadValueError(
                f"selector: the model sees {limit} tokens; expected one that sees more than {TAIL}."
            )
        self._longest, self._context = settings.max_tokens, limit
        self.pad_id = self._renderer.pad_id
        self.eos_id = self._renderer.eos_id

    def ids(self, prompt: str, answer: int = 0) -> list[int]:
        """Return the ids of a question, at most as many as fit before so many of its answer.

        Raises:
            BadValueError: The answer leaves no room for a question.
        """
        most = self._longest
        if self._context is not None:
            most = min(most, self._context - answer)
        if most <= TAIL:
            raise BadValueError(
                f"selector: an answer has {answer} tokens, and the model sees {self._context}; "
                f"expected that more than {TAIL} are left for its question. Shorten the reasons, "
                "or leave them out (rationale=False, --rationale False)."
            )
        ids = self._renderer.open("", prompt)
        if len(ids) > most:
            ids = self._renderer.open("", self._show_title(prompt, most))
        over = len(ids) - most
        return ids if over <= 0 else ids[: -TAIL - over] + ids[-TAIL:]

    def _show_title(self, prompt: str, most: int) -> str:
        """Return a question without the end of a request that would push the title out."""
        title = _PAPER.search(prompt)
        if title is None:
            return prompt
        request = self._renderer.write(prompt[: title.start()])
        around = len(self._renderer.open("", "")) + len(self._renderer.write(title[0]))
        room = max(0, most - TAIL - around)
        if len(request) <= room:
            return prompt
        return self._renderer.text(request[:room]) + prompt[title.start() :]

    def write(self, text: str) -> list[int]:
        """Return the ids of a part of an answer."""
        return self._renderer.write(text)


def _length(row: tuple[list[int], bytes]) -> int:
    return len(row[0])


def _fingerprint(model: Any, tokenizer: Any) -> str:
    """Changes with weights and vocabulary."""
    state = hashlib.blake2b(digest_size=16)
    for name, tensor in sorted(model.state_dict().items()):
        state.update(f"{name} {tuple(tensor.shape)} {tensor.dtype};".encode())
        flat = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
        state.update(flat.numpy().data)
    words = sorted(tokenizer.get_vocab().items())
    return digest_of((type(model).__name__, state.hexdigest(), words))


def open_selector(
    folder: str | Path,
    settings: SelectorSettings | None = None,
    *,
    batch: int = 32,
    device: str = "auto",
    dtype: str = "auto",
) -> LanguageModelSelector:
    """Return the selector of a folder.

    Environments of one process that open the same folder share one model and its scores.

    Args:
        folder: Made by training, or any causal language model (a hub name too).
        settings: How it is asked; those of the folder when left out.
        batch: Maximum number of papers per forward pass.
        device: ``"auto"`` takes the first CUDA device where there is one.
        dtype: Of the weights; ``"auto"`` is bfloat16 where the device computes in it.

    Raises:
        BadValueError: No model, or one whose tokenizer does not know the verdicts.
        DataError: The folder's settings cannot be read.
        MissingExtraError: torch or transformers is not installed.
    """
    path = Path(folder).expanduser()
    where = str(path.resolve()) if path.is_dir() else str(folder)
    wanted = settings or SELECTOR_FILE.read(where, SelectorSettings())
    return _opened(where, wanted, _stamp(Path(where)), batch, (device, dtype))


def _stamp(folder: Path) -> tuple[Any, ...]:
    """Changes when a file of the folder does."""
    if not folder.is_dir():
        return ()
    files = sorted(folder.iterdir())
    return tuple((f.name, f.stat().st_size, f.stat().st_mtime_ns) for f in files)


@lru_cache(maxsize=4)
def _opened(
    where: str,
    settings: SelectorSettings,
    stamp: tuple[Any, ...],  # noqa: ARG001 - part of the key
    batch: int,
    place: tuple[str, str],
) -> LanguageModelSelector:
    model = load_model(where, device=place[0], dtype=place[1])
    tokenizer = load_tokenizer(where, pad="eos")
    return LanguageModelSelector(model, tokenizer, settings, batch)
