"""How the laptop model is built: words, then reading, then erring."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..envs.api import TextEnv
from ..envs.errors import BadValueError
from .blank import blank_decoder
from .demonstrations import Teacher
from .imitation import Pupil
from .render import PlainRenderer
from .starter import Progress, Stage, StarterSettings
from .tokenizer_training import train_tokenizer

_CHECK_EVERY = 25
"""Clean steps between two looks at the held-out dialogues."""


def build(
    folder: Path,
    env: TextEnv[Any, Any],
    settings: StarterSettings,
    tell: Callable[[Progress], None],
) -> dict[str, Any]:
    """Build the model and its tokenizer into ``folder``.

    Returns:
        Number of parameters and tokens, and for each stage steps, tokens, seconds and scores.

    Raises:
        BadValueError: The model did not learn to read.
    """
    tell(Progress("words", 0, 1, 0.0))
    texts = Teacher(env, "train", settings.seed, policy=settings.reader).texts(settings.texts)
    tokenizer = train_tokenizer(texts, vocab_size=settings.vocab_size, max_length=settings.context)
    model = blank_decoder(tokenizer, settings)
    lesson = _Lesson(env, model, PlainRenderer(tokenizer), settings, tell)
    report = {
        "parameters": sum(p.numel() for p in model.parameters()),
        "vocabulary": len(tokenizer),
        "reading": lesson.read(),
        "erring": lesson.err(),
    }
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return report


class _Lesson:
    """Both stages of the teaching of one model."""

    def __init__(
        self,
        env: TextEnv[Any, Any],
        model: Any,
        renderer: PlainRenderer,
        settings: StarterSettings,
        tell: Callable[[Progress], None],
    ) -> None:
        self._env, self._model, self._renderer = env, model, renderer
        self._settings, self._tell = settings, tell
        dev = Teacher(env, "dev", settings.seed, policy=settings.reader)
        self._held_out = dev.demonstrations(settings.held_out, renderer)

    def read(self) -> dict[str, float]:
        """Clean demonstrations until held-out ones are reproduced."""
        s = self._settings
        teacher = Teacher(self._env, "train", s.seed + 1, policy=s.reader)
        report = self._teach("reading", teacher, s.lr, s.read_steps, s.read_until)
        if report["greedy"] < s.read_least:
            raise BadValueError(
                f"starter: after {report['steps']} clean steps the model reproduces "
                f"{report['greedy']:.0%} of the held-out dialogues; expected {s.read_least:.0%} or "
                "more. Give it more read_steps, another seed, or a simpler world."
            )
        return report

    def err(self) -> dict[str, float]:
        """Demonstrations with mistakes, for a fixed number of steps."""
        s = self._settings
        teacher = Teacher(self._env, "train", s.seed + 2, mistakes=s.mistakes)
        return self._teach("erring", teacher, s.err_lr, s.err_steps, None)

    def _teach(
        self, stage: Stage, teacher: Teacher, lr: float, steps: int, until: float | None
    ) -> dict[str, float]:
        s = self._settings
        pupil = Pupil(self._model, lr=lr, warmup_steps=s.warmup_steps, pad_id=self._renderer.pad_id)
        began, tokens = time.perf_counter(), 0
        score = pupil.score(self._held_out)
        self._tell(Progress(stage, 0, steps, score.greedy))
        for step in range(1, steps + 1):
            batch = teacher.demonstrations(s.batch, self._renderer)
            pupil.step(batch)
            tokens += sum(len(d.ids) for d in batch)
            if step == steps or (until is not None and step % _CHECK_EVERY == 0):
                score = pupil.score(self._held_out)
            self._tell(Progress(stage, step, steps, score.greedy))
            if until is not None and score.greedy >= until:
                break
        return {
            "steps": pupil.steps,
            "tokens": tokens,
            "seconds": round(time.perf_counter() - began, 1),
            "greedy": round(score.greedy, 4),
            "sampled": round(score.sampled, 4),
        }
