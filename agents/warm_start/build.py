"""Builds the laptop model: its tokenizer, clean demonstrations, then some with mistakes."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from ...envs.core.env import TextEnv
from ...envs.core.errors import BadValueError
from ..models.progress_bars import without_progress_bars
from ..models.random_init import blank_decoder
from ..models.size import count_weights
from ..models.tokenizer import train_tokenizer
from ..models.usual_torch import usual_torch
from ..rendering.factory import PlainRenderer
from .cores import Ahead
from .demonstrations import Demonstrator, refuse_oracle
from .imitation import ImitationTrainer, Score
from .settings import StarterProgress, StarterSettings, StarterStage

_CHECK_EVERY = 25
"""Clean steps between two looks at the held-out dialogues."""


@usual_torch()
def build(
    folder: Path,
    env: TextEnv[Any, Any],
    settings: StarterSettings,
    on_progress: Callable[[StarterProgress], None],
) -> dict[str, Any]:
    """Build the model and its tokenizer into ``folder``.

    Returns:
        Number of parameters and tokens, and for each stage steps, tokens, seconds and scores.

    Raises:
        BadValueError: The demonstrations follow from what is not shown, or the model did not learn
            to read.
    """
    on_progress(StarterProgress("words", 0, 1, 0.0))
    reader = Demonstrator(env, "train", settings.seed, policy=settings.reader)
    talks = reader.take(settings.texts)
    refuse_oracle(talks, settings.read_least, env.name)
    texts = reader.written(talks)
    tokenizer = train_tokenizer(texts, vocab_size=settings.vocab_size, max_length=settings.context)
    model = blank_decoder(tokenizer, settings)
    training = _Training(env, model, PlainRenderer(tokenizer), settings, on_progress)
    report = {
        "parameters": count_weights(model),
        "vocabulary": len(tokenizer),
        "reading": training.read(),
        "erring": training.err(),
    }
    with without_progress_bars():
        model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return report


class _Training:
    """Both stages of the training of one model."""

    def __init__(
        self,
        env: TextEnv[Any, Any],
        model: Any,
        renderer: PlainRenderer,
        settings: StarterSettings,
        on_progress: Callable[[StarterProgress], None],
    ) -> None:
        self._env, self._model, self._renderer = env, model, renderer
        self._settings, self._on_progress = settings, on_progress
        dev = Demonstrator(env, "dev", settings.seed, policy=settings.reader)
        self._held_out = dev.demonstrations(settings.held_out, renderer)

    def read(self) -> dict[str, float]:
        """Train on clean demonstrations until held-out ones are reproduced."""
        s = self._settings
        source = Demonstrator(self._env, "train", s.seed + 1, policy=s.reader)
        until = Score(s.read_until, s.read_until_sampled)
        report = self._train("reading", source, s.lr, s.read_steps, until)
        if report["greedy"] < s.read_least:
            raise BadValueError(
                f"starter: after {report['steps']} clean steps the model reproduces "
                f"{report['greedy']:.0%} of the held-out dialogues; expected {s.read_least:.0%} or "
                "more. Give it more read_steps, another seed, or a simpler environment. An expert "
                "that acts on what is not shown cannot be imitated; --starter blank begins with "
                "random weights."
            )
        return report

    def err(self) -> dict[str, float]:
        """Train on demonstrations with mistakes, for a fixed number of steps."""
        s = self._settings
        seed, habits = s.seed + 2, s.habits
        source = Demonstrator(self._env, "train", seed, mistakes=s.mistakes, habits=habits)
        return self._train("erring", source, s.err_lr, s.err_steps, None)

    def _train(
        self, stage: StarterStage, source: Demonstrator, lr: float, steps: int, until: Score | None
    ) -> dict[str, float]:
        s = self._settings
        trainer = ImitationTrainer(
            self._model, lr=lr, warmup_steps=s.warmup_steps, pad_id=self._renderer.pad_id
        )
        began, tokens = time.perf_counter(), 0
        score = trainer.score(self._held_out)

        def tell(step: int) -> None:
            ends = (None, 0.0) if until is None else until
            now = StarterProgress(stage, step, steps, score.greedy, ends[0], score.sampled, ends[1])
            self._on_progress(now)

        tell(0)
        make = partial(source.demonstrations, s.batch, self._renderer)
        ahead = trainer.passes_at_once > 1
        with Ahead(make, ahead) as batches:  # both stages play in one environment
            for step in range(1, steps + 1):
                batch = batches.take(last=step == steps)
                trainer.step(batch)
                tokens += sum(len(d.ids) for d in batch)
                if step == steps or (until is not None and step % _CHECK_EVERY == 0):
                    score = trainer.score(self._held_out)
                tell(step)
                if until is not None and all(a >= b for a, b in zip(score, until, strict=True)):
                    break
        return {
            "steps": trainer.steps,
            "tokens": tokens,
            "seconds": round(time.perf_counter() - began, 1),
            "greedy": round(score.greedy, 4),
            "sampled": round(score.sampled, 4),
        }
